#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rbd-errors.t - RBD images that can't be read: a clear message, and soon
#
# On a cluster of its own, which is starved and killed. Each refusal says which
# image, and is there within the time that was set.
. "${0%/*}/../tap.sh"
. tests/ceph/words.sh

has_ceph || skip_all "needs Ceph"
ceph_new || skip_all "needs Ceph"
conf=$ceph_conf

# refused TEXT COMMAND...: fails within 15 s, and says TEXT
refused() {
	local text=$1 begin=$SECONDS
	shift
	run timeout 60 "$@"
	is "${refused:-1}" "$status" "$*: fails"
	ok "... and says why: $text" grep -qF -- "$text" <<<"$err"
	ok "... within its time" test $((SECONDS - begin)) -lt 15
	is "" "$(grep -vE '^(stele|hint): ' <<<"$err")" "... in messages of ours alone"
}

mkdir "$tmp/src"
for i in {1..40}; do head -c $((i * 1000)) /dev/urandom >"$tmp/src/$i"; done
must stele build -q "$tmp/src" "$tmp/image@v1"
rbd_name
must on_ceph rbd import --no-progress "$tmp/image" "$rbd_image"
at=${rbd_image#*/}

# ---- snapshots ----

refused "its RBD snapshot was not made" stele ls "$(rbd_at v1)"
refused "its RBD snapshot was not made" stele ls "$rbd"
must on_ceph rbd snap create --no-progress "$rbd_image@v1"
refused "is not protected" stele ls "$(rbd_at v1)"
must on_ceph rbd snap protect "$rbd_image@v1"
run stele verify -q "$(rbd_at v1)"
is "0 " "$status $err" "a protected one is read"
run stele verify -q "$rbd"
is "0 " "$status $err" "and so is the head"
# Made when the last writer had died before its mirror: so it stays in there for ever.
lagging=$rbd_image.lag
cp "$tmp/image" "$tmp/lag"
must stele append -q --always "$tmp/src" "$tmp/lag@v2" >/dev/null
must "$BUILD/tests/cmd/forge" lag "$tmp/lag"
must on_ceph rbd import --no-progress "$tmp/lag" "$lagging"
cleanup rbd_gone "$lagging"
for name in v1 v2; do
	must on_ceph rbd snap create --no-progress "$lagging@$name"
	must on_ceph rbd snap protect "$lagging@$name"
	run stele verify "rbd:$lagging@$name?conf=$ceph_conf"
	is 0 "$status" "$name with a mirror that lags is sound" || diag "$out$err"
	ok "which is noted" grep -q "^note: " <<<"$out$err" || diag "$out$err"
done
digest=$(stele info --json "$(rbd_at v1)" | jq -r .snapshot.digest 2>/dev/null)
[ "$digest" != null ] && [ -n "$digest" ] ||
	digest=$(stele info "$(rbd_at v1)" | sed -n 's/^digest *sha256://p')
run stele ls "$(rbd_at "sha256:${digest#sha256:}")"
is 40 "$(wc -l <<<"$out")" "a pin finds its snapshot"
refused "no RBD snapshot of that name" stele ls "$(rbd_at v2)"
refused "no such snapshot" stele ls "$(rbd_at "sha256:$(printf '%064d' 0)")"

# ---- names ----

refused "no image 'none' in pool 'rbd'" stele ls "rbd:rbd/none?conf=$conf"
refused "namespace 'ns'" stele ls "rbd:rbd/ns/$at?conf=$conf"
refused "no pool 'none'" stele ls "rbd:none/$at?conf=$conf"
refused=2
refused "it is not rbd:POOL" stele ls "rbd:$at"
refused "bad option 'mode=1'" stele ls "rbd:rbd/$at?mode=1"
refused=1
refused "No such file" stele ls "rbd:rbd/$at?conf=$tmp/none"
refused "No such file" stele ls --ceph-conf "$tmp/none" "rbd:rbd/$at"
: >"$tmp/empty.conf"
refused "no monitors are known" stele ls "rbd:rbd/$at?conf=$tmp/empty.conf"

# ---- who ----

run stele ls --ceph-user=reader "$(rbd_at v1)"
is "0 40" "$status $(wc -l <<<"$out")" "who may only read, reads"
run env STELE_CEPH_USER=reader CEPH_CONF="$conf" stele ls "rbd:rbd/$at@v1"
is "0 40" "$status $(wc -l <<<"$out")" "by the environment"
run env CEPH_ARGS="--id reader -c $conf" stele ls "rbd:rbd/$at@v1"
is "0 40" "$status $(wc -l <<<"$out")" "by Ceph's environment"
refused "as client.nobody" stele ls --ceph-user=nobody "$rbd"
must on_ceph ceph auth get-or-create client.poor mon 'allow r' \
	-o "$tmp/poor.keyring"
sed "s|^keyring.*|keyring = $tmp/poor.keyring|" "$conf" >"$tmp/poor.conf"
refused "profile rbd-read-only" \
	stele ls "rbd:rbd/$at@v1?conf=$tmp/poor.conf&user=poor"
sed 's|key = .*|key = AQCVjlZjAAAAABAAxAwqSLEJQwuDAJDy0eoUFQ==|' \
	"$tmp/poor.keyring" >"$tmp/wrong.keyring"
sed "s|^keyring.*|keyring = $tmp/wrong.keyring|" "$conf" >"$tmp/wrong.conf"
refused "does not know this user and key" \
	stele ls "rbd:rbd/$at@v1?conf=$tmp/wrong.conf&user=poor"

# ---- a fence that somebody else made, for a moment ----

fenced=${rbd_image#*/}.fenced
cleanup rbd_gone "rbd/$fenced"
mkdir "$tmp/big"
for i in {1..40}; do head -c 2M /dev/urandom >"$tmp/big/b$i"; done
must stele build -q "$tmp/src" "rbd:rbd/$fenced@v1?conf=$conf"
stele append -q "$tmp/big" "rbd:rbd/$fenced@v2?conf=$conf" 2>/dev/null &
writer=$!
address=null
while [ "$address" = null ] && kill -0 $writer; do
	address=$(on_ceph rbd lock ls --format json "rbd/$fenced" | jq -r '.[0].address')
done
kill -KILL $writer
wait $writer 2>/dev/null
is 137 $? "a writer dies with its lock"
must on_ceph ceph osd blocklist add "$address" 3600
run stele append -q "$tmp/big" "rbd:rbd/$fenced@v2?conf=$conf&user=writer"
is 1 "$status" "who cannot make its fence last does not go on"
ok "and says how it is done" grep -q "ceph osd blocklist add $address" <<<"$err" ||
	diag "$err"
run stele append -q "$tmp/big" "rbd:rbd/$fenced@v2?conf=$conf"
is 0 "$status" "who can does" || diag "$err"
ok "for years" grep -q "$address $(($(date +%Y) + 9))\|$address $(($(date +%Y) + 10))" \
	<(on_ceph ceph osd blocklist ls)
ok "sound" stele verify -q "rbd:rbd/$fenced?conf=$conf"

# ---- nothing is left ----

is "Watchers: none" "$(on_ceph rbd status "$rbd_image")" "no watch is left"
is "" "$(on_ceph rbd lock ls "$rbd_image")" "nor a lock"
{
	cat "$conf"
	printf '[client]\nadmin_socket = %s/sockets/$pid\nlog_file = %s/log\n' \
		"$tmp" "$tmp"
} >"$tmp/noisy.conf"
mkdir "$tmp/sockets"
run stele verify -q "rbd:rbd/$at@v1?conf=$tmp/noisy.conf"
is "0 " "$status $(find "$tmp/sockets" "$tmp/log" ! -type d 2>/dev/null)" \
	"nor a socket or a log"

# ---- when the storage hangs, and when it comes back ----

must tests/ceph/kick.sh "$ceph_dir" stop osd.0
refused "no answer from the storage within 2 s" \
	stele ls --timeout=2 "$(rbd_at v1)"
(sleep 2 && tests/ceph/kick.sh "$ceph_dir" cont osd.0) &
run stele verify -q "$(rbd_at v1)&timeout=30"
is "0 " "$status $err" "what hangs for 2 s, goes on"
wait
must tests/ceph/kick.sh "$ceph_dir" kill osd.0
refused "no answer from the storage within 2 s" \
	stele ls "$(rbd_at v1)&timeout=2"
(sleep 1 && tests/ceph/kick.sh "$ceph_dir" start osd.0) &
run stele verify -q --timeout=30 "$(rbd_at v1)"
is "0 " "$status $err" "an OSD that was killed, and is back: reading goes on"
wait
must tests/ceph/kick.sh "$ceph_dir" kill osd.0 mon.a
refused "no monitor answered within 2 s" \
	env STELE_TIMEOUT=2 stele ls "$(rbd_at v1)"
must tests/ceph/kick.sh "$ceph_dir" start mon.a osd.0
run stele verify -q "$(rbd_at v1)"
is "0 " "$status $err" "all is back"

done_testing
