#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# nospace.t - targets that are too small
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version

mkdir "$tmp/src"
head -c 24M /dev/urandom >"$tmp/src/a"
head -c 1M /dev/urandom >"$tmp/src/b"
end=$(stele build -n --json "$tmp/src" | jq .image_end)

too_small() { # TARGET SIZE WORDS
	local before
	before=$(sum "$1")
	run stele build --force "$tmp/src" "$1"
	is "1 " "$status $out" "$3: refused"
	ok "$3: says what it has" grep -qw "$2" <<<"$err" || diag "$err"
	ok "$3: says what it takes" grep -qw "$end" <<<"$err" || diag "$err"
	is "$before" "$(sum "$1")" "$3: unchanged"
}

run stele build --size=$((end - 4096)) "$tmp/src" "$tmp/file"
is 1 "$status" "a --size too small is refused"
ok "--size: both sizes are named" grep -qw "$end" <<<"$err" || diag "$err"
ok "--size: no file is left" test ! -e "$tmp/file"
run stele build --size="$end" "$tmp/src" "$tmp/file"
is 0 "$status" "one of just that size will do" || diag "$err"

requires_root
loop_new $((end - 4096))
head -c 1M /dev/urandom >"$loop" || bail "cannot fill $loop"
too_small "$loop" $((end - 4096)) "device, one block short"
loop_new 1M
too_small "$loop" 1048576 "tiny device"
loop_new 4096
too_small "$loop" 4096 "one block"
loop_new "$end"
run stele build "$tmp/src" "$loop"
is 0 "$status" "a device of just that size will do" || diag "$err"

# Full to the last block: what is there can go, and its space is used again.
mkdir "$tmp/less"
head -c 23M /dev/urandom >"$tmp/less/c"
run stele append "$tmp/less" "$loop@v2"
is 1 "$status" "no room for more"
ok "which is said" grep -q "; take a larger target" <<<"$err" || diag "$err"
ok "the only snapshot is to stay" not grep -q delete <<<"$err" || diag "$err"
run stele compact "$loop@v1" c
is 1 "$status" "nor for it once more"
ok "compact: the only snapshot is to stay" not grep -q delete <<<"$err" || diag "$err"
ok "--size is for files" not grep -qe --size <<<"$err" || diag "$err"
run stele snapshot rename "$loop@v1" old
is 0 "$status" "a rename has room" || diag "$err"
run stele snapshot delete --force "$loop@old"
is 0 "$status" "so has a delete" || diag "$err"
mkdir "$tmp/fits"
head -c 12M "$tmp/less/c" >"$tmp/fits/c"
must stele build -q "$tmp/fits" "$tmp/other"
run stele copy "$tmp/other" "$loop@v2"
ok "then gc is recommended" grep -q "free some with gc" <<<"$err" || diag "$err"
run stele gc --apply --force "$loop"
is 0 "$status" "and gc does it" || diag "$err"
run stele copy -q "$tmp/other" "$loop@v2"
is 0 "$status" "there is room for another one" || diag "$err"
run stele verify -q "$loop"
is "0 " "$status $out$err" "which is sound"

# What is to be given up has to help: behind 3 MB of one snapshot there is 1 of another.
advice() { # TEXT DESCRIPTION
	is 1 "$status" "$2: no room"
	is "$1" "$(grep -oE '; (free|take).*' <<<"$err")" "$2: advice" || diag "$err"
}
for size in 1 2 3 4; do
	mkdir "$tmp/$size"
	head -c "${size}M" /dev/urandom >"$tmp/$size/$size"
