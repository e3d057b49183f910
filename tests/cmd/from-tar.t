#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# from-tar.t - images of tar archives: those of the same directory, whatever packed it
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh
requires jq --version
requires bsdtar --version
requires gzip --version

image=$tmp/image.stele
same=(--uuid=3d1a8b9e-51f7-4c0e-9d0c-0a4c4f2b7e11 --time=2026-11-21)

# built [OPTION...] SOURCE...
built() {
	rm -f "$image"
	run stele build --quiet "${same[@]}" "$@" "$image"
}
# is_src WHAT: the image that the directory makes
is_src() {
	is "0 " "$status $err" "$1: is built"
	ok "$1: the image of the directory" cmp "$tmp/wanted" "$image"
}
# damaged PATTERN WHAT: a build that fails, says so, and leaves nothing
damaged() {
	is 1 "$status" "$2: fails"
	ok "$2: says what and where" grep -qE "$1" <<<"$err" || diag "$err"
	ok "$2: leaves no image" test ! -e "$image"
}

src=$tmp/src
mkdir -p "$src/train/cat" "$src/train/dog" "$src/val/cat" "$src/val/$(printf 'd%.0s' {1..150})"
for ((i = 0; i < 60; i++)); do
	for class in train/cat train/dog val/cat; do
		head -c $((i * 997 % 70001)) /dev/urandom >"$src/$class/$i.jpg"
	done
done
echo deep >"$src/val/$(printf 'd%.0s' {1..150})/$(printf 'f%.0s' {1..140})"
echo ü >"$src/val/cat/ü.txt"
echo decomposed >"$src/val/cat/u"$'\xcc\x88'.txt # as names from a Mac; another key than that one
echo raw >"$src/val/cat/"$'\xff'
head -c 300000 /dev/zero >"$src/train/cat/zeros"
must stele build --quiet "${same[@]}" "$src" "$tmp/wanted"
must tar -C "$src" -cf "$tmp/x.tar" .

# ---- what packed it ----

for format in gnu pax oldgnu; do
	must tar -C "$src" --format=$format -cf "$tmp/y.tar" .
	built "$tmp/y.tar"
	is_src "GNU tar, $format"
