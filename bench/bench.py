#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench.py run|report|clean|python|python-sets|python-report - what `make bench` and the like call

run: makes the sets, runs all blocks, writes results.json, results.md and charts to
build/bench. report: writes the last two anew from results.json. clean: removes the sets.
python, python-report: the same for `make bench-python`: python.json, python.md; where a run
was cut short it goes on. python-sets: makes what it reads, and measures nothing.
suite/settings.py says what the environment may set.
"""

import functools
import json
import os
import shutil
import sys
import time

sys.dont_write_bytecode = True

from suite import blocks, goals, knee, machine, process, report, sets, special  # noqa: E402
from suite.process import Failed, say  # noqa: E402
from suite.rounds import Log  # noqa: E402
from suite.settings import Settings  # noqa: E402

ALL = {**blocks.BLOCKS, **knee.BLOCKS, **special.BLOCKS}


def save(settings, log, facts):
    results = {'facts': facts, 'settings': settings.as_dict(), 'goals': goals.table(log),
               'points': log.points, 'rounds': log.rounds, 'skipped': log.skipped}
    (settings.out / 'results.json').write_text(json.dumps(results, indent=1) + '\n',
                                               encoding='utf-8')
    return report.write(log, facts, settings.as_dict(), settings.out)


def wanted(settings, found, log):
    """Blocks to run, in order; the others are told."""
    chosen = []
    for name in ALL:
        if not settings.only.search(name):
            continue
        if name == 'l' and not found['l']:
            log.skip('l', 'a quick run' if settings.quick else 'no room on the disk')
            continue
        chosen.append(name)
    return chosen


def run():
    settings = Settings()
    if os.geteuid() != 0:
        raise SystemExit('bench: needs root: it drops caches, mounts, and attaches loop devices')
    process.catch_signals()
    settings.out.mkdir(parents=True, exist_ok=True)
    settings.dir.mkdir(parents=True, exist_ok=True)
    sets.clear_leftovers(settings)
    facts, log = machine.facts(settings.dir), Log()
    found = sets.all_sets(settings, facts['memory'])
    needed, allowed, dropped = sets.plan_disk(settings, found)
    say(f"bench: up to {needed / 2**30:.1f} GiB in '{settings.dir}', "
        f'{allowed / 2**30:.1f} GiB are allowed')
    if needed > allowed:
        raise SystemExit('bench: no room: set BENCH_DIR, BENCH_SCALE or BENCH_DISK')
    for name in dropped:
        log.skip(f'set {name}', 'no room on the disk')
    bench = blocks.Bench(settings, log, found)
    begin = time.monotonic()
    if found['l'] and settings.only.search('l'):
        found['l'].image(keep_tree=False)  # while there is room for its tree
    for name in wanted(settings, found, log):
        say(f'bench: {name} ({time.monotonic() - begin:.0f} s)')
        try:
            ALL[name](bench)
        except Failed as error:
            log.skip(name, error)
        process.undo_all()
        save(settings, log, facts)
    facts['seconds'] = time.monotonic() - begin
    text = save(settings, log, facts)
    print(text[:text.find('## Other')].strip())
    say(f"bench: {facts['seconds']:.0f} s; '{settings.out}/results.md'")


def again():
    settings, log = Settings(), Log()
    results = json.loads((settings.out / 'results.json').read_text(encoding='utf-8'))
    log.points, log.rounds = results['points'], results['rounds']
    log.skipped = results['skipped']
    print(report.write(log, results['facts'], results['settings'], settings.out))


def python(action):
    from suite import python as suite, python_report

    settings, log = Settings(), Log()
    path = settings.out / 'python.json'
    settings.out.mkdir(parents=True, exist_ok=True)
    settings.dir.mkdir(parents=True, exist_ok=True)
    results = json.loads(path.read_text(encoding='utf-8')) if path.exists() else {}
    if results and (action == 'python-report' or not results['whole']):
        log.points, log.rounds = results['points'], results['rounds']
        log.skipped = results['skipped']
    facts = results.get('facts') if log.points else None

    def store(whole=False):
        found = {'facts': facts, 'settings': settings.as_dict(), 'whole': whole,
                 'points': log.points, 'rounds': log.rounds, 'skipped': log.skipped}
        path.write_text(json.dumps(found, indent=1) + '\n', encoding='utf-8')

    if action != 'python-report':
        if os.geteuid() != 0:
            raise SystemExit('bench: needs root: it drops caches, and mounts')
        process.catch_signals()
        sets.clear_leftovers(settings)
        facts = {**machine.facts(settings.dir), **suite.facts(settings)}
        bench = suite.Bench(settings, log, store)
        if action == 'python-sets':
            suite.forms_only(bench)
            return
        suite.run_all(bench)
        store(whole=not settings.only.pattern)
    text = python_report.write(log, facts, results['settings'] if action == 'python-report'
                               else settings.as_dict())
    (settings.out / 'python.md').write_text(text, encoding='utf-8')
    say(f"bench: '{settings.out}/python.md'")


def clean():
    settings = Settings()
    if settings.dir.exists():
        sets.clear_leftovers(settings)
        shutil.rmtree(settings.dir)


def main():
    actions = {'run': run, 'report': again, 'clean': clean,
               **{name: functools.partial(python, name)
                  for name in ('python', 'python-sets', 'python-report')}}
    if len(sys.argv) != 2 or sys.argv[1] not in actions:
        raise SystemExit(f"usage: {sys.argv[0]} {'|'.join(actions)}")
    actions[sys.argv[1]]()


if __name__ == '__main__':
    main()
