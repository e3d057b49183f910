#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# append-table.t - what tables and shards are appended to: classes keep their meaning, whatever
# they look like, and no value is made up
. "${0%/*}/../tap.sh"

cd "$tmp" || bail "cd"

# csv FILE ROW...
csv() {
	local file=$1
	shift
	printf '%s\n' "$@" >"$file"
}

# labels IMAGE: KEY=NAME of each sample; "-" where a class has no name
labels() {
	stele query --json "$1" 'SELECT key, label, label_name FROM samples ORDER BY key' |
		jq -r '.key + "=" + (.label_name // "-")' | paste -sd ' '
}

# refused WHY HINT DESCRIPTION COMMAND...
refused() {
	local why=$1 hint=$2 what=$3
	shift 3
	run stele "$@"
	is 1 "$status" "$what: fails"
	ok "$what: says what and where" grep -qF "$why" <<<"$err" || diag "$err"
	ok "$what: says what to do" grep -q -e "^hint: $hint" <<<"$err" || diag "$err"
}

# ---- new names ----

# One may be a typing error.
csv c1.csv key,label k0,cat k1,dog
csv c2.csv key,label k2,dgo k3,cat
must stele build -q c1.csv grown
for words in "-n c2.csv" c2.csv; do
	# shellcheck disable=SC2086 # words
	run stele append $words grown@v2
	is "0 stele: field 'label' has 1 new class: 'dgo'" "$status $err" "append $words: named"
done
csv c3.csv key,label k4,e k5,d k6,c k7,b k8,dgo
run stele append c3.csv grown@v3
is "0 stele: field 'label' has 4 new classes: 'b', 'c', 'd' and 1 more" "$status $err" \
	"of many some are named"
csv c4.csv key,label k9,dog
run stele append c4.csv grown@v4
is "0 " "$status $err" "of none there is no word"

# ---- names, and what looks like numbers ----

names="they would mean something else"
csv n1.csv key,label k0,0 k1,1 k2,2
csv n2.csv key,label k3,2 k4,cat
must stele build -q n1.csv n
refused "field 'label' has numbers in the snapshot, and class names in the source: $names" \
	"'stele build' makes an image of its own" "names behind numbers" append n2.csv n@v2
csv n3.csv key,label k3,7
must stele append -q n3.csv n@v2
is "k3 label=7" "$(stele ls -F n@v2 | tail -n 1)" "numbers behind numbers have no names"

csv u1.csv key,label k0, k1,
csv u2.csv key,label k2,
csv u3.csv key,label k3,cat k4,7
must stele build -q u1.csv u
must stele append -q u2.csv u@v2
must stele append -q u3.csv u@v3
is "k0=- k1=- k2=- k3=cat k4=7" "$(labels u@v3)" "no class is no number: names may come later"
csv u4.csv key,label k2,0
must stele build -q --force u1.csv u
must stele append -q u4.csv u@v2
refused "field 'label' has numbers in the snapshot, and class names in the source: $names" \
	"'stele build'" "but not behind a number in any segment" append u3.csv u@v3

csv c1.csv key,label k0,cat k1,10 k2,dog
csv c2.csv key,label k3,10 k4,0 k5,
must stele build -q c1.csv c
must stele append -q c2.csv c@v2
is "k0=cat k1=10 k2=dog k3=10 k4=0 k5=-" "$(labels c@v2)" "numbers behind names are names"
csv c3.csv key,label k6,dog k7,cow
must stele append -q c3.csv c@v3
is "k6=dog k7=cow" "$(labels c@v3 | grep -o 'k[67].*')" "and so are names"
csv z1.csv key,label k0,01 k1,02
csv z2.csv key,label k2,1 k3,2
must stele build -q z1.csv z
must stele append -q z2.csv z@v2
is "k0=01 k1=02 k2=1 k3=2" "$(labels z@v2)" "zeros in front make another name"

csv t1.csv key,kind k0,cat k1,dog
must stele build -q --type=kind:class t1.csv t
for kind in cow 7; do
	csv t2.csv key,kind k2,$kind
	refused "in the source, and class names in the snapshot" \
		"--type=kind:class makes its values names of classes" \
		"no classes behind classes of --type" append t2.csv t@v2
	printf '{"key":"k2","kind":"%s"}\n' $kind >t2.jsonl
	refused "field 'kind' has other values in the source, and class names in the snapshot" \
		"--type=kind:class makes its values names of classes" "nor of JSON" \
		append t2.jsonl t@v2
