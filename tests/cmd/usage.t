#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# usage.t - help, wrong usage, and output that cannot be written
. "${0%/*}/../tap.sh"

misuse() { # WORDS...: status 2, nothing on stdout, a way to help on stderr
	run stele "$@"
	is "2 " "$status $out" "stele $*: wrong usage"
	ok "stele $*: points to help" grep -qe --help <<<"$err"
}

run stele
is "2 " "$status $out" "no command is wrong usage"
run stele --version
is "0 stele" "$status ${out% *}" "--version"
run stele help build
help=$out
run stele build --help
is "$help" "$out" "help COMMAND is COMMAND --help"
run stele help nosuch
is 2 "$status" "help of no command"

misuse nosuch
misuse --nosuch
misuse build
misuse build onlysource
misuse build a b c
misuse build --granule=0 a b
misuse build --boundary=0 a b
misuse build --boundary=2K a b
misuse build --boundary=12K a b
misuse build --boundary=some a b
misuse build --object-size=64M a b
misuse build --granule=five a b
misuse build --granule=100 a b
misuse build --jobs=0 a b
misuse build --jobs=99999999999999999999 a b
misuse build --size=16E1 a b
misuse build --size=16384P a b
misuse build --memory=0 a b
misuse build --order=random a b
misuse build --uuid=1234 a b
misuse build --time=yesterday a b
misuse build --time=2026-02-30 a b
misuse build --time=0 a b
misuse build "--label=$(printf '%064d' 0)" a b
misuse info
misuse info a b
misuse ls
misuse ls a b c
misuse ls --json -l a
misuse cat a
misuse copy a
misuse copy --jobs=0 a b
misuse copy --object-size=48K a b
misuse copy --object-size=64M a b
misuse copy --size=0 a b
misuse copy --time=@0 a b
misuse export a
misuse extract a
misuse verify
misuse verify --jobs=x a
misuse verify --jobs=0 a
misuse snapshot
misuse snapshot nosuch a
misuse snapshot list
misuse snapshot create --time=1970-01-01 a@b
misuse map
misuse map a b c
misuse unmap
misuse maps a

# The command has a list of its own: it must be the library's.
backends=$(sed -n '/ backends\[\] = {/,/^};/s/^\t&\(stele_backend_\)\?\(.*\),/\2/p' \
	lib/device/backends.c | paste -sd , | sed 's/,/, /g')
for words in 'append a b@c' 'bench a' 'build a b' 'compact a@b c' 'copy a b' 'tune a'; do
	# shellcheck disable=SC2086
	for name in nonsense uri 'uring,' threads,iopoll ''; do
		misuse $words "--backend=$name"
		is "stele: bad value '$name' for --backend: it is one of $backends" \
			"$(head -n 1 <<<"$err")" "stele $words: says which there are"
	done
done

for name in ${backends//,/}; do
	run stele bench "--backend=$name" "$tmp/none"
	is 1 "$status" "bench --backend=$name: there is one"
done

for command in info ls verify 'snapshot list' map; do
	# shellcheck disable=SC2086
	run stele $command "$tmp/none"
	is "1 " "$status $out" "$command: no such target is a failure"
	is 1 "$(grep -cF "$tmp/none" <<<"$err")" "$command: said once, by name"
done
run stele cat "$tmp/none" key
is "1 " "$status $out" "cat: no such target is a failure"
run stele extract "$tmp/none" "$tmp/dir"
is "1 " "$status $out" "extract: no such target is a failure"
ok "extract: and makes no directory" test ! -e "$tmp/dir"
run stele info "$PWD/Makefile"
is "1 " "$status $out" "info: no image there is a failure"
one_line() { # WANTED WORDS...: fails with this message and no other
	local wanted=$1
	shift
	run stele "$@"
	is "1 stele: $wanted" "$status $err" "stele $*: one message"
}
one_line "cannot open source '$tmp/none': No such file or directory" \
	build "$tmp/none" "$tmp/image"
one_line "empty target" build "$tmp" ""
one_line "empty target" info ""
run stele unmap nosuch
is "1 stele: 'nosuch' is not mapped" "$status $err" "unmap: no such name"

if [ -w /dev/full ]; then
	for words in --help --version 'build --help'; do
		# shellcheck disable=SC2086
		stele $words >/dev/full 2>"$tmp/err"
		is 1 $? "$words: a full disk is a failure"
		ok "$words: says so" grep -q 'No space left' "$tmp/err"
	done
fi
# Descriptors 1 and 2 must not become the target: a tmpfs takes any write.
mkdir "$tmp/source"
victim=$(mktemp -p "$([ -w /dev/shm ] && echo /dev/shm || echo "$tmp")")
cleanup rm -f "$victim"
echo precious >"$victim"
stele build "$tmp/source" "$victim" >&- 2>&-
is "1 precious" "$? $(cat "$victim")" "no message goes to the target"
stele --version 2>"$tmp/err" >&-
is 1 $? "a closed stdout is a failure"

# shellcheck disable=SC2069
run sh -c 'trap "" PIPE; { stele --help; echo $? >&2; } | :'
ok "a closed pipe is a quiet end" test -z "$(tr -d '0-9\n' <<<"$err")"

done_testing
