#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# copy-deleted.t - what is deleted in all snapshots of the target is checked before one has it
. "${0%/*}/../tap.sh"

requires jq --version

# Samples of 5000 bytes, and one that is larger than a unit of a copy.
mkdir "$tmp/s"
for i in 0 1 2 3 4 5; do
	head -c 5000 /dev/urandom >"$tmp/s/f$i"
done
head -c 5M /dev/urandom >"$tmp/s/large"
must stele build -q "$tmp/s" "$tmp/q@all"
must stele snapshot create --base=all -d f1 "$tmp/q@less"
must stele snapshot create --base=less -d f2 -d large "$tmp/q@least"

# flip IMAGE FILE: one bit of that sample
flip() {
	perl -e 'local $/; open F, "+<", shift; my $all = <F>; open G, "<", shift;
		my $at = index $all, substr <G>, 4200, 64; $at >= 0 or die;
		seek F, $at, 0; print F chr(1 ^ ord substr $all, $at, 1)' "$1" "$2"
}

# copied NAME WORDS: it is, and what is there is used as it is
copied() {
	run stele copy --json "$tmp/q@$1" "$tmp/t"
	is "0 0 " "$status $(jq .sent_size <<<"$out") $err" "$2: copied, without a byte"
	is "" "$(stele diff "$tmp/q@$1" "$tmp/t@$1" 2>&1)" "$2: the same"
}

# refused NAME KEY WORDS USERS: that sample is damaged; these of the target use its segment
refused() {
	run stele copy -n "$tmp/q@$1" "$tmp/t"
	is 3 "$status" "$3: a dry run is refused"
	run stele copy "$tmp/q@$1" "$tmp/t"
	is 3 "$status" "$3: the copy is refused"
	ok "$3: by the sample's name" grep -qF "sample '$2' is damaged on the target, whose \
snapshots have it deleted: delete those that use its segment ($4), free it with gc, and copy \
again" <<<"$err" || diag "$err"
	ok "$3: it is not there" not grep -qx "$1" <<<"$(stele snapshot list --json "$tmp/t" |
		jq -r .name)"
}

must stele copy -q "$tmp/q@least" "$tmp/t"
copied all "intact"
ok "the same" cmp "$tmp/s/f1" <(stele cat "$tmp/t@all" f1)

for key in f1 f2 large; do
	rm "$tmp/t"
	must stele copy -q "$tmp/q@least" "$tmp/t"
	flip "$tmp/t" "$tmp/s/$key"
	refused all $key "$key" "'least'"
	if [ $key = f1 ]; then
		copied less "$key, deleted there, too"
	else
		refused less $key "$key, with less" "'least'"
	fi
done

# What it says leads on.
must stele snapshot delete -f "$tmp/t@least"
run stele copy "$tmp/q@all" "$tmp/t"
is 3 "$status" "deleted, and to be undeleted: refused"
ok "deleted: which is said" grep -qF "segment ('least' (deleted))" <<<"$err" || diag "$err"
must stele gc --apply -f "$tmp/t"
run stele copy "$tmp/q@all" "$tmp/t"
is "0 " "$status $err" "then freed: copied"
ok "sound" stele verify -q "$tmp/t"
copied least "the one that was deleted"

# One snapshot has it: that it is damaged is that one's.
rm "$tmp/t"
must stele copy -q "$tmp/q@least" "$tmp/t"
must stele copy -q "$tmp/q@less" "$tmp/t"
flip "$tmp/t" "$tmp/s/f2"
run stele copy "$tmp/q@all" "$tmp/t"
is 0 "$status" "what a snapshot has is not read again" || diag "$err"
rm "$tmp/t"
must stele copy -q "$tmp/q@least" "$tmp/t"
must stele copy -q "$tmp/q@less" "$tmp/t"
flip "$tmp/t" "$tmp/s/f1"
refused all f1 "what neither of two has" "'least', 'less'"

done_testing
