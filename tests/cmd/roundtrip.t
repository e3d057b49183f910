#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# roundtrip.t - a real tree through build, info, ls, cat, verify and extract
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version

# This very source tree: real files of many kinds, wherever the tests run.
mkdir "$tmp/tree"
cp -R Makefile README.md lib cmd format tests man "$tmp/tree/"
find "$tmp/tree" -type l -delete
tree_photos "$tmp/tree/photos"
(cd "$tmp/tree" && find . -type f -printf '%P\n' | sort) >"$tmp/keys"
count=$(wc -l <"$tmp/keys")

same_ids() { # TARGET: each id of ls brings what its key brings
	local id size key
	stele ls --json "$1" | jq -r '"\(.id) \(.size) \(.key)"' |
		shuf -n 20 --random-source="$tmp/keys" |
		while read -r id size key; do
			stele cat "$1" "#$id" | cmp - "$tmp/tree/$key" || return 1
			stele cat "$1" "$key" | cmp - "$tmp/tree/$key" || return 1
			[ "$(stele cat "$1" "#$id" | wc -c)" = "$size" ] || return 1
		done
}

roundtrip() { # TARGET WORDS
	local target=$1 words=$2 copy

	copy=$(mktemp -d "$tmp/copy.XXXXXX")
	run stele build --label=tree "$tmp/tree" "$target@first"
	is 0 "$status" "$words: build" || diag "$err"
	run stele info --json "$target@first"
	is "0 $count first tree" "$status $(field "$out" \
		'"\(.snapshot.samples) \(.snapshot.name) \(.image.label)"')" \
		"$words: info"
	ok "$words: ls lists each file, sorted" \
		cmp "$tmp/keys" <(stele ls "$target@first")
	ok "$words: cat by key and by id" same_ids "$target@first"
	run stele verify "$target"
	is 0 "$status" "$words: verify finds it sound" || diag "$out" "$err"
	run stele extract "$target" "$copy"
	is 0 "$status" "$words: extract" || diag "$err"
	ok "$words: the copy is the source" diff -r "$tmp/tree" "$copy"
	rm -rf "$copy"
}

each_target roundtrip 64M

target=$tmp/uring.stele
run stele info "$target"
ok "info names the image" grep -q "^label  *tree$" <<<"$out"
ok "info lists the snapshot" grep -q "^  first  *$count " <<<"${out//,/}"
run stele info "$target@second"
is 1 "$status" "no such snapshot is a failure"
run stele snapshot list "$target"
is "first $count" "$(awk 'NR == 2 { print $1, $2 }' <<<"${out//,/}")" "snapshot list"
run stele snapshot list --json "$target"
digest=$(field "$out" .digest)
is 64 "${#digest}" "snapshot list --json has the whole digest"
run stele ls "$target@sha256:$digest" photos/
is "0 41" "$status $(wc -l <<<"$out")" "a digest pins, a prefix selects"
run stele ls "$target@sha256:${digest%?}$([ "${digest: -1}" = 0 ] && echo 1 || echo 0)"
is "1 " "$status $out" "another digest opens nothing"
run stele ls "$target@sha256:${digest%?}"
is "0 $(stele ls "$target")" "$status $out" "a short digest is completed"
run stele ls "$target@sha256:${digest:0:3}"
is "2 " "$status $out" "unless it is too short"
run stele ls --json "$target" photos/train/cats/empty.jpg
is "0 photos/train/cats/empty.jpg" "$status $(field "$out" .key)" "ls --json"
run stele ls "$target" nosuchprefix
is "0 " "$status $out" "a prefix of nothing lists nothing"

run stele cat "$target" Makefile nosuch '#0' "#$count" README.md
is 1 "$status" "cat: a failing one is a failure"
is "stele: cannot find 'nosuch': no such key
stele: cannot find '#$count': no such id
hint: 'stele ls' lists the keys" "$err" "cat: and is named"
{ cat "$tmp/tree/Makefile" && stele cat "$target" '#0' &&
	cat "$tmp/tree/README.md"; } >"$tmp/wanted"
ok "cat: the others come all the same" cmp "$tmp/wanted" "$tmp/.out"

run stele extract "$target" "$tmp/part" photos/train/cats '#0' Makefile
is 0 "$status" "extract of keys, ids and what lies below"
is 21 "$(find "$tmp/part/photos" -type f | wc -l)" "extract: all below a key"
run stele extract "$target" "$tmp/part" Makefile nosuch README.md
is 1 "$status" "extract: what exists is a failure"
ok "extract: and so is an unknown key" grep -q "'nosuch'" <<<"$err"
ok "extract: the rest goes on" cmp README.md "$tmp/part/README.md"
echo changed >"$tmp/part/Makefile"
run stele extract "$target" "$tmp/part" Makefile
is changed "$(cat "$tmp/part/Makefile")" "extract: nothing is overwritten"
run stele extract --force "$target" "$tmp/part" Makefile
is 0 "$status" "extract --force"
ok "extract --force replaces" cmp "$tmp/tree/Makefile" "$tmp/part/Makefile"

if [ -w /dev/full ]; then
	for words in "ls $target" "cat $target Makefile" "info $target" \
		"verify $target" "snapshot list $target"; do
		# shellcheck disable=SC2086
		stele $words >/dev/full 2>"$tmp/err"
		is 1 $? "${words%% *}: a full disk is a failure"
	done
fi

done_testing
