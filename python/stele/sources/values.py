# SPDX-License-Identifier: Apache-2.0
"""Columns of Arrow as fields: which type, and the values that a Writer takes."""

from __future__ import annotations

import base64
import json
import math
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy
import pyarrow
import pyarrow.types as kind

from ..dataset import DTYPES, Field
from ..progress import log
from .source import QUIET, SOME, SourceError

Convert = Callable[[Any], Any]
"""Of an array, a sequence of values."""

_FILES = {"Image", "Audio", "Video", "Pdf"}  # features: structs of bytes and path


def features_of(schema: Any) -> dict[str, Any]:
    """What Hugging Face says of columns."""
    try:
        found = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        return dict(found["info"]["features"])
    except (ValueError, KeyError, TypeError):
        return {}


def kinds_of(schema: Any) -> dict[str, Field]:
    """The fields of all columns."""
    features = features_of(schema)
    names = schema.names
    for name in names:
        if names.count(name) > 1:
            raise SourceError(f"there are {names.count(name)} columns with the name '{name}'")
    for name in names:
        lost = _feature(features.get(name)) != "ClassLabel" and _names_within(features.get(name))
        if lost:
            log(2, f"column '{name}' has lists of classes: their numbers stay, and the names, "
                f"{', '.join(map(repr, lost[:3]))}{', ...' if lost[3:] else ''}, do not")  # fmt: skip
    return {f.name: _field(f, features.get(f.name)) for f in schema}


def units_of(schema: Any) -> dict[str, str]:
    """What columns of dates and times count in."""
    found = {field.name: plain(field.type) for field in schema}
    return {
        name: f"timestamp[{type.unit}]" if kind.is_timestamp(type) else str(type)
        for name, type in found.items()
        if kind.is_temporal(type) and is_int(type)
    }


def _feature(feature: Any) -> str:
    return str(feature.get("_type", "")) if isinstance(feature, dict) else ""


def _names_within(feature: Any) -> list[str]:
    """Of a ClassLabel in lists or structs, of which no field can have them."""
    if _feature(feature) == "ClassLabel":
        names = feature.get("names")
        return [*map(str, names)] if isinstance(names, list) else []
    inner = feature.values() if isinstance(feature, dict) else feature
    if not isinstance(feature, (dict, list)):
        return []
    return next(filter(None, map(_names_within, inner)), [])


def _classes(field: Any, feature: Any) -> tuple[str, ...]:
    names: Any = ()
    if _feature(feature) == "ClassLabel":
        names = feature.get("names") or ()
    elif field.metadata and b"stele:classes" in field.metadata:
        try:
            names = json.loads(field.metadata[b"stele:classes"])
        except ValueError:
            names = ()
    if isinstance(names, list) and names and all(isinstance(n, str) for n in names):
        return tuple(names)
    return ()


def plain(type: Any) -> Any:
    """Without dictionaries and extensions."""
    while True:
        if isinstance(type, pyarrow.BaseExtensionType):
            type = type.storage_type
        elif kind.is_dictionary(type) or kind.is_run_end_encoded(type):
            type = type.value_type
        else:
            return type


def is_int(type: Any) -> bool:
    """What an int holds."""
    return bool(kind.is_integer(type) or kind.is_boolean(type) or kind.is_temporal(type)) and not (
        kind.is_interval(type)
    )


def is_text(type: Any) -> bool:
    return bool(kind.is_string(type) or kind.is_large_string(type) or kind.is_string_view(type))


def is_bytes(type: Any) -> bool:
    return bool(
        kind.is_binary(type) or kind.is_large_binary(type) or kind.is_fixed_size_binary(type)
        or kind.is_binary_view(type)
    )  # fmt: skip


def _dtype(type: Any) -> str:
    """Of tensors; '': none."""
    if not (kind.is_integer(type) or kind.is_floating(type) or kind.is_boolean(type)):
        return ""
    name = "bool" if kind.is_boolean(type) else str(numpy.dtype(type.to_pandas_dtype()))
    return name if name in DTYPES else ""


def _is_list(type: Any) -> bool:
    return bool(kind.is_list(type) or kind.is_large_list(type))


