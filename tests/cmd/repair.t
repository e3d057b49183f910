#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# repair.t - superblocks that are behind or damaged, and two that were published at once
. "${0%/*}/../tap.sh"

cd "$tmp" || bail "cd"
mkdir src more other
head -c 100000 /dev/urandom >src/a
head -c 50000 /dev/urandom >more/b
head -c 5000 /dev/urandom >other/c

# copy_block FROM TO OFFSET: 4096 bytes
copy_block() {
	dd if="$1" of="$2" bs=4096 skip=$(($3 / 4096)) seek=$(($3 / 4096)) \
		count=1 conv=notrunc status=none || bail "dd"
}
# Generation 1 lies in the second slot, 2 in the first, 3 in the second.
slot=$((0x1000)) mirror=$((0x100000))

must stele build -q src v1.stele@v1
cp v1.stele v0.stele
must stele snapshot create v1.stele@old >/dev/null
cp v1.stele image.stele
must stele append --quiet more image.stele@v2
run stele repair image.stele
is "0 nothing to repair" "$status $out" "a sound image"
before=$(sha256sum <image.stele)

# ---- a writer that was killed between slot and mirror ----

slot3=$((0x2000)) mirror3=$((0x101000))
cp image.stele behind.stele
copy_block v1.stele behind.stele $mirror3
for target in behind.stele behind.stele@v1 behind.stele@v2; do
	run stele verify "$target"
	is 0 "$status" "$target: a mirror that is behind is no damage" || diag "$out"
	ok "$target: it is noted" grep -q "^note: superblock at $mirror3" <<<"$out"
done
run stele verify --json behind.stele
is "1 0" "$(tail -n 1 <<<"$out" | jq -r '"\(.note_count) \(.damage_count)"')" \
	"counted as a note"
run stele repair -n behind.stele
is "0 1 superblock to be rewritten" "$status $out" "a dry run says so"
for command in "repair" "resize" "snapshot create"; do
	cp behind.stele healed.stele
	target=healed.stele
	[ "$command" != "snapshot create" ] || target+=@third
	# shellcheck disable=SC2086 # words
	must stele $command $target >/dev/null
	run stele verify healed.stele
	is 0 "$status" "$command: sound"
	ok "$command: without a note" test -z "$(grep note: <<<"$out")"
done
must stele repair behind.stele >/dev/null
is "$before" "$(sha256sum <behind.stele)" "a repair makes it what it would have been"

# ---- damaged copies ----

for offset in $slot $slot3 $mirror $mirror3; do
	cp image.stele damaged.stele
	dd if=/dev/zero of=damaged.stele bs=4096 seek=$((offset / 4096)) \
		count=1 conv=notrunc status=none || bail "dd"
	run stele verify -q damaged.stele
	is 3 "$status" "$offset: damage"
	must stele repair damaged.stele >/dev/null
	run stele verify damaged.stele
	is "0 " "$status $(grep -E 'note|damaged' <<<"$out")" "$offset: repaired"
done

# ---- both superblocks of the newest generation ----

# zero IMAGE OFFSET...: a block at each of them
zero() {
	local at

	for at in "${@:2}"; do
		dd if=/dev/zero of="$1" bs=4096 seek=$((at / 4096)) count=1 conv=notrunc \
			status=none || bail "dd"
	done
}
# lose IMAGE SLOT: both its copies
lose() { zero "$1" "$2" $(($2 + 0xff000)); }

# as_before TARGET WHAT: repair puts right what lacks superblocks, and nothing is missing
as_before() {
	run stele snapshot list --json "$1"
	is "0 $(stele snapshot list --json image.stele)" "$status $out" "$2: nothing is missing"
	must stele repair "$1" >/dev/null
	run stele verify "$1"
	is "0 0" "$status $(grep -Ec 'note|damaged' <<<"$out")" "$2: repaired" || diag "$out"
	is "$(stele snapshot list --json image.stele)" "$(stele snapshot list --json "$1")" \
		"$2: and the same"
}

cp image.stele lost.stele
lose lost.stele $slot3
run stele cat lost.stele@v2 a
is "0 $(cat src/a)" "$status $out" "superblocks lost: their witness stands in"
is 2 "$(grep -c "^stele: warning: superblock copy" <<<"$err")" "superblocks lost: with a warning"
run stele verify lost.stele
is "3 2" "$status $(grep -c "stands in, and 'stele repair'" <<<"$out")" \
	"superblocks lost: verify finds it"
