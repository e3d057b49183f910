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
loop=$(over "$image") && cleanup loop_drop "$loop"
again=$(over "$image") && cleanup loop_drop "$again"
above=$(over "$loop") && cleanup loop_drop "$above"
inside=$(over "$image" -o 1M) && cleanup loop_drop "$inside"
for target in "$loop" "$above" "$inside"; do
	refused "is the source itself" "$image" copy -f "$image" "$target"
done
refused "is the source itself" "$image" copy -f "$loop" "$again"
refused "is the source itself" "$image" copy -f "$loop" "$above"
run stele verify "$image"
is 0 "$status" "the image is sound"

# Two parts of one file are two devices.
truncate -s 48M "$tmp/disk"
one=$(over "$tmp/disk" --sizelimit 24M) && cleanup loop_drop "$one"
other=$(over "$tmp/disk" -o 24M) && cleanup loop_drop "$other"
must stele build -q "$tmp/src" "$one"
run stele copy -q "$one" "$other"
is "0 " "$status $err" "from one part of a disk to another"
is "" "$(stele diff "$one" "$other" 2>&1)" "they are the same"

# Parts that overlap: as they are, or by a disk and its partitions.
cut=$(over "$tmp/disk" -o 10M --sizelimit 24M) && cleanup loop_drop "$cut"
for force in "" -f; do
	refused "is the source itself, or overlaps it" "$tmp/disk" copy $force "$one" "$cut"
	refused "is the source itself, or overlaps it" "$tmp/disk" copy $force "$other" "$cut"
	refused "is the source itself, or overlaps it" "$tmp/disk" copy $force "$one" "$tmp/disk"
done
ok "what helps" grep -q "^hint: choose another target" <<<"$err" || diag "$err"
run stele verify "$one"
is 0 "$status" "the first part is sound"

# device_of NAME: its node, made where nobody does that
device_of() {
	local number
	number=$(cat "/sys/class/block/$1/dev" 2>/dev/null) || return 1
	if [ ! -b "/dev/$1" ]; then
		mknod -m 600 "$tmp/$1" b "${number%:*}" "${number#*:}" || return 1
		echo "$tmp/$1"
		return
	fi
	echo "/dev/$1"
}

truncate -s 60M "$tmp/parted"
whole=$(over "$tmp/parted") && cleanup loop_drop "$whole"
if addpart "$whole" 1 8192 40960 && addpart "$whole" 2 49152 40960; then
	cleanup delpart "$whole" 1
	cleanup delpart "$whole" 2
	first=$(device_of "${whole##*/}p1") || bail "no node of a partition"
	second=$(device_of "${whole##*/}p2") || bail "no node of a partition"
	range=$(over "$tmp/parted" -o 4M --sizelimit 20M) && cleanup loop_drop "$range"
	twin=$(over "$tmp/parted") && cleanup loop_drop "$twin"
	must stele build -q "$tmp/src" "$first"
	for target in "$whole" "$twin" "$range" "$tmp/parted"; do
		refused "is the source itself, or overlaps it" "$tmp/parted" \
			copy -f "$first" "$target"
	done
	for target in "$whole" "$twin" "$first" "$tmp/parted"; do
		refused "is the source itself, or overlaps it" "$tmp/parted" \
			copy -f "$range" "$target"
	done
	run stele copy -q "$first" "$second"
	is "0 " "$status $err" "from partition to partition"
	is "" "$(stele diff "$first" "$second" 2>&1)" "they are the same"
	run stele copy -q -f "$range" "$second"
	is "0 " "$status $err" "from a loop device over one to another"
	must stele build -q -f "$tmp/src" "$whole"
	for target in "$first" "$second" "$range"; do
		refused "is the source itself, or overlaps it" "$tmp/parted" \
			copy -f "$whole" "$target"
	done
	run stele verify "$whole"
	is 0 "$status" "the whole is sound"
	# An archive on one of them.
	must tar -C "$tmp/src" -cf "$first" train/cats/1.jpg train/dogs/1.jpg
	for target in "$first" "$whole" "$twin" "$range"; do
		refused "'$first' is of the source, and shares bytes with '$target'" "$tmp/parted" \
			build -f --from=tar "$first" "$target"
		ok "$target: what helps" grep -q "^hint: choose another target" <<<"$err"
	done
	refused "shares bytes with '$first'" "$tmp/parted" build -f --from=tar "$range" "$first"
	run stele append --from=tar "$range" "$first@v2"
	is "2 stele: '$range' is of the source, and shares bytes with '$first@v2', which would "`
		`"be written to" "$status ${err%%$'\n'*}" "nor is it appended to" || diag "$err"
	run stele build -q -f --from=tar "$first" "$second"
	is 0 "$status" "built from one on the other" || diag "$err"
