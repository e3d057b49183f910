# SPDX-License-Identifier: Apache-2.0
"""python.py - blocks of `make bench-python`: loaders of Python packages on the same samples

Each run is a process of bench/python/load.py. A set is there in every loader's form while its
blocks run, and gone behind them. Where a run was cut short (BENCH_SLICE), the next goes on.
"""

import dataclasses
import json
import os
import pathlib
import resource
import sys

from . import machine, process, readers, rounds, sets
from .process import Failed, run_json, say
from .settings import MIX

HERE = pathlib.Path(__file__).resolve().parents[1] / 'python'
sys.path.insert(0, str(HERE))

import loaders  # noqa: E402

SLOW = ('Lance',)  # to begin: its workers are spawned, and import all packages
MANY = 32  # workers, whose first batch is waited for
DEPTH = 128
C_LOADER = 'C loader (stele bench --loader)'
FILES = 'torchvision ImageFolder'
TREE = 'the tree itself'
VIEWS = {'erofs': 'EROFS view', 'fuse': 'FUSE view'}  # by what --via says
SYNTHETIC = {'1 M': 1000000, '100 M': 100000000, '813 M': 813000000}


@dataclasses.dataclass
class Kind:
    """A set of the suite, and how it is read."""

    name: str
    title: str
    batch: int
    pictures: bool = False


KINDS = {
    'large': Kind('large', "ImageNet's sizes, mean 75 KiB", 64),
    'small': Kind('small', '20 KiB', 256),
    'tiny': Kind('tiny', '1 KiB', 256),
    'pictures': Kind('pictures', 'JPEGs of about 100 KB, decoded', 64, True),
}


class Pictures(sets.Set):
    """JPEGs instead of random bytes."""

    def write_tree(self, path):
        run_json(self.settings.python, HERE / 'load.py', 'pictures',
                 json.dumps({'path': str(path), 'count': self.count}), timeout=3600)
        return path


def all_sets(settings):
    def made(kind, name, description, mean, count):
        return kind(settings, 'python-' + name, description, mean, settings.count(count))

    return {
        'large': made(sets.Set, 'large', 'split:' + MIX, 76780, 3600),
        'small': made(sets.Set, 'small', 'fixed:20480', 20480, 10000),
        'tiny': made(sets.Set, 'tiny', 'fixed:1024', 1024, 60000),
        'pictures': made(Pictures, 'pictures', 'jpeg', 105000, 1000),
        # Read by few, and so larger.
        'limit large': made(sets.Set, 'limit-large', 'split:' + MIX, 76780, 13000),
        'views': made(sets.Set, 'views', 'split:' + MIX, 76780, 13000),
        'limit small': made(sets.Set, 'limit-small', 'fixed:20480', 20480, 60000),
    }


class Bench(rounds.Sliced):
    """What all blocks share, and how far they are."""

    def __init__(self, settings, log, save):
        super().__init__(settings, log, save)
        self.sets = all_sets(settings)

    def interpreter(self, loader):
        other = loader and loaders.ALL[loader].environment
        return self.settings.build / f'venv-bench-{other}/bin/python' if other \
            else self.settings.python

    def environment(self):
        return {**machine.clean_environment(self.settings), 'PYTHONDONTWRITEBYTECODE': '1',
                'PYTHONPATH': str(self.settings.build / 'python'), 'HF_HUB_OFFLINE': '1',
                'HF_HOME': str(self.settings.dir / 'home'), 'TF_CPP_MIN_LOG_LEVEL': '3',
                'TMPDIR': str(self.settings.dir)}

    def call(self, task, loader, timeout=300, **words):
        argv = (self.interpreter(loader), HERE / 'load.py', task,
                json.dumps({'loader': loader, **words}))
        return run_json(*argv, timeout=timeout, env=self.environment())

    def reader(self, name, task, loader, found=None, from_disk=False, parse=None, timeout=300,
               **words):
        """A run of load.py as the suite's rounds take it."""
        path = self.form(loader, found) if found else words.pop('path')
        words = {'path': str(path), 'disks': self.disks, **words}

        def read(seed):
            point = self.call(task, loader, timeout, seed=seed % 1000000, **words)
            return {'bytes': 0, **(parse(point) if parse else point)}

        made = readers.Reader(name, None, None, from_disk=from_disk, prepares=True)
        made.read = read
        return made

    # ---- forms

    def form(self, loader, found):
        form = loaders.ALL[loader].form
        return found.tree() if form == 'tree' else found.path(form)

    def make(self, found, names):
        """In each form that is missing; names of loaders that cannot have theirs are dropped."""
        kept = []
        for name in names:
            kind = loaders.ALL[name]
            try:
                found.begin()
                if not found.path(kind.form).exists():
                    tree = found.tree()
                    with found.making(kind.form) as path:
                        if path:
                            self.call('write', name, 1800, path=str(path), tree=str(tree))
                kept.append(name)
            except Failed as error:
                self.log.skip(name, error)
        return kept


