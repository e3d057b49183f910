#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# from-hdf5.t - rows of the datasets of HDF5 files, whole and damaged
#
# tests/fixture/from/arrays.h5.gz and splits.h5.gz were written by h5py 3.14.0, NumPy 2.2.6:
#	r = np.random.default_rng(1)
#	f = h5py.File("arrays.h5", "w", libver="earliest")
#	f.create_dataset("image", data=r.integers(0, 255, (6, 4, 2), "u1"), chunks=(4, 3, 2),
#	    compression="gzip", fletcher32=True)
#	f["label"] = np.arange(6, dtype=">i4") % 3 - 1
#	f["half"] = np.array([0, 1.5, -2, np.inf, 6e-8, 65504], "f2")
#	f["score"] = r.random(6)
#	f["flag"] = np.array([1, 0, 1, 0, 1, 0], bool)
#	f["word"] = np.array([b"a", b"bc", b"", b"d", b"e", b"f"])
#	f.create_dataset("text", data=["a", "ü", "€uro", "😀", "", "x" * 70000],
#	    dtype=h5py.string_dtype())
#	jpeg = f.create_dataset("jpeg", (6,), h5py.vlen_dtype("u1"))
#	tokens = f.create_dataset("tokens", (6,), h5py.vlen_dtype("i4"))
#	for i in range(6):
#	    jpeg[i] = np.arange(i * 50, dtype="u1")
#	    tokens[i] = np.arange(i, dtype="i4") - 1
#	f["plain/rows"] = r.standard_normal((6, 2, 3)).astype("f4")
#	f["epoch"] = 7
#	f["linked"] = h5py.SoftLink("/score")
#	f = h5py.File("splits.h5", "w", libver="earliest")
#	for name, count in ("train", 4), ("test", 3):
#	    f[name + "/x"] = np.arange(count * 2, dtype="f4").reshape(count, 2)
#	    f[name + "/y"] = np.arange(count)
# and lzf.h5.gz:
#	f = h5py.File("lzf.h5", "w", libver="earliest")
#	f.create_dataset("x", data=np.zeros((20, 30), "u1"), compression="lzf")
# and enum.h5.gz:
#	f = h5py.File("enum.h5", "w", libver="earliest")
#	f.create_dataset("label", data=np.array([0, 1, 0], "i1"),
#	    dtype=h5py.enum_dtype({"cat": 0, "dog": 1}, "i1"))
#	f["flag"] = np.array([1, 0, 1], bool)
# and newer.h5.gz by h5py 3.16.0, of HDF5 2.0.0:
#	f = h5py.File("newer.h5", "w", libver="latest")
#	f.create_dataset("a", data=np.arange(12, dtype="i4").reshape(4, 3), chunks=(4, 3),
#	    compression="gzip")
# and wide.h5.gz, long.h5.gz, with byte 11 or 4 of the shape in the file changed to 0x21:
#	f = h5py.File("wide.h5", "w", libver="earliest")
#	f.create_dataset("z", data=np.arange(60, dtype="i4").reshape(20, 3), chunks=(5, 3),
#	    maxshape=(None, 3) in long.h5, compression="gzip")
. "${0%/*}/../tap.sh"
. tests/cmd/from.sh

h5=$tmp/arrays.h5
gzip -dc tests/fixture/from/arrays.h5.gz >"$h5"
gzip -dc tests/fixture/from/splits.h5.gz >"$tmp/splits.h5"
# bytes ROW FIELD
bytes() { stele cat --field="$2" "$image" "arrays.h5/000000000$1" | xxd -p | tr -d '\n'; }

# ---- what there is ----

must cp "$h5" "$tmp/held.h5"
exec 7<"$tmp/held.h5"
must flock -x 7
built "$tmp/held.h5"
exec 7<&-
is "hint: close it where it is written, and try again" "$(sed -n 2p <<<"$err")" \
	"what a writer has open is not damaged" || diag "$err"
