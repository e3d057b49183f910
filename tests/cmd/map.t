#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# map.t - stele map, unmap, maps: a name for a snapshot on this machine
. "${0%/*}/../tap.sh"
# shellcheck source=tests/cmd/targets.sh
. tests/cmd/targets.sh

tree_photos "$tmp/src"
cd "$tmp" || bail "cd"

must stele build -q --label photos src image.stele@v1

# ---- map, and use the name ----

run stele maps
is 0 "$status" "maps: nothing mapped is no error"
fails 1 "v9" stele map image.stele@v9 pets
fails 2 "'a/b'" stele map image.stele@v1 a/b
is 1 "$(wc -l <<<"$err")" "map: and no more than that"
fails 1 "block device" stele map --read-only image.stele@v1 pets
fails 2 "no RBD image" stele map --via krbd image.stele@v1 pets
fails 2 "--via" stele map --via nfs image.stele@v1 pets
ok "map: failures publish nothing" not test -e run/pets

run stele map image.stele@v1 pets
is "0 pets" "$status $out" "map: prints the name"
run stele map image.stele
is "0 photos" "$status $out" "map: the label is the name"
run stele map --json image.stele@v1 pets
is 0 "$status" "map: the same again"
ok "map: json has the name" grep -q '"name": *"pets"' <<<"$out"
ok "map: json has the way" grep -q '"via": *"file"' <<<"$out"

must stele append -q --always src pets@more
run stele ls pets@more
is "1 stele: 'pets' is mapped to snapshot 'v1' of '$tmp/image.stele', not to that one
hint: name the image itself: '$tmp/image.stele@more'" "$status $err" "another snapshot of the image"
must stele snapshot delete --force image.stele@more
must stele gc --apply --force image.stele >/dev/null

run stele maps
is 0 "$status" "maps"
is "pets photos" "$(awk 'NR > 1 { print $1 }' <<<"$out" | xargs)" \
	"maps: sorted by name"
ok "maps: with path and snapshot" grep -qF "$tmp/image.stele@v1" <<<"$out"
run stele maps --json
is 2 "$(grep -c '"name"' <<<"$out")" "maps: json, one line for each"

for name in pets pets@v1; do
	ok "info $name" stele info "$name"
	run stele ls "$name"
	is 41 "$(wc -l <<<"$out")" "ls $name: all keys"
	ok "cat $name: the bytes" \
		cmp <(stele cat "$name" train/cats/7.jpg) src/train/cats/7.jpg
	ok "verify $name" stele verify "$name"
done
ok "extract" stele extract pets out
ok "extract: the tree" diff -r src out
digest=$(stele info --json pets | tr -d ' ",' |
	sed -n 's/.*digest:\([0-9a-f]\{64\}\).*/\1/p' | head -n 1)
ok "a pin of a mapped name" stele ls "pets@sha256:$digest"
fails 1 "mapped to snapshot 'v1'" stele ls pets@v2
fails 1 "pets" stele ls "pets@sha256:${digest//[0-9]/0}"

: >pets
ok "the mapping goes before a file of that name" stele ls pets
fails 1 "./pets" stele ls ./pets
rm pets

# ---- a name that a file has, too ----

must stele build -q src both@v1
must stele snapshot create both@v2 >/dev/null
must stele unmap pets
must stele snapshot create image.stele@v2 >/dev/null
run stele map image.stele@v1 both
is 0 "$status" "map: over a file"
ok "map: warns of it" grep -q "there is a file 'both', too" <<<"$err" || diag "$err"
images=$(sha256sum image.stele both)
mkdir none
for command in "snapshot delete both@v2" "snapshot create both@v3" "snapshot rename both@v2 v3" \
	"append src both@v3" "compact both v3" "gc both" "resize both" \
	"copy image.stele@v2 both@v3" "snapshot delete -n both@v2"; do
	# shellcheck disable=SC2086 # words
	fails 1 "'./both'" stele $command
	ok "$command: no hint at something else" not grep -q hint: <<<"$err" || diag "$err"
done
is "$images" "$(sha256sum image.stele both)" "neither is changed"
must stele snapshot delete ./both@v2
must env -C none "$BUILD/stele" snapshot delete both@v2 >/dev/null
is "v1 v1" "$(for at in image.stele ./both; do
	stele snapshot list --json "$at"
done | jq -r .name | xargs)" "elsewhere the name is that of the mapping alone"
must stele unmap both
rm both
must stele map image.stele@v1 image.stele
run stele snapshot create image.stele@v2
is 0 "$status" "a file that is mapped by its own name is one" || diag "$err"
must stele snapshot delete ./image.stele@v2
must stele unmap image.stele
must stele map image.stele@v1 pets

# ---- for whom it is ----

chmod 600 image.stele
must stele map image.stele@v1 private
is 600 "$(stat -c %a run/private)" "who may not read the image may not read its names"
must stele unmap private
chmod 664 run/pets
fails 1 "others may write to it" stele ls pets
run stele maps
ok "maps: one that others may write is passed over" not grep -q pets <<<"$out"
chmod 644 run/pets image.stele
chmod 777 run
fails 1 "others may write to its directory" stele ls pets
ok "and what to do" grep -q "^hint: 'chmod go-w' that directory" <<<"$err" || diag "$err"
fails 1 "others may write to its directory" stele map image.stele@v1 other
ok "nothing is put there" not test -e run/other
chmod 755 run

