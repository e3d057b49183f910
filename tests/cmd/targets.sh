# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # tmp, loop: of tap.sh; count, sum: the tests'
#
# targets.sh - kinds of targets, source trees, failures and signals, for the tests of commands
#
# Sourced behind tap.sh.

. tests/ceph/words.sh

# each_target FUNCTION SIZE: calls FUNCTION TARGET WORDS for a regular file and,
# as root, loop devices of both block sizes, with each backend; and for an RBD
# image that is not there yet.
each_target() {
	local function=$1 size=$2 backend block
	for backend in uring threads; do
		export STELE_BACKEND=$backend
		"$function" "$tmp/$backend.stele" "file, $backend"
		for block in 512 4096; do
			if [ "$(id -u)" = 0 ]; then
				loop_new "$size" "$block"
				"$function" "$loop" "loop of $block, $backend"
			else
				skip_block 1 "needs root"
			fi
		done
	done
	unset STELE_BACKEND
	if has_ceph; then
		rbd_name
		"$function" "$rbd" "rbd"
	else
		skip_block 1 "needs Ceph"
	fi
}

# tree_photos DIR: two levels, two classes, sizes from 0 to 200 KB
tree_photos() {
	local class i
	for class in cats dogs; do
		mkdir -p "$1/train/$class"
		for ((i = 1; i <= 20; i++)); do
			head -c $((i * i * 500)) /dev/urandom >"$1/train/$class/$i.jpg"
		done
	done
	: >"$1/train/cats/empty.jpg"
}

# tree_powers DIR: samples of 1, 2, 4, ... bytes; sets count, and sum of their sizes
tree_powers() {
	local i
	count=18
	sum=$(((1 << count) - 1))
	mkdir "$1"
	for ((i = 0; i < count; i++)); do
		head -c $((1 << i)) /dev/urandom >"$1/$i"
	done
}

# fails STATUS WORDS CMD...: says WORDS, and prints nothing
fails() {
	local wanted=$1 words=$2
	shift 2
	run "$@"
	is "$wanted " "$status $out" "$*: fails"
	ok "$*: says '$words'" grep -qF -- "$words" <<<"$err"
}

# stopped SIGNAL FILE CMD...: sends it when the test's function `reached FILE` says so,
# which CMD writes; sets status. That is 0 where CMD was done before the signal came:
# then once more.
stopped() {
	local signal=$1 file=$2 pid try
	shift 2
	for ((try = 0; try < 20; try++)); do
		rm -rf "$file"
		env --default-signal=INT "$@" >/dev/null 2>"$tmp/err" &
		pid=$!
		until reached "$file"; do kill -0 $pid 2>/dev/null || break; done
		kill "-$signal" $pid 2>/dev/null
		wait $pid 2>/dev/null
		status=$?
		[ $status = 0 ] || break
	done
}

# pets_program: $tmp/pets, the example of stele-source(3), with the sanitizers of the library
pets_program() {
	sed -n '/^\.Sh EXAMPLES/,/^\.Ed/{/^\.Bd/,/^\.Ed/p}' man/stele-source.3 |
		sed '/^\./d; s/\\e/\\/g' >"$tmp/pets.c"
	must "${CC:-cc}" -std=gnu11 ${SAN:+"-fsanitize=$SAN"} -Ilib "$tmp/pets.c" \
		-L"$BUILD" -lstele -Wl,-rpath,"$BUILD" -o "$tmp/pets"
}

# sum FILE: of what it holds
sum() { sha256sum <"$1"; }

# field JSON PATH: of an object or of each line of a list
field() { jq -r "$2" <<<"$1"; }
