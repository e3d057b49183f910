# SPDX-License-Identifier: Apache-2.0
"""python_report.py - the figures of `make bench-python` beside what was set out for, and its tables

All from what python.json holds; bench/python/notes.md says in words what was found.
"""

import re

from . import figures
from .goals import Goal
from .python import C_LOADER, FILES, HERE, KINDS, MODES, SYNTHETIC, TREE, VIEWS, loaders
from .report import fixed, machine_part, table, verdict

RATE = 'samples_per_second'
WHOLE = 'whole_per_second'  # over whole epochs, opening and the first batch included
OURS = 'stele '
MB = 1 / (1 << 20)


def loader_of(reader):
    """The loader that a reader's name begins with; None: none of them."""
    found = [name for name in loaders.ALL if reader.startswith(name + ', ')]
    return loaders.ALL[max(found, key=len)] if found else None


def peers(log, block, order):
    names = {p['reader'] for p in log.of(block)}
    return sorted(n for n in names if not n.startswith(OURS)
                  and (kind := loader_of(n)) and kind.order == order)


def counting(log, block):
    """As figures.counting_rounds(); of a block cut short in its first round, what is there."""
    if not log.rounds_of(block):
        return [0], False
    return figures.counting_rounds(log.rounds_of(block))


# ---- figures ----

def against_c(log, kind, goal):
    block = f'limit {kind}'
    rounds, good = counting(log, block)
    return goal.row(figures.ratios(log.of(block), 'Loader', C_LOADER, RATE, rounds), good)


def against_best(log, block, order, goal, field=RATE):
    """Stele's best reader against the best of those that read in this order."""
    rounds, good = counting(log, block)
    points = log.of(block)
    ours = figures.best(points, {p['reader'] for p in points if p['reader'].startswith(OURS)},
                        field, rounds)
    other = figures.best(points, peers(log, block, order), field, rounds)
    if not ours or not other:
        return goal.row([], good, 'not measured')
    return goal.row(figures.ratios(points, ours, other, field, rounds), good,
                    f'{ours} against {other}')


def single(log, block, reader, field, goal, scale=1.0, note=''):
    rounds, good = counting(log, block)
    values = figures.by_round(log.of(block), reader, field)
    return goal.row([v * scale for r, v in values.items() if r in rounds], good, note)


def goals(log):
    rows = []
    for kind, size in (('large', '75 KiB'), ('small', '20 KiB')):
        rows.append(against_c(log, kind, Goal('', f'`Loader` against the C loader, {size}, cold',
                                              0.9, 0.97)))
    for kind, size in (('large', '75 KiB'), ('small', '20 KiB')):
        rows.append(against_best(log, f'beyond {kind}', 'random', Goal(
            '', f'against the best competitor, full random order, {size}, cold, nothing stays '
            'in the page cache', 1.5, 3)))
    for order, what, floor, aim in (('random', 'full random order', 1.5, 3),
                                    ('shards', 'shards in sequence', 1.0, 1.3)):
        rows += [against_best(log, kind, order,
                              Goal('', f'against the best competitor, {what}, {size}, cold{how}',
                                   floor, aim), field)
                 for kind, size in (('large', '75 KiB'), ('small', '20 KiB'))
                 for field, how in ((RATE, ''), (WHOLE, ', opening included'))]
    rows += [
        single(log, 'getitems', 'tmpfs', RATE, Goal(
            '', '1 KiB, `__getitems__`, batch 256, one process, tmpfs', 0.35, 0.45, unit='M/s'),
            1e-6),
        single(log, 'getitems', 'mmap', RATE, Goal(
            '', 'the same from memory that was read (`mmap=True`)', 1, 2, unit='M/s'), 1e-6),
        single(log, 'first', 'stele in DataLoader, 32 workers', 'first_seconds', Goal(
            '', 'first batch, 32 workers', 1, 0.5, True, 's')),
        single(log, 'first', 'stele Loader, threads', 'first_seconds', Goal(
            '', 'first batch, threads', 0.2, 0.05, True, 's')),
        single(log, 'synthetic', '8 workers', 'worker_more', Goal(
            '', 'memory of a worker, 8 workers, 100 M samples', 20, 5, True, 'MB'), 1e-6,
            'arena included, beyond a worker that reads nothing'),
    ]
    rows += [single(log, 'synthetic', f'{what}, {size}', 'resume_seconds', Goal(
        '', f'resume at any step, {size} samples, {what}', 50, 5, True, 'ms'), 1e3)
        for what in ('Loader', 'Sampler') for size in ('1 M', '813 M') if size in SYNTHETIC]
    return rows


