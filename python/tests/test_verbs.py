# SPDX-License-Identifier: Apache-2.0
"""The verbs as functions: what they do, what they report, and how they stop."""

import errno
import io
import os
import signal
import subprocess
import threading
import time
import unittest
import uuid
from pathlib import Path
from unittest import mock

import images
import stele


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = images.DIRECTORY / self.id()
        self.source = self.directory / "source"
        self.target = str(self.directory / "image.stele")
        self.source.mkdir(parents=True)
        self.fill({"cat/1": b"one", "cat/2": b"two", "dog/3": b"three"})

    def fill(self, files):
        for name, data in files.items():
            path = self.source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def names(self, target=None):
        return [snapshot.name for snapshot in stele.snapshots(target or self.target)]


class Build(Case):
    def test_build(self):
        (self.source / "link").symlink_to("cat/1")
        phases = set()
        with self.assertLogs("stele", "WARNING") as logged:
            report = stele.build(
                self.source,
                self.target + "@first",
                label="pets",
                uuid=uuid.UUID(int=5),
                note="a note",
                time=1700000000,
                granule=64,
                order="source",
                progress=lambda progress: phases.add(progress.phase),
            )
        self.assertEqual(logged.records[-1].getMessage(), "skipped 1 of the source: symlink, such as 'link'")
        self.assertEqual((report.snapshot, report.sample_count), ("first", 3))
        self.assertEqual(report.uuid, uuid.UUID(int=5).hex)
        self.assertEqual((report.payload_size, report.class_count), (11, 2))
        self.assertEqual((report.granule, report.created), (64, True))
        self.assertEqual(report.skipped, (stele.Skipped("link", "symlink", 0),))
        self.assertTrue(phases)  # which of them depends on when the thread that calls has its turn
        with stele.open(self.target) as ds:
            self.assertEqual(ds.info.digest, report.digest)
            self.assertEqual(bytes(ds["cat/2"]), b"two")
        info = stele.image_info(self.target)
        self.assertEqual((info.label, info.create_time), ("pets", 1700000000))
        (snapshot,) = info.snapshots
        self.assertEqual(
            (snapshot.name, snapshot.note, snapshot.digest, snapshot.parent),
            ("first", "a note", report.digest, 0),
        )

    def test_dry_run(self):
        report = stele.build(self.source, None)
        self.assertEqual((report.sample_count, report.target_size), (3, 0))
        stele.build(self.source, self.target, dry_run=True)
        self.assertFalse(os.path.exists(self.target))

    def test_refused(self):
        stele.build(self.source, self.target)
        with self.assertRaises(stele.ExistsError) as refused:
            stele.build(self.source, self.target)
        self.assertIn("force=True overwrites what the target holds", refused.exception.__notes__)
        with stele.open(self.target):
            with self.assertRaisesRegex(stele.Error, "open; close that dataset or writer first$"):
                stele.build(self.source, self.target, force=True)
            sample = stele.open(self.target)[0]  # of one that is closed is said what holds it
            with self.assertRaisesRegex(stele.Error, "this process has it open") as held:
                stele.build(self.source, self.target, force=True)
            self.assertRegex(held.exception.__notes__[0], "^samples, .* hold it open .*'del' what is left")
            del sample
            for dry_run in False, True:  # to close it would not help
                with self.assertRaisesRegex(stele.ExistsError, "' holds a Stele image, snapshots 'v1'$"):
                    stele.build(self.source, self.target, dry_run=dry_run)
        stele.build(self.source, self.target, force=True)
        with self.assertRaisesRegex(stele.Error, "are read by the program 'stele build'.$"):
            stele.build(__file__, self.target + "2")
        with self.assertRaises(stele.NotFound):
            stele.build(self.directory / "nowhere", self.target + "2")
        for options in (
            {"order": "other"}, {"label_from": 0}, {"label_from": 256}, {"label_from": "x"},
            {"uuid": b"short"}, {"granule": -1}, {"granule": 1 << 32}, {"no_option": 1},
            {"label": "with\0nul"}, {"exclude": "*.txt"}, {"exclude": [1]}, {"exclude": ["a\0"]},
        ):  # fmt: skip
            with self.subTest(options=options):
                with self.assertRaises((ValueError, TypeError, OverflowError)):
                    stele.build(self.source, self.target + "2", **options)
        for option in ("label_from", "jobs", "file_size", "time"):
            with self.assertRaisesRegex((TypeError, ValueError), f"^{option} .* int.*, not True$"):
                stele.build(self.source, self.target + "2", **{option: True})
        self.assertFalse(os.path.exists(self.target + "2"))

    def test_no_option_of_the_command(self):
        """What a call may say is in the target's name, or an argument."""
        empty = self.directory / "empty.conf"
        empty.write_text("")
        with self.assertRaises(stele.Error) as caught:
            stele.open(f"rbd:pool/image?conf={empty}")
        if caught.exception.errno == errno.EOPNOTSUPP:
            self.skipTest("needs librados")
        self.assertRegex(str(caught.exception), r"no monitors are known .*'\?conf='")
        self.assertNotIn("--", str(caught.exception))

    def test_exclude(self):
        with self.assertNoLogs("stele", "WARNING"):
            report = stele.build(self.source, self.target, exclude=["no*", "dog/", "cat/1"])
        self.assertEqual(report.sample_count, 1)
        found = sorted((skipped.key, skipped.reason) for skipped in report.skipped)
        self.assertEqual(found, [("cat/1", "excluded"), ("dog", "excluded")])
        at = self.target + "@v2"
        self.assertFalse(stele.append(self.source, at, exclude=("dog", "1")).created)
        self.assertEqual(stele.append(self.source, at, exclude=[]).added, 2)
        self.assertFalse(stele.append(self.source, f"{self.target}@v3", exclude=None).created)

    def test_wrong_types(self):
        stele.build(self.source, self.target)
        at = self.target + "@v2"
        for message, call in (
            ("file_size must be an int, not '1G'", lambda: stele.build(self.source, at, file_size="1G")),
            ("note must be a str, not 3", lambda: stele.append(self.source, at, note=3)),
            ("base must be a str, not 3", lambda: stele.append(self.source, at, base=3)),
            ("base must be a str, not 3", lambda: stele.snapshot_create(at, base=3)),
            ("name must be a str, not None", lambda: stele.snapshot_rename(self.target + "@v1", None)),
            ("name must be a str, not None", lambda: stele.compact(self.target, None)),
            ("grace must be an int, not '1d'", lambda: stele.gc(self.target, grace="1d")),
            ("label_from is a level, an int from 1 to 255, or one of 'auto', .*, not '1'",
             lambda: stele.append(self.source, at, label_from="1")),
            ("exclude must be a list of patterns, not 'x'", lambda: stele.append(self.source, at, exclude="x")),
            ("delete must be a list of keys, not 'x'", lambda: stele.snapshot_create(at, delete="x")),
            ("name must be a str, not ..x", lambda: stele.open(self.target).column(["x"])),
            ("size -1 is out of range", lambda: stele.resize(self.target, -1)),
        ):
            with self.subTest(message), self.assertRaisesRegex((TypeError, ValueError), message):
                call()
        self.assertEqual(self.names(), ["v1"])

    def test_hints(self):
        """Errors say what to do next."""
        fields = {"data": bytes}
        stele.build(self.source, self.target)
        other, empty = images.copy(self.target, f"{self.id()}.other"), f"{self.target}.empty"
        stele.snapshot_create(f"{other}@v2")
        Path(empty).write_bytes(bytes(16 << 20))
        calls = [
            ("select one: TARGET@NAME", lambda: stele.open(other)),
            ("build an image there first", lambda: stele.open(empty)),
            ("make that directory first", lambda: stele.Writer(empty + "-none/x", fields)),
        ]
        with stele.Writer(f"{other}@v3", progress=False):
            with self.assertRaises(stele.Error) as caught:
                stele.Writer(f"{other}@v4")
            self.assertEqual(caught.exception.__notes__, ["commit or close that Writer first"])
            self.assertEqual(stele.gc(other, dry_run=True).unused_count, 0)  # which only looks
            for options in {"force": True}, {"grace": 1}:
                with self.assertRaisesRegex(stele.Error, "this process itself is writing"):
                    stele.gc(other, dry_run=True, **options)
        with stele.Writer(f"{other}-new", fields, progress=False):
            with self.assertRaisesRegex(stele.FormatError, "written by this process itself") as caught:
                stele.open(f"{other}-new")
            self.assertEqual(caught.exception.__notes__, ["commit or close that Writer first"])
        for hint, call in calls:
            with self.subTest(hint), self.assertRaises(stele.Error) as caught:
                call()
            self.assertEqual(caught.exception.__notes__, [hint])
        node = images.loop(self, empty)
        with self.assertRaises(stele.Error) as caught:
            stele.Writer(empty, fields)
        self.assertEqual(caught.exception.__notes__, ["name that, or detach it with 'losetup -d' first"])
        self.addCleanup(subprocess.run, ["blockdev", "--setrw", node], check=True)  # it outlives the file
        subprocess.run(["blockdev", "--setro", node], check=True)
        with self.assertRaises(stele.Error) as caught:
            stele.build(self.source, node)
        self.assertIn("blockdev --setrw", caught.exception.__notes__[0])

    def test_whole(self):
        """What changes an image takes no name of a snapshot, which would not be looked at."""
        stele.build(self.source, self.target)
        for call in stele.gc, stele.resize:
            with self.assertRaisesRegex(stele.Error, "names a snapshot, and what is to be changed is the whole"):
                call(f"{self.target}@v1", dry_run=True)
        with self.assertRaisesRegex(stele.Error, "may still have readers") as caught:
            stele.gc(self.target)
        self.assertEqual(caught.exception.__notes__, ["grace=SECONDS lets them finish, force=True does not"])

    def test_append(self):
        stele.build(self.source, self.target)
        self.fill({"bird/4": b"four", "cat/1": b"another"})
        dry = stele.append(self.source, self.target + "@v2", update=True, dry_run=True)
        report = stele.append(self.source, self.target + "@v2", update=True)
        self.assertEqual((report.base, report.added, report.updated), ("v1", 1, 1))
        self.assertEqual((dry.added, dry.updated), (1, 1))
        report = stele.append(self.source, self.target + "@v3", update=True)
        self.assertFalse(report.created)
        (self.source / "dog/3").unlink()
        report = stele.append(self.source, self.target + "@v3", delete_missing=True, base="v1")
        self.assertEqual((report.base, report.deleted), ("v1", 1))
        self.assertEqual(self.names(), ["v1", "v2", "v3"])
        with self.assertRaises(stele.ExistsError):
            stele.append(self.source, self.target + "@v3", always=True)

    def test_append_by_other_directories(self):
        self.fill({"more/cat/1": b"one"})
        stele.build(self.source, self.target, label_from="parent")
        with self.assertRaisesRegex(stele.Error, "that of 'more/cat/1' is 'cat' there, and 'more' ") as caught:
            stele.append(self.source, self.target + "@v2", update=True)
        self.assertEqual(caught.exception.__notes__, ["say it with label_from"])
        report = stele.append(self.source, self.target + "@v2", update=True, label_from="parent")
        self.assertFalse(report.created)
        with self.assertRaisesRegex(stele.Error, "it has to be forced$") as caught:
            stele.append(self.source, self.target + "@v2", label_from="none")
        self.assertRegex(caught.exception.__notes__[0], "^give label_from .*; force=True labels by another rule$")


