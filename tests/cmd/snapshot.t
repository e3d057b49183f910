#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# snapshot.t - stele snapshot: create, list, rename, delete
. "${0%/*}/../tap.sh"
# shellcheck source=tests/cmd/targets.sh
. tests/cmd/targets.sh

tree_photos "$tmp/src"

# versions TARGET WORDS: a life of snapshots on one kind of target
versions() {
	local target=$1 words=$2 force missing='' v1 v2
	force=$(force_on "$target")
	must stele build -q --time 1000 "$tmp/src" "$target@v1"
	v1=$(stele snapshot list --json "$target")
	run stele snapshot create --base v1 -d train/cats/1.jpg \
		--delete=train/dogs/20.jpg --note $'two\nless' --time 2000 "$target@v2"
	is "0 " "$status $err" "$words: create"
	is "$(stele ls "$target@v1" | grep -vxE 'train/(cats/1|dogs/20).jpg')" \
		"$(stele ls "$target@v2")" "$words: two keys less"
	is "$(seq 0 38)" "$(stele ls -l "$target@v2" | awk '{ print $1 }' | sort -n)" \
		"$words: ids without gaps"
	must stele extract -q "$target@v2" "$tmp/out"
	is "Only in $tmp/src/train/cats: 1.jpg
Only in $tmp/src/train/dogs: 20.jpg" "$(diff -r "$tmp/src" "$tmp/out")" \
		"$words: the others as they were"
	rm -r "$tmp/out"
	run stele diff "$target@v1" "$target@v2"
	is $'- train/cats/1.jpg\n- train/dogs/20.jpg' "$out" "$words: diff"
	v2=$(stele snapshot list --json "$target" | tail -n 1)
	is "$v1" "$(stele snapshot list --json "$target" | head -n 1)" \
		"$words: v1 is as it was"
	is "$(stele ls --json "$target@v2" | jq -s 'map(.size) | add')" \
		"$(field "$v2" .payload_size)" "$words: its size is without them"
	is "v2 v1 1 2000 39 two less" "$(field "$v2" \
		'[.name, .parent_name, .parent, .time, .samples, .note] | join(" ")' |
		xargs)" \
		"$words: list has all of it"
	# shellcheck disable=SC2086 # one word or none
	must stele snapshot rename $force "$target@v2" best
	is "$(field "$v2" .digest)" \
		"$(stele info --json "$target@best" | jq -r .snapshot.digest)" \
		"$words: rename keeps the digest"
	# shellcheck disable=SC2086 # one word or none
	must stele snapshot delete $force "$target@v1"
	[ -z "$force" ] || missing="no RBD snapshot of that name"
	fails 1 "${missing:-no such snapshot (available: best)}" stele ls "$target@v1"
	is 39 "$(stele ls "$target" | wc -l)" "$words: one is left"
	ok "$words: sound" stele verify -q "$target"
	# What its readers get is another question.
	before=$(stele info --json "$target" | jq .image.generation)
	fails 1 "no snapshot would be left" stele snapshot delete --grace=1h "$target@best"
	ok "$words: the remedy" grep -qe --force <<<"$err"
	is "$before" "$(stele info --json "$target" | jq .image.generation)" \
		"$words: the last one stays"
	must stele snapshot delete --force --grace=1h "$target@best"
	run stele snapshot list --json "$target"
	is "0 " "$status $out" "$words: none is left"
	ok "$words: info of an image without any" stele info "$target"
	fails 1 "empty image: it has no snapshots" stele info "$target@best"
}
each_target versions 16M

# ---- keys from files ----

cd "$tmp" || bail "cd"
image=photos.stele
must stele build -q src "$image@all"
stele ls "$image" train/dogs/ >dogs
must stele snapshot create --keys-from dogs "$image@cats" >/dev/null
is "$(stele ls "$image@all" train/cats/)" "$(stele ls "$image@cats")" "--keys-from"
must stele snapshot create --base all -0 --keys-from - "$image@cats2" \
	< <(stele ls -0 "$image@all" train/dogs/) >/dev/null
run stele snapshot create --base all --keys-from - "$image@cats3" \
	< <(stele ls -0 "$image@all" train/dogs/)
is "1 hint: a list of keys has NUL bytes: -0 takes each for the end of a key" \
	"$status $(grep "^hint:" <<<"$err" | tail -n 1)" "--keys-from -, without -0" || diag "$err"
is "$(field "$(stele snapshot list --json "$image")" .digest | tail -n 2 | uniq | wc -l)" \
	1 "-0 --keys-from -: the same digest"
