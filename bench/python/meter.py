# SPDX-License-Identifier: Apache-2.0
"""meter.py - what a loader costs: time of processors and memory, of all its processes

All are this process and its descendants. Memory is PSS, so that pages which processes share
count once. Whole-machine figures and device bytes come from the suite's own meter.
"""

import contextlib
import ctypes
import os
import pathlib
import resource
import time

from suite import machine

PROC = pathlib.Path('/proc')
LIBC = ctypes.CDLL(None)
PROCESS_MADVISE, MADV_PAGEOUT = 440, 21  # system call, on all architectures


def parents():
    """Of all processes: {process: parent}."""
    found = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            words = machine.read_text(entry / 'stat').rpartition(')')[2].split()
            if len(words) > 1:
                found[int(entry.name)] = int(words[1])
    return found


def descendants():
    """Processes that this one has started, and those that they have."""
    above, found = parents(), []
    for process in above:
        at = process
        while at in above and at != os.getpid():
            at = above[at]
        if at == os.getpid() and process != at:
            found.append(process)
    return found


def cpu_seconds():
    """User and system time of this process, its descendants, and children that ended."""
    own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    total = sum(usage.ru_utime + usage.ru_stime for usage in own)
    for process in descendants():
        words = machine.read_text(PROC / str(process) / 'stat').rpartition(')')[2].split()
        total += sum(map(int, words[11:15])) / machine.TICKS if words else 0
    return total


def _pss(process):
    found = {}
    for line in machine.read_text(PROC / str(process) / 'smaps_rollup').split('\n'):
        name, _, rest = line.partition(':')
        if name.startswith('Pss'):
            found[name] = int(rest.split()[0]) * 1024
    return found


def memory():
    """Bytes: pss of all processes; own, of it what is neither file nor shared with one."""
    all_of = [_pss(process) for process in (os.getpid(), *descendants())]
    return {'pss': sum(p.get('Pss', 0) for p in all_of),
            'own': sum(p.get('Pss_Anon', 0) + p.get('Pss_Shmem', 0) for p in all_of),
            'processes': len(all_of)}


def page_out(process, path):
    """Have the pages of files below path forgotten that this process has mapped."""
    ranges = []
    for line in machine.read_text(PROC / str(process) / 'maps').split('\n'):
        if path in line:
            begin, end = (int(number, 16) for number in line.split(' ', 1)[0].split('-'))
            ranges += [begin, end - begin]
    with contextlib.suppress(OSError):
        if ranges:
            fd = os.pidfd_open(process)
            LIBC.syscall(PROCESS_MADVISE, fd, (ctypes.c_size_t * len(ranges))(*ranges),
                         ctypes.c_size_t(len(ranges) // 2), MADV_PAGEOUT, 0)
            os.close(fd)


def private(process):
    """Bytes of a process that no other has."""
    text = machine.read_text(PROC / str(process) / 'smaps_rollup')
    return sum(int(line.split()[1]) * 1024 for line in text.split('\n')
               if line.startswith(('Private_Dirty:', 'Private_Hugetlb:')))


class Window:
    """What is spent between its making and end()."""

    def __init__(self, disks):
        self._meter = machine.Meter(disks)
        self._cpu = cpu_seconds()
        self.begin = time.perf_counter()

    def end(self):
        seen = self._meter.read()
        return {**seen, 'cpu': cpu_seconds() - self._cpu}


def add(total, more):
    for name, value in more.items():
        total[name] = total.get(name, 0) + value
    return total
