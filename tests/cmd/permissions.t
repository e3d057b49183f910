#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# permissions.t - a user with no more than read permission reads a device, as stele(1) says
. "${0%/*}/../tap.sh"

is 1 "$(grep -c '^SUBSYSTEM=="block", .*GROUP="stele", MODE="0640"$' share/udev/60-stele.rules)" \
	"the rule has one line that matches by name"
is 1 "$(grep -c '^#SUBSYSTEM==.*ID_SERIAL.*GROUP="stele", MODE="0640"$' \
	share/udev/60-stele.rules)" "and one to copy, by serial number"
ok "the page names the rule" grep -q 60-stele.rules man/stele.1
# Since udev 254.
if udevadm verify --help >"$tmp/help" 2>&1; then
	ok "udev understands it" udevadm verify --resolve-names=never share/udev/60-stele.rules
fi

requires_root
requires command -v setpriv
mkdir "$tmp/src"
echo one >"$tmp/src/a"
loop_new 16M
chmod 755 "$tmp"
must stele build -q "$tmp/src" "$loop@v1"
must chgrp 64000 "$loop"
must chmod 640 "$loop"
cleanup chmod 660 "$loop"
cleanup chgrp disk "$loop"

user() { # GROUP CMD...
	local group=$1
	shift
	run setpriv --reuid=65534 --regid="$group" --clear-groups \
		env STELE_RUN_DIR="$tmp/own" "$@"
}
mkdir "$tmp/own"
chown 65534 "$tmp/own"
stele=$BUILD/stele

user 65534 "$stele" ls "$loop"
is "1 " "$status $out" "others read nothing"
ok "and are told where to read on" grep -q '^hint: .*PERMISSIONS in stele(1)' <<<"$err"
user 64000 "$stele" cat "$loop" a
is "0 one" "$status $out" "members of the group read a sample" || diag "$err"
user 64000 "$stele" verify "$loop"
is 0 "$status" "and verify the image" || diag "$err"
user 64000 "$stele" map "$loop@v1" photos
is "0 photos" "$status $out" "and map it, in a directory of their own" || diag "$err"
before=$(sha256sum <"$loop")
user 64000 "$stele" append "$tmp/src" "$loop@v2"
is "1 " "$status $out" "but change nothing"
ok "and are told so" grep -q '^hint: run it as a user who may write there' <<<"$err" || diag "$err"
user 64000 "$stele" build --force "$tmp/src" "$loop"
is "1 " "$status $out" "even by force"
is "$before" "$(sha256sum <"$loop")" "not one byte"

done_testing
