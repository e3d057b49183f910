# SPDX-License-Identifier: Apache-2.0
"""For Parquet: a snapshot as a file that pyarrow and others read.

    stele.parquet.export("/dev/vdb@v1", "photos.parquet")

``python3 -m stele.parquet export TARGET FILE`` does the same. A row has the column 'key' and one
for each field: binary for bytes, string for str, int64, and double for float. Names of classes are
JSON in the metadata of their column, 'stele:classes'. Tensors are arrow.fixed_shape_tensor, which
other readers see as lists; where the first dimension differs they are lists of what is in it, and
without dimensions scalars of their dtype.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy

from . import _stele
from .command import DAMAGED, FAILED, USAGE, Command
from .dataset import Dataset, Field, Target
from .errors import Error, ExistsError
from .options import positive
from .rows import check_names, dataset

try:
    import pyarrow
    import pyarrow.parquet
except ImportError:
    if __name__ != "__main__":
        raise
    missing = ImportError("cannot import pyarrow")
    missing.add_note("pip install pyarrow")
    Command("stele.parquet", {}).say(missing)
    sys.exit(FAILED)

_READ = 4 << 20  # bytes of one submission, if samples are as large as those before
_ARRAY_MAX = (1 << 31) - 1  # bytes of an array, whose offsets have 32 bits, and of a value
_OTHER = "give the file another name"
# What no file replaces, and what to do.
_SPARED = {
    errno.EPERM: _OTHER,
    errno.EEXIST: f"{_OTHER}; an image that is not needed has to be removed first",
    errno.ETXTBSY: f"{_OTHER}; one that is not needed is to be unmounted, and detached with "
    "'losetup -d', first",
    errno.EBUSY: f"{_OTHER}, or unmount it first",
}
_IN_IT = "give the file a name in that directory"
_FORCE = "force=True replaces a file that exists"
_COMMAND = Command("stele.parquet", {_FORCE: "--force replaces an existing FILE"})
_NO_FILE = {
    "": "FILE is empty",
    "-": "a Parquet file cannot be written to standard output; './-' is a file of that name",
}
_DAMAGES = {errno.EBADMSG, errno.EUCLEAN, errno.ENODATA}
_SCALARS = {
    "bytes": pyarrow.binary(),
    "str": pyarrow.string(),
    "int": pyarrow.int64(),
    "float": pyarrow.float64(),
}

_Column = Callable[[list[Any]], Any]  # an array, of the values of some samples


def _flat(values: list[Any], dtype: str) -> Any:
    """All elements of all tensors."""
    arrays = [value.numpy().reshape(-1) for value in values]
    flat = numpy.concatenate(arrays) if arrays else numpy.empty(0, dtype)
    return pyarrow.array(flat, pyarrow.from_numpy_dtype(flat.dtype))


def _tensors(field: Field) -> tuple[Any, _Column]:
    try:
        item = pyarrow.from_numpy_dtype(numpy.dtype(field.dtype))
    except (TypeError, NotImplementedError):
        raise ValueError(f"field {field.name!r}: Parquet has no {field.dtype}") from None
    if not field.shape:
        return item, lambda values: _flat(values, field.dtype)
    if field.shape[0] is not None:
        kind = pyarrow.fixed_shape_tensor(item, field.shape)

        def fixed(values: list[Any]) -> Any:
            flat = _flat(values, field.dtype)
            lists = pyarrow.FixedSizeListArray.from_arrays(flat, type=kind.storage_type)
            return pyarrow.ExtensionArray.from_storage(kind, lists)

        return kind, fixed

    inner = item
    for dim in reversed(field.shape[1:]):
        inner = pyarrow.list_(inner, dim)

    def lists(values: list[Any]) -> Any:
        part = _flat(values, field.dtype)
        for dim in reversed(field.shape[1:]):
            part = pyarrow.FixedSizeListArray.from_arrays(part, dim)
        ends = numpy.cumsum([0, *(value.shape[0] for value in values)])
        return pyarrow.ListArray.from_arrays(pyarrow.array(ends, pyarrow.int32()), part)

    return pyarrow.list_(inner), lists


def _column(field: Field) -> tuple[Any, _Column]:
    """The type of a field in Arrow, and what makes an array of values."""
    if field.type == "tensor":
        kind, convert = _tensors(field)
    else:
        kind = _SCALARS[field.type]

        def convert(values: list[Any]) -> Any:
            if field.type == "bytes":
                values = [bytes(value) for value in values]
            return pyarrow.array(values, kind)

    names = {"stele:classes": json.dumps(field.classes)} if field.classes else None
    return pyarrow.field(field.name, kind, nullable=False, metadata=names), convert


def _utf8(key: str) -> str:
    try:
        key.encode()
    except UnicodeEncodeError:
        raise ValueError(f"key {key!r} is not UTF-8, as text in Parquet is") from None
    return key


def _parts(samples: list[_stele.Sample]) -> Iterator[list[_stele.Sample]]:
    """As many as an array can have."""
    part: list[_stele.Sample] = []
    size = 0
    for sample in samples:
        if len(sample) > _ARRAY_MAX:
            raise ValueError(f"sample {sample.key!r} is larger than 2 GiB, the most in Parquet")
        if size + len(sample) > _ARRAY_MAX:
            yield part
            part, size = [], 0
        part.append(sample)
        size += len(sample)
    yield part


class _Rows:
    """All samples as rows, in the order of ids."""

    def __init__(self, data: Dataset) -> None:
        self.data = data
        self.names = list(data.fields)
        check_names(data)
        columns = [_column(field) for field in data.fields.values()]
        self.converts = [convert for _, convert in columns]
        key = pyarrow.field("key", pyarrow.string(), nullable=False)
        self.schema = pyarrow.schema([key, *(kind for kind, _ in columns)])

    def _batch(self, samples: list[_stele.Sample]) -> Any:
        keys = pyarrow.array([_utf8(sample.key) for sample in samples], pyarrow.string())
        values = [
            convert([sample[name] for sample in samples])
            for name, convert in zip(self.names, self.converts, strict=True)
        ]
        return pyarrow.record_batch([keys, *values], schema=self.schema)

    def write(self, writer: Any, size: int) -> None:
        """In row groups of about `size` bytes of samples."""
        first, step, held, count = 0, 1, 0, len(self.data)
        batches: list[Any] = []
        while first < count:
            samples = self.data[first : first + step]
            batches += map(self._batch, _parts(samples))
            read = sum(map(len, samples))
            held += read
            first += len(samples)
            if held >= size or first == count:
                table = pyarrow.Table.from_batches(batches, self.schema)
                writer.write_table(table, row_group_size=max(1, len(table)))
                batches, held = [], 0
            # Ids next to each other are of about one size.
            average = read // len(samples) + 1
            step = max(1, min(1024, 2 * step, min(_READ, size) // average))


def _spare(path: str) -> None:
    """What is no regular file, in use, or holds an image, is replaced by no file."""
    try:
        _stele.backing_check(os.fsencode(path))
    except Error as error:
        if error.errno not in _SPARED:
            raise
        spared = ExistsError(errno.EEXIST, str(error))
        spared.add_note(_SPARED[error.errno])
        raise spared from None
    if os.path.isdir(path) and not os.path.islink(path):
        directory = ExistsError(errno.EEXIST, f"cannot replace '{path}': it is a directory")
        directory.add_note(_IN_IT)
        raise directory
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        other = ExistsError(errno.EEXIST, f"cannot replace '{path}': it is not a regular file")
        other.add_note(_OTHER)
        raise other


def _exists(path: str) -> FileExistsError:
    error = FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    error.add_note(_FORCE)
    return error


def _link(part: str, path: str) -> None:
    """Give it its name, unless somebody else has."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise _exists(path) from None


