#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# damage.t - bytes that changed behind our back are found, never handed out
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version

mkdir "$tmp/src"
for ((i = 0; i < 50; i++)); do
	{ echo "sample-$i-begins" && head -c $((i * 300)) /dev/urandom; } \
		>"$tmp/src/s$i"
done
must stele build -q "$tmp/src" "$tmp/good"

offset_of() { grep -obaF "$1" "$tmp/good" | head -n 1 | cut -d: -f1; }

flip() { # OFFSET...: in a copy, named bad
	local offset
	cp "$tmp/good" "$tmp/bad"
	for offset; do
		perl -e 'my ($file, $at) = @ARGV; my $b;
			open my $f, "+<", $file or die; sysseek $f, $at, 0; sysread $f, $b, 1;
			sysseek $f, $at, 0; syswrite $f, chr(ord($b) ^ 0x10)' \
			"$tmp/bad" "$offset"
	done
}

run stele verify "$tmp/good"
is 0 "$status" "an image that is sound" || diag "$out" "$err"
ok "is said to be" grep -q sound <<<"$out"

at=$(offset_of sample-33-begins)
id=$(stele ls -l "$tmp/good" s33 | awk '{ print $1 }')
flip $((at + 3))
run stele verify "$tmp/bad"
is 3 "$status" "a record: verify finds it"
is 1 "$(grep -c '^damaged' <<<"$out")" "a record: one line" || diag "$out"
hint="hint: 'stele help damage' and DAMAGE in stele-verify(1) say how to go on"
is "$hint" "$err" "a record: what helps"
is "$out"$'\n'"$err" "$(stele verify "$tmp/bad" 2>&1)" "a record: that comes last in a pipe, too"
ok "a record: with key, id and offset" \
	grep -qE "^damaged record 's33' #$id of 'v1' at $at\+[0-9]+: .*0x.*0x" <<<"$out" ||
	diag "$out" "$err"
words=$(grep -o 'crc32c 0x[0-9a-f]*, expected 0x[0-9a-f]*' <<<"$out")
end=$(($(sed -E 's/.* at ([0-9]+\+[0-9]+):.*/\1/' <<<"$(grep ^damaged <<<"$out")")))
is "${words##* }" "0x$(od -An -tx4 -j $((end - 4)) -N4 "$tmp/bad" | tr -d ' ')" \
	"a record: the checksum that it carries is the one expected"
run stele verify --json "$tmp/bad"
is "3 s33 $id $at 1" "$status $(head -n 1 "$tmp/.out" |
	jq -r '"\(.key) \(.id) \(.offset)"') $(tail -n 1 "$tmp/.out" |
	jq .damage_count)" "a record: in JSON"
run stele cat "$tmp/bad" s33
is "3 " "$status $out" "a record: cat writes nothing of it"
ok "a record: cat says of its checksum what verify says" grep -qF "$words" <<<"$err"
is 1 "$(grep -cF "$words" <<<"$err")" "a record: cat says it once" || diag "$err"
ok "a record: cat says where to read of it" grep -q "^hint: .*DAMAGE" <<<"$err"
ok "a record: cat names it" grep -q "#$id 's33'" <<<"$err" || diag "$err"
run stele ls -F "$tmp/bad"
is 3 "$status" "a record: ls -F ends there"
is "stele: cannot read sample #$id 's33': checksum or digest does not match" \
	"$(sed -n 2p <<<"$err")" "a record: ls -F names it"
ok "a record: ls -F says where to read of it" grep -q "^hint: .*DAMAGE" <<<"$err"
is "s32 3" "$(tail -n 1 <<<"$out" | cut -d ' ' -f 1) $(wc -l <<<"$err")" \
	"a record: ls -F lists what is before it" || diag "$err"
run stele cat "$tmp/bad" s33 s7
is 3 "$status" "a record: cat of it and another fails"
ok "a record: the other is written" cmp "$tmp/src/s7" "$tmp/.out"
run stele extract "$tmp/bad" "$tmp/copy"
is 3 "$status" "a record: extract fails"
is 1 "$(grep -cF "$words" <<<"$err")" "a record: extract says it once" || diag "$err"
ok "a record: extract says where to read of it" grep -q "^hint: .*DAMAGE" <<<"$err"
ok "a record: extract names it" grep -q "#$id 's33'" <<<"$err"
ok "a record: extract does not write it" test ! -e "$tmp/copy/s33"
is 49 "$(find "$tmp/copy" -type f | wc -l)" "a record: all others are there"
run stele export "$tmp/bad" "$tmp/bad.tar"
is "3 1" "$status $(grep -cF "$words" <<<"$err")" "a record: export fails, and says it once" ||
	diag "$err"
