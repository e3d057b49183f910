# SPDX-License-Identifier: Apache-2.0
"""stele.sources, on what the packages write themselves: values, keys, splits, damage."""

import datetime
import decimal
import io
import json
import logging
import os
import random
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

import numpy
import pyarrow
import pyarrow.feather
import pyarrow.parquet
import stele
import stele.parquet
import stele.sources

ROWS = 200
# Only the Python of torchvision need be there, which streaming imports.
META = "torchvision._meta_registrations"


def columns(rows=ROWS):
    """Each type of Arrow: the column, the field that it becomes, and its values there."""
    numbers = list(range(rows))
    half = [n if n % 3 else None for n in numbers]
    when = [datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc) + datetime.timedelta(seconds=n) for n in numbers]
    tensor = numpy.arange(rows * 6, dtype="f4").reshape(rows, 2, 3)
    fixed = pyarrow.FixedShapeTensorArray.from_numpy_ndarray(tensor)
    nan = float("nan")
    table = {
        "i8": (pyarrow.array([n % 100 - 50 for n in numbers], "int8"), int, [n % 100 - 50 for n in numbers]),
        "u32": (pyarrow.array(numbers, "uint32"), int, numbers),
        "i64": (pyarrow.array([n - 2**63 for n in numbers], "int64"), int, [n - 2**63 for n in numbers]),
        "u64": (pyarrow.array([2**64 - 1 - n for n in numbers], "uint64"),
                stele.tensor("uint64", ()), [2**64 - 1 - n for n in numbers]),
        "small64": (pyarrow.array(numbers, "uint64"), int, numbers),
        "flag": (pyarrow.array([n % 2 == 0 for n in numbers]), int, [int(n % 2 == 0) for n in numbers]),
        "null_int": (pyarrow.array(half, "int32"), float, [nan if v is None else float(v) for v in half]),
        "null_flag": (pyarrow.array([None if v is None else v > 9 for v in half]), float,
                      [nan if v is None else float(v > 9) for v in half]),
        "f16": (pyarrow.array(numpy.arange(rows, dtype="f2")), float, [float(n) for n in numbers]),
        "f64": (pyarrow.array([None if v is None else v / 3 for v in half], "float64"), float,
                [nan if v is None else v / 3 for v in half]),
        "text": (pyarrow.array([None if v is None else f"é{v}" for v in half]), str,
                 ["" if v is None else f"é{v}" for v in half]),
        "large": (pyarrow.array([f"l{n}" for n in numbers], pyarrow.large_string()), str,
                  [f"l{n}" for n in numbers]),
        "words": (pyarrow.array([f"w{n % 3}" for n in numbers]).dictionary_encode(), str,
                  [f"w{n % 3}" for n in numbers]),
        "data": (pyarrow.array([None if v is None else bytes([v % 256]) * v for v in half], pyarrow.binary()),
                 bytes, [b"" if v is None else bytes([v % 256]) * v for v in half]),
        "uuid": (pyarrow.array([b"%016d" % n for n in numbers], pyarrow.binary(16)), bytes,
                 [b"%016d" % n for n in numbers]),
        "when": (pyarrow.array(when, pyarrow.timestamp("us", "UTC")), int,
                 [int(w.timestamp()) * 10**6 for w in when]),
        "day": (pyarrow.array([datetime.date(1970, 1, 1) + datetime.timedelta(n) for n in numbers]), int, numbers),
        "money": (pyarrow.array([decimal.Decimal(n) / 100 for n in numbers], pyarrow.decimal128(12, 2)),
                  str, [format(decimal.Decimal(n) / 100, ".2f") for n in numbers]),
        "vector": (pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(tensor.reshape(-1)), 6),
                   stele.tensor("float32", (6,)), tensor.reshape(rows, 6)),
        "matrix": (pyarrow.FixedSizeListArray.from_arrays(pyarrow.FixedSizeListArray.from_arrays(
                   pyarrow.array(tensor.reshape(-1)), 3), 2), stele.tensor("float32", (2, 3)), tensor),
        "tensor": (fixed, stele.tensor("float32", (2, 3)), tensor),
        "bools": (pyarrow.array([[n % 2 == 0, True] for n in numbers], pyarrow.list_(pyarrow.bool_(), 2)),
                  stele.tensor("bool", (2,)), [numpy.array([n % 2 == 0, True]) for n in numbers]),
        "tokens": (pyarrow.array([None if v is None else list(range(v % 7)) for v in half], pyarrow.list_(pyarrow.int64())),
                   stele.tensor("int64", (None,)),
                   [numpy.arange(0 if v is None else v % 7) for v in half]),
        "points": (pyarrow.array([[[n, i] for i in range(n % 4)] for n in numbers],
                   pyarrow.list_(pyarrow.list_(pyarrow.int16(), 2))), stele.tensor("int16", (None, 2)),
                   [numpy.array([[n, i] for i in range(n % 4)], "i2").reshape(-1, 2) for n in numbers]),
        "struct": (pyarrow.array([{"a": n, "b": ["x"]} for n in numbers]), str,
                   [{"a": n, "b": ["x"]} for n in numbers]),
        "map": (pyarrow.array([[("k", n)] for n in numbers], pyarrow.map_(pyarrow.string(), pyarrow.int32())),
                str, [[["k", n]] for n in numbers]),
        "names": (pyarrow.array([["x", f"{n}"] for n in numbers]), str, [["x", f"{n}"] for n in numbers]),
        "ragged": (pyarrow.array([[[n], [n, n]] for n in numbers]), str, [[[n], [n, n]] for n in numbers]),
        "nothing": (pyarrow.nulls(rows), str, [""] * rows),
    }  # fmt: skip
    return table


JSON = {"struct", "map", "names", "ragged"}


