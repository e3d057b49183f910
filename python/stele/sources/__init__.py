# SPDX-License-Identifier: Apache-2.0
"""Images of what other formats hold: Parquet, Arrow, Hugging Face, MDS, LitData, Lance, array_record.

    stele.sources.build("data/*.parquet", "/dev/vdb@v1")
    stele.sources.append("data/*.parquet", "/dev/vdb@v2", update=True)

`python3 -m stele.sources build SOURCE... TARGET[@NAME]` and `append SOURCE... TARGET@NEW` do the
same, with most options and the exit statuses of `stele build` and `stele append`. Rows pass through one by
one, so that memory does not grow with the source, and are published at once in the end. A page of
Parquet, though, and a record batch or shard that is compressed is held as a whole.

What a source is shows in its name and in how it begins; `format` says it where that is not so:

- `parquet`, `arrow` (IPC files, streams, Feather): files, directories and patterns; pyarrow reads
  them. Directories below them that are named COLUMN=VALUE, of Parquet, are columns.
- `huggingface`: what `save_to_disk()` wrote. The splits of a DatasetDict are the classes of a field
  'split'. It takes pyarrow, not datasets.
- `mds`, `litdata`: directories with an index.json. They take NumPy alone; pyarrow, if
  chunks are compressed, or rows of Arrow, as LitData makes them of plain values.
- `lance`: directories, their newest version (pylance).
- `array_record`: files and directories; records are the field 'data' (array-record).

Integers, booleans, dates and times (as numbers of their unit, which all files have to share)
become int, floats float, text str, and binary, pictures and sound bytes, as they are stored. Lists
of numbers are tensors, whose first dimension may differ unless the type says how many there are;
unsigned integers of 64 bits that no int holds are tensors without dimensions. Names of classes
stay (ClassLabel), but not of lists of them, which a warning says. Decimals are text, and so are,
as JSON, structs, maps and other lists. In the place of a null is '' or b'', nan, or for a class -1;
where integers have nulls, they become float.

Fields have the names of their columns; what is no letter or digit of ASCII, '.' or '-' becomes '_'.

Keys are the column `key`, or else FILE/NUMBER with ten digits, as of `stele build`: files by their
names below the directory, splits of Hugging Face and datasets of Lance by theirs. A row whose
column of keys is null or empty is an error, whatever `on_error` says.

Damage is an error that names file and place; `on_error="skip"` leaves out what cannot be read.
What has no checksum, though, may be damaged and still be read: Parquet has them if it was written
so, MDS if hashes were asked for, array_record has, and Arrow, LitData and Lance have none.

A file that is written to or replaced while it is read is an error, whatever `on_error` says. The
target is none of the files that are read, nor does it share bytes with one, whatever `force` says;
and what it holds is lost for a source alone that has a sample.
"""

from __future__ import annotations

import errno
import glob
import importlib
import os
import re
import secrets
import time
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..dataset import Field, Target, split
from ..errors import Error, ExistsError, short
from ..options import several, text, text_or_none
from ..progress import Watch, once
from ..reports import BuildReport, Snapshot
from ..writer import Writer
from .detect import FORMATS, NAMED, detect
from .fit import as_base, field_name
from .source import SOME, Lost, Reader, Row, SourceError, describe

__all__ = ["Lost", "Report", "SourceError", "append", "build"]

APPEND = "stele.sources.append() adds a snapshot to it"
OTHER = "give the image a name of its own; 'losetup -l' shows what loop devices are over"
UNIQUE = "key names a column in which no value comes twice"
FILLED = "key names another column, with a value in each row; or fill in what this one lacks"
SKIP = "on_error='skip' leaves out what cannot be read"
_LOST = 1000  # of them are listed
_TWICE = re.compile(r" was put twice: as samples (\d+) and (\d+),")
Path = Target  # of a source


class Report(NamedTuple):
    """What became of a source."""

    snapshot: Snapshot
    """That was made; if nothing has changed, the one that is there."""
    written: BuildReport
    """What is new in the image. Bytes of all of it are not counted."""
    samples: int
    """Of the source."""
    bytes: int
    skipped: tuple[Lost, ...]
    """The first 1000 parts that were left out."""
    skipped_parts: int
    skipped_samples: int
    """As far as anybody knows."""
    seconds: float