done
(cd "$src" && must tar -cPf "$tmp/y.tar" ./*)
built "$tmp/y.tar"
is_src "without ./"
for format in gnutar pax; do # these do not know names that are not UTF-8
	must bsdtar -C "$src" --format=$format -cf "$tmp/y.tar" --exclude $'\xff' .
	must tar -C "$src" -rf "$tmp/y.tar" ./val/cat/$'\xff'
	built "$tmp/y.tar"
	is_src "bsdtar, $format"
done
must python3 -c 'import sys, tarfile
with tarfile.open(sys.argv[2], "w") as tar: tar.add(sys.argv[1], "")' "$src" "$tmp/y.tar"
built "$tmp/y.tar"
is_src "Python"
dd if=/dev/zero of="$src/train/dog/0.jpg" bs=1 count=1 seek=5000000 2>/dev/null
must tar -C "$src" -Scf "$tmp/y.tar" .
built "$tmp/y.tar"
ok "sparse: the bytes are those of the file" \
	cmp "$src/train/dog/0.jpg" <(stele cat "$image" train/dog/0.jpg)
truncate -s 300K "$src/train/dog/0.jpg"
for format in gnu posix; do
	must tar -C "$src" --format=$format -Scf "$tmp/y.tar" .
	built "$tmp/y.tar"
	ok "sparse, $format: a file that is one hole" \
		cmp "$src/train/dog/0.jpg" <(stele cat "$image" train/dog/0.jpg)
done
: >"$src/train/dog/0.jpg"

# lowered BYTES: the first member with data of y.tar is stored as so much less, as its header says
lowered() {
	python3 - "$tmp/y.tar" "$1" <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
at = 0
while data[at + 156:at + 157] in b"xgL": # with bytes of their own
    at += 512 + (int(data[at + 124:at + 135], 8) + 511) // 512 * 512
size = int(data[at + 124:at + 135], 8) - int(sys.argv[2])
data[at + 124:at + 136] = b"%011o\0" % size
data[at + 148:at + 156] = b" " * 8
data[at + 148:at + 156] = b"%06o\0 " % sum(data[at:at + 512])
open(sys.argv[1], "wb").write(data)
END
}
mkdir "$tmp/holes"
for ((i = 0; i < 4; i++)); do
	head -c 4096 /dev/zero | tr '\0' "$i" |
		dd of="$tmp/holes/x" bs=4096 seek=$((i * 16)) conv=notrunc status=none
done
truncate -s 300K "$tmp/holes/x"
for format in gnu pax/0.0 pax/0.1 pax/1.0; do
	version=${format#gnu}
	for less in 0 100 4096; do
		must tar -C "$tmp/holes" --format="${format%/*}" \
			${version:+"--sparse-version=${version#pax/}"} -Scf "$tmp/y.tar" x
		must lowered $less
		built "$tmp/y.tar"
		[ $less = 0 ] || damaged "'x': fewer bytes are stored than its map of holes says" \
			"sparse, $format, $less bytes less"
		[ $less != 0 ] || ok "sparse, $format: with a hole at its end" \
			cmp "$tmp/holes/x" <(stele cat "$image" x)
	done
done
# mapped STORED SIZE [OFFSET BYTES]...: y.tar has x, so large, with this map, and y
mapped() {
	must python3 - "$tmp/y.tar" "$@" <<'END'
import sys
def header(name, size, kind, real=0, extents=()):
    h = bytearray(512)
    h[:1], h[100:108], h[156:157], h[257:265] = name, b"0000644\0", kind, b"ustar  \0"
    h[124:136], h[136:148] = b"%011o\0" % size, b"%011o\0" % 0
    for i, number in enumerate(extents):
        h[386 + i * 12:398 + i * 12] = b"%011o\0" % number
    if real:
        h[483:495] = b"%011o\0" % real
    h[148:156] = b" " * 8
    h[148:156] = b"%06o\0 " % sum(h)
    return bytes(h)
stored, size, *extents = map(int, sys.argv[2:])
open(sys.argv[1], "wb").write(header(b"x", stored, b"S", size, extents) + b"A" * stored +
                              header(b"y", 4096, b"0") + b"B" * 4096 + bytes(1024))
END
}
mapped 8192 16384 0 4096 8192 4096
built "$tmp/y.tar"
is "0 8192" "$status $(stele cat "$image" x | tr -d '\0' | wc -c)" "sparse, by hand: is built"
mapped 8192 16384 8192 4096 0 4096
built "$tmp/y.tar"
damaged "'x': its map of holes is out of order" "sparse, backwards"
mapped 8192 8192 0 4096 6144 4096
built "$tmp/y.tar"
damaged "'x': its map of holes is out of order" "sparse, beyond its end"
mapped 4096 8192 0 8192
for option in "" --on-error=skip; do # it looks like one without holes, and was handed on
	built $option "$tmp/y.tar"
	damaged "at byte 0: the member does not end where its size says" "sparse, no hole $option"
done

loop_new 16M
must dd if="$tmp/x.tar" of="$loop" conv=notrunc,fsync status=none
built "$loop"
is_src "a block device"

# ---- compressed, or through a pipe ----

gzip -kc "$tmp/x.tar" >"$tmp/y.gzip"
built "$tmp/y.gzip"
is_src "gzip"
for filter in bzip2 xz zstd lz4; do
	must bsdtar -C "$src" --$filter --format=gnutar --exclude $'\xff' -cf "$tmp/y.$filter" .
	built "$tmp/y.$filter"
	is "0 184" "$status $(stele ls "$image" | wc -l)" "$filter: is built" || diag "$err"
	ok "$filter: samples" cmp "$src/train/dog/59.jpg" <(stele cat "$image" train/dog/59.jpg)
	run stele build --quiet "${same[@]}" - "$tmp/piped" < <(cat "$tmp/y.$filter")
	ok "$filter: the same through a pipe" cmp "$image" "$tmp/piped"
	run stele build --force --quiet "${same[@]}" - "$tmp/piped" < <(cat "$tmp/y.$filter")
	is 0 "$status" "$filter: and over what is there" || diag "$err"
	rm -f "$tmp/piped"
done
built - < <(cat "$tmp/x.tar")
is_src "through a pipe"
built - < <(cat "$tmp/y.gzip")
is_src "gzip, through a pipe"
built - <"$tmp/x.tar"
is_src "redirected"
mkfifo "$tmp/fifo"
cat "$tmp/x.tar" >"$tmp/fifo" &
built "$tmp/fifo"
is_src "a FIFO, which is opened once"
exec 9<>"$tmp/fifo" # it does not end
rm "$image"
stele build "$tmp/fifo" "$image" 2>"$tmp/stopped" 9>&- &
pid=$!
head -c 1000000 "$tmp/x.tar" >&9 # which is read
kill -TERM $pid
for ((i = 0; i < 600; i++)); do
	kill -0 $pid 2>/dev/null || break
	sleep 0.1
done
exec 9>&-
wait $pid 2>/dev/null
is "143 0" "$? $((i == 600))" "SIGTERM ends what waits for a pipe"
ok "which is said, and leaves nothing" \
	test "$(<"$tmp/stopped")" = "stele: Terminated: stopped" -a ! -e "$image"
split -b 1000000 "$tmp/x.tar" "$tmp/part."
for part in "$tmp"/part.*; do gzip -c "$part"; done >"$tmp/y.members"
head -c 512 /dev/zero >>"$tmp/y.members"
built "$tmp/y.members"
is_src "gzip of several members"

# ---- shards, names, formats ----

must tar -C "$src" -cf "$tmp/shard-08.tar" train/cat
must tar -C "$src" -czf "$tmp/shard-09.tar" train/dog
must tar -C "$src" -cf "$tmp/shard-10.tar" val
built "$tmp/shard-08.tar" "$tmp/shard-09.tar" "$tmp/shard-10.tar"
is_src "shards"
built "$tmp/shard-{08..10}.tar"
is_src "a range in braces"
built "$tmp/{shard-08,other}.tar"
ok "what does not exist is named" grep -q "other.tar" <<<"$err" || diag "$err"
built "$tmp/shard-{10,0{8,9}}.tar"
is 1 "$status" "braces do not nest"
ok "and stay" grep -qF "shard-{10,0" <<<"$err" || diag "$err"
built "$tmp/{shard-10,shard-08}.tar" "$tmp/shard-0{9..9}.tar"
is_src "lists and several patterns"
must tar -C "$src" -cf "$tmp/again.tar" train/cat/1.jpg
built "$tmp/shard-08.tar" "$tmp/again.tar"
is 1 "$status" "a key in two shards"
ok "both places, and what to do" grep -zq \
	"shard-08.tar' at byte.*again.tar' at byte.*hint: keys are unique" <<<"$err" || diag "$err"
cp "$tmp/x.tar" "$tmp/{1..2}.tar"
built "$tmp/{1..2}.tar"
is_src "a name that exists"
built --from=tar "$tmp/x.tar"
is_src "--from=tar"
built --from=dir "$src"
is_src "--from=dir"
built --from=paper "$src"
is 2 "$status" "--from: another one is wrong usage"
ok "and the list is printed" grep -q "must be dir.*tar" <<<"$err" || diag "$err"
built --from=dir "$tmp/x.tar"
is 1 "$status" "a file is no directory"
built "$tmp/wanted"
is 1 "$status" "an image is no source"
ok "and copy is named" grep -q "^hint: 'stele copy" <<<"$err"
built "$src/train/cat/1.jpg"
is 1 "$status" "a file of no known format fails"
ok "and the list is printed" \
	grep -q "cannot tell the format of .*1.jpg'.*--from: dir.*tar" <<<"$err"
ok "and what a picture wants" grep -q "^hint: .*name the directory" <<<"$err"
tar cf "$tmp/one.tar" -C "$src" train/cat/1.jpg
head -c 20480 /dev/zero >"$tmp/zeros.tar"
for way in "" --from=webdataset; do
	# shellcheck disable=SC2086 # none
	built $way "$tmp/one.tar" "$tmp/wanted"
	is 1 "$status" "an image is no shard, either $way"
	ok "and is called that" grep -q "^stele: '$tmp/wanted' holds an image, which is no `
		`source" <<<"$err" || diag "$err"
	# shellcheck disable=SC2086 # none
	built $way "$tmp/one.tar" "$tmp/zeros.tar"
	is "0 stele: warning: '$tmp/zeros.tar' has no samples" "$status $err" "nor are zeros $way"
done
built - </dev/null
is "1 stele: 'standard input' is empty" "$status $(head -n 1 <<<"$err")" "nothing on stdin"
built --from=tar "$src/train/cat/1.jpg"
damaged "1.jpg' at byte 0: " "what is no archive"
built - "$tmp/x.tar" </dev/null
is 2 "$status" "standard input is a source of its own"
built "$src" "$src"
is 1 "$status" "and so is a directory"
built --follow "$tmp/x.tar"
is 2 "$status" "--follow is for directories"
built --label-from=none "$tmp/x.tar"
is 1 "$(stele info --json "$image" | jq '.snapshot.fields | length')" \
	"--label-from=none"
run stele build --dry-run --json "$tmp/x.tar"
is "0 185" "$status $(field "$out" .samples)" "a dry run" || diag "$out$err"

# ---- what is no sample ----

mkdir "$tmp/odd" && echo x >"$tmp/odd/file"
ln -s file "$tmp/odd/link" && mkfifo "$tmp/odd/fifo"
must tar -C "$tmp/odd" -cf "$tmp/odd.tar" .
run stele build --json "$tmp/odd.tar" "$tmp/odd.stele"
is "0 1 1" "$status $(field "$out" '.skipped | "\(.symlink.count) \(.special.count)"')" \
	"links and fifos are skipped" || diag "$err"
ln "$tmp/odd/file" "$tmp/odd/hard"
must tar -C "$tmp/odd" -cf "$tmp/odd.tar" .
built "$tmp/odd.tar"
damaged "is a hard link to 'file'|is a hard link to 'hard'" "a hard link"
must tar -C "$tmp/odd" --hard-dereference -cf "$tmp/odd.tar" .
built "$tmp/odd.tar"
is "file hard" "$(stele ls "$image" | paste -sd ' ')" "--hard-dereference"
must cp "$tmp/odd.tar" "$tmp/before.tar"
for text in later latest; do
	echo $text >"$tmp/odd/file"
	must tar -C "$tmp/odd" -rf "$tmp/odd.tar" ./file
done
gzip -c "$tmp/odd.tar" >"$tmp/odd.tgz"
for source in "$tmp/odd.tar" "$tmp/odd.tgz" -; do
	built --from=tar "$source" < <(cat "$tmp/odd.tar")
	is "0 file hard latest" "$status $(stele ls "$image" | xargs) $(stele cat "$image" file)" \
		"a path that is there again: the last one, ${source##*/}" || diag "$err"
	run stele build -n "$source" < <(cat "$tmp/odd.tar")
	is 1 "$(grep -c "^stele: 2 members were replaced by later ones of the same" <<<"$err")" \
		"is said once" || diag "$err"
