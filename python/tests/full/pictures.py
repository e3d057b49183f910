# SPDX-License-Identifier: Apache-2.0
"""A folder of pictures, and an image that was built from it."""

import functools
import os
import subprocess
import sys
import types
from pathlib import Path

import numpy
from PIL import Image

DIRECTORY = Path(os.environ["TEST_DIR"])
# Names whose order by bytes, by directory and by path are three different ones.
CLASSES = ("cat", "cat-2", "dog", "Émile", "zebra")
NAMES = ("b.png", "a.png", "sub/c.png", "sub/x/d.png", "sub-1/e.png", "A.PNG", "f.jpg")


def torchvision():
    """The real one; its compiled operators, which need the same build of torch, stay out."""
    sys.modules.setdefault(
        "torchvision._meta_registrations", types.ModuleType("torchvision._meta_registrations")
    )
    import torchvision.datasets

    return torchvision


@functools.cache
def folder():
    """split/CLASS/...: small pictures, and a file that is none."""
    random = numpy.random.default_rng(1)
    top = DIRECTORY / "pictures"
    for split, copies in (("train", 6), ("val", 1)):
        for name in CLASSES:
            for path in NAMES[: 2 if name == "zebra" else None]:
                for copy in range(copies):
                    file = top / split / name / path
                    file = file.with_name(f"{copy}{file.name}")
                    file.parent.mkdir(parents=True, exist_ok=True)
                    pixels = random.integers(0, 255, (16, 16 + copy, 3), dtype=numpy.uint8)
                    Image.fromarray(pixels).save(file)
            (top / split / name / "notes.txt").write_text("no picture")
    return top


@functools.cache
def image():
    target = DIRECTORY / "pictures.stele"
    subprocess.run(["stele", "build", "-q", folder(), target], check=True)
    return str(target)


@functools.cache
def numbers(count=1000, size=100):
    """Samples that begin with their number; the label is that modulo 10."""
    target = DIRECTORY / f"numbers{count}.stele"
    for number in range(count):
        file = DIRECTORY / f"numbers{count}" / str(number % 10) / f"{number:06}.bin"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(number.to_bytes(8, "little") * (1 + number % size))
    subprocess.run(["stele", "build", "-q", DIRECTORY / f"numbers{count}", target], check=True)
    return str(target)


def number(data):
    return int.from_bytes(bytes(memoryview(data)[:8]), "little")
