#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# undelete.t - a deleted snapshot is out of sight, and comes back until gc has freed it
. "${0%/*}/../tap.sh"
# shellcheck source=tests/cmd/targets.sh
. tests/cmd/targets.sh

top=$PWD
reader=$top/tests/cmd/reader.pl
cd "$tmp" || bail "cd"
mkdir -p one two
for i in 1 2 3; do
	head -c "$((i * 30000))" /dev/urandom >"one/a$i"
	head -c "$((i * 50000))" /dev/urandom >"two/b$i"
done

list() { stele snapshot list --json "$@"; }
feature() { stele info --json "$1" | jq '.image.feature_incompat / 8 % 2 | floor'; }
unused() { stele du --json "$1" | tail -n 1 | jq .unused_size; }

# undelete TARGET WORDS: one kind of target
undelete() {
	local target=$1 words=$2 force whole sound
	force=$(force_on "$target")
	must stele build -q --time 1000 one "$target@v1"
	must stele append -q --time 2000 --note "a note" two "$target@v2"
	whole=$(list "$target")
	sound=$(stele ls --json "$target@v2")
	is "0 0" "$(feature "$target") $(unused "$target")" "$words: nothing is deleted"
	# shellcheck disable=SC2086 # one word or none
	must stele snapshot delete $force "$target@v2"
	is "v1" "$(list "$target" | jq -r .name)" "$words: it is not listed"
	is "v1" "$(list "$target" | jq -r .name)" "$words: the newest is another one"
	is "3" "$(stele ls "$target" | wc -l)" "$words: the only one needs no name"
	run list --deleted "$target"
	is "v2 6 a note true" "$(jq -r '[.name, .samples, .note,
		.deleted_time > 1700000000] | join(" ")' <<<"$out")" \
		"$words: it is among the deleted ones"
	ok "$words: as a table" grep -qE '^NAME .* DELETED ' \
		<<<"$(stele snapshot list --deleted "$target")"
	is 1 "$(feature "$target")" "$words: old readers are kept out"
	ok "$words: its own segment is unused" test "$(unused "$target")" -gt 300000
	ok "$words: sound" stele verify -q "$target"
	fails 1 "no such snapshot" stele ls "$target@nope"
	must stele snapshot undelete -n "$target@v2"
	is "v1" "$(list "$target" | jq -r .name)" "$words: -n writes nothing"
	must stele snapshot undelete "$target@v2"
	is "$whole" "$(list "$target")" "$words: all about it is as it was"
	is "$sound" "$(stele ls --json "$target@v2")" "$words: its samples are"
	is "" "$(list --deleted "$target")" "$words: it is deleted no more"
	is "0 0" "$(feature "$target") $(unused "$target")" "$words: nor is anything unused"
	must stele extract -q "$target@v2" out
	ok "$words: byte for byte" diff <(cat one/* two/*) <(cat out/*)
	rm -r out
	ok "$words: sound again" stele verify -q "$target"

	# shellcheck disable=SC2086 # one word or none
	must stele snapshot delete $force "$target@v2"
	must stele gc --apply --grace 1h "$target"
	must stele snapshot undelete --as back "$target@v2"
	is "v1 back" "$(list "$target" | jq -r .name | xargs)" "$words: gc with grace leaves it"
	# shellcheck disable=SC2086 # one word or none
	must stele snapshot delete $force "$target@back"
	must stele gc --apply --force "$target"
	fails 1 "no deleted snapshot has this name, or gc freed it" \
		stele snapshot undelete "$target@back"
	is "0 0" "$(feature "$target") $(unused "$target")" "$words: gc has freed it"
	must stele snapshot delete --force "$target@v1"
	is "" "$(list "$target")" "$words: not even the last one is left"
	must stele snapshot undelete "$target@v1"
	ok "$words: the last one is back" stele ls "$target@v1"
	fails 1 "it is there, and is not deleted" stele snapshot undelete "$target@v1"
}
each_target undelete 16M

# ---- names ----

image=image.stele
must stele build -q one "$image@v1"
must stele append -q two "$image@v2"
digest=$(list "$image" | tail -n 1 | jq -r .digest)
run stele snapshot delete -n "$image@v2"
is "0 " "$status $err" "a dry run brings nothing back"
run stele snapshot delete "$image@v2"
is "0 hint: until gc has freed it, 'stele snapshot undelete $image@v2' brings it back" \
	"$status $err" "who deletes it gets a hint"
run stele ls "$image@v2"
ok "who looks for it gets a hint" \
	grep -qF "it was deleted; 'stele snapshot undelete $image@v2' brings it back" <<<"$err"
must stele snapshot create -d a1 "$image@v2"
fails 1 "there is a snapshot 'v2' already" stele snapshot undelete "$image@v2"
ok "another name is the remedy" grep -qF -- "--as=NAME" <<<"$err"
fails 1 "there is a snapshot 'v1' already" stele snapshot undelete --as v1 "$image@v2"
is "hint: --as=NAME gives it a name that no snapshot has" "$(tail -n 1 <<<"$err")" \
	"of which one may be given already"
fails 2 "invalid snapshot name" stele snapshot undelete --as a/b "$image@v2"
must stele snapshot undelete --as old "$image@v2"
is "$digest" "$(list "$image" | jq -r 'select(.name == "old").digest')" "by another name"
is "v1 old v2" "$(list "$image" | jq -r .name | xargs)" "where it was"
# Two of one name: the one that was deleted last comes back first.
must stele snapshot delete "$image@v2"
must stele snapshot rename "$image@old" v2
must stele snapshot delete --time "$(date -d tomorrow +%s)" "$image@v2"
must stele snapshot undelete "$image@v2"
is "$digest" "$(list "$image" | tail -n 1 | jq -r .digest)" "the one that was deleted last"
must stele snapshot undelete --as other "$image@v2"
is "v1 v2 other" "$(list "$image" | jq -r .name | xargs)" "then the other one"
fails 1 "no deleted snapshot" stele snapshot undelete "$image@none"
ok "says where to look" grep -qF "snapshot list --deleted" <<<"$err"
for words in "undelete" "undelete $image" "undelete -f $image@v1" "list --as x $image" \
	"undelete --deleted $image@v1" "undelete $image@v1 $image@v2"; do
	# shellcheck disable=SC2086 # words
	run stele snapshot $words
	is "2 " "$status $out" "snapshot $words: wrong usage"
done

# ---- what gc shows, and the space ----

must stele snapshot delete "$image@v2" "$image@other"
run stele gc --grace 30d "$image"
ok "gc shows deleted snapshots" grep -qE "^snapshot 'other'  2 samples  deleted .* kept$" <<<"$out"
is '["other",2,false]' "$(stele gc --json "$image" |
	jq -c 'select(.snapshot == "other") | [.snapshot, .samples, .due]')" "as JSON, too"
ok "info counts what it would free" grep -qE '^space .*, gc would free [0-9.]+ [KM]iB$' \
	<<<"$(stele info "$image")"
ok "so does du" grep -qE '^ +[0-9.]+ [KM]iB  unused, gc would free it$' <<<"$(stele du "$image")"
run "$reader" "$image"
is 0 "$status" "a reader made from the page takes it for sound" || diag "$err"
ok "and knows them" grep -q "^deleted snapshot other " <<<"$out"

# ---- killed behind its commit ----

halt=$tmp/halt.so
mkdir -p "$tmp/alone"
head -c 5000 /dev/urandom >"$tmp/alone/x"
must stele build -q "$tmp/alone" base.stele@only
mkfifo told go
# behind [WORDS]: the deletion of the only snapshot is killed before each of its operations in turn;
# with WORDS, the image is repaired then
behind() {
	local n stopped writer wrong='' seen=0
	for ((n = 1; n < 40; n++)); do
		must cp base.stele killed.stele
		(
			(
				echo "$BASHPID" >writer
				HALT_AT=$n LD_PRELOAD=$halt STELE_BACKEND=threads \
					HALT_FILE=$PWD/killed.stele HALT_TOLD=told HALT_GO=go \
					exec "$BUILD/stele" snapshot delete -f killed.stele@only
			) >out 2>&1 &
			wait $!
			echo ended >told
		) 2>/dev/null &
		read -r stopped <told
		[ "$stopped" = stopped ] || break
		writer=$(<writer)
		kill -KILL "$writer"
		# The one that is killed may have it open still.
		until read -r stopped <told; do :; done
		wait
		[ -z "$1" ] || stele repair -q killed.stele >/dev/null 2>&1
		run stele info killed.stele@only
		[ "$status" != 0 ] || continue
		seen=$((seen + 1))
		grep -q "^hint: 'stele snapshot undelete" <<<"$err" || wrong+=" $n: $err"
	done
	wait
	ok "killed$1: seen behind its commit" test $seen -gt 0
	is "" "$wrong" "killed$1: what brings it back is said"
}
if ldd "$BUILD/stele" | grep -qE 'lib[at]san' ||
	! "${CC:-cc}" -shared -fPIC -O1 -o "$halt" "$top/tests/cmd/halt/halt.c"; then
	skip_block 4 "needs a compiler, and the calls of its own"
else
	behind ""
	behind ", repaired"
fi

# ---- for good ----

must stele build -q one lost.stele@v1
must stele append -qf --delete-missing two lost.stele@v2
must stele snapshot delete lost.stele@v1 2>/dev/null
fails 1 "snapshots 'v2', and 'v1', deleted, that can be undeleted" \
	stele build one lost.stele
ok "build: the harmless ways come first" grep -qE "^hint: .*append.*undelete.*; --force " <<<"$err"
run stele build -nf one lost.stele
ok "so does a dry run with force" grep -q "'v1', deleted, that can" <<<"$err" || diag "$err"
fails 1 "the target has another snapshot 'v2'; it holds snapshots 'v2', and 'v1', deleted" \
	stele copy "$image@v1" lost.stele@v2
ok "copy: the harmless ways come first" \
	grep -qE "^hint: copy it to another TARGET@NAME, or .*rename'; --force .* whole" <<<"$err"
is "$(list --deleted lost.stele | jq -r .name) $(list lost.stele | jq -r .name)" "v1 v2" \
	"nothing is lost by asking"
must stele snapshot create --base=v2 -d "$(stele ls lost.stele@v2 | head -n 1)" lost.stele@v3 \
	>/dev/null
must stele snapshot delete lost.stele@v3 2>/dev/null
run stele gc -nf lost.stele
ok "gc says what it would free" grep -qE \
	"^2 deleted snapshots to free, which can be undeleted until then$" <<<"$out" || diag "$out"
run stele gc --apply --force lost.stele
ok "then that they are gone" grep -qE \
	"^2 deleted snapshots freed, which can no longer be undeleted$" <<<"$out" || diag "$out"
must stele snapshot create --base=v2 -d "$(stele ls lost.stele@v2 | head -n 1)" lost.stele@v3 \
	>/dev/null
must stele snapshot delete lost.stele@v3 2>/dev/null
run stele gc -nf lost.stele
ok "without any space, too" grep -qE \
	"^1 deleted snapshot to free, which .* then; dry run, use --apply" <<<"$out" || diag "$out"
must stele snapshot delete --force lost.stele@v2 2>/dev/null
fails 1 "without snapshots but 'v2', 'v3', deleted, that can be undeleted" \
	stele build one lost.stele

# A copy has none of them; nor are they in the way of a build from nothing.
must stele copy -q "$image@v1" copy.stele
is "" "$(list --deleted copy.stele)" "a copy has no deleted snapshots"

done_testing
