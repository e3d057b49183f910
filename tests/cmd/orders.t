#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# orders.t - an implementation of orders made from stele-format(5) alone agrees
#
# orders.pl works out every example of the page; those of mixtures, and random ones
# of any size, must be what the library says.
. "${0%/*}/../tap.sh"

requires perl -MMath::BigInt -e 1

orders=tests/cmd/orders.pl
page=man/stele-format.5

run $orders $page
is 0 "$status" "all examples of the page are right" || diag "$err"
ok "there are some of each kind" test "${out% orders}" -gt 50

for line in 'permutation(16, 0, 0, 0)' 'windowed(20, 4, 5, 0, 0, 0)' \
	'mixture(20, 1, 0, 0)'; do
	sed "/^$line/{n;s/.\$/x/;}" $page >"$tmp/changed"
	run $orders "$tmp/changed"
	is 3 "$status" "$line: a change is noticed"
done

# Up to 256 sources, weights that are equal, missing, far apart or close together.
perl -e '
	sub number { my $bits = 1 + int rand shift;
		((int rand 2 ** 32) << 32 | int rand 2 ** 32) >> 64 - $bits }
	srand 1;
	for (1 .. 150) {
		my $count = 1 + number($_ % 10 ? 4 : 8) % 256;
		my $kind = int rand 6;
		my @parts = map {
			my $weight = (0, 1, rand 10 ** rand 3, int(rand 100) / 100,
				10 ** (rand(600) - 300), (1 + int rand 9) . "e-324")[$kind];
			$weight = 0 if rand() < 0.1;
			sprintf "%d*%.17g", 1 + number(53), $weight
		} 1 .. $count;
		my $size = $count + number(61);
		my $first = rand() < 0.5 ? 0 : number(62) % $size;
		$first = ($first | 4095) % $size if rand() < 0.5;
		printf "mixture(%u, %u, %u, %u) of %s\n", $size, number(64),
			number(64), $first, "@parts";
	}' >"$tmp/random"
run $orders -p "$tmp/random"
is 0 "$status" "random mixtures" || diag "$err"
printf '%s\n' "$out" >"$tmp/made"
run "$BUILD/tests/format/mixture-page" "$tmp/made"
is 0 "$status" "the library has the same ones" || diag "$(grep '^not' <<<"$out")"
is "ok 151 - there are 150 mixtures" "$(grep 'there are' <<<"$out")" "all of them"

done_testing
