#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# text.t - licence lines, unfinished business, and paths of one machine
. "${0%/*}/../tap.sh"

requires git ls-files --error-unmatch Makefile

tree() {
	git ls-files ':!tests/fuzz/corpus' ':!tests/fixture/from' "$@"
}

# What may carry a comment names its licence in line 1, a script behind its #!.
unlicensed() {
	local file
	tree ':!LICENSE' ':!*.md' ':!*.patch' ':!share/completion/_stele' \
		':!packaging/debian/copyright' | while read -r file; do
		head -n 2 "$file" | grep -v '^#!' | head -n 1 | grep -qE \
			'^(/\*|#|\.\\") SPDX-License-Identifier: Apache-2\.0( \*/)?$' ||
			echo "$file"
	done
}

# A comment of three lines or more heads each C file, below the licence.
headless() {
	local file
	tree '*.[ch]' | while read -r file; do
		sed -n 2p "$file" | grep -qE '^/\*\*?$' &&
			sed -n 3p "$file" | grep -qF " * ${file##*/} - " ||
			echo "$file"
	done
}

search() { # PATTERN
	tree -z ':!LICENSE' | xargs -0 grep -nIP "$1"
}

is "" "$(unlicensed)" "each file names its licence first"
is "" "$(headless)" "each C file says first what it is"
# The patterns are spelled so that they do not find themselves.
is "" "$(search '\b(TO[D]O|FIX[M]E|XX[X]|HAC[K]:)\b')" "nothing is left to do"
is "" "$(search '(?<![\w./$}])/(wor[k]|home/[a-z]|roo[t]/)')" \
	"no path of one machine"
is "" "$(tree '*.t' '*.sh' .ci/run | grep -v '^tests/tap.sh$' |
	while read -r file; do [ -x "$file" ] || echo "$file"; done)" \
	"scripts are executable"

done_testing
