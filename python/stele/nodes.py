# SPDX-License-Identifier: Apache-2.0
"""For torchdata.nodes: a stele.Loader as a node.

    node = stele.nodes.Batches(loader)
    for batch in torchdata.nodes.Loader(torchdata.nodes.Mapper(node, decode)): ...
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchdata.nodes import BaseNode

from .loader import Loader


class Batches(BaseNode[Any]):
    """Batches of a loader, one epoch after each reset; its state is the loader's.

    Nodes above it that read ahead count for themselves what they handed out; the loader
    reads ahead already.
    """

    _KEY = "loader"

    def __init__(self, loader: Loader[Any]) -> None:
        super().__init__()
        self._loader = loader
        self._batches: Iterator[Any] = iter(())

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        super().reset(initial_state)
        if initial_state is not None:
            self._loader.load_state_dict(initial_state[self._KEY])
        self._batches = iter(self._loader)

    def next(self) -> Any:
        for batch in self._batches:  # not next(): no signal handler runs before the return
            return batch
        raise StopIteration

    def get_state(self) -> dict[str, Any]:
        return {self._KEY: self._loader.state_dict()}
