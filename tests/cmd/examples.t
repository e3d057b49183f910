#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# examples.t - every example of the man pages works
#
# In literal blocks of EXAMPLES, a line with "$ " runs as anybody, one with
# "# " as root. Each page gets a directory with a tree, photos, and unless it
# builds that itself an image of it, photos.stele@v1; its device is a loop one, with
# the same image unless the page writes there, and its /mnt a directory.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version

# The commands of a page, each behind its mark, on one line.
examples() {
	sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/{
		/^\.Bd -literal/,/^\.Ed/{
			s/\\e/\\/g
			:more
			/^[$#] .*\\$/{N;s/\\\n *//;b more}
			/^[$#] .*|$/{N;s/\n */ /;b more}
			/^[$#] /{s/\\(dq/"/g;p}
		}
	}' "$1"
}

# What a page calls rbd:POOL/photos is an image of the test's own.
rbd_of() { sed -E "s#rbd:[a-z]+/photos(@[a-z0-9.]+)?#${rbd%%\?*}\1?${rbd#*\?}#g" <<<"$1"; }

# photos.stele, to which two writers have published at once: in slot and mirror
forked() {
	local at
	mkdir one two
	head -c 500000 /dev/urandom >one/1
	head -c 5000 /dev/urandom >two/2
	cp photos.stele first
	must stele append -q --label-from=none one first@v2a
	must stele append -q --label-from=none two photos.stele@v2b
	truncate -s "$(stat -c %s first)" photos.stele
	for at in $((0x100000)) "$(od -An -t u8 -j $((0x1000 + 0xa0)) -N 8 first)"; do
		dd if=first of=photos.stele bs=4096 skip=$((at / 4096)) seek=$((at / 4096)) \
			count=1 conv=notrunc status=none || bail "dd"
	done
}

# damaged: photos.stele, whose newest catalog is, and its mirror
damaged() {
	local at
	must stele build -q -f photos photos.stele@v1
	must stele append -q --always photos photos.stele@v2
	for at in $((0x10a0)) $((0x10d0)); do
		printf damage | dd of=photos.stele bs=1 conv=notrunc status=none \
			seek=$(($(od -An -t u8 -j "$at" -N 8 photos.stele) + 200)) || bail "dd"
	done
}

# train-000.tar to train-003.tar
shards() {
	local i
	for i in 000 001 002 003; do
		mkdir $i
		head -c 5000 /dev/urandom >$i/$i.jpg
		echo 3 >$i/$i.cls
		tar -C $i -cf train-$i.tar $i.jpg $i.cls
	done
}

has_ceph
tree_photos "$tmp/photos"
top=$PWD
for page in man/stele.1 man/stele-*.1; do
	name=$(basename "$page" .1)
	mkdir -p "$tmp/$name/home" "$tmp/$name/mnt"
	cp -R "$tmp/photos" "$tmp/$name/"
	export HOME=$tmp/$name/home STELE_RUN_DIR=$tmp/$name/run
	cd "$tmp/$name" || bail "no directory"
	examples "$top/$page" >lines
	grep -qE '^\$ stele build .* photos\.stele' lines ||
		must stele build -q photos photos.stele@v1
	states=(forked damaged) # of an image that is repaired, in turn
	[ "$name" != stele-build ] || shards
	loop=/dev/null
	if grep -q /dev/nvme1n1 lines && [ "$(id -u)" = 0 ]; then
		loop_new 64M
		grep -qE 'stele (build|copy) .*/dev/nvme1n1' lines ||
			must stele build -q photos "$loop@v1"
	fi
	rbd=
	if grep -q rbd: lines && [ -n "$ceph_conf" ]; then
		rbd_name
		grep -q 'stele [bc].* rbd:' lines ||
			must stele copy -q photos.stele@v1 "$rbd"
	fi
	[ "$name" != stele-umount ] || must stele mount photos.stele@v1 mnt
	ok "$name has examples" test -s lines
	while IFS= read -r line <&3; do
		if [ "${line:0:1}" = '#' ] && [ "$(id -u)" != 0 ]; then
			skip_block 1 "needs root"
			continue
		fi
		if [[ $line == *rbd:* ]] && [ -z "$rbd" ]; then
			skip_block 1 "needs Ceph"
			continue
		fi
		wanted=0
		if [[ $line == "$ stele repair -n "* ]]; then
			wanted=1 # a branch has to be chosen
			"${states[0]}"
			states=("${states[@]:1}")
		fi
		command=$(rbd_of "${line#??}")
		command=${command//\/mnt/$tmp/$name/mnt}
		eval "${command//\/dev\/nvme1n1/$loop}" >"$tmp/.out" 2>"$tmp/.err" 3<&-
		is $wanted $? "$name: $line" || diag "$(<"$tmp/.out")" "$(<"$tmp/.err")"
	done 3<lines
	cd "$top" || bail "no way back"
	while read -r at; do
		umount "$at"
	done < <(awk -v below="$tmp/$name/" 'index($5, below) == 1 { print $5 }' \
		/proc/self/mountinfo)
	unset STELE_RUN_DIR
done

done_testing
