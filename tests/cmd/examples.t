#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# examples.t - every example of the man pages works
#
# In literal blocks of EXAMPLES, a line with "$ " runs as anybody, one with
# "# " as root. Each page gets a directory with a tree, photos, and unless it
# builds that itself an image of it, photos.stele@v1; its device is a loop one.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version

# The commands of a page, each behind its mark.
examples() {
	sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/{
		/^\.Bd -literal/,/^\.Ed/{s/\\e/\\/g;/^[$#] /p}
	}' "$1"
}

tree_photos "$tmp/photos"
top=$PWD
for page in man/stele.1 man/stele-*.1; do
	name=$(basename "$page" .1)
	mkdir -p "$tmp/$name/home"
	cp -R "$tmp/photos" "$tmp/$name/"
	export HOME=$tmp/$name/home STELE_RUN_DIR=$tmp/$name/run
	cd "$tmp/$name" || bail "no directory"
	examples "$top/$page" >lines
	grep -qE '^\$ stele build .* photos\.stele' lines ||
		must stele build -q photos photos.stele@v1
	loop=/dev/null
	if grep -q /dev/nvme1n1 lines && [ "$(id -u)" = 0 ]; then
		loop_new 64M
	fi
	ok "$name has examples" test -s lines
	while IFS= read -r line <&3; do
		if [ "${line:0:1}" = '#' ] && [ "$(id -u)" != 0 ]; then
			skip_block 1 "needs root"
			continue
		fi
		command=${line#??}
		eval "${command//\/dev\/nvme1n1/$loop}" >"$tmp/.out" 2>"$tmp/.err" 3<&-
		is 0 $? "$name: $line" || diag "$(<"$tmp/.out")" "$(<"$tmp/.err")"
	done 3<lines
	cd "$top" || bail "no way back"
	unset STELE_RUN_DIR
done

done_testing
