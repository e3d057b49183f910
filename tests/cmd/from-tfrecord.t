#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# from-tfrecord.t - records of TFRecord files, and each way to damage them
#
# tests/fixture/from/records.tfrecord was written by the package tfrecord 1.14.6:
#	writer = tfrecord.TFRecordWriter("records.tfrecord")
#	for i in range(5):
#	    writer.write({"image": (bytes(range(i * 9)), "byte"), "label": (i, "int")})
#	writer.close()
#
# examples.tfrecord by the same:
#	for i in range(6):
#	    writer.write({"image/name": (b"n%d" % i, "byte"),
#	                  "image/raw": (bytes(range(i)), "byte"), "label": (i - 3, "int"),
#	                  "score": (i / 4, "float"), "box": ([i, 0.5, 1, 2], "float"),
#	                  "ids": (list(range(i)), "int")}
#	                 | ({"extra": (2**40, "int")} if i % 2 else {}))
. "${0%/*}/../tap.sh"
. tests/cmd/from.sh

fixture=$PWD/tests/fixture/from/records.tfrecord
# unframed FILE DIR: the records of a file, by their sizes, as files
unframed() {
	mkdir -p "$2"
	perl -0777 -ne 'my ($at, $n) = (0, 0);
		while ($at < length) {
			my $size = unpack "Q<", substr $_, $at, 8;
			open my $out, ">", sprintf "%s/%010d", $ENV{DIR}, $n++ or die;
			print $out substr $_, $at + 12, $size;
			$at += $size + 16
		}' "$1"
}

DIR=$tmp/wanted unframed "$fixture" "$tmp/wanted"
built "$fixture"
is "0 5" "$status $(field "$out" .samples)" "the real writer: is built" || diag "$err"
is "$(seq -f 'records.tfrecord/%010g' 0 4 | paste -sd ' ')" "$(stele ls "$image" | paste -sd ' ')" \
	"keys are file and number"
must stele extract -q "$image" "$tmp/got"
ok "samples are the records" diff -r "$tmp/wanted" "$tmp/got/records.tfrecord"
is "data" "$(stele info --json "$image" | jq -r '[.snapshot.fields[].name] | join(" ")')" \
	"shards are no labels"

gzip -c "$fixture" >"$tmp/records.tfrecord"
digest=$(stele info --json "$image" | jq -r .snapshot.digest)
built "$tmp/records.tfrecord"
is "0 $digest" "$status $(stele info --json "$image" | jq -r .snapshot.digest)" \
	"the same from gzip" || diag "$err"
printf 'junk' >>"$tmp/records.tfrecord"
built "$tmp/records.tfrecord"
is 1 "$status" "bytes behind gzip data: refused"
ok "and called that" grep -q "decompressed: other bytes behind gzip data" <<<"$err"
built --on-error=skip "$tmp/records.tfrecord"
is "0 $digest" "$status $(stele info --json "$image" | jq -r .snapshot.digest)" \
	"or left out" || diag "$err"
built - < <(cat "$fixture")
is "0 stdin/0000000000" "$status $(stele ls "$image" | head -n 1)" "a pipe" || diag "$err"
cp "$fixture" "$tmp/more.tfrecord"
built "$fixture" "$tmp/more.tfrecord"
is "0 10" "$status $(field "$out" .samples)" "shards"
cat "$fixture" "$fixture" >"$tmp/grown.tfrecord"
head -c "$(stat -c %s "$fixture")" "$tmp/grown.tfrecord" >"$tmp/more.tfrecord"
built "$tmp/more.tfrecord"
cp "$tmp/grown.tfrecord" "$tmp/more.tfrecord"
run stele append --json --update "$tmp/more.tfrecord" "$image@v2"
is "0 5 0" "$status $(field "$out" '"\(.added) \(.updated)"')" "a file that grows is followed"

# A size whose bytes are those that gzip begins with.
python3 - "$tmp/gz.tfrecord" <<'END' || bail "python3"
import struct, sys
table = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ (0x82f63b78 if n & 1 else 0)
    table.append(n)
