# SPDX-License-Identifier: Apache-2.0
"""settings.py - what the environment asks for, and the sizes that follow

BENCH_DIR      where the sets lie (build/bench/data); wants room, on the device to measure
BENCH_OUT      where results go (build/bench)
BENCH_ROUNDS   rounds of each block (5)
BENCH_SECONDS  of each run (3)
BENCH_SCALE    multiplies the number of samples of every set (1)
BENCH_DISK     GiB that the sets may take at most (90 % of what is free)
BENCH_LARGE    GiB of the set that no memory holds (0.55 of the machine's); 0: none
BENCH_ONLY     only blocks whose name matches this regular expression
BENCH_SEED     of the order of runs and of samples (1)
BENCH_QUICK    1: a tenth of the samples, 2 rounds of 1 s, no large set: minutes, no figures
Of `make bench-python` and `make bench-knee`:
BENCH_SLICE    seconds after which it stops; the next run goes on there (0: never)
Of `make bench-python` alone:
BENCH_KEEP     1: a set stays when all that reads it is done
BENCH_FEW      1: only loaders that need no more than the package and NumPy
BENCH_PYTHON   the interpreter that has the others (build/venv-bench/bin/python)
"""

import os
import pathlib
import re

GIB = 1 << 30

# The sizes of ImageNet's files as fio's bssplit: Mark Nelson's, mean 75.0 KiB.
MIX = '2048/1,4096/2,8192/4,16384/8,32768/13,65536/38,131072/33,262144/1'


def number(name, default, kind=float):
    text = os.environ.get(name, '')
    try:
        return kind(text) if text else default
    except ValueError:
        raise SystemExit(f'bench: {name} is no number: {text!r}') from None


class Settings:
    def __init__(self):
        self.quick = os.environ.get('BENCH_QUICK', '0') not in ('', '0')
        self.build = pathlib.Path(os.environ.get('BUILD', 'build')).resolve()
        self.programs = self.build / 'bench'
        self.out = pathlib.Path(os.environ.get('BENCH_OUT') or self.programs).resolve()
        self.dir = pathlib.Path(os.environ.get('BENCH_DIR') or self.out / 'data').resolve()
        self.rounds = number('BENCH_ROUNDS', 2 if self.quick else 5, int)
        self.seconds = number('BENCH_SECONDS', 1.0 if self.quick else 3.0)
        self.short = min(2.0, self.seconds)  # of blocks that carry no goal
        self.spare = 0.0 if self.quick else 150.0  # seconds for rounds in place of noisy ones
        self.scale = number('BENCH_SCALE', 0.1 if self.quick else 1.0)
        self.disk = number('BENCH_DISK', 0.0) * GIB
        self.large = number('BENCH_LARGE', 0.0 if self.quick else None)  # GiB
        self.seed = number('BENCH_SEED', 1, int)
        self.extra = 0 if self.quick else (self.rounds + 1) // 2  # in place of noisy rounds
        self.slice = number('BENCH_SLICE', 0.0)
        self.keep = number('BENCH_KEEP', 0, int)
        self.few = number('BENCH_FEW', 0, int)
        self.python = pathlib.Path(os.environ.get('BENCH_PYTHON') or
                                   self.build / 'venv-bench/bin/python')
        self.only = re.compile(os.environ.get('BENCH_ONLY', ''))
        if self.rounds < 1 or self.seconds <= 0 or self.scale <= 0:
            raise SystemExit('bench: rounds, seconds and scale must be positive')

    def count(self, samples):
        return max(64, int(samples * self.scale))

    def as_dict(self):
        return {'rounds': self.rounds, 'seconds': self.seconds, 'scale': self.scale,
                'seed': self.seed, 'quick': self.quick}