run stele snapshot create --json --base all --note n "$image@same"
is "same n 41" "$(field "$out" '"\(.name) \(.note) \(.samples)"')" "create --json"
is "$(stele info --json "$image@all" | jq -r .snapshot.digest)" \
	"$(field "$out" .digest)" "nothing deleted: the same digest"

# ---- by id ----

must stele build -q --label-from none src ids@v1
id_of() { stele ls -l "ids@$1" | awk -v key="$2" '$NF == key { print $1 }'; }
must stele snapshot create -d train/cats/1.jpg ids@one >/dev/null
run stele snapshot create -d "#$(id_of one train/cats/2.jpg)" -d "#0" -d "#0" ids@two
is "0 " "$status $err" "by id: of the newest" || diag "$err"
is "$(stele ls -l ids@one | awk '$1 != 0 && $NF != "train/cats/2.jpg" { print $NF }')" \
	"$(stele ls ids@two)" "by id: those, and no others"
run stele snapshot create --base v1 -d "#$(id_of v1 train/cats/3.jpg)" -d train/cats/4.jpg \
	--where "key LIKE '%cats%'" ids@three
is "0 $(stele ls ids@v1 | grep cats | grep -v '/[34].jpg')" "$status $(stele ls ids@three)" \
	"by id: of the base, by key, and by expression"
# Samples that two options name go once; the id of one that a key names is no other's.
second=$(stele ls -l ids@v1 | awk '$1 == 1 { print $NF }')
run stele snapshot create --base v1 -d "#0" -d "#1" -d "$second" \
	--keys-from <(stele ls ids@v1 train/dogs) --where "id > 0 AND id < 30" ids@four
is "0 $(stele query ids@v1 "SELECT key FROM samples WHERE id > 1 AND id < 30 AND
	key NOT LIKE 'train/dogs%' ORDER BY key" | tail -n +2)" "$status $(stele ls ids@four)" \
	"by id: each sample that several options name goes once" || diag "$err"
fails 1 "'none' is not in snapshot 'v1'" \
	stele snapshot create --base v1 -d none -d "#0" --where "id < 5" ids@x
before=$(sum ids)
fails 1 "'#41' is not in 'ids@v1': it has 41 samples" \
	stele snapshot create --base v1 -d "#41" ids@x
fails 1 "'#x' is not in snapshot 'v1'" stele snapshot create --base v1 -d "#x" ids@x
fails 1 "'#41' is not in 'ids@v1': it has 41 samples" \
	stele snapshot create -n --base v1 -d "#41" ids@x
is "$before" "$(sum ids)" "by id: nothing was written"
mkdir hashes
for name in "#1" "#2"; do echo "$name" >"hashes/$name"; done
must stele build -q --order source --label-from none hashes hashes.stele
fails 2 "'#1' is also the key of another sample" \
	stele snapshot create -d "#1" hashes.stele@x
ok "by id: how to name that" grep -q "^hint: .*--keys-from" <<<"$err"
must stele snapshot create --keys-from <(echo "#1") hashes.stele@x >/dev/null
is "#2" "$(stele ls hashes.stele@x | xargs)" "by id: a file has keys only"

# A list that came out empty, as of a search that finds nothing, leaves out nothing.
run stele snapshot create -n --keys-from - hashes.stele@y </dev/null
is "0 stele: warning: there are no keys in '-'" "$status $err" "an empty list is said"

# ---- what is refused ----

before=$(sum "$image")
fails 1 "'train/none.jpg' is not in snapshot" \
	stele snapshot create -d train/none.jpg -d train/cats/1.jpg "$image@x"
ok "and the hint knows of keys with line feeds" grep -q "^hint: .*'stele ls -0'" <<<"$err"
fails 1 "nor are 95 more" \
	stele snapshot create --keys-from <(seq 100) "$image@x"