else
	skip_block 1 "needs partitions on loop devices"
fi

# An archive, and a directory that has it.
mkdir "$tmp/dir"
echo other >"$tmp/dir/other"
tar -C "$tmp/src" -cf "$tmp/dir/x.tar" .
truncate -s 24M "$tmp/dir/x.tar"
tar=$(over "$tmp/dir/x.tar") && cleanup loop_drop "$tar"
for force in "" -f; do
	refused "shares bytes with '$tar'" "$tmp/dir/x.tar" build $force "$tmp/dir/x.tar" "$tar"
	refused "shares bytes with a file of the source" "$tmp/dir/x.tar" \
		build $force "$tmp/dir" "$tar"
	ok "$force: what helps" grep -q "^hint: choose another target" <<<"$err" || diag "$err"
done

# A partition of a loop device over it, as well.
if addpart "$tar" 1 8 32768; then
	cleanup delpart "$tar" 1
	part=$(device_of "${tar##*/}p1") || bail "no node of a partition"
	refused "shares bytes with '$part'" "$tmp/dir/x.tar" build -f "$tmp/dir/x.tar" "$part"
	refused "shares bytes with a file of the source" "$tmp/dir/x.tar" \
		build -f "$tmp/dir" "$part"
else
	skip_block 1 "needs partitions on loop devices"
fi

# What is mounted, or held, by another device over the same bytes is in use.
must mkfs.ext4 -q "$tmp/fs" 64M
mounted=$(over "$tmp/fs") && cleanup loop_drop "$mounted"
beside=$(over "$tmp/fs") && cleanup loop_drop "$beside"
mkdir "$tmp/mnt"
if mount "$mounted" "$tmp/mnt" 2>/dev/null; then
	cleanup umount -q "$tmp/mnt"
	must cp -r "$tmp/src/train/cats" "$tmp/mnt/s"
	must mount -o remount,ro "$tmp/mnt" # or the kernel writes when it likes
	refused "'${mounted##*/}', which is mounted on $tmp/mnt" "$tmp/fs" \
		build -f "$tmp/mnt/s" "$beside"
	refused "'${mounted##*/}', which is mounted on $tmp/mnt" "$tmp/fs" \
		copy -f "$image" "$beside"
	umount "$tmp/mnt"
	run stele build -q -f "$tmp/src" "$beside"
	is 0 "$status" "mounted no more: builds" || diag "$err"
else
	skip_block 1 "needs ext4"
fi
must stele build -q -f "$tmp/src" "$beside"
for target in "$mounted@v2" "$beside@v3"; do
	head -c 5000 /dev/urandom >"$tmp/src/train/cats/${target#*@}.jpg"
	must stele append -q --update "$tmp/src" "$target"
done
run stele verify "$beside"
is 0 "$status" "appended to through both: it is sound"

# What an export or extraction replaces may be the file that it is read from, or that is mounted.
mkdir "$tmp/here" "$tmp/disks"
truncate -s 12M "$tmp/here/disk.img"
head -c 3M /dev/urandom >"$tmp/disks/disk.img"
echo other >"$tmp/disks/other"
under=$(over "$tmp/here/disk.img" -o 2M) && cleanup loop_drop "$under"
must stele build -q "$tmp/disks" "$under"
before=$(sum "$tmp/here/disk.img")
run stele export -f "$under" "$tmp/here/disk.img"
is "1 stele: cannot replace '$tmp/here/disk.img': it is under loop device '${under##*/}'" \
	"$status $(sed -n 1p <<<"$err")" "export -f: what it reads from stays"
run stele export -f --to=tfrecord "$image" "$tmp/here/disk.img"
is 1 "$status" "whatever it reads, and writes"
run stele extract -f "$under" "$tmp/here"
is 1 "$status" "extract -f: likewise"
ok "and says why" grep -q "'disk.img': it is under loop device '${under##*/}' (detach that" \
	<<<"$err" || diag "$err"
