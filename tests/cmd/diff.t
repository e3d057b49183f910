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

# ---- fields ----

# rows FILE ROW...: an image of a table, FILE.st
rows() {
	printf '%s\n' "${@:2}" >"$1.csv"
	must stele build -q --type=label:class "$1.csv" "$1.st@v1"
}
# other A B NUMBER WORDS: their samples are the same, and so many fields are not
other() {
	run stele diff --stat --exit-code "$1.st" "$2.st"
	is "1 0 added, 0 removed, 0 changed, 2 the same; $3 different" "$status $out" "$4"
	is "${5:+stele: warning: $5}" "$err" "$4: said" || diag "$err"
}
rows cat key,data,label a,1,cat b,2,dog
rows cow key,data,label a,1,cow b,2,dog
rows emu key,data,label a,1,cat b,2,dog c,3,emu
must stele snapshot create -d c emu.st@v2 >/dev/null
must stele snapshot delete emu.st@v1
other cat cow "1 field" "other class names for the same numbers" \
	"class 0 of field 'label' is 'cat' in 'cat.st', and 'cow' in 'cow.st'"
other cat emu "1 field" "more classes"
printf '%s\n' key,data,label a,1,0 b,2,1 >number.csv
must stele build -q number.csv number.st
other number cat "1 field" "class names on one side" \
	"field 'label' has class names only in 'cat.st'"
run stele diff cow.st cat.st
is "0 " "$status $out" "without --stat no key differs"
ok "but it is said" grep -q "class 0 of field 'label' is 'cow'" <<<"$err"
run stele diff --stat --json cat.st cow.st
is 1 "$(field "$out" .fields)" "--stat --json: fields"
printf '%s\n' key,data,score a,1,0 b,2,1 >score.csv
must stele build -q score.csv score.st
run stele diff --stat cat.st score.st
is "0 added, 0 removed, 0 changed, 2 the same; 2 fields different" "$out" "another field"
is "stele: warning: only 'cat.st' has the field 'label'
stele: warning: only 'score.st' has the field 'score'" "$err" "on either side"
sed s/score/label/ score.csv >real.csv
must stele build -q --type=label:f64 real.csv real.st
run stele diff --exit-code cat.st real.st
ok "another type" grep -q "'label' is i64 in 'cat.st', and f64 in 'real.st'" <<<"$err"
mkdir none
must stele build -q --allow-empty none none.st
run stele diff --stat cat.st none.st
is "0 added, 2 removed, 0 changed, 0 the same" "$out$err" "no samples, no fields"

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
