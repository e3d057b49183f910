#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# many.t - many tiny samples
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version

count=200000
mkdir "$tmp/many"
perl -e 'my ($dir, $count) = @ARGV;
	for my $i (0 .. $count - 1) {
		my $d = "$dir/" . int($i / 5000);
		mkdir $d unless $i % 5000;
		open my $f, ">", "$d/$i" or die "$d/$i: $!";
		print $f "sample $i ", "x" x ($i % 97);
	}' "$tmp/many" $count || bail "cannot make files"

run stele build --json "$tmp/many" "$tmp/image"
is "0 $count" "$status $(field "$out" .samples)" "build" || diag "$err"
ok "runs are few" test "$(field "$out" .runs)" -lt 1000
run stele verify "$tmp/image"
is 0 "$status" "verify" || diag "$out"
is $count "$(stele ls "$tmp/image" | wc -l)" "ls"
is "sample 123456 $(printf 'x%.0s' $(seq $((123456 % 97))))" \
	"$(stele cat "$tmp/image" 24/123456)" "cat"
run stele extract -q "$tmp/image" "$tmp/copy"
is "0 " "$status $out" "extract" || diag "$err"
ok "the copy is the source" diff -rq "$tmp/many" "$tmp/copy"

done_testing