is other "$(cat "$tmp/here/other")" "the others are written"
is "$before" "$(sum "$tmp/here/disk.img")" "the file is as it was"
must mv "$tmp/here/disk.img" "$tmp/here/moved.img"
run stele export -q -f "$image" "$tmp/here/disk.img"
is 0 "$status" "another file may have its former name" || diag "$err"
run stele export -f "$under" "$tmp/here/moved.img"
is "1 stele: cannot replace '$tmp/here/moved.img': it is under loop device '${under##*/}'" \
	"$status $(sed -n 1p <<<"$err")" "renamed since, it stays"
ok "and what helps" grep -q "^hint: .*'losetup -d'" <<<"$err" || diag "$err"
is "$before" "$(sum "$tmp/here/moved.img")" "as it was"
must losetup -d "$under"
run stele export -q -f "$image" "$tmp/here/moved.img"
is 0 "$status" "detached, the file is replaced" || diag "$err"

# From a file a filesystem may be mounted as it is.
mounts='import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
os.chdir(sys.argv[3])
if libc.mount(sys.argv[1].encode(), sys.argv[2].encode(), b"erofs", 1, b""):
	print(os.strerror(ctypes.get_errno())); sys.exit(1)
print("ready", os.getpid(), flush=True); sys.stdin.readline()'
must stele build -q -f "$tmp/disks" "$tmp/disks.stele"
mkdir "$tmp/s p" "$tmp/small"
echo small >"$tmp/small/file"
cleanup umount -q "$tmp/mnt"

# hold SOURCE COMMAND...: mounted as SOURCE by a process in "s p". False: not on this machine
hold() {
	local source=$1
	shift
	coproc holder { "$@" python3 -c "$mounts" "$source" "$tmp/mnt" "$tmp/s p" 2>&1; }
	# shellcheck disable=SC2154 # bash sets it
	pid=$holder_PID
	read -r ready sees <&"${holder[0]}" || ready=
	[ "$ready" = ready ]
}

# stays FILE WHY WORDS: neither an export nor an extraction replaces it, but other files
stays() {
	local before
	before=$(stat -c %i "$1")
	run stele export -f "$image" "$1"
	is "1 stele: cannot replace '$1': $2" "$status $(sed -n 1p <<<"$err")" \
		"export -f: what is mounted stays, $3"
	ok "and what helps, $3" grep -q "^hint: .*unmount it" <<<"$err" || diag "$err"
	rm -f "${1%/*}/other"
	run stele extract -f "$tmp/disks.stele" "${1%/*}"
	is 1 "$status" "extract -f: likewise, $3"
	ok "and says why, $3" grep -qF "'${1##*/}': $2 (unmount it first)" <<<"$err" ||
		diag "$err"
	is "other $before" "$(cat "${1%/*}/other") $(stat -c %i "$1")" "the others are written, $3"
}

file="$tmp/s p/disk.img"
for how in "by its path" "by a link" "by a relative path" "and renamed since" \
	"elsewhere" "elsewhere, by a relative path"; do
	rm -rf "$tmp/s p"/*
	mkfs.erofs "$file" "$tmp/small" >&2 || skip_block 1 "needs mkfs.erofs"
	ln -sf "$file" "$tmp/here/link.img"
	source=$file space=''
	case $how in
	*link) source=$tmp/here/link.img ;;
	*relative*) source=disk.img ;;
	*renamed*) source="$tmp/s p/before.img" && must mv "$file" "$source" ;;
	esac
	[[ $how != elsewhere* ]] || space=apart
	# shellcheck disable=SC2086 # words
	if ! hold "$source" $space; then
		skip_block 1 "needs a kernel that mounts EROFS from files"
		break
	fi
	seen="'$tmp/mnt'${space:+, as process $sees sees it}"
	case $how in
	*relative* | *renamed*) seen="it has the UUID of the EROFS that is mounted on $seen" ;;
	*) seen="it is mounted on $seen" ;;
	esac
	if [[ $how = *renamed* ]]; then
		must mv "$source" "$file"
		must mkfs.erofs "$source" "$tmp/src/train" >&2
	fi
	stays "$file" "$seen" "$how"
	if [[ $how = *renamed* ]]; then
		run stele export -q -f "$image" "$source"
		is 0 "$status" "what has its former name is replaced" || diag "$err"
	fi
	echo >&"${holder[1]}"
	wait "$pid"
	umount -q "$tmp/mnt"
	ok "unmounted, it is replaced, $how" soon stele export -q -f "$image" "$file"
done
done_testing
