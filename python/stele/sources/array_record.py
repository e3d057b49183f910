# SPDX-License-Identifier: Apache-2.0
"""array_record: records are bytes. What is lost is a group of records, whose checksum fails."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ..dataset import Field
from .source import Item, Lost, Reader, Row, batch_rows, files_of, package, why

ENDINGS = (".array_record", ".arrayrecord")
_OPTIONS = "readahead_buffer_size:0,max_parallelism:0"
DATA = "data"


class ArrayRecord(Reader):
    """Files, and directories of them."""

    def __init__(self, paths: Iterable[str], only: Collection[str] | None = None) -> None:
        super().__init__(only)
        self.module = package("array_record.python.array_record_module", "array-record")
        self.kinds = {DATA: Field(DATA, "bytes", (), "", ())}
        self.tops = files_of(paths, ENDINGS)
        for path, _ in self.tops:
            self.seen.add(path)

    def _open(self, path: str) -> Any:
        with open(path, "rb"):  # its own message is long
            pass
        reader = self.module.ArrayRecordReader(path, _OPTIONS)
        if not reader.ok():
            reader.close()  # tells why
            raise ValueError("it is damaged")
        return reader

    def rows(self, fields: Mapping[str, Field], key: str | None) -> Iterator[Item]:
        del fields, key
        for path, name in self.tops:
            try:
                reader = self._open(path)
                count = reader.num_records()
                options = reader.writer_options_string() or ""
                reader.close()
            except (OSError, ValueError, RuntimeError, IndexError) as error:
                yield Lost(f"'{path}'", -1, why(error))
                continue
            found = re.search(r"group_size:(\d+)", options)
            group = max(1, int(found[1])) if found else 1
            step = max(group, batch_rows(os.path.getsize(path), count) // group * group)
            for first in range(0, count, step):
                yield from self._span(path, name, first, min(first + step, count), group)
            self.seen.check(path)

    def _span(self, path: str, name: str, first: int, end: int, group: int) -> Iterator[Item]:
        """These records; where they cannot be read, group by group."""
        try:
            reader = self._open(path)
            records = reader.read(first, end)
            if len(records) != end - first:
                raise ValueError(f"it has {len(records):,} records, and not {end - first:,}")
            reader.close()
        except (OSError, ValueError, RuntimeError, IndexError) as error:
            if end - first <= group:
                yield Lost(f"'{path}' record {first}", end - first, why(error))
                return
            for at in range(first, end, group):
                yield from self._span(path, name, at, min(at + group, end), group)
            return
        for number, record in enumerate(records, first):
            yield Row(name, number, {DATA: record})
