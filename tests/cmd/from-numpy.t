#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# from-numpy.t - rows of .npy and .npz files
#
# tests/fixture/from/rows.npy and arrays.npz were written by NumPy 2.2.6:
#	r = np.random.default_rng(1)
#	np.save("rows.npy", r.standard_normal((5, 2, 3)).astype("f4"))
#	np.savez_compressed("arrays.npz", image=r.integers(0, 255, (6, 4, 2), dtype="u1"),
#	    label=np.arange(6, dtype="i4") % 3 - 1,
#	    half=np.array([0, 1.5, -2, np.inf, 6e-8, 65504], "f2"), score=r.random(6),
#	    word=np.array(["a", "ü", "€uro", "😀", "", "x"]),
#	    raw=np.array([b"a", b"bc", b"", b"d\0e", b"f", b"g"]),
#	    flag=np.array([1, 0, 1, 0, 1, 0], bool), big=np.full(6, 2**64 - 1, "u8"))
. "${0%/*}/../tap.sh"
. tests/cmd/from.sh

rows=$PWD/tests/fixture/from/rows.npy arrays=$PWD/tests/fixture/from/arrays.npz
# data SAMPLES...: the bytes of these
data() { for i; do stele cat "$image" "rows.npy/000000000$i"; done; }

built "$rows"
is "0 5" "$status $(field "$out" .samples)" ".npy: is built" || diag "$err"
is "data:f32[2,3]" "$(types)" ".npy: dtype and shape"
ok ".npy: rows" cmp <(data 0 1 2 3 4) <(tail -c 120 "$rows")
wanted=$(digest)
gzip -c "$rows" >"$tmp/rows.npy"
built "$tmp/rows.npy"
is "0 $wanted" "$status $(digest)" ".npy, gzip: the same" || diag "$err"
built - < <(cat "$rows")
is "0 5" "$status $(field "$out" .samples)" ".npy, a pipe" || diag "$err"
run stele append -q "$rows" "$image@v2"
is 0 "$status" ".npy: append" || diag "$err"

built "$arrays"
is "0 6" "$status $(field "$out" .samples)" ".npz: is built" || diag "$err"
is "image:u8[4,2] label:i64 half:f64 score:f64 word:utf8 raw:bytes flag:i64 big:u64[]" "$(types)" \
	".npz: types"
is '[-1,0,"a",1,1] [0,1.5,"ü",2,0] [1,-2,"€uro",0,1] [-1,"inf","😀",3,0] '\
'[0,5.960464477539063e-08,"",1,1] [1,65504,"x",1,0]' "$(stele ls --fields --json "$image" | jq -sc \
	'sort_by(.key)[].fields | [.label, .half, .word, .raw, .flag]' | paste -sd ' ')" \
	".npz: values"
built --key=label "$arrays"
is 1 "$status" ".npz: a key twice"
built --key=score "$arrays"
wrong "arrays.npz' at byte 0: the sample has no 'score' that can be its key" \
	".npz: a key that is no integer"
built --key=word "$arrays"
wrong "a key that is empty" ".npz: an empty key"
built --key=word --on-error=skip "$arrays"
is "0 5 😀" "$status $(field "$out" .samples) $(stele ls "$image" | grep 😀)" ".npz: --key"

# ---- damage ----

head -c 200 "$rows" >"$tmp/rows.npy"
built "$tmp/rows.npy"
wrong "rows.npy' at byte 128: array 'data' is cut short: it has 5 rows" ".npy: cut"
printf '\x93NUMPY\1\0\x76\0%-117s\n' "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }" \
	>"$tmp/rows.npy"
head -c 24 /dev/zero >>"$tmp/rows.npy"
built "$tmp/rows.npy"
wrong "rows.npy' at byte 0: .*Fortran order" ".npy: Fortran order"
ok "the message itself says how to go on" not grep -q "^hint" <<<"$err" || diag "$err"
for header in "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}" \
	"{'descr': '|O', 'fortran_order': False, 'shape': (2, 3)}" \
	"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3)}" \
	"{'descr': '<f4', 'fortran_order': False, 'shape': ()}" \
	"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 0)}" \
	"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 18446744073709551615)}" \
	"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 2147483647, 2147483647)}" \
	"{'descr': '<f4', 'fortran_order': False}" "{'descr': '<f4'" "junk"; do
	printf '\x93NUMPY\1\0\x76\0%-117s\n' "$header" >"$tmp/rows.npy"
	head -c 24 /dev/zero >>"$tmp/rows.npy"
	built "$tmp/rows.npy"
	wrong "rows.npy' at byte (0|10|12): array 'data' has " ".npy: $header"
