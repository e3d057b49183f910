#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# du.t - what each snapshot holds alone is what gc frees after it is deleted
. "${0%/*}/../tap.sh"

mkdir "$tmp/src"
cd "$tmp" || bail "cd"
head -c 3M /dev/urandom >src/a
must stele build -q --size=64M src image@v1
usage() { stele du --json image | jq -r '"\(.name) \(.alone_size) \(.shared_size)"'; }
alone() { usage | awk -v name="$1" '$1 == name { print $2 }'; }
shared() { usage | awk -v name="$1" '$1 == name { print $3 }'; }

first=$(alone v1)
ok "the only snapshot holds all" test "$first" -ge $((3 << 20))
is 0 "$(shared v1)" "and shares nothing"
head -c 5M /dev/urandom >src/b
must stele append -q src image@v2
must stele snapshot create --delete a image@v3
is "v1 0 $first" "$(usage | head -n 1)" "its segment is shared now"
second=$(($(shared v2) - first))
ok "so is the second one" test "$second" -ge $((5 << 20))
is "$second" "$(shared v3)" "a segment of which no sample is left is not counted"
head -c 7M /dev/urandom >src/c
must stele append -q --base v2 src image@v4
third=$(alone v4)
ok "the third one is of v4 alone" test "$third" -ge $((7 << 20))
ok "as a table" grep -qE '^ +7\.[0-9] MiB +8\.[0-9] MiB  v4$' <<<"$(stele du image)"
must stele snapshot delete image@v4
is "$third" "$(stele gc --json --apply --force image | tail -n 1 | jq .freed_size)" \
	"as much is freed"
run stele du none
is "1 " "$status $out" "no such target"
run stele du
is "2 " "$status $out" "no target"

done_testing
