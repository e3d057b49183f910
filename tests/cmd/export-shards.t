#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# export-shards.t - shards hold whole samples, get their names one by one, and are read back
. "${0%/*}/../tap.sh"
. "${0%/*}/targets.sh"
requires tar --version
requires jq --version

mkdir "$tmp/photos" "$tmp/out"
for i in $(seq -w 200); do
	head -c $((10000 + 10#$i * 37)) /dev/urandom >"$tmp/photos/$i.jpg"
done
head -c 40M /dev/urandom >"$tmp/photos/100.jpg" # larger than what is read ahead
must stele build -q --label-from=none "$tmp/photos" "$tmp/a"
must stele build -q --from=webdataset tests/fixture/from/webdataset.tar "$tmp/fields"

# sharded SIZE NAME OPTION...: of $image, into $tmp/out
sharded() {
	run stele export --shard-size="$1" "${@:3}" "$image" "$tmp/out/$2"
}
# shards: those that are there
shards() { (cd "$tmp/out" && find . -type f -printf '%P\n') | sort | paste -sd ' '; }
# again NAME OPTION...: builds $tmp/b of shards, which says the same as $image
again() {
	rm -f "$tmp/b"
	run stele build -q "${@:2}" "$tmp/out/$1" "$tmp/b"
	is 0 "$status" "$1: read back" || diag "$err"
	run stele diff "$image" "$tmp/b"
	is "0 " "$status $out" "$1: no difference" || diag "$err"
}

# ---- tar ----

image=$tmp/a
sharded 300K 'p-%06d.tar'
is "0 " "$status $err" "tar"
last=$(($(find "$tmp/out" -type f | wc -l) - 1))
ok "says what it wrote" grep -qF "in '$tmp/out/p-{000000..$(printf %06d $last)}.tar'" <<<"$out" ||
	diag "$out"
ok "numbered from 0" test "$last" -gt 4 -a -e "$tmp/out/p-000000.tar" \
	-a -e "$tmp/out/$(printf 'p-%06d.tar' $last)"
wrong=0 names=
for ((i = 0; i <= last; i++)); do
	shard=$tmp/out/$(printf 'p-%06d.tar' $i)
	names+=$(tar -tf "$shard")$'\n' || wrong=$((wrong + 1))
	# Without its last sample, and the 1024 bytes of its end, it has less than that.
	size=$(stat -c %s "$shard")
	final=$(tar -tvf "$shard" | tail -n 1 | awk '{print $3}')
	[ $((size - 1024 - 512 - (final + 511) / 512 * 512)) -lt 307200 ] || wrong=$((wrong + 1))
	[ "$i" = "$last" ] || [ $((size - 1024)) -ge 307200 ] || wrong=$((wrong + 1))
done
is 0 "$wrong" "each ends with the sample that fills it"
is "$(stele ls "$tmp/a" | sum /dev/stdin)" "$(printf %s "$names" | sum /dev/stdin)" \
	"in the order of keys"
again "p-{000000..$(printf %06d $last)}.tar" --label-from=none
mkdir "$tmp/first"
mv "$tmp/out"/* "$tmp/first"
sharded 300K 'p-%06d.tar' -q
ok "the same bytes again" diff -r "$tmp/first" "$tmp/out"
is "" "$out$err" "quietly"

# ---- what is there stays ----

rm "$tmp/out/p-000000.tar"
must stele export -qf "$tmp/a" "$tmp/out/p-000000.tar"
sharded 300K 'p-%06d.tar'
is 1 "$status" "a shard that exists"
ok "is named" grep -qF "cannot create '$tmp/out/p-000000.tar': it exists (use --force" <<<"$err" ||
	diag "$err"
rm "$tmp/out"/*
echo mine >"$tmp/out/p-000003.tar"
sharded 300K 'p-%06d.tar'
is "1 p-000003.tar mine" "$status $(shards) $(cat "$tmp/out/p-000003.tar")" \
	"one that would come later: nothing is written"
mv "$tmp/out/p-000003.tar" "$tmp/out/p-0003.tar"
echo mine >"$tmp/out/p-999999.tar"
echo mine >"$tmp/out/p-x.tar"
remove="hint: remove what is left: a pattern such as '*' would take it, too"
sharded 300K 'p-%06d.tar' --force
is "0 stele: '$tmp/out/p-999999.tar' is left from before, and is no part of this export
$remove" "$status $err" "one that --force does not replace is named"
for i in 000777 000779; do echo mine >"$tmp/out/p-$i.tar"; done
sharded 300K 'p-%06d.tar' --force
is "0 stele: 3 shards, '$tmp/out/p-000777.tar' to '$tmp/out/p-999999.tar', are left from before, \
and are no part of this export
$remove" "$status $err" "several are counted"
is "mine mine mine" "$(cat "$tmp/out"/p-{0003,999999,x}.tar | paste -sd ' ')" "and stays"
rm "$tmp/out"/*
for name in p-000002.tar p-999999.tar; do
	cp "$tmp/a" "$tmp/out/$name"
	for option in -q --force; do
		sharded 300K 'p-%06d.tar' $option
		is "1 $name" "$status $(shards)" "an image as $name, $option: nothing is written"
		ok "it stays" cmp -s "$tmp/a" "$tmp/out/$name"
		is "cannot replace '$tmp/out/$name': it holds an image" \
			"$(sed -n 's/^stele: //p' <<<"$err")" "and is named"
		ok "what to do next" grep -q "^hint: give the file another" <<<"$err"
	done
	rm "$tmp/out/$name"
done

# ---- failures, later ----

flip=$tmp/damaged
cp "$tmp/a" "$flip"
perl -e 'open F, "+<", shift; binmode F; local $/; my $d = <F>; open G, "<", shift;
	my $want = <G>; my $at = index $d, substr($want, length($want) / 2, 64); die if $at < 0;
	seek F, $at, 0; print F chr(ord(substr $d, $at, 1) ^ 4)' "$flip" "$tmp/photos/100.jpg" ||
	bail "no 100.jpg"
image=$flip
sharded 300K 'p-%d.tar'
is 3 "$status" "a damaged sample"
is "p-0.tar p-1.tar p-2.tar" "$(shards | cut -d ' ' -f 1-3)" "shards before it stay"
ok "which is said" grep -qE "^stele: '$tmp/out/p-\{0\.\.[0-9]+\}\.tar': complete, and stays" \
	<<<"$err" || diag "$err"
ok "and are whole" cmp "$tmp/out/p-1.tar" "$tmp/first/p-000001.tar"
is "" "$(find "$tmp/out" -name '.stele*')" "nothing else lies there"
image=$tmp/a
must rm "$tmp/out"/p-[12].tar
sharded 100K 'p-%d.tar' --force -q
image=$flip
sharded 300K 'p-%d.tar' --force
is 3 "$status" "a damaged sample, shards of another export"
ok "those that were not replaced are named" grep -qE \
	"^stele: [0-9]+ shards, '$tmp/out/p-[0-9]+.tar' to .* are left from before" <<<"$err" ||
	diag "$err"
is "$remove" "$(grep "^hint: remove" <<<"$err")" "and what to do about them"
rm "$tmp/out"/*

(ulimit -f 600 && stele export --shard-size=300K "$tmp/a" "$tmp/out/p-%d.tar" 2>"$tmp/err")
is 1 $? "a file that cannot be written"
ok "is named" grep -qE "^stele: cannot write '$tmp/out/p-3.tar': File too large" "$tmp/err" ||
	diag "$(<"$tmp/err")"
is "p-0.tar p-1.tar p-2.tar" "$(shards)" "those before it stay"
rm "$tmp/out"/*

# ---- other formats ----

image=$tmp/fields
sharded 2000 'w-%04d.tar' --to=webdataset
is "0 w-0000.tar w-0001.tar" "$status $(shards | cut -d ' ' -f 1-2)" "WebDataset" || diag "$err"
wrong=0
for shard in "$tmp/out"/w-*.tar; do # each sample has json and txt
	[ "$(tar -tf "$shard" | grep -c 'json$')" = "$(tar -tf "$shard" | grep -c 'txt$')" ] ||
		wrong=$((wrong + 1))
done
is "0" "$wrong" "WebDataset: no sample is divided"
last=$(find "$tmp/out" -name 'w-*' -printf '%f\n' | sort | tail -n 1 | tr -dc 0-9)
again "w-{0000..$last}.tar" --from=webdataset
rm "$tmp/out"/*
sharded 400 'r-%d.tfrecord' --to=tfrecord --example
last=$(($(find "$tmp/out" -type f | wc -l) - 1))
ok "Examples" test "$status" = 0 -a "$last" -gt 1 || diag "$err"
again "r-{0..$last}.tfrecord" --example
is "$(cat "$tmp/out"/r-{0,1}.tfrecord | sum /dev/stdin)" "$(stele export --to=tfrecord --example \
	"$image" - | head -c $(($(cat "$tmp/out"/r-{0,1}.tfrecord | wc -c))) | sum /dev/stdin)" \
	"one after the other they are one file"
rm "$tmp/out"/*
sharded 1G 'r-%d.tfrecord' --to=tfrecord --example
ok "one shard" grep -qF "in '$tmp/out/r-0.tfrecord'" <<<"$out" || diag "$out"
rm "$tmp/out"/*

# ---- names ----

for name in x.tar - 'x-%d-%d.tar' 'x-%s.tar' 'x-%6d.tar' 'x-%00d.tar' 'x-%' 'x%06d/y.tar'; do
	sharded 1M "$name"
	is "2 " "$status $(shards)" "no pattern: $name"
done
run stele export --shard-size=1M --to=lmdb "$tmp/a" "$tmp/out/x-%d"
is 2 "$status" "LMDB has no shards"
run stele export -q "$tmp/fields" "$tmp/out/x-%06d.tar"
is "0 x-%06d.tar" "$status $(shards)" "without a size it is a name as others are"
run stele export --force "$tmp/fields" "$tmp/out/x-%06d.tar"
is "0 hint: with --shard-size=SIZE that name makes several files" \
	"$status $(tail -n1 <<<"$err")" "which is perhaps not meant"

done_testing
