#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# faults.t - a sector that cannot be read, and a disk that goes away
#
# Of disks as they fail: SCSI (scsi_debug: ENODATA), NVMe over a broken backend
# (ENODATA or EIO, as the kernel has it), an NVMe controller that is pulled.
export PATH=${BUILD:=$PWD/build}:$PATH
begin() { printf 'sample-%d-begins' "$1"; }

if [ -z "${GUEST-}" ]; then
	# The broken sector has to be known before the guest starts.
	shared=$(mktemp -d) || exit 1
	trap 'rm -rf "$shared"' EXIT
	mkdir "$shared/src"
	for ((i = 0; i < 50; i++)); do
		{ begin $i && head -c $((i * 3000)) /dev/urandom; } >"$shared/src/s$i"
	done
	stele build -q --size=64M "$shared/src" "$shared/image@v1" || exit 1
	at=$(grep -obaF "$(begin 33)" "$shared/image" | head -n 1)
	"${0%/*}/guest.sh" -s "$shared" -m sd_mod -m scsi_debug\ dev_size_mb=64\ delay=0 \
		-d "broken:file=$shared/image,error=$((${at%%:*} / 512 + 9))" \
		-d pulled:size=512M -t 400 -- "$0" "$shared"
	exit
fi
shared=$1
export TMPDIR=/dev/shm
. "${0%/*}/../tap.sh"
dmesg -n 3

# one_bad DISK WORDS: sample 33 cannot be read, all others can
one_bad() {
	local backend
	for backend in uring threads; do
		export STELE_BACKEND=$backend
		run stele cat "$1" s33
		is "1 " "$status $out" "$2, $backend: cat of the sample fails"
		ok "$2, $backend: cat says it was the device" \
			grep -q "'s33'.*rror" <<<"$err" || diag "$err"
		ok "$2, $backend: its neighbours" cmp <(stele cat "$1" s32 s34) \
			<(cat "$shared/src/s32" "$shared/src/s34")
		run stele extract "$1" "$tmp/copy"
		ok "$2, $backend: extract fails" test "$status" -gt 0
		rm -f "$tmp/copy/s33"
		is "Only in $shared/src: s33" "$(diff -r "$shared/src" "$tmp/copy")" \
			"$2, $backend: extract writes all others" || diag "$err"
		rm -rf "$tmp/copy"
		run stele verify "$1"
		is 3 "$status" "$2, $backend: verify finds it" || diag "$out" "$err"
		is "1 1" "$(grep -c '^damaged' <<<"$out") $(grep -c \
			"^damaged record 's33'" <<<"$out")" \
			"$2, $backend: and names it alone" || diag "$out" "$err"
	done
	unset STELE_BACKEND
	diag "$out"
}

one_bad /dev/vm/broken "NVMe"

for at in /sys/bus/pseudo/drivers/scsi_debug/adapter0/host*/target*/*/block/*; do
	disk=/dev/${at##*/}
done
must stele build -q "$shared/src" "$disk@v1"
at=$(grep -obaF "$(begin 33)" "$disk" | head -n 1)
echo $((${at%%:*} / 512 + 9)) >/sys/module/scsi_debug/parameters/medium_error_start
echo 1 >/sys/module/scsi_debug/parameters/medium_error_count
echo 2 >/sys/bus/pseudo/drivers/scsi_debug/opts
one_bad "$disk" "SCSI"

# ---- pulled ------------------------------------------------------------------

mkdir "$tmp/many"
for ((i = 0; i < 120; i++)); do
	head -c 1000000 /dev/urandom >"$tmp/many/$i"
done
must stele build -q "$tmp/many" /dev/vm/pulled@v1
must stele map /dev/vm/pulled@v1 pulled >/dev/null
controller=$(readlink -f /dev/vm/pulled)
controller=$(readlink -f "/sys/block/${controller#/dev/}/device/device")

# Readers of both kinds, again and again, until they see it.
reader() { # BACKEND
	local begin=$SECONDS
	while STELE_BACKEND=$1 stele verify -q pulled >"$tmp/$1.out" 2>"$tmp/$1.err"; do
		[ $((SECONDS - begin)) -lt 60 ] || return 99
	done
}
pids=()
for backend in uring threads; do
	(
		reader $backend
		echo $? >"$tmp/$backend.status"
	) &
	pids+=($!)
done
sleep 2
echo 1 >"$controller/remove"
for ((i = 0; i < 300; i++)); do
	[ -s "$tmp/uring.status" ] && [ -s "$tmp/threads.status" ] && break
	sleep 0.1
done
for backend in uring threads; do
	ok "pulled, $backend: the reader ended" test -s "$tmp/$backend.status"
	is 0 "$(grep -c '^99' "$tmp/$backend.status")" \
		"pulled, $backend: with a failure"
	diag "$(head -n 3 "$tmp/$backend.err" "$tmp/$backend.out")"
done
kill -9 "${pids[@]}" 2>/dev/null
run stele cat pulled 7
is "1 " "$status $out" "pulled: nothing is read any more"
ok "pulled: it is gone, by name" grep -q "pulled.*gone" <<<"$err" || diag "$err"
run stele maps
ok "pulled: maps says so" grep -q "stale" <<<"$out"
ok "pulled: unmap" stele unmap pulled
done_testing