def goal_cells(row):
    sign = '<=' if row['at_most'] else '>='
    limits = [f"{sign} {row[key]:g} {row['unit']}".strip() for key in ('floor', 'aim')]
    found = row['spread']
    if not found:
        return [row['text'], '-', '-', *limits, 'not measured', row['note']]
    digits = 2 if found['median'] >= 0.1 else 4
    words = {'aim': 'aim', 'floor': 'yes', 'missed': '**missed**'}[row['reached']]
    return [row['text'], f"{fixed(found['median'], digits)} {row['unit']}".strip(),
            f"{fixed(found['low'], digits)} - {fixed(found['high'], digits)}", *limits,
            words + ('' if row['quiet'] else ' (noisy)'), row['note']]


def goals_part(log):
    return ('## Figures\n\nMedian over the rounds; ratios are taken within each round. Spread: '
            'the middle half of the rounds.\n\n' +
            table(['figure', 'median', 'spread', 'reach', 'aim', 'reached', ''],
                  [goal_cells(row) for row in goals(log)]))


# ---- tables ----

def middle(log, block, reader, field):
    rounds, _ = counting(log, block)
    return figures.median([v for r, v in figures.by_round(log.of(block), reader, field).items()
                           if r in rounds])


def readers_of(log, block, field=RATE, fastest=True):
    names = {p['reader'] for p in log.of(block) if not p.get('invalid')}
    found = {name: middle(log, block, name, field) for name in names}
    found = {name: value for name, value in found.items() if value is not None}
    return sorted(found, key=found.get, reverse=fastest)


def cell(value, scale=1.0, digits=0):
    return '-' if value is None else fixed(value * scale, digits)


def epoch_part(log, block, title):
    rows = []
    for reader in readers_of(log, block):
        def of(field, scale=1.0, digits=0, name=reader):
            return cell(middle(log, block, name, field), scale, digits)
        kind = loader_of(reader)
        rates = [v for r, v in figures.by_round(log.of(block), reader, RATE).items()
                 if r in counting(log, block)[0]]
        spread = figures.spread(rates)
        rows.append([f'**{reader}**' if reader.startswith(OURS) else reader,
                     kind.order if kind else '', of(RATE), f"{spread['low']:.0f} - "
                     f"{spread['high']:.0f}", of(WHOLE), of('bytes_per_second', 1e-6),
                     of('cpu_us'), of('first_seconds', 1e3), of('pss', MB), of('own', MB),
                     spread['count']])
    if not rows:
        return ''
    return f'### {title}\n\n' + table(
        ['loader', 'order', 'samples/s', 'spread', 'with opening', 'MB/s', 'CPU us', 'first ms',
         'PSS MiB', 'own MiB', 'rounds'], rows)