class Versions(Case):
    def setUp(self):
        super().setUp()
        stele.build(self.source, self.target)

    def test_snapshots(self):
        made = stele.snapshot_create(
            self.target + "@v2", delete=["cat/1", b"dog/3"], note="fewer"
        )
        self.assertEqual((made.name, made.sample_count), ("v2", 1))
        self.assertEqual(stele.snapshots(self.target)[1], made)
        for one in ("cat/1", b"cat/1", 3, None):
            with self.assertRaisesRegex(TypeError, "must be a list of keys, not"):
                stele.snapshot_create(self.target + "@v3", delete=one)
        with self.assertRaisesRegex(TypeError, "a key is str or bytes, not 3"):
            stele.snapshot_create(self.target + "@v3", delete=["cat/1", 3])
        with self.assertRaises(stele.NotFound) as caught:
            stele.snapshot_create(self.target + "@v3", delete=["nothing", "nor this"])
        self.assertIn("nothing", str(caught.exception) + str(caught.exception.__notes__))
        with self.assertRaisesRegex(ValueError, "^force=True gives no grace: say one of them$"):
            stele.snapshot_rename(self.target + "@v2", "two", grace=60, force=True)
        stele.snapshot_rename(self.target + "@v2", "two")
        self.assertEqual(self.names(), ["v1", "two"])
        stele.snapshot_delete(self.target + "@v1", dry_run=True)
        stele.snapshot_delete(self.target + "@v1")
        self.assertEqual(self.names(), ["two"])
        (deleted,) = stele.image_info(self.target).deleted
        self.assertEqual((deleted.name, deleted.sample_count), ("v1", 3))
        stele.snapshot_undelete(self.target + "@v1", "old")
        self.assertEqual(self.names(), ["old", "two"])
        self.assertEqual(stele.image_info(self.target).deleted, ())
        stele.snapshot_delete(self.target + "@old")
        with self.assertRaises(stele.ExistsError):
            stele.snapshot_delete(self.target + "@two")
        stele.snapshot_delete(self.target + "@two", grace=60, force=True)  # of the last one
        self.assertEqual(self.names(), [])
        stele.snapshot_delete()

    def test_diff(self):
        self.fill({"bird/4": b"four", "cat/1": b"another"})
        (self.source / "cat/2").unlink()
        stele.append(self.source, self.target + "@v2", update=True, delete_missing=True)
        found = stele.diff(self.target + "@v1", self.target + "@v2")
        self.assertEqual(
            [(d.kind, d.key, d.a_size, d.b_size) for d in found],
            [
                ("added", "bird/4", None, 4),
                ("changed", "cat/1", 3, 7),
                ("removed", "cat/2", 3, None),
            ],
        )

    def test_many_differences(self):
        target = self.target + "-many"
        with stele.Writer(target, {"data": int}, progress=False) as w:
            w.extend((f"{i:05}", i) for i in range(5000))
        with stele.Writer(target + "@v2", progress=False, update=True) as w:
            w.extend((f"{i:05}", i + 1) for i in range(5000))
        found = stele.diff(target + "@v1", target + "@v2")
        self.assertEqual([d.key for d in found], [f"{i:05}" for i in range(5000)])

    def test_compact_and_gc(self):
        self.fill({"bird/4": b"four"})
        stele.append(self.source, self.target + "@v2")
        report = stele.compact(self.target + "@v2", "v3")
        self.assertEqual((report.snapshot, report.sample_count), ("v3", 4))
        stele.snapshot_delete(self.target + "@v1", self.target + "@v2")
        with self.assertRaisesRegex(stele.Error, "freed: set a grace period, or force$"):
            stele.gc(self.target)
        for dry_run in (False, True):
            with self.assertRaisesRegex(ValueError, "^force=True gives no grace: say one of them$"):
                stele.gc(self.target, grace=3600, force=True, dry_run=dry_run)
        dry = stele.gc(self.target, force=True, dry_run=True)
        report = stele.gc(self.target, force=True)
        self.assertEqual(dry.freed_count, 2)
        self.assertEqual(report.freed_count, 2)
        self.assertEqual(
            sorted((item.name or "", item.deleted, item.due) for item in report.unused),
            [("", False, True)] * 2 + [("v1", True, True), ("v2", True, True)],
        )
        self.assertTrue(stele.verify(self.target).sound)

    def test_copy(self):
        seen = []
        report = stele.copy(self.target, self.target + "2@copied", label="copy", progress=seen.append)
        self.assertIn("copy", [progress.phase for progress in seen])
        self.assertEqual((report.snapshot, report.sample_count), ("copied", 3))
        self.assertEqual(report.digest, stele.snapshots(self.target)[0].digest)
        self.assertEqual(self.names(self.target + "2"), ["copied"])
        again = stele.copy(self.target, self.target + "2@copied")
        self.assertEqual((report.created, again.created), (True, False))
        with self.assertRaisesRegex(stele.Error, "holds an image, whose label is not set by a copy"):
            stele.copy(self.target, self.target + "2@copied", label="other")
        self.assertEqual(again.segments_sent, 0)

    def test_resize(self):
        size = os.path.getsize(self.target) + (1 << 20)
        report = stele.resize(self.target, size)
        self.assertEqual(report.new_size, size)
        with self.assertRaises(stele.Error):
            stele.resize(self.target, 4096)

    def test_verify(self):
        seen = []
        sound = stele.verify(self.target, progress=seen.append)
        self.assertEqual({progress.phase for progress in seen}, {"verify"})
        self.assertTrue(sound.sound)
        self.assertEqual((sound.snapshots, sound.samples), (1, 3))
        bad = stele.verify(images.damaged())
        self.assertFalse(bad.sound)
        (damage,) = [item for item in bad.damage if item.key]
        self.assertEqual((damage.key, damage.snapshot), (images.key(100), "v1"))
        with stele.open(images.damaged()) as ds:
            self.assertEqual(ds.find(images.key(100)), damage.id)
        with self.assertRaises(stele.FormatError):
            stele.verify(__file__)