done
must stele append -q --type=kind:class t2.csv t@v2
is "k2 kind=2 (7)" "$(stele ls -F t@v2 | tail -n 1)" "and what that says does it"

echo '{"key":"a","label":"cat"}' >j1.jsonl
echo '{"key":"b","label":3}' >j2.jsonl
must stele build -q j1.jsonl j
must stele append -q j2.jsonl j@v2
is "a=cat b=3" "$(labels j@v2)" "JSON"
csv s1.csv key,split k0,train k1,1
csv s2.csv key,split k2,1
must stele build -q s1.csv s
must stele append -q s2.csv s@v2
is "k2 split=0 (1)" "$(stele ls -F s@v2 | tail -n 1)" "a split"

mkdir -p d/10 d/20
echo 1 >d/10/a && echo 2 >d/20/b
must stele build -q d d.stele
csv d.csv label,path 10,d/10/a 1,d/20/b
must stele append -q --from=manifest d.csv d.stele@v2
is "10/a=10 20/b=20 d/10/a=10 d/20/b=1" "$(labels d.stele@v2)" "a manifest behind a directory"

# wds NAME KEY=CLASS...: shards of such samples
wds() {
	local name=$1
	shift
	mkdir "$name"
	for sample; do echo "${sample#*=}" >"$name/${sample%=*}.cls"; done
	tar cf "$name.tar" --sort=name -C "$name" .
}
wds w1 a=10 b=20
wds w2 c=cat d=10
must stele build -q --from=webdataset w2.tar w
must stele append -q --from=webdataset w1.tar w@v2
is "a=10 b=20 c=cat d=10" "$(stele query --json w@v2 \
	'SELECT key, cls_name FROM samples ORDER BY key' |
	jq -r '.key + "=" + .cls_name' | paste -sd ' ')" "WebDataset"
must stele build -q --from=webdataset w1.tar r
refused "field 'cls' has numbers" "'stele build'" "WebDataset, names behind numbers" \
	append --from=webdataset w2.tar r@v2

# ---- what the source does not have ----

csv m1.csv key,age,w k1,30,1.5 k2,40,2.5
must stele build -q m1.csv m
csv m2.csv key k3
csv o1.csv id,x a,1
csv o2.csv id,x b,2
must stele build -q o1.csv o
refused "field 'id' of the snapshot is not in the source" \
	"add it there.*--key and --type as the image" "a column that --key takes" \
	append --key=id o2.csv o@v2
refused "field 'age' of the snapshot is not in the source" "add it there" "no column" \
	append m2.csv m@v2
csv m3.csv key,w k3,1.5
refused "field 'age' of the snapshot is not in the source" "add it there" "one column less" \
	append m3.csv m@v2
csv m4.csv key,age k3,7
refused "field 'w' of the snapshot is not in the source" "add it there" "the last column" \
	append m4.csv m@v2
echo '{"key":"k3","age":7}' >m.jsonl
refused "field 'w' of the snapshot is not in the source" "add it there" "JSON" \
	append m.jsonl m@v2
csv m5.csv key,age,w k3,,1.5 k4,7,1.5
refused "field 'age' is f64 instead of i64" "its values have to be integers" "a cell" \
	append m5.csv m@v2
csv m6.csv key,age,w k3,7, k4,7,1.5
run stele append -q m6.csv m@v2
is "0 k3 age=7 w=nan" "$status $(stele ls -F m@v2 | sed -n 3p)" "a real that is missing is nan" ||
	diag "$err"

# ---- other types ----

csv x1.csv key,x k1,0 k2,1
csv x2.csv key,x k3,0.5
must stele build -q x1.csv x
refused "field 'x' is f64 instead of i64" "its values have to be integers" "reals behind integers" \
	append x2.csv x@v2
refused "field 'x' has numbers in the snapshot" "'stele build'" "as classes" \
	append --type=x:class x2.csv x@v2
must stele build -q x2.csv y
refused "field 'x' is i64 instead of f64" "--type=COLUMN:f64" "integers behind reals" \
	append x1.csv y@v2
run stele append -q --type=x:f64 x1.csv y@v2
is "0 3" "$status $(stele ls y@v2 | wc -l)" "what is said does it"

done_testing
