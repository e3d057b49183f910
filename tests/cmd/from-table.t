#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# from-table.t - rows of CSV, lines of JSON, manifests and lines of text, as Python writes them
. "${0%/*}/../tap.sh"
. tests/cmd/from.sh

fields() { stele ls --fields --json "$image" | jq -c '[.key, .fields]' | paste -sd ' '; }

# ---- CSV: what Python's module writes ----

# Random texts with all that has to be quoted; what is read back is what was written.
cat >"$tmp/write-csv.py" <<'END'
import csv, json, random, sys
random.seed(7)
alphabet = ["a", "ü", "€", "😀", '"', ",", "\t", ";", "\n", "\r\n", "'", " ", "\\"]
rows = [{"key": f"k{i:04d}", "text": "x" + "".join(random.choices(alphabet, k=i % 40)),
         "n": random.randrange(-2**63, 2**63), "x": random.random() * 10**(i % 30 - 15),
         "sparse": i if i % 3 else "", "label": ("cat", "dog", "")[i % 3]} for i in range(300)]
dialect = dict(delimiter=sys.argv[2], quoting=int(sys.argv[3]),
               lineterminator={"lf": "\n", "crlf": "\r\n"}[sys.argv[4]])
with open(sys.argv[1], "w", newline="") as f:
    writer = csv.DictWriter(f, list(rows[0]), **dialect)
    writer.writeheader()
    writer.writerows(rows)
json.dump({r["key"]: r for r in rows}, open(sys.argv[1] + ".json", "w"))
END
cat >"$tmp/compare.py" <<'END'
import json, math, sys
wanted = json.load(open(sys.argv[1]))
for line in sys.stdin:
    s = json.loads(line)
    w, got = wanted.pop(s["key"]), s["fields"]
    assert got["text"] == w["text"] and got["n"] == w["n"], (got, w)
    assert math.isclose(got["x"], w["x"], rel_tol=1e-14), (got, w) # printed so
    assert got["sparse"] == (w["sparse"] if w["sparse"] != "" else "nan"), (got, w)
    assert got["label"] == {"cat": 0, "dog": 1, "": -1}[w["label"]], (got, w)
assert not wanted
END
for way in ', 0 crlf' ', 1 lf' '; 0 lf'; do
	# shellcheck disable=SC2086 # words
	set -- $way
	must python3 "$tmp/write-csv.py" "$tmp/x.csv" "$1" "$2" "$3"
	built "$tmp/x.csv"
	is "0 300" "$status $(field "$out" .samples)" "CSV, $way: is built" || diag "$err"
	is "text:utf8 n:i64 x:f64 sparse:f64 label:i64" "$(types)" "CSV, $way: types"
	ok "CSV, $way: is what was written" python3 "$tmp/compare.py" "$tmp/x.csv.json" \
		< <(stele ls --fields --json "$image")
done
wanted=$(digest)
gzip -c "$tmp/x.csv" >"$tmp/x.csv.gz"
built "$tmp/x.csv.gz"
is "0 $wanted" "$status $(digest)" "CSV, gzip: the same" || diag "$err"
built --from=csv - < <(cat "$tmp/x.csv")
is "0 $wanted" "$status $(digest)" "CSV, a pipe: the same" || diag "$err"
must python3 "$tmp/write-csv.py" "$tmp/x.tsv" "$(printf '\t')" 0 lf
built "$tmp/x.tsv"
is "0 $wanted" "$status $(digest)" "TSV: the same" || diag "$err"

# shellcheck disable=SC2059 # with escapes
table() { printf "$1" >"$tmp/t.csv"; }
table '\xef\xbb\xbfa,b,c,d,e f,g\n1,1,007,1e3,x,\n\n2,,1,.5,1,\n'
built "$tmp/t.csv"
is "a:i64 b:f64 c:utf8 d:f64 e_f:utf8 g:utf8" "$(types)" "types by what is in all rows"
is '["t.csv/0000000000",{"a":1,"b":1,"c":"007","d":1000,"e_f":"x","g":""}] '\
'["t.csv/0000000001",{"a":2,"b":"nan","c":"1","d":0.5,"e_f":"1","g":""}]' "$(fields)" \
	"blank lines are no rows, and numbers with zeros in front are text"
table 'text\nhello\n""\n\n\r\n""\r\nworld\n""'
built "$tmp/t.csv"
is '0 ["hello","","","world",""]' "$status $(stele ls --fields --json "$image" |
	jq -sc '[.[].fields.text]')" "an empty value in quotes is a row" || diag "$err"
table 'big\n9007199254740993\n0.5\n'
built "$tmp/t.csv"
is "big:utf8" "$(types)" "integers that no f64 is are not rounded"
table 'label\n3\n\n1\n'
built "$tmp/t.csv"
is '["t.csv/0000000000",{"label":3}] ["t.csv/0000000001",{"label":1}]' "$(fields)" \
	"labels that are numbers stay what they are"
table 'a,label\n1,x\n2,5\n3,\n'
built "$tmp/t.csv"
is '[1,1] [2,0] [3,-1]' "$(stele ls --fields --json "$image" |
	jq -c '[.fields.a, .fields.label]' | paste -sd ' ')" "with names among them they are names"

table 'key,label\ra,cat\rb,dog\r'
built "$tmp/t.csv"
wrong "at byte 0: lines end with CR, and not with LF or CR LF: make it LF, as with tr .*r' .*n'" \
	"CR at line ends"
table '"a\rb",label\n1,x\n'
built "$tmp/t.csv"
is 0 "$status" "but one within quotes is a byte like others" || diag "$err"
table 'name,v\nx,1\ny,2\n'
built --key=name "$tmp/t.csv"
is '["x",{"v":1}] ["y",{"v":2}]' "$(fields)" "--key"
built "$tmp/t.csv"
must cp "$image" "$tmp/grown"
table 'name,v\nz,3\n'
mv "$tmp/t.csv" "$tmp/u.csv"
run stele append --json "$tmp/u.csv" "$tmp/grown@v2"
is "0 1" "$status $(field "$out" .added)" "append" || diag "$err"

# ---- CSV: what is wrong ----

