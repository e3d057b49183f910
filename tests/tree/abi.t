#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# abi.t - header, version script and shared library name the same functions
. "${0%/*}/../tap.sh"

requires git ls-files --error-unmatch Makefile

so=$BUILD/libstele.so.0
requires test -e "$so"

declared() {
	echo '#include "stele.h"' | ${CC:-cc} -E -P -Ilib - |
		tr '\n' ' ' | grep -oE 'visibility\("default"\)[^;]*;' |
		grep -oE '\<stele_[a-z0-9_]+ *\(' | tr -d ' (' | sort
}
# Every function of the header, marked or not.
functions() {
	echo '#include "stele.h"' | ${CC:-cc} -E -P -Ilib - | tr '\n' ' ' |
		grep -oE '\<stele_[a-z0-9_]+ *\(' | tr -d ' (' | sort
}

declared=$(declared)
mapped=$(sed -n 's/^\t\(stele_[a-z0-9_]*\);$/\1/p' lib/libstele.map | sort)
exported=$(nm -D --defined-only "$so" | sed -n 's/.* T \([^@]*\).*/\1/p' | sort)
others=$(nm -D --defined-only "$so" | grep -v ' T ' | sed 's/.* //' |
	grep -v '^STELE_[0-9.]*$')

differ() { diff <(echo "$1") <(echo "$2"); }

ok "the header declares functions" test -n "$declared"
is "" "$(differ "$declared" "$(functions)")" "each is marked STELE_API"
is "" "$(differ "$declared" "$mapped")" "header = map"
is "" "$(differ "$declared" "$exported")" "header = library"
is "" "$others" "the library exports nothing else"
is "$(basename "$so")" "$(objdump -p "$so" | sed -n 's/ *SONAME *//p')" "soname"
is "" "$(sort lib/libstele.map | uniq -d | grep stele_)" "no name twice"

done_testing
