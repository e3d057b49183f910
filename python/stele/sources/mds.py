# SPDX-License-Identifier: Apache-2.0
"""MDS of MosaicML Streaming: its shards; pictures stay as they are stored."""

from __future__ import annotations

import bz2
import json
import os
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy

from ..dataset import Field
from .shards import DAMAGED, Buffer, Leaf, Shard, Shards, array, check_hashes, checked, count_of
from .shards import cut, index_of, mapped, number, offsets, take, text, unzip
from .source import SourceError, directories_of

_NUMBERS = {
    "int": "q", "int8": "b", "int16": "h", "int32": "i", "int64": "q",
    "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
    "float16": "e", "float32": "f", "float64": "d",
}  # fmt: skip
_DTYPES = {
    8: "uint8", 9: "int8", 16: "uint16", 17: "int16", 18: "float16", 32: "uint32", 33: "int32",
    34: "float32", 64: "uint64", 65: "int64", 66: "float64",
}  # fmt: skip
_BYTES = {"bytes", "jpeg", "png", "pil", "jpeg_array", "jpegarray", "list[jpeg]", "list[png]", "list[pil]"}  # fmt: skip


def _ndarray(spec: str) -> tuple[str, tuple[int, ...] | None]:
    dtype, _, dims = spec.partition(":")
    shape = tuple(map(int, dims.split(","))) if dims else None
    if dtype and dtype not in _DTYPES.values() or shape and min(shape) < 0:
        raise ValueError(f"there are no arrays '{spec}'")
    return dtype, shape


def _decode_array(dtype: str, shape: tuple[int, ...] | None, data: bytes) -> Any:
    """[dtype: 1] [ndim and dtype of the shape: 1, shape] values: what is not in the index."""
    at = 0
    if not dtype:
        dtype, at = _DTYPES[data[0]], 1
    if shape is None:
        size, ndim = 1 << (data[at] & 3), data[at] >> 2
        at += 1
        shape = tuple(numpy.frombuffer(data[at : at + size * ndim], f"<u{size}").tolist())
        at += size * ndim
    return array(data[at:], dtype, shape)


def _json(data: bytes) -> str:
    found = text(data)
    json.loads(found)
    return found


def _unzip(data: Any, compression: str, size: int) -> bytes:
    codec = compression.partition(":")[0]
    if codec == "bz2":
        return bz2.decompress(data)
    return unzip(bytes(data), {"br": "brotli", "gz": "gzip"}.get(codec, codec), size)


def _leaf(name: str, encoding: str, size: int) -> Leaf:
    def field(type: str, dtype: str = "", shape: tuple[int | None, ...] = ()) -> Field:
        return Field(name, type, (), dtype, shape)

    head, _, spec = encoding.partition(":")
    if encoding == "uint64":
        return Leaf(name, field("tensor", "uint64"), lambda d: array(d, "<u8", ()), size)
    if encoding in _NUMBERS:
        kind = "float" if encoding.startswith("float") else "int"
        return Leaf(name, field(kind), number("<" + _NUMBERS[encoding]), size)
    if encoding in _BYTES:
        return Leaf(name, field("bytes"), bytes, size)
    if head == "ndarray":
        dtype, shape = _ndarray(spec)
        known = field("tensor", dtype, shape) if dtype and shape else field("tensor")
        return Leaf(name, known, lambda d: _decode_array(dtype, shape, d), size)
    texts = {
        "str": ("str", text), "str_decimal": ("str", text), "json": ("str", _json),
        "str_int": ("int", lambda d: int(text(d))), "str_float": ("float", lambda d: float(text(d))),
    }  # fmt: skip
    if encoding in texts:
        return Leaf(name, field(texts[encoding][0]), texts[encoding][1], size)
    return Leaf(name, None, bytes, size, f"is stored as '{encoding}', which is not read")


class Mds(Shards):
    """Directories with an index.json."""

    def __init__(self, paths: Iterable[str], only: Collection[str] | None = None) -> None:
        super().__init__(only)
        self.tops = directories_of(paths)
        for path, above in self.tops:
            self.seen.add(os.path.join(path, "index.json"))
            for about in index_of(path, "shards")["shards"]:
                try:
                    leaves = self._add(path, above, about)
                except SourceError:
                    raise
                except DAMAGED as error:
                    raise SourceError(f"'{path}/index.json' is damaged: {error!r}") from None
                self.take_leaves(path, leaves)
        if not self.first:
            raise SourceError(f"'{path}/index.json' lists no shards")

    def _add(self, path: str, above: str, about: Any) -> Sequence[Leaf]:
        if about["format"] != "mds" or about["version"] != 2:
            raise SourceError(
                f"'{path}' has shards of format {about['format']} {about['version']}, not MDS 2"
            )
        base = about["raw_data"]["basename"]
        rows = count_of(about["samples"])
        names, encodings = about["column_names"], about["column_encodings"]
        columns = zip(names, encodings, about["column_sizes"], strict=True)
        leaves = checked([_leaf(name, encoding, size or 0) for name, encoding, size in columns])
        self.take_shard(Shard(os.path.join(path, base), above + base, rows, about, leaves))
        return leaves

    def files_of(self, shard: Shard) -> list[str]:
        packed = shard.about.get("zip_data")
        top = os.path.dirname(shard.path)
        return [
            shard.path,
            *([os.path.join(top, os.path.basename(packed["basename"]))] if packed else []),
        ]

    def open(self, shard: Shard) -> Any:
        raw, packed = shard.about["raw_data"], shard.about.get("zip_data")
        if os.path.exists(shard.path) or not packed:
            data = mapped(shard.path)
        else:
            data = mapped(self.files_of(shard)[1])
            check_hashes(data, packed.get("hashes") or {})
            data = _unzip(data, str(shard.about["compression"]), raw["bytes"])
        if len(data) != raw["bytes"]:
            raise ValueError(f"it has {len(data):,} bytes, and not {raw['bytes']:,}")
        check_hashes(data, raw.get("hashes") or {})
        return data

    def samples(self, shard: Shard, data: Any) -> Iterator[Buffer]:
        (count,) = struct.unpack("<I", take(data, 4, "the shard"))
        if count != shard.rows:
            raise ValueError(f"it has {count:,} samples, and not {shard.rows:,}")
        ends = offsets(data, 4, count, len(data))
        view = memoryview(data)
        for begin, end in zip(ends, ends[1:], strict=False):
            yield view[begin:end]

    def values(self, shard: Shard, data: Buffer) -> Sequence[memoryview]:
        view, at = memoryview(data), 0
        sizes = []
        for leaf in shard.leaves:
            sizes.append(leaf.size or struct.unpack_from("<I", view, at)[0])
            at += 0 if leaf.size else 4
        return cut(view[at:], sizes)
