#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# names.t - any name that Linux allows, and trees of odd shapes
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

put() { # NAME: a file with its name in it
	mkdir -p "$(dirname "$tmp/odd/$1")"
	printf '%s' "$1" >"$tmp/odd/$1"
}

roundtrip() { # DIR WORDS [OPTION...]
	local dir=$1 words=$2
	shift 2
	rm -rf "$tmp/copy" "$tmp/image"
	run stele build "$@" "$dir" "$tmp/image"
	is 0 "$status" "$words: build" || diag "$err"
	run stele verify -q "$tmp/image"
	is "0 " "$status $out" "$words: verify" || diag "$err"
	run stele extract "$tmp/image" "$tmp/copy"
	is 0 "$status" "$words: extract" || diag "$err"
}

deep=$(printf 'd/%.0s' {1..400})
put $'new\nline'
put $'\377\376not utf-8'
put -leading-dash
put --help
put ' spaces  around '
put '#17'
put 'back\slash'
put $'\033[31mred'
put '*?[a]'
put '...'
put "$(printf '%0255d' 0)"
put "${deep}deep"
put a/b
put a.b
put ünïcödé/日本語

roundtrip "$tmp/odd" "odd names"
ok "odd names: the copy is the source" diff -r "$tmp/odd" "$tmp/copy"
(cd "$tmp/odd" && find . -type f -printf '%P\0' | LC_ALL=C sort -z) >"$tmp/keys"
ok "ls -0 brings each name as it is" cmp "$tmp/keys" <(stele ls -0 "$tmp/image")
each_key() {
	local key
	while IFS= read -rd '' key; do
		is "${key}x" "$(stele cat -k -- "$tmp/image" "$key" && echo x)" \
			"cat of $(printf %q "${key:0:40}")"
	done
}
each_key <"$tmp/keys"
run stele ls --json "$tmp/image" $'\377'
is '"key":"'$'\xef\xbf\xbd\xef\xbf\xbd''not utf-8","key_base64":"//5ub3QgdXRmLTg="}' \
	"${out#*,*,}" "JSON of a name that is not UTF-8"
ok "JSON of the others has only the key" \
	not grep -q base64 <(stele ls --json "$tmp/image" | grep -v 'not utf-8')
run stele cat "$tmp/image" $'no\nsuch\033'
is "stele: cannot find 'no\\nsuch\\x1b': no such key" "${err%%$'\n'*}" \
	"messages escape what a terminal obeys"
if script -qec true /dev/null >/dev/null 2>&1; then
	script -qec "stele ls '$tmp/image'" /dev/null </dev/null >"$tmp/screen"
	ok "ls on a terminal escapes control characters" \
		grep -qF '\x1b[31mred' "$tmp/screen"
	ok "and lets none through" not grep -q $'\033' "$tmp/screen"
else
	skip_block 2 "needs script(1)"
fi

# What turns a line around, ends it, or is not seen (Cc, Cf, Zl, Zp, no characters),
# and its neighbours, which are.
hidden=($'\u00ad' $'\u009f' $'\u061c' $'\u200b' $'\u202e' $'\u2028' $'\u2029'
	$'\u2066' $'\ufdd0' $'\ufeff' $'\ufff9' $'\uffff' $'\U1d173' $'\U1fffe'
	$'\Ue0041' $'\U10ffff')
shown=($'\u00a0' $'\u00ae' $'\u2027' $'\u202f' $'\u2070' $'\ufdf0' $'\ufffd'
	$'\U1f600' $'\Ue0100')
mkdir "$tmp/unseen"
for text in "${hidden[@]}" "${shown[@]}"; do : >"$tmp/unseen/a${text}z"; done
must stele build -q "$tmp/unseen" "$tmp/unseen.stele"
stele ls --json "$tmp/unseen.stele" >"$tmp/json"
is "$(cd "$tmp/unseen" && printf '%s\n' * | LC_ALL=C sort)" \
	"$(jq -r .key "$tmp/json" | LC_ALL=C sort)" "JSON: whatever is not seen comes through"