ok "a record: export says where to read of it" grep -q "^hint: .*DAMAGE" <<<"$err"
ok "a record: export names it" grep -q "#$id 's33'" <<<"$err"
is missing "$(ls "$tmp/bad.tar" 2>/dev/null || echo missing)" "a record: and makes no archive"

flip "$(offset_of sample-1-begins)" "$(offset_of sample-40-begins)"
run stele verify "$tmp/bad"
is "3 2" "$status $(grep -c '^damaged record' <<<"$out")" "two records: two lines"

# The first superblock is lost: its mirror serves, and verify says so.
cp "$tmp/good" "$tmp/bad"
dd if=/dev/zero of="$tmp/bad" bs=4096 seek=1 count=2 conv=notrunc status=none
run stele cat "$tmp/bad" s7
is 0 "$status" "superblocks at the front lost: still readable" || diag "$err"
run stele verify "$tmp/bad"
is 3 "$status" "superblocks at the front lost: verify finds it"
ok "superblocks at the front lost: by name" \
	grep -q '^damaged superblock at 4096+4096: checksum.*not one of a Stele image' <<<"$out" ||
	diag "$out"

# Of several snapshots, each damage is named by one that has it; what the page says helps.
cp "$tmp/good" "$tmp/bad"
must stele snapshot create "$tmp/bad@less" -d s33 -d s1 >"$tmp/log"
flip_in() { # FILE OFFSET
	perl -e 'open F, "+<", shift or die; seek F, $ARGV[0], 0; read F, my $c, 1;
		seek F, $ARGV[0], 0; print F chr(ord($c) ^ 16)' "$1" "$2"
}
flip_in "$tmp/bad" $((at = $(offset_of sample-33-begins) + 3))
flip_in "$tmp/bad" "$(offset_of sample-40-begins)"
run stele verify "$tmp/bad"
while read -r key id name; do
	is "$key" "$(stele ls -l "$tmp/bad@${name//\'/}" |
		awk -v id="${id#\#}" '$1 == id { print $NF }')" \
		"an id that the snapshot has"
done < <(sed -n "s/^damaged record '\(.*\)' \(#.*\) of \(.*\) at.*/\1 \2 \3/p" <<<"$out")
is "s33 v1
s40 less" "$(sed -n "s/^damaged record '\(.*\)' #.* of '\(.*\)' at.*/\1 \2/p" <<<"$out" |
	sort)" "of the newest snapshot that has it"
id=$(sed -n "s/^damaged record 's40' \(#[0-9]*\) of 'less' at.*/\1/p" <<<"$out")
run stele copy "$tmp/bad@less" "$tmp/rescued"
is 3 "$status" "damage: copy refuses"
ok "damage: where to read of it" grep -q "^hint: .*DAMAGE in stele-verify(1)" <<<"$err"
ok "damage: and does not advise to run it again" not grep -q resume <<<"$err"
must stele snapshot create "$tmp/bad@rest" --base=less -d "$id" >"$tmp/log" # as the page says
must stele compact -q "$tmp/bad@rest" sound
run stele copy -q "$tmp/bad@sound" "$tmp/rescued"
is "0 " "$status $err" "damage: without it, and compacted, it can be copied"
is "$(stele ls "$tmp/good" | grep -vx 's33\|s1\|s40')" "$(stele ls "$tmp/rescued@sound")" \
	"damage: all that is left is there"

# What the hint names is there, for who has no manual pages, too.
run stele help damage
is "0 " "$status $err" "help damage"
for item in superblock catalog image descriptor order column tree keys digests 'deleted list' \
	names schema; do
	ok "help damage: of $item" grep -qE "^  ([a-z ,]+, )?${item}[ ,]" <<<"$out"
done
ok "help verify names it" grep -q "'stele help damage'" <<<"$(stele help verify)"

