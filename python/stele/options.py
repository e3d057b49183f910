# SPDX-License-Identifier: Apache-2.0
"""Options of those who write, as the extension takes them."""

from __future__ import annotations

from typing import Any, Literal, TypedDict
from uuid import UUID

DRY_RUN, FORCE = 1, 2

_ORDERS = {"size": 0, "source": 1}


class Layout(TypedDict, total=False):
    """How samples are written. 0: what suits the target."""

    memory_size: int
    """Bytes of memory to use."""
    granule: int
    """Slots are multiples of it: 16, 64, 512 or 4096 bytes."""
    order: Literal["size", "source"]
    """Of samples: by size, which keeps the index small, or as they come."""
    jobs: int
    """Threads."""
    boundary: int
    """No sample crosses a multiple of it; 1: of nothing."""


def text(value: str | None) -> bytes | None:
    return None if value is None else value.encode("utf-8", "surrogateescape")


def uuid_bytes(uuid: UUID | bytes | None) -> bytes | None:
    return uuid.bytes if isinstance(uuid, UUID) else uuid


def layout_options(layout: Layout) -> dict[str, Any]:
    """As the library takes them."""
    options: dict[str, Any] = dict(layout)
    if "order" in options:
        options["order"] = choice("order", options["order"], _ORDERS)
    unknown = set(options) - set(Layout.__annotations__)
    if unknown:
        raise TypeError(f"there is no option {unknown.pop()!r}")
    return options


def choice(name: str, value: object, choices: dict[str, int]) -> int:
    if isinstance(value, str) and value in choices:
        return choices[value]
    raise ValueError(f"{name} is one of {', '.join(map(repr, choices))}, not {value!r}")


def flags(*pairs: tuple[bool, int]) -> int:
    return sum(flag for given, flag in pairs if given)