built "$h5"
is "0 6" "$status $(field "$out" .samples)" "is built" || diag "$err"
is 'flag:i64 half:f64 image:u8[4,2] jpeg:bytes label:i64 plain_rows:f32[2,3] score:f64 text:utf8 '\
'tokens:i32[null] word:utf8' "$(types)" "types"
is '[-1,0,"a","a",1] [0,1.5,"ü","bc",0] [1,-2,"€uro","",1] [-1,"inf","😀","d",0] '\
'[0,5.960464477539063e-08,"","e",1] [1,65504,70000,"f",0]' "$(
	stele ls --fields --json "$image" | jq -sc \
	'sort_by(.key)[].fields | [.label, .half, .text, .word, .flag] |
	.[2] |= if length > 99 then length else . end' | paste -sd ' ')" "values"
is "$(perl -e 'print join "", map { sprintf "%02x", $_ } 0 .. 149')" "$(bytes 3 jpeg)" \
	"bytes of a length each"
is "ffffffff000000000100000002000000 " "$(bytes 4 tokens) $(bytes 0 tokens)" \
	"tensors of a length each"
# As h5py reads them.
is "476f 77dd 441e 5e6b" "$(bytes 5 image | fold -w4 | paste -sd ' ')" "rows of compressed chunks"
is 24 "$(stele cat --field=plain_rows "$image" arrays.h5/0000000003 | wc -c)" "rows that stay there"
ok "a scalar is named" grep -q "array 'epoch' has no rows: it is left out" <<<"$err"
ok "so is a link" grep -q "'linked' is a link: it is left out" <<<"$err"
gzip -dc tests/fixture/from/lzf.h5.gz >"$tmp/lzf.h5"
run stele build "$tmp/lzf.h5" "$tmp/lzf.stele"
is 1 "$status" "a filter that is h5py's own"
ok "is named" grep -q "array 'x' needs filter 32000 (lzf), which libhdf5 has no" <<<"$err" ||
	diag "$err"
run stele append -q "$h5" "$image@v2"
is 0 "$status" "append" || diag "$err"

(head -c 512 /dev/zero && cat "$h5") >"$tmp/user.h5"
built "$tmp/user.h5"
is "0 6" "$status $(field "$out" .samples)" "behind a block of the user's" || diag "$err"
built --key=word --on-error=skip "$h5"
is "0 a bc d e f" "$status $(stele ls "$image" | sort | paste -sd ' ')" "--key: text" || diag "$err"
built - <"$h5"
is "0 6" "$status $(field "$out" .samples)" "a file that is redirected" || diag "$err"
built - < <(cat "$h5")
wrong "cannot read an HDF5 file that is compressed or comes through a pipe" "a pipe"
gzip -c "$h5" >"$tmp/z.h5"
built --from=hdf5 "$tmp/z.h5"
wrong "cannot read an HDF5 file that is compressed" "gzip"

# ---- some of it ----

built "$tmp/splits.h5"
wrong "array 'train/x' has 4 rows, and 'test/x' 3 \(--arrays takes some\)" \
	"groups of different size"
built --arrays=train "$tmp/splits.h5"
is "0 4 x:f32[2] y:i64" "$status $(field "$out" .samples) $(types)" "--arrays: a group" ||
	diag "$err"
built --arrays=test/y,test/x "$tmp/splits.h5"
is "0 3 test_x:f32[2] test_y:i64" "$status $(field "$out" .samples) $(types)" "--arrays: arrays" ||
	diag "$err"
built --arrays=test,none "$tmp/splits.h5"
misused "no array 'none' in '$tmp/splits.h5' (there are 'test/x', 'test/y', 'train/x', 'train/y')" \
	"--arrays: one that is not there"
built --arrays=label,word tests/fixture/from/arrays.npz
is "0 label:i64 word:utf8" "$status $(types)" "--arrays: of npz" || diag "$err"
built --arrays=none tests/fixture/from/arrays.npz
misused "no array 'none' in 'tests/fixture/from/arrays.npz' (there are 'image', 'label', 'half', \
'score', 'word', 'raw', 'flag', 'big')" "of npz, too"
built --arrays=x tests/fixture/from/rows.npy
is 2 "$status" "--arrays: of what has none"

# ---- damage ----

size=$(stat -c %s "$h5") odd=0
for ((i = 8; i < size; i += i < 16000 ? 397 : 9973)); do
	head -c "$i" "$h5" >"$tmp/cut.h5"
	built --from=hdf5 "$tmp/cut.h5"
	[ "$status" = 1 ] && grep -q "cut.h5' at byte " <<<"$err" || odd=$((odd + 1))
