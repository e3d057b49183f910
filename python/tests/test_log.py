# SPDX-License-Identifier: Apache-2.0
"""What the library says beside what it returns: to the logger 'stele', from any thread."""

import contextlib
import logging
import os
import pickle
import sys
import threading
import time
import unittest

import images
import stele

FALLBACK = "falling back to generation 2; snapshots made since, if any, are missing"
BLOCK = 4096
MAGIC = b"\x93STELE\r\n"
NEWEST = (8192, 1052672, 1572864)  # the superblock of generation 3, its mirror, the witness


def outdated(name):
    """An image of v1 and v2, for of v3 every superblock is gone."""
    target = images.DIRECTORY / name
    for snapshot in ("v1", "v2", "v3"):
        with stele.Writer(f"{target}@{snapshot}") as writer:
            writer.put(f"{snapshot}.bin", snapshot.encode())
    data = bytearray(target.read_bytes())
    for at in NEWEST:
        assert data.startswith(MAGIC, at)
        data[at : at + BLOCK] = bytes(BLOCK)
    target.write_bytes(data)
    return str(target)


class Lines(logging.Handler):
    """What was logged, while it is one of the logger's."""

    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append(record)

    def take(self, part):
        """Levels of the lines with this in them; none are left."""
        found = [record.levelno for record in self.records if part in record.getMessage()]
        self.records.clear()
        return found


class Case(unittest.TestCase):
    def setUp(self):
        self.lines = Lines()
        logger = logging.getLogger("stele")
        logger.addHandler(self.lines)
        self.addCleanup(logger.removeHandler, self.lines)
        logger.propagate = False
        self.addCleanup(setattr, logger, "propagate", True)

    def assert_said(self, part=FALLBACK):
        self.assertEqual(self.lines.take(part), [logging.WARNING])


class Opening(Case):
    @classmethod
    def setUpClass(cls):
        cls.target = outdated("opening.stele")

    def test_images(self):
        self.assertEqual([s.name for s in stele.snapshots(self.target)], ["v1", "v2"])
        self.assert_said()
        stele.image_info(self.target)
        self.assert_said()

    def test_before_an_exception(self):
        with self.assertRaisesRegex(stele.NotFound, "v1, v2"):
            stele.open(self.target + "@v3")
        self.assert_said()

    def test_datasets(self):
        for mmap in (False, True):
            with stele.open(self.target + "@v2", mmap=mmap) as ds:
                self.assert_said()
                self.assertEqual(bytes(ds["v2.bin"]), b"v2")
        with stele.open(self.target + "@v2") as ds, stele.Loader(ds) as loader:
            list(loader)
            pickled = pickle.dumps(ds)
        self.assert_said()
        pickle.loads(pickled).close()
        self.assert_said()

    def test_unpickling_says_it_once(self):
        target = images.copy(images.plain(), "unpickling.stele")
        with stele.open(target) as ds:
            pickled = pickle.dumps(ds)
        images.copy(self.target, "unpickling.stele")
        with self.assertRaisesRegex(stele.Error, "several snapshots"):
            pickle.loads(pickled)
        self.assert_said()

    def test_a_writer_says_it_once(self):
        with self.assertRaisesRegex(stele.Error, "nothing is changed"):
            stele.Writer(self.target + "@v4")
        self.assert_said()

    def test_sound(self):
        with stele.open(images.plain()) as ds:
            ds[0]
        self.assertEqual(self.lines.records, [])

    def test_threads(self):
        def many():
            for _ in range(20):
                stele.snapshots(self.target)
                stele.open(self.target + "@v1").close()

        threads = [threading.Thread(target=many) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(10):  # none of them has the lock in the child
            pid = os.fork()
            if not pid:
                status = 1
                with contextlib.suppress(BaseException):
                    self.lines.records.clear()
                    stele.open(self.target + "@v2").close()
                    status = len(self.lines.take(FALLBACK)) - 1
                os._exit(status)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
        for thread in threads:
            thread.join()
        self.assertEqual(self.lines.take(FALLBACK), [logging.WARNING] * 160)

    def test_a_handler_that_raises(self):
        def refuse(record):
            raise LookupError(record.getMessage())

        raised = []
        before, sys.unraisablehook = sys.unraisablehook, raised.append
        self.addCleanup(setattr, sys, "unraisablehook", before)
        self.lines.addFilter(refuse)
        with self.assertRaisesRegex(stele.NotFound, "v1, v2"):
            stele.open(self.target + "@v3")
        self.assertTrue(any(FALLBACK in str(entry.exc_value) for entry in raised))

    def test_a_handler_that_is_interrupted(self):
        def interrupt(record):
            raise KeyboardInterrupt

        self.lines.addFilter(interrupt)
        with self.assertRaises(KeyboardInterrupt):
            stele.open(self.target + "@v2")
            time.sleep(10)


class Skipping(Case):
    def test_skipped_samples(self):
        with stele.open(images.damaged()) as ds:
            which = f"sample {ds.find(images.key(100))} of source 0: checksum"
            with stele.Loader(ds, batch_size=50, on_error="skip") as loader:
                list(loader)
            self.assert_said(which)
            with stele.Loader(ds, batch_size=50) as loader, self.assertRaises(stele.ChecksumError):
                list(loader)
        self.assertNotIn(logging.WARNING, self.lines.take(""))


class Reading(Case):
    """A sample that is damaged now and then: it is read again."""

    def setUp(self):
        super().setUp()
        self.target = images.copy(images.plain(), f"{self.id()}.stele")
        with open(self.target, "rb") as file:
            self.at = file.read().find(images.content(100))
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.flip)
        self.thread.start()
        self.addCleanup(self.thread.join)
        self.addCleanup(self.over.set)

    def flip(self):
        whole = images.content(100)[:1]
        fd = os.open(self.target, os.O_WRONLY)
        while not self.over.is_set():
            for byte in (bytes([whole[0] ^ 1]), whole):
                os.pwrite(fd, byte, self.at)
                time.sleep(0.0005)
        os.close(fd)

    def read(self, read):
        """Until that was said: what the service's thread said is heard by this one."""
        end = time.monotonic() + 60
        while not self.lines.records and time.monotonic() < end:
            with contextlib.suppress(stele.ChecksumError):
                read()
        self.assertIn(logging.WARNING, self.lines.take("only when it was read again"))

    def test_datasets(self):
        with stele.open(self.target) as ds:
            self.read(lambda: ds[images.key(100)])
            self.read(lambda: ds[[ds.find(images.key(100)), 0]])

    def test_loaders(self):
        with stele.open(self.target) as ds:
            which = ds.find(images.key(100))
            with stele.Loader(ds.subset([which, 0]), batch_size=2) as loader:
                self.read(lambda: list(loader))
