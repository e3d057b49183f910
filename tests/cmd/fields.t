#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# fields.t - fields of all types as info, ls, cat, extract and export show them
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version
requires tar --version

pets_program
t=$tmp/pets.stele
must "$tmp/pets" "$t"

run stele info "$t"
is "photo bytes
caption utf8
species i64 (2 classes)
dog 1
cat 1
weight f64
outline i16[?,2]" "$(grep -A6 ^fields <<<"$out" | sed 's/^fields//; s/^ *//; s/  *1$/ 1/')" \
	"info: names, types, classes and shapes"
is '["bytes","utf8","i64","f64","tensor"]' \
	"$(stele info --json "$t" | jq -c '[.snapshot.fields[].type]')" \
	"info --json: types"
is '["i16",[null,2]]' \
	"$(stele info --json "$t" | jq -c '.snapshot.fields[4]|[.dtype,.shape]')" \
	"info --json: element type and shape of a tensor"

run stele ls -F "$t"
is "rex photo=4 caption='Rex → ball' species=0 (dog) weight=30.5 outline=[3,2]
tom photo=3 caption='Tom' species=1 (cat) weight=4.25 outline=[2,2]" "$out" \
	"ls -F: values"
run stele ls -lF "$t" t
is "         1           14  tom photo=3 caption='Tom' species=1 (cat) weight=4.25 outline=[2,2]" \
	"$out" "ls -lF: behind id, size and key"
is '{"photo":4,"caption":"Rex → ball","species":0,"weight":30.5,"outline":[3,2]}' \
	"$(stele ls -F --json "$t" rex | jq -c .fields)" "ls -F --json: an object"
is '{"species":0,"weight":30.5} {"species":"dog"}' \
	"$(stele ls --json "$t" rex | jq -r '"\(.fields) \(.classes)"')" \
	"ls --json: scalars"
is "         1           14  cat        4.25  tom" "$(stele ls -l "$t" t)" "ls -l, too"

run stele cat "$t" rex tom none
is "1 1 1" "$status $(grep -c "^stele: warning: samples have several fields, 'photo', 'caption',\
 'outline': each sample is all of them joined" <<<"$err") $(grep -c '^hint: --field' <<<"$err")" \
	"cat: joined fields are said once, with what to do" || diag "$err"
ok "cat: not of what is not there" not grep -q warning < <(stele cat "$t" none 2>&1)
run stele cat --field=photo "$t" rex tom
is "0 JPEGJPG " "$status $out $err" "cat --field: bytes"
is "Rex → ball" "$(stele cat -F caption "$t" rex)" "cat -F: a text"
is "0 1" "$(stele cat -F species "$t" rex tom | paste -sd ' ')" "cat -F: i64"
is "30.5" "$(stele cat -F weight "$t" '#0')" "cat -F: f64"
is "ffff010005000600" "$(stele cat -F outline "$t" tom | od -An -tx1 | tr -d ' \n')" \
	"cat -F: a tensor"
run stele cat -F none "$t" rex
is "2 " "$status $out" "cat -F: no such field is wrong usage"
is "stele: no field 'none' (there are 'photo', 'caption', 'species', 'weight', 'outline')" "$err" \
	"is said, with those that there are"
run stele cat -F weight "$t" rex none
is "1 30.5" "$status $out" "cat -F: others are written"

for verify in crc none digest; do
	is "PEPG" "$(stele cat --verify=$verify --offset=1 --size=2 "$t" rex tom)" \
		"cat --offset --size: $verify"
	is "$(stele cat "$t" rex | head -c 2)" \
		"$(stele cat --verify=$verify --offset=0 --size=2 "$t" rex)" "from 0 on: $verify"
	is "E" "$(stele cat --verify=$verify --offset=2 --size=1K "$t" rex | head -c 1)" \
		"cat: up to the end: $verify"
done
run stele cat --field=photo --offset=1 "$t" rex
is 2 "$status" "cat: a part of a field is wrong usage"

# ---- files of several fields ----

joined="warning: samples have several fields, 'photo', 'caption', 'outline': each file is all"
run stele extract "$t" "$tmp/joined"
is 0 "$status" "extract: all fields in one file"
is "1 1" "$(grep -cF "$joined" <<<"$err") $(grep -c '^hint: --field=NAME' <<<"$err")" \
	"which is said once, with what to do" || diag "$err"
ok "all bytes" cmp "$tmp/joined/rex" <(stele cat "$t" rex)
is "" "$(stele extract -qf "$t" "$tmp/joined" 2>&1)" "not with -q"
run stele export "$t" "$tmp/joined.tar"
is "0 1 1" "$status $(grep -cF "$joined" <<<"$err") $(grep -c '^hint: --field=NAME.*webdataset' \
	<<<"$err")" "export to tar: the same" || diag "$err"
ok "all bytes" cmp <(tar -xOf "$tmp/joined.tar" rex) <(stele cat "$t" rex)
left="warning: fields 'species', 'weight' are not written: each file is the bytes of a sample"
run stele extract -f "$t" "$tmp/joined"
is "1 1" "$(grep -cF "$left" <<<"$err") $(grep -c "^hint: 'python3 -m stele.parq" <<<"$err")" \
	"extract: nor are numbers there, which is said once" || diag "$err"
