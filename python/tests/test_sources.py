# SPDX-License-Identifier: Apache-2.0
"""stele.sources without the packages of its formats: MDS, detection, arguments, the command."""

import contextlib
import io
import json
import os
import re
import shlex
import signal
import struct
import subprocess
import sys
import time
import unittest
from pathlib import Path
from unittest import mock

import images
import numpy
import stele
import stele.sources
from stele.sources.detect import detect
from stele.sources.fit import as_base
from stele.sources.source import Reader, SourceError, files_of

ENCODINGS = {"name": ("str", None), "image": ("jpeg", None), "n": ("int", 8), "box": ("ndarray:int16:2", 4)}
KEPT = "hint: {} samples of the source were there by key already, and not compared: --update does that\n"
NO_PYARROW = "import sys; sys.modules['pyarrow'] = sys.modules['lance'] = None\n"


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = images.DIRECTORY / self.id()
        self.directory.mkdir(parents=True)
        self.target = str(self.directory / "image.stele")

    def mds(self, name="mds", shards=3, rows=10, first=0, **hashes):
        """As MDSWriter writes it."""
        top = self.directory / name
        top.mkdir(exist_ok=True)
        index = []
        for shard in range(shards):
            samples = []
            for n in range(first + shard * rows, first + (shard + 1) * rows):
                text, image = f"é{n}".encode(), b"\xff\xd8" * n
                values = text + image + struct.pack("<q2h", -n, n, n + 1)
                samples.append(struct.pack("<II", len(text), len(image)) + values)
            at = 4 + 4 * (rows + 1)
            ends = [at]
            for sample in samples:
                ends.append(ends[-1] + len(sample))
            data = struct.pack(f"<{rows + 2}I", rows, *ends) + b"".join(samples)
            base = f"shard.{shard:05}.mds"
            (top / base).write_bytes(data)
            index.append({
                "column_encodings": [e for e, _ in ENCODINGS.values()], "column_names": list(ENCODINGS),
                "column_sizes": [s for _, s in ENCODINGS.values()], "compression": None, "format": "mds",
                "hashes": [], "raw_data": {"basename": base, "bytes": len(data), "hashes": {}},
                "samples": rows, "size_limit": 1 << 26, "version": 2, "zip_data": None,
            })  # fmt: skip
        (top / "index.json").write_text(json.dumps({"shards": index, "version": 2}))
        return top

    def command(self, *arguments, code="", verb="build"):
        """Status, output and messages of stele.sources."""
        run = [sys.executable, "-m", "stele.sources", verb]
        if code:
            code += "from stele.sources.__main__ import main; sys.exit(main(['build', *sys.argv[1:]]))"
            run = [sys.executable, "-c", code]
        done = subprocess.run([*run, *map(str, arguments)], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr


class Mds(Case):
    def test_rows(self):
        shown = []
        report = stele.sources.build(self.mds(), self.target, label="pets", progress=shown.append)
        self.assertEqual((report.samples, report.skipped, report.snapshot.name), (30, (), "v1"))
        self.assertEqual(stele.image_info(self.target).label, "pets")
        self.assertEqual({p.samples_total for p in shown if p.phase == "put"}, {30})
        with stele.open(self.target) as ds:
            self.assertEqual([f.type for f in ds.fields.values()], ["str", "bytes", "int", "tensor"])
            for n in range(30):
                row = ds[f"shard.{n // 10:05}.mds/{n % 10:010}"]
                self.assertEqual((row["name"], row["n"], bytes(row["image"])), (f"é{n}", -n, b"\xff\xd8" * n))
                self.assertEqual(row["box"].numpy().tolist(), [n, n + 1])

    def test_append(self):
        stele.sources.build(self.mds(), self.target)
        with self.assertRaisesRegex(ValueError, "name the new snapshot"):
            stele.sources.append(self.mds(), self.target)
        with self.assertRaises(stele.ExistsError) as caught:
            stele.sources.build(self.mds(), self.target + "@v2")
        self.assertIn(stele.sources.APPEND, caught.exception.__notes__)
        report = stele.sources.append(self.mds(shards=4), self.target + "@v2")
        self.assertEqual((report.written.added, report.written.unchanged, report.samples), (10, 30, 40))
        stele.sources.append(self.mds(first=7), self.target + "@v3", key="name", columns=["image", "n", "box", "name"])
        with stele.open(self.target + "@v3") as ds:
            self.assertEqual((len(ds), ds["é7"]["n"], ds["é7"]["name"]), (70, -7, "é7"))

    def test_damage(self):
        top = self.mds()
        path = top / "shard.00001.mds"
        whole = path.read_bytes()
        for size in range(len(whole)):
            path.write_bytes(whole[:size])
            with self.assertRaisesRegex(stele.sources.SourceError, "^cannot read '.*shard.00001.mds': it has"):
                stele.sources.build(top, self.target)
        for at in range(4 * 12):  # the table of offsets
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1:])
            with self.assertRaisesRegex(stele.sources.SourceError, "^cannot read '.*shard.00001.mds'"):
                stele.sources.build(top, self.target)
        self.assertEqual(list(self.directory.iterdir()), [top])
        end = struct.unpack_from("<I", whole, 4 + 4 * 5)[0]
        path.write_bytes(whole[:end] + b"\xff" + whole[end + 1:])  # the size of a column
        with self.assertRaisesRegex(stele.sources.SourceError, "00001.mds', sample 5: sizes of its columns"):
            stele.sources.build(top, self.target)
        report = stele.sources.build(top, self.target, on_error="skip")
        self.assertEqual((report.samples, report.skipped_parts, report.skipped_samples), (25, 1, 5))
        self.assertEqual(report.skipped[0].rows, 5)

    def test_hashes(self):
        top = self.mds()
        index = json.loads((top / "index.json").read_text())
        index["shards"][1]["raw_data"]["hashes"] = {"unheard-of": "1", "sha1": "00"}
        (top / "index.json").write_text(json.dumps(index))
        with self.assertRaisesRegex(stele.sources.SourceError, "00001.mds': its sha1 is [0-9a-f]{40}, and not 00"):
            stele.sources.build(top, self.target)

    def test_index(self):
        top = self.mds()
        whole = (top / "index.json").read_text()
        for old, new, why in (
            ('"jpeg"', '"pkl"', "column 'image' is stored as 'pkl'"),
            ('"version": 2, "zip', '"version": 3, "zip', "format mds 3, not MDS 2"),
            ('"samples": 10', '"samples": "x"', "index.json' is damaged"),
            ('"column_sizes"', '"column_sices"', "index.json' is damaged"),
            ('"samples": 10', '"samples": 1e999', "index.json' is damaged: .*no number of samples"),
            ("null, 8, 4]", "null, 8, -4]", "index.json' is damaged: .*no size of column 'box'"),
            ('"n"', '"name"', "index.json' is damaged: .*a column is there twice"),
            ('"str"', "1", "index.json' is damaged"),
            ("int16:2", "int16:-2", "index.json' is damaged: .*no arrays"),
            ('"samples": 10', '"samples": 11', "it has 10 samples, and not 11"),
            ('"shards": [', '"shards": [}', "cannot read '.*index.json'"),
            ('"box"', '"' + "b" * 64 + '"', "column 'b*' cannot be a field"),
            ('shard.00001', '../../shard.00001', "No such file"),
        ):  # fmt: skip
            (top / "index.json").write_text(whole.replace(old, new))
            with self.subTest(new), self.assertRaisesRegex(stele.sources.SourceError, why):
                stele.sources.build(top, self.target)
        self.assertEqual(list(self.directory.iterdir()), [top])


