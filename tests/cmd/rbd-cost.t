#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rbd-cost.t - how often a cluster is asked
#
# One connection for an open, also where the head says which snapshot is meant; and no
# more operations where an image has many snapshots.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version
requires_ceph
[ -n "${ceph_dir:-}" ] || ceph_new || skip_all "needs Ceph" # nobody else's operations are counted

# connections CMD...: how many sockets it connects
connections() {
	ASAN_OPTIONS=detect_leaks=0 strace -f -qq -e trace=connect -e signal=none \
		-o "$tmp/trace" "$@" >"$tmp/out" ||
		bail "fails: $*"
	grep -c 'connect(.*AF_INET' "$tmp/trace"
}

# operations CMD...: how many the OSD is asked for, of a cluster where nobody else is
operations() {
	local before
	before=$(on_ceph ceph daemon osd.0 perf dump | jq .osd.op)
	"$@" >"$tmp/out" || bail "fails: $*"
	echo $(($(on_ceph ceph daemon osd.0 perf dump | jq .osd.op) - before))
}

mkdir "$tmp/a"
echo sample >"$tmp/a/1"
rbd_name
must stele build -q "$tmp/a" "$rbd@v1"

if strace -e trace=connect true 2>/dev/null; then
	is "$(connections stele cat "$(rbd_at v1)" '#0')" \
		"$(connections stele cat "$rbd" '#0')" \
		"an open without a name connects as often as one with a name"
else
	skip_block 1 "needs strace"
fi

snapshots() { # FROM TO: makes them
	local i
	for ((i = $1; i <= $2; i++)); do
		must stele snapshot create --base v1 "$(rbd_at "v$i")" >/dev/null
	done
}
snapshots 2 3
info=$(operations stele info "$rbd")
one=$(operations stele cat "$(rbd_at v1)" '#0')
snapshots 4 24
is "$info" "$(operations stele info "$rbd")" "info asks no more often at 24 snapshots than at 3"
is "$one" "$(operations stele cat "$(rbd_at v1)" '#0')" "nor does reading a sample"
diag "$info operations for info, $one for a sample"

done_testing
