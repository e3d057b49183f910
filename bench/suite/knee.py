# SPDX-License-Identifier: Apache-2.0
"""knee.py - the depth that a reader finds, beside the smallest fixed one that is as good

A *case* is a device, a set of samples, and who computes checksums: the reader's thread (inline)
or helpers. In each round the automatic depth and every fixed one run once. The knee is the
smallest fixed depth with 97 % of the rate of the best, by medians over the rounds; what the
automatic one does from its first second on is set against both, within rounds.
"""

import contextlib
import os
import pathlib
import subprocess
import time

from . import figures, machine, process, readers, sets, special
from .process import Failed, json_lines, run
from .settings import MIX

DEPTHS = (2, 4, 8, 16, 32, 64, 128)
KNEE = 0.97
SETTLED = 0.95  # of the best rate, with at most twice the knee in flight, for a tenth of a second
SLICE = 0.025
WARM = 1.0
AUTOMATIC = 'automatic'
HELPERS = ' helpers'  # ends the names of readers with threads for checksums
# Name: description for bench/content.h, mean size, samples. Small: several times over on the disk.
SETS = {'75 KiB mix': ('split:' + MIX, sets.MEANS['mix'], 6000),
        '20 KiB': ('fixed:20480', 20480, 16000),
        '1 KiB': ('fixed:1024', 1024, 120000),
        '10 KiB': ('fixed:10240', 10240, 20000)}
DEVICES = ('disk', 'loop', 'rbd')
BATCH = 1000
# Of a loop device while it is throttled, in turns of PHASE seconds each.
THROTTLES = (400e6, 200e6, 400e6)
PHASE = 3.0


def made(bench, name):
    description, mean, count = SETS[name]
    found = sets.Set(bench.settings, ('knee ' + name).replace(' ', '-'), description, mean,
                     bench.settings.count(count))
    return found.image(keep_tree=False)


def ceph_target(bench, name, image):
    if not getattr(bench, 'ceph_conf', None):
        bench.ceph_conf = special.start_ceph()
    target = f"rbd:rbd/{name.replace(' ', '-')}?conf={bench.ceph_conf}"
    run(bench.settings.build / 'stele', 'copy', '-q', image, target, timeout=900)
    return target


def target_of(bench, device, name):
    image = made(bench, name)
    if device == 'disk':
        return image
    if device == 'loop':
        return sets.loop(image, '-r')[0]
    return ceph_target(bench, name, image)


# ---- readers ----

def parse(text):
    seen = json_lines(text)[-1]
    warm = seen['slices'][int(WARM / SLICE):]
    seconds = len(warm) * SLICE
    return readers.rates(sum(s[1] for s in warm), sum(s[0] for s in warm), seconds,
                         seen['p50_us'], seen['p99_us'],
                         in_flight=sum(s[2] for s in warm) / len(warm), slices=seen['slices'])


def argv(bench, target, depth, helpers, seconds, seed):
    return [str(a) for a in (bench.settings.programs / 'knee', '-d', depth, '-c',
                             os.cpu_count() if helpers else 0, '-s', seconds, '-w', WARM,
                             '-r', seed, target)]


def name_of(depth, helpers):
    return (f'depth {depth}' if depth else AUTOMATIC) + (HELPERS if helpers else '')


def reader(bench, target, depth, helpers, from_disk):
    return readers.Reader(name_of(depth, helpers),
                          lambda seed: argv(bench, target, depth, helpers, WARM + 1, seed),
                          parse, from_disk=from_disk, env=machine.clean_environment(bench.settings))


def neighbour(bench, target, depth, fio):
    """fio's 4 KiB reads, one at a time, while somebody reads samples."""
    env = machine.clean_environment(bench.settings)

    def read(seed):
        with subprocess.Popen(argv(bench, target, depth, False, 4, seed), env=env,
                              stdout=subprocess.DEVNULL) as other:
            time.sleep(WARM)
            seen = readers.parse_fio(run(*fio, f'--randseed={seed}', env=env), 1.0)
        if other.returncode:
            raise Failed('knee: failed')
        return seen

    found = readers.Reader('beside ' + name_of(depth, False), None, None, from_disk=False)
    found.read = read
    return found


def fio_beside(bench, device, target):
    """4 KiB at random, one at a time."""
    common = ['fio', '--name=neighbour', '--rw=randread', '--bs=4k', '--iodepth=1', '--runtime=2',
              '--time_based', '--direct=1', '--readonly', '--output-format=json']
    if device != 'rbd':
        return [*common, f'--filename={target}', '--ioengine=psync']
    return [*common, '--ioengine=rbd', '--clientname=admin', '--pool=rbd',
            f"--rbdname={target[target.index('/') + 1:target.index('?')]}"]


# ---- blocks ----

def block_of(device, name):
    return f'knee, {device}, {name}'


def case(bench, device, name):
    """Every depth, both ways to compute checksums."""
    target = target_of(bench, device, name)
    on_disk = device != 'rbd'
    chosen = [reader(bench, target, depth, helpers, on_disk)
              for depth in (0, *DEPTHS) for helpers in (False, True)]
    bench.run(block_of(device, name), chosen)


