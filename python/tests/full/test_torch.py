# SPDX-License-Identifier: Apache-2.0
"""stele.torch against torch, torchvision and torchdata."""

import copy
import errno
import itertools
import json
import os
import pickle
import random
import re
import subprocess
import sys
import tempfile
import unittest
from collections import Counter
from pathlib import Path

import numpy
import pictures
import stele
import stele.torch
import torch
from PIL import Image
from stele.torch import Batches, DatasetFolder, ImageFolder, Sampler
from torch.utils.data import DataLoader, Subset
from torchdata.stateful_dataloader import StatefulDataLoader

WAYS = [  # workers, how they start, whether they persist
    (0, None, False),
    (1, "fork", False),
    (1, "spawn", True),
    (4, "fork", True),
    (4, "spawn", False),
    (32, "fork", False),
]


def same(a, b):
    return numpy.array_equal(numpy.asarray(a), numpy.asarray(b))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def number(sample):
    return pictures.number(sample)


def unchanged(value):
    return value


class Failing:
    """The numbers below a count, of which some cannot be read."""

    def __init__(self, count, bad, error):
        self.count, self.bad, self.error = count, bad, error

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if i in self.bad:
            raise self.error(f"{i} cannot be read")
        return i


def first_sizes(batch):
    return [number(sample) for sample in batch]


def numbered(batch):
    return batch.epoch, batch.step, batch.padded, first_sizes(batch)


def workers_options(workers, start, persistent):
    if not workers:
        return {}
    return {
        "num_workers": workers,
        "multiprocessing_context": start,
        "persistent_workers": persistent,
    }


