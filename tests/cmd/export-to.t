#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# export-to.t - what is exported with its fields is read back, and is the same
. "${0%/*}/../tap.sh"
. "${0%/*}/targets.sh"
requires jq --version
requires tar --version

fixtures=$PWD/tests/fixture/from
# again NAME OPTIONS...: exports $tmp/a and builds $tmp/b from that
again() {
	local file=$tmp/$1
	shift
	rm -f "$file" "$tmp/b"
	run stele export -q "${to[@]}" "$tmp/a" "$file" && [ "$status" = 0 ] || return
	run stele build -q "$@" "$file" "$tmp/b"
}
# values IMAGE: keys and scalar fields
values() { stele ls --fields --json "$1" | jq -cS '[.key, .fields]' | sort; }
# schema IMAGE: fields, whatever their order
schema() {
	stele info --json "$1" | jq -cS '.snapshot.fields | sort_by(.name)'
}
# same WHAT: bytes, numbers, classes and types of a and b
same() {
	is 0 "$status" "$1: written and read" || diag "$err"
	is "$(schema "$tmp/a")" "$(schema "$tmp/b")" "$1: the same fields"
	is "$(values "$tmp/a" | sum /dev/stdin)" "$(values "$tmp/b" | sum /dev/stdin)" \
		"$1: the same values"
	run stele diff "$tmp/a" "$tmp/b"
	is "0 " "$status $out" "$1: no difference" || diag "$err"
}

# spared FORMAT FILE [NAME]: FILE, an image, is not replaced by an export to NAME
spared() {
	local before name=${3:-$2} option
	before=$(sum "$2")
	for option in -q --force; do
		run stele export --to="$1" $option "$tmp/a" "$name"
		is "1 $before" "$status $(sum "$2")" "$1 $option ${2##*/}: an image is not replaced"
		ok "$1 $option: what is said" grep -q "^stele: cannot replace '$2': .*an image$" \
			<<<"$err" || diag "$err"
		ok "$1 $option: what to do next" grep -q "^hint: give the file" <<<"$err"
	done
}

# ---- WebDataset ----

must stele build -q --from=webdataset "$fixtures/webdataset.tar" "$tmp/a"
to=(--to=webdataset)
again a.tar --from=webdataset
same "WebDataset"
must stele export -q --to=webdataset "$tmp/b" "$tmp/b.tar" --force
ok "WebDataset: and once more" cmp <(tar -xOf "$tmp/a.tar") <(tar -xOf "$tmp/b.tar")
cp "$tmp/b" "$tmp/broken"
dd if=/dev/zero of="$tmp/broken" bs=4096 count=8 seek=1 conv=notrunc status=none
cp "$tmp/b" "$tmp/cut"
truncate -s -4096 "$tmp/cut"
must stele map "$tmp/b" pets
for format in tar webdataset tfrecord; do
	for file in a b broken cut; do spared $format "$tmp/$file"; done
done
must stele unmap pets

rm "$tmp/a"
mkdir -p "$tmp/src/cats" "$tmp/src/dogs"
for i in 1 2 3; do
	echo "cat $i" >"$tmp/src/cats/$i.jpg"
	echo "dog $i" >"$tmp/src/dogs/$i.jpg"
done
: >"$tmp/src/dogs/1.jpg"
echo stray >"$tmp/src/stray.jpg"
must stele build -q "$tmp/src" "$tmp/a"
again photos.tar --from=webdataset
is 0 "$status" "a directory: written and read" || diag "$err"
is "cats/1.cls cats/1.jpg cats/2.cls cats/2.jpg cats/3.cls cats/3.jpg dogs/1.cls dogs/1.jpg \
dogs/2.cls dogs/2.jpg dogs/3.cls dogs/3.jpg stray.jpg" \
	"$(tar -tf "$tmp/photos.tar" | sort | paste -sd ' ')" "a directory: names of members"
is "cats dogs" "$(tar -xOf "$tmp/photos.tar" cats/2.cls) $(tar -xOf "$tmp/photos.tar" dogs/1.cls)" \
	"classes by their names"