done
is 0 "$odd" "no end can be cut off" || diag "$err"

# A chunk of what has checksums: without one of its fields no row is taken.
I=$(perl -0777 -ne 'print index $_, "\x78\x5e", 4000' "$h5") perl -0777 -pe \
	'substr($_, $ENV{I} + 9, 1) ^= "\1"' "$h5" >"$tmp/flip.h5"
built "$tmp/flip.h5"
wrong "flip.h5' at byte 0: array 'image': " "a chunk that is damaged"
built --on-error=skip "$tmp/flip.h5"
wrong "source has no samples" "a chunk that is damaged, --on-error=skip"
built --on-error=skip --key=word "$h5" "$tmp/flip.h5"
is "0 5" "$status $(field "$out" .samples)" "but that of others" || diag "$err"
built --on-error=skip "$tmp/splits.h5"
wrong "source has no samples" "groups of different size, --on-error=skip"

# Metadata has no checksums in this version of the format; the chunks of images have.
odd=0 seen=0
for ((i = 0; i < 16000; i += 37)); do
	I=$i B=$((i % 8)) perl -0777 -pe 'vec($_, 8 * $ENV{I} + $ENV{B}, 1) ^= 1' "$h5" \
		>"$tmp/flip.h5"
	built --from=hdf5 "$tmp/flip.h5"
	case $status in
	0) ;;
	1) seen=$((seen + 1)) && grep -q "flip.h5'" <<<"$err" || odd=$((odd + 1)) ;;
	*) odd=$((odd + 1)) && diag "byte $i: $status $err" ;;
	esac
done
is 0 "$odd" "flipped bits are no trouble, or named"
ok "and some are noticed" [ "$seen" -gt 20 ] || diag "$seen"

# What computes for long and says nothing: as if the time were over after three frames.
ASAN_OPTIONS=detect_leaks=0 run strace -f -qq -o "$tmp/trace" \
	-e inject=setitimer:signal=SIGPROF:when=4 \
	"$BUILD/stele" build -q --from=hdf5 "$h5" "$tmp/endless.stele"
is 1 "$status" "a libhdf5 that finds no end"
ok "which is said" grep -q "arrays.h5'.*libhdf5 finds no end" <<<"$err" || diag "$err"
is 4 "$(grep -c "setitimer(ITIMER_PROF, .*tv_sec=10," "$tmp/trace")" "after 10 s for each frame"

# A signal to the group is for the parent to act upon, which did not get any here.
for signal in INT TERM HUP; do
	ASAN_OPTIONS=detect_leaks=0 run strace -f -qq -o "$tmp/trace" \
		-e inject=setitimer:signal=SIG$signal:when=3 \
		"$BUILD/stele" build -q --force --from=hdf5 "$h5" "$tmp/group.stele"
	is 0 "$status" "SIG$signal does not end libhdf5's process" || diag "$err"
done

# A dimension that is damaged would be read as fill values, for hours and all memory.
for name in wide long; do gzip -dc "tests/fixture/from/$name.h5.gz" >"$tmp/$name.h5"; done
built "$tmp/wide.h5"
wrong "array 'z' has a dimension that is larger than it can become" "a dimension beyond its limit"
built "$tmp/long.h5"
wrong "array 'z' has far more rows than are in the file" "one without a limit"

# A newer library's file is not damaged; libhdf5 cannot tell.
gzip -dc tests/fixture/from/newer.h5.gz >"$tmp/newer.h5"
built "$tmp/newer.h5"
old="bad version number for layout message \\(libhdf5 [0-9.]* may be too old"
[ "$status" = 0 ] || wrong "$old" "of a newer libhdf5"

# ---- enumerations ----

gzip -dc tests/fixture/from/enum.h5.gz >"$tmp/enum.h5"
built "$tmp/enum.h5"
is "0 flag:i64 label:i64 0 1 0" "$status $(types) $(stele ls --fields --json "$image" |
	jq .fields.label | xargs)" "an enumeration is numbers" || diag "$err"
is 1 "$(grep -c "warning: .*array 'label' is an enumeration: its numbers are taken" <<<"$err")" \
	"of which is warned, and of no bool" || diag "$err"

done_testing
