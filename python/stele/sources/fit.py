# SPDX-License-Identifier: Apache-2.0
"""Columns as the fields of an image that is there: which fit, and what helps those that do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..dataset import Field
from .source import SOME, TAKES, SourceError, classes_differ, describe

_CLASSES = 4  # of an image, that a hint names


def field_name(column: str) -> str:
    """Of a column, as of `stele build`: other bytes become '_'."""
    return "".join(
        chr(byte) if byte < 128 and chr(byte).isalnum() or at and byte in b".-" else "_"
        for at, byte in enumerate(column.encode())
    )


def _fitting(mine: Field, theirs: Field) -> bool:
    """Can values of a column be those of a field that is there?"""
    if mine == theirs or mine.type == "int" and (mine.type, theirs.type) == ("int", "float"):
        return not mine.classes or mine == theirs
    if mine.type == theirs.type == "int":
        return not mine.classes
    if mine.type == "int" and theirs.type == "tensor":
        return theirs.dtype == "uint64" and not theirs.shape
    return (
        mine.type == theirs.type == "tensor"
        and (mine.dtype, mine.shape[1:]) == (theirs.dtype, theirs.shape[1:])
        and theirs.shape[:1] == (None,)
    )


def _classes(field: Field) -> str:
    """Names and numbers, the first ones of many."""
    named = [f"{number} is '{name}'" for number, name in enumerate(field.classes[:_CLASSES])]
    return ", ".join(named + ["..."] * (len(field.classes) > _CLASSES))


def _kind(field: Field) -> str:
    """What a column has to hold."""
    return f"numbers of its classes ({_classes(field)})" if field.classes else describe(field)


def _remedy(mine: Field, theirs: Field) -> str:
    """What to do about a column that does not fit."""
    new = [name for name in mine.classes if name not in theirs.classes]
    if theirs.classes and new:
        return f"the image has no class '{new[0]}', and gets none this way: build a new image"
    if theirs.classes and mine.classes:
        return (
            f"number the classes of the column as the image does ({_classes(theirs)}), as "
            "align_labels_with_mapping() of Hugging Face does, or build a new image"
        )
    return f"make it a column of {_kind(theirs)}, or build a new image"


def _lacks(field: Field, taken: bool) -> SourceError:
    """The image has a field that is none of the columns; taken: there is one of that name."""
    name = field.name
    if taken:
        return SourceError(
            f"the image has a field '{name}', and column '{name}' is not taken as one", TAKES
        )
    return SourceError(
        f"the image has a field '{name}', which the source lacks",
        f"add a column '{name}' of {_kind(field)} to the source, or build a new image",
    )


def as_base(
    found: Mapping[str, Field], base: Mapping[str, Field], columns: Iterable[str]
) -> dict[str, Field]:
    """The fields of an image that is there, which a snapshot more has to have.

    found: what becomes of the columns that are taken; columns: all that the source has.
    """
    names = {*map(field_name, columns)}
    for name, field in base.items():
        if name not in found:
            raise _lacks(field, name in names)
    for name, mine in found.items():
        if name not in base:
            raise SourceError(
                f"the image has no field '{name}', which is a column of the source: it has "
                f"{', '.join(map(repr, base))}",
                SOME,
            )
        if not _fitting(mine, base[name]):
            raise SourceError(
                f"column '{name}' is {describe(mine)}, and the field of the image "
                f"{describe(base[name])}{classes_differ(mine, base[name])}",
                _remedy(mine, base[name]),
            )
    return {**base}
