#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# export.t - an archive holds the samples, whole or not at all
. "${0%/*}/../tap.sh"
. "${0%/*}/targets.sh"

requires tar --version
requires strace -V
tree_photos "$tmp/photos"
printf x >"$tmp/photos/caf"$'\303\251'
printf y >"$tmp/photos/bad"$'\377\376'
long=$(printf '%0200d' 0)
mkdir -p "$tmp/photos/$long/$long"
printf z >"$tmp/photos/$long/$long/deep"
printf z >"$tmp/photos/$long/bad"$'\377'
# Larger than what is read ahead: comes in pieces.
head -c 70M /dev/urandom >"$tmp/photos/large"
must stele build -q --time 1700000000 "$tmp/photos" "$tmp/image@v1"

# ---- what it holds ----

run stele export "$tmp/image" "$tmp/a.tar"
is "0 " "$status $err" "export"
ok "says how much" grep -q "^46 samples, .* in '$tmp/a.tar'" <<<"$out"
mkdir "$tmp/a"
ok "tar takes it" tar -xf "$tmp/a.tar" -C "$tmp/a"
ok "and has every byte" diff -r "$tmp/photos" "$tmp/a"
is "$(stele ls -0 "$tmp/image" | sum /dev/stdin)" \
	"$(tar -tf "$tmp/a.tar" --null --quoting-style=literal | tr '\n' '\0' |
		sum /dev/stdin)" "in the order of the keys"
is "-rw-r--r-- 0/0 2023-11-14 22:13:20" \
	"$(tar -tvf "$tmp/a.tar" --full-time --numeric-owner |
		awk '{print $1, $2, $4, $5}' | sort -u)" "mode, owner and time"
is "0 0" "$(($(stat -c %s "$tmp/a.tar") % 512)) $(tail -c 1024 "$tmp/a.tar" |
	tr -d '\0' | wc -c)" "whole blocks, and two of zeros at the end"
is "" "$(find "$tmp" -maxdepth 1 -name '.stele*')" "nothing else lies there"

# ---- as others read it ----

# What pax headers say, and how often
cat >"$tmp/list.py" <<'END'
import collections, os, sys, tarfile
says = collections.Counter()
for m in tarfile.open(sys.argv[1], errors="surrogateescape"):
	assert m.isreg() and (m.uid, m.gid, m.uname, m.gname) == (0, 0, "", "")
	says.update(m.pax_headers.keys())
	os.write(1, os.fsencode(m.name) + b"\0")
print(sorted(says.items()), file=sys.stderr)
END
if command -v python3 >/dev/null; then
	python3 "$tmp/list.py" "$tmp/a.tar" >"$tmp/names" 2>"$tmp/says"
	is "$(stele ls -0 "$tmp/image" | sum /dev/stdin)" "$(sum "$tmp/names")" \
		"python has the same names, byte for byte"
	is "[('hdrcharset', 2), ('path', 4)]" "$(<"$tmp/says")" \
		"only names that need it have a pax header, no others are binary"
else
	skip_block 2 "needs python3"
fi
if command -v bsdtar >/dev/null; then
	mkdir "$tmp/bsd"
	ok "bsdtar takes it" env LC_ALL=C.UTF-8 bsdtar -xf "$tmp/a.tar" -C "$tmp/bsd"
	ok "byte for byte" diff -r "$tmp/photos" "$tmp/bsd"
else
	skip_block 2 "needs bsdtar"
fi

# ---- same bytes ----

stele export "$tmp/image" - >"$tmp/b.tar"
ok "stdout gets the same" cmp "$tmp/a.tar" "$tmp/b.tar"
must stele build -q --time 1700000000 --granule 512 "$tmp/photos" "$tmp/other"
ok "another layout too" cmp "$tmp/a.tar" <(stele export "$tmp/other" -)
ok "and another locale" cmp "$tmp/a.tar" <(LC_ALL=C stele export "$tmp/image" -)
ok "another time, process and user" cmp "$tmp/a.tar" <(umask 077; sleep 1
	SOURCE_DATE_EPOCH=1 TZ=Asia/Tokyo USER=x stele export "$tmp/image" -)
