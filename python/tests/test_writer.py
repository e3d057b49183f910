# SPDX-License-Identifier: Apache-2.0
"""Writer: samples of every type go in as they come out, or not at all."""

import contextlib
import errno
import gc
import hashlib
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
import uuid
import warnings
from pathlib import Path

import images
import numpy
import stele
import stele.grain
import stele.wids

SCHEMA = {
    "image": bytes,
    "label": ["cat", "dog"],
    "caption": str,
    "score": float,
    "count": int,
    "mask": stele.tensor("uint8", (None, 4, 3)),
    "matrix": stele.tensor("float32", (2, 2)),
}


def sample(i):
    return {
        "image": b"%d" % i * (i % 500),
        "label": ("cat", "dog")[i % 2],
        "caption": f"caption {i} é",
        "score": i / 4,
        "count": i - 1000,
        "mask": numpy.full((i % 5, 4, 3), i % 256, "u1"),
        "matrix": numpy.arange(4, dtype="f4").reshape(2, 2) * i,
    }


def digest(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


class Case(unittest.TestCase):
    def setUp(self):
        self.target = str(images.DIRECTORY / f"{self.id()}.stele")

    def write(self, keys, *, schema=None, target=None, **options):
        with stele.Writer(target or self.target, schema, progress=False, **options) as w:
            w.extend((key, {"data": data}) for key, data in keys.items())


class Types(Case):
    def test_round_trip(self):
        with stele.Writer(self.target, SCHEMA, label="all", progress=False) as w:
            for i in range(300):
                w.put(f"{i:04}", sample(i))
        with stele.open(self.target) as ds:
            self.assertEqual(len(ds), 300)
            self.assertEqual((ds.info.snapshot, ds.info.label), ("v1", "all"))
            self.assertEqual(ds.classes, ("cat", "dog"))
            self.assertEqual(ds.fields["mask"].shape, (None, 4, 3))
            for i in range(300):
                want, got = sample(i), ds[f"{i:04}"]
                self.assertEqual(bytes(got["image"]), want["image"])
                self.assertEqual(got["label"], i % 2)
                self.assertEqual(got["caption"], want["caption"])
                self.assertEqual(got["score"], want["score"])
                self.assertEqual(got["count"], want["count"])
                for name in ("mask", "matrix"):
                    numpy.testing.assert_array_equal(got[name].numpy(), want[name])
        self.assertTrue(stele.verify(self.target).sound)

    def test_every_dtype(self):
        dtypes = [
            "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64",
            "int64", "float16", "float32", "float64", "complex64", "complex128",
        ]  # fmt: skip
        values = {name: numpy.array([[0, 1], [2, 3]]).astype(name) for name in dtypes}
        with stele.Writer(self.target, progress=False) as w:
            w.put("a", values)
        with stele.open(self.target) as ds:
            for name, value in values.items():
                self.assertEqual(ds.fields[name].dtype, name)
                self.assertEqual(ds.fields[name].shape, (None, 2))
                numpy.testing.assert_array_equal(ds["a"][name].numpy(), value)

    def test_what_is_like_bytes_and_arrays(self):
        class Array:
            def __array__(self, dtype=None, copy=None):
                return numpy.arange(6, dtype="i2").reshape(3, 2).T

        strided = numpy.arange(24, dtype="i2").reshape(4, 6)[::2, ::2]
        schema = {"data": bytes, "array": stele.tensor("int16", (2, 3))}
        datas = [b"abc", bytearray(b"abc"), memoryview(b"abc"), numpy.frombuffer(b"abc", "u1")]
        with stele.Writer(self.target, schema, progress=False) as w:
            for i, data in enumerate(datas):
                w.put(f"{i}", {"data": data, "array": strided})
            w.put("x", {"data": b"", "array": Array()})
        with stele.open(self.target) as ds:
            for i in range(len(datas)):
                self.assertEqual(bytes(ds[f"{i}"]["data"]), b"abc")
                numpy.testing.assert_array_equal(ds[f"{i}"]["array"].numpy(), strided)
            self.assertEqual(ds["x"]["array"].numpy().tolist(), [[0, 2, 4], [1, 3, 5]])

    def test_guessed_from_the_first(self):
        first = {
            "a": b"x", "b": "text", "c": 3, "d": 0.5, "e": numpy.zeros((2, 7), "f4"),
            "f": numpy.int32(4), "g": numpy.float32(1), "h": True, "i": memoryview(b"y"),
        }  # fmt: skip
        with stele.Writer(self.target, progress=False) as w:
            self.assertIsNone(w.fields)
            w.put("1", first)
            kinds = [field.type for field in w.fields.values()]
            w.put("2", {**first, "e": numpy.zeros((5, 7), "f4")})
        self.assertEqual(
            kinds, "bytes str int float tensor int float int bytes".split()
        )

    def test_one_field_without_a_name(self):
        with stele.Writer(self.target, progress=False) as w:
            w.put("a", b"1")
            w.put(b"b\xff", b"2")
        with stele.open(self.target) as ds:
            self.assertEqual(bytes(ds["a"]), b"1")
            self.assertEqual(bytes(ds[b"b\xff"]), b"2")
            self.assertEqual(list(ds.fields), ["data"])

    def test_from_another_dataset(self):
        with stele.open(images.rich()) as rich:
            with stele.Writer(self.target, rich.fields, progress=False) as w:
                w.extend((s.key, s) for s in rich)
            with stele.open(self.target) as ds:
                self.assertEqual(ds.fields, rich.fields)
                for name in rich.keys():
                    self.assertEqual(bytes(ds[name]), bytes(rich[name]))

    def test_classes_of_another_dataset(self):
        self.write({}, schema={"label": ["cat", "dog", "elk"]})
        other = f"{self.target}2"
        with stele.Writer(self.target + "@more", progress=False) as w:
            w.extend((name, {"label": name}) for name in ("cat", "dog", "elk"))
            w.put("none", {"label": -1})
        with (
            stele.open(self.target + "@more") as ds,
            stele.Writer(other, {"label": ["dog", "cat"]}, progress=False) as w,
            stele.Writer(other + "n", {"label": int}, progress=False) as numbers,
        ):
            for key in ("cat", "dog", "none"):
                w.put(key, ds[key])
                numbers.put(key, ds[key])
            w.put("of a batch", next(iter(stele.Loader(ds.subset([ds.find("dog")]))))[0])
            with self.assertRaisesRegex(ValueError, "^sample 'e': field 'label' has no class 'elk'$"):
                w.put("e", ds["elk"])
        with stele.open(other) as ds, stele.open(other + "n") as numbers:
            self.assertEqual(ds["cat"].class_name(), "cat")
            self.assertEqual(ds["dog"].class_name(), "dog")
            self.assertEqual(ds["none"]["label"], -1)
            self.assertEqual(ds["of a batch"].class_name(), "dog")
            self.assertEqual(numbers["dog"]["label"], 1)

    def test_rows(self):
        """What others take has the fields by their names; the sample itself stays where it is."""
        schema = {"data": bytes, "other": bytes, "text": str, "array": stele.tensor("int16", (2,))}
        with stele.Writer(self.target, schema, progress=False) as w:
            w.put("x/k", {"data": b"AA", "other": b"", "text": "t", "array": numpy.array([1, 2], "int16")})
        with stele.open(self.target) as ds:
            row = stele.grain.Source(ds)[0]
            self.assertEqual(list(row), ["key", *schema])
            self.assertEqual((row["key"], row["text"]), ("x/k", "t"))
            for name, wanted in ("data", b"AA"), ("other", b""):  # NumPy would cut bytes off at zeros
                self.assertEqual((row[name].dtype.name, row[name].tobytes()), ("uint8", wanted))
            found = stele.wids.ShardListDataset(ds)[0]
            self.assertEqual((found["__key__"], found[".data"].read(), found[".other"].read()), ("x/k", b"AA", b""))
            for kept in ds[0], ds[0]["array"], next(iter(stele.Loader(ds, batch_size=1))):
                with self.assertRaisesRegex(TypeError, "^<class .stele.(Sample|Tensor|Batch).> cannot leave its process: make bytes"):
                    pickle.dumps(kept)

    def test_flags(self):
        """A word is true, whatever it says: it overwrites nothing."""
        with stele.Writer(self.target, {"n": int}, progress=False) as w:
            w.put("k", 1)
        before = Path(self.target).read_bytes()
        for name in "force", "append", "update", "keep", "always", "delete_missing", "dry_run":
            with self.assertRaisesRegex(TypeError, f"^{name} must be "):
                stele.Writer(self.target + "@v2", {"n": int}, **{name: "no"})
        for wrong in ("no", "", b"1", None, 2, 0.5):
            with self.assertRaisesRegex(TypeError, "^force must be True or False, not "):
                stele.build(images.DIRECTORY, self.target, force=wrong)
        self.assertEqual(Path(self.target).read_bytes(), before)
        stele.image_info(self.target)
        stele.gc(self.target, force=1, dry_run=numpy.True_)

    def test_int_in_a_float_field(self):
        """As long as it stays what it is."""
        exact = (2**60, -(2**53), numpy.int64(2**53), numpy.uint8(7), True, numpy.float32(0.5),
                 numpy.array(2.5), numpy.array(9), 1e300, float("inf"))  # fmt: skip
        with stele.Writer(self.target, {"score": float}, progress=False) as w:
            for i, value in enumerate(exact):
                w.put(f"{i}", value)
            for value in (2**60 + 1, numpy.int64(2**53 + 1), numpy.array(-(2**62) - 1)):
                with self.assertRaisesRegex(ValueError, "^sample 'k': field 'score' takes a float,"):
                    w.put("k", value)
        with stele.open(self.target) as ds:
            for i, value in enumerate(exact):
                self.assertEqual(ds[f"{i}"]["score"], float(value))

    def test_extend(self):
        with stele.Writer(self.target, progress=False) as w:
            w.extend({"a": b"1", "b": b"2"})
            w.extend([("c", b"3"), ("d", {"data": b"4"})])
            w.extend(iter([{"__key__": "e", "data": b"5"}]))
            with self.assertRaisesRegex(ValueError, "__key__"):
                w.extend([{"data": b"6"}])
        with stele.open(self.target) as ds:
            self.assertEqual({s.key: bytes(s) for s in ds}["e"], b"5")
            self.assertEqual(sorted(ds.keys()), ["a", "b", "c", "d", "e"])

    def test_same_bytes_with_a_uuid(self):
        options = {"uuid": uuid.UUID(int=7), "time": 1700000000}
        keys = {f"{i}": b"%d" % i for i in range(50)}
        self.write(keys, **options)
        self.write(keys, target=self.target + "2", **options)
        self.assertEqual(digest(self.target), digest(self.target + "2"))

    def test_threads(self):
        def work(writer, first):
            for i in range(first, first + 200):
                writer.put(f"{i}", sample(i))

        with stele.Writer(self.target, progress=False) as w:
            threads = [threading.Thread(target=work, args=(w, n * 200)) for n in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        with stele.open(self.target) as ds:
            self.assertEqual(len(ds), 800)
            self.assertEqual(ds["777"]["count"], -223)

    def test_a_temporary_file(self):
        data = os.urandom(3 << 20)
        with stele.Writer(
            self.target, memory_size=64 << 20, directory=images.DIRECTORY, progress=False
        ) as w, self.assertLogs("stele", "INFO") as logs:
            for i in range(16):
                w.put(f"{i}", data)
            w.commit()
        self.assertRegex(str(logs.output), "temporary file")


class Versions(Case):
    def setUp(self):
        super().setUp()
        self.write({"a": b"1", "b": b"2", "c": b"3"})
        self.before = digest(self.target)

    def contents(self, name):
        with stele.open(f"{self.target}@{name}") as ds:
            return {s.key: bytes(s) for s in ds}

    def test_append(self):
        with stele.Writer(self.target + "@v2", note="more", progress=False) as w:
            w.put("d", b"4")
            with self.assertRaises(TypeError):
                w.put("e", 5)
        self.assertEqual(self.contents("v1"), {"a": b"1", "b": b"2", "c": b"3"})
        self.assertEqual(
            self.contents("v2"), {"a": b"1", "b": b"2", "c": b"3", "d": b"4"}
        )
        self.assertEqual(stele.snapshots(self.target)[1].note, "more")

    def test_update_and_delete(self):
        with stele.Writer(self.target + "@v2", update=True, progress=False) as w:
            w.put("b", b"new")
            w.delete("c")
            with self.assertRaises(stele.NotFound):
                w.delete("nothing")
            snapshot = w.commit()
            self.assertEqual((snapshot.name, snapshot.sample_count), ("v2", 2))
        self.assertEqual(self.contents("v2"), {"a": b"1", "b": b"new"})

    def test_a_key_that_is_there(self):
        with self.assertRaisesRegex(stele.ExistsError, "'b'") as caught:
            self.write({"b": b"new"}, target=self.target + "@v2")
        self.assertEqual(caught.exception.__notes__, ["update=True replaces it, keep=True leaves it as it is"])
        self.assertEqual([s.name for s in stele.snapshots(self.target)], ["v1"])

    def test_put_again_after_delete(self):
        """It is replaced, whether it was there or was put."""
        with stele.Writer(self.target + "@v2", progress=False) as w:
            w.put("d", b"1")
            for key in "ad":
                w.delete(key)
                w.put(key, b"new")
        self.assertEqual(self.contents("v2"), {"a": b"new", "b": b"2", "c": b"3", "d": b"new"})

    def test_names(self):
        with self.assertRaisesRegex(ValueError, "name the new snapshot"):
            stele.Writer(self.target)
        with self.assertRaisesRegex(stele.ExistsError, "'v1'") as taken:  # before put()
            stele.Writer(self.target + "@v1")
        with self.assertRaises(stele.ExistsError) as held:
            stele.Writer(self.target + "@v2", append=False)
        self.assertIn("force=True", held.exception.__notes__[0])
        with stele.open(self.target):  # which to close would not help
            with self.assertRaisesRegex(stele.ExistsError, "' holds a Stele image, snapshots 'v1'$"):
                stele.Writer(self.target, append=False)
            with self.assertRaisesRegex(stele.Error, "open; close that dataset or writer first$"):
                stele.Writer(self.target, append=False, force=True)
        with stele.Writer(self.target + "-new", {"data": bytes}) as unfinished:
            with self.assertRaisesRegex(stele.Error, "open; close that dataset or writer first$"):
                stele.Writer(self.target + "-new", append=False)
            unfinished.close()
        self.assertEqual(taken.exception.__notes__, ["choose another name"])
        with self.assertRaises(stele.NotFound):
            stele.Writer(self.target + "x@v2", append=True)
        self.assertEqual(digest(self.target), self.before)

    def test_two_at_a_time(self):
        """It is this process itself that is in the way, and nobody to wait for."""
        with stele.Writer(self.target + "@v2") as writer:
            writer.put("d", b"4")
            for change in (
                lambda: stele.Writer(self.target + "@v3"),
                lambda: stele.snapshot_delete(self.target + "@v1", force=True),
            ):
                with self.assertRaisesRegex(stele.Error, ": this process itself is writing") as caught:
                    change()
                self.assertEqual(caught.exception.__notes__, ["commit or close that Writer first"])
        self.write({"e": b"5"}, target=self.target + "@v3")
        self.assertEqual(self.contents("v3")["e"], b"5")

    def test_deleted(self):
        """Snapshots that are deleted count neither as the newest nor as a name in use."""
        self.write({"d": b"4"}, target=self.target + "@v2")
        stele.snapshot_delete(self.target + "@v2")
        self.write({"e": b"5"}, target=self.target + "@v3", append=True)
        self.assertEqual(self.contents("v3"), {"a": b"1", "b": b"2", "c": b"3", "e": b"5"})
        self.write({"f": b"6"}, target=self.target + "@v2", update=True)
        self.assertEqual(sorted(self.contents("v2")), list("abcef"))
        for name in "v1", "v2", "v3":
            stele.snapshot_delete(f"{self.target}@{name}", force=True)
        self.write({"g": 7}, target=self.target + "@v1")
        with stele.open(self.target) as ds:
            self.assertEqual([(key, ds[key]["data"]) for key in ds.keys()], [("g", 7)])

    def test_temporary_file(self):
        with self.assertRaisesRegex(stele.NotFound, "temporary file in '/nowhere': No such"):
            with stele.Writer(self.target + "@v2", directory="/nowhere", progress=False):
                pass
        os.environ["TMPDIR"] = "/nowhere"
        self.addCleanup(os.environ.pop, "TMPDIR")
        with stele.Writer(self.target + "@v2", memory_size=1 << 20, progress=False) as w:
            with self.assertRaisesRegex(stele.NotFound, "temporary file in '/nowhere': No such"):
                for i in range(100):
                    w.put(f"k{i}", bytes(100_000))
        self.assertGreater(len(self.contents("v2")), 3)

    def test_force(self):
        self.write({"z": b"26"}, force=True)
        self.assertEqual(self.contents("v1"), {"z": b"26"})

    def test_sources(self):
        """What is read is no target."""
        path = images.DIRECTORY / f"{self.id()}.read"
        path.write_bytes(b"read" * 9000)
        before = digest(path)
        with self.assertRaisesRegex(TypeError, "sources must be a list of paths"):
            stele.Writer(f"{path}.new", sources=str(path))
        self.write({"a": b"1"}, target=f"{path}.new", sources=[path])
        with self.assertRaisesRegex(stele.Error, "is a file of the source"):
            self.write({"b": b"1"}, target=f"{self.target}@other", sources=[self.target])
        for target in (str, lambda path: images.loop(self, path)):
            with self.assertRaisesRegex(stele.Error, "of the source") as caught:
                stele.Writer(target(path), force=True, sources=["/nowhere", path])
            self.assertEqual((caught.exception.errno, digest(path)), (errno.EINVAL, before))

    def disk(self):
        """A loop device with an image."""
        path = images.DIRECTORY / f"{self.id()}.disk"
        with open(path, "wb") as file:
            file.truncate(16 << 20)
        node = images.loop(self, path)
        self.write({"a": b"1"}, target=node, label="precious")
        return node

    def test_lost(self):
        """Who is stopped while a device is overwritten is told what is gone, and what to do."""
        node = self.disk()

        def stop(progress):
            if progress.phase == "write":
                raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError) as caught:
            with stele.Writer(node, progress=stop, force=True) as w:
                w.put("b", b"2")
        notes = caught.exception.__notes__
        self.assertEqual(notes[-3:], [
            f"'{node}' has lost the image that it held: 'precious': 'v1'",
            f"'{node}' is left with an unfinished image",
            "run it again, with force=True to overwrite that",
        ])  # fmt: skip
        self.assertEqual(len(set(notes)), len(notes))

    def test_checked_first(self):
        """What a device holds is not lost for what no image can have."""
        node = self.disk()
        before = digest(node)

        def check(kind, samples, schema=None, **options):
            with self.assertRaises(kind) as caught:
                with stele.Writer(node, schema, progress=False, force=True, **options) as w:
                    w.extend(samples)
            self.assertNotIn("lost", str(getattr(caught.exception, "__notes__", "")))
            self.assertEqual(digest(node), before)
            self.assertEqual(stele.image_info(node).label, "precious")

        one = [("b", 2)]
        check(ValueError, one, {"x" * 64: int})
        check((ValueError, stele.Error), one, {"n": ["cat", "cat"]})
        check(stele.Error, one, granule=7)
        check(stele.Error, one, granule=64, posix=True)
        check(stele.Error, one, {"n": int}, directory="/nowhere")
        check(stele.ExistsError, one * 2)
        check(stele.Error, [("large", bytes(20 << 20))])
        check(ZeroDivisionError, (("b", 1 // n) for n in (1, 0)))
        with stele.Writer(node, {"n": int}, progress=False, force=True) as w:
            w.put("b", 2)
            self.assertEqual(digest(node), before)
        self.assertEqual((stele.image_info(node).label, self.contents_of(node)), ("", ["b"]))

    def contents_of(self, target):
        with stele.Dataset(target) as ds:
            return list(ds.keys())

    def test_nothing_put(self):
        """By nothing no image is replaced, whatever force says."""
        before = digest(self.target)
        for options in {}, {"dry_run": True}:
            with self.assertRaisesRegex(ValueError, "nothing was put: by nothing force") as caught:
                with stele.Writer(self.target, {"data": bytes}, progress=False, force=True, **options):
                    pass
            self.assertIn("allow_empty=True", caught.exception.__notes__[0])
            self.assertEqual(digest(self.target), before)
        with stele.Writer(self.target + ".new", {"data": bytes}, progress=False) as w:
            pass
        self.assertEqual(w.report.written_count, 0)
        for dry_run in False, True:
            with self.assertRaisesRegex(ValueError, "nothing was put: a new image without samples takes a schema"):
                with stele.Writer(self.target + ".none", progress=False, dry_run=dry_run):
                    pass
            self.assertFalse(os.path.exists(self.target + ".none"))

    def test_closed_within(self):
        """close() gives up, also within a with statement."""
        with stele.Writer(self.target + "@v2", progress=False) as w:
            w.put("z", b"26")
            w.close()
        with self.assertRaisesRegex(ValueError, "^the writer is closed$"), w:
            pass
        self.assertEqual([s.name for s in stele.snapshots(self.target)], ["v1"])

    def test_notes_of_another(self):
        """What was said of a sample that was left out is not said of what comes later."""
        with self.assertRaises(ZeroDivisionError) as caught:
            with stele.Writer(self.target + "@v2", progress=False) as w:
                with self.assertRaisesRegex(stele.Error, "zero byte"):
                    w.put("a\0b", b"1")
                raise ZeroDivisionError
        self.assertEqual(getattr(caught.exception, "__notes__", []), [])

    def test_mapped_meanwhile(self):
        """A snapshot that was mapped since the target was opened is not overwritten."""
        node = self.disk()
        with self.assertRaisesRegex(stele.Error, "is mapped as 'writer-hz'; unmap it first"):
            with stele.Writer(node, progress=False, force=True) as w:
                w.put("b", b"2")
                self.addCleanup(subprocess.run, ["stele", "unmap", "writer-hz"], check=True)
                subprocess.run(["stele", "map", f"{node}@v1", "writer-hz"], check=True)
        self.assertEqual(stele.image_info(node).label, "precious")

    def test_too_late(self):
        """An exception that comes when all is done says so."""

        def late(progress):
            if progress.phase == "commit":
                while len(stele.snapshots(self.target)) < 2:
                    time.sleep(0.01)
                raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError) as caught:
            with stele.Writer(self.target + "@v2", progress=late) as w:
                w.put("z", b"26")
        self.assertIn("too late to stop it: what was called has been done", caught.exception.__notes__)
        self.assertEqual(self.contents("v2")["z"], b"26")

    def test_interrupted_behind_the_commit(self):
        class Interrupted(stele.Writer):
            def close(self):
                was_open = self._is_open()
                super().close()
                if was_open:
                    raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt) as caught:
            with Interrupted(self.target + "@v2") as w:
                w.put("z", b"26")
        notes = caught.exception.__notes__
        self.assertEqual(notes, ["too late to stop it: what was called has been done"])
        self.assertEqual(self.contents("v2")["z"], b"26")

    def test_committed_twice(self):
        """What has been done was done by the other call."""
        for dry_run in (True, False):
            w = stele.Writer(self.target + "@v2", progress=False, dry_run=dry_run)
            w.put("z", b"26")
            w.commit()
            with self.assertRaisesRegex(ValueError, "^the writer is closed$") as caught:
                w.commit()
            self.assertEqual(getattr(caught.exception, "__notes__", []), [])
        self.assertEqual(self.contents("v2")["z"], b"26")

    def test_given_up(self):
        """An empty device stays so, if nothing is committed."""
        path = images.DIRECTORY / f"{self.id()}.disk"
        with open(path, "wb") as file:
            file.truncate(16 << 20)
        node = images.loop(self, path)
        before = digest(node)
        with self.assertRaises(ZeroDivisionError):
            with stele.Writer(node, progress=False) as w:
                w.put("a", b"1")
                raise ZeroDivisionError
        self.assertEqual(digest(node), before)

    def test_keep(self):
        with stele.Writer(self.target + "@v2", keep=True, progress=False) as w:
            w.extend({"a": b"9", "d": b"4"})
        self.assertEqual(self.contents("v2"), {"a": b"1", "b": b"2", "c": b"3", "d": b"4"})
        report = w.report
        self.assertEqual((report.base, report.snapshot, report.created), ("v1", "v2", True))
        self.assertEqual((report.added, report.updated, report.unchanged), (1, 0, 3))
        self.assertEqual(report.digest, stele.snapshots(self.target)[-1].digest)

    def test_always(self):
        for options in {"keep": True}, {"update": True}:
            w = stele.Writer(self.target + "@v2", always=False, progress=False, **options)
            w.put("a", b"1")
            self.assertEqual(w.commit(), stele.snapshots(self.target)[0])
            self.assertEqual((w.report.created, w.report.snapshot, w.report.unchanged), (False, "", 3))
            self.assertEqual(digest(self.target), self.before)
        with stele.Writer(self.target + "@v2", always=False, progress=False) as w:
            w.delete("a")
        self.assertIsNone(w.report)
        self.assertEqual(sorted(self.contents("v2")), ["b", "c"])
        self.write({"b": b"2"}, target=self.target + "@v3", update=True)
        self.assertEqual([s.name for s in stele.snapshots(self.target)], ["v1", "v2", "v3"])

    def test_delete_missing(self):
        options = {"target": self.target + "@v2", "delete_missing": True, "append": True}
        for append, more in (True, ""), (None, ", with append=True"):
            with self.assertRaisesRegex(stele.Error, "lacks 2 of the 3 samples") as caught:
                self.write({"a": b"1"}, keep=True, **options | {"append": append})
            self.assertEqual(caught.exception.__notes__, [f"if that is all that shall be there, use force=True{more}"])
        for other in ("update", "keep", "delete_missing"):  # without it, force would make a new image
            with self.assertRaisesRegex(ValueError, "it needs append=True"):
                self.write({"a": b"1"}, target=self.target + "@v2", force=True, **{other: True})
        self.assertEqual(digest(self.target), self.before)
        self.write({"a": b"1", "c": b"9", "d": b"4"}, update=True, **options)
        self.assertEqual(self.contents("v2"), {"a": b"1", "c": b"9", "d": b"4"})
        options["target"] = self.target + "@v3"
        self.write({"a": b"1"}, keep=True, force=True, **options)
        self.assertEqual(self.contents("v3"), {"a": b"1"})
        self.assertEqual(len(stele.snapshots(self.target)), 3)
        with stele.Writer(self.target + "@v4", delete_missing=True, progress=False) as w:
            with self.assertRaisesRegex(ValueError, "does not go with it"):
                w.delete("a")
        self.assertEqual(self.contents("v4"), {"a": b"1"})
        with self.assertRaisesRegex(ValueError, "force goes with delete_missing"):
            stele.Writer(self.target + "@v5", append=True, force=True)
        for append in (None, True, False):
            with self.assertRaisesRegex((ValueError, stele.Error), "name"):
                stele.Writer(self.target + "@", append=append, force=append is False)

    def test_dry_run(self):
        def plan(name, **options):
            with stele.Writer(self.target + name, dry_run=True, progress=False, **options) as w:
                w.extend({"d": b"4" * 1000, "e": b"5"})
            self.assertEqual((w.report.written_count, w.report.payload_size), (2, 1001))
            self.assertEqual(w.report.digest, "0" * 64)

        plan("@v2")
        plan("-new")
        with self.assertLogs("stele", "WARNING") as logged:
            plan("", force=True)
        self.assertIn("which would be overwritten", logged.output[0])
        with self.assertRaisesRegex(stele.ExistsError, "is there already"):
            self.write({"a": b"9"}, target=self.target + "@v2", dry_run=True)
        self.assertEqual(digest(self.target), self.before)
        self.assertFalse(os.path.exists(self.target + "-new"))

    def test_posix(self):
        target = self.target + "-posix"
        with self.assertRaisesRegex(TypeError, "^posix must be True or False, not 2$"):
            self.write({"dir/a": b"1"}, target=target, posix=2)
        self.write({"dir/a": b"1"}, target=target, posix=True)
        data = Path(target).read_bytes()
        self.assertEqual(data[1024:1028], b"\xe2\xe1\xf5\xe0")  # an EROFS
        self.assertIn(stele.open(target).info.granule, (512, 4096))
        self.assertTrue(stele.verify(target).sound)

    def test_file_size(self):
        target = self.target + "-size"
        self.write({"a": b"1"}, target=target, file_size=3 << 20)
        self.assertEqual(os.path.getsize(target), 3 << 20)
        self.write({"b": b"2"}, target=target + "@v2", file_size=4 << 20)
        self.assertEqual((os.path.getsize(target), stele.image_info(target).image_size), (4 << 20,) * 2)
        with self.assertRaisesRegex(stele.Error, "shrink"):
            self.write({"c": b"3"}, target=target + "@v3", file_size=3 << 20)

    def test_file_size_is_too_small(self):
        """A new file gets no larger than was asked for; and what is to be replaced stays."""
        for size, text in (1 << 20, "would have 1048576 bytes, the image needs"), (3 << 20, "no space left"):
            for path, options in (self.target + "-new", {}), (self.target, {"force": True}):
                for dry_run in True, False:
                    with self.assertRaisesRegex(stele.Error, text) as caught:
                        self.write({"a": bytes(4 << 20)}, target=path, file_size=size, dry_run=dry_run, **options)
                    self.assertEqual(caught.exception.errno, errno.ENOSPC)
                    self.assertIn("a larger file_size", caught.exception.__notes__[0])
        self.assertFalse(os.path.exists(self.target + "-new"))
        self.assertEqual(digest(self.target), self.before)

    def test_other_fields(self):
        for schema, why in (
            ({"other": int}, "field 'other' .i64. instead of 'data' .bytes."),
            ({"data": bytes, "more": int}, "field 'more' .i64. is not in the snapshot"),
        ):
            text = f"^cannot begin to put samples: what is appended has other fields than the snapshot: {why}$"
            with self.assertRaisesRegex(stele.Error, text) as caught:
                stele.Writer(self.target + "@v2", schema, progress=False)
            self.assertEqual(caught.exception.__notes__, ["without a schema, a Writer takes the fields of the snapshot"])
        self.assertEqual(digest(self.target), self.before)

    def test_fields_in_another_order(self):
        """Of an image that is there its own order counts, and values come by name."""
        schema, other = {"a": int, "b": int, "c": str}, {"c": str, "b": int, "a": int}
        with stele.Writer(self.target, schema, force=True, progress=False) as w:
            w.put("1", {"a": 1, "b": 2, "c": "3"})
        for base, name in (None, "v2"), ("v1", "v3"):
            with stele.Writer(f"{self.target}@{name}", other, base=base, progress=False) as w:
                self.assertEqual(list(w.fields), ["a", "b", "c"])
                w.put(name, {"c": "6", "b": 5, "a": 4})
            with stele.open(f"{self.target}@{name}") as ds:
                self.assertEqual([ds["1"][f] for f in ds.fields], [1, 2, "3"])
                self.assertEqual({f: ds[name][f] for f in ds.fields}, {"a": 4, "b": 5, "c": "6"})
        for bad, why in (
            (other | {"b": float}, "field 'b' is f64 instead of i64"),
            ({"d": int} | other, "field 'd' (i64) is not in the snapshot"),
            ({"c": str, "a": int}, "field 'c' (utf8) instead of 'b' (i64)"),
        ):
            with self.assertRaisesRegex(stele.Error, f": {re.escape(why)}$"):
                stele.Writer(self.target + "@v4", bad, progress=False)

    def test_an_exception(self):
        for kind in (RuntimeError, KeyboardInterrupt):
            with self.assertRaises(kind):
                with stele.Writer(self.target + "@v2", progress=False) as w:
                    w.put("d", b"4")
                    raise kind
            self.assertEqual(digest(self.target), self.before)
        fresh = self.target + "-new"
        with self.assertRaises(RuntimeError):
            with stele.Writer(fresh, progress=False) as w:
                w.put("d", b"4")
                raise RuntimeError
        self.assertFalse(os.path.exists(fresh))

    def test_never_committed(self):
        path = self.target + "-lost"
        program = (
            "import stele, sys\n"
            "w = stele.Writer(sys.argv[1])\n"
            "for i in range(10): w.put(str(i), b'x')\n"
        )
        result = subprocess.run(
            [sys.executable, "-c", program, path],
            stderr=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
        self.assertRegex(result.stderr, "RuntimeWarning: a Writer of '.*-lost@v1' was never")
        self.assertIn("10 samples", result.stderr)
        self.assertFalse(os.path.exists(path))
        for change, lost in (lambda w: w.put("d", b"4"), "1 sample;"), (lambda w: w.delete("a"), "0 samples;"):
            writer = stele.Writer(self.target + "@v2", progress=False)
            change(writer)
            with self.assertWarnsRegex(RuntimeWarning, f"never committed: what was put is lost, {lost}"):
                del writer
                gc.collect()
        self.assertEqual(digest(self.target), self.before)

    def test_a_warning_holds_no_target(self):
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            stele.Writer(self.target + "@v2", progress=False).put("d", b"4")
            gc.collect()
            self.assertEqual(len(given), 1)
            with stele.Writer(self.target + "@v2", progress=False) as writer:
                writer.put("d", b"4")
        self.assertEqual(set(self.contents("v2")), set("abcd"))

    def test_nothing_is_lost(self):
        def put(name):
            writer = stele.Writer(f"{self.target}-{name}", progress=False)
            writer.put("d", b"4")
            return writer

        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            put("committed").commit()
            put("closed").close()
            with contextlib.suppress(RuntimeError), put("raised"):
                raise RuntimeError
            with put("with"):
                pass
            stele.Writer(self.target + "-empty", progress=False)
            with contextlib.suppress(stele.Error):
                stele.Writer(self.target + "@v1")
            kept = put("forked")
            pid = os.fork()
            if not pid:  # it is not the child's
                del kept
                gc.collect()
                os._exit(len(given))
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
            kept.close()
            del kept
            gc.collect()
        self.assertEqual([str(one.message) for one in given], [])

    def test_options_of_a_new_image(self):
        for options in {"label": "x"}, {"uuid": uuid.UUID(int=0)}, {"posix": True}, {"object_size": 1 << 22}:
            with self.assertRaisesRegex(ValueError, f"{[*options][0]} is of a new image, and '.*' is one that is"):
                stele.Writer(self.target + "@v2", progress=False, **options)
        self.assertEqual(digest(self.target), self.before)
        self.write({"z": b"26"}, target=self.target + "@v2", label=None, uuid=None, posix=False, object_size=0)

    def test_bytes_as_target(self):
        raw = os.fsencode(self.target)
        self.write({"z": b"26"}, target=raw + b"@v2")
        with stele.open(raw + b"@v2") as ds:
            self.assertEqual(bytes(pickle.loads(pickle.dumps(ds))["z"]), b"26")
        odd = raw + b"-\xff"
        self.write({"a": b"1"}, target=odd)
        self.write({"b": b"2"}, target=Path(os.fsdecode(odd + b"@v2")))
        self.assertEqual([s.name for s in stele.snapshots(odd)], ["v1", "v2"])
        with stele.open(odd + b"@v2") as ds:
            self.assertEqual(len(ds), 2)
        with self.assertRaisesRegex(TypeError, "str, bytes or os.PathLike"):
            stele.Writer(3)

    def test_classes_grow(self):
        target = self.target + "-classes"
        with stele.Writer(target, {"label": ["cat", "dog"]}, progress=False) as w:
            w.put("a", "dog")
        with stele.Writer(target + "@v2", {"label": ["bird", "dog"]}, progress=False) as w:
            w.put("b", "bird")
            w.put("c", "dog")
        with stele.open(target + "@v2") as ds:
            self.assertEqual(ds.classes, ("cat", "dog", "bird"))
            self.assertEqual([ds[key]["label"] for key in "abc"], [1, 2, 1])


class Progress(Case):
    def test_callback(self):
        seen = []
        with stele.Writer(self.target, progress=seen.append) as w:
            w.extend({f"{i}": b"x" for i in range(100)})
        self.assertEqual(seen[0], stele.Progress("put", 1, 100, 1, 0))
        self.assertIn("write", [progress.phase for progress in seen])

    def test_stopped_while_writing(self):
        def stop(progress):
            if progress.phase == "write":
                raise RuntimeError("enough")

        data = os.urandom(1 << 20)
        with self.assertRaisesRegex(RuntimeError, "enough"):
            with stele.Writer(self.target, progress=stop) as w:
                w.extend((f"{i}", data) for i in range(64))
        self.assertFalse(os.path.exists(self.target))

    def test_interrupted(self):
        def interrupt(progress):
            if progress.phase == "write":
                os.kill(os.getpid(), signal.SIGINT)

        data = os.urandom(1 << 20)
        with self.assertRaises(KeyboardInterrupt):
            with stele.Writer(self.target, progress=interrupt) as w:
                w.extend((f"{i}", data) for i in range(64))
        self.assertFalse(os.path.exists(self.target))
