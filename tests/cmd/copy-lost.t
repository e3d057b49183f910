#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# copy-lost.t - what a copy overwrites on a device is said until there is something new
. "${0%/*}/../tap.sh"
. "${0%/*}/targets.sh"

requires_root

# Three segments, of which the last is damaged: two are committed before that is noticed.
for i in 1 2 3; do
	mkdir -p "$tmp/s"
	head -c 300K /dev/urandom >"$tmp/s/$i"
	if [ $i = 1 ]; then
		must stele build -q "$tmp/s" "$tmp/good@v1"
	else
		must stele append -q "$tmp/s" "$tmp/good@v$i"
	fi
done
must cp "$tmp/good" "$tmp/damaged"
perl -e 'local $/; open F, "+<", shift; my $all = <F>; open G, "<", shift;
	my $at = index $all, substr <G>, 4096, 64; $at >= 0 or die;
	seek F, $at, 0; print F "X" x 64' \
	"$tmp/damaged" "$tmp/s/3"

loop_new 64M
must stele build -q --label=kept "$tmp/s" "$loop@t1"
must stele append -q --always "$tmp/s" "$loop@t2"
words="empty image: it has overwritten 'kept': 't1', 't2'$"

# said WORDS: by all that look
said() {
	for command in info verify "snapshot list"; do
		# shellcheck disable=SC2086 # words
		run stele $command "$loop"
		ok "$1: $command names what was overwritten" grep -q "$words" <<<"$err$out" ||
			diag "$err$out"
	done
}
segments() { stele info --json "$loop" 2>/dev/null | jq .image.segments; }

run stele copy -q -f "$tmp/damaged@v3" "$loop"
is 3 "$status" "a copy that fails at its third segment"
ok "says what is lost" grep -q "has lost the image that it held: 'kept': 't1', 't2'" <<<"$err" ||
	diag "$err"
said "two segments there"
run stele copy -q "$tmp/damaged@v3" "$loop"
is 3 "$status" "it goes on, and fails"
said "gone on"
run stele gc --apply -f "$loop"
is 0 "$status" "gc"
said "gc"
run stele copy -q -f "$tmp/damaged@v3" "$loop"
is 3 "$status" "with force once more"
ok "that says it, too" grep -q "has lost the image that it held: 'kept': 't1', 't2'" <<<"$err" ||
	diag "$err"
said "once more"
run stele copy -q "$tmp/good@v3" "$loop"
is "0 " "$status $err" "from a sound source it is copied"
run stele info "$loop"
is "0 " "$status $err" "then nothing is said any more"
ok "sound" stele verify -q "$loop"
must stele snapshot delete -f "$loop@v3"
run stele snapshot list "$loop"
ok "nor when its snapshot is deleted" not grep -q overwritten <<<"$out$err" || diag "$err"

done_testing
