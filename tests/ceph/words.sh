# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # tmp: of tap.sh; ceph_conf, rbd: the tests'
#
# words.sh - Ceph and RBD images, for tests in shell
#
# Sourced behind tap.sh. `make check` has one cluster for all (STELE_TEST_CEPH
# names its ceph.conf); a test that is run by hand starts its own.

ceph_conf=
ceph_pool=rbd

# ceph_new: a cluster of this test's own, to be killed and starved; ceph_dir, ceph_conf
ceph_new() {
	command -v ceph-mon >/dev/null || skip_all "needs Ceph"
	ceph_dir=$(tests/ceph/place.sh) || skip_all "needs Ceph"
	cleanup "$PWD/tests/ceph/down.sh" "$ceph_dir"
	CEPH_OWNER=$$ tests/ceph/up.sh "$ceph_dir" >&2 || bail "no Ceph"
	ceph_conf=$ceph_dir/ceph.conf
}

# has_ceph: sets ceph_conf; fails where there is no Ceph, or stele was built without
has_ceph() {
	[ -z "$ceph_conf" ] || return 0
	! stele info rbd:p/i 2>&1 | grep -q "without librbd" || return 1
	ceph_conf=${STELE_TEST_CEPH:-}
	[ -z "$ceph_conf" ] || return 0
	command -v ceph-mon >/dev/null || return 1
	ceph_new
}
requires_ceph() { has_ceph || skip_all "needs Ceph"; }

# on_ceph CMD...: rbd, rados or ceph, as admin of the test's cluster
on_ceph() { "$@" --conf "$ceph_conf"; }

# rbd_name: sets rbd, a target that does not exist yet, and rbd_image, the same
# as rbd(8) wants it. Whatever is there in the end is removed.
rbd_name() {
	rbd_image=$ceph_pool/$(basename "$tmp").$RANDOM$RANDOM
	rbd="rbd:$rbd_image?conf=$ceph_conf"
	cleanup rbd_gone "$rbd_image"
}

# force_on TARGET: what a change needs where readers cannot be seen
force_on() {
	[[ $1 != rbd:* ]] || echo --force
}

# rbd_new SIZE [OPTION...]: makes an image, with options of `rbd create`
rbd_new() {
	rbd_name
	must on_ceph rbd create --no-progress --size "$@" "$rbd_image"
}

# rbd_gone IMAGE: with all its snapshots
rbd_gone() {
	local snap id locker

	on_ceph rbd info "$1" >/dev/null 2>&1 || return 0
	# A lock that somebody left makes rm ask for it for ever.
	on_ceph rbd lock ls --format json "$1" |
		jq -r '.[] | "\(.id)\t\(.locker)"' |
		while IFS=$'\t' read -r id locker; do
			on_ceph rbd lock rm "$1" "$id" "$locker"
		done
	on_ceph rbd snap ls --format json "$1" | jq -r '.[].name' |
		while read -r snap; do
			on_ceph rbd snap unprotect "$1@$snap" 2>/dev/null
		done
	on_ceph rbd snap purge --no-progress "$1" 2>/dev/null
	on_ceph rbd rm --no-progress "$1"
}

# rbd_at NAME: the target of a snapshot of $rbd
rbd_at() { echo "${rbd%%\?*}@$1?${rbd#*\?}"; }
