# SPDX-License-Identifier: Apache-2.0
"""python -m stele is the command, which the package brings."""

import os
import signal
import subprocess
import sys
import unittest
from pathlib import Path

import images
import stele


class Command(unittest.TestCase):
    def test_module(self):
        done = subprocess.run(
            [sys.executable, "-m", "stele", "info", images.plain()],
            capture_output=True,
            text=True,
            check=True,
        )
        self.assertIn(str(images.COUNT), done.stdout.replace(",", ""))

    def test_script(self):
        """What pip installs as stele is there at once: nothing of the package is imported."""
        code = (
            "import sys, stele_command\n"
            "assert not [m for m in sys.modules if m.split('.')[0] == 'stele'], sys.modules\n"
            "stele_command.main()"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, "-V"], capture_output=True, text=True, check=True
        )
        self.assertRegex(done.stdout, "^stele [0-9]")

    def test_pipe(self):
        """A reader that has enough ends it, as a command of C: Python ignores SIGPIPE."""
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [sys.executable, "-m", "stele", "ls", images.plain()],
            stdout=writing,
            stderr=subprocess.PIPE,
        )
        os.close(writing)
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, b""))

    def test_interrupted(self):
        """Ctrl-C before the command has begun ends it by the signal, and without a traceback."""
        code = "import stele_command, os\nos.kill(os.getpid(), 2)\nprint('alive')"
        for before, status, out in ("", -signal.SIGINT, b""), ("import signal\nsignal.signal(2, signal.SIG_IGN)\n", 0, b"alive\n"):
            done = subprocess.run([sys.executable, "-c", before + code], capture_output=True)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (status, out, b""))

    def test_own_binary(self):
        """The package brings the command."""
        own = Path(stele.__file__).with_name("stele")
        self.assertTrue(os.access(own, os.X_OK), own)
