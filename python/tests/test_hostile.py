# SPDX-License-Identifier: Apache-2.0
"""What a careless or hostile program may do: nothing hangs, crashes or leaks."""

import contextlib
import gc
import os
import random
import select
import signal
import subprocess
import sys
import traceback
import unittest
import unittest.mock

import images
import numpy
import stele

SIGNALS = int(os.environ.get("SIGNALS", "40"))


class Index:
    """An index that does something when it is asked for its value."""

    def __init__(self, value, before=lambda: None):
        self.value, self.before = value, before

    def __index__(self):
        self.before()
        return self.value


class Lying:
    """A sequence that has another length than it says."""

    def __init__(self, length, items):
        self.length, self.items = length, items

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        return self.items[index]


class Selecting(unittest.TestCase):
    def setUp(self):
        self.ds = stele.open(images.plain())
        self.addCleanup(self.ds.close)

    def test_indices(self):
        ids = lambda which: [s.id for s in self.ds[which]]  # noqa: E731
        self.assertEqual(self.ds[True].id, 1)
        for one in (numpy.int8(5), numpy.uint64(5), numpy.array(5), Index(5)):
            self.assertEqual(self.ds[one].id, 5)
        self.assertEqual(self.ds[numpy.int8(-1)].id, images.COUNT - 1)
        self.assertEqual(ids(numpy.array([-1, 2], "i1")), [images.COUNT - 1, 2])
        self.assertEqual(ids(numpy.arange(9)[::4]), [0, 4, 8])
        self.assertEqual(ids(numpy.array([1, 2], ">i4")), [1, 2])
        self.assertEqual(ids([numpy.int64(3), Index(4), 1]), [3, 4, 1])
        self.assertEqual(len(self.ds[[0] * 50000]), 50000)
        self.assertEqual(self.ds[-(10**30) : 10**30][-1].id, images.COUNT - 1)
        for which, error in (
            (10**30, IndexError),
            (-(10**30), IndexError),
            (numpy.uint64(2**63), IndexError),
            (numpy.array([2**64 - 1], "u8"), IndexError),
            ([0, images.COUNT], IndexError),
            ([-images.COUNT - 1], IndexError),
            (range(2**62), IndexError),
            (numpy.zeros((2, 2), int), TypeError),
            (numpy.array([1.5]), TypeError),
            ([None], TypeError),
            ({}, TypeError),
            ({1}, TypeError),
            (1.0, TypeError),
            (Index("1"), TypeError),
            (Lying(-1, []), ValueError),
            (Lying(2**62, [0]), MemoryError),
            (Lying(3, [0]), IndexError),
        ):
            with self.subTest(which=which), self.assertRaises(error):
                self.ds[which]
        with self.assertRaisesRegex(TypeError, "find.'x'. is the index in the whole snapshot"):
            self.ds[["x"]]
        with self.assertRaisesRegex(IndexError, f"sample -{images.COUNT + 1} "):
            self.ds[-images.COUNT - 1]

    def test_like_a_tensor(self):
        """Of PyTorch: no sequence, but an array, and an index if it has one element."""

        class Tensor:
            def __init__(self, array):
                self.array = numpy.array(array)
                self.ndim = self.array.ndim

            def __array__(self, dtype=None, copy=None):
                return self.array

            def __index__(self):
                return int(self.array.item())

        self.assertEqual([s.id for s in self.ds[Tensor([1, 5])]], [1, 5])
        self.assertEqual([s.id for s in self.ds[Tensor([7])]], [7])
        self.assertEqual(self.ds[Tensor(7)].id, 7)
        self.assertEqual(len(self.ds.subset(Tensor(numpy.arange(len(self.ds)) < 9))), 9)
        with self.assertRaises(IndexError):
            self.ds[Tensor([images.COUNT])]
        for bad in (Tensor([[1, 2]]), Tensor([1.5])):
            with self.assertRaisesRegex(TypeError, "by int or by bool in one dimension"):
                self.ds[bad]

    def test_code_that_runs_meanwhile(self):
        def raises():
            raise RuntimeError("mine")

        some = [Index(1, lambda: some.clear()), 2]
        with self.assertRaises(IndexError):
            self.ds[some]
        for which in (Index(1, raises), [0, Index(1, raises)]):
            with self.assertRaisesRegex(RuntimeError, "mine"):
                self.ds[which]
        ds = stele.open(images.plain())
        self.assertEqual([s.id for s in ds[[0, Index(1, ds.close), 2]]], [0, 1, 2])
        with self.assertRaises(ValueError):
            ds[0]

    def test_no_such_key(self):
        for key in ("", "a\0b", "x" * 100000, b"\xff"):
            self.assertNotIn(key, self.ds)
            with self.assertRaises(stele.NotFound):
                self.ds[key]

    def test_not_a_dataset(self):
        with self.assertRaises(TypeError):
            stele.Loader(unittest.mock.Mock(spec=stele.Dataset))

    def test_dlpack_arguments(self):
        s = self.ds[3]
        for bad in ({"dl_device": 5}, {"max_version": 5}, {"max_version": ("1",)}, {"new": 1}):
            with self.subTest(bad=bad), self.assertRaises(TypeError):
                s.__dlpack__(**bad)


