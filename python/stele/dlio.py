# SPDX-License-Identifier: Apache-2.0
"""For DLIO (MLPerf Storage): a data loader.

    STELE_TARGET=/dev/vdb@v1 dlio_benchmark workload=... \\
        ++workload.reader.data_loader_classname=stele.dlio.SteleLoader \\
        ++workload.reader.data_loader_sampler=index

DLIO lists data_folder/train and valid, and wants num_files_train names there: empty files will
do. What is read are the samples of STELE_TARGET; of STELE_TARGET_VALID for evaluation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from dlio_benchmark.common.enumerations import DatasetType, DataLoaderType, Shuffle
from dlio_benchmark.data_loader.base_data_loader import BaseDataLoader

from . import _stele
from .dataset import open as open_target
from .loader import Loader


class SteleLoader(BaseDataLoader):
    """Batches of this rank; DLIO's batch size, seed, shuffle and prefetching."""

    def __init__(self, format_type: object, dataset_type: object, epoch_number: int) -> None:
        super().__init__(format_type, dataset_type, epoch_number, DataLoaderType.PYTORCH)
        self._loader: Loader[_stele.Batch] | None = None

    def read(self) -> None:
        """Called once."""
        train = self.dataset_type is DatasetType.TRAIN
        target = os.environ["STELE_TARGET" if train else "STELE_TARGET_VALID"]
        self._loader = Loader(
            open_target(target),
            batch_size=self.batch_size,
            shuffle=self._args.sample_shuffle != Shuffle.OFF,
            seed=self._args.seed,
            rank=self._args.my_rank,
            world_size=self._args.comm_size,
        )

    def next(self) -> Iterator[list[_stele.Sample]]:
        """Batches of one epoch; DLIO stops at its own number of steps."""
        if self._loader is None:
            raise RuntimeError("read() comes first")
        for batch in self._loader:
            yield batch.samples()

    def finalize(self) -> None:
        """Called after each epoch: the loader goes on with the next."""
