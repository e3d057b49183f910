# SPDX-License-Identifier: Apache-2.0
"""For PyTorch: datasets, a sampler, an iterable of batches.

    from stele.torch import ImageFolder                     # instead of torchvision's
    train = ImageFolder("/dev/nvme1n1@v1/train", transform)
    loader = DataLoader(train, 256, sampler=Sampler(train))

Fastest is what needs no worker processes: Batches, which reads in threads of its own, with
DataLoader(batch_size=None), or stele.Loader itself.
"""

from __future__ import annotations

import base64
import hashlib
import struct
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from typing import Any, Unpack, cast

import torch
import torch.distributed
import torch.utils.data
from torch.utils.data.dataloader import _BaseDataLoaderIter as _AnyIter
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter as _WorkersIter
from torch.utils.data.dataloader import _SingleProcessDataLoaderIter as _AloneIter

from . import _stele
from .dataset import Dataset as Samples
from .dataset import Target
from .dataset import open as open_target
from .errors import StaleError
from .folder import IMG_EXTENSIONS, DatasetFolder, ImageFolder, default_loader
from .loader import (
    _SHUFFLE,
    SAMPLER_MARK,
    Loader,
    Options,
    Shared,
    Shuffle,
    Sources,
    State,
    _choice,
    check_rank,
    check_sources,
    no_state,
)
from .options import function, known, number, positive

__all__ = [
    "IMG_EXTENSIONS",
    "Batches",
    "Dataset",
    "DatasetFolder",
    "ImageFolder",
    "Sampler",
    "default_loader",
    "tensors",
]

_STATE = struct.Struct("<4Q")  # what the order is of, seed, epoch, position
_MAGIC = int.from_bytes(SAMPLER_MARK, "little")  # and version
_CHUNK = 1024  # positions that are looked up at once
_WRAPPERS_MAX = 16  # samplers around each other


class Dataset(torch.utils.data.Dataset[Any]):
    """Map style: samples of a snapshot, a batch in one submission.

    Args:
        source: a target, or a stele.Dataset.
        transform: called with each stele.Sample, which cannot leave its process: what
            worker processes return must be made of it. Default: a dict of its fields, bytes
            as uint8 tensors.
    """

    def __init__(
        self,
        source: Target | Samples,
        transform: Callable[[_stele.Sample], Any] | None = None,
    ) -> None:
        function("transform", transform)
        self.data = source if isinstance(source, Samples) else open_target(source)
        self.transform = transform or _Fields(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: Any) -> Any:
        found = self.data[index]
        if isinstance(found, list):
            return [self.transform(sample) for sample in found]
        return self.transform(found)

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        if type(self).__getitem__ is not Dataset.__getitem__:
            return [self[index] for index in indices]  # what a subclass makes of them
        return [self.transform(sample) for sample in self.data[list(indices)]]


class _Fields:
    """A sample as what default_collate takes."""

    def __init__(self, data: Samples) -> None:
        self.names = list(data.fields)

    def __call__(self, sample: _stele.Sample) -> dict[str, Any]:
        fields: dict[str, Any] = {name: sample[name] for name in self.names}
        for name, value in fields.items():
            if isinstance(value, _stele.Tensor):
                fields[name] = torch.from_dlpack(value).clone()
            elif isinstance(value, memoryview):
                fields[name] = torch.tensor(bytearray(value), dtype=torch.uint8)
        return fields


def _is_initialized() -> bool:
    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())


