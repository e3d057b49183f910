#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bare.t - a root directory without /proc or /sys: what writes to an image refuses, others do not
. "${0%/*}/../tap.sh"

requires_root
requires unshare -m mount -t tmpfs none /proc

mkdir "$tmp/src" "$tmp/mnt"
head -c 20K /dev/urandom >"$tmp/src/1"
head -c 60K /dev/urandom >"$tmp/src/2"
must stele build -q --posix "$tmp/src" "$tmp/a@v1"
must stele snapshot create "$tmp/a@v2" >&2

# without PLACE COMMAND...: nothing is mounted there
without() {
	unshare -m sh -c 'mount -t tmpfs none "$1" && shift && exec "$@"' - "$@"
}
# refused COMMAND...: in words, with the way out, and nothing is changed or made
refused() {
	local before
	before=$(cat "$tmp"/a* | sum)
	run without "$place" stele "$@"
	is 1 "$status" "$place: $1 $2 is refused" || diag "$err"
	ok "it says why" grep -q "is in use without '$what'\$" <<<"$err" || diag "$err"
	ok "and what to do" grep -qF "hint: mount it first, as root: 'mount -t" <<<"$err" ||
		diag "$err"
	is "$before" "$(cat "$tmp"/a* | sum)" "nothing changed"
	ok "and nothing is made" test ! -e "$tmp/new"
}

for place in /proc /sys; do
	what=/proc/self
	[ $place = /proc ] || what=/sys/dev/block
	# shellcheck disable=SC2086 # an option or none
	for dry in -n ""; do
		refused append $dry "$tmp/src" "$tmp/a@n"
		[ $place = /sys ] || refused build $dry "$tmp/src" "$tmp/new"
		refused build $dry -f "$tmp/src" "$tmp/a"
		refused copy $dry "$tmp/a@v1" "$tmp/new"
		refused compact $dry "$tmp/a@v1" n
		refused posix $dry off "$tmp/a"
		refused resize $dry --size=19M "$tmp/a"
		refused snapshot create $dry "$tmp/a@n"
		refused snapshot delete $dry -f "$tmp/a@v2"
	done
	if [ $place = /sys ]; then
		run without $place stele build -q "$tmp/src" "$tmp/fresh"
		is 0 "$status" "$place: a new file takes none" || diag "$err"
		run stele verify -q "$tmp/fresh"
		is 0 "$status" "and is sound" || diag "$err"
	fi
	run without $place stele info "$tmp/a@v1"
	is 0 "$status" "$place: info goes" || diag "$err"
	run without $place stele verify "$tmp/a"
	is 0 "$status" "$place: verify goes" || diag "$err"
	run without $place stele cat "$tmp/a@v1" 1
	ok "$place: cat goes" cmp "$tmp/.out" "$tmp/src/1"
	run without $place stele extract -q "$tmp/a@v1" "$tmp/out"
	ok "$place: extract goes" diff -r "$tmp/src" "$tmp/out"
	rm -rf "$tmp/out"
done

# what is mounted there cannot be known
run without /proc stele umount "$tmp/mnt"
is 1 "$status" "umount is refused"
ok "it does not say that nothing is mounted" \
	grep -q "what is mounted there cannot be told without '/proc/self/mounts'" <<<"$err" ||
	diag "$err"
ok "but what to do" grep -qF "'mount -t proc proc /proc'" <<<"$err"
run without /sys stele umount "$tmp/mnt"
ok "/sys has no part in it" grep -q "nothing is mounted there" <<<"$err"

done_testing
