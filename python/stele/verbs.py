# SPDX-License-Identifier: Apache-2.0
"""The verbs of the stele command as functions.

Each runs without the GIL, and stops at the next moment that it can when a KeyboardInterrupt
comes, or anything that a progress callback raises: nothing is published then. What the
library logs goes to the logger 'stele'; what failed is a stele.Error.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal, Unpack
from uuid import UUID

from . import _stele
from .dataset import Target, Verify, verify_number
from .options import Layout, Source, encode, key_bytes, known, several, text, text_or_none
from .progress import DAMAGE, DIFFERENCE, SKIP, UNUSED, Watch, log, run
from .reports import (
    BuildReport,
    CopyReport,
    Damage,
    Difference,
    GcReport,
    ImageInfo,
    ResizeReport,
    Skipped,
    Snapshot,
    Unused,
    VerifyReport,
)

_NO_ID = (1 << 64) - 1


def _check_grace(grace: int, force: bool) -> None:
    """Readers get time, or none: the library would take grace."""
    if grace and force:
        raise ValueError("force=True gives no grace: say one of them")


# ---- build, append, compact


_REASONS = {
    1: "symlink", 2: "special", 3: "unreadable", 4: "vanished", 5: "changed", 6: "target",
    7: "excluded",
}  # fmt: skip


def _build_report(verb: str, *arguments: Any) -> BuildReport:
    report, events = run(verb, *arguments)
    skipped = [
        Skipped(texts[0] or "", _REASONS.get(number, str(number)), figures[0])
        for kind, number, figures, texts in events
        if kind == SKIP
    ]
    _warn_of(skipped)
    report["created"] = verb != "append" or bool(report["created"])
    return BuildReport(**report, skipped=tuple(skipped))


def _warn_of(skipped: list[Skipped]) -> None:
    """Of each reason once, but for what was asked for."""
    for reason in _REASONS.values():
        keys = [entry.key for entry in skipped if entry.reason == reason]
        if keys and reason not in ("target", "excluded"):
            log(2, f"skipped {len(keys)} of the source: {reason}, such as {keys[0]!r}")


def build(
    source: Target,
    target: Target | None,
    *,
    label: str | None = None,
    uuid: UUID | bytes | None = None,
    object_size: int = 0,
    progress: Watch = None,
    **options: Unpack[Source],
) -> BuildReport:
    """Write a directory to a new image, and publish its first snapshot.

    Args:
        source: a directory; each file is a sample, its path the key. Archives, record files
            and databases: `python -m stele build`, which has more options.
        target: PATH[@SNAPSHOT], 'v1' unless named; None: a dry run without one.
        label: of the image.
        uuid: of the image; None: random. With it and time, the same samples make the same
            bytes.
        note: of the snapshot.
        label_from: which directory names a file's class, the field 'label': a level (1: right
            below the source), 'parent', 'none', or 'auto'.
        follow: take what symlinks lead to.
        exclude: patterns of files and directories to leave out: of a name ('*.txt'), or, with
            a slash, of a path below the source ('train/.cache').
        skip_changed: leave out files that change, vanish or cannot be read.
        allow_empty: a source without samples is no error.
        force: whatever the target holds is lost.
        dry_run: plan only.
        file_size: of a file or RBD image, bytes; 0: to fit.
        object_size: of an RBD image that is created; 0: 4 MiB.
        time: of image and snapshot, seconds since 1970; 0: now.
        backend: how to write; None: the best there is.
        progress: a callable that is told (stele.Progress); True: a line on stderr; None:
            that, if it is a terminal.
        layout: memory_size, granule, order ('size' or 'source'), jobs, boundary.

    Raises:
        stele.ExistsError: the target holds something.
        stele.Error: and its other kinds.
    """
    known(options, Source)
    if target is None:
        options["dry_run"] = True
    given = encode(label=label, uuid=uuid, object_size=object_size, **options)
    raw = None if target is None else os.fsencode(target)
    return _build_report("build", (os.fsencode(source), raw), given, progress)


def append(
    source: Target,
    target: Target,
    *,
    update: bool = False,
    quick: bool = False,
    delete_missing: bool = False,
    always: bool = False,
    base: str | None = None,
    progress: Watch = None,
    **options: Unpack[Source],
) -> BuildReport:
    """Make a new snapshot: an old one plus what is new in a directory.

    Args:
        target: PATH@SNAPSHOT, a name that the image does not have.
        update: replace samples whose contents changed.
        quick: with update: files whose size and times have not changed since the base are
            not read.
        delete_missing: drop samples that the source lacks; more than half of them only with
            force.
        label_from: as of build(); by other directories than the image has it only with force.
        always: make a snapshot even if nothing changed.
        base: the snapshot to start from; None: the newest.
        file_size: a file or RBD image first grows to it; 0: it does not.

    The other arguments are those of build().
    """
    known(options, Source)
    given = encode(
        update=update,
        quick=quick,
        delete_missing=delete_missing,
        always=always,
        base=base,
        **options,
    )
    paths = (os.fsencode(source), os.fsencode(target))
    return _build_report("append", paths, given, progress)


def compact(
    target: Target,
    name: str,
    *,
    note: str | None = None,
    dry_run: bool = False,
    time: int = 0,
    backend: str | None = None,
    progress: Watch = None,
    **layout: Unpack[Layout],
) -> BuildReport:
    """Rewrite the samples of a snapshot as one segment, in a new snapshot called name.

    Same samples, fields and keys; new ids and another digest. The old snapshot stays.
    """
    known(layout, Layout)
    options = encode(note=note, dry_run=dry_run, time=time, backend=backend, **layout)
    arguments = (os.fsencode(target), text("name", name))
    return _build_report("compact", arguments, options, progress)


# ---- copy


def copy(
    source: Target,
    target: Target,
    *,
    label: str | None = None,
    uuid: UUID | bytes | None = None,
    force: bool = False,
    dry_run: bool = False,
    file_size: int = 0,
    object_size: int = 0,
    jobs: int = 0,
    time: int = 0,
    backend: str | None = None,
    progress: Watch = None,
) -> CopyReport:
    """Copy a snapshot to another target, checking every sample against its digest.

    In an existing image the snapshot is added, and only segments that it lacks are copied.
    What was interrupted is resumed by the next copy, but for a new image that has not got
    beyond its beginning: that takes force.

    Args:
        source: with a snapshot.
        target: PATH[@NAME]; without a name, the source's.
        label, uuid, file_size, object_size: of a new image; see build().
        force: overwrite what the target holds.
        dry_run: check all but the samples, and report what would be sent.
    """
    options = encode(
        label=label,
        uuid=uuid,
        force=force,
        dry_run=dry_run,
        file_size=file_size,
        object_size=object_size,
        jobs=jobs,
        time=time,
        backend=backend,
    )
    paths = (os.fsencode(source), os.fsencode(target))
    report = run("copy", paths, options, progress)[0]
    report["created"] = bool(report["created"])
    return CopyReport(**report)


# ---- verify, diff


def verify(
    target: Target, *, jobs: int = 0, backend: str | None = None, progress: Watch = None
) -> VerifyReport:
    """Check every checksum, digest and invariant of a snapshot, or of a whole image.

    Args:
        target: PATH@NAME: that snapshot; PATH: the image.
        jobs: threads; 0: one per core.

    Raises:
        stele.Error: it could not be checked. Damage is no exception: it is in the report.
    """
    options = encode(jobs=jobs, backend=backend)
    report, events = run("verify", (os.fsencode(target),), options, progress)
    found = dict.fromkeys(
        Damage(
            number,
            texts[0] or "",
            figures[0],
            figures[1],
            None if figures[2] == _NO_ID else figures[2],
            texts[1],
            texts[3],
            texts[2] or "",
        )
        for kind, number, figures, texts in events
        if kind == DAMAGE
    )
    return VerifyReport(
        **report,
        damage=tuple(item for item in found if item.errno),
        notes=tuple(item for item in found if not item.errno),
    )


_DIFFERENCES: dict[int, Literal["added", "removed", "changed"]] = {
    1: "added", 2: "removed", 3: "changed",
}  # fmt: skip


def _difference(number: int, figures: tuple[int, ...], key: str) -> Difference:
    kind = _DIFFERENCES[number]
    a = (None, None) if kind == "added" else figures[0:2]
    b = (None, None) if kind == "removed" else figures[2:4]
    return Difference(kind, key, *a, *b)


def diff(
    a: Target, b: Target, *, verify: Verify | None = None, backend: str | None = None
) -> list[Difference]:
    """How two snapshots differ, by key, in byte order; of one image or of two.

    Reads no samples, and nothing of what both share. Labels are compared by number: a number
    that means another class there, or another field, is logged; see stele.Error.
    """
    options = encode(verify=verify_number(verify), backend=backend)
    _, events = run("diff", (os.fsencode(a), os.fsencode(b)), options, False)
    return [
        _difference(number, figures, texts[0] or "")
        for kind, number, figures, texts in events
        if kind == DIFFERENCE
    ]


# ---- snapshots


def image_info(target: Target, *, backend: str | None = None) -> ImageInfo:
    """What an image is, and its snapshots; one that the target names is ignored.

    If newer ones are missing because of damage, that is logged; see stele.Error.
    """
    info = _stele.image(os.fsencode(target), backend)
    found = [Snapshot(**snapshot) for snapshot in info.pop("snapshots")]
    return ImageInfo(
        **info,
        snapshots=tuple(snapshot for snapshot in found if not snapshot.deleted_time),
        deleted=tuple(snapshot for snapshot in found if snapshot.deleted_time),
    )


def snapshots(target: Target, *, backend: str | None = None) -> list[Snapshot]:
    """The snapshots of an image, oldest first."""
    return list(image_info(target, backend=backend).snapshots)


def snapshot_create(
    target: Target,
    *,
    base: str | None = None,
    delete: Iterable[str | bytes] = (),
    note: str | None = None,
    dry_run: bool = False,
    time: int = 0,
    backend: str | None = None,
) -> Snapshot:
    """Make a new snapshot: an existing one minus some samples. No samples are written.

    Args:
        target: PATH@NAME of the new one.
        base: the snapshot to start from; None: the newest.
        delete: keys to leave out. stele.NotFound: one is not there.
    """
    keys = map(key_bytes, several("delete", delete, "keys"))
    names = (text_or_none("base", base), text_or_none("note", note))
    arguments = (os.fsencode(target), *names, *keys)
    options = encode(dry_run=dry_run, time=time, backend=backend)
    report, _ = run("snapshot_create", arguments, options, False)
    return Snapshot(**report, note=note or "")


def snapshot_rename(
    target: Target,
    name: str,
    *,
    grace: int = 0,
    force: bool = False,
    dry_run: bool = False,
    backend: str | None = None,
) -> None:
    """Give a snapshot another name. On RBD readers by the old name lose it: see
    snapshot_delete(); here grace and force are not given both."""
    options = encode(grace=grace, force=force, dry_run=dry_run, backend=backend)
    _check_grace(grace, force)
    run("snapshot_rename", (os.fsencode(target), text("name", name)), options, False)


def snapshot_delete(
    *targets: Target,
    grace: int = 0,
    force: bool = False,
    dry_run: bool = False,
    backend: str | None = None,
) -> None:
    """Remove snapshots of one image, all or none. Until gc() frees their space,
    snapshot_undelete() brings them back.

    Args:
        targets: PATH@NAME, each of the same PATH.
        grace: on RBD: seconds that readers get, which cannot be seen.
        force: on RBD without grace: remove it now; and delete the last one.
    """
    if not targets:
        return
    options = encode(grace=grace, force=force, dry_run=dry_run, backend=backend)
    run("snapshot_delete", tuple(map(os.fsencode, targets)), options, False)


def snapshot_undelete(
    target: Target,
    name: str | None = None,
    *,
    dry_run: bool = False,
    backend: str | None = None,
) -> None:
    """Bring a deleted snapshot back, until gc() has freed it.

    Args:
        target: PATH@NAME, by the name that it had; of several, the one deleted last.
        name: its name from now on; None: as it was.
    """
    options = encode(dry_run=dry_run, backend=backend)
    run("snapshot_undelete", (os.fsencode(target), text_or_none("name", name)), options, False)


# ---- space


def gc(
    target: Target,
    *,
    grace: int = 0,
    force: bool = False,
    discard: bool = False,
    dry_run: bool = False,
    backend: str | None = None,
    progress: Watch = None,
) -> GcReport:
    """Free the space of what no snapshot uses.

    Args:
        grace: only what has been unused for so many seconds. This or force is needed, except
            to report: readers elsewhere cannot be seen.
        force: all of it, without grace: a reader that still uses it gets stele.StaleError.
        discard: discard free space on the device, too.
        dry_run: only report.
    """
    options = encode(
        grace=grace, force=force, discard=discard, dry_run=dry_run, backend=backend
    )
    _check_grace(grace, force)
    report, events = run("gc", (os.fsencode(target),), options, progress)
    unused = (
        Unused(segment, texts[0], offset, size, count, since, bool(number & 1), bool(number & 2))
        for kind, number, (segment, offset, size, count, since), texts in events
        if kind == UNUSED
    )
    return GcReport(**report, unused=tuple(unused))


def resize(
    target: Target, size: int = 0, *, dry_run: bool = False, backend: str | None = None
) -> ResizeReport:
    """Extend an image to the size of its target.

    Args:
        size: 0: as it is; else a file or RBD image first grows to so many bytes.
    """
    options = encode(dry_run=dry_run, backend=backend, size=size)
    return ResizeReport(**run("resize", (os.fsencode(target),), options, False)[0])