def neighbours(bench, device, name='75 KiB mix'):
    """Beside the automatic depth, the knee, and the deepest."""
    knee, _ = find_knee(bench.log, block_of(device, name), False)
    if not knee:
        raise Failed(f'no knee of {block_of(device, name)} is known')
    target = target_of(bench, device, name)
    if device == 'rbd':
        os.environ['CEPH_CONF'] = bench.ceph_conf
    fio = fio_beside(bench, device, str(target))
    bench.run(f'neighbour, {device}', [neighbour(bench, target, depth, fio)
                                       for depth in sorted({0, knee, DEPTHS[-1]})])


def batches(bench):
    """Batches in order, as a loader hands them out."""
    target = target_of(bench, 'disk', '10 KiB')
    bench.run('batches', [readers.stele(bench.settings, 'loader', target, '--loader',
                                        f'--batch={BATCH}', seconds=4)])


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

    found = readers.Reader(name_of(depth, False), None, None)
    found.read = read
    return found


def change(bench):
    node = target_of(bench, 'loop', '75 KiB mix')
    bench.run('change', [changing(bench, node, depth) for depth in (0, 2, 4, 8, 16, 32)])


def everything(bench):
    """All of it."""
    for device in DEVICES:
        for name in list(SETS)[:3]:
            try:
                case(bench, device, name)
            except Failed as error:
                bench.log.skip(block_of(device, name), error)
        try:
            neighbours(bench, device)
        except Failed as error:
            bench.log.skip(f'neighbour, {device}', error)
    batches(bench)
    change(bench)


# ---- figures ----

def find_knee(log, block, helpers):
    """(the smallest depth with 97 % of the best rate, the best depth); (None, None): not run."""
    rounds, _ = figures.counting_rounds(log.rounds_of(block))
    medians = {}
    for depth in DEPTHS:
        found = figures.by_round(log.of(block), name_of(depth, helpers), 'bytes_per_second')
        if found:
            medians[depth] = figures.median([v for r, v in found.items() if r in rounds])
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
    rounds, quiet = figures.counting_rounds(log.rounds_of(block))
    if not found:
        return None
    automatic = name_of(0, helpers)

    def ratio(field, depth):
        return figures.spread(figures.ratios(points, automatic, name_of(depth, helpers), field,
                                             rounds))

    bests = figures.by_round(points, name_of(best, helpers), 'bytes_per_second')
    slices = figures.by_round(points, automatic, 'slices')
    settled = [first_settled(slices[r], SETTLED * bests[r], 2 * found) for r in rounds
               if r in slices and r in bests]
    return {'knee': found, 'best': best, 'quiet': quiet, 'rate': ratio('bytes_per_second', best),
            'p99': ratio('p99_us', found), 'in_flight': ratio('in_flight', found),
            'settled': figures.spread([WARM + 1 if s is None else s for s in settled])}


def change_figures(log):
    """Of each change of speed: seconds until it was settled, in every round."""
    points = log.of('change')
    rounds, _ = figures.counting_rounds(log.rounds_of('change'))
    length = int(PHASE / SLICE)
    found = []
    for phase in range(1, len(THROTTLES)):
        # The second half of a phase, of each fixed depth: what it delivers at this speed.
        rates = {d: figures.median([sum(s[0] for s in v[length * phase + length // 2:
                                                        length * (phase + 1)]) /
                                    (length - length // 2) / SLICE
                                    for v in figures.by_round(points, name_of(d, False),
                                                              'slices').values()])
                 for d in DEPTHS}
        rates = {d: r for d, r in rates.items() if r}
        if not rates:
            return []
        most = 2 * min(d for d in rates if rates[d] >= KNEE * max(rates.values()))
        slices = figures.by_round(points, AUTOMATIC, 'slices')
        found.append((THROTTLES[phase] / THROTTLES[phase - 1], most // 2, figures.spread(
            [PHASE if s is None else s for s in
             (first_settled(slices[r][length * phase:length * (phase + 1)],
                            SETTLED * max(rates.values()), most) for r in rounds if r in slices)])))
    return found


def cases():
    return [(device, name, helpers) for device in DEVICES for name in list(SETS)[:3]
            for helpers in (False, True)]


def other_figures(log):
    """(what, spread) of a neighbour's p99, a loader's batches, and changes of speed."""
    found = []
    for device in DEVICES:
        block = f'neighbour, {device}'
        rounds, _ = figures.counting_rounds(log.rounds_of(block))
        at, _ = find_knee(log, block_of(device, '75 KiB mix'), False)
        ratios = figures.ratios(log.of(block), 'beside ' + AUTOMATIC,
                                f'beside {name_of(at, False)}', 'p99_us', rounds) if at else []
        found.append((f"p99 of a neighbour on the {device}, by that beside the knee "
                      '(wanted: <= 1.5)', figures.spread(ratios)))
    found.append((f'p99 / p50 of batches of {BATCH} x 10 KiB, loader (wanted: <= 1.5)',
                  figures.spread([p['p99_us'] / p['p50_us'] for p in log.of('batches')])))
    found += [(f'seconds to settle when a throttled loop device has {factor:g} of its rate, '
               f'knee {at} (wanted: <= 2)', seen) for factor, at, seen in change_figures(log)]
    return [(what, seen) for what, seen in found if seen]


BLOCKS = {'knee': everything}
