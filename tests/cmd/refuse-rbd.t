#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# refuse-rbd.t - which RBD images stele build makes, takes, and leaves alone
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version
requires_ceph
tree_photos "$tmp/src"

# contents: of the image, and what its snapshots are
contents() {
	on_ceph rbd export --no-progress "$rbd_image" - 2>/dev/null | sha256sum
	on_ceph rbd snap ls --format json "$rbd_image" |
		jq -c '.[] | del(.timestamp)'
}

# refused WHAT WORDS [OPTION...]: fails, says WORDS, changes nothing
refused() {
	local what=$1 words=$2 before
	shift 2
	before=$(contents)
	run stele build "$@" "$tmp/src" "$rbd@v1"
	is 1 "$status" "$what: refused"
	ok "$what: says '$words'" grep -qF -- "$words" <<<"$err" || diag "$err"
	is "$before" "$(contents)" "$what: unchanged"
}

in_use() {
	refused "$@"
	refused "$1, by force" "$2" --force
}

# builds WHAT [OPTION...]
builds() {
	local what=$1
	shift
	run stele build "$@" "$tmp/src" "$rbd@v1"
	is 0 "$status" "$what: builds" || diag "$err"
	run stele verify "$rbd@v1"
	is 0 "$status" "$what: is sound" || diag "$out" "$err"
	is "true" "$(on_ceph rbd snap ls --format json "$rbd_image" |
		jq -r '.[] | select(.name == "v1").protected')" \
		"$what: has a protected RBD snapshot"
}

info() { on_ceph rbd info --format json "$rbd_image" | jq -r "$1"; }

# ---- images that are not there ----

rbd_name
builds "no image" --label cats
is "4194304 0" "$(info '"\(.object_size) \(.size % .object_size)"')" \
	"made of whole objects of 4 MiB"
is "deep-flatten exclusive-lock fast-diff layering object-map" \
	"$(info '.features | sort | join(" ")')" "with these features"
is 3 "$(stele info --json "$rbd" | jq .image.fence_mode)" \
	"the superblock says how it was fenced"
is "" "$(on_ceph rbd status --format json "$rbd_image" | jq -r '.watchers[]?')" \
	"no watcher is left"
is "" "$(on_ceph rbd lock ls "$rbd_image")" "no lock is left"
is "" "$(on_ceph rbd image-meta ls --format json "$rbd_image")" \
	"no word of the writer is left"

refused "an image of ours" "label 'cats', snapshots 'v1'"
must on_ceph rbd clone "$rbd_image@v1" "$rbd_image.clone"
refused "one that has clones, by force" "clones" --force
must on_ceph rbd rm --no-progress "$rbd_image.clone"
must on_ceph rbd snap create --no-progress "$rbd_image@other"
builds "an image of ours, by force" --force
is "other v1" "$(on_ceph rbd snap ls --format json "$rbd_image" |
	jq -r '[.[].name] | sort | join(" ")')" "others' RBD snapshots stay"
run stele build --force "$tmp/src" "$rbd@other"
is 1 "$status" "the name of one that is not ours: refused"
ok "and it is named" grep -qF "'other'" <<<"$err"
must on_ceph rbd snap rm --no-progress "$rbd_image@other"

rbd_name
run stele build --object-size=64K --size=32M "$tmp/src" "$rbd"
is "0 65536 33554432" "$status $(info '"\(.object_size) \(.size)"')" \
	"--object-size and --size"
rbd_name
run stele build --size=2M "$tmp/src" "$rbd"
is 1 "$status" "a size too small: refused"
ok "and no image is left" not on_ceph rbd info "$rbd_image"

# ---- images that are ----

rbd_new 64M
builds "an image that is there and empty"
is 67108864 "$(info .size)" "it keeps its size"
rbd_new 1M
refused "one too small" "or a larger --size"
builds "with a size" --size=32M

rbd_new 64M
must mkfs.ext4 -q -F -L photos "$tmp/ext4" 16M
on_ceph rbd rm --no-progress "$rbd_image"
must on_ceph rbd import --no-progress "$tmp/ext4" "$rbd_image"
refused "a foreign image" "ext4 (filesystem), label 'photos'"
builds "a foreign image, by force" --force

on_ceph rbd rm --no-progress "$rbd_image" 2>/dev/null
rbd_name
head -c 5M /dev/urandom >"$tmp/noise"
must on_ceph rbd import --no-progress "$tmp/noise" "$rbd_image"
refused "an image of who knows what" "bytes of data"
rbd_new 64M
must on_ceph rbd snap create --no-progress "$rbd_image@mine"
refused "an image with RBD snapshots" "'mine'"

# ---- in use ----

# A second writer, and who merely has it open: see tests/lib/rbd-writers.c.
rbd_new 64M
must on_ceph rbd lock add "$rbd_image" mine
in_use "a lock" "is locked by client."

# ---- rights and places ----

rbd_name
run stele build "$tmp/src" "$rbd&user=reader"
is 1 "$status" "a user who may only read: refused"
ok "says what is needed" grep -qF "profile rbd" <<<"$err" || diag "$err"
ok "no image is left" not on_ceph rbd info "$rbd_image"
run stele build "$tmp/src" "$rbd&user=writer@v1"
is 0 "$status" "profile rbd is enough" || diag "$err"
must on_ceph rbd namespace create --pool "$ceph_pool" --namespace "ns$$"
cleanup on_ceph rbd namespace rm --pool "$ceph_pool" --namespace "ns$$"
rbd_image=$ceph_pool/ns$$/inner
rbd="rbd:$rbd_image?conf=$ceph_conf"
cleanup rbd_gone "$rbd_image"
builds "in a namespace"

done_testing