run stele export -f "$t" "$tmp/joined.tar"
is "1 1" "$(grep -cF "$left" <<<"$err") $(grep -c "^hint: 'python3 -m stele.parq" <<<"$err")" \
	"export: nor are numbers there, which is said once" || diag "$err"
for way in "extract -qf $t $tmp/joined" "export -qf $t $tmp/joined.tar"; do
	# shellcheck disable=SC2086 # words
	run stele $way
	is "0 " "$status $err" "${way%% /*}: no warning"
done
# left SOURCE FIELDS DESCRIPTION [FORMAT]: of its image
said() { sed -nE "s/^stele: warning: fields? (.* (is|are)) not written: .*/\1/p" <<<"$err"; }
left() {
	must stele build -qf ${4:+--from="$4"} "$1" "$tmp/left"
	run stele extract -f "$tmp/left" "$tmp/left.d"
	is "0 $2" "$status $(said)" "extract: $3" || diag "$err"
	run stele export -f "$tmp/left" "$tmp/left.tar"
	is "0 $2" "$status $(said)" "export: $3" || diag "$err"
}
mkdir -p "$tmp/shown/train/"{cat,dog} "$tmp/shown/val/cat"
for file in train/cat/1 train/dog/2 train/dog/3 val/cat/4; do
	echo "$file" >"$tmp/shown/$file"
done
left "$tmp/shown" "" "classes that paths show need no word"
left "$tmp/shown/train" "" "nor without splits"
# manifest LABEL...: of train/cat/1, train/dog/2, train/dog/3
manifest() {
	printf 'path,label%s\n' "${5-}"
	printf 'shown/train/cat/1,%s%s\nshown/train/dog/2,%s%s\nshown/train/dog/3,%s%s\n' \
		"$1" "${4-}" "$2" "${4-}" "$3" "${4-}"
}
for labels in "x dog dog" "cat x dog" "cat dog x" "at dog dog" "ca dog dog" "1 dog dog"; do
	# shellcheck disable=SC2086 # words
	manifest $labels >"$tmp/labels.csv"
	left "$tmp/labels.csv" "'label' is" "labels $labels" manifest
done
manifest cat dog dog >"$tmp/labels.csv"
left "$tmp/labels.csv" "" "a manifest with those that paths show" manifest
manifest train/cat dog train/dog >"$tmp/labels.csv"
left "$tmp/labels.csv" "" "two directories" manifest
manifest cat dog dog ,5 ,width >"$tmp/labels.csv"
left "$tmp/labels.csv" "'width' is" "and another column" manifest
manifest a b c ,5 ,width >"$tmp/labels.csv"
left "$tmp/labels.csv" "'label', 'width' are" "both" manifest
ok "and says what writes them" grep -q "^hint: 'stele export --to=webdataset' writes all" <<<"$err"
run stele export -f --to=webdataset "$tmp/left" "$tmp/left.tar"
is "0 " "$status $err" "so it does, without a warning"
# One of many whose directory is another one, or that has none: wherever it is, it is told.
mkdir -p "$tmp/many/"{cat,dog}
for i in {10..49}; do
	class=$([ "$i" -lt 30 ] && echo cat || echo dog)
	echo "$i" >"$tmp/many/$class/$i"
	echo "many/$class/$i,$class"
done >"$tmp/sound.csv"
sed -i 1i'path,label' "$tmp/sound.csv"
left "$tmp/sound.csv" "" "many that paths show" manifest
told="'label' of 1 sample, such as 'KEY', is not what directories show, and is not written"
# unlike KEY LABEL: what both say of the image
unlike() {
	for way in "extract -f $tmp/left $tmp/left.d" "export -f $tmp/left $tmp/left.tar"; do
		# shellcheck disable=SC2086 # words
		run stele $way
		ok "${way%% *}: $1 is '$2'" \
			grep -q -e "^stele: warning: field 'label' is not written" \
			-e "^stele: warning: ${told/KEY/$1}$" <<<"$err" || diag "$err"
		is "0 1 1" "$status $(grep -c warning: <<<"$err") $(grep -c ^hint: <<<"$err")" \
			"${way%% *}: once"
	done
}
for i in 10 17 29 30 41 49; do
	class=$([ "$i" -lt 30 ] && echo cat || echo dog)
	for label in dog cat ""; do
		[ "$label" != "$class" ] || continue
		sed "s/\($i,\).*/\1$label/" "$tmp/sound.csv" >"$tmp/labels.csv"
		must stele build -qf --from=manifest "$tmp/labels.csv" "$tmp/left"
		unlike "many/$class/$i" "$label"
	done
