#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# deterministic.t - the same files and options are the same bytes
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version

id=(--uuid=00112233-4455-6677-8899-aabbccddeeff --time=2026-11-21T06:45:00Z)
tree_photos "$tmp/a"
for ((i = 0; i < 500; i++)); do echo "$i" >"$tmp/a/train/dogs/text$i"; done
# The same files, made in other orders, so that readdir brings them otherwise.
mkdir "$tmp/b" "$tmp/c"
(cd "$tmp/a" && find . -type f -print0 | sort -zR --random-source=train/dogs/9.jpg |
	xargs -0 cp --parents -t ../b)
(cd "$tmp/a" && find . -type f -print0 | sort -rz | xargs -0 cp --parents -t ../c)

same() { # WORDS DIR OPTION...
	local words=$1 dir=$2
	shift 2
	rm -f "$tmp/other"
	run stele build "${id[@]}" "$@" "$dir" "$tmp/other"
	is 0 "$status" "$words: build" || diag "$err"
	ok "$words: the same bytes" cmp "$tmp/first" "$tmp/other"
}

run stele build "${id[@]}" --json --jobs=1 "$tmp/a" "$tmp/first"
is 0 "$status" "build" || diag "$err"
digest=$(field "$out" .digest)
is 00112233-4455-6677-8899-aabbccddeeff "$(field "$out" .uuid)" "--uuid"
is 1795243500 "$(stele info --json "$tmp/first" |
	jq .snapshot.time)" "--time"
same "again" "$tmp/a" --jobs=1
same "seven threads" "$tmp/a" --jobs=7
same "little memory" "$tmp/a" --memory=1M
same "threads backend" "$tmp/a" --backend=threads
same "another order of files" "$tmp/b"
same "the opposite order of files" "$tmp/c"
id=(--uuid=00112233-4455-6677-8899-aabbccddeeff)
export SOURCE_DATE_EPOCH=1795243500
same "SOURCE_DATE_EPOCH" "$tmp/a"
unset SOURCE_DATE_EPOCH

# A digest knows no UUID, no time, no device.
rm "$tmp/other"
run stele build --json "$tmp/a" "$tmp/other"
is "$digest" "$(field "$out" .digest)" "another UUID and time: the same digest"
ok "but other bytes" not cmp -s "$tmp/first" "$tmp/other"
rm "$tmp/other"
echo x >>"$tmp/b/train/dogs/text7"
run stele build --json "$tmp/b" "$tmp/other"
ok "another byte is another digest" not test "$digest" = "$(field "$out" .digest)"

done_testing
