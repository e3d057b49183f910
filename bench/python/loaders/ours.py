# SPDX-License-Identifier: Apache-2.0
"""ours.py - Stele: its own Loader, and through PyTorch's DataLoader"""

import concurrent.futures

from source import decode

from .base import Loader, data_loader


def same(sample):
    return sample


class Fields:
    """A sample as the pair that collate() takes."""

    def __init__(self, pictures):
        self.pictures = pictures

    def __call__(self, sample):
        return decode(sample) if self.pictures else sample, sample['index']


class Stele(Loader):
    form = 'stele'
    seekable = 'any step, any number of ranks'

    def load(self):
        import numpy  # noqa: F401
        import stele  # noqa: F401

    def write(self, source, path):
        import stele

        with stele.Writer(path, {'data': bytes, 'index': int}, progress=False) as writer:
            for id, data in source:
                writer.put(f's{id:08}', {'data': data, 'index': id})

    def data(self, job):
        import stele

        return stele.open(job.path, mmap=job.options.get('mmap', False))


class Threads(Stele):
    """stele.Loader: reads in threads of its own."""

    name = 'stele Loader'
    modes = ('threads',)
    alone = True

    def open(self, job):
        import stele

        loader = stele.Loader(self.data(job), batch_size=job.batch, seed=job.seed,
                              drop_last=True, depth=job.options.get('depth', 0))
        self._contiguous = not job.options.get('samples')
        if not job.pictures:
            return loader
        return Pictures(loader)

    def unpack(self, batch):
        if isinstance(batch, tuple):
            return super().unpack(batch)
        data = batch.buffer if self._contiguous else ()
        sizes = batch.sizes
        return len(batch), len(data) or sum(sizes), Lazily(batch)

    def state(self, opened, iterator):
        return opened.state_dict()

    def resume(self, opened, state):
        opened.load_state_dict(state)


class Lazily:
    """Ids of a batch, for who looks at them."""

    def __init__(self, batch):
        self._batch = batch

    def __iter__(self):
        return (sample['index'] for sample in self._batch)


class Pictures:
    """Decodes in two threads, which PIL lets run at once, while the next batch is read."""

    def __init__(self, loader):
        self.loader = loader

    def __iter__(self):
        import numpy

        def one(sample):
            return decode(sample), sample['index']

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            def begin(batch):
                return [pool.submit(one, sample) for sample in batch]

            waiting = None
            for batch in self.loader:
                begun, waiting = waiting, begin(batch)
                if begun:
                    yield self._end(begun, numpy)
            if waiting:
                yield self._end(waiting, numpy)

    @staticmethod
    def _end(jobs, numpy):
        pairs = [job.result() for job in jobs]
        data = numpy.stack([image for image, _ in pairs])
        return data, [image.nbytes for image, _ in pairs], [id for _, id in pairs]


class MapStyle(Stele):
    """stele.torch.Dataset in a DataLoader."""

    name = 'stele in DataLoader'

    def load(self):
        super().load()
        import stele.torch  # noqa: F401

    def open(self, job):
        import stele.torch
        import torch.utils.data

        dataset = stele.torch.Dataset(self.data(job), transform=Fields(job.pictures))
        sampler = stele.torch.Sampler(dataset, seed=job.seed)
        if not job.options.get('stateful'):
            return data_loader(dataset, job, sampler=sampler)
        from .torched import stateful_loader

        return stateful_loader(dataset, job, sampler=sampler)

    def state(self, opened, iterator):
        return opened.state_dict()

    def resume(self, opened, state):
        opened.load_state_dict(state)


class Mapped(MapStyle):
    """The same, out of the page cache."""

    name = 'stele in DataLoader, mmap'
    only = 'warm'
    seekable = ''

    def open(self, job):
        job.options = {**job.options, 'mmap': True}
        return super().open(job)


class Batches(Stele):
    """stele.torch.Batches in a DataLoader without workers."""

    name = 'stele Batches in DataLoader'
    modes = ('threads',)
    decodes = False

    def load(self):
        super().load()
        import stele.torch  # noqa: F401

    def open(self, job):
        import stele.torch
        import torch.utils.data

        self._dataset = stele.torch.Batches(self.data(job), batch_size=job.batch,
                                            seed=job.seed, drop_last=True)
        return torch.utils.data.DataLoader(self._dataset, batch_size=None, num_workers=0)

    def unpack(self, batch):
        return len(batch['ids']), len(batch['data']), batch['ids']

    def state(self, opened, iterator):
        return self._dataset.state_dict()

    def resume(self, opened, state):
        self._dataset.load_state_dict(state)


ALL = (Threads, Batches, MapStyle, Mapped)
