# SPDX-License-Identifier: Apache-2.0
"""Adapters, each driven by the real package."""

import itertools
import os
import subprocess
import sys
import types
import unittest
from collections import Counter
from pathlib import Path

import numpy
import pictures
import stele
import torch

COUNT = 1000
ALL = list(range(COUNT))


def whole(data):
    """The number of a sample whose bytes are all there."""
    data = bytes(data)
    number = pictures.number(data)
    assert data == number.to_bytes(8, "little") * (1 + number % 100)
    return number


def of_row(row):
    assert row["key"].endswith(f"{whole(row['data']):06}.bin")
    assert int(row["label"]) == whole(row["data"]) % 10
    return whole(row["data"])


def tensors():
    """Samples with tensors of all ranks, and bytes that end in zeros; what each of them holds."""
    target = str(pictures.DIRECTORY / "tensors.stele")
    fields = {
        "data": bytes, "u64": stele.tensor("uint64", ()), "line": stele.tensor("int32", (None,)),
        "square": stele.tensor("uint8", (2, 2)), "open": stele.tensor("float32", (None, 4, 3)),
    }  # fmt: skip
    rows = [
        {"data": bytes([n, 0, 0]), "u64": numpy.uint64(2**64 - 1 - n), "line": numpy.arange(n % 4, dtype="i4"),
         "square": numpy.full((2, 2), n, "u1"), "open": numpy.full((n % 3, 4, 3), n, "f4")}
        for n in range(50)
    ]  # fmt: skip
    with stele.Writer(target, fields, force=True) as writer:
        writer.extend((f"{n:02}", row) for n, row in enumerate(rows))
    return target, rows


