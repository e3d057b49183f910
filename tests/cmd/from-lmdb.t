#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# from-lmdb.t - LMDB environments: names, Caffe's values, a writer meanwhile, damage
#
# tests/fixture/from/plain, datum and named.mdb.gz are data files that the package lmdb 3.0.0
# wrote (datum() packs a Datum as Caffe's convert_imageset does):
#	with lmdb.open("plain", map_size=1 << 20).begin(write=True) as txn:
#	    for i in range(30):
#	        txn.put(b"%08d" % i, bytes(j * i & 255 for j in range(i * 300)))
#	with lmdb.open("datum", map_size=1 << 20).begin(write=True) as txn:
#	    for i in range(6):
#	        txn.put(b"%08d_cat%d.jpg" % (i, i),
#	                datum(3, 4, i + 1, bytes(range(12 * (i + 1))), label=i - 1))
#	env = lmdb.open("named.lmdb", subdir=False, map_size=1 << 20, max_dbs=3)
#	a, b = env.open_db(b"train"), env.open_db(b"ints", integerkey=True)
#	with env.begin(write=True) as txn:
#	    txn.put(b"meta", b"x" * 48)
#	    for i in range(5): txn.put(b"k%d" % i, b"v%d" % i, db=a)
#	    for i in (3, 300, 70000): txn.put(struct.pack("Q", i), b"%d" % i, db=b)
# loose.mdb.gz has 25 pages of 29: those at the end were freed by the transaction that took them.
#	R = random.Random(10)
#	for _ in range(3):
#	    with env.begin(write=True) as t:
#	        for i in range(6):
#	            k = b"%d" % R.randint(0, 99)
#	            data[k] = b"%d" % i * R.choice([10, 5000, 20000]); t.put(k, data[k])
#	        for k in R.sample(sorted(data), len(data) // 3): t.delete(k); del data[k]
. "${0%/*}/../tap.sh"
. tests/cmd/from.sh

fixture() { gzip -dc "tests/fixture/from/$1.mdb.gz"; }

mkdir "$tmp/plain" "$tmp/datum" "$tmp/wanted"
fixture plain >"$tmp/plain/data.mdb"
fixture datum >"$tmp/datum/data.mdb"
fixture named >"$tmp/named.lmdb"
perl -e 'for my $i (0 .. 29) { open my $out, ">", sprintf "%s/%08d", $ARGV[0], $i;
	print $out pack "C*", map { $_ * $i & 255 } 0 .. $i * 300 - 1 }' "$tmp/wanted"

# ---- environments ----

built "$tmp/plain"
is "0 30" "$status $(field "$out" .samples)" "a directory: is built" || diag "$err"
must stele extract -q "$image" "$tmp/got"
ok "a directory: keys and values" diff -r "$tmp/wanted" "$tmp/got"
is "data.mdb" "$(ls "$tmp/plain")" "no lock file is made"
wanted=$(digest)
built "$tmp/plain/data.mdb"
is "0 $wanted" "$status $(digest)" "its data file" || diag "$err"
cp "$tmp/plain/data.mdb" "$tmp/single.lmdb"
built --from=lmdb "$tmp/single.lmdb"
is "0 $wanted" "$status $(digest)" "a single file" || diag "$err"
for from in "" --from=lmdb; do
	built ${from:+"$from"} - <"$tmp/single.lmdb"
	is "0 $wanted " "$status $(digest) $err" "standard input that is one, $from"
