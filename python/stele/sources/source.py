# SPDX-License-Identifier: Apache-2.0
"""What all formats of sources share: rows, what is lost of them, and errors that say what to do."""

from __future__ import annotations

import importlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from ..dataset import Field
from ..progress import logger
from .endings import is_data

OTHER_FORMAT = "if it has another format than its name or its first bytes say, format names that"
SOME = "columns=[...] takes only the columns that are named"
ALIKE = (
    "number the classes of all files alike, as align_labels_with_mapping() of Hugging Face does; "
    f"or {SOME}"
)
TAKES = "name it in columns=[...], with all others that become fields"
QUIET = "run it again once nobody writes there"
BATCH_ROWS = 256
BATCH_SIZE = 16 << 20  # bytes, as rows are on average


def batch_rows(size: int, rows: int) -> int:
    """How many rows of a part are read at once."""
    return max(1, min(BATCH_ROWS, BATCH_SIZE * rows // max(size, 1)))


class SourceError(ValueError):
    """What cannot become an image, and why. Its notes say what to do next.

    Attributes:
        usage: the call is to blame, and not the source.
    """

    usage = False

    def __init__(self, message: str, hint: str = "", *, usage: bool = False) -> None:
        super().__init__(message)
        self.usage = usage
        if hint:
            self.add_note(hint)


class Lost(NamedTuple):
    """A part of a source that could not be read, and is left out."""

    place: str
    """The file, and which part of it."""
    rows: int
    """How many samples there would have been; -1: nobody knows."""
    reason: str


class Row(NamedTuple):
    """A sample: its place, and the values of its columns."""

    name: str
    """Of the file, as keys begin."""
    number: int
    """In that file."""
    values: dict[str, Any]


Item = Row | Lost


def _state(path: str) -> tuple[int, ...] | None:
    """What no file keeps that is written to, or that another one takes the place of."""
    try:
        st = os.stat(path)
    except OSError:
        return None
    return st.st_dev, st.st_ino, st.st_size, st.st_mtime_ns, st.st_ctime_ns


class Files:
    """What is read of a source, and what it was when that began."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, ...] | None] = {}

    def add(self, path: str) -> str:
        """Before it is opened for the first time."""
        if path not in self._known:
            self._known[path] = _state(path)
        return path

    def add_all(self, directory: str) -> None:
        """All that there is below a directory."""
        for top, _, names in os.walk(directory):
            for name in sorted(names):
                self.add(os.path.join(top, name))

    def check(self, *paths: str) -> None:
        """What was read of two versions is neither: all files, or these, are as they were."""
        for path in paths or self._known:
            if _state(path) != self._known[path]:
                raise SourceError(f"'{path}' changed while it was read", QUIET)

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)


class Reader:
    """Rows of files. What cannot be read comes as Lost, in the place of its rows."""

    seen: Files
    """All that is read, each one added before it is opened."""

    kinds: Mapping[str, Field]
    """All columns, with that of the keys; what a field of no type can have is not there."""
    total: int = 0
    """Rows, damaged ones with them; 0: not known."""
    tops: Sequence[tuple[str, str]] = ()
    """Files or directories of the source, and what keys of each begin with."""
    only: Collection[str] | None
    """Columns that are wanted, with that of the keys; None: all. Others may differ."""
    first: str = ""
    """The file or directory whose columns these are; '': none yet."""

    def __init__(self, only: Collection[str] | None = None) -> None:
        self.seen, self.only = Files(), only

    def agree(self, more: Mapping[str, Field], other: str) -> None:
        """All files have the same columns, or it is an error."""
        for name in [*self.kinds, *more]:
            one, two = self.kinds.get(name), more.get(name)
            if one != two and (self.only is None or name in self.only):
                raise self.differ(name, describe(one), other, describe(two), classes_differ(one, two))

    def differ(self, name: str, one: str, other: str, two: str, more: str = "") -> SourceError:
        """A column is one thing in the first file, and another in another; more: of its classes."""
        return SourceError(
            f"column '{name}' is {one} in '{self.first}', and {two} in '{other}'{more}",
            ALIKE if more else SOME,
        )

    def fields(self, names: Sequence[str], base: Mapping[str, Field]) -> dict[str, Field]:
        """What these columns become; base: fields of the image, whose types count."""
        del base
        return {name: self.kinds[name] for name in names}

    def rows(self, fields: Mapping[str, Field], key: str | None) -> Iterator[Item]:
        """All of them, with the values of these fields, and of the column of keys."""
        raise NotImplementedError

    def close(self) -> None:
        """Give back what is open."""


def package(name: str, install: str = "") -> Any:
    """A module that need not be installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        top = name.partition(".")[0]
        if (error.name or "").partition(".")[0] != top:
            raise SourceError(f"cannot import {name}: {error}") from None
        raise SourceError(f"cannot import {top}", f"pip install {install or top}") from None


def why(error: BaseException) -> str:
    """The reason, on one line."""
    text = (error.strerror if isinstance(error, OSError) else "") or str(error)
    line = " ".join(text.split("\n\nDetail")[0].split())
    return line[:300] or type(error).__name__


def is_panic(error: BaseException) -> bool:
    """What Rust raises is no Exception."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def files_of(paths: Iterable[str], endings: tuple[str, ...]) -> list[tuple[str, str]]:
    """Pairs of a path, and its name in keys: below the directory that was given."""
    paths = list(paths)
    several = sum(map(os.path.isdir, paths)) > 1
    found: list[tuple[str, str]] = []
    others: list[str] = []
    for path in paths:
        if not os.path.isdir(path):
            found.append((path, os.path.basename(path)))
            continue
        above = os.path.basename(os.path.abspath(path)) + "/" if several else ""
        before = len(found)
        for top, directories, names in os.walk(path):
            directories[:] = sorted(d for d in directories if d[0] not in "._")
            for name in sorted(names):
                file = os.path.join(top, name)
                if name[0] in "._" or not os.path.isfile(file):
                    continue
                if name.lower().endswith(endings):
                    found.append((file, above + os.path.relpath(file, path)))
                elif is_data(name):
                    others.append(file)
        if len(found) == before:
            raise SourceError(f"no file in '{path}' ends in {' or '.join(endings)}")
    if others:
        logger.warning(
            "left out, as their names do not end in %s: %d file%s, such as '%s'",
            " or ".join(endings), len(others), "" if len(others) == 1 else "s", others[0],
        )  # fmt: skip
    return found


def directories_of(paths: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of a directory, and what keys of its files begin with."""
    paths = [os.path.dirname(p) or "." if os.path.isfile(p) else p for p in paths]
    several = len(paths) > 1
    return [(p, os.path.basename(os.path.abspath(p)) + "/" if several else "") for p in paths]


def classes_differ(one: Field | None, two: Field | None) -> str:
    """The first class that differs, for the end of a message; '': that is not it."""
    if not one or not two or not one.classes or not two.classes:
        return ""
    for number, names in enumerate(zip_longest(one.classes, two.classes)):
        a, b = (f"'{name}'" if name is not None else "none" for name in names)
        if a != b:
            return f": class {number} is {a}, and {b}"
    return ""


def describe(field: Field | None) -> str:
    """A field for messages."""
    if field is None:
        return "missing"
    if field.type == "tensor":
        shape = "x".join("?" if dim is None else str(dim) for dim in field.shape)
        return f"{field.dtype}[{shape}]"
    return f"one of {len(field.classes)} classes" if field.classes else field.type
