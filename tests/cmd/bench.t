#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bench.t - what stele bench counts is what it was asked to read
#
# Nothing here depends on how fast anything is. Sizes of samples are powers of two:
# as many samples as there are, with all sizes' sum, are each sample once.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version

tree_powers "$tmp/src"

bench() { run stele bench --json "$@"; }

# holds WORDS FILTER: the filter is true of the object that was printed last
holds() {
	ok "$1" jq -es "last | ($2)" "$tmp/.out" || diag "$out" "$err"
}

look() { # TARGET WORDS
	must stele build -q "$tmp/src" "$1"
	for order in random windowed sequential; do
		bench --epochs=1 "--order=$order" --threads=3 "$1"
		is "0  $count $sum" "$status $err $(jq -r '"\(.samples) \(.bytes)"' <<<"$out")" \
			"$2, $order: each sample once"
	done
	holds "$2: one read for each sample" \
		'.reads_per_sample == 1 and .device_reads == .samples'
	holds "$2: bytes are those of whole blocks" '.bytes_per_byte >= 1'
	case $1 in
	/dev/*) holds "$2: the device counted as much" "
		.devices[0].name == \"${1##*/}\" and
		.devices[0].bytes >= .device_bytes and .devices[0].reads > 0" ;;
	*) holds "$2: devices are told where there are any" '.devices | type == "array"' ;;
	esac
	bench --rate=20000 --samples=40 "$1"
	is "0 40" "$status $(jq .samples <<<"$out")" "$2: an open loop" || diag "$err"
	bench --samples=101 --depth=2 "$1"
	is "0 101" "$status $(jq .samples <<<"$out")" "$2: so many samples" || diag "$err"
	for verify in none crc digest; do
		bench --epochs=2 "--verify=$verify" --batch=5 --sync "$1"
		is "0 $((2 * count)) $((2 * sum))" \
			"$status $(jq -r '"\(.samples) \(.bytes)"' <<<"$out")" \
			"$2, $verify: batch after batch" || diag "$err"
	done
	holds "$2, digest: what is read for digests counts" '.check_reads >= 1 and
		.device_reads == .samples + .check_reads and
		.check_bytes == 4096 * .check_reads'
	[[ $1 != /dev/* ]] || holds "$2, digest: the device counted as much" \
		'.devices[0].bytes >= .device_bytes'
}
each_target look 64M

must stele build -q "$tmp/src" "$tmp/image"

# timed FILTER OPTION...: so long that the filter is true, for a time is all that is asked
timed() {
	local filter=$1
	shift
	for time in 0.2 0.8 3.2 12.8; do
		bench "--time=$time" "$@"
		! jq -es "$filter" "$tmp/.out" >/dev/null || return 0
	done
}
timed ".[-1].samples > $count" --threads=2 "$tmp/image"
is "0 " "$status $err" "a time: succeeds, without a word"
holds "a time: epochs follow each other" ".samples > $count and .seconds >= $time"
holds "a time: figures agree with each other" '
	def near($a; $b): ($a - $b | fabs) <= 1e-5 * $b;
	near(.samples_per_second * .seconds; .samples) and
	near(.bytes_per_second * .seconds; .bytes) and
	near(.epochs * .snapshot.samples; .samples) and
	near(.bytes_per_byte * .bytes; .device_bytes) and
	.failed == 0 and .interrupted == false'
holds "a time: processors had work" '.cpu.user_seconds + .cpu.system_seconds > 0'
holds "a time: begins with steps that add up" '.start_seconds |
	.first_sample <= .first_batch and .load > 0 and .open > 0 and .readers > 0 and
	((.load + .open + .readers + .first_batch - .total) | fabs) < 5e-6'

bench --epochs=3 --threads=2 --stats "$tmp/image"
holds "--stats: readers add up" '(.readers | length) == 2 and
	([.readers[].samples] | add) == .samples and
	([.readers[].device_reads] | add) == .device_reads and
	([.readers[].check_reads] | add) == .check_reads and
	([.readers[].bytes] | add) == .bytes'

bench --samples=7 --batch=4 --interval=0.01 "$tmp/image"
is 0 "$status" "--interval"
holds "--interval: the last line is the whole" '.samples == 7'
timed 'length >= 2' --interval=0.1 "$tmp/image"
ok "--interval: lines before it" test "$(wc -l <"$tmp/.out")" -ge 2
ok "--interval: of figures" jq -es \
	'.[0] | .time > 0 and .samples_per_second > 0 and .bytes_per_second > 0' "$tmp/.out"

# An open loop begins what is due, and tells what it did not get to.
bench --rate=1000 --arrivals=fixed --samples=50 "$tmp/image"
is "0 50" "$status $(jq .samples <<<"$out")" "--rate: all samples" || diag "$err"
holds "--rate: not before they are due" '.seconds >= 0.049'
bench --rate=10000000 --arrivals=fixed --time=.1 "$tmp/image"
holds "--rate: too high, and none is forgotten" \
	'.samples + .unstarted >= 1000000 and .latency_ns.max >= 1000000'
# All are due within 2 ms, and come one by one: the last has waited for all others.
bench --rate=1000000 --arrivals=fixed --samples=2000 --depth=1 "$tmp/image"
holds "--rate: latency counts from when a sample was due" \
	'.samples == 2000 and .latency_ns.max / 1e9 >= (.seconds - 0.002) / 2'
bench --rate=1000 --time=0.1 --seed=3 --threads=2 "$tmp/image"
is 0 "$status" "--rate: at random"

run stele bench --epochs=2 "$tmp/image"
is "0 " "$status $err" "for people: succeeds"
for word in target snapshot read took rate bytes cpu reads depth path start; do
	ok "for people: has '$word'" grep -q "^$word  " <<<"$out"
done
ok "for people: says how many" grep -q "36 samples (2.00 epochs)" <<<"$out" ||
	diag "$out"

# An interrupt ends it early, with figures. It comes when the first line is there.
rm "$tmp/.out"
env --default-signal=INT stele bench --json --time=1000 --interval=0.1 "$tmp/image" \
	>"$tmp/.out" 2>"$tmp/.err" &
pid=$!
until [ -s "$tmp/.out" ]; do
	kill -0 $pid || bail "it ended: $(<"$tmp/.err")"
	sleep 0.05
done
kill -INT $pid
wait $pid
is 0 $? "interrupted: succeeds"
holds "interrupted: says so, and what there is" '.interrupted and .samples > 0'

bench --epochs=2 --prometheus="$tmp/metrics" "$tmp/image"
is 0 "$status" "--prometheus" || diag "$err"
is "stele_reader_samples_total 36" \
	"$(sed -n 's/{.*}//; /^stele_reader_samples_total /p' "$tmp/metrics")" \
	"--prometheus: counts"
is "" "$(grep -vE '^(# (HELP|TYPE) .+|[a-z_]+(\{[^}]*\})? [0-9.e+-]+)$' "$tmp/metrics")" \
	"--prometheus: each line is as the format wants it"
odd=$tmp/$'\377\\odd"'
cp "$tmp/image" "$odd"
bench --epochs=1 --prometheus="$tmp/metrics" "$odd"
ok "--prometheus: is UTF-8, whatever the target is called" \
	iconv -f UTF-8 -t UTF-8 "$tmp/metrics" -o /dev/null
ok "--prometheus: and escaped" \
	grep -qF "$(printf 'target="%s/\xef\xbf\xbd\\\\odd\\""' "$tmp")" "$tmp/metrics"
rm "$odd"
bench --epochs=2 --prometheus="$tmp/metrics" "$tmp/image"
is "$(basename "$tmp/metrics")" "$(cd "$tmp" && echo metrics*)" \
	"--prometheus: nothing is left beside it"
run stele bench --epochs=1 --prometheus="$tmp/none/metrics" "$tmp/image"
is "1 " "$status $out" "--prometheus: a file that cannot be written: nothing is read"
ok "--prometheus: is named" grep -qF \
	"cannot create '$tmp/none/metrics': no directory '$tmp/none'" <<<"$err" || diag "$err"
echo mine >"$tmp/mine"
for option in --prometheus --iolog; do
	run stele bench --epochs=1 "$option=$tmp/mine" "$tmp/image"
	is "1 mine" "$status $(<"$tmp/mine")$out" "$option: what holds something else stays"
done
run stele bench --epochs=1 --prometheus="$tmp/src" "$tmp/image"
is "1 " "$status $out" "--prometheus: nor is there one of a directory"
run stele bench --epochs=1 --prometheus=/dev/full "$tmp/image"
is 1 "$status" "--prometheus: a full disk"
ok "--prometheus: is told" grep -qxF \
	"stele: cannot write '/dev/full': No space left on device" <<<"$err" || diag "$err"
ok "--prometheus: device reads took time" \
	grep -q '^stele_reader_device_read_seconds_sum{.*} .*[1-9]' "$tmp/metrics" ||
	diag "$(grep device_read "$tmp/metrics")"
bench --rate=1000000 --arrivals=fixed --samples=200 --depth=1 --threads=2 --stats \
	--prometheus="$tmp/metrics" "$tmp/image"
is "$(jq '[.readers[].latency_ns.max] | max' "$tmp/.out")" \
	"$(awk '/_sample_seconds{.*quantile="1"}/ { printf "%.0f", $2 * 1e9 }' "$tmp/metrics")" \
	"--prometheus: an open loop's samples took what readers say, from submit to collect"

# The log of fio's has the reads that were counted, and fio replays just these.
# Each line: time, file, action; of reads also offset and length.
told='"\(.device_reads - .check_reads) \(.device_bytes - .check_bytes)"'
iolog() { # FILE
	is "fio version 3 iolog;0 $1 add;0 $1 open;close" \
		"$(sed -n '1,3p; $s/.* //p' "$tmp/iolog" | paste -sd';')" \
		"--iolog: version 3, the file is opened and closed"
	is "$(jq -r "$told" "$tmp/.out")" \
		"$(awk '$3 == "read" { n++; bytes += $5 } END { print n, bytes }' "$tmp/iolog")" \
		"--iolog: each read, with its length"
	ok "--iolog: whole blocks within the file, in order of time" \
		awk -v "size=$(stat -c %s "$1")" '$3 != "read" { next }
		$4 % 512 || $5 % 512 || $4 + $5 > size || $1 < last { exit 1 }
		{ last = $1 }' "$tmp/iolog"
	must fio --name=replay --read_iolog="$tmp/iolog" --replay_no_stall=1 \
		--ioengine=io_uring --direct=1 --fixedbufs=1 --nonvectored=1 \
		--output-format=json --output="$tmp/fio"
	is "0 $(jq -r "$told" "$tmp/.out")" \
		"$(jq -r '.jobs[0] | [.error, .read.total_ios, .read.io_bytes] | join(" ")' \
			"$tmp/fio")" \
		"--iolog: fio replays as much"
}
bench --epochs=2 --iolog="$tmp/iolog" "$tmp/image"
iolog "$(realpath "$tmp/image")"
bench --epochs=5 --threads=3 --verify=digest --iolog="$tmp/iolog" "$tmp/image"
iolog "$(realpath "$tmp/image")"
ok "--iolog: in five epochs from each place as often" \
	awk '$3 == "read" { n[$4]++ } END { for (i in n) if (n[i] % 5) exit 1 }' "$tmp/iolog"
must cp "$tmp/image" "$tmp/an image"
run stele bench --epochs=1 --iolog="$tmp/iolog" "$tmp/an image"
is "1 " "$status $out" "--iolog: a name that fio cannot take: nothing is read"
ok "--iolog: and why" grep -q "'$tmp/an image' is no name for fio" <<<"$err" || diag "$err"
run stele bench --epochs=1 --iolog="$tmp/none/iolog" "$tmp/image"
is "1 " "$status $out" "--iolog: a file that cannot be written: nothing is read"
mv "$tmp/metrics" "$tmp/linked"
ln -s linked "$tmp/metrics"
ln -s unlinked "$tmp/dangling"
run stele bench --epochs=1 --prometheus="$tmp/dangling" "$tmp/image"
ok "--prometheus: a link may lead to what is not there yet" test -s "$tmp/unlinked"
run stele bench --epochs=1 --prometheus="$tmp/metrics" "$tmp/image"
ok "--prometheus: a link stays one, as /dev/stdout is" test -L "$tmp/metrics"
ok "--prometheus: and is followed" grep -q '_samples_total{.*} 18$' "$tmp/linked"

bench --seed=18446744073709551615 --samples=1 "$tmp/image"
ok "a number of 64 bits has no sign" \
	grep -qE '"seed":18446744073709551615[,}]' "$tmp/.out"

# Nothing is said of what did not come.
run stele bench --rate=1 --seed=4795 --time=0.05 "$tmp/image"
is "0 0 samples (0.00 epochs)" "$status $(sed -n 's/^took .* s, //p' <<<"$out")" \
	"no sample: none was due" || diag "$out"
ok "no sample: no cache is blamed" grep -q '^cold  *not known' <<<"$out" || diag "$out"
ok "no sample: nor a first one told" not grep -q '^start' <<<"$out"
run stele bench --samples=3 --batch=5 "$tmp/image"
ok "no batch: a first sample" grep -q '^start .* to the first sample: ' <<<"$out" ||
	diag "$out"

# Damage is counted.
at=$(perl -0777 -ne 'open my $f, "<", $ARGV[0]; local $/; print index(<$f>, $_); last' \
	"$tmp/src/12" "$tmp/image")
cp "$tmp/image" "$tmp/bad"
printf '\0\0\0\0\0\0\0\0' | dd of="$tmp/bad" bs=1 seek="$at" conv=notrunc status=none
bench --epochs=4 "$tmp/bad"
is 3 "$status" "damage: status 3"
holds "damage: counted, the rest delivered" \
	".failed == 4 and .samples == 4 * $count and .bytes == 4 * ($sum - 4096)"
id=$(stele ls -l "$tmp/bad" 12 | awk '$NF == "12" { print $1 }')
ok "damage: says which" grep -q "^stele: 4 of 72 samples.*, the first sample #$id '12': " \
	<<<"$err" || diag "$err"
bench --epochs=100 "$tmp/bad"
ok "damage: does not say so a hundred times" test "$(wc -l <<<"$err")" -lt 20
bench --epochs=1 --verify=none "$tmp/bad"
is 0 "$status" "damage: not looked for"

mkdir "$tmp/nothing"
must stele build -q --allow-empty "$tmp/nothing" "$tmp/empty"
run stele bench "$tmp/empty"
is "1 stele: cannot bench '$tmp/empty': it has no samples" "$status $err" \
	"no samples"
run stele bench "$tmp/none"
is "1 " "$status $out" "no such target"
is 1 "$(grep -cF "$tmp/none" <<<"$err")" "no such target: said once, by name"

for words in '' 'a b' '--rate=0 a' '--threads=0 a' '--threads=257 a' \
	'--depth=4097 a' '--batch=0 a' '--time=0 a' '--time=1. a' '--time=-1 a' \
	'--order=best a' '--verify=maybe a' '--memory=1 a' '--samples=0 a' \
	'--samples=1 --epochs=1 a' '--rate=1 --batch=2 a' '--rate=1 --sync a' \
	'--arrivals=fixed a' '--arrivals=random a' '--block-size=2 a' \
	'--order=windowed --block-size=4294967295 a' '--prometheus= a' '--iolog= a' \
	'--loader --iolog=x a' \
	'--epochs=99999999999999999999 a'; do
	# shellcheck disable=SC2086
	run stele bench $words
	is "2 " "$status $out" "bench $words: wrong usage"
	ok "bench $words: points to help" grep -qe --help <<<"$err"
done
run stele bench --epochs=4611686018427387904 "$tmp/image"
is "1 " "$status $out" "more epochs than can be counted"

done_testing