is 6 "$(wc -l <<<"$err")" "and no more than that"
printf 'train/cats/1.jpg\r\ntrain/cats/2.jpg\r\n' >"$tmp/crlf"
fails 1 "is not in snapshot" stele snapshot create --keys-from "$tmp/crlf" "$image@x"
ok "which shows" grep -qF "'train/cats/1.jpg\r' is not in" <<<"$err" || diag "$err"
ok "ends of lines are why" grep -qF "hint: a list of keys has lines that end in \r\n" <<<"$err"
run stele snapshot create -d none --keys-from <(tr -d '\r' <"$tmp/crlf") "$image@x"
ok "others are not" not grep -q "a list of keys" <<<"$err"
# As Windows writes texts.
mark="hint: a list of keys begins with a byte order mark"
printf '\xef\xbb\xbftrain/cats/1.jpg\n' >"$tmp/marked"
fails 1 "is not in snapshot" stele snapshot create --keys-from "$tmp/marked" "$image@x"
is 1 "$(grep -c "^$mark" <<<"$err")" "a byte order mark is why"
run stele snapshot create -d none --keys-from <(tail -c +4 "$tmp/marked") "$image@x"
ok "which is left out" not grep -q "a list of keys" <<<"$err"
printf '\xef\xbb\xbfnone\r\n' >"$tmp/marked"
run stele snapshot create --keys-from "$tmp/marked" "$image@x"
is 2 "$(grep -c "^hint: a list of keys" <<<"$err")" "both are said"
run stele snapshot create --keys-from <(printf 'none\n\xef\xbb\xbf\n') "$image@x"
ok "of the first line only" not grep -q "a list of keys" <<<"$err"
run stele snapshot create --keys-from <(iconv -t UTF-16 <<<train/cats/1.jpg) "$image@x"
ok "UTF-16" grep -qF "hint: a list of keys is in UTF-16: 'iconv -f UTF-16 -t UTF-8" <<<"$err"
is 1 "$(grep -c "^hint: a list of keys" <<<"$err")" "has NUL bytes, which nobody meant"
run stele snapshot create -d $'x\ny\xff' "$image@x"
ok "other bytes show, too" grep -qF "'x\ny\xff' is not in" <<<"$err" || diag "$err"
fails 1 "there is a snapshot 'all' already" stele snapshot create "$image@all"
fails 1 "cannot start from 'none': no such snapshot (available: " \
	stele snapshot create --base none "$image@x"
fails 2 "names no snapshot" stele snapshot create "$image"
fails 1 "cannot read 'nofile'" \
	stele snapshot create --keys-from nofile "$image@x"
fails 1 "no such snapshot" stele snapshot delete "$image@none"
fails 1 "already" stele snapshot rename "$image@cats" all
fails 2 "invalid snapshot name" stele snapshot rename "$image@cats" a/b
fails 2 "'$image@new': it is the name alone, without TARGET@" \
	stele snapshot rename "$image@cats" "$image@new"
fails 1 "no such snapshot" stele snapshot rename "$image@none" other
fails 1 "cannot delete snapshot 'v9' of 'photos.stele': no such snapshot" \
	stele snapshot delete photos.stele@v9
fails 1 "'none.stele@v1': no such file" stele snapshot delete none.stele@v1
for words in "" "create" "list" "rename $image@cats" "delete" "frobnicate $image" \
	"list --base all $image" "create --force $image@x" \
	"delete --grace=soon $image@cats" "rename -f --grace 1h $image@cats x" \
	"create --time=never $image@x"; do
	# shellcheck disable=SC2086 # words
	run stele snapshot $words
	is "2 " "$status $out" "snapshot $words: wrong usage"
done
# What the RBD snapshot of a deleted one is called, on RBD: no snapshot anywhere.
reserved=stele-tombstone-5-x
for words in "build --force $tmp/src $image@$reserved" \
	"build --dry-run $tmp/src $tmp/fresh@$reserved" \
	"build $tmp/src $tmp/fresh@$reserved" \
	"append $tmp/src $image@$reserved" \
	"append --dry-run $tmp/src $image@$reserved" \
	"compact $image@cats $reserved" "snapshot create $image@$reserved" \
	"snapshot rename $image@cats $reserved" \
	"copy $image@cats $tmp/fresh@$reserved"; do
	# shellcheck disable=SC2086 # words
	fails 2 "'stele-tombstone-' are reserved" stele $words
done
ok "nor was a file made for it" test ! -e "$tmp/fresh"
is "$before" "$(sum "$image")" "not one byte was changed"

must stele map "$image@cats" pets >/dev/null
fails 1 "mapped as 'pets'" stele snapshot delete "$image@cats"
fails 1 "mapped as 'pets'" stele snapshot rename "$image@cats" dogs
ok "another one may go" stele snapshot delete "$image@cats2"
is "$(stele ls "$image@cats")" "$(stele ls pets)" "what is mapped is read on"
must stele unmap pets
ok "unmapped, it may go" stele snapshot delete "$image@cats"

# Several go at once, in one commit, or none does.
for name in a b c; do
	must stele snapshot create --base all "$image@$name" >/dev/null
done
before=$(sum "$image")
fails 1 "no such snapshot" stele snapshot delete "$image@a" "$image@none" "$image@b"
cp "$image" other.stele
run stele snapshot delete "$image@a" other.stele@b
ok "of one image at a time" grep -q "'other.stele@b' is not a snapshot of" <<<"$err"
is "$before" "$(sum "$image")" "not one byte was changed"
generation=$(stele info --json "$image" | jq .image.generation)
must stele snapshot delete "$image@a" "$image@b" "$image@c"
is "all same" "$(field "$(stele snapshot list --json "$image")" .name | xargs)" \
	"all of them are gone"
