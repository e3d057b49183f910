# SPDX-License-Identifier: Apache-2.0
"""Dataset and Sample in one thread."""

import collections
import contextlib
import copy
import errno
import gc
import io
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading
import traceback
import unittest
from pathlib import Path

import images
import numpy
import stele
import stele.wids


def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


class Sequence(unittest.TestCase):
    def setUp(self):
        self.ds = stele.open(images.plain())
        self.addCleanup(self.ds.close)

    def test_every_sample(self):
        self.assertEqual(len(self.ds), images.COUNT)
        seen = {s.key: bytes(s) for s in self.ds}
        self.assertEqual(seen, images.CONTENT)

    def test_reversed(self):
        for ds in self.ds, self.ds.subset(range(64)), self.ds.subset([5, 3, 9]), self.ds.subset([]):
            self.assertEqual([s.id for s in reversed(ds)], [s.id for s in ds][::-1])

    def test_index(self):
        n = len(self.ds)
        for i in (0, 1, n - 1, -1, -n, numpy.int64(5), True):
            s = self.ds[i]
            self.assertEqual(s.id, int(i) % n)
            self.assertEqual(bytes(s), images.CONTENT[s.key])
            self.assertEqual(len(s), len(images.CONTENT[s.key]))
        for bad in (n, -n - 1, 1 << 70):
            with self.assertRaises(IndexError):
                self.ds[bad]
        for bad in (1.5, None, object(), {1}, "label"[:0] or b"".join, [1.5], ["a"]):
            with self.assertRaises(TypeError):
                self.ds[bad]

    def test_out_of_range(self):
        """The number is the one that was given, of any size."""
        n = len(self.ds)
        of = lambda *numbers, dtype: numpy.array(numbers, dtype)
        for which, number in (
            *((i, i) for i in (n, -n - 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**30)),
            (numpy.uint64(2**64 - 1), 2**64 - 1), ([0, 2**64], 2**64), (range(2**70, 2**70 + 2), 2**70),
            (of(0, 2**64 - 1, dtype="u8"), 2**64 - 1), (of(2**63, dtype="u8"), 2**63),
            (of(-(2**63), dtype="i8"), -(2**63)), (of(2**32 - 1, dtype="u4"), 2**32 - 1),
        ):  # fmt: skip
            with self.assertRaisesRegex(IndexError, f"^sample {number} is out of range: there are {n}$"):
                self.ds[which]
        for number in 10**5000, -(10**5000):  # Python writes no such number
            with self.assertRaises(IndexError):
                self.ds[number]

    def test_arrays_of_others(self):
        """Arrays that select nothing are refused in our words, not in NumPy's."""
        numbers = numpy.arange(len(self.ds))
        for bad in (
            numbers[:6].reshape(2, 3), numbers.astype(float), numbers[:, None], [1.5],
            numpy.stack([numbers > 3, numbers > 9], 1), [numbers[:2], numbers[:2]],
        ):  # fmt: skip
            for choose in (self.ds.__getitem__, self.ds.subset):
                with self.assertRaisesRegex(TypeError, "^samples are selected by int .*, not by <"):
                    choose(bad)

    def test_many(self):
        n = len(self.ds)
        for which, ids in (
            ([3, 1, 1, -1], [3, 1, 1, n - 1]),
            ((2, 0), [2, 0]),
            (range(5, 0, -2), [5, 3, 1]),
            (slice(10, 14), [10, 11, 12, 13]),
            (slice(None, None, 200), [0, 200, 400]),
            (slice(-2, None), [n - 2, n - 1]),
            (numpy.array([7, -2]), [7, n - 2]),
            (numpy.array([7, 8], dtype="u2"), [7, 8]),
            (numpy.array([-1], dtype="i1"), [n - 1]),
            (numpy.arange(20)[::7], [0, 7, 14]),
            ([], []),
        ):
            for read in (self.ds.__getitem__, self.ds.__getitems__, self.ds._getitems):
                got = read(which)
                self.assertIsInstance(got, list)
                self.assertEqual([s.id for s in got], ids)
                for s in got:
                    self.assertEqual(bytes(s), images.CONTENT[s.key])
        mask = self.ds.column("label") == 2
        self.assertEqual([s.id for s in self.ds[mask]], numpy.flatnonzero(mask).tolist())
        part = self.ds.subset([4, 9, 2])
        self.assertEqual([s.id for s in part[numpy.array([True, False, True])]], [4, 2])
        self.assertEqual(len(self.ds.subset(mask)), mask.sum())
        self.assertEqual(len(self.ds[mask[::-1]]), mask.sum())
        self.assertEqual(self.ds[numpy.zeros(n, bool)], [])
        for bad in (mask[1:], numpy.ones(n + 1, bool)):
            with self.assertRaisesRegex(IndexError, "a mask of"):
                self.ds[bad]
        for bad in ([n], numpy.array([0, n]), numpy.array([1 << 63], dtype="u8"), [-n - 1]):
            with self.assertRaises(IndexError):
                self.ds[bad]

    def test_lists_of_bool(self):
        """They are masks, as arrays are; never ids 0 and 1."""
        labels = self.ds.column("label")
        mask = labels == 2
        wanted = numpy.flatnonzero(mask).tolist()

        class Sequence:  # neither a list nor a buffer
            def __len__(self):
                return len(mask)

            def __getitem__(self, index):
                return mask[index]

        for which in (mask.tolist(), list(mask), [x == 2 for x in labels], tuple(mask.tolist()),
                      Sequence()):  # fmt: skip
            for read in (self.ds.__getitem__, self.ds.__getitems__, self.ds._getitems,
                         self.ds.subset):  # fmt: skip
                self.assertEqual([s.id for s in read(which)], wanted)
        part = self.ds.subset([4, 9, 2])
        self.assertEqual([s.id for s in part[[True, False, True]]], [4, 2])
        self.assertEqual(part.subset([False] * 3)._ids(), b"")
        self.assertEqual(len(part.subset([])), 0)
        for bad in ([True], [False, True], [True] * 4, [False] * 600):
            for read in (part.__getitem__, part.__getitems__, part.subset):
                with self.assertRaisesRegex(IndexError, f"^a mask of {len(bad)} for 3 samples$"):
                    read(bad)
        for bad in ([True, 0, 1], [0, True, False], [0, True], [1, numpy.True_],
                    [True, True, numpy.int64(1)], [True, False, None]):  # fmt: skip
            with self.assertRaisesRegex(TypeError, "by int or by bool, not by some of each"):
                part[bad]
        self.assertEqual([s.id for s in part[[numpy.int64(1), 0, numpy.uint8(2)]]], [9, 4, 2])
        for bad in ([True, False], [0, numpy.True_]):
            with self.assertRaisesRegex(TypeError, "by index, not by bool"):
                stele.wids.ShardListDataset(self.ds).__getitems__(bad)

    def test_key(self):
        key = images.key(77)
        for k in (key, key.encode()):
            self.assertEqual(self.ds[k].key, key)
            self.assertEqual(self.ds[self.ds.find(k)].key, key)
            self.assertIn(k, self.ds)
        self.assertNotIn("none", self.ds)
        for bad in ("none", b"\xff", ""):
            with self.assertRaises(stele.NotFound) as caught:
                self.ds[bad]
            self.assertIsInstance(caught.exception, KeyError)
            self.assertEqual(caught.exception.errno, errno.ENOENT)
            self.assertIn("no sample has this key", str(caught.exception))
            line = traceback.format_exception_only(caught.exception)[0]
            self.assertTrue(line.startswith("stele.NotFound: "), line)
            if isinstance(bad, str):
                self.assertEqual(caught.exception.key, bad)

    def test_keys(self):
        self.assertEqual(list(self.ds.keys()), sorted(images.CONTENT))
        wanted = [k for k in sorted(images.CONTENT) if k.startswith("class2/01")]
        self.assertEqual(list(self.ds.keys("class2/01")), wanted)
        self.assertEqual([self.ds[i].key for _, i in self.ds.items("class2/01")], wanted)
        self.assertEqual(list(self.ds.keys("zzz")), [])

    def test_keys_of_a_subset(self):
        """What is not in it is not found, however it was chosen."""
        names = [s.key for s in self.ds]
        shuffled = [i * 7 % 600 for i in range(300)]
        for which in (range(100, 200), range(0), range(0, 600, 3), range(599, 300, -1), [],
                      shuffled, shuffled + shuffled[:9], [5], [599, 0]):  # fmt: skip
            part = self.ds.subset(which)
            inside = set(which)
            self.assertEqual(part.subset(slice(None))._ids(), part._ids())
            for id, key in enumerate(names):
                self.assertEqual(key in part, id in inside, (which, id))
                if id in inside:
                    self.assertEqual((part.find(key), part[key].id), (id, id))
                    continue
                for use in (part.find, part.__getitem__):
                    with self.assertRaisesRegex(stele.NotFound, "no sample of this subset has"):
                        use(key)
            wanted = sorted((names[i], i) for i in inside)
            self.assertEqual(list(part.items()), wanted)
            self.assertEqual(list(part.keys("class2/")), [k for k, _ in wanted if "2/" in k])
            self.assertEqual(part._ipython_key_completions_(), [k for k, _ in wanted])
        train = self.ds.subset(prefix="class1/")
        self.assertNotIn("class2/0002.bin", train)
        self.assertIn("class1/0001.bin", train)
        self.assertNotIn("class1/0001.bin", train.subset(range(1, len(train))))
        again = pickle.loads(pickle.dumps(train))
        self.addCleanup(again.close)
        self.assertEqual(list(again.keys()), list(self.ds.keys("class1/")))
        keys = train.items()
        train.close()
        self.assertEqual(len(list(keys)), 150)

    def test_column(self):
        labels = self.ds.column("label")
        self.assertEqual(labels.dtype, numpy.int64)
        self.assertEqual(labels.tolist(), [s["label"] for s in self.ds])
        self.assertEqual(self.ds.stats()["samples"], len(self.ds))
        part = self.ds.subset([9, 3])
        self.assertEqual(part.column("label").tolist(), [labels[9], labels[3]])
        self.assertEqual(
            self.ds.subset(range(5, 50)).column("label").tolist(), labels[5:50].tolist()
        )
        with self.assertRaises(TypeError):
            self.ds.column("data")
        with self.assertRaises(KeyError):
            self.ds.column("none")

    def test_select(self):
        labels = self.ds.column("label")
        numbers = range(len(labels))
        largest = max(map(len, images.CONTENT.values()))
        for where, wanted in (
            ("label = 2", numpy.flatnonzero(labels == 2)),
            ("label IN (1, 4) AND id > 100", [i for i in numbers[101:] if labels[i] in (1, 4)]),
            ("label_name = 'class3' OR id < 3", [i for i in numbers if labels[i] == 3 or i < 3]),
            ("key LIKE 'class2/01%'", sorted(i for _, i in self.ds.items("class2/01"))),
            (f"size = {largest}", [s.id for s in self.ds if len(s) == largest]),
            ("label > 99", []),
            ("label = 'class3'", []),  # as the docstring warns
            ("NULL", []),
            ("1", numbers),
        ):
            found = self.ds.select(where)
            self.assertEqual(found.dtype, numpy.int64)
            self.assertEqual(found.tolist(), list(wanted), where)
        some = [9, 3, 100, 101]
        wanted = [i for i, id in enumerate(some) if labels[id] == 2 or id == 9]
        chosen = self.ds.subset(some).select("label = 2 OR id = 9")
        self.assertEqual(chosen.tolist(), wanted)
        wanted = numpy.flatnonzero(labels[50:90] == 2).tolist()
        self.assertEqual(self.ds.subset(range(50, 90)).select("label = 2").tolist(), wanted)
        for bad in ("labl = 2", "label =", "1); SELECT (2", "", "1) --", "1 ORDER BY id", "1\0"):
            with self.assertRaises(ValueError, msg=bad):
                self.ds.select(bad)
        with self.assertRaisesRegex(ValueError, "no such column: labl .there are id, key"):
            self.ds.select("labl = 2")
        with self.assertRaisesRegex(TypeError, "^where must be a str, .*, not <class 'int'>$"):
            self.ds.select(7)

    def test_select_interrupted(self):
        numbers = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c)"
        endless = f"id = ({numbers} SELECT count(*) FROM c)"
        timer = threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            self.ds.select(endless)
        timer.join()

    def test_completion(self):
        self.assertEqual(self.ds._ipython_key_completions_(), sorted(images.CONTENT))
        self.assertEqual(dir(stele), sorted([*stele.__all__, "__version__"]))

    def test_subset(self):
        part = self.ds.subset(range(100, 200))
        self.assertEqual((len(part), part[0].id, part[-1].id), (100, 100, 199))
        inner = part.subset([5, 3])
        self.assertEqual([s.id for s in inner], [105, 103])
        for some, bad in ((part, 100), (part, -101), (inner, 2), (inner, -3)):
            with self.assertRaises(IndexError):
                some[bad]
        self.assertEqual(part._ids(), (100, 100))
        self.assertEqual([s.id for s in part.subset(range(3))], [100, 101, 102])
        self.assertEqual([s.id for s in part.subset(range(2, -1, -1))], [102, 101, 100])
        self.assertEqual([s.id for s in part.subset(range(0, 9, 4))], [100, 104, 108])
        self.assertEqual(len(part.subset(range(0))), 0)
        self.assertEqual([s.id for s in part.subset(range(-1, 2))], [199, 100, 101])
        with self.assertRaises(IndexError):
            part.subset(range(99, 101))
        prefix = self.ds.subset(prefix="class3/")
        self.assertEqual([s.key for s in prefix], list(self.ds.keys("class3/")))
        self.assertTrue(
            all(s.key.startswith("class3/") and 100 <= s.id < 200
                for s in part.subset(prefix="class3/"))
        )  # fmt: skip
        some = inner.subset(prefix=self.ds[103].key)
        self.assertEqual([s.id for s in some], [103])
        self.assertNotEqual(repr(part), repr(self.ds))
        with self.assertRaises(TypeError):
            self.ds.subset()
        for bad in (5, "class1", b"class1", 1.5, {1, 2}, numpy.int64(5), numpy.array(5)):
            with self.assertRaisesRegex(
                TypeError, r"^subset\(\) takes a slice, .*prefix=, not <class"
            ):
                self.ds.subset(bad)
        with self.assertRaisesRegex(TypeError, "^samples are selected by int, key, .*'float'>$"):
            self.ds[1.5]

    def test_damaged_class_names(self):
        with stele.open(images.unnamed()) as ds:
            self.assertEqual({s.key: bytes(s) for s in ds}, images.CONTENT)
            self.assertEqual(ds.column("label").tolist(), self.ds.column("label").tolist())
            self.assertEqual(ds[5]["label"], self.ds[5]["label"])
            self.assertEqual(list(ds.fields), ["data", "label"])
            self.assertEqual(ds.fields["label"].type, "int")
            self.assertIn("<table>", ds._repr_html_())
            self.assertEqual(pickle.loads(pickle.dumps(ds)).info.digest, self.ds.info.digest)
            for names in (
                lambda: ds.classes,
                lambda: ds.fields["label"].classes,
                ds[5].class_name,
                lambda: ds.select("label_name = 'class1'"),
                lambda: list(stele.Loader(ds, batch_size=4, where="label_name = 'class1'")),
                lambda: stele.Writer(str(images.DIRECTORY / "never.stele"), ds.fields),
            ):
                with self.assertRaisesRegex(stele.ChecksumError, "class names of field 'label'") as caught:
                    names()
                self.assertIn("'stele help damage' says how", *caught.exception.__notes__)
            with self.assertRaises(TypeError):
                ds[5].class_name("data")

    def test_damaged_class_names_are_not_lost(self):
        """Whatever a field of damaged names becomes, it is not one without names."""
        with stele.open(images.unnamed()) as ds:
            field = ds.fields["label"]
            bare = stele.Field(*field)
            self.assertEqual(tuple(field), ("label", "int", None, "", ()))
            self.assertIsNone(field._asdict()["classes"])
            self.assertEqual(
                repr(field), "Field(name='label', type='int', classes=<damaged>, dtype='', shape=())"
            )
            self.assertNotEqual(field, stele.Field("label", "int", (), "", ()))
            target = images.DIRECTORY / "never.stele"
            for same in (field, bare, copy.copy(field), field._replace(name="class"),
                         stele.Field(**field._asdict()), pickle.loads(pickle.dumps(field))):  # fmt: skip
                with self.assertRaisesRegex(stele.ChecksumError, "class names of field 'label'"):
                    stele.Writer(str(target), {"data": bytes, "label": same})
                self.assertFalse(target.exists())

    def test_made_by_its_class(self):
        """As repr() says: all that stele.open() makes can be done with it."""
        with stele.Dataset(Path(images.plain())) as ds:
            self.assertEqual([s.key for s in ds.subset(range(3))], [s.key for s in self.ds[:3]])
            self.assertEqual(pickle.loads(pickle.dumps(ds)).info.digest, self.ds.info.digest)
            self.assertEqual(*(len(stele.Loader(of, batch_size=8, where="label = 1")) for of in (ds, self.ds)))

    def test_what_it_is(self):
        info = self.ds.info
        self.assertEqual((info.sample_count, info.snapshot), (images.COUNT, "v1"))
        self.assertEqual(
            repr(self.ds), f"stele.Dataset('{images.plain()}@sha256:{info.digest}')"
        )
        self.assertEqual(repr(self.ds), repr(stele.open(images.plain() + "@v1")).replace("@v1", ""))
        self.assertEqual(self.ds.classes, tuple(f"class{i}" for i in range(4)))
        self.assertEqual(self.ds.fields["label"].type, "int")
        self.assertEqual(self.ds.fields["label"].classes, self.ds.classes)
        self.assertIn("<table>", self.ds._repr_html_())
        s = self.ds[0]
        self.assertEqual(s.class_name(), s.key.split("/")[0])
        self.assertEqual(s.class_name("label"), s.class_name())
        with self.assertRaisesRegex(KeyError, "no field 'none': there are 'data', 'label'"):
            s["none"]
        with self.assertRaisesRegex(KeyError, "there are 'data', 'label'"):
            s.class_name("none")
        with self.assertRaises(TypeError):
            s[0]
        self.assertIn(repr(s.key), repr(s))

    def test_pickle(self):
        for ds in (
            self.ds,
            self.ds.subset(range(5, 9)),
            self.ds.subset([4, 2]),
            stele.open(images.plain(), verify="none"),
        ):
            other = pickle.loads(pickle.dumps(ds))
            self.assertEqual([s.id for s in other], [s.id for s in ds])
            self.assertEqual(other.info.digest, ds.info.digest)

    def test_pickle_of_a_relative_path(self):
        """Processes that are spawned begin in the directory that their parent is in by then."""
        target = Path(images.plain())
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(target.parent)
        with stele.open(target.name) as ds:
            os.chdir("/")
            for some in (ds, ds.subset([4, 2])):
                with pickle.loads(pickle.dumps(some)) as other:
                    self.assertEqual([s.id for s in other], [s.id for s in some])
            os.chdir(target.parent)
            again = pickle.loads(pickle.dumps(ds))
            self.assertTrue(again.info.target.startswith("plain.stele@"), "by its own name first")

    def test_pickle_of_what_is_gone(self):
        target = images.copy(images.plain(), "gone.stele")
        data = pickle.dumps(stele.open(target))
        subprocess.run(["stele", "build", "-q", "--force", images.DIRECTORY / "plain/class0", target],
                       check=True)  # fmt: skip
        with self.assertRaises(stele.StaleError):
            pickle.loads(data)

    def test_context(self):
        with stele.open(images.plain()) as ds:
            s, batch, keys = ds[100], ds[0:50], ds.keys()
            view, array = memoryview(ds[7]), ds[8].numpy()
            part = ds.subset([1, 2])
        for use in (lambda: ds[0], lambda: ds.info, lambda: ds.find("x"), ds.stats, ds.keys,
                    ds.__enter__):  # fmt: skip
            with self.assertRaises(ValueError):
                use()
        self.assertEqual(repr(ds), "<stele.Dataset, closed>")
        self.assertEqual(ds._repr_html_(), "&lt;stele.Dataset, closed&gt;")
        ds.close()
        self.assertEqual(bytes(s), images.CONTENT[s.key])
        self.assertEqual(s["label"], int(s.key[5]))
        self.assertEqual(s.class_name(), s.key.split("/")[0])
        self.assertEqual([bytes(b) for b in batch], [images.CONTENT[b.key] for b in batch])
        self.assertEqual(bytes(view), images.CONTENT[self.ds[7].key])
        self.assertEqual(array.tobytes(), images.CONTENT[self.ds[8].key])
        self.assertEqual(len(list(keys)), images.COUNT)
        self.assertEqual(part[0].id, 1)

    def test_mmap(self):
        with stele.open(images.plain(), mmap=True) as ds:
            self.assertEqual({s.key: bytes(s) for s in ds}, images.CONTENT)
            view = memoryview(ds[5])
            self.assertTrue(view.readonly)
            self.assertEqual(ds.stats()["samples"], 0)
            self.assertEqual(bytes(pickle.loads(pickle.dumps(ds))[5]), bytes(view))

    def test_names_that_others_expand(self):
        for name, note in (
            ("~/x.stele@v1", "shells alone know that '~': os.path.expanduser() replaces it"),
            ("s3://pool/x.stele", "images are files, block devices, or rbd:POOL/IMAGE: copy it to one first"),
        ):
            with self.assertRaises(stele.NotFound) as caught:
                stele.open(name)
            self.assertEqual(caught.exception.__notes__, [note])

    def test_a_key_behind_a_target(self):
        with self.assertRaises(stele.Error) as caught:
            stele.open(f"{images.plain()}/class0")
        self.assertEqual(caught.exception.__notes__, ["keys are no part of a target: ds[key], ds.keys(prefix)"])

    def test_a_file_with_an_at_sign(self):
        path = images.DIRECTORY / "run@3.stele"
        path.unlink(missing_ok=True)
        path.symlink_to(images.plain())
        with self.assertRaises(stele.NotFound) as caught:
            stele.open(path)
        (note,) = caught.exception.__notes__
        self.assertEqual(note, f"for that file write '{path}@': the last '@' begins a snapshot")
        self.assertEqual(len(stele.open(f"{path}@")), len(stele.open(images.plain())))

    def test_open_errors(self):
        for target, kind, number in (
            (images.DIRECTORY / "none", stele.NotFound, errno.ENOENT),
            (images.plain() + "@none", stele.NotFound, errno.ENOENT),
            ("/dev/null", stele.Error, errno.ENOTBLK),
            (__file__, stele.Error, None),
        ):
            with self.assertRaises(kind) as caught:
                stele.open(target)
            self.assertIsInstance(caught.exception, OSError)
            self.assertGreater(len(str(caught.exception)), 5)
            if number:
                self.assertEqual(caught.exception.errno, number)
        with self.assertRaises(ValueError):
            stele.open(images.plain(), verify="some")
        with self.assertRaises(ValueError):
            stele.open(images.plain() + "\0")
        with self.assertRaises(stele.Error):
            stele.open(images.plain(), backend="none")

    def test_damage(self):
        with stele.open(images.damaged()) as ds:
            key = images.key(100)
            id = self.ds.find(key)
            for use in (lambda: ds[id], lambda: ds[[0, id, 1]], lambda: ds[key]):
                with self.assertRaises(stele.ChecksumError) as caught:
                    use()
                error = caught.exception
                self.assertEqual((error.errno, error.id, error.key), (errno.EBADMSG, id, key))
                self.assertIn(key, str(error))
                self.assertEqual(
                    error.__notes__,
                    [
                        f"it is in '{images.damaged()}': 'stele verify' lists all damage there, "
                        "'stele help damage' says how to go on"
                    ],
                )
                again = pickle.loads(pickle.dumps(error))
                self.assertEqual((again.errno, again.id, again.key), (errno.EBADMSG, id, key))
            self.assertEqual(bytes(ds[id - 1]), bytes(self.ds[id - 1]))
            del caught, error
            gc.collect()
            self.assertEqual(ds.stats()["held_bytes"], 0)
            self.assertGreater(ds.stats()["failed"], 0)

    def damaged_keys(self, first):
        """An image where the block of keys that begins with this one is damaged."""
        target = images.copy(images.plain(), f"{self.id()}.stele")
        data = bytearray(Path(target).read_bytes())
        data[data.rfind(first)] ^= 1
        Path(target).write_bytes(data)
        (damage,) = stele.verify(target, progress=False).damage
        self.assertEqual(damage.what, "keys")
        return stele.open(target)

    def test_damaged_keys(self):
        """Of no sample: the exception says which section it is."""
        with self.damaged_keys(b"class0/0000") as ds:
            for use in (
                lambda: ds[images.key(0)], lambda: ds.find(images.key(0)),
                lambda: images.key(0) in ds, ds.keys, lambda: ds.subset(prefix="class0"),
            ):  # fmt: skip
                with self.assertRaisesRegex(stele.ChecksumError, "keys of segment .* checksum") as caught:
                    use()
                self.assertEqual((caught.exception.id, caught.exception.key), (None, None))
            self.assertEqual(len(ds[0:10]), 10)
        with self.damaged_keys(b"class3/0459") as ds:
            listed = ds.items()
            for _ in range(2):  # it stays where it is, and says the same
                with self.assertRaisesRegex(stele.ChecksumError, "keys of segment .* checksum"):
                    collections.deque(listed, maxlen=0)
                with self.assertRaises(stele.NotFound):
                    stele.open(images.plain() + "@none")

    def test_command(self):
        out = subprocess.run([sys.executable, "-m", "stele", "--version"], capture_output=True)
        self.assertEqual(out.returncode, 0, out)
        self.assertIn(stele.__version__.encode(), out.stdout)


