#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# late.t - a writer stops before any of its operations, and wakes up too late
#
# Meanwhile another one, whom no lock holds off, changes the image. What that one has
# acknowledged stays, whatever the first one then does or undoes: nothing of it is cut off,
# erased, or given back to the filesystem.
. "${0%/*}/../tap.sh"

! ldd "$BUILD/stele" | grep -qE 'lib[at]san' || skip_all "needs the calls of its own"
halt=$tmp/halt.so
"${CC:-cc}" -shared -fPIC -O1 -o "$halt" tests/cmd/halt/halt.c ||
	skip_all "needs a compiler"

cd "$tmp" || bail "cd"
mkdir s a b many
head -c 100000 /dev/urandom >s/s
head -c 50000 /dev/urandom >a/a
head -c 900000 /dev/urandom >b/b
head -c 3000000 /dev/urandom >many/m
echo aaaaaaaa-0000-4000-8000-000000000001 >one
echo bbbbbbbb-0000-4000-8000-000000000002 >two
mkfifo told go
export STELE_BACKEND=threads HALT_FILE=$tmp/image HALT_TOLD=$tmp/told HALT_GO=$tmp/go

must stele build -q s exact
must stele build -q --size=16M s roomy

attach() { :; }
detach() { :; }
sound() { stele verify -q image >/dev/null 2>&1; }

# late WORDS BASE MACHINE FIRST -- SECOND: the first one stops before each operation in turn,
# the second one is on that machine.
late() {
	local words=$1 base=$2 machine=$3 lost='' n stopped second
	local -a first=()
	shift 3
	while [ "$1" != -- ]; do
		first+=("$1")
		shift
	done
	shift
	for ((n = 1; n < 200; n++)); do
		must cp --sparse=always "$base" image
		attach
		(
			HALT_AT=$n HALT_BOOT=one LD_PRELOAD=$halt "${first[@]}" 2>first.err
			echo $? >first.status
			echo ended >told
		) &
		read -r stopped <told
		[ "$stopped" = stopped ] || break
		HALT_BOOT=$machine LD_PRELOAD=$halt "$@" 2>second.err
		second=$?
		echo >go
		read -r stopped <told
		wait
		if [ $second = 0 ]; then
			sound &&
				stele cat image@b b 2>/dev/null | cmp -s - b/b ||
				lost+=" $n"
		elif [ "$(<first.status)" != 0 ] && [ -z "${HALT_FAIL_AT:-}" ]; then
			lost+=" $n:neither"
		fi
		detach
	done
	wait
	detach
	is '' "$lost" "$words: nothing is lost"
	ok "$words: was stopped often" test "$n" -gt 6 || diag "$n"
}

late "build of a larger file" exact two \
	stele build -q --force many image@a -- stele append -q b image@b
late "build in place of a file with holes" roomy two \
	stele build -q --force --size=16M many image@a -- stele append -q b image@b
late "build of a smaller file" roomy two \
	stele build -q --force a image@a -- stele append -q b image@b
late "append" exact two stele append -q a image@a -- stele append -q b image@b
export HALT_FAIL_AT=8
late "append that fails" exact two stele append -q a image@a -- stele append -q b image@b
late "build that fails" roomy two \
	stele build -q --force --size=16M many image@a -- stele append -q b image@b


# Two that build: each on a loop device of its own, or the one sees the other's file.
requires_root
unset HALT_FAIL_AT
ln -s /dev/null one.dev
attach() {
	loop1=$(losetup -f --show image) || bail "losetup"
	loop2=$(losetup -f --show image) || bail "losetup"
	ln -sf "$loop1" one.dev
	ln -sf "$loop2" two.dev
}
detach() { losetup -d "$loop1" "$loop2"; }
sound() { :; } # one of four superblock copies may be a late one
export HALT_FILE=$tmp/one.dev
late "build, and another" roomy two \
	stele build -q --force a one.dev@a -- stele build -q --force b two.dev@b
late "build, and another on this machine" roomy one \
	stele build -q --force a one.dev@a -- stele build -q --force b two.dev@b

done_testing
