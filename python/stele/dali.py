# SPDX-License-Identifier: Apache-2.0
"""For DALI: what fn.external_source calls.

    jpegs, labels = fn.external_source(
        stele.dali.Source("/dev/vdb@v1", 256, seed=1), num_outputs=2, batch_info=True)
"""

from __future__ import annotations

from typing import Any

import numpy

from .dataset import Dataset, Target
from .loader import Shuffle, check_rank
from .options import positive
from .rows import dataset, ids


class Source:
    """A function of BatchInfo, as parallel=True needs it; raises StopIteration at the end.

    Returns lists of one uint8 array for each sample, and of the values of label, an int
    field; None: bytes alone. The arrays are views of memory that lives as long as they do.

    Args:
        field: the one of bytes; None: all of the sample, in which several fields are joined.
        rank, world_size: this rank's share: every world_size-th batch that is whole.
    """

    def __init__(
        self,
        source: Target | Dataset,
        batch_size: int,
        *,
        field: str | None = None,
        label: str | None = "label",
        shuffle: Shuffle = True,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        check_rank(rank, world_size)
        positive("batch_size", batch_size)
        self.data = dataset(source)
        self.batch_size, self.field, self.label = batch_size, field, label
        self.shuffle: Shuffle = shuffle
        self.seed = seed
        self.rank, self.world_size = rank, world_size

    def __len__(self) -> int:
        return len(self.data) // (self.batch_size * self.world_size)

    def __call__(self, info: Any) -> Any:
        if not hasattr(info, "epoch_idx") or hasattr(info, "idx_in_batch"):
            kind = type(info).__name__
            raise TypeError(f"not called with a BatchInfo, but {kind}: external_source needs batch_info=True")
        if info.iteration >= len(self):
            raise StopIteration
        first = (info.iteration * self.world_size + self.rank) * self.batch_size
        which = ids(len(self.data), self.shuffle, self.seed, info.epoch_idx,
                    first, first + self.batch_size)  # fmt: skip
        samples = self.data[which]
        if self.field is None:
            arrays = [sample.numpy() for sample in samples]
        else:
            arrays = [numpy.asarray(sample[self.field]) for sample in samples]
        if self.label is None:
            return arrays
        return arrays, [numpy.array([s[self.label]], dtype=numpy.int64) for s in samples]
