# SPDX-License-Identifier: Apache-2.0
"""Threads, forks, spawned processes, signals."""

import concurrent.futures
import gc
import itertools
import multiprocessing
import os
import random
import shlex
import signal
import subprocess
import sys
import threading
import time
import traceback
import unittest

import images
import stele


def read_some(ds, seed, count=300):
    """Samples that are not what they should be."""
    order = random.Random(seed)
    wrong = 0
    for _ in range(count):
        s = ds[order.randrange(len(ds))]
        wrong += bytes(s) != images.CONTENT[s.key]
    ids = [order.randrange(len(ds)) for _ in range(100)]
    wrong += sum(bytes(s) != images.CONTENT[s.key] or s.id != i
                 for s, i in zip(ds[ids], ids, strict=True))  # fmt: skip
    return wrong


def spawned(ds, queue):
    queue.put(read_some(ds, os.getpid()))


def sent(value, ds, queue):
    """Put it into a queue, between others."""
    queue.put("before")
    queue.put({"kept": [value(ds)]})
    queue.put("behind")


def a_sample(ds):
    return ds[0]


def a_batch(ds):
    return next(iter(stele.Loader(ds, batch_size=2)))


def a_tensor(ds):
    return a_batch(ds).stack("label")


def in_threads(count, function):
    wrong = []
    threads = [
        threading.Thread(target=lambda i=i: wrong.append(function(i))) for i in range(count)
    ]
    for thread in threads:
        thread.start()
    return threads, wrong


def forked(function):
    """Status of a child that runs it."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            status = 0 if function() else 2
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return pid


def status(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Libraries(unittest.TestCase):
    def test_foreign_crypto(self):
        """As TensorFlow does: functions of OpenSSL's names, for all that is loaded later."""
        library = images.DIRECTORY / "foreign.so"
        names = ("EVP_MD_CTX_new", "EVP_DigestInit_ex2", "EVP_DigestFinal_ex", "SHA256_Init")
        source = "".join(f"void *{name}(void) {{ return 0; }}" for name in names)
        compiler = shlex.split(os.environ.get("CC", "cc"))
        subprocess.run(
            [*compiler, "-shared", "-fPIC", "-w", "-xc", "-", "-o", library],
            input=source, text=True, check=True,
        )  # fmt: skip
        program = (
            f"import ctypes; ctypes.CDLL({str(library)!r}, ctypes.RTLD_GLOBAL)\n"
            "import stele, sys\n"
            "with stele.Writer(sys.argv[1]) as writer: writer.put('a', b'b')\n"
            "print(bytes(stele.open(sys.argv[1], verify='digest')['a']))"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, images.DIRECTORY / "foreign.stele"],
            capture_output=True, text=True,
        )  # fmt: skip
        self.assertEqual((done.stdout, done.stderr), ("b'b'\n", ""))


