#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rbd-readers.t - 16 processes read a snapshot while a writer appends the next
#
# All bytes are right, before and after; readers leave neither watcher nor lock;
# and each costs the storage one operation per sample.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version
requires_ceph
[ -n "${ceph_dir:-}" ] || ceph_new || skip_all "needs Ceph" # nobody else's operations are counted
readers=16

tree_photos "$tmp/old"
cp -R "$tmp/old" "$tmp/new"
for ((i = 0; i < 60; i++)); do
	head -c $((i * 1500 + 1)) /dev/urandom >"$tmp/new/train/cats/new$i.jpg"
done

traces() { # watchers and locks of the image
	on_ceph rbd status --format json "$rbd_image" | jq -c '.watchers'
	on_ceph rbd lock ls "$rbd_image"
}

rbd_name
must stele build -q "$tmp/old" "$rbd@v1"
pids=()
for ((i = 0; i < readers; i++)); do
	"$BUILD/tests/cmd/follow" "$rbd@v1" "$tmp/old" "$tmp/go" "$rbd@v2" \
		"$tmp/new" >"$tmp/reader.$i" &
	pids+=($!)
done
for ((i = 0; i < 600; i++)); do
	[ "$(cat "$tmp"/reader.* | wc -l)" -lt $readers ] || break
	sleep 0.1
done
is $readers "$(cat "$tmp"/reader.* | wc -l)" "$readers readers read"
is "[]" "$(traces)" "they leave no watcher and no lock"
run stele append --json "$tmp/new" "$rbd@v2"
is 0 "$status" "a writer appends meanwhile" || diag "$err"
begin=$(date +%s%N)
: >"$tmp/go"
failed=0
for pid in "${pids[@]}"; do
	wait "$pid" || failed=$((failed + 1))
done
is 0 $failed "all bytes of both snapshots are right"
is "[]" "$(traces)" "and no watcher and no lock is left"
last=$(awk 'FNR == 2 { print $1 }' "$tmp"/reader.* | sort -n | tail -1)
diag "16 readers had a sample of v2 $(((last - begin) / 1000000)) ms after append"
diag "$(awk 'FNR == 2 { n += $2 } END { print n }' "$tmp"/reader.*) samples" \
	"were read from v1 while the writer worked"

# ---- operations ----

# op_r: reads that the OSD has served
op_r() { ceph --admin-daemon "$ceph_dir/osd.0.asok" perf dump | jq .osd.op_r; }

samples=$(stele ls "$rbd@v2" | wc -l)
before=$(op_r)
must "$BUILD/tests/cmd/count-ops" "$rbd@v2" 0
opened=$(op_r)
must "$BUILD/tests/cmd/count-ops" "$rbd@v2" 1
is "$samples" $(($(op_r) - opened - (opened - before))) \
	"one read of the OSD for each of $samples samples"

done_testing
