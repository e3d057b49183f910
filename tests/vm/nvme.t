#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# nvme.t - NVMe devices with blocks of 512 and of 4096 bytes, through io_uring
[ -n "${GUEST-}" ] || exec "${0%/*}/guest.sh" -d n512:block=512 \
	-d n4096:block=4096 -d fs:block=512 -m ext4 -t 400 -- "$0"
export TMPDIR=/dev/shm
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version

tree_photos "$tmp/src"
for ((i = 1; i <= 30; i++)); do
	head -c $((i * 37)) /dev/urandom >"$tmp/src/small$i"
done
head -c 3000000 /dev/urandom >"$tmp/src/large"
count=$(find "$tmp/src" -type f | wc -l)

for block in 512 4096; do
	disk=/dev/vm/n$block words="blocks of $block"
	is "$block" "$(blockdev --getss "$disk")" "$words: the device has them"
	run stele build -q --label photos "$tmp/src" "$disk@v1"
	is 0 "$status" "$words: build" || diag "$err"
	run stele info --json "$disk@v1"
	is "$count uring $block" "$(field "$out" \
		'"\(.snapshot.samples) \(.snapshot.backend) \(.snapshot.logical_block)"')" \
		"$words: info, io_uring serves" || diag "$out"
	run stele verify "$disk"
	is 0 "$status" "$words: verify" || diag "$out" "$err"
	ok "$words: cat" cmp <(stele cat "$disk" large) "$tmp/src/large"
	run stele extract "$disk" "$tmp/copy"
	is 0 "$status" "$words: extract" || diag "$err"
	ok "$words: the tree" diff -r "$tmp/src" "$tmp/copy"
	rm -rf "$tmp/copy"
	for backend in uring threads; do
		ok "$words: each sample in random order, $backend" env \
			STELE_BACKEND=$backend \
			"$BUILD/tests/demo/demo" compare "$disk@v1" "$tmp/src"
	done
	run stele build -q "$tmp/src" "$disk@v1"
	is 1 "$status" "$words: another build is refused"
done
is "$(stele info --json /dev/vm/n512@v1 | jq -r .snapshot.digest)" \
	"$(stele info --json /dev/vm/n4096@v1 | jq -r .snapshot.digest)" \
	"the digest does not depend on the device"

# ---- versions -----------------------------------------------------------------

mkdir "$tmp/more"
cp -R "$tmp/src/." "$tmp/more/"
head -c 700000 /dev/urandom >"$tmp/more/new"
head -c 100 /dev/urandom >"$tmp/more/small3"
for block in 512 4096; do
	disk=/dev/vm/n$block words="blocks of $block"
	run stele append -q --update "$tmp/more" "$disk@v2" --base v1
	is 0 "$status" "$words: append" || diag "$err"
	ok "$words: each sample of the new snapshot" \
		"$BUILD/tests/demo/demo" compare "$disk@v2" "$tmp/more"
	ok "$words: and of the old" \
		"$BUILD/tests/demo/demo" compare "$disk@v1" "$tmp/src"
	run stele snapshot create "$disk@v3" --base v2 --delete large
	is 0 "$status" "$words: snapshot create" || diag "$err"
	run stele ls "$disk@v3"
	is "$count" "$(wc -l <<<"$out")" "$words: one key less"
	must stele snapshot delete --force "$disk@v2" >"$tmp/out"
	run stele gc --apply --force --discard "$disk"
	is 0 "$status" "$words: gc" || diag "$err"
	run stele verify "$disk"
	is 0 "$status" "$words: verify" || diag "$out" "$err"
done

digest() { stele info --json "$1" | jq -r .snapshot.digest; }
run stele copy -q /dev/vm/n512@v3 /dev/vm/n4096@copied
is 0 "$status" "copy from blocks of 512 to blocks of 4096" || diag "$err"
is "$(digest /dev/vm/n512@v3)" "$(digest /dev/vm/n4096@copied)" "the same digest"
run stele copy -q /dev/vm/n4096@v1 /dev/vm/n512@back
is 0 "$status" "copy from blocks of 4096 to blocks of 512" || diag "$err"
ok "each sample of the copy" "$BUILD/tests/demo/demo" compare /dev/vm/n512@back "$tmp/src"
for disk in /dev/vm/n512 /dev/vm/n4096; do
	ok "verify of all on $disk" stele verify -q "$disk"
done

run stele map --read-only /dev/vm/n4096@v1 photos
is "0 photos 1" "$status $out $(blockdev --getro /dev/vm/n4096)" \
	"map sets the device read-only"
ok "cat by the mapped name" cmp <(stele cat photos small9) "$tmp/src/small9"
ok "unmap" stele unmap photos

# ---- the unit tests' programs, their files on a filesystem on such a disk ----

must mkfs.ext4 -q /dev/vm/fs
mkdir "$tmp/fs"
must mount /dev/vm/fs "$tmp/fs"
cleanup umount "$tmp/fs"
for program in device-transfer queue-transfer device-fallback \
	dataset-read view-samples; do
	run env TMPDIR="$tmp/fs" "$BUILD/tests/lib/$program"
	is 0 "$status" "$program, files on NVMe" || diag "$out" "$err"
	is "" "$(grep -i '# skip' <<<"$out" | grep -v Ceph)" \
		"$program: skipped nothing but Ceph"
done
done_testing
