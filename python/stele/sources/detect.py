# SPDX-License-Identifier: Apache-2.0
"""Which format a source has: by its name, and by how it begins."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from .endings import ENDINGS, OF_STELE, PACKED
from .source import SourceError

# The module and class of each, and packages that it imports, which need not be there.
FORMATS = {
    "parquet": ("parquet", "Parquet", ("pyarrow", "numpy")),
    "arrow": ("arrow", "Arrow", ("pyarrow", "numpy")),
    "huggingface": ("huggingface", "HuggingFace", ("pyarrow", "numpy")),
    "mds": ("mds", "Mds", ("numpy",)),
    "litdata": ("litdata", "LitData", ("numpy",)),
    "lance": ("lance", "Lance", ("pyarrow", "numpy")),
    "array_record": ("array_record", "ArrayRecord", ()),
}
NAMED = f"format is one of {', '.join(FORMATS)}"

_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"FEA1": "arrow"}
_LOOK = 1 << 16  # bytes of an index.json that say what it is


def _by_name(path: str) -> str:
    return ENDINGS.get(os.path.splitext(path.rstrip("/"))[1].lower(), "")


def _index(path: str) -> str:
    """Of MDS or LitData."""
    with open(path, "rb") as file:
        head = file.read(_LOOK)
    if b'"shards"' in head:
        return "mds"
    return "litdata" if b'"chunks"' in head else ""


def _directory(path: str) -> str:
    if os.path.exists(os.path.join(path, "index.json")):
        found = _index(os.path.join(path, "index.json"))
        if found:
            return found
    if any(os.path.exists(os.path.join(path, n)) for n in ("state.json", "dataset_dict.json")):
        return "huggingface"
    if os.path.isdir(os.path.join(path, "_versions")):
        return "lance"
    for _, directories, names in os.walk(path):
        directories.sort()
        for name in sorted(names):
            if name[0] not in "._" and _by_name(name):
                return _by_name(name)
    return ""


def _one(path: str) -> str:
    if os.path.isdir(path):
        return _directory(path)
    if os.path.basename(path) == "index.json":
        return _index(path)
    with open(path, "rb") as file:
        head = file.read(8)
    for magic, format in _MAGIC.items():
        if head.startswith(magic):
            return format
    return _by_name(path)


def _ending(path: str) -> str:
    """What is in front of that of a compressor, too; of LMDB also where a directory has none."""
    if os.path.exists(os.path.join(path, "data.mdb")):
        return ".lmdb"
    stem, end = os.path.splitext(path.rstrip("/").lower())
    return os.path.splitext(stem)[1] if end in PACKED else end


def _unknown(path: str, alone: bool) -> SourceError:
    """Who may be able to read it."""
    call = f"'stele build {shlex.quote(path)}{'' if alone else ' ...'} TARGET'"
    option = OF_STELE.get(_ending(path))
    error = SourceError(f"cannot tell the format of '{path}'")
    if option is not None:
        error.add_note(f"the command {call} reads it{option and '; '}{option}")
        return error
    if os.path.isdir(path):
        error.add_note(f"if each of its files is a sample, the command {call} reads it")
    error.add_note(NAMED)
    return error


def detect(paths: Sequence[str]) -> str:
    """The format of all of them."""
    found = ""
    for path in paths:
        try:
            one = _one(path)
        except OSError as error:
            raise SourceError(f"cannot open '{path}': {error.strerror}") from None
        if not one:
            raise _unknown(path, len(paths) == 1)
        if found and one != found:
            raise SourceError(f"'{paths[0]}' is {found}, and '{path}' {one}", "build them one by one")
        found = one
    return found
