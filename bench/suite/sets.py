# SPDX-License-Identifier: Apache-2.0
"""sets.py - what is read: made once, kept in BENCH_DIR, each form of a set by itself

A set is a description that bench/content.h understands; its forms (tree, image, archive, ...)
hold the same samples. A form is made beside its place and moved there whole, so that what is
there is complete; another description makes all of them anew.
"""

import contextlib
import json
import pathlib
import shutil

from . import machine, process
from .process import run
from .settings import GIB, MIX

LOOP_TAGS = 128  # nr_requests of a new loop device
HEADROOM = 1.06  # what filesystems, headers and padding take on top of the bytes


class Set:
    def __init__(self, settings, name, description, mean, count):
        self.settings = settings
        self.name = name
        self.description = f'{count}:{settings.seed}:{description}'
        self.mean, self.count = mean, count
        self.dir = settings.dir / name

    @property
    def size(self):
        return int(self.mean * self.count)

    def path(self, form):
        return self.dir / form

    def begin(self):
        stamp = self.dir / 'description'
        if machine.read_text(stamp) != self.description:
            shutil.rmtree(self.dir, ignore_errors=True)
            self.dir.mkdir(parents=True)
            stamp.write_text(self.description + '\n', encoding='ascii')

    @contextlib.contextmanager
    def making(self, form):
        """Yields the path to make it at, or None when it is there."""
        self.begin()
        if self.path(form).exists():
            yield None
            return
        process.say(f'  {self.name}: {form}')
        partial = self.path(form + '.part')
        remove(partial)
        yield partial
        partial.rename(self.path(form))

    def program(self, name):
        return self.settings.programs / name

    # ---- forms ----

    def write_tree(self, path):
        run(self.program('generate'), '-t', 4, self.description, 'tree', path)
        return path

    def tree(self):
        with self.making('tree') as path:
            if path:
                self.write_tree(path)
        return self.path('tree')

    def image(self, keep_tree=True):
        self.begin()
        if not self.path('image').exists():
            with self.making('image') as path:
                if path:
                    run(self.settings.build / 'stele', 'build', '-q', '--label-from=none',
                        self.tree(), path, timeout=900)
        if not keep_tree:
            remove(self.path('tree'))
        return self.path('image')

    def tar(self):
        with self.making('tar') as path:
            if path:
                run(self.program('generate'), self.description, 'tar', path)
        return self.path('tar')

    def lmdb(self):
        with self.making('lmdb') as path:
            if path:
                run(self.program('lmdb'), 'build', self.description, path)
        return self.path('lmdb')

    def erofs(self):
        with self.making('erofs') as path:
            if path:
                run('mkfs.erofs', '--quiet', path, self.tree())
        return self.path('erofs')

    def squashfs(self):
        with self.making('squashfs') as path:
            if path:
                run('mksquashfs', self.tree(), path, '-noI', '-noD', '-noF', '-noX',
                    '-no-xattrs', '-quiet', '-no-progress')
        return self.path('squashfs')

    def xfs(self):
        with self.making('xfs') as path:
            if path:
                size = int(self.size * 1.25 + self.count * 4096 + GIB)
                with mounted_new(self.settings, path, size) as place:
                    self.write_tree(place / 'tree')
        return self.path('xfs')

    def extents(self):
        """What a reader would ask its device for: (path of the trace, facts)."""
        with self.making('trace') as path:
            if path:
                facts = run(self.program('extents'), self.path('image'), self.settings.seed,
                            path)
                self.path('extents.json').write_text(facts, encoding='ascii')
        facts = json.loads(self.path('extents.json').read_text(encoding='ascii'))
        return self.path('trace'), facts


    def iolog(self):
        """The device reads of one epoch as stele bench wrote them down: (offset, size) of each."""
        with self.making('iolog') as path:
            if path:
                run(self.settings.build / 'stele', 'bench', '-q', '--epochs=1',
                    f'--iolog={path}', self.path('image'))
        with open(self.path('iolog'), encoding='utf-8') as log:
            lines = [line.split() for line in log]
        return [(int(line[3]), int(line[4])) for line in lines if len(line) == 5]


def remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


# ---- loop devices and mounts ----

def loop(path, *options):
    """A loop device that bypasses the page cache below; detached in the end."""
    node = run('losetup', '--direct-io=on', '-f', '--show', *options, path).strip()
    detach = process.later('losetup', '-d', node)
    # What anybody has set stays with the node, whatever file is attached next.
    queue = pathlib.Path('/sys/block') / pathlib.Path(node).name / 'queue'
    (queue / 'nr_requests').write_text(f'{LOOP_TAGS}\n', encoding='ascii')
    return node, detach


