#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bench-loader.t - stele bench through loaders, with accelerators, and of orders
#
# Nothing here depends on how fast anything is.
. "${0%/*}/../tap.sh"
# shellcheck source=tests/cmd/targets.sh
. tests/cmd/targets.sh

requires jq --version

tree_powers "$tmp/src"
must stele build -q "$tmp/src" "$tmp/image"

bench() { run stele bench --json "$@"; }

# holds WORDS FILTER: the filter is true of the object that was printed
holds() {
	ok "$1" jq -e "$2" "$tmp/.out" || diag "$out" "$err"
}

bench --loader --epochs=1 --batch=3 --threads=2 "$tmp/image"
is "0 " "$status $err" "--loader: succeeds, without a word"
holds "--loader: each sample once" ".samples == $count and .bytes == $sum and
	.padded == 0 and .batches == 6"
holds "--loader: latency is that of batches" '.latency_of | test("batch")'
bench --loader --epochs=1 --batch=5 --threads=2 "$tmp/image"
holds "--loader: the last step is filled" \
	".samples == 20 and .samples - .padded == $count"
bench --loader --samples=10 --batch=1 "$tmp/image"
holds "--loader: so many samples" '.samples == 10'
holds "--loader: what is read ahead is not for these" \
	'.reads_per_sample == 1 and .bytes_per_byte >= 1 and .device_reads >= .pending_reads'
# So long that more than an epoch is read.
for time in 0.2 0.8 3.2 12.8; do
	bench --loader "--time=$time" --stats "$tmp/image"
	! jq -e ".samples > $count" "$tmp/.out" >/dev/null || break
done
holds "--loader: a time" ".samples > $count and .seconds >= $time and
	(.readers | length) == 1 and .readers[0].wait_ns >= 0"

bench --accelerator=cosmoflow --accelerators=2 --samples=10 "$tmp/image"
is "0 " "$status $err" "accelerators: succeed, without a word"
holds "accelerators: take a step for each batch" '
	.samples == 10 and (.accelerators.steps | add) == 10 and
	.accelerators.count == 2 and .accelerators.gpu == "h100"'
holds "accelerators: compute as long as the model says" '
	.accelerators.compute_seconds == 0.0035 and .seconds >= 5 * 0.0035'
holds "accelerators: are busy at most all the time" '.accelerators |
	.utilisation > 0 and .utilisation <= 1 and .met == (.utilisation >= 0.7)'
holds "accelerators: the image is not like the model" '.accelerators.resembles == false'
bench --accelerator=cosmoflow --gpu=a100 --samples=2 "$tmp/image"
holds "accelerators: of another kind" '.accelerators |
	.count == 1 and .compute_seconds == 0.00551'
bench --accelerator=cosmoflow --accelerators=max --time=0.05 "$tmp/image"
holds "accelerators: a search ends" '.accelerators |
	if .most > 0 then .met and .count == .most else .count == 1 end'
run stele bench --accelerator=cosmoflow --samples=2 "$tmp/image"
ok "accelerators: for people" grep -q '^busy .* 1 emulated h100, cosmoflow' <<<"$out" ||
	diag "$out"
ok "accelerators: no result is claimed" grep -q "no result of .*MLPerf" <<<"$out"
ok "accelerators: sizes that are not like the model's are told" \
	grep -q "not like those of cosmoflow" <<<"$out"
mkdir "$tmp/large"
for ((i = 0; i < 4; i++)); do
	head -c 2800000 /dev/urandom >"$tmp/large/$i"
done
must stele build -q "$tmp/large" "$tmp/like"
bench --accelerator=cosmoflow --samples=2 "$tmp/like"
holds "accelerators: the image is like the model" .accelerators.resembles
run stele bench --accelerator=unet3d --memory=8T "$tmp/image"
is "1 " "$status $out" "accelerators: more memory than there is"
ok "accelerators: which is told" grep -q -- --memory <<<"$err" || diag "$err"

# Damage is left out and counted.
at=$(perl -0777 -ne 'open my $f, "<", $ARGV[0]; local $/; print index(<$f>, $_); last' \
	"$tmp/src/12" "$tmp/image")
cp "$tmp/image" "$tmp/bad"
printf '\0\0\0\0\0\0\0\0' | dd of="$tmp/bad" bs=1 seek="$at" conv=notrunc status=none
bench --loader --epochs=2 --batch=6 "$tmp/bad"
is 3 "$status" "damage: status 3" || diag "$err"
holds "damage: counted, the rest delivered" \
	".failed == 2 and .samples == 2 * $count and .bytes == 2 * ($sum - 4096)"
ok "damage: says how many" grep -q "^stele: 2 of 36 samples" <<<"$err" || diag "$err"

bench --loader --epochs=1 --batch=6 --prometheus="$tmp/metrics" "$tmp/image"
ok "--prometheus: samples and device reads took time" test "$(grep -cE \
	'^stele_reader_(sample|device_read)_seconds_sum\{.*\} .*[1-9]' "$tmp/metrics")" = 2
bench --shuffle --batch=6 "$tmp/image"
is "0 " "$status $err" "--shuffle: succeeds, without a word"
holds "--shuffle: beside a full one, which it is" \
	'.shuffle.order == .shuffle.full and .order == "random" and .shuffle.batch_size == 6'
bench --shuffle --batch=6 --order=sequential "$tmp/image"
holds "--shuffle: in stored order sizes go together" \
	'.shuffle.order.size_correlation > .shuffle.full.size_correlation'
run stele bench --shuffle --order=windowed "$tmp/image"
is "0 " "$status $err" "--shuffle: for people"
ok "--shuffle: says of what" grep -q "^order  *windowed" <<<"$out"

for words in '--loader --rate=1 a' '--loader --sync a' '--loader --check-threads=1 a' \
	'--accelerator=gpt a' '--accelerators=2 a' '--gpu=v100 --accelerator=unet3d a' \
	'--accelerator=unet3d --batch=2 a' '--accelerator=unet3d --threads=2 a' \
	'--accelerator=unet3d --accelerators=257 a' '--shuffle --rate=3 a' \
	'--accelerator=none a' '--accelerator= a' '--gpu=h100 a' '--shuffle --loader a' \
	'--shuffle --threads=2 a' '--shuffle --prometheus=b a'; do
	# shellcheck disable=SC2086
	run stele bench $words
	is "2 " "$status $out" "bench $words: wrong usage"
	ok "bench $words: points to help" grep -qe --help <<<"$err"
done

done_testing