class Stopped(Case):
    def setUp(self):
        super().setUp()
        for i in range(20000):
            (self.source / f"{i}").touch()

    def test_interrupt(self):
        thread = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        with self.assertRaises(KeyboardInterrupt):
            thread.start()
            stele.build(self.source, self.target)
        thread.join()
        self.assertFalse(os.path.exists(self.target))

    def test_interrupt_without_events(self):
        """Nothing that is told runs any Python code, which would look for signals."""
        paths = (os.fsencode(self.source), os.fsencode(self.target))
        thread = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        with self.assertRaises(KeyboardInterrupt):
            thread.start()
            stele._stele.run("build", paths, {}, "".format)
        thread.join()
        self.assertFalse(os.path.exists(self.target))

    def test_exception(self):
        def stop(progress):
            raise RuntimeError("enough")

        with self.assertRaisesRegex(RuntimeError, "enough"):
            stele.build(self.source, self.target, progress=stop)
        self.assertFalse(os.path.exists(self.target))

    def test_progress_of_no_use(self):
        for bad in (5, 0, "yes"):
            for call in (
                lambda progress: stele.build(self.source, self.target, progress=progress),
                lambda progress: stele.Writer(self.target, {"data": bytes}, progress=progress),
            ):
                with self.assertRaisesRegex(TypeError, f"^progress must be .*, not {bad!r}$"):
                    call(bad)
        self.assertFalse(os.path.exists(self.target))

    def test_others_run(self):
        """The GIL is free meanwhile."""
        counted = 0
        over = threading.Event()

        def work():
            stele.build(self.source, self.target, jobs=1)
            over.set()

        thread = threading.Thread(target=work)
        start = time.monotonic()
        thread.start()
        while not over.is_set():
            counted += 1
            time.sleep(0.001)
        thread.join()
        self.assertGreater(counted, (time.monotonic() - start) / 0.02)


class Terminal(unittest.TestCase):
    def test_line(self):
        from stele.progress import Line

        stream = io.StringIO()
        stream.isatty = lambda: True
        line = Line(stream)
        line(stele.Progress("write", 5, 10, 500, 1000))
        line(stele.Progress("commit", 0, 0, 0, 0))
        line.close()
        self.assertIn("]  50% 5/10, 500 bytes/1000 bytes", stream.getvalue())
        self.assertTrue(stream.getvalue().endswith(" \r"))

    def test_lines(self):
        """Where there is no terminal, one a second."""
        from stele.progress import Line

        stream = io.StringIO()
        with mock.patch("stele.progress.time.monotonic") as clock:
            clock.return_value = 100.0
            line = Line(stream)
            for tenth in range(25):
                clock.return_value = 100 + tenth / 10
                line(stele.Progress("write", tenth, 30, 0, 0))
            line.close()
        self.assertRegex(
            stream.getvalue(), r"\Awrite: \[.*\]  33% 10/30 0:01\nwrite: .* 20/30 0:02\n\Z"
        )