class Folders(unittest.TestCase):
    def setUp(self):
        self.vision = pictures.torchvision()
        self.folder, self.image = str(pictures.folder()), pictures.image()

    def pair(self, split="train", **options):
        """Theirs and ours."""
        return (
            self.vision.datasets.ImageFolder(f"{self.folder}/{split}", **options),
            ImageFolder(f"{self.image}/{split}", **options),
        )

    def test_as_torchvision(self):
        for split in ("train", "val"):
            theirs, ours = self.pair(split)
            self.assertEqual(ours.classes, theirs.classes)
            self.assertEqual(ours.class_to_idx, theirs.class_to_idx)
            self.assertEqual(ours.targets, theirs.targets)
            self.assertEqual(len(ours), len(theirs))
            relative = [
                (path.replace(self.folder, self.image), target) for path, target in theirs.samples
            ]
            self.assertEqual(list(ours.samples), relative)
            self.assertEqual(ours.imgs[-1], relative[-1])
            self.assertEqual(ours.samples[3:9:2], relative[3:9:2])
            self.assertEqual(ours.extensions, theirs.extensions)
            self.assertTrue(same(ours.targets, theirs.targets))
            self.assertEqual(Counter(ours.targets), Counter(theirs.targets))
            for i in [*range(len(ours)), -1]:
                self.assertTrue(same(ours[i][0], theirs[i][0]), theirs.samples[i])
                self.assertEqual(ours[i][1], theirs[i][1])
            for sequence in (ours, ours.samples):
                with self.assertRaisesRegex(IndexError, f"there are {len(ours)}$"):
                    sequence[len(ours)]
            with self.assertRaisesRegex(TypeError, "by index, not by bool"):
                ours.__getitems__([True, False])
            self.assertEqual(repr(ours).splitlines()[:2], repr(theirs).splitlines()[:2])

    def test_where(self):
        wanted = ImageFolder(f"{self.image}/train").targets
        for ours in (
            ImageFolder(self.image, split="train"),
            ImageFolder(self.image, prefix="train/"),
            ImageFolder(os.path.join(self.image + "@v1", "train/")),
            ImageFolder(stele.open(self.image), split="train"),
        ):
            self.assertEqual(ours.targets, list(wanted))
        deep = ImageFolder(self.image, split="train", prefix="cat")
        self.assertEqual(deep.classes, ["sub", "sub-1"])
        self.assertEqual(
            ImageFolder(self.image).classes, self.vision.datasets.ImageFolder(self.folder).classes
        )
        for missing in ("/nothing/train", self.image + "@v9/train"):
            with self.assertRaises(OSError):
                ImageFolder(missing)

    def test_several_snapshots(self):
        """What is wrong is that of the image, not of a path in it, which is none."""
        image = f"{pictures.DIRECTORY}/several.stele"
        for name in ("v1", "v2"):
            with stele.Writer(f"{image}@{name}", progress=False) as w:
                w.put(f"train/{name}/x.png", b"")
        with self.assertRaisesRegex(stele.Error, "it has several snapshots") as caught:
            ImageFolder(f"{image}/train")
        behind = f"directories come behind it: '{image}@NAME/train'"
        self.assertEqual(caught.exception.__notes__, ["select one: TARGET@NAME", behind])
        with self.assertRaisesRegex(stele.NotFound, r"no such snapshot \(available: v1, v2\)"):
            ImageFolder(f"{image}@v3/train")
        self.assertEqual(ImageFolder(f"{image}@v2/train").classes, ["v1", "v2"])

    def test_nowhere(self):
        """What is misspelt is named, and what there is instead."""
        image, found = re.escape(self.image), []
        for root, options, named in (
            (self.image, {"split": "tset"}, "/tset"),
            (self.image + "/tset", {}, "/tset"),
            (stele.open(self.image), {"prefix": "tset/cat"}, "/tset/cat"),
            (self.image + "@v1", {"split": "train", "prefix": "cta"}, "@v1/train/cta"),
            (self.image, {"split": "train/zebra"}, "/train/zebra"),
        ):
            message = f"^Couldn't find any class folder in {image}{named}.$"
            with self.assertRaisesRegex(FileNotFoundError, message) as caught:
                ImageFolder(root, **options)
            found += caught.exception.__notes__
        splits = f"the directories in {self.image} are 'train', 'val'"
        classes = "are 'cat', 'cat-2', 'dog', 'zebra', 'Émile'"
        wanted = [f"the directories in {self.image}{of}/train {classes}" for of in ("@v1", "")]
        self.assertEqual(found, [splits] * 3 + wanted)
        many = f"{pictures.DIRECTORY}/many.stele"
        with stele.Writer(many, progress=False) as w:
            w.extend((f"{n:02}/x.png", b"") for n in range(12))
        with self.assertRaises(FileNotFoundError) as caught:
            ImageFolder(many + "/none")
        self.assertRegex(caught.exception.__notes__[0], "are '00', .* '09', ...$")
        with stele.Writer(many + "@v2", progress=False) as w:
            for n in range(12):
                w.delete(f"{n:02}/x.png")
            w.put("x.png", b"")
        with self.assertRaises(FileNotFoundError) as caught:
            ImageFolder(many + "@v2", split="train")
        self.assertEqual(getattr(caught.exception, "__notes__", []), [])

    def test_broken(self):
        """Whatever fails with a picture, the error says with which."""
        target, whole = f"{pictures.DIRECTORY}/broken.stele", Path(self.folder, "val/cat/0a.png")
        with stele.Writer(target, progress=False) as w:
            w.put("cat/1.png", whole.read_bytes())
            w.put("cat/2.png", b"text")
            w.put("cat/3.png", whole.read_bytes()[:300])
        ours = ImageFolder(target)
        for _ in range(2):  # before and after one that is whole
            message = f"^cannot identify image file <stele.folder.File name='{target}/cat/2.png'>$"
            with self.assertRaisesRegex(OSError, message) as caught:
                ours[1]
            self.assertEqual(getattr(caught.exception, "__notes__", []), [])
            ours[0]

        def fails(value):
            raise ValueError("no")

        def opens(path):
            return Image.open(os.path.join(path)).convert("RGB")

        by_path = ImageFolder(target, loader=opens)
        by_path[0]
        for number, folder in (
            (3, ours),
            (2, by_path),
            (1, ImageFolder(target, transform=fails)),
            (1, ImageFolder(target, target_transform=fails)),
        ):
            for read in (lambda: folder[number - 1], lambda: folder.__getitems__([number - 1])):
                with self.assertRaises((OSError, ValueError)) as caught:
                    read()
                named = f"the sample is '{target}/cat/{number}.png'"
                self.assertEqual(caught.exception.__notes__, [named])

    def test_transforms(self):
        options = {"transform": numpy.asarray, "target_transform": lambda t: -t}
        theirs, ours = self.pair(**options)
        self.assertTrue(same(ours[5][0], theirs[5][0]))
        self.assertEqual(ours[50][1], theirs[50][1])
        self.assertEqual(repr(ours.transforms), repr(theirs.transforms))
        self.assertIsNone(self.pair()[1].transforms)

    def test_validity(self):
        odd = {"is_valid_file": lambda path: "1" in os.path.basename(path)}
        theirs, ours = self.pair(**odd)
        self.assertEqual(ours.targets, theirs.targets)
        for options in ({"extensions": ".txt"}, {"extensions": (".jpg", ".txt")}):
            theirs = self.vision.datasets.DatasetFolder(f"{self.folder}/val", read, **options)
            ours = DatasetFolder(f"{self.image}/val", read, **options)
            self.assertEqual(ours.targets, theirs.targets)
            self.assertEqual([ours[i][0] for i in range(len(ours))],
                             [theirs[i][0] for i in range(len(theirs))])  # fmt: skip
        messages = []
        for kind, root in (
            (self.vision.datasets.DatasetFolder, self.folder),
            (DatasetFolder, self.image),
        ):
            for options in ({"extensions": ".jpg"}, {"extensions": ".gif"}, {}):
                with self.assertRaises((FileNotFoundError, ValueError)) as caught:
                    kind(f"{root}/train", read, **options) if options.get(
                        "extensions"
                    ) != ".jpg" else kind(root + "/train", read, extensions=".jpg")
                messages.append(str(caught.exception))
            empty = kind(f"{root}/train", read, extensions=".jpg", allow_empty=True)
            messages.append(list(empty.targets))
        self.assertEqual(messages[:4], messages[4:])

    def test_loaders(self):
        """Whatever a loader takes: a path, a file, a name with open()."""
        theirs = self.vision.datasets.ImageFolder(f"{self.folder}/val")
        loaders = (
            read,
            lambda file: file.read(),
            lambda path: numpy.fromfile(path, dtype=numpy.uint8).tobytes(),
        )
        for loader in loaders:
            ours = ImageFolder(f"{self.image}/val", loader=loader)
            for i in (0, 7, 3):
                self.assertEqual(ours[i][0], read(theirs.samples[i][0]))
        pil = self.vision.datasets.folder.pil_loader
        ours = ImageFolder(f"{self.image}/val", loader=pil)
        self.assertTrue(same(ours[1][0], theirs[1][0]))
        named = ImageFolder(f"{self.image}/val", loader=lambda file: file.name)
        self.assertEqual(named[2][0], named.samples[2][0])
        with self.assertRaises(ZeroDivisionError):
            ImageFolder(f"{self.image}/val", loader=lambda file: 1 // 0)[0]

    def test_changed_by_users(self):
        theirs, ours = self.pair()
        for dataset in (theirs, ours):
            dataset.samples = [s for s in dataset.samples if s[1] in (1, 3)]
        self.assertEqual(len(ours), len(theirs))
        self.assertTrue(same(ours[20][0], theirs[20][0]))
        self.assertEqual(ours[20][1], theirs[20][1])
        paths = [path.partition("/train/")[2] for path, _ in ours.samples]
        self.assertEqual([s.key.partition("/")[2] for s in ours.data], paths)
        state = Sampler(ours).state_dict()
        Sampler(ours).load_state_dict(state)
        ours.samples = ours.samples[::-1]
        with self.assertRaises(stele.StaleError):
            Sampler(ours).load_state_dict(state)

        class Some(ImageFolder):
            def find_classes(self, directory):
                return ["dog", "cat"], {"dog": 0, "cat": 1}

        class Theirs(self.vision.datasets.ImageFolder):
            find_classes = Some.find_classes

        class Made(ImageFolder):
            def make_dataset(self, *arguments):
                raise AssertionError("called")

        with self.assertRaisesRegex(TypeError, r"make_dataset\(\) is not called"):
            Made(f"{self.image}/train")
        theirs, ours = Theirs(f"{self.folder}/train"), Some(f"{self.image}/train")
        self.assertEqual(ours.targets, theirs.targets)
        self.assertTrue(same(ours[40][0], theirs[40][0]))

    def test_subclasses(self):
        """What a subclass makes of a sample, DataLoader gets, in batches, too."""

        class WithPath(ImageFolder):
            def __getitem__(self, index):
                return (*super().__getitem__(index), self.samples[index][0])

        folder = WithPath(f"{self.image}/train", lambda image: torch.zeros(1))
        _, targets, paths = next(iter(DataLoader(folder, 7)))
        self.assertEqual([*zip(paths, targets.tolist(), strict=True)], folder.samples[:7])

        class Squares(stele.torch.Dataset):
            def __getitem__(self, index):
                return super().__getitem__(index) ** 2

        squares = Squares(pictures.numbers(), number)
        self.assertEqual(next(iter(DataLoader(squares, 5))).tolist(), [squares[n] for n in range(5)])

    def test_pickle_and_subset(self):
        _, ours = self.pair()
        again = pickle.loads(pickle.dumps(ours))
        self.assertEqual(again.samples, ours.samples)
        self.assertTrue(same(again[9][0], ours[9][0]))
        part = Subset(ours, [3, 1, 3])
        self.assertEqual([t for _, t in part.__getitems__([0, 2])], [ours[3][1]] * 2)
        self.assertEqual([s.key for s in ours.data[:3]],
                         [p.removeprefix(self.image + "/") for p, _ in ours.samples[:3]])  # fmt: skip

    def test_data_loader(self):
        theirs, ours = self.pair(transform=numpy.array)
        for way in WAYS:
            with self.subTest(way):
                loader = DataLoader(ours, 7, collate_fn=list, **workers_options(*way))
                for _ in range(2):
                    got = list(itertools.chain(*loader))
                    self.assertEqual([t for _, t in got], list(theirs.targets))
                    self.assertTrue(all(same(a, b[0]) for (a, _), b in zip(got, theirs, strict=True)))


class Passing:
    """A sampler around another one."""

    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        return iter(self.sampler)

    def __len__(self):
        return len(self.sampler)


class Tens(Passing):
    """A batch sampler of someone else's."""

    def __iter__(self):
        order = iter(self.sampler)
        while some := list(itertools.islice(order, 10)):
            yield some


class Processes(torch.utils.data.BatchSampler):
    """Batches of which each process takes its own, as Accelerate has it."""

    def __init__(self, sampler, rank):
        self.batch_sampler = torch.utils.data.BatchSampler(sampler, 10, False)
        self.rank, self.num_processes = rank, 2

    def __iter__(self):
        return itertools.islice(self.batch_sampler, self.rank, None, self.num_processes)

    def arguments(self):
        return {"batch_sampler": self}


class Replicas(torch.utils.data.DistributedSampler):
    """A sampler's indices as the dataset of another one, as Lightning and Ignite have it."""

    def __init__(self, sampler, rank):
        super().__init__(sampler, 2, rank, shuffle=False)
        self.sampler = sampler

    def __iter__(self):
        indices = list(self.sampler)
        return (indices[i] for i in super().__iter__())

    def arguments(self):
        return {"sampler": self, "batch_size": 10}


LIGHTNING = """
import json, sys
import pictures
pictures.torchvision()
import lightning, torch
from stele.torch import Dataset, Sampler
from torchdata.stateful_dataloader import StatefulDataLoader

target, directory, devices, stop = sys.argv[1:]


class Model(lightning.LightningModule):
    def __init__(self, stop=0):
        super().__init__()
        self.layer, self.stop = torch.nn.Linear(1, 1), stop

    def training_step(self, batch):
        with open(f"{directory}/rank{self.global_rank}.{self.current_epoch}", "a") as file:
            print(*batch.tolist(), sep="\\n", file=file)
        return self.layer(torch.ones(1, 1)).sum()

    def on_train_batch_end(self, *arguments):
        if self.global_step == self.stop:
            self.trainer.save_checkpoint(f"{directory}/stopped.ckpt")
            raise KeyboardInterrupt

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


def fit(model, **options):
    data = Dataset(target, pictures.number)
    loader = StatefulDataLoader(data, 10, sampler=Sampler(data), num_workers=2)  # before there are ranks
    lightning.Trainer(
        max_epochs=2, accelerator="cpu", devices=int(devices), strategy="ddp" if devices > "1" else "auto",
        logger=False, enable_checkpointing=False, enable_progress_bar=False,
    ).fit(model, loader, **options)


if int(stop):
    try:
        fit(Model(int(stop)))
    except BaseException as stopped:
        print(repr(stopped))
    fit(Model(), ckpt_path=f"{directory}/stopped.ckpt")
else:
    fit(Model())
"""


class Samplers(unittest.TestCase):
    def setUp(self):
        self.data = stele.torch.Dataset(pictures.numbers(), number)
        self.all = list(range(1000))

    def sampler(self, *args, **options):
        return Sampler(*(args or (self.data,)), **options)

    def test_epochs(self):
        sampler = self.sampler(seed=5)
        orders = [list(sampler) for _ in range(3)]
        for order in orders:
            self.assertEqual(sorted(order), self.all)
        self.assertEqual(len(set(map(tuple, orders))), 3)
        sampler.set_epoch(1)
        self.assertEqual(list(sampler), orders[1])
        self.assertEqual(list(self.sampler(seed=5, epoch=2)), orders[2])
        self.assertEqual(list(self.sampler(shuffle=False)), self.all)
        windowed = list(self.sampler(shuffle="windowed", block_size=8, block_count=4))
        self.assertEqual(sorted(windowed), self.all)
        self.assertNotEqual(windowed, self.all)
        for bad in ({"rank": 1}, {"shuffle": "x"}, {"rank": 2, "world_size": 2}, {"world_size": 2}):
            with self.assertRaises(ValueError):
                self.sampler(**bad)

    def test_ranks(self):
        for world in (1, 3, 7):
            for drop in (False, True):
                ranks = [self.sampler(rank=r, world_size=world, drop_last=drop) for r in range(world)]
                orders = [list(rank) for rank in ranks]
                self.assertEqual({len(o) for o in orders}, {len(ranks[0])})
                seen = Counter(itertools.chain(*orders))
                extra = len(ranks[0]) * world - 1000
                self.assertEqual(sum(seen.values()), 1000 + extra)
                self.assertEqual(len(seen), min(1000, 1000 + extra))

    def test_resume_elsewhere(self):
        for before, taken, after in ((1, 123, 2), (2, 77, 3), (3, 301, 1), (8, 10, 6), (2, 500, 2)):
            seen, states = Counter(), []
            for rank in range(before):
                sampler = self.sampler(seed=2, rank=rank, world_size=before)
                seen.update(itertools.islice(iter(sampler), taken))
                states.append(json.dumps(sampler.state_dict()))
            self.assertEqual(len(set(states)), 1)
            extra = 0
            for rank in range(after):
                sampler = self.sampler(rank=rank, world_size=after)
                sampler.load_state_dict(json.loads(states[0]))
                sampler.set_epoch(0)
                rest = list(sampler)
                self.assertEqual(len(rest), -(-(1000 - before * taken) // after))
                extra += len(rest)
                seen.update(rest)
            extra -= 1000 - min(before * taken, 1000)
            self.assertLess(extra, after)
            self.assertEqual(len(seen), 1000)
            self.assertEqual(sum(seen.values()), 1000 + extra)

    def test_states(self):
        sampler = self.sampler()
        state = sampler.state_dict()
        self.assertEqual(len(state["state"]), 44)
        for bad in ({}, {"stele": 1, "state": "AAAA"}, {"stele": 2, **state, "stele": 2}, None,
                    stele.Loader(self.data.data).state_dict()):  # fmt: skip
            with self.assertRaises(ValueError):
                sampler.load_state_dict(bad)
        with self.assertRaisesRegex(ValueError, r"not the state of a sampler, .*: json\.loads\(\) makes"):
            sampler.load_state_dict(json.dumps(state))
        for other in (self.sampler(range(1000)), self.sampler(shuffle=False)):
            with self.assertRaises(stele.StaleError):
                other.load_state_dict(state)

    def test_state_at_the_end(self):
        """Of an epoch: the next one follows, as it does without a restart."""
        orders = list(map(list, itertools.repeat(self.sampler(seed=5), 4)))
        for way in WAYS:
            with self.subTest(way):
                sampler, other = self.sampler(seed=5), self.sampler()
                loader = DataLoader(self.all, 48, sampler=sampler, **workers_options(*way))
                self.assertEqual([i for batch in loader for i in batch.tolist()], orders[0])
                state = sampler.state_dict()
                other.load_state_dict(state)
                self.assertEqual((other.epoch, len(other)), (1, 1000))
                loader = DataLoader(self.all, 48, sampler=other, **workers_options(*way))
                for order in orders[1:3]:
                    self.assertEqual([i for batch in loader for i in batch.tolist()], order)
        end = self.sampler(seed=5, rank=1, world_size=3, drop_last=True)
        self.assertEqual(len(list(end)), 333)
        for epoch, rest in ((None, orders[1]), (0, []), (1, orders[1]), (2, orders[2])):
            other = self.sampler()
            other.load_state_dict(state)
            if epoch is not None:
                other.set_epoch(epoch)
            self.assertEqual(list(other), rest)
            self.assertEqual(list(other), orders[(epoch if epoch is not None else 1) + 1])
        other = self.sampler(drop_last=True, rank=0, world_size=3)
        other.load_state_dict(end.state_dict())
        self.assertEqual((other.epoch, len(list(other))), (1, 333))
        for workers in (0, 2):
            first, second = (
                StatefulDataLoader(self.all, 48, sampler=self.sampler(seed=5), num_workers=workers)
                for _ in range(2)
            )
            self.assertEqual([i for batch in first for i in batch.tolist()], orders[0])
            second.load_state_dict(first.state_dict())
            for order in orders[1:3]:
                self.assertEqual([i for batch in second for i in batch.tolist()], order)

    def test_large(self):
        """Order and state take no memory and no time."""

        class Many:
            def __len__(self):
                return 10**12

        with self.assertRaises(TypeError):
            Sampler("photos.stele")
        sampler = Sampler(Many(), rank=7, world_size=16)
        for _ in itertools.islice(sampler, 5000):
            pass
        state = sampler.state_dict()
        other = Sampler(Many(), rank=0, world_size=3)
        other.load_state_dict(state)
        self.assertEqual(other.remaining, -(-(10**12 - 16 * 5000) // 3))
        self.assertTrue(all(0 <= i < 10**12 for i in itertools.islice(other, 10)))

    def test_data_loader(self):
        """A plain DataLoader: said is how much was consumed."""
        wanted = [number(self.data.data[i]) for i in self.sampler(seed=1)]
        for way in WAYS:
            with self.subTest(way):
                sampler = self.sampler(seed=1)
                loader = DataLoader(self.data, 16, sampler=sampler, **workers_options(*way))
                it = iter(loader)
                got = [i for _ in range(5) for i in next(it).tolist()]
                state = sampler.state_dict(consumed=len(got))
                del it
                sampler.load_state_dict(state)
                got += [i for batch in loader for i in batch.tolist()]
                self.assertEqual(got, wanted)

    def test_workers_take_ahead(self):
        """A plain DataLoader, of which nothing is said: each sample comes once."""
        some = random.Random(7)
        for case in range(24):
            workers = some.randrange(4)
            size = some.choice((None, 1, 7, 30, 100, 300, 400))
            options = {"batch_size": size, "num_workers": workers}
            if options["batch_size"]:
                options["drop_last"] = some.random() < 0.5
            if workers:
                options["persistent_workers"] = some.random() < 0.5
                options["prefetch_factor"] = some.choice((None, 1, 3))
            world = some.choice((1, 2, 3))
            with self.subTest(case=case, world=world, **options):
                self.go_on(some, options, {"seed": case, "rank": world - 1, "world_size": world})

    def go_on(self, some, options, sampling):
        """Break off two times, after any batch, and go on from the state then."""

        def loader(state):
            sampler = self.sampler(range(300), **sampling)
            if state:
                sampler.load_state_dict(json.loads(json.dumps(state)))
            return DataLoader(range(300), sampler=sampler, **options)

        def flat(batches):
            return [i for batch in batches for i in batch.reshape(-1).tolist()]

        whole = loader(None)
        wanted, got = flat(map(torch.as_tensor, whole)), []
        state = self.broken_before(whole)
        for last in (False, False, True):
            one = loader(state)
            if one.sampler.epoch:
                break  # the state was at the end
            it = iter(one)
            if len(one):
                self.assertEqual(one.sampler.state_dict(), state)
            stop = None if last else some.randrange(len(one) + 1)
            got += flat(map(torch.as_tensor, itertools.islice(it, stop)))
            if some.random() < 0.5:
                del it
            state = one.sampler.state_dict()
        self.assertEqual(got, wanted)
        after = loader(state)
        self.assertEqual((after.sampler.epoch, len(after)), (1, len(whole)))

    def broken_before(self, loader):
        """The state at the start of an epoch; before it, one of the same loader was broken off."""
        next(iter(loader), None)
        loader.sampler.set_epoch(0)
        return loader.sampler.state_dict()

    def test_batches_that_fail(self):
        """What was not handed out is left by the state, unless a batch behind it was."""
        order = list(self.sampler(range(95), seed=3))
        for bad, options, caught in itertools.product(
            ((0,), (1,), (4, 5), (3, 5), (7,), (8,), (9,)),  # batches
            (
                {"num_workers": 0},
                {"num_workers": 0, "drop_last": True},
                {"num_workers": 2, "prefetch_factor": 1},
                {"num_workers": 2, "prefetch_factor": 1, "drop_last": True, "persistent_workers": True},
                {"num_workers": 1, "prefetch_factor": 20},
            ),
            (1, 2, 3),
        ):
            if caught > 1 and options["num_workers"] and (bad[0] > 5 or options["prefetch_factor"] > 1):
                continue  # which ones have failed is not known where all indices are taken
            with self.subTest(bad=bad, caught=caught, **options):
                data = Failing(95, {order[10 * i + 4] for i in bad}, ArithmeticError)
                sampler = self.sampler(range(95), seed=3)
                loader = DataLoader(data, 10, sampler=sampler, **options)
                good, over = self.take(iter(loader), caught)
                last = good[-1] + 1 if good else 0
                whole = last == len(loader) and (over or options["num_workers"])
                position = 95 if whole else min(10 * last, 95)
                self.assertEqual(sampler.state_dict(), sampler.state_dict(position))

    def take(self, it, caught):
        """Batches, by number, that come before so many have failed, or all; were it all?"""
        good = []
        for number in itertools.count():
            try:
                next(it)
                good.append(number)
            except ArithmeticError:
                caught -= 1
                if not caught:
                    return good, False
            except StopIteration:
                return good, True

    def test_interrupted(self):
        order = list(self.sampler(range(95), seed=3))
        for at in (0, 14, 94):
            data = Failing(95, {order[at]}, KeyboardInterrupt)
            sampler = self.sampler(range(95), seed=3)
            with self.assertRaises(KeyboardInterrupt):
                list(DataLoader(data, 10, sampler=sampler))
            self.assertEqual(sampler.state_dict(), sampler.state_dict(at // 10 * 10))

    def test_workers_take_unknown(self):
        """What cannot be known is not guessed; with nothing taken ahead, it is known."""
        for how in ("batches", "order", "wrapped"):
            with self.subTest(how):
                sampler = self.sampler(seed=1)
                options = {"batch_size": 10, "sampler": sampler}
                if how == "batches":
                    options = {"batch_sampler": Tens(sampler)}
                elif how == "order":
                    options["in_order"] = False
                else:
                    options["sampler"] = Passing(sampler)
                loader = DataLoader(self.all, num_workers=2, **options)
                it = iter(loader)
                next(it)
                with self.assertRaisesRegex(ValueError, r"ahead .* state_dict\(consumed\);"):
                    sampler.state_dict()
                sampler.state_dict(consumed=10)
                list(it)
                self.assertEqual(sampler.state_dict(), sampler.state_dict(1000))

    def test_stateful(self):
        wanted = [number(self.data.data[i]) for i in self.sampler(seed=1)]
        for workers in (0, 1, 4):
            for stop in (1, 7, 62):
                def loader(workers=workers, **options):
                    sampler = self.sampler(seed=1, **options)
                    return StatefulDataLoader(
                        self.data, 16, sampler=sampler, num_workers=workers
                    )

                first = loader()
                it = iter(first)
                got = [i for _ in range(stop) for i in next(it).tolist()]
                state = pickle.loads(pickle.dumps(first.state_dict()))
                del it
                second = loader()
                second.load_state_dict(state)
                got += [i for batch in second for i in batch.tolist()]
                self.assertEqual(got, wanted, (workers, stop))

    def test_asked_beside_stateful(self):
        """What its workers took ahead is nothing that was handed out."""
        for workers in (0, 2):
            sampler = self.sampler(seed=1)
            loader = StatefulDataLoader(self.data, 16, sampler=sampler, num_workers=workers)
            it = iter(loader)
            for count in range(1, 4):
                next(it)
                if workers:
                    with self.assertRaisesRegex(ValueError, "own state_dict.. has it$"):
                        sampler.state_dict()
                else:
                    self.assertEqual(sampler.state_dict(), sampler.state_dict(16 * count))
            self.assertEqual(len(list(it)), 60)
            self.assertEqual(sampler.state_dict(), sampler.state_dict(1000))

    def test_stateful_goes_on(self):
        """With the next epoch, also after a resumed one; a state at its end is at its end."""
        orders = [list(o) for o in (self.sampler(seed=1), self.sampler(seed=1, epoch=1))]
        for workers in (0, 2):
            loader = StatefulDataLoader(range(1000), 50, sampler=self.sampler(seed=1),
                                        num_workers=workers)  # fmt: skip
            epochs = [[i for b in loader for i in b.tolist()] for _ in range(2)]
            self.assertEqual(epochs, orders)
        for rank in (0, 1):
            sampler = self.sampler(rank=rank, world_size=2)
            for _ in range(2):
                half = len(list(itertools.islice(iter(sampler), 400)))
                again = self.sampler(rank=rank, world_size=2)
                again.load_state_dict(sampler.state_dict())
                self.assertEqual(half + len(list(again)), 500)
                self.assertEqual(again.state_dict(), self.end(sampler))
                self.assertEqual(len(list(again)), 500)

    def end(self, sampler):
        return sampler.state_dict(consumed=500)

    def test_shared_again(self):
        """Of what is one rank's share nothing is shared out once more, and so lost."""
        for around in (Processes, Replicas):
            for workers in (0, 2):
                seen = []
                for rank in range(2):
                    whole = around(self.sampler(seed=1, rank=0, world_size=1), rank)
                    loader = DataLoader(self.data, num_workers=workers, **whole.arguments())
                    seen += [i for batch in loader for i in batch.tolist()]
                    share = around(self.sampler(rank=rank, world_size=2), rank)
                    loader = DataLoader(self.data, num_workers=workers, **share.arguments())
                    with self.assertRaisesRegex(ValueError, rf"{around.__name__} .* rank=0, world"):
                        next(iter(loader))
                self.assertEqual(sorted(seen), self.all)

    def lightning(self, devices, stop):
        """The samples of each epoch, of all ranks."""
        with tempfile.TemporaryDirectory(dir=pictures.DIRECTORY) as directory:
            script = Path(directory) / "ranks.py"
            script.write_text(LIGHTNING)
            subprocess.run([sys.executable, "-W", "ignore", script, pictures.numbers(), directory,
                            str(devices), str(stop)], check=True, stdout=sys.stderr)  # fmt: skip
            return [
                [int(n) for r in range(devices) for n in (script.parent / f"rank{r}.{epoch}").read_text().split()]
                for epoch in range(2)
            ]

    def test_lightning(self):
        """Its ranks see each sample once in an epoch, with whatever it does to samplers."""
        orders = self.lightning(2, 0)
        self.assertEqual([sorted(order) for order in orders], [self.all] * 2)
        self.assertNotEqual(*orders)

    def test_lightning_goes_on(self):
        """By the length of an epoch: what was done of it comes off once. In its first epoch
        it names that only when its iterator is there."""
        for stop in (5, 113):
            orders = self.lightning(1, stop)
            self.assertEqual([sorted(order) for order in orders], [self.all] * 2)

    def test_set_epoch_of_what_runs(self):
        """The iterator may be meant that is there, or the next one."""
        order = list(self.sampler(seed=3))
        for kind, workers in itertools.product((DataLoader, StatefulDataLoader), (0, 2)):
            with self.subTest(kind=kind, workers=workers):
                made = [self.sampler(seed=3) for _ in range(2)]
                loaders = [kind(range(1000), 10, sampler=s, num_workers=workers) for s in made]
                batches = iter(loaders[0])
                made[0].set_epoch(0)
                seen = [n for _ in range(5) for n in next(batches).tolist()]
                what = made if kind is DataLoader else loaders
                what[1].load_state_dict(what[0].state_dict())
                rest = [n for batch in loaders[1] for n in batch.tolist()]
                self.assertEqual(seen + rest, order)
        sampler = self.sampler(seed=3)
        next(iter(sampler))
        sampler.set_epoch(0)
        self.assertEqual(list(sampler), order)
        self.assertNotEqual(list(sampler), order)

    def test_ranks_that_come_later(self):
        """torch.distributed is often initialized when Sampler and Batches are made."""
        code = """
import sys
import pictures, torch
from stele.torch import Batches, Sampler
from torch.utils.data import DataLoader

rank, store, target = int(sys.argv[1]), *sys.argv[2:]
sampler = Sampler(range(1000))
import stele
data = stele.open(target)
loaders = [
    DataLoader(range(1000), 10, sampler=sampler),
    *(
        DataLoader(Batches(data, batch_size=10, transform=lambda b: [s.id for s in b]), None,
                   num_workers=workers)
        for workers in (0, 2)
    ),
]
assert len(loaders[0]) == 100 and len(loaders[1]) == 100
torch.distributed.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
for loader in loaders:
    assert len(loader) == 50
    seen = [int(n) for batch in loader for n in batch]
    both = [None, None]
    torch.distributed.all_gather_object(both, seen)
    assert [len(b) for b in both] == [500, 500] and sorted(both[0] + both[1]) == list(range(1000))
"""
        with tempfile.NamedTemporaryFile(dir=pictures.DIRECTORY) as store:
            os.unlink(store.name)
            ranks = [
                subprocess.Popen([sys.executable, "-W", "ignore", "-c", code, str(rank),
                                  f"file://{store.name}", pictures.numbers()])  # fmt: skip
                for rank in range(2)
            ]
            self.assertEqual([rank.wait(timeout=120) for rank in ranks], [0, 0])
            Path(store.name).touch()

    def test_length(self):
        for world in (1, 3):
            sampler = self.sampler(rank=0, world_size=world)
            sampler.load_state_dict(self.sampler(rank=1, world_size=2).state_dict(130))
            for left in (740, 1000):
                share = -(-left // world)
                self.assertEqual((len(sampler), sampler.remaining), (-(-1000 // world), share))
                self.assertEqual(len(list(sampler)), share)

    def test_fields(self):
        data = stele.torch.Dataset(pictures.numbers())
        batch = next(iter(DataLoader(data, 1)))
        self.assertEqual(batch["label"].item(), data.data[0]["label"])
        self.assertEqual(batch["data"].numpy().tobytes(), bytes(data.data[0]))

    def test_no_transform(self):
        for make in (
            lambda: stele.torch.Dataset(self.data.data, 3),
            lambda: Batches(self.data.data, transform=3),
            lambda: ImageFolder(pictures.image() + "/train", 3),
            lambda: ImageFolder(pictures.image() + "/train", target_transform=3),
        ):
            with self.assertRaisesRegex(TypeError, "transform must be callable, not 3"):
                make()

    def test_several_fields(self):
        """Each by its name, and nothing joined."""
        with tempfile.TemporaryDirectory() as place:
            with stele.Writer(f"{place}/x", {"data": bytes, "other": bytes, "text": str}) as w:
                w.put("k", {"data": b"AA", "other": b"", "text": "t"})
            found = stele.torch.Dataset(f"{place}/x")[0]
        self.assertEqual({name: list(value) for name, value in found.items()},
                         {"data": [65, 65], "other": [], "text": ["t"]})  # fmt: skip


class Iterables(unittest.TestCase):
    def setUp(self):
        self.ds = stele.open(pictures.numbers())
        self.all = list(range(1000))

    def test_wrong(self):
        """At once, and not where a worker says it."""
        with self.assertRaisesRegex(TypeError, "no option 'batch_sise'"):
            Batches(self.ds, batch_sise=3)
        with self.assertRaisesRegex(ValueError, "^batch_size must be at least 1$"):
            Batches(self.ds, batch_size=0)
        with self.assertRaisesRegex(TypeError, "^a Loader takes Datasets: stele.open"):
            Batches("photos.stele")
        for state in (None, {}, "text"):
            with self.assertRaisesRegex(ValueError, "^this is not the state of a loader"):
                Batches(self.ds).load_state_dict(state)
        for wrong in ({"rank": 5, "world_size": 2}, {"rank": 0, "world_size": 0}):
            for kind in (Batches, stele.torch.Sampler):
                with self.assertRaisesRegex(ValueError, "^rank . of .: there is none$"):
                    kind(self.ds, **wrong)
        for made in (Batches(self.ds), stele.torch.Sampler(self.ds)):
            for epoch, error in ((-1, ValueError), ("1", TypeError)):
                with self.assertRaisesRegex(error, "^epoch "):
                    made.set_epoch(epoch)
        for name in ("seed", "epoch", "block_size"):
            with self.assertRaisesRegex(ValueError, f"^{name} -1 is out of range"):
                stele.torch.Sampler(self.ds, **{name: -1})
        with self.assertRaisesRegex(ValueError, "^consumed -1"):
            stele.torch.Sampler(self.ds).state_dict(-1)

    def test_workers(self):
        for way in WAYS:
            with self.subTest(way):
                data = Batches(self.ds, batch_size=16, seed=1, transform=first_sizes, drop_last=False)
                loader = DataLoader(data, batch_size=None, **workers_options(*way))
                orders = []
                for epoch in range(2):
                    data.set_epoch(epoch)
                    orders.append([i for batch in loader for i in batch])
                    self.assertEqual(set(orders[-1]), set(self.all))
                    self.assertEqual(len(orders[-1]), 63 * 16)
                self.assertNotEqual(orders[0], orders[1])
                self.assertEqual(len(data), 63)

    def test_workers_in_turn(self):
        """They have the batches that one process has, to the last one."""
        for drop in (False, True):
            for size, rank, ranks in ((64, 0, 1), (64, 1, 3), (300, 0, 2), (2000, 0, 1)):
                options = {"batch_size": size, "rank": rank, "world_size": ranks, "drop_last": drop}
                data = Batches(self.ds, seed=2, transform=numbered, **options)
                wanted = list(DataLoader(data, batch_size=None))
                self.assertEqual(len(wanted), len(data))
                some = Batches(self.ds, where="label < 3", transform=numbered, **options)
                self.assertEqual(len(list(DataLoader(some, batch_size=None))), len(some))
                for workers in (1, 2, 16) if rank == 0 else (3,):
                    got = list(DataLoader(data, batch_size=None, num_workers=workers))
                    self.assertEqual(got, wanted, (options, workers))
        for worker, workers in ((2, 2), (0, 0)):
            with self.assertRaisesRegex(ValueError, f"^worker {worker} of {workers}: there is none$"):
                stele.Loader(self.ds, worker=worker, workers=workers)
        with self.assertRaisesRegex(TypeError, "no option 'workers'"):
            Batches(self.ds, workers=2)

    def test_epochs_of_workers(self):
        """Those that persist hear which one comes next, as others do."""
        for way in WAYS:
            data = Batches(self.ds, batch_size=100, seed=1, transform=numbered)
            loader = DataLoader(data, batch_size=None, **workers_options(*way))
            for epoch in (2, 0, 3, 3, 2**64 - 1):
                data.set_epoch(epoch)
                with self.subTest((way, epoch)):
                    wanted = Batches(self.ds, batch_size=100, seed=1, epoch=epoch, transform=numbered)
                    self.assertEqual(list(loader), list(DataLoader(wanted, batch_size=None)))

    def test_tensors(self):
        data = Batches(self.ds, batch_size=32)
        seen = []
        for batch in DataLoader(data, batch_size=None):
            self.assertIsInstance(batch["data"], torch.Tensor)
            for i, id in enumerate(batch["ids"].tolist()):
                begin, end = batch["offsets"][i : i + 2].tolist()
                self.assertEqual(batch["data"][begin:end].numpy().tobytes(), bytes(self.ds[id]))
                seen.append(id)
        self.assertEqual(sorted(seen[: len(seen) - int(batch["padded"])]), self.all)
        batch = next(iter(stele.Loader(self.ds, batch_size=3)))
        with self.assertRaises(ValueError):
            batch.readinto(bytearray(len(batch.buffer) - 1))
        with self.assertRaises(BufferError):
            batch.readinto(bytes(len(batch.buffer)))

    def test_what_workers_cannot_send(self):
        """An error for who trains, who would wait for good otherwise."""
        whole = {"batch_size": None, "num_workers": 1, "timeout": 60}
        for start, persistent in (("fork", False), ("spawn", True)):
            ways = {"multiprocessing_context": start, "persistent_workers": persistent, **whole}
            for loader in (
                DataLoader(Batches(self.ds, batch_size=100, transform=unchanged), **ways),
                DataLoader(stele.torch.Dataset(self.ds, unchanged), **ways),
                DataLoader(self.ds, **{**ways, "batch_size": 4}, collate_fn=unchanged),
            ):
                for _ in range(2):
                    with self.assertRaisesRegex(TypeError, "^<class 'stele.*'> cannot leave its process"):
                        next(iter(loader))

    def test_damage(self):
        """The same error from a worker, whose text names the sample."""
        target = pictures.DIRECTORY / "damaged.stele"
        data = bytearray(Path(pictures.numbers()).read_bytes())
        data[data.index(bytes(self.ds[500]))] ^= 1
        target.write_bytes(data)
        with stele.open(target) as ds:
            key = self.ds[500].key
            for made in Batches(ds, batch_size=100), stele.torch.Dataset(ds):
                for workers in 0, 2:
                    size = None if isinstance(made, Batches) else 100
                    loader = DataLoader(made, size, num_workers=workers, collate_fn=len)
                    with self.assertRaisesRegex(stele.ChecksumError, f"sample 500 '{key}'") as caught:
                        list(loader)
                    self.assertEqual(caught.exception.errno, errno.EBADMSG)
                    self.assertEqual(caught.exception.key, None if workers else key)
            again = pickle.loads(pickle.dumps(stele.ChecksumError("all that is known")))
            self.assertEqual((again.errno, str(again)), (errno.EBADMSG, "all that is known"))

    def test_state_after_set_epoch(self):
        """What is said last counts."""
        made = [Batches(self.ds, batch_size=10, seed=4, transform=lambda b: [s.id for s in b]) for _ in range(2)]
        order = list(made[0])
        taken = list(itertools.islice(made[1], 4))
        self.assertEqual(taken, order[:4])
        state = made[1].state_dict()
        for workers in (0, 2):
            for used in (False, True):
                data = Batches(self.ds, batch_size=10, seed=4, transform=lambda b: [s.id for s in b])
                loader = DataLoader(data, batch_size=None, num_workers=workers)
                data.set_epoch(1)
                if used:
                    self.assertNotEqual(list(loader), order)
                data.load_state_dict(state)
                self.assertEqual(list(loader), order[4:])

    def test_set_epoch_of_what_runs(self):
        """As of a Sampler."""
        made = [Batches(self.ds, batch_size=10, seed=4, transform=lambda b: [s.id for s in b]) for _ in range(2)]
        order = list(made[1])
        batches = iter(DataLoader(made[0], batch_size=None))
        made[0].set_epoch(0)
        taken = [next(batches) for _ in range(4)]
        state = made[0].state_dict()
        self.assertEqual(taken + list(batches), order)
        made[1].load_state_dict(state)
        self.assertEqual(list(made[1]), order[4:])
        self.assertEqual(list(made[0]), order, "which set_epoch() said")
        self.assertNotEqual(list(made[0]), order)

    def test_resume_elsewhere(self):
        for before, taken, after in ((1, 5, 2), (2, 3, 3), (3, 2, 1)):
            seen, states = Counter(), []
            for rank in range(before):
                data = Batches(self.ds, batch_size=10, seed=4, rank=rank, world_size=before,
                               transform=first_sizes)  # fmt: skip
                for batch in itertools.islice(DataLoader(data, batch_size=None), taken):
                    seen.update(batch)
                states.append(data.state_dict())
            self.assertEqual([states[0]] * before, states)
            for rank in range(after):
                data = Batches(self.ds, batch_size=7, rank=rank, world_size=after,
                               transform=lambda b: first_sizes(b)[: len(b) - b.padded])  # fmt: skip
                data.load_state_dict(states[0])
                for batch in DataLoader(data, batch_size=None):
                    seen.update(batch)
            self.assertEqual(seen, Counter(self.all))

    def test_stateful(self):
        for workers in (0, 1, 3):
            def loader(workers=workers):
                data = Batches(self.ds, batch_size=16, seed=1, transform=first_sizes)
                return StatefulDataLoader(data, batch_size=None, num_workers=workers)

            wanted = list(loader())
            for stop in (1, 5, 40):
                first = loader()
                got = list(itertools.islice(iter(first), stop))
                state = first.state_dict()
                second = loader()
                second.load_state_dict(state)
                self.assertEqual(got + list(second), wanted, (workers, stop))

    def test_asked_before_workers_read(self):
        """A question in the main process leaves state and epoch to those who read."""
        for way in WAYS[:4]:
            with self.subTest(way):
                options = {"batch_size": None, **workers_options(*way)}
                made = {"batch_size": 16, "seed": 1, "transform": first_sizes}
                wanted = list(DataLoader(Batches([self.ds], epoch=3, **made), **options))
                data = Batches([self.ds], **made)
                data.set_epoch(3)
                state = data.state_dict()
                self.assertEqual(len(data), 63)
                self.assertEqual(list(DataLoader(data, **options)), wanted)
                data.load_state_dict(state)
                self.assertEqual(data.state_dict(), state)
                self.assertEqual(list(DataLoader(data, **options)), wanted)

    def test_workers_keep_the_state(self):
        """It is not guessed where others read, and known again after the next start."""
        for workers, start, persistent in WAYS[:4]:
            data = Batches(self.ds, batch_size=16, seed=1, transform=first_sizes)
            begin = data.state_dict()
            for made in (data, copy.deepcopy(data), pickle.loads(pickle.dumps(data))):
                with self.subTest((workers, start)):
                    loader = DataLoader(
                        made, batch_size=None, **workers_options(workers, start, persistent)
                    )
                    first = list(itertools.islice(loader, 3))
                    self.assertEqual(len(first), 3)
                    if not workers:
                        self.assertNotEqual(made.state_dict(), begin)
                        continue
                    with self.assertRaisesRegex(ValueError, "^worker processes .*num_workers=0"):
                        made.state_dict()
                    made.load_state_dict(begin)
                    self.assertEqual(made.state_dict(), begin)
                    next(iter(loader))
                    with self.assertRaises(ValueError):
                        made.state_dict()
                    made.set_epoch(0)
                    self.assertEqual(made.state_dict(), begin)
