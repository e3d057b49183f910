#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# refuse.t - what stele build will not overwrite, and what it says of it
#
# Each refusal leaves the target as it was, byte for byte. What is in use is
# refused with --force, too; the rest is overwritten then.
. "${0%/*}/../tap.sh"
# shellcheck source=tests/cmd/targets.sh
. tests/cmd/targets.sh

requires jq --version

tree_photos "$tmp/src"

# refused WHAT WORDS TARGET [OPTION...]: fails, says WORDS, changes nothing
refused() {
	local what=$1 words=$2 target=$3 before
	shift 3
	before=$(sum "$target")
	run stele build "$@" "$tmp/src" "$target"
	is 1 "$status" "$what: refused"
	ok "$what: says '$words'" grep -qF -- "$words" <<<"$err"
	is "$before" "$(sum "$target")" "$what: unchanged"
}

# in_use WHAT WORDS TARGET: not even with --force
in_use() {
	refused "$@"
	refused "$1, by force" "$2" "$3" --force
}

# builds WHAT TARGET [OPTION...]
builds() {
	local what=$1 target=$2
	shift 2
	run stele build "$@" "$tmp/src" "$target"
	is 0 "$status" "$what: builds" || diag "$err"
	run stele verify "$target"
	is 0 "$status" "$what: is sound" || diag "$out" "$err"
}

# ---- files ----

file=$tmp/file
builds "no file" "$file"
refused "an image" "holds a Stele image" "$file" --label cats
refused "an image" "'v1'" "$file"
builds "an image, by force" "$file" --force --label "the cats"
refused "an image with a label" "'the cats'" "$file"

cp "$file" "$tmp/short"
truncate -s -4096 "$tmp/short"
before=$(sum "$tmp/short")
for try in "build $tmp/src" "copy $file@v1"; do
	# shellcheck disable=SC2086 # words
	run stele $try "$tmp/short"
	is "1 $before" "$status $(sum "$tmp/short")" "an image cut short: ${try%% *}: refused"
	ok "an image cut short: ${try%% *}: says so" \
		grep -q "larger than it: at its full size it may be sound" <<<"$err" || diag "$err"
	ok "an image cut short: ${try%% *}: nobody says that nothing is lost" \
		not grep -qE "unfinished|nothing" <<<"$err"
	# shellcheck disable=SC2086 # words
	run stele $try "$tmp/short" --dry-run --force
	is "0 $before" "$status $(sum "$tmp/short")" "an image cut short: ${try%% *}: a dry run"
	ok "an image cut short: ${try%% *}: warns" \
		grep -q "larger than it, and would be overwritten" <<<"$err" || diag "$err"
done
truncate -s +4096 "$tmp/short"
ok "an image cut short: is sound at its full size" stele verify "$tmp/short"

# ---- files that hold what is left of an image ----

# remains WHAT WORDS HINT: $tmp/short
remains() {
	refused "$1" "$2" "$tmp/short"
	ok "$1: the next step" grep -q "^hint: $3" <<<"$err" || diag "$err"
	run stele build -f -n "$tmp/src" "$tmp/short"
	is 0 "$status" "$1: a dry run"
	ok "$1: a dry run warns" grep -qF -- "$2" <<<"$err" || diag "$err"
}
head -c 1500000 "$file" >"$tmp/short"
remains "an image of 1.5 MB" "larger than it" "give the target its full size"
cp "$file" "$tmp/short"
dd if=/dev/zero of="$tmp/short" bs=4096 count=512 conv=notrunc status=none
remains "an image without superblocks" "has lost its superblocks" \
	"'stele repair' mends it, or says why"
cp "$file" "$tmp/short"
for at in 4100 8200 1048580 1052680; do
	printf XX | dd of="$tmp/short" bs=1 seek=$at conv=notrunc status=none
done
remains "superblocks that a witness stands in for" "label 'the cats', snapshots 'v1'" \
	"use 'stele append'"
for at in 1572868 2093060; do
	printf XX | dd of="$tmp/short" bs=1 seek=$at conv=notrunc status=none
done
remains "damaged superblocks" "cannot be opened" "'stele verify' lists"
builds "by force" "$tmp/short" --force

# ---- a disk whose partition has the image ----

truncate -s 8M "$tmp/disk"
printf 'label: gpt\nstart=2048\n' | sfdisk -q "$tmp/disk" >/dev/null 2>&1 || bail "sfdisk"
run stele info "$tmp/disk"
is 1 "$status" "a partitioned disk is no image"
ok "a partitioned disk: which is said" \
	grep -q "no Stele image there, but a partition table (gpt)" <<<"$err" || diag "$err"
