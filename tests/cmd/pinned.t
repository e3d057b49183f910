#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# pinned.t - a pin means the bytes, whoever computed the checksums anew
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version
export STELE_RUN_DIR=$tmp/run
# One size, so that nothing but their digests tells samples apart.
mkdir -p "$tmp/photos/train/cats" "$tmp/photos/train/dogs"
for i in {1..9}; do
	head -c 3000 /dev/urandom >"$tmp/photos/train/cats/$i"
	head -c 3000 /dev/urandom >"$tmp/photos/train/dogs/$i"
done
must stele build -q "$tmp/photos/train" "$tmp/sound"
digest=$(stele info --json "$tmp/sound" | jq -r .snapshot.digest)
first=cats/1 second=cats/2

# forged KIND: a fresh image, forged; sets key to what is said of it
forged() {
	cp "$tmp/sound" "$tmp/image"
	key=$("$BUILD/tests/cmd/forge" "$1" "$tmp/image") || bail "cannot forge $1"
}
pin=$tmp/image@sha256:$digest

# ---- a payload ----

forged payload
stele cat "$tmp/image" "$key" >"$tmp/bytes"
is 0 $? "a checksum that was made anew passes without a pin"
ok "though the bytes are others" not cmp -s "$tmp/bytes" "$tmp/photos/train/$key"
run stele cat "$pin" "$key"
is 3 "$status" "cat: not with one"
is "" "$out" "not a byte of it"
ok "the sample is named" grep -q "$key" <<<"$err" || diag "$err"
run stele cat --verify=crc "$pin" "$key"
is 0 "$status" "unless told otherwise"
run stele cat --verify=digest "$tmp/image" "$key"
is 3 "$status" "nor without a pin, if told so"
run stele extract -q "$pin" "$tmp/files"
is 3 "$status" "extract: the status"
ok "but this one, all are written" test "$(find "$tmp/files" -type f | wc -l)" = 17
ok "as they are" not grep -qv "^Only in .*/photos/train" \
	<(diff -r "$tmp/photos/train" "$tmp/files")
run stele extract -q --verify=none "$pin" "$tmp/all"
is 0 "$status" "extract --verify=none"
run stele export -q "$pin" "$tmp/all.tar"
is 3 "$status" "export: the status"
ok "no archive" test ! -e "$tmp/all.tar"
run stele export -q --verify=crc "$pin" "$tmp/all.tar"
is 0 "$status" "export --verify=crc"
run stele cat --verify=sha "$pin" "$key"
is 2 "$status" "a word that --verify does not know"

# A name that was mapped by a pin is one.
must stele map "$tmp/sound@sha256:$digest" pinned
must stele map "$tmp/sound" plain
cp "$tmp/sound" "$tmp/kept"
cat "$tmp/image" >"$tmp/sound" # the same file, as what maps it knows
run stele cat pinned "$key"
is 3 "$status" "a name that was mapped by its digest"
run stele cat plain "$key"
is 0 "$status" "one that was not"
run stele cat "plain@sha256:$digest" "$key"
is 3 "$status" "that is asked for by its digest"
is true "$(stele maps --json | jq 'select(.name == "pinned").pinned')" "maps: says so"
cat "$tmp/kept" >"$tmp/sound"
run stele cat pinned "$key"
is 0 "$status" "which is what it was when it is sound"

# ---- what leads to a sample ----

forged keys
for target in "$tmp/image" "$pin"; do
	run stele cat "$target" "$first"
	is 3 "$status" "${target##*/}: a key of another sample"
	is "" "$out" "nothing of that is written"
	rm -rf "$tmp/files"
	run stele extract -q "$target" "$tmp/files" "$second"
	is 3 "$status" "nor extracted"
	is "" "$(find "$tmp/files" -type f)" "under either name"
done
run stele ls "$tmp/image"
is 0 "$status" "ls: without a pin it is what the keys say"
run stele ls "$pin"
is 3 "$status" "with one, they are asked for a proof"
is "" "$out" "before anything is listed"
run stele verify "$tmp/image"
is 3 "$status" "verify"
ok "names the keys" grep -q "damaged keys" <<<"$out" || diag "$out"

# ---- what is made of it ----

# A new segment gets digests of its own; they must not vouch for what was forged.
forged payload
run stele compact "$tmp/image@v1" again
is 3 "$status" "compact: a forged sample"
is v1 "$(stele snapshot list --json "$tmp/image" | jq -r .name)" "gets no snapshot"
forged keys
mkdir "$tmp/without"
cp -R "$tmp/photos/train/." "$tmp/without"
rm "$tmp/without/$first"
run stele snapshot create -d "$first" "$tmp/image@less"
is 3 "$status" "create: a key that leads to another sample"
run stele append -q --update --delete-missing "$tmp/without" "$tmp/image@less"
is 3 "$status" "append: the same"
is v1 "$(stele snapshot list --json "$tmp/image" | jq -r .name)" "nothing is deleted"

for kind in order column; do
	forged "$kind"
	run stele verify "$tmp/image"
	is 3 "$status" "$kind: verify finds it"
	ok "$kind: by the tree" grep -q "damaged $kind.*level" <<<"$out" || diag "$out"
done

done_testing
