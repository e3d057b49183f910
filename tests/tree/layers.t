#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# layers.t - dependencies point down, by include (HACKING.md, "Layers")
. "${0%/*}/../tap.sh"

requires git ls-files --error-unmatch Makefile

# From the bottom up. A file has the rank of the nearest folder that is named here, and
# may include what has no higher one.
ranks='format lib/base lib/device lib/image lib/posix lib/source lib/read lib/node
	lib/read/loader lib/view lib/query lib/txn lib/segment lib/verify lib/ops lib/tune'

# Offences, one a line. Everything in quotes is named from the top of the tree.
upward() {
	perl -e '
		my ($rank, %rank) = (0);
		$rank{$_} = $rank++ for split " ", shift;
		sub rank {
			my ($folder) = $_[0] =~ m,^(.*)/,;
			while (defined $folder && !exists $rank{$folder}) {
				($folder) = $folder =~ m,^(.*)/,;
			}
			defined $folder ? $rank{$folder} : undef
		}
		for my $file (@ARGV) {
			my $from = rank($file);
			open my $in, "<", $file or die "$file: $!";
			while (<$in>) {
				/^\s*#\s*include\s*"([^"]+)"/ or next;
				my ($what, $to) = ($1, rank($1));
				next if $what =~ m,^(lib/)?stele(_[a-z]+)?\.h$, && $file =~ /^lib/;
				print "$file:$.: $what\n" unless
					defined $to && defined $from && $to <= $from;
			}
		}' "$ranks" "$@"
}

# includes PATTERN PLACE...: files that include such a header, other than those
# below PLACE
includes() {
	local pattern=$1
	shift
	git ls-files 'format/*.[ch]' 'lib/*.[ch]' 'cmd/*.[ch]' |
		grep -vE "^($(IFS='|' && echo "$*"))" |
		xargs -r grep -nE "^[[:space:]]*#[[:space:]]*include[[:space:]]*$pattern"
}

mapfile -t files < <(git ls-files 'format/*.[ch]' 'lib/*.[ch]')
is "" "$(upward "${files[@]}")" "format and lib include what lies below"
is "" "$(includes '<(liburing|linux/io_uring|blkid/)' lib/device/)" \
	"only lib/device includes liburing.h and blkid.h"
is "" "$(includes '<(rados|rbd)/' lib/device/rbd)" \
	"only the RBD backend includes librados and librbd"
is "" "$(includes '"lib/device/rbd/rbd\.h"' lib/device/rbd/)" \
	"nobody else sees its header"
is "" "$(includes '<openssl/' lib/image/digest.c)" "only digests include libcrypto"
is "" "$(includes '<isa-l' format/ cmd/from/)" "only format and cmd/from include isa-l"
is "" "$(includes '<(jansson|archive|lmdb|hdf5)' cmd/)" \
	"only cmd includes jansson, libarchive, LMDB and HDF5"
is "" "$(includes '<sqlite3' lib/query/)" "only queries include SQLite"
is "" "$(includes '<fuse' cmd/mount/fuse/)" "only the FUSE server includes libfuse3"
is "" "$(includes '"' format/ lib/ | sed -n 's/.*"\(.*\)".*/\1/p' | sort -u |
	while read -r name; do
		[ "$name" = stele.h ] || git ls-files --error-unmatch "cmd/$name" \
			"cmd/*/$name" 2>/dev/null | grep -q . || echo "$name"
	done)" "cmd includes stele.h and headers of its own"
is "" "$(includes '<(unistd|fcntl|stdio|stdlib|sys/|linux/|pthread)' lib/ cmd/)" \
	"format includes nothing that does I/O or allocates"

below=(python/src/{core,block,service,lender,call}.c python/src/{core,call}.h)
is "" "$(grep -nE '^#include' "${below[@]}" |
	grep -vE '<|"(core|call)\.h"'; grep -n 'Python\.h>' "${below[@]}")" \
	"what lies below Python's types is plain C"

done_testing
