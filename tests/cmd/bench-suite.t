#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bench-suite.t - what `make bench` makes of its points: ratios, spreads, noise, verdicts
. "${0%/*}/../tap.sh"

requires python3 --version
unset "${!BENCH_@}"

# says WANTED DESCRIPTION: what the Python of stdin prints
says() {
	is "$1" "$(PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=bench python3 - "$tmp" 2>&1)" "$2"
}

says "2.0 2.5 1.75 None" "medians and quartiles" <<'EOT'
from suite.figures import median, quantile
print(median([9, 1, 2]), median([1, 2, 3, 4]), quantile([4, 3, 2, 1], 0.25), median([]))
EOT

# Each round is twice as fast as the one before: ratios of medians would be 3 and more.
says "[2.0, 2.0, 2.0]" "ratios are taken within rounds, invalid runs left out" <<'EOT'
from suite import figures
points = [{'reader': r, 'round': n, 'x': k * 2 ** n} for n in range(3)
          for r, k in (('a', 2), ('b', 1))]
points.append({'reader': 'a', 'round': 3, 'x': 99})  # b did not run
points += [{'reader': r, 'round': 4, 'x': 99 * k, 'invalid': 'warm'}
           for r, k in (('a', 9), ('b', 1))]
print(figures.ratios(points, 'a', 'b', 'x', range(5)))
EOT

says "steady lucky None" "the best variant has the best median, not the best run" <<'EOT'
from suite import figures
points = [{'reader': 'lucky', 'round': n, 'x': x} for n, x in enumerate((1, 1, 9))]
points += [{'reader': 'steady', 'round': n, 'x': 2} for n in range(3)]
both = ['lucky', 'steady']
print(figures.best(points, both, 'x', [0, 1, 2]), figures.best(points, both, 'x', [2]),
      figures.best(points, ['none'], 'x', [0]))
EOT

says "0 /t add,0 /t open,0 /t read 8 9,1 /t read 1 2,2 /t read 8 9,3 /t read 1 2,4 /t close" \
	"a replay goes over the reads again, from any of them on" <<'EOT'
import pathlib
import sys
from suite import readers
readers.REPLAY = pathlib.Path(sys.argv[1]) / 'replay'
readers.REPLAY_RATE = 1e9, 2
readers.write_replay([(1, 2), (8, 9)], '/t', 1, 2)
print(','.join(readers.REPLAY.read_text().split('\n')[1:-1]))
EOT

says "0 1 1 1 1 3" "what makes a round noisy" <<'EOT'
from suite.figures import noise
print(*(len(noise(*a)) for a in ((0.1, 0.01, 100, 110), (0.2, 0), (0, 0.03), (0, 0, 100, 120),
                                 (0, 0, 120, 100), (0.5, 0.5, 1, 9))))
EOT

says "([0, 2], True) ([0, 1, 2], False) ([], False)" \
	"noisy rounds do not count, unless most are" <<'EOT'
from suite.figures import counting_rounds
def rounds(*noise):
    return [{'round': i, 'noise': n} for i, n in enumerate(noise)]
print(counting_rounds(rounds([], ['x'], [])), counting_rounds(rounds([], ['x'], ['x'])),
      counting_rounds([]))
EOT

says "aim floor missed None aim floor missed" "goals to reach and limits to keep" <<'EOT'
from suite.figures import reached
print(reached(1.05, 0.97, 1.05), reached(0.97, 0.97, 1.05), reached(0.96, 0.97, 1.05),
      reached(None, 1, 2), *(reached(v, 5, 2, True) for v in (2, 5, 5.1)))
EOT

says "5.0 500.0 1 sample failed 2 samples failed" \
	"figures of stele bench; a failed sample is no result" <<'EOT'
import json
from suite.process import Failed
from suite.readers import parse_stele
end = {'samples': 10, 'bytes': 1000, 'seconds': 2, 'failed': 0}
seen = parse_stele(json.dumps(end))
words = [seen['samples_per_second'], seen['bytes_per_second']]
for failed in 1, 2:
    try:
        parse_stele(json.dumps({**end, 'failed': failed}))
    except Failed as error:
        words.append(str(error).removeprefix('stele bench: '))
print(*words)
EOT

says "50.0 250.0" "of what fio reads, only the payload counts" <<'EOT'
import json
from suite.readers import parse_fio
job = {'error': 0, 'read': {'total_ios': 100, 'io_bytes': 1000, 'runtime': 2000}}
seen = parse_fio('note\n' + json.dumps({'jobs': [job]}, indent=1), 0.5)
print(seen['samples_per_second'], seen['bytes_per_second'])
EOT

says "c b" "a sweep keeps the best, best first" <<'EOT'
from types import SimpleNamespace as Reader
from suite import rounds
rates = {'a': 1, 'b': 2, 'c': 3}
rounds.measure = lambda reader, *_: {'bytes_per_second': rates[reader.name]}
found = rounds.sweep(rounds.Log(), 'x', [Reader(name=n) for n in rates], Reader(seed=1), 2)
print(*(reader.name for reader in found))
EOT

