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
ceph_run=() # how a program gets to where the cluster is reached

# ceph_place: where a cluster of this test's own may lie: sets ceph_dir, ceph_conf; fails
# where there is no Ceph, or no such place
ceph_place() {
	command -v ceph-mon >/dev/null || return 1
	ceph_dir=$(tests/ceph/place.sh) || return 1
	cleanup "$PWD/tests/ceph/down.sh" "$ceph_dir"
	ceph_conf=$ceph_dir/ceph.conf
}

# ceph_new: one is started there, to be killed and starved; fails as that does
ceph_new() {
	ceph_place || return 1
	CEPH_OWNER=$$ tests/ceph/up.sh "$ceph_dir" >&2 || bail "no Ceph"
}

# has_ceph: sets ceph_conf; fails where there is no Ceph, or stele was built without
has_ceph() {
	[ -z "$ceph_conf" ] || return 0
	! stele info rbd:p/i 2>&1 | grep -q "without librbd" || return 1
	ceph_conf=${STELE_TEST_CEPH:-}
	[ -z "$ceph_conf" ] || return 0
	ceph_new
}
requires_ceph() { has_ceph || skip_all "needs Ceph"; }

# on_ceph CMD...: rbd, rados or ceph, as admin of the test's cluster
on_ceph() { "${ceph_run[@]}" "$@" --conf "$ceph_conf"; }

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

# ---- a network of the test's own ----

# net_new: two network namespaces with a cable between them, 20 MB/s from one end: one
# for a cluster with a monitor and three OSDs, which it starts, one for clients. Sets
# net, net_osds.
net_new() {
	requires_root
	net=stele$$
	net_osds=(10.77.0.1 10.77.0.2 10.77.0.3)
	ip netns add "$net.c" 2>/dev/null || skip_all "needs network namespaces"
	cleanup ip netns del "$net.c"
	must ip netns add "$net.a"
	cleanup ip netns del "$net.a"
	must ip -n "$net.c" link add cable type veth peer cable netns "$net.a"
	for address in "${net_osds[@]}"; do
		must ip -n "$net.c" address add "$address/24" dev cable
	done
	must ip -n "$net.a" address add 10.77.0.9/24 dev cable
	for end in a c; do
		must ip -n "$net.$end" link set lo up
		must ip -n "$net.$end" link set cable up
	done
	# So that a writer is there for some seconds.
	must tc -n "$net.a" qdisc add dev cable root tbf rate 160mbit burst 256kb latency 200ms
	ceph_place || skip_all "needs Ceph"
	CEPH_ADDR=${net_osds[0]} CEPH_OSDS=${net_osds[*]} CEPH_OWNER=$$ \
		ip netns exec "$net.c" tests/ceph/up.sh "$ceph_dir" >&2 ||
		bail "no Ceph"
	ceph_run=(ip netns exec "$net.c")
}

# far CMD...: where the clients are; near CMD...: where the cluster is
far() { ip netns exec "$net.a" "$@"; }
near() { ip netns exec "$net.c" "$@"; }

# net_cut, net_mend ADDRESS: what clients send there is lost on its way, or not
net_cut() { ip -n "$net.a" neigh replace "$1" lladdr 02:00:00:00:00:01 dev cable nud permanent; }
net_mend() { ip -n "$net.a" neigh del "$1" dev cable; }

# net_quiet: until nothing is under way from the clients
net_quiet() {
	local try
	for ((try = 0; try < 1200; try++)); do
		[ -n "$(far ss -Htn)" ] || return 0
		sleep 0.1
	done
	return 1
}
