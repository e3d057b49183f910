#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# symbols.t - what objects define and refer to (HACKING.md, "Layers")
#
# Includes can be got round by a declaration; the linker's view cannot.
. "${0%/*}/../tap.sh"

requires git ls-files --error-unmatch Makefile

# Whatever the compiler brings: stack protector, sanitizers, fortified strings, and
# division of 128 bits.
runtime='_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|__u?(div|mod|divmod)ti[34]'
runtime+='|__(asan|ubsan|tsan|gcov|sanitizer)_.*'
plain='(__)?(mem|str)[a-z]+(_chk)?'

mapfile -t objects < <(git ls-files 'format/*.c' 'lib/*.c' |
	sed "s|^\(.*\)\.c$|$BUILD/\1.o|")
mapfile -t commands < <(git ls-files 'cmd/*.c' |
	sed "s|^\(.*\)\.c$|$BUILD/\1.o|")
requires test -e "$BUILD/libstele.a"

# "FILE SYMBOL" for each, FILE as in the tree and without a suffix.
nm_pairs() {
	nm -A "$@" | sed "s|^$BUILD/||; s|\.o:.* | |"
}
nm_pairs -g --defined-only "${objects[@]}" >"$tmp/defined"
nm_pairs -u "${objects[@]}" >"$tmp/wanted"
: >"$tmp/wanted.cmd"
[ "${#commands[@]}" = 0 ] || nm_pairs -u "${commands[@]}" >"$tmp/wanted.cmd"

# wanting PATTERN PLACE...: who refers to such a symbol, but files below PLACE
wanting() {
	local pattern=$1
	shift
	grep -E " ($pattern)\$" "$tmp/wanted" |
		grep -vE "^($(IFS='|' && echo "${*:-none}"))"
}

# References that point up, by the ranks of layers.t.
upward() {
	perl -e '
		my ($rank, %rank, %home) = (0);
		$rank{$_} = $rank++ for split " ", shift;
		my ($defined, $wanted) = @ARGV;
		sub rank {
			my ($folder) = $_[0] =~ m,^(.*)/,;
			while (defined $folder && !exists $rank{$folder}) {
				($folder) = $folder =~ m,^(.*)/,;
			}
			defined $folder ? $rank{$folder} : die "$_[0]: no rank\n"
		}
		open my $in, "<", $defined or die;
		while (<$in>) { my ($f, $s) = split; $home{$s} = $f }
		open $in, "<", $wanted or die;
		while (<$in>) {
			my ($f, $s) = split;
			my $to = $home{$s} // next;
			print "$f $s ($to)\n" if rank($to) > rank($f);
		}' "$(sed -n "/^ranks='/,/'$/{s/ranks=//;s/'//g;p}" \
		tests/tree/layers.t)" "$tmp/defined" "$tmp/wanted"
}

ok "there are objects" test -s "$tmp/defined"
is "" "$(grep -v ' stele_' "$tmp/defined")" "every global symbol is stele_*"
is "" "$(upward)" "references point down"

own=$(sed -n 's/^format\/.* //p' "$tmp/defined" | paste -sd '|')
is "" "$(grep '^format/' "$tmp/wanted" |
	grep -vE " ($plain|$runtime|crc32_iscsi|__cpu_model|${own:-none})\$")" \
	"format refers to mem*, str*, itself, CRC32C and the kind of processor"

is "" "$(wanting '(io_uring|__io_uring|blkid)_.*' lib/device/)" \
	"only lib/device calls liburing and blkid"
is "" "$(wanting '(rbd|rados)_.*')" "librbd and librados are loaded, never linked"
is "" "$(wanting 'sqlite3_.*')" "nor is SQLite linked"
is "" "$(wanting '(EVP|SHA|RAND|HMAC|OPENSSL|ERR|CRYPTO)[0-9]*_.*' \
	lib/image/digest)" "only digests call libcrypto"
is "" "$(wanting 'crc[0-9]+_.*' format/)" "only format calls isa-l"
is "" "$(wanting 'json[_a-z]*_.*')" "nothing in lib calls jansson"
is "" "$(wanting 'p(read|write)v?2?(64)?|p(read|write)v(64)?2?' \
	lib/device/ lib/source/)" \
	"only the seam and sources read and write at offsets"
# (base has temporary files; node its own below /run and /var.)
is "" "$(wanting '(__)?open(at)?(64)?(_2)?|creat(64)?|rename(at)?2?' \
	lib/base/ lib/device/ lib/node/ lib/source/)" \
	"targets are opened and renamed by the seam"
is "" "$(wanting 'ioctl|flock|fallocate(64)?|ftruncate(64)?' lib/device/)" \
	"and locked, allocated, and asked what they are"

prints='(__)?v?[fd]?printf(_chk)?|f?puts|f?putc|putchar|perror|psignal'
prints="$prints|v?(err|warn)x?|v?syslog|std(out|err)"
exits='_?exit|_Exit|quick_exit|abort|raise'
is "" "$(wanting "$prints")" "lib does not print"
# (client.c does within exit(), where librados would crash.)
is "" "$(wanting "$exits" lib/device/rbd/client)" "lib does not exit"

public=$(sed -n 's/^\t\(stele_[a-z0-9_]*\);$/\1/p' lib/libstele.map |
	paste -sd '|')
is "" "$(comm -12 <(sed 's/.* //' "$tmp/wanted.cmd" | sort -u) \
	<(sed 's/.* //' "$tmp/defined" | sort -u) | grep -vxE "$public")" \
	"cmd calls what libstele.map exports"
is "" "$(grep -E ' (io_uring|blkid|EVP|crc[0-9]+)_' "$tmp/wanted.cmd" |
	grep -vE '^cmd/from/(tfrecord crc32_iscsi|(ffrecord|zip_end) crc32_gzip_refl)$')" \
	"cmd calls none of the libraries below lib, but for the checksums of a source"

done_testing
