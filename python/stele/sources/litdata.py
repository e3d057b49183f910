# SPDX-License-Identifier: Apache-2.0
"""LitData: its chunks; pictures and files stay as they are stored."""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy

from ..dataset import Field
from .shards import DAMAGED, Buffer, Leaf, Shard, Shards, array, checked, count_of, cut, index_of
from .shards import mapped, number, offsets, take, text, unzip
from .source import SourceError, batch_rows, directories_of, package

_BYTES = {
    "bytes", "jpeg", "pil", "image", "file", "tifffile", "tiff", "video", "audio", "nifti", "mesh",
    "pdf", "jpeg_array",
}  # fmt: skip
_TORCH = (
    "f4", "f4", "f8", "f8", "c8", "c8", "c16", "c16", "f2", "f2", "", "u1", "i1", "i2", "i2", "i4",
    "i4", "i8", "i8", "?", "u2",
)  # fmt: skip
_NUMPY = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "", "c8", "c16", "", "?")
_FRAMED = b"LDFZ01\0\0"
_ARROW = b"LDARW01\0"  # the end of rows that are a file of Arrow


def _dtype(table: Sequence[str], index: int) -> str:
    if index < 0 or not table[index]:
        raise ValueError(f"its arrays are of type {index}, which is not read")
    return table[index]


def _array(table: Sequence[str], order: str, data: bytes) -> Any:
    """dtype, rank, shape, values."""
    index, rank = struct.unpack_from(f"{order}II", data)
    shape = struct.unpack_from(f"{order}{rank}I", data, 8)
    return array(data[8 + 4 * rank :], _dtype(table, index), shape)


def _flat(table: Sequence[str], format: str) -> Any:
    dtype = _dtype(table, int(format.partition(":")[2]))
    return lambda data: numpy.frombuffer(data, dtype)


def _nested(data: bytes) -> str:
    litdata = package("litdata.streaming.serializers", "litdata")
    return json.dumps(litdata.JsonSerializer().deserialize(data), ensure_ascii=False)


def _leaf(name: str, format: str) -> Leaf:
    def field(type: str) -> Field:
        return Field(name, type, (), "", ())

    head = format.partition(":")[0]
    if head in _BYTES:
        return Leaf(name, field("bytes"), bytes)
    if head in ("no_header_tensor", "no_header_numpy"):
        table = _TORCH if head.endswith("tensor") else _NUMPY
        kind = numpy.dtype(_dtype(table, int(format.partition(":")[2]))).name
        return Leaf(name, Field(name, "tensor", (), kind, (None,)), _flat(table, format))
    known = {
        "str": ("str", text), "text": ("str", text), "json": ("str", _nested),
        "int": ("int", number("<q")), "float": ("float", number("<d")),
        "bool": ("int", lambda data: int(data[0] != 0)),
        "tensor": ("tensor", lambda data: _array(_TORCH, ">", data)),
        "numpy": ("tensor", lambda data: _array(_NUMPY, "<", data)),
    }  # fmt: skip
    if head in known:
        return Leaf(name, field(known[head][0]), known[head][1])
    return Leaf(name, None, bytes, 0, f"is stored as '{format}', which is not read")