is "cats/1:0 cats/2:0 cats/3:0 dogs/1:1 dogs/2:1 dogs/3:1 stray:-1" \
	"$(stele ls --fields --json "$tmp/b" | jq -sr 'sort_by(.key)[] | "\(.key):\(.fields.cls)"' |
		paste -sd ' ')" "which are the same again"
is "cat 2" "$(stele cat --field=jpg "$tmp/b" cats/2)" "and bytes"
echo png >"$tmp/src/cats/1.png"
echo dot >"$tmp/src/.hidden"
rm "$tmp/a"
must stele build -q "$tmp/src" "$tmp/a"
run stele export --to=webdataset "$tmp/a" "$tmp/c.tar"
is 1 "$status" "keys that WebDataset does not tell apart"
ok "are refused" grep -q "refused 'cats/1.png': a sample before it has the same name" <<<"$err" ||
	diag "$err"
ok "and tar is there for them" grep -q "^hint: --to=tar takes such keys" <<<"$err" || diag "$err"
ok "and so are those that it ignores" grep -q "refused '.hidden': WebDataset ignores" <<<"$err"
printf '{"key": "../up"}\n{"key": "down"}\n' >"$tmp/up.jsonl"
must stele build -q "$tmp/up.jsonl" "$tmp/up"
run stele export --to=webdataset "$tmp/up" "$tmp/up.tar"
ok "but not for what no archive takes" \
	grep -q "^hint: 'stele cat' reads them" <<<"$err" || diag "$err"

mkdir "$tmp/hidden"
for ((i = 0; i < 200; i++)); do echo "$i" >"$tmp/hidden/.$i"; done
echo x >"$tmp/hidden/x.txt"
must stele build -q "$tmp/hidden" "$tmp/h"
run stele export --to=webdataset "$tmp/h" "$tmp/h.tar"
is "1 10 1" "$status $(grep -c "refused '" <<<"$err") $(grep -c \
	"190 more: refused: WebDataset ignores" <<<"$err")" "many of a kind are counted"
ok "and all are" grep -q "^stele: 200 keys refused" <<<"$err" || diag "$err"

# Larger than what is read ahead.
mkdir "$tmp/large"
head -c 40M /dev/urandom >"$tmp/large/x.bin"
rm "$tmp/a"
must stele build -q "$tmp/large" "$tmp/a"
again large.tar --from=webdataset
is "0 $(sum "$tmp/large/x.bin")" "$status $(stele cat --field=bin "$tmp/b" x | sum /dev/stdin)" \
	"a large sample" || diag "$err"
rm -r "$tmp/large"

rm "$tmp/a"
must stele build -q "$fixtures/rows.npy" "$tmp/a"
run stele export --to=webdataset "$tmp/a" "$tmp/d.tar"
is 0 "$status" "tensors: WebDataset has .npy files" || diag "$err"
mkdir "$tmp/rows"
cat >"$tmp/npy.py" <<'END'
import ast, struct, sys
def load(path):
    data = open(path, "rb").read()
    size = struct.unpack("<H", data[8:10])[0]
    assert data[:8] == b"\x93NUMPY\1\0" and (size + 10) % 64 == 0 and data[9 + size:][:1] == b"\n"
    return ast.literal_eval(data[10:10 + size].decode()), data[10 + size:]
if len(sys.argv) == 2:
    print(load(sys.argv[1])[0])
else:
    head, rows = load(sys.argv[1])
    for path in sys.argv[2:]:
        row = load(path)
        assert row[0]["descr"] == head["descr"] and row[0]["shape"] == head["shape"][1:], row[0]
        assert rows.startswith(row[1]) and row[1]
        rows = rows[len(row[1]):]
    assert not rows
