#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# diff.t - stele diff: which keys two snapshots have different
. "${0%/*}/../tap.sh"
# shellcheck source=tests/cmd/targets.sh
. tests/cmd/targets.sh

cd "$tmp" || bail "cd"
mkdir a
for key in same gone changed longer; do
	echo "$key" >"a/$key"
done
cp -r a b
rm b/gone
echo CHANGED >b/changed
echo "much longer" >b/longer
echo new >b/new
weird=$'tab\there\xff'
echo weird >"b/$weird"
must stele build -q a a.stele@v1
must stele build -q b b.stele@v2

run stele diff a.stele@v1 b.stele@v2
is "0 " "$status $err" "two images"
is "$(printf '~ changed\n- gone\n~ longer\n+ new\n+ %s' "$weird")" "$out" \
	"changed, removed and added keys, sorted"
run stele diff b.stele a.stele
is "$(printf '~ changed\n+ gone\n~ longer\n- new\n- %s' "$weird")" "$out" \
	"the other way round"
run stele diff a.stele a.stele@v1
is "0 " "$status $out" "the same: nothing"

run stele diff -0 a.stele b.stele
ok "--null" cmp <(printf '~ changed\0- gone\0~ longer\0+ new\0+ %s\0' \
	"$weird") "$tmp/.out"
ok "on a terminal, keys are escaped" grep -qF 'tab\there\xff' \
	<(script -qec "stele diff a.stele b.stele" /dev/null)
run stele diff --stat a.stele b.stele
is "2 added, 1 removed, 2 changed, 1 the same" "$out" "--stat"
run stele diff --stat --json a.stele b.stele
is "2 1 2 1" "$(field "$out" '"\(.added) \(.removed) \(.changed) \(.same)"')" \
	"--stat --json"
run stele diff --json a.stele b.stele
is "changed removed changed added added" "$(field "$out" .change | xargs)" \
	"--json: what became of each"
is "changed gone longer new" "$(field "$out" .key | head -n 4 | xargs)" \
	"--json: keys"
is "8 8" "$(head -n 1 <<<"$out" | jq -r '"\(.a_size) \(.b_size)"')" \
	"--json: sizes"
is "$(stele ls --json b.stele | jq -c 'select(.key == "new") | .id')" \
	"$(jq -c 'select(.key == "new") | .b_id' <<<"$out")" "--json: ids"
is "$(printf %s "$weird" | base64)" "$(field "$out" .key_base64 | tail -n 1)" \
	"--json: a key that is not UTF-8"

run stele diff --exit-code a.stele b.stele
is 1 "$status" "--exit-code: there is a difference"
run stele diff --exit-code a.stele a.stele
is 0 "$status" "--exit-code: there is none"

for pair in "a.stele none" "none a.stele" "a.stele@v9 b.stele"; do
	# shellcheck disable=SC2086 # two words
	run stele diff $pair
	is "1 " "$status $out" "$pair: fails"
	ok "$pair: says which" grep -qE "'(none|a.stele@v9)'" <<<"$err"
	is 1 "$(grep -vc '^hint: ' <<<"$err")" "$pair: once"
done
run stele diff a.stele
is 2 "$status" "one target is wrong usage"
run stele diff --null --json a.stele b.stele
is 2 "$status" "--null --json is wrong usage"

# A page of keys, which lies behind the slots.
at=$(grep -obaF changed b.stele | tail -n 1 | cut -d: -f1)
printf X | dd of=b.stele bs=1 seek="$at" conv=notrunc status=none
run stele diff a.stele b.stele
is 3 "$status" "damage is status 3"

done_testing
