#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# resize.t - stele resize: an image follows its target
. "${0%/*}/../tap.sh"

cd "$tmp" || bail "cd"
mkdir src
head -c 100000 /dev/urandom >src/a

size_of() { stele info --json "$1" | jq .image.image_size; }

must stele build -q src image.stele@v1
run stele resize --size 8M image.stele
is "0 8.0 MiB, was 2.1 MiB" "$status $out" "a file is made larger"
is 8388608 "$(size_of image.stele)" "and its image"
is 8388608 "$(stat -c %s image.stele)" "to the byte"
run stele resize --json image.stele
is 8388608,8388608 "$(jq -r '"\(.old_size),\(.new_size)"' <<<"$out")" \
	"as it is"
truncate -s 10M image.stele
must stele resize --size 9M image.stele >/dev/null
is 9437184 "$(size_of image.stele)" "part of a file that grew"
must stele resize image.stele >/dev/null
is 10485760 "$(size_of image.stele)" "all of it"
ok "sound" stele verify -q image.stele
before=$(sha256sum <image.stele)
run stele resize --size 4M image.stele
is "2 " "$status $out" "a smaller size is refused"
ok "which says why" grep -q "shrink" <<<"$err"
is "$before" "$(sha256sum <image.stele)" "nothing was written"
run stele resize --size 12MB image.stele
is "0 stele: --size=12MB is rounded up to 12001280 bytes, a multiple of 4096" \
	"$status $err" "a size between two blocks is rounded up, and said"
is 12001280 "$(size_of image.stele)" "to that"
for words in "" "--size=0 image.stele" "--size=x image.stele" "a b"; do
	# shellcheck disable=SC2086 # words
	run stele resize $words
	is "2 " "$status $out" "resize $words: wrong usage"
done
run stele resize none.stele
is 1 "$status" "no such target"

# ---- a device that grew ----

if [ "$(id -u)" != 0 ]; then
	skip_block 1 "needs root"
	done_testing
fi
for block in 512 4096; do
	loop_new 16M "$block"
	must stele build -q src "$loop@v1"
	run stele resize --size 32M "$loop"
	is "2 " "$status $out" "loop of $block: not ours to make larger"
	ok "loop of $block: says so" grep -q "enlarge the device first" <<<"$err"
	must truncate -s 32M "$loop_file"
	must losetup -c "$loop"
	run stele resize "$loop"
	is "0 32.0 MiB, was 16.0 MiB" "$status $out" "loop of $block: it grew"
	is 33554432 "$(size_of "$loop")" "loop of $block: to the byte"
	ok "loop of $block: sound" stele verify -q "$loop"
	ok "loop of $block: the bytes" cmp <(stele cat "$loop" a) src/a
done

done_testing
