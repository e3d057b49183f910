# SPDX-License-Identifier: Apache-2.0
"""rounds.py - runs readers next to each other, cold, in an order that each round draws anew

Before each run the caches are dropped; behind it the disk must have delivered what the reader
did, or the run does not count. A round notes what else the machine did meanwhile; for a round
that was noisy one more is made, as far as settings.spare reaches.
"""

import os
import random
import sys
import time

from . import figures, machine
from .process import Failed, say

MORE = 75  # exit status: a slice is over, and there is more to do
CONTROL_SECONDS = 0.4
DEVICE_SHARE_MIN = 0.95


class Log:
    """All that was measured: what results.json holds."""

    def __init__(self):
        self.points, self.rounds, self.skipped = [], [], []

    def skip(self, what, why):
        say(f'  skipped: {what}: {why}')
        self.skipped.append({'what': what, 'why': str(why)})

    def of(self, block):
        return [p for p in self.points if p['block'] == block]

    def rounds_of(self, block):
        return [r for r in self.rounds if r['block'] == block]


def measure(reader, seed, disks, idle_busy):
    """One cold run: what the reader said, and what the machine did."""
    dropped = reader.prepares or machine.drop_caches()
    meter = machine.Meter(disks)
    # Each its own: what one has read may be in a cache of the host for the next.
    point = reader.read(random.Random(f'{seed}/{reader.name}').getrandbits(31))
    seen = point.pop('seen', None) or meter.read()  # of a part of it, if the reader says so
    busy = max(0.0, seen['busy'] - idle_busy * seen['seconds'])
    point.update(reader=reader.name, wall=seen['seconds'], busy=busy,
                 steal=seen['steal'] / seen['seconds'],
                 cpu_us_per_sample=busy * 1e6 / point['samples'],
                 device_share=seen['bytes'] / point['bytes'] if point['bytes'] else None)
    if reader.from_disk and disks:
        if not dropped:
            point['invalid'] = 'the caches could not be dropped'
        elif point['device_share'] < DEVICE_SHARE_MIN:
            point['invalid'] = f"only {point['device_share']:.0%} came from the disk"
    return point


def anchor_rate(anchor):
    if not anchor:
        return None
    machine.drop_caches()
    return anchor.read(0)['bytes_per_second']


def one_round(log, block, readers, number, settings, anchor, disks, between=None):
    """between: called before each run; if it ends the program, the next goes on behind those
    whose points are in the log.
    """
    seed = random.Random(f'{settings.seed}/{block}/{number}').getrandbits(31)
    order = list(readers)
    random.Random(seed).shuffle(order)
    idle_busy, idle_steal = machine.idle_control(CONTROL_SECONDS)
    before = anchor_rate(anchor)
    points = [p for p in log.of(block) if p['round'] == number]
    ran = {p['reader'] for p in points}
    for reader in [r for r in order if r.name not in ran]:
        if between:
            between()
        try:
            points.append({'block': block, 'round': number,
                           **measure(reader, seed, disks, idle_busy)})
            log.points.append(points[-1])
        except Failed as error:
            log.skip(f'{block}: {reader.name}, round {number + 1}', error)
            if number == 0:
                readers.remove(reader)
    after = anchor_rate(anchor)
    processors = os.cpu_count() or 1
    steal = max([idle_steal, *(p['steal'] for p in points)]) / processors
    noise = figures.noise(idle_busy / processors, steal, before, after)
    log.rounds.append({'block': block, 'round': number, 'seed': seed,
                       'order': [r.name for r in order],
                       'seconds': settings.seconds, 'scale': settings.scale, 'busy': idle_busy, 'steal': steal,
                       'before': before, 'after': after, 'noise': noise})
    say(f"  {block} round {number + 1}: " + (', '.join(noise) or 'quiet'))
    return not noise


def run_block(log, block, readers, settings, anchor=None, disks=(), rounds=None):
    rounds = rounds or settings.rounds
    readers = list(readers)
    good = number = 0
    while readers and good < rounds and number < rounds + (rounds + 1) // 2:
        begin = time.monotonic()
        if number >= rounds and settings.spare <= 0:
            break
        good += one_round(log, block, readers, number, settings, anchor, disks)
        number += 1
        if number > rounds:
            settings.spare -= time.monotonic() - begin


class Sliced:
    """Rounds of many blocks, in slices of BENCH_SLICE seconds: the next run goes on."""

    def __init__(self, settings, log, save):
        self.settings, self.log, self._save = settings, log, save
        disk = machine.disk_of(settings.dir)
        self.disks = [disk] if disk else []
        self._begin = time.monotonic()
        self._longest = self._last = 0.0

    def done(self, block):
        return len(self.log.rounds_of(block))

    def wanted(self, block, count=None):
        """How many rounds of this block are still to be made."""
        count = count or self.settings.rounds
        if not self.settings.only.search(block):
            return 0
        good = sum(not r['noise'] for r in self.log.rounds_of(block))
        return 0 if good >= count or self.done(block) >= count + self.settings.extra \
            else count - good

    def run(self, block, chosen, count=None):
        failed = {s['what'] for s in self.log.skipped}
        chosen = [reader for reader in chosen
                  if f'{block}: {reader.name}, round 1' not in failed]
        while chosen and self.wanted(block, count):
            one_round(self.log, block, chosen, self.done(block), self.settings, None,
                      self.disks, self.between)
            self._save()

    def between(self):
        """End this slice where another run would not fit."""
        now = time.monotonic()
        self._longest = max(self._longest, now - self._last) if self._last else 0.0
        self._last = now
        self._save()
        if self.settings.slice and now - self._begin + self._longest > self.settings.slice:
            say('bench: the slice is over')
            sys.exit(MORE)


def sweep(log, block, readers, settings, keep, disks=()):
    """Run each once, short: those that were best, best first; the points stay in the log."""
    found = []
    for reader in list(readers):
        try:
            point = measure(reader, settings.seed, disks, 0)
        except Failed as error:
            log.skip(f'{block}: {reader.name}', error)
            continue
        log.points.append({'block': block + ' sweep', 'round': 0, **point})
        found.append((point['bytes_per_second'], reader))
    found.sort(key=lambda pair: pair[0], reverse=True)
    return [reader for _, reader in found[:keep]]
