#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# from-webdataset.t - members of tar archives that are the fields of a sample
#
# Shards are written by Python's tarfile with the names, order and header fields that
# webdataset.TarWriter uses. tests/fixture/from/webdataset.tar was written by the real one, 1.0.2:
#	with webdataset.TarWriter("webdataset.tar", mtime=0) as w:
#	    for i in range(12):
#	        sample = {"__key__": f"dir/{i:04d}", "bin": bytes(range(i * 20)), "cls": i % 3,
#	                  "json": {"i": i}}
#	        if i % 5 == 0: sample["txt"] = f"caption ü {i}"
#	        w.write(sample)
. "${0%/*}/../tap.sh"
. tests/cmd/from.sh

# shard FILE MEMBER=TEXT...
shard() {
	python3 -c 'import io, sys, tarfile
with tarfile.open(sys.argv[1], "w") as tar:
    for member in sys.argv[2:]:
        name, _, text = member.partition("=")
        info = tarfile.TarInfo(name)
        info.size = len(text.encode())
        tar.addfile(info, io.BytesIO(text.encode()))' "$@" || bail "python3"
}
fields() { stele ls --fields --json "$image" | jq -c '[.key, .fields]' | paste -sd ' '; }
types() {
	stele info --json "$image" | jq -r '[.snapshot.fields[] | "\(.name):\(.type)"] | join(" ")'
}

# ---- what the real writer makes ----

fixture=$PWD/tests/fixture/from/webdataset.tar
built --from=webdataset "$fixture"
is "0 12" "$status $(field "$out" .samples)" "the real writer: is built" || diag "$err"
is "bin:bytes cls:i64 json:utf8 txt:utf8" "$(types)" "its fields"
is '["dir/0005",{"bin":100,"cls":2,"json":"{\"i\": 5}","txt":"caption ü 5"}]' \
	"$(stele ls --fields --json "$image" dir/0005 | jq -c '[.key, .fields]')" "a sample"
mkdir "$tmp/members" && must tar -C "$tmp/members" -xf "$fixture"
bad=0
for member in "$tmp"/members/dir/*; do
	name=${member##*/}
	[ "${name#*.}" = cls ] ||
		stele cat --field="${name#*.}" "$image" "dir/${name%%.*}" | cmp -s - "$member" || {
		bad=$((bad + 1))
		diag "$name"
	}
done
is 0 "$bad" "each field has the bytes of its member"
gzip -c "$fixture" >"$tmp/x.tgz"
rm -f "$tmp/piped"
run stele build -q --from=webdataset - "$tmp/piped" < <(cat "$tmp/x.tgz")
run stele diff "$image" "$tmp/piped"
is "0" "$status" "the same from gzip through a pipe" || diag "$out$err"
is "$(stele info --json "$image" | jq -r .snapshot.digest)" \
	"$(stele info --json "$tmp/piped" | jq -r .snapshot.digest)" "with the same digest"

# ---- names ----

shard "$tmp/a.tar" x/1.JPG=one x/1.seg.png=two x/1.cls=7 y.d/2.jpg=three readme __meta__.json={} \
	.hidden=x y.d/3.cls=8
built --from=webdataset "$tmp/a.tar"
is '["x/1",{"jpg":3,"seg.png":3,"cls":7}] ["y.d/2",{"jpg":5,"seg.png":0,"cls":-1}] '\
'["y.d/3",{"jpg":0,"seg.png":0,"cls":8}]' "$(fields)" "keys end at the first dot"
is ".hidden __meta__.json readme" \
	"$(field "$out" '[.skipped.no_sample.first[].key] | sort | join(" ")')" \
	"what is no part of a sample is named"
ok "and not called a device" grep -qx "skipped *3: part of no sample" \
	<<<"$(stele build -f --from=webdataset "$tmp/a.tar" "$tmp/again")"
shard "$tmp/b.tar" 1.cls=dog 1.jpg=x 2.cls=cat 3.cls=dog 4.cls=ant
built --from=webdataset "$tmp/b.tar"
is '["1",2] ["2",1] ["3",2] ["4",0]' \
	"$(stele ls --fields --json "$image" | jq -c '[.key, .fields.cls]' | paste -sd ' ')" \
	"classes with names have the numbers of a sorted list"
is "ant dog" "$(stele ls --json "$image" | jq -r 'select(.key == "4" or .key == "1").classes.cls' |
	sort | paste -sd ' ')" "and keep the names"
shard "$tmp/c.tar" 5.cls=cow 5.jpg=y 6.cls=cat
run stele append --json --from=webdataset "$tmp/c.tar" "$image@v2"
is '0 ["5",3] ["6",1]' "$status $(stele ls --fields --json "$image@v2" |
	jq -c 'select(.key > "4") | [.key, .fields.cls]' | paste -sd ' ')" \
	"appended classes go by their names" || diag "$err"
