#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# held.t - an image whose bytes somebody else has is changed by no command; views are let be
. "${0%/*}/../tap.sh"

requires_root
requires losetup -f
requires unshare -m true

mkdir "$tmp/src" "$tmp/more" "$tmp/mnt" "$tmp/b"
head -c 20K /dev/urandom >"$tmp/src/1"
head -c 600K /dev/urandom >"$tmp/src/2"
head -c 50K /dev/urandom >"$tmp/more/3"
head -c 60K /dev/urandom >"$tmp/b/b"
over() { # FILE [OPTION...]: a loop device over it
	losetup -f --show "${@:2}" "$1" || bail "no loop device"
}
# image TARGET: with something to do for each command
image() {
	must stele build -q -f --posix "$tmp/src" "$1@v1"
	must stele append -q "$tmp/more" "$1@v2"
	must stele snapshot delete -f "$1@v2"
	must stele append -q "$tmp/b" "$1@v3"
	must stele snapshot create "$1@v4" >&2
}
must stele build -q "$tmp/b" "$tmp/other@o"

# each FUNCTION TARGET: calls FUNCTION COMMAND... for all that write
each() {
	local function=$1 a=$2
	"$function" append -q "$tmp/src" "$a@n"
	"$function" copy -q "$tmp/other@o" "$a"
	"$function" copy -q -f "$tmp/other@o" "$a"
	"$function" build -q -f "$tmp/src" "$a"
	"$function" compact -q "$a@v3" n
	"$function" gc --apply -f "$a"
	"$function" snapshot create "$a@n"
	"$function" snapshot rename "$a@v3" n
	"$function" snapshot delete -f "$a@v3"
	"$function" snapshot undelete "$a@v2"
	"$function" posix off "$a"
	"$function" resize --size=19M "$a"
	printf X | dd of="$a" bs=1 seek=5000 conv=notrunc status=none
	"$function" repair "$a"
}
# refused COMMAND...: with -n and without; the bytes of $file stay, words are said
refused() {
	local before dry name
	before=$(sum <"$file")
	for dry in -n ""; do
		# shellcheck disable=SC2086 # an option or none
		if [ "$1" = snapshot ]; then
			run stele "$1" "$2" $dry "${@:3}"
		else
			run stele "$1" $dry "${@:2}"
		fi
		name="$what: $1 ${2##/*}"
		ok "$name $dry: refused" test "$status" = 1 || diag "$status $err"
		ok "$name $dry: says '$words'" grep -qE "$words" <<<"$err" || diag "$err"
	done
	is "$before" "$(sum <"$file")" "$name: nothing changed"
}
goes() {
	run stele "$@"
	is 0 "$status" "$what: $1 $2 goes" || diag "$err"
}
# hold OPEN: runs, with FD 3 to stop it, a process that does that first
hold() {
	coproc holder { "$@" 2>&1; }
	# shellcheck disable=SC2154 # bash sets it
	holder_pid=$holder_PID
	read -r ready <&"${holder[0]}" || ready=
	[ "$ready" = ready ]
}
let_go() {
	local pid=$holder_pid
	echo >&"${holder[1]}"
	wait "$pid"
}
# shellcheck disable=SC2016 # of Python's and the shell's own
alone='import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_EXCL)
print("ready", flush=True); sys.stdin.readline()'
elsewhere='mount -t "$1" -o "$2" "$3" "$4" && echo ready && read -r _'

# ---- another's bytes, at the end of the device ----

file=$tmp/disk
truncate -s 40M "$file"
a=$(over "$file") && cleanup loop_drop "$a"
image "$a"
b=$(over "$file" -o 20M) && cleanup loop_drop "$b"

what="held exclusively" words="shares bytes with '${b#/dev/}', which somebody has open exclusively"
hold python3 -c "$alone" "$b" || bail "not held"
each refused "$a"
let_go

if must mkfs.ext4 -q "$b" && mount -o ro "$b" "$tmp/mnt"; then
	umount "$tmp/mnt"
	what="ext4 in another namespace"
	hold apart bash -c "$elsewhere" - ext4 ro "$b" "$tmp/mnt" || bail "not mounted: $ready"
	refused append -q "$tmp/src" "$a@n"
	refused gc --apply -f "$a"
	let_go
else
	skip_block 1 "needs ext4"
fi

grep -qw erofs /proc/filesystems || modprobe erofs 2>/dev/null
if ! grep -qw erofs /proc/filesystems; then
	skip_block 1 "needs a kernel with EROFS"
	done_testing
	exit
fi

# ---- what is over other bytes of the disk ----