# ---- under another path ----

must stele snapshot create --base v1 image.stele@v2
ln image.stele link.stele
fails 1 "is mapped as 'pets'" stele snapshot delete link.stele@v1
ln -s image.stele symbolic.stele
fails 1 "is mapped as 'pets'" stele snapshot rename symbolic.stele@v1 v3
: >bound.stele
if [ "$(id -u)" = 0 ] && mount --bind image.stele bound.stele 2>/dev/null; then
	fails 1 "is mapped as 'pets'" stele snapshot delete bound.stele@v1
	umount bound.stele
else
	skip_block 1 "cannot mount"
fi
cp image.stele clone.stele
ok "a copy is another one" stele snapshot delete clone.stele@v1
must stele snapshot delete image.stele@v2
rm link.stele symbolic.stele bound.stele clone.stele

# ---- what is behind it changes ----

must stele build -q src other.stele@v2
fails 1 "mapped already" stele map other.stele@v2 pets
size=$(stat -c %s image.stele)
truncate -s +1M image.stele
ok "a file that grew, as one does that is appended to" stele cat pets train/cats/7.jpg
run stele maps
ok "maps: it is not stale" not grep -q stale <<<"$out"
truncate -s "$size" image.stele
cp image.stele copy
mv copy image.stele
fails 1 "map it again" stele ls pets
run stele maps
ok "maps: a copy in its place is stale" grep -q "pets.*stale" <<<"$out"
must stele build -qf src image.stele@v1
must stele append -q --always src image.stele@v2
before=$(sha256sum image.stele)
while read -r change; do
	# shellcheck disable=SC2086 # words
	fails 1 "map it again" stele $change
done <<'END'
append src pets@v3
compact pets@v1 v3
copy other.stele pets
gc --apply --force pets
posix on pets
repair pets
resize --size=9M pets
snapshot create pets@v3
snapshot delete pets@v2
snapshot rename pets@v2 v3
snapshot undelete pets@v2
END
is "$before" "$(sha256sum image.stele)" "which nobody changes by the name of what it replaced"
rm image.stele
fails 1 "is gone" stele ls pets
fails 1 "is gone" stele append src pets@v3

# ---- unmap ----

run stele unmap pets
is 0 "$status" "unmap: one whose target is gone"
fails 1 "pets" stele unmap pets
fails 1 "pets" stele ls pets
echo garbage >run/photos
fails 3 "bad mapping" stele ls photos
run stele maps
is 3 "$status" "maps: a damaged one"
ok "is named" grep -q "bad mapping '$tmp/run/photos'" <<<"$err" || diag "$err"
ok "with what helps" grep -q "^hint: 'stele unmap NAME' removes" <<<"$err" || diag "$err"
run stele unmap photos
is 0 "$status" "unmap: a damaged one"
is "" "$(ls -A run)" "nothing is left"
STELE_RUN_DIR=$tmp/file/run fails 1 "" stele map other.stele
STELE_RUN_DIR=/proc fails 1 "cannot publish" stele map other.stele
ok "and no snapshot is blamed" not grep -q snapshot <<<"$err" || diag "$err"

# ---- devices ----

if [ "$(id -u)" != 0 ]; then
	skip_block 1 "needs root"
	done_testing
fi

mkdir full
if mount -t tmpfs -o size=4k,nr_inodes=9,mode=755 none full; then
	cleanup sh -c "umount '$tmp/full' 2>/dev/null"
	head -c 4096 /dev/zero >full/zeros
	STELE_RUN_DIR=$tmp/full fails 1 "cannot publish" stele map other.stele
	ok "a full directory: what helps" \
		grep -q "^hint: free space there, or set STELE_RUN_DIR" <<<"$err" || diag "$err"
	umount full
else
	skip_block 3 "needs tmpfs"
fi

loop_new 64M
cleanup blockdev --setrw "$loop"
must stele build -q src "$loop@v1"
must stele map --read-only "$loop@v1" disk
is 1 "$(blockdev --getro "$loop")" "read-only while it is mapped"
ok "cat" cmp <(stele cat disk train/dogs/1.jpg) src/train/dogs/1.jpg
must stele unmap disk
is 0 "$(blockdev --getro "$loop")" "writable afterwards"

# ---- one file, and loop devices over it ----

must stele snapshot create --base v1 "$loop@v2"
must stele map "$loop_file@v1" file
fails 1 "is mapped as 'file'" stele build -q --force src "$loop@v1"
fails 1 "is mapped as 'file'" stele snapshot delete "$loop@v1"
ok "another snapshot may go" stele snapshot delete "$loop@v2"
must stele unmap file
first=$loop
must stele map "$first@v1" disk
loop=$(losetup -f --show "$first") || bail "losetup"
cleanup loop_drop "$loop"
fails 1 "is mapped as 'disk'" stele build -q --force src "$loop@v1"
fails 1 "is mapped as 'disk'" stele snapshot delete "$loop@v1"
losetup -d "$loop"
fails 1 "loop" stele build -q --force src "$loop_file@v1"
fails 1 "loop" stele snapshot delete "$loop_file@v1"
losetup -d "$first"
ok "a loop device that is gone keeps nobody" stele snapshot delete --force "$loop_file@v1"

done_testing
