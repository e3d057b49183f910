# SPDX-License-Identifier: Apache-2.0
"""The command: python3 -m stele.sources build, and append."""

from __future__ import annotations

import argparse
import errno
import json
import os
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any
from uuid import UUID

from ..command import DAMAGED, FAILED, USAGE, Command
from ..dataset import split
from ..errors import LARGER, ChecksumError, CorruptError, Error
from ..progress import AGAIN, FORCE, WHOLE, human
from ..reports import BuildReport
from ..verbs import snapshots
from . import APPEND, FILLED, SKIP, UNIQUE, Report, SourceError, append, build, is_source
from .detect import FORMATS, NAMED
from .source import OTHER_FORMAT, SOME, TAKES

_NAME = "stele.sources"
_NAMED = 10  # of what was skipped
_HINTS = {
    FORCE: "--force overwrites what the target holds",
    AGAIN: "run it again, with --force to overwrite that",
    APPEND: "'append' adds a snapshot to it",
    WHOLE: "if SOURCE is the right one, and whole, use --force",
    NAMED: f"--from names it: {', '.join(FORMATS)}",
    OTHER_FORMAT: OTHER_FORMAT.replace("format names", "--from names"),
    SOME: "--columns=A,B takes only the columns that are named",
    TAKES: "name it in --columns=A,B, with all others that become fields",
    UNIQUE: "--key=COLUMN names a column in which no value comes twice",
    FILLED: "--key=COLUMN names another column, with a value in each row; or fill in what this one lacks",
    SKIP: "--on-error=skip leaves out what cannot be read",
    LARGER: "use a larger target, or a larger --size of a file or RBD image",
    "choose another name": "choose another name",
}
_COMMAND = Command(_NAME, _HINTS)
_UNITS: dict[str, int] = {
    f"{letter}{unit}": base**power
    for power, letter in enumerate("KMGTPE", 1)
    for unit, base in (("", 1024), ("iB", 1024), ("B", 1000))
} | {"": 1, "B": 1}
_BLOCK = 4096  # of which a target is a multiple
_TIME_MAX = 253402300799  # the end of the year 9999


def _columns(text: str) -> list[str]:
    return text.split(",")


def _size(text: str) -> int:
    """As of stele: a number of bytes, or one with a unit; rounded up, which is said."""
    number = text.rstrip("KMGTPEkmgtpeiB")
    letters = text[len(number) :]
    unit = _UNITS.get(letters[:1].upper() + letters[1:], 0)
    if not (number.isascii() and number.isdigit()) or not unit or not int(number):
        raise argparse.ArgumentTypeError(f"'{text}' is no size, such as 64M or 1GiB")
    size = int(number) * unit
    if size % _BLOCK:
        size += _BLOCK - size % _BLOCK
        _COMMAND.message(f"--size={text} is rounded up to {size} bytes, a multiple of {_BLOCK}")
    return size


def _seconds(text: str) -> int:
    """Of a time in ISO 8601, in UTC unless it says how far from that; 0: it is none."""
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        return 0
    return int((then if then.tzinfo else then.replace(tzinfo=timezone.utc)).timestamp())


def _time(text: str) -> int:
    """As of stele: seconds since 1970, or a time."""
    number = text.removeprefix("@")
    digits = number.isascii() and number.isdigit()
    seconds = int(number[:20]) if digits else _seconds(text)
    if not 0 < seconds <= _TIME_MAX:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not seconds since 1970, at least 1 and before the year 10000, or a time "
            "like 2026-11-21T06:45Z"
        )
    return seconds


def _add_common(verb: argparse.ArgumentParser, dry_run: str) -> None:
    add = verb.add_argument
    add("--from", dest="format", metavar="FORMAT", choices=[*FORMATS],
        help=f"{', '.join(FORMATS)} (default: detected)")  # fmt: skip
    add("--key", metavar="COLUMN", help="that has the keys of samples (default: key)")
    add("--columns", metavar="A,B", type=_columns, help="that become fields (default: all)")
    add("--on-error", choices=["fail", "skip"], default="fail",
        help="what cannot be read: fail (default) or skip")  # fmt: skip
    add("-n", "--dry-run", action="store_true",
        help=f"read SOURCE, check everything, print what would be done, and write nothing{dry_run}")  # fmt: skip
    add("--granule", metavar="N", type=int, choices=[16, 64, 512, 4096], default=0,
        help="slots are multiples of N bytes: 16, 64, 512 or 4096")  # fmt: skip
    add("--note", metavar="TEXT", help="note to store with the snapshot")
    add("--time", metavar="TIME", type=_time, default=0,
        help="of the snapshot: seconds since 1970, or ISO 8601")  # fmt: skip
    add("--directory", metavar="DIR", help="of the temporary file (default: $TMPDIR, or /var/tmp)")
    add("--json", action="store_true", help="print the summary as a JSON object")
    add("--progress", action="store_true",
        help="print progress, too, if standard error is not a terminal: one line a second")  # fmt: skip
    add("-q", "--quiet", action="store_true", help="print only errors")


