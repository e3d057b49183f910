#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tune.t - stele tune says what it measured
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

# ---- measured ----

echo mine >"$tmp/plot.svg.new"
run stele tune --quick --json "--svg=$tmp/plot.svg" "$image"
mode=$(printf %o $((0666 & ~$(umask))))
is "mine $mode" "$(<"$tmp/plot.svg.new") $(stat -c %a "$tmp/plot.svg")" \
	"a drawing takes no other file's name"
is 0 "$status" "tunes" || diag "$err"
holds "a sound knee" '.knee | .depth >= 1 and .depth <= 1024 and
	.slots_size > 0 and .mean_size > 0'
holds "which says where it was measured" \
	".target == \"$image\" and .knee.host == \"$(uname -n)\""
holds "points by size and depth, the mix at the end" '.points |
	length > 3 and .[-1].size == 0 and (map([if .size == 0 then infinite
	else .size end, .depth]) | . == sort and . == unique)'
holds "each with its numbers" '.points | all(.reads_per_second > 0 and
	.bytes_per_second > 0 and .p99_ns >= .p50_ns and .p50_ns > 0)'
holds "the depth is one of the mix" '. as $all | .points |
	any(.size == 0 and .depth == $all.knee.depth)'
holds "a small image is noted" '.notes | any(contains("caches may"))'
sizes=$(jq '[.points[].size] | unique | length' "$tmp/.out")
points=$(jq '.points | length' "$tmp/.out")
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

# ---- as text ----

run stele tune --quick --backend=threads "$image"
is 0 "$status" "tunes by threads" || diag "$err"
is "" "$(awk 'length > 80' <<<"$out")" "up to 80 columns"
ok "ASCII, where no terminal is" not grep -qP '[^\x00-\x7f]' <<<"$out"
for word in '^throughput, MiB/s' '^latency, [um]s: p50/p99' '^depth .* 4 KiB' \
	"^knee +depth [0-9]+ by 'threads', " '^measured +20' ' \*~?[0-9]' '\* +knee'; do
	ok "prints $word" grep -qE "$word" <<<"$out"
done

# ---- stopped ----

stele tune "$image" >"$tmp/stopped" 2>&1 &
sleep 1
kill -TERM $!
wait $!
is 143 $? "stopped by a signal" || diag "$(<"$tmp/stopped")"

# ---- wrong ----

run stele tune
is "2 " "$status $out" "no target: wrong usage"
run stele tune "$tmp/none"
is "1 " "$status $out" "no such file"
ok "says so" grep -q "cannot open '$tmp/none'" <<<"$err"
: >"$tmp/file"
for drawing in "$tmp/none/plot.svg" "$tmp/file/plot.svg" "$tmp/src"; do
	run stele tune --quick "--svg=$drawing" "$image"
	is "1 " "$status $out" "a drawing that has no place: nothing is measured"
	ok "says so" grep -qxE "stele: cannot (write|create) '$drawing': .* directory.*" <<<"$err"
done
echo mine >"$tmp/file"
run stele tune --quick "--svg=$tmp/file" "$image"
is "1 mine" "$status $(<"$tmp/file")" "no drawing replaces what is none"
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
