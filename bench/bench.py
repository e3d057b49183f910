#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench.py run|report|clean|knee|knee-report|python|python-sets|python-report - what `make` calls

run: makes the sets, runs all blocks, writes results.json, results.md and charts to
build/bench. report: writes the last two anew from results.json. clean: removes the sets.
python, python-report: the same for `make bench-python`: python.json, python.md; where a run
was cut short it goes on. python-sets: makes what it reads, and measures nothing. knee,
knee-report: the same for `make bench-knee`.
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

ALL = {**blocks.BLOCKS, **special.BLOCKS}


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


def prepare(settings):
    if os.geteuid() != 0:
        raise SystemExit('bench: needs root: it drops caches, and mounts')
    process.catch_signals()
    settings.out.mkdir(parents=True, exist_ok=True)
    settings.dir.mkdir(parents=True, exist_ok=True)
    sets.clear_leftovers(settings)


def sliced(settings, name, go_on, more_facts):
    """Goes on where the last slice ended, and keeps all in `name`.json: (log, facts, settings)."""
    log, path = Log(), settings.out / f'{name}.json'
    results = json.loads(path.read_text(encoding='utf-8')) if path.exists() else {}
    if results and not (go_on and results['whole']):
        log.points, log.rounds = results['points'], results['rounds']
        log.skipped = results['skipped']
    facts = results.get('facts') if log.points else None

    def store(whole=False):
        found = {'facts': facts, 'settings': settings.as_dict(), 'whole': whole,
                 'points': log.points, 'rounds': log.rounds, 'skipped': log.skipped}
        path.write_text(json.dumps(found, indent=1) + '\n', encoding='utf-8')

    if not (go_on or results):
        raise SystemExit(f"bench: no '{path}' yet: nothing was measured")
    if not go_on:
        return log, facts, results['settings']
    prepare(settings)
    facts = {**machine.facts(settings.dir), **more_facts(settings)}
    go_on(log, store)
    store(whole=not settings.only.pattern)
    return log, facts, settings.as_dict()


def python(action):
    from suite import python as suite, python_report

    settings = Settings()
    if action == 'python-sets':
        prepare(settings)
        suite.forms_only(suite.Bench(settings, Log(), None))
        return
    text = python_report.write(*sliced(
        settings, 'python', action == 'python' and
        (lambda *a: suite.run_all(suite.Bench(settings, *a))), suite.facts))
    (settings.out / 'python.md').write_text(text, encoding='utf-8')
    say(f"bench: '{settings.out}/python.md'")


def automatic_depth(action):
    settings = Settings()
    text = report.write_knee(*sliced(
        settings, 'knee', action == 'knee' and
        (lambda *a: knee.run_all(knee.Bench(settings, *a))), lambda _: {}), settings.out)
    print(text)


def clean():
    settings = Settings()
    if settings.dir.exists():
        sets.clear_leftovers(settings)
        shutil.rmtree(settings.dir)


def main():
    actions = {'run': run, 'report': again, 'clean': clean,
               **{name: functools.partial(python, name)
                  for name in ('python', 'python-sets', 'python-report')},
               **{name: functools.partial(automatic_depth, name)
                  for name in ('knee', 'knee-report')}}
    if len(sys.argv) != 2 or sys.argv[1] not in actions:
        raise SystemExit(f"usage: {sys.argv[0]} {'|'.join(actions)}")
    actions[sys.argv[1]]()


if __name__ == '__main__':
    main()