def masked(data):
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    crc ^= 0xffffffff
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff)
data = bytes(0x088b1f)
size = struct.pack("<Q", len(data))
open(sys.argv[1], "wb").write(size + masked(size) + data + masked(data))
END
built "$tmp/gz.tfrecord"
is "0 559903" "$status $(stele ls --json "$image" | jq .size)" "a size that looks like gzip" ||
	diag "$err"

# ---- damage ----

# Every third byte, by one bit; then every fifth length.
size=$(stat -c %s "$fixture")
quiet=0 unnamed=0 whole=0
for ((i = 0; i < size; i += 3)); do
	I=$i perl -0777 -pe 'vec($_, 8 * $ENV{I} + 4, 1) ^= 1' "$fixture" >"$tmp/flip.tfrecord"
	built --from=tfrecord "$tmp/flip.tfrecord"
	[ "$status" = 1 ] || quiet=$((quiet + 1))
	grep -q "flip.tfrecord' at byte [0-9]*: .*wrong checksum" <<<"$err" ||
		unnamed=$((unnamed + 1))
done
is 0 "$quiet" "no bit can be flipped unnoticed"
is 0 "$unnamed" "file and offset are named"
ends=$(perl -0777 -ne 'my $at = 0; while ($at < length) {
	$at += 16 + unpack "Q<", substr $_, $at, 8; print " $at " }' "$fixture")
for ((i = 1; i < size; i += 5)); do
	head -c "$i" "$fixture" >"$tmp/cut.tfrecord"
	built --from=tfrecord "$tmp/cut.tfrecord"
	[[ $ends == *" $i "* ]] || [ "$status" = 1 ] || whole=$((whole + 1))
done
is 0 "$whole" "nor a record be cut"

I=20 perl -0777 -pe 'substr($_, $ENV{I}, 1) = "?"' "$fixture" >"$tmp/flip.tfrecord"
built --on-error=skip "$tmp/flip.tfrecord"
is "0 4 1" "$status $(field "$out" '"\(.samples) \(.skipped.unreadable.count)"')" \
	"--on-error=skip leaves the record out"
is "flip.tfrecord/0000000001" "$(stele ls "$image" | head -n 1)" "the others keep their numbers"
gzip -c "$tmp/flip.tfrecord" >"$tmp/flip.gz"
built --on-error=skip "$tmp/flip.gz"
is "0 4" "$status $(field "$out" .samples)" "in gzip, too"
is 0 "$(stele extract -q "$image" "$tmp/four"; diff "$tmp/four/flip.gz/0000000003" \
	"$tmp/wanted/0000000003" >&2; echo $?)" "and the bytes behind it are right"

# Records have checksums of their own: what is before the end of a stream that is cut is sound.
(gzip -c "$fixture" && gzip -c "$fixture" | head -c -40) >"$tmp/cut.gz"
built --from=tfrecord --on-error=skip "$tmp/cut.gz"
is "0 1" "$status $(field "$out" .skipped.unreadable.count)" "in gzip that is cut" || diag "$err"
must stele extract -q "$image" "$tmp/some"
odd=0 kept=0
for file in "$tmp/some/cut.gz"/*; do
	cmp "$file" "$tmp/wanted/000000000$((10#${file##*/} % 5))" || odd=$((odd + 1))
	kept=$((kept + 1))
done
is "0 1" "$odd $((kept >= 5))" "what is there is right"

# A byte in the middle of it, however small it is.
python3 - "$tmp/small.tfrecord" <<'END' || bail "python3"
import random, struct, sys
random.seed(3)
def crc(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    crc ^= 0xffffffff
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff)
with open(sys.argv[1], "wb") as f:
    for i in range(40):
        size, data = struct.pack("<Q", 30), bytes(random.choices(b"abcd", k=30))
        f.write(size + crc(size) + data + crc(data))