table 'a,b\n1,2\n3\n4,5\n'
built "$tmp/t.csv"
wrong "t.csv' at byte 8: a row of 1 column: the header has 2" "a row that is too short"
built --on-error=skip "$tmp/t.csv"
is "0 2 1" "$status $(field "$out" '"\(.samples) \(.skipped.unreadable.count)"')" \
	"--on-error=skip leaves the row out, and counts it"
is true "$(field "$out" '.skipped.unreadable.first[0].key | test("t.csv. at byte 8: a row")')" \
	"and names it"
table 'a,b\n1,x"y\n4,5\n'
built "$tmp/t.csv"
wrong "t.csv' at byte 7: a quote within a value" "a quote in the middle"
built --on-error=skip "$tmp/t.csv"
is '0 ["t.csv/0000000001",{"a":4,"b":5}]' "$status $(fields)" "--on-error=skip goes on behind it"
table 'a,b\n1,"x"y\n4,5\n'
built "$tmp/t.csv"
wrong "t.csv' at byte 9: something between a quote" "text behind a quote"
table 'a,b\n1,"x\n4,5\n'
built "$tmp/t.csv"
wrong "at byte [0-9]+: a quote that does not end" "a quote that does not end"
table 'a,b\n1,\xff\n'
built "$tmp/t.csv"
wrong "t.csv' at byte 4: column 'b' is not UTF-8" "bytes that are no text"
table 'a,a\n1,2\n'
built "$tmp/t.csv"
wrong "t.csv' at byte 0: column 'a' is there twice in the header" "a column twice"
is "hint: each column needs a name of its own" "${err#*$'\n'}" "which no --on-error=skip would mend"
table ',a\n0,1\n1,2\n'
built "$tmp/t.csv"
is '0 ["t.csv/0000000000",{"a":1}] ["t.csv/0000000001",{"a":2}]' "$status $(fields)" \
	"a column without a name"
is "stele: warning: '$tmp/t.csv' at byte 0: column 1 has no name, and is left out" "$err" \
	"which is said to be left out"
table 'a,,b,\n1,2,3,4\n'
cp "$tmp/t.csv" "$tmp/u.csv"
built "$tmp/t.csv" "$tmp/u.csv"
is '0 ["t.csv/0000000000",{"a":1,"b":3}] ["u.csv/0000000000",{"a":1,"b":3}]' \
	"$status $(fields)" "and several"
ok "which are said once" [ "$(grep -c "2 columns have no name, the first is column 2" \
	<<<"$err")" = 1 ] || diag "$err"
table ',\n1,2\n'
built "$tmp/t.csv"
wrong "t.csv' at byte 0: no column has a name" "no names"
table 'key,a\nx,1\ny,2\nx,3\n'
built "$tmp/t.csv"
is 1 "$status" "a key twice"
ok "with both places" grep -qE "'x' twice: '.*t.csv' at byte 6, '.*t.csv' at byte 14" <<<"$err" ||
	diag "$err"
table 'key,a\n,1\n'
built "$tmp/t.csv"
wrong "t.csv' at byte 6: a key that is empty" "an empty key"
built --key=none "$tmp/t.csv"
misused "no column 'none' in the first row of '$tmp/t.csv' (there are 'key', 'a')" \
	"--key of another column"
built --key=none --on-error=skip "$tmp/t.csv"
misused "no column 'none' in '$tmp/t.csv' (there are 'key', 'a')" "--key, --on-error=skip"
built --payload=a "$tmp/t.csv"
is 2 "$status" "--payload is for manifests"
built --example "$tmp/t.csv"
is 2 "$status" "--example is for TFRecords"

# ---- many columns ----

# wide FILE KEY COUNT: a table of the key and so many columns, c0, c1, ...
wide() {
	seq -s , -f 'c%g' 0 $(($3 - 1)) | sed 's/^/key,/' >"$tmp/$1"
	seq -s , 1 "$3" | sed "s/^/$2,/" >>"$tmp/$1"
}
# none FROM TO: options that leave these out
none() { seq -f '--type=c%g:none' "$1" "$2"; }

wide w.csv x 70
for way in --from=csv "--from=manifest --payload=key"; do
	# shellcheck disable=SC2086 # words
	built $way "$tmp/w.csv"
	wrong "w.csv' has more than 64 fields: more than an image can hold$" "$way"
	is "hint: --type=COLUMN:none leaves a column out" "$(sed -n 2p <<<"$err")" \
		"too many columns, $way: says what helps"
done
# shellcheck disable=SC2046 # words
built $(none 64 69) "$tmp/w.csv"
is "0 64 c63:i64" "$status $(types | wc -w) $(types | grep -o '[^ ]*$')" \
	"as many columns as fields, after others are left out" || diag "$err"
# shellcheck disable=SC2046 # words
built $(none 5 69) "$tmp/w.csv"
is "0 5" "$status $(types | wc -w)" "more columns than that are left out" || diag "$err"
wide u.csv y 70
# shellcheck disable=SC2046 # words
run stele append -q $(none 5 69) "$tmp/u.csv" "$image@v2"
is '0 [1,2,3,4,5] [1,2,3,4,5]' "$status $(stele ls --fields --json "$image@v2" |
	jq -c '[.fields[]]' | paste -sd ' ')" "append leaves them out, too" || diag "$err"
run stele append -q "$tmp/u.csv" "$image@v3"
is "1 hint: --type=COLUMN:none leaves a column out" "$status $(sed -n 2p <<<"$err")" \
	"append says what helps"
mkdir "$tmp/members"
for ((i = 0; i < 70; i++)); do echo $i >"$tmp/members/x.c$i"; done
must tar -C "$tmp/members" --sort=name -cf "$tmp/w.tar" .
built --from=webdataset "$tmp/w.tar"
is "1 1" "$status $(wc -l <<<"$err")" "members of an archive cannot be left out: no hint" ||
	diag "$err"
wide w.csv x 4095
# shellcheck disable=SC2046 # words
built $(none 2 4094) "$tmp/w.csv"
is '0 ["x",{"c0":1,"c1":2}]' "$status $(fields)" "4096 columns" || diag "$err"
wide w.csv x 4096
built "$tmp/w.csv"
wrong "w.csv' has 4097 columns, more than 4096$" "no more columns than that"
# shellcheck disable=SC2046 # words
built $(none 0 4096) "$tmp/w.csv"
misused "invalid value 'c4096:none' for --type: must be given for no more than 4096 columns" \
	"no more types than columns"