class Adapters(unittest.TestCase):
    def setUp(self):
        self.target = pictures.numbers()
        self.ds = stele.open(self.target)

    def holds(self, row, rows):
        for name, wanted in rows[int(row["key"])].items():
            got = row[name]
            if name == "data":
                self.assertEqual(bytes(got), wanted)
            else:
                numpy.testing.assert_array_equal(numpy.asarray(got, wanted.dtype), wanted)
                self.assertEqual(numpy.asarray(got).shape, wanted.shape)

    def test_a_field_like_keys(self):
        import stele.grain
        import stele.huggingface
        import stele.ray

        target = str(pictures.DIRECTORY / "field-key.stele")
        with stele.Writer(target, {"key": str}, force=True) as writer:
            writer.put("a", {"key": "b"})
        for rows in stele.grain.Source, stele.huggingface.iterable, stele.ray.Source:
            with self.assertRaisesRegex(ValueError, "^field 'key' has the name of the column of keys$"):
                rows(target)
        kept = stele.huggingface.iterable(target, transform=lambda s: {"name": s.key, "key": s["key"]})
        self.assertEqual(list(kept), [{"name": "a", "key": "b"}])

    def test_integers(self):
        """NumPy has two types of 64 bits, and PyTorch knows one."""
        with stele.Writer(str(pictures.DIRECTORY / "ints.stele"), None, force=True) as writer:
            writer.put("a", {"u": numpy.array([2**64 - 1], "u8"), "i": numpy.array([-1])})
        with stele.open(str(pictures.DIRECTORY / "ints.stele")) as ds:
            for name, wanted in ("u", 2**64 - 1), ("i", -1):
                self.assertEqual(torch.from_numpy(ds["a"][name].numpy()).tolist(), [wanted])
                batch = next(iter(stele.Loader(ds)))
                self.assertEqual(torch.from_numpy(batch.stack(name).numpy()).tolist(), [[wanted]])

    def shares(self, make):
        """What is no share of the samples is refused as stele.Loader does, before it is read."""
        for batch_size, rank, world_size, message in (
            (16, 5, 2, "rank 5 of 2: there is none"),
            (16, 2, 2, "rank 2 of 2: there is none"),
            (16, 0, 0, "rank 0 of 0: there is none"),
            (16, -1, 2, "rank -1 is out of range"),
            (0, 0, 1, "batch_size must be at least 1"),
            (-1, 0, 1, "batch_size -1 is out of range"),
        ):
            options = {"batch_size": batch_size, "rank": rank, "world_size": world_size}
            for kind in (make, stele.Loader):
                with self.subTest(options), self.assertRaisesRegex(ValueError, f"^{message}$"):
                    kind(self.ds, **options)

    def test_nodes(self):
        import stele.nodes
        import torchdata.nodes as tn

        def root(seed=3):
            loader = stele.Loader(self.ds, batch_size=16, seed=seed)
            node = tn.ParallelMapper(stele.nodes.Batches(loader), lambda b: [whole(s) for s in b],
                                     num_workers=2, method="thread")  # fmt: skip
            return tn.Loader(tn.Prefetcher(node, 4))

        wanted = list(root())
        self.assertEqual(set(itertools.chain(*wanted)), set(ALL))
        for stop in (1, 9, 62):
            first = root()
            got = list(itertools.islice(iter(first), stop))
            second = root()
            second.load_state_dict(first.state_dict())
            self.assertEqual(got + list(second), wanted)
        both = root()
        self.assertNotEqual(list(both), list(both))

    def test_grain(self):
        import grain

        import stele.grain

        source = stele.grain.Source(self.target)
        self.assertEqual(repr(source), repr(stele.grain.Source(self.target)))
        self.assertIn(self.ds.info.digest, repr(source))
        made = grain.MapDataset.source(source).shuffle(seed=1).map(of_row).batch(10)
        data = made.to_iter_dataset(grain.ReadOptions(num_threads=16))
        wanted = [batch.tolist() for batch in data]
        self.assertEqual(sorted(itertools.chain(*wanted)), ALL)
        it = iter(data)
        got = [next(it).tolist() for _ in range(37)]
        state = it.get_state()
        again = iter(data)
        again.set_state(state)
        self.assertEqual(got + [batch.tolist() for batch in again], wanted)
        loader = grain.DataLoader(
            data_source=source,
            sampler=grain.samplers.IndexSampler(COUNT, shuffle=True, seed=1, num_epochs=1),
            worker_count=2,
        )
        self.assertEqual(sorted(of_row(row) for row in loader), ALL)
        target, rows = tensors()
        source = stele.grain.Source(target)
        for row in source:
            self.holds(row, rows)
        batch = grain.MapDataset.source(source).map(lambda row: row["data"]).batch(50)[0]
        self.assertEqual(sorted(map(bytes, batch)), [row["data"] for row in rows])

    def test_huggingface(self):
        import stele.huggingface
        from datasets.distributed import split_dataset_by_node
        from torch.utils.data import DataLoader

        with self.assertRaisesRegex(ValueError, "^shards must be at least 1$"):
            stele.huggingface.iterable(self.target, shards=0)
        data = stele.huggingface.iterable(self.target, shards=12)
        self.assertEqual(data.n_shards, 12)
        self.assertEqual([of_row(row) for row in data], [whole(s) for s in self.ds])
        self.assertEqual(sorted(of_row(row) for row in data.shuffle(seed=1)), ALL)
        mixed = [of_row(row) for row in stele.huggingface.iterable(self.target, shuffle=1)]
        self.assertEqual(sorted(mixed), ALL)
        self.assertGreater(sum(abs(a - b) > 50 for a, b in itertools.pairwise(mixed)), 800)
        ranks = [split_dataset_by_node(data, rank, 3) for rank in range(3)]
        self.assertEqual(sorted(of_row(row) for rank in ranks for row in rank), ALL)
        loader = DataLoader(data.map(lambda row: {"n": of_row(row)}).select_columns("n"),
                            batch_size=10, num_workers=3)  # fmt: skip
        self.assertEqual(sorted(n for batch in loader for n in batch["n"].tolist()), ALL)
        it = iter(data)
        got = [of_row(next(it)) for _ in range(333)]
        again = stele.huggingface.iterable(self.target, shards=12)
        again.load_state_dict(data.state_dict())
        self.assertEqual(got + [of_row(row) for row in again], [whole(s) for s in self.ds])

    def test_ray(self):
        import ray

        import stele.ray

        paths = ":".join(filter(None, [os.environ["PYTHONPATH"], os.getcwd()]))
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False,
                 runtime_env={"env_vars": {"PYTHONPATH": paths}})  # fmt: skip
        try:
            data = ray.data.read_datasource(stele.ray.Source(self.target), override_num_blocks=4)
            self.assertEqual(data.count(), COUNT)
            self.assertEqual(sorted(of_row(row) for row in data.iter_rows()), ALL)
            target, wanted = tensors()
            data = ray.data.read_datasource(stele.ray.Source(target), override_num_blocks=3)
            rows = data.take_all()
            self.assertEqual(len(rows), len(wanted))
            for row in rows:
                self.holds(row, wanted)
        finally:
            ray.shutdown()

    def test_tf(self):
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        import stele.tf
        import tensorflow

        def numbers(data):
            seen = []
            for batch in data.as_numpy_iterator():
                for bytes_, label in zip(batch["data"], batch["label"], strict=True):
                    seen.append(whole(bytes_))
                    assert label == seen[-1] % 10
            return seen

        with self.assertRaisesRegex(ValueError, "^batch_size must be at least 1$"):
            stele.tf.dataset(self.target, 0)
        orders = [numbers(stele.tf.dataset(self.target, 16, seed=1, epoch=e)) for e in range(2)]
        self.assertEqual([sorted(order) for order in orders], [ALL, ALL])
        self.assertNotEqual(*orders)
        parts = [stele.tf.dataset(self.ds, 16, seed=1).shard(3, i) for i in range(3)]
        self.assertEqual(sorted(n for part in parts for n in numbers(part)), ALL)
        data = stele.tf.dataset(self.target, 16, seed=1)
        it = iter(data)
        got = [whole(b) for _ in range(20) for b in next(it)["data"].numpy()]
        path = tensorflow.train.Checkpoint(it=it).save(str(pictures.DIRECTORY / "tf"))
        again = iter(data)
        tensorflow.train.Checkpoint(it=again).restore(path)
        got += [whole(b) for batch in again for b in batch["data"].numpy()]
        self.assertEqual(got, orders[0])

    def test_spdl(self):
        import stele.spdl
        from spdl.pipeline import PipelineBuilder
        from spdl.source import SizedIterableWithShuffle

        self.shares(stele.spdl.stages)
        source, read = stele.spdl.stages(self.target, 16)
        self.assertIsInstance(source, SizedIterableWithShuffle)
        orders = []
        for seed in (None, 1, 2):
            if seed is not None:
                source.shuffle(seed)
            pipeline = (
                PipelineBuilder()
                .add_source(source)
                .pipe(read, concurrency=4)
                .pipe(lambda batch: [whole(s) for s in batch], concurrency=2)
                .add_sink(2)
                .build(num_threads=6)
            )
            with pipeline.auto_stop():
                self.assertEqual(sorted(itertools.chain(*pipeline)), ALL)
            orders.append(list(itertools.chain(*source)))
        self.assertEqual(len(set(map(tuple, orders))), 3)
        ranks = [stele.spdl.stages(self.target, 16, rank, 5)[0] for rank in range(5)]
        taken = [[len(batch) for batch in rank] for rank in ranks]
        self.assertEqual(taken, [[16] * 13] * 5)
        self.assertEqual([len(rank) for rank in ranks], [13] * 5)
        seen = Counter(i for rank in ranks for batch in rank for i in batch)
        self.assertEqual(seen, Counter(ALL) + Counter(range(13 * 80 - COUNT)))

    def test_wids(self):
        import stele.wids
        from torch.utils.data import DataLoader

        data = stele.wids.ShardListDataset(self.target)
        self.assertEqual(len(data), COUNT)
        one = data[5]
        self.assertEqual(one["__key__"] + ".bin", self.ds[5].key)
        self.assertEqual(one["__index__"], 5)
        self.assertEqual(one["label"], self.ds[5]["label"])
        data.add_transform(lambda sample: whole(sample[".bin"].read()))
        loader = DataLoader(data, 10, num_workers=2, shuffle=True)
        self.assertEqual(sorted(n for batch in loader for n in batch.tolist()), ALL)

        class Keys(stele.wids.ShardListDataset):
            def __getitem__(self, index):
                return super().__getitem__(index)["__key__"]

        with stele.Writer(pictures.DIRECTORY / "wids.stele", force=True) as w:
            w.put("a/b", {"jpg": b"1", "label": 2})
        (row,) = stele.wids.ShardListDataset(pictures.DIRECTORY / "wids.stele").__getitems__([0])
        self.assertEqual(row[".jpg"].read(), b"1")
        self.assertEqual((sorted(row), row["__key__"]), ([".jpg", "__index__", "__key__", "label"], "a/b"))
        keys = Keys(self.target)
        self.assertEqual(keys.__getitems__([3, 1]), [keys[3], keys[1]])

    def test_dali(self):
        """Its own CPU pipeline; without DALI, called as DALI would."""
        import stele.dali

        self.shares(stele.dali.Source)
        source = stele.dali.Source(self.target, 16, seed=1)
        sample = types.SimpleNamespace(iteration=0, epoch_idx=0, idx_in_batch=0)
        for info in (0, sample):
            with self.assertRaisesRegex(TypeError, "batch_info=True"):
                source(info)
        try:
            from nvidia.dali import fn, pipeline_def
        except ImportError:
            self.skipTest("needs nvidia-dali")

        @pipeline_def(batch_size=16, num_threads=2, device_id=None)
        def pipeline(batch_info=None):
            return tuple(fn.external_source(source, num_outputs=2, batch_info=batch_info, no_copy=True))

        with self.assertRaisesRegex(Exception, "batch_info=True"):
            pipe = pipeline()
            pipe.build()
            pipe.run()
        pipe = pipeline(batch_info=True)
        pipe.build()
        for _ in range(2):
            seen = []
            for _ in range(len(source)):
                data, labels = pipe.run()
                for i in range(16):
                    seen.append(whole(data.at(i)))
                    self.assertEqual(int(labels.at(i)[0]), seen[-1] % 10)
            self.assertEqual(max(Counter(seen).values()), 1)
            self.assertEqual(len(seen), 62 * 16)
            with self.assertRaises(StopIteration):
                pipe.run()
            pipe.reset()

    def test_dlio(self):
        """DLIO itself, on two ranks: each sample is handed to it once an epoch."""
        top = pictures.DIRECTORY / "dlio"
        for folder in ("train", "valid"):
            (top / "data" / folder).mkdir(parents=True)
        for number in ALL:
            (top / f"data/train/{number}.npz").touch()
        (top / "probe.py").write_text(PROBE)
        options = {
            "framework": "pytorch",
            "dataset.data_folder": top / "data",
            "dataset.num_files_train": COUNT,
            "dataset.num_files_eval": 0,
            "dataset.num_subfolders_train": 0,
            "dataset.num_samples_per_file": 1,
            "dataset.format": "npz",
            "reader.batch_size": 10,
            "reader.data_loader": "pytorch",
            "reader.data_loader_classname": "probe.Probe",
            "reader.data_loader_sampler": "index",
            "train.epochs": 2,
            "train.computation_time": 0,
            "workflow.generate_data": False,
            "workflow.evaluation": False,
            "workflow.checkpoint": False,
            "workflow.profiling": False,
        }
        bin = Path(sys.executable).parent
        path = f"{top}:{os.environ['PYTHONPATH']}"
        done = subprocess.run(
            [bin / "mpiexec", "-n", "2", bin / "dlio_benchmark", "workload=default",
             f"hydra.run.dir={top}/out", *(f"++workload.{k}={v}" for k, v in options.items())],
            env={**os.environ, "PYTHONPATH": path, "STELE_TARGET": self.target, "SEEN": str(top)},
            cwd=top, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Ending epoch 2 - 50 steps completed", done.stdout + done.stderr)
        seen = "".join((top / f"seen.{rank}").read_text() for rank in (0, 1))
        wanted = {f"{epoch} {number}": 1 for epoch in (0, 1) for number in ALL}
        self.assertEqual(Counter(seen.splitlines()), wanted)


PROBE = """
import os
import pictures
from stele.dlio import SteleLoader


class Probe(SteleLoader):
    epoch = 0

    def next(self):
        with open(f"{os.environ['SEEN']}/seen.{self._args.my_rank}", "a", 1) as file:
            for batch in super().next():
                for sample in batch:
                    print(self.epoch, pictures.number(sample), file=file)
                yield batch

    def finalize(self):
        self.epoch += 1
"""
