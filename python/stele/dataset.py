# SPDX-License-Identifier: Apache-2.0
"""Dataset: one snapshot as a sequence of samples."""

from __future__ import annotations

import errno
import html
import itertools
import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union, cast

from . import _stele
from .errors import Error, NotFound, StaleError, make
from .options import text
from .progress import once

if TYPE_CHECKING:
    import numpy
    import numpy.typing

Verify = Literal["none", "crc", "digest"]
Indices = Union[
    slice,
    range,
    list[int],
    tuple[int, ...],
    memoryview,
    "numpy.typing.NDArray[numpy.integer[Any] | numpy.bool]",
]
Target = str | bytes | os.PathLike[str] | os.PathLike[bytes]

_VERIFY: dict[str | None, int] = {None: 0, "none": 1, "crc": 2, "digest": 3}
TYPES = {1: "bytes", 2: "str", 3: "tensor", 4: "int", 5: "float"}
DTYPES = (
    "", "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64",
    "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
_CHUNK = 64  # samples read ahead by iteration
_LOOKED_AT = 100_000  # keys of a snapshot, for those of a subset that are offered


def verify_number(verify: str | None) -> int:
    """The library's number of a level of checks; ValueError."""
    try:
        return _VERIFY[verify]
    except KeyError:
        raise ValueError(f"verify is 'none', 'crc' or 'digest', not {verify!r}") from None


class Field(NamedTuple):
    """One field of all samples."""

    name: str
    type: str
    """'bytes', 'str', 'tensor', 'int' or 'float'."""
    classes: tuple[str, ...]
    """Names of the values 0, 1, ... of an int; empty: none. None as an item: they are damaged."""
    dtype: str
    """Of a tensor's elements ('float32', ...), else ''."""
    shape: tuple[int | None, ...]
    """Of a tensor; None: differs from sample to sample."""


class _Unnamed(Field):
    """A field whose class names are damaged: whoever asks for them is told. Their item is None."""

    __slots__ = ()

    def __repr__(self) -> str:
        items = {name: repr(value) for name, value in self._asdict().items()}
        items["classes"] = "<damaged>"
        return f"Field({', '.join(f'{name}={text}' for name, text in items.items())})"

    @property
    def classes(self) -> tuple[str, ...]:  # pyright: ignore
        raise make(errno.EBADMSG, f"class names of field {self.name!r} are damaged")


def field_of(items: tuple[Any, ...]) -> Field:
    """A field of these items, in their order; classes of None are damaged."""
    return (_Unnamed if items[2] is None else Field)._make(items)


class Info(NamedTuple):
    """What a snapshot is. Sizes in bytes, time in seconds since 1970."""

    target: str
    snapshot: str
    label: str
    digest: str
    uuid: str
    backend: str
    time: int
    generation: int
    image_size: int
    used_size: int
    sample_count: int
    deleted_count: int
    payload_size: int
    slots_size: int
    padding_size: int
    slot_size_max: int
    table_size: int
    run_count: int
    segment_count: int
    granule: int
    logical_block: int


def listed(indices: Iterable[int]) -> list[int]:
    """For what takes no masks: TypeError for a bool, which Python has as 0 or 1."""
    found = list(indices)
    for index in found:
        if isinstance(index, bool) or "bool" in str(getattr(index, "dtype", "")):
            raise TypeError("samples are selected by index, not by bool")
    return found


def split(target: str) -> tuple[str, str]:
    """A target without its snapshot, and the snapshot; '' if it names none."""
    rest = ""
    if target.startswith("rbd:"):
        target, mark, rest = target.partition("?")
        rest = mark + rest
    head, slash, name = target.rpartition("/")
    snapshot = ""
    if "@" in name:
        name, _, snapshot = name.rpartition("@")
    return f"{head}{slash}{name}{rest}", snapshot


def choose(target: str, snapshot: str) -> str:
    """The target with another snapshot: PATH@SNAPSHOT, before RBD's settings."""
    path, mark, rest = target, "", ""
    if target.startswith("rbd:"):
        path, mark, rest = target.partition("?")
    return f"{split(path)[0]}@{snapshot}{mark}{rest}"


def pin(target: str, digest: str) -> str:
    """The target with its snapshot pinned."""
    return choose(target, f"sha256:{digest}")


def _whole_path(target: str) -> str | None:
    """Of a relative path, from the root: what pickled it may be another directory's by then."""
    if os.path.isabs(target) or not os.path.exists(split(target)[0]):
        return None
    return os.path.abspath(target)


@once()
def _reopen(
    cls: type[Dataset],
    target: str,
    digest: str,
    options: dict[str, Any],
    part: tuple[int, int] | bytes | None,
    whole: str | None,
) -> Dataset:
    """What a pickled Dataset was, wherever it is unpickled. StaleError: it is gone.

    Relative paths are first taken as they are, as other machines may have to.
    """
    for place in filter(None, (target, whole)):
        with suppress(NotFound, Error):
            dataset = cls(pin(place, digest), **options)
            break
    else:
        # A mapping has a name only; and what is wrong is said best of the target itself.
        dataset = cls(target, **options)
        if dataset.info.digest != digest:
            dataset.close()
            raise StaleError(116, f"'{target}' is another snapshot than when it was pickled")
    if part is None:
        return dataset
    if isinstance(part, tuple):
        chosen = dataset._select(range(part[0], part[0] + part[1]))
    else:
        chosen = dataset._select(memoryview(part).cast("Q"))
    dataset.close()
    return chosen


class Dataset(_stele.Dataset):
    """One snapshot, or a part of one, as an immutable sequence of samples.

    Made by stele.open(), which says what the arguments are. close() or a with statement
    closes it, and leaves samples that are in hand valid. Any number of threads may use it;
    it works in children after fork() and, pickled, after spawn. Reads of all threads of a
    process go out together, through one reader, with the GIL released.

    ``ds[i]``, ``ds[-1]``: one Sample; ``ds["key"]``, ``ds[b"key"]``: by key, of a subset
    only one that is in it;
    ``ds[[3, 1]]``, ``ds[array]``, ``ds[10:20]``: a list, read in one submission; an
    array or list of bool, as long as the dataset, selects where it is true, as
    ``ds[ds.column("label") == 3]``.

    Raises IndexError for an index out of range, stele.NotFound (a KeyError) for a key,
    stele.ChecksumError for damage, and other stele.Error.
    """

    _options: dict[str, Any]
    _whole: str | None

    def __new__(
        cls,
        target: Target,
        *,
        verify: Verify | None = None,
        backend: str | None = None,
        mmap: bool = False,
    ) -> Dataset:
        name = os.fsdecode(target)
        made = super().__new__(cls, name, verify_number(verify), backend, mmap)
        dataset = cast(Dataset, made)
        dataset._options = {"verify": verify, "backend": backend, "mmap": mmap}
        dataset._whole = _whole_path(name)
        return dataset

    def _select(self, which: Any) -> Dataset:
        part: Dataset = super()._select(which)
        part._options, part._whole = self._options, self._whole
        return part

    def _key(self, id: int) -> str | None:
        try:
            return super()._key(id)
        except (Error, ValueError):
            return None

    # ---- samples

    def __iter__(self) -> Iterator[_stele.Sample]:
        for first in range(0, len(self), _CHUNK):
            yield from self[first : first + _CHUNK]

    def __reversed__(self) -> Iterator[_stele.Sample]:
        for end in range(len(self), 0, -_CHUNK):
            yield from reversed(self[max(end - _CHUNK, 0) : end])

    def __contains__(self, key: object) -> bool:
        """Is there a sample with this key?"""
        if not isinstance(key, (str, bytes)):
            return False
        try:
            self.find(key)
        except NotFound:
            return False
        return True

    def keys(self, prefix: str | bytes = "") -> Iterator[str]:
        """Keys that begin with prefix, in byte order, lazily; of a subset, those that are in it.

        They are found among all of the snapshot that begin with prefix.
        """
        return (key for key, _ in self.items(prefix))

    def items(self, prefix: str | bytes = "") -> Iterator[tuple[str, int]]:
        """Pairs of key and id in the snapshot, as keys()."""
        pairs = self._keys(prefix)
        return iter(pairs) if self._is_whole() else filter(self._has_item, pairs)

    def _has_item(self, pair: tuple[str, int]) -> bool:
        return self._has(pair[1])

    def _ipython_key_completions_(self) -> list[str]:
        """What IPython offers in ds["...: the first keys."""
        some = itertools.islice(self._keys(""), _LOOKED_AT)
        return [key for key, _ in itertools.islice(filter(self._has_item, some), 1000)]

    def subset(
        self, which: Indices | None = None, *, prefix: str | bytes | None = None
    ) -> Dataset:
        """Some of the samples, as a Dataset that shares everything with this one.

        Other samples are out of its reach, by key too. The first look-up by key, where this
        is no range and the ids are not ascending, sorts a copy of them: 8 bytes for each.

        Args:
            which: indices of this dataset: a range, slice, list, or array of integers;
                or an array or list of bool, as long as the dataset.
            prefix: instead, all samples whose key begins with it, in byte order of keys.
        """
        if (which is None) == (prefix is None):
            raise TypeError("subset() takes either indices or a prefix")
        if prefix is None:
            return self._select(which)
        ids = [id for _, id in self._keys(prefix)]
        part = self._ids()
        if self._is_whole():
            return self._select(ids)
        if isinstance(part, tuple):
            first, count = part
            return self._select([id - first for id in ids if 0 <= id - first < count])
        place = {id: index for index, id in enumerate(memoryview(part).cast("Q"))}
        return self._select([place[id] for id in ids if id in place])

    # ---- what it is

    @property
    def info(self) -> Info:
        """Sizes, digest and more, of the whole snapshot."""
        return Info(**self._info())

    @property
    def fields(self) -> dict[str, Field]:
        """Fields by name, in order; ``classes`` of one raises ChecksumError if damaged."""
        return {
            name: field_of(
                (
                    name,
                    TYPES.get(type, str(type)),
                    classes,
                    DTYPES[dtype] if dtype < len(DTYPES) else str(dtype),
                    tuple(dim or None for dim in dims),
                )
            )
            for name, type, classes, dtype, dims in self._fields()
        }

    @property
    def classes(self) -> tuple[str, ...]:
        """Class names of 'label', or, without such a field, of the first one that has names.

        Raises:
            ChecksumError: the names of a field are damaged; samples and values are not.
        """
        label = self.fields.get("label")
        named = (field.classes for field in self.fields.values() if field.classes)
        return label.classes if label else next(named, ())

    def column(self, name: str) -> numpy.typing.NDArray[Any]:
        """The values of an int or float field of all samples, without reading samples.

        Returns:
            An array of int64 or float64, shape (len(self),), in the order of this dataset.
        """
        import numpy

        text("name", name)
        if name in self.fields and self.fields[name].type not in ("int", "float"):
            raise TypeError(f"field {name!r} is no int or float: it has no column")
        kind = "i8" if name not in self.fields or self.fields[name].type == "int" else "f8"
        whole: numpy.typing.NDArray[Any] = numpy.frombuffer(self._column(name), dtype=kind)
        part = self._ids()
        if isinstance(part, tuple):
            return whole[part[0] : part[0] + part[1]]
        chosen: numpy.typing.NDArray[Any] = whole[numpy.frombuffer(part, dtype="u8")]
        return chosen

    def _matching(self, where: str) -> memoryview | list[int]:
        """Indices of the samples for which an expression is true, ascending."""
        ids = memoryview(self._where(where)).cast("Q")
        part = self._ids()
        if self._is_whole():
            return ids
        if isinstance(part, tuple):
            first, count = part
            chosen = ids[bisect_left(ids, first) : bisect_left(ids, first + count)]
            return [id - first for id in chosen]
        wanted = set(ids)
        return [i for i, id in enumerate(memoryview(part).cast("Q")) if id in wanted]

    def select(self, where: str) -> numpy.typing.NDArray[numpy.int64]:
        """Indices of the samples whose fields match: ``ds.select("label = 7 AND width > 256")``.

        Args:
            where: an expression, as behind WHERE in SQL (that of SQLite), of the columns id, key,
                size, the int, float and str fields, and FIELD_name, the name of a class; see
                stele-query(1). Only a str field has samples read. A label is a number, and its
                class ``label_name``; ``split`` is a name itself. Without an error,
                ``label = 'cat'`` matches nothing, and neither does ``split = 1``: say
                ``label_name = 'cat'``, and ``split = 'val'``.

        Returns:
            An array of int64, ascending, for ``ds[...]`` or subset().

        Raises:
            ValueError: the expression is wrong, or names a column that is not there.
        """
        import numpy

        return numpy.array(self._matching(where), dtype=numpy.int64)

    def stats(self) -> dict[str, int | str]:
        """Figures of this process's reader: samples, device_reads, enters, p99_ns, ...

        direct counts single reads that found the reader idle and went around it: no other
        figure does. held_bytes is the memory of samples that are alive, held_blocks the number of
        pieces that it is in.
        """
        return self._stats()

    def __repr__(self) -> str:
        try:
            info = self.info
        except ValueError:
            return "<stele.Dataset, closed>"
        name = pin(info.target, info.digest)
        if self._is_whole():
            return f"stele.Dataset({name!r})"
        part = self._ids()
        if isinstance(part, tuple):
            return f"stele.Dataset({name!r})[{part[0]}:{part[0] + part[1]}]"
        import hashlib

        return f"stele.Dataset({name!r})[sha256:{hashlib.sha256(part).hexdigest()[:16]}]"

    def _repr_html_(self) -> str:
        try:
            info = self.info
        except ValueError:
            return html.escape(repr(self))
        rows = [
            ("target", info.target),
            ("snapshot", info.snapshot),
            ("digest", f"sha256:{info.digest}"),
            ("samples", f"{len(self):,} of {info.sample_count:,}"),
            ("payload", f"{info.payload_size:,} bytes"),
        ]
        for field in self.fields.values():
            shape = "".join(f"[{'?' if dim is None else dim}]" for dim in field.shape)
            count = 0 if isinstance(field, _Unnamed) else len(field.classes)
            classes = f", {count:,} classes" if count else ""
            rows.append((field.name, f"{field.dtype or field.type}{shape}{classes}"))
        body = "".join(
            f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, b in rows
        )
        return f"<table>{body}</table>"

    def __reduce__(self) -> tuple[Any, ...]:
        info = self.info
        part = self._ids()
        kept = None if self._is_whole() else part if isinstance(part, tuple) else bytes(part)
        return _reopen, (type(self), info.target, info.digest, self._options, kept, self._whole)

    def __enter__(self) -> Dataset:
        self._is_whole()  # ValueError: it is closed
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def open(
    target: Target,
    *,
    verify: Verify | None = None,
    backend: str | None = None,
    mmap: bool = False,
) -> Dataset:
    """Open one snapshot for reading.

    If an older state of the image is read, because the newest is damaged, that is logged as
    a warning, also before a stele.NotFound; see stele.Error.

    Args:
        target: path of a block device or file, ``rbd:POOL/IMAGE``, or a name that `stele
            map` published; with ``@NAME`` or ``@sha256:HEX`` to choose or pin a snapshot.
        verify: what to check of each sample: 'none', 'crc' or 'digest'; None: digest if
            the snapshot is pinned, else crc.
        backend: how to read; None: the best there is.
        mmap: samples are read-only views of the page cache: for data that is in memory
            already. Not for RBD. As with any mapping, a file that is truncated meanwhile ends
            the process (SIGBUS), and samples that are held show other bytes once gc has given
            their space to others.

    Raises:
        stele.NotFound: no such target or snapshot.
        stele.FormatError: no finished image there.
        stele.Error: and its other kinds.
    """
    return Dataset(target, verify=verify, backend=backend, mmap=mmap)
