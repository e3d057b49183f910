#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# singular.t - of one thing no command says that it was several
. "${0%/*}/../tap.sh"

mkdir "$tmp/one"
printf needle >"$tmp/one/key"
image=$tmp/image

# one WANTED WORDS...: succeeds, says WANTED, and no "1 samples"
one() {
	local wanted=$1
	shift
	run stele "$@"
	is 0 "$status" "stele $1: succeeds" || diag "$err"
	ok "stele $1: $wanted" grep -qF "$wanted" <<<"$out" || diag "$out"
	is "" "$(grep -E '(^|[^0-9.,])1 ([a-z]+ )?[a-z]{3,}s\>' <<<"$out$err")" \
		"stele $1: nothing is one and many"
}

one '1 thread,' build --label-from=1 --jobs=1 "$tmp/one" "$image"
one 'in 1 segment,' info "$image"
one '1 sample, ' verify "$image"
one "'v2': 1 sample," snapshot create "$image@v2"
one "'v2', 1 sample," copy "$image@v2" "$tmp/copy"
one '1 of 1 segment,' copy "$image@v2" "$tmp/other"
one '1 sample, 6 bytes,' extract "$image@v2" "$tmp/out"
one '1 sample, 6 bytes,' export "$image@v2" "$tmp/tar"
one '1 sample (1.00' bench --samples=1 --depth=1 --threads=1 "$image@v2"
one 'peak 1 device read ' bench --samples=1 --depth=1 "$image@v2"
one '1 sample in 1 batch of 1,' bench --shuffle --batch=1 "$image@v2"
must stele compact -q "$image@v2" v3
must stele snapshot delete "$image@v1"
must stele snapshot delete "$image@v2"
one ' 1 sample ' gc "$image"

# ---- that is damaged ----

sed -i s/needle/noodle/ "$tmp/copy"
run stele extract "$tmp/copy" "$tmp/bad"
ok "extract: 1 sample failed" grep -q ' 1 sample failed' <<<"$err" || diag "$err"
run stele bench --samples=1 "$tmp/copy"
ok "bench: 1 of 1 sample" grep -q ' 1 of 1 sample of ' <<<"$err" || diag "$err"
ok "bench: failed" grep -q '^failed  *1 sample$' <<<"$out" || diag "$out"

done_testing
