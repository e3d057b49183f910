# SPDX-License-Identifier: Apache-2.0
"""knee.py - the depth that a reader finds, beside the smallest fixed one that is as good

A *case* is a device, a set of samples, and who computes checksums: the reader's thread (inline)
or helpers. In each round the automatic depth and every fixed one run once. The knee is the
smallest fixed depth with 97 % of the rate of the best, by medians over the rounds; what the
automatic one does from its first second on is set against both, within rounds. Fixed depths run
for a shorter time, so that a round is over before the device is another one.
"""

import contextlib
import dataclasses
import os
import pathlib
import subprocess
import time

from . import figures, machine, process, readers, rounds, sets, special
from .process import Failed, json_lines, run, say
from .settings import MIX

DEPTHS = (2, 4, 8, 16, 32, 64, 128, 256)
KNEE = 0.97
SETTLED = 0.95  # of the best rate, with at most twice the knee in flight, for a tenth of a second
SLICE = 0.025
WARM = 1.0  # seconds until it counts, and for which it then does
WARM_FIXED, COUNTED_FIXED = 0.2, 0.6
AUTOMATIC = 'automatic'
HELPERS = ' helpers'  # ends the names of readers with threads for checksums
# Name: description for bench/content.h, mean size, samples. Small: several times over on the disk.
SETS = {'75 KiB mix': ('split:' + MIX, sets.MEANS['mix'], 6000),
        '20 KiB': ('fixed:20480', 20480, 16000),
        '1 KiB': ('fixed:1024', 1024, 120000),
        '10 KiB': ('fixed:10240', 10240, 20000)}
CASES = list(SETS)[:3]
DEVICES = ('disk', 'loop', 'rbd')
BATCH = 1000
FIO = 2  # seconds
# Of a loop device while it is throttled, in turns of PHASE seconds each.
THROTTLES = (400e6, 200e6, 400e6)
PHASE = 2.5
DEPTHS_THROTTLED = (2, 4, 8)


class Bench(rounds.Sliced):
    """What all blocks share. A target is made once."""

    def __init__(self, settings, log, save):
        super().__init__(settings, log, save)
        self.targets = {}
        self.ceph_conf = None

    def target(self, device, name):
        if (device, name) not in self.targets:
            self.targets[device, name] = self._make(device, name)
        return self.targets[device, name]

    def _make(self, device, name):
        description, mean, count = SETS[name]
        image = sets.Set(self.settings, ('knee ' + name).replace(' ', '-'), description, mean,
                         self.settings.count(count)).image(keep_tree=False)
        if device == 'rbd':
            return self._copy(image, name)
        return image if device == 'disk' else sets.loop(image, '-r')[0]

    def _copy(self, image, name):
        if not self.ceph_conf:
            self.ceph_conf = special.start_ceph()
        target = f"rbd:rbd/{name.replace(' ', '-')}?conf={self.ceph_conf}"
        run(self.settings.build / 'stele', 'copy', '-q', image, target, timeout=900)
        return target


# ---- readers ----

def parse(text, since=WARM):
    seen = json_lines(text)[-1]
    warm = seen['slices'][round(since / SLICE):]
    seconds = len(warm) * SLICE
    return readers.rates(sum(s[1] for s in warm), sum(s[0] for s in warm), seconds,
                         seen['p50_us'], seen['p99_us'],
                         in_flight=sum(s[2] for s in warm) / len(warm), slices=seen['slices'])


def argv(bench, target, depth, helpers, seconds, seed, warm=WARM):
    return [str(a) for a in (bench.settings.programs / 'knee', '-d', depth, '-c',
                             os.cpu_count() if helpers else 0, '-s', seconds, '-w', warm,
                             '-r', seed, target)]


def name_of(depth, helpers):
    return (f'depth {depth}' if depth else AUTOMATIC) + (HELPERS if helpers else '')


def reader(bench, target, depth, helpers, from_disk):
    """Reads with O_DIRECT, so that no cache of this machine need be dropped."""
    warm, counted = (WARM_FIXED, COUNTED_FIXED) if depth else (WARM, WARM)
    return readers.Reader(name_of(depth, helpers),
                          lambda seed: argv(bench, target, depth, helpers, warm + counted, seed,
                                            warm),
                          lambda text: parse(text, warm), from_disk=from_disk, prepares=True,
                          env=machine.clean_environment(bench.settings))


