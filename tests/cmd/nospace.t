#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# nospace.t - targets that are too small
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version

mkdir "$tmp/src"
head -c 24M /dev/urandom >"$tmp/src/a"
head -c 1M /dev/urandom >"$tmp/src/b"
end=$(stele build -n --json "$tmp/src" | jq .image_end)

too_small() { # TARGET SIZE WORDS
	local before
	before=$(sum "$1")
	run stele build --force "$tmp/src" "$1"
	is "1 " "$status $out" "$3: refused"
	ok "$3: says what it has" grep -qw "$2" <<<"$err" || diag "$err"
	ok "$3: says what it takes" grep -qw "$end" <<<"$err" || diag "$err"
	is "$before" "$(sum "$1")" "$3: unchanged"
}

run stele build --size=$((end - 4096)) "$tmp/src" "$tmp/file"
is 1 "$status" "a --size too small is refused"
ok "--size: both sizes are named" grep -qw "$end" <<<"$err" || diag "$err"
ok "--size: no file is left" test ! -e "$tmp/file"
run stele build --size="$end" "$tmp/src" "$tmp/file"
is 0 "$status" "one of just that size will do" || diag "$err"

requires_root
loop_new $((end - 4096))
head -c 1M /dev/urandom >"$loop" || bail "cannot fill $loop"
too_small "$loop" $((end - 4096)) "device, one block short"
loop_new 1M
too_small "$loop" 1048576 "tiny device"
loop_new 4096
too_small "$loop" 4096 "one block"
loop_new "$end"
run stele build "$tmp/src" "$loop"
is 0 "$status" "a device of just that size will do" || diag "$err"

# Full to the last block: what is there can go, and its space is used again.
mkdir "$tmp/less"
head -c 23M /dev/urandom >"$tmp/less/c"
run stele append "$tmp/less" "$loop@v2"
is 1 "$status" "no room for more"
ok "which is said" grep -q "delete snapshots" <<<"$err" || diag "$err"
run stele snapshot rename "$loop@v1" old
is 0 "$status" "a rename has room" || diag "$err"
run stele snapshot delete "$loop@old"
is 0 "$status" "so has a delete" || diag "$err"
must stele build -q "$tmp/less" "$tmp/other"
run stele copy "$tmp/other" "$loop@v2"
ok "then gc is recommended" grep -q "free some with gc" <<<"$err" || diag "$err"
run stele gc --apply --force "$loop"
is 0 "$status" "and gc does it" || diag "$err"
run stele copy -q "$tmp/other" "$loop@v2"
is 0 "$status" "there is room for another one" || diag "$err"
run stele verify -q "$loop"
is "0 " "$status $out$err" "which is sound"

# A filesystem that fills up under a file with holes.
loop_new 20M
must mkfs.ext4 -q "$loop"
mkdir "$tmp/mnt"
must mount "$loop" "$tmp/mnt"
cleanup umount "$tmp/mnt"
run stele build "$tmp/src" "$tmp/mnt/image"
is "1 " "$status $out" "a full filesystem is a failure"
ok "a full filesystem: is named" grep -qi 'space\|small' <<<"$err" || diag "$err"
ok "a full filesystem: no file is left" test ! -e "$tmp/mnt/image"

done_testing
