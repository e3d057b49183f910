# SPDX-License-Identifier: Apache-2.0
"""ImageFolder and DatasetFolder: torchvision's, over a snapshot; users get them from stele.torch.

An image that was built from a directory holds its files under their paths. Here they are,
in torchvision's order: by class, then by directory, then by name. Of each sample its id is kept,
in one array; samples and targets are computed when they are asked for.
"""

from __future__ import annotations

import bisect
import io
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

import torch.utils.data

from ._stele import Sample
from .dataset import Dataset, Target, Verify, listed, split
from .dataset import open as open_target
from .options import function

T = TypeVar("T")
IMG_EXTENSIONS = (
    ".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp",
)  # fmt: skip
_NAMED = 10  # directories, in an error


class File(io.BytesIO):
    """What a loader is called with: the bytes of a sample."""

    name: str
    """Its path."""

    def __repr__(self) -> str:
        return f"<stele.folder.File name={getattr(self, 'name', None)!r}>"


def default_loader(file: Any) -> Any:
    """PIL's image in RGB, of a path or a file."""
    from PIL import Image

    with Image.open(file) as image:
        return image.convert("RGB")


def _open(root: Target | Dataset, verify: Verify | None) -> tuple[Dataset, str, str]:
    """A dataset, its name, and the prefix of keys that the end of root is."""
    if isinstance(root, Dataset):
        if not root._is_whole():
            raise ValueError("a folder is made of a whole snapshot, not of a subset")
        return root, root.info.target, ""
    whole = os.fsdecode(root)
    target, prefix = whole.rstrip("/"), ""
    problem: OSError | None = None
    while True:
        try:
            return open_target(target, verify=verify), target, prefix
        except (OSError, ValueError) as error:
            path = split(target)[0]
            if os.path.exists(path) and not os.path.isdir(path):  # no other part can be it
                if prefix and "several snapshots" in str(error):
                    error.add_note(f"directories come behind it: '{target}@NAME/{prefix[:-1]}'")
                raise
            problem = problem or (error if isinstance(error, OSError) else None)
            target, slash, name = target.rpartition("/")
            if not target or (os.path.isdir(target) and problem):
                raise problem or error from None
            prefix = f"{name}/{prefix}"


def _place(index: int, count: int) -> int:
    """An index from 0, of one that may count from the end."""
    try:
        return range(count)[index]
    except IndexError:
        raise IndexError(f"sample {index} is out of range: there are {count}") from None


