#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# kick.sh DIR kill|start|stop|cont NAME... - what may happen to a daemon
#
# NAME is mon.a or osd.0. kill: at once, and gone when this returns; start: what
# was killed; stop, cont: it hangs, and goes on.
set -u
[ $# -ge 3 ] || { echo "usage: kick.sh DIR kill|start|stop|cont NAME..." >&2; exit 2; }
dir=$(cd "$1" && pwd -P) || exit 1
what=$2
shift 2
. "${0%/*}/daemons.sh"

for name; do
	pid=$(daemons "$name")
	case $what in
	start)
		[ -z "$pid" ] || { echo "kick.sh: $name runs" >&2; exit 1; }
		start_daemon "$name" || exit 1
		continue
		;;
	esac
	[ -n "$pid" ] || { echo "kick.sh: no $name runs" >&2; exit 1; }
	case $what in
	kill) end_daemons "$name" || exit 1 ;;
	stop) kill -STOP "$pid" || exit 1 ;;
	cont) kill -CONT "$pid" || exit 1 ;;
	*) echo "kick.sh: '$what' is not known" >&2; exit 2 ;;
	esac
done
