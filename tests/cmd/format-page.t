#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# format-page.t - the worked example of stele-format(5) is what a build makes
#
# The page's own command is run; every row of hex that it prints must lie in
# the image at the offset that it names.
. "${0%/*}/../tap.sh"

page=man/stele-format.5
mkdir "$tmp/dir"
printf 'Hello, stele\n' >"$tmp/dir/hello"
command=$(sed -n '/^stele build/,/dir image$/p' "$page" | sed 's/\\e$//' | tr '\n' ' ')
is "stele build" "${command:0:11}" "the page shows how its example is built"

cd "$tmp" || bail "no $tmp"
run bash -c "$command"
is 0 "$status" "the command of the page works" || diag "$err"

seen=0
while read -r offset bytes; do
	wanted=${bytes// /}
	found=$(od -A n -t x1 -v -j $((16#$offset)) -N 16 image | tr -d ' \n')
	[ "$wanted" = "$found" ] || is "$wanted" "$found" "row $offset"
	seen=$((seen + 1))
done < <(grep -E '^[0-9a-f]{8}  ([0-9a-f]{2} ?){8} ' "$OLDPWD/$page")
ok "all rows of the page, $seen of them, lie in the image" test "$seen" -gt 50
is $((0x20a000)) "$(stat -c %s image)" "the image has the size that the page says"

done_testing
