#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# mount.t - samples as files, by the kernel and by FUSE: the same tree, read in all ways
. "${0%/*}/../tap.sh"

requires grep -qw erofs /proc/filesystems
requires_root
requires test -c /dev/fuse
requires fusermount3 -V
requires getfattr --version
requires setpriv --version

cd "$tmp" || bail "cd"
mkdir mnt
leave() {
	# Without a look at it: a process that hangs would not answer.
	umount -cfl "$tmp/mnt" 2>/dev/null
	mountpoint -q disk && umount -l disk
	:
}
cleanup leave
names() { find mnt -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | paste -sd ' '; }
# Until the process behind a mount has ended.
gone() {
	local i
	for ((i = 0; i < 100; i++)); do
		pgrep -f "stele mount .*$1" >/dev/null || return 0
		sleep 0.1
	done
	return 1
}
# foreground IMAGE: sets server
foreground() {
	local i
	stele mount --foreground --via fuse "$1" mnt 2>log &
	server=$!
	for ((i = 0; i < 100; i++)); do mountpoint -q mnt && break; sleep 0.1; done
}

mkdir -p src/a/b src/a-b src/c
for ((i = 0; i < 300; i++)); do
	head -c $((RANDOM * 8)) /dev/urandom >"src/a/$i.bin"
done
echo x >src/a/b/x
echo the-marked-sample >src/a/marked
echo y >src/a-b/y
: >src/c/empty
echo bang >'src/c/!bang'
head -c 255 /dev/zero | tr '\0' n | xargs -I N touch src/c/N
head -c 70M /dev/urandom >src/large
cp -r src more
echo new >more/new
echo news >more/a/b/x

# all IMAGE VIA WORDS: the image, and each snapshot alone
all() {
	ok "$3" stele mount --via "$2" "$1" mnt
	is "v1 v2" "$(names)" "$3: a directory for each snapshot"
	is "" "$(diff -r src mnt/v1 2>&1; diff -r more mnt/v2 2>&1)" "$3: the same files"
	is "$(cd more && find . | sort)" "$(cd mnt/v2 && find . | sort)" "$3: the same names"
	ok "$3: ends" stele umount mnt
	ok "$3: a snapshot alone" stele mount --via "$2" "$1@v1" mnt
	is "" "$(diff -r src mnt 2>&1)" "$3: its files"
	ok "$3: they can be mapped" python3 -c 'import mmap, sys
with open("mnt/large", "rb") as f, open("src/large", "rb") as g:
	sys.exit(mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)[:] != g.read())'
	ok "$3: ends, too" stele umount mnt
	is "" "$(findmnt -n mnt)" "$3: nothing is left"
}

must stele build -q --posix src "photos,1.stele"
must stele append -q --update more "photos,1.stele@v2"
all photos,1.stele erofs "erofs of a file"
all photos,1.stele fuse "fuse of a file"
must stele build -q --granule 16 src small.stele
must stele append -q --update more small.stele@v2
all small.stele fuse "fuse of a granule of 16"
loop_new 400M
must stele build -q --posix src "$loop"
must stele append -q --update more "$loop@v2"
all "$loop" erofs "erofs of a device"
all "$loop" fuse "fuse of a device"

# A filesystem whose files the kernel does not mount: by a loop device, which goes with it.
mkdir disk
must mount -t tmpfs -o size=300m none disk
must cp photos,1.stele disk/photos
ok "erofs of a file on tmpfs" stele mount --via erofs disk/photos@v2 mnt
is "" "$(diff -r more mnt 2>&1)" "the same files"
ok "by a loop device" grep -q '^/dev/loop' <<<"$(findmnt -n -o SOURCE mnt)"
must stele umount mnt
for _ in {1..50}; do # whoever lists loop devices may hold it for a moment
	[ -n "$(losetup -j disk/photos)" ] || break
	sleep 0.1
done
is "" "$(losetup -j disk/photos)" "which is gone"
umount disk

# ---- auto ------------------------------------------------------------------

run stele mount photos,1.stele@v1 mnt
is "0 stele: 'mnt' is mounted via erofs" "$status $err" "auto: by the kernel"
run stele mount photos,1.stele@v1 mnt
is "1 1" "$status $(grep -c "erofs is mounted there" <<<"$err")" "not twice"
must stele umount mnt
run stele mount small.stele mnt
is "0 stele: 'mnt' is mounted via fuse: the image has no tree of files" "$status $err" \
	"auto: no tree"
run stele mount small.stele mnt
is "1 1" "$status $(grep -c "fuse.stele is mounted there" <<<"$err")" "not twice"
must stele umount mnt
pin=sha256:$(stele info --json photos,1.stele@v1 | jq -r .snapshot.digest)
run stele mount "photos,1.stele@$pin" mnt
ok "auto: what is pinned is verified" grep -q "via fuse: the kernel verifies nothing" <<<"$err"
is "" "$(diff -r src mnt 2>&1)" "and is right"
must stele umount mnt

