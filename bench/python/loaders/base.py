# SPDX-License-Identifier: Apache-2.0
"""base.py - what a loader is here, and what those have in common that PyTorch's DataLoader drives

A batch is handed over as the bytes of all its samples in one buffer, their sizes and ids;
where samples are pictures, as one array of them. What cannot be had so is left as the
library gives it.
"""

import dataclasses
import functools

from source import decode


@dataclasses.dataclass
class Job:
    """What one run is asked for."""

    path: str  # of the form
    mode: str = 'main'  # 'main', 'workers', 'threads'
    batch: int = 256
    workers: int = 4
    seed: int = 1
    pictures: bool = False
    warm: bool = False
    options: dict = dataclasses.field(default_factory=dict)

    @property
    def processes(self):
        return self.workers if self.mode == 'workers' else 0

    def sample(self, data):
        return decode(data) if self.pictures else data


class Loader:
    name = ''
    form = ''  # what it reads: 'tree', or what write() makes
    modes = ('main', 'workers')
    order = 'random'  # 'shards': neighbours of the source stay together to some degree
    environment = ''  # that it needs to itself: build/venv-bench-NAME
    decodes = True  # samples one by one, in its workers or threads
    alone = False  # it needs no package but Stele's own and NumPy
    only = ''  # 'warm', 'beyond': it is in no other blocks of epochs
    seekable = ''  # how it resumes; '': it does not, but reads again what came before

    def load(self):
        """Import what it needs: not measured."""

    def write(self, source, path):
        """Make its form, of pairs of id and bytes."""

    def open(self, job):
        """What is iterated over, for one epoch."""
        raise NotImplementedError

    def unpack(self, batch):
        """Samples, bytes, and ids as a sequence of int."""
        data, sizes, ids = batch
        return len(sizes), len(data) if data.ndim == 1 else data.nbytes, ids

    def state(self, opened, iterator):
        """Behind the last batch, as what a checkpoint can hold."""
        raise NotImplementedError

    def resume(self, opened, state):
        """opened was just made by open()."""
        raise NotImplementedError


def collate(samples, pictures):
    """Pairs of bytes and id, as tensors."""
    import torch

    data = [sample for sample, _ in samples]
    if pictures:
        stack = torch.stack([torch.from_numpy(a) for a in data])
        sizes = torch.full((len(data),), stack[0].numel())
    else:
        stack = torch.frombuffer(bytearray().join(data), dtype=torch.uint8)
        sizes = torch.tensor([len(d) for d in data])
    return stack, sizes, torch.tensor([id for _, id in samples])


def collate_arrays(samples, pictures):
    """The same as NumPy's arrays."""
    import numpy

    data = [sample for sample, _ in samples]
    ids = numpy.array([id for _, id in samples])
    if pictures:
        return numpy.stack(data), numpy.full(len(data), data[0].nbytes), ids
    sizes = numpy.array([len(d) for d in data])
    return numpy.frombuffer(b''.join(data), dtype='u1'), sizes, ids


def data_loader(dataset, job, **options):
    """PyTorch's, as its documentation shows it."""
    import torch.utils.data

    if not isinstance(dataset, torch.utils.data.IterableDataset) and 'sampler' not in options:
        options['shuffle'] = True
        options['generator'] = torch.Generator().manual_seed(job.seed)
    return torch.utils.data.DataLoader(
        dataset, job.batch, num_workers=job.processes, drop_last=True,
        collate_fn=functools.partial(collate, pictures=job.pictures), **options)