class Processes(unittest.TestCase):
    def setUp(self):
        self.ds = stele.open(images.plain())
        self.addCleanup(self.ds.close)

    def test_threads_are_combined(self):
        self.ds[0:2]
        before = self.ds.stats()
        threads, wrong = in_threads(16, lambda seed: read_some(self.ds, seed))
        for thread in threads:
            thread.join()
        after = self.ds.stats()
        self.assertEqual(wrong, [0] * 16)
        reads = after["device_reads"] - before["device_reads"]
        direct = after["direct"] - before["direct"]
        self.assertEqual(reads + direct, 16 * 400)
        self.assertLess(direct, 16 * 300)
        # Fewer rounds than requests: several went out together.
        self.assertLess(after["rounds"] - before["rounds"], 16 * 301 * 0.9)
        gc.collect()
        self.assertEqual(self.ds.stats()["held_bytes"], 0)

    def test_fork(self):
        kept = self.ds[5]
        stop = threading.Event()

        def parent(seed):
            wrong = 0
            while not stop.is_set():
                wrong += read_some(self.ds, seed, 20)
            return wrong

        threads, wrong = in_threads(3, parent)
        try:
            for seed in range(10):
                pid = forked(
                    lambda seed=seed: read_some(self.ds, seed) == 0
                    and bytes(kept) == images.CONTENT[kept.key]
                    and status(forked(lambda: read_some(self.ds, 1) == 0)) == 0
                )
                self.assertEqual(status(pid), 0)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual(wrong, [0] * 3)

    def test_close_in_child(self):
        self.ds[0:10]

        def child():
            self.ds[3]
            self.ds.close()
            return True

        def unread():
            self.ds.close()
            return True

        self.assertEqual([status(forked(child)), status(forked(unread))], [0, 0])
        self.assertEqual(read_some(self.ds, 1), 0)

    def test_fork_and_loader(self):
        loader = stele.Loader(self.ds, batch_size=10)
        batch = next(iter(loader))
        s = batch[0]

        def child():
            with self.raises(BufferError):
                memoryview(s)
            with self.raises(BufferError):
                s["label"]
            with self.raises(stele.ForkError):
                next(iter(loader))
            with stele.Loader(self.ds, batch_size=10) as own:
                return sum(len(b) for b in own) == images.COUNT

        self.assertEqual(status(forked(child)), 0)
        self.assertEqual(bytes(s), images.CONTENT[s.key])

    raises = unittest.TestCase.assertRaises

    def test_spawn(self):
        context = multiprocessing.get_context("spawn")
        queue = context.Queue()
        children = [context.Process(target=spawned, args=(self.ds, queue)) for _ in range(2)]
        for child in children:
            child.start()
        self.assertEqual([queue.get(timeout=60) for _ in children], [0, 0])
        for child in children:
            child.join()

    def test_queue(self):
        """What cannot be sent is an error for who waits for it, not only where it came from."""
        for way, value in itertools.product(("fork", "spawn"), (a_sample, a_batch, a_tensor)):
            context = multiprocessing.get_context(way)
            queue = context.Queue()
            child = context.Process(target=sent, args=(value, self.ds, queue))
            child.start()
            self.assertEqual(queue.get(timeout=60), "before")
            with self.assertRaisesRegex(TypeError, "^<class 'stele.*'> cannot leave its process: make bytes"):
                queue.get(timeout=60)
            self.assertEqual(queue.get(timeout=60), "behind")
            child.join()
            self.assertEqual(child.exitcode, 0)

    def test_executor(self):
        """Whose queue says itself what was not sent, and has workers that end at an error."""
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(1, context) as executor:
            for _ in range(2):
                with self.assertRaisesRegex(TypeError, "cannot leave its process"):
                    executor.submit(len, self.ds[0]).result(60)
            self.assertEqual(executor.submit(len, b"abc").result(60), 3)

    def test_close_while_reading(self):
        for _ in range(20):
            ds = stele.open(images.plain())
            errors = []

            def reader(ds=ds, errors=errors):
                try:
                    while True:
                        read_some(ds, 1, 5)
                except ValueError:
                    pass
                except BaseException as error:
                    errors.append(error)

            threads = [threading.Thread(target=reader) for _ in range(4)]
            for thread in threads:
                thread.start()
            time.sleep(0.002)
            ds.close()
            for thread in threads:
                thread.join()
            self.assertEqual(errors, [])

    def test_interrupt(self):
        """A loader that has nothing to hand out waits, and can be interrupted."""
        read, write = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                ds = stele.open(images.plain())
                os.write(write, b".")
                while True:
                    ds[0:200]
            except KeyboardInterrupt:
                os._exit(0 if bytes(ds[1]) else 3)
            finally:
                os._exit(1)
        os.read(read, 1)
        time.sleep(0.05)
        os.kill(pid, signal.SIGINT)
        self.assertEqual(status(pid), 0)

    def test_interrupt_drops_what_waits(self):
        """What nobody waits for any more is not read; who shares the dataset gets theirs."""
        count, wanted, wrong = 300_000, list(range(0, images.COUNT, 7)), []
        with stele.open(images.plain()) as ds:

            def other():
                wrong.extend(s.id for s in ds[wanted] if bytes(s) != images.CONTENT[s.key])

            def interrupt():
                while not ds.stats().get("samples"):
                    pass
                thread = threading.Thread(target=other)
                thread.start()
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                thread.join()

            small = next(i for i in wanted if 0 < len(images.CONTENT[images.key(i)]) < 100)
            thread = threading.Thread(target=interrupt)
            thread.start()
            with self.assertRaises(KeyboardInterrupt):
                ds[[small] * count]
            thread.join()
            self.assertEqual(wrong, [])
            self.assertLess(ds.stats()["samples"], count // 2)
            self.assertEqual(ds.stats()["held_blocks"], 0)

    def test_exit_with_open_dataset(self):
        code = f"import stele; ds = stele.open({images.plain()!r}); s = ds[0]; it = iter(stele.Loader(ds)); b = next(it)"
        self.assertEqual(os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]), 0)