def _shape(type: Any, feature: Any) -> tuple[str, tuple[int | None, ...]]:
    """dtype and shape of lists of numbers; '': it is none."""
    if isinstance(type, pyarrow.BaseExtensionType) and hasattr(type, "shape"):
        inner = type.storage_type
        while _is_list(inner) or kind.is_fixed_size_list(inner):
            inner = inner.value_type
        permuted = getattr(type, "permutation", None)
        if not permuted or list(permuted) == sorted(permuted):
            return _dtype(inner), tuple(type.shape)
    type = plain(type)
    shape: list[int | None] = []
    if _feature(feature).startswith("Array") and "shape" in feature:
        shape = list(feature["shape"])
        while _is_list(type) or kind.is_fixed_size_list(type):
            type = type.value_type
    else:
        if _is_list(type):
            shape, type = [None], type.value_type
        while kind.is_fixed_size_list(type):
            shape.append(type.list_size)
            type = type.value_type
    possible = 0 < len(shape) <= 8 and None not in shape[1:] and 0 not in shape
    return (_dtype(type) if possible else ""), tuple(shape)


def is_media(type: Any, feature: Any) -> bool:
    """A struct of the bytes of a file, or its path."""
    return kind.is_struct(type) and (
        _feature(feature) in _FILES
        or {type.field(i).name for i in range(type.num_fields)} == {"bytes", "path"}
    )


def _field(field: Any, feature: Any) -> Field:
    type = plain(field.type)
    dtype, shape = _shape(field.type, feature)
    if dtype:
        return Field(field.name, "tensor", (), dtype, shape)
    name = "str"  # null, decimals, structs, maps, lists of lists, ...
    if is_int(type):
        name = "int"
    elif kind.is_floating(type):
        name = "float"
    elif is_bytes(type) or is_media(type, feature):
        name = "bytes"
    return Field(field.name, name, _classes(field, feature) if name == "int" else (), "", ())


# ---- values ----------------------------------------------------------------------


def _storage(array: Any) -> Any:
    """Without dictionaries and extensions."""
    while True:
        if isinstance(array, pyarrow.ExtensionArray):
            array = array.storage
        elif kind.is_dictionary(array.type):
            array = array.dictionary_decode()
        elif kind.is_run_end_encoded(array.type):
            array = pyarrow.compute.run_end_decode(array)
        else:
            return array


def _ints(array: Any) -> Any:
    """As int64, or as uint64 where they are that."""
    if kind.is_uint64(array.type):
        return array
    if kind.is_date32(array.type) or kind.is_time32(array.type):
        array = array.cast(pyarrow.int32())
    return array.cast(pyarrow.int64())


def _to_int(name: str, classes: bool) -> Convert:
    def convert(array: Any) -> Any:
        array = _ints(_storage(array))
        if array.null_count and not classes:
            raise SourceError(
                f"column '{name}' has nulls, and its field is an int",
                "put a number in their place, or build a new image, where the field is a float",
            )
        return array.fill_null(-1).to_pylist() if array.null_count else array.to_pylist()

    return convert


def _to_float(name: str) -> Convert:
    def convert(array: Any) -> Any:
        array = _storage(array)
        if is_int(array.type):
            try:
                array = _ints(array).cast(pyarrow.float64())
            except pyarrow.ArrowInvalid:
                raise SourceError(
                    f"column '{name}' has nulls, and integers beyond 2^53, which no float holds",
                    SOME,
                ) from None
        values = array.cast(pyarrow.float64())
        return (values.fill_null(math.nan) if values.null_count else values).to_pylist()

    return convert


