# SPDX-License-Identifier: Apache-2.0
"""torched.py - what has a length and an index, driven by PyTorch's DataLoader in a random order

ImageFolder, LMDB, HDF5, Hugging Face datasets, Lance.
"""

import functools
import struct
import sys
import types

import source

from .base import Loader, collate, data_loader


def read_bytes(path):
    with open(path, 'rb') as file:
        return file.read()


def stateful_loader(dataset, job, **options):
    """torchdata's, as data_loader()."""
    import torch
    from torchdata.stateful_dataloader import StatefulDataLoader

    return StatefulDataLoader(
        dataset, job.batch, num_workers=job.processes, drop_last=True,
        collate_fn=functools.partial(collate, pictures=job.pictures), **options)


def torchvision_datasets():
    """The real ones; compiled operators, which need the same build of torch, stay out."""
    sys.modules.setdefault('torchvision._meta_registrations',
                           types.ModuleType('torchvision._meta_registrations'))
    import torchvision.datasets

    return torchvision.datasets


class MapStyle(Loader):
    def load(self):
        import torch.utils.data  # noqa: F401

    def dataset(self, job):
        raise NotImplementedError

    def open(self, job):
        return data_loader(self.dataset(job), job)


class ImageFolder(MapStyle):
    """Files of a tree on the disk's own filesystem; its label is the directory."""

    name = 'torchvision ImageFolder'
    form = 'tree'

    def load(self):
        super().load()
        torchvision_datasets()

    def dataset(self, job):
        datasets = torchvision_datasets()
        folder = datasets.DatasetFolder
        read = source.decode if job.pictures else read_bytes

        class Named(folder):
            """With the id in the place of the class: the file's number."""

            def __getitem__(self, index):
                return super().__getitem__(index)[0], source.id_of(self.samples[index][0])

        def load(path):
            if not job.pictures:
                return read(path)
            with open(path, 'rb') as file:
                return source.decode(file)

        return Named(job.path, load, extensions=('.bin', '.jpg'))


class Lmdb(MapStyle):
    """One database, opened in each worker."""

    name = 'LMDB'
    form = 'lmdb'

    def write(self, source, path):
        import lmdb

        with lmdb.open(path, map_size=1 << 36) as env:
            pairs = iter(source)
            more = True
            while more:
                with env.begin(write=True) as txn:
                    for _, (id, data) in zip(range(1000), pairs):
                        txn.put(struct.pack('>I', id), data, append=True)
                        more = id + 1 < len(source)

    readahead = True

    class Data:
        def __init__(self, job, readahead):
            import lmdb

            self.job, self.env, self.readahead = job, None, readahead
            with lmdb.open(job.path, readonly=True, lock=False) as env:
                self.count = env.stat()['entries']

        def __len__(self):
            return self.count

        def __getitem__(self, index):
            import lmdb

            if self.env is None:
                self.env = lmdb.open(self.job.path, readonly=True, lock=False, meminit=False,
                                     readahead=self.readahead)
            with self.env.begin() as txn:
                return self.job.sample(txn.get(struct.pack('>I', index))), index

    def dataset(self, job):
        return self.Data(job, self.readahead)


class LmdbRandom(Lmdb):
    """As its documentation advises for what is larger than the memory: MADV_RANDOM."""

    name = 'LMDB, no readahead'
    only = 'beyond'
    readahead = False


class Hdf5(MapStyle):
    """One dataset of rows of bytes, opened in each worker."""

    name = 'HDF5'
    form = 'hdf5'

    def write(self, source, path):
        import h5py
        import numpy

        with h5py.File(path, 'w') as file:
            rows = file.create_dataset('data', (len(source),), dtype=h5py.vlen_dtype('u1'))
            for id, data in source:
                rows[id] = numpy.frombuffer(data, dtype='u1')

    class Data:
        def __init__(self, job):
            import h5py

            self.job, self.rows = job, None
            with h5py.File(job.path) as file:
                self.count = len(file['data'])

        def __len__(self):
            return self.count

        def __getitem__(self, index):
            import h5py

            if self.rows is None:
                self.rows = h5py.File(self.job.path)['data']
            row = self.rows[index]
            return self.job.sample(row.tobytes()), index

    def dataset(self, job):
        return self.Data(job)


def arrow_batches(source, rows=500, key='index'):
    import pyarrow

    schema = pyarrow.schema([('data', pyarrow.large_binary()), (key, pyarrow.int64())])
    ids, data = [], []
    for id, one in source:
        ids.append(id)
        data.append(one)
        if len(ids) == rows or id + 1 == len(source):
            yield pyarrow.record_batch([data, ids], schema=schema)
            ids, data = [], []


class Rows:
    """Dicts of a row as pairs; whole batches at once, where the dataset can."""

    def __init__(self, data, job):
        self.data, self.job = data, job

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        row = self.data[index]
        return self.job.sample(row['data']), row['index']

    def __getitems__(self, indices):
        return [(self.job.sample(r['data']), r['index'])
                for r in self.data.__getitems__(indices)]


class HuggingFace(MapStyle):
    """Dataset.save_to_disk(), load_from_disk(), DataLoader."""

    name = 'Hugging Face datasets'
    form = 'arrow'

    def load(self):
        super().load()
        import datasets  # noqa: F401

    def write(self, source, path):
        import datasets

        features = datasets.Features({'data': datasets.Value('large_binary'),
                                      'index': datasets.Value('int64')})

        def rows(count):
            for id, data in source:
                yield {'data': data, 'index': id}

        made = datasets.Dataset.from_generator(
            rows, features=features, gen_kwargs={'count': len(source)},
            cache_dir=str(path) + '.cache', keep_in_memory=False)
        made.save_to_disk(path, max_shard_size='64MB')
        made.cleanup_cache_files()

    def dataset(self, job):
        import datasets

        return Rows(datasets.load_from_disk(job.path), job)


class Lance(MapStyle):
    """SafeLanceDataset and its loader, whose workers are spawned."""

    name = 'Lance'
    form = 'lance'

    def load(self):
        super().load()
        import lance.torch.data  # noqa: F401

    def write(self, source, path):
        import lance
        import pyarrow

        batches = arrow_batches(source)
        first = next(batches)

        def chain():
            yield first
            yield from batches

        reader = pyarrow.RecordBatchReader.from_batches(first.schema, chain())
        lance.write_dataset(reader, path)

    def open(self, job):
        from lance.torch.data import SafeLanceDataset, get_safe_loader

        rows = Rows(SafeLanceDataset(job.path), job)
        collated = functools.partial(collate, pictures=job.pictures)
        if not job.processes:
            return data_loader(rows, job)
        return get_safe_loader(rows, batch_size=job.batch, num_workers=job.processes,
                               shuffle=True, drop_last=True, collate_fn=collated)


ALL = (ImageFolder, Lmdb, LmdbRandom, Hdf5, HuggingFace, Lance)
