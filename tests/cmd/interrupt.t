#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# interrupt.t - a build that is killed or stopped half way, on a device
#
# The source is 40 GiB of holes, so that no machine is done with it before the
# signal comes; that is sent when the superblocks say "unfinished". They are read
# by dd, because a reader of ours would keep a build from the target.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires_root

mkdir "$tmp/huge"
truncate -s 4G "$tmp/huge/"{a,b,c,d}
tree_photos "$tmp/photos"
loop_new 48G

# All four copies: while one still has the image of before, that is what is read
# (stele-format(5), "Superblock").
unfinished() {
	local at
	for at in 1 2 256 257; do
		dd if="$1" iflag=direct bs=4096 skip=$at count=1 2>/dev/null |
			perl -0777 -ne 'exit !(/^.STELE/s && unpack("x36V", $_) == 0)' ||
			return
	done
}

# interrupted SIGNAL TARGET: sets status and err of a build that got it while
# writing. Shells start background jobs with SIGINT ignored.
interrupted() {
	local pid
	env --default-signal=INT stele build --force "$tmp/huge" "$2" \
		>"$tmp/out" 2>"$tmp/err" &
	pid=$!
	until [ -e "$2" ] && unfinished "$2"; do
		kill -0 $pid 2>/dev/null || bail "the build ended: $(<"$tmp/err")"
	done
	kill "-$1" $pid
	wait $pid 2>/dev/null
	status=$?
	err=$(<"$tmp/err")
}

run stele build "$tmp/photos" "$loop@v1"
is 0 "$status" "a first image" || diag "$err"
before=$(sum <(head -c 64M "$loop"))
run stele build "$tmp/huge" "$loop@v2"
is 1 "$status" "an image of ours is refused without --force"
ok "its snapshot is named" grep -qw v1 <<<"$err" || diag "$err"
is "$before" "$(sum <(head -c 64M "$loop"))" "and it keeps its bytes"

for signal in KILL INT TERM; do
	interrupted $signal "$loop"
	is $((128 + $(kill -l $signal))) "$status" "$signal: dies of it"
	[ $signal = KILL ] ||
		ok "$signal: says what to do" grep -q "with force" <<<"$err" || diag "$err"
	run stele info "$loop"
	is "1 " "$status $out" "$signal: info fails"
	ok "$signal: info says unfinished" grep -q unfinished <<<"$err"
	ok "$signal: info says what to do" grep -q "^hint: .*stele build --force" <<<"$err"
	run stele ls "$loop"
	is "1 " "$status $out" "$signal: nothing is read from it"
	run stele verify "$loop"
	is 1 "$status" "$signal: nothing is verified"
	run stele build "$tmp/photos" "$loop"
	is 1 "$status" "$signal: a build without --force is refused"
	ok "$signal: which says why" grep -q unfinished <<<"$err" || diag "$err"
	run stele build --force "$tmp/photos" "$loop@again"
	is 0 "$status" "$signal: a build with --force succeeds" || diag "$err"
	run stele verify -q "$loop@again"
	is "0 " "$status $out" "$signal: and is sound"
	fallocate -p -o 64M -l 47G "$loop_file" # give the space back
done

# A file that the build made itself goes away.
interrupted INT "$tmp/file"
is 130 "$status" "a file: dies of the signal" || diag "$err"
ok "a file that the build made is removed" test ! -e "$tmp/file"

done_testing