class Target(Case):
    """What is read is never written to; what a device held is lost for an image alone."""

    def disk(self):
        """A loop device with an image."""
        path = self.directory / "disk"
        with open(path, "wb") as file:
            file.truncate(16 << 20)
        node = images.loop(self, path)
        with stele.Writer(node, progress=False, label="precious") as writer:
            writer.put("a", b"1")
        return node

    def refused(self, source, target, file, why):
        before = file.read_bytes()
        for force in ([], ["-f"]):
            status, out, err = self.command(*force, source, target)
            self.assertEqual((status, out), (2, ""), err)
            self.assertRegex(err, rf"\Astele.sources: '{file}' {why}\nhint: give the image a name of its own")
        self.assertEqual(file.read_bytes(), before)

    def test_is_the_source(self):
        top = self.mds()
        for name in ("shard.00001.mds", "index.json"):
            self.refused(top, top / name, top / name, "is a file of the source, which the image would replace")
        (self.directory / "link").symlink_to(top / "shard.00000.mds")
        path = top / "shard.00000.mds"
        self.refused(top, self.directory / "link", path, "is a file of the source, .*")

    def test_is_over_the_source(self):
        top = self.mds(shards=1, rows=400)
        path = top / "shard.00000.mds"
        node = images.loop(self, path)
        self.refused(top, node, path, f"is of the source, and shares bytes with '{node}', which would be written to")

    def test_nothing_to_replace_it(self):
        """A source that has no sample, or none that fits, costs no image."""
        top, node = self.mds(), self.disk()
        whole = (top / "index.json").read_text()
        for index, options, why in (
            (whole.replace("00000.mds", "x.mds"), (), "No such file"),
            (whole.replace('"box"', '"' + "b" * 64 + '"'), (), "cannot be a field"),
            (whole.replace('"samples": 10', '"samples": 11'), ("--on-error=skip",), "nothing of the source can be read"),
            (whole, ("--key=name", "--columns=n", "--directory=/nowhere"), "nowhere"),
        ):  # fmt: skip
            (top / "index.json").write_text(index)
            status, _, err = self.command("-f", *options, top, node)
            self.assertEqual(status, 1, err)
            self.assertRegex(err, why)
            self.assertNotIn("has lost", err)
            self.assertEqual(stele.image_info(node).label, "precious")
        (top / "index.json").write_text(whole)
        for odd, status in ("True", 1), ("key[-1] != '9'", 0):
            code = f"""import sys, stele.sources
class Writer(stele.sources.Writer):
    def put(self, key, row):
        if {odd}:
            raise ValueError("odd")
        super().put(key, row)
stele.sources.Writer = Writer
"""
            seen, _, err = self.command("-f", "--on-error=skip", top, node, code=code)
            self.assertEqual(seen, status, err)
            self.assertNotIn("has lost", err)
            self.assertEqual(stele.image_info(node).label, "precious" if status else "")
            if status:
                self.assertRegex(err, "nothing of the source can be read: .*: odd, and 29 parts more\n")

    def test_damaged_later(self):
        """Damage that shows later costs no image, either; nor do keys that come twice."""
        top, node = self.mds(), self.disk()
        path = top / "shard.00002.mds"
        path.write_bytes(path.read_bytes()[:-1])
        twice = [self.mds(name, shards=1) for name in ("one", "two")]
        for source, options, why in (
            ([top], (), rf"cannot read '{path}': .*\nhint: --on-error=skip .*"),
            (twice, ("--key=name",), "'é0' was put twice: .*\nstele.sources: 'one/shard.00000.mds' row 0 and "
                "'two/shard.00000.mds' row 0 have that key\nhint: --key=COLUMN .*"),
        ):
            status, _, err = self.command("-f", *options, *source, node)
            self.assertEqual(status, 1)
            self.assertRegex(err, rf"\Astele.sources: {why}\n\Z")
            self.assertEqual(stele.image_info(node).label, "precious")


    def test_names(self):
        """One name is no list of names, of which each letter would be one."""
        for options, message in (
            ({"columns": "name"}, "columns must be a list of names, not 'name'"),
            ({"columns": b"name"}, "columns must be a list of names, not b'name'"),
            ({"columns": 3}, "columns must be a list of names, not 3"),
            ({"columns": [3]}, "a column must be a str, not 3"), ({"key": ["name"]}, "key must be a str, not "),
            ({"format": ["mds"]}, "format must be a str"), ({"sources": "x"}, "sources must be a list of paths"),
        ):  # fmt: skip
            with self.subTest(options), self.assertRaisesRegex(TypeError, message):
                stele.sources.build(self.mds(), self.target, **options)
        with self.assertRaisesRegex(TypeError, "source must be a list of paths, not 3"):
            stele.sources.build(3, self.target)
        frame = type("DataFrame", (dict,), {"to_parquet": None})(name=[1])  # as of pandas: names of columns
        with self.assertRaisesRegex(TypeError, r"paths, not a DataFrame: its to_parquet\(\) writes"):
            stele.sources.build(frame, self.target)
        with self.assertRaisesRegex(TypeError, "source must be paths, not dict objects"):
            stele.sources.build([self.mds(), {"name": 1}], self.target)
        stele.sources.build(self.mds(), self.target, columns=(name for name in ("name", "n")), progress=False)
        with stele.open(self.target) as ds:
            self.assertEqual([*ds.fields], ["name", "n"])

    def test_bytes(self):
        """Paths may be bytes."""
        source, target = os.fsencode(self.mds()), os.fsencode(self.target)
        stele.sources.build(source, target, progress=False)
        stele.sources.append([os.fsencode(self.mds(shards=4))], target + b"@v2", progress=False)
        self.assertEqual([s.sample_count for s in stele.snapshots(target)], [30, 40])