def mount(settings, path, *options):
    """A filesystem in a file, read-only."""
    place = settings.dir / 'mounts' / path.parent.name / path.name
    place.mkdir(parents=True, exist_ok=True)
    node, _ = loop(path, '-r')
    run('mount', '-o', ','.join(('ro', *options)), node, place)
    process.later('umount', place)
    return place


@contextlib.contextmanager
def mounted_new(settings, path, size):
    """A new XFS in a sparse file, for as long as the block runs."""
    with open(path, 'wb') as file:
        file.truncate(size)
    run('mkfs.xfs', '-q', path)
    place = settings.dir / 'mounts' / 'new'
    place.mkdir(parents=True, exist_ok=True)
    node, detach = loop(path)
    run('mount', node, place)
    unmount = process.later('umount', place)
    try:
        yield place
    finally:
        process.undo(unmount)
        process.undo(detach)


def tmpfs(settings, size):
    """A filesystem in memory, where at most half of what is free goes; gone in the end."""
    free = machine.memory('MemAvailable')
    if size > free / 2:
        raise process.Failed(f'{size / GIB:.1f} GiB of memory are too much, '
                             f'{free / GIB:.1f} are free')
    place = settings.dir / 'mounts' / 'memory'
    place.mkdir(parents=True, exist_ok=True)
    run('mount', '-t', 'tmpfs', '-o', f'size={size}', 'stele', place)
    process.later('umount', place)
    return place


def clear_leftovers(settings):
    """Of a run that was killed: its mounts and loop devices."""
    inside = str(settings.dir) + '/'
    # One whose filesystem is mounted goes with that; a file in memory must be let go before.
    for line in machine.output('losetup', '-nl', '-O', 'NAME,BACK-FILE').split('\n'):
        node, _, file = line.partition(' ')
        if file.strip().startswith(inside):
            run('losetup', '-d', node)
    places = [line.split()[1] for line in machine.read_text('/proc/mounts').split('\n')]
    for place in reversed([p for p in places if p.startswith(inside)]):
        run('umount', place)


# ---- the sets of the suite ----

MEANS = {'mix': 76780.0}  # bytes: of MIX, 74.98 KiB


def all_sets(settings, memory):
    count = settings.count
    large = 0.55 * memory if settings.large is None else settings.large * GIB
    large = int(large / MEANS['mix'])

    def made(name, description, mean, samples):
        return Set(settings, name, description, mean, samples)

    mix = 'split:' + MIX
    return {
        'a': made('a', mix, MEANS['mix'], count(40000)),
        'b': made('b', 'fixed:20480', 20480, count(20000)),
        'e': made('e', 'uniform:100:2048', 1074, count(60000)),
        'l': made('l', mix, MEANS['mix'], large) if large else None,
        'm': made('m', mix, MEANS['mix'], count(8000)),
        'resnet50': made('resnet50', 'fixed:114660', 114660, count(10000)),
        'cosmoflow': made('cosmoflow', 'normal:2828486:71311', 2828486,
                          max(8, int(400 * settings.scale))),
        'unet3d': made('unet3d', 'normal:146600628:68341808', 146600628,
                       max(2, int(8 * settings.scale))),
        'big': made('big', 'fixed:536870912', 536870912, max(1, int(4 * settings.scale))),
    }


def forms(name):
    """How many times a set lies on the disk, at most."""
    return {'a': 8, 'l': 2, 'm': 1}.get(name, 2)


def plan_disk(settings, sets):
    """Drop what does not fit: (bytes needed, bytes allowed, names dropped)."""
    settings.dir.mkdir(parents=True, exist_ok=True)
    used = int(run('du', '-sxB1', settings.dir).split()[0])
    allowed = shutil.disk_usage(settings.dir).free * 0.9 + used
    if settings.disk:
        allowed = min(allowed, settings.disk)

    def needed():
        # The large set is first, and its tree is gone before the others are made.
        parts = {n: s.size * HEADROOM * forms(n) for n, s in sets.items() if s}
        large = parts.pop('l', 0)
        return int(max(large, large / 2 + sum(parts.values())))

    dropped = []
    for name in ('l', 'unet3d', 'cosmoflow', 'resnet50'):
        if needed() > allowed and sets.get(name):
            sets[name] = None
            dropped.append(name)
    return needed(), int(allowed), dropped
