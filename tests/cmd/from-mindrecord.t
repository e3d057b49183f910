#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# from-mindrecord.t - MindSpore's MindRecord: shards, all types, pages, damage
#
# tests/fixture/from/*.mindrecord*.gz were written by MindSpore 2.10.0:
#	def write(name, shards, schema, rows):
#	    w = FileWriter(name, shards, overwrite=True)
#	    w.set_header_size(1 << 14); w.set_page_size(1 << 15)
#	    w.add_schema(schema, "fixture"); w.write_raw_data(rows); w.commit()
#	write("mix.mindrecord", 2, {"name": {"type": "string"}, "label": {"type": "int32"},
#	    "id": {"type": "int64"}, "score": {"type": "float32"}, "exact": {"type": "float64"},
#	    "data": {"type": "bytes"}, "mask": {"type": "int64", "shape": [-1]},
#	    "box": {"type": "float32", "shape": [2, 2]},
#	    "seg": {"type": "int32", "shape": [-1, 3]}},
#	    [{"name": f"img_{i}.jpg", "label": i % 3 - 1, "id": 10**12 + i, "score": i / 2,
#	      "exact": i / 3, "data": bytes(j & 255 for j in range(i * 2000)),
#	      "mask": np.array([(-1000) ** j for j in range(i + 1)], "i8"),
#	      "box": np.arange(4, dtype="f4").reshape(2, 2) + i,
#	      "seg": np.arange(3 * i + 3, dtype="i4").reshape(-1, 3) - 2} for i in range(7)])
#	write("plain.mindrecord", 1, {"name": {"type": "string"}, "label": {"type": "string"}},
#	    [{"name": f"ü{i}", "label": "cat" if i & 1 else "dog"} for i in range(5)])
#	write("one.mindrecord", 1, {"tokens": {"type": "int32", "shape": [-1]}},
#	    [{"tokens": np.array([i, -70000 * i], "i4")} for i in range(5)])
#	write("many.mindrecord", 1, {"n": {"type": "int64"}, "text": {"type": "string"},
#	    "data": {"type": "bytes"}}, [{"n": i, "text": "t" * (i * 37 % 900),
#	    "data": bytes([i % 251]) * (i * 53 % 3000 + 1)} for i in range(300)])
. "${0%/*}/../tap.sh"
. tests/cmd/from.sh

for name in mix.mindrecord0 mix.mindrecord1 plain.mindrecord one.mindrecord many.mindrecord; do
	gzip -dc "tests/fixture/from/$name.gz" >"$tmp/$name"
done
# bytes KEY FIELD
bytes() { stele cat --field="$2" "$image" "$1" | od -An -v -w1000 -t"$3"; }

built "$tmp/mix.mindrecord{0..1}"
is "0 7" "$status $(field "$out" .samples)" "shards" || diag "$err"
is 'box:f32[2,2] data:bytes exact:f64 id:i64 label:i64 mask:i64[null] name:utf8 score:f64 '\
'seg:i32[null,3]' "$(types | tr ' ' '\n' | sort | paste -sd ' ')" "types"
is '["img_0.jpg",-1,1000000000000,0] ["img_1.jpg",0,1000000000001,0.5] '\
'["img_2.jpg",1,1000000000002,1] ["img_3.jpg",-1,1000000000003,1.5] '\
'["img_4.jpg",0,1000000000004,2] ["img_5.jpg",1,1000000000005,2.5] '\
'["img_6.jpg",-1,1000000000006,3]' "$(stele ls --fields --json "$image" | jq -sc \
	'sort_by(.key)[].fields | [.name, .label, .id, .score]' | paste -sd ' ')" "scalars"
third=mix.mindrecord0/0000000003
is "1 -1000 1000000 -1000000000" "$(bytes $third mask d8 | xargs)" "integers of each width: i64"
is "$(seq -2 9 | paste -sd ' ')" "$(bytes $third seg d4 | xargs)" "i32"
is "3 4 5 6" "$(bytes $third box f4 | xargs)" "floats"
is "$(perl -e 'print pack "C*", map { $_ & 255 } 0 .. 5999' | md5sum)" \
	"$(stele cat --field=data "$image" $third | md5sum)" "bytes"
run stele append -q "$tmp/mix.mindrecord0" "$image@v2"
is 0 "$status" "append" || diag "$err"
built --key=name "$tmp/mix.mindrecord1"
is "0 img_4.jpg img_5.jpg img_6.jpg" "$status $(stele ls "$image" | sort | paste -sd ' ')" \
	"--key" || diag "$err"
built "$tmp/plain.mindrecord"
is '0 ["ü0",1] ["ü1",0] ["ü2",1] ["ü3",0] ["ü4",1]' "$status $(stele ls --fields --json "$image" |
	jq -sc 'sort_by(.key)[].fields | [.name, .label]' | paste -sd ' ')" "classes; no blobs" ||
	diag "$err"
built "$tmp/one.mindrecord"
is "0 3 -210000" "$status $(bytes one.mindrecord/0000000003 tokens d4 | xargs)" "a single blob" ||
	diag "$err"

built "$tmp/many.mindrecord"
is "0 300" "$status $(field "$out" .samples)" "many pages" || diag "$err"
is "$(perl -e 'print join ",", map { join ":", $_, $_ * 37 % 900, $_ * 53 % 3000 + 1 } 0 .. 299')" \
	"$(stele ls --fields --json "$image" | jq -sr 'sort_by(.key)[].fields |
	"\(.n):\(.text | length):\(.data)"' | paste -sd ,)" "rows of all pages are in order"
is "$(perl -e 'print chr(299 % 251) x (299 * 53 % 3000 + 1)' | md5sum)" \
	"$(stele cat --field=data "$image" many.mindrecord/0000000299 | md5sum)" "and so are bytes"
built - < <(cat "$tmp/one.mindrecord")
wrong "compressed or comes through a pipe" "a pipe"

# ---- damage ----

file=$tmp/mix.mindrecord0 size=$(stat -c %s "$tmp/mix.mindrecord0")
last=$((16384 + 2 * 32768)) odd=0
[ "$size" -lt "$last" ] && last=$size
for ((i = 0; i < size; i += 1499)); do
	head -c "$i" "$file" >"$tmp/cut.mindrecord"
	built --from=mindrecord "$tmp/cut.mindrecord"
	[ "$status" = 0 ] || { [ "$status" = 1 ] &&
		grep -q "cut.mindrecord' at byte \|has no samples" <<<"$err"; } || odd=$((odd + 1))
	[ "$status" = 0 ] && [ "$i" -lt 16384 ] && odd=$((odd + 1))
done
is 0 "$odd" "cut"
odd=0 seen=0
# The header, the first blobs, the scalars.
for i in {0..960..13} {16384..16460..3} {49152..49500..3}; do
	I=$i perl -0777 -pe 'vec($_, 8 * $ENV{I} + 6, 1) ^= 1' "$file" >"$tmp/flip.mindrecord"
	built --from=mindrecord "$tmp/flip.mindrecord"
	case $status in
	0) ;;
	1)
		seen=$((seen + 1))
		grep -q "flip.mindrecord'\|has no samples" <<<"$err" || odd=$((odd + 1)) ;;
	*) odd=$((odd + 1)) ;;
	esac
done
is 0 "$odd" "flipped bits are no trouble, or named"
ok "and some are noticed" [ "$seen" -gt 30 ] || diag "$seen"

done_testing
