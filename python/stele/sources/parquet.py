# SPDX-License-Identifier: Apache-2.0
"""Parquet: row groups. Checksums of pages are checked where they were written."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import pyarrow
import pyarrow.parquet

from ..dataset import Field
from ..progress import logger
from .source import OTHER_FORMAT, SourceError, batch_rows, files_of, why
from .tables import Part, Tables, broken
from .values import kinds_of

ENDINGS = (".parquet", ".parq", ".pq")
_BUFFER = 1 << 20  # bytes that are read of a column at once


def _open(path: str) -> Any:
    return pyarrow.parquet.ParquetFile(
        path, buffer_size=_BUFFER, pre_buffer=False, page_checksum_verification=True
    )


def _hive(name: str) -> dict[str, str]:
    """Columns that directories are named after: COLUMN=VALUE."""
    pairs = [part.split("=", 1) for part in name.split("/")[:-1] if "=" in part]
    return {
        column: "" if value == "__HIVE_DEFAULT_PARTITION__" else urllib.parse.unquote(value)
        for column, value in pairs
    }


def _above(path: str, name: str) -> str:
    """The directories that were given, and begin no key; name: what keys begin with."""
    return os.path.join(path[: -len(name)] if path.endswith(name) else os.path.dirname(path), "")


class Parquet(Tables):
    """Files, and directories of them, also those that are named COLUMN=VALUE."""

    def __init__(self, paths: Iterable[str], only: Collection[str] | None = None) -> None:
        super().__init__(only)
        self.files: list[tuple[str, str, str]] = []  # path, name, or why it is lost
        self.constants: dict[str, dict[str, Any]] = {}
        self.left: dict[str, str] = {}  # columns, and a file that lacks it
        self.tops = files_of(paths, ENDINGS)
        for path, name in self.tops:
            try:
                with _open(self.seen.add(path)) as file:
                    schema, rows = file.schema_arrow, file.metadata.num_rows
                kinds = kinds_of(schema)
            except SourceError:
                raise
            except Exception as error:  # also of names that are no text
                self.files.append((path, name, why(error)))
                continue
            self.files.append((path, name, ""))
            self.total += rows
            self.constants[name] = {k: v for k, v in _hive(name).items() if k not in kinds}
            kinds |= {k: Field(k, "str", (), "", ()) for k in self.constants[name]}
            self.take_schema(path, schema, kinds)
            self._note_left(path, name)
        self._warn()
        if not self.first:
            path, _, reason = self.files[0]
            raise SourceError(f"cannot read '{path}': {reason}", OTHER_FORMAT)

    def _note_left(self, path: str, name: str) -> None:
        """Columns of directories that are in the path of a source, and not below it."""
        for column in _hive(_above(path, name)):
            if column not in self.kinds and (self.only is None or column in self.only):
                self.left.setdefault(column, path)

    def _warn(self) -> None:
        if not self.left:
            return
        path = next(iter(self.left.values()))
        top = path[: path.index("=")].rpartition("/")[0] or "."
        logger.warning(
            "left out, as only directories below a source are columns: %s of '%s'; the source '%s' "
            "has them", ", ".join(map(repr, self.left)), path, top,
        )  # fmt: skip

    def parts(self) -> Iterator[Part]:
        for path, name, reason in self.files:
            if reason:
                yield broken(f"'{path}'", name, ValueError(reason))
                continue
            try:
                file = _open(path)
            except (OSError, ValueError, pyarrow.ArrowException) as error:
                yield broken(f"'{path}'", name, error)
                continue
            with file:
                for group in range(file.metadata.num_row_groups):
                    rows = file.metadata.row_group(group).num_rows
                    yield Part(
                        f"'{path}' row group {group}", name, rows,
                        _reader(file, group), self.constants[name],
                    )  # fmt: skip
            self.seen.check(path)


def _reader(file: Any, group: int) -> Any:
    def read(columns: list[str]) -> Iterator[Any]:
        about = file.metadata.row_group(group)
        # A dot would be part of a path into a struct.
        some = columns if not any("." in name for name in columns) else None
        rows = batch_rows(about.total_byte_size, about.num_rows)
        yield from file.iter_batches(rows, row_groups=[group], columns=some, use_threads=False)

    return read
