#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# extract.t - keys that nobody vouches for stay below the directory
. "${0%/*}/../tap.sh"
. "${0%/*}/targets.sh"

requires strace -V

hostile() { must "$BUILD/tests/cmd/hostile" "$tmp/image" "$@"; }
extract() { run stele extract "$@" "$tmp/image" "$tmp/jail/dir"; }
mkdir "$tmp/jail"

bad=(../outside /absolute "$tmp/outside" a/../../outside .. . ./x x/. y/.. a//b
	trailing/ /)
hostile good a/good "${bad[@]}"
extract
is 1 "$status" "refused keys are a failure"
is "a a/good good" "$(cd "$tmp/jail/dir" && find . -mindepth 1 -printf '%P\n' |
	sort | paste -sd ' ')" "the rest goes on"
is "$tmp/jail/dir" "$(find "$tmp/jail" -mindepth 1 -maxdepth 1)" \
	"nothing lies outside"
ok "nor at the root" test ! -e /absolute
is ${#bad[@]} "$(grep -c '^stele: refused' <<<"$err")" "each is named" ||
	diag "$err"
for key in "${bad[@]}"; do
	ok "'$key' is named" grep -qF "refused '$key':" <<<"$err"
done
ok "all are counted" grep -q "${#bad[@]} keys refused" <<<"$err"

# Symlinks that lie in the way.
rm -rf "$tmp/jail/dir"
mkdir -p "$tmp/jail/dir" "$tmp/elsewhere"
ln -s "$tmp/elsewhere" "$tmp/jail/dir/away"
ln -s "$tmp/elsewhere/file" "$tmp/jail/dir/file"
ln -s . "$tmp/jail/dir/here"
hostile away/file file here/x fine
extract
is 1 "$status" "symlinks in the way are a failure"
is "" "$(ls "$tmp/elsewhere")" "and are not followed"
ok "not even within the directory" test ! -e "$tmp/jail/dir/x"
ok "the rest goes on" test -f "$tmp/jail/dir/fine"
extract --force
is "" "$(ls "$tmp/elsewhere")" "nor are they with --force"
ok "--force replaces one that has the name" \
	test -f "$tmp/jail/dir/file" -a ! -L "$tmp/jail/dir/file"

# What exists is never written to.
echo mine >"$tmp/mine"
ln -f "$tmp/mine" "$tmp/jail/dir/fine"
mkfifo "$tmp/jail/dir/pipe"
hostile fine pipe
extract
is "1 mine" "$status $(cat "$tmp/mine")" "no file is overwritten"
extract --force
is "0 mine" "$status $(cat "$tmp/mine")" "nor is another name of it with --force"
is fine "$(cat "$tmp/jail/dir/fine")" "which gets a new file"
is pipe "$(cat "$tmp/jail/dir/pipe")" "as do fifos"

# One key below another: the first one stands, the other fails.
rm -rf "$tmp/jail/dir"
hostile a a/b a/b/c z
extract
is 1 "$status" "a key below another is a failure"
ok "the rest goes on" test -f "$tmp/jail/dir/z"
ok "both are not there" test -f "$tmp/jail/dir/a" -o -f "$tmp/jail/dir/a/b" -o \
	-f "$tmp/jail/dir/a/b/c"
extract --force
is 1 "$status" "a key below another is a failure with --force"
rm -rf "$tmp/jail/dir"
run stele extract "$tmp/image" "$tmp/jail/dir" a
is "1 3" "$status $(($(find "$tmp/jail/dir" -type f | wc -l) +
	$(grep -c "^stele: cannot write 'a" <<<"$err")))" \
	"so it is of one named, and those below" || diag "$err"
ok "and nothing else" test ! -e "$tmp/jail/dir/z"
rm -rf "$tmp/jail/dir"
run stele extract "$tmp/image" "$tmp/jail/dir" '#0'
is "0 1" "$status $(find "$tmp/jail/dir" -type f | wc -l)" "#ID is the sample alone"

# What holds an image is replaced by nothing, least of all the one that is read.
mkdir -p "$tmp/taken/image" "$tmp/self"
for name in a image/other image/self large z; do echo "$name" >"$tmp/taken/$name"; done
must stele build -q "$tmp/taken" "$tmp/other@v1"
mkdir "$tmp/self/image"
must stele build -q "$tmp/taken" "$tmp/self/image/self@v1"
must cp "$tmp/other" "$tmp/self/image/other"
head -c 3M /dev/zero >"$tmp/self/large"
cp -a "$tmp/self" "$tmp/self.before"
run stele extract --force "$tmp/self/image/self" "$tmp/self"
is "1 3 samples" "$status ${out%%,*}" "images in the way: the others are extracted" || diag "$err"
for name in other self; do
	ok "image/$name: it is said" grep -q \
		"cannot write 'image/$name': .*holds an image (remove it first" \
		<<<"$err" || diag "$err"
	ok "image/$name: it stays" cmp "$tmp/self.before/image/$name" "$tmp/self/image/$name"
