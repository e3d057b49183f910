#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tune.t - stele tune says what it measured, and readers get to know it
#
# Nothing here depends on how fast anything is.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version
requires python3 -c 'import xml.dom.minidom'

tree_photos "$tmp/src"
image=$tmp/image
must stele build -q --label=cats "$tmp/src" "$image"

# holds WORDS FILTER: the filter is true of what was printed
holds() { ok "$1" jq -e "$2" "$tmp/.out" || diag "$out" "$err"; }

# ---- nothing is known yet ----

run stele tune --show "$image"
is "1 " "$status $out" "--show: no profile"
ok "says what to do" grep -q "run 'stele tune'" <<<"$err"
run stele info "$image"
ok "info: no profile" not grep -q ^profile <<<"$out"

# ---- measured ----

echo mine >"$tmp/plot.svg.new"
run stele tune --quick --json "--svg=$tmp/plot.svg" "$image"
mode=$(printf %o $((0666 & ~$(umask))))
is "mine $mode" "$(<"$tmp/plot.svg.new") $(stat -c %a "$tmp/plot.svg")" \
	"a drawing takes no other file's name"
is 0 "$status" "tunes" || diag "$err"
holds "a sound profile" '.profile | .depth >= 1 and .depth <= 1024 and
	.slots_size > 0 and .mean_size > 0'
holds "which says where it was measured" \
	".profile | .host == \"$(uname -n)\" and .target == \"$image\""
holds "kept" ".saved and (.path | startswith(\"$STELE_STATE_DIR/\"))"
holds "points by size and depth, the mix at the end" '.points |
	length > 3 and .[-1].size == 0 and (map([if .size == 0 then infinite
	else .size end, .depth]) | . == sort and . == unique)'
holds "each with its numbers" '.points | all(.reads_per_second > 0 and
	.bytes_per_second > 0 and .p99_ns >= .p50_ns and .p50_ns > 0)'
holds "the depth is one of the mix" '. as $all | .points |
	any(.size == 0 and .depth == $all.profile.depth)'
holds "a small image is noted" '.notes | any(contains("caches may"))'
sizes=$(jq '[.points[].size] | unique | length' "$tmp/.out")
points=$(jq '.points | length' "$tmp/.out")
ok "one file" test "$(find "$STELE_STATE_DIR" -type f | wc -l)" = 1
is "$sizes" "$(python3 -c 'import sys, xml.dom.minidom as m
print(len(m.parse(sys.argv[1]).getElementsByTagName("polyline")))' \
	"$tmp/plot.svg")" "the drawing is XML, with a curve for each size"
# texts: how many of them are nothing but this
texts() {
	python3 -c 'import sys, xml.dom.minidom as m
texts = [t.firstChild.data for t in m.parse(sys.argv[1]).getElementsByTagName("text")]
print(*texts, sep="\n")' "$tmp/plot.svg"
}
is "$points" "$(texts | grep -cxE '[0-9]+')" "and the depth at each point"
ok "it names the target" grep -qxF "$image" <(texts)
ok "host and date" grep -qxE "on host '$(uname -n)', 20[0-9-]+ [0-9:]+ UTC" <(texts)

profile=$(jq -c .profile "$tmp/.out")
profile_size=$(jq .profile.slots_size "$tmp/.out")
table=$(jq -c .points "$tmp/.out")
drawing=$(<"$tmp/plot.svg")
run stele tune --show --json "--svg=$tmp/plot.svg" "$image"
is "0 $profile" "$status $(jq -c .profile <<<"$out")" "--show: the same"
is "$table" "$(jq -c .points <<<"$out")" "with the table"
is "$drawing" "$(<"$tmp/plot.svg")" "and the drawing"
run stele tune --show "$image"
ok "--show: the file" grep -qE "^kept in +$STELE_STATE_DIR/" <<<"$out"
run stele info "$image"
ok "info: in one line" grep -qE '^profile +depth [0-9]+ by ' <<<"$out"
run stele info --json "$image"
is "$profile" "$(jq -c .snapshot.profile <<<"$out")" "info: as JSON"
must stele map "$image" cats
run stele tune --show --json cats
is "$profile" "$(jq -c .profile <<<"$out")" "a mapped name has it, too"
must stele unmap cats

# ---- as text, and not kept ----

