# SPDX-License-Identifier: Apache-2.0
"""Arrow: record batches of IPC files, which Feather is, too, and of streams."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import repeat
from typing import Any

import pyarrow
import pyarrow.ipc

from .source import SourceError, files_of, is_panic
from .tables import Part, Tables, broken

ENDINGS = (".arrow", ".arrows", ".feather", ".ipc")
_FILE = b"ARROW1"
_FEATHER = b"FEA1"
_MARK, _LENGTH = b"\xff\xff\xff\xff", b"\0\0\0\0"  # the end of a stream; no mark before Arrow 0.15


def _options(schema: Any, columns: list[str] | None) -> Any:
    some = [schema.get_field_index(name) for name in columns] if columns is not None else None
    return pyarrow.ipc.IpcReadOptions(included_fields=some, use_threads=False)


def is_file(path: str) -> bool:
    """Not a stream."""
    with open(path, "rb") as file:
        head = file.read(len(_FILE))
    if head.startswith(_FEATHER):
        raise SourceError(
            f"'{path}' is Feather of version 1",
            "pyarrow.feather.write_feather(pyarrow.feather.read_table(FILE), NEW) converts it",
        )
    return head == _FILE


def schema_of(path: str) -> Any:
    kind = pyarrow.ipc.open_file if is_file(path) else pyarrow.ipc.open_stream
    with pyarrow.memory_map(path) as source:
        return kind(source).schema


def batches(path: str, name: str, constants: dict[str, Any]) -> Iterator[Part]:
    """Each record batch of a file or stream."""
    try:
        one = is_file(path)
        with pyarrow.memory_map(path) as source:
            yield from (_of_file if one else _of_stream)(source, path, name, constants)
    except SourceError:
        raise
    except Exception as error:
        yield broken(f"'{path}'", name, error)


def _of_file(source: Any, path: str, name: str, constants: Any) -> Iterator[Part]:
    schema = pyarrow.ipc.open_file(source).schema
    # Of one column the length of a batch shows: of the smallest, as it may be compressed.
    order = sorted(range(len(schema)), key=lambda i: not pyarrow.types.is_primitive(schema.types[i]))
    bare = [
        pyarrow.ipc.open_file(source, options=_options(schema, [schema.names[i]])) for i in order[:8]
    ]
    for index in range(bare[0].num_record_batches):

        def read(columns: list[str], index: int = index) -> Iterator[Any]:
            reader = pyarrow.ipc.open_file(source, options=_options(schema, columns))
            yield reader.get_batch(index)

        rows = next((n for n in map(_length, bare, repeat(index)) if n >= 0), -1)
        yield Part(f"'{path}' record batch {index}", name, rows, read, constants)


def _length(reader: Any, index: int) -> int:
    """Of a record batch; -1: it is damaged."""
    try:
        return int(reader.get_batch(index).num_rows)
    except Exception:
        return -1


def _of_stream(source: Any, path: str, name: str, constants: Any) -> Iterator[Part]:
    index = 0
    try:
        reader = pyarrow.ipc.open_stream(source, options=_options(None, None))
        for batch in reader:

            def read(columns: list[str], batch: Any = batch) -> Iterator[Any]:
                yield batch.select(columns)

            yield Part(f"'{path}' record batch {index}", name, batch.num_rows, read, constants)
            index += 1
        source.seek(0)
        end = (_MARK if source.read(4) == _MARK else b"") + _LENGTH
        source.seek(max(source.size() - 8, 0))
        if not source.read().endswith(end):
            raise ValueError("the end of the stream is missing")
    except BaseException as error:
        if not is_panic(error):
            raise
        yield broken(f"'{path}' record batch {index}", name, error)


class Arrow(Tables):
    """Files, and directories of them."""

    def __init__(self, paths: Iterable[str], only: Collection[str] | None = None) -> None:
        super().__init__(only)
        self.tops = files_of(paths, ENDINGS)
        self.take_schemas((path for path, _ in self.tops), schema_of)

    def parts(self) -> Iterator[Part]:
        for path, name in self.tops:
            yield from batches(path, name, {})
            self.seen.check(path)


