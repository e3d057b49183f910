# SPDX-License-Identifier: Apache-2.0
"""special.py - blocks that are no race of readers: opening, building, Ceph"""

import json
import os
import pathlib
import time

from . import blocks, machine, readers, sets
from .process import Failed, json_lines, later, run
from .rounds import run_block

SYNTHETIC = {'1 K samples': 1000, '813 M samples': 813000000}
NOTHING_WARM = ', nothing in memory'
OPENS = 10  # of each image in each round


# ---- opening ----

def make_synthetic(bench, place):
    made = {}
    for name, count in SYNTHETIC.items():
        path = place / str(count)
        facts = place / f'{count}.json'
        if not facts.exists():
            sets.remove(path)
            facts.write_text(run(bench.settings.programs / 'synthetic', count, path),
                             encoding='ascii')
        made[name] = (path, json.loads(facts.read_text(encoding='ascii')))
    return made


def open_rounds(bench, number, name, target, facts, *other):
    text = run(bench.settings.programs / 'first', target, facts['stride'], facts['present'], OPENS,
               *other)
    for seen in json_lines(text):
        seen['library_us'] = seen['open_us'] + seen['sample_us']
        bench.log.points.append({'block': 'open', 'reader': name, 'round': number,
                                 'samples': facts['samples'], **seen})


def opening(bench):
    """From exec to a first sample, of few samples and of very many, cold.

    A file of 100 TB fits no ext4: both images are sparse files in an XFS that is itself a
    sparse file, through a loop device.
    """
    path = bench.settings.dir / 'synthetic.xfs'
    path.parent.mkdir(parents=True, exist_ok=True)
    other = bench.settings.dir / 'other'
    sets.remove(other)
    run(bench.settings.programs / 'synthetic', 1, other)
    with sets.mounted_new(bench.settings, path, 2 << 30) as place:
        made = make_synthetic(bench, place)
        for number in range(bench.settings.rounds):
            for name in sorted(made, reverse=number % 2 == 1):
                open_rounds(bench, number, name, *made[name], other)
                open_rounds(bench, number, name + NOTHING_WARM, *made[name])
    path.unlink()


# ---- building ----

def fresh(name, target, read):
    """What writes a target: a file is made anew each time, a device written over."""
    def again(_seed):
        if target.is_file():
            target.unlink()
        return read()

    reader = readers.Reader(name, None, None, from_disk=False)
    reader.read = again
    return reader


def build_image(bench, name, found, tree, target):
    def read():
        begin = time.monotonic()
        run(bench.settings.build / 'stele', 'build', '-q', '--force', '--label-from=none', tree, target)
        return readers.rates(found.count, found.size, time.monotonic() - begin)

    return fresh(name, target, read)


def fio_stream(name, target, size, jobs, parse):
    """Sequential streams past the page cache; what is written is flushed within the time."""
    def read():
        argv = ['fio', '--output-format=json', '--bs=1M', '--iodepth=8', '--ioengine=io_uring',
                f'--size={size}', '--end_fsync=1', *jobs]
        begin = time.monotonic()
        found = json_lines(run(*argv))[-1]['jobs']
        if any(job['error'] for job in found):
            raise Failed(f'{name}: fio failed')
        return readers.rates(1, size, parse(found, time.monotonic() - begin))

    return fresh(name, target, read)


def job_seconds(kind):
    def parse(found, wall):
        # job_runtime includes the flush, the runtime of the writes does not.
        return min(wall, max(max(j['job_runtime'], j[kind]['runtime']) for j in found) / 1e3)
    return parse


def fio_streams(big, tree, target, size, cold):
    files = [tree / 'd00000' / f's{i:08}.bin' for i in range(big.count)]
    write = ['--name=write', '--direct=1', f'--filename={target}', '--rw=write',
             '--refill_buffers']
    stream = ['--name=read', f'--direct={int(cold)}', f"--filename={':'.join(map(str, files))}",
              '--rw=read', '--file_service_type=sequential']
    return [fio_stream('device write', target, size, write, job_seconds('write')),
            fio_stream('read one stream', target, big.size, stream, job_seconds('read')),
            fio_stream('copy one stream', target, size, [*stream, *write],
                       lambda found, wall: wall)]


