# SPDX-License-Identifier: Apache-2.0
"""shards.py - what reads shards one after the other and shuffles among those it has open

WebDataset, MosaicML Streaming, LitData, Hugging Face's IterableDataset, TFRecord with tf.data.
"""

import functools
import glob
import itertools
import os
import sys
import types

from .base import Loader, collate, data_loader
from .torched import HuggingFace, stateful_loader, torchvision_datasets

SHARD = 4 << 20  # bytes; so that 32 workers have one each of a small set
BUFFER = 1000  # samples


class WebDataset(Loader):
    """Tar files, shuffle(1000), WebLoader."""

    name = 'WebDataset'
    form = 'tar'
    order = 'shards'

    def load(self):
        import webdataset  # noqa: F401

    def write(self, source, path):
        import webdataset

        os.makedirs(path)
        with webdataset.ShardWriter(f'{path}/%05d.tar', maxsize=SHARD, maxcount=1 << 20,
                                    verbose=0) as sink:
            for id, data in source:
                sink.write({'__key__': f's{id:08}', 'bin': data})

    def open(self, job):
        import webdataset

        urls = sorted(glob.glob(f'{job.path}/*.tar'))
        data = webdataset.WebDataset(urls, shardshuffle=100, seed=job.seed)
        data = data.shuffle(BUFFER).map(functools.partial(_of_tar, job=job))
        data = data.batched(job.batch, partial=True,
                            collation_fn=functools.partial(collate, pictures=job.pictures))
        return webdataset.WebLoader(data, batch_size=None, num_workers=job.processes)


def _of_tar(sample, job):
    return job.sample(sample['bin']), int(sample['__key__'][1:])


class Streaming(Loader):
    """MDS shards, StreamingDataset(shuffle=True), StreamingDataLoader."""

    name = 'MosaicML Streaming'
    form = 'mds'
    order = 'shards'
    seekable = 'any step; needs the same global batch'

    def load(self):
        torchvision_datasets()
        import streaming  # noqa: F401

    def write(self, source, path):
        import streaming

        with streaming.MDSWriter(out=str(path), columns={'data': 'bytes', 'index': 'int'},
                                 size_limit=SHARD) as sink:
            for id, data in source:
                sink.write({'data': data, 'index': id})

    def open(self, job):
        import streaming
        import streaming.base.util

        streaming.base.util.clean_stale_shared_memory()

        class Data(streaming.StreamingDataset):
            def __getitem__(self, at):
                row = super().__getitem__(at)
                return job.sample(row['data']), row['index']

        data = Data(local=str(job.path), shuffle=True, batch_size=job.batch,
                    shuffle_seed=job.seed)
        return streaming.StreamingDataLoader(
            data, batch_size=job.batch, num_workers=job.processes, drop_last=True,
            collate_fn=functools.partial(_reversed, pictures=job.pictures))

    def unpack(self, batch):
        return super().unpack(batch[::-1])

    def state(self, opened, iterator):
        return opened.state_dict()

    def resume(self, opened, state):
        opened.load_state_dict(state)


def _reversed(samples, pictures):
    """It counts samples by what comes first in a batch."""
    return collate(samples, pictures)[::-1]


class LitData(Loader):
    """Chunks made by optimize(), StreamingDataset(shuffle=True), StreamingDataLoader."""

    name = 'LitData'
    form = 'litdata'
    order = 'shards'
    seekable = 'any step'

    def load(self):
        import litdata  # noqa: F401

    def write(self, source, path):
        import litdata.streaming.writer

        # What optimize() writes with, in this process.
        os.makedirs(path)
        writer = litdata.streaming.writer.BinaryWriter(str(path), chunk_bytes=SHARD)
        for id, data in source:
            writer[id] = {'data': data, 'index': id}
        writer.done()
        writer.merge()

    def open(self, job):
        import litdata

        class Data(litdata.StreamingDataset):
            def __getitem__(self, at):
                row = super().__getitem__(at)
                return job.sample(row['data']), row['index']

        data = Data(str(job.path), shuffle=True, drop_last=True, seed=job.seed)
        return litdata.StreamingDataLoader(
            data, batch_size=job.batch, num_workers=job.processes,
            collate_fn=functools.partial(collate, pictures=job.pictures))

    def state(self, opened, iterator):
        return opened.state_dict()

    def resume(self, opened, state):
        opened.load_state_dict(state)


