# SPDX-License-Identifier: Apache-2.0
"""blocks.py - who runs next to whom, on which set

Each function is one block: it makes the forms that it needs, and runs its readers in rounds.
Names of readers are what goals.py and the report look for.
"""

from . import machine, readers, sets
from .process import Failed, json_lines, run
from .rounds import run_block, sweep
from .settings import MIX

FIO_DEPTHS = (8, 16, 32, 64, 128)
RING_DEPTHS = (8, 16, 32, 64, 128)
DEEP = (64, 128, 256)


class Bench:
    """What all blocks share."""

    def __init__(self, settings, log, found):
        self.settings, self.log, self.sets = settings, log, found
        # What the sweeps of `mix` found best; later blocks begin with it.
        self.fio_best = [(64, 'thp'), (32, 'huge')]
        self.replay_best = [(32, 'pages'), (16, 'huge')]
        self.ring_best = [16, 32]
        disk = machine.disk_of(settings.dir)
        self.disks = [disk] if disk else []

    def run(self, block, chosen, anchor=None, rounds=None):
        run_block(self.log, block, chosen, self.settings, anchor, self.disks, rounds)


def sizes_of(found, facts):
    """fio's words for a set's sizes, and which share of what it reads is payload."""
    if ':split:' in found.description:
        return [f"--bssplit={MIX.replace(',', ':')}"], 1.0
    mean = facts['payload'] / facts['samples']
    size = int(-(-mean // 512) * 512)
    return [f'--bs={size}', '--blockalign=512'], mean / size


def region_of(facts):
    begin = facts['begin'] // 4096 * 4096
    return begin, facts['end'] // 4096 * 4096 - begin


def fio_readers(bench, found, target, pairs, seconds):
    """One for each (depth, kind of memory)."""
    _, facts = found.extents()
    sizes, share = sizes_of(found, facts)
    return [readers.fio(bench.settings, f'fio depth {d} {m}', target, sizes, region_of(facts), d,
                        m, seconds=seconds, payload_share=share) for d, m in pairs]


def replay_readers(bench, found, target, pairs, seconds):
    """One for each (depth, kind of memory), too."""
    _, facts = found.extents()
    reads = found.iolog()
    share = facts['payload'] / sum(size for _, size in reads)
    return [readers.replay(bench.settings, f'fio replay depth {d} {m}', target, reads, d, m,
                           seconds, share) for d, m in pairs]


def ring_readers(bench, found, target, depths, seconds):
    trace, _ = found.extents()
    return [readers.ring(bench.settings, f'ring depth {d}', trace, target, d, seconds=seconds)
            for d in depths]


def other_rings(bench, found, target):
    """What holds any reader back: looking at the bytes, and reads all over the place."""
    trace, _ = found.extents()
    return [readers.ring(bench.settings, f'{kind} ring depth {d}', trace, target, d, option)
            for kind, option, depths in (('checking', '-c', DEEP), ('sequential', '-o', DEEP[:2]))
            for d in depths]


def sweep_bounds(bench, block, found, target):
    """Each depth and kind of memory once, short: what is best goes into the rounds."""
    short = min(1.0, bench.settings.seconds)
    pairs = [(d, m) for d in FIO_DEPTHS for m in readers.FIO_MEMORY]
    made = fio_readers(bench, found, target, pairs, short)
    kept = sweep(bench.log, block, made, bench.settings, 3, bench.disks)
    bench.fio_best = [pairs[made.index(r)] for r in kept] or bench.fio_best
    bench.replay_best = []
    for memory in ('pages', 'huge'):
        pairs = [(d, memory) for d in FIO_DEPTHS]
        made = replay_readers(bench, found, target, pairs, short)
        kept = sweep(bench.log, block, made, bench.settings, 1, bench.disks)
        bench.replay_best += [pairs[made.index(r)] for r in kept]
    made = ring_readers(bench, found, target, RING_DEPTHS, short)
    kept = sweep(bench.log, block, made, bench.settings, 2, bench.disks)
    bench.ring_best = [RING_DEPTHS[made.index(r)] for r in kept] or bench.ring_best


def bounds(bench, found, target, seconds, deeper=False):
    """fio and the ring, as the sweep found them best; and deeper, for smaller samples."""
    pairs, replays, depths = list(bench.fio_best), list(bench.replay_best), list(bench.ring_best)
    if deeper:
        pairs = [(max(d for d, _ in pairs) * k, pairs[0][1]) for k in (1, 2, 4)]
        replays = [(d * k, m) for d, m in replays for k in (1, 2)]
        depths = [max(depths), max(depths) * 2]
    return (fio_readers(bench, found, target, pairs, seconds) +
            replay_readers(bench, found, target, replays, seconds) +
            ring_readers(bench, found, target, depths, seconds))


def anchor_of(bench, found, target):
    trace, _ = found.extents()
    return readers.ring(bench.settings, 'anchor', trace, target, 16,
                        seconds=min(0.7, bench.settings.seconds))


def one_epoch(bench, found):
    """Whole epochs, for what reads in order of size: about as long as the others."""
    epochs = max(1, round(bench.settings.seconds * 1.2e9 / found.size))
    return f'--epochs={epochs}'


def try_mount(bench, what, make, *options):
    try:
        return sets.mount(bench.settings, make(), *options)
    except Failed as error:
        bench.log.skip(what, error)
        return None


def tree_readers(bench, found):
    """Peers that are filesystems, and files that hold all."""
    made = found.description

    def peer(name, program, path, **how):
        return readers.peer(bench.settings, name, program, made, path, **how)

    chosen = [peer('ext4 1 thread', 'tree', found.tree()),
              peer('ext4 8 threads', 'tree', found.tree(), threads=8),
              peer('packed 1 thread', 'packed', found.tar()),
              peer('packed 8 threads', 'packed', found.tar(), threads=8),
              peer('tar in sequence', 'packed', found.tar(), sequential=True),
              peer('LMDB 1 thread', 'lmdb', found.lmdb()),
              peer('LMDB 8 threads', 'lmdb', found.lmdb(), threads=8)]
    images = (('XFS', found.xfs, 'tree', ('norecovery',), (1, 8)),
              ('EROFS', found.erofs, '', (), (1, 8)), ('squashfs', found.squashfs, '', (), (8,)))
    for name, make, below, options, counts in images:
        place = try_mount(bench, name, make, *options)
        if place:
            chosen += [peer(f"{name} {n} thread{'s' * (n > 1)}", 'tree', place / below, threads=n)
                       for n in counts]
    return chosen


def mix(bench):
    """Set A, on the disk's own filesystem: Stele, and what bounds it."""
    found = bench.sets['a']
    target = found.image()

    def made(name, *options, **how):
        return readers.stele(bench.settings, name, target, *options, **how)

    sweep_bounds(bench, 'mix', found, target)
    chosen = [made('stele'), made('stele no crc', '--verify=none'),
              made('stele sequential', '--order=sequential', limit=one_epoch(bench, found)),
              made('stele windowed', '--order=windowed')]
    chosen += bounds(bench, found, target, bench.settings.seconds)
    chosen += other_rings(bench, found, target)
    bench.run('mix', chosen, anchor_of(bench, found, target))


def peers(bench):
    """Set A: against filesystems, and files that hold all; and what is there to win."""
    found = bench.sets['a']
    target = found.image()
    seconds = bench.settings.seconds
    chosen = [readers.stele(bench.settings, 'stele', target)] + tree_readers(bench, found)
    chosen += fio_readers(bench, found, target, bench.fio_best[:1], seconds)
    chosen += ring_readers(bench, found, target, bench.ring_best[:1], seconds)
    bench.run('peers', chosen, anchor_of(bench, found, target))


def loop(bench):
    """Set A again, through a loop device: a block device, at the price of a thread's hop."""
    found = bench.sets['a']
    node, _ = sets.loop(found.image(), '-r')
    short = bench.settings.short
    chosen = [readers.stele(bench.settings, 'stele', node, seconds=short)]
    chosen += bounds(bench, found, node, short)
    bench.run('loop', chosen)


def essential(block):
    def run(bench):
        found = bench.sets[block]
        target = found.image(keep_tree=block != 'l')
        short = bench.settings.short
        chosen = [readers.stele(bench.settings, 'stele', target, seconds=short)]
        chosen += bounds(bench, found, target, short, deeper=block != 'l')
        if block != 'l':
            chosen += [readers.peer(bench.settings, f"ext4 {n} thread{'s' * (n > 1)}", 'tree',
                                    found.description, found.tree(), threads=n, seconds=short)
                       for n in (1, 8)]
        bench.run(block, chosen, anchor_of(bench, found, target))
    run.__doc__ = {'l': 'A set larger than half the memory: no cache of this machine holds it.',
                   'b': 'Pictures of 20 KiB.', 'e': 'Samples of 100 to 2048 bytes.'}[block]
    return run


def memory(bench):
    """Devices in memory, where the checksum is a large share of all work."""
    found = bench.sets['m']
    image = sets.tmpfs(bench.settings, int(found.size * 1.2 + (64 << 20))) / 'image'
    sets.run(bench.settings.build / 'stele', 'build', '-q', '--label-from=none', found.tree(), image)
    node, _ = sets.loop(image, '-r')
    chosen = []
    for where, target in (('loop', node), ('tmpfs', image)):
        chosen += [readers.stele(bench.settings, f'{where} {check}', target, f'--verify={check}',
                                 seconds=bench.settings.short, from_disk=False)
                   for check in ('crc', 'none')]
    bench.run('memory', chosen)


# Batch and seconds of computing per batch of MLPerf Storage v2.0's configurations, and the
# share of time that an accelerator must be busy there.
ACCELERATORS = {
    'resnet50': (400, {'a100': 0.435, 'h100': 0.224}, 0.90),
    'cosmoflow': (1, {'a100': 0.00551, 'h100': 0.00350}, 0.70),
    'unet3d': (7, {'a100': 0.636, 'h100': 0.323}, 0.90),
}


def accelerators(bench):
    """Samples as MLPerf Storage's training workloads have them, and how many they would feed."""
    for name in ACCELERATORS:
        found = bench.sets[name]
        if not found:
            continue
        target = found.image(keep_tree=False)
        bench.run('accelerators ' + name,
                  [readers.stele(bench.settings, name, target, seconds=bench.settings.short)])
        emulate(bench, name, target)


def emulate(bench, name, target):
    """How many emulated ones stele bench keeps busy, by its own search."""
    # Long against what its loaders hold in the beginning: three batches.
    seconds = max(bench.settings.short, 16 * ACCELERATORS[name][1]['h100'])
    reader = readers.stele(bench.settings, 'emulated', target, f'--accelerator={name}',
                           '--accelerators=max', limit=f'--time={seconds:g}')
    machine.drop_caches()
    try:
        found = json_lines(run(*reader.argv(bench.settings.seed), env=reader.env))[-1]
    except Failed as error:
        bench.log.skip(f'emulated accelerators, {name}', error)
        return
    bench.log.points.append({'block': 'emulated', 'reader': name, 'round': 0,
                             **found['accelerators']})


BLOCKS = {'mix': mix, 'peers': peers, 'loop': loop, 'l': essential('l'),
          'b': essential('b'), 'e': essential('e'), 'memory': memory,
          'accelerators': accelerators}
