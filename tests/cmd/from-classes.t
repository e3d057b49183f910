#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# from-classes.t - names and numbers of classes, as tables have them
. "${0%/*}/../tap.sh"
. tests/cmd/from.sh

fields() { stele ls --fields --json "$image" | jq -c '[.key, .fields]' | paste -sd ' '; }
# shellcheck disable=SC2059 # the text is a format
table() { printf "$1" >"$tmp/t.csv"; }

table 'key,label\na,1.0\nb,2.0\nc,\n'
built "$tmp/t.csv"
is '0 ["a",{"label":1}] ["b",{"label":2}] ["c",{"label":"nan"}]' "$status $(fields)" \
	"labels with a fraction are f64" || diag "$err"
ok "and where there is none, a warning says why" \
	grep -q "warning: 'label' has numbers with a fraction.*astype" <<<"$err" || diag "$err"
table 'key,label\na,1.0\nb,2.5\n'
built "$tmp/t.csv"
is "0 " "$status $err" "without gaps there is no word"

# Of a name in upper case it is said what it would have to be.
for name in Label SPLIT; do
	meant=${name,,}
	table "key,$name\na,cat\nb,dog\n"
	printf '{"key":"a","%s":"cat"}\n{"key":"b","%s":"dog"}\n' $name $name >"$tmp/t.jsonl"
	for file in t.csv t.jsonl; do
		built "$tmp/$file"
		is "0 stele: warning: '$name' is a field like any other: to be the $meant of \
samples it has to be called '$meant' in the source" "$status $err" "$file: $name"
		sed -e 's/^a,/c,/' -e 's/"a"/"c"/' "$tmp/$file" >"$tmp/more.${file#t.}"
		run stele append --json "$tmp/more.${file#t.}" "$image@next"
		is 0 "$status" "$file: $name: goes on" || diag "$err"
		ok "$file: $name: without a word" not grep -q warning <<<"$err" || diag "$err"
	done
done
table 'key,Label,label\na,cat,1\nb,dog,2\n'
built "$tmp/t.csv"
is "0 " "$status $err" "nor where there is another of that name"
table 'key,Label\na,cat\nb,dog\n'
built --type=Label:class "$tmp/t.csv"
is "0 " "$status $err" "--type=Label:class: nor where it is a class by that name" || diag "$err"

