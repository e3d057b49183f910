#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# up.sh DIR - a throw-away Ceph: one monitor, OSDs, all of it in DIR
#
# When it returns 0 the pool serves I/O: DIR/ceph.conf is all that a client
# needs. A cluster that an earlier up.sh left in DIR is ended first; anything
# else in DIR is refused. By environment, all optional:
#
#	CEPH_ADDR	address to listen on (127.0.0.1)
#	CEPH_OSDS	addresses of OSDs, one each (CEPH_ADDR, once)
#	CEPH_FENCE	seconds for which the monitor keeps who is locked out, where
#			nobody says how long (Ceph's own: 3600)
#	CEPH_PORT	of the monitor (any that is free)
#	CEPH_AUTH	cephx or none (cephx)
#	CEPH_POOL	pool to make, for RBD (rbd)
#	CEPH_SIZE	bytes of each OSD, a sparse file (8 GiB, less where there
#			is less room)
#	CEPH_TIMEOUT	seconds after which a client's operations fail (30)
#	CEPH_OWNER	pid of a process: once it is gone, the next run of tests
#			ends the cluster (none)
#	CEPH_WAIT	seconds that each step of the start may take (60)
#
# Users, with keys in DIR/keyring: admin; writer, who has the profile rbd;
# reader, who has the profile rbd-read-only.
set -u
[ $# = 1 ] || { echo "usage: up.sh DIR" >&2; exit 2; }
addr=${CEPH_ADDR:-127.0.0.1} auth=${CEPH_AUTH:-cephx} pool=${CEPH_POOL:-rbd}
limit=${CEPH_TIMEOUT:-30} patience=${CEPH_WAIT:-60} fence=${CEPH_FENCE:-3600}
read -ra osds <<<"${CEPH_OSDS:-$addr}"
here=$(cd "${0%/*}" && pwd)
PATH=$PATH:/usr/sbin:/sbin
unset CEPH_CONF CEPH_ARGS CEPH_KEYRING

die() {
	echo "up.sh: $*" >&2
	exit 1
}

for program in ceph-mon ceph-osd monmaptool ceph-authtool ceph rbd; do
	command -v $program >/dev/null || die "no $program: run 'make deps'"
done
mkdir -p "$1" || exit 1
dir=$(cd "$1" && pwd -P) || exit 1
# The daemons' sockets are in there, and ceph.conf has no quotes.
[ ${#dir} -le 85 ] || die "a name too long for sockets: '$dir'"
case $dir in *[!A-Za-z0-9/._+-]*) die "'$dir' would not survive ceph.conf" ;; esac
. "$here/daemons.sh"

if [ -e "$dir/.stele-ceph" ]; then
	# shellcheck disable=SC2119
	end_daemons || exit 1
	find "$dir" -mindepth 1 -delete || exit 1
fi
[ -z "$(ls -A "$dir")" ] || die "'$dir' is not empty, and none of ours"
if [ -n "${CEPH_OWNER:-}" ]; then
	echo "$CEPH_OWNER $(since "$CEPH_OWNER")"
fi >"$dir/.stele-ceph" || exit 1

# Ended also when the start is cut short or fails.
done=
trap '[ -n "$done" ] || "$here/down.sh" "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

fail() {
	tail -n 15 "$dir/out" >&2
	die "$*"
}

room=$(($(stat -f -c '%a * %S' "$dir") / 2 / 1048576 * 1048576))
room=$((room / ${#osds[@]}))
size=${CEPH_SIZE:-$((room < 8 << 30 ? room : 8 << 30))}
rocksdb=compression=kNoCompression,write_buffer_size=16777216
rocksdb=$rocksdb,max_write_buffer_number=4,max_background_compactions=2
fsid=$(</proc/sys/kernel/random/uuid)

conf() { # PORT
	cat <<-END
	[global]
	fsid = $fsid
	mon_host = v2:$addr:$1
	public_addr = $addr
	cluster_addr = $addr
	ms_bind_ipv6 = false
	ms_bind_msgr1 = false
	ms_bind_port_min = 20000
	ms_bind_port_max = 31999
	# By default a daemon asks 3 times for a port, and rests 5 s before each.
	ms_bind_retry_count = 1
	auth_cluster_required = $auth
	auth_service_required = $auth
	auth_client_required = $auth
	auth_allow_insecure_global_id_reclaim = false
	keyring = $dir/keyring
	run_dir = $dir
	crash_dir = $dir
	pid_file =
	admin_socket = $dir/\$name.asok
	log_file = $dir/\$name.log
	err_to_stderr = false
	# OSDs keep one copy, and that is all right.
	osd_pool_default_size = 1
	osd_pool_default_min_size = 1
	osd_pool_default_pg_autoscale_mode = off
	osd_crush_chooseleaf_type = 0

	[client]
	admin_socket =
	log_file =
	# By default operations wait for ever, and mounts for 300 s.
	rados_osd_op_timeout = $limit
	rados_mon_op_timeout = $limit
	client_mount_timeout = $limit
	# By default a client asks for news of an OSD that is silent after 10 to 15 s.
	objecter_tick_interval = 0.5
	objecter_timeout = 1

	[mon]
	mon_data = $dir/mon.a
	mon_allow_pool_delete = true
	mon_osd_blocklist_default_expire = $fence
	mon_allow_pool_size_one = true
	mon_warn_on_pool_no_redundancy = false
	mon_cluster_log_to_file = false
	# There is no manager, and nobody misses it.
	mon_mgr_mkfs_grace = 1000000000
	# By default a monitor ends itself where the disk is 95 % full.
	mon_data_avail_crit = 0
	mon_data_avail_warn = 1
	# By default each change of a map waits for others, up to 1 s.
	paxos_propose_interval = 0.02
	paxos_min_wait = 0.01

	[osd]
	osd_data = $dir/osd.\$id
	osd_objectstore = bluestore
	bluestore_block_size = $size
	bluestore_fsck_on_mkfs = false
	# By default each close of the device takes 0.25 s; a start has ten.
	bdev_aio_poll_ms = 10
	# Where a client was killed its watch, and so its lock, lives on (30 s).
	osd_client_watch_timeout = 5
	osd_mon_shutdown_timeout = 1
	# Some 100 MB of memory instead of 800.
	osd_op_num_shards = 2
	osd_op_num_threads_per_shard = 1
	bluestore_cache_autotune = false
	bluestore_cache_size = 67108864
	bluestore_rocksdb_options = $rocksdb
	osd_min_pg_log_entries = 100
	osd_max_pg_log_entries = 200
	osd_pg_log_dups_tracked = 100
	osd_pg_log_trim_min = 20
	END
	for id in "${!osds[@]}"; do
		printf '[osd.%s]\npublic_addr = %s\ncluster_addr = %s\n' \
			"$id" "${osds[id]}" "${osds[id]}"
	done
}

key() { # ENTITY [CAP]...
	local entity=$1
	shift
	ceph-authtool "$dir/keyring" --gen-key -n "$entity" "$@"
}

keys() {
	ceph-authtool -C "$dir/keyring" &&
	key mon. --cap mon 'allow *' &&
	for id in "${!osds[@]}"; do
		key "osd.$id" --cap mon 'allow profile osd' --cap osd 'allow *'
	done &&
	key client.admin --cap mon 'allow *' --cap osd 'allow *' &&
	key client.writer --cap mon 'profile rbd' --cap osd 'profile rbd' &&
	key client.reader --cap mon 'profile rbd' \
		--cap osd 'profile rbd-read-only'
}

# Only bind() can tell whether a port is free, so the monitor tries.
monitor() { # PORT
	rm -rf "$dir/mon.a" "$dir/mon.a.log" && mkdir "$dir/mon.a" &&
	conf "$1" >"$dir/ceph.conf" &&
	monmaptool --create --clobber --fsid "$fsid" --addv a "[v2:$addr:$1]" \
		--set-min-mon-release pacific --enable-all-features \
		"$dir/monmap" >>"$dir/out" 2>&1 &&
	ceph-mon -i a --mkfs -c "$dir/ceph.conf" --monmap "$dir/monmap" \
		--keyring "$dir/keyring" >>"$dir/out" 2>&1 &&
	start_daemon mon.a
}

osd() { # ID
	mkdir "$dir/osd.$1" &&
	timeout "$patience" ceph-osd -i "$1" --mkfs -c "$dir/ceph.conf" \
		--osd-uuid "$(</proc/sys/kernel/random/uuid)" \
		>>"$dir/out" 2>&1 </dev/null &&
	start_daemon "osd.$1"
}

client() { # CMD...
	timeout "$patience" "$@" -c "$dir/ceph.conf" >>"$dir/out" 2>&1 </dev/null
}

keys >"$dir/out" 2>&1 || fail "no keys"
for ((try = 0; ; try++)); do
	port=${CEPH_PORT:-$((10000 + RANDOM % 10000))}
	! monitor "$port" || break
	if [ -n "${CEPH_PORT:-}" ] || [ $try = 20 ] ||
		! grep -q 'unable to bind' "$dir/mon.a.log" "$dir/out"; then
		fail "the monitor does not start"
	fi
done
client ceph osd pool create "$pool" 8 8 replicated &
job=$!
for id in "${!osds[@]}"; do
	osd "$id" || fail "OSD $id does not start"
done
wait $job || fail "no pool '$pool'"
# Returns when each placement group of the pool has served an operation.
client rbd pool init "$pool" || fail "the pool '$pool' serves nothing"
done=1