# ---- epochs: everybody's loader ----

MODES = {'main': '1 process', 'workers': '4 workers', 'threads': 'threads'}


def variants(bench, kind, warm, quick):
    """(loader, mode): each loader in each of its modes; of Stele by mmap only what is warm."""
    for name, loader in loaders.ALL.items():
        if loader.only and not (warm and loader.only == 'warm'):
            continue
        if bench.settings.few and not loader.alone or kind.pictures and not loader.decodes:
            continue
        for mode in loader.modes:
            if not (quick and mode == 'main' and 'workers' in loader.modes):
                yield name, mode


def epoch_block(kind, warm):
    block = f"{kind.name}{' warm' * warm}"

    def run(bench):
        if not bench.wanted(block):
            return
        found = bench.sets[kind.name]
        # In one process nothing overlaps: shown once, for the largest samples.
        chosen = list(variants(bench, kind, warm, kind.name != 'large' or warm))
        kept = bench.make(found, list(dict.fromkeys(name for name, _ in chosen)))
        bench.run(block, [
            bench.reader(f'{name}, {MODES[mode]}', 'epoch', name, found, mode=mode,
                         batch=kind.batch, pictures=kind.pictures, warm=warm,
                         seconds=bench.settings.seconds, from_disk=not warm,
                         weigh=not bench.done(block))
            for name, mode in chosen if name in kept])
    return block, run


def beyond_block(kind):
    """A random order of a set that the page cache is of no use for, as if it were far larger."""
    block = f'beyond {kind.name}'

    def run(bench):
        if not bench.wanted(block):
            return
        found = bench.sets[kind.name]
        chosen = [(name, 'threads' if 'threads' in loader.modes else 'workers')
                  for name, loader in loaders.ALL.items()
                  if loader.order == 'random' and loader.only != 'warm'
                  and name not in SLOW and (loader.alone or not bench.settings.few)]
        kept = bench.make(found, list(dict.fromkeys(name for name, _ in chosen)))
        bench.run(block, [
            bench.reader(f'{name}, {MODES[mode]}', 'epoch', name, found, mode=mode,
                         batch=kind.batch, seconds=bench.settings.seconds, from_disk=True,
                         forget=True)
            for name, mode in chosen if name in kept])
    return block, run


def c_reader(bench, name, path, *options, **how):
    """The command, with the time of processors that it took itself."""
    made = readers.stele(bench.settings, name, path, *options, **how)
    plain = made.read

    def read(seed):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        point = plain(seed)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return {**point, 'cpu_us': spent / point['samples'] * 1e6}

    made.read = read
    return made


def view_reader(bench, found, via, name, **words):
    """The image is mounted for each run: what serves a view has caches of its own."""
    place = bench.settings.dir / 'mounts' / via
    place.mkdir(parents=True, exist_ok=True)
    made = bench.reader(name, 'epoch', FILES, path=place, **words)
    plain = made.read

    def read(seed):
        machine.forget(found.path('posix'))
        process.run(bench.settings.build / 'stele', 'mount', f'--via={via}',
                    f"{found.path('posix')}@v1", place, env=bench.environment())
        unmount = process.later('umount', place)
        try:
            return plain(seed)
        finally:
            process.undo(unmount)

    made.read = read
    return made


