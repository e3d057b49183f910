# SPDX-License-Identifier: Apache-2.0
"""report.py - results.md and its charts, from what results.json holds"""

from . import blocks, chart, figures, goals, knee
from .special import NOTHING_WARM, SYNTHETIC

TITLES = {
    'mix': 'Set A: ImageNet\'s sizes',
    'peers': 'Set A, against its peers',
    'l': 'Set L: the same, larger than half the memory',
    'loop': 'Set A through a loop device',
    'b': 'Set B: pictures of 20 KiB',
    'e': 'Set E: 100 to 2048 bytes',
    'memory': 'In memory',
    'ceph': 'Ceph RBD, one OSD on this machine',
    'build': 'Building, on one disk',
    'build to memory': 'Building, from the disk to a device in memory',
    'build from memory': 'Building, from files in memory to the disk',
}


def fixed(value, digits=2):
    return '-' if value is None else f'{value:.{digits}f}'


def table(head, rows):
    lines = ['| ' + ' | '.join(head) + ' |', '|' + '---|' * len(head)]
    lines += ['| ' + ' | '.join(str(c) for c in row) + ' |' for row in rows]
    return '\n'.join(lines) + '\n'


# ---- goals ----

def limit(row, key):
    value = row[key]
    if row['unit'] == '' and row['at_most']:
        return f'<= 1/{1 / value:.0f}'
    return f"{'<=' if row['at_most'] else '>='} {value:g} {row['unit']}".strip()


def goal_row(row):
    found = row['spread']
    if not found:
        return [row['text'], '-', '-', limit(row, 'floor'), limit(row, 'aim'),
                row['note'] or 'not measured', '']
    digits = 3 if not row['unit'] else 2
    middle = fixed(found['median'], digits)
    if row['at_most'] and not row['unit'] and found['median']:
        middle += f" (1/{1 / found['median']:.1f})"
    verdict = {'aim': 'aim', 'floor': 'yes', 'missed': '**missed**'}[row['reached']]
    return [row['text'], f"{middle} {row['unit']}".strip(),
            f"{fixed(found['low'], digits)} - {fixed(found['high'], digits)}",
            limit(row, 'floor'), limit(row, 'aim'),
            verdict + ('' if row['quiet'] else ' (noisy)'), row['note']]


def goals_part(log):
    rows = [goal_row(r) for r in goals.table(log)]
    return ('## Goals\n\nMedian over the rounds of the ratio within each round; spread: the '
            'middle half of the rounds.\n\n' +
            table(['figure', 'median', 'spread', 'goal', 'aim', 'reached', ''], rows))


def others_part(log):
    rows = [[r['text'], fixed(r['spread']['median'], 3),
             f"{fixed(r['spread']['low'], 3)} - {fixed(r['spread']['high'], 3)}", r['note']]
            for r in goals.others(log)]
    return '## Other ratios\n\n' + table(['figure', 'median', 'spread', ''], rows) if rows else ''


# ---- readers ----

def spreads(log, block, field):
    rounds, _ = figures.counting_rounds(log.rounds_of(block))
    points = log.of(block)
    found = {}
    for reader in sorted({p['reader'] for p in points}):
        values = [v for r, v in figures.by_round(points, reader, field).items() if r in rounds]
        if values:
            found[reader] = figures.spread(values)
    return found


def reader_rows(log, block):
    columns = {f: spreads(log, block, f) for f in
               ('samples_per_second', 'bytes_per_second', 'cpu_us_per_sample', 'p50_us',
                'p99_us')}
    rows = []
    for reader, rate in sorted(columns['samples_per_second'].items(),
                               key=lambda item: -columns['bytes_per_second'][item[0]]['median']):
        def cell(field, digits=0, scale=1.0, name=reader):
            found = columns[field].get(name)
            return fixed(found['median'] * scale, digits) if found else '-'
        rows.append([reader, f"{rate['median']:.0f}", f"{rate['low']:.0f} - {rate['high']:.0f}",
                     cell('bytes_per_second', 0, 1e-6), cell('cpu_us_per_sample', 1),
                     cell('p50_us'), cell('p99_us'), rate['count']])
    return rows


