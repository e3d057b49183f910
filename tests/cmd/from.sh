# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # tmp, status, err: of tap.sh
#
# from.sh - an image that is built of a source, for the tests of formats
#
# Sourced behind tap.sh, instead of targets.sh.

. tests/cmd/targets.sh
requires jq --version

image=$tmp/image.stele

# built [OPTION...] SOURCE...: into $image, anew
built() {
	rm -f "$image"
	run stele build --json "$@" "$image"
}

digest() { stele info --json "$image" | jq -r .snapshot.digest; }

# types: of the fields, as NAME:TYPE and the shape of a tensor
types() {
	stele info --json "$image" | jq -r '[.snapshot.fields[] |
		"\(.name):\(.dtype // .type)\(.shape // "" | tojson | select(. != "\"\"") // "")"] |
		join(" ")'
}

# misused MESSAGE WHAT: an option names what is not there
misused() {
	is "2 stele: $1" "$status $(sed -n 1p <<<"$err")" "$2: wrong usage"
	ok "$2: leaves no image" test ! -e "$image"
}

# wrong PATTERN WHAT: what was built last was refused
wrong() {
	is 1 "$status" "$2: fails"
	ok "$2: says what and where" grep -qE "$1" <<<"$err" || diag "$err"
	ok "$2: leaves no image" test ! -e "$image"
}
