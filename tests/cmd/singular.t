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

# ---- sources that are ----

# cut WANTED [OPTION...] FILE: is refused in these words
cut() {
	local wanted=$1
	shift
	rm -f "$tmp/none"
	run stele build "$@" "$tmp/none"
	is 1 "$status" "$wanted: refused"
	ok "$wanted: said" grep -q "at byte [0-9]*: .*$wanted$" <<<"$err" || diag "$err"
}

printf 'a,b\n1\n' >"$tmp/x.csv"
cut 'a row of 1 column: the header has 2' "$tmp/x.csv"
printf x >"$tmp/x"
cut '1 byte, too few for a record' --from=tfrecord "$tmp/x"
cut '1 byte, too few for a record' --from=recordio "$tmp/x"
must tar -C "$tmp" -cf "$tmp/x.tar" x
truncate -s 512 "$tmp/x.tar"
cut 'it has 1 byte, and not all is there' "$tmp/x.tar"
printf '\x93NUMPY\1\0\x76\0%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }" \
	>"$tmp/x.npy"
cut "'data' is cut short: it has 1 row" "$tmp/x.npy"

done_testing