class HuggingFaceStream(HuggingFace):
    """The same files as an IterableDataset with a shuffle buffer."""

    name = 'Hugging Face IterableDataset'
    order = 'shards'
    seekable = 'any step; the shuffle buffer is lost'

    def write(self, source, path):
        raise NotImplementedError  # as HuggingFace

    def open(self, job):
        import datasets
        import torch.utils.data

        data = datasets.load_from_disk(job.path)
        data = data.to_iterable_dataset(num_shards=max(8, job.processes))
        data = data.shuffle(seed=job.seed, buffer_size=BUFFER)
        data = data.map(functools.partial(_of_row, job=job)) if job.pictures else data
        make = stateful_loader if job.options.get('stateful') else data_loader
        pairs = functools.partial(_pairs, pictures=job.pictures)
        if make is stateful_loader:
            from torchdata.stateful_dataloader import StatefulDataLoader

            return StatefulDataLoader(data, job.batch, num_workers=job.processes,
                                      drop_last=True, collate_fn=pairs)
        return torch.utils.data.DataLoader(data, job.batch, num_workers=job.processes,
                                           drop_last=True, collate_fn=pairs)

    def state(self, opened, iterator):
        return opened.state_dict()

    def resume(self, opened, state):
        opened.load_state_dict(state)


def _of_row(row, job):
    return {'data': job.sample(row['data']), 'index': row['index']}


def _pairs(rows, pictures):
    import numpy

    return collate([(numpy.asarray(r['data'], dtype='u1') if pictures else r['data'],
                     r['index']) for r in rows], pictures)


class TfRecord(Loader):
    """Files interleaved by tf.data, shuffle(1000), prefetch(AUTOTUNE)."""

    name = 'TFRecord, tf.data'
    form = 'tfrecord'
    modes = ('threads',)
    order = 'shards'
    seekable = 'a checkpoint with the shuffle buffer in it'

    def load(self):
        os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
        import tensorflow  # noqa: F401

    def write(self, source, path):
        import tensorflow as tf

        os.makedirs(path)
        pairs = iter(source)
        for number in itertools.count():
            size, first = 0, next(pairs, None)
            if first is None:
                return
            with tf.io.TFRecordWriter(f'{path}/{number:05}.tfrecord') as sink:
                for id, data in itertools.chain([first], pairs):
                    features = {
                        'data': tf.train.Feature(bytes_list=tf.train.BytesList(value=[data])),
                        'index': tf.train.Feature(int64_list=tf.train.Int64List(value=[id]))}
                    record = tf.train.Example(features=tf.train.Features(feature=features))
                    sink.write(record.SerializeToString())
                    size += len(data)
                    if size >= SHARD:
                        break

    def open(self, job):
        import tensorflow as tf

        auto = tf.data.AUTOTUNE
        layout = {'data': tf.io.FixedLenFeature([], tf.string),
                  'index': tf.io.FixedLenFeature([], tf.int64)}

        def parse(record):
            row = tf.io.parse_single_example(record, layout)
            data = row['data']
            if job.pictures:
                data = tf.image.resize(tf.io.decode_jpeg(data, channels=3), (224, 224))
                data = tf.cast(data, tf.uint8)
            return data, row['index']

        files = tf.data.Dataset.list_files(f'{job.path}/*.tfrecord', shuffle=True, seed=job.seed)
        data = files.interleave(tf.data.TFRecordDataset, num_parallel_calls=auto,
                                deterministic=False)
        data = data.shuffle(BUFFER, seed=job.seed).map(parse, num_parallel_calls=auto)
        return _Tensors(data.batch(job.batch, drop_remainder=True).prefetch(auto))

    def unpack(self, batch):
        data, ids = batch
        if data.dtype == object:
            return len(ids), sum(map(len, data)), ids
        return len(ids), data.nbytes, ids

    def state(self, opened, iterator):
        import tensorflow as tf

        checkpoint = tf.train.Checkpoint(iterator=iterator.iterator)
        return checkpoint.write(opened.path())

    def resume(self, opened, state):
        opened.saved = state


class _Tensors:
    """Batches as NumPy's arrays; an iterator that can be saved."""

    def __init__(self, data):
        self.data, self.saved = data, None

    def path(self):
        import tempfile

        return os.path.join(tempfile.mkdtemp(prefix='stele-bench-'), 'state')

    def __iter__(self):
        self.iterator = iter(self.data)
        if self.saved:
            import tensorflow as tf

            tf.train.Checkpoint(iterator=self.iterator).read(self.saved)
        return self

    def __next__(self):
        return tuple(part.numpy() for part in next(self.iterator))


ALL = (WebDataset, Streaming, LitData, HuggingFaceStream, TfRecord)