done
built "$tmp/before.tar"
for n in 2 3; do
	run stele append --json --update "$tmp/odd.tar" "$image@v$n"
	is "0 $((n == 2)) latest" "$status $(field "$out" .updated) $(stele cat "$image@v2" file)" \
		"append --update to v$n" || diag "$err"
done
built "$tmp/before.tar" "$tmp/odd.tgz"
is 1 "$status" "a path that two archives have"
ok "is named, with both places" grep -qE \
	"the key 'file' twice: '.*before.tar' at byte [0-9]+, '.*odd.tgz' at byte [0-9]+, decom" \
	<<<"$err" || diag "$err"
tar -b1 -C "$tmp" -cf - odd.tar | head -c -512 >"$tmp/one-block"
for count in 0 1 511 512; do
	(cat "$tmp/one-block" && head -c $count <<<"$(printf '%0600d' 1)") >"$tmp/part.tar"
	built "$tmp/part.tar"
	is $((count > 0)) "$status" "a block of zeros, and $count bytes" || diag "$err"
	(cat "$tmp/one-block" && head -c $count /dev/zero) >"$tmp/part.tar"
	built "$tmp/part.tar"
	is 0 "$status" "and $count zeros" || diag "$err"
done
cat "$tmp/x.tar" "$tmp/odd.tar" >"$tmp/two.tar"
gzip -c "$tmp/two.tar" >"$tmp/two.tgz"
for source in two.tar two.tgz; do
	built "$tmp/$source"
	is 1 "$status" "an archive behind another one, $source"
	ok "says so, $source" grep -qE \
		"$source' at byte [0-9]+(, decompressed)?: something follows the end" <<<"$err" ||
		diag "$err"
	built --on-error=skip "$tmp/$source"
	is 0 "$status" "--on-error=skip takes the first one, $source" || diag "$err"