done
loop_new 8M
head -c 90000 /dev/urandom >"$tmp/3/rest"
must stele build -q "$tmp/3" "$loop@big"
must stele snapshot create -d rest "$loop@cut" >/dev/null
must stele build -q "$tmp/1" "$tmp/one.stele@one"
must stele copy -q "$tmp/one.stele" "$loop"
larger='; take a larger target'
others="$larger, or delete snapshots that are not needed any more, and free their space with gc"
run stele append -q "$tmp/4" "$loop@more"
advice "$larger" "more than there would be without the other one"
run stele append -q "$tmp/2" "$loop@more"
advice "$others" "as much"
ok "the hint says where to look" grep -q "^hint:.*'stele du'" <<<"$err" || diag "$err"
mkdir "$tmp/wide"
head -c 3050000 /dev/urandom >"$tmp/wide/w"
run stele append -q "$tmp/wide" "$loop@more"
advice "$others" "what just fits where the large one is"
run stele append -q --base=big "$tmp/wide" "$loop@more"
advice "$larger" "that on the large one, which has to stay"
run stele compact "$loop@cut" less
advice "$larger" "compact of what has the same segment, which has to stay"
run stele append -q "$tmp/2" "$loop@more"
advice "$others" "again"
must stele snapshot delete "$loop@big" "$loop@cut" 2>/dev/null
run stele append -q "$tmp/4" "$loop@more"
advice "$larger" "gc would not help"
run stele append -q "$tmp/2" "$loop@more"
advice "; free some with gc, or take a larger target" "gc would help"
must stele gc --apply --force "$loop" >/dev/null
run stele append -q "$tmp/2" "$loop@more"
is 0 "$status" "so it did" || diag "$err"

# Deleted snapshots are not given up for what the commits would take: gc is named where it helps.
must stele build -q "$tmp/1" "$tmp/tight.stele@v1"
end=$(stat -c %s "$tmp/tight.stele")
for more in 8192 12288; do
	loop_new $((end + more))
	must stele build -q "$tmp/1" "$loop@v1"
	must stele snapshot create --base=v1 -d 1 "$loop@gone" >/dev/null
	must stele snapshot delete "$loop@gone" 2>/dev/null
	run stele snapshot create --base=v1 -d 1 "$loop@again"
	named=$(grep -c "free some with gc" <<<"$err")
	must stele gc --apply --force "$loop" >/dev/null
	run stele snapshot create --base=v1 -d 1 "$loop@again"
	is "$((1 - status))" "$named" "$more bytes to spare: gc is named if it helps" || diag "$err"
done

# To give up parts of a tree of files that others have replaced costs nothing.
must stele build -q --posix "$tmp/1" "$tmp/tree.stele@v1"
must stele append -q "$tmp/2" "$tmp/tree.stele@v2"
tree=$(losetup -f --show "$tmp/tree.stele") && cleanup loop_drop "$tree"
run stele snapshot delete "$tree@v1"
is 1 "$status" "no room to delete a snapshot of a tree of files"
advice "; free some with gc, which may be enough, or take a larger target" "gc of its old parts"
must stele gc --apply --force "$tree" >/dev/null
run stele snapshot delete "$tree@v1"
is 0 "$status" "which is enough" || diag "$err"

# Where samples wait that come through a pipe.
mkdir "$tmp/small"
must mount -t tmpfs -o size=64k none "$tmp/small"
tar -czf "$tmp/src.tar.gz" -C "$tmp/src" b
run env TMPDIR="$tmp/small" stele build "$tmp/src.tar.gz" "$tmp/spooled"
must umount "$tmp/small"
is 1 "$status" "no room for a temporary file"
ok "then TMPDIR is recommended" grep -q "^hint: .*TMPDIR" <<<"$err" || diag "$err"

# What is behind a device is full, while the device has room; so is the filesystem of a file.
mkdir "$tmp/thin"
must mount -t tmpfs -o size=12m none "$tmp/thin"
cleanup umount "$tmp/thin"
must stele build -q "$tmp/src" "$tmp/whole"
for verb in build copy; do
	must truncate -s 100M "$tmp/thin/d"
	back=$(losetup -f --show "$tmp/thin/d") || bail "no loop device"
	from=$tmp/src
	[ $verb = build ] || from=$tmp/whole
	run stele $verb -q "$from" "$back"
	losetup -d "$back"
	rm "$tmp/thin/d"
	is 1 "$status" "$verb: no room behind a device"
	is 1 "$(grep -c 'storage behind the device is full' <<<"$err")" "$verb: said once" ||
		diag "$err"
	ok "$verb: and what helps" grep -q "^hint: free space behind the device" <<<"$err" ||
		diag "$err"