def views_part(log):
    rounds, _ = counting(log, 'views')
    rows = []
    for mode in loaders.ALL[FILES].modes:
        tree = f'{FILES}, {TREE}, {MODES[mode]}'
        for name in (TREE, *VIEWS.values()):
            reader = f'{FILES}, {name}, {MODES[mode]}'
            rate = middle(log, 'views', reader, RATE)
            by = figures.spread(figures.ratios(log.of('views'), reader, tree, RATE, rounds))
            if rate and by:
                rows.append([name, MODES[mode], cell(rate), fixed(by['median'], 2),
                             f"{by['low']:.2f} - {by['high']:.2f}",
                             cell(middle(log, 'views', reader, 'cpu_us')),
                             cell(middle(log, 'views', reader, 'first_seconds'), 1e3)])
    return '' if not rows else (
        f'### {FILES} on an image, as files\n\n75 KiB, cold: the tree on the disk\'s own '
        'filesystem, and the image of it mounted by the kernel and by FUSE, which verifies '
        'checksums. CPU without what the server of FUSE takes.\n\n' +
        table(['files', '', 'samples/s', 'of the tree', 'spread', 'CPU us', 'first ms'], rows))


def limit_part(log):
    text = ''
    for name in ('large', 'small'):
        block = f'limit {name}'
        rows = [[reader, cell(middle(log, block, reader, RATE)),
                 cell(middle(log, block, reader, 'bytes_per_second'), 1e-6),
                 cell(middle(log, block, reader, 'cpu_us') or
                      middle(log, block, reader, 'cpu_us_per_sample'))]
                for reader in readers_of(log, block)]
        if rows:
            text += f'### Against the C loader: {KINDS[name].title}, cold\n\n' + table(
                ['', 'samples/s', 'MB/s', 'CPU us'], rows) + '\n'
    return text


def getitems_part(log):
    rows = [[reader, cell(middle(log, 'getitems', reader, RATE)),
             cell(middle(log, 'getitems', reader, 'cpu_us') or
                  middle(log, 'getitems', reader, 'cpu_us_per_sample'), 1, 2)]
            for reader in readers_of(log, 'getitems')]
    return '' if not rows else (
        '### `__getitems__`: 1 KiB in memory\n\n' +
        table(['', 'samples/s', 'CPU us'], rows))


def first_part(log):
    rows = [[reader, cell(middle(log, 'first', reader, 'first_seconds'), 1e3),
             cell(middle(log, 'first', reader, 'processes')),
             cell(middle(log, 'first', reader, 'pss'), MB)]
            for reader in readers_of(log, 'first', 'first_seconds', False)]
    return '' if not rows else (
        '### Time to the first batch\n\nFrom opening (packages are imported) to a batch of 64 '
        'of 20 KiB, cold.\n\n' + table(['loader', 'ms', 'processes', 'PSS MiB'], rows))


def resume_part(log):
    rows = []
    for reader in readers_of(log, 'resume', 'resume_seconds', False):
        exact = {p.get('exact') for p in log.of('resume') if p['reader'] == reader}
        rows.append([reader, cell(middle(log, 'resume', reader, 'save_seconds'), 1e3, 2),
                     cell(middle(log, 'resume', reader, 'resume_seconds'), 1e3, 1),
                     {frozenset({True}): 'yes', frozenset({False}): '**no**'}.get(
                         frozenset(exact), 'not always'), loaders.ALL[reader].seekable])
    synthetic = [[f'{what}, {size} samples'] + [
        cell(middle(log, 'synthetic', f'{what}, {size}', field), 1e3, 2)
        for field in ('open_seconds', 'resume_seconds')]
        for what in ('Loader', 'Sampler') for size in SYNTHETIC
        if middle(log, 'synthetic', f'{what}, {size}', 'resume_seconds') is not None]
    text = ''
    if rows:
        without = [name for name, kind in loaders.ALL.items() if not kind.seekable]
        text += ('### Resuming in the middle of an epoch\n\n20 KiB, from opening to the next '
                 'batch, which must be the one that would have come.\n\n' +
                 table(['loader', 'save ms', 'resume ms', 'the same batch', 'can resume at'],
                       rows) + f"\nWithout a state: {', '.join(without)}. What came before is "
                 'read again.\n\n')
    if synthetic:
        text += ('### Resuming Stele at any step of synthetic images, cold\n\n' +
                 table(['', 'open ms', 'load state ms'], synthetic))
    return text