done
is "a large z" "$(cat "$tmp/self"/{a,large,z} | paste -sd ' ')" "images in the way: the others"
if [ "$(id -u)" = 0 ]; then
	rm "$tmp/self/z" && mknod "$tmp/self/z" b 7 0
	run stele extract -q --force "$tmp/other" "$tmp/self" z
	is 1 "$status" "nor is a block device"
	ok "but it stays" test -b "$tmp/self/z"
fi

# A name longer than the filesystem takes, and a directory that is a file.
rm -rf "$tmp/jail/dir"
hostile "$(printf '%0300d' 0)" z
extract
is 1 "$status" "too long a name is a failure"
ok "the rest goes on" test -f "$tmp/jail/dir/z"
run stele extract "$tmp/image" "$tmp/new" none
is 1 "$status" "a key that is not there"
ok "of which nothing is left" not test -e "$tmp/new"
mkdir "$tmp/new"
run stele extract "$tmp/image" "$tmp/new" none
ok "but a directory that was there" test -d "$tmp/new"
run stele extract "$tmp/image" "$tmp/image"
is "1 " "$status $out" "a file is no directory"

# Stopped by a signal once the first file is there: what is there is whole.
mkdir "$tmp/large"
yes | head -c 256M | tee "$tmp/large/"{a,b} >"$tmp/large/c"
must stele build -q "$tmp/large" "$tmp/large.stele"
reached() { [ -n "$(find "$1" -type f 2>/dev/null)" ]; }
stopped INT "$tmp/stopped" stele extract "$tmp/large.stele" "$tmp/stopped"
is 130 "$status" "extract dies of the signal" || diag "$(<"$tmp/err")"
is "" "$(find "$tmp/stopped" -type f ! -size 256M)" "and leaves no part of a file"
ok "what goes on there is said" grep -q "^hint: --skip-existing goes on" "$tmp/err"
rm -r "$tmp/stopped"
stopped INT "$tmp/stopped" stele extract --force "$tmp/large.stele" "$tmp/stopped"
is "130 " "$status $(grep ^hint "$tmp/err")" "not where it would keep what --force replaces"

mkdir "$tmp/middle"
yes | head -c 40M | tee "$tmp/middle/"{a,b,c,d} >"$tmp/middle/e"
must stele build -q "$tmp/middle" "$tmp/middle.stele"
stopped KILL "$tmp/killed" stele extract "$tmp/middle.stele" "$tmp/killed"
is "137 " "$status $(find "$tmp/killed" -type f ! -size 40M)" "nor when it is killed"
run stele extract -q --skip-existing "$tmp/middle.stele" "$tmp/killed"
is "0 " "$status $err" "and --skip-existing goes on"
ok "to the end" diff -r "$tmp/middle" "$tmp/killed"
# With --force, too: what is replaced stays until then.
before=$(find "$tmp/killed" -type f -printf '%f %s\n' | sort)
for ((try = 0; try < 20; try++)); do
	stele extract -q -f "$tmp/middle.stele" "$tmp/killed" 2>"$tmp/err" &
	pid=$!
	read -rt "0.0$((try + 1))" <> <(:)
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
done
is "$before" "$(find "$tmp/killed" -type f -printf '%f %s\n' | sort)" \
	"killed, --force leaves nothing of its own"
ok "what it replaces is whole" diff -r "$tmp/middle" "$tmp/killed"
rm -r "$tmp/middle" "$tmp/killed" "$tmp/middle.stele"

# Blocks of zeros are holes, wherever they lie.
mkdir -p "$tmp/sparse"
truncate -s 8M "$tmp/sparse/empty"
truncate -s 80M "$tmp/sparse/long"
for at in 0 5000 6000000 83880000; do
	printf 'data at %d' $at |
		dd of="$tmp/sparse/long" bs=1 seek=$at conv=notrunc status=none
done
printf 'x' >"$tmp/sparse/tail"
truncate -s 1M "$tmp/sparse/tail"
must stele build -q --force "$tmp/sparse" "$tmp/holes.stele"
must stele extract -q "$tmp/holes.stele" "$tmp/holes"
ok "sparse files come back" diff -r "$tmp/sparse" "$tmp/holes"
kib=$(du -s "$tmp/holes" | cut -f 1)
ok "their holes are holes ($kib KiB)" test "$kib" -le 128

# ---- what a file takes ----

# traced EXPRESSION CMD...: its calls, in $tmp/trace
traced() { ASAN_OPTIONS=detect_leaks=0 run strace -f -qq -o "$tmp/trace" -e "$@"; }

mkdir -p "$tmp/few/"{a,b/c}
for ((i = 0; i < 200; i++)); do echo "sample $i" | tee "$tmp/few/a/$i" >"$tmp/few/b/c/$i"; done
must stele build -q --order=source "$tmp/few" "$tmp/few.stele"
traced trace=openat2,newfstatat,pwrite64,linkat,close "$BUILD/stele" extract -q \
	"$tmp/few.stele" "$tmp/traced"