class Versions(Case):
    def test_changed(self):
        """Two versions of a file are neither of them."""
        for change in ("in place", "another", "index.json"):
            top = self.mds()
            path = top / ("shard.00001.mds" if change != "index.json" else change)
            put, data = stele.Writer.put, path.read_bytes()

            def and_write(writer, *arguments, path=path, data=data, put=put):
                put(writer, *arguments)
                if writer._samples == 15 and change == "another":
                    path.with_name("new").write_bytes(data)
                    path.with_name("new").rename(path)
                elif writer._samples == 15:
                    with open(path, "r+b") as file:
                        file.write(data)

            for options in ({}, {"on_error": "skip"}):
                with self.subTest(change), mock.patch.object(stele.Writer, "put", and_write):
                    with self.assertRaisesRegex(stele.sources.SourceError, f"'{path}' changed while it was read"):
                        stele.sources.build(top, self.target, **options)
            self.assertEqual(list(self.directory.iterdir()), [top])

    def test_encodings(self):
        """Each shard is read as it is stored."""
        def one(name, columns):
            top = self.directory / name
            top.mkdir()
            values = b"".join(struct.pack(format, value) for _, format, value in columns.values())
            data = struct.pack("<III", 1, 12, 12 + len(values)) + values
            (top / "s.mds").write_bytes(data)
            (top / "index.json").write_text(json.dumps({"shards": [{
                "column_encodings": [c[0] for c in columns.values()], "column_names": list(columns),
                "column_sizes": [struct.calcsize(c[1]) for c in columns.values()], "format": "mds",
                "raw_data": {"basename": "s.mds", "bytes": len(data)}, "samples": 1, "version": 2,
            }]}))  # fmt: skip
            return top

        tops = [
            one("a", {"n": ("int32", "<i", -5), "x": ("float64", "<d", 1.5)}),
            one("b", {"n": ("uint32", "<I", 4000000000), "x": ("float32", "<f", 2.5)}),
            one("c", {"x": ("float32", "<f", 3.5), "n": ("int8", "<b", -1)}),
        ]
        stele.sources.build(tops, self.target)
        with stele.open(self.target) as ds:
            rows = [ds[f"{top.name}/s.mds/0000000000"] for top in tops]
            self.assertEqual([(r["n"], r["x"]) for r in rows], [(-5, 1.5), (4000000000, 2.5), (-1, 3.5)])
        tops.append(one("d", {"n": ("float64", "<d", 0), "x": ("float32", "<f", 3.5)}))
        with self.assertRaisesRegex(stele.sources.SourceError, "'n' is int in '.*/a', and float in '.*/d'"):
            stele.sources.build(tops, self.target + "2")
        stele.sources.build(tops, self.target + "2", columns=["x"])
        wide = one("wide", {f"c{n}": ("int8", "<b", n) for n in range(70)})
        many = "a schema has at most 64 fields, not 70"
        with self.assertRaisesRegex(stele.sources.SourceError, f"^{many}$") as caught:
            stele.sources.build(wide, self.target + "3")
        self.assertEqual(caught.exception.__notes__, [stele.sources.SOME])
        hint = "hint: --columns=A,B takes only the columns that are named\n"
        said = self.command(wide, self.target + "3")
        self.assertEqual(said, (1, "", f"stele.sources: {many}\n{hint}"))
        self.assertFalse(os.path.exists(self.target + "3"))


