#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rbd-library.t - librbd is loaded by the first target of RBD, and only by it
#
# Libraries that stand in for the real one: one that is none, one that lacks functions.
. "${0%/*}/../tap.sh"

name=librbd.so.1
target=rbd:pool/image
mkdir "$tmp/none" "$tmp/old" "$tmp/src"
: >"$tmp/none/$name"
echo 'int rbd_open(void) { return -1; }' |
	"${CC:-cc}" -x c - -shared -fPIC -o "$tmp/old/$name" ||
	bail "cannot build a library"

run stele info "$target"
[[ $err != *"built without librbd"* ]] || skip_all "built without librbd"

run env LD_LIBRARY_PATH="$tmp/none" stele info "$target"
is 1 "$status" "no library"
ok "is said" grep -qE "^stele: cannot load .*$name: " <<<"$err" || diag "$err"
run env LD_LIBRARY_PATH="$tmp/old" stele info "$target"
is 1 "$status" "a library that lacks functions"
ok "is said, and which" grep -qE "^stele: cannot load .*$name: .*(rbd|rados)_" \
	<<<"$err" || diag "$err"

echo sample >"$tmp/src/a"
must stele build -q "$tmp/src" "$tmp/image.stele"
run env LD_LIBRARY_PATH="$tmp/none" stele cat "$tmp/image.stele" a
is "0 sample" "$status $out" "a file is read without it" || diag "$err"
run env LD_DEBUG=libs LD_DEBUG_OUTPUT="$tmp/debug" stele cat "$tmp/image.stele" a
is 0 "$status" "and again"
ok "and nobody looks for it" not grep -qE 'lib(rbd|rados)' "$tmp"/debug.*

done_testing
