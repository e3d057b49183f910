# SPDX-License-Identifier: Apache-2.0
"""What the real packages wrote, in the versions that fixtures.py names: tests/fixture/from."""

import gzip
import unittest

import fixtures
import stele
import stele.sources


class Fixtures(fixtures.Case):
    def test_packed(self):
        self.holds("mds-zstd")
        self.holds("litdata-zstd", plain=True)
        self.holds("litdata-rows")

    def test_tables(self):
        for name in ("plain.parquet", "zstd.parquet", "file.arrow", "stream.arrows", "rows.lance"):
            self.holds(name, table=True)

    def test_array_record(self):
        for name in ("each.array_record", "groups.array_record"):
            path = self.directory / name
            path.write_bytes(gzip.decompress((fixtures.DIRECTORY / f"{name}.gz").read_bytes()))
            stele.sources.build(path, self.target, force=True, progress=False)
            with stele.open(self.target) as ds:
                found = {sample.key: bytes(sample) for sample in ds}
            wanted = {f"{name}/{n:010}": fixtures.record(n) for n in range(fixtures.ROWS)}
            self.assertEqual(found, wanted)


if __name__ == "__main__":
    unittest.main()