def block_part(log, block, title, charts):
    rows = reader_rows(log, block)
    if not rows:
        return ''
    quiet = [r for r in log.rounds_of(block) if not r['noise']]
    head = f"### {title}\n\n"
    head += ''.join(f'![{c}]({c})\n' for c in charts.get(block, [])) + '\n'
    text = head + table(['reader', 'samples/s', 'spread', 'MB/s', 'CPU us/sample',
                         'p50 us', 'p99 us', 'rounds'], rows)
    return text + f"\n{len(quiet)} of {len(log.rounds_of(block))} rounds were quiet.\n"


def accelerators_part(log):
    rows, emulated = [], {(p['reader'], p['gpu']): p for p in log.of('emulated')}
    for name, (batch, computing, busy) in blocks.ACCELERATORS.items():
        rate = spreads(log, 'accelerators ' + name, 'samples_per_second').get(name)
        if not rate:
            continue
        for kind, seconds in computing.items():
            wanted = batch / seconds * busy
            seen = emulated.get((name, kind))
            kept = f"{seen['count'] if seen['met'] else 0} at {seen['utilisation']:.0%}" \
                if seen else '-'
            rows.append([name, kind, f"{rate['median']:.1f}", f'{wanted:.1f}',
                         fixed(rate['median'] / wanted, 1), kept])
    if not rows:
        return ''
    return ('### Accelerators\n\nSamples as MLPerf Storage v2.0 configures them; how many '
            'accelerators one thread would keep as busy as it asks for, by division; and how '
            'many `stele bench --accelerator` does keep so busy, by emulation. No submission, '
            'and none of its rules on the size of sets is met.\n\n' +
            table(['workload', 'accelerator', 'samples/s', 'wanted by one', 'by division',
                   'by emulation'], rows))


def spread_cell(found, digits=2):
    if not found:
        return '-'
    return (f"{fixed(found['median'], digits)} ({fixed(found['low'], digits)} - "
            f"{fixed(found['high'], digits)}, {found['count']})")


def knee_part(log):
    """The automatic depth: at the knee, beside a neighbour, in batches, after a change."""
    rows = []
    for device, name, helpers in knee.cases():
        seen = knee.case_figures(log, device, name, helpers)
        if seen:
            rows.append([f"{device}, {name}, {'helpers' if helpers else 'inline'}", seen['knee'],
                         seen['best'], *(spread_cell(seen[k])
                                         for k in ('rate', 'p99', 'in_flight', 'settled')),
                         '' if seen['quiet'] else 'noisy'])
    if not rows:
        return ''
    text = ('## The automatic depth\n\nBeside fixed ones, from its first second on: median over '
            'the rounds of the ratio within each (middle half, rounds). Wanted: a rate of 0.97 '
            'of the best depth\'s; at most twice the p99, and twice the requests in flight, of '
            'the knee, the smallest depth with 97 % of the best; settled within 1 s.\n\n' +
            table(['case', 'knee', 'best', 'rate', 'p99', 'in flight', 'settled, s', ''], rows))
    rows = [[what, spread_cell(found)] for what, found in knee.other_figures(log)]
    return text + '\n' + table(['besides', 'median'], rows) if rows else text


def write_knee(log, facts, settings, out):
    text = '\n'.join((verdict(log) + '\n', knee_part(log),
                      machine_part(log, facts, settings, DIRECT)))
    (out / 'knee.md').write_text(text, encoding='utf-8')
    return text


def open_part(log):
    rows = []
    for name in [n + kind for kind in ('', NOTHING_WARM) for n in SYNTHETIC]:
        points = [p for p in log.of('open') if p['reader'] == name]
        if points:
            def cell(field, scale=1.0, digits=2, seen=points):
                return fixed(figures.median([p[field] for p in seen]) * scale, digits)
            rows.append([name, points[0]['runs'], cell('started_us', 1e-3), cell('open_us', 1e-3),
                         cell('sample_us', 1e-3), cell('total_us', 1e-3),
                         cell('table_size', 1 / 1024, 1), cell('heap', 1 / 1024, 0),
                         cell('resident', 1 / 1024, 0), cell('lookup_ns', 1, 1), len(points)])
    if not rows:
        return ''
    return ('### Opening\n\nFrom exec on, with all caches dropped before and another, small image '
            'opened since: what belongs to the image is cold, what belongs to the system is '
            'not. The rows below are without that: the loader and libcrypto look for their '
            'files on the disk. Milliseconds, KiB, nanoseconds.\n\n' +
            table(['image', 'runs', 'exec to main', 'open', 'first sample', 'sum', 'run table',
                   'heap', 'resident', 'look-up', 'of'], rows))


