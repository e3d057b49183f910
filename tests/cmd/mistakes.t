#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# mistakes.t - wrong usage has status 2, a refusal ends with the next step, and names that are
# mistyped get the closest one
. "${0%/*}/../tap.sh"

mkdir "$tmp/src"
for name in a b c; do echo "$name" >"$tmp/src/$name"; done
cd "$tmp" || bail "cd"
must stele build -q src image@first
echo d >src/d
must stele append -q src image@second
must stele map image@first pets

# says STATUS HINT WORDS...: the last line but "Try ..." is this hint, or begins so; "": none
says() {
	local code=$1 hint=$2 seen
	shift 2
	run stele "$@"
	is "$code " "$status $out" "stele $*: status $code"
	seen=$(sed -n 's/^hint: //p' <<<"$err" | tail -n 1)
	is "$hint" "${seen:0:${#hint}}" "stele $*: what to do next" || diag "$err"
	[ -n "$hint" ] || is "" "$seen" "stele $*: nothing is guessed"
	ok "stele $*: in words of the command" not grep -qE \
		"with force|or force|or FORCE|a grace period" <<<"$err"
}

says 1 "'stele copy SOURCE TARGET'" build image other

# ---- a directory, as completion spells it ----

mkdir -p nested/cats
echo 1 >nested/cats/1
must stele build -q nested nested.stele
for name in cats cats/ cats//; do
	must stele extract -q nested.stele out "$name"
	is 1 "$(cat out/cats/1)" "extract: all below '$name'"
	rm -r out
done

# ---- a key that looks like an id ----

mkdir numbers
echo small >"numbers/#0"
seq 2000 >numbers/a
must stele build -q numbers numbers.stele
run stele cat numbers.stele '#0'
is "0 1" "$status ${out%%$'\n'*}" "'#0' is an id"
is "stele: warning: '#0' is also the key of another sample, which 'stele cat --keys' reads" \
	"$err" "that it is a key, too, is said"
run stele cat numbers.stele '#1'
is "0 " "$status $err" "not where it is none"
run stele cat --keys numbers.stele '#0'
is "0 small " "$status $out $err" "nor where the key is asked for"

# ---- wrong usage ----

says 2 "" build src -
says 2 "" build src s3://bucket/image
says 2 "" copy image@first -
ok "no file is made of that" not test -e ./-
says 2 "" append src image
says 2 "" snapshot create image
says 2 "" snapshot delete image
says 2 "" snapshot rename image@first a/b
says 2 "" compact image@first b@d
says 2 "" ls image@b:d
says 2 "" ls image@sha256:12
says 2 "" map image@first a/b
says 2 "" gc --apply image
says 2 "select one: TARGET@NAME" ls image
ok "gc: says how to go on" grep -q -- "--grace=DURATION.*--force" <<<"$(
	stele gc --apply image 2>&1)"

# A whole image is no snapshot.
for words in "gc image@first" "gc --apply --force image@nope" "du image@nope" \
	"resize image@nope" "repair image@nope" "snapshot list image@nope"; do
	# shellcheck disable=SC2086 # words
	says 2 "" $words
	ok "$words: says so" grep -q "works on a whole image" <<<"$err"
done
cp image 'a@b.stele'
says 1 "for the file 'a@b.stele' write 'a@b.stele@'" info a@b.stele
says 2 "for the file 'a@b.stele' write 'a@b.stele@'" gc a@b.stele
is 0 "$(stele gc a@b.stele@ >&2; echo $?)" "which helps"
ok "the characters of a name are said" grep -q "letters, digits, '.', '_' and '-'" <<<"$(
	stele compact image@first b+d 2>&1)"