done
is "$(stele ls "$tmp/wanted" | wc -l)" "$(stele ls "$image" | wc -l)" "all of it"
loop=$(losetup -r -f --show "$tmp/two.tar") || bail losetup
cleanup loop_drop "$loop"
built --from=tar "$loop"
is 0 "$status" "a device that held more before" || diag "$err"
ok "of which is warned" grep -qE "warning: .* at byte [0-9]+: what is behind the end" <<<"$err" ||
	diag "$err"

# ---- damage ----

size=$(stat -c %s "$tmp/x.tar")
head -c 1000000 "$tmp/x.tar" >"$tmp/cut.tar"
built "$tmp/cut.tar"
damaged "cut.tar' at byte [0-9]+: .*is cut short" "cut in a file"
built --on-error=skip "$tmp/cut.tar"
is 0 "$status" "--on-error=skip takes what is there"
ok "which is less" test "$(stele ls "$image" | wc -l)" -lt 184
run stele verify "$image"
is 0 "$status" "and sound"
end=$(perl -0777 -ne 's/\0+\z//; print int((length() + 511) / 512) * 512' "$tmp/x.tar")
head -c "$end" "$tmp/x.tar" >"$tmp/cut.tar"
built "$tmp/cut.tar"
damaged "cut.tar' at byte $end: it ends without" "cut between files"
begin=$(grep -aob ustar "$tmp/x.tar" | tail -n 1)
begin=$((${begin%%:*} - 257))
head -c $((begin + 200)) "$tmp/x.tar" >"$tmp/cut.tar"
built "$tmp/cut.tar"
damaged "cut.tar' at byte $begin: " "cut in a header"
: >"$tmp/cut.tar"
built "$tmp/cut.tar"
is 1 "$status" "an empty file is of no format"
{ head -c 512 "$tmp/x.tar"; printf '\1'; tail -c +514 "$tmp/x.tar"; } >"$tmp/flip.tar"
built "$tmp/flip.tar"
damaged "flip.tar' at byte 512: .*amaged" "a header that is damaged"
built --on-error=skip --label-from=none "$tmp/flip.tar"
is 0 "$status" "--on-error=skip goes on behind it"
ok "and finds the others" test "$(stele ls "$image" | wc -l)" -ge 180