stele export --prefix=set-1/x- "$tmp/image" - >"$tmp/p.tar"
is "$(stele ls "$tmp/image" train | sed 's,^,set-1/x-,')" \
	"$(tar -tf "$tmp/p.tar" | grep train)" "a prefix stands before each name"

# ---- many tiny samples ----

# traced CMD...: its transfers, by threads, since a trace cannot see those of io_uring
traced() {
	ASAN_OPTIONS=detect_leaks=0 strace -f -qq -s 0 -o "$tmp/trace" \
		-e trace=pread64,write,io_uring_setup \
		-e inject=io_uring_setup:error=EPERM "$@"
}
# transfers PATTERN: the size of each
transfers() { grep -E "$1" "$tmp/trace" | grep -oE '= [0-9]+$' | cut -c3-; }

seq -f 'line %.0f, with as much text as fills a hundred bytes, as captions do, or a little more' \
	50000 >"$tmp/lines.txt"
must stele build -q --from=text "$tmp/lines.txt" "$tmp/tiny"
traced stele export "$tmp/tiny" - >"$tmp/t.tar" 2>"$tmp/err"
is "0 50000" "$? $(tar -tf "$tmp/t.tar" | wc -l)" "50,000 tiny samples"
is "0" "$(transfers ' write\(1,' | sed '$d' | awk '$1 % 1048576' | wc -l)" \
	"are written by the MiB"
is "$(stat -c %s "$tmp/t.tar")" "$(transfers ' write\(1,' | awk '{s += $1} END {print s}')" \
	"each byte once"
ok "and read by more than 100 KiB at a time" test 102400 -lt \
	"$(transfers 'pread64' | awk '$1 > 4096 {s += $1; n++} END {print int(s / n)}')"

# ---- libarchive is loaded for it ----

mkdir "$tmp/lib"
: >"$tmp/lib/libarchive.so.13"
run env LD_LIBRARY_PATH="$tmp/lib" stele export "$tmp/image" "$tmp/none.tar"
is 1 "$status" "no libarchive"
ok "is said" grep -q '^stele: cannot load .*libarchive.so.13: ' <<<"$err" ||
	diag "$err"
ok "and no file is begun" not test -e "$tmp/none.tar"
run env LD_LIBRARY_PATH="$tmp/lib" stele ls "$tmp/image"
is 0 "$status" "nothing else needs it"

# ---- what is there stays ----

echo mine >"$tmp/mine"
run stele export "$tmp/image" "$tmp/mine"
is "1 mine" "$status $(<"$tmp/mine")" "a file is not replaced"
ok "and the way to do so is said" grep -q -- --force <<<"$err"
must chmod 640 "$tmp/mine"
run stele export --force -q "$tmp/image" "$tmp/mine"
is "0 " "$status $out$err" "with --force it is"
is 640 "$(stat -c %a "$tmp/mine")" "and who could not read it, cannot"
ok "by the archive" cmp "$tmp/a.tar" "$tmp/mine"
mkfifo "$tmp/fifo"
ln -s mine "$tmp/link"
for strange in fifo link a; do
	run stele export --force "$tmp/image" "$tmp/$strange"
	is 1 "$status" "what is no regular file is refused: $strange"
done
ok "and stays" test -p "$tmp/fifo" -a -L "$tmp/link" -a -d "$tmp/a"

# spared WHAT FILE WHY
spared() {
	run stele export --force "$tmp/image" "$2"
	is "1 stele: cannot replace '$2': $3" \
		"$status ${err%%$'\n'*}" "what no redirection may overwrite: $1"
	ok "and none is advised" not grep -q redirect <<<"$err"
}
ln -s image "$tmp/to-image"
spared "a link to an image" "$tmp/to-image" "it holds an image"
if [ "$(id -u)" = 0 ]; then
	loop_new 1M
	spared "a device" "$loop" "it is a block device"