# ---- CSV: any bytes ----

# No cut goes unnoticed unless it is between rows, and nothing that is cut or flipped crashes.
must python3 "$tmp/write-csv.py" "$tmp/x.csv" , 1 lf
size=$(stat -c %s "$tmp/x.csv")
bad=0
for ((i = 1; i < size; i += 997)); do
	head -c "$i" "$tmp/x.csv" >"$tmp/cut.csv"
	built "$tmp/cut.csv"
	[ "$status" -le 1 ] || bad=$((bad + 1))
	I=$i perl -0777 -pe 'vec($_, 8 * $ENV{I} + 5, 1) ^= 1' "$tmp/x.csv" >"$tmp/flip.csv"
	built --on-error=skip "$tmp/flip.csv"
	[ "$status" -le 2 ] || bad=$((bad + 1))
done
is 0 "$bad" "CSV, cut and flipped"

# ---- JSON Lines ----

cat >"$tmp/write-json.py" <<'END'
import json, random, sys
random.seed(9)
with open(sys.argv[1], "w") as f:
    for i in range(200):
        text = (chr(random.choice((34, 92, 10, 97, 252, 0x1f600))) for _ in range(i % 30))
        json.dump({"key": f"k{i:03d}", "text": "".join(text), "n": random.randrange(-2**63, 2**63),
                   "x": random.random(), "flag": i % 2 == 0, "none": None if i % 2 else 1.5,
                   "ids": list(range(i % 5)), "box": [0.5, 1, 2, i], "meta": {"a": [1, "b"]}},
                  f, ensure_ascii=i % 2 == 0)
        f.write("\n")
END
must python3 "$tmp/write-json.py" "$tmp/x.jsonl"
built "$tmp/x.jsonl"
is "0 200" "$status $(field "$out" .samples)" "JSON: is built" || diag "$err"
is "text:utf8 n:i64 x:f64 flag:i64 none:f64 ids:i64[null] box:f64[4] meta:utf8" "$(types)" \
	"JSON: types"
cat >"$tmp/compare.py" <<'END'
import json, math, struct, subprocess, sys
wanted = {r["key"]: r for r in map(json.loads, open(sys.argv[1]))}
for line in sys.stdin:
    s = json.loads(line)
    w, got = wanted.pop(s["key"]), s["fields"]
    for name in ("text", "n", "flag"): assert got[name] == w[name], (name, got, w)
    assert math.isclose(got["x"], w["x"], rel_tol=1e-14), (got, w)
    assert got["none"] == ("nan" if w["none"] is None else 1.5), got
    assert json.loads(got["meta"]) == w["meta"]
    if s["id"] % 20 == 0:
        for name, kind in (("ids", "q"), ("box", "d")):
            data = subprocess.check_output(["stele", "cat", "--field=" + name, sys.argv[2],
                                            s["key"]])
            assert list(struct.unpack(f"<{len(data) // 8}{kind}", data)) == w[name], (name, w)
assert not wanted
END
ok "JSON: is what was written" python3 "$tmp/compare.py" "$tmp/x.jsonl" "$image" \
	< <(stele ls --fields --json "$image")
wanted=$(digest)
gzip -c "$tmp/x.jsonl" | cat >"$tmp/piped"
built - < <(cat "$tmp/piped")
is "0 $wanted" "$status $(digest)" "JSON, gzip in a pipe: the same, and detected" || diag "$err"
printf '{"l":[1,2]}\n{"l":[0.5]}\n{}\n' >"$tmp/t.jsonl"
built "$tmp/t.jsonl"
is "l:f64[null]" "$(types)" "JSON: integers among reals"
version=1
for value in '[1.5,2]' '[]'; do
	echo "{\"l\":$value}" >"$tmp/u.jsonl"
	run stele append -q "$tmp/u.jsonl" "$image@v$((++version))"
	is "0 " "$status $err" "append: lists of one length among others: $value"
done
echo '{"l":[1,2]}' >"$tmp/w.jsonl"
run stele append -q "$tmp/w.jsonl" "$image@v4"
is "0 1 2" "$status $(stele cat --field=l "$image@v4" w.jsonl/0000000000 |
	od -An -t f8 | xargs)" "append: integers become reals, too" || diag "$err"
echo '{"l":[9007199254740993]}' >"$tmp/w.jsonl"
run stele append -q "$tmp/w.jsonl" "$image@v5"
ok "append: not those that no f64 is" grep -q "field 'l' is i64\[?\] instead of f64\[?\]$" \
	<<<"$err" || diag "$err"
echo '{"l":[0.5]}' >>"$tmp/w.jsonl"
built "$tmp/w.jsonl"
wrong "w.jsonl' at byte 0: 'l' has an integer that no f64 is, while" "JSON: nor in a table"
built "$tmp/t.jsonl"
is "1 2" "$(stele cat --field=l "$image" t.jsonl/0000000000 | od -An -t f8 | xargs)" \
	"become reals, too"
printf '{"a":1}\n{"a":2,}\n{"a":"x"}\n{"b":9007199254740993}\n[1]\n{"a":3}\n' >"$tmp/t.jsonl"
built "$tmp/t.jsonl"
wrong "t.jsonl' at byte 1[0-9]: .*" "JSON: bad syntax"
built --on-error=skip "$tmp/t.jsonl"
is 1 "$status" "JSON: integers that no f64 is, some of them missing"
ok "are not rounded" grep -q "'b' has an integer that no f64 is" <<<"$err" || diag "$err"
sed -i 4d "$tmp/t.jsonl"
built --on-error=skip "$tmp/t.jsonl"
is "0 2 3" "$status $(field "$out" '"\(.samples) \(.skipped.unreadable.count)"')" \
	"JSON: --on-error=skip leaves lines out"
printf '{"key":"a"}\n{"a":2}\n' >"$tmp/t.jsonl"
built "$tmp/t.jsonl"
wrong "t.jsonl' at byte 12: the sample has no 'key' that can be its key" \
	"JSON: a line without a key"