done
# A zip of stored members, as np.savez() writes it: what changed shows in its checksums alone.
# zip_of NAME FILE...: to standard output; the checksums are those of the file ZIPSUM, if set
zip_of() {
	perl -e '
		local $/;
		sub bytes { open my $file, $_[0] or die; binmode $file; <$file> }
		sub crc { substr bytes("gzip -c $_[0] |"), -8, 4 }
		while (my ($name, $path) = splice @ARGV, 0, 2) {
			my $data = bytes($path);
			my $head = pack "v5 a4 V2 v2", 20, 0, 0, 0, 0x21,
				crc($ENV{ZIPSUM} // $path), length $data, length $data,
				length $name, 0;
			$list .= "PK\1\2" . pack("v", 20) . $head .
				pack("v3 V2", 0, 0, 0, 0, length $out) . $name;
			$out .= "PK\3\4$head$name$data";
			$count++;
		}
		print $out, $list, "PK\5\6", pack "v4 V2 v", 0, 0, $count, $count,
			length $list, length $out, 0;' "$@"
}
# What could be done instead is said.
while IFS=' ' read -r type why; do
	printf '\x93NUMPY\1\0\x76\0%-117s\n' \
		"{'descr': '$type', 'fortran_order': False, 'shape': (3,)}" >"$tmp/rows.npy"
	head -c 24 /dev/zero >>"$tmp/rows.npy"
	built "$tmp/rows.npy"
	wrong "array 'data' has $why$" ".npy of $type"
	zip_of a.npy "$rows" b.npy "$tmp/rows.npy" >"$tmp/type.npz"
	built "$tmp/type.npz"
	wrong "array 'b' has $why \\(--arrays takes others\\)$" ".npz of $type"
	built --arrays=a "$tmp/type.npz"
	is "0 5" "$status $(field "$out" .samples)" ".npz of $type: --arrays takes others"
done <<'END'
<M8[s] dates or times \(view\('i8'\) makes integers of them\)
|V8 opaque bytes
<f16 elements of a type that a field cannot have
END
# Its rows are complete before the checksum behind them is read.
for filter in gzip bzip2 xz zstd lz4; do
	$filter -c <"$rows" 2>"$tmp/null" >"$tmp/rows.npy" || continue
	built "$tmp/rows.npy"
	is "0 5" "$status $(field "$out" .samples)" ".npy, $filter" || diag "$err"
	perl -0777 -pi -e 'substr($_, -6, 1) ^= "\1"' "$tmp/rows.npy"
	built --from=npy "$tmp/rows.npy"
	wrong "rows.npy' at byte [0-9]+, decompressed: " ".npy, $filter: a wrong checksum"
done
cat "$rows" "$rows" >"$tmp/rows.npy"
for form in cat gzip; do
	$form <"$tmp/rows.npy" >"$tmp/two.npy"
	built "$tmp/two.npy"
	is "0 5" "$status $(field "$out" .samples)" ".npy, two of them, $form: the first"
	ok ".npy, two of them, $form: a warning" \
		grep -q "two.npy' at byte 248.*: what is behind the" <<<"$err" || diag "$err"
done
# Up to the directory at the end, which is not read. Some bits, as of times, mean nothing here.
built "$arrays"
wanted=$(digest)
size=$(perl -0777 -ne 'print index $_, "PK\1\2"' "$arrays")
quiet=0 odd=0
for ((i = 0; i < size; i += 97)); do
	I=$i perl -0777 -pe 'vec($_, 8 * $ENV{I} + 5, 1) ^= 1' "$arrays" >"$tmp/arrays.npz"
	built --from=npz "$tmp/arrays.npz"
	[ "$status" = 1 ] || [ "$status $(digest)" = "0 $wanted" ] || quiet=$((quiet + 1))
	[ -z "$err" ] || not grep -q '^$' <<<"$err" || odd=$((odd + 1))
	head -c "$i" "$arrays" >"$tmp/arrays.npz"
	built --from=npz "$tmp/arrays.npz"
	[ "$status" = 1 ] || quiet=$((quiet + 1))
done
is 0 "$quiet" ".npz: cut and flipped"
is 0 "$odd" ".npz: messages are a line each"

many=()
for n in {10..73}; do many+=("long-name-of-array-$n.npy" "$rows"); done
zip_of "${many[@]}" >"$tmp/many.npz"
built --arrays=none "$tmp/many.npz"
some=$(printf "'long-name-of-array-%d', " {10..29})
misused "no array 'none' in '$tmp/many.npz' (there are $some...)" "some of many arrays are named"
zip_of a.npy "$rows" b.npy "$rows" >"$tmp/stored.npz"
built "$tmp/stored.npz"
is "0 5 a:f32[2,3] b:f32[2,3]" "$status $(field "$out" .samples) $(types)" ".npz: stored" ||
	diag "$err"
size=$(stat -c %s "$rows") quiet=0
for ((i = size - 120; i < size; i += 17)); do
	I=$i perl -0777 -pe 'vec($_, 8 * $ENV{I} + 3, 1) ^= 1' "$rows" >"$tmp/flip"
	ZIPSUM=$rows zip_of a.npy "$rows" b.npy "$tmp/flip" >"$tmp/flip.npz"
	built "$tmp/flip.npz"
	[ "$status" = 1 ] && grep -q "flip.npz' at byte 283: array 'b': ZIP bad CRC" <<<"$err" ||
		quiet=$((quiet + 1))
done
is 0 "$quiet" ".npz: no byte of a member can be changed" || diag "$err"
built --on-error=skip --allow-empty "$tmp/flip.npz"
is "0 0 1" "$status $(field "$out" '"\(.samples) \(.skipped.unreadable.count)"')" \
	".npz: --on-error=skip has no rows without a field" || diag "$err"
built --on-error=skip "$tmp/flip.npz"
wrong "source has no samples that can be read" ".npz: --on-error=skip, and nothing else"
ok ".npz: --on-error=skip: why" grep -q "^hint: what was skipped, and why, follows" <<<"$err"
built --on-error=skip "$tmp/stored.npz" "$tmp/flip.npz"
is "0 5 a:f32[2,3] b:f32[2,3]" "$status $(field "$out" .samples) $(types)" \
	".npz: --on-error=skip takes those of others" || diag "$err"
built --on-error=skip --arrays=a "$tmp/flip.npz"
is "0 5 a:f32[2,3]" "$status $(field "$out" .samples) $(types)" ".npz: --arrays does without it" ||
	diag "$err"
for byte in 283 284 285; do
	I=$byte perl -0777 -pe 'substr($_, $ENV{I}, 1) ^= "\1"' "$tmp/stored.npz" >"$tmp/flip.npz"
	built "$tmp/flip.npz"
	wrong "flip.npz' at byte " ".npz: a header that is damaged, at $byte"
done
# A shape has no value that stands for none.
npz() {
	python3 - "$tmp" <<'END'
import struct, sys, zipfile
def npy(shape, count):
    head = "{'descr': '<i8', 'fortran_order': False, 'shape': %s, }" % (shape,)
    head = head.ljust(117) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + bytes(8 * count)
for name, arrays in ("xt", {"x": "(2,)", "t": "(2, 3)"}), ("x", {"x": "(2,)"}):
    with zipfile.ZipFile(f"{sys.argv[1]}/{name}.npz", "w") as file:
        for array, shape in arrays.items():
            file.writestr(array + ".npy", npy(shape, 6 if "3" in shape else 2))
END
}
npz
built "$tmp/xt.npz" "$tmp/x.npz"
wrong "x.npz' at byte 0: no array 't', which a file before it has" ".npz: an array less"
built "$tmp/x.npz" "$tmp/xt.npz"
wrong "xt.npz' at byte 0: an array 't', which no file before it has" ".npz: an array more"
built --on-error=skip "$tmp/xt.npz" "$tmp/x.npz"
is "0 2 1" "$status $(field "$out" .samples) $(field "$out" .skipped.unreadable.count)" \
	".npz: --on-error=skip leaves the file out"
built --arrays=x "$tmp/xt.npz" "$tmp/x.npz"
is "0 4 x:i64" "$status $(field "$out" .samples) $(types)" ".npz: what both have" || diag "$err"
# A name stands in front of the member and in the directory.
name=$(LC_ALL=C grep -obUaF b.npy "$tmp/stored.npz" | head -n 1 | cut -d : -f 1)
I=$name perl -0777 -pe 'substr($_, $ENV{I}, 1) = "c"' "$tmp/stored.npz" >"$tmp/flip.npz"
built "$tmp/flip.npz"
wrong "flip.npz' at byte [0-9]*: a member has not the name that the zip's directory says" \
	".npz: a name that is damaged"
built --on-error=skip "$tmp/stored.npz" "$tmp/flip.npz"
is "0 5 a:f32[2,3] b:f32[2,3] 1" "$status $(field "$out" .samples) $(types) $(
	field "$out" .skipped.unreadable.count)" ".npz: --on-error=skip takes none of it" ||
	diag "$err"