class Memory(unittest.TestCase):
    def setUp(self):
        self.ds = stele.open(images.plain())
        self.addCleanup(self.ds.close)

    def held(self):
        gc.collect()
        return self.ds.stats()["held_bytes"]

    def test_comes_back(self):
        samples = self.ds[0:100]
        self.assertGreater(self.held(), sum(map(len, samples)))
        last = samples[50]
        del samples
        before = self.held()
        self.assertGreater(before, 0)
        view = memoryview(last)
        array = numpy.frombuffer(last, "u1")
        pack = last.__dlpack__()
        wanted = images.CONTENT[last.key]
        field = last["data"]
        del last
        self.assertEqual((bytes(view), array.tobytes(), bytes(field)), (wanted,) * 3)
        del view, array
        self.assertEqual(self.held(), before)
        del pack, field
        self.assertEqual(self.held(), 0)
        self.assertEqual(self.ds.stats()["held_blocks"], 0)

    def test_kept_samples_stop_nothing(self):
        kept = [self.ds[i % len(self.ds)] for i in range(20000)]
        self.assertEqual(bytes(kept[0]), images.CONTENT[kept[0].key])
        self.assertGreaterEqual(self.ds.stats()["held_blocks"], 20000)
        del kept
        self.assertEqual(self.held(), 0)

    def test_writable(self):
        s = self.ds[10]
        numpy.frombuffer(s, "u1")[:] = 7
        self.assertEqual(set(bytes(s)), {7})
        self.assertEqual(bytes(self.ds[10]), images.CONTENT[s.key])

    def test_no_leak(self):
        def use():
            for _ in range(60):
                batch = self.ds[0:64]
                for s in batch:
                    memoryview(s), s.key, s["data"], s["label"], s.numpy(), s.__dlpack__()
                    s.class_name(), repr(s)
                for bad in ("none", 10**9, 1.5):
                    with contextlib.suppress(KeyError, IndexError, TypeError):
                        self.ds[bad]
                self.ds.fields, self.ds.info, self.ds.column("label"), list(self.ds.keys())
                with contextlib.suppress(stele.Error):
                    stele.open("/dev/null")
                with stele.open(images.plain()) as other:
                    other[0]
                with stele.Loader(self.ds, batch_size=100) as loader:
                    for b in loader:
                        b.buffer, b.offsets, b.stack("label"), b[0], b.samples()
                        loader.state_dict()

        use()
        gc.collect()
        before = rss()
        for _ in range(3):
            use()
        gc.collect()
        self.assertLess(rss() - before, 4 << 20)


