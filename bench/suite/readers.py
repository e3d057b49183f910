# SPDX-License-Identifier: Apache-2.0
"""readers.py - who reads: each a command, and how to read what it says

A reader is run again and again; what it says becomes samples, bytes of payload and seconds,
first to last sample, as it counted them itself. Latencies are of whole samples.
"""

import contextlib
import dataclasses
import pathlib
import typing

from . import machine
from .process import Failed, json_lines, later, run

THP = '/sys/kernel/mm/transparent_hugepage/enabled'
POOL = '/proc/sys/vm/nr_hugepages'
POOL_PAGES = 64


@dataclasses.dataclass
class Reader:
    name: str
    argv: typing.Callable  # of a round's seed
    parse: typing.Callable  # of the output
    from_disk: bool = True  # what it delivers must have come from the disk
    around: typing.Callable = contextlib.nullcontext
    env: dict = None
    prepares: bool = False  # it sees itself to what is in the caches

    def read(self, seed):
        with self.around() as taken:
            if taken is False:
                raise Failed(f'{self.name}: the kernel does not allow it')
            return self.parse(run(*self.argv(seed), env=self.env))


def rates(samples, size, seconds, p50=None, p99=None, **more):
    if not samples or seconds <= 0:
        raise Failed('nothing was read')
    return {'samples': samples, 'bytes': size, 'seconds': seconds,
            'samples_per_second': samples / seconds, 'bytes_per_second': size / seconds,
            'p50_us': p50, 'p99_us': p99, **more}


def parse_peer(text):
    seen = json_lines(text)[-1]
    return rates(seen['samples'], seen['bytes'], seen['seconds'], seen['p50_us'],
                 seen['p99_us'], exhausted=seen.get('exhausted', False))


# ---- stele ----

def parse_stele(text):
    seen = json_lines(text)[-1]
    if seen.get('failed'):
        raise Failed(f"stele bench: {seen['failed']} sample{'s' * (seen['failed'] > 1)} failed")
    latency = seen.get('latency_ns', {})
    return rates(seen['samples'], seen['bytes'], seen['seconds'], latency.get('p50', 0) / 1e3,
                 latency.get('p99', 0) / 1e3,
                 window=seen.get('depth', {}).get('window'), tier=seen.get('tier'),
                 reads_per_sample=seen.get('reads_per_sample'),
                 bytes_per_byte=seen.get('bytes_per_byte'))


def stele(settings, name, target, *options, limit=None, seconds=None, from_disk=True):
    limit = limit or f'--time={seconds or settings.seconds:g}'
    command = settings.build / 'stele'
    # Profiles of this machine would make one run better than the next.
    env = machine.clean_environment(settings)

    def argv(seed):
        return (command, 'bench', '--json', '-q', limit,
                f'--seed={seed}', *options, target)

    return Reader(name, argv, parse_stele, from_disk=from_disk, env=env)


# ---- fio ----

def parse_fio(text, payload_share):
    job = json_lines(text)[-1]['jobs'][0]
    if job['error']:
        raise Failed(f"fio: error {job['error']}")
    seen = job['read']
    percentile = seen.get('clat_ns', {}).get('percentile', {})
    return rates(seen['total_ios'], seen['io_bytes'] * payload_share, seen['runtime'] / 1e3,
                 percentile.get('50.000000', 0) / 1e3, percentile.get('99.000000', 0) / 1e3)


@contextlib.contextmanager
def huge_pool():
    machine.compact_memory()
    with machine.setting(POOL, POOL_PAGES) as taken:
        yield taken


def thp_always():
    return machine.setting(THP, 'always')


FIO_MEMORY = {
    'pages': (('--mem=malloc',), contextlib.nullcontext),
    'thp': (('--mem=mmap',), thp_always),
    'huge': (('--mem=mmaphuge',), huge_pool),
}
FIO_RING = ('--ioengine=io_uring', '--fixedbufs=1', '--registerfiles=1', '--nonvectored=1')


def fio(settings, name, target, sizes, region, depth, memory='pages', seconds=None, **how):
    """sizes: fio's words for them; region: (offset, size); payload_share: of a read's bytes."""
    options, around = FIO_MEMORY[memory]
    engine = how.get('engine', FIO_RING)
    share = how.get('payload_share', 1.0)

    def argv(seed):
        return ('fio', '--name=read', *([f'--filename={target}'] if target else []), '--readonly',
                '--direct=1', '--rw=randread', '--norandommap', '--randrepeat=0',
                f'--randseed={seed}',
                f'--iodepth={depth}', f'--offset={region[0]}', f'--size={region[1]}',
                '--time_based', f'--runtime={seconds or settings.seconds:g}',
                '--output-format=json', *sizes, *engine, *options)

    return Reader(name, argv, lambda text: parse_fio(text, share), around=around,
                  from_disk=how.get('from_disk', True), env=how.get('env'))


# Where it is written for one run: in memory, lest that disturb the disk.
REPLAY = pathlib.Path('/dev/shm/stele-bench.iolog')
REPLAY_RATE = 4e9, 2e5  # bytes/s and reads/s that no log here should be too short for
REPLAY_RING = ('--ioengine=io_uring', '--fixedbufs=1', '--nonvectored=1')


def write_replay(reads, target, at, seconds):
    """The reads, from that one on, over and over, as fio's iolog."""
    mean = sum(size for _, size in reads) / len(reads)
    count = int(seconds * min(REPLAY_RATE[0] / mean, REPLAY_RATE[1]))
    with open(REPLAY, 'w', encoding='ascii') as out:
        out.write(f'fio version 3 iolog\n0 {target} add\n0 {target} open\n')
        for i in range(at, at + count):
            offset, size = reads[i % len(reads)]
            out.write(f'{i - at} {target} read {offset} {size}\n')
        out.write(f'{count} {target} close\n')


def replay(settings, name, target, reads, depth, memory, seconds, payload_share):
    """fio, of the very reads that stele bench wrote down, each time from another one on."""
    options, around = FIO_MEMORY[memory]
    later('rm', '-f', REPLAY)

    def argv(seed):
        write_replay(reads, target, seed % len(reads), seconds)
        return ('fio', '--name=replay', f'--read_iolog={REPLAY}', '--replay_no_stall=1',
                '--direct=1', f'--iodepth={depth}', f'--runtime={seconds:g}',
                '--output-format=json', *REPLAY_RING, *options)

    return Reader(name, argv, lambda text: parse_fio(text, payload_share), around=around)


# ---- peers of our own ----

def peer(settings, name, program, *arguments, threads=1, sequential=False, seconds=None,
         from_disk=True):
    def argv(seed):
        return (settings.programs / program, '-t', threads, '-s', seconds or settings.seconds,
                '-r', 0 if sequential else seed, *arguments)

    return Reader(name, argv, parse_peer, from_disk=from_disk)


def ring(settings, name, trace, target, depth, *options, seconds=None):
    def argv(seed):
        return (settings.programs / 'ring', *options, '-d', depth,
                '-s', seconds or settings.seconds, '-r', seed, trace, target)

    return Reader(name, argv, parse_peer)