# The directory is found whatever is behind it: a comment, as its end says, or other bytes.
(head -c -2 "$tmp/stored.npz" && printf '\007\0comment') >"$tmp/comment.npz"
(cat "$tmp/stored.npz" && echo more) >"$tmp/behind.npz"
for file in comment behind; do
	built "$tmp/$file.npz"
	is "0 5" "$status $(field "$out" .samples)" ".npz: $file" || diag "$err"
	perl -0777 -pe 'substr($_, 283, 1) = "Q"' "$tmp/$file.npz" >"$tmp/flip.npz"
	built "$tmp/flip.npz"
	wrong "there are 1 members, and the zip says 2" ".npz: $file, a header damaged"
done
for ((size = $(stat -c %s "$tmp/stored.npz") - 1; size > 100; size -= 7)); do
	head -c "$size" "$tmp/stored.npz" >"$tmp/flip.npz"
	built "$tmp/flip.npz"
	[ "$status" = 1 ] || break
done
ok ".npz: cut in its directory" test "$size" -le 100 || diag "$size"

(cat "$rows" && echo) >"$tmp/more"
zip_of a.npy "$tmp/more" >"$tmp/more.npz"
built "$tmp/more.npz"
wrong "more.npz' at byte 0: array 'a' has bytes behind its 5 rows" ".npz: a member that goes on"

done_testing
