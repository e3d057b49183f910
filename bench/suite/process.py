# SPDX-License-Identifier: Apache-2.0
"""process.py - starts programs, and undoes what was set up, however this one ends"""

import atexit
import json
import shlex
import signal
import subprocess
import sys


class Failed(Exception):
    """A program failed, or said what nobody understands."""


_undo = []


def later(*argv):
    """Run this command at the end, last first. Returns a handle for undo()."""
    _undo.append(argv)
    return argv


def undo(handle):
    if handle in _undo:
        _undo.remove(handle)
        subprocess.run(handle, check=False, capture_output=True)


@atexit.register
def undo_all():
    while _undo:
        subprocess.run(_undo.pop(), check=False, capture_output=True)


def catch_signals():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda n, frame: sys.exit(128 + n))


def run(*argv, timeout=600, env=None):
    """Its standard output; Failed with what it said."""
    argv = [str(a) for a in argv]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False,
                              timeout=timeout, env=env)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed(f'{shlex.join(argv)}: {error}') from error
    if done.returncode:
        said = (done.stderr or done.stdout).strip().split('\n')
        raise Failed(f'{shlex.join(argv)}: status {done.returncode}: {" / ".join(said[-3:])}')
    return done.stdout


def json_lines(text):
    """Each object of an output that has one a line, or one over all lines (fio's)."""
    found, decoder, at = [], json.JSONDecoder(), text.find('{')
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except ValueError as error:
            raise Failed(f'no JSON: {text[at:at + 80]!r}: {error}') from error
        found.append(value)
        at = text.find('{', end)
    return found


def run_json(*argv, **options):
    """The last object that it prints."""
    found = json_lines(run(*argv, **options))
    if not found:
        raise Failed(f'{argv[0]}: printed no JSON')
    return found[-1]


def say(text):
    print(text, file=sys.stderr, flush=True)