def _names(source: Path | Iterable[Path]) -> list[str]:
    """TypeError: it is no path, nor several; such as rows in memory, which may have names, too."""
    if isinstance(source, (str, bytes, os.PathLike)):
        return [os.fsdecode(source)]
    for way in ("save_to_disk", "to_parquet", "write_parquet"):  # datasets, pandas, polars
        if hasattr(source, way):
            kind = type(source).__name__
            raise TypeError(f"source must be paths, not a {kind}: its {way}() writes what they can name")
    names = [*several("source", source, "paths")]
    for name in names:
        if not isinstance(name, (str, bytes, os.PathLike)):
            raise TypeError(f"source must be paths, not {type(name).__name__} objects")
    return [*map(os.fsdecode, names)]


def _paths(source: Path | Iterable[Path]) -> list[str]:
    """What is there, and what patterns match."""
    names = _names(source)
    found: list[str] = []
    for name in names:
        matches = [name] if os.path.exists(name) else sorted(glob.glob(name, recursive=True))
        if not matches and "://" in name:
            raise SourceError(f"'{name}' is no file or directory", "copy what is elsewhere first")
        if not matches:
            what = "no file matches" if glob.has_magic(name) else "there is no"
            raise SourceError(f"{what} '{name}'")
        found += matches
    for path in found:
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            raise SourceError(f"'{path}' is neither a file nor a directory", "make it a file first")
    if not found:
        raise SourceError("no source is given", usage=True)
    return found


def is_source(path: str) -> bool:
    try:
        return bool(detect([path]))
    except (SourceError, OSError):
        return False


def _open(paths: Sequence[str], format: str | None, only: Collection[str] | None) -> Reader:
    if format is not None and format not in FORMATS:
        raise SourceError(f"{NAMED}, not {format!r}", usage=True)
    format = format or detect(paths)
    module, name, needs = FORMATS[format]
    try:
        opened = getattr(importlib.import_module(f".{module}", __name__), name)(paths, only)
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in needs:
            raise
        raise SourceError(f"cannot import {missing}", f"pip install {missing}") from None
    assert isinstance(opened, Reader)
    return opened


def _choose(source: Reader, key: str | None, columns: Sequence[str] | None) -> tuple[list[str], str | None]:  # fmt: skip
    """Columns that become fields, and that of the keys."""
    kinds = source.kinds
    for name in [*(columns or ()), *([key] if key is not None else ())]:
        if name not in kinds:
            raise SourceError(
                f"there is no column '{name}': there are {', '.join(map(repr, kinds))}", usage=True
            )
    keys = ("str", "bytes", "int")
    if key is None and "key" in kinds and kinds["key"].type in keys and not kinds["key"].classes:
        key = "key"
    elif key is not None and kinds[key].type not in keys:
        raise SourceError(
            f"column '{key}' cannot be keys: it is {describe(kinds[key])}, not str, bytes or int",
            usage=True,
        )
    names = [*columns] if columns is not None else [name for name in kinds if name != key]
    if not names:
        raise SourceError("there is no column but that of the keys")
    if len(set(names)) != len(names):
        raise SourceError("a column is named twice", usage=True)
    return names, key


def _check_names(source: Reader, key: str | None) -> None:
    """Nothing is read twice, nor do keys of two files mingle."""
    paths: set[str] = set()
    names: dict[str, str] = {}
    for path, name in source.tops:
        if os.path.abspath(path) in paths:
            raise SourceError(f"'{path}' would be read twice", "name it once", usage=True)
        paths.add(os.path.abspath(path))
        other = names.setdefault(name, path)
        if key is None and other != path:
            error = SourceError(f"rows of '{other}' and '{path}' would have the same keys")
            error.add_note(
                "rename one of them"
                + (", or name a directory above both instead" if os.path.isfile(path) else "")
            )
            error.add_note(UNIQUE)
            raise error


def _field_names(columns: Sequence[str]) -> dict[str, str]:
    """Of each column that of its field."""
    found: dict[str, str] = {}
    for column in columns:
        name = field_name(column)
        for other, taken in found.items():
            if name == taken:
                raise SourceError(
                    f"columns '{other}' and '{column}' would both be the field '{name}'", SOME
                )
        found[column] = name
    return found


def _declare(writer: Writer, fields: dict[str, Field]) -> None:
    try:
        writer._take(fields)
    except (Error, ValueError) as error:
        for field in fields.values():
            if short(field.name) in str(error):
                raise SourceError(
                    f"column '{field.name}' cannot be a field: {error}", SOME
                ) from None
        if not isinstance(error, Error):  # there are too many
            raise SourceError(str(error), SOME) from None
        raise


