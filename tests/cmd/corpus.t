#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# corpus.t - the fuzzers' corpus is what seed.c makes of the format as it is now
. "${0%/*}/../tap.sh"

mkdir -p "$tmp/tests/fuzz/corpus"
seed=$(realpath "$BUILD/tests/fuzz/seed")
ok "seed writes it" sh -c 'cd "$1" && "$2"' sh "$tmp" "$seed"
run diff -rq tests/fuzz/corpus "$tmp/tests/fuzz/corpus"
is "0 " "$status $out" "as it is kept (else: make corpus)"
done_testing