done
# Changes that write little.
mkdir "$tmp/few" && for i in 1 2 3; do echo $i >"$tmp/few/$i"; done
must truncate -s 100M "$tmp/thin/d"
back=$(losetup -f --show "$tmp/thin/d") || bail "no loop device"
must stele build -q --granule=512 "$tmp/few" "$back@v1"
head -c 12M /dev/zero >"$tmp/thin/fill" 2>"$tmp/null"
for words in "snapshot create TARGET@less --base=v1 -d 1" "posix on TARGET" \
	"build -f $tmp/few TARGET"; do
	# shellcheck disable=SC2086 # words
	run stele ${words/TARGET/$back}
	is 1 "$status" "$words: no room behind a device"
	is 1 "$(grep -c '^stele: cannot write .*: the storage behind the device' <<<"$err")" \
		"$words: what cannot be written, and why" || diag "$err"
done
# What was written is free in the image, yet stays with the device: it can be given back.
rm "$tmp/thin/fill"
must blkdiscard "$back"
must stele build -q "$tmp/few" "$back@v1"
used=$(stat -c %b "$tmp/thin/d")
mkdir "$tmp/new" && cp "$tmp/src/a" "$tmp/new/4"
run stele append "$tmp/new" "$back@v2"
is 1 "$status" "append: no room behind a device"
ok "append: which has all by now" test "$(stat -c %b "$tmp/thin/d")" -gt $((used + 8192))
words=$(perl -ne "/^hint: .*'stele (gc [^']*)'/ && print \$1" <<<"$err")
# shellcheck disable=SC2086 # words
run stele ${words:-gc} "$back"
is 0 "$status" "append: what the hint names can be run" || diag "$err"
ok "append: and gives it back: '$words'" \
	test "$(stat -c %b "$tmp/thin/d")" -le $((used + 64))
losetup -d "$back"
rm "$tmp/thin/"*
mkdir "$tmp/tiny"
head -c 4M /dev/urandom >"$tmp/tiny/a"
must stele build -q "$tmp/tiny" "$tmp/thin/image"
dd if=/dev/zero of="$tmp/thin/rest" bs=4K status=none 2>"$tmp/full"
run stele resize --size=30m "$tmp/thin/image"
is 1 "$status" "resize on a full filesystem"
ok "resize: says so" grep -q 'its filesystem is full' <<<"$err" || diag "$err"
ok "resize: and does not name itself" not grep -q "stele resize" <<<"$err" || diag "$err"

# A filesystem that fills up under a file with holes.
loop_new 20M
must mkfs.ext4 -q "$loop"
mkdir "$tmp/mnt"
must mount "$loop" "$tmp/mnt"
cleanup umount "$tmp/mnt"
kept=$(<"/sys/fs/ext4/${loop##*/}/reserved_clusters") # it counts as free, and nobody gets it
left=$(($(stat -f -c "(%f - $kept) * %S" "$tmp/mnt")))
run stele build "$tmp/src" "$tmp/mnt/image"
is "1 " "$status $out" "a full filesystem is a failure"
ok "a full filesystem: what was free is said, not what is left of it" \
	grep -q ", and has $left$" <<<"$err" || diag "$err"
ok "a full filesystem: is named" grep -qi 'space\|small' <<<"$err" || diag "$err"
ok "a full filesystem: no file is left" test ! -e "$tmp/mnt/image"

# There, what is refused or fails takes no block from a file that was there.
# What is allocated of it, by block; a filesystem may keep a block to find the others.
state() { # FILE
	sync -f "$1"
	stat -c '%s bytes' "$1"
	sum "$1"
	filefrag -v "$1" | perl -ne '
		/^ +\d+: +(\d+)\.\. +(\d+):/ or next;
		print "from $1 " unless defined $end && $end + 1 == $1;
		print "to $2 "; $end = $2'
}

refused() { # WORDS FILE CMD...
	local words=$1 file=$2 before blocks
	before=$(state "$file" | sed ':a; s/to [0-9]* to/to/g; ta')
	blocks=$(stat -c %b "$file")
	shift 2
	run stele "$@"
	is 1 "$status" "$words: refused"
	ok "$words: says why" grep -q 'its filesystem is full' <<<"$err" || diag "$err"
	is "hint: free space there, or choose another place" "$(grep ^hint: <<<"$err")" \
		"$words: what helps"
	run stele "$1" -n "${@:2}"
	is 1 "$status" "$words: refused by a dry run, too"
	ok "$words: which says why" grep -q 'its filesystem is full' <<<"$err" || diag "$err"
	is "$before" "$(state "$file" | sed ':a; s/to [0-9]* to/to/g; ta')" \
		"$words: all as before"
	ok "$words: and no larger" \
		test "$(stat -c %b "$file")" -le $((blocks + 16))
}

