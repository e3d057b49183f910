# SPDX-License-Identifier: Apache-2.0
"""Loader and Batch."""

import asyncio
import base64
import gc
import json
import threading
import unittest
from collections import Counter

import images
import numpy
import stele


def ids(batches):
    return [i for batch in batches for i in batch.ids]


class Loaders(unittest.TestCase):
    def setUp(self):
        self.ds = stele.open(images.plain())
        self.addCleanup(self.ds.close)
        self.all = list(range(len(self.ds)))

    def loader(self, *args, **options):
        loader = stele.Loader(*(args or (self.ds,)), **options)
        self.addCleanup(loader.close)
        return loader

    def test_epochs(self):
        loader = self.loader(batch_size=50, seed=3)
        self.assertEqual(len(loader), 12)
        orders = []
        for epoch in range(3):
            self.assertEqual(loader.epoch, epoch)
            batches = list(loader)
            self.assertEqual({b.epoch for b in batches}, {epoch})
            self.assertEqual([b.step for b in batches], list(range(12)))
            orders.append(ids(batches))
            self.assertEqual(sorted(orders[-1]), self.all)
            for s in (s for b in batches for s in b):
                self.assertEqual(bytes(s), images.CONTENT[s.key])
                self.assertEqual(s["label"], int(s.key[5]))
        self.assertEqual(len({tuple(o) for o in orders}), 3)
        self.assertEqual(ids(self.loader(batch_size=7, seed=3)), orders[0] + orders[0][:2])
        loader.set_epoch(1)
        self.assertEqual(ids(loader), orders[1])
        next(iter(loader))
        self.assertEqual({b.epoch for b in loader}, {3})

    def test_one_iteration_at_a_time(self):
        """The one that began last; no other takes from its epoch."""
        outdated = self.assertRaisesRegex(RuntimeError, "a Loader for each loop")
        loader = self.loader(batch_size=100)
        pairs = []
        with outdated:
            for a, b in zip(loader, loader, strict=True):
                pairs.append(((a.epoch, a.step), (b.epoch, b.step)))
        self.assertEqual(pairs, [((0, 0), (1, 0))])
        loader = self.loader(batch_size=100)
        with outdated:
            for outer in loader:
                for inner in loader:
                    self.assertEqual((outer.epoch, inner.epoch), (0, 1))
                    break
        first, second = iter(loader), iter(loader)
        next(first)
        next(second)
        state = loader.state_dict()
        for _ in range(2):
            with outdated:
                next(first)
        self.assertEqual(loader.state_dict(), state)
        self.assertEqual([(b.epoch, b.step) for b in second], [(3, i) for i in range(1, 6)])
        with outdated:  # also once that one is over
            next(first)
        self.assertEqual({b.epoch for b in loader}, {4})
        self.assertEqual(list(second), [])  # it had its end

    def test_outdated_by_a_place(self):
        """Not by what was placed, but by who iterates from there."""
        loader = self.loader(batch_size=100)
        it = iter(loader)
        next(it)
        loader.set_epoch(5)
        unused = iter(loader)
        self.assertEqual(next(it).epoch, 5)
        loader.set_epoch(7)
        self.assertEqual(next(unused).epoch, 7)
        with self.assertRaises(RuntimeError):
            next(it)

    def test_epochs_that_are_none(self):
        loader = self.loader(batch_size=100)
        for bad in (numpy.arange(2), 1.5, "1", None, True):
            with self.assertRaisesRegex(TypeError, "^epoch "):
                loader.set_epoch(bad)
        with self.assertRaisesRegex(ValueError, "^epoch "):
            loader.set_epoch(-1)
        loader.set_epoch(numpy.int64(3))
        self.assertEqual(loader.epoch, 3)

    def test_where(self):
        loader = self.loader(batch_size=10, where="label = 2 AND id > 20", drop_last=True)
        wanted = [i for i in self.ds.select("label = 2").tolist() if i > 20]
        self.assertEqual(len(loader), len(wanted) // 10)
        loader = self.loader(batch_size=1, where="label = 2 AND id > 20")
        self.assertEqual(sorted(ids(loader)), wanted)
        state = loader.state_dict()
        with self.assertRaises(stele.StaleError):
            self.loader(batch_size=1).load_state_dict(state)
        self.loader(batch_size=1, where="id > 20 AND label = 2").load_state_dict(state)
        part = self.ds.subset(range(30, 60))
        loader = self.loader([(part, 1.0), (self.ds, 1.0)], where="label = 1", batch_size=5)
        self.assertEqual({s["label"] for b in loader for s in b}, {1})
        with self.assertRaisesRegex(ValueError, "no sample of .* matches 'label > 99'"):
            self.loader(where="label > 99")
        with self.assertRaisesRegex(TypeError, "^where must be a str, .*, not <class 'int'>$"):
            self.loader(where=5)
        for sources in [3], [(None, 1.0)]:
            for where in None, "id = 1":
                with self.assertRaisesRegex(TypeError, "^expected a Dataset, not <class"):
                    stele.Loader(sources, batch_size=2, where=where)
        with self.assertRaisesRegex(ValueError, "no such column"):
            self.loader(where="labl = 1")
        for wrong in ("label=0) or (label=1", "id<0) OR (1", "1 LIMIT 3"):
            with self.assertRaisesRegex(ValueError, "syntax error"):
                self.loader(where=wrong)
            with self.assertRaisesRegex(ValueError, "syntax error"):
                self.ds.select(wrong)

    def test_not_of_a_mapping(self):
        with stele.open(images.plain(), mmap=True) as ds:
            with self.assertRaisesRegex(ValueError, "without mmap"):
                stele.Loader(ds)

    def test_orders(self):
        self.assertEqual(ids(self.loader(batch_size=100, shuffle=False)), self.all)
        windowed = ids(self.loader(batch_size=100, shuffle="windowed", block_size=8))
        self.assertEqual(sorted(windowed), self.all)
        self.assertNotEqual(windowed, self.all)

    def test_batch(self):
        loader = self.loader(batch_size=64, drop_last=True)
        for batch in loader:
            self.assertEqual(len(batch), 64)
            data = bytes(batch.buffer)
            offsets = numpy.asarray(batch.offsets)
            self.assertEqual(offsets.shape, (65,))
            self.assertEqual(numpy.diff(offsets).tolist(), list(batch.sizes))
            for i, s in enumerate(batch):
                self.assertEqual(data[offsets[i] : offsets[i + 1]], images.CONTENT[s.key])
                self.assertEqual(batch.ids[i], s.id)
            self.assertIs(batch.buffer.obj, batch.buffer.obj)
            self.assertEqual(batch[-1].id, batch[63].id)
            self.assertEqual([s.id for s in batch[1:3]], list(batch.ids[1:3]))
            for bad in (64, -65, 2**63, -(2**64)):
                with self.assertRaisesRegex(IndexError, "^the batch has fewer samples$"):
                    batch[bad]
            labels = batch.stack("label").numpy()
            self.assertEqual(labels.tolist(), [s["label"] for s in batch])
        self.assertEqual(len(loader), 9)

    def resume(self, before, after, steps):
        """Every sample once, whoever read it."""
        seen = Counter()
        state = None
        for rank in range(before):
            loader = self.loader(batch_size=5, seed=9, rank=rank, world_size=before)
            it = iter(loader)
            for _ in range(steps):
                seen.update(next(it).ids)
            mine = json.loads(json.dumps(loader.state_dict()))
            self.assertIn(state, (None, mine))
            state = mine
        padded = 0
        for rank in range(after):
            loader = self.loader(batch_size=7, rank=rank, world_size=after)
            loader.load_state_dict(state)
            loader.set_epoch(0)
            for batch in loader:
                padded += batch.padded
                seen.update(batch.ids[: len(batch) - batch.padded])
            self.assertEqual({b.epoch for b in loader}, {1})
        self.assertEqual(seen, Counter(self.all))
        self.assertLess(padded, 7 * after)

    def test_resume_elsewhere(self):
        for before, after, steps in ((8, 6, 3), (1, 2, 10), (2, 3, 1), (3, 1, 40), (4, 4, 0)):
            self.resume(before, after, steps)

    def test_the_seed_of_a_state(self):
        """It wins, in this epoch and in the next ones."""
        first = self.loader(batch_size=50, seed=1)
        it = iter(first)
        next(it)
        state = first.state_dict()
        other = self.loader(batch_size=50, seed=7)
        other.load_state_dict(state)
        self.assertEqual(ids(other), ids(it))
        self.assertEqual(ids(other), ids(first))
        self.assertEqual(other.epoch, first.epoch)

    def test_bad_states(self):
        loader = self.loader(batch_size=5)
        state = loader.state_dict()
        other = self.loader(self.ds.subset(range(10)), batch_size=5)
        with self.assertRaisesRegex(stele.StaleError, "^the state belongs to a loader of other samples"):
            other.load_state_dict(state)
        for bad in ({}, {"stele": 2, "state": ""}, {"stele": 1, "state": "?"}, None,
                    {"stele": 1, "state": "AAAA"}, {"stele": 1, "state": "A" * 43 + "="}):  # fmt: skip
            with self.assertRaisesRegex(ValueError, "not the state of a loader"):
                loader.load_state_dict(bad)
        for saved in json.dumps(state), json.dumps(state).encode():
            with self.assertRaisesRegex(ValueError, r"not the state of a loader, .*: json\.loads\(\) makes"):
                loader.load_state_dict(saved)
        target = images.copy(images.plain(), f"{self.id()}.stele")
        with stele.Writer(f"{target}@v2", update=True, progress=False) as w:  # one byte differs
            w.put(images.key(100), {"data": images.content(100)[:-1] + b"?", "label": 0})
        with stele.open(f"{target}@v2") as ds:
            self.assertEqual(len(ds), len(self.ds))
            with self.assertRaisesRegex(stele.StaleError, "other samples"):
                self.loader(ds, batch_size=5).load_state_dict(state)
        for epoch, error in ((-1, ValueError), (1 << 64, ValueError), ("1", TypeError),
                             (1.0, TypeError), (None, TypeError)):  # fmt: skip
            with self.assertRaisesRegex(error, "^epoch "):
                loader.set_epoch(epoch)
        sampler = base64.b64encode(b"T\x01" + bytes(30)).decode()
        with self.assertRaisesRegex(ValueError, "of a stele.torch.Sampler, not of a loader"):
            loader.load_state_dict({"stele": 1, "state": sampler})
        self.assertEqual(loader.state_dict(), state)

    def test_repr(self):
        loader = self.loader(batch_size=100)
        next(iter(loader))
        self.assertEqual(repr(loader), "<stele.Loader, 5 of 6 batches left in epoch 0>")
        loader.close()
        self.assertEqual(repr(loader), "<stele.Loader, closed>")
        with self.assertRaisesRegex(ValueError, "^the loader is closed$"):
            loader.__enter__()

    def test_targets(self):
        """A path is no Dataset, nor are its letters."""
        with self.assertRaisesRegex(TypeError, r"stele\.open\('x'\)"):
            stele.Loader("x")

    def test_index(self):
        """As PyTorch's DataLoader does."""
        with self.assertRaisesRegex(TypeError, r"is not indexed: .* stele\.torch\.Batches"):
            self.loader()[0]

    def test_mixture(self):
        a, b = self.ds.subset(range(100)), self.ds.subset([500, 501, 502])
        loader = self.loader([(a, 1.0), (b, 3.0)], batch_size=10, epoch_size=400)
        seen = ids(loader)
        self.assertEqual(len(seen), 400)
        self.assertEqual(sum(i >= 500 for i in seen), 300)
        self.assertEqual(sorted(ids(self.loader([a, b], batch_size=1))), sorted(
            [*range(100), 500, 501, 502]))  # fmt: skip

    def labelled(self, *names):
        target = str(images.DIRECTORY / f"{'-'.join(names)}-.stele")
        with stele.Writer(target, {"label": names or int}, progress=False, force=True) as w:
            w.put("key", {"label": 0})
        ds = stele.open(target)
        self.addCleanup(ds.close)
        return ds

    def test_classes_of_a_mixture(self):
        cat, pets, none = self.labelled("cat"), self.labelled("cat", "dog"), self.labelled()
        more, other = self.labelled("cat", "dog", "elk"), self.labelled("cat", "elk")
        with self.assertNoLogs("stele"):
            list(self.loader([pets, cat, more, none]))
        with self.assertLogs("stele", "WARNING") as logged:
            list(self.loader([cat, none, more, pets, other], batch_size=100))
        self.assertEqual(len(logged.output), 1)
        self.assertIn(
            "class 1 of field 'label' is 'dog' in source 2, and 'elk' in source 4: batches mix "
            "them",
            logged.output[0],
        )

    def test_transform(self):
        def sizes(batch):
            return [len(s) for s in batch]

        loader = self.loader(batch_size=100, transform=sizes)
        self.assertEqual(sum(map(sum, loader)), sum(map(len, images.CONTENT.values())))

        def fails(batch):
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            list(self.loader(transform=fails))

    def test_errors(self):
        with stele.open(images.damaged()) as ds:
            bad = self.ds.find(images.key(100))
            with self.assertRaises(stele.ChecksumError) as caught:
                list(stele.Loader([self.ds, ds], batch_size=50))
            self.assertEqual((caught.exception.id, caught.exception.key), (bad, images.key(100)))
            (note,) = caught.exception.__notes__
            self.assertIn(f"in '{images.damaged()}': 'stele verify'", note)  # the second source
            loader = stele.Loader(ds, batch_size=50, on_error="skip")
            batches = list(loader)
            self.assertEqual(sorted([*ids(batches), bad]), self.all)
            self.assertEqual(sum(b.skipped for b in batches), 1)
            self.assertEqual(loader.stats()["skipped"], 1)
            loader = stele.Loader(ds, batch_size=50, on_error="substitute")
            self.assertEqual(len(ids(loader)), images.COUNT)
        for bad in (
            {"batch_size": 0},
            {"rank": 2, "world_size": 2},
            {"shuffle": "some"},
            {"on_error": "hide"},
            {"verify": "x"},
            {"seed": 1 << 64},
            {"batch_size": 1 << 32},
            {"prefetch_bytes": -1},
        ):
            with self.assertRaises(ValueError):
                self.loader(**bad)
        for name in ("batch_size", "rank", "world_size", "seed"):
            with self.assertRaisesRegex(TypeError, f"^{name} must be an int, not '32'$"):
                self.loader(**{name: "32"})
        for bad in (3, None, [3], [(self.ds, 1, 2)], [(self.ds, "x")], [(self.ds, None)]):
            with self.assertRaisesRegex(TypeError, "Dataset"):
                stele.Loader(bad)
        for weight in (0, -1, float("nan"), float("inf")):
            with self.assertRaisesRegex(ValueError, "a weight must be positive and finite"):
                stele.Loader([(self.ds, weight)])
        with self.assertRaisesRegex(ValueError, "all sources have a weight, .* or none has one"):
            stele.Loader([self.ds, (self.ds, 1)])
        with self.assertRaisesRegex(TypeError, "transform must be callable, not 3"):
            self.loader(transform=3)
        for name in ("drop_last", "as_completed", "shuffle", "on_error"):
            with self.assertRaisesRegex(ValueError, f"{name} is one of .*, not 'no'"):
                self.loader(**{name: "no"})
        with self.assertRaises(ValueError):
            stele.Loader(self.ds.subset([]))

    def test_held_batches(self):
        loader = self.loader(batch_size=60, prefetch_bytes=1 << 16)
        kept = list(loader)
        self.assertEqual(loader.stats()["held_batches"], 10)
        self.assertEqual(sorted(ids(kept)), self.all)
        view = memoryview(kept[3][7])
        wanted = images.CONTENT[kept[3][7].key]
        del kept
        gc.collect()
        self.assertEqual(loader.stats()["held_batches"], 1)
        loader.close()
        self.assertEqual(bytes(view), wanted)
        del view
        with self.assertRaises(ValueError):
            next(iter(loader))

    def test_dropped_by_other_threads(self):
        loader = self.loader(batch_size=20)
        for _ in range(3):
            for batch in loader:
                threading.Thread(target=lambda b: len(b), args=(batch,)).start()
        batch = None
        gc.collect()

    def test_after_the_dataset_closed(self):
        ds = stele.open(images.plain())
        loader = stele.Loader(ds, batch_size=50)
        ds.close()
        del ds
        self.assertEqual(sorted(ids(loader)), self.all)

    def test_async(self):
        async def run():
            seen, beats = [], 0

            async def beat():
                nonlocal beats
                while True:
                    beats += 1
                    await asyncio.sleep(0)

            task = asyncio.create_task(beat())
            async for batch in self.loader(batch_size=50):
                seen += batch.ids
            task.cancel()
            return seen, beats

        seen, beats = asyncio.run(run())
        self.assertEqual(sorted(seen), self.all)
        self.assertGreater(beats, 1)

    def test_async_one_at_a_time(self):
        async def run():
            loader = self.loader(batch_size=100)
            first, second = aiter(loader), aiter(loader)
            await anext(first)
            await anext(second)
            with self.assertRaisesRegex(RuntimeError, "a Loader for each loop"):
                await anext(first)
            self.assertEqual({batch.epoch async for batch in second}, {1})
            third = aiter(loader)
            await anext(third)
            with self.assertRaises(StopAsyncIteration):
                await anext(second)

        asyncio.run(run())

    def test_async_two_tasks(self):
        """Whoever is too late is told, and does not wait for good."""

        async def count(loader):
            return len([batch async for batch in loader])

        async def run(loader):
            tasks = asyncio.gather(count(loader), count(loader), return_exceptions=True)
            return await asyncio.wait_for(tasks, 60)

        outdated, counted = asyncio.run(run(self.loader(batch_size=1)))
        self.assertIsInstance(outdated, RuntimeError)
        self.assertEqual(counted, len(self.all))
