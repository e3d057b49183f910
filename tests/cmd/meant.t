#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# meant.t - what works, or fails, but was hardly meant: arguments in another order, formats that
# are detected where another one is likely, headers that are none
. "${0%/*}/../tap.sh"

cd "$tmp" || bail "cd"
mkdir src empty
for name in a b c; do echo "$name" >"src/$name.jpg"; done
must stele build -q src image.stele

# hints WANTED DESCRIPTION COMMAND...: this, and nothing else, is hinted at
hints() {
	local wanted=$1 what=$2
	shift 2
	run stele "$@"
	is "$wanted" "$(sed -n 's/^hint: //p' <<<"$err")" "$what" || diag "$err"
}

run stele resize image.stele 10M
is "2 stele: resize needs one TARGET; --size=10M is a size" "$status ${err%%$'\n'*}" \
	"resize: a size that is no option"

for command in ls info du; do
	hints "a file, or an image, has nothing below it; keys are arguments of their own: `
		`'stele ls TARGET PREFIX'" "$command: a key behind the target" \
		$command image.stele/sub
done

# ---- patterns ----

hints "'stele ls -0 TARGET PATTERN | xargs -0 stele extract TARGET DIR' takes those that match a `
	`pattern" "extract: a pattern" extract image.stele some "*.jpg"
stele ls -0 image.stele "*.jpg" | xargs -0 stele extract -q image.stele some
is "$(stele ls image.stele "*.jpg")" "$(find some -type f -printf '%P\n' | sort)" "which it does"

# ---- the order of arguments ----

first="TARGET comes first: 'image.stele@v1' holds an image"
hints "$first" "extract: to a new directory" extract out image.stele@v1
hints "$first" "extract: to a directory" extract empty image.stele@v1
hints "$first" "ls: of a file" ls src/a.jpg image.stele@v1
hints "$first" "cat: of a key" cat a.jpg image.stele@v1
hints "$first" "query: a selection" query 'SELECT key FROM samples' image.stele@v1
hints "did you mean 'v1'?" "not of another image" ls image.stele@v2 image.stele
hints "TARGET comes first, and then the directory" "mount" mount image.stele image.stele
second="SOURCE comes first, and then TARGET: 'src' is a directory"
hints "$second" "build" build new.stele src
image="'stele copy SOURCE TARGET' copies a snapshot of one to another; to add samples to it, name \
it last, behind what they come from"
hints "$image" "append" append image.stele src
for source in image.stele image.stele@; do
	hints "$image" "build: of $source" build $source new.stele
	is "1 stele: '$source' holds an image, which is no source" \
		"$status $(sed -n 1p <<<"$err")" "build: of $source: is said"
done
for way in '' --from=csv --from=dir; do
	hints "$image" "build: of a snapshot, $way" build $way image.stele@v1 new.stele
	is "1 stele: 'image.stele@v1' is a snapshot of an image, which is no source" \
		"$status $(sed -n 1p <<<"$err")" "build: of a snapshot, $way: is said"
done
hints "$image" "append: of a snapshot" append src image.stele@v1 image.stele@v2
hints "" "build: of what is not there" build src@v1 new.stele
is "1 stele: cannot open source 'src@v1': No such file or directory" "$status $err" "is said"
rbd="a source is a directory, or files; 'stele copy SOURCE TARGET' copies a snapshot of an image \
in Ceph RBD"
hints "$rbd" "build: of an image in Ceph RBD" build rbd:pool/image new.stele
hints "$rbd" "build: of one, --from=csv" build --from=csv rbd:pool/image new.stele
hints "$rbd" "append: of one" append rbd:pool/image@v1 image.stele@v2
must cp image.stele file@v1
hints "$image" "build: of a file whose name has an @" build file@v1 new.stele
hints "" "copy: another image is no place to be overwritten" copy new.stele image.stele
ok "and nothing was made" test ! -e new.stele -a ! -e out

# ---- a target that is missing ----

tar cf s-0.tar src/a.jpg
tar cf s-1.tar src/b.jpg
must cp s-1.tar s-1.before
missing="TARGET comes last, and may be missing here; if it is that file, remove it first"
for from in "" --from=webdataset; do
	# shellcheck disable=SC2086
	hints "$missing" "build: of all that a pattern names $from" build $from s-?.tar
	is 2 "$status" "which is refused"
done
ok "and no shard is touched" cmp -s s-1.tar s-1.before
echo text >text.bin
hints "use --force to overwrite it" "build: onto what is no source" build s-0.tar text.bin

# ---- sources of several formats ----

printf 'key,n\nx,1\n' >one.csv
printf '{"key": "y", "n": 2}\n' >two.jsonl
mixed() {
	hints "all sources have one format: '$1' looks like ${1##*.}, and '$2' like ${2##*.}" \
		"build: of $1 and $2" build "$1" "$2" mixed.stele
	is 1 "$status" "which is refused"
}
mixed one.csv two.jsonl
mixed two.jsonl one.csv
mixed s-0.tar one.csv
printf 'key,n\nx,"1" 2\n' >bad.csv
hints "use --on-error=skip to leave out what is damaged" \
	"build: of one format, which one of them breaks" build one.csv bad.csv mixed.stele

echo '[{"a": 1}]' >list.json
printf '[\n{"a": 1},\n{"a": 2}\n]\n' >lists.json
printf '{\n "a": 1\n}\n{\n "a": 2\n}\n' >objects.json
lines="each line is a whole object of its own: \"jq -c . FILE\" makes such lines of objects, \
\"jq -c '.[]' FILE\" of a list"
for file in list lists objects; do
	hints "$lines" "build: $file of JSON" build --from=jsonl $file.json mixed.stele
	hints "of JSON, $lines" "build: $file of JSON, not named" build $file.json mixed.stele
done
printf 'key,n\nx,1\n' | iconv -f UTF-8 -t UTF-16 >wide.csv
hints "'iconv -f UTF-16 -t UTF-8 FILE' makes UTF-8 of it" "build: a table in UTF-16" \
	build wide.csv mixed.stele
is "stele: 'wide.csv' is a text in UTF-16, not in UTF-8" "${err%%$'\n'*}" "which is said"
for order in LE BE; do
	printf '\ufeff{"key":"x"}\n' | iconv -f UTF-8 -t UTF-16$order >wide.jsonl
	hints "'iconv -f UTF-16 -t UTF-8 FILE' makes UTF-8 of it" "build: JSON in UTF-16$order" \
		build wide.jsonl mixed.stele
done
printf 'key,n\nx,\351\n' >latin1.csv
printf '{"key":"x","n":"\351"}\n' >latin1.jsonl
for file in latin1.csv latin1.jsonl; do
	hints "if it is in Latin-1, 'iconv -f LATIN1 -t UTF-8 FILE' makes UTF-8 of it; `
		`else use --on-error=skip to leave out what is damaged" "build: $file" \
		build $file mixed.stele
	iconv -f LATIN1 -t UTF-8 $file >"utf8.${file#*.}"
	must stele build -q "utf8.${file#*.}" "${file#*.}.stele"
	is é "$(stele query --csv "${file#*.}.stele" 'select n from samples' | sed 1d)" \
		"$file: as it was meant"
done
mkdir last
for i in 1 2 3; do echo $i >last/$i.txt && tar -C last -cf last/$i.tar $i.txt; done
before=$(sum last/3.tar)
for dry in "" -n; do
	# shellcheck disable=SC2086
	hints "$missing" "build -f: of shards without a target $dry" build -f $dry last/*.tar
	is "2 $before" "$status $(sum last/3.tar)" "the last one is not overwritten"
done
ok "which is said" grep -q "'last/3.tar' is not overwritten: it looks like what is" <<<"$err"
for from in text csv manifest; do
	cp last/1.txt last/$from-1.list
	cp last/2.txt last/$from-2.list
	for force in "" -f; do
		# shellcheck disable=SC2086
		hints "$missing" "build $force: of $from without a target" \
			build $force --from=$from last/$from-1.list last/$from-2.list
		is "2 2" "$status $(<last/$from-2.list)" "which nothing but its name tells"
	done
done
must cp image.stele last/image.list
hints "" "build -f: over an image that is called so" \
	build -f --from=text last/text-1.list last/image.list
is 0 "$status" "is done"
hints "" "build -f: over another file" build -f last/1.tar last/2.tar last/3.txt
globbed="shells expand '*' and '?' only where they are not quoted, and some file matches"
for from in "" --from=tar; do
	# shellcheck disable=SC2086
	hints "$globbed" "build: what no file matches $from" build $from 'no-*.tar' mixed.stele
done
tar cf more.tar src
renamed="choose another name, or first give that snapshot another one with 'stele snapshot rename'"
hints "$renamed" "append: a name that is there, by --from" \
	append --from=webdataset more.tar image.stele@v1

# ---- a snapshot without its image ----

fits="did you mean 'image.stele@v3'? 'image.stele' holds an image, and is a source here"
hints "$fits" "append: a directory" append src image.stele v3
tar cf a.tar src
hints "$fits" "append: an archive" append a.tar image.stele v3
hints "a directory is a source by itself, without --from and without others" \
	"append: of two sources" append src a.tar image.stele
must cp image.stele two.stele
must stele snapshot create two.stele@v2
run stele snapshot delete two.stele@v1 v2
is "2 stele: 'v2' is not a target: write 'two.stele@v2'" "$status $err" "delete: of two"
hints "did you mean 'two.stele@v1'?" "delete: a snapshot and its image" \
	snapshot delete v1 two.stele
hints "did you mean 'two.stele@v1'?" "delete: the other way round" snapshot delete two.stele v1
is "v1 v2" "$(stele snapshot list --json two.stele | jq -r .name | xargs)" "delete: nothing"
run stele snapshot delete two.stele@v1 image.stele@v1
is "2 stele: 'image.stele@v1' is not a snapshot of 'two.stele'" "$status $err" \
	"delete: of two images"
must stele snapshot delete two.stele@v1
hints "a snapshot that is to be made cannot be pinned: TARGET@NAME names it" "build: pinned" \
	build src new.stele@sha256:1234567890
is 2 "$status" "which is refused"
hints "the first digits of one, 0 to 9 and a to f, do as well: see 'stele info'" "none: pinned" \
	info new.stele@sha256:1234567890
hints "leave --from=dir out: what an archive or another file holds is seen then" \
	"build: an archive as a directory" build --from=dir a.tar new.stele
is "1 stele: 'a.tar' is not a directory" "$status $(sed -n 1p <<<"$err")" "is said"
hints "" "build: a file within a file" build --from=dir a.tar/x new.stele
ok "nor was any of them made" test ! -e new.stele -a ! -e v3

digits=$(stele info --json image.stele@v1 | jq -r '.snapshot.digest[:12]')
hints "these are digits of the digest of 'v1': 'image.stele@sha256:$digits' pins it" \
	"digits as 'snapshot list' has them" ls "image.stele@$digits"
hints "" "digits of another" ls image.stele@0123456789ab
must cp image.stele many.stele
must stele snapshot create many.stele@v2
hints "did you mean 'many.stele@v2'?" "diff: of two" diff many.stele@v1 v2
hints "" "diff: with what is none" diff many.stele@v1 v3
hints "did you mean 'many.stele@v2'?" "ls: a snapshot as if it were a key" ls many.stele v2
hints "" "ls: what is none" ls image.stele v3
hints "did you mean 'image.stele@v1'?" "cat: a snapshot as if it were a key" cat image.stele v1
for ((i = 1; i <= 20; i++)); do must stele snapshot create "many.stele@x$i"; done
run stele ls many.stele@nothing
ok "many snapshots: some are named" \
	grep -q "(available: v1, v2, x1, .*, x10 and 10 more)$" <<<"$err" || diag "$err"
run stele map nosuch
is "1 stele: cannot open 'nosuch': no such file, device or mapping" "$status $err" "map"

# ---- a command by another name ----

while read -r word meant; do
	hints "did you mean '$meant'?" "$word" "$word" image.stele
done <<-EOF
	create build
	fsck verify
	unmount umount
	rm stele snapshot delete
	buidl build
	hlep help
	compare diff
EOF

# ---- a key that begins with '-' ----

hints "put '--' in front of an argument that begins with '-'" "ls" ls image.stele@v1 -x.jpg
hints "put '--' in front of an argument that begins with '-'" "cat" cat image.stele@v1 -qx.jpg
hints "" "not of a letter that is no option" ls image.stele@v1 -k

# ---- a table that is a manifest ----

printf 'path,label\nsrc/a.jpg,cat\nsrc/b.jpg,dog\n' >m.csv
hints "the column 'path' names files, and the samples are only rows: --from=manifest takes the \
files" "a CSV whose column names files" build m.csv m1.stele
is "0 2" "$status $(stele ls m1.stele | wc -l)" "it is built all the same"
hints "" "not if its format is given" build --from=csv m.csv m2.stele
hints "" "nor of a manifest" build --from=manifest m.csv m3.stele
hints "" "nor if it shall be quiet" build -q m.csv m4.stele
hints "" "nor by append" append --update m.csv m1.stele@v2
printf '{"n":1.5,"image":"src/c.jpg"}\n' >m.jsonl
hints "the column 'image' names files, and the samples are only rows: --from=manifest \
--payload=image takes the files" "lines of JSON" build m.jsonl m5.stele
stele build -q --from=manifest --payload=image m.jsonl m6.stele
is "src/c.jpg" "$(stele ls m6.stele)" "what is said does it"
printf 'text,n\nsrc,1\nno/such.jpg,2\n' >t.csv
hints "" "text that names no file" build t.csv t.stele

header="the first line has to name the columns: put one such as 'path' or 'path,label' in front, \
and --from=manifest takes the files"
printf 'src/a.jpg\nsrc/b.jpg\n' >list.txt
printf 'src/a.jpg,cat\nsrc/b.jpg,dog\n' >list.csv
hints "$header" "a list without a header" build list.txt l1.stele
hints "$header" "whose format is named" build --from=manifest list.txt l1.stele
is "stele: 'list.txt' at byte 0: there is no column 'path'" "$(grep "column.*path'$" <<<"$err")" \
	"it has no names"
hints "$header" "a table without one" build list.csv l1.stele
ok "whose first row is taken for it" \
	grep -q "where 'src/a.jpg' is the name of a column, is taken for the header" <<<"$err"
(echo path && cat list.txt) >list2.txt
stele build -q --from=manifest list2.txt l2.stele
is "src/a.jpg src/b.jpg" "$(stele ls l2.stele | sort | xargs)" "what is said does it"
printf 'Path,a\nsrc/a.jpg,1\n' >upper.csv
printf '{"Path":"src/a.jpg"}\n' >upper.jsonl
hints "did you mean '--payload=Path'?" "a column in upper case" \
	build --from=manifest upper.csv l3.stele
hints "did you mean '--payload=Path'?" "of JSON" build --from=manifest upper.jsonl l3.stele
is "stele: 'upper.jsonl' at byte 0: there is no column 'path' (there are 'Path')" "${err%%$'\n'*}" \
	"which are listed"
hints "--payload=COLUMN names the one that has the paths" "no such column" \
	build --from=manifest t.csv l3.stele

# ---- a column of keys ----

printf 'Key,a\nx,1\n' >k.csv
hints "did you mean 'Key'?" "one in upper case" build --key=key k.csv k1.stele
hints "keys are numbers: --key=Key takes them from the column 'Key'" "which no option names" \
	build k.csv k1.stele
printf 'Key,n\n1.5,1\n2.5,2\n' >f.csv
hints "" "nor if it is of fractions" build -f f.csv k3.stele
hints "" "which one does" build --key=Key k.csv k2.stele
is x "$(stele ls k2.stele)" "what is said does it"

# ---- a header ----

# warns WANTED DESCRIPTION CSV
warns() {
	printf '%s' "$3" >h.csv
	run stele build -q -f h.csv h.stele
	is "0 ${1:+stele: warning: 'h.csv' at byte 0: $1}" "$status $err" "$2"
}
warns "the name of column ' label' begins or ends with a blank" "blanks" $'text, label\na, cat\n'
warns "the first row, where '7' is the name of a column, is taken for the header" \
	"rows without a header" $'a,7,1.5\nb,8,2\n'
warns "" "a header" $'text,n7\na,7\n'

# ---- an archive whose members belong together ----

mkdir wds
for n in 1 2 3; do
	echo "$n" >"wds/00$n.jpg"
	echo 0 >"wds/00$n.cls"
done
tar cf wds.tar --sort=name -C wds .
hints "each member is a sample by itself: --from=webdataset makes one sample of those that have a \
name in common" "a tar whose members have a name in common" build wds.tar w1.stele
is "0 6" "$status $(stele ls w1.stele | wc -l)" "it is built all the same"
hints "" "not if it is given" build --from=tar wds.tar w2.stele
hints "" "nor of WebDataset" build --from=webdataset wds.tar w3.stele
is 3 "$(stele ls w3.stele | wc -l)" "what is said does it"
tar cf mixed.tar -C wds 001.jpg 002.jpg 001.cls 002.cls
hints "members of one sample have to follow each other in one archive, as 'tar --sort=name' puts `
	`them, and no other archive may have that sample" \
	"members that are not next to each other" build --from=webdataset mixed.tar w5.stele
is 1 "$status" "are refused"
tar cf plain.tar src/a.jpg src/b.jpg wds/001.cls wds/001.jpg src/c.jpg wds/002.jpg wds/003.jpg
hints "" "nor where a pair is the exception" build plain.tar w4.stele

# ---- what only the Python package reads ----

elsewhere="'python3 -m stele.sources build SOURCE... TARGET' does, of the package for Python"
printf 'PAR1\0\0\0\0PAR1' >parquet.bin
printf 'ARROW1\0\0' >arrow.bin
printf '\377\377\377\377' >stream.arrow
printf 'x' >r.array_record
for name in parquet.bin arrow.bin stream.arrow r.array_record; do
	hints "$elsewhere" "$name" build "$name" none.stele
	is 1 "$status" "is refused"
done
is "stele: 'parquet.bin' is Parquet, which the command does not read" "$(stele build parquet.bin \
	none.stele 2>&1 | head -n 1)" "and said what it is"
printf 'text' >other.bin
hints "of single files, such as pictures, name the directory; unpack what is a zip" \
	"no other file" build other.bin none.stele

mkdir -p mds lit hf hfd l.lance/_versions l.lance/data none
echo '{"shards": [{"column_encodings": ["str"]}], "version": 2}' >mds/index.json
echo '{"chunks": [], "config": {}}' >lit/index.json
echo '{"_data_files": []}' >hf/state.json
echo '{"splits": ["train"]}' >hfd/dataset_dict.json
echo manifest >l.lance/_versions/1.manifest
echo '{"shards": 3}' >none/index.json
# dataset DIRECTORY WHAT
dataset() {
	hints "'$1' is a dataset of $2, and the samples are its files: 'python3 -m stele.sources \
build SOURCE TARGET' takes what is in them" "a dataset of $2" build "$1" "$1.stele"
	is 0 "$status" "it is built all the same"
}
dataset mds MDS
dataset lit LitData
dataset hf "Hugging Face"
dataset hfd "Hugging Face"
dataset l.lance Lance
mkdir tars parquets files
tar cf tars/a.tar src
tar czf tars/b.tgz src
echo PAR1 >parquets/x
hints "the samples are the files of 'tars' as they are (tar): 'stele build SOURCE/* TARGET' takes \
what is in them" "a directory of archives" build tars tars.stele
hints "the samples are the files of 'parquets' as they are (Parquet): 'python3 -m stele.sources \
build SOURCE TARGET' takes what is in them" "a directory of tables" build parquets parquets.stele
mkdir -p hive/year={2020,2021}/lang=en hive-tar/year=2020
for d in hive/*/*; do echo PAR1 >"$d/part-0"; done
touch hive/_SUCCESS
hints "the samples are the files of 'hive' as they are (Parquet): 'python3 -m stele.sources \
build SOURCE TARGET' takes what is in them" "directories that are columns" build hive hive.stele
cp tars/* hive-tar/year=2020
hints "" "which archives have none of" build hive-tar hive-tar.stele
cp other.bin hive/year=2021/lang=en
hints "" "tables beside others there" build hive hive2.stele
cp tars/* other.bin files
hints "" "archives beside others" build files files.stele
hints "" "no other index" build none n1.stele
hints "" "not if it is given" build --from=dir mds n2.stele
hints "" "nor if it shall be quiet" build -q mds n3.stele

# ---- a file that has grown under a loop device ----

if [ "$(id -u)" = 0 ]; then
	must stele build -q src grown.stele@v1
	loop=$(losetup -r -f --show grown.stele) && cleanup loop_drop "$loop"
	mkdir grown
	head -c 300K /dev/urandom >grown/x
	must stele append -q grown grown.stele@v2
	hints "if its file has grown, 'losetup -c $loop' tells the device; else give the target `
		`its full size again, or copy the image anew" \
		"a loop device as large as its file was" ls "$loop@v2"
	is 3 "$status" "which is no whole image"
	must losetup -c "$loop"
	run stele ls "$loop@v2"
	is "0 4" "$status $(wc -l <<<"$out")" "losetup -c helps"
else
	skip_block 3 "needs root"
fi

done_testing