else
	skip_block 2 "needs root"
fi

run stele export "$tmp/image" "$tmp/none/x.tar"
is 1 "$status" "no such directory"
run script -qec "stele export $tmp/image -" /dev/null
ok "no archive onto a terminal" grep -q "to a terminal" <<<"$out"
for prefix in / ../ a/../ a//; do
	run stele export --prefix="$prefix" "$tmp/image" -
	is "2 " "$status $out" "no prefix '$prefix'"
done

# ---- damage ----

# flip KEY: a bit in the middle of a sample
flip() {
	cp "$tmp/image" "$tmp/damaged"
	perl -e 'open F, "+<", shift; binmode F; local $/; my $d = <F>;
		open G, "<", shift; my $want = <G>; my $at = index $d,
		substr($want, length($want) / 2, 64); die if $at < 0;
		seek F, $at, 0; print F chr(ord(substr $d, $at, 1) ^ 4)' \
		"$tmp/damaged" "$tmp/photos/$1" || bail "no $1 in the image"
}
for key in train/dogs/17.jpg large; do
	flip "$key"
	run stele export "$tmp/damaged" "$tmp/d.tar"
	is 3 "$status" "a damaged sample, $key"
	ok "is named" grep -qF "$key" <<<"$err"
	is "" "$(find "$tmp" -maxdepth 1 -name d.tar -o -maxdepth 1 \
		-name '.stele*')" "and no file is left"
	run stele export -f "$tmp/damaged" "$tmp/mine"
	ok "nor an older one harmed" cmp "$tmp/a.tar" "$tmp/mine"
	stele export "$tmp/damaged" - >"$tmp/d.out" 2>/dev/null
	is 3 $? "stdout: the status says it"
	rm "$tmp/d.out"
done
# The same samples by the ways of cat and extract.
run stele cat "$tmp/damaged" train/dogs/17.jpg
is 0 "$status" "cat: one that is right"
run stele cat "$tmp/damaged" large
is 3 "$status" "cat: large and damaged"
run stele extract "$tmp/damaged" "$tmp/x" large train/cats/1.jpg
is 3 "$status" "extract: large and damaged"
is "train/cats/1.jpg" "$(cd "$tmp/x" && find . -type f -printf '%P\n')" \
	"extract: no part of it is left"
ok "cat: large and right" cmp "$tmp/photos/large" <(stele cat "$tmp/image" large)

# ---- keys that were made to do harm ----

