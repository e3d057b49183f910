#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# writers.t - a writer on a file, and one on a loop device over it
#
# Neither sees the other one's lock. The first one is stopped when it has said that it
# writes: the source is 4 GiB of holes, so that no machine is done before.
. "${0%/*}/../tap.sh"

requires_root

cd "$tmp" || bail "cd"
mkdir src huge
head -c 100000 /dev/urandom >src/a
head -c 100000 /dev/urandom >src/b
truncate -s 4G huge/c
must stele build -q src image@v1
must stele resize --size 64M image >/dev/null

# Is that block of the file one of ours? 3: whose turn it is; 4: what he writes.
ours() {
	dd if=image bs=4096 skip="$1" count=1 status=none | head -c 6 | grep -qa STELE
}

stele append -q huge image@v2 2>first.err &
pid=$!
until ours 3 && ours 4; do
	kill -0 $pid 2>/dev/null || bail "the first writer ended: $(<first.err)"
done
kill -STOP $pid
loop=$(losetup -f --show image) || bail "losetup"
run stele append -q src "$loop@v3"
is 1 "$status" "while it lives, a second one is refused"
ok "which says why" grep -q "being written by process $pid (stele) of this machine" <<<"$err" ||
	diag "$err"
run stele build -q --force src "$loop"
is "1 hint: try again when nothing else uses it" "$status $(tail -n1 <<<"$err")" \
	"nor is it overwritten; nothing is to be unmounted" || diag "$err"
run stele verify -q "$loop@v1"
is "0 " "$status $out" "a reader is not"
kill -KILL $pid
kill -CONT $pid 2>/dev/null
wait $pid 2>/dev/null
run stele snapshot create "$loop@v3"
is 0 "$status" "when it is dead, the next one goes on" || diag "$err"
is "" "$err" "without a word"
run stele verify -q "$loop"
is "0 " "$status $out" "sound"
ok "nobody writes" test -z "$(ours 3 && echo turn; ours 4 && echo intent)"
losetup -d "$loop"

done_testing
