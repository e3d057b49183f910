#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# environment.t - variables that make no sense are wrong usage, and said to be variables
. "${0%/*}/../tap.sh"

image=$tmp/image
mkdir "$tmp/src"
echo needle >"$tmp/src/key"
must stele build -q "$tmp/src" "$image"
echo >"$tmp/file"

# wants NAME VALUE WANTED: status 2 of a command, and its message
wants() {
	run env "$1=$2" stele cat "$image" key
	is "2 " "$status $out" "$1=$2: wrong usage"
	is "stele: invalid value '$2' for \$$1: must be $3" "$(head -n 1 <<<"$err")" \
		"$1=$2: says what it takes"
	ok "$1=$2: points to help" grep -qe '--help' <<<"$err"
	run env "$1=$2" stele cat --help
	is 0 "$status" "$1=$2: which there is all the same"
}

backends='uring, threads, iopoll, hybrid, sqpoll or passthrough'
wants STELE_BACKEND nonsense "$backends"
wants STELE_BACKEND Uring "$backends"
for value in abc 0 86401 -1 1.5; do
	wants STELE_TIMEOUT "$value" '1 to 86400'
done
for value in now -5 1e9 ' 1'; do
	wants SOURCE_DATE_EPOCH "$value" '0 to 253402300799'
done
wants STELE_RUN_DIR "$tmp/file" 'a directory'
wants STELE_RUN_DIR "$tmp/file/below" 'a directory'
run env "STELE_RUN_DIR=$tmp/none" stele cat "$image" key
is "0 needle" "$status $out" "STELE_RUN_DIR: what is not there may come"
for name in STELE_BACKEND STELE_TIMEOUT SOURCE_DATE_EPOCH STELE_RUN_DIR; do
	run env "$name=" stele cat "$image" key
	is "0 needle" "$status $out" "$name: empty is as good as none" || diag "$err"
done
STELE_BACKEND=threads run stele cat "$image" key
is "0 needle" "$status $out" "a backend by the environment"
must mkdir "$tmp/source"
must touch "$tmp/source/file"
for words in "append $tmp/source $image@v2" "build $tmp/source $tmp/new"; do
	# shellcheck disable=SC2086 # words
	STELE_BACKEND=hybrid run stele $words
	is "1 1" "$status $(wc -l <<<"$err")" \
		"${words%% *}: one line on a backend that only reads" || diag "$err"
	ok "${words%% *}: which says so" grep -q "it only reads, and this is opened to" <<<"$err"
done
ok "and nothing is left" test ! -e "$tmp/new"

done_testing
