# SPDX-License-Identifier: Apache-2.0
"""Loader: batches in a random order that any number of ranks can resume."""

from __future__ import annotations

import base64
import errno
import math
import os
import struct
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import (
    Any,
    Generic,
    Literal,
    NoReturn,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    overload,
)

from . import _stele
from .dataset import Dataset, Verify, verify_number
from .errors import StaleError
from .options import function, number, positive

T = TypeVar("T")
Shuffle = bool | Literal["windowed"]
OnError = Literal["raise", "skip", "substitute"]
Sources = Dataset | Sequence[Dataset] | Sequence[tuple[Dataset, float]]

_SHUFFLE: dict[object, int] = {True: 0, "windowed": 1, False: 2}
_BOOL: dict[object, int] = {True: 1, False: 0}
_ON_ERROR: dict[object, int] = {"raise": 0, "skip": 1, "substitute": 2}
_STATE = struct.Struct("<4Q")  # what is loaded and how, seed, epoch, position
SAMPLER_MARK = b"T\x01"  # what the state of a stele.torch.Sampler begins with


class State(TypedDict):
    """JSON-safe; the same on all ranks that have taken the same number of batches, and, of the last
    one, have seen the end of the epoch."""

    stele: int
    state: str


class Options(TypedDict, total=False):
    """Of a Loader: see there."""

    batch_size: int
    shuffle: Shuffle
    seed: int
    epoch: int
    rank: int
    world_size: int
    drop_last: bool
    on_error: OnError
    prefetch_bytes: int
    epoch_size: int
    depth: int
    verify: Verify | None
    as_completed: bool
    block_size: int
    block_count: int
    where: str | None


class Shared(Options, total=False):
    """Of a Loader that has a part of the batches of its rank."""

    worker: int
    workers: int


def _choice(name: str, value: object, choices: dict[object, int]) -> int:
    try:
        return choices[value]
    except (KeyError, TypeError):
        wanted = ", ".join(map(repr, choices))
        raise ValueError(f"{name} is one of {wanted}, not {value!r}") from None


def no_state(kind: str, state: object) -> ValueError:
    """What is given is not the state of one of that kind."""
    more = ""
    if isinstance(state, (str, bytes, bytearray)):
        more = ", but text: json.loads() makes a state of what json.dumps() wrote"
    return ValueError(f"this is not the state of a {kind}{more}")


def check_rank(rank: int, world_size: int, what: str = "rank", of: str = "world_size") -> None:
    if number(what, rank) >= number(of, world_size):
        raise ValueError(f"{what} {rank} of {world_size}: there is none")


def check_sources(sources: Sources) -> None:
    """TypeError: a Loader does not take that."""
    if isinstance(sources, (str, bytes, os.PathLike)):
        raise TypeError(f"a Loader takes Datasets: stele.open({sources!r})")
    if not isinstance(sources, Dataset) and not hasattr(sources, "__iter__"):
        raise TypeError(f"a Loader takes a Dataset, or a list of them, not {sources!r}")


def _pairs(sources: Sources) -> tuple[tuple[Dataset, float], ...]:
    check_sources(sources)
    if isinstance(sources, Dataset):
        return ((sources, 0.0),)
    pairs = tuple(map(_pair, sources))
    if len({weight > 0 for _, weight in pairs}) > 1:
        raise ValueError("all sources have a weight, (Dataset, weight), or none has one")
    return pairs


def _pair(source: Any) -> tuple[Dataset, float]:
    if not isinstance(source, tuple):
        return source, 0.0
    try:
        dataset, weight = cast(tuple[Dataset, float], source)
        weight = float(weight)
    except (TypeError, ValueError):
        raise TypeError(f"a source is a Dataset, or (Dataset, weight), not {source!r}") from None
    if not 0 < weight < math.inf:
        raise ValueError(f"a weight must be positive and finite, not {weight}")
    return dataset, weight


def _matching(dataset: Dataset, where: str | None) -> Dataset:
    if where is None or not hasattr(dataset, "_matching"):  # which the extension refuses
        return dataset
    matching: Dataset = dataset._select(dataset._matching(where))
    if not len(matching):
        raise ValueError(f"no sample of '{dataset.info.target}' matches {where!r}")
    return matching


