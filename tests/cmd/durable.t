#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# durable.t - what a command says to be done is flushed, whoever wrote it
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires strace -V

mkdir "$tmp/src" "$tmp/dir"
echo hello >"$tmp/src/a"

traced() { # ARGS...
	# Who is traced can't be searched for leaks.
	ASAN_OPTIONS=detect_leaks=0 run strace -f -y -o "$tmp/trace" -e trace=fsync,fdatasync \
		"$BUILD/stele" "$@"
	is 0 "$status" "stele $1 $2" || diag "$err"
}

traced build "$tmp/src" "$tmp/dir/image"
ok "the name of a new file is flushed" grep -q "fsync(.*<$tmp/dir>" "$tmp/trace"
traced copy "$tmp/dir/image" "$tmp/copy"
traced copy "$tmp/dir/image" "$tmp/copy"
ok "a copy that was there already, too" \
	grep -q "fdatasync(.*<$tmp/copy>" "$tmp/trace"
traced resize "$tmp/copy"
ok "a size that it had already, too" \
	grep -q "fdatasync(.*<$tmp/copy>" "$tmp/trace"

done_testing
