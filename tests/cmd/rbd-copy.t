#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rbd-copy.t - snapshots go to RBD images, from them, and between them
#
# Whoever copies is killed, too: the next one fences him and goes on.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version
requires_ceph

tree_photos "$tmp/one"
head -c 9M /dev/urandom >"$tmp/one/large"
must stele build -q --time 1700000000 "$tmp/one" "$tmp/a@v1"

digest_of() { stele info --json "$1" | jq -r .snapshot.digest; }

# snaps: names of RBD snapshots, + behind those that are protected
snaps() {
	on_ceph rbd snap ls --format json "$rbd_image" |
		jq -r '[.[] | .name + (if .protected == "true" then "+" else "" end)] |
			sort | join(" ")'
}

# copied FROM TO WORDS: segments and bytes that were sent, of all
copied() {
	run stele copy --json "$1" "$2"
	is "0 " "$status $err" "$3: copied"
	sent=$(jq -r '"\(.segments_sent)/\(.segments) \(
		if .sent_size == 0 then "nothing"
		elif .sent_size == .size then "all" else "some" end)"' <<<"$out")
}

# same FROM TO WORDS: digest, and every byte as verify sees it
same() {
	is "$(digest_of "$1")" "$(digest_of "$2")" "$3: the same digest"
	run stele verify -q "$2"
	is "0 " "$status $err" "$3: sound"
}

# ---- there and back ----

rbd_name
copied "$tmp/a" "$rbd" "file to RBD"
is "1/1 all v1+" "$sent $(snaps)" "all is sent, and a protected RBD snapshot made"
same "$tmp/a" "$rbd@v1" "file to RBD"
is 22 "$(on_ceph rbd info --format json "$rbd_image" | jq .order)" "objects of 4 MiB"
copied "$tmp/a" "$rbd" "once more"
is "0/1 nothing v1+" "$sent $(snaps)" "nothing is sent twice"
copied "$rbd@v1" "$tmp/back" "RBD to file"
is "1/1 all" "$sent" "all is sent"
same "$tmp/a" "$tmp/back" "RBD to file"
must stele extract -q "$tmp/back" "$tmp/x"
ok "every byte is there" diff -r "$tmp/one" "$tmp/x"
ok "RBD to tar is file to tar" cmp <(stele export "$tmp/a" -) \
	<(stele export "$rbd@v1" -)
run stele copy "$rbd@v1" "$rbd@v9"
is 2 "$status" "onto itself: refused"
ok "in these words" grep -q "is the source itself" <<<"$err"
is "v1+" "$(snaps)" "and nothing made"

first=$rbd
rbd_name
run stele copy --object-size=1M "$first@v1" "$rbd"
is "0 v1+" "$status $(snaps)" "RBD to RBD" || diag "$err"
is 20 "$(on_ceph rbd info --format json "$rbd_image" | jq .order)" \
	"with objects of that size"
same "$tmp/a" "$rbd@v1" "RBD to RBD"

# ---- a later snapshot ----

cp -R "$tmp/one" "$tmp/two"
head -c 300K /dev/urandom >"$tmp/two/new"
rm "$tmp/two/train/cats/3.jpg"
must stele append -q --delete-missing "$tmp/two" "$first@v2"
copied "$first@v2" "$rbd" "a later one"
is "1/2 some v1+ v2+" "$sent $(snaps)" "what is new is sent"
ok "and no more" test "$(jq .sent_size <<<"$out")" -lt 500000
same "$first@v2" "$rbd@v2" "the later one"
is "$(digest_of "$tmp/a")" "$(digest_of "$rbd@v1")" "the earlier one stays"
copied "$rbd@v2" "$tmp/back" "and back"
is "1/2 some" "$sent" "what is new is sent"
same "$first@v2" "$tmp/back@v2" "and back"

# ---- what others made ----

must on_ceph rbd snap create --no-progress "$rbd_image@theirs"
run stele copy "$first@v2" "$rbd@theirs"
is 1 "$status" "the name of somebody else's RBD snapshot: refused"
is "theirs v1+ v2+" "$(snaps)" "it stays"
must on_ceph rbd snap rm --no-progress "$rbd_image@theirs"

# ---- killed ----

mkdir "$tmp/big"
for i in 1 2; do head -c 60M /dev/urandom >"$tmp/big/$i"; done
must stele build -q "$tmp/big" "$tmp/big.stele@v1"
# objects: of the image's data, so far
objects() {
	local prefix
	prefix=$(on_ceph rbd info --format json "$rbd_image" 2>/dev/null |
		jq -r .block_name_prefix)
	on_ceph rados --pool "$ceph_pool" ls | grep -c "^${prefix:-none}"
}

# Of 31 objects a sample takes 15. The copy may be done before the signal comes: then
# once more.
resumed=0
for ((try = 1; try <= 20 && !resumed; try++)); do
	rbd_name
	stele copy -q -j 1 "$tmp/big.stele" "$rbd" &
	pid=$!
	until [ "$(objects)" -ge 18 ]; do
		kill -0 $pid 2>/dev/null || break
	done
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	[ -z "$(snaps)" ] || continue
	run stele copy --json "$tmp/big.stele" "$rbd"
	resumed=$(jq 'if .resumed_size > 0 and
		.sent_size + .resumed_size == .size then 1 else 0 end' <<<"$out")
done
is 1 "$resumed" "killed: goes on within the segment" || diag "$out$err"
is "v1+" "$(snaps)" "its RBD snapshot is made and protected"
same "$tmp/big.stele" "$rbd@v1" "killed and gone on"

done_testing
