# SPDX-License-Identifier: Apache-2.0
"""For Grain: a random access data source.

    grain.MapDataset.source(stele.grain.Source("/dev/vdb@v1")).shuffle(seed=1).map(decode).batch(256)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import _stele
from .dataset import Dataset, Target
from .rows import Row, dataset


class Source:
    """Samples by index, as dicts or what transform makes of each stele.Sample.

    In the dicts, bytes are arrays of uint8: of bytes, batch() would make NumPy's strings, which
    lose zeros at their end. Those of different sizes become of one size in a map() before it.

    Grain's threads call it one by one, and their reads go out together. Its repr names
    the snapshot's digest, by which Grain's checkpoints know it again.
    """

    def __init__(
        self,
        source: Target | Dataset,
        transform: Callable[[_stele.Sample], Any] | None = None,
    ) -> None:
        self.data = dataset(source)
        self.transform = transform or Row(self.data, arrays=True)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Any:
        return self.transform(self.data[int(index)])

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        if type(self).__getitem__ is not Source.__getitem__:
            return [self[index] for index in indices]  # what a subclass makes of them
        return [self.transform(sample) for sample in self.data[list(indices)]]

    _getitems = __getitems__

    def __repr__(self) -> str:
        return f"stele.grain.Source({self.data!r})"