# ---- machine ----

COLD = ('Cold: before each run dirty pages are written and page, dentry and inode caches '
        'dropped; behind it, the disk\'s own counter must have grown by at least 95 % of '
        'what the reader delivered. Caches of the host below a virtual machine cannot be '
        'seen or emptied from here: they are the same for all readers of a round. Loop '
        'devices are attached with direct I/O; each of their requests still takes a hop '
        'through a kernel thread, which is why they are no measure of a disk. CPU is that '
        'of the whole machine, less what it used while idle.')
DIRECT = ('All reads are direct, of the loop devices and their files too, and past the caches of '
          'this machine. Those of the host below a virtual machine are the same for all readers '
          'of a round. Ceph keeps its objects in memory.')


def verdict(log):
    rounds = log.rounds
    noisy = [r for r in rounds if r['noise']]
    if not rounds:
        return 'Nothing was run in rounds.'
    text = f'{len(noisy)} of {len(rounds)} rounds were noisy and do not count.'
    blocks_noisy = sorted({r['block'] for r in rounds
                           if not figures.counting_rounds(log.rounds_of(r['block']))[1]})
    if blocks_noisy:
        text += (' **Too noisy to be trusted: ' + ', '.join(blocks_noisy) +
                 '** (all of their rounds are used).')
    return text


def machine_part(log, facts, settings, how=COLD):
    queue = facts.get('queue', {})
    rows = [['time', facts['time']], ['git', facts['git']], ['kernel', facts['kernel']],
            ['processors', f"{facts['processors']} x {facts['processor']}, virtual: "
                           f"{facts['hypervisor']}"],
            ['memory', f"{facts['memory'] / 2**30:.1f} GiB"],
            ['disk', facts['disk'] + ': ' + ', '.join(f'{k} {v}' for k, v in queue.items())],
            ['filesystem', facts['filesystem']], ['transparent huge pages', facts['thp']],
            ['fio', facts['fio']],
            ['settings', ', '.join(f'{k} {v}' for k, v in settings.items())]]
    rejected = [f"{r['block']} {r['round'] + 1}: {', '.join(r['noise'])}" for r in log.rounds
                if r['noise']]
    text = '## Machine\n\n' + table(['', ''], rows)
    text += f'\n{how}\n'
    if rejected:
        text += '\nRounds that do not count: ' + '; '.join(rejected) + '.\n'
    if log.skipped:
        text += '\nSkipped: ' + '; '.join(f"{s['what']} ({s['why']})" for s in log.skipped) + '.\n'
    invalid = [p for p in log.points if p.get('invalid')]
    if invalid:
        text += '\nRuns that do not count: ' + '; '.join(
            sorted({f"{p['block']}, {p['reader']}: {p['invalid']}" for p in invalid})) + '.\n'
    return text


# ---- files ----

def write_charts(log, out):
    """The files' names, by block; those of earlier runs go."""
    made = {}
    for old in out.glob('*.svg'):
        old.unlink()
    for block, title in TITLES.items():
        for field, what, unit in (('samples_per_second', 'rate', 'samples/s'),
                                  ('cpu_us_per_sample', 'cpu',
                                   'us of the whole machine\'s CPU per sample')):
            found = spreads(log, block, field)
            if block.startswith('build') or block == 'memory' or len(found) < 2:
                continue
            rows = sorted(found.items(), key=lambda item: item[1]['median'],
                          reverse=field == 'samples_per_second')
            name = f'{block}-{what}.svg'
            (out / name).write_text(chart.bars(title, unit, rows), encoding='utf-8')
            made.setdefault(block, []).append(name)
    return made


def write(log, facts, settings, out):
    charts = write_charts(log, out)
    parts = ['# What `make bench` measured\n', verdict(log) + '\n']
    if settings.get('quick'):
        parts.append('**A quick run: it shows that the suite works, and no figures.**\n')
    parts += [goals_part(log), others_part(log), '## Readers\n']
    parts += [block_part(log, block, title, charts) for block, title in TITLES.items()]
    parts += [accelerators_part(log), open_part(log), machine_part(log, facts, settings)]
    text = '\n'.join(p for p in parts if p)
    (out / 'results.md').write_text(text, encoding='utf-8')
    return text