for filter in gzip bzip2 xz lz4; do
	size=$(stat -c %s "$tmp/y.$filter")
	head -c $((size / 3)) "$tmp/y.$filter" >"$tmp/cut"
	built "$tmp/cut"
	damaged "cut' at byte [0-9]+, decompressed: " "$filter, cut"
	head -c $((size - 2)) "$tmp/y.$filter" >"$tmp/cut"
	built "$tmp/cut"
	damaged "cut' at byte [0-9]+, decompressed: " "$filter, cut at the end"
	{
		head -c $((size / 2)) "$tmp/y.$filter"
		printf '\125\252\125\252'
		tail -c +$((size / 2 + 5)) "$tmp/y.$filter"
	} >"$tmp/flip"
	built "$tmp/flip"
	damaged "flip' at byte [0-9]+, decompressed: " "$filter, overwritten"
done

# Random bytes are stored as they are: what changes among them shows behind them alone.
mkdir "$tmp/random" "$tmp/random/a" "$tmp/random/b"
for i in {0..39}; do head -c 20000 /dev/urandom >"$tmp/random/a/$i"; done
cp "$tmp/random/a/0" "$tmp/random/b/"
must tar -C "$tmp/random" -cf "$tmp/a.tar" a
must tar -C "$tmp/random" -cf "$tmp/b.tar" b
digest() { stele info --json "$image" | jq -r .snapshot.digest; }
built --label-from=none "$tmp/b.tar"
wanted=$(digest)
for filter in gzip bzip2 xz zstd lz4; do
	$filter -c "$tmp/a.tar" 2>"$tmp/null" >"$tmp/flip" || continue
	$filter -c "$tmp/b.tar" >"$tmp/sound"
	# Within a file: between two, where lz4 copies zeros, it may copy others for the same.
	I=$(($(stat -c %s "$tmp/flip") / 2 + 9000)) perl -0777 -pi -e \
		'substr($_, $ENV{I}, 1) ^= "\1"' "$tmp/flip"
	built --from=tar "$tmp/flip"
	damaged "flip' at byte [0-9]+, decompressed: " "$filter, one bit"
	for shards in "flip sound" "sound flip"; do
		run stele build --json -f "${same[@]}" --on-error=skip --label-from=none \
			"$tmp/${shards% *}" "$tmp/${shards#* }" "$image"
		is "0 1 $wanted" "$status $(field "$out" .skipped.unreadable.count) $(digest)" \
			"$filter: --on-error=skip takes nothing of $shards" || diag "$err"
		ok "$filter: --on-error=skip says why" \
			grep -q ': nothing of the file can be trusted' <<<"$out" || diag "$out"
	done
	rm "$image"
	built --on-error=skip --from=tar "$tmp/flip"
	damaged "source has no samples" "$filter: --on-error=skip, and nothing else"
	built --on-error=skip --from=tar - < <(cat "$tmp/flip")
	damaged "input' at byte .* through a pipe, of which nothing is left out" "$filter: a pipe"