END
must tar -C "$tmp/rows" -xf "$tmp/d.tar"
ok "which are the rows of the array" python3 "$tmp/npy.py" "$fixtures/rows.npy" "$tmp"/rows/*/*.npy
printf '{"key":"a","l":[1,2],"m":[0.5],"t.npy":[3]}\n{"key":"b","l":[7,8],"m":[],"t.npy":[4]}\n' \
	>"$tmp/lists.jsonl"
rm "$tmp/a"
must stele build -q "$tmp/lists.jsonl" "$tmp/a"
must stele export --to=webdataset "$tmp/a" "$tmp/l.tar"
is "a.l.npy a.m.npy a.t.npy b.l.npy b.m.npy b.t.npy" "$(tar -tf "$tmp/l.tar" | sort | xargs)" \
	"tensors: names of members"
must tar -C "$tmp/rows" -xf "$tmp/l.tar"
heads() { for name; do python3 "$tmp/npy.py" "$tmp/rows/$name.npy"; done; }
is "{'descr': '<i8', 'fortran_order': False, 'shape': (2,)}
{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}
{'descr': '<f8', 'fortran_order': False, 'shape': (0,)}" "$(heads a.l a.m b.m)" \
	"tensors: their shapes"
is "7 8" "$(tail -c 16 "$tmp/rows/b.l.npy" | od -An -t d8 | xargs)" "tensors: their bytes"
printf '{"x":[1],"x.npy":"text"}\n' >"$tmp/lists.jsonl"
rm "$tmp/a"
must stele build -q "$tmp/lists.jsonl" "$tmp/a"
run stele export --to=webdataset "$tmp/a" "$tmp/n.tar"
is "1 " "$status $(ls "$tmp/n.tar" 2>/dev/null)" "tensors: not over another field"
ok "says so" grep -q "field 'x' is a tensor, and another field has the name" <<<"$err" ||
	diag "$err"
ok "and what has" grep -q "^hint: 'python3 -m stele.parquet export' writes all fields" <<<"$err"
printf '{"id":"a","key":"text","x":[1]}\n' >"$tmp/keyed.jsonl"
must stele build -q --force --key=id "$tmp/keyed.jsonl" "$tmp/a"
run stele export --to=tfrecord --example "$tmp/a" "$tmp/n.tfrecord"
is "hint: 'stele extract --field=NAME' writes one field" "$(grep hint <<<"$err")" \
	"which a table of Parquet has not, whose keys are a column 'key'" || diag "$err"

# named CLASS...: exported; what is warned of
named() {
	rm -rf "$tmp/named" "$tmp/a" "$tmp/k.tar"
	for class; do mkdir -p "$tmp/named/$class" && echo x >"$tmp/named/$class/x.jpg"; done
	must stele build -q "$tmp/named" "$tmp/a"
	run stele export --to=webdataset "$tmp/a" "$tmp/k.tar"
	is 0 "$status" "classes $(echo "$*" | xargs): written" || diag "$err"
}
numbers="^stele: warning: all classes of field 'label' have numbers as names"
named 1 2.5 10
ok "numbers" grep -q "$numbers" <<<"$err" || diag "$err"
named 1 2 x 007
ok "some are, not all: no warning" test -z "$(grep warning <<<"$err")" || diag "$err"
must stele snapshot create "$tmp/a@v2" --delete x/x.jpg --delete 007/x.jpg
run stele export --force --to=webdataset "$tmp/a@v2" "$tmp/k.tar"
ok "all that samples have are" grep -q "$numbers" <<<"$err" || diag "$err"
named " 5" "6 " 7
ok "numbers among blanks" grep -q "$numbers" <<<"$err" || diag "$err"
for odd in "dog
" " "; do
	named cat "$odd"
	ok "a line feed, and a blank" grep -q "^stele: warning: class '.*' of field 'label' has a" \
		<<<"$err" || diag "$err"
done
run stele export -q --force --to=webdataset "$tmp/a" "$tmp/k.tar"
is "0 " "$status $err" "quiet: no warning"

# clash ROWS: exported; what is refused
clash() {
	# shellcheck disable=SC2059 # the text is a format
	printf "$1" >"$tmp/clash.jsonl"
	rm -f "$tmp/a" "$tmp/k.tar"
	must stele build -q "$tmp/clash.jsonl" "$tmp/a"
	run stele export --to=webdataset "$tmp/a" "$tmp/k.tar"
}
for pair in txt:txt seg.png:seg.png TXT:txt cls:label; do
	clash '{"key":"d/a.'"${pair%:*}"'","data":"IMAGE","'"${pair#*:}"'":"x"}\n'\
'{"key":"d/b.jpg","data":"y"}\n'
	is "1 d/b.jpg" "$status $(tar -tf "$tmp/k.tar" | grep -v 'd/b\.[^j]' | xargs)" \
		"extension and field $pair: no two members of one name" || diag "$err"
	ok "$pair: says so" grep -q "refused 'd/a.*': another field has the name of" <<<"$err"
done
clash '{"key":"a","JPG":"x","jpg":"y"}\n'
is "1 " "$status $(ls "$tmp/k.tar" 2>/dev/null)" "fields that differ in case are refused"
ok "says so" grep -q "has the extension of another field" <<<"$err" || diag "$err"
clash '{"key":"a","data":[1],"Data":[2]}\n'
is "1 " "$status $(ls "$tmp/k.tar" 2>/dev/null)" "also if one is a tensor called data"
clash '{"key":"a.a","data":"1"}\n{"key":"a.b/c","data":"2"}\n{"key":"a.c","data":"3"}\n'
is "1 a.a a.b/c.data" "$status $(tar -tf "$tmp/k.tar" | xargs)" "one name, others in between"

# A sample without any member would not be there.
printf 'key,label,score\na,,\nb,cat,\nc,,0.5\n' >"$tmp/bare.csv"
rm "$tmp/a"
must stele build -q "$tmp/bare.csv" "$tmp/a"
to=(--to=webdataset)
again bare.tar --from=webdataset
is '0 [["a",-1],["b",0],["c",-1]]' "$status $(stele ls --fields --json "$tmp/b" |
	jq -sc '[.[] | [.key, .fields.cls]]')" "samples without values are samples" || diag "$err"

# ---- TFRecord ----

rm "$tmp/a"
must stele build -q "$fixtures/records.tfrecord" "$tmp/a"
to=(--to=tfrecord)
again records.tfrecord
same "TFRecord"
ok "TFRecord: byte for byte" cmp "$fixtures/records.tfrecord" "$tmp/records.tfrecord"
rm "$tmp/a"
must stele build -q --example --key=image/name "$fixtures/examples.tfrecord" "$tmp/a"
to=(--to=tfrecord --example)
again examples.tfrecord --example
same "Examples"
printf '%s\n' '{"x":0.1,"y":0.5,"z":1e300}' '{"x":0.3,"y":NaN,"z":1}' >"$tmp/reals.jsonl"
rm "$tmp/b"
must stele build -q "$tmp/reals.jsonl" "$tmp/b"
run stele export --to=tfrecord --example "$tmp/b" "$tmp/r.tfrecord"
is "0 2 x z" "$status $(wc -l <<<"$err") $(sed -n "s/.*warning: field '\(.\)' is f64.*/\1/p" \
	<<<"$err" | xargs)" "Examples: what is rounded is said once a field" || diag "$err"