# What a writer leaves that was killed before it wrote block 0.
cp photos,1.stele behind.stele
must stele append -q --allow-empty --always src behind.stele@v3
dd if=photos,1.stele of=behind.stele bs=4096 count=1 conv=notrunc status=none
for via in auto erofs; do
	run stele mount --via "$via" behind.stele mnt
	is 0 "$status" "$via: the tree of before"
	ok "$via: what it lacks is said" grep -q "warning: snapshot 'v3' is not shown" <<<"$err" ||
		diag "$err"
	must stele umount mnt
done
run stele mount --via erofs behind.stele@v3 mnt
is "1 stele: cannot mount 'behind.stele@v3': snapshot 'v3' is not shown: a writer was interrupted
hint: run 'stele posix on' once the image is not mounted, or use --via=fuse" "$status $err" \
	"the snapshot alone: so is it"
wrong="'behind.stele' was an EROFS already; block 0"
run stele posix -n on behind.stele
is "0 $wrong would be rewritten, to show that" "$status ${out%%$'\n'*}" "a dry run says so, too"
run stele posix on behind.stele
is "0 $wrong is rewritten, to show that" "$status $out" "and posix on"
run stele posix on behind.stele
is "0 ${wrong%%;*}" "$status $out" "once"
run stele mount behind.stele mnt
is "0 stele: 'mnt' is mounted via erofs v1 v2 v3" "$status $err $(names)" "posix on helps"
must stele umount mnt

# ---- the name of the directory ------------------------------------------------

ln -s mnt link
ln -s "$tmp/none/../link/" round
mkdir none
ln -s loop loop
for via in erofs fuse; do
	for name in link round/ none/../link/. mnt/../mnt "$tmp//mnt"; do
		must stele mount --via $via photos,1.stele mnt
		ok "$via: '${name#"$tmp"}' ends it" stele umount "$name"
		must stele mount --via $via photos,1.stele@v1 mnt
		ok "$via: '${name#"$tmp"}' ends a snapshot" stele umount "$name"
	done
done
for via in erofs fuse; do
	for name in link round/ mnt/../mnt mnt/../link mnt/. none/../mnt/; do
		run timeout -k 1 30 stele mount --via $via photos,1.stele@v1 "$name"
		is "0 " "$status $err" "$via on '$name'"
		is "" "$(timeout -k 1 30 cmp src/a/marked mnt/a/marked 2>&1)" \
			"$via on '$name': served"
		must stele umount mnt
	done
done
run timeout -k 1 30 env -C mnt stele mount --via fuse ../small.stele .
is "0 " "$status $err" "fuse on the working directory"
is "" "$(timeout -k 1 30 cmp src/a/marked mnt/v1/a/marked 2>&1)" \
	"an image that is found through it is read"
must stele umount mnt
is "via fuse" "$(timeout -k 1 30 stele mount small.stele mnt 2>&1 | grep -o 'via fuse')" \
	"its process has not the output of who started it"
must stele umount mnt
must stele mount --via fuse "$tmp/small.stele" mnt
must kill "$(pgrep -f "stele mount .*$tmp/small.stele")"
ok "a signal ends its process" gone "$tmp/small.stele"
is "" "$(findmnt -n mnt)" "and the mount"
run stele umount loop
is "1 1" "$status $(grep -c "'loop': nothing is mounted there" <<<"$err")" "a link to itself"
# One whose process has died answers nobody.
for name in link mnt/../mnt mnt/.; do
	foreground small.stele
	kill -9 "$server"
	wait "$server"
	run stat mnt/v1
	ok "dead" grep -q "Transport endpoint is not connected" <<<"$err"
	ok "dead: '${name#"$tmp"}' ends it" stele umount "$name"
	is "" "$(findmnt -n mnt)" "dead: nothing is left"
done

# ---- gc ---------------------------------------------------------------------

# refuses IMAGE WORDS [MOUNTED]: what is freed might be what the mount shows
refuses() {
	must stele mount --via erofs "${3:-$1}" mnt
	must stele snapshot delete --force "$1@v2"
	run stele gc --apply --force "$1"
	is 1 "$status" "$2: gc frees nothing that is mounted"
	ok "$2: and says where" grep -q "'$1' is in use: it .*mounted on $tmp/mnt" <<<"$err"
	ok "$2: it names the tree" grep -q "^tree  *[0-9a-f]\\{16\\} .* of files" <<<"$out"
	ok "$2: a list is no harm" stele gc "$1"
	is "" "$(diff -r more mnt/v2 2>&1)" "$2: what is mounted stays"
	must stele umount mnt
	ok "$2: later it does" soon stele gc --apply --force "$1"
}
cp photos,1.stele copied.stele
refuses "$loop" "a device"
refuses copied.stele "a file"
cp photos,1.stele twins.stele
truncate -s +8M twins.stele
one=$(losetup -f --show twins.stele) || bail "no loop device"
cleanup loop_drop "$one"
other=$(losetup -f --show twins.stele) || bail "no loop device"
cleanup loop_drop "$other"
must stele resize "$one"
refuses "$one" "one of two devices over a file" "$other"
must mount -t tmpfs -o size=300m none disk
must cp photos,1.stele disk/photos
refuses disk/photos "a loop device"
umount disk