def build_block(bench, block, trees, target, cold=True):
    """From a source to a durable image, against reading the source and writing as much."""
    small, big = bench.sets['a'], bench.sets['big']
    size = min(small.size, big.size) // 1048576 * 1048576
    chosen = [build_image(bench, 'build small files', small, trees['a'], target),
              build_image(bench, 'build one stream', big, trees['big'], target),
              *fio_streams(big, trees['big'], target, size, cold)]
    for threads in (8, 16):
        chosen.append(readers.peer(bench.settings, f'read small files {threads} threads', 'tree',
                                   small.description, trees['a'], threads=threads,
                                   sequential=True, from_disk=cold))
    bench.run(block, chosen)
    if target.is_file():
        target.unlink()


BUILT = ('a', 'big')


def building(bench):
    """On one disk, which is busy with both."""
    build_block(bench, 'build', {n: bench.sets[n].tree() for n in BUILT},
                bench.settings.dir / 'built')


def building_to_memory(bench):
    """From a cold source on the disk to a device in memory."""
    trees = {n: bench.sets[n].tree() for n in BUILT}
    size = int(max(bench.sets[n].size for n in BUILT) * sets.HEADROOM) + (64 << 20)
    file = sets.tmpfs(bench.settings, size) / 'device'
    run('fallocate', '-l', size // 1048576 * 1048576, file)
    node, _ = sets.loop(file)
    build_block(bench, 'build to memory', trees, pathlib.Path(node))


def building_from_memory(bench):
    """From a source in memory to the disk."""
    size = sum(bench.sets[n].size * sets.HEADROOM + bench.sets[n].count * 4096 for n in BUILT)
    place = sets.tmpfs(bench.settings, int(size) + (64 << 20))
    trees = {n: bench.sets[n].write_tree(place / n) for n in BUILT}
    build_block(bench, 'build from memory', trees, bench.settings.dir / 'built', cold=False)


# ---- Ceph ----

def start_ceph():
    here = pathlib.Path(__file__).resolve().parents[2] / 'tests' / 'ceph'
    place = run(here / 'place.sh').strip()
    later(here / 'down.sh', place)
    run(here / 'up.sh', place, env={**os.environ, 'CEPH_OWNER': str(os.getpid())})
    return f'{place}/ceph.conf'


def ceph(bench):
    """A Ceph of one OSD on this very machine: shapes and ratios, never bandwidths."""
    found = bench.sets['b']
    stele = bench.settings.build / 'stele'
    if 'without librbd' in machine.output('sh', '-c', f"'{stele}' info rbd:p/i 2>&1"):
        raise Failed('built without librbd')
    conf = start_ceph()
    target = f'rbd:rbd/bench?conf={conf}'
    run(bench.settings.build / 'stele', 'build', '-q', '--label-from=none', found.tree(), target,
        timeout=900)
    facts = json.loads(run(bench.settings.programs / 'extents', target, bench.settings.seed,
                           bench.settings.dir / 'ceph.trace'))
    sizes, share = blocks.sizes_of(found, facts)
    engine = ('--ioengine=rbd', '--clientname=admin', '--pool=rbd', '--rbdname=bench')
    env = {**machine.clean_environment(bench.settings), 'CEPH_CONF': conf}
    chosen = [readers.stele(bench.settings, 'stele', target, from_disk=False)]
    chosen += [readers.fio(bench.settings, f'fio rbd depth {d}', None, sizes,
                           blocks.region_of(facts), d, engine=engine, payload_share=share,
                           from_disk=False, env=env) for d in (8, 16, 32, 64)]
    run_block(bench.log, 'ceph', chosen, bench.settings, None, [], min(3, bench.settings.rounds))


BLOCKS = {'open': opening, 'build': building, 'build to memory': building_to_memory,
          'build from memory': building_from_memory, 'ceph': ceph}