printf '{"a":2}\n{"key":"a"}\n' >"$tmp/t.jsonl"
built "$tmp/t.jsonl"
wrong "t.jsonl' at byte 8: the sample has a 'key', which samples before it lack" \
	"JSON: a key that others lack"

# ---- values of two types ----

# mixed VALUE...: of x, each in a line
mixed() {
	printf '{"x":%s}\n' "$@" >"$tmp/t.jsonl"
	built "$tmp/t.jsonl"
}
values() { stele ls --fields --json "$image" | jq -sc 'sort_by(.key) | map(.fields.x)'; }
mixed '[]' '["a"]' '[]'
is '0 x:utf8 ["[]","[\"a\"]","[]"]' "$status $(types) $(values)" \
	"JSON: an empty list, then others" || diag "$err"
mixed '{"a":1}' '[]'
is '0 x:utf8 ["{\"a\":1}","[]"]' "$status $(types) $(values)" \
	"JSON: an object, then an empty list"
mixed '[]' '[1,2]' '[]'
is '0 x:i64[null] [[0],[2],[0]]' "$status $(types) $(values)" \
	"JSON: an empty list, then numbers"
mixed '[]' '[]'
is '0 x:i64[null] [[0],[0]]' "$status $(types) $(values)" "JSON: nothing but empty lists"
while IFS='|' read -r one other words; do
	mixed "$one" "$other"
	wrong "t.jsonl' at byte [0-9]+: 'x' is $words in an earlier sample \(--type=x:text takes" \
		"JSON: $one, then $other"
	built --type=x:text "$tmp/t.jsonl"
	is "0 x:utf8" "$status $(types)" "which is so" || diag "$err"
done <<'END'
1|"a"|text, but was a number
"a"|1.5|a number, but was text
[]|1|a number, but was a list
[1]|["a"]|a list or an object, but was a list of numbers
END
printf '{"x y":1}\n{"x y":"a"}\n' >"$tmp/t.jsonl"
built "$tmp/t.jsonl"
wrong "'x y' is text, but was a number" "JSON: a name that no field has as it is"
built --key='x y' "$tmp/t.jsonl"
is 0 "$status" "as a key" || diag "$err"

# ---- manifests ----

mkdir "$tmp/files" && echo one >"$tmp/files/1" && echo two >"$tmp/files/2 ,"
printf 'label,path\ncat,files/1\ndog,"files/2 ,"\n' >"$tmp/m.csv"
built --from=manifest "$tmp/m.csv"
is '0 ["files/1",{"data":4,"label":0}] ["files/2 ,",{"data":4,"label":1}]' "$status $(fields)" \
	"a manifest: keys are paths" || diag "$err"
is "two" "$(stele cat --field=data "$image" 'files/2 ,')" "and bytes those of the files"
wanted=$(digest)
printf 'path\nfiles/1\0x\n' >"$tmp/nul.csv"
built --from=manifest "$tmp/nul.csv"
wrong "nul.csv' at byte 5: a path with a NUL byte" "a path with a NUL byte"
printf '{"label":"cat","file":"files/1"}\n{"label":"dog","file":"%s/files/2 ,"}\n' "$tmp" \
	>"$tmp/m.jsonl"
echo '{"path":"files/1","data":"x"}' >"$tmp/d.jsonl"
built --from=manifest "$tmp/d.jsonl"
wrong "'data' is what the files become" "JSON: a member 'data'"
built --from=manifest --payload=file --key=file "$tmp/m.jsonl"
misused "--key=file names the column of the paths, which are the keys if there is \
no column 'key'" "a column that is key and path"
printf '{"label":"cat","file":"files/1","id":7}\n{"label":"dog","file":"%s/files/2 ,","id":8}\n' \
	"$tmp" >"$tmp/m.jsonl"
built --from=manifest --payload=file --key=id "$tmp/m.jsonl"
is '0 ["7",{"data":4,"label":0}] ["8",{"data":4,"label":1}]' "$status $(fields)" \
	"JSON, other names, an absolute path" || diag "$err"
run stele append --json --update --from=manifest --payload=file --key=id "$tmp/m.jsonl" "$image@v2"
is "0 0" "$status $(field "$out" .updated)" "append --update: nothing new" || diag "$err"
echo three >"$tmp/files/1"
run stele append --json --update --from=manifest --payload=file --key=id "$tmp/m.jsonl" "$image@v2"
is "0 1 three" "$status $(field "$out" .updated) $(stele cat --field=data "$image@v2" 7)" \
	"append --update: a file that changed" || diag "$err"
printf '{"path":"%s/files/1"}\n{"path":"./files/2 ,"}\n' "$tmp" >"$tmp/a.jsonl"
built --from=manifest "$tmp/a.jsonl"
is "0 TMP/files/1 files/2 ," \
	"$status $(stele ls "$image" | sed "s|^${tmp#/}|TMP|" | LC_ALL=C sort | paste -sd ' ')" \
	"keys of paths are below where they are extracted" || diag "$err"
printf '{"path":"../files/1"}\n' >"$tmp/files/up.jsonl"
built --from=manifest "$tmp/files/up.jsonl"
left="stele: warning: extract, mount and export --to=tar leave out 1 key that no file can have, \
such as '../files/1': '..' in its path
hint: the column 'key', or --key=COLUMN, gives samples other keys"
is "0 $left" "$status $err" "others are warned of"
run stele build -n --from=manifest "$tmp/files/up.jsonl"
is "0 $left" "$status $err" "by a dry run, too"
run stele build -q -n --from=manifest "$tmp/files/up.jsonl"
is "0 " "$status $err" "but not if it shall be quiet"
run stele append --from=manifest "$tmp/files/up.jsonl" "$image@up"
is "0 $left" "$status $(grep -v 'and not compared' <<<"$err")" "and by append" || diag "$err"
run stele extract "$image@v1" "$tmp/out"
is 1 "$status" "which refuses them"
ok "with what to do" grep -q "^hint: 'stele cat' reads them; 'stele build' takes other" <<<"$err" ||
	diag "$err"
rm "$tmp/files/1"
built --from=manifest "$tmp/m.csv"
wrong "/files/1': No such file or directory .paths are relative to the manifest." \
	"a file that is not there"
built --from=manifest --on-error=skip "$tmp/m.csv"
is "0 1" "$status $(field "$out" .samples)" "--on-error=skip leaves it out"
printf 'a\n1\n' >"$tmp/m.csv"
built --from=manifest "$tmp/m.csv"
wrong "there is no column 'path' \(there are 'a'\)" "a manifest without paths"
built --from=manifest --payload=file "$tmp/m.csv"
misused "no column 'file' in the first row of '$tmp/m.csv' (there are 'a')" \
	"--payload of another column"
printf '{"path":"m.csv","a":1}\n' >"$tmp/m.jsonl"
built --from=manifest --payload=file "$tmp/m.jsonl"
misused "no column 'file' in the first row of '$tmp/m.jsonl' (there are 'path', 'a')" \
	"JSON: --payload"

# ---- types that are given ----

typed=(--key=path --type=species:class --type=zip:text --type=score:f64 --type=note:none)
printf 'path,species,zip,score,note\na,cat,90210,1,x\nb,dog,10001,2,y\n' >"$tmp/t.csv"
printf '%s\n' '{"path":"a","species":"cat","zip":90210,"score":1,"note":[1]}' \
	'{"path":"b","species":"dog","zip":"10001","score":2,"note":"x"}' >"$tmp/t.jsonl"
for table in t.csv t.jsonl; do
	built "${typed[@]}" "$tmp/$table"
	is "0 score:f64 species:i64 zip:utf8" \
		"$status $(types | tr ' ' '\n' | sort | paste -sd ' ')" "--type: $table" ||
		diag "$err"
	is '0 10 90210 1 20 10001' "$(stele ls --fields --json "$image" | jq -sr \
		'sort_by(.key)[].fields | "\(.species) \(.score * 10) \(.zip)"' | paste -sd ' ')" \
		"--type: values"
	is "cat dog" "$(stele ls --fields --json "$image" |
		jq -sr 'sort_by(.key)[].classes.species' | paste -sd ' ')" "--type: classes"
