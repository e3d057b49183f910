# SPDX-License-Identifier: Apache-2.0
"""For Ray Data: a data source.

    ds = ray.data.read_datasource(stele.ray.Source("/dev/vdb@v1"))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pyarrow
from ray.data import Datasource, ReadTask
from ray.data.block import BlockMetadata
from ray.data.extensions import ArrowTensorArray, ArrowVariableShapedTensorArray

from .dataset import Dataset, Field, Target
from .rows import Row, check_names, dataset, ranges

_BLOCK = 256  # rows


def _column(field: Field | None, values: list[Any]) -> Any:
    """Tensors of more dimensions as Ray has them, of one as lists."""
    if field is not None and field.type == "tensor" and len(field.shape) > 1:
        same = None not in field.shape
        kind = ArrowTensorArray if same else ArrowVariableShapedTensorArray
        return kind.from_numpy(numpy.stack(values) if same else values)
    scalars = field is not None and field.type == "tensor" and not field.shape
    return pyarrow.array(numpy.stack(values) if scalars else values)


def _reads(data: Dataset, first: int, end: int) -> Callable[[], Iterator[Any]]:
    def read() -> Iterator[Any]:
        row = Row(data)
        for at in range(first, end, _BLOCK):
            rows = [row(sample) for sample in data[at : min(at + _BLOCK, end)]]
            yield pyarrow.table({
                name: _column(data.fields.get(name), [r[name] for r in rows]) for name in rows[0]
            })

    return read


class Source(Datasource):
    """Rows with 'key' and all fields; every node must see the target."""

    def __init__(self, source: Target | Dataset) -> None:
        super().__init__()
        self._data = dataset(source)
        check_names(self._data)

    def get_name(self) -> str:
        return "Stele"

    def estimate_inmemory_data_size(self) -> int:
        info = self._data.info
        return info.payload_size * len(self._data) // max(info.sample_count, 1)

    def get_read_tasks(
        self,
        parallelism: int,
        per_task_row_limit: int | None = None,
        data_context: object = None,
    ) -> list[ReadTask]:
        size = self.estimate_inmemory_data_size() // max(len(self._data), 1)
        return [
            ReadTask(
                _reads(self._data, first, end),
                BlockMetadata(end - first, (end - first) * size, None, None),
                per_task_row_limit=per_task_row_limit,
            )
            for first, end in ranges(len(self._data), parallelism)
            if end > first
        ]
