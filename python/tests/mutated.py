# SPDX-License-Identifier: Apache-2.0
"""MDS and LitData as the real packages wrote them, with bytes changed: what may come of it.

It is the right values, or the error that names the place, SourceError or Lost; no other one, no
crash, and nothing that takes for ever. A change of what says where things are, or of what has a
checksum, is always seen. One of a value that has none changes that value at most.

MUTATIONS=N has each test try N of them, MUTATION_SECONDS=N go on for so long, from MUTATION_SEED.
"""

import copy
import faulthandler
import json
import os
import random
import shutil
import struct
import time
import unittest

import fixtures
import images
import stele
import stele.sources
from stele.sources import Lost, SourceError

TRIES = int(os.environ.get("MUTATIONS", "60"))
SECONDS = float(os.environ.get("MUTATION_SECONDS", "0"))
SEED = os.environ.get("MUTATION_SEED", "1")
HANGS = 60  # seconds of one try, on a busy machine
BUILT = 16  # every which of them goes into an image, too
SHARD = 1  # it is this one whose bytes are changed
_NASTY = (
    None, True, False, -1, 0, 1, 3, 1 << 31, 1 << 32, 1 << 63, 10**30, 0.5, 1e999, "", "0", "x", "\0", "ndarray",
    "ndarray:", "ndarray:int16:-1", "ndarray:int16:0", "ndarray:O:2", "ndarray:i4,i4:1", "str", "bytes", "int",
    "no_header_tensor:99", "no_header_numpy:-1", "tensor", "\ud800", [], {}, [None], [[]], {"": 0}, "gz", "zstd:x",
)  # fmt: skip


def flip(data, at, chance):
    """Some bits of a byte."""
    data[at] ^= chance.randrange(1, 256)


def havoc(data, chance):
    """Several changes of any kind."""
    for _ in range(chance.randrange(1, 6)):
        at, other = chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)
        size = chance.choice((1, 2, 4, 8, chance.randrange(64)))
        kind = chance.randrange(5)
        if kind == 0:
            data[at : at + size] = chance.randbytes(size)
        elif kind == 1:
            data[at:at] = data[other : other + size]
        elif kind == 2:
            del data[at : at + size]
        elif kind == 3:
            data[at : at + 4] = struct.pack("<I", chance.choice((0, 1, 2**31, 2**32 - 1, len(data), at)))
        elif data:
            flip(data, at % len(data), chance)


def _places(value):
    """Pairs of a container of JSON and what leads into it."""
    pairs = list(value.items() if isinstance(value, dict) else enumerate(value))
    found = [(value, key) for key, _ in pairs]
    for _, inner in pairs:
        if isinstance(inner, (dict, list)):
            found += _places(inner)
    return found


def retold(index, chance):
    """An index.json that says something else, or is none."""
    kind = chance.randrange(8)
    if kind == 0:
        data = bytearray(json.dumps(index).encode())
        havoc(data, chance)
        return bytes(data)
    if kind == 1:
        deep = chance.choice(("[", '{"a":')) * chance.choice((50, 100000))
        return json.dumps(index).replace("null", deep, 1).encode()
    index = copy.deepcopy(index)
    for _ in range(chance.randrange(1, 3)):
        places = _places(index)
        holder, key = chance.choice(places)
        kind = chance.randrange(4)
        if kind == 0:
            del holder[key]
        elif kind == 1:
            other, name = chance.choice(places)
            holder[key] = copy.deepcopy(other.get(name) if isinstance(other, dict) else other[name : name + 1])
        else:
            holder[key] = chance.choice(_NASTY)
        if not index:
            break
    return json.dumps(index).encode()


class Specimen:
    """One of the directories, and where what is in the shard that is changed."""

    def __init__(self, format, name, hashed=False, packed=False):
        self.format, self.name, self.hashed, self.packed = format, name, hashed, packed
        self.whole = fixtures.DIRECTORY / name
        self.index = json.loads((self.whole / "index.json").read_text())
        if format == "mds":
            about = self.index["shards"][SHARD]
            self.file = (about["zip_data"] or about["raw_data"])["basename"]
            self.columns = about["column_names"]
            self.sizes = [size or 0 for size in about["column_sizes"]]
        else:
            self.file = self.index["chunks"][SHARD]["filename"]
            self.columns = [*fixtures.rows(0)] if name.endswith("rows") else [*fixtures.plain(0)]
            self.sizes = [0] * len(self.columns)
        entries = self.index["shards" if format == "mds" else "chunks"]
        self.shards = [e["raw_data"]["basename"] if format == "mds" else e["filename"] for e in entries]
        counts = [e["samples"] if format == "mds" else e["chunk_size"] for e in entries]
        self.first = [sum(counts[:i]) for i in range(len(counts))]
        self.count = counts[SHARD]
        self.data = (self.whole / self.file).read_bytes()
        self.map = {} if packed else self._map()

    def _map(self):
        """Of bytes that belong to a value: the sample and its column, ("",) of what MDS repeats of
        the index. Others are structure."""
        found: dict = {}
        (count,) = struct.unpack_from("<I", self.data)
        ends = struct.unpack_from(f"<{count + 1}I", self.data, 4)
        assert count == self.count and ends[-1] == len(self.data)
        found.update((at, ("",)) for at in range(4 + 4 * len(ends), ends[0]))
        for sample, at in enumerate(ends[:-1]):
            stored = [column for column, size in enumerate(self.sizes) if not size]
            told = dict(zip(stored, struct.unpack_from(f"<{len(stored)}I", self.data, at), strict=True))
            at += 4 * len(stored)
            for column, name in enumerate(self.columns):
                for byte in range(at, at + told.get(column, self.sizes[column])):
                    found[byte] = sample, name.partition(".")[0]
                at += told.get(column, self.sizes[column])
            assert at == ends[sample + 1]
        return found


