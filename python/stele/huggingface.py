# SPDX-License-Identifier: Apache-2.0
"""For Hugging Face datasets: an IterableDataset.

    ds = stele.huggingface.iterable("/dev/vdb@v1", shards=64)
    ds = ds.shuffle(seed=1).map(decode)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import datasets

from . import _stele
from .dataset import Dataset, Target
from .options import positive
from .rows import Row, dataset, ids, ranges

_CHUNK = 64  # samples in one submission


def _rows(
    data: Dataset,
    transform: Callable[[_stele.Sample], dict[str, Any]],
    seed: int | None,
    shards: list[tuple[int, int]],
) -> Iterator[dict[str, Any]]:
    for first, end in shards:
        for at in range(first, end, _CHUNK):
            until = min(at + _CHUNK, end)
            which = ids(len(data), seed is not None, seed or 0, 0, at, until)
            yield from map(transform, data[which])


def iterable(
    source: Target | Dataset,
    transform: Callable[[_stele.Sample], dict[str, Any]] | None = None,
    *,
    shards: int = 128,
    shuffle: int | None = None,
    features: datasets.Features | None = None,
) -> datasets.IterableDataset:
    """Rows with 'key' and all fields, or what transform makes of each stele.Sample.

    Args:
        shards: what is divided among ranks and workers, and mixed by shuffle(); a multiple of
            ranks * workers. They are ranges of an order: their number costs nothing.
        shuffle: a seed of a uniform permutation, which the shards are parts of; None: by id.
    """
    data = dataset(source)
    options = {
        "data": data,
        "transform": transform or Row(data),
        "seed": shuffle,
        "shards": ranges(len(data), positive("shards", shards)),
    }
    return datasets.IterableDataset.from_generator(_rows, features, options)
