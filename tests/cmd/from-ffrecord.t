#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# from-ffrecord.t - FFRecord files, and each way to damage them
#
# tests/fixture/from/samples.ffr was written by FileWriter of FFRecord 1.4.0:
#	w = FileWriter("samples.ffr", 5)
#	for i in range(5): w.write_one(bytes(range(i * 7)))
#	w.close()
# which is the same as:
#	samples, n = [bytes(range(i * 7)) for i in range(5)], 5
#	at = list(accumulate(map(len, samples[:-1]), initial=12 + 12 * n))
#	head = struct.pack("<q5I5q", n, *map(zlib.crc32, samples), *at)
#	file.write(struct.pack("<I", zlib.crc32(head)) + head + b"".join(samples))
. "${0%/*}/../tap.sh"
. tests/cmd/from.sh

fixture=$PWD/tests/fixture/from/samples.ffr

mkdir "$tmp/wanted"
perl -e 'for my $i (0 .. 4) { open my $out, ">", sprintf "%s/%010d", $ARGV[0], $i;
	print $out pack "C*", 0 .. $i * 7 - 1 }' "$tmp/wanted"
built "$fixture"
is "0 5" "$status $(field "$out" .samples)" "is built" || diag "$err"
must stele extract -q "$image" "$tmp/got"
ok "samples" diff -r "$tmp/wanted" "$tmp/got/samples.ffr"
wanted=$(digest)
gzip -c "$fixture" >"$tmp/samples.ffr"
built "$tmp/samples.ffr"
is "0 $wanted" "$status $(digest)" "the same from gzip" || diag "$err"
run stele append --json --update "$fixture" "$image@v2"
is "0 0 0" "$status $(field "$out" '"\(.added) \(.updated)"')" "append --update" || diag "$err"

size=$(stat -c %s "$fixture") quiet=0 unnamed=0
for ((i = 0; i < size; i++)); do
	I=$i perl -0777 -pe 'vec($_, 8 * $ENV{I} + 4, 1) ^= 1' "$fixture" >"$tmp/flip.ffr"
	built "$tmp/flip.ffr"
	[ "$status" = 1 ] || quiet=$((quiet + 1))
	grep -q "flip.ffr' at byte [0-9]*: " <<<"$err" || unnamed=$((unnamed + 1))
done
is "0 0" "$quiet $unnamed" "no bit can be flipped unnoticed"
quiet=0
for ((i = 0; i < size; i += 3)); do
	head -c "$i" "$fixture" >"$tmp/cut.ffr"
	built "$tmp/cut.ffr"
	[ "$status" = 1 ] || quiet=$((quiet + 1))
done
is 0 "$quiet" "nor a file be cut"
I=90 perl -0777 -pe 'vec($_, 8 * $ENV{I} + 4, 1) ^= 1' "$fixture" >"$tmp/flip.ffr"
built --on-error=skip "$tmp/flip.ffr"
is "0 4 1" "$status $(field "$out" '"\(.samples) \(.skipped.unreadable.count)"')" \
	"--on-error=skip leaves the sample out" || diag "$err"
gzip -c "$tmp/flip.ffr" >"$tmp/z.ffr"
run stele build -f --on-error=skip "$tmp/flip.ffr" "$image"
ok "--on-error=skip: the place is in quotes once" grep -q "^  *'[^']*flip.ffr' at byte [^']*$" \
	<<<"$out" || diag "$out"
built --on-error=skip "$tmp/z.ffr"
rm -rf "$tmp/got"
must stele extract -q "$image" "$tmp/got"
ok "in gzip, too: the others are right" cmp "$tmp/wanted/0000000004" "$tmp/got/z.ffr/0000000004"

done_testing
