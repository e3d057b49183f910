#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# many.t - many tiny samples; extracting them would measure the filesystem
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version

# fill DIR
count=100000
fill() {
	perl -e 'my ($dir, $count) = @ARGV;
		for my $i (0 .. $count - 1) {
			my $d = "$dir/" . int($i / 5000);
			mkdir $d unless $i % 5000;
			open my $f, ">", "$d/$i" or die "$d/$i: $!";
			print $f "sample $i ", "x" x ($i % 97);
			close $f or die "$d/$i: $!";
		}' "$1" $count
}

# In memory where there is a tmpfs with room: files are what takes the time.
many=$(mktemp -d -p /dev/shm 2>/dev/null) && cleanup rm -rf "$many"
if [ -z "$many" ] || ! fill "$many" 2>/dev/null; then
	[ -z "$many" ] || rm -rf "$many"
	many=$tmp/many
	mkdir "$many"
	fill "$many" || bail "cannot make files"
fi

run stele build --json "$many" "$tmp/image"
is "0 $count" "$status $(field "$out" .samples)" "build" || diag "$err"
ok "runs are few" test "$(field "$out" .runs)" -lt 1000
run stele verify "$tmp/image"
is 0 "$status" "verify" || diag "$out"
is $count "$(stele ls "$tmp/image" | wc -l)" "ls"
is "sample 61234 $(printf 'x%.0s' $(seq $((61234 % 97))))" \
	"$(stele cat "$tmp/image" 12/61234)" "cat"
done_testing