def _json(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _to_text(array: Any) -> Any:
    array = _storage(array)
    values = array.to_pylist()
    if is_text(array.type) or kind.is_null(array.type):
        return ["" if value is None else value for value in values]
    if kind.is_decimal(array.type):
        return ["" if value is None else format(value, "f") for value in values]
    return [
        "" if v is None else json.dumps(v, default=_json, ensure_ascii=False) for v in values
    ]


def _file(value: Any) -> bytes:
    if value is None:
        return b""
    if value.get("bytes") is not None:
        return bytes(value["bytes"])
    if not value.get("path"):
        return b""
    with open(value["path"], "rb") as file:
        seen = os.fstat(file.fileno())
        found = file.read()
        now = os.fstat(file.fileno())
    if (seen.st_size, seen.st_mtime_ns) != (now.st_size, now.st_mtime_ns):
        raise SourceError(f"'{value['path']}' changed while it was read", QUIET)
    return found


def _to_bytes(array: Any) -> Any:
    array = _storage(array)
    if kind.is_struct(array.type):
        return [_file(value) for value in array.to_pylist()]
    return [b"" if value is None else value for value in array.to_pylist()]


def _numbers(array: Any, name: str) -> Any:
    """Elements as NumPy has them."""
    if array.null_count:
        if not kind.is_floating(array.type):
            raise SourceError(f"column '{name}' has nulls among the numbers of its lists", SOME)
        return array.to_numpy(zero_copy_only=False)
    return array.to_numpy(zero_copy_only=False)


def _inner(array: Any, dims: tuple[int | None, ...], name: str) -> Any:
    """Elements of lists that all have these lengths."""
    for dim in dims:
        if array.null_count:
            raise SourceError(f"column '{name}' has nulls in the place of arrays", SOME)
        if kind.is_fixed_size_list(array.type):
            size = array.type.list_size
            array = array.values.slice(array.offset * size, len(array) * size)
        else:
            ends = array.offsets.to_numpy()
            if not numpy.all(numpy.diff(ends) == dim):
                raise SourceError(f"column '{name}' has arrays of other shapes than {dims}", SOME)
            array = array.values.slice(int(ends[0]), int(ends[-1] - ends[0]))
    return _numbers(array, name)


def _to_tensors(field: Field) -> Convert:
    name, dims = field.name, tuple(dim or 0 for dim in field.shape[1:])

    def scalars(array: Any) -> Any:
        return list(_numbers(_storage(array), name).astype(field.dtype))

    def fixed(array: Any) -> Any:
        array = _storage(array)
        shape = field.shape
        if kind.is_fixed_size_list(array.type) and _dtype(array.type.value_type):
            shape = (array.type.list_size,)  # a FixedShapeTensor: one list of all dimensions
        return list(_inner(array, shape, name).reshape(len(array), *field.shape))

    def lists(array: Any) -> Any:
        array = _storage(array)
        if not len(array):
            return []
        if kind.is_fixed_size_list(array.type):
            size = array.type.list_size
            return list(_inner(array, (size, *dims), name).reshape(len(array), size, *dims))
        ends = array.offsets.to_numpy()
        first = int(ends[0])
        elements = array.values.slice(first, int(ends[-1]) - first)
        flat = _inner(elements, dims, name).reshape(len(elements), *dims)
        valid = array.is_valid().to_pylist()
        empty = flat[:0]
        return [
            flat[a - first : b - first] if v else empty
            for a, b, v in zip(ends, ends[1:], valid, strict=False)
        ]

    return scalars if not field.shape else fixed if field.shape[0] is not None else lists


def converter(field: Field) -> Convert:
    """What makes the values of a field from an array of its column."""
    if field.type == "tensor":
        return _to_tensors(field)
    return {
        "int": _to_int(field.name, bool(field.classes)),
        "float": _to_float(field.name),
        "str": _to_text,
        "bytes": _to_bytes,
    }[field.type]


def keys_of(field: Field) -> Convert:
    """What makes keys from an array of their column; None: there is no value."""
    if field.type == "int":
        return lambda array: _ints(_storage(array)).to_pylist()
    values = converter(field)

    def convert(array: Any) -> Any:
        valid = _storage(array).is_valid().to_pylist()
        return [v if is_one else None for v, is_one in zip(values(array), valid, strict=True)]

    return convert


class Span(NamedTuple):
    """Of a column of integers: how many are null, the others and 0 are from ... to."""

    nulls: int = 0
    least: int = 0
    largest: int = 0


def adapt(kinds: Mapping[str, Field], scans: Mapping[str, Span]) -> dict[str, Field]:
    """Types that hold all values of columns of integers."""
    found = dict(kinds)
    for name, span in scans.items():
        if span.nulls and max(span.largest, -span.least) > 1 << 53:
            raise SourceError(
                f"column '{name}' has nulls ({span.nulls:,}), and integers beyond 2^53, which "
                "no float holds",
                SOME,
            )
        if span.nulls:
            found[name] = found[name]._replace(type="float")
        elif span.largest >= 1 << 63:
            found[name] = Field(name, "tensor", (), "uint64", ())
    return found
