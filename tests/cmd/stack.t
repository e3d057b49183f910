#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# stack.t - a small stack, as 'ulimit -s' leaves to a program and each of its threads
. "${0%/*}/../tap.sh"

requires jq --version

mkdir -p "$tmp/src/a" "$tmp/src/b"
for ((i = 1; i < 40; i++)); do
	head -c $((i * 700)) /dev/urandom >"$tmp/src/a/$i"
	head -c $((i * 10)) /dev/urandom >"$tmp/src/b/$i"
done
must tar -C "$tmp/src" --sort=name -cf "$tmp/src.tar" .
printf 'key,size\n%s\n' x,1 y,2 >"$tmp/src.csv"

write() { # TARGET, in each way
	stele build -q "$tmp/src" "$1@v1" &&
		echo new >"$tmp/src/a/new" &&
		stele append -q "$tmp/src" "$1@v2" &&
		rm "$tmp/src/a/new" &&
		stele compact -q "$1@v2" v3 &&
		stele copy -q "$1@v3" "$1.copy" &&
		stele build -q "$tmp/src.tar" "$1.tar" &&
		stele build -q "$tmp/src.csv" "$1.csv"
}
small() { (ulimit -s 256 && "$@"); }

must write "$tmp/wanted"
ok "images are written" small write "$tmp/seen"
digest() { stele info --json "$1" | jq -r .snapshot.digest; }
for snapshot in @v1 @v2 @v3 .copy@v3 .tar@v1 .csv@v1; do
	is "$(digest "$tmp/wanted$snapshot")" "$(digest "$tmp/seen$snapshot")" \
		"as with a large one: image$snapshot"
done
ok "verify" small stele verify -q "$tmp/seen"
ok "extract" small stele extract -q "$tmp/seen@v1" "$tmp/out"
ok "all is there" diff -r "$tmp/src" "$tmp/out"
ok "ls" small stele ls -l "$tmp/seen@v3"
ok "export" small stele export -q --to=webdataset "$tmp/seen@v3" "$tmp/shards"

done_testing
