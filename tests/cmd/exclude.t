#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# exclude.t - stele build and append --exclude: what is left out of a directory
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version

image=$tmp/image src=$tmp/src
mkdir -p "$src/.git/objects" "$src/cat/cache" "$src/dog" "$src/cache"
for key in .git/HEAD .git/objects/1 .DS_Store cat/1.jpg cat/1.txt cat/cache/2.jpg \
	dog/1.jpg dog/.DS_Store cache/3.jpg README.txt; do
	echo "$key" >"$src/$key"
done
built() { # WANTED-KEYS WHAT OPTION...
	local wanted=$1 what=$2
	shift 2
	run stele build -f --json --label-from=1 "$@" "$src" "$image"
	is "0 $wanted" "$status $(stele ls "$image" | sort | paste -sd ' ')" "$what" || diag "$err"
}

built "cache/3.jpg cat/1.jpg cat/cache/2.jpg dog/1.jpg" "hidden files and others by name" \
	--exclude='.*' --exclude '*.txt'
is "5 excluded" "$(jq -r '"\(.skipped.excluded.count) excluded"' <<<"$out")" \
	"they are counted, a directory once"
is 3 "$(stele info --json "$image" |
	jq -r '.snapshot.fields[] | select(.name == "label").classes')" \
	"what is left out is no class"
built "cat/1.jpg cat/cache/2.jpg dog/1.jpg" "a path from the top" \
	--exclude='.*' --exclude='*.txt' --exclude=/cache/
is 2 "$(stele info --json "$image" |
	jq -r '.snapshot.fields[] | select(.name == "label").classes')" \
	"a class less"
built "cat/1.jpg cat/1.txt cat/cache/2.jpg dog/1.jpg" "or one that begins with a dot" \
	--exclude='.*' --exclude='./*.txt' --exclude=./cache
ok "no hint" not grep -q "left out nothing" <<<"$err"
run stele build -f --exclude=none --exclude=./.* "$src" "$image"
ok "nor where one of two leaves out" not grep -q "left out nothing" <<<"$err"
run stele build -f --exclude=cat/none --exclude=jpg "$src" "$image"
is 0 "$status" "what matches nothing"
ok "is said" grep -qxF "hint: --exclude left out nothing: no name there matches it" <<<"$err" ||
	diag "$err"
mkdir -m 0 "$src/lost+found"
built "cat/1.jpg dog/1.jpg" "a directory that may not be read" --exclude='.*' \
	--exclude='*.txt' --exclude=cache --exclude='lost*'
run stele build -f "$src" --exclude='.git' "$image"
ok "the summary has the number" grep -q "^skipped *1: excluded$" <<<"$out"
ok "and the name" grep -q "^ *'.git'$" <<<"$out"

run stele build -f --exclude='*' "$src" "$image"
is 1 "$status" "nothing left is an error"
ok "which says why" grep -q "skipped: .*: excluded, such as" <<<"$err"
for pattern in '' /; do
	run stele build -f --exclude="$pattern" "$src" "$image"
	is 2 "$status" "'$pattern' is no pattern"
done
run stele build -f --exclude="$(printf '%5000d' 0)" "$src" "$image"
is 2 "$status" "too long a pattern" || diag "$err"
many=()
for ((i = 0; i < 257; i++)); do many+=("--exclude=$i"); done
run stele build -f "${many[@]}" "$src" "$image"
is 2 "$status" "too many patterns"
run stele build -f "${many[@]:1}" "$src" "$image"
is 0 "$status" "as many as there may be" || diag "$err"

built "cat/1.jpg dog/1.jpg" "again" --exclude='.*' --exclude='*.txt' --exclude=cache
run stele append --update --delete-missing --exclude='.*' --exclude='*.txt' --exclude=cache \
	"$src" "$image@v2"
is 0 "$status" "an append with the same patterns" || diag "$err"
ok "finds nothing new" grep -q "nothing has changed" <<<"$out$err"
run stele append --exclude='.*' --exclude='*.txt' "$src" "$image@v2"
is "0 cache/3.jpg cat/1.jpg cat/cache/2.jpg dog/1.jpg" \
	"$status $(stele ls "$image@v2" | sort | paste -sd ' ')" "with fewer: what they left out"
run stele append --delete-missing --exclude='.*' --exclude='*.txt' --exclude=dog \
	"$src" "$image@v3"
is "0 cache/3.jpg cat/1.jpg cat/cache/2.jpg" \
	"$status $(stele ls "$image@v3" | sort | paste -sd ' ')" "with another: it is dropped"

tar -C "$src" -cf "$tmp/x.tar" cat
run stele build -f --exclude='*.txt' "$tmp/x.tar" "$image"
is 2 "$status" "an archive has none"
ok "and says so" grep -q "exclude patterns go with a directory only" <<<"$err"
is "hint: leave out --exclude" "$(grep hint <<<"$err")" "and what to do"
printf 'a\n1\n' >"$tmp/x.csv"
for option in --follow --label-from=1; do
	run stele build -f $option "$tmp/x.csv" "$image"
	is "2 hint: leave out ${option%=*}" "$status $(grep hint <<<"$err")" "nor does $option go"
done
done_testing