def neighbour(bench, target, depth, fio):
    """fio's 4 KiB reads, one at a time, while somebody reads samples."""
    env = machine.clean_environment(bench.settings)

    def read(seed):
        with subprocess.Popen(argv(bench, target, depth, False, WARM + FIO + 0.3, seed), env=env,
                              stdout=subprocess.DEVNULL) as other:
            time.sleep(WARM)
            seen = readers.parse_fio(run(*fio, f'--randseed={seed}', env=env), 1.0)
        if other.returncode:
            raise Failed('knee: failed')
        return seen

    found = readers.Reader('beside ' + name_of(depth, False), None, None, from_disk=False,
                           prepares=True)
    found.read = read
    return found


def fio_beside(device, target):
    """4 KiB at random, one at a time."""
    common = ['fio', '--name=neighbour', '--rw=randread', '--bs=4k', '--iodepth=1', '--direct=1',
              f'--runtime={FIO}', '--time_based', '--readonly', '--output-format=json']
    if device != 'rbd':
        return [*common, f'--filename={target}', '--ioengine=psync']
    return [*common, '--ioengine=rbd', '--clientname=admin', '--pool=rbd',
            f"--rbdname={target[target.index('/') + 1:target.index('?')]}"]


# ---- blocks ----

def block_of(device, name):
    return f'knee, {device}, {name}'


def case(bench, device, name):
    """Every depth, both ways to compute checksums."""
    target = bench.target(device, name)
    bench.run(block_of(device, name), [reader(bench, target, depth, helpers, device != 'rbd')
                                       for depth in (0, *DEPTHS) for helpers in (False, True)])


def neighbours(bench, device, name='75 KiB mix'):
    """Beside the automatic depth, the knee, and the deepest."""
    knee, _ = find_knee(bench.log, block_of(device, name), False)
    if not knee:
        raise Failed(f'no knee of {block_of(device, name)} is known')
    target = bench.target(device, name)
    if device == 'rbd':
        os.environ['CEPH_CONF'] = bench.ceph_conf
    fio = fio_beside(device, str(target))
    bench.run(f'neighbour, {device}', [neighbour(bench, target, depth, fio)
                                       for depth in sorted({0, knee, DEPTHS[-1]})])


def batches(bench):
    """Batches in order, as a loader hands them out."""
    made = readers.stele(bench.settings, 'loader', bench.target('disk', '10 KiB'), '--loader',
                         f'--batch={BATCH}', seconds=3)
    bench.run('batches', [dataclasses.replace(made, prepares=True)])


@contextlib.contextmanager
def throttled(node):
    """Yields (what sets bytes/s, what puts a process below it): a group of blkio, version 1."""
    group = pathlib.Path(f'/sys/fs/cgroup/blkio/stele-bench-{os.getpid()}')
    number = os.stat(node).st_rdev
    try:
        group.mkdir()
    except OSError as error:
        raise Failed(f'no throttle: {error}') from error
    remove = process.later('rmdir', group)
    try:
        yield (lambda rate: (group / 'blkio.throttle.read_bps_device').write_text(
            f'{os.major(number)}:{os.minor(number)} {int(rate)}\n', encoding='ascii'),
               lambda pid: (group / 'cgroup.procs').write_text(f'{pid}\n', encoding='ascii'))
    finally:
        process.undo(remove)


def changing(bench, node, depth):
    """A loop device that is throttled to half, and back, while it is read."""
    env = machine.clean_environment(bench.settings)
    seconds = PHASE * len(THROTTLES)

    def read(seed):
        with throttled(node) as (limit, join):
            limit(THROTTLES[0])
            with subprocess.Popen(argv(bench, node, depth, False, seconds, seed), env=env,
                                  stdout=subprocess.PIPE, text=True,
                                  preexec_fn=lambda: join(os.getpid())) as other:
                for rate in THROTTLES[1:]:
                    time.sleep(PHASE)
                    limit(rate)
                text = other.communicate()[0]
        if other.returncode:
            raise Failed('knee: failed')
        return parse(text)

    found = readers.Reader(name_of(depth, False), None, None, prepares=True)
    found.read = read
    return found


def change(bench):
    node = bench.target('loop', '75 KiB mix')
    bench.run('change', [changing(bench, node, depth) for depth in (0, *DEPTHS_THROTTLED)])


def steps():
    """In order: (block, the function that runs it, its arguments)."""
    listed = []
    for device in DEVICES:
        listed += [(block_of(device, name), case, (device, name)) for name in CASES]
        listed.append((f'neighbour, {device}', neighbours, (device,)))
    return [*listed, ('batches', batches, ()), ('change', change, ())]


def run_all(bench):
    for block, function, arguments in steps():
        if not bench.wanted(block):
            continue
        say(f'bench: {block}')
        machine.drop_caches()  # and what others wrote is on the disk
        try:
            function(bench, *arguments)
        except Failed as error:
            bench.log.skip(block, error)