says "a missing l" "a set that does not fit is left out, largest first" <<'EOT'
import pathlib, sys
from suite import sets
from suite.settings import Settings
settings = Settings()
settings.dir = pathlib.Path(sys.argv[1]) / 'sets'
found = sets.all_sets(settings, 64 << 30)
found = {'a': found['a'], 'l': found['l']}
settings.disk = found['a'].size * 10
needed, allowed, dropped = sets.plan_disk(settings, found)
print('a' if found['a'] else '', 'missing', *dropped, *([] if needed <= allowed else ['over']))
EOT

# One disk is busy with both: no goal. Each of the two forms with two devices has its own bound.
says "0.500 missed limit: reading, 1.5 processors busy; \
0.250 missed limit: writing, 1.5 processors busy; 0.833 0.500 1.250" \
	"builds against the slower of two devices, and on one disk" <<'EOT'
from suite import goals
from suite.rounds import Log
log = Log()
def point(block, reader, rate):
    log.points.append({'block': block, 'round': 0, 'reader': reader, 'bytes_per_second': rate,
                       'busy': 3.0, 'wall': 2.0})
for block, read, write in (('build', 2, 3), ('build to memory', 2, 9), ('build from memory', 9, 4)):
    log.rounds.append({'block': block, 'round': 0, 'noise': []})
    for reader, rate in (('build small files', 1), ('read small files 8 threads', read),
                         ('read small files 4 threads', read / 2), ('device write', write),
                         ('build one stream', 5), ('copy one stream', read * 2)):
        point(block, reader, rate)
def builds(rows):
    return {r['text']: r for r in rows if r['spread'] and r['block'].startswith('build')}
table, others = builds(goals.table(log)), builds(goals.others(log))
two = [table.pop(f'build against min(source, device), small files, {where}')
       for where in ('disk to memory', 'memory to disk')]
one = [others[f'{text}, one disk']['spread']['median'] for text in (
    'build of small files against reading, then writing',
    'build against min(source, device), small files', 'build of one stream against fio copying it')]
print('; '.join(f"{r['spread']['median']:.3f} {r['reached']} {r['note']}" for r in two) + ';',
      *(f'{m:.3f}' for m in one), *table)
EOT

says "mounted, too much" "a filesystem in memory takes half of what is free, and no more" <<'EOT'
import pathlib, sys
from suite import machine, process, sets
from suite.settings import GIB, Settings
settings = Settings()
settings.dir = pathlib.Path(sys.argv[1]) / 'sets'
machine.memory = lambda what: {'MemAvailable': 4 * GIB}[what]
process.later = lambda *argv: None
sets.run = lambda *argv: print(argv[0] + 'ed', end=', ')
sets.tmpfs(settings, 2 * GIB)
try:
    sets.tmpfs(settings, 2 * GIB + 1)
except process.Failed as error:
    print('too much' if 'too much' in str(error) else error)
EOT

# Two rounds, of which the second is twice as fast; depth 8 has 97 % of the best, 4 has not.
says "8 16 0.90 1.50 0.50 0.1 2 None" \
	"the knee of a case, and the automatic depth beside it, within rounds" <<'EOT'
from suite import knee
from suite.rounds import Log
log, block = Log(), knee.block_of('disk', '20 KiB')
def slices(rate):
    """Too slow, too deep, and as it should be: from 100 ms on."""
    return [[rate * 0.5 * knee.SLICE, 1, 4]] * 2 + [[rate * knee.SLICE, 1, 64]] * 2 + \
        [[rate * knee.SLICE, 1, 4]] * 8
for n in range(3):
    log.rounds.append({'block': block, 'round': n, 'noise': ['x'] if n == 2 else []})
    rates = {4: 96, 8: 97, 16: 100, 32: 99} if n < 2 else {4: 999, 8: 1, 16: 1, 32: 1}
    for depth, rate in [*rates.items(), (0, 90)]:
        rate *= 2 ** n
        log.points.append({'block': block, 'round': n, 'reader': knee.name_of(depth, False),
                           'bytes_per_second': rate, 'p99_us': 2 * (depth or 12) * (n + 1),
                           'in_flight': depth or 4,
                           'slices': None if depth else slices(2 ** n * 100)})
seen = knee.case_figures(log, 'disk', '20 KiB', False)
print(seen['knee'], seen['best'],
      *(f"{seen[k]['median']:.2f}" for k in ('rate', 'p99', 'in_flight')),
      f"{seen['settled']['median']:.1f}", seen['rate']['count'],
      knee.case_figures(log, 'disk', '20 KiB', True))
EOT