# A build in place of another was not interrupted.
if [ "$(id -u)" = 0 ]; then
	loop_new 16M
	must stele build -q "$tmp/src" "$loop"
	must stele build -q --force "$tmp/src" "$loop"
	run stele verify -q "$loop"
	is "0 " "$status $out$err" "over an image: no note"
else
	skip_block 1 "needs root"
fi

# ---- sections: what the page says still works ----

mkdir "$tmp/classes" "$tmp/classes/a" "$tmp/classes/b"
for ((i = 0; i < 6; i++)); do
	head -c $((5000 + i)) /dev/urandom >"$tmp/classes/a/$i"
	head -c $((6000 + i)) /dev/urandom >"$tmp/classes/b/$i"
done
head -c 9000 /dev/urandom | base64 >"$tmp/classes/a/text"
must stele build -q "$tmp/classes" "$tmp/labelled@v1"
# block_of TYPE: offset of the first one
block_of() {
	perl -e 'open F, "<", shift or die; for (my $at = 0; sysread F, my $b, 4096; $at += 4096) {
		print($at), exit if substr($b, 0, 12) eq "\x93STELE\r\n" . pack "V", $ARGV[0]
	}' "$tmp/labelled" "$1"
}

# Both descriptors of what v2 added: an append from v2 says so, and one from v1 works.
cp "$tmp/labelled" "$tmp/bad"
echo new >"$tmp/classes/a/new"
must stele append -q "$tmp/classes" "$tmp/bad@v2"
for at in $(perl -e 'open F, "<", shift or die;
	for (my $at = 0; sysread F, my $b, 4096; $at += 4096) {
		print("$at\n") if substr($b, 0, 12) eq "\x93STELE\r\n" . pack "V", 4
	}' "$tmp/bad" | tail -n 2); do
	flip_in "$tmp/bad" "$((at + 40))"
done
run stele append "$tmp/classes" "$tmp/bad@v3"
ok "append: names the snapshot that it cannot start from" \
	grep -q "cannot start from 'v2': descriptor of segment" <<<"$err" || diag "$err"
ok "append: and the way out" grep -q "^hint: --base=NAME starts from another" <<<"$err" ||
	diag "$err"
run stele append -q --base=v1 "$tmp/classes" "$tmp/bad@v3"
is "0 " "$status $err" "append: which works"
rm "$tmp/classes/a/new"

# An append does not see a damaged record; once that is left out, its file comes in again.
cp "$tmp/labelled" "$tmp/bad"
flip_in "$tmp/bad" "$(grep -abo -m 1 "$(head -c 16 "$tmp/classes/a/text")" "$tmp/bad" |
	head -n 1 | cut -d: -f1)"
run stele verify "$tmp/bad"
ok "record: verify names it" grep -q "^damaged record 'a/text'" <<<"$out"
run stele append --update "$tmp/classes" "$tmp/bad@v2"
ok "record: an update finds its digest unchanged" grep -q "^nothing has changed" <<<"$out"
must stele snapshot create --base=v1 -d a/text "$tmp/bad@less" >&2
must stele compact -q "$tmp/bad@less" sound
must stele append -q --base=sound "$tmp/classes" "$tmp/bad@v2"
ok "record: all is there again" stele extract -q "$tmp/bad@v2" "$tmp/again"
ok "record: as it was" diff -r "$tmp/classes" "$tmp/again"
ok "record: and can be copied" stele copy -q "$tmp/bad@v2" "$tmp/again.stele"

