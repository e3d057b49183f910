#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# fullfs.t - files on filesystems that tell late, or otherwise, that they are full
#
# Where no blocks can be reserved, where overwriting takes some, and where inodes are gone:
# none of that is a target that is too small, nor helped by gc or another size.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires mkfs.ext2 -V
requires_root

mkdir "$tmp/src" "$tmp/big" "$tmp/mnt"
head -c 1M /dev/urandom >"$tmp/src/a"
head -c 3M /dev/urandom >"$tmp/big/b"
must stele build -q "$tmp/big" "$tmp/other@o"
image=$tmp/mnt/image
free='free space there, or choose another place'
some='free some space there first: whatever changes an image writes a little, deleting, too'
remove='remove files there, or choose another place'

# An image with something to collect, two snapshots, and space for more where it has a size.
make() {
	must stele build -q --granule=512 "$tmp/src" "$image@v1"
	echo "$1" >"$tmp/src/n"
	must stele append -q "$tmp/src" "$image@v2"
	head -c 100K /dev/urandom >"$tmp/src/m"
	must stele append -q "$tmp/src" "$image@v3"
	run stele snapshot delete --force "$image@v3"
	rm "$tmp/src/m" "$tmp/src/n"
}

fill() {
	local size
	for size in 1M 4K 1K 1K; do
		dd if=/dev/zero of="$tmp/mnt/rest$RANDOM" bs=$size status=none 2>"$tmp/null"
		sync -f "$tmp/mnt"
	done
}

# says REASON HINT VERB ARG...
says() {
	local reason=$1 hint=$2
	shift 2
	run stele "$@"
	is 1 "$status" "$fs: $1 fails" || diag "$out" "$err"
	ok "$fs: $1: $reason" grep -q "its filesystem $reason" <<<"$err" || diag "$err"
	is "hint: $hint" "$(grep ^hint: <<<"$err")" "$fs: $1: what helps"
	ok "$fs: $1: nothing is too small" not grep -q 'too small\|No space' <<<"$err" ||
		diag "$err"
}

# Its files, new or in the place of others.
all_new() { # REASON HINT
	says "$1" "$2" build "$tmp/src" "$tmp/mnt/new"
	says "$1" "$2" build --force "$tmp/big" "$image"
	says "$1" "$2" copy "$tmp/other" "$tmp/mnt/new"
	says "$1" "$2" copy --force "$tmp/other" "$image"
	ok "$fs: nothing new is left" test ! -e "$tmp/mnt/new"
	is 0 "$(stele verify -q "$image" >&2; echo $?)" "$fs: the image is sound"
}

cleanup umount -q "$tmp/mnt"
fs=ext2
loop_new 20M
must mkfs.ext2 -q "$loop"
must mount "$loop" "$tmp/mnt"
make $fs
fill
all_new "is full" "$free"
says "is full" "$free" append "$tmp/big" "$image@v4"
must umount "$tmp/mnt"

# Some of what counts as free it keeps for itself, from root, too.
fs=ext4
must mkfs.ext4 -q -F "$loop"
must mount "$loop" "$tmp/mnt"
make $fs
fill
for dry in --dry-run ""; do
	says "is full" "$free" build $dry "$tmp/src" "$tmp/mnt/new"
	says "is full" "$free" append $dry "$tmp/big" "$image@v4"
	says "is full" "$free" resize $dry --size=8M "$image"
done
must umount "$tmp/mnt"

fs=inodes
must mount -t tmpfs -o size=40m,nr_inodes=3 none "$tmp/mnt"
make $fs
: >"$tmp/mnt/last"
all_new "has no inodes left" "$remove"
for verb in "build $tmp/src" "copy $tmp/other"; do
	# shellcheck disable=SC2086 # words
	says "has no inodes left" "$remove" $verb -n "$tmp/mnt/new"
done
TMPDIR=$tmp/mnt run stele build -n "$tmp/src" "$tmp/elsewhere"
is "0 " "$status $err" "$fs: a rehearsal needs none of TMPDIR"
rm "$tmp/mnt/last"
# Of samples that are kept there a real run makes a file: that is all.
tar -C "$tmp/src" -czf "$tmp/src.tar.gz" .
TMPDIR=$tmp/mnt run stele build -n "$tmp/src.tar.gz" "$tmp/elsewhere"
is "0 " "$status $err" "$fs: nor more than a real run"
: >"$tmp/mnt/last"
says "has no inodes left" "$remove" export "$tmp/other" "$tmp/mnt/new.tar"
says "has no inodes left" "$remove" export --to=tfrecord "$tmp/other" "$tmp/mnt/new"
says "has no inodes left" "$remove" export --to=lmdb "$tmp/other" "$tmp/mnt/new.lmdb"
says "has no inodes left" "${remove%place}DIR" extract "$tmp/other" "$tmp/mnt/new"
says "has no inodes left" "${remove%place}DIR" extract "$tmp/other" "$tmp/mnt"
run stele append -q "$tmp/big" "$image@v4"
is 0 "$status" "$fs: what needs none has room" || diag "$err"
must umount "$tmp/mnt"

