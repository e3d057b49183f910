#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# from-recordio.t - MXNet's RecordIO, with and without an index, whole and damaged
#
# tests/fixture/from/images.rec, images.idx and boxes.rec were written by MXNet 1.9.1:
#	MAGIC = struct.pack("<I", 0xced7230a)
#	w = recordio.MXIndexedRecordIO("images.idx", "images.rec", "w")
#	for i in range(6):
#	    data = bytes(range(i * 10)) + (MAGIC * 2 + b"abc" + MAGIC if i % 2 else b"")
#	    if i == 5: data = b"\0" * 8 + MAGIC + b"tail"
#	    w.write_idx(i * 2, recordio.pack(recordio.IRHeader(0, float(i % 3), 100 + i, 0), data))
#	w = recordio.MXRecordIO("boxes.rec", "w")
#	for i in range(3):
#	    w.write(recordio.pack(recordio.IRHeader(0, [i + .5] * (i + 1), i, 0), bytes(range(i))))
. "${0%/*}/../tap.sh"
. tests/cmd/from.sh

keys() { stele ls "$image" | sort | paste -sd ' '; }
# bytes KEY [FIELD]
bytes() { stele cat --field="${2-data}" "$image" "$1" | xxd -p; }

cp tests/fixture/from/images.{rec,idx} tests/fixture/from/boxes.rec "$tmp"
built "$tmp/images.rec"
is "0 $(seq -f 'images.rec/%010g' 0 2 10 | paste -sd ' ')" "$status $(keys)" \
	"keys are those of the index" || diag "$err"
is "0:100 1:101 2:102 0:103 1:104 2:105" "$(stele ls --fields --json "$image" |
	jq -sr 'sort_by(.key)[].fields | "\(.label):\(.id)"' | paste -sd ' ')" "labels and ids"
is "00010203040506070809""0a23d7ce0a23d7ce6162630a23d7ce" "$(bytes images.rec/0000000002)" \
	"magic numbers that are not aligned"
is "00000000000000000a23d7ce7461696c" "$(bytes images.rec/0000000010)" \
	"one that is: a record of two parts"
gzip -c "$tmp/images.rec" >"$tmp/z.rec"
wanted=$(bytes images.rec/0000000010)$(bytes images.rec/0000000008)
built "$tmp/z.rec"
is "0 $wanted" "$status $(bytes z.rec/0000000005)$(bytes z.rec/0000000004)" \
	"the same from gzip; keys are numbers without an index" || diag "$err"
built --key=id - <"$tmp/images.rec"
is "0 100 101 102 103 104 105" "$status $(keys)" "--key=id, a pipe" || diag "$err"
built "$tmp/boxes.rec"
is "0 3 f32[null]" "$status $(field "$out" .samples) $(stele info --json "$image" | jq -r \
	'.snapshot.fields[] | select(.name == "label") | "\(.dtype)\(.shape | tojson)"')" \
	"several labels are a tensor" || diag "$err"
is "000020400000204000002040 0001" "$(bytes boxes.rec/0000000002 label) $(
	bytes boxes.rec/0000000002)" "of all of them, and not of the data"
is 0 "$(run stele append -q --update "$tmp/boxes.rec" "$image@v2"; echo "$status")" "append"

# ---- damage ----

printf '0\t0\n2\t32\n' >"$tmp/images.idx"
built "$tmp/images.rec"
is 1 "$status" "an index that lacks records"
ok "says so" grep -q "images.idx' has no key of the record at byte 92" <<<"$err" || diag "$err"
ok "and how it can be read" grep -q "^hint: keys are ids with --key=id" <<<"$err" || diag "$err"
built --key=id "$tmp/images.rec"
is 0 "$status" "as it can" || diag "$err"
head -n 4 tests/fixture/from/images.idx >"$tmp/images.idx"
head -c 224 "$tmp/images.rec" >"$tmp/short.rec"
cp tests/fixture/from/images.idx "$tmp/short.idx"
built "$tmp/short.rec"
is 1 "$status" "a file that is cut behind a record, whose index is whole"
ok "says so" grep -q "short.rec' at byte 224: '.*short.idx' has more records" <<<"$err" ||
	diag "$err"
built --on-error=skip "$tmp/short.rec"
is "0 $(wc -l <"$tmp/images.idx") 1" "$status $(field "$out" \
	'"\(.samples) \(.skipped.unreadable.count)"')" "--on-error=skip: the others" || diag "$err"
for line in '-0\t0' '0\t0x' '18446744073709551616\t0' '0\t-0' ' 0\t0' '0' '0\t0\0\n'; do
	printf -- "$line\n%s" "$(tail -n +2 tests/fixture/from/images.idx)" >"$tmp/images.idx"
	built "$tmp/images.rec"
	is 1 "$status" "an index with a line '$line'"
done
sed 's/\t/ /; s/$/\r/' tests/fixture/from/images.idx >"$tmp/images.idx"
built "$tmp/images.rec"
is "0 images.rec/0000000010" "$status $(keys | tail -c 22)" "with blanks, and ends of DOS" ||
	diag "$err"
rm "$tmp/images.idx"

rec=$tmp/images.rec size=$(stat -c %s "$tmp/images.rec")
ends=$(cut -f 2 tests/fixture/from/images.idx | paste -sd ' ')
whole=0 unnamed=0
for ((i = 1; i < size; i += 5)); do
	head -c "$i" "$rec" >"$tmp/cut.rec"
	built --from=recordio "$tmp/cut.rec"
	[[ " $ends " == *" $i "* ]] || [ "$status" = 1 ] || whole=$((whole + 1))
	[ "$status" = 0 ] || grep -q "cut.rec' at byte [0-9]*: " <<<"$err" ||
		unnamed=$((unnamed + 1))
done
is "0 0" "$whole $unnamed" "no record can be cut"
# flip BYTE: of the file, into flip.rec
flip() {
	I=$1 perl -0777 -pe 'vec($_, 8 * $ENV{I} + 4, 1) ^= 1' "$rec" >"$tmp/flip.rec"
}
odd=0
for ((i = 0; i < size; i++)); do
	flip "$i"
	built --from=recordio "$tmp/flip.rec"
	case $status in
	0) ;;
	1) grep -q "flip.rec' at byte [0-9]*: " <<<"$err" || odd=$((odd + 1)) ;;
	*) odd=$((odd + 1)) ;;
	esac
done
is 0 "$odd" "flipped bits are no trouble, or named"
flip 32
built "$tmp/flip.rec"
is 1 "$status" "a magic number that is none"
ok "is damage" grep -q "flip.rec' at byte 32: record 1 does not begin with the magic" <<<"$err" ||
	diag "$err"
built --on-error=skip --key=id "$tmp/flip.rec"
is "0 100 102 103 104 105" "$status $(keys)" "--on-error=skip finds the next record" || diag "$err"
gzip -c "$tmp/flip.rec" >"$tmp/flip.gz"
built --on-error=skip --key=id "$tmp/flip.gz"
is "0 100 102 103 104 105" "$status $(keys)" "in gzip, too" || diag "$err"

done_testing