class Callbacks(unittest.TestCase):
    def test_transform_that_raises(self):
        with stele.open(images.plain()) as ds:
            fails = iter([False, True, False])

            def transform(batch):
                if next(fails):
                    raise RuntimeError("mine")
                return batch.ids.tolist()

            with stele.Loader(ds, batch_size=10, shuffle=False, transform=transform) as loader:
                it = iter(loader)
                self.assertEqual(next(it), list(range(10)))
                with self.assertRaisesRegex(RuntimeError, "mine"):
                    next(it)
                state = loader.state_dict()
            with stele.Loader(ds, batch_size=10) as loader, self.assertRaises(stele.StaleError):
                loader.load_state_dict(state)  # of another order
            with stele.Loader(ds, batch_size=10, shuffle=False) as loader:
                loader.load_state_dict(state)
                self.assertEqual(next(iter(loader)).ids.tolist(), list(range(10, 20)))
            gc.collect()
            self.assertEqual(ds.stats()["held_bytes"], 0)

    def test_collection_at_every_allocation(self):
        """Finalizers that use what is being used."""

        class Cycle:
            def __del__(self):
                ds[0], ds[0:3], next(keys, None)

        with stele.open(images.plain()) as ds:
            keys = ds._keys("")
            before = gc.get_threshold()
            gc.set_threshold(1)
            try:
                for i in range(100):
                    cycle = Cycle()
                    cycle.self = cycle
                    del cycle
                    ds[i], ds[i : i + 9], next(keys, None), ds.fields, ds.stats()
            finally:
                gc.set_threshold(*before)
                gc.collect()


def use_everything(ds, loader, target):
    order = random.Random(os.getpid())
    while True:
        ds[order.randrange(len(ds))], ds[0 : order.randrange(300)]
        for batch in loader:
            batch.buffer, batch.stack("label"), batch.samples()
        list(ds.keys()), ds.find(images.key(3)), ds.info
        with stele.open(images.plain()) as other:
            other[0:9]
        with contextlib.suppress(stele.ExistsError):
            with stele.Writer(target, {"data": bytes}, append=False, progress=False) as writer:
                writer.extend((f"{i}", b"x") for i in range(50))
        stele.verify(images.plain(), progress=False)


class Signals(unittest.TestCase):
    def child(self, ready, target):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        ds = stele.open(images.plain())
        for _ in range(SIGNALS):
            try:
                os.write(ready, b".")
                use_everything(ds, stele.Loader(ds, batch_size=64), target)
            except KeyboardInterrupt:
                pass
        gc.collect()
        return bytes(ds[1]) == images.CONTENT[ds[1].key] and not ds.stats()["held_bytes"]

    def test_interrupts_at_any_time(self):
        read, write = os.pipe()
        pid = os.fork()
        if not pid:
            status = 1
            try:
                status = 0 if self.child(write, images.DIRECTORY / "signals.stele") else 2
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        order = random.Random(1)
        try:
            for i in range(SIGNALS):
                self.assertTrue(select.select([read], [], [], 30)[0], f"hangs at signal {i}")
                self.assertEqual(os.read(read, 1), b".")
                select.select([], [], [], order.random() * 0.06)
                os.kill(pid, signal.SIGINT)
        except BaseException:
            os.kill(pid, signal.SIGABRT)  # faulthandler says where
            raise
        finally:
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            os.close(read)
            os.close(write)
        self.assertEqual(status, 0)


class Interpreters(unittest.TestCase):
    def test_subinterpreters_are_refused(self):
        """Whichever way the interpreter has: clearly, and without a crash."""
        code = """
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
import sys
id = interpreters.create()
error = interpreters.run_string(id, f'''
import sys
sys.path[:] = {sys.path!r}
try:
    import stele
except ImportError as error:
    assert "subinterpreter" in str(error), error
else:
    raise SystemExit("imported")
''')
assert not error, error
interpreters.destroy(id)
import stele
"""
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((out.returncode, out.stderr), (0, ""))
