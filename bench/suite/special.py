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
            facts.write_text(run(bench.settings.out / 'synthetic', count, path),
                             encoding='ascii')
        made[name] = (path, json.loads(facts.read_text(encoding='ascii')))
    return made


def open_rounds(bench, number, name, target, facts, *other):
    text = run(bench.settings.out / 'first', target, facts['stride'], facts['present'], OPENS,
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
    run(bench.settings.out / 'synthetic', 1, other)
    with sets.mounted_new(bench.settings, path, 2 << 30) as place:
        made = make_synthetic(bench, place)
        for number in range(bench.settings.rounds):
            for name in sorted(made, reverse=number % 2 == 1):
                open_rounds(bench, number, name, *made[name], other)
                open_rounds(bench, number, name + NOTHING_WARM, *made[name])
    path.unlink()


# ---- building ----

def build_image(bench, name, tree, size, count):
    target = bench.settings.dir / 'built'

    def read(_seed):
        begin = time.monotonic()
        run(bench.settings.build / 'stele', 'build', '-q', '--no-labels', tree, target)
        return readers.rates(count, size, time.monotonic() - begin)

    return make_reader(name, read, target)


def make_reader(name, read, leftover=None):
    reader = readers.Reader(name, None, None, from_disk=False)

    def fresh(seed):
        if leftover:
            leftover.unlink(missing_ok=True)
        return read(seed)

    reader.read = fresh
    return reader


def fio_stream(bench, name, jobs, size, parse, leftover=None):
    """Sequential streams past the page cache; what is written is flushed within the time."""
    def read(_seed):
        argv = ['fio', '--output-format=json', '--direct=1', '--bs=1M', '--iodepth=8',
                '--ioengine=io_uring', f'--size={size}', '--end_fsync=1', *jobs]
        begin = time.monotonic()
        found = json_lines(run(*argv))[-1]['jobs']
        if any(job['error'] for job in found):
            raise Failed(f'{name}: fio failed')
        return readers.rates(1, size, parse(found, time.monotonic() - begin))

    return make_reader(name, read, leftover)


def job_seconds(kind):
    def parse(found, wall):
        # job_runtime includes the flush, the runtime of the writes does not.
        return min(wall, max(max(j['job_runtime'], j[kind]['runtime']) for j in found) / 1e3)
    return parse


def build_readers(bench):
    small, big = bench.sets['a'], bench.sets['big']
    files = [big.tree() / 'd00000' / f's{i:08}.bin' for i in range(big.count)]
    written = bench.settings.dir / 'written'
    size = min(small.size, big.size) // 1048576 * 1048576
    write = ['--name=write', f'--filename={written}', '--rw=write', '--refill_buffers']
    stream = ['--name=read', f"--filename={':'.join(map(str, files))}", '--rw=read',
              '--file_service_type=sequential']
    chosen = [build_image(bench, 'build small files', small.tree(), small.size, small.count),
              build_image(bench, 'build one stream', big.tree(), big.size, big.count),
              fio_stream(bench, 'device write', write, size, job_seconds('write'), written),
              fio_stream(bench, 'read one stream', stream, big.size, job_seconds('read')),
              fio_stream(bench, 'copy one stream', [*stream, *write], size,
                         lambda found, wall: wall, written)]
    for threads in (8, 16):
        chosen.append(readers.peer(bench.settings, f'read small files {threads} threads', 'tree',
                                   small.description, small.tree(), threads=threads,
                                   sequential=True))
    return chosen


def building(bench):
    """From a cold source to a durable image, against reading the source and writing as much."""
    run_block(bench.log, 'build', build_readers(bench), bench.settings, None, bench.disks)
    for name in ('built', 'written'):
        (bench.settings.dir / name).unlink(missing_ok=True)


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
    run(bench.settings.build / 'stele', 'build', '-q', '--no-labels', found.tree(), target,
        timeout=900)
    facts = json.loads(run(bench.settings.out / 'extents', target, bench.settings.seed,
                           bench.settings.dir / 'ceph.trace'))
    sizes, share = blocks.sizes_of(found, facts)
    engine = ('--ioengine=rbd', '--clientname=admin', '--pool=rbd', '--rbdname=bench')
    env = {**machine.clean_environment(bench.settings), 'CEPH_CONF': conf}
    chosen = [readers.stele(bench.settings, 'stele', target, from_disk=False)]
    chosen += [readers.fio(bench.settings, f'fio rbd depth {d}', None, sizes,
                           blocks.region_of(facts), d, engine=engine, payload_share=share,
                           from_disk=False, env=env) for d in (8, 16, 32, 64)]
    run_block(bench.log, 'ceph', chosen, bench.settings, None, [], min(3, bench.settings.rounds))


BLOCKS = {'open': opening, 'build': building, 'ceph': ceph}
