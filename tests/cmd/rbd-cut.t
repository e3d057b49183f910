#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rbd-cut.t - a writer that lost the way to an OSD with its writes under way
#
# What its machine still holds of them comes to the OSD when the way is mended, long
# after the process is gone: only who is on the cluster's blocklist is refused there.
. "${0%/*}/../tap.sh"
. tests/ceph/words.sh

has_ceph || skip_all "needs Ceph"
net_new

mkdir "$tmp/base" "$tmp/a" "$tmp/b"
head -c 100000 /dev/urandom >"$tmp/base/1"
for i in {1..40}; do
	head -c 2M /dev/urandom >"$tmp/a/a$i"
	head -c 2M /dev/urandom >"$tmp/b/b$i"
done

# objects: of the image's data, so far
objects() {
	on_ceph rados --pool "$ceph_pool" ls | grep -c "^$prefix"
}

# cut_writer ADDRESS...: A appends, and loses the way there while it writes
cut_writer() {
	local before
	rbd_new 512M
	must near stele build -q -f "$tmp/base" "$rbd@v1"
	prefix=$(on_ceph rbd info --format json "$rbd_image" |
		jq -r .block_name_prefix)
	before=$(objects)
	far stele append -q --timeout=5 "$tmp/a" "$rbd@a" 2>"$tmp/a.err" &
	pid=$!
	until [ "$(objects)" -gt $((before + 1)) ]; do
		kill -0 $pid 2>/dev/null || break
	done
	for address; do net_cut "$address"; done
	begin=$SECONDS
	wait $pid
	is 1 $? "a writer that is cut off gives up"
	took=$((SECONDS - begin))
	ok "... within its time" test $took -le "$patience" || diag "$took s"
	ok "... and says why" grep -q "did not answer in time" "$tmp/a.err"
}

# fenced: how many clients are locked out, and not for an hour
fenced() {
	on_ceph ceph osd blocklist ls 2>/dev/null |
		awk -v year=$(($(date +%Y) + 5)) '$2 > year' | wc -l
}

# other_writer WORDS: B appends; then the ways are mended
other_writer() {
	local words=$1
	shift
	run near stele append -q "$tmp/b" "$rbd@b"
	is 0 "$status" "$words: the next writer goes on" || diag "$err"
	run near stele verify -q "$rbd@b"
	is "0 " "$status $err" "$words: what it wrote is sound"
	for address; do must net_mend "$address"; done
	ok "$words: all that was under way has come" net_quiet
	run near stele verify -q "$rbd@b"
	is "0 " "$status $err" "$words: and damaged nothing"
}

# An OSD: the monitor can still be told. Each call waits for up to 5 s; a write, those
# sent meanwhile to other OSDs, the look at what to give back, and the fence may each
# run into that, on a loaded machine one after the other.
patience=30
cut_writer "${net_osds[2]}"
is 1 "$(fenced)" "it has fenced itself"
other_writer "an OSD" "${net_osds[2]}"

# All of them: the other one has to do it, behind its back. 5 s more for the monitor.
cut_writer "${net_osds[@]}"
is 1 "$(fenced)" "it could not fence itself"
ok "and so it has kept its lock" test -n "$(on_ceph rbd lock ls "$rbd_image")"
other_writer "the cluster" "${net_osds[@]}"
is 2 "$(fenced)" "the next writer has fenced it"

done_testing
