#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# append-crash.t - an append that is killed, stopped, or finds no room
#
# What is appended is 40 GiB of holes, so that no machine is done with it before
# the signal comes. The older snapshot is read while it is written.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version
requires_root

mkdir "$tmp/huge"
truncate -s 10G "$tmp/huge/"{a,b,c,d}
mkdir "$tmp/more"
echo more >"$tmp/more/x"
tree_photos "$tmp/photos"

# allocated FILE: blocks of it that hold something
allocated() { stat -c %b "$1"; }

# interrupted SIGNAL TARGET FILE: sets status and err of an append that got the
# signal while it wrote samples; FILE is what grows meanwhile
interrupted() {
	local pid before
	before=$(allocated "$3")
	env --default-signal=INT stele append --label-from=none "$tmp/huge" "$2" \
		>"$tmp/out" 2>"$tmp/err" &
	pid=$!
	until [ $(($(allocated "$3") - before)) -gt 4096 ]; do
		kill -0 $pid 2>/dev/null || bail "it ended: $(<"$tmp/err")"
	done
	run stele extract -q "$2" "$tmp/nothing"
	is "1 " "$status $out" "$1: the new one is not to be seen yet"
	rm -rf "$tmp/during"
	run stele extract -q "${2%@*}@v1" "$tmp/during"
	is "0 " "$status $err" "$1: the old one is read meanwhile"
	run stele append --label-from=none "$tmp/more" "${2%@*}@other"
	is 1 "$status" "$1: a second writer is refused"
	kill "-$1" $pid
	wait $pid 2>/dev/null
	status=$?
	err=$(<"$tmp/err")
}

as_before() { # TARGET WORDS
	rm -rf "$tmp/during"
	run stele snapshot list --json "$1"
	is "$list" "$out" "$2: the snapshots are as before"
	run stele extract -q "$1@v1" "$tmp/during"
	ok "$2: the old one is whole" diff -r "$tmp/photos" "$tmp/during"
	run stele verify -q "$1"
	is "0 " "$status $out$err" "$2: the image is sound"
}

# A device, then a file.
loop_new 48G
for target in "$loop" "$tmp/file"; do
	file=$target
	[ "$target" = "$loop" ] && file=$loop_file
	must stele build -q "$tmp/photos" "$target@v1"
	list=$(stele snapshot list --json "$target")
	size=$(stat -c %s "$file")
	end=$(stele info --json "$target" | jq .image.used_size)
	for signal in INT KILL; do
		what="${target##*/}, $signal"
		interrupted $signal "$target@v2" "$file"
		is $((128 + $(kill -l $signal))) "$status" "$what: dies of it"
		[ $signal = KILL ] ||
			is "$size" "$(stat -c %s "$file")" "$what: the old size again"
		as_before "$target" "$what"
		fallocate -p -o 64M -l 47G "$file" # give the space back
	done
	run stele append --json --label-from=none "$tmp/more" "$target@v2"
	is 0 "$status" "$what: the next one succeeds" || diag "$err"
	ok "$what: in the space of the one that failed" \
		test "$(field "$out" .image_end)" -lt $((end + 200000))
	run stele verify -q "$target"
	is "0 " "$status $out$err" "$what: and is sound"
done

# No room.
need=$(stele build -n --json "$tmp/photos" | jq .image_end)
loop_new $((need + 61440))
must stele build -q "$tmp/photos" "$loop@v1"
list=$(stele snapshot list --json "$loop")
mkdir "$tmp/big"
head -c 8M /dev/urandom >"$tmp/big/a"
before=$(sum "$loop")
run stele append --label-from=none "$tmp/big" "$loop@v2"
is "1 " "$status $out" "a device that is too small"
ok "which is said" grep -q "no space left" <<<"$err" || diag "$err"
is "$before" "$(sum "$loop")" "not a byte has changed"
as_before "$loop" "too small"
run stele append -q --label-from=none "$tmp/more" "$loop@v2"
is 0 "$status" "what fits still goes" || diag "$err"
run stele verify -q "$loop"
is "0 " "$status $out$err" "and is sound"

done_testing