# What one file calls otherwise, all of its samples lack.
printf 'key,label,x\na,cat,1\n' >"$tmp/1.csv"
printf 'key,Label,y\nb,dog,2\n' >"$tmp/2.csv"
printf 'key,label\nc,dog\n' >"$tmp/3.csv"
lacks() { sed -n "s,^stele: warning: '$tmp/,,p" <<<"$err"; }
built "$tmp"/[123].csv
is "0 2.csv' has no column 'label', which others have: its samples have none; 3 more are not in `
	`all files" "$status $(lacks)" "a column that one file lacks"
built "$tmp/3.csv" "$tmp/1.csv"
is "0 3.csv' has no column 'x', which others have: its samples have none" "$status $(lacks)" \
	"or the first"
sed -i 's/Label/label/; s/,y/,x/' "$tmp/2.csv"
built "$tmp"/[12].csv
is "0 " "$status $err" "unless it has another name only"

table 'key|label\na|cat\n'
built "$tmp/t.csv"
is "0 stele: warning: '$tmp/t.csv' at byte 0: the header is one column, 'key|label': a comma, tab `
	`or semicolon separates them" "$status $err" "another separator is none, which is said"

# Excel says in a line of its own what separates columns.
for line in 'sep=;\n' 'sep=;\r\n' '\357\273\277sep=;\n'; do
	table "${line}key;label;n,m\na;cat;1\nb;dog;2\n"
	built "$tmp/t.csv"
	is '0  ["a",{"label":0,"n_m":1}] ["b",{"label":1,"n_m":2}]' "$status $err $(fields)" \
		"$line is no header"
done
for line in 'sep=x' 'sep=;x' 'sep=;'; do
	table "$line"
	built --allow-empty "$tmp/t.csv"
	is "0 0" "$status $(stele info --json "$image" | jq .snapshot.samples)" \
		"$line alone is one" || diag "$err"
done

# One name among numbers makes names of all.
table 'key,label\na,10\nb,2\nc,3o\n'
printf '{"key":"%s","label":%s}\n' a 10 b 2 c '"3o"' >"$tmp/t.jsonl"
for file in t.csv t.jsonl; do
	built "$tmp/$file"
	is '0 ["a",{"label":0}] ["b",{"label":1}] ["c",{"label":2}]' "$status $(fields)" \
		"$file: numbers and a name"
	is "stele: warning: 'label' has numbers, such as '10', and names, such as '3o': all are `
		`names of classes then, and labels their indices in sorted order" "$err" \
		"$file: which is said"
	sed 's/\<\([abc]\)\>/\1\1/' "$tmp/$file" >"$tmp/more.${file#t.}"
	run stele append "$tmp/more.${file#t.}" "$image@next"
	is "0 " "$status $err" "$file: not of classes that the image has"
	built --type=label:class "$tmp/$file"
	is "0 " "$status $err" "$file: nor where --type asks for it"
done
table 'key,label\na,10\nb,2\n'
built --type=label:class "$tmp/t.csv"
is "0 " "$status $err" "nor of numbers alone"

# A zero may be negative, as what %g prints: no integer, and no name of a class.
for name in label x; do
	table "key,$name\na,0.5\nb,-0\n"
	printf '{"key":"a","%s":0.5}\n{"key":"b","%s":-0.0}\n' $name $name >"$tmp/t.jsonl"
	for file in t.csv t.jsonl; do
		built "$tmp/$file"
		is "0 0.5 -0.0" "$status $(stele query --csv "$image" \
			"select $name from samples order by key" | sed 1d | paste -sd ' ')" \
			"$file: $name: a negative zero" || diag "$err"
	done
done

# Nothing is rounded, in labels neither.
table 'key,label\na,9007199254740993\nb,1.5\n'
printf '%s\n' '{"key":"a","label":9007199254740993}' '{"key":"b","label":1.5}' >"$tmp/t.jsonl"
for file in t.csv t.jsonl; do
	built "$tmp/$file"
	wrong "'label' has an integer that no f64 is" "$file: a large label among fractions"
done
table 'key,label\na,9007199254740993\nb,\n'
built "$tmp/t.csv"
is '0 ["a",{"label":9007199254740993}] ["b",{"label":-1}]' "$status $(stele ls --fields --json \
	"$image" | python3 -c 'import json, sys
for line in sys.stdin:
    row = json.loads(line)
    print(json.dumps([row["key"], row["fields"]], separators=(",", ":")))' | paste -sd ' ')" \
	"which are no fractions where one is missing"

# No name is none of the classes, however that is written.
table 'key,label\na,cat\nb,\nc,""\n'
printf '%s\n' '{"key":"a","label":"cat"}' '{"key":"b","label":""}' '{"key":"c"}' >"$tmp/t.jsonl"
for name in t.csv t.jsonl; do
	built "$tmp/$name"
	is '0  ["a",{"label":0}] ["b",{"label":-1}] ["c",{"label":-1}]' "$status $err $(fields)" \
		"$name: an empty label"
done
printf '%s\n' '{"key":"a","label":""}' '{"key":"b","label":""}' >"$tmp/t.jsonl"
built "$tmp/t.jsonl"
is '0 ["a",{"label":-1}] ["b",{"label":-1}]' "$status $(fields)" "none but these" || diag "$err"

# What is left out names no class, and its numbers are none either.
printf '%s\n' '{"key":"a","label":"cat"}' '{"label":"aaa"}' '{"key":"b","label":"dog"}' \
	'{"label":"x"}' '{"key":"c","label":"cat"}' '{"key":"","label":"7"}' >"$tmp/t.jsonl"
table 'key,label\na,cat\n,aaa\nb,dog\n,x\nc,cat\n,7\n'
for name in t.csv t.jsonl; do
	built --key=key --on-error=skip "$tmp/$name"
	is '0 ["a",{"label":0}] ["b",{"label":1}] ["c",{"label":0}] cat,dog' "$status $(fields) $(
		stele info --json "$image" | jq -r '.snapshot.fields[].names | map(.name) |
		join(",")')" "$name: classes of those that are left out" || diag "$err"
done

# White space is part of a class name, as of that of a folder; of a number it is not.
labels() { jq -sc '[.[].classes.label]' < <(stele ls --fields --json "$image"); }
table 'key,label\na,cat\nb,cat \nc," cat"\nd,"cat\t"\ne,dog\nf,"dog "\n'
printf '{"key":"%s","label":"%s"}\n' a cat b 'cat ' c ' cat' d 'cat\t' e dog f 'dog ' \
	>"$tmp/t.jsonl"
for name in t.csv t.jsonl; do
	built "$tmp/$name"
	is '0 ["cat","cat "," cat","cat\t","dog","dog "]' "$status $(labels)" \
		"$name: class names are what they are" || diag "$err"
	is 1 "$(grep -c warning <<<"$err")" "$name: one warning" || diag "$err"
	ok "$name: names two of them" grep -q "classes ' cat' and 'cat' of 'label' differ only in" \
		<<<"$err" || diag "$err"
done
table 'key,label\na,cat\n'
built "$tmp/t.csv"
table 'key,label\nb,cat \n'
run stele append "$tmp/t.csv" "$image@v2"
is 1 "$(grep -c "warning: classes 'cat' and 'cat ' of 'label' differ only in" <<<"$err")" \
	"append: one that differs from the image's" || diag "$err"
table 'key,label\nc,cat\nd,cat \n'
run stele append -q "$tmp/t.csv" "$image@v3"
is 1 "$(grep -c warning <<<"$err")" "append: two of the source" || diag "$err"
table 'key,label\ne,cat\nf,dog\n'
run stele append -q "$tmp/t.csv" "$image@v4"
is "0 " "$status $err" "append: those that are there" || diag "$err"
for name in NaN null None NA; do
	table "label\ncat\n$name\n"
	built "$tmp/t.csv"
	ok "$name: may be a value that is missing" \
		grep -q "warning: '$name' is one of the classes of 'label': " <<<"$err" ||
		diag "$err"
done
table 'label\ncat\n\nNancy\n'
built "$tmp/t.csv"
is "0 " "$status $err" "others are not"
table 'label\n1 \n 2\n'
built "$tmp/t.csv"
is "0 label:i64 1 2" "$status $(types) $(stele ls --fields --json "$image" |
	jq .fields.label | xargs)" "blanks around labels that are numbers"
table 'label\ncat\n"  "\n'
built "$tmp/t.csv"
wrong "'label' has the value '  ', which no class can have as a name" "a blank class"
table 'key,label\na,"x\x00y"\nb,z\n'
built "$tmp/t.csv"
wrong "at byte 10: 'label' has a value with a NUL byte, which no name" "a class with a NUL"
for size in 4000 4001; do
	table "label\n$(printf "%0${size}d" 0 | tr 0 x)\n"
	built "$tmp/t.csv"
	[ "$size" = 4001 ] || is 0 "$status" "a class name of $size bytes" || diag "$err"
done
wrong "'label' has a value of more than 4000 bytes, too long for the name" "a class too long"

done_testing
