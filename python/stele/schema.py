# SPDX-License-Identifier: Apache-2.0
"""What fields samples have, when they are written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

from . import _stele
from .dataset import DTYPES, TYPES, Field, field_of
from .errors import short
from .options import number, text

Kind = type[bytes] | type[str] | type[int] | type[float] | Sequence[str] | Field
"""bytes, str, int, float; names of classes, for an int; or tensor()."""
Schema = Mapping[str, Kind]

Column = tuple[str, int, int, tuple[int, ...], tuple[bytes, ...], dict[str, int] | None]

_NAME = re.compile("[A-Za-z0-9_][A-Za-z0-9._-]{0,62}")
_NUMBERS = {name: number for number, name in TYPES.items()}
_KINDS = {bytes: "bytes", str: "str", int: "int", float: "float"}
_FORMATS = {
    **dict.fromkeys("bhilqn", "int"),
    **dict.fromkeys("BHILQN", "uint"),
    **dict.fromkeys("efd", "float"),
    "Z": "complex",
}


def _in_native_order(dtype: Any) -> str:
    """What to do with NumPy's types of the other byte order; '': it is not one."""
    if getattr(dtype, "isnative", True):
        return ""
    return f": big-endian, convert it with astype({dtype.newbyteorder('=').name!r})"


def tensor(dtype: str, shape: Sequence[int | None]) -> Field:
    """The field of a schema that holds arrays.

    Args:
        dtype: 'uint8', 'float32', 'bfloat16', 'bool', 'complex64', ... What put() takes for
            bfloat16, which NumPy does not have, are its bits: uint16, as of
            x.view(torch.uint16). They are not converted.
        shape: up to 8 dimensions. The first may be None: it differs from sample to sample.
    """
    if dtype not in DTYPES[1:]:
        raise ValueError(
            f"dtype is one of {', '.join(DTYPES[1:])}, not {dtype!r}{_in_native_order(dtype)}"
        )
    if isinstance(shape, str) or not hasattr(shape, "__iter__"):
        raise TypeError(f"shape must be a tuple of int and None, not {shape!r}")
    dims = tuple(None if dim is None else number("a dimension", dim) for dim in shape)
    if None in dims[1:]:
        raise ValueError(f"shape {dims}: only the first dimension may differ")
    if 0 in dims:
        raise ValueError(f"shape {dims}: a dimension is at least 1")
    return Field("", "tensor", (), str(dtype), dims)


def fields_of(schema: Any) -> dict[str, Field]:
    """The fields that a Schema stands for."""
    names: list[Any] = [*schema.keys()] if hasattr(schema, "keys") else [None]
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"a schema is a dict of fields by name, {{'data': bytes}}, not {schema!r}")
    if not names:
        raise ValueError("a schema has at least one field")
    return {name: _field(name, schema[name]) for name in names}


def _field(name: str, kind: Any) -> Field:
    if isinstance(kind, Field):
        return field_of(kind._replace(name=name))
    if isinstance(kind, type) and kind in _KINDS:
        return Field(name, _KINDS[kind], (), "", ())
    if isinstance(kind, Sequence) and not isinstance(kind, (str, bytes)):
        classes = tuple(cast(Sequence[object], kind))
        if classes and all(isinstance(entry, str) for entry in classes):
            return Field(name, "int", cast(tuple[str, ...], classes), "", ())
    raise TypeError(
        f"field {name!r} is bytes, str, int, float, a list of class names, or stele.tensor(), "
        f"not {kind!r}"
    )


def columns(fields: Mapping[str, Field]) -> tuple[Column, ...]:
    """Fields as the extension takes them."""
    for name in fields:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"field {short(name)}: a name is 1 to 63 letters, digits, '.', '_' and '-', the "
                "first no '.' or '-'"
            )
    return tuple(
        (
            name,
            _NUMBERS[field.type],
            DTYPES.index(field.dtype),
            tuple(dim or 0 for dim in field.shape),
            tuple(text(f"field {name!r}: class", entry) for entry in field.classes),
            _values(field),
        )
        for name, field in fields.items()
    )


def _values(field: Field) -> dict[str, int] | None:
    values = {name: value for value, name in enumerate(field.classes)}
    if len(values) != len(field.classes):
        raise ValueError(f"field {field.name!r}: a class is named twice")
    return values or None


def _array(view: Any) -> Field:
    """The field of an array; its first dimension may differ in other samples."""
    format: str = view.format.lstrip("@=<")
    shape: tuple[int, ...] = view.shape
    kind = _FORMATS.get(format[:1])
    dtype = "bool" if format == "?" else f"{kind}{view.itemsize * 8}"
    return tensor(dtype, (None, *shape[1:]) if shape else ())


def _is_bytes(value: object) -> bool:
    return isinstance(value, memoryview) and (value.ndim, value.format) == (1, "B")


def _scalar(value: Any) -> str:
    """The type of a field for what is no array; '': it may be one."""
    if isinstance(value, str):
        return "str"
    if isinstance(value, (bytes, bytearray, _stele.Sample)):
        return "bytes"
    if _is_bytes(value):
        return "bytes"
    if isinstance(value, int):
        return "int"
    if isinstance(value, float):
        return "float"
    if hasattr(value, "dtype") and getattr(value, "ndim", None) == 0:
        return "float" if "float" in str(value.dtype) else "int"
    return ""


def _guess(name: str, value: Any) -> Field:
    kind = _scalar(value)
    if kind:
        return Field(name, kind, (), "", ())
    what, hint = f"{type(value)}", ""
    array = getattr(value, "__array__", None)
    try:
        value = array() if array else value
    except Exception as error:
        raise TypeError(f"field {name!r}: {what} gives no array: {error}") from error
    try:
        if array:
            what = f"an array of {value.dtype!r}, shape {value.shape}"
            hint = _in_native_order(value.dtype)
        return _array(memoryview(value))._replace(name=name)
    except (TypeError, BufferError, ValueError):
        raise TypeError(f"field {name!r}: no type of fields fits {what}{hint}") from None


def guess(sample: Mapping[str, Any]) -> dict[str, Field]:
    """The fields that a sample seems to have."""
    fields = {name: _guess(name, value) for name, value in sample.items()}
    return fields_of(fields)
