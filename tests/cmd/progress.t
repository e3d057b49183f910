#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# progress.t - how far a command is, with bytes, rate and time left; with --progress anywhere
. "${0%/*}/../tap.sh"
. "${0%/*}/targets.sh"

mkdir "$tmp/src"
cd "$tmp" || bail "cd"
for i in 1 2 3 4 5 6 7 8; do head -c 24M /dev/urandom >"src/$i"; done

# slow PAUSE CMD...: stopped for so long again and again, so that it takes some seconds
slow() {
	local pid i pause=$1
	shift
	"$@" >.out 2>.err &
	pid=$!
	for ((i = 0; i < 400; i++)); do
		kill -STOP $pid 2>/dev/null || break
		sleep "$pause"
		kill -CONT $pid 2>/dev/null
		sleep 0.01
	done
	wait $pid
	status=$?
	out=$(<.out)
	err=$(<.err)
}

number='[0-9.,]+'
size="$number (bytes?|[KMG]iB)"
# progress VERB WORDS...: one line a second, complete, and no more
progress() {
	local verb=$1 lines pause began=$SECONDS
	shift
	cp image before
	for pause in 0.05 0.2 0.8 1.6; do
		cp before image
		slow $pause stele "$@" --progress
		[[ $err == *"$verb"*left* ]] && break
	done
	is 0 "$status" "stele $*: succeeds" || diag "$err"
	lines=$(grep -c . <<<"$err")
	ok "stele $*: has bytes, rate and time left" grep -qE "^$verb( $number/$number samples?)?, \
$size of $size, $size/s, [0-9]+:[0-9]{2} left$" \
		<<<"$err" || diag "$err"
	ok "stele $*: at most a line a second" test "$lines" -le $((SECONDS - began + 1))
	is "" "$(grep -vE "^[a-z]+( |,|$)" <<<"$err" | tr -d '\n')" "stele $*: nothing else"
	ok "stele $*: whole lines" not grep -q $'\r' <<<"$err"
}
: >image
progress writing build -q --force src image
progress verifying verify image
progress extracting extract --force image out
progress extracting extract --force image some 1 2 3 4 5 6
progress exporting export --force image x.tar
progress copying copy --force image copied
head -c 4 /dev/zero >>src/8
progress comparing append --update src image@v2
is 8 "$(find out -type f | wc -l)" "all is there"

slow 0.05 stele verify image
is "0 " "$status $err" "without a terminal, and --progress, there is none"
run stele info --progress image@v1
is 0 "$status" "commands that have none take the option, too"
run stele info --progress=yes image@v1
is 2 "$status" "which takes no value"

run stele build --force --json src image
ok "JSON: durations have up to six digits that count" grep -qE \
	'"total_seconds": ?[0-9]*\.?0*[0-9]{1,6}[,}]' <<<"$out" || diag "$out"

done_testing
