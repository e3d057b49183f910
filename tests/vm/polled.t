#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# polled.t - NVMe by polling and by commands of its own, blocks of 512 and of 4096 bytes
#
# The sector that fails is in the last MiB of its disk.
[ -n "${GUEST-}" ] || exec "${0%/*}/guest.sh" -d n512:block=512,size=16M \
	-d n4096:block=4096,size=16M -d bad:size=16M,error=31000 \
	-m "nvme poll_queues=1" -t 400 -- "$0"
export TMPDIR=/dev/shm
. "${0%/*}/../tap.sh"

for disk in n512 n4096 bad; do
	[ -b /dev/vm/$disk ] || bail "no disk $disk"
done
size=$((16 << 20))
by() { # BACKEND DISK [handed], to a file: the shell takes seconds for so many bytes
	"$BUILD/tests/cmd/read-by" "$1" "$2" "$size" 32 ${3+"$3"} >"$tmp/read"
}

is 1 "$(cat "/sys/block/$(basename "$(realpath /dev/vm/n512)")/queue/io_poll")" \
	"the disks have queues that are polled"
for block in 512 4096; do
	disk=/dev/vm/n$block
	head -c "$size" /dev/urandom >"$tmp/wanted"
	must dd if="$tmp/wanted" of="$disk" bs=1M oflag=direct status=none
	for backend in uring sqpoll iopoll passthrough; do
		run by "$backend" "$disk"
		is 0 "$status" "$backend, blocks of $block: reads" || diag "$err"
		ok "$backend, blocks of $block: the bytes" cmp "$tmp/read" "$tmp/wanted"
		is "by $backend" "$(sed -n 's/^\(by [a-z]*\).*/\1/p' <<<"$err")" \
			"$backend, blocks of $block: serves"
		is "workers 0" "$(grep workers <<<"$err")" \
			"$backend, blocks of $block: no workers"
		run by "$backend" "$disk" handed
		is 0 "$status" "$backend, blocks of $block: by two threads" ||
			diag "$err"
		ok "$backend, blocks of $block: the same bytes" \
			cmp "$tmp/read" "$tmp/wanted"
	done
	ok "passthrough, blocks of $block: from registered memory" \
		grep -q fixed-buffers <<<"$err"
	is "" "$(grep error <<<"$err")" "passthrough, blocks of $block: no error"
	run by hybrid "$disk"
	is 1 "$status" "hybrid: not in this kernel"
	ok "is said" grep -q "'hybrid' on '$disk': this kernel has no such ring" \
		<<<"$err" || diag "$err"
done

# ---- a sector that cannot be read ---------------------------------------------

run by uring /dev/vm/bad
wanted=$(grep error <<<"$err" | sort)
is 1 "$(wc -l <<<"$wanted")" "one piece fails"
for backend in iopoll passthrough; do
	run by "$backend" /dev/vm/bad
	is "$wanted" "$(grep error <<<"$err" | sort)" "$backend: the same, and the same error"
done

# ---- what is no whole namespace -------------------------------------------------

refused() { # DISK WHY
	run by passthrough "$1"
	is 1 "$status" "passthrough refuses $1"
	ok "and says why" grep -q "'passthrough' on '$1': $2" <<<"$err" || diag "$err"
}
disk=$(realpath /dev/vm/n512)
printf 'label: gpt\nsize=8MiB\n' | sfdisk -q "$disk" || bail "sfdisk"
udevadm settle 2>/dev/null
refused "${disk}p1" "it is a partition"
mv "${disk/nvme/ng}" "${disk/nvme/ng}.away"
refused "$disk" "the character device"
mv "${disk/nvme/ng}.away" "${disk/nvme/ng}"

done_testing