run stele export -fq --to=tfrecord --example "$tmp/b" "$tmp/r.tfrecord"
is "0 " "$status $err" "not with -q"
printf '%s\n' '{"label":"cat","n":1}' '{"label":"dog","n":2}' >"$tmp/classes.jsonl"
must stele build -fq "$tmp/classes.jsonl" "$tmp/b"
run stele export -f --to=tfrecord --example "$tmp/b" "$tmp/r.tfrecord"
is "0 stele: warning: field 'label' has classes, of which an Example gets the numbers without the \
names, which 'stele info' lists" "$status $err" "Examples: names of classes that are lost are said"
run stele export -fq --to=tfrecord --example "$tmp/b" "$tmp/r.tfrecord"
is "0 " "$status $err" "not with -q, either"
run stele export --to=tfrecord "$tmp/a" "$tmp/e.tfrecord"
is 1 "$status" "several fields want --example"
ok "says so" grep -q "samples have the fields '.*', '.*' (--field takes one, --example all)" \
	<<<"$err" || diag "$err"
run stele export --example "$tmp/a" "$tmp/e.tfrecord"
is 2 "$status" "--example goes with TFRecord"
run stele export --to=zip "$tmp/a" "$tmp/e.zip"
is 2 "$status" "a format that is none"

# ---- LMDB ----

