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

# Structs without a size of their own, which never change: bytes, and where members begin.
frozen='stele_cursor_entry 48: key 0 key_size 8 id 16 size 24 reserved 32
stele_depth_round 64: time_ns 0 window 8 bytes_per_second 16 reads_per_second 24 slowdown
32 phase 40 starved 44 reserved 48
stele_destination 32: id 0 tag 8 memory 16 memory_size 24
stele_directory_entry 56: name 0 name_size 8 id 16 size 24 is_directory 32 reserved 36
stele_key_ref 16: data 0 size 8
stele_loader_source 64: ds 0 ids 8 id_count 16 first 24 count 32 weight 40 reserved 48
stele_query_value 40: type 0 reserved 4 i64 8 f64 16 data 24 size 32
stele_sample 96: id 0 tag 8 status 16 key_size 20 data 24 size 32 key 40 tail 48 ds 56
buffer 64 reader 72 serial 80 reserved 88
stele_tune_point 64: size 0 depth 4 reads_per_second 8 bytes_per_second 16 p50_ns 24
p99_ns 32 noisy 40 reserved 48
stele_txn_value 32: data 0 size 8 i64 16 f64 24
stele_value 8: size 0 i64 0 f64 0'
# The same of the header, as the compiler lays them out.
layout() {
	{
		printf '%s\n' '#include <stdio.h>' '#include "stele.h"' 'int main(void) {'
		cat lib/stele*.h | perl -0777 -ne '
			s,/\*.*?\*/,,gs;
			while (/^((?:struct|union) (stele_\w+)) \{\n(.*?)^\};/gms) {
				my ($type, $name, $body) = ($1, $2, $3);
				next if $body =~ /^\s*size_t size;/;
				print "printf(\"$name %zu:\", sizeof($type));\n";
				$body =~ s/\[.*?\]//g;
				print "printf(\" $1 %zu\", offsetof($type, $1));\n"
					while $body =~ /(\w+)\s*[,;]/g;
				print "puts(\"\");\n";
			}'
		echo 'return 0; }'
	} | ${CC:-cc} -x c -Ilib -o "$tmp/layout" - &&
		"$tmp/layout" | sort | fold -sw 90 | sed 's/ $//'
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
[ "$(getconf LONG_BIT)" != 64 ] ||
	is "$frozen" "$(layout)" "frozen structs are as they were"

done_testing