class Detect(Case):
    def test_detect(self):
        top = self.directory
        for name, content, wanted in (
            ("a.bin", b"PAR1....", "parquet"), ("b.bin", b"ARROW1\0\0", "arrow"), ("c.bin", b"FEA1", "arrow"),
            ("d.parquet", b"", "parquet"), ("e.FEATHER", b"", "arrow"), ("f.array_record", b"x", "array_record"),
            ("g.arrayrecord", b"x", "array_record"), ("h.arrow", b"\xff\xff\xff\xff", "arrow"),
            ("i/index.json", b'{"shards": []}', "mds"), ("j/index.json", b'{"chunks": []}', "litdata"),
            ("k/state.json", b"{}", "huggingface"), ("l/dataset_dict.json", b"{}", "huggingface"),
            ("m/_versions/1.manifest", b"", "lance"), ("n/sub/x.parquet", b"", "parquet"),
            ("o/_x.parquet", b"", ""), ("p/index.json", b"{}", ""), ("q.txt", b"text", ""),
        ):  # fmt: skip
            path = top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            source = str(top / name.split("/")[0])
            with self.subTest(name):
                if wanted:
                    self.assertEqual(detect([source]), wanted)
                else:
                    with self.assertRaisesRegex(stele.sources.SourceError, "cannot tell the format"):
                        detect([source])
        with self.assertRaisesRegex(stele.sources.SourceError, "is parquet, and '.*b.bin' arrow"):
            detect([str(top / "a.bin"), str(top / "b.bin")])

    def test_files_of(self):
        """Names may end in capitals; other files that look like samples are told."""
        for name in ("a.parquet", "b.PARQUET", "d/c.arrow", "x.csv.gz", "README.md", "_m.csv"):
            (self.directory / name).parent.mkdir(exist_ok=True)
            (self.directory / name).touch()
        top = str(self.directory)
        with self.assertLogs("stele", "WARNING") as logged:
            found = files_of([top], (".parquet", ".pq"))
        self.assertEqual([name for _, name in found], ["a.parquet", "b.PARQUET"])
        self.assertEqual(len(logged.output), 1)
        self.assertIn(
            "left out, as their names do not end in .parquet or .pq: 2 files, such as "
            f"'{top}/x.csv.gz'",
            logged.output[0],
        )
        with self.assertNoLogs("stele"):
            files_of([f"{top}/a.parquet"], (".parquet",))

    def test_files_name_classes_differently(self):
        reader = Reader()
        reader.first = "a"
        reader.kinds = {"label": stele.Field("label", "int", ("cat", "dog"), "", ())}
        with self.assertRaisesRegex(SourceError, "class 0 is 'cat', and 'dog'$") as caught:
            reader.agree({"label": stele.Field("label", "int", ("dog", "cat"), "", ())}, "b")
        self.assertIn("number the classes of all files alike", *caught.exception.__notes__)

    def test_of_stele(self):
        """What the command reads is not read here, and sent there."""
        example = "; --example makes fields of the features of tf.train.Example"
        fields = "; --from=webdataset makes one sample of files that share a name"
        for name, more in (
            ("a.csv", ""), ("a.tsv.gz", ""), ("a.jsonl", ""), ("a.npz", ""), ("a.H5", ""), ("a.tfrecord", example),
            ("a b.tar", fields), ("c.tar.zst", fields), ("d/data.mdb", "; --datum takes Datum of Caffe apart"),
        ):  # fmt: skip
            path = self.directory / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"key,x\n")
            source = path.parent if name.startswith("d/") else path
            hint = f"the command 'stele build {shlex.quote(str(source))} TARGET' reads it{more}"
            with self.subTest(name), self.assertRaises(stele.sources.SourceError) as caught:
                detect([str(source)])
            self.assertEqual(caught.exception.__notes__, [hint])
            why = f"stele.sources: cannot tell the format of '{source}'\nhint: {hint}\n"
            self.assertEqual(self.command(source, self.target), (1, "", why))
        many = [self.directory / "a.csv", self.directory / "a.tsv.gz"]
        self.assertIn(f"'stele build {many[0]} ... TARGET'", self.command(*many, self.target)[2])
        (self.directory / "cats").mkdir()
        (self.directory / "cats/1.jpg").write_bytes(b"1")
        self.assertRegex(self.command(self.directory / "cats", self.target)[2],
                         r"hint: if each of its files is a sample, .* reads it\nhint: --from names it: parquet")  # fmt: skip


class Cut(unittest.TestCase):
    """A sample of MDS or LitData is its columns, and nothing else."""

    def test_sizes(self):
        from stele.sources import shards

        view = memoryview(b"abcde")
        self.assertEqual([bytes(part) for part in shards.cut(view, [2, 0, 3])], [b"ab", b"", b"cde"])
        for sizes in ([2, 2], [2, 4], []):
            with self.assertRaisesRegex(ValueError, "sizes of its columns are damaged"):
                shards.cut(view, sizes)


