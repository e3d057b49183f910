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
is "$(stele help)" "$(stele help help)" "help for help, which completion offers"
run stele help nosuch
is 2 "$status" "help of no command"

misuse nosuch
misuse --nosuch
misuse build
misuse build onlysource
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
misuse build --time=1969-12-31 a b
misuse build --time=1970-01-01T00:30+01:00 a b
misuse build --time=2026-11-28T06:45+24:00 a b
misuse build --time=0 a b
misuse build --time=253402300800 a b
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

# wants OPTION VALUE WANTED WORDS...: the message says what the option takes
wants() {
	local option=$1 value=$2 wanted=$3
	shift 3
	misuse "$@" "--$option=$value"
	is "stele: invalid value '$value' for --$option: must be $wanted" \
		"$(head -n 1 <<<"$err")" "stele $1: says what --$option takes"
}

for value in sha '' CRC 'crc '; do
	wants verify "$value" 'none, crc or digest' bench a
done
wants order size 'random, windowed or sequential' bench a
wants arrivals poisson 'random or fixed' bench a
wants accelerator '' 'resnet50, cosmoflow or unet3d' bench a
wants depth 4097 '1 to 4096' bench a
wants depth -1 '1 to 4096' bench a
wants seed 1e3 '0 to 18446744073709551615' bench a
wants time 0 '0.001 to 10000000 seconds' bench a
wants memory 4K 'a size from 64K to 8T, e.g. 64M or 1GiB' bench a
wants accelerators 0 'max, or 1 to 256' bench a
wants prometheus '' '1 to 4096 bytes' bench a
wants svg '' '1 to 4096 bytes' tune a
wants via nbd 'auto, krbd or librbd' map a
wants grace soon 'a duration above 0, e.g. 90 (seconds), 10m, 2h or 7d' gc a
wants grace 0 'a duration above 0, e.g. 90 (seconds), 10m, 2h or 7d' snapshot delete a@b
wants size 1X 'a size from 1 to 4E, e.g. 64M or 1GiB' resize a
wants jobs 1025 '1 to 1024' verify a
wants jobs 1025 '1 to 1024' copy a b
wants prefix ../x "a relative path without '.', '..' or empty names" export a b
wants delete '' '1 to 4000 bytes' snapshot create a@b
wants base '' '1 to 63 bytes' snapshot create a@b
for command in 'build a b' 'append a b@c' 'compact a@b c'; do
	# shellcheck disable=SC2086
	{
		wants order random 'size or source' $command
		wants granule 32 '16, 64, 512 or 4096' $command
		wants boundary 1000 'none, or a power of two from 4K to 2G' $command
		wants jobs 0 '1 to 1024' $command
		wants memory 1000K 'a size from 1M to 4E, e.g. 64M or 1GiB' $command
		wants time noon 'seconds since 1970, at least 1 and before the year 10000, or '\
'a time like 2026-11-21T06:45Z' $command
	}
done
wants object-size 64M 'a power of two from 4K to 32M' build a b
wants label "$(printf '%064d' 0)" '0 to 63 bytes' build a b
misuse copy a b --label=$'a\tb'
ok "copy: says what --label takes" grep -q 'text without control characters' <<<"$err"
wants uuid 12 "32 hexadecimal digits, grouped by '-' as 8-4-4-4-12" copy a b
for command in build append compact copy snapshot; do
	ok "$command --help: a time is above 0" grep -q -- '--time=TIME .* since 1970 (> 0)' \
		< <(stele $command --help)
done
run stele ls --timeout=0 a
is "2 stele: invalid value '0' for --timeout: must be 1 to 86400" "$status $err" \
	"an option of all commands, too"
run stele ls --timeout= a
is "2 stele: --timeout needs a value" "$status $err" "which needs one"
misuse build --label-from=0 a b
misuse build --label-from=both a b

# The command has a list of its own: it must be the library's.
backends=$(sed -n '/ backends\[\] = {/,/^};/s/^\t&\(stele_backend_\)\?\(.*\),/\2/p' \
	lib/device/backends.c | paste -sd , | sed 's/,/, /g')
for words in 'append a b@c' 'bench a' 'build a b' 'compact a@b c' 'copy a b' 'tune a'; do
	for name in nonsense uri 'uring,' threads,iopoll ''; do
		# shellcheck disable=SC2086
		wants backend "$name" "${backends%, *} or ${backends##*, }" $words
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
one_line() { # STATUS WANTED WORDS...: fails with this message and no other
	local code=$1 wanted=$2
	shift 2
	run stele "$@"
	is "$code stele: $wanted" "$status $err" "stele $*: one message"
}
one_line 1 "cannot open source '$tmp/none': No such file or directory" \
	build "$tmp/none" "$tmp/image"
one_line 2 "cannot build '': empty target" build "$tmp" ""
one_line 2 "cannot open '': empty target" info ""
must stele build -q "$tmp" "$tmp/../image.$$"
image=$tmp/../image.$$
cleanup rm -f "$image"
one_line 1 "cannot open '$image@nosuch': no such snapshot (available: v1)" \
	copy "$image@nosuch" "$tmp/copy"
one_line 1 "cannot open '$tmp/none': no such file, device or mapping" \
	copy "$tmp/none" "$tmp/copy"
one_line 1 "cannot find '': no such key
hint: 'stele ls' lists the keys" cat "$image" ""
misuse ls "$image" "$(printf '%04001d' 0)"
for words in "build $tmp $tmp" "copy $image $tmp" "map $tmp" "map /dev/null"; do
	# shellcheck disable=SC2086
	run stele $words
	is 1 "$status" "stele $words: fails"
	ok "stele $words: what it is" grep -q 'neither a block device nor a regular file$' <<<"$err"
done
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
