#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# krbd.t - two guests map one RBD snapshot through the kernel
#
# The cluster runs on the host, on an address that QEMU's network reaches. Here
# are the host's checks; guest() is what each guest does.
if [ -n "${GUEST-}" ]; then export TMPDIR=/dev/shm; fi
. "${0%/*}/../tap.sh"
. "${0%/*}/guests.sh"
shared=${1-} me=${2-}

# attached: numbers of krbd devices
attached() { ls /sys/bus/rbd/devices; }
# target SNAPSHOT [USER [IMAGE]]
target() { echo "rbd:rbd/${3:-photos}@$1?conf=$shared/ceph.conf${2:+&user=$2}"; }

guest_map() {
	run stele map --via krbd "$(target v1)" photos
	is "0 photos" "$status $out" "map --via krbd" || diag "$err"
	is "stele: 'photos' is read via krbd" "$err" "says what was chosen"
	is 0 "$(attached)" "one device is attached"
	is "1 v1" "$(cat /sys/block/rbd0/ro) $(cat /sys/bus/rbd/devices/0/current_snap)" \
		"read-only, of that snapshot"
	ok "the key is not to be seen" not grep -q secret= \
		/sys/bus/rbd/devices/0/config_info
	is "krbd uring" "$(stele maps --json | jq -r .via) $(stele info --json photos |
		jq -r .snapshot.backend)" "maps says krbd; io_uring serves"
}

guest_read() {
	local backend
	run stele extract photos "$tmp/copy"
	is 0 "$status" "extract by name" || diag "$err"
	ok "the tree" diff -r "$shared/src" "$tmp/copy"
	for backend in uring threads; do
		ok "each sample in random order, $backend" env \
			STELE_BACKEND=$backend \
			"$BUILD/tests/demo/demo" compare photos "$shared/src"
	done
	run stele verify photos@v1
	is 0 "$status" "verify" || diag "$out" "$err"
	run stele info photos
	is 0 "$status" "info" || diag "$err"
}

# The same device as a filesystem, by the kernel alone.
guest_mount() {
	mkdir "$tmp/view"
	must mount -t erofs -o ro /dev/rbd0 "$tmp/view"
	is v1 "$(ls "$tmp/view")" "mount -t erofs: a directory for the snapshot"
	ok "the tree" diff -r "$shared/src" "$tmp/view/v1"
	must umount "$tmp/view"
}

# Devices are shared, and go with the last name that needs them.
guest_share() {
	local key secret=$shared/ceph.keyring
	must stele map "$(target v1)" second >"$tmp/out"
	is 0 "$(attached)" "another name, auto: the same device"
	exec 5</dev/rbd0
	must stele unmap photos
	run stele unmap second
	is 1 "$status" "the last name of a device that is open stays"
	ok "and is told so" grep -q "'/dev/rbd0'.*open" <<<"$err" || diag "$err"
	exec 5<&-
	ok "once it is closed it goes" stele unmap second
	is "" "$(attached)" "and the device with it"

	key=$(sed -n '/client.reader/,/key/s/.*key = //p' "$secret")
	echo "$(sed -n 's/^mon_host = v2://p' "$shared/ceph.conf")" \
		"name=reader,secret=$key,ms_mode=crc,read_only rbd photos v1" \
		>/sys/bus/rbd/add_single_major || bail "krbd"
	must stele map --via krbd "$(target v1 reader)" photos >"$tmp/out"
	is "$(attached)" 0 "what an administrator attached is used"
	ok "and read" cmp <(stele cat photos 7) "$shared/src/7"
	must stele unmap photos
	is 0 "$(attached)" "and left"
	echo 0 >/sys/bus/rbd/remove_single_major
}

guest_others() {
	run stele map --via krbd "$(target v1 reader)" photos
	is "0 photos" "$status $out" "a user who may only read" || diag "$err"
	ok "reads" cmp <(stele cat photos 9) "$shared/src/9"
	must stele unmap photos
	run stele map --via krbd "$(target none)" photos
	is "1 " "$status $out" "no such snapshot"
	run stele map --via krbd "rbd:rbd/team/ns-photos@v1?conf=$shared/ceph.conf" ns
	is "0 ns" "$status $out" "in a namespace" || diag "$err"
	ok "reads there" cmp <(stele cat ns 5) "$shared/src/5"
	must stele unmap ns
	must stele map --via librbd "$(target v1)" photos >"$tmp/out"
	is "librbd" "$(stele maps --json | jq -r .via)" "map --via librbd"
	is "" "$(attached)" "attaches nothing"
	must stele unmap photos
}