class Command(Case):
    def test_summary(self):
        status, out, err = self.command(self.mds(), self.target + "@first")
        self.assertEqual((status, err), (0, ""))
        digest = stele.snapshots(self.target)[0].digest
        self.assertRegex(
            out, rf"\Asamples     30, [0-9.]+ KiB\nsnapshot    first on '{self.target}'\n"
            rf"digest      sha256:{digest}\nruns .*\nslots .*\ndone in     \d+\.\d s: .*/s\n\Z",
        )  # fmt: skip
        path = self.mds() / "shard.00001.mds"
        path.write_bytes(path.read_bytes()[:-1])
        status, out, err = self.command("-f", "--on-error=skip", self.directory / "mds", self.target)
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"(?m)^skipped     1: cannot be read, 10 samples\n {14}'.*00001.mds': it has ")
        self.assertEqual(self.command("-f", "-q", "--on-error=skip", self.directory / "mds", self.target), (0, "", ""))

    def test_without_target(self):
        """A rehearsal needs none, as that of 'stele build'; options may stand between paths."""
        top = self.mds()
        report = stele.sources.build(top, None)
        self.assertEqual((report.samples, report.written.granule), (30, 16))
        want = self.command("-n", top, self.target)
        self.assertRegex(want[1], r"\Asamples     30, (.*\n){3}dry run: nothing was written\n\Z")
        self.assertEqual(self.command("-n", top), want)
        self.assertEqual(self.command(top, "--dry-run"), want)
        self.assertNotIn("target", json.loads(self.command("-n", "--json", top)[1]))
        needs = "[options] SOURCE... {0}\npython3 -m stele.sources {1}: error: {1} needs a SOURCE and a {2}\n"
        for arguments, verb, names in (
            ((top,), "build", ("TARGET[@SNAPSHOT]", "build", "TARGET")),
            (("-n",), "build", ("TARGET[@SNAPSHOT]", "build", "TARGET")),
            (("-n", top), "append", ("TARGET@NEW", "append", "TARGET@NEW")),
        ):
            status, out, err = self.command(*arguments, verb=verb)
            self.assertEqual((status, out), (2, ""))
            self.assertIn(needs.format(*names), err)
        self.assertIn(": unrecognized arguments: --no\n", self.command(top, "--no", self.target)[2])
        self.assertEqual(list(self.directory.iterdir()), [top])
        self.assertEqual(self.command(top, "-q", "--key=n", "--", self.target), (0, "", ""))
        self.assertTrue(os.path.exists(self.target))

    def test_refuses(self):
        top = self.mds()
        for arguments, status, err in (
            ((top, self.target, "--key=x"), 2, "there is no column 'x': there are 'name', 'image', 'n', 'box'\n"),
            ((top, self.target, "--columns=n,x"), 2, "there is no column 'x': .*\n"),
            ((top, self.target, "--columns=n,n"), 2, "a column is named twice\n"),
            ((top, self.target, "--key=box"), 2, "column 'box' cannot be keys: it is int16\\[2\\], .*\n"),
            ((self.directory / "no", self.target), 1, "there is no '.*/no'\n"),
            ((self.directory / "no*", self.target), 1, "no file matches '.*/no\\*'\n"),
            ((top, "-"), 2, "an image cannot be written to standard output; './-' is a file of that name\n"),
            (("-", self.target), 2, "no SOURCE is read from standard input; './-' is a file of that name\n"),
            ((self.target, top), 1, "there is no '.*'\nhint: the source comes first, then the target\n"),
            (("s3://a/b", self.target), 1, "'s3://a/b' is no file or directory\nhint: copy what is .* first\n"),
            ((top, self.directory / "no/image"), 1, "cannot create '.*/no/image': no directory .*\nhint: make that directory first\n"),
            ((top, self.target + "@a b"), 2, ".*name.*\n"),
            ((__file__, self.target), 1, "cannot tell the format of '.*'\nhint: --from names it: parquet, .*\n"),
        ):  # fmt: skip
            with self.subTest(arguments):
                got = self.command(*arguments)
                self.assertEqual(got[:2], (status, ""), got)
                self.assertRegex(got[2], rf"\Astele.sources: {err}\Z")
        self.assertEqual(self.command(top, self.target, "--from=no")[0], 2)
        self.assertEqual(self.command(top)[0], 2)
        self.assertEqual(list(self.directory.iterdir()), [top])

    def test_exists(self):
        top = self.mds()
        self.command(top, self.target)
        force = "hint: --force overwrites what the target holds\n"
        held = f"stele.sources: '{self.target}' holds a Stele image, .*\n"
        status, out, err = self.command(top, self.target)
        self.assertRegex(err, rf"\A{held}{force}hint: 'append' adds a snapshot to it\n\Z")
        self.assertEqual((status, out), (1, ""))
        text = self.directory / "text"
        text.write_bytes(b"text" * 3000)
        got = self.command(top, text)
        self.assertEqual((got[0], got[2].count("hint: --force overwrites")), (1, 1), got)
        self.assertEqual(text.read_bytes(), b"text" * 3000)
        self.assertEqual(self.command("-f", top, text)[0], 0)
        damaged = bytearray((self.directory / "image.stele").read_bytes())
        for at in range(0, len(damaged), 512):
            damaged[at + 20] ^= 1
        text.write_bytes(damaged)
        self.assertEqual(self.command(top, f"{text}@v2", verb="append")[0], 3)

    def test_damage(self):
        top = self.mds()
        path = top / "shard.00002.mds"
        path.write_bytes(path.read_bytes()[:-1])
        status, out, err = self.command(top, self.target)
        self.assertEqual((status, out), (1, ""))
        self.assertRegex(
            err, r"\Astele.sources: cannot read '.*00002.mds': it has [0-9,]+ bytes, and not [0-9,]+\n"
            "hint: --on-error=skip leaves out what cannot be read\n\\Z",
        )  # fmt: skip
        for path in top.glob("*.mds"):
            path.write_bytes(path.read_bytes()[:20])
        status, out, err = self.command("--on-error=skip", top, self.target)
        self.assertEqual((status, out), (1, ""))
        self.assertRegex(
            err, r"\Astele.sources: nothing of the source can be read: '.*00000.mds': it has .*, "
            r"and 2 parts more\n\Z",
        )  # fmt: skip
        self.assertEqual(list(self.directory.iterdir()), [top])

    def test_notes(self):
        """They name arguments, and options where the command says them."""
        cut, one, path = self.mds("cut"), self.mds("one", shards=1), self.directory / "a.mds"
        wide = self.mds("wide", shards=1)
        path.write_bytes(b"text")
        shard = cut / "shard.00001.mds"
        shard.write_bytes(shard.read_bytes()[:-1])
        index = wide / "index.json"
        index.write_text(index.read_text().replace('"n"', '"more"'))
        self.command("--columns=n", one, self.target)
        formats = "parquet, arrow, huggingface, mds, litdata, lance, array_record"
        for verb, source, options, note, hint in (
            ("build", [path], {}, f"format is one of {formats}", f"--from names it: {formats}"),
            ("build", [cut], {}, "on_error='skip' leaves out what cannot be read",
                "--on-error=skip leaves out what cannot be read"),
            ("append", [one], {}, "columns=[...] takes only the columns that are named",
                "--columns=A,B takes only the columns that are named"),
            ("build", [one, wide], {}, "columns=[...] takes only the columns that are named",
                "--columns=A,B takes only the columns that are named"),
            ("build", [one, cut], {"key": "name", "on_error": "skip"}, "key names a column in which no value comes twice",
                "--key=COLUMN names a column in which no value comes twice"),
        ):  # fmt: skip
            with self.subTest(hint):
                target = self.target + ("@v2" if verb == "append" else "2")
                with self.assertRaises((stele.Error, stele.sources.SourceError)) as caught:
                    getattr(stele.sources, verb)(source, target, progress=False, **options)
                self.assertEqual(caught.exception.__notes__[-1], note)
                given = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
                _, _, err = self.command(*given, *source, target, verb=verb)
                self.assertEqual(err.splitlines()[-1], f"hint: {hint}")

    def test_does_not_fit(self):
        """Of an image that is there: the hint is of what helps."""
        top = self.mds(shards=1)
        schema = {"name": str, "image": bytes, "n": int, "box": stele.tensor("int16", (2,))}
        lacks = "the image has a field 'split', which the source lacks"
        add = "add a column 'split' of numbers of its classes (0 is 'train', 1 is 'test') to the source, or build a new image"
        name = "the image has a field 'name', and column 'name' is not taken as one"
        taken = "name it in columns=[...], with all others that become fields"
        for more, options, why, note, hint in (
            ({"split": ["train", "test"]}, {}, lacks, add, add),
            ({}, {"key": "name"}, name, taken, "name it in --columns=A,B, with all others that become fields"),
            ({}, {"columns": ["image", "n", "box"]}, name, taken, "name it in --columns=A,B, with all others that become fields"),
            ({"n": str}, {}, "column 'n' is int, and the field of the image str",
                "make it a column of str, or build a new image", None),
            ({"box": stele.tensor("int32", (2,))}, {}, "column 'box' is int16[2], and the field of the image int32[2]",
                "make it a column of int32[2], or build a new image", None),
        ):  # fmt: skip
            with self.subTest(why):
                with stele.Writer(self.target, schema | more, force=True) as writer:
                    writer.put("a", {"name": "", "image": b"", "n": "" if "n" in more else 0,
                                     "box": numpy.zeros(2, str(more.get("box", schema["box"]).dtype)), **dict.fromkeys(more.keys() & {"split"}, 0)})  # fmt: skip
                with self.assertRaises(stele.sources.SourceError) as caught:
                    stele.sources.append(top, self.target + "@v2", **options)
                self.assertEqual((str(caught.exception), caught.exception.__notes__), (why, [note]))
                given = [f"--{k}={','.join(v) if isinstance(v, list) else v}" for k, v in options.items()]
                said = self.command(*given, top, self.target + "@v2", verb="append")
                self.assertEqual(said, (1, "", f"stele.sources: {why}\nhint: {hint or note}\n"))

    def test_classes_do_not_fit(self):
        def field(*classes):
            return {"label": stele.Field("label", "int", classes, "", ())}

        image = field("cat", "dog", "eel", "fox", "gnu")
        for mine, differs, note in (
            (field("dog", "cat"), ": class 0 is 'dog', and 'cat'", "number the classes of the column as the image does "
                "(0 is 'cat', 1 is 'dog', 2 is 'eel', 3 is 'fox', ...), as align_labels_with_mapping() of Hugging Face "
                "does, or build a new image"),
            (field("cat", "ant"), ": class 1 is 'ant', and 'dog'",
                "the image has no class 'ant', and gets none this way: build a new image"),
        ):  # fmt: skip
            with self.assertRaises(stele.sources.SourceError) as caught:
                as_base(mine, image, ["label"])
            why = f"column 'label' is one of 2 classes, and the field of the image one of 5 classes{differs}"
            self.assertEqual((str(caught.exception), caught.exception.__notes__), (why, [note]))
        with self.assertRaises(stele.sources.SourceError) as caught:
            as_base(field("cat"), field(), ["label"])
        self.assertEqual(caught.exception.__notes__, ["make it a column of int, or build a new image"])

    def test_missing(self):
        path = self.directory / "a.parquet"
        path.write_bytes(b"PAR1")
        for format, name, install in (
            ("parquet", "pyarrow", "pyarrow"), ("arrow", "pyarrow", "pyarrow"), ("lance", "pyarrow", "pyarrow"),
            ("huggingface", "pyarrow", "pyarrow"), ("array_record", "array_record", "array-record"),
        ):  # fmt: skip
            code = NO_PYARROW + "sys.modules['array_record'] = None\n"
            got = self.command(f"--from={format}", path, self.target, code=code)
            self.assertEqual(got, (1, "", f"stele.sources: cannot import {name}\nhint: pip install {install}\n"))
        code = NO_PYARROW + "import runpy\nrunpy.run_module('stele.parquet', run_name='__main__')"
        got = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual(
            (got.returncode, got.stderr), (1, "stele.parquet: cannot import pyarrow\nhint: pip install pyarrow\n")
        )

    def test_append(self):
        """As stele append: words, figures and exit statuses."""
        self.command(self.mds(rows=4), self.target)
        same = "nothing has changed since 'v1': no snapshot was made\nbase        v1\n" \
            "samples     12: 0 added, 0 updated, 12 unchanged; 0 deleted\n"
        for options in [], ["--update"], ["--update", "--delete-missing"]:
            status, out, err = self.command(*options, self.mds(rows=4), self.target + "@v2", verb="append")
            hint = "" if options else KEPT.format(12)
            self.assertEqual((status, out[:len(same)], err), (0, same, hint))
        self.assertEqual(self.command("-q", self.mds(rows=4), self.target + "@v2", verb="append"), (0, "", ""))
        self.assertEqual([s.name for s in stele.snapshots(self.target)], ["v1"])
        self.assertEqual(self.command("--always", "-q", self.mds(rows=4), self.target + "@v2", verb="append")[0], 0)
        first, second = stele.snapshots(self.target)
        self.assertEqual(first.digest, second.digest)
        fewer = self.mds(rows=4, shards=1), self.target + "@v3"
        got = self.command("--delete-missing", *fewer, verb="append")
        self.assertEqual(got[:2], (1, ""))
        self.assertRegex(
            got[2], r"\Astele.sources: .*the source lacks 8 of the 12 samples of 'v2': deleting more than half "
            r"has to be forced\nhint: if SOURCE is the right one, and whole, use --force\n\Z",
        )  # fmt: skip
        got = self.command("--delete-missing", "-f", *fewer, verb="append")
        self.assertRegex(got[1], r"\Abase        v2\nsamples     4: 0 added, 0 updated, 4 unchanged; 8 deleted\nsnapshot    v3")
        for options, why in (
            (["--force"], "--force goes with --delete-missing"),
            (["--delete-missing", "--on-error=skip"], "--delete-missing needs a source without damage: it does not go with --on-error=skip"),
        ):  # fmt: skip
            self.assertEqual(self.command(*options, *fewer, verb="append"), (2, "", f"stele.sources: {why}\n"))
        with self.assertRaisesRegex(stele.sources.SourceError, "does not go with"):
            stele.sources.append(*fewer, delete_missing=True, on_error="skip")
        status, _, err = self.command(fewer[0], self.directory / "no@v2", verb="append")
        self.assertEqual(status, 1, err)

    def test_odd_files(self):
        """What is no file is passed over in a directory, and else refused; no one waits for it."""
        top = self.directory / "odd"
        top.mkdir()
        os.mkfifo(top / "pipe.parquet")
        for source, why in (top, "no file|cannot import"), (top / "pipe.parquet", "neither a file nor a directory"):
            status, _, err = self.command("-n", source, self.target)
            self.assertEqual(status, 1)
            self.assertRegex(err, why)

    def test_standard_output(self):
        for where, why in ("/dev/full", "stele.sources: cannot write to stdout: No space left on device\n"), (None, ""):
            read, write = os.pipe()
            os.close(read)
            with open(where, "w") if where else os.fdopen(write, "w") as out:
                done = subprocess.run(
                    [sys.executable, "-m", "stele.sources", "build", "-f", "--json", self.mds(), self.target],
                    stdout=out, stderr=subprocess.PIPE, text=True,
                )  # fmt: skip
            self.assertEqual((done.returncode, done.stderr), (1, why))

    def test_no_name(self):
        status, _, err = self.command(self.mds(), f"{self.target}@")
        self.assertEqual((status, err), (2, f"stele.sources: '{self.target}@' has no name after the '@'\n"))

    def test_dry_run(self):
        top = self.mds()
        status, out, err = self.command("-n", top, self.target)
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"\Asamples     30, .*\nruns .*\nslots       granule .*\ndry run: nothing was written\n\Z")
        self.assertEqual(list(self.directory.iterdir()), [top])
        self.assertEqual(self.command("-n", top, self.directory / "no/x")[0], 1)
        self.command("-q", "--label=precious", top, self.target)
        before = (self.directory / "image.stele").read_bytes()
        self.assertEqual(self.command("-n", top, self.target)[0], 1)
        status, out, err = self.command("-n", "-f", top, self.target)
        self.assertEqual(status, 0)
        self.assertRegex(err, r"\Astele.sources: '.*image.stele' holds a Stele image, label 'precious', .* would be overwritten\n\Z")
        status, out, err = self.command("-n", self.mds(shards=4), self.target + "@v2", verb="append")
        self.assertEqual((status, err), (0, KEPT.format(30)))
        self.assertRegex(out, r"\Abase        v1\nsamples     40: 10 added, .*\nruns .*\nslots .*\ndry run: nothing was written\n\Z")
        status, out, err = self.command("-n", self.mds(), self.target + "@v2", verb="append")
        self.assertTrue(out.startswith("nothing has changed since 'v1': no snapshot\n"), out)
        self.assertEqual((self.directory / "image.stele").read_bytes(), before)

    def test_json(self):
        """Members are those of stele build and append."""
        def run(*arguments, verb="build"):
            status, out, err = self.command("--json", *arguments, verb=verb)
            self.assertEqual((status, err), (0, ""))
            return json.loads(out)

        def of_stele(*arguments):
            ran = subprocess.run(["stele", *arguments], capture_output=True, text=True, check=True)
            return json.loads(ran.stdout)

        files = self.directory / "files"
        files.mkdir()
        (files / "a").write_bytes(b"1")
        built, stele_built = run(self.mds(), self.target), of_stele("build", "--json", files, self.target + "2")
        self.assertEqual((built["samples"], built["snapshot"], built["dry_run"]), (30, "v1", False))
        self.assertEqual(built["digest"], stele.snapshots(self.target)[0].digest)
        self.assertLessEqual(built.keys(), stele_built.keys())
        added = run(self.mds(shards=4), self.target + "@v2", verb="append")
        (files / "b").write_bytes(b"2")
        stele_added = of_stele("append", "--json", files, self.target + "2@v2")
        self.assertEqual((added["samples"], added["added"], added["created"]), (40, 10, True))
        self.assertLessEqual(added.keys(), stele_added.keys())
        same = run(self.mds(), self.target + "@v3", verb="append")
        self.assertEqual((same["created"], same["snapshot"], same["digest"]), (False, "", added["digest"]))
        for report, other in (built, stele_built), (added, stele_added):
            self.assertEqual({k: type(v) for k, v in report.items()}, {k: type(other[k]) for k in report})
        self.assertEqual(same["skipped"], {})
        path = self.mds() / "shard.00001.mds"
        path.write_bytes(path.read_bytes()[:-1])
        skipped = run("-n", "--on-error=skip", path.parent, self.target + "3")["skipped"]["unreadable"]
        self.assertEqual(skipped["count"], 1)
        self.assertRegex(skipped["first"][0]["key"], "^'.*00001.mds': it has ")

    def test_layout(self):
        self.command("-q", "--granule=512", "--size=3M", self.mds(), self.target)
        path = self.directory / "image.stele"
        self.assertEqual((stele.open(self.target).info.granule, path.stat().st_size), (512, 3 << 20))
        status, out, err = self.command("--size=4000001", self.mds(shards=4), self.target + "@v2", verb="append")
        rounded = "stele.sources: --size=4000001 is rounded up to 4001792 bytes, a multiple of 4096\n"
        self.assertEqual(err, rounded + KEPT.format(30))
        self.assertEqual((status, path.stat().st_size), (0, 4001792))
        self.assertEqual(self.command("-q", "-f", "--posix", "--size=4MiB", self.mds(), self.target)[0], 0)
        self.assertEqual(path.read_bytes()[1024:1028], b"\xe2\xe1\xf5\xe0")
        for wrong in ("--granule=7", "--size=0", "--size=x", "--size=4Q", "--size=1.5G", "--size=K", "--size=4KBB"):
            self.assertEqual(self.command(wrong, self.mds(), self.target)[0], 2)
        self.assertEqual(self.command("--posix", self.mds(), self.target + "@v2", verb="append")[0], 2)
        for size in "1M", "2100K":
            status, out, err = self.command(f"--size={size}", self.mds(rows=200), self.target + "2")
            self.assertEqual((status, out), (1, ""))
            self.assertTrue(err.endswith("\nhint: use a larger target, or a larger --size of a file or RBD image\n"), err)

    def test_sizes(self):
        from stele.sources.__main__ import _size

        for text, size in (("4096", 4096), ("1K", 4096), ("1MiB", 1 << 20), ("64KB", 65536), ("2g", 2 << 30), ("1TB", 10**12)):
            with contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(_size(text), size)

    def test_page(self):
        """The manual names all options of build."""
        from stele.sources.__main__ import _parsers

        page = Path("man/stele-build.1").read_text().partition("Parquet, Arrow and Feather")[2].partition(".Sh LABELS")[0]
        options = {name for action in _parsers()[1]["build"]._actions for name in action.option_strings}
        self.assertEqual(sorted(o for o in options if o.startswith("--") and o not in {"--force", "--quiet", "--dry-run"}
                                and not re.search(rf"^\.Fl .*{o[1:]}\b", page, re.M)), [])

    def test_times(self):
        """As stele takes them."""
        from stele.sources.__main__ import _time

        for text in (
            "1", "@5", "253402300799", "2026-11-21", "2026-11-21T06:45Z", "2026-11-21 06:45:07",
            "2026-11-21T06:45:00+02:30", "2026-11-21T06:45-11:00", "1970-01-01T00:00:01Z",
        ):  # fmt: skip
            target = f"{self.target}.{abs(hash(text))}"
            self.assertEqual(self.command("-q", f"--time={text}", self.mds(shards=1), target), (0, "", ""))
            run = ["stele", "snapshot", "create", f"--time={text}", "--json", target + "@v2"]
            made = json.loads(subprocess.run(run, capture_output=True, check=True).stdout)
            self.assertEqual({snapshot.time for snapshot in stele.snapshots(target)}, {_time(text)}, made)
        for text in (
            "0", "-1", "", "@", "253402300800", "9" * 30, "soon", "1e9", "2026-02-30", "1970-01-01",
            "2026-11-21T06:45Y", "2026-11-21T06:45+2:00", "2026-11-21T25:00", "²",
        ):  # fmt: skip
            status, out, err = self.command(f"--time={text}", self.mds(shards=1), self.target)
            self.assertEqual((status, out), (2, ""), err)
            self.assertIn("is not seconds since 1970, at least 1 and before the year 10000", err)

    def test_base(self):
        self.command("-q", self.mds(shards=2), self.target + "@v1")
        self.command("-q", self.mds(shards=4), self.target + "@v2", verb="append")
        status, out, err = self.command("--base=v1", self.mds(shards=3), self.target + "@v3", verb="append")
        self.assertEqual((status, err), (0, KEPT.format(20)))
        self.assertRegex(out, r"\Abase        v1\nsamples     30: 10 added, 0 updated, 20 unchanged; 0 deleted\n")
        self.assertEqual([s.sample_count for s in stele.snapshots(self.target)], [20, 40, 30])
        status, _, err = self.command("--base=v9", self.mds(), self.target + "@v4", verb="append")
        self.assertEqual(status, 1)
        self.assertRegex(err, r"cannot start from 'v9': no such snapshot \(available: v1, v2, v3\)")
        for base, kind in ((3, TypeError), ("v9", stele.NotFound)):
            with self.assertRaises(kind):
                stele.sources.append(self.mds(), self.target + "@v4", base=base)
        for dry_run in False, True:
            with self.assertRaisesRegex(stele.Error, "unknown backend 'zz': there are uring, threads"):
                stele.Writer(self.target + "2", {"x": int}, backend="zz", dry_run=dry_run)
        with self.assertRaisesRegex(ValueError, "base is a snapshot of an image that is there"):
            stele.Writer(self.target + "2", base="v1")
        for verb, name in (("append", "keep"), ("append", "append"), ("build", "append"), ("build", "base")):
            with self.assertRaisesRegex(TypeError, rf"\A{verb}\(\) got an unexpected keyword argument '{name}'"):
                getattr(stele.sources, verb)(self.mds(), self.target + "@v4", **{name: True})

    def test_progress(self):
        """One line a second where there is no terminal, and only if asked for."""
        code = ("import stele.progress as p, stele.writer as w\np._LINES = p._INTERVAL = 0.01\nput = w.Writer.put\n"
                "def slow(self, *a):\n    put(self, *a)\n    time.sleep(0.01)\nimport time, sys\nw.Writer.put = slow\n")  # fmt: skip
        for options, some in ((), False), (("--progress",), True), (("--progress", "--json"), True), (("--json",), False):
            status, _, err = self.command(*options, "-f", self.mds(), self.target, code=code)
            self.assertEqual((status, "put: " in err), (0, some), err)
            self.assertNotIn("\r", err)

    @contextlib.contextmanager
    def slow(self, *arguments):
        """A build that has put some samples, and takes its time."""
        code = ("import sys, time, runpy\nimport stele.writer as w\nput = w.Writer.put\n"
                "def slow(self, *a):\n    put(self, *a)\n    if self._samples == 50:\n        print('on', flush=True)\n"
                "    time.sleep(0.001)\n"
                "w.Writer.put = slow\nsys.argv[1:1] = ['build']\nrunpy.run_module('stele.sources', run_name='__main__')")  # fmt: skip
        run = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.assertEqual(run.stdout.readline(), "on\n")
        time.sleep(0.05)
        yield run

    def test_stopped(self):
        """A signal leaves nothing, and is died of."""
        top = self.mds(rows=4000)
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.slow(top, self.target) as run:
                run.send_signal(number)
                _, err = run.communicate(timeout=20)
            self.assertEqual(run.returncode, -number, err)
            self.assertEqual(err, f"stele.sources: {signal.strsignal(number)}: stopped\n")
            self.assertEqual(list(self.directory.iterdir()), [top])

    def test_stopped_on_a_device(self):
        """Nothing is left there."""
        disk = self.directory / "disk"
        with open(disk, "wb") as file:
            file.truncate(16 << 20)
        node = images.loop(self, disk)
        with self.slow(self.mds(rows=4000), node) as run:
            run.send_signal(signal.SIGTERM)
            _, err = run.communicate(timeout=20)
        self.assertEqual(run.returncode, -signal.SIGTERM, err)
        self.assertEqual(err, "stele.sources: Terminated: stopped\n")
        self.assertEqual(self.command("-q", self.mds(), node), (0, "", ""))


if __name__ == "__main__":
    unittest.main()
