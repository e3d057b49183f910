#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rbd-mount.t - snapshots on RBD as files: by FUSE, since there is no block device
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires_root
requires test -c /dev/fuse
requires fusermount3 -V
requires getfattr --version
requires_ceph

mnt=$tmp/mnt
leave() { umount -cfl "$mnt" 2>/dev/null; :; }
cleanup leave

tree_photos "$tmp/one"
cp -R "$tmp/one" "$tmp/two"
echo new >"$tmp/two/new"
head -c 20M /dev/urandom >"$tmp/two/large"
rbd_name
must stele build -q "$tmp/one" "$rbd@v1"
must stele append -q "$tmp/two" "$rbd@v2"
mkdir "$mnt"

# same DIR SEEN WORDS
same() { is "" "$(diff -r "$1" "$2" 2>&1)" "$3"; }

for via in fuse auto; do
	run stele mount --via "$via" "$rbd" "$mnt"
	is 0 "$status" "mount --via $via" || diag "$err"
	same "$tmp/one" "$mnt/v1" "$via: the first snapshot"
	same "$tmp/two" "$mnt/v2" "$via: the second one"
	run stele umount "$mnt"
	is "0 " "$status $err" "$via: umount"
done
ok "auto says why" grep -q "via fuse" <<<"$(stele mount "$(rbd_at v2)" "$mnt" 2>&1)"
same "$tmp/two" "$mnt" "one snapshot alone"
is "$(stele ls --json "$(rbd_at v2)" new | jq .id)" \
	"$(getfattr --only-values -n user.stele.id "$mnt/new" 2>/dev/null)" "its id as an attribute"

# Who shows it reads an RBD snapshot, which holds it until that goes.
must stele append -q --delete-missing "$tmp/one" "$rbd@v3"
fails 1 "may still have readers on other machines" stele snapshot delete "$(rbd_at v2)"
must stele snapshot delete --grace=1d "$(rbd_at v2)"
must stele gc --apply --grace=1d "$rbd"
same "$tmp/two" "$mnt" "deleted, it is shown as before"
run stele umount "$mnt"
is "0 " "$status $err" "umount"

run stele mount --via erofs "$rbd" "$mnt"
is 1 "$status" "the kernel cannot"
ok "what can is said" grep -q "hint: .*fuse" <<<"$err" || diag "$err"

done_testing