# The snapshot is taken away, and the head overwritten. Never a wrong byte.
guest_removed() {
	local bad=0 i
	must stele map --via krbd "$(target old "" old)" old >"$tmp/out"
	ok "before: reads" cmp <(stele cat old 9) "$shared/src/9"
	: >"$shared/$me.mapped"
	for ((i = 0; i < 300; i++)); do
		[ -e "$shared/removed" ] && break
		sleep 0.5
	done
	must test -e "$shared/removed"
	for ((i = 1; i <= 9; i++)); do
		run stele cat old $i
		case $status in
		0) cmp -s "$tmp/.out" "$shared/src/$i" || bad=$((bad + 1)) ;;
		*) [ -z "$out" ] || bad=$((bad + 1)) ;;
		esac
	done
	is 0 "$bad" "removed: no wrong byte"
	ok "removed: the reader is told that its snapshot is gone" \
		grep -q "snapshot was deleted" <<<"$err" ||
		diag "$err"
	diag "status $status: $err"
	diag "the device: $(head -c 4096 /dev/rbd0 | sha256sum | cut -c1-16)," \
		"current_snap $(cat /sys/bus/rbd/devices/0/current_snap)"
	must stele unmap old
	is "" "$(attached)" "removed: unmap detaches"
}

if [ -n "${GUEST-}" ]; then
	guest_map
	guest_read
	guest_mount
	if [ "$me" = a ]; then
		guest_share
		guest_others
	else
		must stele unmap photos
	fi
	guest_removed
	done_testing
fi

# ---- on the host -------------------------------------------------------------

. tests/ceph/words.sh
requires jq --version
address=$(ip -4 -o addr show scope global | awk '{ sub("/.*", "", $4); print $4; exit }')
[ -n "$address" ] || skip_all "needs an address other than 127.0.0.1"
export CEPH_ADDR=$address
ceph_new || skip_all "needs Ceph"

# Where guests see it, too.
shared=$tmp/shared
mkdir -p "$shared/src"
cp "$ceph_dir/keyring" "$shared/ceph.keyring"
sed "s|^keyring = .*|keyring = $shared/ceph.keyring|" "$ceph_conf" >"$shared/ceph.conf"
for ((i = 1; i <= 9; i++)); do
	head -c $((i * 100000)) /dev/urandom >"$shared/src/$i"
done

# image NAME SNAPSHOT...: the samples, and RBD snapshots, protected
image() {
	local name=$1
	must on_ceph rbd import --no-progress "$tmp/image" "$name"
	shift
	for snap; do
		must on_ceph rbd snap create --no-progress "$name@$snap"
		must on_ceph rbd snap protect "$name@$snap"
	done
}
must stele build -q --posix --size=16M --label photos "$shared/src" "$tmp/image@v1"
must on_ceph rbd namespace create rbd/team
image rbd/photos v1
image rbd/team/ns-photos v1
must stele build -q --size=16M "$shared/src" "$tmp/image.old@old"
mv "$tmp/image.old" "$tmp/image"
must on_ceph rbd import --no-progress "$tmp/image" rbd/old
must on_ceph rbd snap create --no-progress rbd/old@old
must on_ceph rbd snap protect rbd/old@old

# This kernel has no krbd, or may have none of ours.
if [ ! -d /sys/bus/rbd ]; then
	run stele map --via krbd "$(target v1)" photos
	is "1 " "$status $out" "no krbd: --via krbd fails"
	ok "no krbd: and says what to do" grep -q "modprobe rbd" <<<"$err"
	run stele map "$(target v1)" photos
	is "0 photos" "$status $out" "no krbd: auto takes librbd" || diag "$err"
	ok "no krbd: and says so" grep -q "read via librbd" <<<"$err"
	must stele unmap photos
fi

boot_guests "a b" "$shared" -n -m rbd -m erofs -t 550
for ((i = 0; i < 1200; i++)); do
	[ -e "$shared/a.mapped" ] && [ -e "$shared/b.mapped" ] && break
	kill -0 "${guest_pids[@]}" 2>/dev/null || break
	sleep 0.2
done
ok "both guests have the snapshot mapped" \
	test -e "$shared/a.mapped" -a -e "$shared/b.mapped"
is "0 0" "$(on_ceph rbd status --format json rbd/photos | jq '.watchers | length') $(
	on_ceph rbd lock ls --format json rbd/photos | jq length)" \
	"readers leave no watcher and no lock"
must on_ceph rbd snap unprotect rbd/old@old
must on_ceph rbd snap rm --no-progress rbd/old@old
on_ceph rbd bench --io-type write --io-size 1M --io-total 16M --io-pattern seq \
	rbd/old >/dev/null 2>&1
: >"$shared/removed"
join_guests
done_testing
