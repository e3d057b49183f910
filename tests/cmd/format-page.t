#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# format-page.t - the worked examples of stele-format(5) are what builds make
#
# The page's own command is run, and the program of stele-source(3); every row
# of hex in either part must lie in the image at the offset that it names.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

page=man/stele-format.5
# part NAME: the lines of one example
part() { sed -n "/^\.Ss $1/,/^\.S[sh] /p" "$page"; }

# same_rows PART IMAGE LEAST
same_rows() {
	local seen=0 offset bytes wanted found
	while read -r offset bytes; do
		wanted=${bytes// /}
		found=$(od -A n -t x1 -v -j $((16#$offset)) -N 16 "$2" | tr -d ' \n')
		[ "$wanted" = "$found" ] || is "$wanted" "$found" "row $offset"
		seen=$((seen + 1))
	done < <(part "$1" | grep -E '^[0-9a-f]{8}  ([0-9a-f]{2} ?){8} ')
	ok "$1: all rows of the page, $seen of them, lie in the image" \
		test "$seen" -gt "$3"
}

mkdir "$tmp/dir"
printf 'Hello, stele\n' >"$tmp/dir/hello"
command=$(sed -n '/^stele build/,/dir image$/p' "$page" | sed 's/\\e$//' | tr '\n' ' ')
is "stele build" "${command:0:11}" "the page shows how its example is built"
run bash -c "cd $tmp && $command"
is 0 "$status" "the command of the page works" || diag "$err"
same_rows "A file" "$tmp/image" 50
is $((0x20a000)) "$(stat -c %s "$tmp/image")" "the image has the size that the page says"

pets_program
must "$tmp/pets" "$tmp/pets.image"
same_rows "Fields of all types" "$tmp/pets.image" 25
run tests/cmd/reader.pl "$tmp/pets.image"
is 0 "$status" "a reader made from the page takes it for sound" || diag "$err"

done_testing