run stele repair -n lost.stele
is "0 2 superblocks to be rewritten" "$status $out" "superblocks lost: what repair would do"
cp lost.stele next.stele
must stele append -q other next.stele@v3
run stele verify next.stele@v3
is "0 0" "$status $(grep -Ec 'note|damaged' <<<"$out")" \
	"superblocks lost: any writer puts them right" || diag "$out"
as_before lost.stele "superblocks lost"

cp image.stele both.stele
at=$(od -An -tu8 -j $((slot3 + 0xa0)) -N 8 both.stele)
lose both.stele $slot3
zero both.stele "$at"
as_before both.stele "superblocks and catalog lost"

cp image.stele many.stele
lose many.stele $slot3
zero many.stele $slot
as_before many.stele "three superblocks lost"

# Lost writes, or blocks that somebody has copied back.
cp image.stele outdated.stele
for at in $slot3 $mirror3; do
	copy_block v1.stele outdated.stele "$at"
done
run stele verify outdated.stele
is "0 2" "$status $(grep -c "outdated, left by an interrupted" <<<"$out")" \
	"superblocks outdated: as an interrupted writer leaves them" || diag "$out"
ok "the next change rewrites them, as the note says" \
	grep -q "interrupted writer; the next change rewrites it" <<<"$out"
as_before outdated.stele "superblocks outdated"
cp image.stele outdated.stele
for at in $slot $slot3 $mirror $mirror3; do
	copy_block v0.stele outdated.stele "$at"
done
as_before outdated.stele "all superblocks outdated"

# The witness, too: nothing shows what was there, but that something may have been.
cp image.stele doubt.stele
lose doubt.stele $slot3
zero doubt.stele $((0x180000)) $((0x1ff000))
run stele snapshot list doubt.stele
ok "superblocks and witness lost: a warning" \
	grep -q "generation 3 may have been published, but superblocks and witness" <<<"$err"
run stele append -q other doubt.stele@v3
is 1 "$status" "superblocks and witness lost: nobody writes"
run stele repair doubt.stele
is 1 "$status" "superblocks and witness lost: nothing is repaired unasked"
ok "superblocks and witness lost: but what to do is said" grep -q "^hint: .*--choose" <<<"$err"
before=$(sha256sum <doubt.stele)
run stele repair -n --choose=1 doubt.stele
is "0 2 superblocks to be rewritten $before" \
	"$status $(grep superblock <<<"$out") $(sha256sum <doubt.stele)" \
	"superblocks and witness lost: what the choice would do" || diag "$out"
must stele repair --choose=1 doubt.stele >/dev/null
must stele append -q other doubt.stele@v3
ok "superblocks and witness lost: until it was told to" stele verify -q doubt.stele
must stele build -q src young.stele@v1
lose young.stele $slot3
zero young.stele $((0x180000))
for verb in ls verify repair; do
	run stele $verb young.stele
	is 3 "$status" "nothing but the beginning left: $verb calls it damage" || diag "$err"
	ok "nothing but the beginning left: $verb does not call for a build" \
		not grep -qE "stele build|unfinished" <<<"$err"
done
run stele build -q src young.stele
is 1 "$status" "nothing but the beginning left: nothing is built over it"
ok "nothing but the beginning left: look at it first" \
	grep -q "^hint: 'stele verify'" <<<"$err" || diag "$err"

cp image.stele none.stele
lose none.stele $slot
lose none.stele $slot3
run stele build -q src none.stele@v1
is 1 "$status" "all superblocks lost: nothing is built over it"
cp none.stele newer.stele
as_before none.stele "all superblocks lost"
# Of two witnesses one: there may have been a newer generation.
zero newer.stele $((0x180000))
run stele repair newer.stele
is 1 "$status" "all but a witness lost: there may have been newer ones"
ok "all but a witness lost: and what to do" grep -q "^hint: .*--choose" <<<"$err"
must stele repair --choose=1 newer.stele >/dev/null
ok "all but a witness lost: what it shows is back" stele verify -q newer.stele

must stele build -q src first.stele@v1
lose first.stele $slot3
must stele ls first.stele@v1 >/dev/null
must stele repair first.stele >/dev/null
run stele verify first.stele
is "0 0" "$status $(grep -Ec 'note|damaged' <<<"$out")" \
	"of the only generation: there is nothing to choose"

# ---- a fork ----

