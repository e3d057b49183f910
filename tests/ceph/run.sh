#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# run.sh CMD... - run CMD with a throw-away Ceph, named by STELE_TEST_CEPH
#
# One cluster serves all that CMD runs, and ends with it, also by Ctrl-C. What
# a run that was killed left is ended first. Where Ceph is not installed, CMD
# runs without, and its tests skip; STRICT=1 makes a failed start a failure.
set -u
here=$(cd "${0%/*}" && pwd)

if [ -n "${STELE_TEST_CEPH:-}" ]; then exec "$@"; fi
command -v ceph-mon >/dev/null || exec "$@"

job=
dir=
# shellcheck disable=SC2317 # a trap's
stop() {
	local result=$?

	trap '' INT TERM HUP
	[ -z "$job" ] || { kill -TERM "$job" 2>/dev/null; wait "$job"; }
	[ -z "$dir" ] || "$here/down.sh" "$dir" || result=1
	exit "$result"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

dir=$("$here/place.sh") || exit 1
begin=$(date +%s%N)
if CEPH_OWNER=$$ "$here/up.sh" "$dir"; then
	took=$((($(date +%s%N) - begin) / 1000000))
	printf 'ceph: a monitor and an OSD in %d.%03d s\n' \
		$((took / 1000)) $((took % 1000))
	export STELE_TEST_CEPH=$dir/ceph.conf
else
	echo "ceph: does not start here" >&2
	case ${STRICT:-0} in 0 | '') ;; *) exit 1 ;; esac
fi
# In the background, so that a signal to us alone is not kept waiting; Ctrl-C
# shall reach it all the same, which a shell's background jobs ignore.
(trap - INT && exec "$@") &
job=$!
wait "$job"
result=$?
job=
exit "$result"
