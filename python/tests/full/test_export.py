# SPDX-License-Identifier: Apache-2.0
"""What is exported, read by the packages that programs read it with."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

import numpy
import pictures
import stele

COUNT = 500
SCHEMA = {
    "data": bytes,
    "text": str,
    "number": int,
    "label": ["cat", "dog"],
    "score": float,
    "box": stele.tensor("float32", (2, 2)),
    "mask": stele.tensor("bool", (3,)),
    "points": stele.tensor("int16", (None, 3)),
    "tokens": stele.tensor("int64", (None,)),
    "exact": stele.tensor("uint64", ()),
}
# With all of a mount(8) that would find a loop device for it.
MOUNTS = """
import ctypes, os, sys
if ctypes.CDLL(None).mount(*map(os.fsencode, sys.argv[1:3]), b"erofs", 1, b"") == 0:
    print(os.getpid(), flush=True)
    sys.stdin.read()
"""


def sample(i):
    return {
        "data": bytes([i & 255]) * (i * 37 % 5000),
        "text": f"{i} \u00e9" * (i % 4),
        "number": -(2**62) + i,
        "label": i % 3 - 1,
        "score": float("nan") if i == 7 else i / 3,
        "box": numpy.arange(i, i + 4, dtype="f4").reshape(2, 2),
        "mask": numpy.array([i & 1, i & 2, i & 4], bool),
        "points": numpy.arange(i % 5 * 3, dtype="i2").reshape(-1, 3),
        "tokens": numpy.arange(i % 7) + 2**40,
        "exact": numpy.array(2**64 - 1 - i, "u8"),
    }


class Export(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_DIR"))
        self.addCleanup(directory.cleanup)
        self.tmp = Path(directory.name)
        self.target = str(self.tmp / "a.stele")
        with stele.Writer(self.target, SCHEMA) as writer:
            for i in range(COUNT):
                writer.put(f"{i:06}/\u00e9", sample(i))

    def replace(self, path, why, hint):
        """Neither the function nor the command replaces it, by whatever force."""
        import stele.parquet

        before = os.stat(path).st_ino
        why = f"cannot replace '{path}': {why}"
        with self.assertRaises(stele.ExistsError) as raised:
            stele.parquet.export(self.target, path, force=True)
        self.assertEqual(str(raised.exception), why)
        done = self.parquet("-f", self.target, path)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, f"\\Astele.parquet: {re.escape(why)}\nhint: give .*{hint}.*\n\\Z")
        self.assertEqual(os.stat(path).st_ino, before)
        self.assertEqual(list(self.tmp.glob("*.part")), [])

    def parquet(self, *arguments, **options):
        return subprocess.run(
            [sys.executable, "-m", "stele.parquet", "export", *map(str, arguments)],
            capture_output=True, text=True, **options,
        )  # fmt: skip

    def replaced(self, path):
        import stele.parquet

        self.assertEqual(stele.parquet.export(self.target, path, force=True), COUNT)

    def test_large_samples(self):
        """Of sizes far from the average, more than an array may have, and more than a value."""
        import pyarrow.parquet
        import stele.parquet

        target, to = str(self.tmp / "large.stele"), str(self.tmp / "large.parquet")
        sizes = [10] * 900 + [5000] * 40
        with stele.Writer(target, {"data": bytes, "n": int}, progress=False) as writer:
            for n, size in enumerate(sizes):
                writer.put(f"{n:04}", {"data": bytes([n & 255]) * size, "n": n})
        with unittest.mock.patch.object(stele.parquet, "_ARRAY_MAX", 12000):
            stele.parquet.export(target, to)
        rows = pyarrow.parquet.read_table(to).sort_by("n")
        self.assertEqual(rows["data"].to_pylist(), [bytes([n & 255]) * size for n, size in enumerate(sizes)])
        with unittest.mock.patch.object(stele.parquet, "_ARRAY_MAX", 4999):
            with self.assertRaisesRegex(ValueError, "^sample '09..' is larger than 2 GiB, the most in Parquet$"):
                stele.parquet.export(target, to, force=True)
        self.assertFalse([name for name in os.listdir(self.tmp) if name.endswith(".part")])

    def test_spares_images(self):
        """No file takes the place of an image."""
        link, damaged, other = self.tmp / "link", self.tmp / "d@v1", self.tmp / "other"
        link.symlink_to(self.target)
        damaged.write_bytes(Path(self.target).read_bytes()[:-4096])
        for path in (self.target, link, damaged):
            with self.subTest(path):
                self.replace(path, "it holds an image", "has to be removed first")
        other.write_text("text")
        self.replaced(other)

    def test_spares_others(self):
        """Nor of what is no regular file."""
        fifo, dangling, directory, link = (self.tmp / name for name in ("f", "d", "dir", "link"))
        os.mkfifo(fifo)
        dangling.symlink_to("nothing")
        directory.mkdir()
        link.symlink_to("text")
        (self.tmp / "text").write_text("text")
        for path in (fifo, link):
            with self.subTest(path):
                self.replace(path, "it is not a regular file", "another name")
        self.replace(directory, "it is a directory", "a name in that directory")
        done = self.parquet("-f", self.target, dangling)
        self.assertEqual((done.returncode, os.readlink(dangling)), (1, "nothing"), done.stderr)
        done = self.parquet(self.target, directory)
        self.assertNotIn("--force", done.stderr)

    def test_spares_loops(self):
        """Nor of what a loop device is over."""
        disk, moved = self.tmp / "disk", self.tmp / "moved"
        disk.write_bytes(b"x" * 65536)
        done = subprocess.run(["losetup", "-f", "--show", disk], capture_output=True, text=True)
        node = done.stdout.strip()
        if not node:
            self.skipTest("needs loop devices")
        try:
            why = f"it is under loop device '{Path(node).name}'"
            self.replace(node, "it is a block device", "another name")
            self.replace(disk, why, "losetup -d")
            disk.rename(moved)
            self.replace(moved, why, "losetup -d")
            disk.write_text("another one")
            self.replaced(disk)
        finally:
            subprocess.run(["losetup", "-d", node], check=True)
        self.replaced(moved)

    @contextlib.contextmanager
    def mounted(self, source, point, *space):
        """By a process of its own, which has its number; None: not on this machine."""
        holder = subprocess.Popen(
            [*space, sys.executable, "-c", MOUNTS, source, point], cwd=self.tmp, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        try:
            number = holder.stdout.readline().strip()
            if not number:
                self.skipTest("needs a kernel that mounts EROFS from files")
            yield number
        finally:
            holder.communicate()
            subprocess.run(["umount", "-q", point])

    def test_spares_mounted(self):
        """Nor of what an EROFS is mounted from."""
        disk, moved, point = self.tmp / "disk", self.tmp / "moved", self.tmp / "mnt"
        (self.tmp / "src").mkdir()
        point.mkdir()
        on = f"mounted on '{point}'"
        uuid = f"it has the UUID of the EROFS that is {on}"
        for source, space, why in (
            (str(disk), (), f"it is {on}"), ("disk", (), uuid),
            (str(disk), ("unshare", "-m"), f"it is {on}"), ("disk", ("unshare", "-m"), uuid),
        ):  # fmt: skip
            with self.subTest(source=source, space=space):
                if subprocess.run(["mkfs.erofs", disk, self.tmp / "src"], capture_output=True).returncode:
                    self.skipTest("needs mkfs.erofs")
                with self.mounted(source, point, *space) as number:
                    sees = f", as process {number} sees it" if space else ""
                    self.replace(disk, why + sees, "unmount it")
                    disk.rename(moved)
                    self.replace(moved, uuid + sees, "unmount it")
                self.replaced(moved)

    def same(self, table):
        self.assertEqual(table.num_rows, COUNT)
        rows = table.to_pylist()
        boxes = table["box"].combine_chunks().to_numpy_ndarray()
        for row in rows:
            i = int(row["key"].split("/")[0])
            wanted = sample(i)
            self.assertEqual(row["key"], f"{i:06}/\u00e9")
            for name in ("data", "text", "number", "label"):
                self.assertEqual(row[name], wanted[name])
            numpy.testing.assert_equal(row["score"], wanted["score"])
            self.assertEqual(row["exact"], int(wanted["exact"]))
            for name in ("points", "tokens", "mask"):
                self.assertEqual(row[name], wanted[name].tolist())
        for row, box in zip(rows, boxes, strict=True):
            numpy.testing.assert_array_equal(box, sample(int(row["key"][:6]))["box"])

    def test_parquet(self):
        import pyarrow
        import pyarrow.parquet
        import stele.parquet

        path = self.tmp / "a.parquet"
        with self.assertRaisesRegex(ValueError, "^row_group_size must be at least 1$"):
            stele.parquet.export(self.target, path, row_group_size=0)
        self.assertEqual(stele.parquet.export(self.target, path, row_group_size=100_000), COUNT)
        self.same(pyarrow.parquet.read_table(path))
        file = pyarrow.parquet.ParquetFile(path)
        self.assertGreater(file.num_row_groups, 3)
        types = {field.name: field.type for field in file.schema_arrow}
        self.assertEqual(
            types,
            {
                "key": pyarrow.string(),
                "data": pyarrow.binary(),
                "text": pyarrow.string(),
                "number": pyarrow.int64(),
                "label": pyarrow.int64(),
                "score": pyarrow.float64(),
                "box": pyarrow.fixed_shape_tensor(pyarrow.float32(), (2, 2)),
                "mask": pyarrow.fixed_shape_tensor(pyarrow.bool_(), (3,)),
                "points": pyarrow.list_(pyarrow.list_(pyarrow.int16(), 3)),
                "tokens": pyarrow.list_(pyarrow.int64()),
                "exact": pyarrow.uint64(),
            },
        )
        metadata = file.schema_arrow.field("label").metadata
        self.assertEqual(json.loads(metadata[b"stele:classes"]), ["cat", "dog"])
        self.assertEqual(sorted(os.listdir(self.tmp)), ["a.parquet", "a.stele"])

        before = path.read_bytes()
        with self.assertRaises(FileExistsError):
            stele.parquet.export(self.target, path)
        self.assertEqual(path.read_bytes(), before)
        stele.parquet.export(self.target, path, row_group_size=100_000, force=True)
        self.assertEqual(path.read_bytes(), before)
        with stele.open(self.target) as ds:
            part = ds.subset(range(10, 20))
            self.assertEqual(stele.parquet.export(part, self.tmp / "b.parquet"), 10)
        keys = pyarrow.parquet.read_table(self.tmp / "b.parquet")["key"].to_pylist()
        self.assertEqual(keys, [sample.key for sample in part])

    def test_parquet_command(self):
        import pyarrow.parquet

        path = str(self.tmp / "c.parquet")
        command = [sys.executable, "-m", "stele.parquet", "export", self.target, path]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        self.assertEqual(out, f"{COUNT} samples in '{path}'\n")
        self.same(pyarrow.parquet.read_table(path))
        before = Path(path).read_bytes()
        again = self.parquet(self.target, path)
        self.assertEqual(again.returncode, 1)
        self.assertEqual(
            again.stderr,
            f"stele.parquet: '{path}': File exists\nhint: --force replaces an existing FILE\n",
        )
        self.assertEqual(self.parquet("-f", self.target, path).stderr, "")
        self.assertEqual(Path(path).read_bytes(), before)

    def test_parquet_names(self):
        """What fails is said of the file that was named."""
        import resource

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        for path, begin, why in (
            (self.tmp / "none" / "x", None, "No such file or directory"), (f"{self.target}/x", None, "Not a directory"),
            (self.tmp / "x", limit, "File too large"),
        ):  # fmt: skip
            done = self.parquet(self.target, path, preexec_fn=begin)
            self.assertEqual((done.returncode, done.stderr), (1, f"stele.parquet: '{path}': {why}\n"))
        for name, why in ("-", "a Parquet file cannot be written to standard output; './-' is"), ("", "FILE is empty"):
            done = self.parquet(self.target, name)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, f"\\Astele.parquet: {why}")
        self.assertFalse(os.path.exists("-"))
        self.assertEqual([*self.tmp.iterdir()], [Path(self.target)])

    def test_parquet_bytes(self):
        import stele.parquet

        stele.parquet.export(os.fsencode(self.target), os.fsencode(self.tmp / "x"))
        self.assertEqual({path.name for path in self.tmp.iterdir()}, {"a.stele", "x"})

    def test_parquet_stopped(self):
        """A signal leaves nothing, and is died of."""
        code = (
            "import runpy, sys, time, pyarrow.parquet as p\nwrite = p.ParquetWriter.write_table\n"
            "def slow(*a, **k):\n    write(*a, **k)\n    print('on', flush=True)\n    for _ in range(400):\n        time.sleep(.05)\n"
            "p.ParquetWriter.write_table = slow\nrunpy.run_module('stele.parquet', run_name='__main__')"
        )
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            run = subprocess.Popen(
                [sys.executable, "-c", code, "export", self.target, self.tmp / "x"],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            self.assertEqual(run.stdout.readline(), "on\n")
            self.assertEqual(len([*self.tmp.glob("*.part")]), 1)
            run.send_signal(number)
            _, err = run.communicate(timeout=20)
            self.assertEqual((run.returncode, err), (-number, f"stele.parquet: {signal.strsignal(number)}: stopped\n"))
            self.assertEqual([*self.tmp.iterdir()], [Path(self.target)])

    def test_parquet_status(self):
        """As of the other commands: 2 wrong usage, 3 damage, 1 anything else."""
        path = self.tmp / "d.parquet"
        several, damaged, cut = (self.tmp / name for name in ("several", "damaged", "cut"))
        several.write_bytes(Path(self.target).read_bytes())
        stele.snapshot_create(f"{several}@v2", base="v1", delete=["000000/\u00e9"])
        whole = Path(self.target).read_bytes()
        cut.write_bytes(whole[:-4096])
        data = sample(200)["data"]
        self.assertIn(data, whole)
        damaged.write_bytes(whole.replace(data, bytes(len(data))))
        for arguments, status in (
            ((), 2), ((self.target, path, "--colour"), 2), ((several, path), 2),
            ((f"{self.target}@sha256:0", path), 2), ((damaged, path), 3), ((cut, path), 3),
            ((f"{self.target}@v2", path), 1), ((self.tmp / "none", path), 1),
            ((self.target, self.tmp / "none" / "x"), 1), ((f"{several}@v2", path), 0),
        ):  # fmt: skip
            with self.subTest(arguments):
                done = self.parquet(*arguments)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertEqual(path.exists(), not status)
        self.assertEqual(list(self.tmp.glob("*.part")), [])

    def test_parquet_refuses(self):
        import stele.parquet

        for name, kind, value, key, why in (
            ("x", stele.tensor("bfloat16", (2,)), numpy.zeros(2, "u2"), "a", "no bfloat16"),
            ("x", stele.tensor("complex64", (2,)), numpy.zeros(2, "c8"), "a", "no complex64"),
            ("key", bytes, b"", "a", "field 'key' has the name"),
            ("x", bytes, b"", b"\xff", "is not UTF-8"),
        ):
            target = self.tmp / "bad.stele"
            target.unlink(missing_ok=True)
            with stele.Writer(str(target), {name: kind}) as writer:
                writer.put(key, {name: value})
            with self.assertRaisesRegex(ValueError, why):
                stele.parquet.export(str(target), self.tmp / "bad.parquet")
        self.assertEqual(sorted(os.listdir(self.tmp)), ["a.stele", "bad.stele"])

    def command(self, *arguments):
        subprocess.run([sys.executable, "-m", "stele", *arguments], check=True)

    def test_lmdb(self):
        import lmdb

        for path, subdir in ((self.tmp / "env", True), (self.tmp / "a.lmdb", False)):
            if subdir:
                path.mkdir()
            self.command("export", "-q", "--to=lmdb", "--field=data", self.target, str(path))
            with lmdb.open(str(path), subdir=subdir, readonly=True, lock=False) as env:
                with env.begin() as txn:
                    wanted = [(f"{i:06}/\u00e9".encode(), sample(i)["data"]) for i in range(COUNT)]
                    self.assertEqual(list(txn.cursor()), wanted)
        with lmdb.open(str(self.tmp / "env"), map_size=1 << 30) as env:
            with env.begin(write=True) as txn:
                txn.put(b"more", b"value")
            self.assertEqual(env.stat()["entries"], COUNT + 1)

    def test_webdataset_shards(self):
        import webdataset

        target = pictures.numbers()
        pattern = str(self.tmp / "out-%06d.tar")
        self.command("export", "-q", "--to=webdataset", "--shard-size=200K", target, pattern)
        shards = sorted(str(path) for path in self.tmp.glob("out-*.tar"))
        self.assertGreater(len(shards), 2)
        names = str(self.tmp / f"out-{{000000..{len(shards) - 1:06}}}.tar")
        rows = list(webdataset.WebDataset(names, shardshuffle=False))
        with stele.open(target) as ds:
            self.assertEqual(len(rows), len(ds))
            for row in rows:
                one = ds[row["__key__"] + ".bin"]
                self.assertEqual(row["bin"], bytes(one))
                self.assertEqual(int(row["cls"]), one["label"])
