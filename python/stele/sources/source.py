# SPDX-License-Identifier: Apache-2.0
"""What all formats of sources share: rows, what is lost of them, and errors that say what to do."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..dataset import Field

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


class Reader:
    """Rows of files. What cannot be read comes as Lost, in the place of its rows."""

    kinds: Mapping[str, Field]
    """All columns, with that of the keys; what a field of no type can have is not there."""
    total: int = 0
    """Rows, damaged ones with them; 0: not known."""

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
    for path in paths:
        if not os.path.isdir(path):
            found.append((path, os.path.basename(path)))
            continue
        above = os.path.basename(os.path.abspath(path)) + "/" if several else ""
        before = len(found)
        for top, directories, names in os.walk(path):
            directories[:] = sorted(d for d in directories if d[0] not in "._")
            for name in sorted(names):
                if name[0] not in "._" and name.endswith(endings):
                    file = os.path.join(top, name)
                    found.append((file, above + os.path.relpath(file, path)))
        if len(found) == before:
            raise SourceError(f"no file in '{path}' ends in {' or '.join(endings)}")
    return found


def directories_of(paths: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of a directory, and what keys of its files begin with."""
    paths = [os.path.dirname(p) or "." if os.path.isfile(p) else p for p in paths]
    several = len(paths) > 1
    return [(p, os.path.basename(os.path.abspath(p)) + "/" if several else "") for p in paths]


def agree(kinds: Mapping[str, Field], more: Mapping[str, Field], first: str, other: str) -> None:
    """All files have the same columns, or it is an error."""
    for name in [*kinds, *more]:
        if kinds.get(name) == more.get(name):
            continue
        one, two = (describe(k.get(name)) for k in (kinds, more))
        raise SourceError(
            f"column '{name}' is {one} in '{first}', and {two} in '{other}'",
            "--columns leaves out columns that differ",
        )


def describe(field: Field | None) -> str:
    """A field for messages."""
    if field is None:
        return "missing"
    if field.type == "tensor":
        shape = "x".join("?" if dim is None else str(dim) for dim in field.shape)
        return f"{field.dtype}[{shape}]"
    return f"one of {len(field.classes)} classes" if field.classes else field.type