class Fields(unittest.TestCase):
    """Against what `stele` itself says of an image with fields of every type."""

    def setUp(self):
        self.ds = stele.open(images.rich())
        self.addCleanup(self.ds.close)

    def test_kinds(self):
        kinds = {f.name: (f.type, f.dtype, f.shape) for f in self.ds.fields.values()}
        self.assertEqual(
            sorted(k[0] for k in kinds.values()),
            ["bytes", "float", "int", "int", "str", "tensor", "tensor"],
        )
        tensors = {f.name: f for f in self.ds.fields.values() if f.type == "tensor"}
        self.assertEqual({f.dtype for f in tensors.values()}, {"int16", "float32"})
        for s in self.ds:
            joined = b""
            for field in self.ds.fields.values():
                value = s[field.name]
                if field.type == "bytes":
                    self.assertIsInstance(value, memoryview)
                    joined += bytes(value)
                elif field.type == "str":
                    self.assertIsInstance(value, str)
                    joined += value.encode()
                elif field.type == "tensor":
                    self.tensor(value, field)
                    joined += bytes(memoryview(value))
                else:
                    self.assertIsInstance(value, int if field.type == "int" else float)
            self.assertEqual(joined, bytes(s))

    def tensor(self, value, field):
        array = value.numpy()
        self.assertEqual(str(array.dtype), field.dtype)
        self.assertEqual(array.shape, value.shape)
        self.assertEqual(array.nbytes, value.nbytes)
        for has, dim in zip(value.shape, field.shape, strict=True):
            self.assertIn(dim, (None, has))
        packed = numpy.from_dlpack(value)
        self.assertTrue(numpy.array_equal(packed, array, equal_nan=True))
        self.assertEqual(value.__dlpack_device__(), (1, 0))
        self.assertIn(field.dtype, repr(value))

    def test_scalars(self):
        for field in self.ds.fields.values():
            if field.type in ("int", "float"):
                column = self.ds.column(field.name)
                values = numpy.array([s[field.name] for s in self.ds])
                self.assertTrue(numpy.array_equal(column, values, equal_nan=True))

    def test_stack(self):
        with stele.Loader(self.ds, batch_size=50, shuffle=False) as loader:
            (batch,) = list(loader)
        for field in self.ds.fields.values():
            if field.type == "tensor" and None not in field.shape:
                stacked = batch.stack(field.name)
                self.assertEqual(stacked.shape, (50, *field.shape))
                wanted = numpy.stack([s[field.name].numpy() for s in batch])
                self.assertEqual(stacked.numpy().tobytes(), wanted.tobytes())
            elif field.type in ("int", "float"):
                stacked = batch.stack(field.name).numpy()
                self.assertEqual(stacked.tobytes(), self.ds.column(field.name).tobytes())
            elif None in field.shape:
                with self.assertRaisesRegex(ValueError, "have different shapes or dtypes$"):
                    batch.stack(field.name)
        with self.assertRaisesRegex(KeyError, "no field 'none': there are 'score', 'image', "):
            batch.stack("none")
        name = next(iter(self.ds.fields))
        with self.assertRaises(KeyError):
            self.ds[0][name + "\0"]

    def test_aligned(self):
        """Elements are, however many bytes lie in front of them in the sample."""
        path = str(images.DIRECTORY / "aligned.stele")
        wanted = {
            f"{size:02}": {
                "a": bytes(size),
                "x": numpy.arange(3) + 1j * size,
                "y": numpy.full((2, 2), size, "f4"),
            }
            for size in range(33)
        }
        with stele.Writer(path) as writer:
            for key, fields in wanted.items():
                writer.put(key, fields)
        for mapped in (False, True):
            with stele.open(path, mmap=mapped) as ds:
                for s in ds:
                    for name in ("x", "y"):
                        array = s[name].numpy()
                        place = array.__array_interface__["data"]
                        self.assertEqual(place, (place[0] // array.itemsize * array.itemsize, mapped))
                        self.assertTrue(numpy.array_equal(array, wanted[s.key][name]))

    def test_dlpack_versions(self):
        s = self.ds[0]
        self.assertIn('"dltensor"', repr(s.__dlpack__()))
        self.assertIn('"dltensor"', repr(s.__dlpack__(max_version=(0, 8))))
        self.assertIn('"dltensor_versioned"', repr(s.__dlpack__(max_version=(1, 0))))
        for bad in ({"copy": True}, {"dl_device": (2, 0)}):
            with self.assertRaises(BufferError):
                s.__dlpack__(**bad)
        with stele.open(images.rich(), mmap=True) as ds:
            with self.assertRaises(BufferError):
                ds[0].__dlpack__()
            ds[0].__dlpack__(max_version=(1, 1))
