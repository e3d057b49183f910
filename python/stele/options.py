# SPDX-License-Identifier: Apache-2.0
"""Options of those who write, as the extension takes them."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypedDict
from uuid import UUID

from .errors import short

LabelFrom = int | Literal["auto", "parent", "none"]

_ORDERS = {"size": 0, "source": 1}
_LABELS = {"auto": 0, "parent": 256, "none": 257}
_TEXTS = ("backend", "base", "label", "note")
_SHORT = ("boundary", "granule", "jobs", "object_size", "verify")
_FLAGS = {
    "dry_run": 1, "force": 2, "discard": 4, "allow_empty": 4, "follow": 8, "skip_changed": 16,
    "update": 32, "quick": 64, "delete_missing": 128, "always": 256,
}  # fmt: skip


class Layout(TypedDict, total=False):
    """How samples are written. 0: what suits the target."""

    memory_size: int
    """Bytes of memory to use."""
    granule: int
    """Slots are multiples of it: 16, 64, 512 or 4096 bytes."""
    order: Literal["size", "source"]
    """Of samples: by size, which keeps the index small, or, 'source', by key, in byte order."""
    jobs: int
    """Threads."""
    boundary: int
    """No sample crosses a multiple of it; 1: of nothing."""


class Source(Layout, total=False):
    """What build() and append() make of a directory."""

    note: str | None
    """Of the snapshot."""
    label_from: LabelFrom
    """Which directory names a file's class, the field 'label': a level (1: right below the
    source), 'parent', 'none', or 'auto'."""
    follow: bool
    """Take what symlinks lead to."""
    exclude: Sequence[str] | None
    """Patterns of files and directories to leave out: of a name ('*.txt'), or, with a slash, of
    a path below the source ('train/.cache')."""
    skip_changed: bool
    """Leave out files that change, vanish or cannot be read."""
    allow_empty: bool
    """A source without samples is no error."""
    force: bool
    """Do what would lose data."""
    dry_run: bool
    """Plan only."""
    file_size: int
    """Of a file or RBD image, bytes."""
    time: int
    """Of image and snapshot, seconds since 1970; 0: now."""
    backend: str | None
    """How to write; None: the best there is."""


def number(name: str, value: Any, bits: int = 32) -> int:
    """An unsigned integer, also of NumPy, but no bool; TypeError, ValueError."""
    try:
        found = operator.index(value)
    except TypeError:
        found = None
    if found is None or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {value!r}")
    if not 0 <= found < 1 << bits:
        raise ValueError(f"{name} {found} is out of range")
    return found


def positive(name: str, value: Any, bits: int = 32) -> int:
    """As number(), and at least 1."""
    found = number(name, value, bits)
    if not found:
        raise ValueError(f"{name} must be at least 1")
    return found


def flag(name: str, value: Any) -> bool:
    """TypeError: neither True nor False, also NumPy's; "no" would be true."""
    if isinstance(value, (str, bytes)) or value not in (False, True):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def text(name: str, value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str, not {value!r}")
    if "\0" in value:
        raise ValueError(f"{name} {short(value)} has a NUL in it")
    return value.encode("utf-8", "surrogateescape")


def text_or_none(name: str, value: Any) -> bytes | None:
    return None if value is None else text(name, value)


def _uuid(value: Any) -> bytes | None:
    found = value.bytes if isinstance(value, UUID) else value
    if found is None or (isinstance(found, bytes) and len(found) == 16):
        return found
    raise ValueError(f"uuid must be a uuid.UUID or 16 bytes, not {value!r}")


def key_bytes(key: Any) -> bytes:
    if isinstance(key, bytes):
        return key
    if isinstance(key, str):
        return key.encode("utf-8", "surrogateescape")
    raise TypeError(f"a key is str or bytes, not {key!r}")


def choice(name: str, value: object, choices: dict[str, int]) -> int:
    if isinstance(value, str) and value in choices:
        return choices[value]
    raise ValueError(f"{name} is one of {', '.join(map(repr, choices))}, not {value!r}")


def _label_from(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        if isinstance(value, str) and value in _LABELS:
            return _LABELS[value]
        names = ", ".join(map(repr, _LABELS))
        raise ValueError(f"label_from is a level, an int from 1 to 255, or one of {names}, not {value!r}")
    if not 1 <= value <= 255:
        raise ValueError(f"label_from {value}: levels are 1 to 255")
    return value


def function(name: str, value: Any) -> None:
    """TypeError: it cannot be called, and is not None."""
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be callable, not {value!r}")


def several(name: str, value: Any, what: str) -> Iterable[Any]:
    """TypeError: it is one of what there may be several of, or nothing of the kind."""
    if isinstance(value, (str, bytes, os.PathLike)) or not hasattr(value, "__iter__"):
        raise TypeError(f"{name} must be a list of {what}, not {value!r}")
    found: Iterable[Any] = value
    return found


def _patterns(value: Sequence[str] | None) -> tuple[bytes, ...] | None:
    if value is None:
        return None
    patterns = several("exclude", value, "patterns")
    return tuple(text("a pattern", pattern) for pattern in patterns) or None


def _sources(value: Any) -> tuple[bytes, ...] | None:
    return None if value is None else tuple(map(os.fsencode, several("sources", value, "paths")))


def known(options: Any, kind: Any) -> None:
    """TypeError: an option that is not of that kind, Layout or Source."""
    unknown = set(options) - set(kind.__annotations__)
    if unknown:
        raise TypeError(f"there is no option {unknown.pop()!r}")


def encode(**options: Any) -> dict[str, Any]:
    """As the library takes them, by its names."""
    encoded: dict[str, Any] = {}
    for name, value in options.items():
        if name in _FLAGS:
            encoded["flags"] = encoded.get("flags", 0) | (_FLAGS[name] if flag(name, value) else 0)
        elif name in _TEXTS:
            encoded[name] = text_or_none(name, value)
        elif name == "posix":
            encoded[name] = int(flag(name, value))
        elif name == "uuid":
            encoded[name] = _uuid(value)
        elif name == "order":
            encoded[name] = choice(name, value, _ORDERS)
        elif name == "exclude":
            encoded[name] = _patterns(value)
        elif name == "sources":
            encoded[name] = _sources(value)
        elif name == "label_from":
            encoded[name] = _label_from(value)
        else:
            if value is not None:  # the library's default
                value = number(name, value, 32 if name in _SHORT else 63)
            encoded[name] = value
    return encoded