before=$(cat "$STELE_STATE_DIR"/*)
run stele tune --quick --no-save --backend=threads "$image"
is 0 "$status" "tunes by threads" || diag "$err"
is "$before" "$(cat "$STELE_STATE_DIR"/*)" "--no-save: keeps what there was"
is "" "$(awk 'length > 80' <<<"$out")" "up to 80 columns"
ok "ASCII, where no terminal is" not grep -qP '[^\x00-\x7f]' <<<"$out"
for word in '^throughput, MiB/s' '^latency, [um]s: p50/p99' '^depth .* 4 KiB' \
	"^settings +depth [0-9]+ by 'threads', " '^device ' ' \*~?[0-9]' '^kept +no' '\* +knee'; do
	ok "prints $word" grep -qE "$word" <<<"$out"
done

# ---- a good one is not replaced by a worse one ----

file=$(find "$STELE_STATE_DIR" -type f)
# measured SIZE: the profile says that its samples took up as much
measured() {
	python3 -c 'import re, sys
table = [(i >> 1) ^ (0x82f63b78 if i & 1 else 0) for i in range(256)]
for _ in range(7):
    table = [(i >> 1) ^ (0x82f63b78 if i & 1 else 0) for i in table]
text = open(sys.argv[1]).read()
text = re.sub("slots_size = [0-9]+", "slots_size = " + sys.argv[2], text)
text = text[:text.index("crc32c")]
crc = 0xffffffff
for byte in text.encode():
    crc = crc >> 8 ^ table[(crc ^ byte) & 255]
open(sys.argv[1], "w").write(f"{text}crc32c = {crc ^ 0xffffffff:08x}\n")' "$file" "$1"
}
measured $((1 << 30))
before=$(<"$file")
run stele tune --quick --backend=threads "$image"
is "1 " "$status $out" "a tiny image: nothing is measured"
is "stele: cannot tune '$image': the profile of this device was measured on 1024 MiB of \
samples; 2.7 MiB are too few to replace it
hint: use --force to replace it, or --no-save to keep it" "$err" "says so, and what helps"
run stele tune --quick --backend=threads --no-save "$image"
is "0 $before" "$status $(<"$file")" "--no-save: measured, and kept"
run stele tune --quick --backend=threads --force --json "$image"
is "0 $profile_size" "$status $(jq .profile.slots_size <<<"$out")" "--force: replaced" ||
	diag "$err"
ok "by what was measured" grep -qx 'backend = threads' "$file"
measured $(((1 << 30) - 1))
run stele tune --quick --backend=threads "$image"
is 0 "$status" "one that was measured on as little is replaced" || diag "$err"
measured $((1 << 30))
sed -i 's/^kernel = .*/kernel = 0.99/' "$file"
measured $((1 << 30))
run stele tune --quick --backend=threads "$image"
is 0 "$status" "so is a stale one" || diag "$err"

# ---- damaged ----

sed -i 's/^depth = ./&1/' "$file"
run stele tune --show "$image"
is 1 "$status" "a damaged profile is none"
ok "which is said" grep -q "bad profile.*ignored" <<<"$err"
run stele ls "$image"
is 0 "$status" "and hinders nobody"
rm "$file"

# ---- stopped ----

stele tune "$image" >"$tmp/stopped" 2>&1 &
sleep 1
kill -TERM $!
wait $!
is 143 $? "stopped by a signal" || diag "$(<"$tmp/stopped")"
ok "keeps nothing" not test -e "$file"

# ---- wrong ----

run stele tune
is "2 " "$status $out" "no target: wrong usage"
run stele tune --show --quick "$image"
is "2 " "$status $out" "--show measures nothing"
run stele tune "$tmp/none"
is "1 " "$status $out" "no such file"
ok "says so" grep -q "cannot tune '$tmp/none'" <<<"$err"
: >"$tmp/file"
for drawing in "$tmp/none/plot.svg" "$tmp/file/plot.svg" "$tmp/src"; do
	run stele tune --quick "--svg=$drawing" "$image"
	is "1 " "$status $out" "a drawing that has no place: nothing is measured"
	ok "says so" grep -qxE "stele: cannot (write|create) '$drawing': .* directory.*" <<<"$err"
done
echo mine >"$tmp/file"
run stele tune --quick "--svg=$tmp/file" "$image"
is "1 mine" "$status $(<"$tmp/file")" "no drawing replaces what is none"
: >"$tmp/file"
STELE_STATE_DIR=$tmp/file run stele tune --quick --backend=threads "$image"
is "2 " "$status $out" "a state directory that is none: nothing is measured"
for place in /proc/none /dev/null/none "$tmp/$(printf '%0300d' 0)"; do
	STELE_STATE_DIR=$place run stele tune --quick --backend=threads "$image"
	ok "a state directory that cannot be" test "$status" = 1 -o "$status" = 2
	is "" "$out" "nothing is measured"
done
STELE_STATE_DIR=/proc/none run stele tune --quick --backend=threads "$image"
is "stele: cannot keep a profile in '/proc/none': No such file or directory
hint: use --no-save, or set STELE_STATE_DIR to a directory of your own" \
	"$err" "says so, and no snapshot is blamed"
STELE_STATE_DIR=/proc/none run stele tune --quick --no-save --backend=threads "$image"
is 0 "$status" "it can indeed" || diag "$err"
mkdir -p "$tmp/taken/${file##*/}/below"
STELE_STATE_DIR=$tmp/taken run stele tune --quick --backend=threads "$image"
is 1 "$status" "a profile whose name is taken"
ok "says so" grep -q "cannot save profile '$tmp/taken/.*: Is a directory" <<<"$err"
ok "what was measured is printed all the same" grep -q '^kept  *no' <<<"$out"
ok "and no snapshot is blamed" not grep -q "snapshot '\|no such snapshot\|cannot tune" <<<"$err" ||
	diag "$err"
mkdir "$tmp/empty"
must stele build -q --allow-empty "$tmp/empty" "$tmp/empty.image"
echo "<svg/>" >"$tmp/drawing"
run stele tune --quick "--svg=$tmp/drawing" "$tmp/empty.image"
is "1 " "$status $out" "an image without samples"
is "stele: cannot tune '$tmp/empty.image': the snapshot has no samples" "$err" "says so"
is "drawing <svg/>" "$(cd "$tmp" && echo drawing* "$(<drawing)")" \
	"an older drawing stays, with nothing beside it"
mkdir "$tmp/tiny"
echo >"$tmp/tiny/one"
must stele build -q "$tmp/tiny" "$tmp/tiny.image"
run stele tune --quick "$tmp/tiny.image"
is "1 " "$status $out" "one sample of a byte"
ok "is too little" grep -q "too few" <<<"$err" || diag "$err"
ok "and nothing that the image could be blamed for" not grep -q truncated <<<"$err"
for words in --backend= --svg=; do
	run stele tune "$words" "$image"
	is "2 " "$status $out" "$words: wrong usage"
done

done_testing
