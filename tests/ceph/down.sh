#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# down.sh DIR - end what up.sh started in DIR, and remove DIR
#
# What is not there is no failure. A directory that up.sh did not make is left
# alone.
set -u
[ $# = 1 ] || { echo "usage: down.sh DIR" >&2; exit 2; }
dir=$(cd "$1" 2>/dev/null && pwd -P) || exit 0
. "${0%/*}/daemons.sh"

[ -e "$dir/.stele-ceph" ] || {
	echo "down.sh: '$dir' is none of ours" >&2
	exit 1
}
# shellcheck disable=SC2119
end_daemons && rm -rf "$dir"