truncate -s 40M "$tmp/parted"
disk=$(over "$tmp/parted") && cleanup loop_drop "$disk"
if addpart "$disk" 1 2048 16384; then
	cleanup delpart "$disk" 1
	part=${disk}p1
	if [ ! -b "$part" ]; then
		number=$(cat "/sys/class/block/${part##*/}/dev")
		part=$tmp/part
		must mknod -m 600 "$part" b "${number%:*}" "${number#*:}"
	fi
	beyond=$(over "$disk" -o 20M) && cleanup loop_drop "$beyond"
	what="a loop device over the disk, behind it" file=$tmp/parted
	goes build -q "$tmp/src" "$part"
	must mkfs.ext4 -q "$beyond"
	if mount -o ro "$beyond" "$tmp/mnt"; then
		goes append -q "$tmp/more" "$part@v2"
		goes build -q -f "$tmp/src" "$part"
		umount "$tmp/mnt"
	fi
	# Who has a part of the disk does not have the disk.
	behind=$(over "$tmp/parted" -o 20M) && cleanup loop_drop "$behind"
	twice=$(over "$tmp/parted") && cleanup loop_drop "$twice"
	if addpart "$twice" 1 2048 16384; then
		cleanup delpart "$twice" 1
		must mkfs.ext4 -q -F "$part"
		if mount -o ro "$part" "$tmp/mnt"; then
			what="beside a partition that is mounted"
			goes build -q -f "$tmp/src" "$behind"
			goes append -q "$tmp/more" "$behind@v2"
			umount "$tmp/mnt"
		fi
	fi
	across=$(over "$disk" -o 8M) && cleanup loop_drop "$across"
	what="one that begins within it" words="under loop device ${across#/dev/}"
	refused build -q -f "$tmp/src" "$part"
else
	skip_block 1 "needs partitions on loop devices"
fi

# ---- an EROFS that is another's, and the image's own ----

file=$tmp/disk
image "$b" # on these bytes, a view of which is none of $a
image "$a"
what="another's EROFS" words="shares bytes with '${b#/dev/}', which is mounted on $tmp/mnt"
must mount -t erofs -o ro "$b" "$tmp/mnt"
each refused "$a"
umount "$tmp/mnt"
what="another's EROFS in another namespace"
words="shares bytes with '${b#/dev/}', which is mounted on $tmp/mnt, as process [0-9]+ sees it"
hold apart bash -c "$elsewhere" - erofs ro "$b" "$tmp/mnt" || bail "not mounted: $ready"
refused append -q "$tmp/src" "$a@n"
refused snapshot create "$a@n"
let_go

twin=$(over "$file") && cleanup loop_drop "$twin"
first=$(over "$file" --sizelimit 20M -r) && cleanup loop_drop "$first"
for device in "$a" "$twin" "$first"; do
	image "$a"
	sync
	blockdev --flushbufs "$device"
	for how in here there; do
		what="view of ${device#/dev/} $how"
		if [ $how = here ]; then
			must mount -t erofs -o ro "$device" "$tmp/mnt"
		else
			hold apart bash -c "$elsewhere" - erofs ro "$device" "$tmp/mnt" ||
				bail "not mounted: $ready"
		fi
		goes append -q "$tmp/more" "$a@$how"
		goes snapshot create "$a@s$how"
		goes snapshot delete -f "$a@$how" "$a@s$how"
		goes posix on "$a"
		words="mounted on $tmp/mnt"
		refused gc --apply -f "$a"
		refused build -q -f "$tmp/src" "$a"
		run stele gc "$a"
		is 0 "$status" "$what: gc lists" || diag "$err"
		before=$(sum <"$file")
		run "$BUILD/tests/cmd/txn-free" "$a"
		is "-16 -16" "$out" "$what: nor does a transaction free" || diag "$err"
		is "$before" "$(sum <"$file")" "$what: which changes nothing"
		if [ $how = here ]; then umount "$tmp/mnt"; else let_go; fi
	done
	run "$BUILD/tests/cmd/txn-free" "$a"
	is "0 0" "$out" "${device#/dev/} mounted no more: a transaction frees" || diag "$err"
done

# Where an EROFS begins may be said by its mount.
if hold apart bash -c "$elsewhere" - erofs ro,fsoffset=20971520 "$twin" "$tmp/mnt"; then
	what="another's EROFS by its offset" words="'${twin#/dev/}', which is mounted on"
	refused append -q "$tmp/src" "$a@n"
	let_go
else
	skip_block 1 "needs a kernel whose EROFS has offsets"
fi

# ---- an EROFS from a file ----

file=$tmp/image
image "$file"
must cp "$file" "$tmp/pristine"
mounts='import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(sys.argv[1].encode(), sys.argv[2].encode(), b"erofs", 1, b""):
	print(os.strerror(ctypes.get_errno())); sys.exit(1)
print("ready", flush=True); sys.stdin.readline()'
for space in "" apart; do
	for how in same moved linked replaced; do
		rm -f "$tmp/moved" "$file"
		must cp "$tmp/pristine" "$file"
		# shellcheck disable=SC2086 # words
		if ! hold $space python3 -c "$mounts" "$file" "$tmp/mnt"; then
			skip_block 1 "needs a kernel that mounts EROFS from files"
			break 2
		fi
		what="a file's view, ${space:-here}, $how" words="mounted on $tmp/mnt"
		old=$file
		case $how in
		moved) mv "$file" "$tmp/moved" ;;
		linked) ln "$file" "$tmp/moved" && rm "$file" ;;
		replaced) mv "$file" "$tmp/moved" && cp "$tmp/other" "$file" ;;
		esac
		[ $how = same ] || file=$tmp/moved
		refused gc --apply -f "$file"
		refused build -q -f "$tmp/src" "$file"
		goes append -q "$tmp/more" "$file@n"
		file=$old
		let_go
		umount -q "$tmp/mnt"
	done
done

# A copy has the same UUID, and what is mounted stays.
rm -f "$tmp/moved"
must cp "$tmp/pristine" "$file"
must cp "$tmp/pristine" "$tmp/moved"
what="a view of a copy"
if hold python3 -c "$mounts" "$tmp/moved" "$tmp/mnt"; then
	goes gc --apply -f "$file"
	let_go
	umount -q "$tmp/mnt"
fi
done_testing
