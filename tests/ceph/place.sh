#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# place.sh - make a directory for a throw-away Ceph, and print its name
#
# In memory where there is room, and where O_DIRECT works (from kernel 6.6 on),
# else below $TMPDIR. Clusters whose owner (CEPH_OWNER of up.sh) is gone are
# ended on the way, if they are ours to end.
set -u
here=$(cd "${0%/*}" && pwd)
. "$here/daemons.sh"
places=(/dev/shm "${TMPDIR:-/tmp}" /tmp)
need=$((4 << 30)) # bytes; a run of all tests writes less than 1 GiB

roomy() { # DIR
	local free memory

	free=$(($(stat -f -c '%a * %S' "$1"))) && [ $free -ge $need ] || return 1
	[ "$(stat -f -c %T "$1")" = tmpfs ] || return 0
	memory=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
	[ $((memory * 1024)) -ge $need ]
}

direct() { # DIR
	dd if=/dev/zero of="$1/direct" bs=4096 count=1 oflag=direct status=none &&
		rm "$1/direct"
} 2>/dev/null

for place in "${places[@]}"; do
	for marker in "$place"/stele-ceph.*/.stele-ceph; do
		[ -O "$marker" ] || continue
		read -r owner born <"$marker" || continue
		[ "$born" = "$(since "$owner")" ] || "$here/down.sh" "${marker%/*}"
	done
done
for place in "${places[@]}"; do
	[ ${#place} -le 60 ] || continue
	roomy "$place" || continue
	dir=$(mktemp -d "$place/stele-ceph.XXXXXX") || continue
	direct "$dir" && echo "$dir" && exit 0
	rm -rf "$dir"
done
echo "place.sh: no place with $need bytes: ${places[*]}" >&2
exit 1