# ---- attributes ------------------------------------------------------------

value() { getfattr --only-values -n "user.stele.$1" "$2" 2>&1; }
must stele mount --via fuse small.stele mnt
id=$(stele ls --json small.stele@v1 | jq -r 'select(.key == "a/b/x").id')
is "$id" "$(value id mnt/v1/a/b/x)" "the id"
is "x" "$(value field.data mnt/v1/a/b/x)" "a field"
is 0 "$(value field.label mnt/v1/a/b/x)" "a scalar"
is "$(stele info --json small.stele@v2 | jq -r .snapshot.digest)" "$(value digest mnt/v2)" \
	"the digest of a snapshot"
is 64 "$(value digest mnt/v2/a/b/x | wc -c)" "that of a sample"
ok "differs where samples do" \
	test "$(value digest mnt/v1/a/b/x)" != "$(value digest mnt/v2/a/b/x)"
is "$(value digest mnt/v1/a/1.bin)" "$(value digest mnt/v2/a/1.bin)" "and else not"
is "user.stele.digest user.stele.field.data user.stele.field.label user.stele.id" \
	"$(getfattr mnt/v1/a/b/x | grep -v '^#' | sort | xargs)" "all of them"
# ls asks each file for an ACL, unless it hears from the first that there are none.
for name in system.posix_acl_access security.selinux; do
	ok "there is no $name" \
		grep -q "not supported" <<<"$(getfattr -n "$name" mnt/v1/a/b/x 2>&1)"
done
ok "of users there may be" grep -q "No such attribute" <<<"$(getfattr -n user.x mnt/v1/a/b/x 2>&1)"
is 1 "$(value none mnt/v1/a/b/x | grep -c 'No such attribute')" "no others"
ok "nothing is written" not touch mnt/v1/a/b/x

# ---- in use, changed below -------------------------------------------------

exec 5<mnt/v1/a/b/x
run stele umount mnt
is 1 "$status" "it is in use"
ok "and says so" grep -q "cannot unmount 'mnt': in use" <<<"$err"
ok "and how to find by whom" grep -q "^hint: 'fuser -vm mnt'" <<<"$err"
exec 5<&-
ok "append while it is mounted" stele append -q --update src small.stele@v3
mkdir absolute
must stele mount --via fuse "$tmp/small.stele" absolute
run stele snapshot create "$tmp/small.stele@more"
is 0 "$status" "nor does it hinder a writer by the name that it was mounted by" || diag "$err"
must stele snapshot delete "$tmp/small.stele@more"
run stele build -q -f src "$tmp/small.stele"
is 1 "$status" "but it does who would overwrite all"
must stele umount absolute
is "v1 v2" "$(names)" "what is mounted stays"
is "" "$(diff -r more mnt/v2 2>&1)" "as it was"
must stele compact -q small.stele@v3 v4
must stele snapshot delete --force small.stele@v1 small.stele@v2 small.stele@v3
must stele gc --apply --force small.stele
mkdir other && must cp -r src other/again
rm other/again/a/1?.bin # so that it fits where v1 was
must stele append -q other small.stele@v5
echo 3 >/proc/sys/vm/drop_caches
for ((i = 0; i < 300; i++)); do
	cmp -s "src/a/$i.bin" "mnt/v1/a/$i.bin" && continue
	head -c 1 "mnt/v1/a/$i.bin" 2>&1 >"$tmp/null" | sed 's/.*: //'
done | sort -u >said
ok "freed below it: stale, never other bytes" not grep -qv "Stale file handle" said ||
	diag "$(cat said)"
ok "some are" grep -q "Stale file handle" said
must stele umount mnt
ok "no process is left" gone small.stele

# ---- damage ----------------------------------------------------------------

must stele build -q --granule 64 --uuid 00000000-0000-4000-8000-000000000000 src bad
at=$(LC_ALL=C grep -obUa the-marked-sample bad | head -1 | cut -d: -f1)
printf '\377\377\377' | dd of=bad bs=1 seek=$((at + 5)) conv=notrunc status=none
foreground bad
run cat mnt/v1/a/marked
is "1 cat: mnt/v1/a/marked: Input/output error" "$status $err" "damage is an error"
ok "the others are read" cmp src/a/8.bin mnt/v1/a/8.bin
ok "it is logged by name" grep -q "cannot read sample #[0-9]* 'a/marked'" log
kill "$server"
wait "$server"
is 0 "$?" "a signal ends it"
is "" "$(findmnt -n mnt)" "and the mount"