def order_part(log):
    rows = []
    for reader in readers_of(log, 'order', 'neighbours'):
        def of(field, digits=3, name=reader):
            return cell(middle(log, 'order', name, field), 1, digits)
        kind, point = loader_of(reader), [p for p in log.of('order')
                                          if p['reader'] == reader][0]
        rows.append([reader, kind.order, of('correlation'), of('neighbours'), of('batch_spread'),
                     f"{point['distinct']} of {point['of']}"
                     + (f", {point['delivered'] - point['distinct']} twice"
                        if point['delivered'] > point['distinct'] else ''),
                     cell(middle(log, 'large', reader, RATE))])
    return '' if not rows else (
        '### How well the order mixes\n\nOf one epoch of the 75 KiB set. Correlation of position '
        'and place in the source: 0 is a full shuffle. Neighbours: mean distance of consecutive '
        'samples; batch: parts of the source that a batch has samples of; both by what a full '
        'shuffle has, 1.\n\n' +
        table(['loader', 'order', 'correlation', 'neighbours', 'batch', 'delivered',
               'samples/s, cold'], rows))


def settings_of(log, settings):
    """As they were in each round: a run may be made in pieces."""
    blocks = {}
    for r in log.rounds:
        blocks.setdefault((r['seconds'], r['scale']), {}).setdefault(r['block'], []).append(r)
    rows = {'seed': settings['seed']}
    for (seconds, scale), found in blocks.items():
        rows[f'runs of {seconds:g} s' + f', {scale:g} of the samples' * (scale != 1) + ':'] = \
            ', '.join(f'{block} {len(rounds)}' for block, rounds in found.items()) + ' rounds'
    ended = {r['block'] for r in log.rounds}
    begun = sorted({p['block'] for p in log.points} - ended)
    return {**rows, 'first rounds that were cut short:': ', '.join(begun)} if begun else rows


def machine_words(log, facts, settings):
    packages = facts.get('packages', {})
    wanted = re.findall(r'^([A-Za-z0-9_.-]+)==', (HERE / 'requirements.txt').read_text() +
                        (HERE / 'alone.txt').read_text() +
                        (HERE / 'mindspore.txt').read_text(), re.M)
    seen = {k.lower().replace('_', '-'): v for k, v in packages.items()}
    rows = [[name, seen.get(name.lower().replace('_', '-'), 'missing')]
            for name in sorted(set(wanted))]
    return (machine_part(log, {**facts, 'fio': '-'}, settings_of(log, settings)) +
            f"\nPython {facts.get('interpreter', '?')}; " +
            ', '.join(f'{n} {v}' for n, v in rows) + '.\n')


def write(log, facts, settings):
    for point in log.points:
        if point.get('first_seconds') and point.get('wall'):
            point[WHOLE] = point['samples'] / point['wall']
    notes = HERE / 'notes.md'
    parts = ['# What `make bench-python` measured\n', verdict(log) + '\n']
    if settings.get('quick'):
        parts.append('**A quick run: it shows that the suite works, and no figures.**\n')
    parts += [goals_part(log)]
    if notes.exists():
        parts.append(notes.read_text(encoding='utf-8'))
    parts += ['## Loaders\n', limit_part(log)]
    for name, kind in KINDS.items():
        parts += [epoch_part(log, f'beyond {name}',
                             f'{kind.title}: cold, nothing stays in the page cache'),
                  epoch_part(log, name, f'{kind.title}: cold'),
                  epoch_part(log, f'{name} warm', f'{kind.title}: warm')]
    parts += [views_part(log), getitems_part(log), first_part(log), resume_part(log),
              order_part(log), machine_words(log, facts, settings)]
    return '\n'.join(part for part in parts if part)
