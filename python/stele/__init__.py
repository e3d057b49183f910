# SPDX-License-Identifier: Apache-2.0
"""Stele: datasets on raw block devices, read sample by sample.

import stele

ds = stele.open("/dev/nvme1n1@v1")
loader = stele.Loader(ds, batch_size=256, seed=1)
for batch in loader:
    ...
"""

from __future__ import annotations

try:
    from . import _stele
except ImportError as error:
    raise ImportError(
        f"{error}; build the extension with `pip install ./python` in a checkout of Stele, "
        "or install the library that it was built for"
    ) from error
from ._stele import Batch, Sample, Tensor
from .dataset import Dataset, Field, Info, open
from .errors import (
    ChecksumError,
    CorruptError,
    Error,
    ForkError,
    FormatError,
    NotFound,
    RangeError,
    StaleError,
)
from .loader import Loader, State

__version__: str = _stele.version

__all__ = [
    "Batch",
    "ChecksumError",
    "CorruptError",
    "Dataset",
    "Error",
    "Field",
    "ForkError",
    "FormatError",
    "Info",
    "Loader",
    "NotFound",
    "RangeError",
    "Sample",
    "StaleError",
    "State",
    "Tensor",
    "open",
]
