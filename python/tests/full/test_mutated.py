# SPDX-License-Identifier: Apache-2.0
"""MDS and LitData with bytes changed, where it takes pyarrow to read them."""

import unittest

from mutated import Mutated, Specimen


class Packed(Mutated):
    specimens = (
        Specimen("mds", "mds-zstd", hashed=True, packed=True),
        Specimen("litdata", "litdata-zstd", packed=True),
        Specimen("litdata", "litdata-rows", packed=True),
    )


del Mutated  # which is no test

if __name__ == "__main__":
    unittest.main()