def views(bench):
    """A program that reads files: the tree on the disk's own filesystem, and an image's views."""
    if not bench.wanted('views'):
        return
    found, chosen = bench.sets['views'], []
    tree = found.tree()
    with found.making('posix') as path:
        if path:
            process.run(bench.settings.build / 'stele', 'build', '-q', '--posix',
                        '--granule=512', '--label-from=none', tree, path, timeout=900)
    for mode in loaders.ALL[FILES].modes:
        words = {'mode': mode, 'batch': 64, 'seconds': bench.settings.seconds, 'epochs': 1,
                 'from_disk': True}
        chosen.append(bench.reader(f'{FILES}, {TREE}, {MODES[mode]}', 'epoch', FILES, path=tree,
                                   **words))
        chosen += [view_reader(bench, found, via, f'{FILES}, {name}, {MODES[mode]}', **words)
                   for via, name in VIEWS.items()]
    bench.run('views', chosen)


def limit_block(kind):
    """Loader against the C loader: nothing else reads this."""
    block = f'limit {kind.name}'

    def run(bench):
        if not bench.wanted(block):
            return
        found = bench.sets[block]
        bench.make(found, ['stele Loader'])
        sets.remove(found.path('tree'))
        path = found.path('stele')
        pinned = f', depth {DEPTH}'  # so that it is not the search for one that differs
        chosen = [c_reader(bench, name, path, '--loader', f'--batch={kind.batch}', *more)
                  for name, more in ((C_LOADER, ()), (C_LOADER + pinned, (f'--depth={DEPTH}',)))]
        chosen += [bench.reader(name, 'epoch', 'stele Loader', path=path, from_disk=True,
                                mode='threads', batch=kind.batch,
                                seconds=bench.settings.seconds, options=options)
                   for name, options in (('Loader', {'samples': True}),
                                         ('Loader' + pinned, {'samples': True, 'depth': DEPTH}),
                                         ('Loader, contiguous batches', {}))]
        bench.run(block, chosen)
    return block, run


# ---- single figures ----

def tmpfs_image(bench, found):
    bench.make(found, ['stele Loader'])
    place = sets.tmpfs(bench.settings, int(found.size * 2.5 + (64 << 20)))
    process.run('cp', found.path('stele'), place / 'image')
    return place / 'image'


def getitems(bench):
    """Batches of 256 by a list of indices, one process: image in a tmpfs, and in memory."""
    if not bench.wanted('getitems'):
        return
    path = tmpfs_image(bench, bench.sets['tiny'])
    how = {'path': path, 'batch': 256, 'seconds': bench.settings.short}
    chosen = [bench.reader(name, 'getitems', 'stele Loader', **how, options=options)
              for name, options in (('tmpfs', {}), ('mmap', {'mmap': True}))]
    for name, more in (('C, batch 256 --sync', ('--batch=256', '--sync')), ('C', ())):
        chosen.append(c_reader(bench, name, path, *more, from_disk=False,
                               seconds=bench.settings.short))
    bench.run('getitems', chosen)


def first_batch(bench):
    """From opening to the first batch: 32 workers, and threads."""
    if not bench.wanted('first', 3):
        return
    found, chosen = bench.sets['small'], []
    names = [name for name, _ in variants(bench, KINDS['small'], False, True)
             if name not in SLOW]
    kept = bench.make(found, list(dict.fromkeys(names)))
    for name in dict.fromkeys(kept):
        for mode in loaders.ALL[name].modes:
            if mode != 'main':
                title = f'{MANY} workers' if mode == 'workers' else 'threads'
                chosen.append(bench.reader(f'{name}, {title}', 'first', name, found, mode=mode,
                                           batch=64, workers=MANY))
    bench.run('first', chosen, 3)


