# SPDX-License-Identifier: Apache-2.0
"""Writer: images of what a program makes, sample by sample."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterable, Mapping
from errno import EEXIST, ENOSPC
from time import monotonic
from types import TracebackType
from typing import Any, Unpack, cast
from uuid import UUID

from . import _stele
from .dataset import Dataset, Field, Target, choose, split
from .errors import Error, ExistsError, FormatError, NotFound, short
from .options import Layout, encode, flag, known, text_or_none
from .progress import AGAIN, FORCE, UNFINISHED, WHOLE, Listener, Progress, Watch, once
from .reports import BuildReport, Snapshot
from .schema import Schema, columns, fields_of, guess

Key = str | bytes
Pairs = Iterable[tuple[Key, Any]] | Iterable[Mapping[str, Any]] | Mapping[str, Any]

_PUT_FLAGS = {"update": 1, "force": 2, "keep": 4, "delete_missing": 8}


class Writer(_stele.Writer):
    """Writes samples to a new image, or as a new snapshot of one that is there.

        with stele.Writer("/dev/vdb@v1", {"image": bytes, "label": ["cat", "dog"]}) as w:
            w.put("a.jpg", {"image": jpeg, "label": "cat"})
            w.extend((key, values) for key, values in more)

    All of it is published at once when the block ends; after an exception nothing is, an
    image is as it was, and a new file is removed, unless a note of it says that it came too late
    (Ctrl-C while commit() was about to return). Samples wait in memory, then in a
    temporary file, until then. Any number of threads may put. Without a with statement, call
    commit(): what nobody commits is lost, with a RuntimeWarning unless close() gave it up.

    Args:
        target: PATH[@SNAPSHOT]. A new image begins with 'v1' unless named; an image that is
            there needs a name that it does not have.
        schema: what fields samples have, by name: bytes, str, int, float, a list of class
            names (an int, which put() also takes by name, and -1 for none of them), or
            stele.tensor(dtype, shape); also Dataset.fields. Those of an image that is there, in
            any order. None: the image's, or else of the first sample: arrays may then differ in
            their first dimension.
        base: the snapshot of an image that is there from which the new one starts; None: the
            newest.
        append: True: the image is there; False: it is not; None: either.
        update: a sample whose key is there already takes its place, instead of being an
            error.
        keep: such a sample is passed over: the one that is there stays, unless update is given,
            too.
        delete_missing: leave out what is there and was not put, unless nothing was. Of more than
            half of all samples it takes force, and append=True.
        always: False: where nothing has changed, no snapshot is made, and commit() returns the
            one that is there.
        label, uuid, object_size: of a new image alone; see stele.build().
        posix: a new image can be mounted, too: it is a read-only EROFS, with a granule of 512 or
            4096.
        file_size: of a file or RBD image, bytes. A new one gets no larger; one that is there
            first grows to it, and then as far as it has to. 0: to fit.
        note: of the snapshot.
        force: a new image, whatever the target holds, if at least one sample was put. Of a file
            that is lost when the new image is whole; of a device when commit() has found that all
            can be written, and begins to. With append=True: see delete_missing.
        dry_run: check everything, write nothing but the temporary file; digests are zero.
        sources: paths of files that samples are read from: a target that is one of them, or
            shares bytes with one, as a loop device does with its file, is refused.
        directory: of the temporary file; None: $TMPDIR, or /var/tmp.
        progress: see stele.Progress; None: a line on stderr if that is a terminal.
        layout: memory_size, granule, order, jobs, boundary; see stele.build().

    Raises:
        stele.ExistsError: the target holds something else, or that snapshot.
        stele.Error: and its other kinds.
    """

    _path: str
    _snapshot: str
    _backend: str | None
    _append: bool | None
    _always: bool
    _began: float
    _made: BuildReport | None = None
    _note: str | None
    _fields: dict[str, Field] | None
    _put_options: dict[str, Any]
    _listener: Listener
    _guessing: threading.Lock
    _samples: int = 0
    _bytes: int
    _total: int
    _deleted: bool = False
    _dry_run: bool
    _delete_missing: bool
    _over: bool

    @once()
    def __new__(
        cls,
        target: Target,
        schema: Schema | None = None,
        *,
        append: bool | None = None,
        base: str | None = None,
        update: bool = False,
        keep: bool = False,
        delete_missing: bool = False,
        always: bool = True,
        label: str | None = None,
        uuid: UUID | bytes | None = None,
        file_size: int = 0,
        object_size: int = 0,
        posix: bool = False,
        note: str | None = None,
        time: int = 0,
        force: bool = False,
        dry_run: bool = False,
        sources: Iterable[Target] | None = None,
        backend: str | None = None,
        directory: Target | None = None,
        progress: Watch = None,
        **layout: Unpack[Layout],
    ) -> Writer:
        if append is not None:
            append = flag("append", append)
        update, keep, always = flag("update", update), flag("keep", keep), flag("always", always)
        force, delete_missing = flag("force", force), flag("delete_missing", delete_missing)
        target = os.fsdecode(target)
        path, snapshot = split(target)
        if not snapshot and path != target:
            raise ValueError(f"'{target}' has no name after the '@'")
        if append and force and not delete_missing:
            raise ValueError("force goes with delete_missing, or with a new image")
        if force and not append and (update or keep or delete_missing):
            raise ValueError(
                "force makes a new image: with update, keep or delete_missing it needs append=True"
            )
        over = force and not append
        names = None if over else _names(os.fsencode(target), backend, append)
        newest = None if names is None else names[-1] if names else ""
        if newest is None:
            snapshot = snapshot or "v1"
        elif not snapshot:
            unnamed = ValueError(f"'{path}' is an image: name the new snapshot, PATH@NAME")
            if not append:
                unnamed.add_note(FORCE)
            raise unnamed
        elif names and snapshot in names:
            taken = ExistsError(EEXIST, f"'{path}' has a snapshot '{snapshot}' already")
            taken.add_note("choose another name")
            raise taken
        known(layout, Layout)
        text_or_none("note", note)
        new = newest is None
        start = text_or_none("base", base)
        if start is not None and not newest:
            raise ValueError("base is a snapshot of an image that is there, and there is none")
        of_new = {"label": label, "uuid": uuid, "object_size": object_size, "posix": posix}
        for option, given in of_new.items():
            if given and not new:
                raise ValueError(f"{option} is of a new image, and '{path}' is one that is there")
        options = encode(backend=backend, time=time, sources=sources, dry_run=dry_run)
        if new:
            options |= encode(file_size=file_size, dry_run=dry_run, force=force, **of_new)
        else:
            options |= encode(size=file_size)
        listener = Listener(progress)
        fields = fields_of(schema) if schema is not None else None
        flags = {"update": update, "keep": keep, "delete_missing": delete_missing, "force": force}
        put_options = {
            **encode(**layout),
            "directory": None if directory is None else os.fsencode(directory),
            "flags": sum(_PUT_FLAGS[name] for name, given in flags.items() if given),
        }
        name = os.fsencode(choose(target, snapshot))  # which is checked at once
        try:
            self: Writer = super().__new__(cls, name, new, options, listener.tell)
        except Error as error:
            listener.explain(error, new)
            raise
        self._path, self._snapshot, self._note = path, snapshot, note
        self._backend, self._always, self._began = backend, always, monotonic()
        self._append = append
        self._dry_run, self._delete_missing, self._over = dry_run, delete_missing, over
        self._put_options, self._listener = put_options, listener
        self._guessing = threading.Lock()
        self._samples = self._bytes = self._total = 0
        self._fields = None
        try:
            if start is not None:
                self._base(start)
            if newest and (fields is None or len(fields) > 1):
                with Dataset(choose(target, base or newest), backend=backend) as then:
                    fields = then.fields if fields is None else _ordered(fields, then.fields)
            if fields is not None:
                self._take(fields)
        except BaseException as error:
            self.close()
            self._explain(error)
            raise
        return self

    def _take(self, fields: dict[str, Field]) -> None:
        self._schema(columns(fields), self._put_options)
        self._fields = fields

    @property
    def fields(self) -> dict[str, Field] | None:
        """Fields by name; None: not known before the first sample."""
        return self._fields

    @property
    def report(self) -> BuildReport | None:
        """What commit() has written, and what that changes; the size of all the image is not
        counted. None: before, and where delete() was called: stele.diff() tells the changes."""
        return self._made

    # ---- samples

    def put(self, key: Key, sample: Any) -> None:
        """Add one sample; it is copied.

        Args:
            key: its name: str or bytes, unique in the snapshot.
            sample: a value for each field, by name; a stele.Sample, of which the fields of the
                schema are taken, and classes by their names, if the schema has names, else as
                their numbers; or, where there is one field, its value. Bytes are anything with a
                buffer, tensors NumPy arrays and the like.

        Raises:
            TypeError, ValueError: it does not fit the schema; others may follow.
            stele.Error: such a key is not possible, or no space is left.
        """
        values: Any = sample
        if type(sample) is not dict and not isinstance(sample, (Mapping, _stele.Sample)):
            values = {next(iter(self._fields or ("data",))): sample}
        fields = self._fields
        if fields is None:
            fields = self._guess(key, values)
        if not isinstance(values, _stele.Sample) and len(values) > len(fields):
            names = ", ".join(repr(name) for name in values if name not in fields)
            raise ValueError(f"sample {short(key)}: the schema has no field {names}")
        try:
            size = self._put(key, values)
        except Error as error:  # which names the sample
            self._explain(error)  # what was logged is of this one, and of none that follows
            raise
        except (TypeError, ValueError, OverflowError) as error:
            raise _of(key, error) from error.__cause__
        self._samples += 1
        self._bytes += size
        if self._listener.due():
            self._listener.show(
                Progress("put", self._samples, self._total, self._bytes, 0)
            )

    def _guess(self, key: Key, sample: Any) -> dict[str, Field]:
        with self._guessing:
            if self._fields is None:
                try:
                    if isinstance(sample, _stele.Sample):
                        raise TypeError("a Sample has no schema: give that of its dataset")
                    self._take(guess(sample))
                except (TypeError, ValueError) as error:
                    raise _of(key, error) from error.__cause__
            assert self._fields is not None
            return self._fields

    def extend(self, samples: Pairs) -> None:
        """Add many: pairs of key and sample, or dicts that have the key as '__key__'.

        A Mapping of keys to samples is taken by its items().
        """
        pairs: Any = samples
        if isinstance(samples, Mapping):
            pairs = pairs.items()
        elif not hasattr(pairs, "__iter__"):
            pairs = [pairs]
        self._total = self._samples + len(pairs) if hasattr(pairs, "__len__") else 0
        for pair in pairs:
            if isinstance(pair, (tuple, list)) and len(cast(list[Any], pair)) == 2:
                self.put(*cast(list[Any], pair))
                continue
            if not isinstance(pair, Mapping):
                raise TypeError(
                    f"extend() takes pairs (key, sample), or dicts with '__key__', not {pair!r:.200}"
                )
            sample: dict[str, Any] = {**pair}
            if "__key__" not in sample:
                raise ValueError(f"a sample without '__key__': {', '.join(sample)}")
            self.put(sample.pop("__key__"), sample)

    def delete(self, key: Key) -> None:
        """Leave out a sample that is there, or was put. stele.NotFound.

        Put again, it is replaced, without update. All that was put before the call counts as
        there from then on. Not of a Writer that has delete_missing.
        """
        if self._delete_missing:
            raise ValueError("delete_missing leaves out what is not put: delete() does not go with it")
        self._delete(key)
        self._deleted = True

    # ---- the end

    def commit(self) -> Snapshot:
        """Publish what was put, durably, and close; the end of a with statement does it.

        Of a dry run: see that it could be published.

        Raises:
            stele.ExistsError: a key was put twice, or is there and update is not given; or
                the snapshot's name is taken.
            ValueError: nothing was put, and force was given for a new image, or no schema.
        """
        if self._over and not self._samples:
            self.close()
            empty = ValueError("nothing was put: by nothing force replaces no image")
            empty.add_note("stele.build(DIRECTORY, TARGET, force=True, allow_empty=True) does")
            raise empty
        if self._fields is None and self._is_open():
            self.close()
            raise ValueError("nothing was put: a new image without samples takes a schema")
        was_open = self._is_open()
        try:
            made, report = self._commit(
                os.fsencode(self._snapshot),
                text_or_none("note", self._note),
                self._always,
                self._listener.tell,
            )
            self.close()
        except BaseException as error:
            if was_open:  # else it was another call that did something
                self._late(error)
            self.close()
            self._explain(error)
            raise
        finally:
            self._listener.close()
        return self._end(Snapshot(**made, note=self._note or ""), report)

    def _end(self, made: Snapshot, report: dict[str, Any]) -> Snapshot:
        if not report["created"]:
            made = self._find(report["base"])
        report |= {
            "snapshot": made.name if report["created"] else "",
            "digest": made.digest,
            "created": bool(report["created"]),
            "total_seconds": monotonic() - self._began,
        }
        if not self._deleted:
            self._made = BuildReport(**report, skipped=())
        return made

    def _find(self, name: str) -> Snapshot:
        """A snapshot that is there."""
        found = _stele.image(os.fsencode(self._path), self._backend)["snapshots"]
        return next(Snapshot(**s) for s in found if s["name"] == name and not s["deleted_time"])

    def __enter__(self) -> Writer:
        if not self._is_open():
            raise ValueError("the writer is closed")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None and self._is_open():  # else it was committed or given up
            self.commit()
        self.close()
        self._listener.close()
        if value is not None:
            self._explain(value)

    def _explain(self, error: BaseException) -> None:
        """Add what was said of the end, such as that an older image is lost."""
        self._tell(self._listener.tell)
        self._listener.explain(error)
        if "has other fields than the snapshot: " in str(error):
            error.add_note("without a schema, a Writer takes the fields of the snapshot")
        notes = getattr(error, "__notes__", ())
        unfinished = any(note.endswith(UNFINISHED) for note in notes)
        if AGAIN not in notes and unfinished and getattr(error, "errno", 0) != ENOSPC:
            error.add_note(AGAIN)
        whole = WHOLE if self._append else f"{WHOLE}, with append=True"
        if whole not in notes and "has to be forced" in str(error):
            error.add_note(whole)

    def __del__(self) -> None:
        lost = (self._samples or self._deleted) and not self._dry_run and self._is_open()
        self.close()  # now: who records the warning keeps its source
        if lost:
            some = "1 sample" if self._samples == 1 else f"{self._samples} samples"
            warnings.warn(
                f"a Writer of '{self._path}@{self._snapshot}' was never committed: what was put "
                f"is lost, {some}; use it in a with statement, or call "
                "commit(), or close() to give up",
                RuntimeWarning,
                stacklevel=2,
                source=self,
            )


def _names(target: bytes, backend: str | None, append: bool | None) -> list[str] | None:
    """Snapshots of an image, oldest first; None: there is to be a new one."""
    if append is False:
        return None
    try:
        snapshots = _stele.image(target, backend)["snapshots"]
    except (NotFound, FormatError):
        if append:
            raise
        return None
    return [snapshot["name"] for snapshot in snapshots if not snapshot["deleted_time"]]


def _ordered(fields: dict[str, Field], there: dict[str, Field]) -> dict[str, Field]:
    """In the order of the image, which counts there; put() takes values by name."""
    return {name: fields[name] for name in there if name in fields} | fields


def _of(key: Key, error: Exception) -> Exception:
    """The same error, of a sample."""
    kind = TypeError if isinstance(error, TypeError) else ValueError
    made = kind(f"sample {short(key)}: {error}")
    if "bfloat16" in str(error.__cause__).lower():  # which NumPy does not have
        made.add_note("x.view(torch.uint16) are its bits, which a field of bfloat16 takes")
    return made