def _paths(spec: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Of the leaves of a tree: what leads to them."""
    children = spec["children_spec"]
    if not children and spec["type"] is None:
        return [path or ("data",)]
    keys = json.loads(spec["context"]) if isinstance(spec["context"], str) else None
    if not isinstance(keys, list):
        keys = range(len(children))
    pairs = zip(keys, children, strict=True)
    return [found for key, child in pairs for found in _paths(child, (*path, str(key)))]


def _table(data: Any) -> Any:
    """The rows of a chunk that has nothing but them, as a file of Arrow; None: it has samples."""
    if len(data) < 20 or bytes(data[-8:]) != _ARROW:
        return None
    (count,) = struct.unpack_from("<I", data)
    ends = offsets(data, 4, count, len(data))
    (size,) = struct.unpack("<I", data[-12:-8])
    if ends[0] != ends[-1] or ends[-1] + size + 12 != len(data):
        return None
    return memoryview(data)[ends[-1] : ends[-1] + size]


def _at(row: Any, path: Sequence[str]) -> Any:
    for name in path:
        row = row[name]
    return row


def _value(type: str, value: Any) -> Any:
    """Of a field, as a column of Arrow has it."""
    if value is None:
        return {"str": "", "bytes": b"", "float": math.nan}.get(type)
    if type == "str" and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return int(value) if type == "int" else value


class LitData(Shards):
    """Directories with an index.json."""

    def __init__(self, paths: Iterable[str], only: Collection[str] | None = None) -> None:
        super().__init__(only)
        self.tops = directories_of(paths)
        for path, above in self.tops:
            self.seen.add(os.path.join(path, "index.json"))
            index = index_of(path, "chunks")
            try:
                leaves = self._add(path, above, index["config"], index["chunks"])
            except SourceError:
                raise
            except DAMAGED as error:
                raise SourceError(f"'{path}/index.json' is damaged: {error!r}") from None
            self.take_leaves(path, leaves)

    def _add(self, path: str, above: str, config: Any, chunks: Any) -> Sequence[Leaf]:
        if config.get("encryption"):
            raise SourceError(f"'{path}' is encrypted")
        if config.get("item_loader") == "TokensLoader":
            raise SourceError(f"'{path}' is tokens without samples (TokensLoader)")
        formats = config["data_format"]
        found = json.loads(config["data_spec"])
        paths = _paths(found[1] if isinstance(found, list) else found)
        pairs = zip(paths, formats, strict=True)
        leaves = checked([_leaf(".".join(p), f)._replace(path=p) for p, f in pairs])
        for about in chunks:
            name = os.path.basename(about["filename"])
            rows = count_of(about["chunk_size"])
            about = {**config, **about}
            self.take_shard(Shard(os.path.join(path, name), above + name, rows, about, leaves))
        return leaves

    def open(self, shard: Shard) -> Any:
        data = mapped(shard.path)
        packed = shard.about.get("compression")
        if packed and shard.about.get("compression_level") in (None, "chunk"):
            return unzip(bytes(data), "zstd")
        return data

    def decoded(self, shard: Shard, wanted: Collection[str]) -> Iterator[dict[str, Any]]:
        table = _table(self.open(shard))
        if table is None:
            yield from super().decoded(shard, wanted)
            return
        pyarrow = package("pyarrow")
        reader = package("pyarrow.ipc").open_file(pyarrow.py_buffer(table))
        leaves = [leaf for leaf in shard.leaves if leaf.name in wanted]
        for index in range(reader.num_record_batches):
            batch = reader.get_batch(index)
            batch.validate(full=True)
            step = batch_rows(batch.nbytes, batch.num_rows)
            for first in range(0, batch.num_rows, step):
                for row in batch.slice(first, step).to_pylist():
                    yield {
                        leaf.name: _value(leaf.field.type if leaf.field else "", _at(row, leaf.path))
                        for leaf in leaves
                    }

    def samples(self, shard: Shard, data: Any) -> Iterator[Buffer]:
        if bytes(data[:8]) == _FRAMED:
            yield from self._framed(shard, data)
            return
        (count,) = struct.unpack("<I", take(data, 4, "the chunk"))
        if count != shard.rows:
            raise ValueError(f"it has {count:,} samples, and not {shard.rows:,}")
        packed = shard.about.get("compression") and shard.about.get("compression_level") == "sample"
        ends = offsets(data, 4, count, len(data))
        view = memoryview(data)
        for begin, end in zip(ends, ends[1:], strict=False):
            yield unzip(bytes(view[begin:end]), "zstd") if packed else view[begin:end]

    def _framed(self, shard: Shard, data: Any) -> Iterator[Buffer]:
        """Frames of zstd, of some samples each."""
        _, version, _, count, _, frames = struct.unpack("<8sHHIII", take(data, 24, "the chunk"))
        if version != 1 or count != shard.rows:
            raise ValueError("its header is damaged")
        ends = offsets(data, 24, count, 1 << 32)
        at, next_ = 24 + 4 * (count + 1), 0
        for frame in range(frames):
            table = take(data, at + 24 * (frame + 1), "the table of frames")
            first, items, offset, size, whole = struct.unpack_from("<IIQII", table, at + 24 * frame)
            if first != next_ or first + items > count:
                raise ValueError("the table of frames is damaged")
            next_ = first + items
            view = memoryview(unzip(bytes(take(data, offset + size, "the chunk")[offset:]), "zstd", whole))
            for i in range(first, next_):
                yield take(view, ends[i + 1] - ends[first], "a frame")[ends[i] - ends[first] :]

    def values(self, shard: Shard, data: Buffer) -> Sequence[memoryview]:
        view, count = memoryview(data), len(shard.leaves)
        sizes = struct.unpack_from(f"<{count}I", view)
        at = 4 * count
        return cut(view[at:], sizes)

