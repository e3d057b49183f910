# SPDX-License-Identifier: Apache-2.0
"""The programs in examples/, run as users run them."""

import subprocess
import sys
import unittest
from collections import Counter
from pathlib import Path

import pictures

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
SHAPES = pictures.DIRECTORY / "shapes.stele"


def run(*command):
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=300,
        cwd=EXAMPLES,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def train(ranks, *options):
    if ranks == 1:
        return run(sys.executable, "train.py", SHAPES, *options)
    return run(
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks,
        "train.py", SHAPES, *options,
    )  # fmt: skip


def losses(text):
    return [float(line.split()[-1]) for line in text.splitlines() if "loss" in line]


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        samples = pictures.DIRECTORY / "shapes"
        run(sys.executable, "train.py", "--make", samples)
        run("stele", "build", "-q", samples, SHAPES)
        cls.all = {p.relative_to(samples).as_posix() for p in samples.rglob("*.raw")}

    def test_loss_falls(self):
        seen = losses(train(1, "--epochs", 4))
        self.assertEqual(len(seen), 4)
        self.assertLess(seen[-1], seen[0] / 2)

    def test_resume_elsewhere(self):
        """1 rank, then 2, then 3, in the middle of epochs: every sample once in each."""
        log = pictures.DIRECTORY / "seen"
        options = ("--epochs", 2, "--seen", log, "--checkpoint", pictures.DIRECTORY / "job.pt")
        train(1, *options, "--stop-after", 7)
        train(2, *options, "--stop-after", 15)
        train(3, *options)
        seen = Counter(
            line
            for rank in range(3)
            for line in Path(f"{log}.{rank}").read_text().splitlines()
        )
        self.assertEqual(seen, Counter(f"{epoch} {key}" for epoch in (0, 1) for key in self.all))

    def test_imagefolder(self):
        text = run(sys.executable, "imagefolder.py", pictures.image() + "/train")
        self.assertEqual(len(losses(text)), 2)

    def test_lightning(self):
        code = "import pictures, runpy; pictures.torchvision(); "
        code += "runpy.run_path('lightning_loop.py', run_name='__main__')"
        text = run(sys.executable, "-W", "ignore", "-c", code, SHAPES)
        self.assertLess(losses(text)[-1], 0.8)

    def test_kubernetes(self):
        """Manifests are YAML, and say what they are for."""
        import yaml

        for name, mode, access in (
            ("block", "Block", "ReadOnlyMany"),
            ("filesystem", "Filesystem", "ReadWriteMany"),
        ):
            documents = list(yaml.safe_load_all((EXAMPLES / f"kubernetes/{name}.yaml").open()))
            claim = documents[0]["spec"]
            self.assertEqual(claim["accessModes"], [access])
            self.assertEqual(claim["volumeMode"], mode)
            self.assertTrue(all(d["apiVersion"] and d["metadata"]["name"] for d in documents))
