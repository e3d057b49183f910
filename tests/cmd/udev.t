#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# udev.t - links by UUID and label, from what info --export prints
. "${0%/*}/../tap.sh"

rules=$(sed "s,@BINDIR@,$BUILD," share/udev/60-stele.rules)
cd "$tmp" || bail "cd"
mkdir src
echo a >src/a
must stele build -q --label='cats & dogs' src image
uuid=$(stele info --json image | jq -r .image.uuid)

run stele info --export image
is "0 ID_STELE_VERSION=1
ID_STELE_UUID=$uuid
ID_STELE_LABEL_ENC=cats\\x20\\x26\\x20dogs" "$status $out" "properties"
run stele info --export src/a
is "1 " "$status $out" "none of what is no image"
run stele info --export --json image
is 2 "$status" "--json is something else"
# udevadm would leave links in /dev: it gets one of its own.
links() {
	# shellcheck disable=SC2016 # of that shell
	RULES=$rules apart sh -c 'mount -t tmpfs none /mnt && cp -a /dev/null "$1" /mnt/ &&
		mount -t tmpfs none /run && mkdir -p /run/udev/rules.d &&
		echo "$RULES" >/run/udev/rules.d/60-stele.rules &&
		mount --move /mnt /dev &&
		udevadm test --action=add "/sys/block/${1#/dev/}"' sh "$1" 2>&1 |
		sed -n "s/.*60-stele.rules.*LINK '\(.*\)'/\1/p" | xargs -d '\n' echo
}
if [ "$(id -u)" = 0 ]; then
	loop_new 16M
	must stele build -q --label=pets src "$loop"
	is "disk/by-uuid/$(stele info --json "$loop" | jq -r .image.uuid) disk/by-label/pets" \
		"$(links "$loop")" "links"
else
	skip_block 1 "needs root"
fi

done_testing
