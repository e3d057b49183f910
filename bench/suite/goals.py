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


def names(points, wanted):
    """`wanted`, or all that begin so if it ends in a space: the variants of one peer."""
    variants = wanted.endswith(' ')
    return sorted({p['reader'] for p in points
                   if p['reader'] == wanted or variants and p['reader'].startswith(wanted)})


def against(log, goal, above, below, field='bytes_per_second'):
    """The fastest of the one's variants against the fastest of the other's."""
    points = log.of(goal.block)
    rounds, good = figures.counting_rounds(log.rounds_of(goal.block))
    one, other = (figures.best(points, names(points, wanted), 'bytes_per_second', rounds)
                  for wanted in (above, below))
    if not one or not other:
        return goal.row([], good, 'not measured')
    note = f'{one} ' * (one != above) + f'against {other}' * (other != below)
    return goal.row(figures.ratios(points, one, other, field, rounds), good, note)


# What is built, and what reads the same source.
BUILDS = {'small files': ('build small files', 'read small files '),
          'one stream': ('build one stream', 'read one stream')}
# One device is memory: the two share the processors, and nothing else.
TWO_DEVICES = {'build to memory': 'disk to memory', 'build from memory': 'memory to disk'}


def build_rates(log, block, what):
    """Of each round: (build, reading the source by its best reader, writing); and: all good?"""
    built, sources = BUILDS[what]
    points = log.of(block)
    rounds, good = figures.counting_rounds(log.rounds_of(block))
    field = 'bytes_per_second'
    source = figures.best(points, names(points, sources), field, rounds)
    reads = figures.by_round(points, source, field) if source else {}
    writes = figures.by_round(points, 'device write', field)
    builds = figures.by_round(points, built, field)
    return [(builds[r], reads[r], writes[r]) for r in rounds
            if r in builds and r in reads and r in writes], good


def build_goal(log, block, what, where, floor=0, aim=0):
    """Against the lesser of reading and writing: the two at once, as of two devices."""
    rates, good = build_rates(log, block, what)
    slower = sum(read <= write for _, read, write in rates)
    note = f"limit: {'reading' if slower * 2 >= len(rates) else 'writing'}" if rates else ''
    busy = figures.median([p['busy'] / p['wall'] for p in log.of(block)
                           if p['reader'] == BUILDS[what][0] and p.get('wall')])
    note += f', {busy:.1f} processors busy' if good and busy else ''
    goal = Goal(block, f'build against min(source, device), {what}, {where}', floor, aim)
    return goal.row([build / min(read, write) for build, read, write in rates], good, note)


def one_disk(log, what):
    """Against one after the other: where source and target share what the disk can do."""
    rates, good = build_rates(log, 'build', what)
    goal = Goal('build', f'build of {what} against reading, then writing, one disk', 0, 0)
    return goal.row([build * (1 / read + 1 / write) for build, read, write in rates], good)


def open_goal(log, goal, name, field, scale):
    values = [p[field] * scale for p in log.of('open') if p['reader'] == name]
    cold = all(p['cold'] for p in log.of('open'))
    return goal.row(values, True, '' if cold else 'not cold')


def table(log):
    """Every goal, in the order in which they were set."""
    rows = [
        against(log, Goal('mix', "random read, crc on, against fio's best", 0.97, 1.05), 'stele',
                'fio '),
        against(log, Goal('mix', 'against the minimal ring', 0.95, 0.98), 'stele', 'ring '),
        against(log, Goal('mix', 'against its own sequential read', 0.90, 0.95), 'stele',
                'stele sequential'),
        against(log, Goal('peers', 'against the ext4 tree, 8 threads', 1.7, 2.5), 'stele',
                'ext4 8 threads'),
        against(log, Goal('peers', 'against the ext4 tree, 1 thread', 5, 8), 'stele',
                'ext4 1 thread'),
        against(log, Goal('peers', 'CPU per sample against the ext4 tree, 8 threads', 1 / 6, 1 / 12,
                          True), 'stele', 'ext4 8 threads', 'cpu_us_per_sample'),
        against(log, Goal('peers', 'CPU per sample against the ext4 tree, 1 thread', 1 / 6, 1 / 12,
                          True), 'stele', 'ext4 1 thread', 'cpu_us_per_sample'),
        against(log, Goal('memory', 'crc on against off, loop device in memory', 0.85, 0.95),
                'loop crc', 'loop none'),
    ]
    for name in ('1 K samples', '813 M samples'):
        rows.append(open_goal(log, Goal('open', f'open and first sample, cold, {name}', 5, 2,
                                        True, 'ms'), name, 'total_us', 1e-3))
    rows.append(open_goal(log, Goal('open', 'memory of the open dataset, 813 M samples', 1024,
                                    128, True, 'KiB'), '813 M samples', 'heap', 1 / 1024))
    for what, floor, aim in (('small files', 0.7, 0.9), ('one stream', 0.8, 0.95)):
        rows += [build_goal(log, block, what, where, floor, aim)
                 for block, where in TWO_DEVICES.items()]
    return rows


def others(log):
    """Ratios that nobody promised: other blocks, and what bounds the goals."""
    def ratio(block, text, above, below, field='bytes_per_second'):
        return against(log, Goal(block, text, 0, 0), above, below, field)

    cpu = 'cpu_us_per_sample'
    rows = [ratio(block, f'{title}: stele against {peer.strip()}', 'stele', peer)
            for block, title in (('l', 'larger than half the memory'), ('loop', 'loop device'),
                                 ('b', '20 KiB'), ('e', '100 to 2048 B'), ('ceph', 'Ceph RBD'))
            for peer in ('fio ', 'ring ', 'ext4 8 threads', 'ext4 1 thread')]
    rows += [
        ratio('mix', "stele against fio that replays its reads", 'stele', 'fio replay '),
        ratio('peers', "fio's best against ext4 8 threads: what is there to win", 'fio ',
                'ext4 8 threads'),
        ratio('peers', "fio's best against ext4 1 thread: what is there to win", 'fio ',
                'ext4 1 thread'),
        ratio('mix', 'a ring that looks at the bytes against one that does not',
              'checking ring ', 'ring '),
        ratio('mix', 'stele against a ring that looks at the bytes', 'stele', 'checking ring '),
        ratio('mix', 'the ring, random against sequential', 'ring ', 'sequential ring '),
        ratio('mix', 'windowed against random', 'stele windowed', 'stele'),
        ratio('mix', 'crc on against off, this disk', 'stele', 'stele no crc'),
        ratio('peers', 'CPU per sample, the ring against the ext4 tree, 8 threads', 'ring ',
              'ext4 8 threads', cpu),
        ratio('memory', 'crc on against off, file in memory', 'tmpfs crc', 'tmpfs none'),
    ]
    for what in BUILDS:
        rows += [build_goal(log, 'build', what, 'one disk'), one_disk(log, what)]
    rows += [ratio(block, f'build of one stream against fio copying it, {where}',
                   'build one stream', 'copy one stream')
             for block, where in {'build': 'one disk', **TWO_DEVICES}.items()]
    return [row for row in rows if row['spread']]
