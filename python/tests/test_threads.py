# SPDX-License-Identifier: Apache-2.0
"""Objects that several threads use at once; also without a GIL, and under ThreadSanitizer."""

import itertools
import random
import threading
import unittest

import images
import stele

THREADS = 6


def together(function, count=THREADS):
    """Run function(i) in so many threads that begin together; what they returned."""
    results, errors = [None] * count, []
    start = threading.Barrier(count)

    def run(i):
        try:
            start.wait()
            results[i] = function(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


class Shared(unittest.TestCase):
    def setUp(self):
        self.ds = stele.open(images.plain())
        self.addCleanup(self.ds.close)
        self.all = list(range(len(self.ds)))

    def test_dataset(self):
        def use(seed):
            order = random.Random(seed)
            for _ in range(25):
                some = order.sample(self.all, 20)
                for s in self.ds[some]:
                    self.assertEqual(bytes(s), images.CONTENT[s.key])
                s = self.ds[order.choice(self.all)]
                self.assertEqual(self.ds.find(s.key), s.id)
                self.assertEqual(len(self.ds.subset(some)), 20)
                self.ds.stats(), self.ds.info, self.ds.fields
                self.ds.column("label")

        together(use)

    def test_sample(self):
        s = self.ds[7]

        def use(_):
            for _ in range(300):
                self.assertEqual(bytes(memoryview(s)), images.CONTENT[s.key])
                self.assertEqual(s["label"], int(s.key[5]))
                s["data"], s.__dlpack__(), s.class_name(), repr(s)

        together(use)

    def test_first_look_up(self):
        """Which sorts the ids of a subset: by all at once, for one of them."""
        names = [s.key for s in self.ds]
        for seed in range(20):
            part = self.ds.subset(random.Random(seed).sample(self.all, 300))
            wanted = sorted(s.key for s in part)
            found = together(lambda _, part=part: [key for key in names if key in part])
            for each in found:
                self.assertEqual(sorted(each), wanted)

    def test_keys_come_once(self):
        keys = self.ds._keys("")
        seen = together(lambda _: list(keys))
        self.assertEqual(sorted(i for part in seen for _, i in part), self.all)

    def test_batches_come_once(self):
        with stele.Loader(self.ds, batch_size=7, seed=5) as loader:
            batches = iter(loader)

            def use(i):
                mine = []
                for batch in batches:
                    mine += batch.ids[: len(batch) - batch.padded].tolist()
                    loader.state_dict(), loader.stats(), loader.remaining
                return mine

            ids = [i for part in together(use) for i in part]
            self.assertIsNone(next(batches, None))
        self.assertEqual(sorted(ids), self.all)

    def test_the_end_comes_to_all(self):
        """Nobody begins the next epoch by asking once more."""
        with stele.Loader(self.ds, batch_size=150, transform=lambda b: (b.epoch, b.step)) as loader:
            for epoch in range(100):
                batches = iter(loader)
                found = together(lambda _, batches=batches: list(batches))
                steps = sorted(step for part in found for step in part)
                self.assertEqual(steps, [(epoch, step) for step in range(4)])
                self.assertEqual((loader.epoch, loader.remaining), (epoch + 1, 4))
            state = loader.state_dict()
            with stele.Loader(self.ds, batch_size=150) as other:
                other.load_state_dict(state)
                self.assertEqual({batch.epoch for batch in other}, {100})

    def test_batch(self):
        with stele.Loader(self.ds, batch_size=50) as loader:
            for batch in itertools.islice(loader, 8):

                def use(i, batch=batch):
                    data = batch.buffer
                    ends = batch.offsets.tolist()
                    for s, a, b in zip(batch, ends, ends[1:], strict=False):
                        self.assertEqual(bytes(data[a:b]), bytes(s))
                    return batch.stack("label").numpy().tolist(), id(data.obj)

                self.assertEqual(len({repr(r) for r in together(use)}), 1)

    def test_close_races(self):
        for _ in range(20):
            ds = stele.open(images.plain())
            loader = stele.Loader(ds, batch_size=9)
            keys, batches = ds._keys(""), iter(loader)

            def use(i, ds=ds, loader=loader, keys=keys, batches=batches):
                if i == 0:
                    ds.close()
                    return loader.close()
                try:
                    for k in range(50):
                        ds[k], ds[k : k + 5], next(batches), next(keys), ds.stats()
                except ValueError:
                    pass

            together(use)

    def test_writer(self):
        target = images.DIRECTORY / "threads.stele"
        with stele.Writer(target, {"data": bytes}, progress=False) as writer:
            together(
                lambda i: [writer.put(f"{i}/{k}", {"data": b"%d" % k * k}) for k in range(200)]
            )
        with stele.open(target) as ds:
            self.assertEqual(len(ds), THREADS * 200)
            for s in ds:
                k = int(s.key.split("/")[1])
                self.assertEqual(bytes(s), b"%d" % k * k)

    def test_writer_finds_its_schema_once(self):
        target = images.DIRECTORY / "guessed.stele"
        with stele.Writer(target, progress=False) as writer:
            together(lambda i: writer.put(f"{i}", {"data": b"x", "n": i}))
        with stele.open(target) as ds:
            self.assertEqual(sorted(s["n"] for s in ds), list(range(THREADS)))
