# SPDX-License-Identifier: Apache-2.0
"""pipelines.py - what brings a pipeline of its own and reads in a random order

array_record with Grain, MindRecord with MindSpore.
"""

import functools
import os
import struct

from .base import Job, Loader, collate_arrays

ID = struct.Struct('<Q')  # before the bytes of a record


class Grain(Loader):
    """ArrayRecord files of one record a group, MapDataset.shuffle(), Grain's own threads."""

    name = 'array_record, Grain'
    form = 'array_record'
    modes = ('threads', 'workers')
    seekable = 'any step'

    def load(self):
        import grain  # noqa: F401
        from array_record.python import array_record_module  # noqa: F401

    def write(self, source, path):
        from array_record.python import array_record_module

        os.makedirs(path)
        writer = array_record_module.ArrayRecordWriter(f'{path}/data.array_record',
                                                       'group_size:1,uncompressed')
        for id, data in source:
            writer.write(ID.pack(id) + data)
        writer.close()

    def open(self, job):
        import grain

        source = grain.sources.ArrayRecordDataSource([f'{job.path}/data.array_record'])
        data = grain.MapDataset.source(source).seed(job.seed).shuffle()
        data = data.map(_Parse(job)).to_iter_dataset()
        data = data.batch(job.batch, drop_remainder=True, batch_fn=functools.partial(
            collate_arrays, pictures=job.pictures))
        if job.mode == 'workers':
            data = data.mp_prefetch(grain.MultiprocessingOptions(num_workers=job.workers))
        return data

    def state(self, opened, iterator):
        return iterator.get_state()

    def resume(self, opened, state):
        raise NotImplementedError


class _Parse:
    def __init__(self, job):
        self.job = job

    def __call__(self, record):
        return self.job.sample(record[ID.size:]), ID.unpack_from(record)[0]


class MindRecord(Loader):
    """MindDataset(shuffle=True), its own threads, rows in batches of the consumer."""

    name = 'MindRecord'
    form = 'mindrecord'
    environment = 'mindspore'
    modes = ('threads',)

    def load(self):
        import mindspore.dataset  # noqa: F401

    def write(self, source, path):
        from mindspore.mindrecord import FileWriter

        os.makedirs(path)
        writer = FileWriter(f'{path}/data.mindrecord', shard_num=1, overwrite=True)
        writer.add_schema({'data': {'type': 'bytes'}, 'index': {'type': 'int64'}}, 'samples')
        rows = []
        for id, data in source:
            rows.append({'data': data, 'index': id})
            if len(rows) == 200 or id + 1 == len(source):
                writer.write_raw_data(rows)
                rows = []
        writer.commit()

    @staticmethod
    def threads(job):
        return min(job.workers, os.cpu_count() or 1)  # it takes no more

    def open(self, job):
        import mindspore.dataset

        mindspore.dataset.config.set_seed(job.seed)
        data = mindspore.dataset.MindDataset(
            [f'{job.path}/data.mindrecord'], columns_list=['data', 'index'], shuffle=True,
            num_parallel_workers=self.threads(job))
        if job.pictures:
            data = data.map(_decoded, input_columns=['data'],
                            num_parallel_workers=self.threads(job))
            data = data.batch(job.batch, drop_remainder=True)
        return _Rows(data, job)


def _decoded(data):
    return Job('', pictures=True).sample(data.tobytes())


class _Rows:
    """Rows differ in size, which its own batch() does not take."""

    def __init__(self, data, job):
        self.data, self.job = data, job

    def __iter__(self):
        rows = []
        for data, id in self.data.create_tuple_iterator(output_numpy=True, num_epochs=1):
            if self.job.pictures:
                yield data, [data[0].nbytes] * len(id), id
                continue
            rows.append((data, int(id)))
            if len(rows) == self.job.batch:
                yield collate_arrays([(d.tobytes(), i) for d, i in rows], False)
                rows = []


ALL = (Grain, MindRecord)