# damage_section TYPE NAME COMPACT EXTRACT: whether these work
damage_section() {
	cp "$tmp/labelled" "$tmp/bad"
	flip_in "$tmp/bad" $(($(block_of "$1") + 40))
	run stele verify "$tmp/bad"
	ok "$2: verify names it" grep -q "^damaged $2 of 'v1' at" <<<"$out"
	ok "$2: by name, everywhere" not grep -q "type $1" <<<"$err$(
		stele copy "$tmp/bad@v1" "$tmp/never" 2>&1; stele ls -l "$tmp/bad" 2>&1)"
	rm -rf "$tmp/copy" "$tmp/never"
	stele extract -q "$tmp/bad@v1" "$tmp/copy" 2>"$tmp/log"
	is "$4" $?  "$2: extract"
	[ "$4" != 0 ] || ok "$2: all is there" diff -r "$tmp/classes" "$tmp/copy"
	stele compact -q "$tmp/bad@v1" sound 2>"$tmp/log"
	is "$3" $? "$2: compact"
	[ "$3" != 0 ] || ok "$2: what it writes is sound" stele verify -q "$tmp/bad@sound"
}
# unsure NAME: what extract says of labels that it does not write
unsure() {
	run stele extract -f "$tmp/bad@v1" "$tmp/copy"
	is "0 hint: 'stele verify' lists all damage" "$status $(tail -n 1 <<<"${err%%;*}")" \
		"$1: extract warns, as paths cannot be looked at"
	ok "$1: extract says of what" \
		grep -q "^stele: warning: field 'label' is not written" <<<"$err"
}
damage_section 5 keys 3 0
unsure keys
damage_section 6 order 0 0
damage_section 7 column 0 0
damage_section 8 digests 3 0
damage_section 9 tree 3 0
damage_section 10 names 3 0
unsure names
run stele extract "$tmp/labelled@v1" "$tmp/whole"
is "0 " "$status $err" "nothing damaged: no warning"

# Without class names labels are numbers; whatever would lose the names refuses.
cp "$tmp/labelled" "$tmp/bad"
flip_in "$tmp/bad" $(($(block_of 10) + 40))
digest=$(stele info --json "$tmp/labelled@v1" | jq -r .snapshot.digest)
run stele verify "$tmp/bad"
is "1 $hint" "$(grep -c ^damaged <<<"$out") $err" \
	"names: verify says it once" || diag "$out"
for command in "ls -l $tmp/bad" "cat $tmp/bad a/3" "ls --json $tmp/bad"; do
	# shellcheck disable=SC2086 # words
	run stele $command
	warned=$(grep -c "^stele: warning: class names of field 'label' are damaged: " <<<"$err")
	is "0 1" "$status $warned" "names: ${command%% *} warns once" || diag "$err"
done
run stele map "$tmp/bad@v1" no-names
is 3 "$status" "names: map publishes no name that nobody can open"
ok "names: and says why" grep -q "cannot map .*class names of field 'label'" <<<"$err" ||
	diag "$err"
is "" "$(stele maps | grep no-names)" "names: none is there"
ok "names: info says so" grep -q "label i64 (class names damaged)" < <(stele info "$tmp/bad" 2>&1)
ok "names: a page says so" grep -q ">class names damaged<" \
	< <(stele view --html=- "$tmp/bad" 2>"$tmp/log")
is "true 0" "$(stele info --json "$tmp/bad@v1" 2>"$tmp/log" |
	jq -r '.snapshot.fields[] | select(.name == "label") | "\(.names_damaged) \(.classes)"')" \
	"names: in JSON"
is "$(stele ls --json "$tmp/labelled" | jq -c '[.key, .fields.label]')" \
	"$(stele ls --json "$tmp/bad" 2>"$tmp/log" | jq -c '[.key, .fields.label]')" \
	"names: labels are there"
stele cat "$tmp/bad" a/3 >"$tmp/copy.a3" 2>"$tmp/log"
ok "names: a sample is there" cmp "$tmp/classes/a/3" "$tmp/copy.a3"
sum=$(sha256sum <"$tmp/bad")
must stele build -q "$tmp/src" "$tmp/held"
for command in "copy $tmp/bad@v1 $tmp/never" "copy --force $tmp/bad@v1 $tmp/held" \
	"compact $tmp/bad@v1 v2" "append $tmp/classes $tmp/bad@v2" \
	"export --to=webdataset $tmp/bad@v1 $tmp/never.tar"; do
	# shellcheck disable=SC2086 # words
	run stele $command
	said=$(grep -c "^stele: cannot .*class names of field 'label'.* damaged" <<<"$err")
	is "3 1" "$status $said" "names: ${command%% *} refuses" || diag "$err"
	ok "names: ${command%% *} says how to go on" grep -q "^hint: .*Python.*DAMAGE" <<<"$err"
done
is "$sum" "$(sha256sum <"$tmp/bad")" "names: the image is as it was"
ok "names: and so is the target of a copy" stele verify -q "$tmp/held"
is "" "$(ls "$tmp/never" "$tmp/never.tar" 2>/dev/null)" "names: nothing was made"
run stele cat "$tmp/bad@sha256:$digest" a/3
is 3 "$status" "names: a pin cannot be proven"
ok "names: but the name works, it says" grep -q "open snapshot 'v1' by name" <<<"$err" ||
	diag "$err"