is "0 " "$status $(diff -r "$tmp/few" "$tmp/traced" 2>&1)" "400 files in two directories"
count=$(grep -vc ENOENT "$tmp/trace")
ok "made, written, named and closed: $count calls" \
	test "$count" -ge 1600 -a "$count" -le 1750
if [ "$(id -u)" = 0 ]; then
	is "400 0" "$(grep -c 'linkat.*AT_EMPTY_PATH' "$tmp/trace") $(grep -c /proc "$tmp/trace")" \
		"for which there need be no /proc"
else
	skip_block 1 "before Linux 6.10, needs root"
fi
# An older kernel, and no privilege.
traced inject=linkat:error=ENOENT:when=1+2 "$BUILD/stele" extract -q "$tmp/few.stele" \
	"$tmp/older"
is "0 400" "$status $(grep -c 'linkat(AT_FDCWD, "/proc' "$tmp/trace")" "else /proc is used" ||
	diag "$err"
ok "for all files" diff -r "$tmp/few" "$tmp/older"

# ---- many failures of one kind, and one that all would share ----

mkdir "$tmp/many"
for ((i = 0; i < 200; i++)); do echo "sample $i" >"$tmp/many/$i"; done
must stele build -q "$tmp/many" "$tmp/many.stele"
must stele extract -q "$tmp/many.stele" "$tmp/out"
run stele extract "$tmp/many.stele" "$tmp/out"
is "1 10" "$status $(grep -c "cannot write '.*': it exists" <<<"$err")" \
	"of 200 failures of one kind ten are named"
ok "the others are counted" grep -q "^stele: 190 more: cannot write: it exists" <<<"$err"
ok "and all" grep -q "^stele: 200 samples failed" <<<"$err"
is 12 "$(wc -l <<<"$err")" "in no more lines than that"

LC_ALL=C sed 's/sample/simple/g' "$tmp/many.stele" >"$tmp/spoilt.stele"
run stele extract "$tmp/spoilt.stele" "$tmp/spoilt"
is "3 10" "$status $(grep -c "cannot read sample #" <<<"$err")" \
	"of 200 damaged samples ten are named"
ok "the others are counted, too" grep -q "^stele: 190 more: cannot read" <<<"$err"
ok "and no more is said of them" test "$(wc -l <<<"$err")" -lt 30 || diag "$err"

rm "$tmp/out/7" "$tmp/out/77"
must touch -d 2001-01-01 "$tmp/out/8"
echo longer than it was >"$tmp/out/9"
run stele extract --skip-existing "$tmp/many.stele" "$tmp/out"
is 1 "$status" "--skip-existing: one has another size"
ok "which is said" grep -q "cannot write '9': it exists with another size" <<<"$err"
is "2 samples, 19 bytes, in '$tmp/out'
197 files skipped: there already" "$out" "those that were missing are written"
ok "the others are left alone" test "$tmp/out/8" -ot "$tmp/many/8"
rm "$tmp/out/9"
run stele extract -q --skip-existing "$tmp/many.stele" "$tmp/out"
is "0 " "$status $out$err" "all there"
ok "as they should be" diff -r "$tmp/many" "$tmp/out"
rm "$tmp/out/9" && ln -s none "$tmp/out/9"
run stele extract -q --skip-existing "$tmp/many.stele" "$tmp/out"
is "1 none" "$status $(readlink "$tmp/out/9")" "a link is no file that is there"
ok "and is not said to be kept" grep -qF \
	"cannot write '9': it exists, and is no regular file (--force replaces it)" <<<"$err" ||
	diag "$err"
run stele extract --skip-existing --force "$tmp/many.stele" "$tmp/out"
is "2 " "$status $out" "--skip-existing with --force is wrong usage"

mkdir "$tmp/full"
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=400k none "$tmp/full" 2>"$tmp/err"; then
	cleanup umount "$tmp/full"
	run stele extract "$tmp/many.stele" "$tmp/full"
	is 1 "$status" "a full filesystem is a failure"
	is 1 "$(grep -c "cannot write '.*': No space left" <<<"$err")" "which is said once"
	ok "it stops there" grep -qE "^stele: stopped after [0-9]+ samples of 200" <<<"$err"
	ok "and says how to go on" grep -q "^hint: .*--skip-existing" <<<"$err"
	must mount -o remount,ro "$tmp/full"
	run stele extract --force "$tmp/many.stele" "$tmp/full"
	is "1 1" "$status $(grep -c "Read-only" <<<"$err")" "read-only: once, too"
	ok "read-only: what helps is said" grep -q "^hint: choose another DIR, or mount" <<<"$err"
	must mount -o remount,rw,size=8M "$tmp/full"
	run stele extract -q --skip-existing "$tmp/many.stele" "$tmp/full"
	is "0 " "$status $err" "with room, --skip-existing goes on"
	ok "to the last file" diff -r "$tmp/many" "$tmp/full"
else
	skip_block 7 "needs a tmpfs"
fi

done_testing
