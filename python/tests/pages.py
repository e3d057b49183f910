# SPDX-License-Identifier: Apache-2.0
"""Runs the code blocks of a page, as a reader would: in order, in a directory of their own.

    ```python       Python; all of a page are one program
    ```console      shell: "$ COMMAND" or "# COMMAND", "> MORE", and what it prints
    ```text         what the block before it prints

A word behind "python" or "console" says that a block is for "full" only: it needs a package of
python/tests/full. What is printed must be what the page shows, where "..." is any part
of a line, and alone any lines. Python that shows nothing must print nothing.

In that directory "stele" is the checkout, and "photos" a folder of pictures; for README there
is what it takes for granted, too.
"""

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PAGES = [TOP / "README.md", *sorted((TOP / "docs").rglob("*.md"))]
LANGUAGES = {"python", "console", "text", "c"}  # C: tests/tree/docs.t
FENCE = re.compile(r"^```(\w*) ?(.*)\n((?:.*\n)*?)^```$", re.MULTILINE)


class Block:
    def __init__(self, match, line):
        self.language, self.needs, self.code = match.groups()
        self.line, self.start, self.end = line, match.start(), match.end()
        self.output = None
        if self.language not in LANGUAGES or self.needs not in ("", "full"):
            raise ValueError(f"line {line}: a block of '{self.language} {self.needs}'")


def blocks(text):
    """Those that run, each with the output that is shown for it."""
    found = []
    previous = None
    for match in FENCE.finditer(text):
        block = Block(match, text.count("\n", 0, match.start()) + 2)
        if block.language == "text":
            if not previous or text[previous.end : block.start].strip():
                raise ValueError(f"line {block.line}: output of no block")
            previous.output = block.code
        elif block.language != "c":
            found.append(block)
        previous = block
    return found


def expect(shown, seen):
    """Fails unless seen is what is shown."""
    pattern = ""
    for line in shown.splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*"
        else:
            pattern += r".*".join(map(re.escape, line.rstrip().split("..."))) + r"[ \t]*\n"
    if not re.fullmatch(pattern, seen if seen.endswith("\n") or not seen else seen + "\n"):
        raise AssertionError(f"shown:\n{shown}seen:\n{seen}")


def commands(code):
    """Pairs of a command and what it prints, None: not shown."""
    found = []
    for line in code.splitlines(keepends=True):
        if line.startswith(("$ ", "# ")):
            found.append([line[2:], None])
        elif line.startswith("> ") and found and found[-1][1] is None:
            found[-1][0] += line[2:]
        elif not found:
            raise ValueError(f"output of no command: {line}")
        else:
            found[-1][1] = (found[-1][1] or "") + line
    return found


def shell(block):
    """As in one shell: what a command does to the environment stays (venv/bin/activate)."""
    for command, shown in commands(block.code):
        with tempfile.NamedTemporaryFile() as after:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", f"trap 'env -0 >{after.name}' EXIT\n{command}"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                text=True, errors="replace",
            )  # fmt: skip
            for line in after.read().decode(errors="surrogateescape").split("\0")[:-1]:
                name, _, value = line.partition("=")
                os.environ[name] = value
        # A reader that has enough, as head, ends its writer.
        if done.returncode not in (0, 141):
            raise AssertionError(f"{command}: status {done.returncode}\n{done.stdout}")
        if shown is not None:
            expect(shown, done.stdout)


def program(page, block, names):
    code = compile("\n" * (block.line - 1) + block.code, str(page), "exec")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    expect(block.output or "", printed.getvalue())


def photos(top):
    """SPLIT/CLASS/NAME.jpg, what pages begin with; pictures, if PIL is there."""
    try:
        from PIL import Image
    except ImportError:
        Image = None
    for index in range(120):
        kind = ("cat", "dog", "owl")[index % 3]
        file = top / ("val" if index % 10 == 9 else "train") / kind / f"{index:03}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        if Image:
            Image.new("RGB", (32 + index % 7, 32), (index, 80 * (index % 3), 9)).save(file)
        else:
            file.write_bytes(b"\xff\xd8" + bytes([index]) * (300 + 7 * index))


def readme():
    """What README does not define."""

    def transform(image):
        import torch

        return torch.tensor(image.size)

    shutil.copytree("photos", "imagenette")
    shutil.copytree("photos/val/cat", "more")
    subprocess.run(["stele", "build", "-q", "photos", "photos.stele"], check=True)
    return {"transform": transform, "step": lambda *_: None, "consume": lambda *_: None}


def run(page, full):
    """All blocks of a page; how many, and how many of them were left out."""
    own = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    names = sys.modules["__main__"].__dict__
    if page.name == "README.md" and page.parent == TOP:
        names.update(readme())
    found = blocks(page.read_text())
    left_out = 0
    for block in found:
        if block.needs and not full:
            left_out += 1
            continue
        try:
            shell(block) if block.language == "console" else program(page, block, names)
        except Exception as error:
            error.add_note(f"in the block at {page}:{block.line}")
            raise
    sys.modules["__main__"] = own
    return len(found), left_out


def case(full):
    """A test for each page."""

    def test(page):
        def method(self):
            with tempfile.TemporaryDirectory(dir=os.environ["TEST_DIR"]) as top:
                Path(top, "stele").symlink_to(TOP)
                photos(Path(top, "photos"))
                done = subprocess.run(
                    [sys.executable, "-W", "ignore", __file__, page, "full" if full else ""],
                    cwd=top, capture_output=True, text=True, timeout=400,
                    env={**os.environ, "HOME": top, "STELE_BUILD": os.environ["BUILD"],
                         "STELE_RUN_DIR": f"{top}/.run",
                         "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
                )  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

        return method

    name = {page: re.sub(r"\W", "_", str(page.relative_to(TOP).with_suffix(""))) for page in PAGES}
    return type("Pages", (unittest.TestCase,), {f"test_{name[p]}": test(p) for p in PAGES})


if __name__ == "__main__":
    if sys.argv[2]:
        # Only the Python of torchvision is there: see pictures.py.
        meta = "torchvision._meta_registrations"
        sys.modules[meta] = types.ModuleType(meta)
    print(*run(Path(sys.argv[1]), bool(sys.argv[2])))
