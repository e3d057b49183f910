# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034 # what tests read: status, out, err, loop
#
# tap.sh - what shell tests say to prove
#
#	. "${0%/*}/../tap.sh"
#	requires mkfs.ext4 -V
#	run stele info "$tmp/none"
#	is 1 "$status" "info: no such file"
#	ok "info: says why" grep -q "$tmp/none" <<<"$err"
#	done_testing
#
# stdout is TAP and stderr empty: what commands print there goes to a log, whose part since the
# last check is shown, as comments, when a check fails.
#
# The working directory is the top of the tree, $tmp a directory of the test's
# own, the PATH begins with the build. Wanted comes before seen. Without
# done_testing there is no plan, so a test that stops half way is red.
#
# Under STRICT=1 a skip is a failure, unless its reason stands word for word in
# this list, or in STRICT_ALLOW, separated by colons.
tap_strict_allow=${STRICT_ALLOW:-}

set -u
export LC_ALL=C.UTF-8 TZ=UTC
umask 022
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
export BUILD=${BUILD:-$PWD/build}
export PATH=$BUILD:$PATH:/usr/sbin:/sbin

tap_count=0
tap_failed=0
tap_cleanups=()

# ---- words ----

diag() { printf '# %s\n' "${@//$'\n'/$'\n# '}"; }

# The test itself cannot go on. (TAP's "Bail out!" would stop all others.)
bail() {
	printf 'not ok %d - cannot go on: %s\n' $((tap_count + 1)) "$*"
	tap_log_show
	exit 255
}

# A check whose name is mistyped checks nothing. (Bash runs this in a subshell, so that the test
# goes on, and its plan fails.)
command_not_found_handle() {
	printf 'not ok - no such command: %s\n' "$1"
	return 127
}

# must CMD...: a step that the test stands on
must() { "$@" >&2 || bail "$* (status $?)"; }

done_testing() {
	[ "$tap_count" -gt 0 ] || bail "checked nothing"
	printf '1..%d\n' "$tap_count"
	[ "$tap_failed" = 0 ] || diag "$tap_failed of $tap_count failed"
	exit $((tap_failed > 0))
}

# ---- checks ----

# What was printed since the last check, up to some lines.
tap_log_show() {
	[ -s "$tap_log" ] || return 0
	head -c 8000 "$tap_log" | tail -n 40 | cat -v | sed 's/^/# | /'
	: >"$tap_log"
}

tap_result() { # STATUS DESCRIPTION
	tap_count=$((tap_count + 1))
	if [ "$1" = 0 ]; then
		printf 'ok %d - %s\n' "$tap_count" "$2"
		: >"$tap_log"
		return 0
	fi
	tap_failed=$((tap_failed + 1))
	printf 'not ok %d - %s\n' "$tap_count" "$2"
	tap_log_show
	return 1
}

# ok DESCRIPTION CMD...: CMD succeeds; what it prints goes to the log
ok() {
	local description=$1
	shift
	"$@" >&2
	tap_result $? "$description"
}

# not CMD...: for ok; a crash is no "not"
not() {
	"$@"
	local result=$?
	[ $result -gt 0 ] && [ $result -lt 126 ]
}

# is WANTED SEEN DESCRIPTION
is() {
	if [ "$1" = "$2" ]; then
		tap_result 0 "$3"
	else
		tap_result 1 "$3"
		diag "wanted: '$1'" "  seen: '$2'"
		return 1
	fi
}

# run CMD...: sets status, out, err; the bytes are in $tmp/.out and $tmp/.err
run() {
	"$@" >"$tmp/.out" 2>"$tmp/.err"
	status=$?
	{
		out=$(<"$tmp/.out")
		err=$(<"$tmp/.err")
	} 2>/dev/null # bash's word on NUL bytes
}

# soon CMD...: whether it works by and by. For what a mount keeps: another test's mount namespace
# may have a copy of the mount for as long as that lasts.
soon() {
	local i
	for ((i = 0; i < 300; i++)); do
		"$@" && return
		sleep .1
	done
	return 1
}

# ---- skips ----

tap_strict() { # REASON: whether it may not be one
	case ${STRICT:-0} in 0 | '') return 1 ;; esac
	[[ :$tap_strict_allow: != *":$1:"* ]]
}

skip_all() {
	if tap_strict "$*"; then
		printf '1..1\nnot ok 1 - STRICT forbids to skip: %s\n' "$*"
		exit 1
	fi
	printf '1..0 # SKIP %s\n' "$*"
	exit 0
}

# skip_block COUNT REASON: stands for that many checks
skip_block() {
	local i
	for ((i = 0; i < $1; i++)); do
		if tap_strict "$2"; then
			tap_result 1 "STRICT forbids to skip: $2"
		else
			tap_result 0 "# SKIP $2"
		fi
	done
}

# requires CMD...: skips the whole test unless CMD works
requires() { "$@" >/dev/null 2>&1 || skip_all "needs '$*'"; }
requires_root() { [ "$(id -u)" = 0 ] || skip_all "needs root"; }

# CI's checkout may belong to somebody else.
git() { command git -c 'safe.directory=*' "$@"; }

# ---- what the test leaves behind ----

# cleanup CMD...: runs however the test ends, last first
cleanup() { tap_cleanups+=("$(printf '%q ' "$@")"); }

tap_exit() {
	local result=$? i
	trap '' INT TERM HUP
	for ((i = ${#tap_cleanups[@]} - 1; i >= 0; i--)); do
		eval "${tap_cleanups[i]}" >&2
	done
	[ $result = 0 ] || tap_log_show
	rm -f "$tap_log"
	exit $result
}
trap tap_exit EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

mkdir -p "${TMPDIR:=$BUILD/tmp}"
tmp=$(mktemp -d "$TMPDIR/$(basename "$0" .t).XXXXXX") || exit 1
cleanup rm -rf "$tmp"
tap_log=$tmp.log # not in $tmp, which may be a source
exec 2>>"$tap_log"

# apart COMMAND...: in a mount namespace of its own, without what other tests have mounted: to them
# it would stay in use.
apart() {
	# shellcheck disable=SC2016 # of that shell
	unshare -m bash -c 'mapfile -t mounts </proc/self/mounts
		for mount in "${mounts[@]}"; do
			read -r _ point _ <<<"$mount"
			printf -v point %b "$point"
			[[ $point != "$1"/* || $point = "$2"/* ]] || umount -l "$point"
		done
		exec "${@:3}"' apart "$TMPDIR" "$tmp" "$@"
}
export STELE_RUN_DIR=$tmp/run # never the machine's own

# loop_drop LOOP: detach it if it is over a file of this test. One that was detached before may
# be over another one's by now.
loop_drop() {
	case $(losetup -nO BACK-FILE "$1") in
	"$tmp"/* | /dev/loop*) losetup -d "$1" ;;
	esac
}

# loop_new SIZE [SECTOR_SIZE]: sets loop (its node) and loop_file
loop_new() {
	requires_root
	loop_file=$(mktemp "$tmp/loop.XXXXXX") || bail "mktemp"
	must truncate -s "$1" "$loop_file"
	loop=$(losetup --direct-io=on -b "${2:-512}" -f --show "$loop_file") ||
		skip_all "needs a loop device"
	cleanup loop_drop "$loop"
	# A node stays read-only when its file is detached.
	must blockdev --setrw "$loop"
}
