#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# fields.t - fields of all types as info, ls and cat show them
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version

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

is "JPEGJPG" "$(stele cat --field=photo "$t" rex tom)" "cat --field: bytes"
is "Rex → ball" "$(stele cat -F caption "$t" rex)" "cat -F: a text"
is "0 1" "$(stele cat -F species "$t" rex tom | paste -sd ' ')" "cat -F: i64"
is "30.5" "$(stele cat -F weight "$t" '#0')" "cat -F: f64"
is "ffff010005000600" "$(stele cat -F outline "$t" tom | od -An -tx1 | tr -d ' \n')" \
	"cat -F: a tensor"
run stele cat -F none "$t" rex
is "1 " "$status $out" "cat -F: no such field"
is "stele: no field 'none'" "$err" "is said"
run stele cat -F weight "$t" rex none
is "1 30.5" "$status $out" "cat -F: others are written"

for verify in crc none digest; do
	is "PEPG" "$(stele cat --verify=$verify --offset=1 --size=2 "$t" rex tom)" \
		"cat --offset --size: $verify"
	is "E" "$(stele cat --verify=$verify --offset=2 --size=1K "$t" rex | head -c 1)" \
		"cat: up to the end: $verify"
done
run stele cat --field=photo --offset=1 "$t" rex
is 2 "$status" "cat: a part of a field is wrong usage"

# What cannot be appended: a directory has no such fields.
mkdir "$tmp/dir"
echo x >"$tmp/dir/x"
run stele append "$tmp/dir" "$t@v2"
is 1 "$status" "append of a directory fails"
ok "and says why" grep -q "other fields than the snapshot that it is appended to: field" <<<"$err"
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

done_testing
