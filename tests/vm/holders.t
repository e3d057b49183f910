#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# holders.t - a device that lies under device-mapper is refused, by the holder's name
[ -n "${GUEST-}" ] || exec "${0%/*}/guest.sh" -d a:size=64M -d b:size=64M \
	-d parts:size=96M -m dm-mod -m dm-crypt -m loop -m ext4 \
	-m xts -m aesni_intel -t 400 -- "$0"
export TMPDIR=/dev/shm
. "${0%/*}/../tap.sh"

mkdir "$tmp/src"
for ((i = 1; i < 20; i++)); do
	head -c $((i * 1000)) /dev/urandom >"$tmp/src/$i"
done

# refused DISK HOLDER WORDS: and not a byte of it is written
refused() {
	local before
	before=$(sha256sum <"$1")
	run stele build -q --force "$tmp/src" "$1@v1"
	is 1 "$status" "$3: build is refused, --force or not"
	ok "$3: by the holder's name" grep -q "held by $2" <<<"$err" || diag "$err"
	is "$before" "$(sha256sum <"$1")" "$3: no byte is changed"
}

# holder NAME TABLE DISK: sets dm, the kernel's name of it
holder() {
	must dmsetup create "$1" --table "0 65536 $2 $3 0"
	dm=$(basename "$(readlink -f "/dev/mapper/$1")")
	[ -b "/dev/$dm" ] || dm=dm-$(dmsetup info -c --noheadings -o minor "$1")
	cleanup dmsetup remove "$1"
}

holder flat linear /dev/vm/a
refused /dev/vm/a "$dm" "under dm-linear"
run stele build -q "$tmp/src" "/dev/$dm@v1"
is 0 "$status" "the linear device itself takes a build" || diag "$err"
ok "and verifies" stele verify -q "/dev/$dm"
ok "cat" cmp <(stele cat "/dev/$dm" 7) "$tmp/src/7"
run stele build -q --force "$tmp/src" "/dev/vm/a@v1"
is 1 "$status" "what was built there does not make the disk below free"
must dmsetup remove flat
tap_cleanups=("${tap_cleanups[0]}")
ok "the same image is read from the disk below" stele verify -q /dev/vm/a

key=000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
key=$key$(rev <<<"$key")
must dmsetup create secret --table "0 65536 crypt aes-xts-plain64 $key 0 /dev/vm/b 0"
cleanup dmsetup remove secret
dm=dm-$(dmsetup info -c --noheadings -o minor secret)
refused /dev/vm/b "$dm" "under dm-crypt"
run stele build -q "$tmp/src" "/dev/$dm@v1"
is 0 "$status" "the encrypted device takes a build" || diag "$err"
ok "and verifies, through io_uring" stele verify -q "/dev/$dm"
run stele info /dev/vm/b
is 1 "$status" "below is nothing to be seen of it"

must sfdisk -q /dev/vm/parts <<'END'
label: gpt
size=40M
size=40M
END
disk=$(readlink -f /dev/vm/parts)
holder part linear "${disk}p2"
refused /dev/vm/parts "$dm" "a partition under dm-linear"
refused "${disk}p2" "$dm" "that partition"
run stele build -q "$tmp/src" "${disk}p1@v1"
is 0 "$status" "the other partition is free" || diag "$err"

# The checks that machines without device-mapper skip.
run "$BUILD/tests/lib/guard-in-use"
is 0 "$status" "guard-in-use" || diag "$out" "$err"
ok "guard-in-use: did not skip device-mapper" \
	grep -q "^ok.*a device under device-mapper" <<<"$out"
done_testing