done
is "" "$(find "$tmp" -maxdepth 1 -name '*-lock')" "no lock file is made there"
built --from=dir "$tmp/plain"
is "0 data.mdb" "$status $(stele ls "$image")" "--from=dir takes the files" || diag "$err"
is "" "$err" "which is no surprise"
mkdir "$tmp/beside"
cp "$tmp/plain/data.mdb" "$tmp/beside"
touch "$tmp/beside"/{lock.mdb,.hidden}
built "$tmp/beside"
is "0 " "$status $err" "a directory of nothing else"
touch "$tmp/beside"/{2,1}.jpg
built "$tmp/beside"
is "0 30" "$status $(field "$out" .samples)" "one of other files" || diag "$err"
ok "says that those are left out" grep -qF "warning: '$tmp/beside' is an environment of LMDB, so \
'1.jpg' and all else in it is left out (--from=dir takes the files)" <<<"$err" || diag "$err"
built --from=lmdb "$tmp/beside"
is "0 " "$status $err" "unless that was asked for"
gzip -c "$tmp/plain/data.mdb" >"$tmp/plain.gz"
built "$tmp/plain.gz"
is 1 "$status" "compressed"
ok "is refused" grep -q "compressed or comes through a pipe" <<<"$err" || diag "$err"

built "$tmp/named.lmdb"
is "0 meta" "$status $(stele ls "$image")" "the database without a name" || diag "$err"
ok "the others are named" grep -q "database 'train' is left out (--database takes it)" <<<"$err"
built --database=train "$tmp/named.lmdb"
is "0 k0 k1 k2 k3 k4" "$status $(stele ls "$image" | paste -sd ' ')" "--database" || diag "$err"
built --database=ints "$tmp/named.lmdb"
is "0 0000000003 0000000300 0000070000" "$status $(stele ls "$image" | paste -sd ' ')" \
	"keys that are integers" || diag "$err"
is 70000 "$(stele cat "$image" 0000070000)" "and their values"
mkdir "$tmp/none"
built --from=lmdb "$tmp/none"
is "1 stele: the directory '$tmp/none' has no environment of LMDB ('data.mdb')" "$status $err" \
	"a directory without one"
built --database=none "$tmp/named.lmdb"
misused "no database 'none' in '$tmp/named.lmdb' (there are 'ints', 'train')" "no such database"
built --database=meta "$tmp/named.lmdb"
misused "no database 'meta' in '$tmp/named.lmdb' (there are 'ints', 'train')" "a key is none"
built --database=none "$tmp/datum"
misused "no database 'none' in '$tmp/datum/data.mdb' (there is only the one without a name)" \
	"nor has it any"
built --database=x "$tmp/wanted"
is 2 "$status" "--database is for LMDB"

# ---- Datum ----

built --datum "$tmp/datum"
is "0 -1:1 0:2 1:3 2:4 3:5 4:6" "$status $(stele ls --fields --json "$image" |
	jq -sr 'sort_by(.key)[].fields | "\(.label):\(.width)"' | paste -sd ' ')" \
	"Datum: label and shape" || diag "$err"
is "$(seq 0 35 | paste -sd ' ')" \
	"$(stele cat --field=data "$image" 00000002_cat2.jpg | od -An -v -w100 -tu1 | xargs)" \
	"Datum: bytes"
built "$tmp/datum"
ok "a hint at --datum without it" grep -q "hint: .*--datum makes fields" <<<"$err" || diag "$err"
built --datum "$tmp/plain"
is 1 "$status" "what is no Datum"
ok "is damage" grep -q "data.mdb' at byte [0-9]*: the value is no Datum" <<<"$err" || diag "$err"
built --datum tests/fixture/from/records.tfrecord
is 2 "$status" "--datum is for LMDB"

# ---- an environment that grows, and one that is written meanwhile ----

must mkdir "$tmp/grows"
must "$BUILD/tests/cmd/lmdb-writer" "$tmp/grows" 3 10 1
built "$tmp/grows"
must "$BUILD/tests/cmd/lmdb-writer" "$tmp/grows" 5 10 1
run stele append --json --update "$tmp/grows" "$image@v2"
is "0 2 0" "$status $(field "$out" '"\(.added) \(.updated)"')" "append --update: new keys" ||
	diag "$err"
must "$BUILD/tests/cmd/lmdb-writer" "$tmp/grows" 2 10 2
run stele append --json --update --quick "$tmp/grows" "$image@v3"
is "0 0 2" "$status $(field "$out" '"\(.added) \(.updated)"')" "append --update: new values" ||
	diag "$err"

