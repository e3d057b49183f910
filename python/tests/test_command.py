# SPDX-License-Identifier: Apache-2.0
"""python -m stele is the command, which the package brings."""

import os
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

    def test_own_binary(self):
        """The package brings the command."""
        own = Path(stele.__file__).with_name("stele")
        self.assertTrue(os.access(own, os.X_OK), own)