END
built "$tmp/small.tfrecord"
must stele extract -q "$image" "$tmp/all"
gzip -c "$tmp/small.tfrecord" >"$tmp/small.gz"
size=$(stat -c %s "$tmp/small.gz")
odd=0 failed=0 kept=''
for percent in 50 70 90; do
	I=$((size * percent / 100)) perl -0777 -pe 'substr($_, $ENV{I}, 1) ^= "\xff"' \
		"$tmp/small.gz" >"$tmp/small.tfrecord"
	built --on-error=skip "$tmp/small.tfrecord"
	[ "$status $(field "$out" '.skipped.unreadable.count > 0')" = "0 true" ] ||
		{ failed=$((failed + 1)) && diag "$err"; }
	rm -rf "$tmp/some" && must stele extract -q "$image" "$tmp/some"
	for file in "$tmp"/some/*/*; do
		cmp "$file" "$tmp/all/small.tfrecord/${file##*/}" || odd=$((odd + 1))
	done
	kept+=" $(field "$out" ".samples * 100 / 40 > $percent - 35")"
done
is "0 0 true true true" "$failed $odd$kept" "in gzip that is damaged: all before it"
built "$tmp/small.tfrecord"
wrong "small.tfrecord' at byte [0-9]*, decompressed: " "in gzip that is damaged"

# ---- Examples ----

examples=$PWD/tests/fixture/from/examples.tfrecord
types() {
	stele info --json "$image" | jq -r '[.snapshot.fields[] |
		"\(.name):\(.dtype // .type)\(.shape // "" | tojson | select(. != "\"\"") // "")"] |
		sort | join(" ")'
}
# cell FIELD NUMBER [TYPE]
cell() {
	stele cat --field="$1" "$image" "${examples##*/}/000000000$2" |
		if [ "${3-}" ]; then od -An -w4000 -t "$3" | xargs; else xxd -p; fi
}
built --example "$examples"
is "0 6" "$status $(field "$out" .samples)" "Examples: are built" || diag "$err"
is "box:f32[4] extra:i64[null] ids:i64[null] image_name:bytes image_raw:bytes label:i64 score:f64" \
	"$(types)" "features that vary are tensors, the others numbers"
is "-3:0 -2:0.25 -1:0.5 0:0.75 1:1 2:1.25" "$(stele ls --fields --json "$image" | jq -sr \
	'sort_by(.key)[].fields | "\(.label):\(.score)"' | paste -sd ' ')" "numbers"
is "3 0.5 1 2|0 1 2|1099511627776|000102|" "$(cell box 3 f4)|$(cell ids 3 d8)|$(cell extra 3 d8)|$(
	cell image_raw 3)|$(cell extra 2)" "lists and bytes"
digest=$(stele info --json "$image" | jq -r .snapshot.digest)
gzip -c "$examples" >"$tmp/examples.tfrecord"
built --example "$tmp/examples.tfrecord"
is "0 $digest" "$status $(stele info --json "$image" | jq -r .snapshot.digest)" \
	"Examples: the same from gzip" || diag "$err"
built "$examples"
ok "Examples: a hint at --example without it" grep -q "hint: .*--example makes fields" <<<"$err" ||
	diag "$err"
built -q "$examples"
is "0 " "$status $err" "Examples: no hint with -q"
built --example --key=image/name "$examples"
is "0 n0 n1 n2 n3 n4 n5" "$status $(stele ls "$image" | sort | paste -sd ' ')" "--key" ||
	diag "$err"
built --example --key=label "$examples"
is 1 "$status" "a key that is no string"
ok "is damage" grep -q "examples.tfrecord' at byte 0: feature 'label' is the key" <<<"$err" ||
	diag "$err"
built --key=label "$examples"
is 2 "$status" "--key goes with --example"
built --example "$tmp/gz.tfrecord"
is 1 "$status" "a record that is no Example"
ok "is damage" grep -q "gz.tfrecord' at byte 0: the record is no tf.train.Example" <<<"$err" ||
	diag "$err"
quiet=0
size=$(stat -c %s "$examples")
for ((i = 0; i < size; i += 7)); do
	I=$i perl -0777 -pe 'vec($_, 8 * $ENV{I} + 4, 1) ^= 1' "$examples" >"$tmp/flip.tfrecord"
	built --from=tfrecord --example "$tmp/flip.tfrecord"
	[ "$status" = 1 ] || quiet=$((quiet + 1))
done
is 0 "$quiet" "Examples: no bit can be flipped unnoticed"

done_testing
