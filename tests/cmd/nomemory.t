#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# nomemory.t - each allocation of a command fails in turn
#
# Either all of the output is there, or the command fails and says why. Nothing
# of it is wrong usage, and no line of JSON lacks a member.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version
! ldd "$BUILD/stele" | grep -qE 'lib[at]san' || skip_all "needs the memory of its own"
starve=$tmp/starve.so
"${CC:-cc}" -shared -fPIC -O1 -o "$starve" tests/cmd/starve/starve.c ||
	skip_all "needs a compiler"

mkdir "$tmp/src"
for ((i = 0; i < 4; i++)); do echo "$i" >"$tmp/src/key $i"; done
echo >"$tmp/src/"$'\377\u202e'
cd "$tmp" || bail "no directory"
must stele build -q src image@v1
must stele snapshot create --note $'no\nte' -d "key 1" image@v2 >/dev/null
must stele snapshot create --base v1 image@v3 >/dev/null

# starved WORDS CMD...: the n-th allocation fails, for all n; `fresh` before each
fresh() { :; }
starved() {
	local words=$1 n wanted short='' usage='' silent='' left=''
	shift
	fresh
	wanted=$("$@" 2>/dev/null | kept)
	for ((n = 1; ; n++)); do
		fresh
		rm -f told
		# shellcheck disable=SC2030,SC2031 # for this command alone
		STARVE_AT=$n STARVE_TOLD=told LD_PRELOAD=$starve "$@" >out 2>err
		status=$?
		[ -e told ] || break
		case $status in
		0) [ "$(kept <out)" = "$wanted" ] || short+=" $n" ;;
		1 | 3)
			[ -s err ] || silent+=" $n"
			[ ! -e new ] || stele verify -q new || left+=" $n"
			;;
		*) usage+=" $n:$status" ;;
		esac
		[ $n -lt 5000 ] || bail "$words: has no end"
	done
	is "" "$short" "$words: success is all of the output, at each of $((n - 1)) allocations"
	is "" "$silent" "$words: a failure is said"
	is "" "$usage" "$words: no other end"
	is "" "$left" "$words: no new file stays after a failure"
}
kept() { cat; }

starved "info" stele info image
starved "info --json" stele info --json image@v2
starved "ls --json" stele ls --json image@v1
starved "snapshot list" stele snapshot list image
starved "snapshot list --json" stele snapshot list --json image
starved "diff --json" stele diff --json image@v1 image@v2
starved "verify --json" stele verify --json image
starved "gc --json" stele gc --json image
fresh() { rm -f new; }
kept() { cat; }
starved "build" stele build -q --time=9 src new@v1
rm -f new
fresh() { cp image copy; }
kept() { jq -c 'del(.time, .generation, .digest)' 2>&1; }
starved "snapshot create -d --json" stele snapshot create --json --time=9 \
	-d "key 0" -d "key 2" copy@v4

done_testing