# What LMDB calls an error of input or output, or nothing that has a way out.
fs="an export"
room='make room, or choose another place'
lmdb() { # WHERE
	run stele export --to=lmdb "$tmp/other" "$tmp/mnt/x.lmdb"
	is 1 "$status" "$fs to LMDB on $1"
	ok "$fs to LMDB on $1: why" grep -q "No space left on device" <<<"$err" || diag "$err"
	is "hint: $room" "$(grep ^hint: <<<"$err")" "$fs to LMDB on $1: what helps"
}
for left in 0 100000 1500000; do
	loop_new 20M
	must mkfs.ext4 -q -m 0 "$loop"
	must mount "$loop" "$tmp/mnt"
	head -c $((left + 1)) /dev/zero >"$tmp/mnt/left"
	fill
	rm "$tmp/mnt/left"
	sync -f "$tmp/mnt"
	lmdb "ext4, $left bytes left"
	must umount "$tmp/mnt"
	must mount -t tmpfs -o size=4m none "$tmp/mnt"
	head -c $((left + 1)) /dev/zero >"$tmp/mnt/left"
	cat /dev/zero >"$tmp/mnt/rest" 2>"$tmp/null"
	rm "$tmp/mnt/left"
	lmdb "tmpfs, $left bytes left"
	must umount "$tmp/mnt"
done

# Where the next place is a hole, and another one is not.
fs=tmpfs
must stele build -q "$tmp/src" "$tmp/dense@v1"
head -c 100K /dev/urandom >"$tmp/src/m"
must stele append -q "$tmp/src" "$tmp/dense@v2"
rm "$tmp/src/m"
must mount -t tmpfs -o size=8m none "$tmp/mnt"
must cp --sparse=never "$tmp/dense" "$image"
cat /dev/zero >"$tmp/mnt/rest" 2>"$tmp/null"
for dry in -n ""; do
	run stele snapshot rename $dry "$image@v1" w
	is 0 "$status" "$fs: rename $dry" || diag "$err"
	run stele snapshot delete $dry "$image@v2"
	is 0 "$status" "$fs: delete $dry" || diag "$err"
	# shellcheck disable=SC2086 # nothing
	says "is full" "$free" resize $dry --size=20M "$image"
done
rm "$tmp/mnt/rest"
for dry in -n ""; do
	run stele resize $dry --size=20M "$image"
	is "0 " "$status $err" "$fs: resize $dry, with room for its end"
done
must umount "$tmp/mnt"

# What counts no blocks is not full: whether there is room is not known.
for fs in ramfs "tmpfs without a limit"; do
	options=size=0,nr_inodes=100
	[ "$fs" != ramfs ] || options=mode=755
	must mount -t "${fs%% *}" -o $options none "$tmp/mnt"
	make "$fs"
	for dry in -n ""; do
		for verb in "build $tmp/src $tmp/mnt/new" "build -f $tmp/src $tmp/mnt/new" \
			"copy $tmp/other $tmp/mnt/copy" "append $tmp/big $image@v4" \
			"compact $image@v1 v5" "resize --size=40M $image"; do
			# shellcheck disable=SC2086 # words
			run stele $verb $dry
			is 0 "$status" "$fs: ${verb%% *} $dry" || diag "$err"
		done
	done
	must umount "$tmp/mnt"
done
fs="tmpfs without a limit of bytes"
must mount -t tmpfs -o size=0,nr_inodes=1 none "$tmp/mnt"
for dry in -n ""; do
	# shellcheck disable=SC2086 # nothing
	says "has no inodes left" "$remove" build $dry "$tmp/src" "$tmp/mnt/new"
done
says "has no inodes left" "$remove" export "$tmp/other" "$tmp/mnt/new.tar"
must umount "$tmp/mnt"

# Where only the kernel makes files there is no room to speak of.
for place in /proc /sys; do
	run stele build "$tmp/src" "$place/x"
	wanted="$status $err"
	run stele build -n "$tmp/src" "$place/x"
	is "$wanted" "$status $err" "$place: a dry run says what a real one does"
	ok "$place: refused" test "$status" = 1
done

# Where nothing is overwritten in place, not even what says who is writing can be written.
fs=btrfs
loop_new 120M
if mkfs.btrfs -q "$loop" >"$tmp/null" 2>&1 && mount -t btrfs "$loop" "$tmp/mnt" 2>"$tmp/null"; then
	make $fs
	fill
	all_new "is full" "$free"
	says "is full" "$free" append "$tmp/big" "$image@v4"
	says "is full" "$free" compact "$image@v2" v5
	says "is full" "$free" resize --size=100M "$image"
	says "is full" "$some" snapshot create "$image@v5" --base=v1 --delete=a
	says "is full" "$some" snapshot rename "$image@v1" old
	says "is full" "$some" snapshot delete --force "$image@v2"
	says "is full" "$some" gc --apply --force "$image"
	says "is full" "$some" posix on "$image"
	run stele build "$tmp/src" "$tmp/mnt/new"
	ok "$fs: what it has is less than what is needed, or not said" \
		perl -ne 'exit 1 if /needs (\d+) bytes.*, and has (\d+)/ && $2 >= $1' <<<"$err" ||
		diag "$err"
	must umount "$tmp/mnt"
else
	skip_block 51 "needs mkfs.btrfs, and a kernel that mounts it"
fi

done_testing
