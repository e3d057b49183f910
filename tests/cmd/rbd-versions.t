#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rbd-versions.t - a dataset on RBD lives: append, delete, gc, writers that die
#
# Every snapshot of the catalog has a protected RBD snapshot of its name; a
# writer that was killed at any time leaves what the next one sets right.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version
requires_ceph

tree_photos "$tmp/one"
cp -R "$tmp/one" "$tmp/two"
for ((i = 0; i < 40; i++)); do
	head -c $((i * 3000 + 1)) /dev/urandom >"$tmp/two/train/dogs/new$i.jpg"
done

# snaps: names of RBD snapshots, + behind those that are protected
snaps() {
	on_ceph rbd snap ls --format json "$rbd_image" |
		jq -r '[.[] | .name + (if .protected == "true" then "+" else "" end)] |
			sort | join(" ")'
}
names() { stele snapshot list --json "$rbd" | jq -r .name | sort | xargs; }

# same SNAPSHOT DIR: extracts to what DIR holds
same() {
	rm -rf "$tmp/copy"
	stele extract -q "$rbd@$1" "$tmp/copy" && diff -r "$2" "$tmp/copy"
}

rbd_name
must stele build -q "$tmp/one" "$rbd@v1"
size=$(on_ceph rbd info --format json "$rbd_image" | jq .size)
run stele append -q "$tmp/two" "$rbd@v2"
is 0 "$status" "append" || diag "$err"
is "v1+ v2+" "$(snaps)" "both have a protected RBD snapshot"
ok "v1 is as it was" same v1 "$tmp/one"
ok "v2 is the new tree" same v2 "$tmp/two"
ok "the image grew" test "$(on_ceph rbd info --format json "$rbd_image" |
	jq .size)" -gt "$size"
run stele verify "$rbd"
is 0 "$status" "the image is sound" || diag "$out" "$err"
run stele info --json "$(rbd_at v9)"
is "1 " "$status $out" "info on a snapshot that is not there"

# ---- dry runs ----

# objects: of this image, and those that a copy to 'none' would begin with. The
# pool's others are no measure: earlier tests' removed ones vanish when the OSDs
# come to trim their RBD snapshots.
objects() {
	local id

	id=$(on_ceph rbd info --format json "$rbd_image" | jq -r .id)
	on_ceph rados -p "$ceph_pool" ls |
		grep -E "\.$id(\.|$)|^rbd_id\.none$" | sort | sha256sum
}

# rehearses WORDS...: with success, and leaves everything as it is
rehearses() {
	local before
	before="$(objects) $(snaps) $(stele info --json "$rbd" | jq .image.generation)"
	run stele "$@"
	is 0 "$status" "$*" || diag "$err"
	is "$before" "$(objects) $(snaps) $(stele info --json "$rbd" |
		jq .image.generation)" "$*: leaves objects and RBD snapshots alone"
}

rehearses append -n "$tmp/one" "$rbd@v9"
rehearses snapshot create -n "$rbd@v9"
rehearses snapshot rename -n --grace=1h "$rbd@v1" v9
rehearses snapshot delete -n --force "$rbd@v1" "$rbd@v2"
rehearses snapshot delete -n --grace=1h "$rbd@v1"
rehearses gc -n --apply --force "$rbd"
rehearses compact -n "$rbd@v1" v9
rehearses copy -n "$rbd@v2" "rbd:$ceph_pool/none?conf=$ceph_conf"
rehearses build -n "$tmp/one" "rbd:$ceph_pool/none?conf=$ceph_conf"
rehearses build -n -f "$tmp/one" "$rbd@v1"
ok "says what force overwrites" grep -q "snapshots 'v1', 'v2'.*overwritten" <<<"$err"
run stele build -n "$tmp/one" "$rbd@v1"
is 1 "$status" "a build over an image is refused"
run stele snapshot delete -n "$rbd@v1"
is 1 "$status" "a delete that says nothing of readers is refused"

# ---- snapshots that go ----

run stele snapshot delete "$rbd@v1"
is 1 "$status" "delete with neither grace nor force: refused"
is "v1+ v2+" "$(snaps)" "and nothing has changed"
run stele snapshot delete --grace=1h "$rbd@v1"
is 0 "$status" "delete with a grace period" || diag "$err"
is v2 "$(names)" "it is in no catalog any more"
ok "its RBD snapshot is tombstoned" \
	grep -qE '^stele-tombstone-[0-9]+-v1\+ v2\+$' <<<"$(snaps)"