def _ranks(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Of this job, unless they are given."""
    group = _is_initialized()
    if rank is None:
        if world_size is not None and world_size != 1 and not group:
            raise ValueError(
                f"world_size={world_size} needs a rank: torch.distributed, which would give it, "
                "is not initialized"
            )
        rank = torch.distributed.get_rank() if group else 0
    if world_size is None:
        world_size = torch.distributed.get_world_size() if group else 1
    check_rank(rank, world_size)
    return rank, world_size


class _Place:
    """Rank and world size: those that are given, else those of the job, which may begin later."""

    def __init__(self, rank: int | None, world_size: int | None) -> None:
        self._given = rank, world_size
        self._known = _ranks(rank, world_size)

    def now(self) -> tuple[int, int]:
        """What a process that has no group knows, a worker's, is what its parent knew."""
        if _is_initialized():
            self._known = _ranks(*self._given)
        return self._known


def _fingerprint(source: Sized, shape: tuple[int, ...]) -> int:
    """48 bits of which samples are ordered, and how."""
    sha = hashlib.sha256(repr((len(source), shape)).encode())
    data = getattr(source, "data", source)
    if isinstance(data, Samples):
        sha.update(data.info.digest.encode())
        part = data._ids()
        sha.update(repr(part).encode() if isinstance(part, tuple) else part)
    return int.from_bytes(sha.digest()[:6], "little")


class Sampler(torch.utils.data.DistributedSampler[int]):
    """A shuffled order of indices for any number of ranks, in O(1) memory.

    Each rank gets every world_size-th position. Its state is 32 bytes, the same on all
    ranks that have taken as many samples, and can be loaded with any other number of
    ranks and batch size: each sample of the epoch comes exactly once. Iterating begins the
    next epoch, or goes on where a state says.

    With a DataLoader, also with workers that take indices ahead, its state is that of what
    the DataLoader handed out; a batch for which next() raises is not counted, unless it hands
    out another behind it. An interrupt may come between PyTorch's count and the loop: a state
    for that is taken in the loop, behind each step. StatefulDataLoader saves and loads it; one
    with snapshot_every_n_steps passes over whole batches after that, of the size it has then.

    Lightning leaves it as it is, a DistributedSampler. What shares out the indices once
    more, as Accelerate does, needs all of them: rank=0, world_size=1; else the DataLoader
    raises ValueError.

    Args:
        data_source: what has a length; its state is refused by other data if it is a
            dataset of Stele.
        shuffle, seed, epoch, drop_last, block_size, block_count: as stele.Loader(); here
            drop_last drops what is not the same number for all ranks.
        rank, world_size: None: those of torch.distributed, once it is initialized.
    """

    def __init__(
        self,
        data_source: Sized,
        *,
        shuffle: Shuffle = True,
        seed: int = 0,
        epoch: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        drop_last: bool = False,
        block_size: int = 0,
        block_count: int = 0,
    ) -> None:
        if isinstance(data_source, (str, bytes)):
            raise TypeError("Sampler takes a dataset, not the name of a target")
        # Not that of the class above, which takes the whole order into memory.
        self._place = _Place(rank, world_size)
        self._settle()
        self.drop_last = drop_last
        self._count = len(data_source)
        if not self._count:
            raise ValueError("there are no samples to order")
        self._shape = (
            _choice("shuffle", shuffle, _SHUFFLE),
            number("block_size", block_size, 64),
            number("block_count", block_count),
        )
        self._head = _MAGIC | _fingerprint(data_source, self._shape) << 16
        self._seed, self._epoch = number("seed", seed, 64), number("epoch", epoch, 64)
        self._start = 0
        self._ended: int | None = None  # the epoch of a state that was loaded, if at its end
        self._iterator: _Indices | None = None
        self._again = False  # its epoch, and not the one after it

    def _settle(self) -> None:
        self.rank, self.world_size = self._place.now()
        self.num_replicas = self.world_size

    @property
    def epoch(self) -> int:
        """The epoch that is iterated over, or will be; setting it is set_epoch()."""
        return self._epoch

    @epoch.setter
    def epoch(self, epoch: int) -> None:
        self.set_epoch(epoch)

    def set_epoch(self, epoch: int) -> None:
        """Iterate over this epoch next; where a state of it was loaded, over its rest. Of an
        epoch that is iterated over, as Lightning says it, that goes on, and the state with it."""
        if number("epoch", epoch, 64) != self._epoch:
            self._epoch, self._start = epoch, self._count if epoch == self._ended else 0
            self._iterator = None
        elif self._iterator and self._iterator.used:
            self._again = True
            return
        self._ended = None

    def _share(self, count: int) -> int:
        """Of so many samples, those of this rank."""
        return (count if self.drop_last else count + self.world_size - 1) // self.world_size

    def __len__(self) -> int:
        """Samples of this rank in a whole epoch, as others count steps with."""
        self._settle()
        return self._share(self._count)

    @property
    def remaining(self) -> int:
        """Samples of this rank that iterating gives next: after a state the rest of its epoch."""
        self._settle()
        return self._share(self._count - self._begin()[1])

    def _begin(self) -> tuple[int, int, int | None]:
        """Where iterating begins: the epoch, the position in it, and what has ended."""
        # Iterators are also made and not used, by StatefulDataLoader.
        # After a state at an end it also takes indices that it does not use.
        if self._iterator and self._iterator.used:
            if self._again:
                return self._epoch, 0, None
            if self._ended is None or self._iterator.is_at_end():
                return self._epoch + 1, 0, None
        return self._epoch, self._start, self._ended

    def __iter__(self) -> _Indices:
        self._settle()
        self._epoch, self._start, self._ended = self._begin()
        self._again = False
        self._iterator = _Indices(self)
        return self._iterator

    def state_dict(self, consumed: int | None = None) -> State:
        """After as many samples of this rank since iter(); None: those handed out. More than
        the epoch has are its end, as where the last batch has fewer.

        Raises:
            ValueError: how many were is not known here, as with a batch sampler other than
                torch's, a DataLoader(in_order=False), or the workers of a StatefulDataLoader,
                whose own state_dict() has it.
        """
        if consumed is None:
            consumed = self._iterator.consumed(_is_stateful()) if self._iterator else 0
        self._settle()
        world = self._iterator.step if self._iterator else self.world_size
        taken = number("consumed", consumed, 64) * world
        position = min(self._start + taken, self._count)
        raw = _STATE.pack(self._head, self._seed, self._epoch, position)
        return {"stele": 1, "state": base64.b64encode(raw).decode("ascii")}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on there, with the state's seed and epoch, at any world_size and batch size.

        From the end of an epoch it goes on with the next one, unless set_epoch() names the
        one that has ended, of which there is no rest.

        Raises:
            stele.StaleError: a state of other samples, or of another shuffle.
            ValueError: no state.
        """
        try:
            raw = base64.b64decode(cast(str, state["state"]), validate=True)
            head, seed, epoch, position = _STATE.unpack(raw)
        except (KeyError, TypeError, ValueError, struct.error) as error:
            raise no_state("sampler", state) from error
        if head & 0xFFFF != _MAGIC or state["stele"] != 1:
            raise no_state("sampler", state)
        if head != self._head or position > self._count:
            raise StaleError(
                116, "the state belongs to a sampler of other samples, or of another shuffle"
            )
        self._seed, self._epoch, self._start = seed, epoch, position
        self._ended = self._iterator = None
        self._again = False
        if not self.remaining:
            self._epoch, self._start, self._ended = epoch + 1, 0, epoch


class _Alone:
    """What a DataLoader without workers handed out of the indices that it takes.

    It takes those of a batch as it makes it, which may fail, or be interrupted: then that
    was not handed out. `values` are the DataLoader's own, which change.
    """

    def __init__(self, values: Mapping[str, Any], size: int, drop_last: bool) -> None:
        self._values, self._size, self._drop_last = values, size, drop_last
        self._yielded: int = values["_num_yielded"]
        self._good = 0  # samples up to the last batch that was

    def look(self, taken: int) -> None:
        """Before an index is taken, behind so many."""
        if self._values["_num_yielded"] != self._yielded:
            self._yielded, self._good = self._values["_num_yielded"], taken

    def handed_out(self, taken: int, over: bool) -> int:
        """Samples, of so many that were taken; `over`: and there are no more."""
        dropped = not self._size or (self._drop_last and taken - self._good < self._size)
        if self._values["_num_yielded"] != self._yielded or (over and dropped):
            return taken
        return self._good


class _Ahead:
    """The same of one with workers, which are sent the indices of batches ahead.

    It receives batch by batch, and sends the next before it hands out, or raises, what it
    received; so an index is taken between these, until there are no more. What it received
    and did not hand out has failed, or was interrupted.
    """

    def __init__(self, values: Mapping[str, Any], size: int, drop_last: bool) -> None:
        self._values, self._size, self._drop_last = values, size, drop_last
        self._seen = self._failed = 0  # batches before that which is being received; of these
        self._good = 0  # batches up to the last one before it that was handed out

    def look(self, taken: int) -> None:
        seen = max(self._values["_rcvd_idx"] - 1, 0)
        if seen == self._seen:
            return
        failed = seen - self._values["_num_yielded"]
        if failed == self._failed:
            self._good = seen
        self._seen, self._failed = seen, failed

    def _batches(self) -> int:
        """Up to the last one that was handed out."""
        received: int = self._values["_rcvd_idx"]
        failed = received - self._values["_num_yielded"] - self._failed
        if not failed:
            return received
        # Where no more indices are taken, the last ones are taken for failed: none is skipped.
        return self._good if failed >= received - self._seen else received - failed

    def handed_out(self, taken: int, over: bool) -> int:
        if not self._size and not self._values["_task_info"]:
            return taken
        if not self._size:
            raise ValueError(
                "DataLoader's workers take indices ahead of what it hands out: say how many "
                "samples were, in state_dict(consumed); a StatefulDataLoader's own state_dict() "
                "has it"
            )
        batches = self._batches()
        if over and self._drop_last and batches == taken // self._size:
            return taken  # with those of an incomplete batch that was dropped
        return min(batches * self._size, taken)


def _is_stateful() -> bool:
    """Is it a StatefulDataLoader who asks for a state?"""
    frame: types.FrameType | None = sys._getframe(2)
    while frame and not frame.f_globals.get("__name__", "").startswith("torchdata.stateful"):
        frame = frame.f_back
    return frame is not None


def _refuse_sharing(sampler: Any) -> None:
    """ValueError: between a DataLoader and a Sampler of one rank's share is one that shares out
    again: of each rank's share its own part would be left, and the rest be lost."""
    for _ in range(_WRAPPERS_MAX):
        if sampler is None or isinstance(sampler, Sampler):
            return
        for name in ("num_processes", "num_replicas"):  # of Accelerate; of PyTorch and others
            count = getattr(sampler, name, 1)
            if isinstance(count, int) and count > 1:
                raise ValueError(
                    f"{type(sampler).__name__} shares out what is one rank's share already: "
                    "it needs Sampler(..., rank=0, world_size=1)"
                )
        above = getattr(sampler, "batch_sampler", None)
        sampler = getattr(sampler, "sampler", None) if above is None else above


def _watch(indices: _Indices) -> _Alone | _Ahead | None:
    """Of the DataLoader that is taking these indices, if there is one.

    It does not say what it handed out. StatefulDataLoader, which is another class, asks for
    the state as it takes a batch's indices, and keeps that until it hands out the batch; of what
    its workers took ahead only it knows that.
    Only its values are kept, which outlive it, not itself and its workers.
    """
    if torch.utils.data.get_worker_info() is not None:
        return None  # a worker's stack is a copy of that of the DataLoader which forked it
    frame: types.FrameType | None = sys._getframe(1)
    while frame and not (
        frame.f_code.co_name == "_next_index"
        and isinstance(frame.f_locals.get("self"), _AnyIter)
    ):
        frame = frame.f_back
    if not frame:
        return None
    taker = frame.f_locals["self"]
    if indices.step > 1:
        _refuse_sharing(getattr(taker, "_index_sampler", None))
    if not isinstance(taker, (_AloneIter, _WorkersIter)):
        return _Ahead(vars(taker), 0, False) if taker._num_workers else None
    sampler, size, drop_last = getattr(taker, "_index_sampler", None), 1, False
    if type(sampler) is torch.utils.data.BatchSampler:
        sampler, size, drop_last = sampler.sampler, sampler.batch_size, sampler.drop_last
    in_order = getattr(taker, "_in_order", True)
    sure = in_order and getattr(sampler, "_iterator", None) is indices
    kind = _Ahead if isinstance(taker, _WorkersIter) else _Alone
    return kind(vars(taker), size if sure else 0, drop_last)


class _Indices(Iterator[int]):
    """One rank's way through one epoch, looked up in pieces."""

    def __init__(self, sampler: Sampler) -> None:
        kind, size, count = sampler._shape
        self._order = _stele.Shuffle(
            sampler._count, sampler._seed, sampler._epoch, kind, size, count
        )
        self._first = sampler._start + sampler.rank
        self.step = sampler.world_size
        self._length = sampler._share(sampler._count - sampler._start)
        self._piece: list[int] = []
        self._watch: _Alone | _Ahead | None = None
        self._taken = 0
        self._over = False  # the end was taken
        self.used = False  # something was taken, or the end was

    def consumed(self, taken: bool) -> int:
        """Samples that were handed out to whoever trains; or that were taken of it."""
        if taken or not self._watch:
            return self._taken
        return self._watch.handed_out(self._taken, self._over)

    def is_at_end(self) -> bool:
        return self._taken == self._length

    def __next__(self) -> int:
        place = self._taken % _CHUNK
        if not self.used:
            self._watch = _watch(self)
        self.used = True
        if self._watch:
            self._watch.look(self._taken)
        if self.is_at_end():
            self._over = True
            raise StopIteration
        if not place:
            count = min(_CHUNK, self._length - self._taken)
            first = self._first + self._taken * self.step
            self._piece = memoryview(self._order.take(first, self.step, count)).cast("Q").tolist()
        index = self._piece[place]
        self._taken += 1
        return index


def tensors(batch: _stele.Batch, pin: bool | None = None) -> dict[str, torch.Tensor]:
    """A batch as tensors, its bytes in one piece: one copy.

    Args:
        pin: into pinned memory; None: where CUDA is present.

    Returns:
        "data": uint8, all bytes; "offsets": int64 of shape (len(batch) + 1,): sample i is
        data[offsets[i]:offsets[i + 1]]; "ids": int64; "padded": int64 without dimensions, how
        many of the last samples only fill the step, which a validation leaves out.
    """
    if pin is None:
        pin = torch.cuda.is_available()
    offsets = torch.frombuffer(bytearray(batch.offsets), dtype=torch.int64)
    data = torch.empty(int(offsets[-1]), dtype=torch.uint8, pin_memory=pin)
    if len(data):
        batch.readinto(memoryview(data.numpy()))
    ids = torch.frombuffer(bytearray(batch.ids), dtype=torch.int64)
    return {"data": data, "offsets": offsets, "ids": ids, "padded": torch.tensor(batch.padded)}


class Batches(torch.utils.data.IterableDataset[Any]):
    """A stele.Loader for DataLoader(batch_size=None); best with num_workers=0.

    Worker processes read the rank's batches in turn: they are the same, in the same order, however
    many there are. A state of theirs can be loaded by other ranks, or with another batch_size,
    only if all workers have handed out as many batches, which is not checked; it is saved by
    StatefulDataLoader alone. Without persistent workers, say
    set_epoch() before each epoch.

    Args:
        sources: as stele.Loader().
        transform: called with each stele.Batch, which cannot leave its process.
        rank, world_size: None: those of torch.distributed, once it is initialized.
        options: of stele.Loader().
    """

    def __init__(
        self,
        sources: Sources,
        *,
        transform: Callable[[_stele.Batch], Any] = tensors,
        **options: Unpack[Options],
    ) -> None:
        known(options, Options)
        positive("batch_size", options.get("batch_size", 1))
        check_sources(sources)
        function("transform", transform)
        self._sources, self._transform, self._options = sources, transform, options
        self._place = _Place(options.get("rank"), options.get("world_size"))
        self._state: Mapping[str, object] | None = None
        self._epoch: int | None = None
        self._opened: tuple[object, Loader[Any]] | None = None
        self._elsewhere = torch.zeros(1, dtype=torch.uint8)  # whether workers read
        self._elsewhere.share_memory_()
        self._said = torch.zeros(2, dtype=torch.int64)  # to workers that go on: how often, epoch
        self._said.share_memory_()
        self._heard = 0

    def _loader(self, begins: bool = False) -> Loader[Any]:
        """The one of this process, where the state that was loaded says, or set_epoch(); of an
        epoch that it is in the middle of, that says what comes when iterating begins again."""
        worker = cast(Any, torch.utils.data.get_worker_info())
        share, count = (worker.id, worker.num_workers) if worker else (0, 1)
        who = worker is not None, share, count, *self._place.now()
        if self._opened is None or self._opened[0] != who:
            options = Shared(**self._options, worker=share, workers=count)
            options["rank"], options["world_size"] = self._place.now()
            self._opened = (who, Loader(self._sources, transform=self._transform, **options))
        loader = self._opened[1]
        if self._state is not None:
            loader.load_state_dict(self._state)
        runs = loader.epoch == self._epoch and loader.remaining < len(loader)
        if self._epoch is not None and (begins or not runs):
            loader.set_epoch(self._epoch)
        return loader

    def __iter__(self) -> Iterator[Any]:
        self._elsewhere[0] = torch.utils.data.get_worker_info() is not None
        if self._heard != int(self._said[0]):
            self._heard, self._epoch = int(self._said[0]), int(self._said[1]) % 2**64
        loader = self._loader(begins=True)
        self._state = self._epoch = None  # not before: workers may be the ones who read
        return iter(loader)

    def __len__(self) -> int:
        whole = len(self._sources) if isinstance(self._sources, Samples) else None
        if whole is None or self._options.get("epoch_size") or self._options.get("where"):
            return len(self._loader())
        step = self._place.now()[1] * self._options.get("batch_size", 1)
        return whole // step if self._options.get("drop_last") else -(-whole // step)

    def set_epoch(self, epoch: int) -> None:
        """Iterate over this epoch next; where a state of it was loaded, over its rest."""
        self._epoch = number("epoch", epoch, 64)
        self._elsewhere[0] = False
        self._said[1] = self._epoch - 2**64 * (self._epoch >= 2**63)  # its bits
        self._said[0] += 1
        self._heard = int(self._said[0])

    def state_dict(self) -> State:
        """As stele.Loader's: what DataLoader took, even if its own collate_fn fails then.

        Raises:
            ValueError: worker processes read, and this is not one of them.
        """
        if self._elsewhere[0] and torch.utils.data.get_worker_info() is None:
            raise ValueError(
                "worker processes read these batches, and how far they are is not known here: "
                "StatefulDataLoader saves it; with num_workers=0 it is known"
            )
        return self._loader().state_dict()

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on there, in this process or in workers that start later."""
        if not isinstance(state, Mapping) or "state" not in state:
            raise no_state("loader", state)
        self._state = state
        if torch.utils.data.get_worker_info() is None:
            self._epoch = None  # said before; a worker does not know which came last
        self._elsewhere[0] = False

    def __getstate__(self) -> dict[str, Any]:
        self._place.now()  # a worker that is spawned has no group
        return {**self.__dict__, "_opened": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for shared in (self._elsewhere, self._said):
            shared.share_memory_()  # a copy's is its own; a worker's is that of its parent
