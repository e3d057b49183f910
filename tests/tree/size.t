#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# size.t - functions, files and lines that fit into a head
. "${0%/*}/../tap.sh"

requires git ls-files --error-unmatch Makefile

function_max=70 # lines between the braces
file_max=800
column_max=100 # tabs count as 8

# A function's brace stands alone in column 0, and so does the one that ends it.
# What opens otherwise is named too, or it would escape being counted.
functions() {
	perl -e '
		my $max = shift;
		for my $file (@ARGV) {
			my ($begin, $before) = (0, "");
			open my $in, "<", $file or die "$file: $!";
			while (<$in>) {
				if (/^\{/) {
					print "$file:$.: brace in a function\n" if $begin;
					$begin = $.;
				} elsif (/^\}/ && $begin) {
					my $size = $. - $begin - 1;
					print "$file:$begin: $size lines\n" if $size > $max;
					$begin = 0;
				} elsif (!$begin && /^[a-z].*\)\s*\{/ &&
					 !/^(struct|union|enum|static const)\b.*=/) {
					print "$file:$.: brace not on its own line\n";
				}
			}
			print "$file: no end of a function\n" if $begin;
		}' "$function_max" "$@"
}

long_files() {
	wc -l "$@" | awk -v max="$file_max" \
		'$2 != "total" && $1 > max { print $2 ": " $1 " lines" }'
}

wide_lines() {
	perl -CSD -e '
		my $max = shift;
		while (<>) {
			chomp;
			1 while s/\t/" " x (8 - $-[0] % 8)/e;
			print "$ARGV:$.: ", length, " columns\n" if length > $max;
			print "$ARGV:$.: space at the end\n" if /\s$/;
			close ARGV if eof;
		}' "$column_max" "$@"
}

mapfile -t sources < <(git ls-files '*.[ch]')
mapfile -t scripts < <(git ls-files '*.sh' '*.t' .ci Makefile)

is "" "$(functions "${sources[@]}")" "functions have up to $function_max lines"
is "" "$(long_files "${sources[@]}" "${scripts[@]}")" \
	"files have up to $file_max lines"
is "" "$(wide_lines "${sources[@]}" "${scripts[@]}")" \
	"lines have up to $column_max columns, and no space at the end"
is "" "$(git ls-files '*utils.[ch]' '*util.[ch]' '*misc.[ch]' '*common.[ch]')" \
	"files are named after what they own"

done_testing
