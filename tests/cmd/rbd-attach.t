#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# rbd-attach.t - what `stele map --via` has rbd(8) do, and what it says when that fails
#
# An `rbd` in front in PATH records how it was called, and fails as told. Attaching for
# good is tests/vm/krbd.t.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires_ceph
[ ! -d /sys/bus/rbd ] || skip_all "this machine has krbd"

tree_photos "$tmp/src"
rbd_name
target=${rbd/\?/@v1?}
must stele build -q --size=64M "$tmp/src" "$target"

mkdir "$tmp/bin"
cat >"$tmp/bin/rbd" <<-'END'
	#!/bin/bash
	printf '%s\n' "$*" >>"$tmp/calls"
	printf '%s\n' "$words" >&2
	exit "$code"
END
chmod +x "$tmp/bin/rbd"
export tmp words='' code=0

# attach WORDS STATUS MAP-ARGUMENTS...: with an rbd that says and exits so
attach() {
	words=$1 code=$2
	shift 2
	: >"$tmp/calls"
	PATH=$tmp/bin:$PATH run stele map "$@"
}

noudev=
[ -e /run/udev/control ] || noudev=noudev
options=${noudev:+" --options=$noudev"}
v2=" --options=${noudev:+noudev,}ms_mode=prefer-crc"
map="device map --read-only --conf=$ceph_conf --pool=rbd --image=${rbd_image#*/} --snap=v1"

attach "rbd: sysfs write failed" 2 --via=krbd "$target" photos
is "1 " "$status $out" "--via=krbd: fails where rbd does"
is "$map$options" "$(<"$tmp/calls")" "who and what, in rbd's own options"
ok "what a kernel without krbd needs" grep -q \
	"cannot attach 'rbd:.*@v1' through krbd:.*modprobe rbd" <<<"$err" || diag "$err"
is 1 "$(wc -l <<<"$err")" "in one line"

attach "rbd: failed to get mon address (possible ms_mode mismatch)" 22 --via=krbd "$target" photos
is "$map$options
$map$v2" "$(<"$tmp/calls")" "monitors of messenger v2: asked for"

attach "" 0 --via=krbd "$target" photos
is "1 " "$status $out" "rbd succeeds, and there is no device: fails"
ok "which is said" grep -q "through krbd" <<<"$err" || diag "$err"

attach "rbd: no" 1 "$target&user=reader" photos
ok "another user" grep -qw -- "--id=reader" "$tmp/calls"

attach "rbd: no" 1 "$target" photos
is "0 photos" "$status $out" "--via=auto: librbd, where that fails"
ok "and a warning" grep -q "through krbd" <<<"$err" || diag "$err"
is librbd "$(stele maps --json | sed -n 's/.*"via": *"\([a-z]*\)".*/\1/p')" "as maps says"
must stele unmap photos
attach "" 0 --via=librbd "$target" photos
is "0 " "$status $(<"$tmp/calls")" "--via=librbd: nothing is attached"
must stele unmap photos

# Only what is in this directory can be found.
ln -s "$(command -v stele)" "$tmp/bin/stele"
rm "$tmp/bin/rbd"
PATH=$tmp/bin run stele map --via=krbd "$target" photos
is "1 " "$status $out" "no rbd: fails"
ok "no rbd: says what is missing" grep -q "'rbd' is not installed.*ceph-common" <<<"$err" ||
	diag "$err"
is "" "$(ls -A "$STELE_RUN_DIR")" "failures publish nothing"

done_testing
