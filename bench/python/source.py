# SPDX-License-Identifier: Apache-2.0
"""source.py - the samples that all forms are made from: a tree of files, and pictures for it

The tree is that of bench/generate.c: directories of files; a sample's id is the number in
its file's name, which counts through all directories.
"""

import concurrent.futures
import io
import pathlib
import re

SIDE = 224  # of what a picture is decoded to


class Source:
    """Pairs of id and bytes, in order of id."""

    def __init__(self, tree):
        self.tree = pathlib.Path(tree)
        self.paths = sorted(p for p in self.tree.rglob('s*.*') if p.is_file())

    def __len__(self):
        return len(self.paths)

    def __iter__(self):
        for path in self.paths:
            yield id_of(path), path.read_bytes()


def id_of(path):
    return int(re.search(r's(\d+)\.\w+$', str(path))[1])


def decode(data):
    """A JPEG, as a small array: what training begins with."""
    import numpy
    from PIL import Image

    with Image.open(io.BytesIO(data) if not hasattr(data, 'read') else data) as image:
        return numpy.asarray(image.convert('RGB').resize((SIDE, SIDE)))


def _picture(number, path):
    """Smooth shapes with noise on them: about 100 KB, as photographs of that size have."""
    import numpy
    from PIL import Image

    random = numpy.random.default_rng(number)
    small = random.integers(0, 256, (12, 16, 3), dtype=numpy.uint8)
    image = numpy.asarray(Image.fromarray(small).resize((500, 375), Image.BICUBIC))
    noise = random.integers(-14, 15, image.shape, dtype=numpy.int16)
    image = numpy.clip(image.astype(numpy.int16) + noise, 0, 255).astype(numpy.uint8)
    Image.fromarray(image).save(path, quality=90)


def write_pictures(count, path):
    """A tree of JPEGs; the same bytes on each machine with the same libraries."""
    path = pathlib.Path(path)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = []
        for number in range(count):
            place = path / f'd{number // 1000:05}'
            if number % 1000 == 0:
                place.mkdir(parents=True)
            jobs.append(pool.submit(_picture, number, place / f's{number:08}.jpg'))
        for job in jobs:
            job.result()
