# SPDX-License-Identifier: Apache-2.0
"""Shards that begin with a table of offsets, which MDS and LitData have: read without their packages.

Nothing in them is run: what is pickled is no column.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy

from ..dataset import Field
from .source import SOME, Item, Lost, Reader, Row, SourceError, package, why

Decode = Callable[[bytes], Any]
Buffer = Any  # bytes, or what shows them


# What JSON that is not what it has to be comes to.
DAMAGED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class Leaf(NamedTuple):
    """A column, as it is stored."""

    name: str
    field: Field | None
    """None: it can be no field, because of what `why` says."""
    decode: Decode
    size: int = 0
    """Bytes; 0: stored with each value."""
    why: str = ""
    path: Sequence[str] = ()
    """What leads to it in a tree."""


def take(data: Buffer, count: int, what: str) -> memoryview:
    """The first bytes, which have to be there."""
    view = memoryview(data)
    if len(view) < count:
        raise ValueError(f"{what} ends at byte {len(view):,} of {count:,}")
    return view[:count]


def cut(view: memoryview, sizes: Sequence[int]) -> list[memoryview]:
    """A sample's columns, which lie behind each other and are all of it."""
    if sum(sizes) != len(view):
        raise ValueError("sizes of its columns are damaged")
    found, at = [], 0
    for size in sizes:
        found.append(view[at : at + size])
        at += size
    return found


def offsets(data: Buffer, at: int, count: int, end: int) -> list[int]:
    """count + 1 of them, each of 4 bytes, which ascend, up to end."""
    table = take(data, at + 4 * (count + 1), "the table of offsets")
    found = struct.unpack_from(f"<{count + 1}I", table, at)
    if any(a > b for a, b in zip(found, found[1:], strict=False)) or found[-1] > end:
        raise ValueError("the table of offsets is damaged")
    return list(found)


def index_of(path: str, entry: str) -> dict[str, Any]:
    """index.json, with its list of shards."""
    path = os.path.join(path, "index.json")
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        if not isinstance(found, dict) or not isinstance(found.get(entry), list):
            raise ValueError(f"it has no list '{entry}'")
    except (OSError, ValueError, RecursionError) as error:
        raise SourceError(f"cannot read '{path}': {why(error)}") from None
    return found