def _key(row: Row, key: str | None, column: Any) -> str | bytes:
    if key is None:
        return f"{row.name}/{row.number:010}"
    if column is None or column == "" or column == b"":
        is_what = "null" if column is None else "empty"
        raise SourceError(
            f"'{row.name}' row {row.number} has no key: column '{key}' is {is_what} there", FILLED
        )
    return column if isinstance(column, (str, bytes)) else str(column)


def _lost(row: Row, error: Exception) -> Lost:
    return Lost(f"'{row.name}' row {row.number}", 1, str(error))


def _refuse(verb: str, names: Iterable[str], options: Mapping[str, Any]) -> None:
    """What a Writer takes, and a verb decides."""
    for name in names:
        if name in options:
            raise TypeError(f"{verb}() got an unexpected keyword argument '{name}'")


class _Build:
    """Rows on their way into a Writer."""

    def __init__(self, source: Reader, columns: Sequence[str], key: str | None, skip: bool) -> None:
        self.source, self.key, self.skip = source, key, skip
        self.names = _field_names(columns)
        self.renamed = any(column != name for column, name in self.names.items())
        self.lost: list[Lost] = []
        self.parts = self.samples = 0
        self.runs: list[tuple[int, str, int]] = []  # samples before; file and number of the first

    def leave(self, lost: Lost) -> None:
        if not self.skip:
            self.source.seen.check()  # what is no damage, but two versions, is called that
            raise SourceError(f"cannot read {lost.place}: {lost.reason}", SKIP)
        self.parts += 1
        self.samples += max(lost.rows, 0)
        if len(self.lost) < _LOST:
            self.lost.append(lost)

    def nothing(self) -> SourceError:
        """There are no samples, or none that can be read."""
        if not self.lost:
            return SourceError("there are no samples in the source")
        first = self.lost[0]
        more = f", and {self.parts - 1:,} parts more" if self.parts > 1 else ""
        return SourceError(f"nothing of the source can be read: {first.place}: {first.reason}{more}")

    def begin(self, base: Mapping[str, Field] | None) -> None:
        """Find what columns become; base: the fields of an image that is there."""
        known = {c: base[name] for c, name in self.names.items() if name in base} if base else {}
        found = self.source.fields([*self.names], known)
        self.fields = {name: found[c]._replace(name=name) for c, name in self.names.items()}
        if base is not None:
            self.fields = as_base(self.fields, base, self.source.kinds)
        self.rows = self._read({c: self.fields[name] for c, name in self.names.items()})

    def _read(self, fields: Mapping[str, Field]) -> Iterator[tuple[Row, str | bytes, dict[str, Any]]]:
        field = self.key is not None and self.key in fields
        for item in self.source.rows(fields, self.key):
            if isinstance(item, Lost):
                self.leave(item)
                continue
            row = item.values
            column = None
            if self.key is not None:
                column = row[self.key] if field else row.pop(self.key)
            key = _key(item, self.key, column)
            if self.renamed:
                row = {name: row[c] for c, name in self.names.items()}
            yield item, key, row

    def _note(self, count: int, row: Row) -> None:
        """So many samples come before this one."""
        if self.runs:
            first, name, number = self.runs[-1]
            if (row.name, row.number - count) == (name, number - first):
                return
        self.runs.append((count, row.name, row.number))

    def _place(self, count: int) -> str:
        first, name, number = self.runs[bisect_right(self.runs, count, key=lambda run: run[0]) - 1]
        return f"'{name}' row {number + count - first}"

    def explain(self, error: Error) -> None:
        """Where keys come from of which there are two."""
        twice = _TWICE.search(str(error))
        if twice:
            one, other = (self._place(int(count)) for count in twice.groups())
            error.add_note(f"{one} and {other} have that key")
            error.add_note(UNIQUE)

    def run(self, writer: Writer) -> None:
        for item, key, row in self.rows:
            self._note(writer._samples, item)
            try:
                writer.put(key, row)
            except (TypeError, ValueError, OverflowError) as error:
                self.leave(_lost(item, error))
        self.source.seen.check()


def _nowhere(directory: Target | None) -> str:
    """Where a rehearsal without a target would make its image: beside the temporary file."""
    given = os.environ.get("TMPDIR") or "/var/tmp" if directory is None else os.fsdecode(directory)
    return os.path.join(given, f"stele-{secrets.token_hex(8)}")


