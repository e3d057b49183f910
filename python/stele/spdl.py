# SPDX-License-Identifier: Apache-2.0
"""For SPDL: a source of batches of indices, and a function that reads them.

    source, read = stele.spdl.stages("/dev/vdb@v1", batch_size=256)
    pipeline = (PipelineBuilder().add_source(source).pipe(read, concurrency=4)
                .pipe(decode, concurrency=8).add_sink(2).build(num_threads=12))
"""

from __future__ import annotations

from collections.abc import Iterator

from . import _stele
from .dataset import Dataset, Target
from .loader import check_rank
from .options import positive
from .rows import dataset, ids


class Batches:
    """Lists of indices, of one rank, in an order that shuffle(seed) changes.

    All ranks have as many, and of one length: the last ones are filled up with indices from the
    beginning of the order. A rank that is alone has a shorter one instead.
    """

    def __init__(self, count: int, batch_size: int, rank: int = 0, world_size: int = 1) -> None:
        check_rank(rank, world_size)
        self._count, self._batch = count, positive("batch_size", batch_size)
        self._rank, self._world = rank, world_size
        self._seed: int | None = None

    def shuffle(self, seed: int) -> None:
        """The next iteration has the order of this seed."""
        self._seed = seed

    def __len__(self) -> int:
        return -(-self._count // (self._world * self._batch))

    def __iter__(self) -> Iterator[list[int]]:
        shuffle, seed = self._seed is not None, self._seed or 0
        step = self._world * self._batch
        for at in range(self._rank * self._batch, len(self) * step, step):
            end = at + self._batch if self._world > 1 else min(at + self._batch, self._count)
            found: list[int] = []
            while at < end:
                first = at % self._count
                until = min(first + end - at, self._count)
                found += ids(self._count, shuffle, seed, 0, first, until)
                at += until - first
            yield found


class Read:
    """Indices to samples; the GIL is released while it waits."""

    def __init__(self, data: Dataset) -> None:
        self.data = data

    def __call__(self, indices: list[int]) -> list[_stele.Sample]:
        return self.data[indices]


def stages(
    source: Target | Dataset, batch_size: int, rank: int = 0, world_size: int = 1
) -> tuple[Batches, Read]:
    """A source for add_source() and a function for pipe()."""
    data = dataset(source)
    return Batches(len(data), batch_size, rank, world_size), Read(data)
