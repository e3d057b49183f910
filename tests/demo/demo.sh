#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# demo.sh - Stele on a real directory, and beside the filesystem
#
#	make demo [DEMO_SRC=DIR]
#
# Builds an image of DEMO_SRC, maps its snapshot, compares every sample with
# its file, and times one thread that reads all samples in random order: from
# the image, then from the filesystem. As root the image lies on a loop device
# and caches are dropped before each pass. Nothing is left behind.
set -euo pipefail
export LC_ALL=C.UTF-8

: "${BUILD:?}"
stele=$BUILD/stele
aid=$BUILD/tests/demo/demo
size_max=$((1 << 30)) # of the default source, bytes
root=$([ "$(id -u)" = 0 ] && echo 1 || echo '')

say() { printf '%s\n' "$*"; }
die() {
	say "demo: $*" >&2
	exit 1
}

# ---- what is left behind: nothing ----

dir=$(mktemp -d "${TMPDIR:-/var/tmp}/stele-demo.XXXXXX")
loop=
cleanup() {
	trap - EXIT
	"$stele" unmap demo 2>/dev/null || :
	[ -z "$loop" ] || losetup -d "$loop" || :
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
export STELE_RUN_DIR=$dir/run

# ---- what to show it on ----

# The largest tree of /usr/share that is no more than size_max.
default_source() {
	{ du -b --max-depth=1 /usr/share 2>/dev/null || :; } |
		awk -v max="$size_max" -F '\t' \
			'$1 <= max && $1 > best { best = $1; dir = $2 } END { print dir }'
}

# number NAME: of the layout
number() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" "$dir/plan"; }

source=${DEMO_SRC:-$(default_source)}
[ -d "$source" ] || die "'$source' is not a directory"
source=$(cd "$source" && pwd)
options=(--on-error=skip --label=demo)
"$stele" build --dry-run --json "${options[@]}" "$source" >"$dir/plan"
[ "$(number samples)" -gt 0 ] || die "no files below '$source'"
# The slack is what a device holds more than a whole number of MiB.
size=$((($(number image_end) / 1048576 + 1) * 1048576))
free=$(df --output=avail -B1 "$dir" | tail -n 1)
[ "$free" -gt "$size" ] ||
	die "$size bytes are needed in '${dir%/*}' and $free are free: set TMPDIR"

target=$dir/demo.stele
if [ "$root" ]; then
	truncate -s "$size" "$dir/disk"
	loop=$(losetup --direct-io=on -f --show "$dir/disk" 2>/dev/null) ||
		loop=$(losetup -f --show "$dir/disk" 2>/dev/null) || loop=
	target=${loop:-$target}
fi

# ---- build, map, compare ----

say "Stele: '$source' onto '$target'"
"$stele" build --json "${options[@]}" "$source" "$target@v1" >"$dir/built"
"$stele" map "$target@v1" demo >/dev/null
"$aid" compare demo "$source" >"$dir/compared"

# ---- read ----

cold=
drop_caches() {
	[ "$root" ] || return 0
	sync
	if echo 3 2>/dev/null >/proc/sys/vm/drop_caches; then cold=1; fi
}
drop_caches
"$aid" stele demo >"$dir/stele"
drop_caches
"$aid" files demo "$source" >"$dir/files"

# ---- show ----

cp "$dir/built" "$dir/plan"
build_seconds=$(sed -n 's/.*"total_seconds":\([0-9.e+-]*\).*/\1/p' "$dir/built")
awk -v runs="$(number runs)" -v table="$(number table_size)" \
	-v slots="$(number slots_size)" -v padding="$(number padding_size)" \
	-v granule="$(number granule)" -v seconds="$build_seconds" \
	-v cold="$cold" '
	function count(n, text, out) {
		text = sprintf("%d", n)
		while (length(text) > 3) {
			out = "," substr(text, length(text) - 2) out
			text = substr(text, 1, length(text) - 3)
		}
		return text out
	}
	function rate(name, n, bytes, s, reads) {
		printf "  %-20s %12s %12.1f %14s\n", name, count(n / s), \
			bytes / s / 1e6, reads ? sprintf("%.3f", reads / n) : "-"
	}
	{ n[NR] = $1; bytes[NR] = $2; s[NR] = $3 > 0 ? $3 : 1e-6; reads[NR] = $4 }
	END {
		printf "\n  %-20s %12s  each one compared with its file\n", \
			"samples", count(n[1])
		printf "  %-20s %12.1f  MB\n", "bytes", bytes[1] / 1e6
		printf "  %-20s %12s  an index of %.1f KB, granule %d\n", "runs", \
			count(runs), table / 1e3, granule
		printf "  %-20s %12.2f  %% of the slots\n", "padding", \
			slots ? 100 * padding / slots : 0
		printf "  %-20s %12.1f  MB/s, in %.1f s\n\n", "build", \
			bytes[1] / seconds / 1e6, seconds
		printf "  %-20s %12s %12s %14s\n", "one thread, random", \
			"samples/s", "MB/s", "reads/sample"
		rate("stele", n[2], bytes[2], s[2], reads[2])
		rate("filesystem", n[3], bytes[3], s[3])
		printf "  %-20s %11.1fx\n\n", "ratio", s[3] / s[2]
		if (cold)
			print "  Caches were dropped before each pass."
		else
			print "  The filesystem may have read from its cache, Stele" \
				" never does: root can drop it."
	}' "$dir/compared" "$dir/stele" "$dir/files"
