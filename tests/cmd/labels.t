#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# labels.t - classes and splits out of directories, and how they are shown
. "${0%/*}/../tap.sh"
requires jq --version

image=$tmp/image.stele

# tree KEY...: a source of these files
tree() {
	rm -rf "$tmp/src" && mkdir "$tmp/src"
	for key; do
		mkdir -p "$tmp/src/$(dirname "$key")"
		echo "$key" >"$tmp/src/$key"
	done
}

# built [OPTION...]: the image of it
built() { run stele build --force "$@" "$tmp/src" "$image"; }

# seen: KEY:FIELD=VALUE... of each sample, fields without bytes
seen() {
	stele ls --json --fields "$image${1-}" | jq -r '
		.key + ([.fields | to_entries[] | select(.key != "data") |
		":\(.key)=\(.value)"] | add // "")' | paste -sd ' '
}


# ---- auto ----

tree train/cat/1 train/dog/1 val/cat/2 val/dog/3
built
is "train/cat/1:label=0:split=0 train/dog/1:label=1:split=0 \
val/cat/2:label=0:split=1 val/dog/3:label=1:split=1" "$(seen)" \
	"splits: the class is the directory below"
is "0 " "$status $err" "and nothing to warn of"

tree Training/a/1 VALIDATION/a/2 test/a/x/3
built
is "Training/a/1:label=0:split=0 VALIDATION/a/2:label=0:split=1 test/a/x/3:label=0:split=2" \
	"$(seen)" "in all spellings; what lies deeper belongs to the class"

tree train/a/1 test/1 test/2
built
is "test/1:label=-1:split=0 test/2:label=-1:split=0 train/a/1:label=0:split=1" \
	"$(seen)" "a test set need not have classes"
without="stele: warning: label -1 for"
is "$without 2 samples outside of all class directories, such as 'test/1'" "$err" "which is said"

tree train/a/1 val/b/1 notes/how/1 README
built
is "README:label=-1:split=-1 notes/how/1:label=-1:split=-1 \
train/a/1:label=0:split=0 val/b/1:label=1:split=1" "$(seen)" "what lies beside splits has neither"

tree train/a/1 val/b/2 x y z
built
is "train/a/1:label=0:split=0 val/b/2:label=1:split=1 x:label=-1:split=-1 y:label=-1:split=-1 \
z:label=-1:split=-1" "$(seen)" "however many files that is"
is "$without 3 samples outside of all class directories, such as 'x'" "$err" "which is said"

tree train/1 car/1 bus/2
built
is "bus/2:label=0 car/1:label=1 train/1:label=2" "$(seen)" \
	"a class may be called train"
tree train/1 val/2
built
is "train/1:label=0 val/2:label=1" "$(seen)" "so may what would be splits with classes in them"
is "stele: warning: what could be splits are classes, as no directories lie in them
hint: --label-from=none has no labels" "$err" "which is said"
tree train/old/1 car/new/1
built
is "car/new/1:label=0 train/old/1:label=1" "$(seen)" "and have directories"
is "hint: --label-from=2 takes classes from the directories in them" \
	"$(tail -n 1 <<<"$err" | cut -d, -f1)" "which is said, and what helps"
tree photos/cat/1 photos/dog/2 photos/cat/old/3
built
is "photos/cat/1:label=0 photos/cat/old/3:label=0 photos/dog/2:label=0" "$(seen)" \
	"a directory too many is a class"
is "stele: warning: label has one class, 'photos': all directories lie in that one" \
	"$(head -n 1 <<<"$err")" "which is said"
is "hint: name that directory as SOURCE" "$(tail -n 1 <<<"$err" | cut -d, -f1)" "and what helps"

# As an archive has it that was made of a directory.
tree photos/train/cat/1 photos/train/dog/x/2 photos/val/dog/3
wrapped="photos/train/cat/1:label=0:split=0 photos/train/dog/x/2:label=1:split=0 \
photos/val/dog/3:label=1:split=1"
built
is "$wrapped" "$(seen)" "splits may all lie in one directory"
is "0 " "$status $err" "which is nothing to warn of"
must tar -C "$tmp/src" -cf "$tmp/photos.tar" photos
run stele build --force "$tmp/photos.tar" "$image"
is "$wrapped 0 " "$(seen) $status $err" "of an archive as well"
tree train/cat/1 val/dog/2
built
rm -rf "$tmp/src"
must mkdir "$tmp/src"
tar -C "$tmp/src" -xf "$tmp/photos.tar"
run stele append "$tmp/src" "$image@v2"
is 1 "$status" "append: which may be the same samples under other keys"
ok "with the reason" grep -q "has splits in its only directory; say where" <<<"$err" || diag "$err"
ok "and what to do" grep -q "^hint: .*--label-from.*samples would be there twice" <<<"$err"
run stele append --label-from=3 "$tmp/src" "$image@v2"
is "$wrapped train/cat/1:label=0:split=0 val/dog/2:label=1:split=1" "$(seen @v2)" \
	"unless told that they are not" || diag "$err"
built --label-from=3
is "$wrapped" "$(seen)" "--label-from=3: the same"
built --label-from=2
is "photos/train/cat/1:label=0 photos/train/dog/x/2:label=0 photos/val/dog/3:label=1" "$(seen)" \
	"--label-from=2: the splits as classes"
tree photos/train/cat/1 photos/val/dog/2 photos/list.csv photos/notes/how/3 README
built
is "README:label=-1:split=-1 photos/list.csv:label=-1:split=-1 \
photos/notes/how/3:label=-1:split=-1 photos/train/cat/1:label=0:split=0 \
photos/val/dog/2:label=1:split=1" "$(seen)" "what lies beside these has neither"
for tree in "photos/train/1 photos/val/2" "photos/train/cat/1 photos/eval/dog/2" \
	"old/photos/train/cat/1 old/photos/val/dog/2"; do
	# shellcheck disable=SC2086 # files
	tree $tree
	built
	is "${tree// /:label=0 }:label=0" "$(seen | tr ' ' '\n' | sort -t/ -k4 | paste -sd ' ')" \
		"$tree: no splits" || diag "$err"
	ok "which is said" grep -q "warning: label has one class" <<<"$err"
done
tree photos/1 photos/2
built
is "" "$err" "nothing is said of one without others"
tree a/1 a/2 b/1 README
built
is "README:label=-1 a/1:label=0 a/2:label=0 b/1:label=1" "$(seen)" \
	"a stray file does not cost the others their labels"
is "$without 1 sample outside of all class directories, such as 'README'" "$err" "which is said"
tree a/1 1 2
built
is "1 2 a/1" "$(seen)" "a flat tree with a stray directory has none"
is "" "$err" "which nobody expects"
tree a/1 b/2 1 2
built
is "1 2 a/1 b/2" "$(seen)" "nor has a tree with as many beside its directories"
is "stele: warning: no labels from directories, as no more samples lie in them than beside them
hint: --label-from=1 takes them from there" "$err" "which is said, and what helps"

# ---- as told ----

tree train/cat/1 val/cat/2
run stele build --json --force --label-from=9 "$tmp/src" "$image"
is "0 0" "$status $(jq .classes <<<"$out")" "classes of splits are not said to be those of labels"
tree train/big/cat/1 val/small/cat/2 val/3
built --label-from=1
is "train/big/cat/1:label=0 val/3:label=1 val/small/cat/2:label=1" "$(seen)" "level 1"
built --label-from=3
is "train/big/cat/1:label=0:split=0 val/3:label=-1:split=1 val/small/cat/2:label=0:split=1" \
	"$(seen)" "level 3"
tree train/cat/1 val/cat/2
built --label-from=3
is "train/cat/1:label=-1:split=0 val/cat/2:label=-1:split=1" "$(seen)" \
	"and of nothing so deep, splits are"
tree train/big/cat/1 val/small/cat/2 val/3
built --label-from=parent
is "train/big/cat/1:label=0:split=0 val/3:label=1:split=1 val/small/cat/2:label=0:split=1" \
	"$(seen)" "the parent"
built --label-from=none
is "train/big/cat/1 val/3 val/small/cat/2" "$(seen)" "none"
run stele build --label-from=256 "$tmp/src" "$image"
is 2 "$status" "no such level"

# ---- a name of no bytes, which archives may have ----

tree a/x/1 a/y/2
built --label-from=2
tree a/x/1 a/y/2 b/y/3 b/x/4
tar -cf "$tmp/m.tar" -C "$tmp/src" --transform='s|^b/[xy]|b/|' a b
run stele append --label-from=2 "$tmp/m.tar" "$image@v2"
is "0 $without 2 samples outside of all class directories, such as 'b//3'" \
	"$status $(grep warning..label <<<"$err")" "append: it is no class, which is said"
is "a/x/1:label=0 a/y/2:label=1 b//3:label=-1 b//4:label=-1" "$(seen @v2)" "and seen"
for level in 2 parent; do
	run stele build --force --label-from=$level "$tmp/m.tar" "$image"
	is "0 $without 2 samples outside of all class directories, such as 'b//3'" \
		"$status $(grep warning..label <<<"$err")" "build: level $level"
	is "a/x/1:label=0 a/y/2:label=1 b//3:label=-1 b//4:label=-1" "$(seen)" "and seen"
done

# ---- append ----

tree 1 2
built --label-from=1
mkdir -p "$tmp/src/cat"
echo 3 >"$tmp/src/cat/3"
run stele append --label-from=1 "$tmp/src" "$image@v2"
is "0 1:label=-1 2:label=-1 cat/3:label=0" "$status $(seen @v2)" "append: the first class of all"

# Nothing but what both have tells by which directories a base was labelled.
tree x/cat/1 y/dog/2
built --label-from=parent
must cp "$image" "$tmp/parent"
echo 3 >"$tmp/src/y/dog/3"
otherwise() { # SAID HINT OPTION...: refused, and the image is as it was
	local said=$1 hint=$2
	shift 2
	run stele append "$@" "$tmp/src" "$image@v2"
	is 1 "$status" "append $*, base by parent: refused"
	ok "with a sample" grep -q "that of 'x/cat/1' is 'cat' there, and $said" <<<"$err" ||
		diag "$err"
	ok "and what to do" grep -q "^hint: $hint" <<<"$err" || diag "$err"
	ok "as it was" cmp -s "$image" "$tmp/parent"
}
for option in --always --update --delete-missing; do
	otherwise "'x' here; say where" "say it with --label-from" $option
done
for from in 1 3 none; do
	otherwise ".* here; it has to be forced" "give --label-from as .*; --force labels" \
		--update --label-from=$from
done
(cd "$tmp/src" && tar -cf "$tmp/m.tar" x y)
run stele append --from=tar --label-from=auto "$tmp/m.tar" "$image@v2"
is 1 "$status" "append, an archive: likewise" || diag "$out"
run stele append --update --force --label-from=1 "$tmp/src" "$image@v2"
is "0 x/cat/1:label=2 y/dog/2:label=3 y/dog/3:label=3" "$status $(seen @v2)" "unless forced"
must cp "$tmp/parent" "$image"
run stele append --label-from=parent "$tmp/src" "$image@v2"
is "0 x/cat/1:label=0 y/dog/2:label=1 y/dog/3:label=1" "$status $(seen @v2)" "but as it was built"
must cp "$tmp/parent" "$image"
mkdir "$tmp/apart" && mv "$tmp/src/y" "$tmp/apart"
rm "$tmp/apart/y/dog/2"
run stele append --label-from=1 "$tmp/apart" "$image@v2"
is "0 x/cat/1:label=0 y/dog/2:label=1 y/dog/3:label=2" "$status $(seen @v2)" "or as told"

tree train/cat/1 x y
printf 'path,split\n%s,1\n' "$tmp/src/x" >"$tmp/list.csv"
must stele build --force --from=manifest "$tmp/list.csv" "$image" >/dev/null
run stele append "$tmp/src" "$image@v2"
is 1 "$status" "a number called split is no split of a directory, which has no other"
ok "which is said" grep -q "field 'split' (i64) is missing" <<<"$err"

tree train/cat/1 val/dog/2
built
mkdir -p "$tmp/src/train/ant" "$tmp/src/test"
echo 3 >"$tmp/src/train/ant/3"
echo 4 >"$tmp/src/test/4"
run stele append "$tmp/src" "$image@v2"
is "0 test/4:label=-1:split=2 train/ant/3:label=2:split=0 \
train/cat/1:label=0:split=0 val/dog/2:label=1:split=1" \
	"$status $(seen @v2)" "append: new classes and splits come after those there"
mkdir -p "$tmp/flat/cat" && echo 5 >"$tmp/flat/cat/5"
run stele append "$tmp/flat" "$image@v3"
is 1 "$status" "append: a source without splits is refused"
ok "with the reason" grep -q "source has no splits; say where" <<<"$err" || diag "$err"
ok "and the option" grep -q "^hint: .*--label-from" <<<"$err" || diag "$err"
run stele append "$tmp/flat/cat" "$image@v3"
is 1 "$status" "append: nor is one that has no directories, such as one of the classes"
ok "with the reason" grep -q "source has no splits; say where" <<<"$err" || diag "$err"
run stele append --label-from=1 "$tmp/flat" "$image@v3"
is "0 cat/5:label=0:split=-1" "$status $(seen @v3 | grep -o 'cat/5[^ ]*')" "unless told"
is "stele: warning: split -1 for 1 sample outside of all split directories, such as 'cat/5'" \
	"$(grep warning <<<"$err")" "which is said"

rm "$image"
must stele build -q "$tmp/flat" "$image"
run stele append "$tmp/src" "$image@v2"
is 1 "$status" "append: nor are splits taken for classes"
ok "with the reason" grep -q "source has splits; say where" <<<"$err" || diag "$err"
ok "and what doing so costs" grep -q "^hint: .*--label-from .*samples would be there twice" \
	<<<"$err" || diag "$err"
run stele append --label-from=2 "$tmp/src" "$image@v2"
is "0 train/cat/1:label=0" "$status $(seen @v2 | grep -o 'train/cat/1[^ ]*')" "unless told"
must stele build -q --force --label-from=none "$tmp/flat" "$image"
run stele append --label-from=2 "$tmp/src" "$image@v2"
is 1 "$status" "append: no labels on a base without"
ok "with the reason" grep -q "has no labels" <<<"$err" || diag "$err"
run stele append "$tmp/flat" "$image@v2"
is "0 stele: warning: no labels from directories, as the snapshot that is appended to has none" \
	"$status $(sed -n 1p <<<"$err")" "append: whose samples get none, which is said"
run stele append --label-from=none "$tmp/src" "$image@v3"
is "0 " "$status $err" "append: unless none were wanted"
cp -r "$tmp/src" "$tmp/strays"
touch "$tmp/strays/"{1..9}
run stele append "$tmp/strays" "$image@v4"
is "0 stele: warning: no labels from directories, as the snapshot that is appended to has none" \
	"$status $(sed -n 1p <<<"$err")" "append: also of splits with many strays beside them"

# ---- shown ----

rm -f "$image"
tree train/cat/1 train/cat/2 train/dog/1 val/cat/3 README
must stele build -q "$tmp/src" "$image"
is "cat 3 dog 1 (none) 1 train 3 val 1 (none) 1" \
	"$(stele info "$image" | sed -n '/ label i64/,/^space/p' | grep '^   ' |
		awk '$2 != "i64" { print $1, $2 }' | paste -sd ' ')" "info: names and counts"
