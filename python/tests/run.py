# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of this folder; results are TAP."""

import sys
import traceback
import unittest
from pathlib import Path


class Tap(unittest.TestResult):
    def line(self, test, ok, more=""):
        name = test.id().removeprefix("test_")
        print(f"{'' if ok else 'not '}ok {self.testsRun} - {name}{more}", flush=True)

    def addSuccess(self, test):
        self.line(test, True)

    def addSkip(self, test, reason):
        self.line(test, True, f" # SKIP {reason}")

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.line(test, False)
        for text in "".join(traceback.format_exception(*error)).splitlines():
            print(f"# {text}", flush=True)

    addError = addFailure


if __name__ == "__main__":
    here = str(Path(__file__).parent)
    sys.path.insert(0, here)
    if len(sys.argv) > 1:
        suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:])
    else:
        suite = unittest.defaultTestLoader.discover(here)
    result = Tap()
    suite.run(result)
    print(f"1..{result.testsRun}")
    sys.exit(not result.wasSuccessful() or not result.testsRun)