done
run stele extract -f "$tmp/left" "$tmp/left.d" many/cat/12 many/dog/42
is "0 " "$status $err" "extract: of those that are named"
run stele export -qf "$tmp/left" "$tmp/left.tar"
is "0 " "$status $err" "export -q: no warning"
for name in photo caption outline; do
	run stele extract --field=$name "$t" "$tmp/$name"
	is "0 " "$status $err" "extract --field=$name"
	run stele export --field=$name "$t" "$tmp/$name.tar"
	is "0 " "$status $err" "export --field=$name"
	is "$(($(stele cat --field=$name "$t" rex tom | wc -c))) bytes" \
		"$(cut -d, -f2 <<<"$out" | xargs)" "export: of that field alone"
	for key in rex tom; do
		stele cat --field=$name "$t" $key >"$tmp/wanted"
		ok "extract: $name of $key" cmp "$tmp/$name/$key" "$tmp/wanted"
		ok "export: $name of $key" cmp <(tar -xOf "$tmp/$name.tar" $key) "$tmp/wanted"
	done
done
run stele extract --field=photo --skip-existing "$t" "$tmp/photo"
is "0 2 files skipped: there already" "$status $(tail -n 1 <<<"$out")" \
	"extract --field --skip-existing: the size is that of the field"
mkdir -p "$tmp/animals/"{cat,dog}
touch "$tmp/animals/"{cat,dog}/1
must stele build -q "$tmp/animals" "$tmp/classes"
printf 'a,b\n1,2\n' >"$tmp/numbers.csv"
must stele build -q "$tmp/numbers.csv" "$tmp/numbers"
for verb in "extract" "export --to=tar" "export --to=tfrecord"; do
	# shellcheck disable=SC2086 # words
	run stele $verb --field=weight "$t" "$tmp/none"
	is "2 stele: field 'weight' is a number, not bytes" "$status $err" "$verb: a number"
	# shellcheck disable=SC2086 # words
	run stele $verb --field=none "$t" "$tmp/none"
	is "2 stele: no field 'none' (apart from numbers there are 'photo', 'caption', 'outline')" \
		"$status $err" "$verb: no such field"
	ok "and no file" test ! -e "$tmp/none"
	# shellcheck disable=SC2086 # words
	run stele $verb --field=none "$tmp/classes" "$tmp/none"
	is "2 stele: no field 'none' (apart from numbers there is 'data')" "$status $err" \
		"$verb: no such field, where the others are classes"
	# shellcheck disable=SC2086 # words
	run stele $verb --field=none "$tmp/numbers" "$tmp/none"
	is "2 stele: no field 'none': there is nothing but numbers" "$status $err" \
		"$verb: no such field, where all are numbers"
done

# Too large to be read with others.
mkdir "$tmp/large"
truncate -s 70M "$tmp/large/x.bin"
printf end >>"$tmp/large/x.bin"
echo large >"$tmp/large/x.txt"
must tar -cf "$tmp/large.tar" -C "$tmp/large" x.bin x.txt
must stele build -q --from=webdataset "$tmp/large.tar" "$tmp/large.stele"
for name in bin txt; do
	run stele extract -q --field=$name "$tmp/large.stele" "$tmp/large/$name"
	ok "extract: $name of a large one" cmp "$tmp/large/x.$name" "$tmp/large/$name/x"
	ok "export: $name of a large one" cmp "$tmp/large/x.$name" \
		<(stele export -q --field=$name "$tmp/large.stele" - | tar -xOf -)
done
cp "$tmp/large.stele" "$tmp/damaged.stele"
printf z | dd of="$tmp/damaged.stele" bs=1M seek=40 conv=notrunc status=none
run stele extract --field=txt "$tmp/damaged.stele" "$tmp/large/damaged"
is "3 " "$status $(ls "$tmp/large/damaged")" "a field of a damaged sample is not written"
rm -r "$tmp"/{large,damaged}.stele "$tmp"/large*

# What cannot be appended: a directory has no such fields.
mkdir "$tmp/dir"
echo x >"$tmp/dir/x"
run stele append "$tmp/dir" "$t@v2"
is 1 "$status" "append of a directory fails"
ok "and says why" grep -q "what is appended has other fields than the snapshot: field" <<<"$err"
must stele compact -q "$t" v2
is "$(stele ls -F "$t@v1")" "$(stele ls -F "$t@v2")" "a compaction has the same"
must stele copy -q "$t@v2" "$tmp/copy.stele@v2"
is "$(stele ls -F "$t@v1")" "$(stele ls -F "$tmp/copy.stele@v2")" "a copy, too"
run stele verify "$tmp/copy.stele"
is 0 "$status" "which is sound"
# One bit of a text: the checksum fails first.
printf z | dd of="$t" bs=1 seek=$((0x201006)) conv=notrunc status=none
run stele ls -F "$t@v1"
is 3 "$status" "ls -F: a damaged sample is status 3"

# Text may have zeros.
printf '{"a":"x\\u0000y"}\n' >"$tmp/zero.jsonl"
must stele build -q "$tmp/zero.jsonl" "$tmp/zero"
is '"x\u0000y"' "$(stele ls --fields --json "$tmp/zero" | jq -c .fields.a)" \
	"ls --json: a zero in a text"

done_testing
