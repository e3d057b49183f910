# SPDX-License-Identifier: Apache-2.0
"""Hugging Face: directories that save_to_disk() wrote; pyarrow alone reads them."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from ..dataset import Field
from . import arrow
from .source import SourceError, directories_of, why
from .tables import Part, Tables

STATE, DICT = "state.json", "dataset_dict.json"
INFO = "dataset_info.json"  # is not read, and yet no target
SPLIT = "split"


def _json(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise SourceError(f"cannot read '{path}': {why(error)}") from None


def _files(path: str) -> list[str]:
    state = _json(os.path.join(path, STATE))
    try:
        if state.get("_indices_data_files") or state.get("_indices_files"):
            raise SourceError(
                f"'{path}' has indices beside its data, as old versions saved them",
                "datasets.load_from_disk(OLD).save_to_disk(NEW) leaves none",
            )
        return [os.path.join(path, file["filename"]) for file in state["_data_files"]]
    except (KeyError, TypeError, AttributeError):
        raise SourceError(f"'{path}/{STATE}' does not list files of data") from None


def _splits(path: str) -> list[str]:
    found = _json(os.path.join(path, DICT))
    names = found.get("splits") if isinstance(found, dict) else None
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise SourceError(f"'{path}/{DICT}' does not list splits")
    return names


class HuggingFace(Tables):
    """A Dataset, or the splits of a DatasetDict, which become the classes of a field."""

    def __init__(self, paths: Iterable[str], only: Collection[str] | None = None) -> None:
        super().__init__(only)
        self.files: list[tuple[str, str, str]] = []  # path, name, split
        splits: list[str] = []
        self.tops = directories_of(paths)
        for path, above in self.tops:
            if os.path.exists(self.seen.add(os.path.join(path, DICT))):
                for split in _splits(path):
                    self.seen.add(os.path.join(path, split, STATE))
                    self.seen.add(os.path.join(path, split, INFO))
                    splits += [split] if split not in splits else []
                    files = _files(os.path.join(path, split))
                    self.files += [(file, above + split, split) for file in files]
            else:
                self.seen.add(os.path.join(path, STATE))
                self.seen.add(os.path.join(path, INFO))
                name = os.path.basename(os.path.abspath(path))
                self.files += [(file, name, "") for file in _files(path)]
        self.take_schemas((path for path, _, _ in self.files), arrow.schema_of)
        self.split = bool(splits) and SPLIT not in self.kinds
        if self.split:
            if not all(split for _, _, split in self.files):
                raise SourceError("a Dataset cannot be combined with a DatasetDict")
            self.kinds = {**self.kinds, SPLIT: Field(SPLIT, "int", tuple(splits), "", ())}

    def parts(self) -> Iterator[Part]:
        for path, name, split in self.files:
            constants = {SPLIT: split} if self.split else {}
            yield from arrow.batches(path, name, constants)
            self.seen.check(path)