for text in "${hidden[@]}"; do
	shape=$(printf 'a%sz' "$text" | od -An -v -tx1 | tr -d ' \n')
	ok "JSON escapes $shape" not grep -qF "$text" "$tmp/json"
	run stele cat "$tmp/unseen.stele" "no$text"
	ok "and a message does" not grep -qF "$text" <<<"$err"
	run stele cat "$tmp/no$text" key
	ok "also of a target" not grep -qF "$text" <<<"$err"
done
for text in "${shown[@]}"; do
	shape=$(printf 'a%sz' "$text" | od -An -v -tx1 | tr -d ' \n')
	ok "JSON has $shape as it is" grep -qF "$text" "$tmp/json"
done
is '"key":"a\ud834\udd73z"}' "$(grep -oF '"key":"a\ud834\udd73z"}' "$tmp/json")" \
	"beyond 16 bits it takes two escapes"

mkdir "$tmp/empty"
roundtrip "$tmp/empty" "empty directory" --allow-empty
is "" "$(stele ls "$tmp/image")" "empty directory: no keys"
is "" "$(find "$tmp/copy" -type f)" "empty directory: no files"

mkdir "$tmp/one"
echo one >"$tmp/one/x"
roundtrip "$tmp/one" "one sample"
ok "one sample: the same" diff -r "$tmp/one" "$tmp/copy"

mkdir "$tmp/empties"
touch "$tmp/empties/"{1..50}
roundtrip "$tmp/empties" "empty files"
ok "empty files: the same" diff -r "$tmp/empties" "$tmp/copy"

for granule in 16 64 512 4096; do
	tree_photos "$tmp/photos"
	roundtrip "$tmp/photos" "granule $granule" --granule=$granule
	ok "granule $granule: the same" diff -r "$tmp/photos" "$tmp/copy"
done
roundtrip "$tmp/photos" "source order" --order=source
ok "source order: the same" diff -r "$tmp/photos" "$tmp/copy"
is "$(stele ls "$tmp/image")" \
	"$(stele ls -l "$tmp/image" | sort -n | awk '{ print $NF }')" \
	"source order: ids follow keys"

# Far more than the memory that is allowed.
mkdir "$tmp/large"
head -c 150M /dev/urandom >"$tmp/large/large"
echo small >"$tmp/large/small"
roundtrip "$tmp/large" "a sample larger than memory" --memory=16M
ok "a sample larger than memory: the same" diff -r "$tmp/large" "$tmp/copy"
is "$(sum "$tmp/large/large")" "$(stele cat "$tmp/image" large | sha256sum)" \
	"a sample larger than memory: cat"

# ---- patterns, and a limit ----

mkdir -p "$tmp/globs/train/cats" "$tmp/globs/val/dogs"
for name in train/cats/1.jpg train/cats/2.png val/dogs/1.jpg 'val/[odd]' 'val/a*b'; do
	echo >"$tmp/globs/$name"
done
must stele build -q "$tmp/globs" "$tmp/globs.stele"
globs() { # WANTED WORDS...
	local wanted=$1
	shift
	is "$wanted" "$(stele ls "$tmp/globs.stele" "$@" | paste -sd ' ')" "ls $*"
}
globs "train/cats/1.jpg val/dogs/1.jpg" '*.jpg'
globs "train/cats/1.jpg train/cats/2.png" 'train/*'
globs "train/cats/1.jpg" 'train/cats/?.jpg'
globs "train/cats/1.jpg train/cats/2.png" '*/cats/[12].*'
globs "" '*.jp'
globs 'val/a*b' 'val/a\**'
globs 'val/[odd]' 'val/\[*'
globs "train/cats/1.jpg" --limit=1
globs "val/dogs/1.jpg" --limit 1 '*dogs*'
globs "val/[odd] val/a*b val/dogs/1.jpg" --limit=9 val/
run stele ls --limit=0 "$tmp/globs.stele"
is "2 " "$status $out" "a limit of 0 is wrong usage"

done_testing