if [ "$(stele query "$tmp/labelled" "SELECT count(*) FROM samples" 2>/dev/null)" ]; then
	run stele query "$tmp/bad" "SELECT key FROM samples WHERE label = 1 ORDER BY key LIMIT 1"
	is 0 "$status" "names: a query by number" || diag "$err"
	for where in "label_name = 'b'" "label_name IN ('a', 'b')" "upper(label_name) = 'B'"; do
		run stele query "$tmp/bad" "SELECT key FROM samples WHERE $where"
		is 3 "$status" "names: a query by $where fails" || diag "$out$err"
		ok "names: a query by $where says of which field" grep -q \
			"^stele: cannot read the class names of field 'label': they are" <<<"$err"
	done
else
	skip_block 7 "no SQLite"
fi

# What cannot be proven, as a block of the digest tree is damaged, is not damaged itself.
cp "$tmp/labelled" "$tmp/bad"
flip_in "$tmp/bad" $(($(block_of 9) + 40))
for command in "compact $tmp/bad@v1 v2" "append $tmp/classes $tmp/bad@v2" \
	"snapshot create $tmp/bad@v2"; do
	# shellcheck disable=SC2086 # words
	run stele $command
	is 3 "$status" "tree: ${command%% *} refuses"
	ok "tree: ${command%% *} says what is damaged" grep -q \
		"^stele: warning: class names of field 'label' cannot be proven: tree of segment" \
		<<<"$err" || diag "$err"
	ok "tree: ${command%% *} says what that hinders" grep -q \
		"'v1': class names of field 'label' in snapshot 'v1' cannot be proven$" <<<"$err"
	ok "tree: ${command%% *} says no more" not grep -q "names.* damaged" <<<"$err"
	ok "tree: ${command%% *} says how to go on" grep -q "^hint: .*Python.*DAMAGE" <<<"$err"
done

# Those of another segment than the last one are missed by who would copy all of them.
mkdir "$tmp/classes/c"
echo x >"$tmp/classes/c/x"
cp "$tmp/labelled" "$tmp/bad"
must stele append -q "$tmp/classes" "$tmp/bad@v2"
flip_in "$tmp/bad" $(($(block_of 10) + 40))
run stele info "$tmp/bad@v2"
ok "names of the first segment: info" test "$status" = 0
is 1 "$(grep -c "^stele: warning: class names of field 'label' are damaged: " <<<"$err")" \
	"names of the first segment: info says so" || diag "$out$err"
rm -r "$tmp/classes/c"

# A deleted list: who cannot be opened is named.
must cp "$tmp/labelled" "$tmp/keep"
must stele snapshot create --base v1 -d a/1 "$tmp/labelled@s1" >"$tmp/log"
at=$(block_of 3)
must stele snapshot create --base v1 -d a/2 "$tmp/labelled@other" >"$tmp/log"
for name in s2 s3 s4 s5; do
	must stele snapshot create --base s1 "$tmp/labelled@$name" >"$tmp/log"
done
cp "$tmp/labelled" "$tmp/bad"
flip_in "$tmp/bad" $((at + 40))
run stele verify "$tmp/bad"
is "3 1" "$status $(grep -c \
	"^damaged deleted list at .*; 's1', 's2', 's3' and 2 more cannot be opened)" <<<"$out")" \
	"deleted list: verify says whose" || diag "$out"
for name in v1=0 other=0 s1=3 s5=3; do
	run stele ls "$tmp/bad@${name%=*}"
	is "${name#*=}" "$status" "deleted list: ${name%=*}"
done

# It hinders no change of an image with a tree, but that all of the tree is made anew.
must stele build -q --posix --granule=4096 "$tmp/src" "$tmp/tree@v1"
must stele snapshot create --base=v1 -d s1 "$tmp/tree@v2" >"$tmp/log"
must stele snapshot create --base=v1 -d s2 "$tmp/tree@v3" >"$tmp/log"
at=$(perl -e 'open F, "<", shift or die; for (my $at = 0; sysread F, my $b, 4096; $at += 4096) {
		print("$at\n") if substr($b, 0, 12) eq "\x93STELE\r\n" . pack "V", 3
	}' "$tmp/tree" | tail -n 1)
