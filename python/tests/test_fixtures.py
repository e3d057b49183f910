# SPDX-License-Identifier: Apache-2.0
"""What the real packages wrote, as far as NumPy alone reads it: tests/fixture/from."""

import unittest

import fixtures


class Fixtures(fixtures.Case):
    def test_mds(self):
        for name in ("mds", "mds-bz2"):
            self.holds(name)

    def test_litdata(self):
        self.holds("litdata", plain=True)


if __name__ == "__main__":
    unittest.main()