def count_of(value: Any) -> int:
    """A number of samples."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no number of samples")
    return value


def checked(leaves: Sequence[Leaf]) -> Sequence[Leaf]:
    """Columns that an index has, as it may have them."""
    for leaf in leaves:
        leaf.name.encode()  # what cannot be is a ValueError
        if type(leaf.size) is not int or leaf.size < 0:
            raise ValueError(f"{leaf.size!r} is no size of column '{leaf.name}'")
    if len({leaf.name for leaf in leaves}) < len(leaves):
        raise ValueError("a column is there twice")
    return leaves


def number(format: str) -> Decode:
    """A number of this format of struct."""
    return lambda data: struct.unpack(format, data)[0]


def text(data: bytes) -> str:
    return data.decode()


def unzip(data: Any, codec: str, size: int = 0) -> bytes:
    """What was compressed; size: how much that was."""
    pyarrow = package("pyarrow")
    if size:
        return bytes(pyarrow.decompress(data, size, codec, asbytes=True))
    with pyarrow.CompressedInputStream(pyarrow.BufferReader(data), codec) as stream:
        return bytes(stream.read())


def check_hashes(data: Buffer, hashes: Mapping[str, str]) -> None:
    """Compare with one of them that this machine can compute."""
    for name, wanted in hashes.items():
        if name in hashlib.algorithms_available:
            seen = hashlib.new(name, data, usedforsecurity=False).hexdigest()
        elif name.startswith("xx"):
            try:
                seen = getattr(package("xxhash"), name)(data).hexdigest()
            except (SourceError, AttributeError):
                continue
        else:
            continue
        if seen != wanted:
            raise ValueError(f"its {name} is {seen}, and not {wanted}")
        return


def mapped(path: str) -> Any:
    """The bytes of a file."""
    with open(path, "rb") as file:
        if not os.fstat(file.fileno()).st_size:
            return b""
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class Shard(NamedTuple):
    path: str
    name: str
    rows: int
    about: Mapping[str, Any]
    leaves: Sequence[Leaf]
    """Its own: the same field may be stored in another way elsewhere."""


class Shards(Reader):
    """Rows of shards, one after the other."""

    leaves: Sequence[Leaf] = ()
    """Of the first; all have the same fields."""

    def __init__(self, only: Collection[str] | None = None) -> None:
        super().__init__(only)
        self.shards: list[Shard] = []

    def take_leaves(self, path: str, leaves: Sequence[Leaf]) -> None:
        """Columns of one more directory."""
        kinds = {e.name: e.field or Field(e.name, "", (), "", ()) for e in leaves}
        if not self.first:
            self.first, self.kinds, self.leaves = path, kinds, leaves
        elif kinds != self.kinds:
            self.agree(kinds, path)

    def files_of(self, shard: Shard) -> list[str]:
        """What its bytes may be read from."""
        return [shard.path]

    def take_shard(self, shard: Shard) -> None:
        self.shards.append(shard)
        self.total += shard.rows
        for file in self.files_of(shard):
            self.seen.add(file)

    def open(self, shard: Shard) -> Any:
        """Its bytes, as they were before compression."""
        raise NotImplementedError

    def samples(self, shard: Shard, data: Any) -> Iterator[Buffer]:
        """Each sample."""
        raise NotImplementedError

    def values(self, shard: Shard, data: Buffer) -> Sequence[memoryview]:
        """Those of one sample, in the order of the shard's leaves."""
        raise NotImplementedError

    def decoded(self, shard: Shard, wanted: Collection[str]) -> Iterator[dict[str, Any]]:
        """Each sample, of these leaves."""
        leaves = [(i, e.name, e.decode) for i, e in enumerate(shard.leaves) if e.name in wanted]
        for sample in self.samples(shard, self.open(shard)):
            stored = self.values(shard, sample)
            yield {name: decode(bytes(stored[i])) for i, name, decode in leaves}

    def fields(self, names: Sequence[str], base: Mapping[str, Field]) -> dict[str, Field]:
        del base
        by_name = {leaf.name: leaf for leaf in self.leaves}
        found = {}
        for name in names:
            leaf = by_name[name]
            if leaf.field is None:
                raise SourceError(f"column '{name}' {leaf.why}", SOME)
            found[name] = leaf.field
        unknown = {n: f for n, f in found.items() if f.type == "tensor" and not f.dtype}
        return found | (self._look(unknown) if unknown else {})

    def _look(self, unknown: Mapping[str, Field]) -> dict[str, Field]:
        """Tensors whose dtype and shape the first sample tells; a shape that differs is one."""
        shapes: dict[str, tuple[str, tuple[int, ...], bool]] = {}
        lost: Lost | None = None
        for item in self.rows(unknown, None):
            if isinstance(item, Lost):
                lost = lost or item
                continue
            for name, value in item.values.items():
                dtype, shape, same = shapes.get(name, (value.dtype.name, value.shape, True))
                if value.dtype.name != dtype or value.shape[1:] != shape[1:]:
                    raise SourceError(
                        f"column '{name}' has arrays of {dtype}{list(shape)} and of "
                        f"{value.dtype.name}{list(value.shape)}", SOME,
                    )  # fmt: skip
                shapes[name] = dtype, shape, same and value.shape == shape
        if not shapes and lost:
            self.seen.check()
            raise SourceError(f"cannot read {lost.place}: {lost.reason}")
        if not shapes:
            raise SourceError("there are no samples in the source")
        found: dict[str, Field] = {}
        for name, (dtype, shape, same) in shapes.items():
            dims: tuple[int | None, ...] = shape
            if not same or 0 in shape:
                dims = (None, *shape[1:])
            found[name] = Field(name, "tensor", (), dtype, dims)
        return found

    def rows(self, fields: Mapping[str, Field], key: str | None) -> Iterator[Item]:
        wanted = {*fields, *([key] if key is not None else ())}
        for shard in self.shards:
            done = 0
            try:
                for row in self.decoded(shard, wanted):
                    yield Row(shard.name, done, row)
                    done += 1
                if done != shard.rows:
                    raise ValueError(f"it has {done:,} samples, and not {shard.rows:,}")
            except SourceError:
                raise
            except Exception as error:
                at = f"'{shard.path}', sample {done}" if done else f"'{shard.path}'"
                yield Lost(at, shard.rows - done, why(error))
            self.seen.check(*self.files_of(shard))


def array(data: Buffer, dtype: Any, shape: Sequence[int]) -> Any:
    """An array, all of the bytes."""
    return numpy.frombuffer(data, dtype).reshape(shape)