done
printf 'path,species,zip,score,note\nc,cat,9021,1.5,x\n' >"$tmp/u.csv"
run stele append -q "${typed[@]}" "$tmp/u.csv" "$image@v2"
is 0 "$status" "--type: append" || diag "$err"
built --type=species:f64 "$tmp/t.csv"
wrong "t.csv' at byte 28: column 'species' has a value that is no f64" "text as f64"
printf 'a\n9007199254740993\n' >"$tmp/u.csv"
built --type=a:f64 "$tmp/u.csv"
wrong "column 'a' has a value that is no f64" "an integer that no f64 is"
built --type=species:f64 "$tmp/t.jsonl"
wrong "'species' has a value that is no f64" "JSON: text as f64"
built --type=specie:class "$tmp/t.csv"
columns="'path', 'species', 'zip', 'score', 'note'"
misused "no column 'specie' in the first row of '$tmp/t.csv' (there are $columns)" \
	"a type of no column"
built --type=specie:class --type=zip:text --type=note:text "$tmp/t.jsonl"
misused "no column 'specie' in '$tmp/t.jsonl' (there are $columns)" "JSON: a type of no column"
built --key=none "$tmp/t.jsonl"
misused "no column 'none' in the first row of '$tmp/t.jsonl' (there are $columns)" \
	"JSON: --key of another column"
built --key=none --on-error=skip "$tmp/t.jsonl"
misused "no column 'none' in '$tmp/t.jsonl' (there are $columns)" "JSON: --key, --on-error=skip"
printf '%s\n' '{"a":1}' '{"a":2,"later":"x","id":"k"}' >"$tmp/u.jsonl"
built --type=later:class "$tmp/u.jsonl"
is "0 a:i64 later:i64 id:utf8" "$status $(types)" "JSON: a type of a column of some lines" ||
	diag "$err"
built --key=id --on-error=skip "$tmp/u.jsonl"
is "0 1" "$status $(field "$out" .samples)" "JSON: a key of some lines" || diag "$err"
printf 'a,b\n1,2\n' >"$tmp/u1.csv"
printf 'a\n1\n' >"$tmp/u2.csv"
built --key=a --type=b:text "$tmp/u1.csv" "$tmp/u2.csv"
wrong "u2.csv' at byte 0: there is no column 'b'" "a type of no column of a later file"
for type in x:i x x: :text; do
	built --type="$type" "$tmp/t.csv"
	is 2 "$status" "no type: $type"
done
built --type=x:text --from=text "$tmp/t.csv"
is 2 "$status" "--type is for tables"
built --type=zip:text --type=zip:f64 "$tmp/t.csv"
is "2 stele: --type is given twice for 'zip'" "$status $err" "--type twice for a column"
built --key=zip --type=zip:text "$tmp/t.csv"
is "2 stele: --type cannot be given for 'zip': it is the column of the keys" "$status $err" \
	"--type of the key"
built --type=key:none "$tmp/t.jsonl"
is 2 "$status" "--type of the key, whose name is the default"
for payload in path file; do
	built --from=manifest --payload=$payload --key=id --type=$payload:class "$tmp/m.jsonl"
	is 2 "$status" "--type of the paths"
	ok "says why" grep -q "'$payload': it is the column of the paths" <<<"$err" || diag "$err"
done

# classes COLUMN: numbers and names of all samples
classes() {
	stele ls --fields --json "$image" | jq -sr --arg c "$1" \
		'sort_by(.key)[] | "\(.fields[$c]) \(.classes[$c])"' | paste -sd ' '
}
table 'x\n1.5\n\n0.5\n10\n'
built --type=x:class "$tmp/t.csv"
is "x:i64 1 1.5 0 0.5 2 10" "$(types) $(classes x)" "--type: reals are names" || diag "$err"
printf '{"x":1.5}\n{"x":0.1}\n{"x":10}\n' >"$tmp/t.jsonl"
built --type=x:class "$tmp/t.jsonl"
is "x:i64 1 1.5 0 0.1 2 10" "$(types) $(classes x)" "--type: JSON: reals are names" || diag "$err"
table 'x\n3\n1\n'
built --type=x:class "$tmp/t.csv"
is "x:i64 3 null 1 null" "$(types) $(classes x)" "--type: integers are classes without names"
table 'label,a\n1.5,\n0.5,\n'
built --type=a:f64 "$tmp/t.csv"
is "label:f64 a:f64" "$(types)" "--type: f64 without a value, and a label of reals stays"
for value in '[1,2]' '[1]' '{"a":1}'; do
	printf '{"c":%s}\n' "$value" >"$tmp/t.jsonl"
	for type in class f64; do
		built --type=c:$type "$tmp/t.jsonl"
		wrong "t.jsonl' at byte 0: 'c' has a value that is no $type" "$value as $type"
	done
	built --type=c:text "$tmp/t.jsonl"
	is "0 c:utf8" "$status $(types)" "$value as text"
