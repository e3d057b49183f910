# SPDX-License-Identifier: Apache-2.0
"""docs/python.md is what docs/reference.py makes of the docstrings."""

import subprocess
import sys
import unittest
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


class Reference(unittest.TestCase):
    def test_up_to_date(self):
        """Else: PYTHONPATH=build/python build/venv/bin/python docs/reference.py >docs/python.md"""
        now = subprocess.run(
            [sys.executable, DOCS / "reference.py"], capture_output=True, text=True
        )
        self.assertEqual(now.stderr, "")
        self.assertEqual(now.stdout, (DOCS / "python.md").read_text(), self._testMethodDoc)
