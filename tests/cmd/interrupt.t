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

# interrupted "SIGNAL..." TARGET: sets status and err of a build that got them while
# writing. Shells start background jobs with SIGINT ignored.
interrupted() {
	local pid signal
	env --default-signal=INT stele build --force "$tmp/huge" "$2" \
		>"$tmp/out" 2>"$tmp/err" &
	pid=$!
	until [ -e "$2" ] && unfinished "$2"; do
		kill -0 $pid 2>/dev/null || bail "the build ended: $(<"$tmp/err")"
	done
	for signal in $1; do
		kill "-$signal" $pid
		read -rt 0.01 <> <(:) # it is no longer pending
	done
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

held=v1
for signal in KILL INT TERM; do
	interrupted $signal "$loop"
	is $((128 + $(kill -l $signal))) "$status" "$signal: dies of it"
	[ $signal = KILL ] ||
		ok "$signal: says what to do" grep -q "^hint: .*--force" <<<"$err" || diag "$err"
	[ $signal = KILL ] ||
		ok "$signal: and what was lost" \
			grep -q "lost the image that it held: '$held'" <<<"$err"
	run stele info "$loop"
	is "1 " "$status $out" "$signal: info fails"
	ok "$signal: info says unfinished" grep -q unfinished <<<"$err"
	ok "$signal: and what was lost" grep -q "it has overwritten '$held'$" <<<"$err" ||
		diag "$err"
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
	held=again
	run stele verify -q "$loop@again"
	is "0 " "$status $out" "$signal: and is sound"
	fallocate -p -o 64M -l 47G "$loop_file" # give the space back
done

# Of what can be known before, nothing is lost: as somebody who cannot read all.
must stele build -q --force --label=old "$tmp/photos" "$loop@kept"
before=$(sum <(head -c 64M "$loop"))
mkdir "$tmp/none"
run stele build --force "$tmp/none" "$loop"
is 1 "$status" "nothing to build, by force"
somebody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
chmod 711 "$tmp"
if somebody test -x "$BUILD/stele" && somebody test -x "$tmp"; then
	cp -R "$tmp/photos" "$tmp/secret" && chmod 600 "$tmp/secret/train/cats/7.jpg"
	chmod 666 "$loop"
	run somebody stele build --force "$tmp/secret" "$loop"
	is 1 "$status" "an unreadable source, by force"
	ok "names the file" grep -q "cats/7.jpg': Permission denied" <<<"$err" || diag "$err"
else
	skip_block 2 "needs a directory that others can read"
fi
is "$before" "$(sum <(head -c 64M "$loop"))" "leaves the image as it was"

# A file keeps what it holds until there is something else.
beside() { find "$tmp" -maxdepth 1 -name 'over*' | wc -l; }
must stele build -q "$tmp/photos" "$tmp/over@v1"
chmod 604 "$tmp/over"
ln "$tmp/over" "$tmp/over.link"
ln -s over "$tmp/over.sym"
before=$(sum "$tmp/over")
for signal in INT KILL; do
	env --default-signal=INT stele build --force "$tmp/huge" "$tmp/over.sym@v2" \
		>"$tmp/out" 2>"$tmp/err" &
	pid=$!
	until head -c 12288 "$tmp"/over.new-* 2>/dev/null | grep -qaF STELE; do
		kill -0 $pid 2>/dev/null || bail "the build ended: $(<"$tmp/err")"
	done
	kill -$signal $pid
	wait $pid 2>/dev/null
	is "$before" "$(sum "$tmp/over")" "a file, $signal: is as it was"
	run stele verify "$tmp/over@v1"
	is 0 "$status" "a file, $signal: and sound" || diag "$err"
	[ $signal = KILL ] || is 3 "$(beside)" "a file, $signal: nothing is left beside it"
done
stale=$(echo "$tmp"/over.new-*)
run stele info "$stale"
is "1 0 1" "$status $(grep -c "has overwritten" <<<"$err") $(
	grep -cF "hint: it was to take the place of '$tmp/over', which is as it was" <<<"$err")" \
	"what a killed build has left beside a file has overwritten nothing" || diag "$err"
head -c 2M "$stale" >"$tmp/early"
must truncate -r "$stale" "$tmp/early"
dd if=/dev/zero of="$tmp/early" bs=4096 seek=1 count=1 conv=notrunc status=none
run stele info "$tmp/early"
is "1 0" "$status $(grep -c "superblock copy" <<<"$err")" \
	"nor is a superblock missed that was still to come" || diag "$err"
said() { grep -cF "'$stale' was left by an interrupted build" <<<"$err$out"; }
run flock -x "$stale" "$BUILD/stele" build --force "$tmp/photos" "$tmp/over@v1"
is "0 0" "$status $(said)" "what somebody holds is not called left"
run stele build --force "$tmp/photos" "$tmp/over@v1"
is "0 1" "$status $(said)" "what a killed build has left is named" || diag "$err"
ok "and stays" test -e "$stale"
rm -f "$stale"
run stele build --force "$tmp/photos/train" "$tmp/over.sym@v2"
is "0 v2" "$status $(stele snapshot list --json "$tmp/over" | jq -r .name)" \
	"a file: replaced" || diag "$err"
is "604 3" "$(stat -c %a "$tmp/over") $(beside)" "a file: with its mode, and nothing beside"
is "v1 over" \
	"$(stele snapshot list --json "$tmp/over.link" | jq -r .name) $(readlink "$tmp/over.sym")" \
	"a file: another name keeps the old image, a symlink its way"

# A file that the build made itself goes away.
interrupted INT "$tmp/file"
is 130 "$status" "a file: dies of the signal" || diag "$err"
ok "a file that the build made is removed" test ! -e "$tmp/file"
# timeout(1) sends one to the process, and one to its group.
clean=0
for ((try = 0; try < 10 && clean < 3; try++)); do
	began=${EPOCHREALTIME/./}
	interrupted "INT INT" "$tmp/file"
	[ ! -e "$tmp/file" ] && clean=$((clean + 1)) && continue
	[ $((${EPOCHREALTIME/./} - began)) -lt 400000 ] && break
	rm "$tmp/file" # by bad luck they were further apart
done
is "130 3" "$status $clean" "two signals at once: dies of one, having cleaned up" || diag "$err"

# ---- a command that only reads ----

mkdir "$tmp/some" && truncate -s 512M "$tmp/some/a"
must stele build -q "$tmp/some" "$tmp/some.stele"
env --default-signal=INT stele verify -j1 "$tmp/some.stele" >"$tmp/out" 2>"$tmp/err" &
pid=$!
sleep 0.05
kill -INT $pid
wait $pid
is "130 stele: Interrupt: stopped" "$? $(<"$tmp/err")" "verify: says that it was stopped"
is "" "$(<"$tmp/out")" "and calls nothing sound"

done_testing