class _Lazy(Sequence[T], Generic[T]):
    """A list that is not there; equal to one that would be."""

    def __init__(self, folder: DatasetFolder, item: Callable[[DatasetFolder, int], T]) -> None:
        self._folder, self._item = folder, item

    def __len__(self) -> int:
        return len(self._folder._ids)

    @overload
    def __getitem__(self, which: int) -> T: ...
    @overload
    def __getitem__(self, which: slice) -> list[T]: ...
    def __getitem__(self, which: int | slice) -> T | list[T]:
        if isinstance(which, slice):
            return [self._item(self._folder, index) for index in range(len(self))[which]]
        return self._item(self._folder, _place(which, len(self)))

    def __iter__(self) -> Iterator[T]:
        return (self._item(self._folder, index) for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or len(self) != len(other):
            return False
        return all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        more = ", ..." if len(self) > 3 else ""
        return f"[{', '.join(map(repr, self[:3]))}{more}]"


def _sample_of(folder: DatasetFolder, index: int) -> tuple[str, int]:
    return folder._path(folder._ids[index]), folder._target(index)


def _target_of(folder: DatasetFolder, index: int) -> int:
    return folder._target(index)


class DatasetFolder(torch.utils.data.Dataset[Any]):
    """torchvision.datasets.DatasetFolder over a snapshot.

    What differs: a class is a directory with a file in it, as there are no others; `samples`,
    `targets` and `imgs` are immutable sequences instead of lists, but other ones can be
    assigned to; a loader gets a file object (whose name is the path), or, if it cannot use
    that for the first sample, the path of a file in memory, without a suffix; there is no
    make_dataset() to override.

    Args:
        root: a target, and optionally a directory in it: ``/dev/vdb@v1/train``; or a
            stele.Dataset of a whole snapshot.
        loader, extensions, transform, target_transform, is_valid_file, allow_empty: as
            torchvision's.
        split: directory in root: 'train', 'val'.
        prefix: the same of any depth: only keys that begin with it.
        verify: as stele.open().
    """

    def __init__(
        self,
        root: Target | Dataset,
        loader: Callable[[Any], Any],
        extensions: str | tuple[str, ...] | None = None,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
        *,
        split: str | None = None,
        prefix: str = "",
        verify: Verify | None = None,
    ) -> None:
        if (extensions is None) == (is_valid_file is None):
            raise ValueError(
                "Both extensions and is_valid_file cannot be None or not None at the same time"
            )
        if hasattr(self, "make_dataset"):
            raise TypeError("make_dataset() is not called: override find_classes(), or assign to samples")
        for name, given in {"transform": transform, "target_transform": target_transform}.items():
            function(name, given)
        self._whole, self._name, inside = _open(root, verify)
        for part in (split or "", prefix):
            inside += part.strip("/") + "/" if part.strip("/") else ""
        self._prefix = inside
        self.root = os.fsdecode(root) if not isinstance(root, Dataset) else self._name
        self.loader = loader
        self.extensions = extensions
        self.transform = transform
        self.target_transform = target_transform
        self._takes_path: bool | None = None
        self._found = self._scan(extensions, is_valid_file)
        classes, class_to_idx = self.find_classes(self.root)
        self.classes, self.class_to_idx = classes, class_to_idx
        self._choose(allow_empty)
        self.samples: Sequence[tuple[str, int]] = _Lazy(self, _sample_of)
        self.targets: Sequence[int] = _Lazy(self, _target_of)

    # ---- what there is

    def _scan(
        self,
        extensions: str | tuple[str, ...] | None,
        is_valid: Callable[[str], bool] | None,
    ) -> dict[str, array[int]]:
        """Ids by class, in torchvision's order of files."""
        found: dict[str, array[int]] = {}
        files: list[tuple[str, str, int]] = []
        at = len(self._prefix)
        current = ""
        for key, id in self._whole.items(self._prefix):
            name, slash, rest = key[at:].partition("/")
            if not slash:
                continue
            if name != current:  # the keys of a directory are neighbours
                if current:
                    found[current] = array("Q", [f[2] for f in sorted(files)])
                current, files = name, []
            valid = is_valid(f"{self._name}/{key}") if is_valid else (
                rest.lower().endswith(extensions)  # type: ignore[arg-type]
            )  # fmt: skip
            if valid:
                directory, _, base = rest.rpartition("/")
                files.append((directory, base, id))
        if current:
            found[current] = array("Q", [f[2] for f in sorted(files)])
        return found

    def find_classes(self, directory: str | os.PathLike[str]) -> tuple[list[str], dict[str, int]]:
        """Class names, sorted, and their numbers; for subclasses to override."""
        classes = sorted(self._found)
        if not classes:
            raise self._no_classes(directory)
        return classes, {name: index for index, name in enumerate(classes)}

    def _no_classes(self, directory: str | os.PathLike[str]) -> FileNotFoundError:
        """With what there is instead: a split may be misspelt."""
        place = self._directory(self._prefix) if directory == self.root else directory
        error = FileNotFoundError(f"Couldn't find any class folder in {place}.")
        inside, there = self._prefix, self._directories(self._prefix)
        while inside and not there:
            inside = inside[: inside.rstrip("/").rfind("/") + 1]
            there = self._directories(inside)
        if there and inside != self._prefix:
            more = ", ..." if len(there) > _NAMED else ""
            names = ", ".join(map(repr, sorted(there[:_NAMED])))
            error.add_note(f"the directories in {self._directory(inside)} are {names}{more}")
        return error

    def _directory(self, prefix: str) -> str:
        return f"{self._name}/{prefix}".rstrip("/")

    def _directories(self, prefix: str) -> list[str]:
        """The first ones, and one more than are named."""
        found: dict[str, None] = {}
        for key in self._whole.keys(prefix):
            name, slash, _ = key[len(prefix) :].partition("/")
            if slash:
                found[name] = None
            if len(found) > _NAMED:
                break
        return [*found]

    def _choose(self, allow_empty: bool) -> None:
        if not self.class_to_idx:
            raise ValueError("'class_to_index' must have at least one entry to collect any samples.")
        empty = sorted(name for name in self.class_to_idx if not self._found.get(name))
        if empty and not allow_empty:
            message = f"Found no valid file for the classes {', '.join(empty)}. "
            if self.extensions is not None:
                known = self.extensions
                known = known if isinstance(known, str) else ", ".join(known)
                message += f"Supported extensions are: {known}"
            raise FileNotFoundError(message)
        self._ids = array("Q")
        self._ends: list[int] = []
        self._numbers: list[int] = []
        for name in sorted(self.class_to_idx):
            self._ids.extend(self._found.get(name, ()))
            self._ends.append(len(self._ids))
            self._numbers.append(self.class_to_idx[name])
        self._found = {}

    @property
    def data(self) -> Dataset:
        """The samples as a stele.Dataset in the same order, for stele.Loader; of those that
        were assigned without their targets: its labels are those of the image."""
        if isinstance(self.samples, _Lazy):
            return self._whole.subset(memoryview(self._ids))
        return self._whole.subset([self._where(index)[0] for index in range(len(self))])

    def _path(self, id: int) -> str:
        return f"{self._name}/{self._whole._key(id)}"

    def _target(self, index: int) -> int:
        return self._numbers[bisect.bisect_right(self._ends, index)]

    @property
    def transforms(self) -> Any:
        """Both transforms as one of torchvision's, or None."""
        if self.transform is None and self.target_transform is None:
            return None
        from torchvision.datasets.vision import StandardTransform

        return StandardTransform(self.transform, self.target_transform)

    # ---- samples

    def __len__(self) -> int:
        return len(self.samples)

    def _where(self, index: int) -> tuple[int, int]:
        """Id and target."""
        if isinstance(self.samples, _Lazy):
            index = _place(index, len(self._ids))
            return self._ids[index], self._target(index)
        path, target = self.samples[index]
        return self._whole.find(path.removeprefix(self._name + "/")), target

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        id, target = self._where(index)
        return self._finish(self._whole[id], target)

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Any, Any]]:
        if type(self).__getitem__ is not DatasetFolder.__getitem__:
            return [self[index] for index in listed(indices)]  # what a subclass makes of them
        where = [self._where(index) for index in listed(indices)]
        read = self._whole[[id for id, _ in where]]
        return [self._finish(s, target) for s, (_, target) in zip(read, where, strict=True)]

    def _finish(self, sample: Sample, target: Any) -> tuple[Any, Any]:
        try:
            loaded = self._load(sample)
            if self.transform is not None:
                loaded = self.transform(loaded)
            if self.target_transform is not None:
                target = self.target_transform(target)
            return loaded, target
        except Exception as error:
            path = self._path(sample.id)
            if path not in str(error):
                error.add_note(f"the sample is '{path}'")
            raise

    def _load(self, sample: Sample) -> Any:
        """By file or by path: what worked first, works."""
        if self._takes_path is not None:
            load = self._load_path if self._takes_path else self._load_file
            return load(sample)
        try:
            loaded = self._load_file(sample)
            self._takes_path = False
        except Exception as problem:
            try:
                loaded = self._load_path(sample)
            except Exception:
                raise problem from None
            self._takes_path = True
        return loaded

    def _load_file(self, sample: Sample) -> Any:
        file = File(sample)
        file.name = self._path(sample.id)
        return self.loader(file)

    def _load_path(self, sample: Sample) -> Any:
        fd = os.memfd_create("sample", os.MFD_CLOEXEC)
        with os.fdopen(fd, "wb", buffering=0) as file:
            left = memoryview(sample)
            while left:
                left = left[file.write(left) :]
            return self.loader(f"/proc/self/fd/{fd}")

    def __repr__(self) -> str:
        lines = [
            f"Dataset {type(self).__name__}",
            f"    Number of datapoints: {len(self)}",
            f"    Root location: {self.root}",
        ]
        try:
            transforms = repr(self.transforms) if self.transforms is not None else ""
        except ImportError:  # without torchvision
            transforms = f"Transform: {self.transform!r}"
        return "\n".join(lines + [f"    {line}" for line in transforms.splitlines()])


class ImageFolder(DatasetFolder):
    """torchvision.datasets.ImageFolder over a snapshot; see DatasetFolder."""

    def __init__(
        self,
        root: Target | Dataset,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        loader: Callable[[Any], Any] = default_loader,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(
            root,
            loader,
            IMG_EXTENSIONS if is_valid_file is None else None,
            transform,
            target_transform,
            is_valid_file,
            allow_empty,
            **options,
        )
        self.imgs = self.samples