run stele cat "$rbd@v1" '#0'
is 1 "$status" "and can't be opened"
run stele gc --apply --grace=1h "$rbd"
is 0 "$status" "gc before its time"
ok "leaves it" grep -q stele-tombstone <<<"$(snaps)"
run stele gc --apply --force "$rbd"
is "0 v2+" "$status $(snaps)" "gc by force removes it" || diag "$err"
ok "v2 is whole" same v2 "$tmp/two"
must stele snapshot create "$rbd@v3" --base v2
is "v2+ v3+" "$(snaps)" "snapshot create makes one, too"
run stele snapshot delete --force "$rbd@v3"
is "0 v2+" "$status $(snaps)" "delete by force removes it at once" || diag "$err"
must on_ceph rbd snap create --no-progress "$rbd_image@theirs"
run stele append -q "$tmp/two" "$rbd@theirs"
is 1 "$status" "the name of somebody else's RBD snapshot: refused"
is "v2" "$(names)" "before the commit"
must on_ceph rbd snap rm --no-progress "$rbd_image@theirs"

# ---- a writer that dies ----

# What it leaves half made, whichever step it did not come to.
must on_ceph rbd snap unprotect "$rbd_image@v2"
run stele cat "$rbd@v2" '#0'
is 1 "$status" "an RBD snapshot that is not protected is not read"
must stele append -q --always "$tmp/two" "$rbd@v4"
is "v2+ v4+" "$(snaps)" "the next writer protects it"
must on_ceph rbd snap unprotect "$rbd_image@v4"
must on_ceph rbd snap rm --no-progress "$rbd_image@v4"
must stele append -q --always "$tmp/two" "$rbd@v5"
is "v2+ v4+ v5+" "$(snaps)" "or makes it"
ok "with the right bytes" same v4 "$tmp/two"

cp -R "$tmp/two" "$tmp/three"
head -c 3M /dev/urandom >"$tmp/three/train/cats/large.jpg"
for ((i = 1; i <= 12; i++)); do
	stele append -q "$tmp/three" "$rbd@k$i" 2>/dev/null &
	job=$!
	sleep "0.$(printf %03d $((i * 25)))"
	kill -KILL $job 2>/dev/null
	wait $job 2>/dev/null
done
begin=$SECONDS
run stele append -q --always "$tmp/three" "$rbd@v6"
is 0 "$status" "12 writers killed at 25 to 300 ms: the next one works" || diag "$err"
ok "without waiting for their watches" test $((SECONDS - begin)) -lt 20
wanted=
for name in $(names); do wanted="$wanted $name+"; done
is "$(xargs -n1 <<<"$wanted" | sort | xargs)" "$(snaps)" \
	"each snapshot has its RBD snapshot, and no other is there"
ok "those that were there stay" grep -q "v2+ v4+ v5+ v6+" <<<"$(snaps)"
diag "after the killed writers: $(names)"
ok "the newest is whole" same v6 "$tmp/three"
run stele verify "$rbd"
is 0 "$status" "the image is sound" || diag "$out" "$err"

# ---- an image with one snapshot, or none ----

rbd_name
must stele build -q "$tmp/one" "$rbd@v1"
must on_ceph rbd snap unprotect "$rbd_image@v1"
run stele info --json "$rbd"
is "1 v1 null" "$status $(jq -r '"\(.image.snapshots[0].name) \(.snapshot)"' <<<"$out")" \
	"one that does not open: info tells of the image"
ok "and what is missing" grep -qF "is not protected" <<<"$err"
must on_ceph rbd snap rm --no-progress "$rbd_image@v1"
run stele info "$rbd"
ok "and what makes it" grep -qF "'stele resize rbd:$rbd_image" <<<"$err"
must stele resize "$rbd" >/dev/null
is v1+ "$(snaps)" "which is so"
run stele info "$rbd"
is "0 " "$status $err" "now it opens"
export SOURCE_DATE_EPOCH=1000
must stele snapshot delete --force --grace=1h "$rbd@v1"
unset SOURCE_DATE_EPOCH
run stele gc --json "$rbd"
is false "$(jq -s '.[] | select(.tombstoned).due' <<<"$out")" \
	"a grace period goes by the clock"
run stele info --json "$rbd"
is "0 0" "$status $(jq '.image.snapshots | length' <<<"$out")" \
	"info on an image with no snapshot left"
for target in "$rbd@v1" "$(rbd_at v1)"; do
	run stele info --json "$target"
	is "1 " "$status $out" "but a snapshot that is named must be there"
done

done_testing