done
TMPDIR=/nonexistent built "$tmp/y.gzip"
damaged "temporary file in '/nonexistent': No such file" "no place for a temporary file"
ok "which is named" grep -q "^hint: set TMPDIR to a directory" <<<"$err" || diag "$err"

# ---- append ----

must stele build --quiet "$tmp/shard-{08,09}.tar" "$tmp/grown@v1"
run stele append --json "$tmp/x.tar" "$tmp/grown@v2"
is "0 64" "$status $(field "$out" .added)" "append: what is new" || diag "$err"
echo changed >"$src/train/cat/7.jpg"
must tar -C "$src" -cf "$tmp/x.tar" .
run stele append --json --update "$tmp/x.tar" "$tmp/grown@v3"
is "0 0 1" "$status $(field "$out" .added) $(field "$out" .updated)" "--update: what has changed"
run stele append --json --update --quick "$tmp/x.tar" "$tmp/grown@v4"
is "0 false" "$status $(field "$out" .created)" "--quick: nothing" || diag "$out$err"
rm "$src/train/cat/8.jpg"
run bash -c 'tar -C "$1" -c . | gzip | stele append --json --delete-missing - "$2"' \
	bash "$src" "$tmp/grown@v5"
is "0 1" "$status $(field "$out" .deleted)" "--delete-missing, through a pipe" || diag "$err"

# ---- extended headers ----

# libarchive goes on behind one that it cannot parse, with half of the name.
long=$(printf 'n%.0s' {1..120})
mkdir "$tmp/long" && echo hello >"$tmp/long/$long"
must tar --format=posix -C "$tmp/long" -cf "$tmp/long.tar" "$long"
at=$(grep -abo "130 path=" "$tmp/long.tar" | head -n 1 | cut -d: -f1)
printf 2 | dd of="$tmp/long.tar" bs=1 seek="$at" conv=notrunc status=none || bail "dd"
run stele build -q --label-from=none "$tmp/long.tar" "$tmp/malformed"
is 1 "$status" "an extended header with another length"
ok "is named, with its place" grep -qi "long.tar' at byte [0-9]*: .*malformed" <<<"$err"
ok "and nothing is built" test ! -e "$tmp/malformed"

# ---- a damaged header ----

# libarchive goes on block by block, until one is a header again.
mkdir "$tmp/hurt" && for n in 1 2 3; do head -c 20000 /dev/urandom >"$tmp/hurt/$n"; done
must tar --sort=name -C "$tmp/hurt" -cf "$tmp/hurt.tar" 1 2 3
printf x | dd of="$tmp/hurt.tar" bs=1 seek=$((512 + 20480 + 150)) conv=notrunc status=none ||
	bail "dd"
run stele build --json --on-error=skip "$tmp/hurt.tar" "$tmp/hurt.stele"
is "0 2 1 '$tmp/hurt.tar' at byte 20992" "$status $(jq -r '"\(.samples) " +
	(.skipped.unreadable | "\(.count) \(.first[].key | split(":")[0])")' <<<"$out")" \
	"what it makes of the member is one place" || diag "$out$err"

# ---- members above the directory ----

must tar -P -cf "$tmp/above.tar" -C "$tmp/long" "../long/$long"
run stele build -n --label-from=none "$tmp/above.tar"
is "0 stele: warning: extract, mount and export --to=tar leave out 1 key that no file can have, `
	`such as '../long/$long': '..' in its path" "$status $err" "are warned of"

# ---- back ----

run stele export "$tmp/grown@v5" "$tmp/back.tar"
mkdir "$tmp/back" && must tar -C "$tmp/back" -xf "$tmp/back.tar"
ok "exported and unpacked: the directory" diff -r "$src" "$tmp/back"
built "$tmp/back.tar"
rm -f "$tmp/again"
must stele build --quiet "${same[@]}" "$src" "$tmp/again"
ok "and built from what was exported: the same image" cmp "$tmp/again" "$image"

done_testing
