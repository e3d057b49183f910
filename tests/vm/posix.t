#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# posix.t - a stock kernel mounts the disk itself, while another machine publishes on it
#
# Two guests share an NVMe disk. One builds an image with --posix and appends; the other has
# nothing of Stele but what compares: mount -t erofs and diff show it the trees.
if [ -n "${GUEST-}" ]; then export TMPDIR=/dev/shm; fi
. "${0%/*}/../tap.sh"
. "${0%/*}/guests.sh"
shared=${1-} me=${2-} disk=/dev/vm/shared

writer() {
	run stele build -q --posix "$shared/first" "$disk@v1"
	is 0 "$status" "build --posix" || diag "$err"
	: >"$shared/built"
	await mounted
	run stele append -q --delete-missing "$shared/second" "$disk@v2"
	is 0 "$status" "append, while the other machine has v1 mounted" || diag "$err"
	run stele snapshot delete "$disk@v1"
	is 0 "$status" "v1 is deleted" || diag "$err"
	: >"$shared/appended"
	await "done"
	run stele verify "$disk"
	is 0 "$status" "verify" || diag "$out" "$err"
}

view() { must mount -t erofs -o ro "$disk" "$tmp/view"; }

reader() {
	mkdir "$tmp/view"
	await built
	view
	is v1 "$(ls "$tmp/view")" "a directory for the snapshot"
	ok "the tree of v1" diff -r "$shared/first" "$tmp/view/v1"
	: >"$shared/mounted"
	await appended
	echo 3 >/proc/sys/vm/drop_caches
	ok "a mounted view stays as it was" diff -r "$shared/first" "$tmp/view/v1"
	must umount "$tmp/view"
	view
	is v2 "$(ls "$tmp/view")" "mounted again it shows what is there"
	ok "the tree of v2" diff -r "$shared/second" "$tmp/view/v2"
	ok "in blocks of the disk, by O_DIRECT" cmp "$shared/second/dir/64" \
		<(dd if="$tmp/view/v2/dir/64" iflag=direct bs=64K status=none)
	ok "nothing can be written" not touch "$tmp/view/v2/new" 2>/dev/null
	must umount "$tmp/view"
	: >"$shared/done"
}

if [ -n "${GUEST-}" ]; then
	"$me"
	done_testing
fi

# ---- on the host -------------------------------------------------------------

shared=$tmp/shared
mkdir -p "$shared"/{first,second}/dir/deep "$shared/first/gone"
for ((i = 0; i < 40; i++)); do
	head -c $((i * 2999 + 1)) /dev/urandom >"$shared/first/$i"
	head -c $((i * 57)) /dev/urandom >"$shared/first/dir/deep/$i é"
done
: >"$shared/first/gone/empty"
cp -r "$shared"/first/{dir,1*} "$shared/second/"
for ((i = 40; i < 70; i++)); do
	head -c $((i * 4096)) /dev/urandom >"$shared/second/dir/$i"
done

truncate -s 64M "$tmp/disk"
boot_guests "writer reader" "$shared" -d "shared:file=$tmp/disk,share=1" -m erofs -t 500
join_guests
done_testing