ok "a partitioned disk: without a hint to build over it" not grep -q "stele build" <<<"$err"
refused "a partitioned disk" "gpt (partition table)" "$tmp/disk"
ok "a partitioned disk: the next step" grep -q "^hint: name one of its partitions" <<<"$err"

# Where the superblocks of the partition's image are is where those of the disk's would be.
must stele build -q "$tmp/src" "$tmp/in-part"
for label in gpt dos; do
	for start in 2048 4096; do
		what="$label, an image in the partition at sector $start"
		rm -f "$tmp/disk"
		truncate -s 24M "$tmp/disk"
		printf 'label: %s\nstart=%s, size=16M\n' $label $start |
			sfdisk -q "$tmp/disk" >/dev/null 2>&1 || bail "sfdisk"
		must dd if="$tmp/in-part" of="$tmp/disk" bs=512 seek=$start conv=notrunc status=none
		for verb in info "repair -n" verify "append -n $tmp/src"; do
			# shellcheck disable=SC2086 # words
			run stele $verb "$tmp/disk"
			is 1 "$status" "$what: ${verb%% *} has none"
			ok "$what: ${verb%% *} says where it is" grep -q "but a partition table `
				`($label), and an image in the partition that begins at byte `
				`$((start * 512)): name that" <<<"$err" || diag "$err"
			ok "$what: ${verb%% *} does not call it the rest of another" \
				not grep -qE "elsewhere|--force" <<<"$err" || diag "$err"
		done
		refused "$what" "$label (partition table)" "$tmp/disk"
		run stele build -n -f "$tmp/src" "$tmp/disk"
		ok "$what: a dry run warns of the table" \
			grep -q "would be overwritten: the target carries $label" <<<"$err"
		ok "$what: and of the image" grep -q "a Stele image is in the partition `
			`that begins at byte $((start * 512))" <<<"$err" || diag "$err"
		run stele export -f "$tmp/in-part" "$tmp/disk"
		is 1 "$status" "$what: it is replaced by no export"
	done
done

# The reverse: a partition, at the usual place, of a disk that an image had as a whole.
must stele build -q "$tmp/src" "$tmp/was-whole"
tail -c +1048577 "$tmp/was-whole" >"$tmp/part"
refused "a partition of what was an image" "that begins elsewhere" "$tmp/part"
ok "a partition of what was an image: the next step" \
	grep -q "^hint: name the device that the image was built on" <<<"$err" || diag "$err"
run stele info "$tmp/part"
ok "a partition of what was an image: no call for the first 2 MiB" \
	not grep -q "restore" <<<"$err"

echo "dear diary" >"$tmp/diary"
refused "a file of somebody's" "not empty" "$tmp/diary"
builds "a file of somebody's, by force" "$tmp/diary" --force

: >"$tmp/empty"
builds "an empty file" "$tmp/empty"
truncate -s 8M "$tmp/hole"
builds "a file that is all hole" "$tmp/hole"

# A name in /dev that is not there is a typing error: it must not become a file.
none=/dev/stele-test-$$
for try in "build $tmp/src" "build --force $tmp/src" "copy $file"; do
	# shellcheck disable=SC2086 # words
	run stele $try "$none@v1"
	is "1 stele: cannot open '$none': no such device" "$status ${err%%$'\n'*}" \
		"${try%% /*}: no device"
	ok "${try%% /*}: and what lists them" grep -q "^hint: 'lsblk' lists" <<<"$err"
	ok "${try%% /*}: and no file" [ ! -e "$none" ] || rm -f "$none"
done
run stele ls "$none"
ok "ls: the same hint" grep -q "^hint: 'lsblk' lists" <<<"$err" || diag "$err"
if [ -w /dev/shm ]; then
	run stele ls /dev/shm/none
	ok "which is not where files are" not grep -q lsblk <<<"$err"
	builds "what is mounted below /dev is no directory of devices" "/dev/shm/stele-test-$$"
	rm -f "/dev/shm/stele-test-$$"
fi

exec 7<"$file"
in_use "a file that somebody reads" "is open in process" "$file"
exec 7<&-

must stele map "$file" reader
in_use "a file that is mapped" "'reader'" "$file"
in_use "another name of it" "'reader'" "$tmp/../${tmp##*/}/file"
must stele unmap reader
builds "a file that was mapped" "$file" --force

for kind in "$tmp/src" /dev/null; do
	run stele build --force "$tmp/src" "$kind"
	is 1 "$status" "${kind##*/}: neither file nor device"
done
run stele build "$tmp/src" "rbd:pool/image?conf=$tmp/none"
is 1 "$status" "rbd without a cluster: refused"
ok "rbd without a cluster: says why" grep -qE "'$tmp/none'|librbd" <<<"$err"

# ---- devices ----

if [ "$(id -u)" != 0 ]; then
	skip_block 1 "needs root"
	done_testing
fi

loop_new 16M
builds "a device" "$loop"
refused "a device with an image" "'v1'" "$loop"
builds "a device with an image, by force" "$loop" --force

must mkfs.ext4 -q -F -L photos "$loop"
refused "ext4" "ext4 (filesystem), label 'photos'" "$loop"

mkdir "$tmp/mnt"
if mount -o ro "$loop" "$tmp/mnt" 2>/dev/null; then
	cleanup umount -q "$tmp/mnt"
	in_use "mounted ext4" "mounted on $tmp/mnt" "$loop"
	in_use "a file under a loop device" "under loop device" "$loop_file"
	ok "says what can be named instead" grep -qx "hint: name '$loop' instead, or detach it `
		`with 'losetup -d $loop' first" <<<"$err" || diag "$err"
	umount "$tmp/mnt"
else
	skip_block 12 "needs ext4"
fi
builds "ext4, by force" "$loop" --force
ok "ext4, by force: blkid finds nothing" not blkid -p "$loop"
run stele snapshot create "$loop_file@another"
is "1 hint: name '$loop' instead, or detach it with 'losetup -d $loop' first" \
	"$status $(tail -n1 <<<"$err")" "a snapshot of a file under a loop device: the same hint"

must truncate -s 16M "$tmp/apart"
part=$(losetup -f --show -o 1M "$tmp/apart") && cleanup loop_drop "$part"
in_use "one that a loop device begins within" "under loop device ${part#/dev/}" "$tmp/apart"
ok "which is not what to name" grep -qx "hint: detach it with 'losetup -d $part' first" \
	<<<"$err" || diag "$err"

must mkswap -q "$loop"
refused "swap space over an image" "swap (other)" "$loop"
refused "swap space over an image" "'v1'" "$loop"
if swapon "$loop" 2>/dev/null; then
	cleanup sh -c "swapoff $loop 2>/dev/null"
	in_use "swap in use" "it is swap" "$loop"
	swapoff "$loop"
else
	skip_block 6 "needs swap"
fi

must sfdisk -q "$loop" <<<$'label: gpt\n,8M'
refused "GPT over an image" "gpt (partition table)" "$loop"
builds "GPT, by force" "$loop" --force
ok "GPT, by force: blkid finds nothing" not blkid -p "$loop"
must sfdisk -q --wipe never "$loop" <<<"label: dos"
refused "MBR over an image" "dos (partition table)" "$loop"
refused "MBR over an image" "'v1'" "$loop"

must wipefs -qa "$loop"
must dd if=/dev/zero of="$loop" bs=1M count=4 status=none
exec 7<"$loop"
in_use "a device that somebody reads" "is open in process" "$loop"
exec 7<&-
builds "once nobody does" "$loop"
again=$(losetup -f --show "$loop_file") && cleanup loop_drop "$again"
exec 7<"$again"
in_use "one that somebody reads as another device" \
	"it shares bytes with '${again#/dev/}', which is open in process" "$loop"
exec 7<"$loop_file"
in_use "one whose file somebody reads" "it is over a file that is open in process" "$loop"
exec 7<&-
loop_drop "$again"
beside=$(losetup -f --show --sizelimit 1M "$tmp/apart") && cleanup loop_drop "$beside"
exec 7<"$beside"
builds "one of whose file somebody reads another part" "$part"
exec 7<&-

# A device is refused as a file is, as long as anything says that there was an image.
for block in 1 2 256 257; do
	must dd if=/dev/zero of="$loop" bs=4096 seek=$block count=1 status=none
done
refused "a device whose superblocks are gone" "snapshots 'v1'" "$loop"
is v1 "$(stele snapshot list --json "$loop" 2>/dev/null | jq -r .name)" \
	"a device whose superblocks are gone: can be read"
cp "$loop" "$tmp/whole"
must dd if=/dev/zero of="$loop" bs=4096 count=258 status=none
for block in 384 511 512; do # witnesses; what is behind the front
	must dd if=/dev/zero of="$loop" bs=4096 seek=$block count=1 status=none
done
refused "a device with a catalog" "has lost its superblocks" "$loop"
must dd if="$tmp/whole" of="$loop" bs=1M count=4 status=none
must dd if=/dev/zero of="$loop" bs=1M count=2 status=none
refused "a device whose front is gone" "has lost its superblocks" "$loop"
run stele copy "$file" "$loop@v1"
is 1 "$status" "a device whose front is gone: to copy, too"
must dd if=/dev/zero of="$loop" bs=4096 seek=512 count=1 status=none
builds "a device that was wiped" "$loop"

# ---- what was written over an image since ----

# overlaid WHAT WORDS: nothing that changes an image goes on
overlaid() {
	local before try
	before=$(sum "$loop")
	for try in "copy $file@v1 $loop@x" "append $tmp/more $loop@x" "gc $loop" \
		"snapshot create $loop@x" "snapshot create -n $loop@x" "compact $loop x"; do
		# shellcheck disable=SC2086 # words
		run stele $try
		is "1 $before" "$status $(sum "$loop")" "$1: ${try%% /*}: refused, nothing changed"
		ok "$1: ${try%% /*}: says '$2'" grep -qF -- "$2" <<<"$err" || diag "$err"
	done
}

mkdir "$tmp/more"
echo more >"$tmp/more/1"
for words in "vfat" "gpt" "dos" "vfat --posix" "gpt --posix" "dos --posix" "sun --posix"; do
	kind=${words% *}
	# shellcheck disable=SC2086 # words
	builds "a device for $words" "$loop" --force ${words#"$kind"}
	case $kind in
	vfat) must mkfs.vfat -I "$loop" >/dev/null ;;
	*) must sfdisk -q --wipe never "$loop" <<<"label: $kind" ;;
	esac
	overlaid "$words" "$kind ("
	fails 1 "$kind (" stele repair "$loop"
	fails 1 "$kind (" stele repair -n "$loop"
	must wipefs -qa "$loop"
	must stele repair "$loop" >/dev/null
	must stele snapshot create "$loop@back" >/dev/null
	run stele verify "$loop"
	is 0 "$status" "$kind: erased, the image is sound" || diag "$out" "$err"
done
must mkfs.vfat -I "$loop" >/dev/null
run stele copy -q --force "$file@v1" "$loop"
is 0 "$status" "vfat: copy, by force" || diag "$err"
ok "vfat: copy, by force: blkid finds nothing" not blkid -p "$loop"

# What samples look like does not matter.
mkdir "$tmp/disks"
must mkfs.ext4 -q "$tmp/disks/1" 8M
must mkfs.vfat -C "$tmp/disks/2" 4096 >/dev/null
builds "filesystems as samples" "$tmp/nested"
must stele append -q --label-from=none "$tmp/disks" "$tmp/nested@v2"
must stele snapshot create "$tmp/nested@v3" >/dev/null

must blockdev --setro "$loop"
cleanup blockdev --setrw "$loop"
refused "a read-only device" "$loop" "$loop" --force
must blockdev --setrw "$loop"
reader=$(losetup -r -f --show "$file") || bail "losetup"
run stele build --force "$tmp/src" "$reader"
losetup -d "$reader"
is 1 "$status" "a loop device of 'losetup -r': refused"
ok "a loop device of 'losetup -r': what helps" \
	grep -q "^hint: .*attach it again without -r" <<<"$err" || diag "$err"

# ---- a device that cannot be read to its end ----

for held in image nothing; do
	loop_new 60M
	if [ $held = image ]; then
		builds "a device to be cut" "$loop"
	fi
	truncate -s 30M "$loop_file"
	echo 3 >/proc/sys/vm/drop_caches
	before=$(sum "$loop_file")
	for try in "build $tmp/src" "copy $file@v1"; do
		# Onto an image, copy without force adds a snapshot, or finds it there.
		for dry in "--force -n" "--force" ""; do
			[ "$held ${try%% *} $dry" != "image copy " ] || continue
			# shellcheck disable=SC2086 # words
			run stele ${try%% *} -q $dry ${try#* } "$loop"
			is "1 $before" "$status $(sum "$loop_file")" \
				"$held, cut: ${try%% *} $dry: refused, nothing changed"
			ok "$held, cut: ${try%% *} $dry: says why" \
				grep -q "what .* carries: Input/output error" <<<"$err" ||
				diag "$err"
			ok "$held, cut: ${try%% *} $dry: nothing is lost, or to be forced" \
				not grep -qE "lost|unfinished|existing|--force" <<<"$err" ||
				diag "$err"
		done
	done
done

loop_new 2M
refused "a device too small" "2097152" "$loop"

# As a source a device is what is on it.
run stele build "$loop" "$tmp/of-blank"
is 1 "$status" "a blank device is no source"
ok "nor called an image" grep -q "cannot tell the format of '$loop'" <<<"$err" || diag "$err"
loop_new 16M
builds "a source that is an image" "$loop"
run stele build "$loop" "$tmp/of-image"
is 1 "$status" "a device with an image is no source"
ok "but called one" grep -q "'$loop' holds an image" <<<"$err" || diag "$err"
ok "and nothing is made of either" test ! -e "$tmp/of-blank" -a ! -e "$tmp/of-image"

done_testing
