# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# daemons.sh - the daemons of one throw-away Ceph, found and ended by pid
#
# A daemon is ours when its command line names our very ceph.conf. That needs
# no pid files, and a pid that was given to somebody else does no harm.
# shellcheck disable=SC2154,SC2120 # dir; the arguments of functions
#
# Sourced with $dir set: the cluster's directory, absolute.

# since PID: when it started; a pid that was given away has another time
since() {
	local stat

	read -r stat <"/proc/$1/stat" || return 1
	# shellcheck disable=SC2086
	set -- ${stat##*) }
	echo "${20}"
} 2>/dev/null

# daemons [NAME]: pids of our daemons, or of one: mon.a, osd.0
daemons() {
	local comm pid
	local -a words

	for comm in /proc/[0-9]*/comm; do
		pid=${comm#/proc/}
		pid=${pid%/comm}
		{ case $(<"$comm") in ceph-mon | ceph-osd) ;; *) continue ;; esac } \
			2>/dev/null || continue
		# As we start them: ceph-TYPE -i ID -c CONF
		mapfile -d '' -t words <"/proc/$pid/cmdline" || continue
		[ "${words[4]:-}" = "$dir/ceph.conf" ] || continue
		[ $# = 0 ] || [ "${words[0]#ceph-}.${words[2]:-}" = "$1" ] || continue
		echo "$pid"
	done 2>/dev/null
}

# Until its last thread has ended a killed process holds locks and ports, even
# where its first thread is a zombie already. Nobody may collect that one.
ended() { # PID
	local line state='' threads=0

	while read -r line; do
		case $line in
		State:*) state=${line#State:?} ;;
		Threads:*) threads=${line#Threads:?} ;;
		esac
	done 2>/dev/null <"/proc/$1/status"
	case $state in
	'' | X*) return 0 ;;
	Z*) [ "$threads" -le 1 ] ;;
	*) return 1 ;;
	esac
}

# end_daemons [NAME]: killed, for nothing in here is worth an orderly stop
end_daemons() {
	local pid pids try

	pids=$(daemons "$@")
	# shellcheck disable=SC2086
	[ -z "$pids" ] || kill -KILL $pids 2>/dev/null
	for pid in $pids; do
		for ((try = 0; try < 400; try++)); do
			! ended "$pid" || continue 2
			sleep 0.02
		done
		echo "ceph: process $pid does not end" >&2
		return 1
	done
}

# start_daemon NAME: returns when it runs
start_daemon() {
	# Its command line is how we find it again, see above. It outlives us: what
	# the caller has open is closed, so that no pipe or lock stays held.
	(
		for fd in /proc/self/fd/*; do
			fd=${fd##*/}
			[ "$fd" -le 2 ] || eval "exec $fd>&-"
		done 2>/dev/null
		exec timeout "${CEPH_WAIT:-60}" "ceph-${1%%.*}" -i "${1#*.}" \
			-c "$dir/ceph.conf" </dev/null >>"$dir/out" 2>&1
	)
}