def _sync(directory: str) -> None:
    """A new name is to be as durable as what is written; one that cannot be read has to do."""
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EROFS):
            raise
    finally:
        os.close(fd)


def export(
    source: Target | Dataset,
    path: Target,
    *,
    row_group_size: int = 64 << 20,
    compression: str = "zstd",
    force: bool = False,
) -> int:
    """Write all samples, in the order of ids, as a Parquet file, named when it is whole.

    Args:
        row_group_size: about how many bytes of samples a row group, and memory, holds.
        compression: of pyarrow: 'zstd', 'snappy', 'none', ...
        force: replace a file that exists.

    Returns:
        How many rows there are.

    Raises:
        FileExistsError: path exists, and force is false; stele.ExistsError: it is not a regular
            file, holds an image, is under a loop device, or has an EROFS mounted from it: no
            force replaces that.
        ValueError: a field, key or sample that Parquet cannot have.
    """
    positive("row_group_size", row_group_size, 64)
    path = os.fsdecode(path)
    data = dataset(source)
    rows = _Rows(data)
    _spare(path)
    if not force and os.path.lexists(path):
        raise _exists(path)
    part = f"{path}.{secrets.token_hex(4)}.part"
    try:
        with open(part, "xb") as file:
            with pyarrow.parquet.ParquetWriter(file, rows.schema, compression=compression) as to:
                rows.write(to, row_group_size)
            file.flush()
            os.fsync(file.fileno())
        if force:
            _spare(path)
            os.replace(part, path)
        else:
            _link(part, path)
        _sync(os.path.dirname(path) or ".")
    except OSError as error:
        if not isinstance(error, Error) and error.filename in (None, part):
            error.filename = path  # the name that is known to who asked
        raise
    finally:
        if os.path.exists(part):
            os.unlink(part)
    return len(data)


def _status(error: BaseException) -> int:
    if not isinstance(error, Error):
        return FAILED
    if error.errno in _DAMAGES:
        return DAMAGED
    return USAGE if error.errno == errno.EINVAL else FAILED


def main() -> int:
    parser = argparse.ArgumentParser(prog="python3 -m stele.parquet", allow_abbrev=False)
    verbs = parser.add_subparsers(required=True, metavar="export")
    verb = verbs.add_parser("export", help="write a snapshot as a Parquet file", allow_abbrev=False)
    verb.add_argument("target", metavar="TARGET[@SNAPSHOT]")
    verb.add_argument("file", metavar="FILE")
    verb.add_argument("-f", "--force", action="store_true", help="replace an existing FILE")
    options = parser.parse_args()
    if options.file in ("", "-"):
        return _COMMAND.misuse(_NO_FILE[options.file])
    try:
        count = export(options.target, options.file, force=options.force)
    except (Error, OSError, ValueError) as error:
        _COMMAND.say(error)
        return _status(error)
    print(f"{count:,} samples in '{options.file}'")
    return 0


if __name__ == "__main__":
    sys.exit(_COMMAND.run(main))