is $((generation + 1)) "$(stele info --json "$image" | jq .image.generation)" \
	"with one commit"
for name in a b c; do
	must stele snapshot create --base all "$image@$name" >/dev/null
done
must stele map "$image@all" pets
run stele snapshot delete pets@a pets@b "./$image@c"
is "0 all same" "$status $(field "$(stele snapshot list --json "$image")" .name | xargs)" \
	"by a mapped name, and by another path" || diag "$err"
must stele unmap pets
run stele snapshot delete "$image@all" "$image@same"
is 1 "$status" "but not all that there are"

exec 9<"$image"
ok "another writer holds it" flock -xn 9
fails 1 "$image" stele snapshot create "$image@late"
exec 9<&-

# ---- of samples that match ----

# keys WHERE SNAPSHOT
keys() { stele query "$tmp/where@$2" "SELECT key FROM samples WHERE $1 ORDER BY key"; }
where="label_name = 'cats' AND size > 100 OR key LIKE '%/1_.jpg' -- or so"
must stele build -q "$tmp/src" "$tmp/where@v1"
must stele snapshot create "$tmp/where@other"
run stele snapshot create --base v1 --where "$where" "$tmp/where@some"
is "0 " "$status $err" "where: create"
some=$(keys 1 some)
is "$(keys "($where
)" v1)" "$some" "where: those that match, and no others"
ok "where: not all, not none" test "$(wc -l <<<"$some")" -gt 2 -a "$(wc -l <<<"$some")" -lt 41
is v1 "$(stele snapshot list --json "$tmp/where" | jq -r 'select(.name == "some").parent_name')" \
	"where: it comes from its base"
run stele snapshot create --where "id % 2 = 0" -d "$(sed -n 2p <<<"$some")" --dry-run --json \
	"$tmp/where@fewer"
is 0 "$status" "where: dry run, from the newest, with a key"
must stele snapshot create --where "id % 2 = 0" -d "$(sed -n 2p <<<"$some")" "$tmp/where@fewer"
is "$(keys "id % 2 = 0 AND key <> '$(sed -n 2p <<<"$some")'" some)" "$(keys 1 fewer)" \
	"where: and so it is"
is "$(jq -r .samples <<<"$out")" "$(($(keys 1 fewer | wc -l) - 1))" \
	"where: as many as the dry run said"
ok "where: sound" stele verify -q "$tmp/where"
for wrong in "label_name = 'birds'" NULL; do
	run stele snapshot create --base v1 --where "$wrong" "$tmp/where@none"
	is 1 "$status" "where $wrong: fails"
	ok "and says why" grep -qF "no sample of '$tmp/where@v1' matches '$wrong'" <<<"$err"
done
run stele snapshot create --base v1 --where "label = 'cat'" "$tmp/where@none"
is "hint: 'label' is the number of a class: its name is in label_name" "$(tail -n1 <<<"$err")" \
	"a class that is compared by name gets a hint"
run stele snapshot create --base v1 --where "label = 99" "$tmp/where@none"
run stele snapshot create --base v1 --where "label = 1" --where "id > 0" "$tmp/where@none"
is 2 "$status" "two expressions are wrong usage"
ok "what joins them is said" grep -qF "one expression (AND joins two)" <<<"$err" || diag "$err"
run stele snapshot create -n --base v1 --where "id = 0" -d "#0" "$tmp/where@none"
is "0 stele: warning: no sample is left in 'none'" "$status $err" "what leaves nothing is said"
run stele snapshot create --base v1 --where "labl = 1" "$tmp/where@none"
is 2 "$status" "where: no such column"
ok "and says why" grep -q "no such column: labl (there are id, key, size, " <<<"$err"
# It would end our parenthesis, and begin another.
for wrong in "label=0) or (id=0" "id<0) OR (1" "1 LIMIT 3" "1 ORDER BY id" "1;" "1) --" "1 /*"; do
	run stele snapshot create --base v1 --where "$wrong" "$tmp/where@none"
	is "2 " "$status $out" "where $wrong: is no expression"
done
run stele snapshot create --base v1 --where 'label = "x' "$tmp/where@none"
is 2 "$status" "where: a quote that does not end"
ok "and says why" grep -qF 'unrecognized token: ""x"' <<<"$err" || diag "$err"
run stele snapshot create --base none --where "label = 1" "$tmp/where@none"
is 1 "$status" "where: no such base"
is "v1 other some fewer" "$(stele snapshot list --json "$tmp/where" | jq -r .name | xargs)" \
	"where: nothing else was made"

done_testing