done
printf '{"c":"x"}\n{"c":""}\n' >"$tmp/t.jsonl"
built --type=c:class "$tmp/t.jsonl"
is "0 0 -1" "$status $(stele ls --fields --json "$image" | jq .fields.c | xargs)" \
	"a class without a name is none"

# What does not fit the snapshot that it is appended to is named.
printf '{"x":1.5,"l":[1,2],"s":"a"}\n' >"$tmp/t.jsonl"
built "$tmp/t.jsonl"
while IFS='|' read -r line why hint; do
	echo "$line" >"$tmp/u.jsonl"
	run stele append "$tmp/u.jsonl" "$image@v2"
	is 1 "$status" "append: $why: fails"
	ok "append: is said" grep -qF "than the snapshot: $why" <<<"$err" || diag "$err"
	ok "append: with a hint" grep -q -e "^hint: $hint" <<<"$err" || diag "$err"
done <<'END'
{"x":2,"l":[1,2],"s":"b"}|field 'x' is i64 instead of f64|--type=COLUMN:f64 makes
{"x":2.5,"l":[1.5,2,3],"s":"b"}|field 'l' is f64[3] instead of i64[2]|lists have the type
{"x":2.5,"l":[1,2,3],"s":"b"}|field 'l' is i64[3] instead of i64[2]|lists have the type and
{"x":[1],"l":[1,2],"s":"b"}|field 'x' is i64[1] instead of f64|lists have the type and
{"x":2.5,"l":7,"s":"b"}|field 'l' is i64 instead of i64[2]|lists have the type and
{"x":2.5,"l":[1,2],"s":[]}|field 's' is i64[?] instead of utf8|--type=COLUMN:text makes
{"x":2.5,"l":[1,2],"s":"b","new":true}|field 'new' (i64) is not in the snapshot|.*--key
END
mkdir "$tmp/plain" && echo 1 >"$tmp/plain/1.cls"
tar -C "$tmp/plain" -cf "$tmp/plain.tar" 1.cls
for source in "$tmp/plain" "--from=tar $tmp/plain.tar" "--from=webdataset $tmp/plain.tar"; do
	# shellcheck disable=SC2086 # an option and a file
	run stele append $source "$image@v2"
	is 1 "$status" "append: $source: fails"
	ok "append: with a hint" grep -q "^hint: append what the image was built from" \
		<<<"$err" || diag "$err"
	ok "append: of no table" not grep -q -e "--type" <<<"$err" || diag "$err"
done
echo '{"x":2,"l":[1,2],"s":"b"}' >"$tmp/u.jsonl"
run stele append -q --type=x:f64 "$tmp/u.jsonl" "$image@v2"
is "0 " "$status $err" "append: the hint helps"

# ---- numbers beyond f64 ----

for number in 1e999 -1e999 1e-999 0.1e-400; do
	table "x\n1.5\n$number\n"
	built "$tmp/t.csv"
	is "0 x:utf8" "$status $(types)" "$number is text"
	is "\"$number\"" "$(stele ls --fields --json "$image" | jq -sc '.[1].fields.x')" \
		"$number is kept"
	built --type=x:f64 "$tmp/t.csv"
	wrong "t.csv' at byte 6: column 'x' has a value that is no f64" "$number as f64"
done
for value in 1e-999 -1e-999 '[0,1E-999]' '{"x":["\"",{"y":0.1e-400}]}' \
	"0.$(printf '%0400d' 0)1"; do
	printf '%s\n' '{"x":0.0}' "{\"x\":$value}" >"$tmp/t.jsonl"
	built "$tmp/t.jsonl"
	wrong "t.jsonl' at byte [0-9]+: real number underflow near '-?[01]" "JSON: ${value::20}"
done
for value in 0.0 -0.0 0e-999 5e-324 '"1e-999"' '"\"1e-999"' '[0.0,"\\1e-999"]'; do
	printf '{"x":%s,"y":0.0}\n' "$value" >"$tmp/t.jsonl"
	built "$tmp/t.jsonl"
	is 0 "$status" "JSON: $value is what it says" || diag "$err"
done
for number in inf -inf nan 0e999 0e-999 5e-324 1.7976931348623157e308; do
	table "x\n1.5\n$number\n"
	built "$tmp/t.csv"
	is "0 x:f64" "$status $(types)" "$number is f64"
done

# ---- numbers of Python's that JSON does not have ----

bytes_of() { stele cat --field=x "$image" "t.jsonl/000000000$1" | od -An -t "$2" | xargs; }
mixed 1 NaN -Infinity '  Infinity ' 0.5
is '0 x:f64 [1,"nan","-inf","inf",0.5]' "$status $(types) $(values)" "JSON: NaN and infinities" ||
	diag "$err"
cat >"$tmp/write-python.py" <<'END'
import json, random, struct, sys
random.seed(11)
with open(sys.argv[1], "w") as f, open(sys.argv[2], "wb") as g:
    for i in range(400):
        x = random.choice((float("nan"), float("inf"), -float("inf"), random.random(), i))
        json.dump({"t,": 'NaN "\\', "x": [x, 2**64 - 2048], "y": {"Infinity": [x, {}]}}, f,
                  separators=random.choice(((",", ":"), (" , ", " : "))))
        f.write("\n")
        g.write(struct.pack("<dd", x, 2**64 - 2048))
END
must python3 "$tmp/write-python.py" "$tmp/t.jsonl" "$tmp/wanted"
built "$tmp/t.jsonl"
is "0 t_:utf8 x:f64[2] y:utf8" "$status $(types)" "JSON: NaN in lists and objects" || diag "$err"
stele ls "$image" | sort | while read -r key; do
	stele cat --field=x "$image" "$key"
