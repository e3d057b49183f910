# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each kind of failure, all of them OSErrors.

``errno`` is the library's (see stele(3)), ``id`` and ``key`` name the sample that could
not be read, where one is to blame.
"""

from __future__ import annotations

import errno as _errno
import os
import re
import sys
import types
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from .dataset import Dataset


def short(key: object) -> str:
    """A key for a message, which nobody reads in full if it is long."""
    text = repr(key)
    return text if len(text) <= 200 else f"{text[:80]}... ({len(text)} characters)"


class Error(OSError):
    """What Stele could not do, and why; notes say what to do next.

    What is wrong and was not in the way goes to the logger 'stele' of Python's logging, as
    a WARNING, which is shown on stderr unless you say otherwise: snapshots are missing
    because what was written last is damaged; one of several copies is damaged; a sample was
    whole only when it was read again. INFO and DEBUG explain more.

        logging.getLogger("stele").addHandler(logging.FileHandler("stele.log"))

    Attributes:
        errno: a positive errno.
        strerror: the reason.
        id: id of the sample in its snapshot, or None.
        key: key of the sample, or None if there is no sample or its key is not known. Of what a
            worker of PyTorch's DataLoader raised, both are in the text alone.
    """

    id: int | None = None
    key: str | None = None

    def __init__(
        self,
        errno: int | str,
        message: str | None = None,
        id: int | None = None,
        key: str | None = None,
    ) -> None:
        if message is None:  # as PyTorch raises again what a worker did
            errno, message = _ERRNOS.get(type(self), _errno.EIO), str(errno)
        super().__init__(errno, message)
        self.id = id
        self.key = key

    def __str__(self) -> str:
        if self.key is not None and self.id is not None:
            return f"sample {self.id} {short(self.key)}: {self.strerror}"
        if self.id is not None:
            return f"sample {self.id}: {self.strerror}"
        return str(self.strerror)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.errno, self.strerror, self.id, self.key)


class ChecksumError(Error):
    """EBADMSG: a checksum or digest does not match; the sample was read twice."""


class CorruptError(Error):
    """EUCLEAN: an impossible structure that no checksum caught."""


class StaleError(Error):
    """ESTALE: a snapshot or mapping is no longer what was opened."""


class NotFound(Error, KeyError):
    """ENOENT: no such target, snapshot, key or class name."""

    __str__ = Error.__str__


class ExistsError(Error, FileExistsError):
    """EEXIST: the target holds something, or a snapshot or key is there already."""

    __str__ = Error.__str__


class FormatError(Error):
    """EMEDIUMTYPE, EINPROGRESS, ENODATA: no Stele image, an unfinished one, or one cut off."""


class ForkError(Error):
    """EOWNERDEAD: opened by another process, before a fork."""


class RangeError(Error, IndexError):
    """ERANGE: an id or field that does not exist."""

    __str__ = Error.__str__


_CLASSES: dict[int, type[Error]] = {
    _errno.EBADMSG: ChecksumError,
    _errno.EUCLEAN: CorruptError,
    _errno.ESTALE: StaleError,
    _errno.ENOENT: NotFound,
    _errno.EEXIST: ExistsError,
    _errno.EMEDIUMTYPE: FormatError,
    _errno.EINPROGRESS: FormatError,
    _errno.ENODATA: FormatError,
    _errno.EOWNERDEAD: ForkError,
    _errno.ERANGE: RangeError,
}

_ERRNOS = {kind: number for number, kind in reversed(_CLASSES.items())}
_NO_ID = (1 << 64) - 1

LARGER = "use a larger target, or a larger file_size of a file or RBD image"
_SET_RW = (
    "unmap it, or set it writable with 'blockdev --setrw'; a loop device of 'losetup -r': attach "
    "it again without -r"
)
_LOST_FRONT = (
    "write nothing there: restore the first 2 MiB as they were after the last change, if they "
    "were saved, else copy the image from elsewhere"
)
_LOST_CATALOG = "without a catalog no snapshot can be found: copy the image from elsewhere"
_HELD = (
    "samples, batches, subsets and iterators hold it open until they are gone, too: 'del' what "
    "is left of them, such as the variable of a loop"
)
_MAP_AGAIN = "run 'stele unmap' and 'stele map' again"
_DAMAGE = "'stele verify' lists all damage there, 'stele help damage' says how to go on"
_NAMES = "samples and labels can be read: 'stele help damage' says how to write them with the names"
# What to do next, by errno and words of the message: the first that matches. Where neither
# functions nor options are named it is as of the command, see cmd/remedy.c.
_HINTS: tuple[tuple[int, str, str], ...] = (
    (_errno.EEXIST, "is there already", "update=True replaces it, keep=True leaves it as it is"),
    (_errno.EEXIST, "(partition table)", "name one of its partitions"),
    (_errno.EBUSY, "this process has it open", _HELD),
    (_errno.EBUSY, "this process itself is writing", "commit or close that Writer first"),
    (_errno.EBUSY, "by this process itself", "commit or close that Writer first"),
    (_errno.EBUSY, "may still have readers", "grace=SECONDS lets them finish, force=True does not"),
    (_errno.EBUSY, "unmap it", "run 'stele unmap' with that name"),
    (_errno.EBUSY, "is under loop device", "name that, or detach it with 'losetup -d' first"),
    (_errno.EBUSY, "mounted", "unmount it first"),
    (_errno.EBUSY, "is swap", "run swapoff first"),
    (_errno.EBUSY, "", "try again when nothing else uses it"),
    (_errno.ENOSYS, "without '/proc/", "mount it first, as root: 'mount -t proc proc /proc'"),
    (_errno.ENOSYS, "without '/sys/", "mount it first, as root: 'mount -t sysfs sysfs /sys'"),
    (_errno.EROFS, "set read-only", _SET_RW),
    (_errno.EACCES, "set read-only", _SET_RW),
    (_errno.EPERM, "set read-only", _SET_RW),
    (_errno.EROFS, "cannot open '/dev/", _SET_RW),
    (_errno.EROFS, "", "choose another place, or mount its filesystem with 'mount -o remount,rw'"),
    (_errno.EACCES, "", "run it as a user who may do that: see PERMISSIONS in stele(1)"),
    (_errno.EMFILE, "", "raise the limit with 'ulimit -n', or close what is not needed"),
    (_errno.ENOSPC, "temporary file", "free space there, or choose another directory"),
    (_errno.ENOSPC, "filesystem is full", "free space there, or choose another place"),
    (_errno.ENOSPC, ", the image needs ", LARGER),
    (_errno.ENOSPC, "; take a larger target", LARGER),
    (_errno.EMEDIUMTYPE, "a partition table", "'lsblk' lists the partitions of a disk"),
    (_errno.EMEDIUMTYPE, "no Stele image there", "build an image there first"),
    (_errno.EINPROGRESS, "by this process itself", "commit or close that Writer first"),
    (_errno.EINPROGRESS, "being written by", "wait until that has ended"),
    (_errno.EINPROGRESS, "may still be writing", "wait until that has ended, or build it again"),
    (_errno.EINPROGRESS, "unfinished image", "build or copy it again"),
    (_errno.EBADMSG, "bad mapping '", _MAP_AGAIN),
    (_errno.EUCLEAN, "bad mapping '", _MAP_AGAIN),
    (_errno.EUCLEAN, "that begins elsewhere", "name the device that the image was built on"),
    (_errno.EBADMSG, "superblocks of ", _LOST_FRONT),
    (_errno.EUCLEAN, "superblocks of ", _LOST_FRONT),
    (_errno.EBADMSG, "no sound catalog", _LOST_CATALOG),
    (_errno.EUCLEAN, "no sound catalog", _LOST_CATALOG),
    (_errno.EBADMSG, "class names of field", _NAMES),
    (_errno.EBADMSG, "", _DAMAGE),
    (_errno.EUCLEAN, "", _DAMAGE),
    (_errno.ENODATA, "its target only", "give it its full size again, or copy it anew"),
    (_errno.EINVAL, "it has several snapshots", "select one: TARGET@NAME"),
    (
        _errno.EPERM,
        "labels would mean something else",
        "give label_from as the image was built with it; force=True labels by another rule",
    ),
    (_errno.EOPNOTSUPP, "labels would mean something else", "say it with label_from"),
    (_errno.ENOTDIR, "cannot open '", "keys are no part of a target: ds[key], ds.keys(prefix)"),
    (_errno.ENOENT, "'~/", "shells alone know that '~': os.path.expanduser() replaces it"),
    (_errno.ENOENT, "://", "images are files, block devices, or rbd:POOL/IMAGE: copy it to one first"),
    (_errno.ENOENT, ": no directory '", "make that directory first"),
    (_errno.ESTALE, "since it was opened", "open a snapshot that is there"),
)


def _add_hint(error: Error) -> None:
    path = re.search("'(.*@.*)': no such file, device or mapping", str(error.strerror))
    if path and os.path.lexists(path[1]):
        error.add_note(f"for that file write '{path[1]}@': the last '@' begins a snapshot")
    for number, words, hint in _HINTS:
        if number == error.errno and words in str(error.strerror):
            if hint:
                error.add_note(hint)
            return


def make(
    errno: int,
    message: str,
    id: int | None = None,
    key: str | bytes | None = None,
    dataset: Dataset | None = None,
    target: str = "",
) -> Error:
    """The exception for an errno; called by the extension."""
    if id == _NO_ID:
        id = None
    if key is None and id is not None and dataset is not None:
        key = dataset._key(id)
    if isinstance(key, bytes):
        key = key.decode("utf-8", "surrogateescape")
    if errno == _errno.ENOENT and key is not None and id is None:
        of = "" if dataset is None or dataset._is_whole() else " of this subset"
        message = f"{short(key)}: no sample{of} has this key"
    error = _CLASSES.get(errno, Error)(errno, message or os.strerror(errno), id, key)
    if id is None or errno == _errno.ESTALE:
        _add_hint(error)
    elif errno in (_errno.EBADMSG, _errno.EUCLEAN):
        error.add_note(f"it is in '{target}': {_DAMAGE}")
    return error


def refuse_pickle(kind: type) -> tuple[Any, ...]:
    """__reduce__ of what lies in memory that a reader lends: TypeError, with what to do."""
    message = (
        f"{kind} cannot leave its process: make bytes, arrays or tensors of it, as in the "
        "transform of a dataset"
    )
    if _is_dropped():
        return _refuse, (message,)
    _refuse(message)


def _refuse(message: str) -> NoReturn:
    raise TypeError(message)


def _is_dropped() -> bool:
    """Is an error of pickling printed, while who waits for the object gets nothing, ever?

    That is how a multiprocessing.Queue sends, and so each worker of PyTorch's DataLoader; who
    waits has to get the error in the object's place. Those of concurrent.futures have another
    onerror, which hands it on.
    """
    queues = sys.modules.get("multiprocessing.queues")
    frame: types.FrameType | None = sys._getframe(1)
    while frame and queues:
        if frame.f_code is queues.Queue._feed.__code__:
            return frame.f_locals.get("onerror") is queues.Queue._on_queue_feeder_error
        frame = frame.f_back
    return False


for _class in (Error, *_CLASSES.values()):
    _class.__module__ = "stele"  # where users find them, as tracebacks show
