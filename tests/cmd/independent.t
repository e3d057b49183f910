#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# independent.t - a reader made from stele-format(5) alone reads what we write
#
# reader.pl checks every byte of an image in its own way, and lists what the
# samples are; that must be what the source holds and what stele says.
. "${0%/*}/../tap.sh"

requires jq --version
requires perl -MDigest::SHA -e 1

reader=tests/cmd/reader.pl

# dump_of_source DIR: key in hex, size, digest of each file, sorted
dump_of_source() {
	(cd "$1" && find . -type f -printf '%P\0' | sort -z | xargs -0r perl \
		-MDigest::SHA -e 'print join(" ", unpack("H*", $_), -s $_,
			Digest::SHA->new(256)->addfile($_)->hexdigest), "\n"
			for @ARGV')
}

# The same of what reader.pl dumped: in order of the keys.
dump_by_key() { cut -d ' ' -f 2-4 "$tmp/dump" | sort; }

# id, size and key in hex, as stele lists them
dump_of_ls() {
	stele ls --json "$1" |
		jq -r '"\(.id) \(.key_base64 // (.key | @base64)) \(.size)"' |
		perl -MMIME::Base64 -lane \
			'print "$F[0] ", unpack("H*", decode_base64($F[1])), " $F[2]"' | sort -n
}

# same_as_source IMAGE DIR WORDS [SNAPSHOT]
same_as_source() {
	local image=$1 dir=$2 words=$3 name=${4:-v1} digest

	run $reader --dump="$name" "$image"
	report=$err
	cp "$tmp/.out" "$tmp/dump"
	is 0 "$status" "$words: sound" || diag "$err"
	digest=$(stele info --json "$image@$name" | jq -r .snapshot.digest)
	ok "$words: digest of the snapshot" \
		grep -q "^snapshot $name .*digest $digest\$" <<<"$report"
	ok "$words: samples are files" \
		diff <(dump_of_source "$dir" | sort) <(dump_by_key)
	ok "$words: ids, keys and sizes are those of ls" \
		diff <(dump_of_ls "$image@$name") <(cut -d ' ' -f 1-3 "$tmp/dump")
}

# built DIR WORDS OPTION...: builds $image; the keys are in the source's order
built() {
	local dir=$1 words=$2
	shift 2
	image=$tmp/$((++images)).stele
	must stele build -q "$@" "$dir" "$image"
	same_as_source "$image" "$dir" "$words"
	ok "$words: the source was sorted" grep -q ' keys sorted$' <<<"$report"
}
images=0

# ---- real trees ----

# At most 250 files of up to 20 kB, in as many directories as there are.
mkdir "$tmp/share"
find /usr/share/doc /usr/share/perl* /usr/share/zoneinfo -type f -size -20k \
	-path '/usr/share/*/*/*' 2>/dev/null | sort |
	awk 'NR % 9 == 1 && n++ < 250' |
	(cd / && sed 's|^/||' | xargs -d '\n' cp --parents -t "$tmp/share")
mv "$tmp/share/usr/share" "$tmp/tree"
built "$tmp/tree" "files of /usr/share"
classes=$(find "$tmp/tree" -mindepth 1 -maxdepth 1 -type d | wc -l)
ok "labels have names" grep -q "field label .* names $classes\$" <<<"$report"
label_of() { # KEY: place of its top directory
	printf '%s\n' "$tmp/tree"/*/ | grep -nF "/${1%%/*}/" | cut -d : -f 1
}
seen=$(shuf -n 20 --random-source=Makefile "$tmp/dump" |
	while read -r _ key _ _ label; do
		key=$(perl -e 'print pack "H*", shift' "$key")
		[ "$(label_of "$key")" = $((label + 1)) ] || echo "$key $label"
	done)
is "" "$seen" "a label is the place of the top directory"
built "$tmp/tree" "granule 4096, in order" --granule=4096 --order=source
is "$(cut -d ' ' -f 2 "$tmp/dump" | sort)" "$(cut -d ' ' -f 2 "$tmp/dump")" \
	"granule 4096, in order: ids ascend with the keys"
built "$tmp/tree" "boundary 32K" --boundary=32K
ok "boundary 32K: is there" grep -q ' boundary 32768 ' <<<"$report"
built "$tmp/tree" "granule 512, no labels" --granule=512 --label-from=none
sound=$image

mkdir "$tmp/none"
must stele build -q --allow-empty "$tmp/none" "$tmp/none.stele"
same_as_source "$tmp/none.stele" "$tmp/none" "an empty directory"

# Names of all bytes and lengths, sizes at the edges of slots.
perl -e 'chdir shift; for my $i (1 .. 255) { next if $i == ord "/";
	open my $f, ">", chr($i) . "x" x ($i % 200) or die;
	print $f chr($i) x ($i * $i % 1000 + ($i % 9 ? 0 : 1000 * $i)) }' \
	"$(mkdir "$tmp/odd" && echo "$tmp/odd")"
built "$tmp/odd" "odd names and sizes" --granule=16

# 127 * 127 digests fill two levels.
perl -e 'chdir shift; for my $i (1 .. 127 * 127 + 1) { my $d = $i % 20;
	mkdir "d$d"; open my $f, ">", "d$d/$i" or die; print $f $i }' \
	"$(mkdir "$tmp/many" && echo "$tmp/many")"
built "$tmp/many" "16130 tiny files" --granule=16
ok "the tree has three levels" grep -q 'levels 2 ' <<<"$report"

# ---- what the builder cannot make ----

mkdir "$tmp/features"
must "$BUILD/tests/cmd/features" "$tmp/features.stele" "$tmp/features"
same_as_source "$tmp/features.stele" "$tmp/features" \
	"segments, boundaries, deleted and void samples" third
is 1198 "$($reader --dump=first "$tmp/features.stele" 2>&- | wc -l)" \
	"the snapshot before is there as well"

# ---- damage ----

# flips IMAGE OFFSET...: which of these bytes may change unseen
flips() {
	local from=$1 offset byte
	shift
	for offset; do
		byte=$(od -An -tu1 -j "$offset" -N 1 "$from")
		cp "$from" "$tmp/flipped"
		# shellcheck disable=SC2059
		printf "\\x$(printf %x $((byte ^ 0x10)))" |
			dd of="$tmp/flipped" bs=1 seek="$offset" conv=notrunc status=none
		$reader "$tmp/flipped" >"$tmp/flips.out" 2>&1
		[ $? = 3 ] || echo "$offset"
	done
}
is "" "$(flips "$sound" 4100 8200 1048600 1052800)" "a superblock"
# Behind the last block that is written there is room, which nothing covers.
end=$(perl -0777 -ne 's/\0+\z//; print 4096 * int((length() + 4095) / 4096)' "$sound")
begin=$((0x200000))
is "" "$(flips "$sound" "$((begin + 40))" "$((begin + 300))" \
	"$((begin + 4099))")" "a descriptor"
mapfile -t some < <(shuf -n 6 -i "$begin-$((end - 1))" --random-source=Makefile)
is "" "$(flips "$sound" "${some[@]}")" "any byte of segment and catalog"
is "" "$(flips "$sound" $((0x102000 + 40)) $((0x102000 + 300)))" "nor of its mirror"
is 4095 "$(flips "$sound" 4095)" "but block 0 is not ours"
truncate -s $((end - 1)) "$sound"
run $reader "$sound"
is 3 "$status" "a target too short"
truncate -s 0 "$sound"
run $reader "$sound"
is 3 "$status" "an empty one"

done_testing
