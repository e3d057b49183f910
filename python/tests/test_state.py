# SPDX-License-Identifier: Apache-2.0
"""What state_dict() of a Loader counts: what next() returned, whatever happened since."""

import asyncio
import contextlib
import ctypes
import faulthandler
import os
import random
import select
import signal
import time
import unittest

import images
import stele


class Stop(Exception):
    pass


def stop(*_):
    raise Stop


def ids(batches):
    return [i for batch in batches for i in batch.ids]


class Kill:
    """A transform that ends with a signal, and without any bytecode after it."""

    def from_param(self):
        return signal.SIGALRM

    @classmethod
    def function(cls):
        function = ctypes.CDLL(None)["raise"]
        function.argtypes = [cls]
        return function


class States(unittest.TestCase):
    def setUp(self):
        self.ds = stele.open(images.plain())
        self.addCleanup(self.ds.close)
        faulthandler.dump_traceback_later(300, exit=True)  # in the place of a deadlock
        self.addCleanup(faulthandler.cancel_dump_traceback_later)

    def loader(self, ds=None, **options):
        loader = stele.Loader(ds or self.ds, **{"batch_size": 50, "seed": 3, **options})
        self.addCleanup(loader.close)
        return loader

    def resumed(self, state, ds=None, **options):
        other = self.loader(ds, **options)
        other.load_state_dict(state)
        return [i for batch in other for i in batch.ids[: len(batch) - batch.padded]]

    def on_alarm(self, handler):
        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, handler))

    def failing(self, *when, error=Stop):
        """A transform, and what it was called with."""
        seen = []

        def transform(batch):
            seen.append(batch)
            if len(seen) in when:
                raise error
            return batch

        return transform, seen

    def test_transform(self):
        wanted = ids(self.loader())
        for error in (Stop, KeyboardInterrupt, StopIteration):
            transform, _ = self.failing(3, 4, 12, error=error)
            loader = self.loader(transform=transform)
            it = iter(loader)
            begin = loader.state_dict()
            got = [next(it), next(it)]
            state = loader.state_dict()
            self.assertNotEqual(state, begin)
            for left in (9, 8):
                with self.assertRaises(RuntimeError if error is StopIteration else error):
                    next(it)
                self.assertEqual(loader.state_dict(), state)
                self.assertEqual(loader.remaining, left)
            self.assertEqual(ids(got) + self.resumed(state), wanted)
            got.append(next(it))  # and those that failed are counted
            self.assertEqual(ids(got[2:]), wanted[200:250])
            self.assertEqual(self.resumed(loader.state_dict()), wanted[250:])
            got += [next(it) for _ in range(6)]
            with self.assertRaises(RuntimeError if error is StopIteration else error):
                next(it)  # the last one
            self.assertEqual(self.resumed(loader.state_dict()), wanted[550:])
            self.assertEqual(list(it), [])
            self.assertEqual(loader.epoch, 1)
            other = self.loader()
            other.load_state_dict(loader.state_dict())
            self.assertEqual(other.epoch, 1)

    def test_first(self):
        transform, _ = self.failing(1)
        loader = self.loader(transform=transform)
        begin = loader.state_dict()
        with self.assertRaises(Stop):
            list(loader)
        self.assertEqual(loader.state_dict(), begin)

    def test_damage(self):
        with stele.open(images.damaged()) as ds:
            bad = ds.find(images.key(100))
            loader = self.loader(ds, shuffle=False, batch_size=20)
            it, got = iter(loader), []
            with self.assertRaises(stele.ChecksumError):
                for batch in it:
                    got += batch.ids
            first = bad // 20 * 20
            self.assertEqual(got, list(range(first)))
            rest = self.resumed(loader.state_dict(), ds, shuffle=False, on_error="skip")
            self.assertEqual(rest, [i for i in range(first, 600) if i != bad])
            self.assertEqual(list(next(it).ids), list(range(first + 20, first + 40)))
            rest = self.resumed(loader.state_dict(), ds, shuffle=False)
            self.assertEqual(rest, list(range(first + 40, 600)))
            loader = self.loader(ds.subset(range(bad, 600)), shuffle=False)
            for epoch in range(2):
                with self.assertRaises(stele.ChecksumError):
                    list(loader)
                self.assertEqual(loader.epoch, epoch)

    def test_signal_at_the_end(self):
        """Of next(), when all but the return is done."""
        self.on_alarm(stop)
        wanted = ids(self.loader())
        loader = self.loader(transform=Kill.function())
        it = iter(loader)
        for _ in range(3):
            with self.assertRaises(Stop):
                next(it)
            self.assertEqual(self.resumed(loader.state_dict()), wanted)

    def test_signal_at_any_time(self):
        self.on_alarm(stop)
        wanted, interrupted = set(range(len(self.ds))), 0
        for seed in range(150):
            transform = (lambda batch: batch.ids.tolist()) if seed % 2 else None
            loader = self.loader(batch_size=20, seed=seed, transform=transform)
            got = []
            with contextlib.suppress(Stop):
                signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 2e-3))
                for batch in loader:
                    got.append(batch)
                time.sleep(60)
            state = loader.state_dict()
            seen = [i for batch in got for i in (batch if transform else batch.ids)]
            if len(got) < 30:
                interrupted += 1
                self.assertEqual(set(seen + self.resumed(state)), wanted)
                self.assertEqual(len(seen + self.resumed(state)), 600)
            loader.close()
        self.assertGreater(interrupted, 10)

    def test_signal_while_waiting(self):
        """Its handler may use the loader; and no epoch is left out."""
        loader = self.loader()
        wanted = ids(self.loader())
        begin, seen = loader.state_dict(), []

        def use(*_):
            seen.extend((loader.state_dict(), loader.stats(), loader.remaining, loader.epoch))
            os.write(loader._fd, (1).to_bytes(8, "little"))  # it goes on
            if len(seen) == 4:
                raise Stop

        self.on_alarm(use)
        for _ in range(2):
            select.select([loader._fd], [], [])
            os.read(loader._fd, 8)  # as if nothing were there
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            if not seen:
                with self.assertRaises(Stop):
                    next(iter(loader))
            else:
                self.assertEqual(ids(loader), wanted)
        self.assertEqual(seen[0], begin)
        self.assertEqual(seen[4:], [begin, seen[5], 12, 0])

    def test_iterated_while_waiting(self):
        """By a signal handler: who waited gets nothing of that epoch."""
        loader, inner = self.loader(), []

        def iterate(*_):
            os.write(loader._fd, (1).to_bytes(8, "little"))
            inner.append(next(iter(loader)))

        self.on_alarm(iterate)
        it = iter(loader)
        next(it)
        select.select([loader._fd], [], [])
        os.read(loader._fd, 8)  # as if nothing were there
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with self.assertRaises(RuntimeError):
            next(it)
        self.assertEqual([(batch.epoch, batch.step) for batch in inner], [(1, 0)])
        self.on_alarm(stop)  # in the place of waiting for what it does not get
        select.select([loader._fd], [], [])
        os.read(loader._fd, 8)
        signal.setitimer(signal.ITIMER_REAL, 5)
        with self.assertRaises(RuntimeError):
            next(it)
        signal.setitimer(signal.ITIMER_REAL, 0)
        self.assertIs(it._begin(), False)

    def test_dropped(self):
        """With an exception on its way, before anybody looked at it: as if not returned."""
        wanted = ids(self.loader())
        loader = self.loader()
        it = iter(loader)
        next(it)
        state = loader.state_dict()
        with self.assertRaises(TypeError):
            next(map(ord, it))
        self.assertEqual(loader.state_dict(), state)
        next(it)  # what is dropped without one was there
        self.assertEqual(self.resumed(loader.state_dict()), wanted[150:])
        kept = next(it)
        with self.assertRaises(TypeError):
            next(map(ord, it))
        with self.assertRaises(TypeError):
            ord(kept)
        del kept  # not the newest
        self.assertEqual(self.resumed(loader.state_dict()), wanted[200:])
        with self.assertRaises(TypeError):
            next(map(ord, map(self.look, it)))
        self.assertEqual(self.resumed(loader.state_dict()), wanted[300:])

    def look(self, batch):
        self.assertEqual(len(batch), 50)
        return batch

    def test_placed_by_the_transform(self):
        """What it loads stays."""
        loader = self.loader(transform=lambda batch: loader.set_epoch(5) or batch)
        it = iter(loader)
        next(it)
        other = self.loader()
        other.load_state_dict(loader.state_dict())
        self.assertEqual((other.epoch, other.remaining), (5, 12))

    def test_steps(self):
        """A batch has the number that it has without a resume."""
        loader = self.loader()
        it = iter(loader)
        self.assertEqual([next(it).step for _ in range(5)], [0, 1, 2, 3, 4])
        state = loader.state_dict()
        same = self.loader()
        same.load_state_dict(state)
        self.assertEqual([batch.step for batch in same], list(range(5, 12)))
        self.assertEqual([batch.step for batch in same], list(range(12)))
        for options, wanted in (
            ({"batch_size": 25}, range(10, 24)),
            ({"batch_size": 25, "world_size": 2, "rank": 1}, range(5, 12)),
            ({"batch_size": 60}, range(4, 10)),  # from 250 on, in steps of 60
            ({"batch_size": 90}, range(2, 6)),
            ({"batch_size": 250, "drop_last": True}, range(1, 2)),
        ):
            other = self.loader(**options)
            other.load_state_dict(state)
            steps = [batch.step for batch in other]
            self.assertEqual(steps, list(wanted))
            self.assertLess(steps[-1], len(other))

    def test_async(self):
        wanted = ids(self.loader())
        transform, _ = self.failing(3)
        loader = self.loader(transform=transform)

        async def run():
            it, got = aiter(loader), []
            with self.assertRaises(Stop):
                async for batch in it:
                    got.append(batch)
            self.assertEqual(ids(got) + self.resumed(loader.state_dict()), wanted)
            got = [await anext(it)]
            self.assertEqual(ids(got), wanted[150:200])
            self.assertEqual(self.resumed(loader.state_dict()), wanted[200:])
            self.assertEqual(len([batch async for batch in it]), 8)
            with self.assertRaises(StopAsyncIteration):
                await anext(it)
            self.assertEqual({batch.epoch async for batch in loader}, {1})

        asyncio.run(run())

    def test_the_end_is_final(self):
        loader = self.loader()
        it = iter(loader)
        self.assertEqual(len(list(it)), 12)
        self.assertEqual(list(it), [])
        self.assertEqual(loader.epoch, 1)
        unused = iter(loader)
        self.assertEqual({batch.epoch for batch in loader}, {1})
        self.assertEqual({batch.epoch for batch in unused}, {2})