def table_of(names=None, rows=ROWS):
    """A table of these columns, and a key."""
    some = {k: v[0] for k, v in columns(rows).items() if names is None or k in names}
    return pyarrow.table({**some, "key": [f"k{n:04}" for n in range(rows)]})


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_DIR"))
        self.addCleanup(directory.cleanup)
        self.tmp = Path(directory.name)
        self.target = str(self.tmp / "a.stele")

    def build(self, source, name="v1", **options):
        options.setdefault("force", name == "v1")
        options.setdefault("order", "source")
        return stele.sources.build(source, f"{self.target}@{name}", progress=False, **options)

    def append(self, source, name, **options):
        return stele.sources.append(source, f"{self.target}@{name}", progress=False, order="source", **options)

    def keys(self, name="v1"):
        with stele.open(f"{self.target}@{name}") as ds:
            return [sample.key for sample in ds]

    def refuses(self, source, why, **options):
        """An error that says this; its hint. Nothing is left behind."""
        target = self.tmp / "refused.stele"
        with self.assertRaisesRegex((stele.sources.SourceError, stele.Error), why) as caught:
            stele.sources.build(source, str(target), progress=False, **options)
        self.assertFalse(target.exists())
        self.assertNotIn("\n", str(caught.exception))
        return " ".join(getattr(caught.exception, "__notes__", []))

    def same(self, names=None, rows=ROWS, key="k{:04}", left=()):
        """All values, in the types that they have."""
        wanted = {k: v for k, v in columns(rows).items() if names is None or k in names}
        with stele.open(self.target) as ds:
            self.assertEqual(len(ds), rows - len(left))
            for name, (_, kind, values) in wanted.items():
                with self.subTest(name):
                    expected = kind if isinstance(kind, stele.Field) else stele.Field("", kind.__name__, (), "", ())
                    self.assertEqual(ds.fields[name]._replace(name=""), expected)
                    for n in range(rows):
                        if n not in left:
                            self.one(ds[key.format(n)][name], values[n], name)

    def one(self, got, wanted, name=""):
        if isinstance(got, stele.Tensor):
            numpy.testing.assert_array_equal(got.numpy(), wanted)
        elif isinstance(wanted, bytes):
            self.assertEqual(bytes(got), wanted)
        elif name in JSON:
            self.assertEqual(json.loads(got), wanted)
        else:
            numpy.testing.assert_equal(got, wanted)

    def flips(self, path, build, tries, seed=1):
        """Flip bits of a file. How often it is refused, differs unseen, and makes no difference."""
        whole = path.read_bytes()
        build()
        digest = self.digest()
        chance = random.Random(seed)
        seen = {"refused": 0, "differs": 0, "same": 0}
        for _ in range(tries):
            data = bytearray(whole)
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            path.write_bytes(data)
            try:
                build()
                seen["same" if self.digest() == digest else "differs"] += 1
            except (stele.sources.SourceError, stele.Error) as error:
                self.assertNotIn("\n", str(error))
                seen["refused"] += 1
        path.write_bytes(whole)
        return seen

    def cuts(self, path, build, tries=40):
        """Cut a file short anywhere: it is refused, or nothing of it was missing."""
        whole = path.read_bytes()
        build()
        digest = self.digest()
        for size in sorted({*range(0, len(whole), max(1, len(whole) // tries)), len(whole) - 1}):
            path.write_bytes(whole[:size])
            try:
                build()
            except stele.sources.SourceError as error:
                self.assertIn(str(path), str(error))
                self.assertNotIn("\n", str(error))
            else:
                self.assertEqual(self.digest(), digest, f"cut at {size} of {len(whole)}")
        path.write_bytes(whole)

    def digest(self):
        """Of all values."""
        with stele.open(self.target) as ds:
            return [(s.key, [str(s[n]) if not isinstance(s[n], stele.Tensor) else s[n].numpy().tobytes()
                             for n in ds.fields if ds.fields[n].type != "bytes"], bytes(s)) for s in ds]  # fmt: skip


class Parquet(Case):
    def write(self, table, name="a.parquet", **options):
        path = self.tmp / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pyarrow.parquet.write_table(table, path, **{"row_group_size": 30, **options})
        return path

    def test_types(self):
        for options in (
            {}, {"compression": "zstd", "use_dictionary": False}, {"data_page_version": "2.0"},
            {"write_statistics": False}, {"store_schema": False}, {"row_group_size": 1000},
        ):  # fmt: skip
            with self.subTest(options):
                names = None
                if options.get("store_schema") is False:  # fixed sizes are in it
                    names = {"i8", "i64", "u64", "text", "data", "tokens", "null_int", "struct", "money"}
                path = self.write(table_of(names), **options)
                report = self.build(path)
                self.assertEqual((report.samples, report.skipped), (ROWS, ()))
                self.same(names)

    def test_no_parquet(self):
        """What has the name of a Parquet file alone."""
        for data in b"", b"some text", b"PAR1, and not at the end":
            (self.tmp / "n.parquet").write_bytes(data)
            hint = self.refuses(self.tmp / "n.parquet", "cannot read '.*n.parquet': Parquet ")
            self.assertEqual(hint, "if it has another format than its name or its first bytes say, format names that")

    def test_keys(self):
        path = self.write(table_of({"i8", "words", "tensor"}), "in/sub/b.parquet")
        self.build(path, columns=["i8"])
        self.assertEqual(self.keys()[3], "k0003")
        words = pyarrow.parquet.read_table(path)["words"].to_pylist()
        again = words.index("w0", words.index("w0") + 1)
        notes = self.refuses(path, "'w0' was put twice", key="words", columns=["i8"])
        self.assertIn(f"'b.parquet' row {words.index('w0')} and 'b.parquet' row {again} have that key", notes)
        bare = table_of({"i8", "u32"}).drop(["key"])
        self.write(bare, "in/sub/b.parquet")
        self.write(bare, "in/a.parquet")
        self.build(self.tmp / "in")
        self.assertEqual(self.keys()[0], "a.parquet/0000000000")
        self.assertEqual(self.keys()[-1], f"sub/b.parquet/{ROWS - 1:010}")
        self.build(str(self.tmp / "in/**/*.parquet"))
        self.assertEqual(self.keys()[-1], f"b.parquet/{ROWS - 1:010}")
        self.build(self.tmp / "in/a.parquet", key="u32")
        self.assertEqual(sorted(map(int, self.keys())), list(range(ROWS)))
        with stele.open(self.target) as ds:
            self.assertEqual(list(ds.fields), ["i8"])
        self.refuses(path, "no column 'x': there are 'i8'", key="x")
        self.refuses(path, "no column 'x'", columns=["x"])
        self.write(table_of({"tensor"}), "t.parquet")
        self.refuses(self.tmp / "t.parquet", "cannot be keys: it is float32", key="tensor")
        self.refuses(self.tmp / "t.parquet", "no column but that of the keys", columns=[])
        lacks = {
            "text": ["a", None], "data": [b"a", None], "words": pyarrow.array(["a", None]).dictionary_encode(),
            "i64": pyarrow.array([1, None]), "u64": pyarrow.array([2**64 - 1, None], "uint64"),
            "day": pyarrow.array([1, None], pyarrow.date32()), "empty": ["a", ""],
        }  # fmt: skip
        self.write(pyarrow.table({"key": ["a", None], "n": [1, 2], **lacks}), "n.parquet")
        for name in "key", *lacks:
            why = f"^'n.parquet' row 1 has no key: column '{name}' is {'empty' if name == 'empty' else 'null'} there$"
            for on_error in "fail", "skip":  # it is not what cannot be read
                for columns in ["n"], ["n", name]:
                    if (name, len(columns)) != ("u64", 2):
                        notes = self.refuses(
                            self.tmp / "n.parquet", why, key=name, columns=columns, on_error=on_error
                        )
                        self.assertEqual(notes, stele.sources.FILLED)
        self.write(pyarrow.table({"key": ["a", "a"], "n": [1, 2]}), "n.parquet")
        self.refuses(self.tmp / "n.parquet", "'a' was put twice")

    def test_files_of_one_name(self):
        """Numbers of one would go on in the other, and no row be there twice by its key."""
        one = self.write(pyarrow.table({"n": [1, 2]}), "in/1/part.parquet")
        two = self.write(pyarrow.table({"n": [3, 4]}), "in/2/part.parquet")
        why = f"^rows of '{one}' and '{two}' would have the same keys$"
        for source in [one, two], str(self.tmp / "in/*/part.parquet"):
            self.assertEqual(
                self.refuses(source, why),
                "rename one of them, or name a directory above both instead " + stele.sources.UNIQUE,
            )
        self.build([one, two], key="n", columns=["n"])
        self.assertEqual(sorted(self.keys()), ["1", "2", "3", "4"])
        for source in [self.tmp / "in", self.tmp / "in/1"], [one.parent, two.parent]:
            hint = self.refuses([*source, one], f"^'{one}' would be read twice$", key="n", columns=["n"])
            self.assertEqual(hint, "name it once")
        self.build([one.parent, two.parent])
        self.assertEqual(self.keys()[2], "2/part.parquet/0000000000")
        self.build(self.tmp / "in")
        self.assertEqual(self.keys()[2], "2/part.parquet/0000000000")

    def test_append(self):
        path = self.write(table_of({"i8", "text", "tokens", "null_int"}))
        self.build(path)
        path = self.write(table_of({"i8", "text", "tokens", "null_int"}, ROWS + 50))
        with self.assertRaises(stele.ExistsError):
            self.build(path, "v2")
        self.append(path, "v2")
        self.assertEqual(len(self.keys("v2")), ROWS + 50)
        self.assertEqual(len(self.keys("v1")), ROWS)
        # without nulls it is int, but float in the image
        more = table_of({"i8", "text", "tokens"}, 5).append_column("null_int", pyarrow.array(range(5), "int32"))
        self.append(self.write(more), "v3", update=True)
        with stele.open(f"{self.target}@v3") as ds:
            self.assertEqual([ds["k0000"]["null_int"], ds.fields["null_int"].type], [0.0, "float"])
        for wrong, why in (
            (more.drop(["text"]), "the image has a field 'text'"),
            (more.append_column("y", more["i8"]), "no field 'y'"),
            (more.set_column(0, "i8", more["text"]), "column 'i8' is str, and the field of the image int"),
            (more.set_column(0, "i8", pyarrow.array([None] * 5, "int8")), "'i8' has nulls, and its field is an int"),
        ):
            before = Path(self.target).read_bytes()
            with self.assertRaisesRegex(stele.sources.SourceError, why):
                self.append(self.write(wrong), "v4", update=True)
            self.assertEqual(Path(self.target).read_bytes(), before)

    def test_directories_that_are_no_columns(self):
        """Of those above what was given, which are left out, somebody is told."""
        where = "year=2026/lang=en/a.parquet"
        path = self.write(table_of({"i8"}).drop(["key"]), f"in/{where}")
        for source, names, options in (
            (self.tmp / "in", "", {}), (self.tmp / "in/year=2026", "'year'", {}),
            (path, "'year', 'lang'", {}), (self.tmp / "in/*/*/*.parquet", "'year', 'lang'", {}),
            (path, "", {"columns": ["i8"]}),
        ):  # fmt: skip
            want = [] if not names else [
                f"WARNING:stele:left out, as only directories below a source are columns: {names} of "
                f"'{path}'; the source '{self.tmp / 'in'}' has them"
            ]  # fmt: skip
            with self.subTest(source), self.assertLogs("stele") as logs:
                logging.getLogger("stele").info("")
                self.build(str(source), **options)
            self.assertEqual([line for line in logs.output if "left out" in line], want)
        self.write(table_of({"i8"}).rename_columns(["year", "lang"]), f"in/{where}")
        with self.assertNoLogs("stele", "WARNING"):  # the file itself has them
            self.build(path, key="lang", columns=["year"])

    def test_hive_and_files_that_differ(self):
        for year in (2025, 2026):
            self.write(table_of({"i8"}).drop(["key"]), f"in/year={year}/a.parquet")
        self.build(self.tmp / "in")
        with stele.open(self.target) as ds:
            self.assertEqual(ds["year=2026/a.parquet/0000000000"]["year"], "2026")
        self.write(table_of({"text"}).drop(["key"]), "in/year=2026/b.parquet")
        self.refuses(self.tmp / "in", "column 'i8' is int in '.*a.parquet', and missing in '.*b.parquet'")

    def test_units(self):
        """Dates and times are numbers of one unit, in all files."""
        when = datetime.datetime(2020, 1, 1)
        one = self.write(pyarrow.table({"t": pyarrow.array([when], pyarrow.timestamp("ms")), "n": [1]}))
        for name, array in (
            ("timestamp[us]", pyarrow.array([when], pyarrow.timestamp("us"))),
            ("date32[day]", pyarrow.array([when.date()])), ("int", pyarrow.array([5])),
            ("duration[ms]", pyarrow.array([5], pyarrow.duration("ms"))),
        ):  # fmt: skip
            two = self.write(pyarrow.table({"t": array, "n": [2]}), "b.parquet")
            name = name.replace("[", "\\[").replace("]", "\\]")
            why = f"column 't' is timestamp\\[ms\\] in '{one}', and {name} in '{two}'$"
            self.assertIn("columns=[...] takes only", self.refuses([one, two], why))
            self.assertEqual(self.build([one, two], columns=["n"]).samples, 2)
        array = pyarrow.array([when], pyarrow.timestamp("ms", "UTC"))
        two = self.write(pyarrow.table({"t": array, "n": [2]}), "b.parquet")
        self.assertEqual(self.build([one, two]).samples, 2)

    def test_classes_that_differ(self):
        def one(name, *classes):
            names = {"stele:classes": json.dumps(classes)}
            schema = pyarrow.schema([pyarrow.field("c", pyarrow.int64(), metadata=names)])
            return self.write(pyarrow.table({"c": [0]}, schema=schema), name)

        path = one("a.parquet", "cat", "dog")
        self.build(path)
        for other, number, here in ((("cat", "cow"), 1, "'cow'"), (("cat",), 1, "none")):
            two = one("b.parquet", *other)
            theirs = f"class {number} is 'dog', and {here}$"
            self.refuses([path, two], f"classes in '{path}', and one of {len(other)} classes in '{two}': {theirs}")
            with self.assertRaisesRegex(stele.sources.SourceError, f"class {number} is {here}, and 'dog'$"):
                self.append(two, "v2")

    def test_changed(self):
        """Of two versions neither is taken."""
        table = pyarrow.table({"n": list(range(ROWS))})
        for name in ("c.parquet", "c.arrow", "c.arrows"):
            path = self.tmp / name
            if name == "c.parquet":
                self.write(table, name)
            else:
                Arrow.write(self, table, name, name == "c.arrows")
            put, data = stele.Writer.put, path.read_bytes()

            def and_write(writer, *arguments, path=path, data=data, put=put):
                put(writer, *arguments)
                if writer._samples == ROWS // 2:
                    with open(path, "r+b") as file:
                        file.write(data)

            with self.subTest(name), mock.patch.object(stele.Writer, "put", and_write):
                self.refuses(path, f"'{path}' changed while it was read")

    def test_target(self):
        path = self.write(pyarrow.table({"n": [1]}), "in/a.parquet")
        before = path.read_bytes()
        for source in (path, path.parent):
            with self.assertRaisesRegex(stele.Error, "is a file of the source, which the image would replace"):
                stele.sources.build(source, path, force=True, progress=False)
        self.assertEqual(path.read_bytes(), before)

    def test_numbers_that_fit_nothing(self):
        for value in (2**60, -(2**60)):
            path = self.write(pyarrow.table({"big": [value, None]}))
            self.assertIn("columns=[...] takes only", self.refuses(path, "column 'big' has nulls \\(1\\), and integers beyond"))
        path = self.write(pyarrow.table({"big": [2**60, 1]}))
        self.build(path)
        path = self.write(pyarrow.table({"a" * 64: [1], "c": [1]}))
        self.assertIn("columns=[...] takes only", self.refuses(path, "column 'a*' cannot be a field"))
        self.build(path, columns=["c"])
        path = self.write(pyarrow.table({"a b": [1], "é": [2], ".x-y": [3], "c": [4], "a_b": [5]}))
        self.assertIn("columns=[...] takes only", self.refuses(path, "columns 'a b' and 'a_b' would both be the field 'a_b'"))
        wanted = ["a b", "é", ".x-y", "c"]
        self.build(path, columns=wanted, key="a b")
        self.append(path, "v2", columns=wanted, key="a b", update=True, always=True)
        for name in "v1", "v2":
            with stele.open(f"{self.target}@{name}") as ds:
                self.assertEqual([*ds.fields], ["a_b", "__", "_x-y", "c"])
                self.assertEqual([[ds["1"][name] for name in ds.fields], len(ds)], [[1, 2, 3, 4], 1])
        path = self.write(pyarrow.table({"l": pyarrow.array([[1, None]], pyarrow.list_(pyarrow.int64()))}))
        self.refuses(path, "column 'l' has nulls among the numbers")
        path = self.write(pyarrow.table({"c": pyarrow.array([], "int8")}))
        self.refuses(path, "no samples")

    def test_memory(self):
        """Of a file of 200 MB not more than some batches are held."""
        rows = 2000
        data = numpy.random.default_rng(1).bytes(100_000)
        blob = pyarrow.array([data[n:] + data[:n] for n in range(rows)], pyarrow.binary())
        path = self.write(pyarrow.table({"data": blob}), "big.parquet", row_group_size=rows, compression="none", use_dictionary=False, write_batch_size=8)
        del blob
        code = ("import sys, stele.sources as s, stele.sources.parquet\n"
                "most = lambda: int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])\n"
                "low = most()\n"
                "s.build(sys.argv[1], sys.argv[2], progress=False, memory_size=16 << 20)\n"
                "print(most() - low)")
        done = subprocess.run([sys.executable, "-c", code, str(path), self.target], check=True, capture_output=True, text=True)
        self.assertLess(int(done.stdout) << 10, 150 << 20)

    def test_exported(self):
        """What stele.parquet exports comes back as it was."""
        schema = {
            "data": bytes, "text": str, "number": int, "label": ["cat", "dog"], "score": float,
            "box": stele.tensor("float32", (2, 2)), "points": stele.tensor("int16", (None, 3)),
            "exact": stele.tensor("uint64", ()),
        }  # fmt: skip
        one = str(self.tmp / "one.stele")
        with stele.Writer(one, schema, order="source") as writer:
            for i in range(100):
                writer.put(f"{i:03}", {
                    "data": b"x" * i, "text": f"é{i}", "number": i, "label": i % 3 - 1, "score": i / 3,
                    "box": numpy.full((2, 2), i, "f4"), "points": numpy.full((i % 4, 3), i, "i2"),
                    "exact": numpy.array(2**64 - 1 - i, "u8")})  # fmt: skip
        stele.parquet.export(one, self.tmp / "one.parquet")
        self.build(self.tmp / "one.parquet")
        with stele.open(one) as a, stele.open(self.target) as b:
            self.assertEqual(dict(a.fields), dict(b.fields))
            self.assertEqual([s.key for s in a], [s.key for s in b])
            for x, y in zip(a, b, strict=True):
                for name in a.fields:
                    self.one(y[name], x[name].numpy() if isinstance(x[name], stele.Tensor) else
                             bytes(x[name]) if name == "data" else x[name])  # fmt: skip
        stele.parquet.export(self.target, self.tmp / "two.parquet")
        self.assertEqual((self.tmp / "one.parquet").read_bytes(), (self.tmp / "two.parquet").read_bytes())

    def test_damage(self):
        names = {"i8", "text", "data", "tokens", "matrix"}
        path = self.write(table_of(names), write_page_checksum=True)
        self.cuts(path, lambda: self.build(path))
        seen = self.flips(path, lambda: self.build(path), 60)
        self.assertGreater(seen["refused"], 30, seen)
        # without checksums and compression much goes unseen: it is said so
        path = self.write(table_of(names), compression="none", use_dictionary=False)
        self.assertGreater(self.flips(path, lambda: self.build(path), 30)["differs"], 0)

    def test_skip(self):
        path = self.write(table_of({"i8", "data"}), write_page_checksum=True, use_dictionary=False)
        about = pyarrow.parquet.ParquetFile(path).metadata.row_group(2).column(1)
        data = bytearray(path.read_bytes())
        data[about.data_page_offset + about.total_compressed_size - 3] ^= 1
        path.write_bytes(data)
        hint = self.refuses(path, "a.parquet' row group 2: ")
        self.assertIn("on_error='skip'", hint)
        report = self.build(path, on_error="skip")
        self.assertEqual((report.skipped_parts, report.skipped_samples), (1, 30))
        self.assertIn("row group 2", report.skipped[0].place)
        self.same({"i8", "data"}, left=range(60, 90))
        other = self.write(table_of({"i8", "data"}), "b.parquet")
        bare = other.read_bytes()
        path.write_bytes(bare[:-100])
        report = self.build([path, other], on_error="skip")
        self.assertEqual((report.samples, report.skipped_parts), (ROWS, 1))
        self.refuses([path], "cannot read '.*a.parquet': ", on_error="skip")

    def test_skip_keeps_numbers(self):
        path = self.write(table_of({"i8"}).drop(["key"]), write_page_checksum=True, use_dictionary=False)
        about = pyarrow.parquet.ParquetFile(path).metadata.row_group(2).column(0)
        data = bytearray(path.read_bytes())
        data[about.data_page_offset + about.total_compressed_size - 3] ^= 1
        path.write_bytes(data)
        self.build(path, on_error="skip")
        self.same({"i8"}, key="a.parquet/{:010}", left=range(60, 90))


class Arrow(Case):
    def write(self, table, name="a.arrow", stream=False, size=30, **options):
        path = self.tmp / name
        new = pyarrow.ipc.new_stream if stream else pyarrow.ipc.new_file
        with new(path, table.schema, options=pyarrow.ipc.IpcWriteOptions(**options)) as writer:
            writer.write_table(table, size)
        return path

    def test_types(self):
        for stream in (False, True):
            for options in ({}, {"compression": "zstd"}):
                with self.subTest(stream=stream, options=options):
                    self.assertEqual(self.build(self.write(table_of(), stream=stream, **options)).samples, ROWS)
                    self.same()
        pyarrow.feather.write_feather(table_of(), self.tmp / "b.feather", chunksize=30)
        self.build(self.tmp / "b.feather")
        self.same()

    def test_damage(self):
        names = {"i8", "text", "data", "tokens"}
        for stream in (False, True):
            path = self.write(table_of(names), stream=stream)
            self.cuts(path, lambda path=path: self.build(path))
            self.flips(path, lambda path=path: self.build(path), 60)

    def test_skip(self):
        table = table_of({"i8", "text"}).drop(["key"])
        path = self.write(table, compression="zstd")
        data = bytearray(path.read_bytes())
        magic = b"\x28\xb5\x2f\xfd"  # of zstd
        at = -1
        for _ in range(7):
            at = data.find(magic, at + 1)
        data[at] ^= 0xFF
        path.write_bytes(data)
        self.refuses(path, "a.arrow' record batch [0-9]: ")
        report = self.build(path, on_error="skip")
        lost = int(report.skipped[0].place.split()[-1])
        self.assertEqual((report.skipped_parts, report.skipped_samples), (1, 30))
        self.same({"i8", "text"}, key="a.arrow/{:010}", left=range(30 * lost, 30 * lost + 30))
        path = self.write(table, stream=True)
        path.write_bytes(path.read_bytes()[:-8])  # between two messages
        self.refuses(path, "a.arrow' record batch 7: the end of the stream is missing")
        path.write_bytes(path.read_bytes()[:-2000])
        report = self.build(path, on_error="skip")
        self.assertEqual(report.skipped_parts, 1)
        self.same({"i8", "text"}, key="a.arrow/{:010}", left=range(report.samples, ROWS))


class HuggingFace(Case):
    def dataset(self, rows=60):
        import datasets
        from PIL import Image

        features = datasets.Features({
            "label": datasets.ClassLabel(names=["cat", "dog"]), "image": datasets.Image(),
            "fixed": datasets.Array2D((2, 3), "float32"), "open": datasets.Array2D((None, 3), "int32"),
            "three": datasets.Sequence(datasets.Value("int32"), length=3),
            "tokens": datasets.Sequence(datasets.Value("int64")), "text": datasets.Value("string"),
            "n": datasets.Value("int32"), "when": datasets.Value("timestamp[ms]"),
        })  # fmt: skip
        file = self.tmp / "file.png"
        Image.new("RGB", (4, 4), (1, 2, 3)).save(file)
        self.pictures = []
        for n in range(rows):
            buffer = io.BytesIO()
            Image.new("RGB", (3, 3), (n, 2, 3)).save(buffer, "PNG")
            self.pictures.append(buffer.getvalue())
        self.pictures[7] = file.read_bytes()
        return datasets.Dataset.from_list([
            {"label": n % 2 if n % 5 else None,
             "image": {"bytes": None if n == 7 else self.pictures[n], "path": str(file) if n == 7 else None},
             "fixed": [[n, 1, 2]] * 2, "open": [[n, 1, 2]] * (n % 3), "three": [1, 2, n],
             "tokens": list(range(n % 4)), "text": f"t{n}", "n": n, "when": n}
            for n in range(rows)], features=features)  # fmt: skip

    def test_lists_of_classes(self):
        import datasets

        tags = datasets.ClassLabel(names=["O", "B-PER", "I-PER", "B-LOC"])
        features = datasets.Features({"tags": datasets.Sequence(tags), "label": tags})
        rows = [{"tags": [1, 2], "label": 1}, {"tags": [3], "label": 0}]
        datasets.Dataset.from_list(rows * 20, features=features).save_to_disk(self.tmp / "tags", num_shards=3)
        with self.assertLogs("stele", "WARNING") as logged:
            self.build(self.tmp / "tags")
        self.assertEqual([record.getMessage() for record in logged.records], [
            "column 'tags' has lists of classes: their numbers stay, and the names, "
            "'O', 'B-PER', 'I-PER', ..., do not"])  # fmt: skip
        with stele.open(self.target) as ds:
            self.assertEqual(ds.fields["label"].classes, tuple(tags.names))

    def check(self, key, n, ds):
        got = ds[key]
        self.assertEqual(got["label"], n % 2 if n % 5 else -1)
        self.assertEqual(bytes(got["image"]), self.pictures[n])
        self.assertEqual((got["text"], got["n"], got["when"]), (f"t{n}", n, n))
        self.one(got["fixed"], numpy.array([[n, 1, 2]] * 2, "f4"))
        self.one(got["open"], numpy.array([[n, 1, 2]] * (n % 3), "i4").reshape(-1, 3))
        self.one(got["three"], numpy.array([1, 2, n]))
        self.one(got["tokens"], numpy.arange(n % 4))

    def test_dataset(self):
        data = self.dataset()
        picked = data.shuffle(seed=1).filter(lambda n: n % 10 != 3, input_columns=["n"])
        picked.save_to_disk(self.tmp / "one", num_shards=3)
        self.assertEqual(self.build(self.tmp / "one").samples, 54)
        with stele.open(self.target) as ds:
            self.assertEqual(ds.fields["label"].classes, ("cat", "dog"))
            self.assertEqual(ds.fields["open"].shape, (None, 3))
            self.assertEqual(ds.fields["three"].shape, (3,))
            for i, n in enumerate(picked["n"]):
                self.check(f"one/{i:010}", n, ds)
        shutil.copytree(self.tmp / "one", self.tmp / "more/one")
        hint = self.refuses([self.tmp / "one", self.tmp / "more/one"], "would have the same keys$")
        self.assertEqual(hint, "rename one of them " + stele.sources.UNIQUE)

    def test_dict(self):
        import datasets

        data = self.dataset()
        datasets.DatasetDict(train=data.select(range(40)), test=data.select(range(40, 60))).save_to_disk(self.tmp / "d")
        self.build(self.tmp / "d")
        with stele.open(self.target) as ds:
            self.assertEqual(ds.fields["split"].classes, ("train", "test"))
            for n in range(60):
                key = f"train/{n:010}" if n < 40 else f"test/{n - 40:010}"
                self.check(key, n, ds)
                self.assertEqual(ds[key]["split"], int(n >= 40))
        path = self.tmp / "d/test/dataset_info.json"  # which is beside the data, and lost otherwise
        before = path.read_bytes()
        with self.assertRaisesRegex(stele.Error, "is a file of the source, which the image would"):
            stele.sources.build(self.tmp / "d", path, force=True, progress=False)
        self.assertEqual(path.read_bytes(), before)

    def test_damage(self):
        self.dataset().save_to_disk(self.tmp / "one", num_shards=2)
        path = self.tmp / "one/data-00000-of-00002.arrow"
        self.cuts(path, lambda: self.build(self.tmp / "one"), 20)
        self.flips(path, lambda: self.build(self.tmp / "one"), 30)
        path.write_bytes(path.read_bytes()[:-100])
        report = self.build(self.tmp / "one", on_error="skip", key="text")
        self.assertEqual((report.skipped_parts, report.samples), (1, 30))
        path.unlink()
        self.refuses(self.tmp / "one", "cannot read '.*data-00000-of-00002.arrow': ")


class Mds(Case):
    COLUMNS = {
        "name": "str", "image": "jpeg", "raw": "bytes", "n": "int", "u8": "uint8", "u64": "uint64",
        "half": "float16", "score": "float64", "fixed": "ndarray:float32:2,3", "open": "ndarray:int16",
        "any": "ndarray", "json": "json", "price": "str_decimal", "big": "str_int", "bad": "pkl",
    }  # fmt: skip

    def write(self, out, rows=90, **options):
        sys.modules.setdefault(META, types.ModuleType(META))
        from PIL import Image
        from streaming import MDSWriter

        buffer = io.BytesIO()
        Image.new("RGB", (8, 8)).save(buffer, "JPEG")
        self.jpeg = buffer.getvalue()
        with MDSWriter(out=str(self.tmp / out), columns=self.COLUMNS, size_limit=8000, **options) as writer:
            for n in range(rows):
                buffer.seek(0)
                writer.write({
                    "name": f"é{n}", "image": Image.open(io.BytesIO(self.jpeg)), "raw": b"r" * n, "n": n - 2**40,
                    "u8": numpy.uint8(n), "u64": numpy.uint64(2**64 - 1 - n), "half": numpy.float16(n),
                    "score": numpy.float64(n / 3), "fixed": numpy.full((2, 3), n, "f4"),
                    "open": numpy.full((n % 3 + 1, 2), n, "i2"), "any": numpy.full(3, n, "i8"),
                    "json": {"a": n}, "price": decimal.Decimal(n) / 4, "big": n, "bad": {n},
                })  # fmt: skip
        return self.tmp / out

    def check(self, rows=90):
        with stele.open(self.target) as ds:
            self.assertEqual(len(ds), rows)
            for n, row in enumerate(ds):
                self.assertRegex(row.key, r"^shard.000\d\d.mds/\d{10}$")
                self.assertEqual((row["name"], row["n"], row["u8"], row["half"], row["score"]),
                                 (f"é{n}", n - 2**40, n, n, n / 3))  # fmt: skip
                self.assertEqual((bytes(row["image"]), bytes(row["raw"])), (self.jpeg, b"r" * n))
                self.assertEqual((row["u64"].numpy(), row["big"]), (2**64 - 1 - n, n))
                self.one(row["fixed"], numpy.full((2, 3), n, "f4"))
                self.one(row["open"], numpy.full((n % 3 + 1, 2), n, "i2"))
                self.one(row["any"], numpy.full(3, n))
                self.assertEqual((json.loads(row["json"]), row["price"]), ({"a": n}, str(decimal.Decimal(n) / 4)))

    def test_types(self):
        some = [name for name in self.COLUMNS if name != "bad"]
        hint = self.refuses(self.write("m"), "column 'bad' is stored as 'pkl'")
        self.assertIn("columns=[...] takes only", hint)
        self.build(self.tmp / "m", columns=some)
        self.check()
        with stele.open(self.target) as ds:
            self.assertEqual((ds.fields["open"].shape, ds.fields["any"].shape), ((None, 2), (3,)))
        for i, options in enumerate((
            {"compression": "zstd:3", "hashes": ["sha1", "xxh64"]}, {"compression": "gz"}, {"compression": "br"},
            {"compression": "snappy"}, {"compression": "bz2"}, {"compression": "zstd", "keep_local": True},
        )):  # fmt: skip
            with self.subTest(options):
                options.pop("keep_local", None)
                self.build(self.write(f"m{i}", **options), columns=some)
                self.check()
        self.build([self.tmp / "m0", self.tmp / "m1"], columns=["n"])
        self.assertEqual(self.keys()[-1][:3], "m1/")

    def test_damage(self):
        some = ["name", "raw", "n", "fixed", "json"]
        out = self.write("m", hashes=["sha1"])
        path = out / "shard.00001.mds"
        self.cuts(path, lambda: self.build(out, columns=some), 20)
        seen = self.flips(path, lambda: self.build(out, columns=some), 40)
        self.assertEqual(seen["refused"], 40)
        path.write_bytes(path.read_bytes()[:-1])
        report = self.build(out, columns=some, on_error="skip")
        self.assertEqual(report.skipped_parts, 1)
        self.assertEqual(report.samples + report.skipped_samples, 90)
        self.assertIn("shard.00001.mds", report.skipped[0].place)
        path.unlink()
        self.refuses(out, "shard.00001.mds': No such file", columns=some)
        for other in out.glob("*.mds"):
            other.write_bytes(b"")
        for on_error in "fail", "skip":  # arrays, of which none tells what it is
            self.refuses(out, "^cannot read '.*shard.00000.mds': ", columns=["any"], on_error=on_error)
        shutil.rmtree(out)
        out = self.write("m")
        self.assertGreater(self.flips(path, lambda: self.build(out, columns=some), 40)["differs"], 0)
        self.cuts(path, lambda: self.build(out, columns=some), 40)


LITDATA = """
import io, sys
import litdata, numpy, torch
from PIL import Image

def picture():
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "JPEG")
    return buffer.getvalue()

def one(n):
    return {"image": Image.open(io.BytesIO(picture())), "raw": b"r" * n, "n": n - 2**40, "name": "\\u00e9%d" % n,
            "score": n / 3, "flag": n % 2 == 0, "matrix": numpy.full((2, 3), n, "f4"), "row": numpy.arange(n % 4),
            "tensor": torch.full((n % 3 + 1, 2), n), "line": torch.full((3,), n / 2), "deep": {"a": n, "b": [1, n]}}

def two(n):
    return n, "x%d" % n

def rows(n):
    return {"n": n, "raw": b"r" * n, "name": "\\u00e9%d" % n, "score": n / 3, "flag": n % 2 == 0, "deep": {"a": n, "b": [1, n]}}

def three(n):
    return {"n": n, "bad": {n}}

if __name__ == "__main__":
    litdata.optimize(fn=globals()[sys.argv[2]], inputs=list(range(90)), output_dir=sys.argv[1], num_workers=1,
                     chunk_size=30, **eval(sys.argv[3]))
"""


class LitData(Case):
    def write(self, out, what="one", options="{}"):
        script = self.tmp / "write.py"
        script.write_text(LITDATA)
        subprocess.run([sys.executable, script, self.tmp / out, what, options], check=True, capture_output=True)
        return self.tmp / out

    def check(self):
        with stele.open(self.target) as ds:
            self.assertEqual(len(ds), 90)
            for i, row in enumerate(ds):
                n = row["n"] + 2**40
                self.assertEqual(n, i)
                self.assertEqual(row.key.replace(".zstd", ""), f"chunk-0-{n // 30}.bin/{n % 30:010}")
                self.assertEqual((row["name"], row["score"], row["flag"]), (f"é{n}", n / 3, n % 2 == 0))
                self.assertEqual((bytes(row["image"])[:2], bytes(row["raw"])), (b"\xff\xd8", b"r" * n))
                self.one(row["matrix"], numpy.full((2, 3), n, "f4"))
                self.one(row["row"], numpy.arange(n % 4))
                self.one(row["tensor"], numpy.full((n % 3 + 1, 2), n))
                self.one(row["line"], numpy.full(3, n / 2, "f4"))
                self.assertEqual(row["deep.a"], n)
                self.assertEqual(json.loads(row["deep.b"]), [1, n])

    def test_types(self):
        for i, options in enumerate((
            "{}", "dict(compression='zstd')", "dict(compression='zstd', compression_level='sample')",
            "dict(compression='zstd', compression_level='chunk')", "dict(compression='zstd', compression_batch_size=7)",
        )):  # fmt: skip
            with self.subTest(options):
                self.build(self.write(f"l{i}", options=options))
                self.check()
        self.build(self.write("two", "two"))
        with stele.open(self.target) as ds:
            self.assertEqual(([*ds.fields], ds[5]["0"], ds[5]["1"]), (["0", "1"], 5, "x5"))
        for i, options in enumerate(("{}", "dict(compression='zstd')")):  # of Arrow, as it happens
            out = self.write(f"rows{i}", "rows", options)
            self.build(out)
            self.assertIn(b"LDARW01", (out / "chunk-0-0.bin").read_bytes())
            with stele.open(self.target) as ds:
                for n in range(90):
                    row = ds[f"chunk-0-{n // 30}.bin/{n % 30:010}"]
                    self.assertEqual((row["n"], bytes(row["raw"]), row["name"]), (n, b"r" * n, f"é{n}"))
                    self.assertEqual((row["score"], row["flag"], row["deep.a"]), (n / 3, n % 2 == 0, n))
                    self.assertEqual(json.loads(row["deep.b"]), [1, n])
                del row
        self.refuses(self.write("three", "three"), "column 'bad' is stored as 'pickle'")
        self.build(self.tmp / "three", columns=["n"])

    def test_damage(self):
        for what, options in (("one", "{}"), ("one", "dict(compression='zstd')"), ("rows", "{}")):
            out = self.write("l", what, options)
            some = ["raw", "name", "n", "matrix"] if what == "one" else ["raw", "name", "deep.a"]
            path = out / "chunk-0-1.bin"
            self.cuts(path, lambda out=out, some=some: self.build(out, columns=some))
            self.flips(path, lambda out=out, some=some: self.build(out, columns=some), 40)
            path.write_bytes(path.read_bytes()[:1000])
            report = self.build(out, columns=some, on_error="skip")
            self.assertEqual((report.skipped_parts, report.samples + report.skipped_samples), (1, 90))
            shutil.rmtree(out)


class Lance(Case):
    NAMES = {"i8", "i64", "u64", "null_int", "flag", "f64", "text", "data", "vector", "tokens", "when", "money"}

    def write(self, names=NAMES):
        import lance

        path = self.tmp / "a.lance"
        shutil.rmtree(path, ignore_errors=True)
        lance.write_dataset(table_of(names), path, max_rows_per_file=50)
        return path

    def test_types(self):
        self.build(self.write())
        self.same(self.NAMES)

    def test_deleted(self):
        import lance

        path = self.write({"i8", "u32"})
        lance.dataset(path).delete("u32 < 60")
        self.build(path)
        self.same({"i8", "u32"}, left=range(60))

    def test_damage(self):
        path = self.write({"i8", "text"})
        file = sorted((path / "data").iterdir())[0]
        whole = file.read_bytes()
        for size in (0, 10, len(whole) // 2, len(whole) - 1):
            file.write_bytes(whole[:size])
            self.refuses(path, "cannot read '.*a.lance' fragment ")
        report = self.build(path, on_error="skip")
        self.assertEqual((report.samples, report.skipped_parts), (150, 1))
        file.unlink()
        self.refuses(path, "cannot read '.*a.lance' fragment ")


class ArrayRecord(Case):
    def write(self, rows=3000, options="group_size:10"):
        from array_record.python import array_record_module

        path = self.tmp / "a.array_record"
        writer = array_record_module.ArrayRecordWriter(str(path), options)
        for n in range(rows):
            writer.write(b"%d " % n * (n % 50))
        writer.close()
        return path

    def test_records(self):
        for options in ("group_size:1", "group_size:10", "group_size:1000,uncompressed", ""):
            self.assertEqual(self.build(self.write(options=options)).samples, 3000)
            with stele.open(self.target) as ds:
                rows = [(row.key, bytes(row)) for row in ds]
            for n, row in enumerate(rows):
                self.assertEqual(row, (f"a.array_record/{n:010}", b"%d " % n * (n % 50)))

    def test_damage(self):
        path = self.write(600)
        self.cuts(path, lambda: self.build(path), 10)
        self.assertEqual(self.flips(path, lambda: self.build(path), 40)["differs"], 0)
        data = bytearray(path.read_bytes())
        data[3000] ^= 1
        path.write_bytes(data)
        self.refuses(path, r"a.array_record' record \d+: ")
        report = self.build(path, on_error="skip")
        self.assertEqual((report.skipped_samples, report.samples), (10, 590))


class Command(Case):
    def run_command(self, *arguments, verb="build"):
        return subprocess.run(
            [sys.executable, "-m", "stele.sources", verb, *map(str, arguments)], capture_output=True, text=True
        )

    def test_build(self):
        path = self.tmp / "a.parquet"
        pyarrow.parquet.write_table(table_of({"i8", "data"}), path)
        done = self.run_command(path, f"{self.target}@v1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, rf"^samples     200, .*\nsnapshot    v1 on '{self.target}'\ndigest      sha256:.*\nruns .*\nslots .*\ndone in ")
        self.assertEqual(self.run_command("-q", "--update", path, f"{self.target}@v2", verb="append").stdout, "")
        self.assertEqual(self.run_command("-q", path, f"{self.target}@v2").returncode, 1)
        done = self.run_command("--columns=data", path, f"{self.target}@v3", verb="append")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(self.run_command("--columns=no", path, f"{self.target}@v3").returncode, 2)
        last = self.tmp / "b.parquet"
        last.write_bytes(path.read_bytes())
        streams = [self.tmp / "a.stream", self.tmp / "b.stream"]  # which begin like nothing
        for stream in streams:
            with pyarrow.OSFile(str(stream), "wb") as to, pyarrow.ipc.new_stream(to, table_of({"i8"}).schema) as writer:
                writer.write_table(table_of({"i8"}))
        forgotten = "is not overwritten: it looks like a source, and TARGET comes last"
        for option in ("-q", "-f", "-nf"):  # the last of some, for a target that was forgotten
            for first, second, form in (path, last, "parquet"), (*streams, "arrow"):
                before = second.read_bytes()
                done = self.run_command(option, f"--from={form}", first, second)
                self.assertEqual((done.returncode, second.read_bytes()), (2, before))
                self.assertIn(f"'{second}' {forgotten}", done.stderr)
        done = self.run_command("-qf", "--from=arrow", streams[0], self.tmp / "c.stream")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = self.run_command("-qf", "--from=arrow", streams[0], self.tmp / "c.stream")
        self.assertEqual((done.returncode, done.stderr), (0, ""))  # that is an image
        path.write_bytes(path.read_bytes()[:500])
        done = self.run_command(path, self.tmp / "b.stele")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 2), done.stderr)
        self.assertIn(f"stele.sources: cannot read '{path}': ", done.stderr)


if __name__ == "__main__":
    unittest.main()