def resuming(bench):
    """A state from the middle of an epoch, to the next batch."""
    if not bench.wanted('resume', 3):
        return
    found, chosen = bench.sets['small'], []
    names = [name for name, loader in loaders.ALL.items()
             if loader.seekable and 'mmap' not in name
             and not (bench.settings.few and not loader.alone)]
    for name in bench.make(found, names):
        mode = 'threads' if 'threads' in loaders.ALL[name].modes else 'main'
        chosen.append(bench.reader(name, 'resume', name, found, mode=mode, batch=256,
                                   batches=max(1, found.count // 512),
                                   options={'stateful': True}))
    bench.run('resume', chosen, 3)


def order(bench):
    """The order of an epoch, once: it follows from the seed."""
    if not bench.wanted('order', 1):
        return
    found = bench.sets['large']
    chosen = list(variants(bench, KINDS['large'], False, True))
    kept = bench.make(found, list(dict.fromkeys(name for name, _ in chosen)))
    bench.run('order', [
        bench.reader(f'{name}, {MODES[mode]}', 'shuffle', name, found, mode=mode, batch=64,
                     count=found.count, warm=True) for name, mode in chosen if name in kept], 1)


def synthetic(bench):
    """Images of any number of samples, sparse: resuming, and what a worker takes."""
    if not bench.wanted('synthetic'):
        return
    path = bench.settings.dir / 'python-synthetic.xfs'
    path.parent.mkdir(parents=True, exist_ok=True)
    with sets.mounted_new(bench.settings, path, 2 << 30) as place:
        chosen = []
        for name, count in SYNTHETIC.items():
            facts = run_json(bench.settings.programs / 'synthetic', count, place / str(count))
            how = {'path': place / str(count), 'batch': 256, 'count': count,
                   'stride': facts['stride'], 'present': facts['present']}
            chosen += [bench.reader(f'{what}, {name}', task, 'stele in DataLoader', **how)
                       for what, task in (('Loader', 'seek'), ('Sampler', 'seek_sampler'))]
            if name == '100 M':
                chosen.append(bench.reader('8 workers', 'workers', 'stele in DataLoader', **how,
                                           mode='workers', workers=8))
        bench.run('synthetic', chosen)
    path.unlink()


def blocks():
    """In order: (block, function, the set that is needed no more behind it)."""
    listed = []
    for name in ('large', 'small'):
        listed.append((*limit_block(KINDS[name]), f'limit {name}'))
    extra = {'large': [beyond_block(KINDS['large']), ('order', order)],
             'small': [beyond_block(KINDS['small']), ('first', first_batch),
                       ('resume', resuming)],
             'tiny': [('getitems', getitems)], 'pictures': []}
    for name, kind in KINDS.items():
        parts = [epoch_block(kind, False), epoch_block(kind, True), *extra[name]]
        listed += [(*part, None) for part in parts[:-1]] + [(*parts[-1], name)]
    return [*listed, ('views', views, 'views'), ('synthetic', synthetic, None)]


def forms_only(bench):
    """Make what the next slices read."""
    for name, kind in KINDS.items():
        if bench.settings.only.search(name):
            chosen = list(variants(bench, kind, True, False))
            bench.make(bench.sets[name], list(dict.fromkeys(n for n, _ in chosen)))
    for name in ('limit large', 'limit small'):
        if bench.settings.only.search(name):
            bench.make(bench.sets[name], ['stele Loader'])
            sets.remove(bench.sets[name].path('tree'))


def run_all(bench):
    for block, function, last_of in blocks():
        if bench.settings.only.search(block):
            say(f'bench: {block}')
        try:
            function(bench)
        except Failed as error:
            bench.log.skip(block, error)
        process.undo_all()
        if last_of and not bench.settings.keep:
            sets.remove(bench.sets[last_of].dir)


def facts(settings):
    """Versions of what was measured."""
    packages = {}
    for venv in ('venv-bench', 'venv-bench-mindspore'):
        pip = settings.build / venv / 'bin' / 'pip'
        if pip.exists():
            listed = machine.output(str(pip), 'list', '--format=json',
                                    '--disable-pip-version-check')
            try:
                packages.update({p['name']: p['version'] for p in json.loads(listed)})
            except ValueError:
                continue
    return {'packages': packages, 'interpreter': machine.output(
        str(settings.python), '-c', 'import sys; print(sys.version.split()[0])'),
            'load': os.getloadavg()}