# ---- figures ----

def find_knee(log, block, helpers):
    """(the smallest depth with 97 % of the best rate, the best depth); (None, None): not run."""
    counted, _ = figures.counting_rounds(log.rounds_of(block))
    medians = {}
    for depth in DEPTHS:
        found = figures.by_round(log.of(block), name_of(depth, helpers), 'bytes_per_second')
        if found:
            medians[depth] = figures.median([v for r, v in found.items() if r in counted])
    medians = {d: m for d, m in medians.items() if m}
    if not medians:
        return None, None
    best = max(medians, key=medians.get)
    return min(d for d in medians if medians[d] >= KNEE * medians[best]), best


def first_settled(slices, rate, most):
    """Seconds until a tenth of one has that rate with at most so much in flight; None: never."""
    for i in range(len(slices) - 3):
        part = slices[i:i + 4]
        if (sum(s[0] for s in part) / (4 * SLICE) >= rate and
                sum(s[2] for s in part) / 4 <= most):
            return i * SLICE
    return None


def case_figures(log, device, name, helpers):
    """What the issue asks for, of one case; None: it was not run."""
    block = block_of(device, name)
    found, best = find_knee(log, block, helpers)
    points = log.of(block)
    counted, quiet = figures.counting_rounds(log.rounds_of(block))
    if not found:
        return None
    automatic = name_of(0, helpers)

    def ratio(field, depth):
        return figures.spread(figures.ratios(points, automatic, name_of(depth, helpers), field,
                                             counted))

    bests = figures.by_round(points, name_of(best, helpers), 'bytes_per_second')
    slices = figures.by_round(points, automatic, 'slices')
    settled = [first_settled(slices[r], SETTLED * bests[r], 2 * found) for r in counted
               if r in slices and r in bests]
    return {'knee': found, 'best': best, 'quiet': quiet, 'rate': ratio('bytes_per_second', best),
            'p99': ratio('p99_us', found), 'in_flight': ratio('in_flight', found),
            'settled': figures.spread([WARM + 1 if s is None else s for s in settled])}


def change_figures(log):
    """Of each change of speed: seconds until it was settled, in every round."""
    points = log.of('change')
    counted, _ = figures.counting_rounds(log.rounds_of('change'))
    length = int(PHASE / SLICE)
    found = []
    for phase in range(1, len(THROTTLES)):
        # The second half of a phase, of each fixed depth: what it delivers at this speed.
        rates = {d: figures.median([sum(s[0] for s in v[length * phase + length // 2:
                                                        length * (phase + 1)]) /
                                    (length - length // 2) / SLICE
                                    for v in figures.by_round(points, name_of(d, False),
                                                              'slices').values()])
                 for d in DEPTHS_THROTTLED}
        rates = {d: r for d, r in rates.items() if r}
        if not rates:
            return []
        most = 2 * min(d for d in rates if rates[d] >= KNEE * max(rates.values()))
        slices = figures.by_round(points, AUTOMATIC, 'slices')
        found.append((THROTTLES[phase] / THROTTLES[phase - 1], most // 2, figures.spread(
            [PHASE if s is None else s for s in
             (first_settled(slices[r][length * phase:length * (phase + 1)],
                            SETTLED * max(rates.values()), most)
              for r in counted if r in slices)])))
    return found


def cases():
    return [(device, name, helpers) for device in DEVICES for name in CASES
            for helpers in (False, True)]


def other_figures(log):
    """(what, spread) of a neighbour's p99, a loader's batches, and changes of speed."""
    found = []
    for device in DEVICES:
        block = f'neighbour, {device}'
        counted, _ = figures.counting_rounds(log.rounds_of(block))
        at, _ = find_knee(log, block_of(device, '75 KiB mix'), False)
        ratios = figures.ratios(log.of(block), 'beside ' + AUTOMATIC,
                                f'beside {name_of(at, False)}', 'p99_us', counted) if at else []
        found.append((f"p99 of a neighbour on the {device}, by that beside the knee "
                      '(wanted: <= 1.5)', figures.spread(ratios)))
    found.append((f'p99 / p50 of batches of {BATCH} x 10 KiB, loader (wanted: <= 1.5)',
                  figures.spread([p['p99_us'] / p['p50_us'] for p in log.of('batches')])))
    found += [(f'seconds to settle when a throttled loop device has {factor:g} of its rate, '
               f'knee {at} (wanted: <= 2)', seen) for factor, at, seen in change_figures(log)]
    return [(what, seen) for what, seen in found if seen]