@once()
def _import(
    source: Path | Iterable[Path],
    target: Target,
    format: str | None,
    key: str | None,
    columns: Sequence[str] | None,
    on_error: str,
    **options: Any,
) -> Report:
    if on_error not in ("fail", "skip"):
        raise SourceError(f"on_error is 'fail' or 'skip', not {on_error!r}", usage=True)
    text_or_none("format", format)
    text_or_none("key", key)
    if columns is not None:
        columns = [*several("columns", columns, "names")]
        for name in columns:
            text("a column", name)
    start = time.monotonic()
    try:
        only = None if columns is None else {*columns, "key" if key is None else key}
        opened = _open(_paths(source), format, only)
    except SourceError as error:
        if is_source(split(os.fsdecode(target))[0]):
            error.add_note("the source comes first, then the target")
        raise
    try:
        names, key = _choose(opened, key, columns)
        _check_names(opened, key)
        work = _Build(opened, names, key, on_error == "skip")
        writer, snapshot = _write(work, target, options)
    except ExistsError as error:
        if not options["append"] and "holds a Stele image" in str(error):
            error.add_note(APPEND)
        raise
    except Error as error:
        if error.errno == errno.EINVAL and " of the source, " in str(error):
            error.add_note(OTHER)
        raise
    finally:
        opened.close()
    assert writer.report is not None
    return Report(
        snapshot, writer.report, writer._samples, writer._bytes, tuple(work.lost), work.parts,
        work.samples, time.monotonic() - start,
    )  # fmt: skip


def _write(work: _Build, target: Target, options: dict[str, Any]) -> tuple[Writer, Snapshot]:
    more = options.get("sources")
    read = [*work.source.seen, *(() if more is None else several("sources", more, "paths"))]
    if not options["append"]:
        work.begin(None)
    with Writer(target, None, **options | {"sources": read}) as writer:
        if options["append"]:
            work.begin(writer.fields)
        if writer.fields is None:
            _declare(writer, work.fields)
        writer._total = work.source.total
        work.run(writer)
        if not writer._samples:
            raise work.nothing()
        try:
            return writer, writer.commit()
        except ExistsError as error:
            work.explain(error)
            raise


def build(
    source: Path | Iterable[Path],
    target: Target | None,
    *,
    format: str | None = None,
    key: str | None = None,
    columns: Sequence[str] | None = None,
    on_error: str = "fail",
    progress: Watch = None,
    **options: Any,
) -> Report:
    """Write the rows of a source as a new image.

    Args:
        source: files, directories or patterns, of the same format.
        target: PATH[@SNAPSHOT], 'v1' unless named; None: a dry run, as if it were in `directory`.
        format: see above; None: it is detected.
        key: the column of keys, of str, bytes or int, which is then no field. None: 'key', if
            there is such a column, else FILE/NUMBER.
        columns: those that become fields, also that of the keys; None: all others.
        on_error: 'fail', or 'skip' to leave out what cannot be read.
        progress: see stele.Progress.
        options: those of stele.Writer: force, label, note, posix, file_size, dry_run, ...

    Raises:
        SourceError: the source cannot be read, or become samples; ImportError is one, too.
        stele.Error: the target cannot be written.
    """
    _refuse("build", ("append", "base", "update", "keep", "delete_missing", "always"), options)
    if target is None:
        target, options["dry_run"] = _nowhere(options.get("directory")), True
    return _import(
        source, target, format, key, columns, on_error, append=False, progress=progress, **options
    )


def append(
    source: Path | Iterable[Path],
    target: Target,
    *,
    format: str | None = None,
    key: str | None = None,
    columns: Sequence[str] | None = None,
    on_error: str = "fail",
    base: str | None = None,
    update: bool = False,
    delete_missing: bool = False,
    always: bool = False,
    force: bool = False,
    progress: Watch = None,
    **options: Any,
) -> Report:
    """Write what a source has more than a snapshot of an image, as a new one.

    Args:
        target: PATH@NAME, a name that the image does not have yet.
        base: the snapshot to start from; None: the newest.
        update: also replace samples whose contents have changed; without it those that are
            there stay.
        delete_missing: drop samples that the source lacks. It does not go with
            on_error='skip': what cannot be read may be one of them.
        always: make a snapshot even if nothing has changed.
        force: with delete_missing, also if that drops more than half of them.
        options: those of stele.Writer: note, time, granule, file_size, dry_run, ...

    The other arguments are those of build().
    """
    _refuse("append", ("append", "keep"), options)
    if delete_missing and on_error == "skip":
        raise SourceError(
            "delete_missing needs a source without damage: it does not go with on_error='skip'",
            usage=True,
        )
    return _import(
        source, target, format, key, columns, on_error, append=True, base=base,
        update=update, keep=True, delete_missing=delete_missing, always=always, force=force, progress=progress, **options,
    )  # fmt: skip
