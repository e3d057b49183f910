#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# shares.t - a target that is a loop device over what is read: nothing is lost
. "${0%/*}/../tap.sh"
# shellcheck source=tests/cmd/targets.sh
. tests/cmd/targets.sh

tree_photos "$tmp/src"
over() { # FILE [OPTION...]: a loop device over it
	losetup -f --show "${@:2}" "$1" || bail "no loop device"
}
requires losetup -f

# refused WORDS FILE COMMAND...: with each of -n and nothing, and FILE is as it was
refused() {
	local words=$1 file=$2 before
	shift 2
	before=$(sum "$file")
	run stele "$@"
	ok "$*: refused" test "$status" != 0
	ok "$*: says '$words'" grep -q "$words" <<<"$err" || diag "$err"
	is "$before" "$(sum "$file")" "$*: nothing changed"
	run stele "$1" -n "${@:2}"
	ok "$*: a rehearsal, too" grep -q "$words" <<<"$err" || diag "$err"
}

image=$tmp/image
must stele build -q --size=24M "$tmp/src" "$image"
loop=$(over "$image") && cleanup losetup -d "$loop"
again=$(over "$image") && cleanup losetup -d "$again"
above=$(over "$loop") && cleanup losetup -d "$above"
inside=$(over "$image" -o 1M) && cleanup losetup -d "$inside"
for target in "$loop" "$above" "$inside"; do
	refused "is the source itself" "$image" copy -f "$image" "$target"
done
refused "is the source itself" "$image" copy -f "$loop" "$again"
refused "is the source itself" "$image" copy -f "$loop" "$above"
run stele verify "$image"
is 0 "$status" "the image is sound"

# Two parts of one file are two devices.
truncate -s 48M "$tmp/disk"
one=$(over "$tmp/disk" --sizelimit 24M) && cleanup losetup -d "$one"
other=$(over "$tmp/disk" -o 24M) && cleanup losetup -d "$other"
must stele build -q "$tmp/src" "$one"
run stele copy -q "$one" "$other"
is "0 " "$status $err" "from one part of a disk to another"
is "" "$(stele diff "$one" "$other" 2>&1)" "they are the same"

# An archive, and a directory that has it.
mkdir "$tmp/dir"
echo other >"$tmp/dir/other"
tar -C "$tmp/src" -cf "$tmp/dir/x.tar" .
truncate -s 24M "$tmp/dir/x.tar"
tar=$(over "$tmp/dir/x.tar") && cleanup losetup -d "$tar"
for force in "" -f; do
	refused "is a file of the source" "$tmp/dir/x.tar" build $force "$tmp/dir/x.tar" "$tar"
	refused "is a file of the source" "$tmp/dir/x.tar" build $force "$tmp/dir" "$tar"
done
done_testing