shard "$tmp/c.tar" 7.jpg=z
run stele append --json --from=webdataset "$tmp/c.tar" "$image@v3"
is '0 -1' "$status $(stele ls --fields --json "$image@v3" | jq 'select(.key == "7").fields.cls')" \
	"a field that the shard lacks is that of the base" || diag "$err"
shard "$tmp/c.tar" 8.png=z
run stele append --from=webdataset "$tmp/c.tar" "$image@v4"
is 1 "$status" "one that the base lacks is refused"

# ---- what is wrong ----

shard "$tmp/d.tar" 1.jpg=a 1.cls=1 1.jpg=b 2.jpg=c 2.cls=2
built --from=webdataset "$tmp/d.tar"
is "0 bc" "$status $(for i in 1 2; do stele cat --field=jpg "$image" $i; done | xargs)" \
	"a member that is there again: the last one" || diag "$err"
is "stele: 1 member was replaced by later ones of the same name" "$err" "is said"
shard "$tmp/d.tar" 1.jpg=a 1.cls=1 2.jpg=c 2.cls=2 1.jpg=long 1.cls=3 2.jpg=d 1.jpg=longer
for source in "$tmp/d.tar" -; do
	built --from=webdataset "$source" < <(cat "$tmp/d.tar")
	is '0 ["1",{"jpg":6,"cls":3}] ["2",{"jpg":1,"cls":2}]' "$status $(fields)" \
		"some that do not follow each other: the same, $source" || diag "$err"
	is "longerd" "$(for i in 1 2; do stele cat --field=jpg "$image" $i; done | xargs)" \
		"with their bytes"
	is "stele: 4 members were replaced by later ones of the same name" "$err" "are counted"
done
shard "$tmp/e.tar" 1.jpg=e
built --from=webdataset "$tmp/d.tar" "$tmp/e.tar"
is 1 "$status" "not one of another shard"
shard "$tmp/d.tar" 1.jpg=a 1.cls=1 1.JPG=b 2.jpg=c 2.cls=2
built --from=webdataset "$tmp/d.tar"
wrong "d.tar' at byte 2048: '1.JPG' would be the field 'jpg', which '.jpg' is already" \
	"a field twice"
built --from=webdataset --on-error=skip "$tmp/d.tar"
is "0 2" "$status $(stele ls "$image" | paste -sd ' ')" "--on-error=skip leaves the sample out"
is 1 "$(field "$out" .skipped.unreadable.count)" "and names it"
shard "$tmp/d.tar" 1.cls=1 2.cls=two 3.cls=10
built --from=webdataset "$tmp/d.tar"
is '["1",0] ["2",2] ["3",1]' \
	"$(stele ls --fields --json "$image" | jq -c '[.key, .fields.cls]' | paste -sd ' ')" \
	"with a name among them, numbers are names"
shard "$tmp/d.tar" 1.cls=cat 2.cls='cat ' 3.cls=$'cat\r\n' 4.cls=$' cat\n' 5.cls=$'cat \n'
built --from=webdataset "$tmp/d.tar"
is '0 ["cat","cat ","cat"," cat","cat "]' "$status $(stele ls --fields --json "$image" |
	jq -sc '[.[].classes.cls]')" "a class name ends at its line end, not at a blank"
is 1 "$(grep -c "warning: classes ' cat' and 'cat' of 'cls' differ" <<<"$err")" "one warning"
shard "$tmp/d.tar" 1.cls=' '
built --from=webdataset "$tmp/d.tar"
wrong "'1.cls' has a blank value, which no class can have as a name" "a blank class"
shard "$tmp/d.tar" 1.cls= 2.cls=dog 3.cls=$'\n' 4.cls=dog 4.jpg=x 4.cls=
built --from=webdataset "$tmp/d.tar"
is '0 ["1",{"cls":-1,"jpg":0}] ["2",{"cls":0,"jpg":0}] ["3",{"cls":-1,"jpg":0}] '\
'["4",{"cls":-1,"jpg":1}]' "$status $(stele ls --fields --json "$image" |
	jq -cS '[.key, .fields]' | paste -sd ' ')" "an empty class is none" || diag "$err"
