#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# overwrite.t - a transaction that overwrites by force does so when nothing speaks against it
#
# A key that comes twice, samples that there is no room for, a program that ends before it
# commits: none of these costs the image that the target holds.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

SIZE=64M
program=$BUILD/tests/cmd/txn-overwrite
mkdir "$tmp/src"
echo old >"$tmp/src/old"

# overwrites TARGET STEP... : from an image that is there
overwrites() { must stele build -qf --label=old "$tmp/src" "$1" && run "$program" "$@"; }

# keeps RESULT TARGET STEP...: that is what the last step says; the old image is as it was
keeps() {
	local wanted=$1
	shift
	overwrites "$@"
	is "$wanted" "${out##*$'\n'}" "$*: $wanted"
	is "0 old" "$status $(stele cat "$1" old 2>&1)" "the old image is there" || diag "$err"
	ok "and nothing is said to be lost" not grep -q lost <<<"$err" || diag "$err"
	run stele verify "$1"
	is 0 "$status" "and is sound" || diag "$out" "$err"
}

has() { # TARGET LABEL SAMPLES
	is "$2 $3" "$(stele info --json "$1" | jq -r '"\(.image.label) \(.snapshot.samples)"')" \
		"it holds '$2'"
}

overwritten() { # TARGET WORDS
	local target=$1
	diag "$2"
	keeps one "$target" one
	keeps posix "$target" one posix
	keeps "flush: EEXIST" "$target" one twice flush
	[[ $target != /dev/* ]] || keeps "flush: ENOSPC" "$target" large flush

	overwrites "$target" one flush
	if [[ $target == *.stele ]]; then
		has "$target" old 1
	else
		ok "what was lost is said" grep -qF "has lost the image that it held: 'old': 'v1'" \
			<<<"$err" || diag "$err"
		run stele info "$target"
		is 1 "$status" "flushed, and not committed"
		ok "it is unfinished" grep -q "unfinished image" <<<"$err" || diag "$err"
	fi

	overwrites "$target" one posix commit
	is $'0 one\nposix\ncommit' "$status $out" "committed" || diag "$err"
	has "$target" new 1
	is true "$(stele info --json "$target" | jq .image.tree_mountable)" "and a filesystem"
	run stele verify "$target"
	is 0 "$status" "and sound" || diag "$out" "$err"
	if [[ $target == rbd:* ]]; then
		is v1 "$(on_ceph rbd snap ls --format json "$rbd_image" | jq -r '.[].name')" \
			"its RBD snapshot is that of the new one"
	fi
	overwrites "$target" one flush twice commit
	is $'one\nflush\ntwice\ncommit: EEXIST' "$out" "a key comes twice after a flush"
}

requires jq --version
each_target overwritten "$SIZE"

# ---- an empty device stays empty ----

if [ "$(id -u)" = 0 ]; then
	loop_new "$SIZE"
	before=$(sha256sum <"$loop_file")
	run "$program" "$loop" one
	is "$before" "$(sha256sum <"$loop_file")" "nothing was written before the commit"
	run env TMPDIR=/nonexistent "$program" "$loop" one commit
	is $'0 one\ncommit' "$status $out" "no temporary file is needed" || diag "$err"

	# Room for the samples, and not for the tree of files.
	must "$program" "$tmp/fits.stele" one commit
	loop_new "$(stat -c %s "$tmp/fits.stele")"
	run "$program" "$loop" one posix commit
	is $'0 one\nposix\ncommit: ENOSPC' "$status $out" "no room for the tree"
	ok "how much is said" grep -qE "needed, and up to [0-9]+ for catalogs; the largest free \
piece has [0-9]+; take a larger target" <<<"$err" || diag "$err"
	ok "is said" grep -q "is built, but cannot be mounted" <<<"$err" || diag "$err"
	has "$loop" new 1
else
	skip_block 1 "needs root"
fi

done_testing
