#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bench-python.t - make bench-python from end to end, on tiny sets, with what needs no other
# package; what its figures make of an order, and what goals make of points
. "${0%/*}/../tap.sh"

python=$BUILD/venv/bin/python
requires test -x "$python"
requires test -e "$BUILD/python/done"
requires test -x "$BUILD/bench/generate"
unset "${!BENCH_@}"

# says WANTED DESCRIPTION: what the Python of stdin prints
says() {
	is "$1" "$(PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=bench:bench/python python3 - 2>&1)" "$2"
}

says "1.0 0.0 0.1 True True" "an order that mixes, and ones that do not" <<'EOT'
import random
import order
straight = order.figures(list(range(1000)), 100, 1000)
mixed = list(range(1000))
random.Random(1).shuffle(mixed)
mixed = order.figures(mixed, 100, 1000)
print(round(straight['correlation'], 3), round(straight['neighbours'], 1),
      round(straight['batch_spread'], 1), abs(mixed['correlation']) < 0.1,
      0.9 < mixed['neighbours'] < 1.1 and 0.95 < mixed['batch_spread'] < 1.05)
EOT

says "2.00 floor, 0.50 missed, stele Loader, threads against LMDB, 4 workers" \
	"the best of each order, within rounds" <<'EOT'
from suite import python_report
from suite.rounds import Log
log = Log()
for n in range(3):
    log.rounds.append({'block': 'large', 'round': n, 'noise': []})
    for reader, rate in (('stele Loader, threads', 4), ('stele in DataLoader, 1 process', 1),
                         ('LMDB, 4 workers', 2), ('LMDB, 1 process', 1),
                         ('WebDataset, 4 workers', 8)):
        log.points.append({'block': 'large', 'round': n, 'reader': reader,
                           'samples_per_second': rate * (n + 1)})
rows = {r['text']: r for r in python_report.goals(log)}
one = rows['against the best competitor, full random order, 75 KiB, cold']
other = rows['against the best competitor, shards in sequence, 75 KiB, cold']
print(f"{one['spread']['median']:.2f} {one['reached']}, {other['spread']['median']:.2f} "
      f"{other['reached']}, {one['note']}")
EOT

says "EROFS view 1.50 1.50 - 1.50, FUSE view 0.50 0.50 - 0.50" \
	"views of an image beside the tree, within rounds" <<'EOT'
from suite import python_report
from suite.rounds import Log
log = Log()
for n in range(3):
    log.rounds.append({'block': 'views', 'round': n, 'noise': []})
    for name, rate in (('the tree itself', 2), ('EROFS view', 3), ('FUSE view', 1)):
        log.points.append({'block': 'views', 'round': n, 'samples_per_second': rate * (n + 1),
                           'reader': f'torchvision ImageFolder, {name}, 4 workers'})
rows = [r.split(' | ') for r in python_report.views_part(log).split('\n') if ' view |' in r]
print(', '.join(f"{r[0].strip('| ')} {r[3]} {r[4]}" for r in rows))
EOT

if [ "$(id -u)" = 0 ]; then
	sets=$tmp/sets
	run env BUILD="$BUILD" BENCH_OUT="$tmp/out" BENCH_DIR="$sets" BENCH_QUICK=1 BENCH_ROUNDS=1 \
		BENCH_SCALE=0.06 BENCH_SECONDS=0.1 BENCH_FEW=1 BENCH_PYTHON="$python" \
		BENCH_ONLY='^(beyond )?small|^tiny$' python3 bench/bench.py python
	is 0 "$status" "a run succeeds" || diag "$err"
	is "[]" "$(jq -c .skipped "$tmp/out/python.json")" "nothing is skipped"
	json=$tmp/out/python.json
	is "small small warm beyond small tiny" "$(jq -r '[.rounds[].block] | join(" ")' "$json")" \
		"each block has its round"
	ok "samples were read" jq -e '[.points[].samples_per_second > 0] | all' "$json"
	ok "memory was measured" jq -e '.points[0].pss > .points[0].own' "$json"
	is 4 "$(grep -c '^| \*\*stele Loader' "$tmp/out/python.md")" \
		"the report has a table of each"
	ok "and says how it was made" \
		grep -q "runs of 0.1 s, 0.06 of the samples: small 1, " "$tmp/out/python.md"
	is "" "$(find "$sets" -name 'python-*')" "its sets are gone"
else
	skip_block 8 "needs root to drop caches"
fi

done_testing
