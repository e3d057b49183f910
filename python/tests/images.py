# SPDX-License-Identifier: Apache-2.0
"""Images for tests, made once, and what they hold."""

import functools
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

DIRECTORY = Path(os.environ["TEST_DIR"])
CLASSES = 4
COUNT = 600


def content(index):
    size = index * 37 % 9000
    seed = hashlib.sha256(b"%d" % index).digest()
    return (seed * (size // 32 + 1))[:size]


def key(index):
    return f"class{index % CLASSES}/{index:04}.bin"


CONTENT = {key(index): content(index) for index in range(COUNT)}


@functools.cache
def plain():
    """COUNT samples from a directory, with labels."""
    target = DIRECTORY / "plain.stele"
    for name, data in CONTENT.items():
        path = DIRECTORY / "plain" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    subprocess.run(["stele", "build", "-q", DIRECTORY / "plain", target], check=True)
    return str(target)


@functools.cache
def rich():
    """50 samples with fields of every type."""
    target = DIRECTORY / "rich.stele"
    subprocess.run([os.environ["RICH"], target, "50"], check=True)
    return str(target)


@functools.cache
def unnamed():
    """plain(), whose class names have a flipped bit."""
    target = DIRECTORY / "unnamed.stele"
    data = bytearray(Path(plain()).read_bytes())
    at = data.find(b"\x93STELE\r\n\x0a\0\0\0")  # a block of names
    assert at > 0 and at % 4096 == 0
    data[at + 100] ^= 1
    target.write_bytes(data)
    return str(target)


@functools.cache
def damaged():
    """plain(), where the sample of key(100) has a flipped bit."""
    target = DIRECTORY / "damaged.stele"
    data = bytearray(Path(plain()).read_bytes())
    at = data.find(content(100))
    assert at > 0 and data.find(content(100), at + 1) < 0
    data[at + 5] ^= 1
    target.write_bytes(data)
    return str(target)


def copy(target, name):
    return shutil.copy(target, DIRECTORY / name)


def loop(case, path):
    """A loop device over a file, as long as the test runs; without one it is skipped."""
    try:
        made = subprocess.run(["losetup", "-f", "--show", path], capture_output=True, text=True)
    except OSError as error:
        made = subprocess.CompletedProcess([], 1, "", str(error))
    if made.returncode:
        case.skipTest(f"no loop device: {made.stderr.strip()}")
    node = made.stdout.strip()
    case.addCleanup(subprocess.run, ["losetup", "-d", node], check=False)
    return node
