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
    if "subinterpreter" in str(error):
        raise
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
    ExistsError,
    ForkError,
    FormatError,
    NotFound,
    RangeError,
    StaleError,
)
from .loader import Loader, State
from .progress import Progress
from .reports import (
    BuildReport,
    CopyReport,
    Damage,
    Difference,
    GcReport,
    ImageInfo,
    ResizeReport,
    Skipped,
    Snapshot,
    Unused,
    VerifyReport,
)
from .schema import Schema, tensor
from .verbs import (
    append,
    build,
    compact,
    copy,
    diff,
    gc,
    image_info,
    resize,
    snapshot_create,
    snapshot_delete,
    snapshot_rename,
    snapshot_undelete,
    snapshots,
    verify,
)
from .writer import Writer

__version__: str = _stele.version


def __dir__() -> list[str]:
    """What users want: neither what this file imports, nor what adapters share."""
    return [*__all__, "__version__"]


__all__ = [
    "Batch",
    "BuildReport",
    "ChecksumError",
    "CopyReport",
    "CorruptError",
    "Damage",
    "Dataset",
    "Difference",
    "Error",
    "ExistsError",
    "Field",
    "ForkError",
    "FormatError",
    "GcReport",
    "ImageInfo",
    "Info",
    "Loader",
    "NotFound",
    "Progress",
    "RangeError",
    "ResizeReport",
    "Sample",
    "Schema",
    "Skipped",
    "Snapshot",
    "StaleError",
    "State",
    "Tensor",
    "Unused",
    "VerifyReport",
    "Writer",
    "append",
    "build",
    "compact",
    "copy",
    "diff",
    "gc",
    "image_info",
    "open",
    "resize",
    "snapshot_create",
    "snapshot_delete",
    "snapshot_rename",
    "snapshot_undelete",
    "snapshots",
    "tensor",
    "verify",
]