bad=(../outside /absolute a/../../outside . x/. a//b trailing/)
must "$BUILD/tests/cmd/hostile" "$tmp/hostile" good a/good "${bad[@]}"
run stele export "$tmp/hostile" "$tmp/h.tar"
is 1 "$status" "refused keys are a failure"
is ${#bad[@]} "$(grep -c '^stele: refused' <<<"$err")" "each is named"
is "a/good good" "$(tar -tf "$tmp/h.tar" | paste -sd ' ')" "the rest is there"

# ---- headers ----

header() { "$BUILD/tests/cmd/tar-header" "$@" 2>/dev/null | tar -tvf - \
	--full-time --quoting-style=literal 2>/dev/null | tr -s ' ' |
	cut -d' ' -f 3-; }
is "8589934591 1970-01-01 00:00:00 a" "$(header a 8589934591 0)" "8 GiB less 1"
is "8589934592 1970-01-01 00:00:01 a" "$(header a 8589934592 1)" "8 GiB"
is "140737488355327 2242-03-16 12:56:31 a" \
	"$(header a 140737488355327 8589934591)" "the largest sample"
is "0 1969-12-31 23:59:59 a" "$(header a 0 -1)" "before 1970"
is "0 2242-03-16 12:56:32 a" "$(header a 0 8589934592)" "late"
for n in 99 100 101 154 155 156 255 256 257 3999 8192; do
	path=$(printf "%0${n}d" 0)
	is "5 1970-01-01 00:00:00 $path" "$(header "$path" 5 0)" "a name of $n"
	path=${path:0:50}/${path:51}
	is "5 1970-01-01 00:00:00 $path" "$(header "$path" 5 0)" "a path of $n"
done
for n in 98 99 100 101; do # at the edges of the field for names
	path=$(printf "%0100d/%0${n}d" 1 2)
	is "5 1970-01-01 00:00:00 $path" "$(header "$path" 5 0)" "100/$n"
	path=$(printf "%0155d/%0${n}d" 1 2)
	is "5 1970-01-01 00:00:00 $path" "$(header "$path" 5 0)" "155/$n"
	path=$(printf "%0156d/%0${n}d" 1 2)
	is "5 1970-01-01 00:00:00 $path" "$(header "$path" 5 0)" "156/$n"
done
# UTF-8 of whatever kind stays as it is; what only looks like it is binary.
header_says() {
	"$BUILD/tests/cmd/tar-header" "$1" 0 0 | tr -d '\0' |
		grep -ac "hdrcharset=BINARY"
}
for name in $'\303\251' $'e\314\201' $'\360\237\230\200' $'\357\273\277b' \
	$'\357\277\277' $'\364\217\277\277' $'\302\200' $'\001\177'; do
	is 0 "$(header_says "$name")" "text: $(printf %q "$name")"
	ok "as it is" grep -qaF -- "$name" <("$BUILD/tests/cmd/tar-header" "$name" 0 0)
done
for name in $'\355\240\275\355\270\200' $'x\355\240\275' $'\300\257' $'\200'; do
	is 1 "$(header_says "$name")" "binary: $(printf %q "$name")"
	ok "as it is" env LC_ALL=C grep -qaF -- "$name" \
		<("$BUILD/tests/cmd/tar-header" "$name" 0 0)
done
ok "short headers need no pax" test 512 = \
	"$("$BUILD/tests/cmd/tar-header" "$(printf '%0155d/%0100d' 1 2)" 1 1 | wc -c)"

# ---- names that say something else ----

for name in x.tar.gz x.TGZ x.tar.zst x.zip x.parquet x.stele x.tfrec x.tfrecord x.lmdb; do
	run stele export "$tmp/empty-image" "$tmp/$name"
	is 2 "$status" "'$name' is no plain tar archive" || diag "$err"
	ok "and is not made" test ! -e "$tmp/$name"
done
ok "the message says how" grep -q -- "--to=lmdb" <<<"$err"
mkdir "$tmp/nothing"
must stele build -q --allow-empty "$tmp/nothing" "$tmp/empty-image"
for name in x.tar gz; do
	run stele export "$tmp/empty-image" "$tmp/$name"
	is 0 "$status" "'$name' may be one" || diag "$err"
done
run stele export --to=tar "$tmp/empty-image" "$tmp/x.zip"
is 0 "$status" "with --to=tar any" || diag "$err"
run bash -c 'set -o pipefail; stele export "$1" - | gzip | tar -tz' - "$tmp/empty-image"
is 0 "$status" "compressed on the way" || diag "$err"

# ---- interrupted ----

truncate -s 400M "$tmp/photos/larger"
must stele build -q "$tmp/photos" "$tmp/big"
# Until it is complete, the file has no name, or one of .stele*.
# shellcheck disable=SC2154 # pid: of stopped
reached() { [ -n "$(find -L /proc/$pid/fd "$tmp"/.stele* -maxdepth 1 -type f -size +1M \
	! -samefile "$tmp/big" 2>/dev/null)" ]; }
stopped INT "$tmp/i.tar" stele export "$tmp/big" "$tmp/i.tar"
is 130 "$status" "export dies of the signal"
is "" "$(find "$tmp" -maxdepth 1 -name i.tar -o -maxdepth 1 -name '.stele*')" \
	"and leaves nothing"
run stele extract "$tmp/big" "$tmp/y" larger
ok "extract: a large one, whole" cmp "$tmp/photos/larger" "$tmp/y/larger"

done_testing
