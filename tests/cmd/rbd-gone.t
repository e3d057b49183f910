#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rbd-gone.t - readers of an RBD snapshot that is deleted under them
#
# librbd then says nothing, and hands out zeros or what the head holds by now. A
# reader of ours says ESTALE, and no wrong byte comes out of it before, whatever
# is written over its samples meanwhile. With a grace period it just goes on.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version
requires_ceph
for tree in a b; do
	mkdir -p "$tmp/$tree/x"
	for ((i = 0; i < 40; i++)); do
		head -c 50000 /dev/urandom >"$tmp/$tree/x/$tree$i"
	done
done

reader() { # SNAPSHOT: starts one, and waits until it reads
	rm -f "$tmp/reader" # the one before has said so, too
	"$BUILD/tests/cmd/follow" "$rbd@$1" "$tmp/a" >"$tmp/reader" &
	job=$!
	for ((i = 0; i < 1200; i++)); do
		[ ! -s "$tmp/reader" ] || return
		sleep 0.05
	done
	bail "the reader does not begin"
}

# overwrite SNAPSHOT: give back what only the deleted one used, and write there
overwrite() {
	must stele gc --apply --force "$rbd"
	must stele append -q --always --delete-missing --force "$tmp/b" "$rbd@$1.1"
	must stele append -q --always --delete-missing --force "$tmp/a" "$rbd@$1.2"
	must stele snapshot delete --force "$rbd@$1.1"
}

for delay in 0 0.01 0.1 0.5; do
	rbd_name
	must stele build -q "$tmp/a" "$rbd@v1"
	must stele append -q --always --delete-missing --force "$tmp/b" "$rbd@v2"
	reader v1
	sleep "$delay"
	must stele snapshot delete --force "$rbd@v1"
	sleep "$delay"
	overwrite v3
	wait $job
	is 0 $? "deleted by force after $delay s: ESTALE, and no wrong byte"
	diag "$(tail -n 1 "$tmp/reader") samples were read"
done

# ---- with a grace period: one that does not end here, one that does ----

begin() { # a reader of v1, whose samples v2 has not
	rbd_name
	must stele build -q "$tmp/a" "$rbd@v1"
	must stele append -q --always --delete-missing --force "$tmp/b" "$rbd@v2"
	reader v1
}
snaps() {
	on_ceph rbd snap ls --format json "$rbd_image" | jq -r '[.[].name] | sort | join(" ")'
}

begin
must stele snapshot delete --grace=1h "$rbd@v1"
must stele gc --apply --grace=1h "$rbd"
must stele append -q "$tmp/a" "$rbd@v3"
run stele cat "$rbd@v1" '#0'
is 1 "$status" "with a grace period it can't be opened any more"
ok "who has it open goes on" kill -0 $job
kill $job
wait $job 2>/dev/null

begin
must stele snapshot delete --grace=1 "$rbd@v1"
for ((i = 0; i < 600; i++)); do
	must stele gc --apply --grace=1 "$rbd"
	[ "$(snaps)" != v2 ] || break
	sleep 0.1
done
is v2 "$(snaps)" "gc removes it in time"
overwrite v3
wait $job
is 0 $? "and when its samples are overwritten the reader says ESTALE"

# ---- with its pool ----

ceph_pool=stele-$RANDOM$RANDOM
must on_ceph ceph osd pool create "$ceph_pool" 8
must on_ceph rbd pool init "$ceph_pool"
rbd_name
must stele build -q "$tmp/a" "$rbd@v1"
reader v1
mkdir "$tmp/large"
head -c 256M /dev/urandom >"$tmp/large/1"
stele append -q "$tmp/large" "$rbd@v2" 2>"$tmp/writer.err" &
writer=$!
until [ "$(on_ceph rados --pool "$ceph_pool" ls | grep -c ^rbd_data)" -gt 4 ] ||
	! kill -0 $writer; do :; done
kill -STOP $writer
must on_ceph ceph osd pool rm "$ceph_pool" "$ceph_pool" --yes-i-really-really-mean-it
wait $job
is 0 $? "its pool is deleted: ESTALE"
kill -CONT $writer
wait $writer
is 1 $? "a writer fails there"
ok "and says why" grep -qF "pool '$ceph_pool' has been deleted" "$tmp/writer.err" ||
	diag "$(<"$tmp/writer.err")"

done_testing