flip_in "$tmp/tree" "$((at + 40))"
run stele verify "$tmp/tree"
bad=$(sed -n "s/^damaged deleted list.*; '\(v[23]\)' cannot.*/\1/p" <<<"$out")
ok "a tree: one snapshot is damaged" test -n "$bad" || diag "$out"
run stele snapshot rename "$tmp/tree@v1" first
is "0 " "$status $err" "a tree: a rename"
run stele append -q --base=first "$tmp/classes" "$tmp/tree@more"
is "0 " "$status $err" "a tree: an append"
run stele posix on "$tmp/tree"
is 3 "$status" "a tree: not all of it can be made"
ok "a tree: what to do" grep -q "^hint: run 'stele posix off'; 'stele posix on'" <<<"$err" ||
	diag "$err"
# Blocks of another size, too, need all of it.
mkdir "$tmp/fine" && echo fine >"$tmp/fine/fine"
cp "$tmp/tree" "$tmp/tree2"
fine() { run stele append -q --granule=512 --base=first "$tmp/fine" "$tmp/tree2@fine"; }
fine
is 3 "$status" "a tree: an append with a smaller granule"
ok "a tree: is told why" grep -q "without what is damaged, the tree of files cannot be made" \
	<<<"$err" || diag "$err"
ok "a tree: and what to do" grep -q "^hint: run 'stele posix off'; 'stele" <<<"$err"
must stele posix off "$tmp/tree2"
fine
is "0 " "$status $err" "a tree: which helps"
must stele snapshot delete "$tmp/tree@$bad" 2>"$tmp/log"
run stele posix on "$tmp/tree"
is "0 " "$status $err" "a tree: without that snapshot it can"
must mv "$tmp/keep" "$tmp/labelled"

# The first byte of a block is that of the magic, and the image is ours all the same.
for type in 5 6 7 8 9; do
	cp "$tmp/labelled" "$tmp/bad"
	flip_in "$tmp/bad" "$(block_of "$type")"
	run stele verify "$tmp/bad"
	is 3 "$status" "type $type without its magic: damage"
	ok "type $type without its magic: nobody says that there is no image" \
		not grep -q "no Stele image there" <<<"${out,,}"
done

# Any single byte: sampled here over the whole file, between all structures.
size=$(stat -c %s "$tmp/good")
missed=
used() { # OFFSET: whether it belongs to the image (gaps hold zeros)
	case $1 in
	[0-3]??? | ???) return 1 ;;
	esac
	[ "$(od -An -tu1 -j "$1" -N1 "$tmp/good")" -ne 0 ]
}
checked=0
for ((i = 0; i < 400 && checked < 120; i++)); do
	at=$(((i * 7919 * 4097 + i) % size))
	used $at || continue
	checked=$((checked + 1))
	flip $at
	stele verify -q "$tmp/bad" >/dev/null 2>&1
	[ $? = 3 ] || missed="$missed $at"
done
ok "there were bytes to flip" test "$checked" -gt 50
is "" "$missed" "verify finds any of $checked flipped bytes"

# ---- the image as a whole ----

# lost STATUS HINT COUNT LAST: of $tmp/bad; so many lines, of which this is the last
lost() {
	run stele verify "$tmp/bad"
	is "3 $3" "$status $(grep -c '^damaged' <<<"$out")" "$4: verify calls it damage"
	ok "$4: says what" grep -q "^damaged image at .*$4" \
		<<<"$(grep ^damaged <<<"$out" | tail -n 1)" || diag "$out"
	is "hint: $2" "${err:0:$((6 + ${#2}))}" "$4: and nothing but the next step"
	is "$3" "$(stele verify --json "$tmp/bad" 2>>"$tmp/log" | tail -n 1 | jq .damage_count)" \
		"$4: as JSON"
	run stele repair "$tmp/bad"
	is "$1" "$status" "$4: no repair"
	ok "$4: repair has the next step, too" grep -q "^hint: $2" <<<"$err" || diag "$err"
}