# ---- a signal while it is used ---------------------------------------------

# used: a directory of it, by fd 8
used() {
	foreground bad
	exec 8<mnt/v1/a
	kill "$server"
}
used
soon grep -q "in use: another signal ends it at once" log || diag "$(<log)"
ok "which is said" grep -q "in use: another signal ends it at once" log
is "" "$(findmnt -n mnt)" "the name is gone at once"
is "$(ls src/a)" "$(timeout -k 1 30 ls /proc/self/fd/8/)" "who uses it is answered"
ok "also for what was not read before" timeout -k 1 30 cmp src/a/8.bin /proc/self/fd/8/8.bin
exec 8<&-
wait "$server"
is 0 "$?" "it ends with the last of these"
used
soon not findmnt -n mnt >/dev/null
kill "$server"
wait "$server"
is $((128 + 15)) "$?" "a second signal does not wait"
run timeout -k 1 30 ls /proc/self/fd/8/
ok "and whoever uses it gets an error" grep -q "Transport endpoint is not connected" <<<"$err"
exec 8<&-

# ---- no temporary files ----------------------------------------------------

TMPDIR=$tmp/none/at/all foreground small.stele@v4
run cat mnt/large
is "1 cat: mnt/large: Input/output error" "$status $err" "no temporary file is an error"
ok "that names the directory and TMPDIR" \
	grep -q "temporary file in '$tmp/none/at/all': No such file.*TMPDIR" log
must stele umount mnt
must mount -t tmpfs -o size=1m none disk
TMPDIR=$tmp/disk foreground small.stele@v4
run cat mnt/large
is "1 cat: mnt/large: No space left on device" "$status $err" "no space for one is, too"
ok "that names the directory" grep -q "temporary file in '$tmp/disk': No space left" log
must stele umount mnt
umount disk

# ---- without root ----------------------------------------------------------

user() { setpriv --reuid nobody --regid nogroup --clear-groups env HOME=/ "$@"; }
chmod a+rx "$tmp"
mkdir theirs
chown nobody theirs
chmod a+r photos,1.stele
run user "$BUILD/stele" mount photos,1.stele@v1 theirs
is 0 "$status" "somebody else mounts" || diag "$err"
ok "via fuse, and why" grep -q "is mounted via fuse: only root can mount via erofs" <<<"$err"
is "" "$(user diff -r src theirs 2>&1)" "the same files"
run user "$BUILD/stele" umount theirs
is "0 " "$status $err" "and unmounts"
run user "$BUILD/stele" mount --via erofs photos,1.stele@v1 theirs
is 1 "$status" "but not by the kernel"
is "stele: cannot mount 'photos,1.stele@v1': only root can mount via erofs
hint: run it as root, or use --via=fuse" "$err" "says what helps"
mkdir mode700
chmod 700 mode700
for words in mnt mode700; do
	run user "$BUILD/stele" mount --via=fuse photos,1.stele@v1 $words
	is "1 hint: choose a directory of your own, or run it as root" \
		"$status $(tail -n 1 <<<"$err")" "nor on $words, a directory of another's"
done

# ---- what is refused -------------------------------------------------------

refused() { # WORDS PATTERN ARGS...
	local words=$1 pattern=$2
	shift 2
	run stele mount "$@"
	ok "$words" test "$status" -gt 0
	ok "$words: says so" grep -q "$pattern" <<<"$err" || diag "$err"
}
refused "no directory" "hint: make the directory first" photos,1.stele nothing
refused "a file" "Not a directory" photos,1.stele src/large
refused "files in it" "the directory is not empty" photos,1.stele src
refused "no such snapshot" "no such snapshot" photos,1.stele@none mnt
refused "no image" "no Stele image" src/large mnt
refused "no tree" "'stele posix on' makes it mountable" --via erofs small.stele mnt
must cp photos,1.stele wiped.stele
must dd if=/dev/zero of=wiped.stele bs=4096 count=1 conv=notrunc status=none
refused "no front" "block 0 does not show its tree" --via erofs wiped.stele mnt
must stele posix on wiped.stele
must stele mount --via erofs wiped.stele mnt
must stele umount mnt
run stele umount mnt
is "1 stele: cannot unmount 'mnt': nothing is mounted there
hint: 'findmnt -t erofs,fuse.stele' lists what is mounted" "$status $err" "nothing to unmount"
must mount -t tmpfs none disk
run stele umount disk
is "1 stele: cannot unmount 'disk': it is of type tmpfs
hint: use umount(8)" "$status $err" "nor somebody else's"
umount disk

done_testing
