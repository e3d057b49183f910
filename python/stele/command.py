# SPDX-License-Identifier: Apache-2.0
"""What the commands of the package share: how they end, and how they say what failed."""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import NoReturn

from .errors import Error

FAILED, USAGE, DAMAGED = 1, 2, 3


class Stopped(BaseException):
    """A signal: what was begun is undone, and then it is died of."""


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    raise Stopped(number)


class Command:
    """One of them, by its name; hints: notes of errors, and what to say in their place."""

    def __init__(self, name: str, hints: Mapping[str, str]) -> None:
        self.name, self.hints = name, hints

    def message(self, text: str) -> None:
        print(f"{self.name}: {text}", file=sys.stderr)

    def misuse(self, text: str) -> int:
        self.message(text)
        return USAGE

    def say(self, error: BaseException) -> None:
        """What failed, and what to do next."""
        text = str(error)
        if isinstance(error, OSError) and not isinstance(error, Error) and error.strerror:
            text = f"'{error.filename}': {error.strerror}" if error.filename else error.strerror
        self.message(text)
        self._say_notes(error)

    def _say_notes(self, error: BaseException) -> None:
        for note in getattr(error, "__notes__", []):
            if note.startswith("'"):  # what the library says begins with what it is about
                self.message(note)
            else:
                print(f"hint: {self.hints.get(note, note)}", file=sys.stderr)

    def _print_all(self, function: Callable[[], int]) -> int:
        """Its status, unless not all that it prints can be written."""
        try:
            status = function()
            sys.stdout.flush()
            return status
        except OSError as error:  # what else fails the function says
            if error.errno != errno.EPIPE:  # who closed the pipe knows
                self.message(f"cannot write to stdout: {error.strerror}")
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what is flushed at the end
            return FAILED

    def run(self, function: Callable[[], int]) -> int:
        """The status to exit with; a signal undoes what was begun, and ends the process."""
        logging.basicConfig(format=f"{self.name}: %(message)s")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _stop)
        try:
            return self._print_all(function)
        except Stopped as stopped:
            number = stopped.args[0]
            self.message(f"{signal.strsignal(number)}: stopped")
            self._say_notes(stopped)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return 128 + int(number)
