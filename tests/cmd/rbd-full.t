#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rbd-full.t - a pool that is full: said, and space is to be had by deleting
#
# On a cluster of its own, whose OSD thinks that it is full when it is told so.
# librados would hold all writes back until they time out.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version
has_ceph || skip_all "needs Ceph"
ceph_new || skip_all "needs Ceph"

osd_full() { # RATIO: below what the OSD holds, it is full
	local word
	for word in nearfull backfillfull full; do
		must on_ceph ceph osd "set-$word-ratio" "$1"
	done
}
is_full() { on_ceph ceph osd dump 2>/dev/null | grep -q "^pool.*[ ,]full[, ]"; }
fill() {
	osd_full 0.00001
	until is_full; do :; done
}
empty() {
	osd_full 0.95
	while is_full; do :; done
}

# objects: of the image's head and its RBD snapshots, that hold data
objects() {
	local prefix
	prefix=$(on_ceph rbd info --format json "$rbd_image" | jq -r .block_name_prefix)
	on_ceph rados -p "$ceph_pool" ls | grep -cF "$prefix."
}

# full WORDS CMD...: fails and says so, and that it is no timeout
full() {
	local words=$1
	shift
	run "$@"
	is 1 "$status" "$words: fails"
	ok "$words: says why" grep -qF "is full" <<<"$err" || diag "$err"
	ok "$words: it is no timeout" not grep -qE "no answer|too small" <<<"$err"
}

tree_photos "$tmp/one"
cp -R "$tmp/one" "$tmp/two"
head -c 24M /dev/urandom >"$tmp/two/large"
cp -R "$tmp/one" "$tmp/three"
head -c 9M /dev/urandom >"$tmp/three/large"

rbd_name
must stele build -q "$tmp/one" "$rbd@v1"
must stele append -q "$tmp/two" "$rbd@v2"
before=$(objects)
fill
full "append" stele append -q "$tmp/three" "$rbd@v3" --update
run stele verify "$rbd"
is 0 "$status" "what was there is sound" || diag "$out" "$err"
is "v1 v2" "$(stele snapshot list --json "$rbd" | jq -r .name | xargs)" \
	"and no more is"
full "a new image" stele build -q "$tmp/one" "rbd:$ceph_pool/new?conf=$ceph_conf"
run stele snapshot delete --force "$rbd@v2"
is 0 "$status" "delete" || diag "$err"
run stele gc --apply --discard --force "$rbd"
is "0 " "$status $err" "gc, with discard"
ok "gives objects back" test "$(objects)" -lt $((before - 4))
run stele verify "$rbd"
is 0 "$status" "the rest is sound" || diag "$out" "$err"

empty
must stele append -q --update "$tmp/three" "$rbd@v3"
run stele verify "$rbd"
is 0 "$status" "with space again, it goes on" || diag "$out" "$err"

# What has been committed once has no older catalog, in whose place to write.
rbd_name
must stele build -q "$tmp/one" "$rbd@v1"
fill
run stele snapshot delete --force --grace=1h "$rbd@v1"
is 0 "$status" "delete, of an image that was just built" || diag "$err"
run stele gc --apply --discard --force "$rbd"
is "0 " "$status $err" "gc of it"
is "0 0" "$(stele gc --json "$rbd" | jq -r '"\(.unused) \(.would_free_size)"')" \
	"after which no unused space"
empty

done_testing