must mkdir "$tmp/busy"
must "$BUILD/tests/cmd/lmdb-writer" "$tmp/busy" 100 3000 1
"$BUILD/tests/cmd/lmdb-writer" "$tmp/busy" 100 3000 100000 2>"$tmp/writer" &
writer=$!
mixed=0 failed=0
for _ in 1 2 3 4 5 6 7 8; do
	built "$tmp/busy"
	[ "$status" = 0 ] || failed=$((failed + 1))
	rm -rf "$tmp/got"
	must stele extract -q "$image" "$tmp/got"
	[ "$(cat "$tmp/got"/* | fold -w1 | sort -u | wc -l)" = 1 ] || mixed=$((mixed + 1))
done
ok "a writer is at it" kill -0 "$writer"
kill "$writer"
wait "$writer" 2>/dev/null
is "0 0" "$failed $mixed" "a writer meanwhile: one of its transactions" || diag "$err"

# ---- damage ----

size=$(stat -c %s "$tmp/single.lmdb")
wrong=0 unnamed=0
for ((i = 0; i < size; i += 4096)); do
	head -c "$i" "$tmp/plain/data.mdb" >"$tmp/cut.lmdb"
	built --from=lmdb "$tmp/cut.lmdb"
	[ "$status" = 1 ] || wrong=$((wrong + 1))
	grep -q "cut.lmdb' at byte [0-9]*: " <<<"$err" ||
		unnamed=$((unnamed + 1))
done
is "0 0" "$wrong $unnamed" "no page can be cut off unnoticed" || diag "$err"

fixture loose >"$tmp/loose.lmdb"
built "$tmp/loose.lmdb"
is "0 31 41 46 53 58 77 86 87 98" "$status $(stele ls "$image" | paste -sd ' ')" \
	"pages at the end that were never written" || diag "$err"
head -c -4096 "$tmp/loose.lmdb" >"$tmp/cut.lmdb"
built "$tmp/cut.lmdb"
wrong "cut.lmdb' at byte 98304: cut short: the environment has 29 pages" "but no other"

# Of the first page of facts, or both: its size of pages, of the map, and all behind the magic.
for zeros in '40 4' '24 24' '24 136' '16 144'; do
	for pages in 1 2; do
		cp "$tmp/single.lmdb" "$tmp/zero.lmdb"
		for ((i = 0; i < pages; i++)); do
			must dd if=/dev/zero of="$tmp/zero.lmdb" bs=1 count="${zeros#* }" \
				seek=$((i * 4096 + ${zeros% *})) conv=notrunc status=none
		done
		built --from=lmdb "$tmp/zero.lmdb"
		wrong "zero.lmdb' at byte [0-9]*: .*: what follows is lost" "zeros, $zeros, $pages"
	done
done

# Bits of what LMDB walks: headers and nodes of pages, not values. Without its last page of facts,
# an environment is as before its last transaction: empty.
perl -0777 -ne 'for (my $at = 0; $at < length; $at += 4096) {
		my $flags = unpack "S", substr $_, $at + 10, 2;
		next if $flags & 4;
		print $at + $_, "\n" for 0 .. ($flags & 8 ? 150 : 110)
	}' "$tmp/single.lmdb" >"$tmp/places"
crashed=0 unnamed=0 seen=0
while read -r at; do
	[ $((at % 5)) = 0 ] || continue
	I=$at B=$((at % 8)) perl -0777 -pe \
		'vec($_, 8 * $ENV{I} + $ENV{B}, 1) ^= 1' "$tmp/single.lmdb" >"$tmp/flip.lmdb"
	built --from=lmdb "$tmp/flip.lmdb"
	case $status in
	0) ;;
	1)
		seen=$((seen + 1))
		grep -q "flip.lmdb'\|has no samples" <<<"$err" || unnamed=$((unnamed + 1)) ;;
	*) crashed=$((crashed + 1)) && diag "byte $at: $status $err" ;;
	esac
done <"$tmp/places"
is "0 0" "$crashed $unnamed" "damaged pages end no build by a signal"
ok "and some are noticed" [ "$seen" -gt 0 ] || diag "$seen"

done_testing