shard "$tmp/d.tar" 1.cls="$(printf '%05000d' 0)"
built --from=webdataset "$tmp/d.tar"
wrong "'1.cls' has a value of more than 4000 bytes" "a class too long"
shard "$tmp/d.tar" 1.jpg=a 2.jpg=b 1.cls=1
built --from=webdataset "$tmp/d.tar"
is 1 "$status" "members of a sample that do not follow each other"
ok "make a key twice" grep -q "the key '1' twice: '.*d.tar' at byte 0, " <<<"$err" || diag "$err"
printf '\377' >"$tmp/1.txt" && must tar -C "$tmp" -cf "$tmp/d.tar" 1.txt
built --from=webdataset "$tmp/d.tar"
wrong "d.tar' at byte 0: '1.txt' is not UTF-8" "text that is no UTF-8"
built --from=webdataset --on-error=skip --allow-empty "$tmp/d.tar"
is "0 0" "$status $(field "$out" .samples)" "--on-error=skip leaves it out"
shard "$tmp/d.tar" "1.a b=x"
built --from=webdataset "$tmp/d.tar"
is '["1",{"a_b":1}]' "$(fields)" "what no name can have becomes _"
# shellcheck disable=SC2046 # words
shard "$tmp/d.tar" $(seq -f '1.f%g=x' 65)
built --from=webdataset "$tmp/d.tar"
wrong "has more than 64 fields" "too many fields"
head -c 12000 "$fixture" >"$tmp/cut.tar"
built --from=webdataset "$tmp/cut.tar"
wrong "cut.tar' at byte [0-9]+: " "cut"
built --from=webdataset --on-error=skip "$tmp/cut.tar"
is 0 "$status" "--on-error=skip: what is whole" || diag "$err"
last=$(stele ls "$image" | tail -n 1)
is "$(stat -c %s "$tmp/members/$last.json")" "$(stele cat --field=json "$image" "$last" | wc -c)" \
	"the last sample is whole"

# ---- what of a sample is missing ----

# Four samples of three members each; header I of them is damaged, or a block of zeros.
members() {
	local i all=()
	for i in 1 2 3 4; do all+=("s/$i.jpg=jpg$i" "s/$i.cls=$i" "s/$i.txt=t"); done
	shard "$tmp/four.tar" "${all[@]}"
}
# wanted COUNT [LOST]: the fields of the first ones, but those
wanted() {
	for ((k = 1; k <= $1; k++)); do
		[[ ${2:-} = *" s/$k "* ]] || echo "[\"s/$k\",{\"cls\":$k,\"jpg\":4,\"txt\":\"t\"}]"
	done | paste -sd ' '
}
for ((i = 1; i < 12; i++)); do
	members
	printf '\377' |
		dd of="$tmp/four.tar" bs=1 seek=$((i * 1024 + 100)) conv=notrunc status=none
	built --from=webdataset "$tmp/four.tar"
	is 1 "$status" "member $i: fails"
	built --from=webdataset --on-error=skip "$tmp/four.tar"
	# That of a header could be a part of the sample in front, too.
	lost="s/$((i / 3 + 1))"
	[ $((i % 3)) != 0 ] || lost="s/$((i / 3)) $lost"
	[ $((i % 3)) != 2 ] || [ $i = 11 ] || lost="$lost s/$((i / 3 + 2))"
	is "0 $(wanted 4 " $lost ")" "$status $(fields | jq -cS . | paste -sd ' ')" \
		"member $i: what it may be of is left out" || diag "$err"
	is $(($(wc -w <<<"$lost") + 1)) "$(field "$out" .skipped.unreadable.count)" \
		"member $i: counted"
	members
	dd if=/dev/zero of="$tmp/four.tar" bs=512 seek=$((i * 2)) count=1 conv=notrunc status=none
	built --from=webdataset "$tmp/four.tar"
	is 1 "$status" "block $i: fails"
	ok "block $i: says why" grep -qE "at byte $((i * 1024)): a block of zeros, behind which" \
		<<<"$err" || diag "$err"
	built --from=webdataset --on-error=skip --allow-empty "$tmp/four.tar"
	is "0 $(wanted $(((i - 1) / 3)))" "$status $(fields | jq -cS . | paste -sd ' ')" \
		"block $i: what is whole for sure" || diag "$err"
done
mkdir "$tmp/l" && echo 1 >"$tmp/l/1.cls"
ln "$tmp/l/1.cls" "$tmp/l/2.cls" && ln -s 1.cls "$tmp/l/3.cls"
for i in 1 2 3 4; do echo jpg >"$tmp/l/$i.jpg"; done
cp "$tmp/l/1.cls" "$tmp/l/4.cls"
(cd "$tmp/l" && tar -cf "$tmp/links.tar" 1.cls 1.jpg 2.cls 2.jpg 3.jpg 3.cls 4.cls 4.jpg)
built --from=webdataset "$tmp/links.tar"
wrong "'2.cls' is a hard link to '1.cls'" "a hard link"
built --from=webdataset --on-error=skip "$tmp/links.tar"
is '0 ["1",{"cls":1,"jpg":4}] ["4",{"cls":1,"jpg":4}]' "$status $(fields)" \
	"samples with links are left out, and no others" || diag "$err"
is 2 "$(field "$out" .skipped.unreadable.count)" "both are counted"
(cd "$tmp/l" && tar -cf "$tmp/links.tar" 1.cls 1.jpg 3.jpg 3.cls)
built --from=webdataset "$tmp/links.tar"
wrong "'3.cls' is a symbolic link, which its sample would lack" "a symbolic link"

done_testing