done >"$tmp/got"
ok "bit for bit, as Python has them" cmp "$tmp/wanted" "$tmp/got"
is '"NaN"' "$(stele ls --fields --json "$image" | jq -s '.[0].fields.t_ | .[:3]')" \
	"not those within text"
for value in nan NAN -NaN +Infinity Infinit NaNs 'NaN NaN' '[NaN' 123456789012345678901x \
	0123456789012345678901 1.e999 -123456789012345678901-; do
	mixed "$value"
	wrong "t.jsonl' at byte [0-9]+: " "JSON: nor $value"
done

mixed 1 18446744073709551615 9223372036854775808 0
is "0 x:u64[] 1 18446744073709551615 9223372036854775808 0" "$status $(types) $(for i in 0 1 2 3; do
	bytes_of $i u8
done | xargs)" "JSON: integers beyond i64" || diag "$err"
mixed '[1,2]' '[18446744073709551615]' '[]'
is "0 x:u64[null] 18446744073709551615" "$status $(types) $(bytes_of 1 u8)" \
	"JSON: the same in lists" || diag "$err"
echo '{"x":[7]}' >"$tmp/u.jsonl"
run stele append -q "$tmp/u.jsonl" "$image@v2"
is "0 7" "$status $(stele cat --field=x "$image@v2" u.jsonl/0000000000 | od -An -t u8 | xargs)" \
	"append: to these" || diag "$err"
echo '{"x":[-7]}' >"$tmp/w.jsonl"
run stele append -q "$tmp/w.jsonl" "$image@v3"
ok "append: none below 0" grep -q "field 'x' is i64\[?\] instead of u64\[?\]" <<<"$err" ||
	diag "$err"
for values in '[-1] [9223372036854775808]' '[-1,9223372036854775808] [0]' \
	'[0.5] [9223372036854775808]' '[-9223372036854775808,1e3] [18446744073709551616]'; do
	# shellcheck disable=SC2086 # words
	mixed $values
	is "0 x:f64" "$status $(types | cut -d[ -f 1)" "JSON: $values" || diag "$err"
	ok "exactly" python3 - "$(bytes_of 0 f8) $(bytes_of 1 f8)" "$values" <<'END'
import re, sys
got, wanted = (list(map(float, re.sub(r"[][,]", " ", t).split())) for t in sys.argv[1:])
sys.exit(got != wanted)
END
done
for values in '-1 9223372036854775808' '0 18446744073709551616' '0.5 9223372036854775808'; do
	# shellcheck disable=SC2086 # words
	mixed $values
	is "0 x:f64" "$status $(types)" "JSON: $values" || diag "$err"
done
for values in '-1 9223372036854775809' '9223372036854775809 0.5' '[1.5] [18446744073709551615]' \
	'[-1,18446744073709551615] []' '9223372036854775809 null'; do
	# shellcheck disable=SC2086 # words
	mixed $values
	wrong "t.jsonl' at byte [0-9]+: 'x' has an integer that no f64 is, while .*--type=x:none" \
		"JSON: $values"
	built --type=x:text "$tmp/t.jsonl"
	is "0 x:utf8" "$status $(types)" "which is so" || diag "$err"
done
for value in 18446744073709551617 -9223372036854775809 "1$(printf '%0400d' 0)" \
	'[1,100000000000000000001]' 1e999 -1e-999; do
	mixed 1.50 "$value"
	case $value in
	*e*) wanted="at byte 16: real number .* near '$value'" ;;
	*) wanted="at byte 1[0-9]: 'x' has the integer .*, beyond 64 bits and no f64 \(" ;;
	esac
	wrong "t.jsonl' $wanted" "JSON: ${value::30}"
	built --on-error=skip "$tmp/t.jsonl"
	is "0 1 1" "$status $(field "$out" '"\(.samples) \(.skipped.unreadable.count)"')" \
		"--on-error=skip leaves it out"
	built --type=x:text "$tmp/t.jsonl"
	is "0 [\"1.50\",\"$value\"]" "$status $(values)" "--type=x:text takes its text" ||
		diag "$err"
	sed 's/}/,"y":1}/' "$tmp/t.jsonl" >"$tmp/u.jsonl"
	built --type=x:none "$tmp/u.jsonl"
	is "0 y:i64" "$status $(types)" "--type=x:none leaves it out" || diag "$err"
done
mixed '{"b" : [ 18446744073709551617, "a b" ]}'
is '0 ["{\"b\":[18446744073709551617,\"a b\"]}"]' "$status $(values)" "JSON: as text of JSON"
printf '{"key":%s,"label":%s}\n' 18446744073709551617 NaN 2 1 >"$tmp/t.jsonl"
built "$tmp/t.jsonl"
is '0 18446744073709551617 nan 2 1' "$status $(stele ls --fields --json "$image" |
	jq -r '.key, .fields.label' | xargs)" "JSON: as key and as label" || diag "$err"
built --type=label:class "$tmp/t.jsonl"
is "NaN 1" "$(stele ls --fields --json "$image" | jq -sr '.[].classes.label' | xargs)" \
	"JSON: as the name of a class"
built --type=label:f64 "$tmp/t.jsonl"
is "0 label:f64" "$status $(types)" "JSON: NaN, as f64"

# ---- marks at the begin ----

bom=$(printf '\xef\xbb\xbf')
for line in '{"key":"a","x":1}' '{"key":"a","x":NaN}'; do
	echo "$line" >"$tmp/t.jsonl"
	built "$tmp/t.jsonl"
	wanted=$(digest)
	echo "$bom$line" >"$tmp/t.jsonl"
	built "$tmp/t.jsonl"
	is "0 $wanted" "$status $(digest)" "JSON, a mark at the begin: the same" || diag "$err"
	gzip -c "$tmp/t.jsonl" >"$tmp/t.jsonl.gz"
	built "$tmp/t.jsonl.gz"
	is "0 $wanted" "$status $(digest)" "JSON, a mark, gzip: the same" || diag "$err"
	printf '\n \r\n%s\n' "$line" >"$tmp/t.jsonl"
	built "$tmp/t.jsonl"
	is "0 $wanted" "$status $(digest)" "JSON, empty lines at the begin" || diag "$err"
