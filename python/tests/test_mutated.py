# SPDX-License-Identifier: Apache-2.0
"""MDS and LitData with bytes changed, as far as NumPy alone reads them."""

import unittest

from mutated import Mutated, Specimen


class Plain(Mutated):
    specimens = (Specimen("mds", "mds"), Specimen("litdata", "litdata"))


class Hashed(Mutated):
    specimens = (Specimen("mds", "mds-bz2", hashed=True, packed=True),)


del Mutated  # which is no test

if __name__ == "__main__":
    unittest.main()
