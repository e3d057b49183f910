# SPDX-License-Identifier: Apache-2.0
"""machine.py - what the machine is, what it did meanwhile, and how its caches are emptied

The processor's time is that of the whole machine, from /proc/stat: workers of the kernel,
interrupts and loop devices count. Device bytes are those of the disk below BENCH_DIR.
"""

import contextlib
import os
import pathlib
import platform
import re
import subprocess
import time

TICKS = os.sysconf('SC_CLK_TCK')
SECTOR = 512


def read_text(path, default=''):
    try:
        return pathlib.Path(path).read_text(encoding='utf-8', errors='replace').strip()
    except OSError:
        return default


def output(*argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        return ''


# ---- time of the processors ----

def cpu_seconds():
    """Of all processors since boot: busy, steal."""
    fields = [int(f) for f in read_text('/proc/stat').split('\n')[0].split()[1:]]
    user, nice, system, _idle, _wait, irq, softirq, steal = fields[:8]
    return (user + nice + system + irq + softirq) / TICKS, steal / TICKS


class Meter:
    """Seconds, busy seconds, stolen seconds and device bytes between two moments."""

    def __init__(self, disks):
        self.disks = disks
        self.begin = self._now()

    def _now(self):
        return (time.monotonic(), *cpu_seconds(), sum(read_bytes(d) for d in self.disks))

    def read(self):
        names = ('seconds', 'busy', 'steal', 'bytes')
        return dict(zip(names, (b - a for a, b in zip(self.begin, self._now()))))


def idle_control(seconds):
    """What the machine does on its own: busy and stolen seconds per second."""
    meter = Meter([])
    time.sleep(seconds)
    seen = meter.read()
    return seen['busy'] / seen['seconds'], seen['steal'] / seen['seconds']


# ---- disks ----

def disk_of(path):
    """The whole disk below a file or directory, '' if there is none (tmpfs)."""
    device = os.stat(path).st_dev
    node = pathlib.Path(f'/sys/dev/block/{os.major(device)}:{os.minor(device)}')
    if not node.exists():
        return ''
    node = node.resolve()
    return node.parent.name if (node / 'partition').exists() else node.name


def read_bytes(disk):
    fields = read_text(f'/sys/block/{disk}/stat').split()
    return int(fields[2]) * SECTOR if len(fields) > 2 else 0


def drop_caches():
    os.sync()
    try:
        pathlib.Path('/proc/sys/vm/drop_caches').write_text('3\n', encoding='ascii')
        return True
    except OSError:
        return False


def forget(path):
    """What the caches have of one file or tree, its inodes, and the disk's metadata.

    Unlike drop_caches(), all else stays: what programs are made of need not be read again.
    """
    path = pathlib.Path(path)
    disk = pathlib.Path('/dev') / (disk_of(path) or '-')
    for file in [path, disk] if path.is_file() else [*path.rglob('*'), disk]:
        if file.is_dir():
            continue
        with contextlib.suppress(OSError), open(file, 'rb', buffering=0) as reader:
            os.posix_fadvise(reader.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    with contextlib.suppress(OSError):
        pathlib.Path('/proc/sys/vm/drop_caches').write_text('2\n', encoding='ascii')


def clean_environment(settings):
    """Without settings of the user's."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith('STELE_')}
    return {**kept, 'STELE_RUN_DIR': str(settings.dir / 'run')}


# ---- huge pages for fio ----

def compact_memory():
    with contextlib.suppress(OSError):
        pathlib.Path('/proc/sys/vm/compact_memory').write_text('1\n', encoding='ascii')


@contextlib.contextmanager
def setting(path, value):
    """A file of the kernel has this value meanwhile; yields whether it took it."""
    before = read_text(path)
    chosen = re.search(r'\[(\w+)\]', before)
    before = chosen.group(1) if chosen else before
    try:
        pathlib.Path(path).write_text(f'{value}\n', encoding='ascii')
        taken = True
    except OSError:
        taken = False
    try:
        yield taken
    finally:
        if taken:
            pathlib.Path(path).write_text(f'{before}\n', encoding='ascii')


# ---- facts ----

def memory(what):
    """Bytes, of /proc/meminfo; 0 where it does not say."""
    found = re.search(rf'^{what}:\s*(\d+) kB', read_text('/proc/meminfo'), re.M)
    return int(found.group(1)) * 1024 if found else 0


def queue_facts(disk):
    names = ('scheduler', 'nr_requests', 'max_sectors_kb', 'max_hw_sectors_kb', 'max_segments',
             'logical_block_size', 'rotational', 'nomerges', 'io_poll',
             'read_ahead_kb')
    return {n: read_text(f'/sys/block/{disk}/queue/{n}', '?') for n in names}


def processor():
    text = read_text('/proc/cpuinfo')
    found = re.search(r'model name\s*:\s*(.*)', text)
    return found.group(1) if found else platform.machine()


def facts(directory):
    disk = disk_of(directory)
    return {
        'time': time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime()),
        'git': output('git', '-c', 'safe.directory=*', 'describe', '--always', '--dirty'),
        'kernel': f'{platform.system()} {platform.release()} {platform.machine()}',
        'processor': processor(),
        'processors': os.cpu_count(),
        'hypervisor': 'yes' if 'hypervisor' in read_text('/proc/cpuinfo') else 'no',
        'memory': memory('MemTotal'),
        'disk': disk,
        'queue': queue_facts(disk) if disk else {},
        'filesystem': output('findmnt', '-no', 'FSTYPE,OPTIONS', '-T', str(directory)),
        'thp': read_text('/sys/kernel/mm/transparent_hugepage/enabled', '?'),
        'fio': output('fio', '--version'),
        'python': platform.python_version(),
    }
