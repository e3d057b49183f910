#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# workers.t - as many reads in flight as a disk has room for: no thread of the kernel
# stands in for one, and none is split
. "${0%/*}/../tap.sh"
requires_root

size=$((32 << 20))
read_by() { # BACKEND TARGET DEPTH
	run "$BUILD/tests/cmd/read-by" "$1" "$2" "$size" "$3"
	is 0 "$status" "$1 reads $2, $3 in flight" || diag "$err"
}
# said WORD: the number behind it
said() { sed -n "s/^$1 //p" <<<"$err"; }

loop_new "$size"
head -c "$size" /dev/urandom >"$tmp/wanted"
must dd if="$tmp/wanted" of="$loop" bs=1M oflag=direct conv=fsync status=none
read_by uring "$loop_file" 4
[[ $err == *"by uring"* ]] || skip_all "needs io_uring"

for depth in 32 0; do
	read_by uring "$loop_file" "$depth"
	ok "the bytes" cmp "$tmp/.out" "$tmp/wanted"
	is 0 "$(said workers)" "a file: no worker"
done

# What the loop device itself would cut or put together is not to count.
queue=/sys/block/${loop##*/}/queue
echo 2 >"$queue/nomerges"
completed() { awk '{ print $1 }' "/sys/block/${loop##*/}/stat"; }
! command -v udevadm >/dev/null || udevadm settle
for kilobytes in 64 1280; do
	echo "$kilobytes" >"$queue/max_sectors_kb" || bail "max_sectors_kb"
	for depth in 8 0; do
		before=$(completed)
		read_by uring "$loop" "$depth"
		ok "the bytes" cmp "$tmp/.out" "$tmp/wanted"
		is 0 "$(said workers)" "a loop device, up to $kilobytes KiB: no worker"
		is "$(said pieces)" $(($(completed) - before)) \
			"as many reads as it was asked"
	done
done

done_testing