is "cat 3 dog 1 1" "$(stele info --json "$image" | jq -r '.snapshot.fields[] |
	select(.name == "label") |
	"\([.names[] | "\(.name) \(.samples)"] | join(" ")) \(.without_class)"')" \
	"info: as JSON"
is "-1 -1 README/cat train train/cat/1/cat train train/cat/2/dog train train/dog/1/\
cat val val/cat/3" \
	"$(stele ls -l "$image" | awk '{print $3, $4, $5}' | paste -sd /)" "ls -l"
is 'README {"label":-1,"split":-1} {}
train/cat/1 {"label":0,"split":0} {"label":"cat","split":"train"}' \
	"$(stele ls --json "$image" | head -2 | jq -r '"\(.key) \(.fields) \(.classes)"')" \
	"ls --json"
is '{"data":7,"label":-1,"split":-1}' "$(stele ls -F --json "$image" README | jq -c .fields)" \
	"ls -F: all fields"
must stele snapshot create "$image@less" --delete train/cat/1
is "2 1" "$(stele info --json "$image@less" |
	jq -r '.snapshot.fields[1].names | map(.samples) | join(" ")')" \
	"deleted samples do not count"

mkdir -p "$tmp/umlauts"/{größe,elephant}
touch "$tmp/umlauts"/{größe,elephant}/1
must stele build -q --force "$tmp/umlauts" "$tmp/umlauts.img"
is "elephant  elephant/1
größe     größe/1" "$(stele ls -l "$tmp/umlauts.img" | grep -o '[^ 0-9].*')" \
	"ls -l: characters are counted, not bytes"

# ---- a damaged column ----

cp "$image" "$tmp/bad"
perl -e 'open my $f, "+<", $ARGV[0] or die; my $at = 0x200000;
	while (sysseek($f, $at, 0) && sysread($f, my $block, 4096)) {
		if (unpack("L<", substr $block, 8) == 7) {
			sysseek $f, $at + 100, 0;
			syswrite $f, "damage";
		}
		$at += 4096;
	}' "$tmp/bad"
for words in "" "--json"; do
	# shellcheck disable=SC2086 # one word or none
	run stele info $words "$tmp/bad@v1"
	is 3 "$status" "info $words: a damaged column"
	ok "info $words: the rest is shown" grep -q "granule" <<<"$out"
	ok "info $words: the damage is named" grep -qF "cannot read field" <<<"$err" || diag "$err"
done

done_testing
