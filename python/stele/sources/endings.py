# SPDX-License-Identifier: Apache-2.0
"""How names of files with samples end."""

from __future__ import annotations

import os

ENDINGS = {
    ".parquet": "parquet", ".parq": "parquet", ".pq": "parquet", ".arrow": "arrow",
    ".arrows": "arrow", ".feather": "arrow", ".ipc": "arrow", ".array_record": "array_record",
    ".arrayrecord": "array_record", ".lance": "lance",
}  # fmt: skip
PACKED = (".gz", ".bz2", ".xz", ".zst", ".lz4")
OF_STELE = {  # what the command reads, and with which option perhaps
    ".csv": "", ".tsv": "", ".jsonl": "", ".ndjson": "", ".npy": "", ".npz": "", ".mdb": "",
    ".rec": "", ".h5": "", ".hdf5": "", ".mindrecord": "", ".ffr": "",
    ".lmdb": "--datum takes Datum of Caffe apart",
    ".tfrecord": "--example makes fields of the features of tf.train.Example",
    ".tfrecords": "--example makes fields of the features of tf.train.Example",
    ".tar": "--from=webdataset makes one sample of files that share a name",
    ".tgz": "--from=webdataset makes one sample of files that share a name",
}  # fmt: skip


def is_data(name: str) -> bool:
    """Does it look like samples, in whatever format?"""
    stem, ending = os.path.splitext(name.lower())
    if ending in PACKED:
        ending = os.path.splitext(stem)[1]
    return ending in ENDINGS or ending in OF_STELE
