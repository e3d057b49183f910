#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rebuilt.t - images that a user wants to be the same, and clones, are told apart
. "${0%/*}/../tap.sh"

requires jq --version
export STELE_RUN_DIR=$tmp/run
id=--uuid=00112233-4455-6677-8899-aabbccddeeff
for name in old new; do
	mkdir "$tmp/$name"
	for i in {1..30}; do head -c $((i * 100)) /dev/urandom >"$tmp/$name/$i"; done
done

# ---- one UUID, twice on one target ----

must stele build -q "$id" "$tmp/old" "$tmp/image@v1"
digest=$(stele info --json "$tmp/image" | jq -r .snapshot.digest)
must cp "$tmp/image" "$tmp/before"
must stele map "$tmp/image@sha256:$digest" pinned
must stele map "$tmp/image@v1" plain
# Another machine does not see what is mapped here.
STELE_RUN_DIR=$tmp/elsewhere must stele build -q --force "$id" "$tmp/new" "$tmp/image@v1"
for name in pinned plain; do
	wrong=0
	for i in {1..30}; do
		stele cat "$name" "$i" >"$tmp/bytes" 2>/dev/null && wrong=$((wrong + 1))
	done
	is 0 "$wrong" "$name: no sample of the new image"
	run stele info "$name"
	ok "$name: nor to open" grep -q "is not what was mapped" <<<"$err" || diag "$err"
	run stele verify "$name"
	is 1 "$status" "$name: there is nothing to verify"
	ok "$name: that is said" grep -q "is not what was mapped" <<<"$err" || diag "$err"
done
ok "the new image is sound" stele verify -q "$tmp/image"

# ---- one UUID, two contents, brought to one target ----

must stele build -q "$id" "$tmp/old" "$tmp/from_old@v1"
must stele build -q "$id" "$tmp/new" "$tmp/from_new@v1"
must stele copy -q "$tmp/from_old" "$tmp/target@d1"
must stele map "$tmp/target@d1" held
STELE_RUN_DIR=$tmp/elsewhere must stele copy -q --force "$tmp/from_new" "$tmp/target@d1"
wrong=0
for i in {1..30}; do
	stele cat held "$i" >"$tmp/bytes" 2>/dev/null && wrong=$((wrong + 1))
done
is 0 "$wrong" "no sample of a copy that came over another one"
must stele unmap held
run stele copy -q "$tmp/from_old" "$tmp/target@d2"
is "0 " "$status $err" "both can be on one target"
ok "which is sound" stele verify -q "$tmp/target"

# ---- clones ----

must cp "$tmp/before" "$tmp/one"
must cp "$tmp/before" "$tmp/two"
mkdir "$tmp/first" "$tmp/second"
for i in {1..9}; do
	head -c 2000 /dev/urandom >"$tmp/first/f$i"
	head -c 2000 /dev/urandom >"$tmp/second/s$i"
done
must stele append -q "$tmp/first" "$tmp/one@f"
must stele append -q "$tmp/second" "$tmp/two@s"
must stele copy -q "$tmp/one@f" "$tmp/both"
run stele copy -q "$tmp/two@s" "$tmp/both"
is "0 " "$status $err" "what two clones got since goes to one target"
for file in "$tmp/first"/*; do
	stele cat "$tmp/both@f" "${file##*/}" | cmp -s - "$file" || echo "$file"
done >"$tmp/wrong"
for file in "$tmp/second"/*; do
	stele cat "$tmp/both@s" "${file##*/}" | cmp -s - "$file" || echo "$file"
done >>"$tmp/wrong"
is "" "$(<"$tmp/wrong")" "each has its own"
ok "and the target is sound" stele verify -q "$tmp/both"

done_testing
