# SPDX-License-Identifier: Apache-2.0
"""For TensorFlow: a tf.data.Dataset.

    ds = stele.tf.dataset("/dev/vdb@v1", batch_size=256, seed=1).unbatch().map(decode)
"""

from __future__ import annotations

from typing import Any

import numpy
import tensorflow

from . import _stele
from .dataset import Dataset, Target
from .dataset import open as open_target
from .loader import _SHUFFLE, Shuffle, _choice
from .options import positive

_KINDS = {"int": (numpy.int64, "int64"), "float": (numpy.float64, "float64"),
          "str": (object, "string"), "bytes": (object, "string")}  # fmt: skip


def _value(sample: _stele.Sample, name: str) -> Any:
    value = sample[name]
    return bytes(value) if isinstance(value, memoryview) else value


def dataset(
    source: Target | Dataset,
    batch_size: int,
    *,
    shuffle: Shuffle = True,
    seed: int = 0,
    epoch: int = 0,
    parallel: int = 4,
) -> tensorflow.data.Dataset:
    """One epoch in batches: dicts of the fields, bytes as strings, for tf.io; tensors are left out.

    Positions of an order are counted, mixed and read without any state but the count, so
    tf.data's checkpoints and shard() work.

    Args:
        parallel: batches that are read at once.
    """
    positive("batch_size", batch_size)
    data = source if isinstance(source, Dataset) else open_target(source)
    fields = {n: _KINDS[f.type] for n, f in data.fields.items() if f.type in _KINDS}
    order = _stele.Shuffle(
        len(data), seed, epoch, _choice("shuffle", shuffle, _SHUFFLE), 0, 0
    )

    def read(positions: Any) -> list[Any]:
        which = order.take(int(positions[0]), 1, len(positions))
        samples = data[memoryview(which).cast("Q")]
        return [
            numpy.array([_value(sample, name) for sample in samples], dtype=dtype)
            for name, (dtype, _) in fields.items()
        ]

    def batch(positions: Any) -> dict[str, Any]:
        types = [kind for _, kind in fields.values()]
        columns = tensorflow.numpy_function(read, [positions], types, stateful=False)
        for column in columns:
            column.set_shape([None])
        return dict(zip(fields, columns, strict=True))

    counted = tensorflow.data.Dataset.range(len(data)).batch(batch_size)
    return counted.map(batch, num_parallel_calls=parallel, deterministic=True).prefetch(1)
