#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# gc.t - stele gc: what no snapshot uses is freed when it is told so
. "${0%/*}/../tap.sh"
# shellcheck source=tests/cmd/targets.sh
. tests/cmd/targets.sh

tree_photos "$tmp/src"

# used TARGET: bytes of the image that cannot be written again
used() { stele info --json "$1" | jq '.image | .used_size - .free_size'; }

# collect TARGET WORDS: deleted, listed, kept, freed, used again
collect() {
	local target=$1 words=$2 generation used due
	must stele build -q --time 1000 "$tmp/src" "$target@v1"
	run stele gc "$target"
	is "0 no unused space" "$status $out" "$words: nothing to do"
	must stele snapshot delete --force --time "$(($(date +%s) - 9999))" "$target@v1"
	used=$(used "$target")
	generation=$(stele info --json "$target" | jq .image.generation)

	run stele gc --json "$target"
	is "false 41" "$(head -n 1 <<<"$out" | jq -r '"\(.due) \(.samples)"')" \
		"$words: listed, not due"
	is "1 0 0" "$(tail -n 1 <<<"$out" |
		jq -r '"\(.unused) \(.would_free) \(.would_free_size)"')" \
		"$words: without grace nothing would be freed"
	run stele gc "$target"
	ok "$words: its age is said, not what --time said" \
		grep -q "unused for [0-9]* s, kept" <<<"$out"
	run stele gc --apply --grace 1h "$target"
	ok "$words: not unused for so long" grep -q "^0 bytes of .* freed" <<<"$out"
	run stele gc --apply "$target"
	is "2 " "$status $out" "$words: --apply wants a grace period or --force"
	ok "$words: and says so" grep -qF -- "grace" <<<"$err"
	is "$generation" "$(stele info --json "$target" | jq .image.generation)" \
		"$words: nothing was written"

	run stele gc --grace 1s "$target"
	ok "$words: a dry run says that it is one" grep -q "dry run" <<<"$out"
	for ((due = 0; !due;)); do # once that second is over
		due=$(stele gc --json --grace 1s "$target" | tail -n 1 | jq .would_free)
	done
	run stele gc --apply --discard --grace 1s "$target"
	is 0 "$status" "$words: freed"
	is "" "$err" "$words: without a word on stderr"
	run stele gc --json "$target"
	is 0 "$(field "$out" .unused)" "$words: nothing is left"
	ok "$words: sound" stele verify -q "$target"
	ok "$words: info says that so much less is used" \
		test $((used - $(used "$target"))) -gt 2800000
}
each_target collect 16M

# ---- what is there, and its readers, are left alone ----

cd "$tmp" || bail "cd"
image=photos.stele
must stele build -q src "$image@v1"
must stele snapshot create -d train/cats/3.jpg "$image@v2" >/dev/null
must stele snapshot delete "$image@v1"
run stele gc --apply --force -n --json "$image"
is "0 0" "$(tail -n 1 <<<"$out" | jq -r '"\(.would_free_size) \(.finished_size)"')" \
	"a dry run has the totals, too"
run stele gc --apply --force --discard "$image"
is "0 no unused space" "$status $(tail -n 1 <<<"$out")" "a segment that another snapshot uses stays"
ok "a hint says why, and what frees it" grep -q "other snapshots use.*stele compact" <<<"$err"
run stele gc "$image"
is "" "$err" "no hint where nothing was deleted"
ok "its samples too" cmp <(stele cat "$image@v2" train/dogs/20.jpg) \
	src/train/dogs/20.jpg
blocks=$(stat -c %b "$image")
must stele snapshot delete --force "$image@v2"
must stele gc --apply --force --discard "$image" >/dev/null
ok "a file gives its blocks back" test "$(stat -c %b "$image")" -lt $((blocks / 2))

# What is deleted now is not old, whatever time things are built with.
export SOURCE_DATE_EPOCH=1000
must stele build -q src dated.stele@v1
must stele snapshot delete --force dated.stele@v1
run stele gc --json --grace=1h dated.stele
is "1 0" "$(tail -n 1 <<<"$out" | jq -r '"\(.unused) \(.would_free)"')" \
	"a grace period goes by the clock"
unset SOURCE_DATE_EPOCH

# A clock that was years ahead once.
must stele build -q src future.stele@v1
must stele compact -q --time 4102444800 future.stele@v1 v2
must stele snapshot delete future.stele@v1
must sleep 1
for options in "" "--json" "-n --apply --grace=1s" "--apply --grace=1s"; do
	# shellcheck disable=SC2086 # words
	run stele gc $options future.stele
	is 0 "$status" "gc $options: unused in the future"
	is "stele: warning: 'future.stele' has a change dated 2100-01-01 00:00:00 UTC, in the \
future: no grace period ends before that
hint: set the clock of this machine if it is slow; else the date is wrong: use --force once \
nobody reads what was deleted" "$err" "gc $options: says so, and what to do"
done
is "snapshot 'v1'  41 samples  deleted 2100-01-01 00:00:00 UTC, kept
unused since 2100-01-01 00:00:00 UTC, kept" \
	"$(sed -n 's/^segment.*  unused/unused/; 1,2p' <<<"$out")" "from when on"
run stele gc -n --apply --force future.stele
ok "-n --apply: says which of them keeps it" \
	grep -q " to free; dry run, leave -n out to free$" <<<"$out" || diag "$out"
run stele gc --apply --force future.stele
is "0 " "$status $err" "--force frees it"
is 0 "$(stele gc --json future.stele | jq .unused)" "and nothing is left"

for words in "" "a b" "--grace=0 $image" "--grace 1y $image" \
	"--force --grace=1h $image" "--discard $image"; do
	# shellcheck disable=SC2086 # words
	run stele gc $words
	is "2 " "$status $out" "gc $words: wrong usage"
done
run stele gc none.stele
is 1 "$status" "no such target"
ok "is said" grep -qF "'none.stele'" <<<"$err"
chmod 444 "$image"
ok "a dry run needs no permission to write" stele gc "$image"

done_testing
