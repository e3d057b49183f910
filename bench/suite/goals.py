# SPDX-License-Identifier: Apache-2.0
"""goals.py - the figures that Stele promises, and what came of each

A goal is a ratio within rounds, or a number with a limit. Where a peer has several variants
(fio's depths and kinds of memory), it is represented by the one with the best median.
"""

from . import figures


class Goal:
    def __init__(self, block, text, floor, aim, at_most=False, unit=''):
        self.block, self.text = block, text
        self.floor, self.aim, self.at_most, self.unit = floor, aim, at_most, unit

    def row(self, values, good, note=''):
        found = figures.spread(values)
        return {'block': self.block, 'text': self.text, 'floor': self.floor, 'aim': self.aim,
                'at_most': self.at_most, 'unit': self.unit, 'spread': found, 'quiet': good,
                'note': note, 'values': values,
                'reached': found and figures.reached(found['median'], self.floor, self.aim,
                                                     self.at_most)}


def names(points, prefix):
    return sorted({p['reader'] for p in points if p['reader'].startswith(prefix)})


def exact(log, goal, above, below, field='bytes_per_second'):
    rounds, good = figures.counting_rounds(log.rounds_of(goal.block))
    return goal.row(figures.ratios(log.of(goal.block), above, below, field, rounds), good)


def against(log, goal, above, belows):
    """Against the best of these names."""
    points = log.of(goal.block)
    rounds, good = figures.counting_rounds(log.rounds_of(goal.block))
    other = figures.best(points, [n for b in belows for n in names(points, b)],
                         'bytes_per_second', rounds)
    if not other:
        return goal.row([], good, 'not measured')
    return goal.row(figures.ratios(points, above, other, 'bytes_per_second', rounds), good,
                    'against ' + other)


def over(log, goal, aboves, below, field='bytes_per_second'):
    """The best of these names against one."""
    points = log.of(goal.block)
    rounds, good = figures.counting_rounds(log.rounds_of(goal.block))
    one = figures.best(points, [n for a in aboves for n in names(points, a)],
                       'bytes_per_second', rounds)
    if not one:
        return goal.row([], good, 'not measured')
    return goal.row(figures.ratios(points, one, below, field, rounds), good, one)


def build_goal(log, goal, built, sources):
    """Against the lesser of reading the source (its best reader) and writing, each round."""
    points = log.of('build')
    rounds, good = figures.counting_rounds(log.rounds_of('build'))
    field = 'bytes_per_second'
    source = figures.best(points, names(points, sources), field, rounds)
    reads = figures.by_round(points, source, field) if source else {}
    writes = figures.by_round(points, 'device write', field)
    builds = figures.by_round(points, built, field)
    limits = {r: min(reads[r], writes[r]) for r in rounds if r in reads and r in writes}
    slower = sum(reads[r] <= writes[r] for r in limits)
    note = f"limit: {'reading' if slower * 2 >= len(limits) else 'writing'}" if limits else ''
    return goal.row([builds[r] / limits[r] for r in limits if r in builds], good, note)


def open_goal(log, goal, name, field, scale):
    values = [p[field] * scale for p in log.of('open') if p['reader'] == name]
    cold = all(p['cold'] for p in log.of('open'))
    return goal.row(values, True, '' if cold else 'not cold')


def settled(log, goal):
    """Automatic depth by the best fixed one, without the first second."""
    field = 'settled_bytes_per_second'
    points = log.of(goal.block)
    rounds, good = figures.counting_rounds(log.rounds_of(goal.block))
    other = figures.best(points, names(points, 'stele depth '), field, rounds)
    if not other:
        return goal.row([], good, 'not measured')
    return goal.row(figures.ratios(points, 'stele', other, field, rounds), good,
                    'against ' + other)


def table(log):
    """Every goal of the issue, in its order."""
    rows = [
        against(log, Goal('mix', "random read, crc on, against fio's best", 0.97, 1.05), 'stele',
                ['fio ']),
        against(log, Goal('mix', 'against the minimal ring', 0.95, 0.98), 'stele', ['ring ']),
        exact(log, Goal('mix', 'against its own sequential read', 0.90, 0.95), 'stele',
              'stele sequential'),
        exact(log, Goal('mix', 'against the ext4 tree, 8 threads', 1.7, 2.5), 'stele',
              'ext4 8 threads'),
        exact(log, Goal('mix', 'against the ext4 tree, 1 thread', 5, 8), 'stele',
              'ext4 1 thread'),
        exact(log, Goal('mix', 'CPU per sample against the ext4 tree, 8 threads', 1 / 6, 1 / 12,
                        True), 'stele', 'ext4 8 threads', 'cpu_us_per_sample'),
        exact(log, Goal('mix', 'CPU per sample against the ext4 tree, 1 thread', 1 / 6, 1 / 12,
                        True), 'stele', 'ext4 1 thread', 'cpu_us_per_sample'),
        exact(log, Goal('memory', 'crc on against off, loop device in memory', 0.85, 0.95),
              'loop crc', 'loop none'),
        settled(log, Goal('mix', 'automatic depth against the best fixed, after 1 s', 0.95,
                          0.98)),
    ]
    for name in ('1 K samples', '813 M samples'):
        rows.append(open_goal(log, Goal('open', f'open and first sample, cold, {name}', 5, 2,
                                        True, 'ms'), name, 'total_us', 1e-3))
    rows.append(open_goal(log, Goal('open', 'memory of the open dataset, 813 M samples', 1024,
                                    128, True, 'KiB'), '813 M samples', 'heap', 1 / 1024))
    rows += [
        build_goal(log, Goal('build', 'build against min(source, device), small files', 0.7,
                             0.9), 'build small files', 'read small files'),
        build_goal(log, Goal('build', 'build against min(source, device), one stream', 0.8,
                             0.95), 'build one stream', 'read one stream'),
    ]
    return rows


def others(log):
    """Ratios that nobody promised, of the other blocks."""
    rows = []
    for block, title in (('l', 'larger than half the memory'), ('loop', 'loop device'),
                         ('b', '20 KiB'), ('e', '100 to 2048 B'), ('ceph', 'Ceph RBD')):
        for peer in ('fio ', 'ring ', 'ext4 8', 'ext4 1'):
            row = against(log, Goal(block, f'{title}: stele against {peer.strip()}', 0, 0),
                          'stele', [peer])
            if row['spread']:
                rows.append(row)
    for peer in ('ext4 8 threads', 'ext4 1 thread'):
        row = over(log, Goal('mix', f"fio's best against {peer}: what is there to win", 0, 0),
                   ['fio '], peer)
        rows += [row] if row['spread'] else []
    extra = [exact(log, Goal('mix', 'windowed against random', 0, 0), 'stele windowed', 'stele'),
             exact(log, Goal('mix', 'crc on against off, this disk', 0, 0), 'stele',
                   'stele no crc'),
             over(log, Goal('mix', "CPU per sample, the ring against the ext4 tree, 8 threads", 0,
                            0), ['ring '], 'ext4 8 threads', 'cpu_us_per_sample'),
             exact(log, Goal('memory', 'crc on against off, file in memory', 0, 0), 'tmpfs crc',
                   'tmpfs none'),
             exact(log, Goal('build', 'build of one stream against fio copying it', 0, 0),
                   'build one stream', 'copy one stream')]
    return rows + [row for row in extra if row['spread']]
