# SPDX-License-Identifier: Apache-2.0
"""What the verbs report."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Skipped(NamedTuple):
    """Something in a source that did not become a sample."""

    key: str
    reason: str
    """'symlink', 'special', 'unreadable', 'vanished', 'changed', 'target' or
    'excluded'."""
    errno: int


class BuildReport(NamedTuple):
    """What became of a build, append or compaction. Sizes in bytes, of what was written."""

    snapshot: str
    base: str
    """The snapshot that an append started from, else ''."""
    uuid: str
    digest: str
    """Zeros for a dry run."""
    sample_count: int
    """Of the snapshot."""
    added: int
    """Of an append: samples, compared with its base, as those that follow."""
    updated: int
    deleted: int
    unchanged: int
    kept: int
    """Of an append without update: samples of the source that were there by key, and not compared."""
    written_count: int
    """Samples."""
    written_size: int
    """Bytes on the target, including metadata."""
    payload_size: int
    slots_size: int
    padding_size: int
    image_end: int
    """Bytes of the target in use; for a build, bytes needed."""
    target_size: int
    """0 without a target."""
    run_count: int
    granule: int
    class_count: int
    """Of 'label', or, without such a field, of the first one that has names; 0: none."""
    created: bool
    """False: nothing has changed, so an append made no snapshot."""
    scan_seconds: float
    write_seconds: float
    total_seconds: float
    skipped: tuple[Skipped, ...]


class CopyReport(NamedTuple):
    """What became of a copy. Sizes in bytes."""

    snapshot: str
    digest: str
    sample_count: int
    segment_count: int
    segments_sent: int
    """The others were already there."""
    total_size: int
    sent_size: int
    """Of that, written now."""
    resumed_size: int
    """Found intact, from an interrupted copy."""
    seconds: float
    unread_count: int
    """Segments that snapshots there have: used as they are, and not read."""
    unread_size: int
    """Their bytes."""
    created: bool
    """The snapshot was not there before."""


class Damage(NamedTuple):
    """Something damaged, or, with errno 0, harmless leftovers of an interrupted writer."""

    errno: int
    what: str
    """'record', 'superblock', 'keys', ..."""
    offset: int
    """On the target."""
    size: int
    id: int | None
    """Of the sample, if it is one."""
    key: str | None
    snapshot: str | None
    """The newest that has the sample by that id."""
    detail: str


class VerifyReport(NamedTuple):
    """What was checked, and found."""

    snapshots: int
    segments: int
    samples: int
    blocks: int
    bytes: int
    damage: tuple[Damage, ...]
    notes: tuple[Damage, ...]
    """No damage: what the next writer cleans up."""

    @property
    def sound(self) -> bool:
        """Nothing is damaged."""
        return not self.damage


class Difference(NamedTuple):
    """A key whose sample differs between two snapshots."""

    kind: Literal["added", "removed", "changed"]
    key: str
    a_id: int | None
    """None, as a_size: added."""
    a_size: int | None
    b_id: int | None
    """None, as b_size: removed."""
    b_size: int | None


class Snapshot(NamedTuple):
    """A snapshot of an image."""

    name: str
    id: int
    parent: int
    """0: none."""
    time: int
    """Seconds since 1970."""
    digest: str
    sample_count: int
    payload_size: int
    """Bytes of the samples."""
    segment_count: int
    deleted_time: int
    """0: it is not deleted."""
    note: str


class ImageInfo(NamedTuple):
    """An image as a whole. Sizes in bytes, times in seconds since 1970."""

    uuid: str
    label: str
    version: int
    segment_count: int
    generation: int
    image_size: int
    used_size: int
    free_size: int
    """Of used_size, can be used again."""
    unused_size: int
    """Of used_size, what no snapshot uses: gc() frees it."""
    create_time: int
    commit_time: int
    superblocks_good: int
    """Of 4 copies."""
    snapshots: tuple[Snapshot, ...]
    """Oldest first."""
    deleted: tuple[Snapshot, ...]
    """Those that snapshot_undelete() brings back."""


class Unused(NamedTuple):
    """What no snapshot uses any more."""

    segment: int
    """Its id; 0: a snapshot."""
    name: str | None
    """Of that."""
    offset: int
    size: int
    sample_count: int
    since: int
    """Seconds since 1970; for a tombstoned snapshot, when it expires."""
    due: bool
    """It can be freed."""
    deleted: bool
    """A snapshot that was deleted, and not a tombstoned RBD snapshot."""


class GcReport(NamedTuple):
    """What gc() found and freed. Sizes in bytes."""

    unused_count: int
    unused_size: int
    freed_count: int
    freed_size: int
    """Of a dry run: what would be freed."""
    free_size: int
    """Below the high-water mark, afterwards."""
    finished_size: int
    """Freed earlier, and reusable from now on."""
    unused: tuple[Unused, ...]


class ResizeReport(NamedTuple):
    """Bytes that the image may use."""

    old_size: int
    new_size: int