: >"$tmp/mnt/empty"
refused "an empty file" "$tmp/mnt/empty" build "$tmp/src" "$tmp/mnt/empty"
must fallocate --keep-size --length 3M "$tmp/mnt/empty"
refused "an empty one with blocks" "$tmp/mnt/empty" build "$tmp/src" "$tmp/mnt/empty"
rm "$tmp/mnt/empty"
must truncate -s 40M "$tmp/mnt/holes"
must fallocate --offset 8M --length 1M "$tmp/mnt/holes"
printf 'mine' | dd of="$tmp/mnt/holes" bs=1 seek=30M conv=notrunc status=none
refused "a file with holes" "$tmp/mnt/holes" build --force "$tmp/src" "$tmp/mnt/holes"
rm "$tmp/mnt/holes"

mkdir "$tmp/small" "$tmp/half"
head -c 3M /dev/urandom >"$tmp/small/s"
head -c 9M /dev/urandom >"$tmp/half/b"
must stele build -q "$tmp/src" "$tmp/large"
image=$tmp/mnt/image
must stele build -q "$tmp/small" "$image@v1"
refused "append" "$image" append "$tmp/src" "$image@v2"
refused "append --size" "$image" append --size=40M "$tmp/src" "$image@v2"
refused "copy" "$image" copy "$tmp/large" "$image@v2"
refused "build over it" "$image" build --force "$tmp/src" "$image"
must stele resize --size=40M "$image" >/dev/null
refused "append within a file with holes" "$image" append "$tmp/src" "$image@v2"
must stele append -q "$tmp/half" "$image@v2"
refused "compact" "$image" compact "$image@v2" v3
dd if=/dev/zero of="$tmp/mnt/rest" bs=1K status=none 2>"$tmp/full"
refused "build over it, of the same size" "$image" build --force "$tmp/small" "$image"
is 0 "$(stele verify -q "$image" >&2; echo $?)" "the image is sound"

# What is there can go all the same: from a file with holes, and from one made to fit.
empty_out() { # WORDS IMAGE
	local name

	dd if=/dev/zero of="$tmp/mnt/rest" bs=4K status=none 2>"$tmp/full"
	for name in $(stele snapshot list --json "$2" | jq -r .name); do
		run stele snapshot delete --force "$2@$name"
		is 0 "$status" "$1 on a full filesystem: $name is deleted" || diag "$err"
	done
	run stele gc --apply --force "$2"
	is 0 "$status" "$1 on a full filesystem: gc" || diag "$err"
	is 0 "$(stele verify -q "$2" >&2; echo $?)" "$1: it is sound"
}
empty_out "with holes" "$image"
rm "$tmp/mnt/rest" "$image"
must stele build -q "$tmp/small" "$image@v1"
for i in $(seq 40); do
	echo "$i" >"$tmp/small/more$i"
	must stele append -q "$tmp/small" "$image@many$i" >/dev/null
done
empty_out "to fit" "$image"
# A catalog that does not fit where the one before it was.
rm "$tmp/mnt/rest" "$image"
must stele build -q "$tmp/small" "$image@v1"
echo last >"$tmp/small/last"
must stele append -q --note="$(printf '%01000d' 7)" "$tmp/small" "$image@v2"
empty_out "with a larger catalog" "$image"

# What a filesystem keeps for root, a dry run of root's knows.
loop_new 20M
must mkfs.ext4 -q -m 20 "$loop"
mkdir "$tmp/root"
must mount "$loop" "$tmp/root"
cleanup umount "$tmp/root"
mkdir "$tmp/own"
echo sample >"$tmp/own/s"
must stele build -q "$tmp/own" "$tmp/root/image@v1"
chmod 777 "$tmp/root"
chmod 755 "$tmp"
setpriv --reuid=65534 --regid=65534 --clear-groups dd if=/dev/zero of="$tmp/root/rest" \
	bs=1K status=none 2>"$tmp/full"
for option in --dry-run --note=; do
	run stele snapshot create "$option" --delete=s "$tmp/root/image@v2"
	is 0 "$status" "snapshot create $option in what is kept for root" || diag "$err"
done

done_testing