def _add_build(verb: argparse.ArgumentParser) -> None:
    add = verb.add_argument
    add("-f", "--force", action="store_true", help="overwrite existing contents of TARGET")
    add("--label", metavar="TEXT", help="name of the image")
    add("--posix", action="store_true", help="make it a read-only EROFS, too, see stele-posix(1)")
    add("--size", metavar="SIZE", type=_size, default=0, help="of a file or RBD image")


def _add_append(verb: argparse.ArgumentParser) -> None:
    add = verb.add_argument
    add("--base", metavar="OLD", help="snapshot to start from (default: the newest)")
    add("--update", action="store_true", help="replace samples whose contents have changed")
    add("--delete-missing", action="store_true", help="drop samples that SOURCE lacks")
    add("-f", "--force", action="store_true",
        help="with --delete-missing: also if more than half of the samples would be deleted")  # fmt: skip
    add("--always", action="store_true", help="create NEW even if nothing has changed")
    add("--size", metavar="SIZE", type=_size, default=0, help="grow a file or RBD image to it first")


def _parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """That of all, and of each verb; paths are for who calls them to count."""
    parser = argparse.ArgumentParser(prog=f"python3 -m {_NAME}", allow_abbrev=False)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="build|append")
    found: dict[str, argparse.ArgumentParser] = {}
    for name, about, target, dry_run, options in (
        ("build", "write the rows of SOURCE to a new image", "TARGET[@SNAPSHOT]",
         "; TARGET is optional", _add_build),
        ("append", "write what SOURCE has more as a new snapshot of an image", "TARGET@NEW",
         "", _add_append),
    ):  # fmt: skip
        found[name] = verb = verbs.add_parser(
            name, help=about, allow_abbrev=False, usage=f"%(prog)s [options] SOURCE... {target}",
            description=f"{about[0].upper()}{about[1:]}. SOURCE is files, directories or patterns.",
        )  # fmt: skip
        verb.add_argument("sources", nargs="*", help=argparse.SUPPRESS)
        options(verb)
        _add_common(verb, dry_run)
    return parser, found


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    """As of stele: options stand anywhere, the last path is the target, which a rehearsal of
    build can do without."""
    parser, verbs = _parsers()
    given, more = parser.parse_known_args(arguments)  # more: what is behind paths and options
    verb = verbs[given.verb]
    end = more.index("--") if "--" in more else len(more)
    unknown = [word for word in more[:end] if word.startswith("-") and word != "-"]
    if unknown:
        verb.error(f"unrecognized arguments: {' '.join(unknown)}")
    given.sources += more[:end] + more[end + 1 :]
    target = "TARGET" if given.verb == "build" else "TARGET@NEW"
    if len(given.sources) < (1 if given.verb == "build" and given.dry_run else 2):
        verb.error(f"{given.verb} needs a SOURCE and a {target}")
    given.target = given.sources.pop() if len(given.sources) > 1 else None
    return given


def _status(error: BaseException, append: bool) -> int:
    if isinstance(error, SourceError):
        return USAGE if error.usage else FAILED
    if isinstance(error, Error):
        if append and isinstance(error, (ChecksumError, CorruptError)):
            return DAMAGED
        return USAGE if error.errno == errno.EINVAL else FAILED
    return USAGE if isinstance(error, (ValueError, TypeError)) else FAILED


def _print_changes(report: Report, line: Callable[[str, str], None]) -> None:
    made = report.written
    line("base", made.base)
    line(
        "samples", f"{made.sample_count:,}: {made.added:,} added, {made.updated:,} updated, "
        f"{made.unchanged:,} unchanged; {made.deleted:,} deleted",
    )  # fmt: skip


def _print_layout(made: BuildReport, line: Callable[[str, str], None]) -> None:
    share = made.padding_size / made.slots_size if made.slots_size else 0
    line("runs", f"{made.run_count:,}")
    line(
        "slots", f"granule {made.granule}: {human(made.slots_size)}, "
        f"{human(made.padding_size)} of them padding ({share:.1%})",
    )  # fmt: skip


def _print_skipped(report: Report, line: Callable[[str, str], None]) -> None:
    samples = f", {report.skipped_samples:,} samples" if report.skipped_samples else ""
    line("skipped", f"{report.skipped_parts:,}: cannot be read{samples}")
    for lost in report.skipped[:_NAMED]:
        line("", f"  {lost.place}: {lost.reason}")
    if report.skipped_parts > _NAMED:
        line("", f"  and {report.skipped_parts - _NAMED:,} more")


