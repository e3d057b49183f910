# SPDX-License-Identifier: Apache-2.0
"""Files that the packages of other formats wrote, kept in tests/fixture/from, and what they hold.

    build/venv-full/bin/python python/tests/fixtures.py DIRECTORY

writes them anew, with the packages of python/tests/full. Those that are kept were written by
mosaicml-streaming 0.13.0, litdata 0.2.76, pylance 14.0.2, array-record 0.8.6 and pyarrow 26.0.1.
"""

import gzip
import json
import os
import sys
import tempfile
import types
import unittest
from pathlib import Path

import numpy

DIRECTORY = Path("tests/fixture/from")
ROWS, SHARD = 9, 3


def row(n):
    """Of all formats that have columns."""
    return {
        "name": f"é{n}",
        "raw": bytes(range(n * 3)),
        "n": n - 2**40,
        "score": n / 3,
        "small": n * 31 % 256,
        "fixed": numpy.array([n, -n], "i2"),
        "array": numpy.arange(2 * (n % 3 + 1), dtype="f4").reshape(-1, 2) + n,
        "deep": {"a": n, "b": [1, "x"]},
    }


def record(n):
    """Of those that have one."""
    return b"%d " % n * n


# ---- what writes them ------------------------------------------------------------


def write_mds(top, **options):
    # Only the Python of torchvision need be there.
    sys.modules.setdefault("torchvision._meta_registrations", types.ModuleType("meta"))
    from streaming import MDSWriter

    columns = {
        "name": "str", "raw": "bytes", "n": "int", "score": "float64", "small": "uint8",
        "fixed": "ndarray:int16:2", "array": "ndarray", "deep": "json",
    }  # fmt: skip
    with MDSWriter(out=str(top), columns=columns, size_limit=700, **options) as writer:
        for n in range(ROWS):
            writer.write(row(n) | {"small": numpy.uint8(row(n)["small"])})


def plain(n):
    """What makes no rows of Arrow; lists of several types would take litdata to read."""
    return row(n) | {"deep": {"a": n}}


def rows(n):
    """What may be rows of Arrow."""
    return {name: value for name, value in row(n).items() if name not in ("fixed", "array")}


def write_litdata(top, fn=plain, **options):
    import litdata

    litdata.optimize(
        fn=fn, inputs=list(range(ROWS)), output_dir=str(top), num_workers=1, chunk_size=SHARD, **options
    )


def arrow():
    import pyarrow

    rows = [row(n) for n in range(ROWS)]
    return pyarrow.table({
        "name": [r["name"] for r in rows],
        "raw": [r["raw"] for r in rows],
        "n": [r["n"] for r in rows],
        "score": [r["score"] for r in rows],
        "small": pyarrow.array([r["small"] for r in rows], "uint8"),
        "fixed": pyarrow.array([r["fixed"].tolist() for r in rows], pyarrow.list_(pyarrow.int16(), 2)),
        "array": pyarrow.array([r["array"].tolist() for r in rows],
                               pyarrow.list_(pyarrow.list_(pyarrow.float32(), 2))),
        "deep": [{"a": r["deep"]["a"], "b": ["1", "x"]} for r in rows],
    })  # fmt: skip


def write_tables(top):
    import lance
    import pyarrow.parquet

    for name, options in (("plain", {}), ("zstd", {"compression": "zstd", "data_page_version": "2.0"})):
        pyarrow.parquet.write_table(
            arrow(), top / f"{name}.parquet", row_group_size=SHARD, write_page_checksum=True, **options
        )
    with pyarrow.ipc.new_file(top / "file.arrow", arrow().schema) as writer:
        writer.write_table(arrow(), SHARD)
    with pyarrow.ipc.new_stream(top / "stream.arrows", arrow().schema) as writer:
        writer.write_table(arrow(), SHARD)
    lance.write_dataset(arrow(), top / "rows.lance", max_rows_per_file=SHARD)


def write_array_record(path, options):
    from array_record.python import array_record_module

    writer = array_record_module.ArrayRecordWriter(str(path), options)
    for n in range(ROWS):
        writer.write(record(n))
    writer.close()


def write(top):
    top.mkdir(parents=True, exist_ok=True)
    write_mds(top / "mds")
    write_mds(top / "mds-bz2", compression="bz2", hashes=["sha1", "xxh64"])
    write_mds(top / "mds-zstd", compression="zstd", hashes=["xxh64"])
    write_litdata(top / "litdata")
    write_litdata(top / "litdata-zstd", compression="zstd")
    write_litdata(top / "litdata-rows", rows)
    write_tables(top)
    write_array_record(top / "each.array_record", "group_size:1")
    write_array_record(top / "groups.array_record", "group_size:4")
    for path in top.glob("*.array_record"):  # 64 KiB, mostly of zeros
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()


# ---- what reads them -------------------------------------------------------------


def same(case, value, want):
    """A value that was read is the one that row() has."""
    value = value.numpy() if hasattr(value, "numpy") else value
    if isinstance(want, numpy.ndarray):
        case.assertEqual((value.dtype, value.shape), (want.dtype, want.shape))
        case.assertEqual(value.tobytes(), want.tobytes())
    elif isinstance(want, bytes):
        case.assertEqual(bytes(value), want)
    elif isinstance(want, (dict, list)):
        case.assertEqual(json.loads(value), want)
    else:
        case.assertEqual(value, want)


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_DIR"))
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.target = str(self.directory / "image.stele")

    def holds(self, name, plain=False, table=False):
        """It has all rows, and what they have; plain: of plain(); table: of arrow()."""
        import stele
        import stele.sources

        stele.sources.build(DIRECTORY / name, self.target, force=True, progress=False, order="source")
        with self.subTest(name), stele.open(self.target) as ds:
            self.assertEqual(len(ds), ROWS)
            for n, sample in enumerate(ds):
                wanted = rows(n) if name.endswith("-rows") else row(n)
                if plain:
                    wanted["deep"] = {"a": n}
                if table:
                    wanted["deep"] = {"a": n, "b": ["1", "x"]}
                for field in ds.fields:
                    head, _, inner = field.partition(".")
                    same(self, sample[field], wanted[head][inner] if inner else wanted[head])
                self.assertEqual({f.partition(".")[0] for f in ds.fields}, {*wanted})


if __name__ == "__main__":
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    write(Path(sys.argv[1]))
