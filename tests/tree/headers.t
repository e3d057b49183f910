#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# headers.t - each header compiles alone, the public ones in any dialect
. "${0%/*}/../tap.sh"

requires git ls-files --error-unmatch Makefile

cc=${CC:-cc}

# compiles COMPILER FLAG... HEADER: included twice, by its full name
compiles() {
	local header=${*: -1}
	printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
		"${@:1:$#-1}" -Wall -Wextra -Werror -fsyntax-only -
}

for header in $(git ls-files 'format/*.h' 'lib/*.h' 'tests/*.h' ':!tests/fuzz/source.h'); do
	ok "$header" compiles "$cc" -x c -std=gnu11 -D_GNU_SOURCE -I. "$header"
done
read -ra hdf5 <<<"$(pkg-config --cflags hdf5)" # which is in a folder of its own
for header in $(git ls-files 'cmd/*.h' tests/fuzz/source.h); do
	ok "$header" compiles "$cc" -x c -std=gnu11 -D_GNU_SOURCE -Ilib -Icmd -I. "${hdf5[@]}" \
		"$header"
done
for header in lib/stele*.h; do
	header=${header#lib/}
	for std in c99 c11 c17; do
		ok "$header in strict $std" \
			compiles "$cc" -x c -std=$std -pedantic-errors -Ilib "$header"
	done
	for std in c++11 c++20; do
		ok "$header in strict $std" \
			compiles "${CXX:-g++}" -x c++ -std=$std -pedantic-errors -Ilib "$header"
	done
done

# Constants of enum stele_NAME begin with STELE_NAME_, where NAME counts without what kind of
# thing it is.
strays() {
	cat "$@" | tr '\n' ' ' | sed 's,/\*[^*]*\(\*[^/][^*]*\)*\*/,,g' |
		grep -oE '\<enum stele_[a-z0-9_]+ \{[^}]*\}' |
		while read -r _ name rest; do
			prefix=${name%_flags} prefix=${prefix%_kind} prefix=${prefix%_level}
			prefix=${prefix%_phase} prefix=${prefix%_reason}
			grep -oE 'STELE_[A-Z0-9_]+' <<<"$rest" |
				grep -v "^${prefix^^}_" | sed "s/^/$name: /"
		done
}
is "" "$(strays lib/stele*.h)" "constants begin with the name of their enum"

done_testing