class Mutated(unittest.TestCase):
    """What tests of a Specimen have in common."""

    def setUp(self):
        self.directory = images.DIRECTORY / self.id()
        self.target = str(self.directory / "image.stele")
        self.addCleanup(faulthandler.cancel_dump_traceback_later)

    def _formatMessage(self, msg, standard):
        return f"{self.where}: {super()._formatMessage(msg, standard)}"

    def tries(self, specimen):
        """Where it may be changed; what chooses."""
        top = self.directory / specimen.name
        shutil.copytree(specimen.whole, top)
        end, number = time.monotonic() + SECONDS, 0
        while time.monotonic() < end if SECONDS else number < TRIES:
            faulthandler.dump_traceback_later(HANGS, exit=True)
            chance = random.Random(f"{SEED} {self.id()} {specimen.name} {number}")
            self.where = f"{specimen.name}, try {number} of seed {SEED}"
            yield top, chance, number
            number += 1
        faulthandler.cancel_dump_traceback_later()
        if SECONDS:
            print(f"# {self.id()} {specimen.name}: {number} tries in {SECONDS:.0f} s", flush=True)
        shutil.rmtree(top)

    def read(self, specimen, top):
        """Rows by name and number; what is Lost. An error: no rows, and that."""
        rows, lost = {}, []
        try:
            source = stele.sources._open([str(top)], specimen.format, None)
            names, key = stele.sources._choose(source, None, None)
            for item in source.rows(source.fields(names, {}), key):
                if isinstance(item, Lost):
                    self.assertIn(str(top), item.place)
                    lost.append(item)
                else:
                    rows[item.name, item.number] = item.values
        except SourceError as error:
            lost.append(error)
        except Exception as error:
            error.add_note(self.where)
            raise
        for item in lost:
            self.assertNotIn("\n", str(item))
        return rows, lost

    def build(self, specimen, top, rows, lost):
        """It comes to the same in an image."""
        try:
            report = stele.sources.build(
                top, self.target, format=specimen.format, on_error="skip", force=True, progress=False
            )
        except (SourceError, stele.Error) as error:
            self.assertNotIn("\n", str(error))
            return
        self.assertLessEqual(report.samples, len(rows))
        self.assertGreaterEqual(report.skipped_parts, len(lost))
        with stele.open(self.target) as ds:
            self.assertEqual(len(ds), report.samples)

    def right(self, values, n, but=()):
        """A row is as it was written, but for what was changed."""
        wanted = fixtures.row(n)
        self.assertEqual({name.partition(".")[0] for name in values}, {*wanted} & {*values, "deep"})
        for name, value in values.items():
            head, _, inner = name.partition(".")
            if head not in but:
                want = wanted[head][inner] if inner else wanted[head]
                fixtures.same(self, value, want)

    def check(self, specimen, rows, but=None):
        """All that was read is right, but what a value of one sample is."""
        for (name, number), values in rows.items():
            shard = next(i for i, file in enumerate(specimen.shards) if name == file)
            changed = but and (shard, number) == (SHARD, but[0])
            self.right(values, specimen.first[shard] + number, but[1:] if changed else ())

    # ---- of each specimen ----

    specimens = ()

    def test_places(self):
        """One byte: what is structure, or has a hash, is seen; else it is one value."""
        for specimen in self.specimens:
            seen = 0
            for top, chance, _ in self.tries(specimen):
                data = bytearray(specimen.data)
                at = chance.randrange(len(data))
                flip(data, at, chance)
                (top / specimen.file).write_bytes(data)
                rows, lost = self.read(specimen, top)
                but = None if specimen.hashed else specimen.map.get(at)
                if not specimen.packed or specimen.hashed:
                    self.check(specimen, rows, but)
                    self.assertTrue(lost or but)
                seen += bool(lost)
            self.assertTrue(seen or SECONDS)

    def test_lengths(self):
        """Cut short, or with more behind it."""
        for specimen in self.specimens:
            for top, chance, number in self.tries(specimen):
                data = specimen.data[: chance.randrange(len(specimen.data))]
                if number % 4 == 0:
                    data = specimen.data + chance.randbytes(chance.randrange(1, 100))
                (top / specimen.file).write_bytes(data)
                rows, lost = self.read(specimen, top)
                self.check(specimen, rows)
                self.assertTrue(lost or number % 4 == 0)

    def test_havoc(self):
        """Several changes at once."""
        for specimen in self.specimens:
            for top, chance, number in self.tries(specimen):
                data = bytearray(specimen.data)
                havoc(data, chance)
                (top / specimen.file).write_bytes(data)
                rows, lost = self.read(specimen, top)
                if specimen.hashed:
                    self.check(specimen, rows)
                else:
                    others = {place: v for place, v in rows.items() if place[0] != specimen.shards[SHARD]}
                    self.check(specimen, others)
                    all_others = fixtures.ROWS - specimen.count
                    self.assertIn(len(others), {all_others, *(0 for e in lost if isinstance(e, SourceError))})
                if number % BUILT == 0:
                    self.build(specimen, top, rows, lost)

    def test_index(self):
        """index.json, which has no checksum: it is believed, or refused."""
        for specimen in self.specimens:
            for top, chance, number in self.tries(specimen):
                (top / "index.json").write_bytes(retold(specimen.index, chance))
                rows, lost = self.read(specimen, top)
                if number % BUILT == 0:
                    self.build(specimen, top, rows, lost)
