#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bench-shuffle.t - the measures of an order know a good one from a bad one
#
# Ids are sorted by size: in sequence, batches are of one size. In source order they are
# of one label. Orders are fixed by their seed, so the numbers are, too.
. "${0%/*}/../tap.sh"

requires jq --version

perl -e '
	for my $class (0 .. 19) {
		mkdir "$ARGV[0]/c$class";
		for my $i (0 .. 99) {
			open my $out, ">", "$ARGV[0]/c$class/$i" or die;
			print $out "x" x (40 + 16 * (($class * 37 + $i * 101) % 1999));
		}
	}' "$tmp" || bail "no source"
mkdir "$tmp/src" && mv "$tmp"/c* "$tmp/src"
must stele build -q --label-from=1 --granule=16 "$tmp/src" "$tmp/sized"
must stele build -q --label-from=1 --order=source "$tmp/src" "$tmp/source"
must stele build -q --label-from=none "$tmp/src" "$tmp/plain"

shuffle() { # IMAGE OPTION...
	run stele bench --json --shuffle --batch=50 "${@:2}" "$tmp/$1"
	is "0 " "$status $err" "${*:-}: looks"
	jq .shuffle "$tmp/.out" >"$tmp/last"
}
holds() { # WORDS FILTER
	ok "$1" jq -e "def near(x; d): . > x - d and . < x + d; $2" "$tmp/last" ||
		diag "$out"
}

shuffle sized --order=random
holds "counts" '.samples == 2000 and .batches == 40 and .labels == 20'
holds "random: as a full shuffle is" '.order == .full'
holds "random: nothing in common within batches" '.order |
	(.size_correlation | near(0; 0.01)) and (.label_correlation | near(0; 0.01))'
holds "random: place and id are independent" '.order.decile_chi2 | near(1; 0.5)'
holds "random: so are epochs" '.order.epoch_tau | near(0; 0.05)'
holds "random: as many neighbours as expected" \
	'.lag1_expected as $e | .order.lag1_neighbours | near($e; 0.01)'
holds "random: batches have most of the 20 labels" \
	'.order.class_entropy | . > 3.9 and . < 4.33'

shuffle sized --order=sequential
holds "sequential: sizes of a batch are alike" '.order.size_correlation > 0.98'
holds "sequential: each sample is followed by its neighbour" \
	'.order.lag1_neighbours == 1'
holds "sequential: place is id" '.order.decile_chi2 > 200'
holds "sequential: each epoch is the same" '.order.epoch_tau == 1'
holds "sequential: a full shuffle stands beside it" \
	'.full.size_correlation | near(0; 0.01)'

shuffle source --order=sequential
holds "in source order labels are alike instead" \
	'.order | .label_correlation > 0.98 and .class_entropy < 0.1'

# 1/8 of the variance is that of 8 blocks' means.
shuffle sized --order=windowed --block-size=25 --block-count=8
holds "few blocks: sizes are a little alike" '.order.size_correlation | near(0.125; 0.06)'
holds "few blocks: neighbours stay near" '.order.lag1_neighbours | near(24 / 199; 0.03)'
cp "$tmp/last" "$tmp/first"
shuffle sized --order=windowed --block-size=25 --block-count=8
ok "the same again" cmp "$tmp/first" "$tmp/last"
shuffle sized --order=windowed --block-size=10 --block-count=100
holds "many blocks: sizes are not" '.order.size_correlation | near(0; 0.02)'

shuffle plain --order=random
holds "without labels there is nothing to say of them" \
	'.labels == 0 and .order.label_correlation == null and .order.class_entropy == null'
run stele bench --shuffle "$tmp/plain"
is "0 0" "$status $(grep -c labels <<<"$out")" "nor rows in the table"
run stele bench --shuffle --batch=5000 "$tmp/sized"
ok "a batch of more samples than there are" grep -q '^2,000 samples in 1 batch of 2,000,' \
	<<<"$out" || diag "$out" "$err"

done_testing
