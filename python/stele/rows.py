# SPDX-License-Identifier: Apache-2.0
"""What the adapters of other libraries share: samples as plain rows, ranges of them, orders."""

from __future__ import annotations

from typing import Any

from . import _stele
from .dataset import Dataset, Target
from .dataset import open as open_target
from .loader import _SHUFFLE, Shuffle, _choice


def dataset(source: Target | Dataset) -> Dataset:
    """Opened, unless it is already."""
    return source if isinstance(source, Dataset) else open_target(source)


def check_names(data: Dataset) -> None:
    """ValueError: a field would hide the keys."""
    if "key" in data.fields:
        raise ValueError("field 'key' has the name of the column of keys")


def _array(value: Any) -> Any:
    import numpy  # which bytes do without

    return numpy.frombuffer(bytearray(value), numpy.uint8)


class Row:
    """A sample as a dict that can leave its process: 'key', and its fields.

    Bytes are copied, tensors into NumPy arrays; with arrays=True bytes, too, as uint8.
    """

    def __init__(self, data: Dataset, *, arrays: bool = False) -> None:
        check_names(data)
        self.kinds = {name: field.type for name, field in data.fields.items()}
        self.bytes = _array if arrays else bytes

    def __call__(self, sample: _stele.Sample) -> dict[str, Any]:
        row: dict[str, Any] = {"key": sample.key}
        for name, kind in self.kinds.items():
            value: Any = sample[name]
            if isinstance(value, _stele.Tensor):
                row[name] = value.numpy().copy()
            else:
                row[name] = self.bytes(value) if kind == "bytes" else value
        return row


def ranges(count: int, parts: int) -> list[tuple[int, int]]:
    """First and last + 1 of parts that differ by one at most; none is empty."""
    parts = max(1, min(parts, count))
    ends = [count * part // parts for part in range(parts + 1)]
    return list(zip(ends, ends[1:], strict=False))


def ids(count: int, shuffle: Shuffle, seed: int, epoch: int, first: int, end: int) -> list[int]:
    """The indices at positions of an order."""
    order = _stele.Shuffle(count, seed, epoch, _choice("shuffle", shuffle, _SHUFFLE), 0, 0)
    return memoryview(order.take(first, 1, end - first)).cast("Q").tolist()
