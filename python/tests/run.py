# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of this folder, or with --in DIR of that; results are TAP."""

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

    def addSubTest(self, test, subtest, error):
        if error:
            self.addFailure(subtest, error)


if __name__ == "__main__":
    here, names = str(Path(__file__).parent), sys.argv[1:]
    if names[:1] == ["--in"]:
        here, names = names[1], names[2:]
    sys.path.insert(0, here)
    if names:
        suite = unittest.defaultTestLoader.loadTestsFromNames(names)
    else:
        suite = unittest.defaultTestLoader.discover(here)
    result = Tap()
    suite.run(result)
    print(f"1..{result.testsRun}")
    sys.exit(not result.wasSuccessful() or not result.testsRun)