class Loader(_stele.Loader, Generic[T]):
    """Reads batches ahead, in threads of its own; iterates over one epoch at a time.

        loader = stele.Loader(ds, batch_size=256, seed=1, rank=rank, world_size=world)
        for epoch in range(90):
            for batch in loader:
                train(batch)

    The order is a function of seed and epoch alone, with O(1) memory. A step covers
    world_size * batch_size positions of it; so a state taken by 8 ranks can be loaded by
    6, at any batch size, and each sample of the epoch comes exactly once, before those that
    fill the last step (batch.padded).

    Iterating begins the next epoch, or goes on where a state that was just loaded says. A
    Loader has one place, and serves the iteration that began last: an earlier one, going on
    then, gets a RuntimeError. PyTorch's DataLoader makes a new independent iterator each
    time; here ``zip(loader, loader)`` and nested loops take a Loader for each of them. An
    exception ends no iterator: its next() goes on behind the batch that failed. Reading
    ahead ends with close(), or with a with statement. A child after fork() opens its own.
    It takes the place of PyTorch's DataLoader; where that has to stay, give it
    stele.torch.Batches.

    Any number of threads may share an iterator, ``batches = iter(loader)``: each batch comes
    to one of them, the transform runs in all of them at once, and each sees the end. Take the
    state while none is in next(): it counts all batches up to the newest that was returned,
    also one that another thread still transforms.

    Args:
        sources: a Dataset, or a mixture: a list of Datasets (an epoch is all samples of
            all), or one of (Dataset, weight) alone; opened without mmap, as a Loader reads past the
            page cache. A class is a number to all of them: where it has other names in another
            source, a warning is logged.
        batch_size: samples of each batch of this rank.
        shuffle: True: one uniform permutation of all; 'windowed': blocks of neighbours,
            for devices with slow random access; False: by id.
        seed: of the order; the same on all ranks.
        epoch: the first.
        rank, world_size: this rank's share: every world_size-th sample.
        drop_last: drop what does not fill a whole step, instead of padding it with
            samples from the start of the epoch (batch.padded).
        transform: called with each Batch in the thread that iterates; what it returns is
            what the loop gets.
        on_error: 'raise'; 'skip': the batch is shorter, and a warning logged with the id of
            the sample; 'substitute': another sample.
        prefetch_bytes: of samples in memory, above which nothing more is read ahead; 0:
            256 MiB.
        epoch_size: draws of an epoch, all ranks; 0: all samples.
        depth: device reads in flight; 0: adapted while reading.
        verify: as stele.open(); None: as the dataset.
        as_completed: samples of a batch in order of arrival.
        block_size, block_count: 'windowed': samples of a block, blocks of a window; 0: 64
            and 256.
        where: only samples that match, as Dataset.select(); of each source. Of a class:
            ``label_name = 'cat'``, as label is its number.
        worker, workers: for processes that share the batches of their rank: every workers-th
            of them, from the worker-th on; taken in turn, they are those of one Loader.
    """

    @overload
    def __new__(
        cls, sources: Sources, *, transform: None = None, **options: Unpack[Shared]
    ) -> Loader[_stele.Batch]: ...
    @overload
    def __new__(
        cls,
        sources: Sources,
        *,
        transform: Callable[[_stele.Batch], T],
        **options: Unpack[Shared],
    ) -> Loader[T]: ...
    def __new__(
        cls,
        sources: Sources,
        *,
        batch_size: int = 1,
        shuffle: Shuffle = True,
        seed: int = 0,
        epoch: int = 0,
        rank: int = 0,
        world_size: int = 1,
        drop_last: bool = False,
        transform: Callable[[_stele.Batch], Any] | None = None,
        on_error: OnError = "raise",
        prefetch_bytes: int = 0,
        epoch_size: int = 0,
        depth: int = 0,
        verify: Verify | None = None,
        as_completed: bool = False,
        block_size: int = 0,
        block_count: int = 0,
        where: str | None = None,
        worker: int = 0,
        workers: int = 1,
    ) -> Loader[Any]:
        check_rank(rank, world_size)
        check_rank(worker, workers, "worker", "workers")
        function("transform", transform)
        self: Loader[Any] = super().__new__(
            cls,
            tuple((_matching(dataset, where), weight) for dataset, weight in _pairs(sources)),
            positive("batch_size", batch_size),
            _choice("shuffle", shuffle, _SHUFFLE),
            number("seed", seed, 64),
            number("epoch", epoch, 64),
            number("rank", rank),
            number("world_size", world_size),
            _choice("drop_last", drop_last, _BOOL),
            _choice("on_error", on_error, _ON_ERROR),
            number("prefetch_bytes", prefetch_bytes, 64),
            number("epoch_size", epoch_size, 64),
            number("depth", depth),
            verify_number(verify),
            _choice("as_completed", as_completed, _BOOL),
            number("block_size", block_size, 64),
            number("block_count", block_count),
            worker,
            workers,
        )
        self._transform = transform
        return self

    _transform: Callable[[_stele.Batch], Any] | None

    def __iter__(self) -> Iterator[T]:
        return self._iterate(self._transform)

    def __aiter__(self) -> AsyncIterator[T]:
        return _AsyncBatches(self)

    def __getitem__(self, index: object) -> NoReturn:
        """What PyTorch's DataLoader finds out too late to say it well."""
        raise TypeError(
            "a stele.Loader is not indexed: iterate over it, without a DataLoader, or give that "
            "a stele.torch.Dataset, or stele.torch.Batches with batch_size=None"
        )

    async def _ready(self) -> None:
        """Wait until the next batch is there; nothing is lost when this is cancelled."""
        import asyncio  # as much as all the rest of this package

        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        descriptor = os.dup(self._fd)  # a loop has one reader of each
        loop.add_reader(descriptor, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)

    # ---- place

    @property
    def epoch(self) -> int:
        """The epoch that the next batch is from."""
        epoch: int = _STATE.unpack(self._next_place())[2]
        return epoch

    def _seek(self, epoch: int) -> None:
        number("epoch", epoch, 64)
        head, seed, _, _ = _STATE.unpack(self._next_place())
        self._restore(_STATE.pack(head, seed, epoch, 0))

    def set_epoch(self, epoch: int) -> None:
        """Iterate over this epoch next; where a state of it was loaded, over its rest."""
        wanted = number("epoch", epoch, 64)
        if not (self._fresh and wanted == self.epoch):
            self._seek(wanted)

    def state_dict(self) -> State:
        """Where this loader is: after the last batch that next() has returned to the loop.

        A batch for which next() raises is not counted: not where the transform fails or a
        sample is damaged, nor on Ctrl-C, nor when any signal handler raises. Loaded elsewhere,
        the state brings it again; a loop that goes on with the same iterator skips it, and
        counts it with the next one. A signal handler may ask for the state at any time.

        ``for`` and ``async for`` never lose a batch to a signal handler that raises: the
        state brings it again. In
        ``batch = next(batches)`` one may raise after next() has returned, but before there is
        a ``batch``: within nanoseconds, which ``for batch in batches: break`` does not have.
        A Batch that nobody saw comes again then; what a transform made of it is counted.
        """
        return {"stele": 1, "state": base64.b64encode(self._save()).decode("ascii")}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Resume there, with any rank, world_size and batch_size.

        Seed and epoch are those of the state, whatever this loader was made with: the rest
        of the epoch that was interrupted comes, and the next epochs are those that would
        have followed. (PyTorch's samplers restore their generators alike.)

        Raises:
            stele.StaleError: a state of other samples, or of another shuffle, epoch_size or
                weights.
            ValueError: no state.
        """
        try:
            if state["stele"] != 1:
                raise ValueError(f"a state of version {state['stele']}")
            raw = base64.b64decode(cast(str, state["state"]), validate=True)
        except (KeyError, TypeError, ValueError) as error:
            raise no_state("loader", state) from error
        if raw.startswith(SAMPLER_MARK):
            raise ValueError("this is the state of a stele.torch.Sampler, not of a loader")
        try:
            self._restore(raw)
        except StaleError as error:
            raise StaleError(
                errno.ESTALE,
                "the state belongs to a loader of other samples, or of another order "
                "(shuffle, weights, epoch_size)",
            ) from error

    def stats(self) -> dict[str, int | str]:
        """Figures: batches, skipped, wait_ns, held_bytes, held_batches, device_reads, ...

        held_bytes are those of samples in memory, read ahead or in the caller's hands;
        above prefetch_bytes only one batch at a time is read. held_batches of them are
        kept by the caller.
        """
        return self._stats()

    def __repr__(self) -> str:
        try:
            left = f"{self.remaining} of {len(self)} batches left"
            return f"<stele.Loader, {left} in epoch {self.epoch}>"
        except ValueError:
            return "<stele.Loader, closed>"

    def __enter__(self) -> Loader[T]:
        len(self)  # ValueError: it is closed
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class _AsyncBatches(AsyncIterator[T]):
    """An epoch as `async for` takes it: only what needs no waiting is asked for."""

    def __init__(self, loader: Loader[T]) -> None:
        self._loader = loader
        self._batches = loader._iterate(loader._transform)

    async def __anext__(self) -> T:
        if self._batches._begin():
            await self._loader._ready()
        for batch in self._batches:  # not next(): no signal handler runs before the return
            found: T = batch
            return found
        raise StopAsyncIteration