says "0.05 None None" "settled: a tenth of a second at that rate, and no deeper" <<'EOT'
from suite.knee import SLICE, first_settled
good, slow, deep = [100 * SLICE, 1, 8], [10 * SLICE, 1, 8], [100 * SLICE, 1, 80]
print(first_settled([slow, deep, *[good] * 4], 95, 16), first_settled([good] * 3, 95, 16),
      first_settled([good, deep] * 9, 95, 16))
EOT

# 40 slices are the first second: what they delivered does not count.
says "1000 250.0 1.5" "what a run of knee says, behind its first second" <<'EOT'
import json
from suite import knee
first, then = [[9, 9, 9]] * 40, [[25, 1000 / 40, n % 2 + 1] for n in range(4 * 10)]
seen = knee.parse(json.dumps({'p50_us': 1, 'p99_us': 2, 'slices': first + then}))
print(round(seen['samples_per_second']), seen['bytes_per_second'] / 4, seen['in_flight'])
EOT

# At half the rate the knee is 2, which 4 meets at once; back at the whole, 0.5 s are lost.
says "0.5 2 0.0, 2 4 0.5" "seconds to settle after each change of speed" <<'EOT'
from suite import knee
from suite.rounds import Log
log, length = Log(), int(knee.PHASE / knee.SLICE)
def run(*phases):
    return [[rate * knee.SLICE, 1, depth] for rates, depth in phases for rate in rates]
log.rounds.append({'block': 'change', 'round': 0, 'noise': []})
for depth, fast, slow in ((2, 200, 200), (4, 400, 200), (8, 400, 200)):
    log.points.append({'block': 'change', 'round': 0, 'reader': knee.name_of(depth, False),
                       'slices': run(([fast] * length, depth), ([slow] * length, depth),
                                     ([fast] * length, depth))})
late = int(0.5 / knee.SLICE)
log.points.append({'block': 'change', 'round': 0, 'reader': knee.AUTOMATIC, 'slices': run(
    ([400] * length, 4), ([200] * length, 4), ([200] * late + [400] * (length - late), 4))})
print(', '.join(f"{factor:g} {at} {seen['median']}" for factor, at, seen in
                knee.change_figures(log)))
EOT

# A whole report over made-up points: stele at 2, fio at 1 and 3 (noisy), and a build.
says "2.000 aim, 0.500 missed, 1/8.0 floor; 1.600 ring depth 2 against sequential ring depth 8; \
4 charts are XML" "table, verdicts, bounds, charts" <<'EOT'
import pathlib, sys, xml.dom.minidom
from suite import goals, report
from suite.rounds import Log
log = Log()
def point(block, n, reader, rate, cpu=1.0):
    log.points.append({'block': block, 'round': n, 'reader': reader, 'samples_per_second': rate,
                       'bytes_per_second': rate, 'cpu_us_per_sample': cpu})
for n in range(3):
    for block in ('mix', 'peers', 'build to memory'):
        log.rounds.append({'block': block, 'round': n, 'noise': ['x'] if n == 2 else []})
    point('mix', n, 'stele', 2)
    point('mix', n, 'fio depth 8 thp', 1 if n < 2 else 9)
    point('mix', n, 'fio depth 4 thp', 0.5)
    point('peers', n, 'stele', 2)
    point('peers', n, 'ext4 8 threads', 1, 8.0)
    for reader, rate in (('ring depth 1', 3), ('ring depth 2', 8), ('sequential ring depth 4', 4),
                         ('sequential ring depth 8', 5), ('checking ring depth 1', 99)):
        point('mix', n, reader, rate)
    for reader, rate in (('build small files', 1), ('read small files 8 threads', 2),
                         ('read small files 4 threads', 1), ('device write', 3)):
        point('build to memory', n, reader, rate)
rows = {r['text']: r for r in goals.table(log) if r['spread']}
fio = rows["random read, crc on, against fio's best"]
cpu = rows['CPU per sample against the ext4 tree, 8 threads']
build = rows['build against min(source, device), small files, disk to memory']
others = {r['text']: r for r in goals.others(log)}
places = others['the ring, random against sequential']
out = pathlib.Path(sys.argv[1])
facts = dict.fromkeys(('time', 'git', 'kernel', 'processors', 'processor', 'hypervisor', 'disk',
                       'filesystem', 'thp', 'fio'), '?')
text = report.write(log, {**facts, 'memory': 0}, {'quick': False}, out)
assert '3 of 9 rounds were noisy' in text, text
charts = list(out.glob('*.svg'))
for chart in charts:
    xml.dom.minidom.parse(str(chart))
print(f"{fio['spread']['median']:.3f} {fio['reached']}, {build['spread']['median']:.3f} "
      f"{build['reached']}, 1/{1 / cpu['spread']['median']:.1f} {cpu['reached']}; "
      f"{places['spread']['median']:.3f} {places['note']}; "
      f"{len(charts)} charts are XML")
EOT
done_testing