ok "wherever it is" grep -q "letters, digits, '.', '_' and '-'" <<<"$(stele ls image@b+d 2>&1)"
says 2 "" ls image@sha256:fe7
ok "how short a digest may be is said" grep -q "at least 4 hexadecimal digits" <<<"$err"
says 2 "" snapshot delete image@second image@second
ok "twice the same is said" grep -q "'image@second' is given twice" <<<"$err"
is "first second" "$(stele snapshot list --json image | jq -r .name | paste -sd ' ')" \
	"and nothing deleted"
says 1 "'stele ls' lists the keys" cat image@first nokey
says 1 "'stele ls' lists the keys" cat image@first ""
stele cat image@first a >/dev/full 2>err
ok "cat: a full device is named" grep -q "No space left" err || diag "$(<err)"
head -c 3M /dev/urandom >src/large
must stele build -q src larger
rm src/large
stele cat larger large >/dev/full 2>err
ok "cat: also by what is larger than a buffer" grep -q "No space left" err || diag "$(<err)"
run stele snapshot create -n --json image@third
is "0 null" "$status $(jq -r .digest <<<"$out")" "a dry run has no digest"
must stele copy -q image@first copied-twice
run stele copy image@first copied-twice
ok "copy: what is there is not sent" grep -q "nothing: all of it is there" <<<"$out"
ok "copy: nor called copied" grep -q "^there is snapshot 'first', 3 samples, on " <<<"$out"
must stele snapshot create copied-twice@more
run stele copy -n copied-twice@more image@more
is "would add snapshot 'more', 3 samples, to 'image@more'   to send   nothing: all that it has is `
	`there" "$(head -n 2 <<<"$out" | paste -sd ' ')" "copy -n: a snapshot of what is there"
must stele copy -q copied-twice@more copied-again
must stele copy -q image@second copied-again
run stele copy image@first copied-again
is "added snapshot 'first', 3 samples, to 'copied-again'   sent      nothing: all that it has is `
	`there" "$(head -n 2 <<<"$out" | paste -sd ' ')" "copy: one of what is there is added"
run stele copy image@first copied-again
is "there is snapshot 'first', 3 samples, on 'copied-again'   sent      nothing: all of it is `
	`there" "$(head -n 2 <<<"$out" | paste -sd ' ')" "copy: and is there after that"
run stele copy -n image@first copied-again
ok "copy -n: which is said" grep -q "^there is snapshot 'first'" <<<"$out" || diag "$out"
hint="leave it out, or overwrite it with --force"
while read -r option what; do
	[ "$what" != size ] || hint="'stele resize' extends it, --force overwrites it"
	for way in -n ""; do
		# shellcheck disable=SC2086 # none
		says 2 "$hint" copy $way $option image@second copied-twice
		ok "copy $way $option: says so" grep -q "^stele: 'copied-twice' holds an image, `
			`whose $what is not set by a copy" <<<"$err" || diag "$err"
	done
done <<'END'
--label=other label
--uuid=0dd9a8b3-2f2e-4a6c-9d5a-0a1f6c7e8d90 UUID
--object-size=8M object size
--size=64M size
END
is "first more" "$(stele snapshot list --json copied-twice | jq -r .name | paste -sd ' ')" \
	"nothing was copied"
must stele copy -q --label=other --size=64M image@first labelled
must stele copy -q --label=other --size=64M image@first labelled
must stele copy -q --label=other --size=64M image@second labelled
must stele copy -q -f --label=third --size=32M image@second labelled
is "third 33554432" "$(stele info --json labelled |
	jq -r '"\(.image.label) \(.image.image_size)"')" "copy --force: a new image has them"
cp image less
must stele snapshot delete less@second
run stele gc less
ok "gc: no other was interrupted" not grep -q interrupted <<<"$out$err"

# ---- sizes ----

run stele build -q --size=5MB src new
is "0 stele: --size=5MB is rounded up to 5001216 bytes, a multiple of 4096" \
	"$status $err" "a size between two blocks is rounded up, and said"
is 5001216 "$(stat -c %s new)" "to that"
run stele build -q --size=5MiB --force src new
is "0 " "$status $err" "of whole blocks, nothing is said"

# ---- abbreviated digests ----

for name in first second; do
	digest=$(stele info --json "image@$name" | jq -r .snapshot.digest)
	short=$(stele snapshot list image | grep -o "${digest:0:12}")
	is "${digest:0:12}" "$short" "list: the digest of $name, abbreviated"
	is "$(stele ls "image@$name")" "$(stele ls "image@sha256:$short")" "it opens $name"
	is "$(stele ls "image@$name")" "$(stele ls "image@sha256:${short^^}")" "in capitals, too"
done
is + "$(stele diff "image@sha256:$(stele info --json image@first | jq -r .snapshot.digest |
	cut -c -9)" "image@sha256:$short" | cut -c 1)" "in each word"
other=$(tr 0-9a-f 1-9a-f0 <<<"${short:0:8}")
run stele ls "image@sha256:$other"
is "1 " "$status $out" "one that none has"
ok "where digests are" grep -q "^hint: 'stele snapshot list image'" <<<"$err"
ok "which says so" grep -q "no snapshot of 'image'" <<<"$err"
# Enough snapshots for two whose digests begin with the same four digits are many: two
# images of one digest are the same snapshot, so delete different samples.
for ((i = 0; i < 700; i++)); do echo $i; done >keys
mkdir many
while read -r key; do echo "$key" >"many/$key"; done <keys
must stele build -q many twins@v
for ((i = 0; i < 400; i++)); do
	stele snapshot create --base v --delete $i "twins@s$i" >/dev/null || break
done
twin=$(stele snapshot list --json twins | jq -r .digest | cut -c -4 | sort | uniq -d | head -n 1)
if [ -n "$twin" ]; then
	run stele ls "twins@sha256:$twin"
	is "2 " "$status $out" "one that two have"
	is 2 "$(grep -c "^hint: sha256:${twin}[0-9a-f]* is 's[0-9]*'$" <<<"$err")" \
		"names both" || diag "$err"
else
	skip_block 2 "no two of 400 digests begin alike"
fi

# ---- did you mean ----

says 2 "did you mean 'info'?" inof image
says 2 "did you mean 'snapshot'?" snapshots list image
says 2 "did you mean '--version'?" --versoin
run stele append --label=name source image@next
is 2 "$status" "append: --label is no short form of --label-from"
ok "append: --label is told from it" grep -q "^stele: --label is build's" <<<"$err" || diag "$err"
says 1 "choose a smaller size, a filesystem that has larger files" resize --size=4E image
says 2 "options of a command follow it: 'stele COMMAND -n'" -n build source image
says 2 "" frobnicate image
says 2 "" nope image
for word in delete rm remove; do
	says 2 "did you mean 'stele snapshot delete'?" $word image@first
done
says 2 "did you mean 'stele snapshot list'?" list image
says 2 "did you mean 'stele snapshot rename'?" rename image@first third
says 2 "did you mean 'stele snapshot rename'?" mv image@first third
says 2 "did you mean 'stele snapshot undelete'?" undelete image@first
says 2 "did you mean 'stele snapshot delete'?" help rm
says 2 "did you mean '--json'?" info --jsno image
says 2 "did you mean '--on-error'?" build --on-eror src x
says 2 "did you mean '--grace'?" gc --grac3=1d image
says 2 "" info --frobnicate image
says 1 "did you mean 'first'?" ls image@frist
says 1 "did you mean 'second'?" snapshot delete image@Second
says 1 "did you mean 'second'?" diff image@first image@secnd
says 1 "did you mean 'first'?" copy image@fist copied
says 1 "" ls image@third-of-may
says 1 "did you mean 'pets'?" ls pet
says 1 "did you mean 'pets'?" unmap pest
says 1 "" unmap cars
run stele snapshot lsit image
ok "verbs of snapshot, too" grep -q "did you mean 'list'" <<<"$err"

# ---- what helps ----

says 1 "use 'stele append' to add a snapshot to it, or --force to overwrite it" \
	build src new
echo "dear diary" >diary
says 1 "use --force to overwrite it" build src diary
says 1 "use --force to overwrite it" copy image@first diary
says 1 "choose another name, or first give that snapshot another one" append src image@first
says 1 "choose another name, or first give that snapshot another one" snapshot create image@first
must cp image renamed
must stele snapshot rename renamed@first older
must stele snapshot create renamed@first >"$tmp/log"
rm renamed
says 1 "choose another NAME, or first remove this one with 'stele unmap'" \
	map image@second pets
says 1 "'stele build' makes an image" ls diary
says 1 "use a larger target, or a larger --size" build --size=1M src small
must truncate -s 3M trunk
must stele build -q src trunk
must truncate -s 2M trunk
says 3 "give the target its full size again" ls trunk
says 3 "give SOURCE its full size again, or copy the snapshot from elsewhere" copy trunk trunk2
says 1 "map it without --read-only" map --read-only image@first again
says 1 "" append nodir image@secnd
ln -s none dangling
says 1 "remove the link, or name what it leads to" build --force src dangling
mkdir -p split/{train,val}/{a,b} maps
for dir in split/*/*; do echo "$dir" >"$dir/f"; done
must stele build -q split splits@v1
says 1 "append the whole directory that the image was built from: only" append split/train splits@v2
echo bad >maps/cats
STELE_RUN_DIR=$tmp/maps says 3 "run 'stele unmap' and 'stele map' again" ls cats
STELE_RUN_DIR=$tmp/none/x says 1 "make its directory first, or set STELE" map image@first cats
: >none.csv
echo key,x >header.csv
for name in none header; do
	says 1 "see whether it is the right file" build $name.csv header.stele
done
says 1 "see whether it is the right file" append none.csv image@more
says 1 "'stele build' makes a new image" append header.csv nothere
says 2 "the first digits of one" map image@sha256:zz
must stele build -q src emptied@v1
must stele snapshot delete -f emptied@v1
for command in "ls emptied@v1" "compact emptied x" "compact -n emptied x" \
	"export emptied emptied.tar" "snapshot delete emptied@v7"; do
	# shellcheck disable=SC2086 # words
	says 1 "'stele snapshot undelete TARGET@NAME' brings one back" $command
	ok "$command: why" grep -q "empty image: it has no snapshots but those that can" <<<"$err"
done
ok "and no archive is left" test ! -e emptied.tar
run stele verify emptied
ok "verify, too" grep -q "^hint: 'stele snapshot undelete" <<<"$err" || diag "$err"
must stele snapshot undelete emptied@v1
must stele ls emptied@v1
touch fixed
if [ "$(id -u)" = 0 ] && chattr +i fixed 2>/dev/null; then
	says 1 "not even root may" build --force src fixed
	must chattr -i fixed
else
	skip_block 3 "needs root and chattr"
fi
cp new damaged
must stele build --force -q src damaged
printf XXXX | dd of=damaged bs=1 seek=4200 conv=notrunc status=none

if [ "$(id -u)" = 0 ] && command -v setpriv >"$tmp/which"; then
	chmod 755 "$tmp"
	chmod 600 image
	user() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
	run user "$BUILD/stele" ls "$tmp/image@first"
	is 1 "$status" "no permission"
	ok "where to read of it" grep -q "^hint: .*PERMISSIONS in stele(1)" <<<"$err" ||
		diag "$err"
	chmod 777 .
	mkdir -p part/sub
	chmod 700 part
	run user "$BUILD/stele" build part built
	is "hint: run it as a user who may read SOURCE" "$(tail -n 1 <<<"$err")" \
		"no permission for the source"
	chmod 755 part
	chmod 700 part/sub
	run user "$BUILD/stele" build part built
	is "stele: cannot read source 'sub': Permission denied
$(printf %s "hint: run it as a user who may read all of SOURCE, or " \
	"use --on-error=skip to leave such files out")" "$err" "nor for what is below it"
	run user "$BUILD/stele" copy image@first built
	ok "no permission to copy" grep -q "^hint: .* read SOURCE and write to TARGET" <<<"$err"
	chmod 644 image
	run user "$BUILD/stele" gc "$tmp/image"
	is "0 " "$status $err" "gc without --apply is content to read"
	run user "$BUILD/stele" gc -n --apply --force "$tmp/image"
	is 1 "$status" "with it, it wants to write, also when it only rehearses"
	for command in "posix on" "resize" "gc --apply --force"; do
		# shellcheck disable=SC2086 # words
		run user "$BUILD/stele" $command "$tmp/image"
		is "hint: run it as a user who may write there: see PERMISSIONS in stele(1)" \
			"$(tail -n 1 <<<"$err")" "$command: no permission to write"
	done
	mkdir -m 700 locked
	run user env STELE_RUN_DIR="$tmp/locked/run" "$BUILD/stele" map "$tmp/image@first" cats
	is 1 "$status" "no permission for mappings"
	ok "what helps" grep -q "^hint: set STELE_RUN_DIR" <<<"$err" || diag "$err"
	mkdir -m 755 roots
	STELE_RUN_DIR=$tmp/roots must stele map image@first cats
	for mode in 600 644; do
		chmod $mode roots/cats
		run user env STELE_RUN_DIR="$tmp/roots" "$BUILD/stele" unmap cats
		is "1 stele: cannot unmap 'cats': only root, who mapped it, can remove it" \
			"$status $err" "nor for a mapping of root, mode $mode"
		ok "which is still there" test -e roots/cats
	done
else
	skip_block 13 "needs root and setpriv"
fi

# ---- what was typed, and what was meant ----

for word in remove:delete rm:delete delte:delete restore:undelete ls:list mk:; do
	run stele snapshot ${word%:*} image@first
	is "2 ${word#*:}" "$status $(sed -n "s/.*did you mean '\(.*\)'.*/\1/p" <<<"$err")" \
		"snapshot ${word%:*}: did you mean"
done
says 2 "'stele snapshot create TARGET@NEW --base=OLD'" copy image@first image@third
mkdir -p deep/cats deep/dogs
for name in 1 2 '#1'; do echo "$name" | tee "deep/cats/$name" >deep/dogs/$name; done
must stele build -q deep deep.stele
says 1 "keys begin with it" cat deep.stele cats
says 1 "TARGET comes first: 'deep.stele@x' holds an image" cat cats "deep.stele@x"
says 1 "for the sample with that id write '#3'" cat deep.stele 3
says 1 "'stele ls' lists the keys" cat deep.stele 99
mkdir plain
echo x >plain/#9
must stele build -q plain plain.stele
says 1 "'#9' is a key, too: --keys finds that sample" cat plain.stele '#9'
run stele ls deep.stele 'horses*'
is "0  stele: no key matches 'horses*'" "$status $out $err" "ls: a pattern that matches nothing"
run stele ls deep.stele horses
is "0  stele: no key begins with 'horses'" "$status $out $err" "ls: a prefix that none has"
mkdir -p odd/'*star' odd/xstar
for name in '*star/1' xstar/1 'back\slash' 'back\*'; do echo x >"odd/$name"; done
must stele build -q odd odd.stele
for line in '\*star/|*star/1' '\*star/?|*star/1' '*star/|' '*star/1|*star/1 xstar/1' '\x|xstar/1' \
	'back\\|back\* back\slash' 'back\|back\* back\slash' 'back\\\*|back\*' \
	'back\\[s]*|back\slash' 'back\s|' '\*\*|'; do
	run stele ls odd.stele "${line%%|*}"
	is "0 ${line#*|}" "$status $(paste -sd ' ' <<<"$out")" "ls: ${line%%|*}"
done
ok "ls: a prefix with a backslash is one" grep -q "no key begins with" <<<"$err" || diag "$err"
says 1 "a directory is a source by itself" build --from=tar src new.stele
run stele build src 'named@r.stele'
ok "an '@' in the name of a file: where it divides" \
	grep -q "^hint: 'r.stele' is the name of the snapshot" <<<"$err"
ok "the summary has the target's name" grep -q "r.stele on 'named'" <<<"$out"
must stele snapshot create image@less --base=second -d d >"$tmp/log"
run stele compact image@less sound
ok "also of a compaction" grep -q "sound on 'image'" <<<"$out"

# ---- names that are not there, and what is in the way ----

says 2 "" build src "new2.stele@"
ok "an empty name is no v1" [ ! -e new2.stele ]
ok "which is said" grep -q "empty snapshot name in target 'new2.stele@'" <<<"$err"
rule="must be 1 to 63 letters, digits, '.', '_' and '-', the first no '.' or '-'"
says 2 "" build src "new2.stele@$(printf 'a%.0s' {1..300})"
ok "a long name is cut, and the rule is told" grep -q "'a\{60\}\.\.\.'.*: $rule" <<<"$err"
rule="'bad name' cannot name a mapping: $rule"
says 2 "" map image@first "bad name"
ok "map: tells the rule for names" grep -qF "$rule" <<<"$err"
says 2 "" unmap "bad name"
ok "unmap: tells the rule for names" grep -qF "$rule" <<<"$err"
says 2 "" snapshot create "image@" --base=first
says 1 "" map missing.stele cats
ok "map: names what is missing" grep -q "cannot open 'missing.stele': no such file" <<<"$err"
run stele unmap .x
is 2 "$status" "unmap: a name that nothing can have is wrong usage, as map says" || diag "$err"
mkdir "$tmp/limited"
head -c 300000 /dev/zero >"$tmp/limited/file"
for dry in --dry-run ""; do
	(ulimit -f 100; exec stele build $dry "$tmp/limited" "$tmp/limited.stele") \
		>>"$tmp/log" 2>"$tmp/.limited"
	is 1 "$?" "ulimit -f: an error, no signal $dry" || diag "$(<"$tmp/.limited")"
	ok "ulimit -f: said, with the next step $dry" \
		grep -q "^hint: .*ulimit -f" "$tmp/.limited" || diag "$(<"$tmp/.limited")"
	ok "ulimit -f: how much is possible $dry" \
		grep -q "files there have up to 102400" "$tmp/.limited"
done
ok "ulimit -f: no half of an image is left" test ! -e "$tmp/limited.stele"
(ulimit -n 6; exec stele build "$tmp/limited" "$tmp/limited.stele") >>"$tmp/log" 2>"$tmp/.limited"
is 1 $? "ulimit -n: an error"
ok "ulimit -n: with the next step" grep -q "^hint: .*ulimit -n" "$tmp/.limited" ||
	diag "$(<"$tmp/.limited")"
if (ulimit -v 45000 && stele -V) >>"$tmp/log" 2>&1; then # not with AddressSanitizer
	(ulimit -v 45000; exec stele build "$tmp/limited" "$tmp/limited.stele") \
		>>"$tmp/log" 2>"$tmp/.limited"
	is 1 $? "ulimit -v: an error"
	ok "ulimit -v: with the next step" grep -q "^hint: .*--memory .*--jobs" "$tmp/.limited" ||
		diag "$(<"$tmp/.limited")"
else
	skip_block 2 "the program needs more than 45 MB to start"
fi
must stele build -q "$tmp/limited" "$tmp/limited.stele@v1"
for output in "extract $tmp/limited.stele $tmp/unlimited" \
	"export $tmp/limited.stele $tmp/limited.tar" "cat $tmp/limited.stele file"; do
	# shellcheck disable=SC2086
	(ulimit -f 100; exec stele $output) >"$tmp/.to" 2>"$tmp/.limited"
	is 1 "$?" "ulimit -f: no signal: ${output%% *}" || diag "$(<"$tmp/.limited")"
	is 1 "$(grep -c "^hint: .*ulimit -f" "$tmp/.limited")" "ulimit -f: one hint" ||
		diag "$(<"$tmp/.limited")"
done
says 1 "" snapshot delete image@nope
ok "snapshot delete: says that it cannot delete" grep -q "cannot delete snapshot 'nope'" <<<"$err"
says 1 "choose another place" build src /proc/x
ok "a directory that takes no files is there" grep -q "no file can be made in '/proc'" <<<"$err"
says 1 "choose another place" extract image@first /proc/x
ok "extract: nor for it" grep -q "no file can be made in '/proc'" <<<"$err"
for words in "build src" "build -n src" "copy image@first"; do
	# shellcheck disable=SC2086 # words
	run stele $words /proc/version
	is "1 stele: cannot open '/proc/version': neither a block device nor a regular file" \
		"$status $(sed -n 1p <<<"$err")" "$words: to what keeps nothing"
done
ln -s nowhere dangling
for words in "build src" "extract image@first" "copy image@first"; do
	# shellcheck disable=SC2086 # words
	says 1 "remove the link, or name what it leads to" $words dangling
	ok "a link to nothing is called that: $words" \
		grep -q "dangling': it is a symbolic link to what does not exist" <<<"$err"
done
ok "and stays" test -L dangling
says 1 "'stele build' makes a new image" append src nothere
says 1 "the name of a file has no slash at its end" build src nothere/
says 1 "it is a directory: give TARGET a name in it, such as './data.stele'" build src .
says 1 "it is a directory: give TARGET a name in it" copy image@first ./
says 1 "name a block device" info .
says 1 "name a block device" copy image@first /dev/null
says 1 "'stele copy SOURCE TARGET' copies a snapshot" append image@swapped src
says 2 "'stele copy' to a smaller target" resize --size=4K image
ok "resize: what" grep -q "cannot resize 'image'" <<<"$err"
says 1 "run 'stele unmap'" build -f src image
says 1 "run 'stele unmap'" build -f src pets
says 1 "run 'stele unmap'" snapshot delete -f image@first
says 1 "'findmnt " umount src
says 1 "make that directory first" bench --iolog=nodir/x image@first
ok "bench --iolog: the directory" grep -q "no directory 'nodir'" <<<"$err"

# ---- what fails half way ----

must stele build -q src gone.stele
must rm -rf gone.stele
mkdir slow
head -c 150M /dev/zero | split -b 50M - slow/
for words in "build slow gone.stele" "copy slow.stele gone.stele" "append slow gone.stele@v2"; do
	from=0 # bytes that it has when it is removed: at once, or half way
	case $words in
	copy*) must stele build -q slow slow.stele ;;
	append*) must stele build -q src gone.stele && from=$((20 << 20)) ;;
	esac
	# It waits each time that it makes something durable: else it may be done before rm.
	# shellcheck disable=SC2086 # words
	strace -qq -f -o trace -e trace=fsync,fdatasync \
		-e inject=fsync,fdatasync:delay_enter=500000 stele $words >out 2>err &
	until [ "$(stat -c %s gone.stele 2>/dev/null || echo -1)" -ge $from ]; do
		kill -0 $! 2>/dev/null || break
	done
	rm gone.stele
	wait $!
	is 1 $? "${words%% *}: of a file that is removed meanwhile"
	ok "${words%% *}: says so" grep -q "the file was removed while it was being written" err
	ok "${words%% *}: what to do" grep -q "^hint: .*make it anew" err
	ok "${words%% *}: nothing is kept" not grep -q "copied so far" err
done
# meanwhile COMMAND... "STELE'S WORDS": run them, as above; when gone.stele, or a file
# beside it, has got its size, so does COMMAND to that file.
meanwhile() {
	# shellcheck disable=SC2048,SC2086 # words
	strace -qq -f -o trace -e trace=fsync,fdatasync \
		-e inject=fsync,fdatasync:delay_enter=200000 stele ${*: -1} >out 2>err &
	until file=$(find . -maxdepth 1 -name "gone.stele*" -size +40M | head -n 1) &&
		[ -n "$file" ]; do
		kill -0 $! 2>/dev/null || break
	done
	"$1" "${@:2:$#-2}" "$file" ${moved:+"$moved"}
	wait $!
}
for words in "build slow gone.stele" "build -f slow gone.stele" "append slow gone.stele@v2" \
	"copy slow.stele gone.stele" "copy -f slow.stele gone.stele"; do
	verb=${words% slow*}
	for size in 0 30M; do
		rm -f gone.stele*
		[[ $words != *" -f "* && $words != append* ]] || must stele build -q src gone.stele
		meanwhile truncate -s $size "$words"
		is 1 $? "$verb: of a file that is cut off at $size meanwhile"
		ok "$verb: says so" grep -q "the file was cut off while it was being written" err
		ok "$verb: blames nobody" not grep "taken over" err
		ok "$verb: nothing is kept" not grep -q "copied so far" err
		case $words in
		*" -f "*) ok "$verb: what was there stays" stele verify -q gone.stele ;;
		build*) ok "$verb: the file goes" not test -e gone.stele ;;
		esac
		is "" "$(compgen -G "gone.stele.*")" "$verb: no file is left beside"
	done
	rm -f gone.stele*
	[[ $words != *" -f "* && $words != append* ]] || must stele build -q src gone.stele
	moved=elsewhere meanwhile mv "$words"
	is 1 $? "$verb: of a file that is moved meanwhile"
	# A copy opens anew what it has made: it may be gone by then.
	[[ $words == copy\ slow* ]] ||
		ok "$verb: says so" \
			grep -q "no longer leads to what was written: the file was moved" err
	ok "$verb: no other name is offered" not grep -q "did you mean\|copied so far" err
	[[ $words == copy\ slow* ]] || is 0 "$(stele verify -q elsewhere >&2; echo $?)" \
		"$verb: it is whole where it is"
	rm -f gone.stele* elsewhere
done
rm -rf slow slow.stele
must stele build -q src sections.stele@v1
at=$(perl -e 'open F, "<", shift or die; for (my $at = 0; sysread F, my $b, 4096; $at += 4096) {
	print($at), exit if substr($b, 0, 12) eq "\x93STELE\r\n" . pack "V", 8 }' sections.stele)
printf XXXX | dd of=sections.stele bs=1 seek=$((at + 40)) conv=notrunc status=none
says 3 "'stele verify' lists all damage" compact sections.stele@v1 v2
ok "compact: the damaged section is named" grep -q "^stele: digests of segment" <<<"$err"
ok "compact: no sound record is blamed" not grep -q "record at\|cannot read" <<<"$err"

# ---- nothing is left of the superblocks ----

cp image erased
dd if=/dev/zero of=erased bs=4096 count=512 conv=notrunc status=none
for command in info "snapshot list" repair "append src" "snapshot create" ls extract \
	export diff bench; do
	target=erased
	[[ $command != @(append|*create)* ]] || target+=@new
	[[ $command != diff ]] || target+=" image@second"
	[[ $command != @(extract|export) ]] || target+=" -"
	# shellcheck disable=SC2086 # words
	says 3 "write nothing there" $command $target
	ok "$command: that there was an image" \
		grep -q "all four superblocks of a Stele image are gone" <<<"$err"
done
head -c 3000000 /dev/urandom >random
says 1 "'stele build' makes an image" info random

done_testing
