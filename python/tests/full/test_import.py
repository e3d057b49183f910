# SPDX-License-Identifier: Apache-2.0
"""What the packages write that datasets come from, built into images."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import numpy
import stele

ROWS = 150
TYPES = ("u1", "i1", "<u2", ">i2", "<i4", ">u4", "<i8", ">u8", "<f2", ">f4", "<f8", ">f8")
LAYOUTS = (
    {},
    {"chunks": True},
    {"chunks": True, "compression": "gzip", "shuffle": True},
    {"chunks": True, "fletcher32": True},
    {"chunks": True, "maxshape": True},
)


def values(random, dtype, shape):
    native = numpy.dtype(dtype).newbyteorder("=")
    if native.kind == "f":
        return random.standard_normal(shape).astype(dtype)
    info = numpy.iinfo(native)
    return random.integers(info.min, info.max, shape, native, endpoint=True).astype(dtype)


class Import(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_DIR"))
        self.addCleanup(directory.cleanup)
        self.tmp = Path(directory.name)

    def write(self, path, seed):
        """Each type in each layout, and what has a length of its own in each row."""
        import h5py

        random = numpy.random.default_rng(seed)
        arrays = {}
        with h5py.File(path, "w", libver=("earliest", "latest")[seed % 2]) as file:
            for i, dtype in enumerate(TYPES):
                shape = (ROWS,) + tuple(int(n) for n in random.integers(1, 6, i % 3 + 1))
                layout = dict(LAYOUTS[(i + seed) % len(LAYOUTS)])
                if "maxshape" in layout:
                    layout["maxshape"] = (None,) + shape[1:]
                arrays[f"a{i}"] = values(random, dtype, shape)
                file.create_dataset(f"a{i}", data=arrays[f"a{i}"], **layout)
            tokens = file.create_dataset("tokens", (ROWS,), h5py.vlen_dtype("i8"))
            arrays["tokens"] = [values(random, "<i8", (n % 9,)) for n in range(ROWS)]
            for row, value in enumerate(arrays["tokens"]):
                tokens[row] = value
            arrays["text"] = [chr(0x20AC) * (n % 7) for n in range(ROWS)]
            file.create_dataset("text", data=arrays["text"], dtype=h5py.string_dtype())
            arrays["number"] = values(random, "<i8", (ROWS,))
            file["number"] = arrays["number"]
        return arrays

    def test_hdf5(self):
        for seed in range(2 * len(LAYOUTS)):
            path, target = self.tmp / f"{seed}.h5", str(self.tmp / f"{seed}.stele")
            arrays = self.write(path, seed)
            command = [sys.executable, "-m", "stele", "build", "-q", str(path), target]
            subprocess.run(command, check=True)
            with stele.open(target) as ds:
                self.assertEqual(len(ds), ROWS)
                for row in range(ROWS):
                    sample = ds[f"{seed}.h5/{row:010}"]
                    for name, column in arrays.items():
                        with self.subTest(seed=seed, row=row, name=name):
                            self.same(sample[name], column[row])

    def test_hdf5_filter(self):
        """h5py brings a filter that no other program has."""
        import h5py

        path = self.tmp / "lzf.h5"
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=numpy.zeros((100, 100)), compression="lzf")
        command = [sys.executable, "-m", "stele", "build", str(path), str(self.tmp / "a.stele")]
        made = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(made.returncode, 1)
        self.assertIn("array 'x' needs filter 32000 (lzf)", made.stderr)

    def same(self, got, wanted):
        if not isinstance(wanted, numpy.ndarray):
            self.assertEqual(got, wanted)
        else:
            got = got.numpy()
            self.assertEqual(got.dtype, wanted.dtype.newbyteorder("="))
            numpy.testing.assert_array_equal(got, wanted)
