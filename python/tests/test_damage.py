# SPDX-License-Identifier: Apache-2.0
"""What DAMAGE in stele-verify(1) says of Python: the program there, as it is printed."""

import os
import random
import re
import subprocess
import unittest
from pathlib import Path

import images
import stele

PAGE = Path(__file__).resolve().parents[2] / "man" / "stele-verify.1"
SECTIONS = {"keys": 5, "digests": 8, "tree": 9, "names": 10}
NAMES = "names = {}"


def program():
    """What stands there between .Bd and .Ed."""
    found = re.findall(r"^\.Bd .*\n(import stele\n(?:.*\n)*?)\.Ed$", PAGE.read_text(), re.MULTILINE)
    assert len(found) == 1 and NAMES in found[0]
    return found[0].replace("\\e", "\\")


class Rescue(unittest.TestCase):
    def setUp(self):
        self.directory = images.DIRECTORY / self.id()
        self.directory.mkdir(parents=True)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.directory)
        # Neither in the order of keys, nor with labels that paths show.
        rows = [(f"{i % 7}/{i}", i % 2, 10 * i) for i in range(100)]
        random.Random(1).shuffle(rows)
        schema = {"data": bytes, "label": ["cats", "dogs"], "width": int}
        with stele.Writer("photos.stele@v2", schema) as writer:
            for key, label, width in rows:
                data = key.encode() * width
                writer.put(key, {"data": data, "label": label, "width": width})
        subprocess.run(["cp", "photos.stele", "whole.stele"], check=True)

    def damage(self, kind):
        """A bit in the first block of such sections."""
        data = bytearray(Path("whole.stele").read_bytes())
        magic = b"\x93STELE\r\n" + SECTIONS[kind].to_bytes(4, "little")
        at = next(i for i in range(0, len(data), 4096) if data.startswith(magic, i))
        data[at + 40] ^= 16
        Path("photos.stele").write_bytes(data)
        found = subprocess.run(
            ["stele", "verify", "photos.stele"], capture_output=True, text=True, check=False
        )
        self.assertEqual(found.returncode, 3)
        self.assertIn(f"damaged {kind} of 'v2'", found.stdout)

    def run_program(self, names=NAMES):
        Path("sound.stele").unlink(missing_ok=True)
        exec(compile(program().replace(NAMES, names), PAGE, "exec"), {})  # noqa: S102
        subprocess.run(["stele", "verify", "-q", "sound.stele@v2"], check=True)

    def test_keys_and_fields_are_kept(self):
        for kind in SECTIONS:
            with self.subTest(kind):
                self.damage(kind)
                names = 'names = {"label": ["cats", "dogs"]}'
                self.run_program(names if kind == "names" else NAMES)
                differences = list(stele.diff("whole.stele@v2", "sound.stele@v2"))
                self.assertEqual(differences, [])

    def test_numbers_without_names(self):
        self.damage("names")
        with self.assertRaises(stele.ChecksumError):
            self.run_program()
        self.run_program('names = {"label": int}')
        with stele.Dataset("sound.stele") as sound, stele.Dataset("whole.stele") as whole:
            self.assertEqual(len(sound), 100)
            for sample in whole:
                there = sound[sample.key]
                self.assertEqual(there["label"], sample["label"])
                self.assertEqual(there["width"], sample["width"])
                self.assertEqual(bytes(there["data"]), bytes(sample["data"]))


if __name__ == "__main__":
    unittest.main()


class Opening(unittest.TestCase):
    """What cannot be opened is said with what to do, as the command says it."""

    def refused(self, whole, places, kind, note):
        target = images.DIRECTORY / f"{self.id()}.stele"
        data = bytearray(whole)
        for at in places:
            data[at : at + 4096] = bytes(4096)
        target.write_bytes(data)
        with self.assertRaises(kind) as caught:
            stele.open(target)
        self.assertRegex("\n".join(getattr(caught.exception, "__notes__", [])), note)

    def test_notes(self):
        target = images.DIRECTORY / f"{self.id()}.whole"
        with stele.Writer(target, {"data": bytes}, progress=False) as writer:
            writer.put("key", {"data": b"bytes"})
        whole = target.read_bytes()

        def blocks(kind):
            magic = b"\x93STELE\r\n" + kind.to_bytes(4, "little")
            return [i for i in range(0, len(whole), 4096) if whole.startswith(magic, i)]

        self.refused(whole, blocks(1), stele.ChecksumError, "restore the first 2 MiB")
        self.refused(whole, blocks(2), stele.ChecksumError, "no snapshot can be found: copy")
        self.refused(whole, blocks(4), stele.ChecksumError, "'stele verify' lists all damage")
        self.refused(whole[: len(whole) // 2], [], stele.FormatError, "its full size again")