cp v1.stele fork.stele
must stele append other fork.stele@v3 --quiet
truncate -s "$(stat -c %s image.stele)" fork.stele
copy_block image.stele fork.stele $mirror3
# v2's catalog lies behind all of v3; their mirrors have the same place.
copy_block image.stele fork.stele "$(od -An -t u8 -j $((slot3 + 0xa0)) -N 8 image.stele)"
run stele snapshot list fork.stele
is 0 "$status" "a fork is listed" || diag "$err"
ok "with what is in common" grep -qw v1 <<<"$out"
ok "but for what is not" test -z "$(grep -wE 'v2|v3' <<<"$out")"
ok "it says what to do" grep -q "stele repair" <<<"$err"
ok "a common snapshot is read" cmp <(stele cat fork.stele@v1 a 2>/dev/null) src/a
for name in v2 v3; do
	run stele ls fork.stele@$name
	is "1 " "$status $out" "$name is refused"
done
for command in "append more fork.stele@v4" "gc fork.stele" "gc --apply --force fork.stele" \
	"resize fork.stele" "snapshot delete fork.stele@v1" \
	"compact fork.stele@v1 new" "repair fork.stele" "repair --choose=3 fork.stele"; do
	before=$(sha256sum <fork.stele)
	# shellcheck disable=SC2086 # words
	run stele $command
	is 1 "$status" "$command: refused"
	is "$before" "$(sha256sum <fork.stele)" "$command: nothing is written"
done
run stele verify -q fork.stele
is 3 "$status" "verify calls it damaged"
run stele repair -n fork.stele
is 1 "$status" "both branches are shown, and one has to be chosen" || diag "$err"
is 2 "$(grep -c "^branch [12]: generation 3" <<<"$out")" "each with its generation"
ok "who chooses a third is told how to see them" grep -q "^hint: 'stele repair -n' shows" <<<"$(
	stele repair --choose=3 fork.stele 2>&1)"
ok "what they have in common" grep -q "^  v1 .*on all branches" <<<"$out"
ok "and what they have not" grep -q "^  v3 .*only here$" <<<"$out"
ok "and what cannot be opened" grep -q "^  v2 .*only here, " <<<"$out"
is 4 "$(stele repair -n --json fork.stele 2>/dev/null |
	jq -r 'select(.common) | .snapshot' | wc -l)" "as JSON, too"
run stele repair -n fork.stele
looked="$status $out $err"
run stele repair fork.stele
is "$status $out $err" "$looked" "who only looks is told what who repairs is"
ok "with what to do next" grep -q "^hint: .*--choose=BRANCH" <<<"$looked" || diag "$looked"
for dry in -n ""; do
	# shellcheck disable=SC2086 # an option or none
	run stele repair $dry --json fork.stele
	is "1 true" "$status $(tail -n 1 <<<"$out" | jq .needs_choice)" "as JSON, $dry: the last"
done
run stele repair -n --choose=2 fork.stele
is 0 "$status" "a choice that could be made" || diag "$err"
must stele repair --choose=1 fork.stele >/dev/null 2>&1
run stele verify fork.stele
is "0 " "$status $(grep -E 'note|damaged' <<<"$out")" "resolved, and sound"
ok "what was chosen is there" cmp <(stele cat fork.stele@v3 c) other/c
run stele ls fork.stele@v2
is 1 "$status" "what was not is gone"
run stele repair fork.stele
is "0 nothing to repair" "$status $out" "once more does nothing"
for words in "" "-n"; do
	# shellcheck disable=SC2086 # one word or none
	run stele repair $words --choose=3 fork.stele
	is "1 " "$status $out" "repair $words --choose: of what is no fork"
	ok "repair $words --choose: says so" grep -q "there is nothing to choose" <<<"$err"
done
must stele append more fork.stele@v4 --quiet
ok "it goes on" stele verify -q fork.stele

# ---- the newest catalog is damaged ----

# field FILE OFFSET: le64
field() {
	od -An -t u8 -j "$2" -N 8 "$1" | tr -d ' '
}
cp image.stele lost.stele
for at in 0xa0 0xd0; do # its mirror, too
	printf damage | dd of=lost.stele bs=1 conv=notrunc status=none \
		seek=$(($(field image.stele $((slot3 + at))) + 200)) || bail "dd"
done
for command in "snapshot list" ls info; do
	target=lost.stele
	[ "$command" != ls ] || target+=@v1
	# shellcheck disable=SC2086 # words
	run stele $command $target
	is 0 "$status" "$command: what is older can be read"
	is 1 "$(wc -l <<<"$err")" "$command: with one line on stderr"
	ok "$command: a warning" \
		grep -q "^stele: warning: generation 3 was published.*missing" <<<"$err"