for cut in $((size - 4096)) $((size / 2)) 1500000 10000; do
	head -c "$cut" "$tmp/good" >"$tmp/bad"
	lost 3 "give the target its full size again" $((cut == 10000 ? 4 : 1)) \
		"image has $size bytes, but its target only $cut"
	for verb in info ls copy extract export; do
		to=
		[[ $verb != [ce]* ]] || to=$tmp/nowhere
		run stele "$verb" "$tmp/bad" ${to:+"$to"}
		is 3 "$status" "$cut bytes: $verb: damage" || diag "$err"
	done
	run stele cat "$tmp/bad" s7
	is "3 " "$status $out" "$cut bytes: cat: not read from"
done
flip 4200 8300 1048676 1052772 $((0x180064)) $((0x1ff064)) # and the witnesses
lost 3 "write nothing there" 5 "all superblocks of the Stele image are damaged"
cp "$tmp/good" "$tmp/bad"
dd if=/dev/zero of="$tmp/bad" bs=4096 count=512 conv=notrunc status=none
lost 3 "write nothing there" 5 "all four superblocks of a Stele image are gone"
cp "$tmp/good" "$tmp/bad"
must stele snapshot create "$tmp/bad@less" -d s1 >"$tmp/log"
# The catalog of either slot, and its mirror.
for field in $((4096 + 0xa0)) $((8192 + 0xa0)); do
	at=$(od -An -tu8 -j $field -N 8 "$tmp/bad" | tr -d ' ')
	flip_in "$tmp/bad" $((at + 100))
done
run stele ls "$tmp/bad@less"
is "0 49" "$status $(wc -l <<<"$out")" "catalogs damaged: the mirror is read"
ok "catalogs damaged: and that is said" grep -q "^stele: warning: catalog of .*mirror" <<<"$err"
run stele verify "$tmp/bad"
is 3 "$status" "catalogs damaged: verify"
is 2 "$(grep -c "^damaged catalog at" <<<"$out")" "catalogs damaged: says which"
cp "$tmp/bad" "$tmp/healed"
run stele repair -n "$tmp/healed"
is "0 2 catalogs or witnesses to be rewritten" "$status $out" "catalogs damaged: repair -n"
run stele repair "$tmp/healed"
is "0" "$status" "catalogs damaged: repair"
run stele verify "$tmp/healed"
is "0 " "$status $err" "catalogs damaged: and all is sound"
is "$(stele snapshot list --json "$tmp/bad" 2>/dev/null)" \
	"$(stele snapshot list --json "$tmp/healed")" "catalogs damaged: the snapshots are the same"
run stele repair "$tmp/healed"
is "0 nothing to repair" "$status $out" "catalogs damaged: once is enough"
for field in $((4096 + 0xd0)) $((8192 + 0xd0)); do
	at=$(od -An -tu8 -j $field -N 8 "$tmp/bad" | tr -d ' ')
	flip_in "$tmp/bad" $((at + 100))
done
lost 3 "without a catalog" 3 "no sound catalog"

# ---- a snapshot that an older generation does not have ----

cp "$tmp/good" "$tmp/older"
must stele snapshot create "$tmp/older@v2" --base=v1
for block in 1 256 511; do # both copies of slot 0, and the witness
	dd if=/dev/zero of="$tmp/older" bs=4096 seek=$block count=1 conv=notrunc status=none
done
for verb in verify ls; do
	run stele $verb "$tmp/older@v2"
	is "1 2" "$status $(grep -c "warning: superblock copy [02] .* cannot be used" <<<"$err")" \
		"$verb: what is wrong with the newer generation is said" || diag "$err"
	ok "$verb: and that the snapshot is not there" \
		grep -q "no such snapshot (available: v1)" <<<"$err"
done

run stele append -q "$tmp/src" "$tmp/older@v3"
is 1 "$status" "no writer goes on from there"
ok "for a generation may be lost" grep -q "generation 2 may have been published" <<<"$err" ||
	diag "$err"
ok "though its witness is gone, too" stele repair --choose=1 "$tmp/older"
cp "$tmp/good" "$tmp/first"
for block in 1 256; do
	dd if=/dev/zero of="$tmp/first" bs=4096 seek=$block count=1 conv=notrunc status=none
done
run stele snapshot create "$tmp/first@v2" --base=v1
is 0 "$status" "of a first generation nothing is lost" || diag "$err"

done_testing
