#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# columns.t - info and the list of snapshots fit terminals of 80 and of 40 columns
. "${0%/*}/../tap.sh"

mkdir -p "$tmp/src/train/cats" "$tmp/src/val/dogs"
for name in train/cats/1 train/cats/2 val/dogs/1; do echo "$name" >"$tmp/src/$name"; done
cd "$tmp" || bail "cd"
must stele build -q --label "a label that has some words" src image@v1
must stele snapshot create --delete train/cats/1 --note "a note that is somewhat longer than \
most, as people write them" image@without-the-first
must stele snapshot create image@final
digest=$(stele info --json image@v1 | jq -r .snapshot.digest)

for columns in 40 60 80 120; do
	for words in "info image" "info image@v1" "snapshot list image"; do
		# shellcheck disable=SC2086 # words
		run env COLUMNS=$columns stele $words
		is 0 "$status" "$words"
		is "" "$(awk -v max=$columns 'length > max' <<<"$out")" \
			"$words: no line has more than $columns columns"
	done
	ok "$columns columns: the digest is whole" grep -q "$digest" <<<"$(
		COLUMNS=$columns stele info image@v1 | tr -d ' \n')"
	ok "$columns columns: the note, too" grep -q "aspeoplewritethem" <<<"$(
		COLUMNS=$columns stele snapshot list image | tr -d ' \n')"
done
ok "in a file, lines are whole" grep -q "^digest      sha256:$digest$" <<<"$(stele info image@v1)"
if command -v script >which 2>&1; then
	script -qec "stty cols 40; stele snapshot list image" typescript </dev/null >shown 2>&1
	is "" "$(tr -d '\r' <shown | awk 'length > 40')" "on a terminal of 40 columns"
	ok "which shows them" grep -q "${digest:0:12}" shown
else
	skip_block 2 "needs script"
fi

done_testing