done
printf '%s\n{"path":"t.csv"}\n' "$bom" >"$tmp/m.jsonl"
echo one >"$tmp/t.csv"
built --from=manifest "$tmp/m.jsonl"
is '0 ["t.csv",{"data":4}]' "$status $(fields)" "a manifest, a mark: is JSON" || diag "$err"
printf '%skey,x\na,1\n' "$bom" >"$tmp/t.csv"
built "$tmp/t.csv"
is '0 ["a",{"x":1}]' "$status $(fields)" "CSV, a mark: is no part of the name"
printf '%sone\n%stwo\n' "$bom" "$bom" >"$tmp/t.txt"
built --from=text "$tmp/t.txt"
is "0 one ${bom}two" "$status $(for i in 0 1; do stele cat "$image" "t.txt/000000000$i"; echo
done | xargs)" "text, a mark: only at the begin" || diag "$err"

# ---- nothing ----

: >"$tmp/nothing.csv"
run stele build "$tmp/nothing.csv" "$tmp/nothing"
is 1 "$status" "an empty file: fails"
ok "an empty file: says why" grep -q "the source has no samples" <<<"$err" || diag "$err"
run stele build -q --allow-empty "$tmp/nothing.csv" "$tmp/nothing"
is "0 " "$status $err" "an empty file: unless that is allowed"

# ---- text ----

printf 'one\r\n\nthrée\n' >"$tmp/t.txt"
built --from=text "$tmp/t.txt"
is '0 ["t.txt/0000000000",{"text":"one"}] ["t.txt/0000000001",{"text":""}] '\
'["t.txt/0000000002",{"text":"thrée"}]' "$status $(stele ls --fields --json "$image" | jq -sc \
	'sort_by(.key)[] | [.key, .fields]' | paste -sd ' ')" "lines of text" || diag "$err"
wanted=$(digest)
gzip -c "$tmp/t.txt" >"$tmp/gz/t.txt" 2>"$tmp/null" || {
	mkdir "$tmp/gz" && gzip -c "$tmp/t.txt" >"$tmp/gz/t.txt"
}
built --from=text "$tmp/gz/t.txt"
is "0 $wanted" "$status $(digest)" "text, gzip: the same" || diag "$err"
printf 'a\n\xff\nc' >"$tmp/t.txt"
built --from=text "$tmp/t.txt"
wrong "t.txt' at byte 2: the line is not UTF-8" "a line that is no text"
built --from=text --on-error=skip "$tmp/t.txt"
is "0 2" "$status $(field "$out" .samples)" "--on-error=skip leaves it out"

built --from=text <(echo a) <(echo b)
is "0 2 a b" "$status $(field "$out" .samples) $(stele ls "$image" | sort |
	while read -r key; do stele cat "$image" "$key" && echo; done | sort | paste -sd ' ')" \
	"two pipes" || diag "$err"

# Several streams are one; of a next one that is damaged nothing may show but that.
for filter in gzip bzip2 xz zstd lz4; do
	$filter -c <<<one 2>"$tmp/null" >"$tmp/first" || continue
	(cat "$tmp/first" && echo two | $filter -c) >"$tmp/t.txt"
	built --from=text "$tmp/t.txt"
	is "0 2" "$status $(field "$out" .samples)" "$filter, two streams" || diag "$err"
	I=$(stat -c %s "$tmp/first") perl -0777 -pi -e 'substr($_, $ENV{I} + 1, 1) ^= "\1"' \
		"$tmp/t.txt"
	for source in "$tmp/t.txt" -; do
		built --from=text "$source" <"$tmp/t.txt"
		wrong "' at byte [04], decompressed: " "$filter, the second one damaged"
	done
	# Not as a file of this kind begins, and not as bytes that are not compressed either.
	case $filter in bzip2) at=4 ;; lz4) at=5 ;; gzip) at=12 ;; *) at=7 ;; esac
	(I=$at perl -0777 -pe 'substr($_, $ENV{I}, 1) ^= "\x08"' "$tmp/first") >"$tmp/t.txt"
	for skip in "" --on-error=skip; do
		built --from=text $skip "$tmp/t.txt"
		wrong "" "$filter, its head damaged $skip"
	done
	head -c 9 "$tmp/first" >"$tmp/t.txt"
	built --from=text "$tmp/t.txt"
	wrong "' at byte [04], decompressed: " "$filter, cut"
	ok "$filter: and it is said so" not grep -q progress <<<"$err" || diag "$err"
	$filter -c <"$tmp/null" >"$tmp/t.txt"
	echo one >"$tmp/one"
	built --from=text "$tmp/t.txt" "$tmp/one"
	is "0 1" "$status $(field "$out" .samples)" "$filter, nothing" || diag "$err"
	[ "$filter" != zstd ] || continue
	(cat "$tmp/first" && head -c 300000 /dev/zero) >"$tmp/t.txt"
	built --from=text "$tmp/t.txt"
	is "0 1" "$status $(field "$out" .samples)" "$filter, filled up with zeros" || diag "$err"
	built --from=text - < <(cat "$tmp/t.txt")
	is "0 1" "$status $(field "$out" .samples)" "$filter, a pipe with zeros" || diag "$err"
	echo >>"$tmp/t.txt"
	built --from=text "$tmp/t.txt"
	wrong "' at byte [04], decompressed: " "$filter, zeros and more"
done

# Frames without data may come first, as of pzstd.
if zstd -c <<<one 2>"$tmp/null" >"$tmp/first"; then
	(printf '\x50\x2a\x4d\x18\x04\0\0\0abcd\x5f\x2a\x4d\x18\0\0\0\0' && cat "$tmp/first") \
		>"$tmp/t.txt"
	for source in "$tmp/t.txt" -; do
		built --from=text "$source" <"$tmp/t.txt"
		is "0 1" "$status $(field "$out" .samples)" "zstd behind frames without data" ||
			diag "$err"
	done
	head -c 10 "$tmp/t.txt" >"$tmp/cut"
	built --from=text "$tmp/cut"
	wrong "' at byte 0, decompressed: " "cut within one"
fi
if lz4 -l -c <<<one 2>"$tmp/null" >"$tmp/t.txt"; then
	built --from=text "$tmp/t.txt"
	is "0 1" "$status $(field "$out" .samples)" "lz4, its older format" || diag "$err"
fi

done_testing
