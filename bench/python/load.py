#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""load.py TASK JOB - one loader, one run, in a process of its own; prints one JSON object

TASK: write (makes the form), epoch, shuffle, first, resume. JOB: a JSON object, see base.Job,
with `loader`, and what TASK takes. Imports are over before anything is measured, and what the
caches have of the set is dropped after them.
"""

import base64
import contextlib
import functools
import gc
import inspect
import itertools
import json
import os
import pathlib
import random
import struct
import sys
import threading
import time

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import loaders  # noqa: E402
import meter  # noqa: E402
import order  # noqa: E402
import source  # noqa: E402
from loaders.base import Job  # noqa: E402
from suite import machine  # noqa: E402

EPOCHS_MAX = 8  # in which a run of so many seconds is to be filled,
FORGET_SECONDS = 0.05
FILES_MAX = 100
TIMES_MAX = 3  # and how much longer it may take with all that is not timed


def prepare(job):
    """The caches as they are to be."""
    if not job.warm:
        machine.forget(job.path)
        return
    path = pathlib.Path(job.path)
    for file in [path] if path.is_file() else sorted(p for p in path.rglob('*') if p.is_file()):
        with open(file, 'rb', buffering=0) as reader:
            while reader.read(1 << 22):
                pass


@contextlib.contextmanager
def forgetting(path):
    """What was read of the set is gone before long, as if it were far larger than the memory.

    Of many small files each is read whole: there is nothing of others to forget.
    """
    path, over = pathlib.Path(path), threading.Event()
    files = [path] if path.is_file() else [p for p in path.rglob('*') if p.is_file()]
    with contextlib.ExitStack() as stack:
        open_files = [stack.enter_context(open(file, 'rb', buffering=0))
                      for file in files[:FILES_MAX + 1]]

        def forget():
            processes = []
            for tick in itertools.count():
                if over.wait(FORGET_SECONDS):
                    break
                if tick % 8 == 0:
                    processes = [os.getpid(), *meter.descendants()]
                for process in processes:
                    meter.page_out(process, str(path))
                for file in open_files:
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

        thread = threading.Thread(target=forget)
        if len(files) <= FILES_MAX:
            thread.start()
            stack.callback(thread.join)
            stack.callback(over.set)
        yield


class Run:
    """Epochs of one loader, each with an iterator of its own."""

    def __init__(self, loader, job, seconds, disks):
        self.loader, self.job, self.seconds, self.disks = loader, job, seconds, disks
        self.seen, self.samples, self.bytes, self.steady, self.steady_time = {}, 0, 0, 0, 0.0
        self.first, self.memory = [], {}

    def epoch(self, number):
        self.job.seed += number
        prepare(self.job)
        window = meter.Window(self.disks)
        opened = self.loader.open(self.job)
        iterator = iter(opened)
        count, size, _ = self.loader.unpack(next(iterator))
        first = at = time.perf_counter()
        total, steady = count, 0
        while at - first + self.steady_time < self.seconds:
            try:
                batch = next(iterator)
            except StopIteration:
                break
            count, length, _ = self.loader.unpack(batch)
            steady, total, size = steady + count, total + count, size + length
            at = time.perf_counter()
        meter.add(self.seen, window.end())
        self.first.append(first - window.begin)
        self.samples, self.bytes = self.samples + total, self.bytes + size
        self.steady, self.steady_time = self.steady + steady, self.steady_time + at - first

    def weigh(self):
        """Memory amid an epoch, by when what is read ahead is there; not timed."""
        opened = self.loader.open(self.job)
        begin = time.perf_counter()
        for number, _ in enumerate(opened):
            if (number + 1) * self.job.batch * 2 * len(self.first) >= self.samples or \
                    time.perf_counter() - begin > 1:
                self.memory = meter.memory()
                break

    def result(self):
        if not self.steady:  # one batch was all
            self.steady, self.steady_time = self.samples, sum(self.first)
        mean = self.bytes / self.samples
        rate = self.steady / self.steady_time
        return {'samples': self.samples, 'bytes': self.bytes, 'seconds': self.steady_time,
                'samples_per_second': rate, 'bytes_per_second': rate * mean,
                'cpu_us': self.seen['cpu'] / self.samples * 1e6,
                'first_seconds': self.first[0], 'epochs': len(self.first),
                'seen': self.seen, **self.memory}


def epoch(loader, job, words):
    """As many samples as come in so many seconds, in whole epochs if they are short."""
    before = meter.memory()['pss']
    run = Run(loader, job, words['seconds'], words.get('disks', ()))
    begin = time.perf_counter()
    with forgetting(job.path) if words.get('forget') else contextlib.nullcontext():
        for number in range(words.get('epochs', EPOCHS_MAX)):
            run.epoch(number)
            gc.collect()
            if run.steady_time >= words['seconds'] * 0.8 or \
                    time.perf_counter() - begin > words['seconds'] * TIMES_MAX:
                break
    if words.get('weigh'):
        run.weigh()
    return {**run.result(), 'pss_before': before}


def shuffle(loader, job, words):
    """The order of one epoch."""
    ids = []
    for batch in loader.open(job):
        ids += [int(id) for id in loader.unpack(batch)[2]]
    return {'samples': len(ids), **order.figures(ids, job.batch, words['count'])}


def first(loader, job, words):
    """From opening to the first batch, and what workers take."""
    prepare(job)
    begin = time.perf_counter()
    opened = loader.open(job)
    iterator = iter(opened)
    loader.unpack(next(iterator))
    seconds = time.perf_counter() - begin
    found = {'first_seconds': seconds, 'samples': job.batch, **meter.memory()}
    del iterator
    return found


def resume(loader, job, words):
    """A state after so many batches; then what another loader gives behind it."""
    opened = loader.open(job)
    iterator = iter(opened)
    for _ in range(words['batches']):
        next(iterator)
    begin = time.perf_counter()
    state = loader.state(opened, iterator)
    save = time.perf_counter() - begin
    wanted = list(map(int, loader.unpack(next(iterator))[2]))
    del iterator, opened
    gc.collect()
    prepare(job)
    begin = time.perf_counter()
    opened = loader.open(job)
    try:
        loader.resume(opened, state)
        iterator = iter(opened)
    except NotImplementedError:
        iterator = iter(opened)
        iterator.set_state(state)
    got = loader.unpack(next(iterator))[2]
    seconds = time.perf_counter() - begin
    return {'save_seconds': save, 'resume_seconds': seconds, 'samples': job.batch,
            'exact': list(map(int, got)) == wanted}


def write(loader, job, words):
    loader.write(source.Source(words['tree']), job.path)
    return {}


def pictures(loader, job, words):
    source.write_pictures(words['count'], job.path)
    return {}


# ---- Stele alone ----

def getitems(loader, job, words):
    """Batches by lists of indices, of a Dataset, in this process."""
    data = loader.data(job)
    sampler = list(range(len(data)))
    random.Random(job.seed).shuffle(sampler)
    batches = [sampler[at:at + job.batch] for at in range(0, len(data) - job.batch, job.batch)]
    for batch in batches:  # nothing is read for the first time
        data.__getitems__(batch)
    window, count, size = meter.Window(()), 0, 0
    while time.perf_counter() - window.begin < words['seconds']:
        for batch in batches:
            found = data.__getitems__(batch)
            count += len(found)
        size += sum(map(len, found)) * len(batches)
    seconds = time.perf_counter() - window.begin
    seen = window.end()
    return {'samples': count, 'bytes': size, 'seconds': seconds, 'seen': seen,
            'samples_per_second': count / seconds, 'bytes_per_second': size / seconds,
            'cpu_us': seen['cpu'] / count * 1e6}


def seek(loader, job, words):
    """A state of any step, loaded by a Loader that is open."""
    import stele

    data, step = stele.open(job.path), random.Random(job.seed).randrange(words['count'] // 256)
    with stele.Loader(data, batch_size=job.batch, seed=1, drop_last=True) as opened:
        raw = opened._save()
        state = opened.state_dict()
    head, seed, epoch, _ = struct.unpack('<4Q', raw)
    raw = struct.pack('<4Q', head, seed, epoch, step * job.batch)
    state['state'] = base64.b64encode(raw).decode('ascii')
    prepare(job)
    begin = time.perf_counter()
    with stele.Loader(stele.open(job.path), batch_size=job.batch, seed=1,
                      drop_last=True) as opened:
        made = time.perf_counter()
        opened.load_state_dict(state)
        loaded = time.perf_counter()
        exact = opened.state_dict() == state
    return {'samples': 1, 'open_seconds': made - begin, 'resume_seconds': loaded - made,
            'exact': exact}


def seek_sampler(loader, job, words):
    """The same of the sampler, to its first index."""
    import stele.torch

    data, step = stele.open(job.path), random.Random(job.seed).randrange(words['count'] // 256)
    sampler = stele.torch.Sampler(data)
    iter(sampler)
    state = sampler.state_dict(step * job.batch)
    prepare(job)
    begin = time.perf_counter()
    sampler = stele.torch.Sampler(stele.open(job.path))
    made = time.perf_counter()
    sampler.load_state_dict(state)
    next(iter(sampler))
    return {'samples': 1, 'open_seconds': made - begin,
            'resume_seconds': time.perf_counter() - made, 'exact': True}


class Nothing:
    """A dataset of nothing: what any worker takes."""

    def __getitem__(self, index):
        return bytes(1024)

    def __getitems__(self, indices):
        return [bytes(1024) for _ in indices]


class Some:
    """The samples that a synthetic image has."""

    def __init__(self, data, indices):
        self.data, self.indices = data, indices

    def __len__(self):
        return len(self.indices)

    def __getitem__(self, index):
        return self.data[self.indices[index]]

    def __getitems__(self, indices):
        return self.data.__getitems__([self.indices[index] for index in indices])


def workers(loader, job, words):
    """What each of some DataLoader workers takes, beyond one that reads nothing."""
    import stele.torch
    import torch.utils.data

    indices = [number * words['stride'] for number in range(words['present'])] * job.workers

    def take(data):
        made = torch.utils.data.DataLoader(Some(data, indices), 32, num_workers=job.workers,
                                           collate_fn=len, persistent_workers=True)
        count = sum(made)
        return count, sorted(map(meter.private, meter.descendants()))[job.workers // 2]

    count, own = take(stele.torch.Dataset(job.path, transform=bytes))
    _, base = take(Nothing())
    return {'samples': count, 'worker_own': own, 'worker_base': base, 'worker_more': own - base}


TASKS = {'write': write, 'pictures': pictures, 'epoch': epoch, 'shuffle': shuffle,
         'first': first, 'resume': resume, 'getitems': getitems, 'seek': seek,
         'seek_sampler': seek_sampler, 'workers': workers}


def main():
    words = json.loads(sys.argv[2])
    names = inspect.signature(Job).parameters
    job = Job(**{name: value for name, value in words.items() if name in names})
    with contextlib.redirect_stdout(sys.stderr):
        begin = time.perf_counter()
        loader = loaders.ALL[words['loader']]() if 'loader' in words else None
        if loader:
            loader.load()
        imports = time.perf_counter() - begin
        found = TASKS[sys.argv[1]](loader, job, words)
    print(json.dumps({**found, 'import_seconds': imports}), flush=True)
    if sys.argv[1] in ('write', 'pictures'):
        return
    # Some leave threads or processes behind that a normal exit waits for.
    for process in meter.descendants():
        with contextlib.suppress(OSError):
            os.kill(process, 9)
    os._exit(0)


if __name__ == '__main__':
    main()
