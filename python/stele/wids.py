# SPDX-License-Identifier: Apache-2.0
"""In the place of wids: random access to samples as dicts by extension.

    ds = stele.wids.ShardListDataset("/dev/vdb@v1")
    ds[7]  # {'__key__': 'train/n01/x', '__index__': 7, '.jpg': <_io.BytesIO>, 'label': 3}
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

from . import _stele
from .dataset import Dataset, Target, listed
from .rows import dataset


class ShardListDataset:
    """Samples whose keys are paths, without shards.

    One field of bytes has the extension of the key; where the key has none, and of several
    fields, each has its name as one.

    Args:
        transformations: a function of the dict, or several; wids' own ones work.
    """

    def __init__(
        self,
        source: Target | Dataset,
        *,
        transformations: Callable[[Any], Any] | Sequence[Callable[[Any], Any]] = (),
    ) -> None:
        self.data = dataset(source)
        many = isinstance(transformations, Sequence)
        self.transformations = list(transformations) if many else [transformations]  # type: ignore[arg-type,list-item]
        fields = self.data.fields.items()
        self._names = [name for name, field in fields if field.type != "bytes"]
        self._blobs = [name for name, field in fields if field.type == "bytes"]

    def add_transform(self, transform: Callable[[Any], Any]) -> ShardListDataset:
        """One more, after the others."""
        self.transformations.append(transform)
        return self

    def __len__(self) -> int:
        return len(self.data)

    def _dict(self, index: int, sample: _stele.Sample) -> Any:
        directory, slash, name = sample.key.rpartition("/")
        if len(self._blobs) == 1:
            name, dot, extension = name.partition(".")
            blobs = {"." + (extension if dot else self._blobs[0]): self._blobs[0]}
        else:
            blobs = {"." + blob: blob for blob in self._blobs}
        found: Any = {"__key__": directory + slash + name, "__index__": index}
        found.update((name, sample[name]) for name in self._names)
        found.update((end, io.BytesIO(sample[blob])) for end, blob in blobs.items())
        for transform in self.transformations:
            found = transform(found)
        return found

    def __getitem__(self, index: int) -> Any:
        index = range(len(self))[index]
        return self._dict(index, self.data[index])

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        indices = listed(indices)
        if type(self).__getitem__ is not ShardListDataset.__getitem__:
            return [self[index] for index in indices]  # what a subclass makes of them
        read = self.data[indices]
        return [self._dict(index, s) for index, s in zip(indices, read, strict=True)]
