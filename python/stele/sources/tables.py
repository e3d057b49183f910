# SPDX-License-Identifier: Apache-2.0
"""Sources that come as record batches of Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow
import pyarrow.compute

from ..dataset import Field
from . import values
from .source import (
    OTHER_FORMAT, Item, Lost, Reader, Row, SourceError, batch_rows, describe, is_panic, why,
)  # fmt: skip


class Part(NamedTuple):
    """What is lost as a whole: a row group, a record batch, a fragment."""

    place: str
    name: str
    """What keys begin with."""
    rows: int
    read: Callable[[list[str]], Iterator[Any]]
    """Record batches of these columns."""
    constants: dict[str, Any] = {}  # noqa: RUF012
    """Values of columns that are not in the batches."""


def broken(place: str, name: str, error: BaseException) -> Part:
    """Of which nothing can be read, nor how many rows it has."""

    def read(columns: list[str]) -> Iterator[Any]:
        del columns
        raise error

    return Part(place, name, -1, read)


def _slices(batch: Any) -> Iterator[Any]:
    """Parts of a batch that are small enough for memory."""
    step = batch_rows(batch.nbytes, batch.num_rows)
    for first in range(0, batch.num_rows, step):
        yield batch.slice(first, step)


def _widened(seen: values.Span, array: Any) -> values.Span:
    """With the nulls of integers, and the least and the largest of them."""
    nulls = seen.nulls + array.null_count
    if len(array) == array.null_count or pyarrow.types.is_boolean(array.type):
        return seen._replace(nulls=nulls)
    found = pyarrow.compute.min_max(values._ints(array)).as_py()
    return values.Span(nulls, min(seen.least, found["min"]), max(seen.largest, found["max"]))


class Tables(Reader):
    """Rows of parts, one after the other."""

    types: Mapping[str, Any]
    """Of Arrow, of each column; one that has no nulls is not nullable."""
    units: Mapping[str, str]
    """Of dates and times, which are numbers of them."""
    nullable: frozenset[str] = frozenset()

    def take_schema(self, path: str, schema: Any, kinds: Mapping[str, Field]) -> None:
        """Columns of one more file: numbers of one column count in the same unit."""
        units = values.units_of(schema)
        if not self.first:
            self.first, self.kinds, self.units = path, kinds, units
            self.types = dict(zip(schema.names, schema.types, strict=True))
        self.agree(kinds, path)
        for name in [*self.units, *units]:
            one, two = (u.get(name) or describe(kinds.get(name)) for u in (self.units, units))
            if one != two and (self.only is None or name in self.only):
                raise self.differ(name, one, path, two)
        self.nullable |= {field.name for field in schema if field.nullable}

    def take_schemas(self, paths: Iterable[str], schema_of: Callable[[str], Any]) -> None:
        """Columns, which all files have that can be read: one of them has to be."""
        reason, hint = "there are no files of data", ""
        for path in paths:
            try:
                schema = schema_of(self.seen.add(path))
                kinds = values.kinds_of(schema)
            except SourceError:
                raise
            except Exception as error:  # also of names that are no text
                reason, hint = f"cannot read '{path}': {why(error)}", OTHER_FORMAT
                continue
            self.take_schema(path, schema, kinds)
        if not self.first:
            raise SourceError(reason, hint)

    def parts(self) -> Iterator[Part]:
        """What there is, in order."""
        raise NotImplementedError

    def fields(self, names: Sequence[str], base: Mapping[str, Field]) -> dict[str, Field]:
        found = {name: self.kinds[name] for name in names}
        wanted = [
            name for name in names
            if name not in base and name in self.types and not self.kinds[name].classes
            and self.kinds[name].type == "int"
            and (name in self.nullable or pyarrow.types.is_uint64(values.plain(self.types[name])))
        ]  # fmt: skip
        return values.adapt(found, self.scan(wanted)) if wanted else found

    def scan(self, names: list[str]) -> dict[str, values.Span]:
        """Of columns of integers. Damage shows later."""
        found = dict.fromkeys(names, values.Span())
        for part in self.parts():
            try:
                for batch in part.read(names):
                    for name in set(names) & set(batch.schema.names):
                        array = values._storage(batch.column(name))
                        found[name] = _widened(found[name], array)
            except SourceError:
                raise
            except BaseException as error:
                if not is_panic(error):
                    raise
        return found

    def rows(self, fields: Mapping[str, Field], key: str | None) -> Iterator[Item]:
        converts = {name: values.converter(field) for name, field in fields.items()}
        if key is not None:
            converts[key] = values.keys_of(self.kinds[key])
        numbers: dict[str, int] = {}  # the next one; -1: nobody knows
        for part in self.parts():
            first = numbers.get(part.name, 0)
            if first < 0 and key is None:
                yield Lost(part.place, part.rows, "damage before it leaves its rows unnumbered")
                continue
            yield from self._part(part, first, converts)
            numbers[part.name] = first + part.rows if min(first, part.rows) >= 0 else -1

    def _part(self, part: Part, first: int, converts: dict[str, values.Convert]) -> Iterator[Item]:
        done = 0
        wanted = [name for name in converts if name not in part.constants]
        fixed = {name: part.constants[name] for name in converts if name in part.constants}
        try:
            for batch in part.read(wanted):
                batch.validate(full=True)
                for rows in _slices(batch):
                    columns = [converts[name](rows.column(name)) for name in wanted]
                    for row in zip(*columns, strict=True):
                        named = dict(zip(wanted, row, strict=True))
                        yield Row(part.name, first + done, named | fixed)
                        done += 1
            if part.rows >= 0 and done != part.rows:
                raise ValueError(f"it has {done:,} rows, and not {part.rows:,}")
        except SourceError as error:
            raise _at(error, part.place, done) from None
        except BaseException as error:
            if not is_panic(error):
                raise
            at = f"{part.place}, row {done}" if done else part.place
            yield Lost(at, max(part.rows - done, 0) if part.rows >= 0 else -1, why(error))


def _at(error: SourceError, place: str, row: int) -> SourceError:
    """The same error, with its place."""
    found = SourceError(f"{place}, row {row} or after it: {error}")
    for note in getattr(error, "__notes__", []):
        found.add_note(note)
    return found