done
run stele ls lost.stele@v2
ok "v2 is missed with the reason" grep -q "generation 3 was published" <<<"$err"
for command in "append more lost.stele@v4" "snapshot create lost.stele@v4" "resize lost.stele" \
	"gc lost.stele" "gc --apply --force lost.stele" "snapshot delete lost.stele@old" \
	"compact lost.stele@v1 new" "copy image.stele@v2 lost.stele@v4" repair "repair --choose=1" \
	"append -n more lost.stele@v4"; do
	before=$(sha256sum <lost.stele)
	[[ $command != repair* ]] || command+=" lost.stele"
	# shellcheck disable=SC2086 # words
	run stele $command
	ok "$command: refused" test "$status" != 0
	is "$before" "$(sha256sum <lost.stele)" "$command: nothing is written"
	ok "$command: with a reason" grep -qE "generation 3|damaged" <<<"$err"
done
ok "and the next step" \
	grep -q "^hint: 'stele repair'" <<<"$(stele append more lost.stele@v4 2>&1)"
ok "also of repair" grep -q "^hint:.*--choose" <<<"$(stele repair lost.stele 2>&1)"
run stele verify lost.stele
is 3 "$status" "verify calls it damaged"
is 1 "$(grep -c ^damaged <<<"$out")" "once"
ok "and says what" \
	grep -q "^damaged catalog at .*generation 3: .*made in it are missing" <<<"$out"
run stele repair -n lost.stele
is 1 "$status" "what has to be chosen is shown"
ok "branch 1 cannot be chosen" \
	grep -q "^branch 1: generation 3, .*, cannot be chosen: checksum" <<<"$out"
ok "branch 2 can" grep -q "^branch 2: generation 2, .*2 snapshots" <<<"$out"
run stele repair --choose=1 lost.stele
ok "and who tries is told how to see that" grep -q "^hint: 'stele repair -n' shows" <<<"$err"
before=$(sha256sum <lost.stele)
run stele repair -n --choose=2 lost.stele
is "0 1 catalog or witness to be rewritten" "$status $(tail -n 1 <<<"$out")" \
	"what the choice would do"
is "$before" "$(sha256sum <lost.stele)" "nothing is written yet"
is "1 false" "$(stele repair -n --json --choose=2 lost.stele 2>/dev/null | tail -n 1 |
	jq -r '"\(.wrong_catalogs) \(.changed)"')" "the same, as JSON"
run stele repair --choose=2 lost.stele
is "0 1" "$status $(grep -c "generation 3 was published" <<<"$err")" "chosen: it is said once"
ok "and what becomes of the space" grep -q "is not reused yet" <<<"$err"
run stele verify lost.stele
is "0  " "$status $(grep -E 'note|damaged' <<<"$out") $err" "resolved, and sound"
must stele append more lost.stele@v2 --quiet
ok "it goes on" cmp <(stele cat lost.stele@v2 b) more/b

# Interrupted before its superblocks were written, and before its witness was.
cp image.stele halted.stele
copy_block v1.stele halted.stele $slot3
copy_block v1.stele halted.stele $mirror3
run stele snapshot list halted.stele
is "0 $(stele snapshot list image.stele) " "$status $out $err" \
	"a commit that was interrupted behind its witness is there, silently"
run stele verify halted.stele
is "0 2" "$status $(grep -c "^note: superblock .*outdated" <<<"$out")" "but noted by verify"
zero halted.stele $((0x180000))
run stele snapshot list halted.stele
is "0 $(stele snapshot list v1.stele) " "$status $out $err" "one before that is not"
run stele append more halted.stele@v2 --quiet
is "0 " "$status $err" "and is built on"
ok "as if it had not begun" stele verify -q halted.stele

# ---- a mirror of another commit ----

cp image.stele late.stele
copy_block v1.stele late.stele $((0x102000)) # generations 1 and 3 have it there
run stele verify late.stele
is "0 1" "$status $(grep -c "^note.*generation 3: its mirror is one of another commit" <<<"$out")" \
	"a sound mirror of another commit is noted" || diag "$out"
run stele repair -n late.stele
is "0 1 catalog or witness to be rewritten" "$status $out" "repair would write one"
must stele repair late.stele >/dev/null
run stele verify late.stele
is "0 " "$status $(grep -E 'note|damaged' <<<"$out")" "and does"
ok "all is there" cmp <(stele cat late.stele@v2 b) more/b

for words in "" "--choose=0 image.stele" "--choose=7 image.stele" "a b"; do
	# shellcheck disable=SC2086 # words
	run stele repair $words
	is "2 " "$status $out" "repair $words: wrong usage"
done

done_testing
