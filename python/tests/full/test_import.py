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

    def build(self, *arguments):
        """The path of an image."""
        target = str(self.tmp / f"{len(os.listdir(self.tmp))}.stele")
        command = [sys.executable, "-m", "stele", "build", "-q", "-f", *map(str, arguments), target]
        subprocess.run(command, check=True)
        return target

    def test_tfrecord(self):
        """TensorFlow's own writer, with and without compression: Examples, and records as they are."""
        import tensorflow as tf

        def example(n):
            features = {
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[n - 5])),
                "raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[bytes(range(n))])),
                "box": tf.train.Feature(float_list=tf.train.FloatList(value=[n, n / 2, 0, 1])),
                "ids": tf.train.Feature(int64_list=tf.train.Int64List(value=range(n % 4))),
            }
            return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()

        for compression in ("", "GZIP"):
            path = self.tmp / f"a{compression}.tfrecord"
            with tf.io.TFRecordWriter(str(path), compression) as writer:
                for n in range(ROWS):
                    writer.write(example(n))
            with stele.open(self.build("--example", path)) as ds:
                self.assertEqual(len(ds), ROWS)
                for n in range(ROWS):
                    sample = ds[f"{path.name}/{n:010}"]
                    self.assertEqual((sample["label"], bytes(sample["raw"])), (n - 5, bytes(range(n))))
                    self.same(sample["box"], numpy.array([n, n / 2, 0, 1], "f4"))
                    self.same(sample["ids"], numpy.arange(n % 4))
            with stele.open(self.build(path)) as ds:
                self.assertEqual([bytes(ds[f"{path.name}/{n:010}"]) for n in range(ROWS)], [*map(example, range(ROWS))])

    def test_recordio(self):
        """MXNet's own writer, in its own environment."""
        script = """if True:
            import struct, sys
            from mxnet import recordio
            magic = struct.pack("<I", 0xced7230a)
            one = recordio.MXIndexedRecordIO(sys.argv[1] + ".idx", sys.argv[1] + ".rec", "w")
            for n in range(int(sys.argv[2])):
                data = bytes(range(n)) + magic * (n % 4)
                one.write_idx(3 * n, recordio.pack(recordio.IRHeader(0, float(n % 7), 10**12 + n, 0), data))
            one.close()
            many = recordio.MXRecordIO(sys.argv[1] + "-many.rec", "w")
            for n in range(int(sys.argv[2])):
                many.write(recordio.pack(recordio.IRHeader(0, [n + 0.5] * (n % 3 + 1), n, 0), b"d" * n))
            many.close()
        """
        python = Path(os.environ["BUILD"]) / "venv-mxnet/bin/python"
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        subprocess.run([python, "-c", script, self.tmp / "a", str(ROWS)], check=True, env=clean)
        with stele.open(self.build(self.tmp / "a.rec")) as ds:
            self.assertEqual(len(ds), ROWS)
            for n in range(ROWS):
                sample = ds[f"a.rec/{3 * n:010}"]
                self.assertEqual((sample["label"], sample["id"]), (n % 7, 10**12 + n))
                magic = (0xCED7230A).to_bytes(4, "little")
                self.assertEqual(bytes(sample["data"]), bytes(range(n)) + magic * (n % 4))
        with stele.open(self.build(self.tmp / "a-many.rec")) as ds:
            for n in range(ROWS):
                sample = ds[f"a-many.rec/{n:010}"]
                self.same(sample["label"], numpy.full(n % 3 + 1, n + 0.5, "f4"))
                self.assertEqual((sample["id"], bytes(sample["data"])), (n, b"d" * n))

    def same(self, got, wanted):
        if not isinstance(wanted, numpy.ndarray):
            self.assertEqual(got, wanted)
        else:
            got = got.numpy()
            self.assertEqual(got.dtype, wanted.dtype.newbyteorder("="))
            numpy.testing.assert_array_equal(got, wanted)
