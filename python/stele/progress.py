# SPDX-License-Identifier: Apache-2.0
"""How far a call is: a callback, or a line on the terminal; and what else it says."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple, TextIO, Union

from . import _stele
from .errors import Error, ExistsError

logger = logging.getLogger("stele")

# Of events, by number: LOG, PROGRESS, and what verbs list.
LOG, PROGRESS, SKIP, DAMAGE, DIFFERENCE, UNUSED = range(6)
_LEVELS = {1: logging.DEBUG, 2: logging.WARNING, 3: logging.INFO}  # errors are raised, too
_PHASES = (
    "", "scan", "compare", "hash", "write", "sections", "commit", "copy", "verify", "discard",
)  # fmt: skip
_INTERVAL = 0.1  # seconds
_LINES = 1.0  # those between lines of a log

_said: ContextVar[set[str] | None] = ContextVar("stele.said", default=None)


@contextlib.contextmanager
def once() -> Iterator[None]:
    """For a call that opens an image more than once: what each of them says is logged once."""
    token = _said.set(set())
    try:
        yield
    finally:
        _said.reset(token)


def log(level: int, line: str) -> None:
    """Have a line of the library logged; the extension calls it, too."""
    said = _said.get()
    if said is not None:
        if line in said:
            return
        said.add(line)
    logger.log(_LEVELS.get(level, logging.DEBUG), "%s", line)


Event = tuple[int, int, tuple[int, ...], tuple[Union[str, None], ...]]


class Progress(NamedTuple):
    """How far a call is. Sizes in bytes; a total of 0: not known yet, or not counted."""

    phase: str
    """'scan', 'compare', 'hash', 'write', 'sections', 'commit', 'copy', 'verify', 'discard';
    of a Writer also 'put'."""
    samples_done: int
    samples_total: int
    bytes_done: int
    bytes_total: int


Watch = Callable[[Progress], object] | bool | None
"""A callable: is told, at each phase and about ten times a second. What it raises stops the
call, unless that was over by then.
True: a line on stderr, or one a second if that is no terminal; None: a line, if it is; False:
nothing."""


def human(size: float) -> str:
    """Bytes for people, as the command gives them."""
    if size < 1024:
        return f"{size:.0f} byte{'' if size == 1 else 's'}"
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        size /= 1024
        if size < 1023.95:  # which would be 1024.0
            return f"{size:.1f} {unit}"
    return f"{size / 1024:.1f} PiB"


class Line:
    """Progress as one line of a terminal, which is gone in the end; elsewhere as some lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._width = 0
        self._lines = not stream.isatty()
        self._start = time.monotonic()
        self._next = self._start + _LINES

    def __call__(self, progress: Progress) -> None:
        if self._lines and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _LINES
        phase, samples, samples_total, done, total = progress
        parts: list[str] = []
        if samples or samples_total:
            parts.append(f"{samples:,}" + (f"/{samples_total:,}" if samples_total else ""))
        if done or total:
            parts.append(human(done) + (f"/{human(total)}" if total else ""))
        share = done / total if total else samples / samples_total if samples_total else 0.0
        bar = ""
        if share:
            full = int(min(share, 1.0) * 20)
            bar = f" [{'#' * full}{'.' * (20 - full)}] {share:4.0%}"
        seconds = int(time.monotonic() - self._start)
        self._show(f"{phase}:{bar} {', '.join(parts)} {seconds // 60}:{seconds % 60:02}")

    def _show(self, text: str) -> None:
        if self._lines:
            print(text, file=self._stream, flush=True)
            return
        self._stream.write(f"\r{text:<{self._width}}")
        self._stream.flush()
        self._width = len(text)

    def close(self) -> None:
        if self._width:
            self._show("")
            self._stream.write("\r")
            self._stream.flush()
            self._width = 0


FORCE = "force=True overwrites what the target holds"
UNFINISHED = " is left with an unfinished image"  # as the library says it
AGAIN = "run it again, with force=True to overwrite that"
WHOLE = "if that is all that shall be there, use force=True"


class Listener:
    """Takes the events of a call: tell() is called by the thread that made it."""

    def __init__(self, watch: Watch) -> None:
        self.events: list[Event] = []
        self._errors: list[str] = []
        self._next = 0.0
        self._watch: Callable[[Progress], object] | None = None
        if not (watch is None or isinstance(watch, bool) or callable(watch)):
            raise TypeError(f"progress must be callable, True, False or None, not {watch!r}")
        if watch is None:
            watch = sys.stderr is not None and sys.stderr.isatty()
        if callable(watch):
            self._watch = watch
        elif watch:
            self._watch = Line(sys.stderr)

    def tell(
        self, kind: int, number: int, figures: tuple[int, ...], texts: tuple[str | None, ...]
    ) -> None:
        if kind == PROGRESS:
            phase = _PHASES[number] if number < len(_PHASES) else str(number)
            self.show(Progress(phase, *figures[:4]))
        elif kind == LOG:
            line = texts[0] or ""
            if number == 1:
                self._errors.append(line)
            log(number, line)
        else:
            self.events.append((kind, number, figures, texts))

    def show(self, progress: Progress) -> None:
        if self._watch:
            self._watch(progress)

    def due(self) -> bool:
        """Is it time to show something again?"""
        if not self._watch:
            return False
        now = time.monotonic()
        if now < self._next:
            return False
        self._next = now + _INTERVAL
        return True

    def explain(self, error: BaseException, force: bool = False) -> None:
        """Add what else was logged as an error, as notes; and what force=True would do."""
        if force and isinstance(error, ExistsError) and "has the key" not in str(error):
            error.add_note(FORCE)
        for line in self._errors:
            if line not in str(error) and line not in getattr(error, "__notes__", ()):
                error.add_note(line)
        self._errors.clear()

    def close(self) -> None:
        if isinstance(self._watch, Line):
            self._watch.close()


def run(
    verb: str, arguments: tuple[bytes | None, ...], options: dict[str, Any], watch: Watch
) -> tuple[dict[str, Any], list[Event]]:
    """Run a verb of the library: its report, and what it listed."""
    listener = Listener(watch)
    try:
        report = _stele.run(verb, arguments, options, listener.tell)
    except Error as error:
        listener.explain(error, verb in ("build", "copy"))
        raise
    finally:
        listener.close()
    return report, listener.events
