# SPDX-License-Identifier: Apache-2.0
"""Lance: fragments. It has no checksums: what is damaged may be read as something else."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from .source import SourceError, batch_rows, is_panic, package, why
from .tables import Part, Tables, broken
from .values import kinds_of


class Lance(Tables):
    """Datasets: their newest version."""

    def __init__(self, paths: Iterable[str], only: Collection[str] | None = None) -> None:
        super().__init__(only)
        lance = package("lance", "pylance")
        self.datasets: list[tuple[str, Any]] = []
        for path in paths:
            self.seen.add_all(path)
            try:
                data = lance.dataset(path)
                kinds = kinds_of(data.schema)
                self.total += data.count_rows()
            except BaseException as error:
                if isinstance(error, SourceError) or not is_panic(error):
                    raise
                raise SourceError(f"cannot read '{path}': {why(error)}") from None
            self.take_schema(path, data.schema, kinds)
            self.datasets.append((path, data))
        self.tops = [(p, os.path.basename(os.path.abspath(p)) + "/") for p, _ in self.datasets]

    def parts(self) -> Iterator[Part]:
        for path, data in self.datasets:
            name = os.path.basename(os.path.abspath(path))
            for fragment in data.get_fragments():
                place = f"'{path}' fragment {fragment.fragment_id}"
                try:
                    rows = fragment.count_rows()
                except BaseException as error:
                    if not is_panic(error):
                        raise
                    yield broken(place, name, error)
                    continue
                size = sum(
                    os.path.getsize(file)
                    for file in (
                        os.path.join(path, "data", f.path) for f in fragment.data_files()
                    )
                    if os.path.exists(file)
                )
                yield Part(place, name, rows, _reader(data, fragment, batch_rows(size, rows)))


def _reader(data: Any, fragment: Any, rows: int) -> Any:
    def read(columns: list[str]) -> Iterator[Any]:
        scanner = data.scanner(
            columns=columns, fragments=[fragment], batch_size=rows, batch_readahead=1,
            fragment_readahead=1, scan_in_order=True,
        )  # fmt: skip
        yield from scanner.to_batches()

    return read
