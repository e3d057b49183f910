# SPDX-License-Identifier: Apache-2.0
"""The command: python3 -m stele.sources build."""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

from ..errors import CorruptError, ChecksumError, Error
from ..progress import AGAIN, FORCE, human
from . import UPDATE, Report, SourceError, build
from .detect import FORMATS

_NAME = "stele.sources"
_FAILED, _USAGE, _DAMAGED = 1, 2, 3
_HINTS = {
    FORCE: "--force overwrites what the target holds",
    AGAIN: "run it again, with --force to overwrite that",
    UPDATE: "--update takes the place of samples with the same keys",
    "choose another name": "choose another name",
}


class _Stopped(BaseException):
    """A signal: what was begun is undone, and then it is died of."""


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    raise _Stopped(number)


def _columns(text: str) -> list[str]:
    return text.split(",")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python3 -m {_NAME}", allow_abbrev=False)
    verbs = parser.add_subparsers(required=True, metavar="build")
    verb = verbs.add_parser(
        "build", help="write the rows of SOURCE to TARGET", allow_abbrev=False,
        description="Write the rows of SOURCE, files, directories or patterns, to TARGET, and "
        "publish them as a snapshot: the first (default name: v1), or one more.",
    )  # fmt: skip
    verb.add_argument("sources", metavar="SOURCE", nargs="+")
    verb.add_argument("target", metavar="TARGET[@SNAPSHOT]")
    add = verb.add_argument
    add("--from", dest="format", metavar="FORMAT", choices=[*FORMATS],
        help=f"{', '.join(FORMATS)} (default: detected)")  # fmt: skip
    add("--key", metavar="COLUMN", help="that has the keys of samples (default: key)")
    add("--columns", metavar="A,B", type=_columns, help="that become fields (default: all)")
    add("--on-error", choices=["fail", "skip"], default="fail",
        help="what cannot be read: fail (default) or skip")  # fmt: skip
    add("--append", action="store_true", help="to an image that is there")
    add("--update", action="store_true", help="take the place of samples with the same keys")
    add("-f", "--force", action="store_true", help="overwrite existing contents of TARGET")
    add("--label", metavar="TEXT", help="name of the image")
    add("--note", metavar="TEXT", help="note to store with the snapshot")
    add("--time", metavar="SECONDS", type=int, default=0, help="of the snapshot, since 1970")
    add("--directory", metavar="DIR", help="of the temporary file (default: $TMPDIR, or /var/tmp)")
    add("-q", "--quiet", action="store_true", help="print only errors")
    return parser


def _say(error: BaseException) -> None:
    """What failed, and what to do next."""
    text = str(error)
    if isinstance(error, OSError) and not isinstance(error, Error) and error.strerror:
        text = f"'{error.filename}': {error.strerror}" if error.filename else error.strerror
    print(f"{_NAME}: {text}", file=sys.stderr)
    _say_notes(error)


def _say_notes(error: BaseException) -> None:
    for note in getattr(error, "__notes__", []):
        # The library's own lines begin with what they are about.
        said = note.startswith("'")
        print(f"{_NAME}: {note}" if said else f"hint: {_HINTS.get(note, note)}", file=sys.stderr)


def _status(error: BaseException, append: bool) -> int:
    if isinstance(error, SourceError):
        return _USAGE if error.usage else _FAILED
    if isinstance(error, Error):
        if append and isinstance(error, (ChecksumError, CorruptError)):
            return _DAMAGED
        return _USAGE if error.errno == errno.EINVAL else _FAILED
    return _USAGE if isinstance(error, (ValueError, TypeError)) else _FAILED


def _summary(report: Report, target: str) -> None:
    name = report.snapshot.name
    image = target.rpartition("@")[0] if target.endswith(f"@{name}") else target.rstrip("@")
    speed = report.bytes / report.seconds if report.seconds else 0

    def line(what: str, text: str) -> None:
        print(f"{what:<12}{text}")

    line("samples", f"{report.samples:,}, {human(report.bytes)}")
    line("snapshot", f"{name} on '{image}'")
    line("digest", f"sha256:{report.snapshot.digest}")
    if report.skipped_parts:
        samples = report.skipped_samples
        line("skipped", f"{report.skipped_parts:,}: cannot be read" + (f", {samples:,} samples" if samples else ""))  # fmt: skip
        for lost in report.skipped[:10]:
            line("", f"  {lost.place}: {lost.reason}")
        if report.skipped_parts > 10:
            line("", f"  and {report.skipped_parts - 10:,} more")
    line("done in", f"{report.seconds:.1f} s: {human(speed)}/s")


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    options: dict[str, Any] = {
        "append": True if given.append else None, "update": given.update, "force": given.force,
        "note": given.note, "time": given.time, "directory": given.directory,
    }  # fmt: skip
    if given.label is not None:
        options["label"] = given.label
    if given.append and given.force:
        print(f"{_NAME}: --append does not go with --force", file=sys.stderr)
        return _USAGE
    try:
        report = build(
            given.sources, given.target, format=given.format, key=given.key, columns=given.columns,
            on_error=given.on_error, progress=False if given.quiet else None, **options,
        )  # fmt: skip
    except (Error, SourceError, OSError, ValueError, TypeError) as error:
        _say(error)
        return _status(error, given.append)
    if not given.quiet:
        _summary(report, given.target)
    return 0


def _run() -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        status = main()
        sys.stdout.flush()
        return status
    except _Stopped as stopped:
        number = stopped.args[0]
        print(f"{_NAME}: {signal.strsignal(number)}: stopped", file=sys.stderr)
        _say_notes(stopped)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
        return 128 + int(number)


if __name__ == "__main__":
    sys.exit(_run())