def _summary(report: Report, target: str | None, dry_run: bool) -> None:
    made = report.written
    speed = report.bytes / report.seconds if report.seconds else 0

    def line(what: str, text: str) -> None:
        print(f"{what:<12}{text}")

    if not made.created:
        was = "" if dry_run else " was made"
        print(f"nothing has changed since '{made.base}': no snapshot{was}")
    if made.base:
        _print_changes(report, line)
    else:
        line("samples", f"{report.samples:,}, {human(report.bytes)}")
    if made.created and not dry_run:
        line("snapshot", f"{made.snapshot} on '{split(target or '')[0]}'")
        line("digest", f"sha256:{made.digest}")
    if made.created:
        _print_layout(made, line)
    if report.skipped_parts:
        _print_skipped(report, line)
    if dry_run:
        print("dry run: nothing was written")
    else:
        line("done in", f"{report.seconds:.1f} s: {human(speed)}/s")


def _hint_kept(count: int) -> None:
    """Samples that are there may have changed."""
    were = "1 sample of the source was" if count == 1 else f"{count:,} samples of the source were"
    why = "there by key already, and not compared: --update does that"
    print(f"hint: {were} {why}", file=sys.stderr)


def _skipped(report: Report) -> dict[str, Any]:
    if not report.skipped_parts:
        return {}
    first = [{"key": f"{lost.place}: {lost.reason}"} for lost in report.skipped[:_NAMED]]
    return {"unreadable": {"count": report.skipped_parts, "first": first}}


def _json(report: Report, target: str | None, dry_run: bool) -> None:
    """Members have the names that those of stele build and append have."""
    made = report.written
    members: dict[str, Any] = {"target": target} if target is not None else {}
    if not dry_run:
        members |= {
            "snapshot": made.snapshot, "uuid": str(UUID(made.uuid)),
            "digest": report.snapshot.digest,
        }  # fmt: skip
    members["dry_run"] = dry_run
    if made.base:
        members |= {
            "base": made.base, "samples": made.sample_count, "added": made.added,
            "updated": made.updated, "deleted": made.deleted, "unchanged": made.unchanged,
            "kept": made.kept, "written_size": made.written_size, "created": made.created,
        }  # fmt: skip
    members["segment_samples" if made.base else "samples"] = made.written_count
    members |= {
        "payload_size": made.payload_size, "runs": made.run_count, "granule": made.granule,
        "slots_size": made.slots_size, "padding_size": made.padding_size,
        "skipped": _skipped(report),
    }  # fmt: skip
    if not dry_run:
        members["total_seconds"] = round(report.seconds, 6)
    print(json.dumps(members))


def _is_like(path: str, source: str) -> bool:
    """A file that is no image, and called like the source."""
    if not os.path.getsize(path) or os.path.splitext(path)[1] != os.path.splitext(source)[1]:
        return False
    try:
        snapshots(path + "@" if "@" in path else path)
    except Error as error:
        return error.errno == errno.EMEDIUMTYPE
    return False


def _misused(given: argparse.Namespace) -> str:
    """What does not go together, or is no file; '': all is well."""
    if given.target == "-":
        return "an image cannot be written to standard output; './-' is a file of that name"
    if "-" in given.sources:
        return "no SOURCE is read from standard input; './-' is a file of that name"
    if given.verb == "build" and given.target:
        path = split(given.target)[0]
        last = given.sources[-1]
        if os.path.isfile(path) and os.path.isfile(last) and (is_source(path) or _is_like(path, last)):
            return (
                f"'{path}' is not overwritten: it looks like a source, and TARGET comes last; if "
                "it is that file, remove it first"
            )
    if given.verb == "build" or not given.delete_missing and not given.force:
        return ""
    if not given.delete_missing:
        return "--force goes with --delete-missing"
    if given.on_error == "skip":
        return (
            "--delete-missing needs a source without damage: it does not go with --on-error=skip"
        )
    return ""


def _options(given: argparse.Namespace) -> dict[str, Any]:
    """As build() and append() take them."""
    options = {
        name: getattr(given, name)
        for name in ("format", "key", "columns", "on_error", "dry_run", "granule", "note", "time",
                     "directory", "force")
    }  # fmt: skip
    options["file_size"] = given.size
    names = ("label", "posix") if given.verb == "build" else ("base", "update", "delete_missing", "always")
    options |= {name: getattr(given, name) for name in names}
    options["progress"] = given.progress or (False if given.quiet or given.json else None)
    return options


def main(arguments: list[str] | None = None) -> int:
    given = _parse(arguments)
    misuse = _misused(given)
    if misuse:
        return _COMMAND.misuse(misuse)
    verb = build if given.verb == "build" else append
    try:
        report = verb(given.sources, given.target, **_options(given))
    except (Error, SourceError, OSError, ValueError, TypeError) as error:
        _COMMAND.say(error)
        return _status(error, given.verb == "append")
    if given.json:
        _json(report, given.target, given.dry_run)
    elif not given.quiet:
        _summary(report, given.target, given.dry_run)
        if report.written.kept:
            _hint_kept(report.written.kept)
    return 0


if __name__ == "__main__":
    sys.exit(_COMMAND.run(main))