if stele export --help | grep -q lmdb && stele __complete build --from=lm | grep -q lmdb; then
	rm "$tmp/a"
	mkdir "$tmp/env"
	must tree_photos "$tmp/photos"
	for i in $(seq 70); do # more than two transactions
		truncate -s 1M "$tmp/photos/$i.zeros"
	done
	for size in 2000 2010 2020 2030 4070 4080 4090; do # where values get pages of their own
		for key in k kk kkk kkkk; do
			head -c $size /dev/urandom >"$tmp/photos/$size.$key"
		done
	done
	head -c 40M /dev/urandom >"$tmp/photos/large"
	must stele build -q --label-from=none "$tmp/photos" "$tmp/a"
	must mkdir "$tmp/taken"
	must cp "$tmp/b" "$tmp/taken/data.mdb"
	spared lmdb "$tmp/taken/data.mdb"
	spared lmdb "$tmp/taken/data.mdb" "$tmp/taken"
	to=(--to=lmdb)
	again a.lmdb --from=lmdb
	same "LMDB"
	run stele build -n "$tmp/a.lmdb"
	is 0 "$status" "LMDB: is detected" || diag "$err"
	must stele export -q --to=lmdb "$tmp/a" "$tmp/env"
	ok "LMDB: a directory gets data.mdb" cmp "$tmp/a.lmdb" "$tmp/env/data.mdb"
	is "a.lmdb data.mdb" "$(cd "$tmp" && echo a.lmdb* env/* | sed 's,env/,,')" \
		"LMDB: no lock file, the same bytes"
	run stele export --to=lmdb "$tmp/a" "$tmp/env"
	ok "LMDB: one that exists stays" grep -q "'$tmp/env/data.mdb': it exists" <<<"$err" ||
		diag "$err"
	prefix=$(printf '%0505d' 0)
	run stele export --to=lmdb --prefix="$prefix" "$tmp/a" "$tmp/long.lmdb"
	is "1 " "$status $(ls "$tmp/long.lmdb" 2>/dev/null)" "LMDB: a key that is too long"
	ok "LMDB: is named" grep -q "'1.zeros' has a key of 512 bytes, those of LMDB have 511" \
		<<<"$err" || diag "$err"
	# LMDB writes a value with its head at once, and Linux 2 GiB less a page of that.
	page=$(getconf PAGESIZE)
	most=$((2147483647 / page * page - 16))
	for size in "$most" $((most + 1)); do
		must cp "$tmp/a" "$tmp/huge"
		must "$BUILD/tests/cmd/forge" size "$tmp/huge" "$size"
		run stele export -q --to=lmdb "$tmp/huge" "$tmp/huge.lmdb"
		is "$((size > most))" "$status" "LMDB: a value of $size bytes" || diag "$err"
		rm -f "$tmp/huge" "$tmp/huge.lmdb"
	done
	ok "LMDB: is named, with what can be" grep -q \
		"'1.zeros' has $size bytes, values of LMDB have $most at most" <<<"$err" ||
		diag "$err"
	(ulimit -f 40000 && stele export --to=lmdb "$tmp/a" "$tmp/short.lmdb" 2>"$tmp/err")
	is "1 stele: cannot write '$tmp/short.lmdb': File too large" "$? $(head -n 1 "$tmp/err")" \
		"LMDB: a file that cannot be written"
	is "" "$(find "$tmp" -maxdepth 1 -name short.lmdb -o -maxdepth 1 -name '.stele*')" \
		"LMDB: is not left"
	run stele export --to=lmdb "$tmp/a" -
	is 2 "$status" "LMDB: not to stdout"
	rm -r "$tmp/photos"

	# What a process has open is not replaced under it, nor found with what it has left.
	for env in "$tmp/env" "$tmp/env/data.mdb"; do
		"$BUILD/tests/cmd/lmdb-writer" "$tmp/env" 1 10 1000000 &
		writer=$!
		for ((i = 0; i < 500; i++)); do
			[ ! -s "$tmp/env/lock.mdb" ] || break
			sleep 0.01
		done
		before=$(stat -c %i "$tmp/env/data.mdb")
		run stele export -f --to=lmdb "$tmp/a" "$env"
		is "1 stele: cannot replace '$tmp/env/data.mdb': a process has that environment `
			`open" "$status ${err%%$'\n'*}" "LMDB: an environment that is open"
		ok "LMDB: and what helps" grep -q "^hint: export to another FILE" <<<"$err"
		is "$before" "$(stat -c %i "$tmp/env/data.mdb")" "LMDB: it is as it was"
		kill -9 "$writer"
		wait "$writer"
	done 2>/dev/null
	run stele export -q -f --to=lmdb "$tmp/a" "$tmp/env"
	is "0  0" "$status $err $(stat -c %s "$tmp/env/lock.mdb")" "LMDB: closed, it is replaced"
	ok "LMDB: which is the new one" cmp "$tmp/a.lmdb" "$tmp/env/data.mdb"
	must "$BUILD/tests/cmd/lmdb-writer" "$tmp/env" 1 10 1
	run stele build -n "$tmp/env"
	is "0 $(($(stele info --json "$tmp/a" | jq .snapshot.samples) + 1))" \
		"$status $(sed -n 's/^samples *\([0-9]*\),.*/\1/p' <<<"$out")" \
		"LMDB: whoever opens it has all of it" || diag "$out" "$err"
	rm -r "$tmp/env"

	# A third of each page stays empty: the map has to be that much larger.
	perl -e 'printf "%01400d\n", $_ for 1 .. 8000' >"$tmp/lines"
	rm "$tmp/a"
	must stele build -q --from=text "$tmp/lines" "$tmp/a"
	again lines.lmdb --from=lmdb
	is "0 8000 8000" "$status $(stele info --json "$tmp/b" | jq .snapshot.samples) $(stele cat \
		"$tmp/b" lines/0000007999 | sed 's/^0*//')" "LMDB: pages that are not full" ||
		diag "$err"

	rm "$tmp/a"
	must stele build -q --from=webdataset "$fixtures/webdataset.tar" "$tmp/a"
	names=$(stele info --json "$tmp/a" | jq -r \
		'.snapshot.fields[] | select(.type == "bytes" or .type == "utf8").name')
	run stele export --to=lmdb "$tmp/a" "$tmp/e.lmdb"
	is 1 "$status" "LMDB: several fields"
	ok "says so" grep -q "a value has only bytes, .* (--field takes one)" <<<"$err" ||
		diag "$err"
	for name in $names; do
		to=(--to=lmdb "--field=$name")
		again e.lmdb --from=lmdb
		is "$(stele ls "$tmp/a" | while read -r key; do
			stele cat --field="$name" "$tmp/a" "$key" | sum /dev/stdin
		done)" "$(stele ls "$tmp/b" | while read -r key; do
			stele cat "$tmp/b" "$key" | sum /dev/stdin
		done)" "LMDB: field $name"
	done
	must test "$(wc -w <<<"$names")" -gt 1
	name=${names##*$'\n'}
	must stele export -q --to=tfrecord --field="$name" "$tmp/a" "$tmp/f.tfrecord"
	must stele build -q "$tmp/f.tfrecord" "$tmp/c"
	is "$(stele cat --field="$name" "$tmp/a" "$(stele ls "$tmp/a" | head -n 1)" |
		sum /dev/stdin)" "$(stele cat "$tmp/c" "$(stele ls "$tmp/c" | head -n 1)" |
		sum /dev/stdin)" \
		"TFRecord: a field"
	run stele export --to=lmdb --field=none "$tmp/a" "$tmp/g.lmdb"
	ok "a field that is none" grep -q "no field 'none'" <<<"$err" || diag "$err"
	run stele export --to=webdataset --field=x "$tmp/a" "$tmp/g.tar"
	is 2 "$status" "WebDataset has all fields"
else
	skip_block 1 "needs LMDB"
fi

# ---- a sample that is larger than libarchive takes in one piece ----

mkdir -p "$tmp/vast/c"
truncate -s 2100M "$tmp/vast/c/x"
must stele build -q "$tmp/vast" "$tmp/vast.stele"
ok "WebDataset: a sample of more than 2 GiB, whole" cmp "$tmp/vast/c/x" \
	<(stele export -q --to=webdataset "$tmp/vast.stele" - | tar -xOf - c/x.data)
rm "$tmp/vast.stele"

done_testing
