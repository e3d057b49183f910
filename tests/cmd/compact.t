#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# compact.t - what appends left behind becomes one segment
#
# The same samples as before, and the same image as if they had been built at
# once; the old snapshot stays; what fails changes nothing.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version
requires perl -MDigest::SHA -e 1

reader=$PWD/tests/cmd/reader.pl

digest_of() { stele snapshot list --json "$1" |
	jq -r "select(.name == \"$2\") | .digest"; }
snapshots() { stele snapshot list --json "$1" | jq -r .name | xargs; }
space_of() { jq -c '[.payload_size, .slots_size, .padding_size]'; }

# dumped TARGET NAME: key, size, digest and scalars of each sample, sorted
dumped() { "$reader" --dump="$2" "$1" 2>/dev/null | cut -d ' ' -f 2- | sort; }

# grown TARGET: v3 is of three segments, with deletions; its tree in $tmp/src
grown() {
	rm -rf "$tmp/src"
	tree_photos "$tmp/src"
	mv "$tmp/src/train/"* "$tmp/src" && rmdir "$tmp/src/train"
	must stele build -q --force "$tmp/src" "$1@v1"
	head -c 70000 /dev/urandom >"$tmp/src/cats/new.jpg"
	must stele append -q "$tmp/src" "$1@v2"
	echo changed >>"$tmp/src/dogs/5.jpg"
	rm "$tmp/src/cats/3.jpg"
	must stele append -q --update --delete-missing "$tmp/src" "$1@v3"
}

# holds TARGET WORDS: just what the source holds
holds() {
	rm -rf "$tmp/out"
	run stele extract -q "$1" "$tmp/out"
	is "0 " "$status $err" "$2: is extracted"
	run diff -r "$tmp/src" "$tmp/out"
	is "0 " "$status $out" "$2: the samples are those of the source"
}

once() { # TARGET WORDS
	local t=$1 what=$2 old
	grown "$t"
	old=$(stele snapshot list --json "$t")
	run stele compact -n --json "$t@v3" one
	is "0 true" "$status $(field "$out" .dry_run)" "$what: a dry run"
	is "$old" "$(stele snapshot list --json "$t")" "$what: changes nothing"

	run stele compact --json --note="in one" "$t@v3" one
	is "0 one 41" "$status $(field "$out" '"\(.snapshot) \(.samples)"')" \
		"$what: compacts" || diag "$err"
	holds "$t@one" "$what: one"
	is "1 0" "$(stele info --json "$t@one" | jq -r \
		'.snapshot | "\(.segments) \(.deleted)"')" \
		"$what: one segment, nothing deleted"
	must stele build -q "$tmp/src" "$tmp/fresh.stele@v1"
	is "$(digest_of "$tmp/fresh.stele" v1)" "$(digest_of "$t" one)" \
		"$what: the digest is that of a fresh build"
	rm "$tmp/fresh.stele"

	run stele compact -q --json --boundary=256K --order=source --granule=16 \
		--memory=1M --jobs=2 "$t@v3" objects
	is "0 " "$status $err" "$what: with a boundary, in order of keys"
	is "$(space_of <<<"$out")" \
		"$(stele info --json "$t@objects" | jq .snapshot | space_of)" \
		"$what: info says of its space what was said when it was made"
	holds "$t@objects" "$what: objects"
	is "$(stele ls "$t@objects")" \
		"$(stele ls --json "$t@objects" | jq -r -s 'sort_by(.id)[].key')" \
		"$what: ids are in the order of keys"
	is "v1 v2 v3 one objects" "$(snapshots "$t")" "$what: all are there"
	run stele verify -q "$t"
	is "0 " "$status $out$err" "$what: all of it is sound"
}

each_target once 64M

# What a second reader says of the last one on a file.
t=$tmp/threads.stele
is "$(dumped "$t" v3)" "$(dumped "$t" objects)" "fields are the same, too"
run "$reader" "$t"
is 0 "$status" "a second reader agrees" || diag "$err"
ok "the boundary is there" grep -q ' boundary 262144 ' <<<"$out"

# A class that came late stands behind the others, as in no fresh build.
fields_of() { stele info --json "$1" | jq -c .snapshot.fields; }
mkdir "$tmp/src/ants"
echo ant >"$tmp/src/ants/1.jpg"
must stele append -q "$tmp/src" "$t@v4"
run stele compact -q "$t@v4" late
is "0 " "$status $err" "a class that came late"
is "$(dumped "$t" v4)" "$(dumped "$t" late)" "labels are the same"
is "$(fields_of "$t@v4")" "$(fields_of "$t@late")" "and so are the names"

# ---- more fields than we write ----

t=$tmp/rich.stele
must "$BUILD/tests/cmd/rich" "$t" 300
run stele compact -q --granule=4096 "$t" v2
is "0 " "$status $err" "many fields: compacts the only snapshot"
is "$(dumped "$t" v1)" "$(dumped "$t" v2)" "many fields: all are the same"
is "$(fields_of "$t@v1")" "$(fields_of "$t@v2")" \
	"many fields: and so are their names and types"
run "$reader" "$t"
is 0 "$status" "many fields: a second reader agrees" || diag "$err"

# Small samples: a thread per processor, or as many as asked for, as far as each has 16 MiB.
cpus=$(nproc)
jobs_of() { stele compact -q --json "$@" | jq .jobs; }
is "$((cpus < 8 ? cpus : 8))" "$(jobs_of "$t@v1" j1)" "a thread per processor"
is 6 "$(jobs_of --jobs=6 "$t@v1" j2)" "as many as asked for"
is 2 "$(jobs_of --jobs=6 --memory=64M "$t@v1" j3)" "as many as have memory"

# ---- refused, and damaged ----

t=$tmp/bad.stele
grown "$t"
old=$(sum "$t")
run stele compact "$t" v9
is 2 "$status" "several snapshots"
ok "are said to be there" grep -q 'TARGET@NAME' <<<"$err"
run stele compact "$t@v3" v2
is "1 stele: cannot compact '$t@v3': there is a snapshot 'v2' already" \
	"$status ${err%%$'\n'*}" "a name that is taken"
run stele compact "$t@v7" v9
is "1 stele: cannot start from 'v7': no such snapshot (available: v1, v2, v3)" \
	"$status ${err%%$'\n'*}" "no such snapshot, but these"
run stele compact "$t@v3" ../x
is 2 "$status" "a name that cannot be"
run stele compact "$t@v3"
is 2 "$status" "no name"
run stele compact --label=x "$t@v3" v9
is 2 "$status" "an option of build"
is "$old" "$(sum "$t")" "nothing has changed by all these"

# A byte of a sample of each of two segments.
for key in dogs/20.jpg cats/new.jpg; do
	cp "$t" "$tmp/damaged.stele"
	perl -e 'my ($image, $file) = @ARGV; local $/;
		open my $f, "<", $file; my $bytes = <$f>;
		open my $i, "+<", $image; my $all = <$i>;
		my $at = rindex $all, substr($bytes, 1000, 64); die if $at < 0;
		seek $i, $at, 0; print $i "?" ^ substr $all, $at, 1;
		' "$tmp/damaged.stele" "$tmp/src/$key"
	run stele compact "$tmp/damaged.stele@v3" v9
	is 3 "$status" "a damaged sample"
	ok "is named" grep -q "'$key'" <<<"$err" || diag "$err"
	is "v1 v2 v3" "$(snapshots "$tmp/damaged.stele")" "and nothing comes of it"
done

# Of a snapshot without samples only the names of classes are left, which no tree has.
must stele build -q "$tmp/src" "$tmp/none.stele@v1"
keys=()
while read -r key; do keys+=(-d "$key"); done < <(stele ls "$tmp/none.stele")
must stele snapshot create "${keys[@]}" "$tmp/none.stele@none" >/dev/null
must stele compact -q "$tmp/none.stele@none" bare
run stele copy -q "$tmp/none.stele@bare" "$tmp/bare.stele"
is 0 "$status" "a snapshot without samples is copied" || diag "$err"
is "cats dogs" "$(stele info "$tmp/bare.stele" |
	awk '/classes/ { on = 3 } on-- > 0 && NF == 2 { print $1 }' | paste -sd ' ')" \
	"with its classes"
must stele append -q --base=bare "$tmp/src" "$tmp/none.stele@again"
ok "so is what is built on it" stele copy -q "$tmp/none.stele@again" "$tmp/again.stele"
ok "and sound" stele verify -q "$tmp/again.stele"

# Of many threads the one with the error says it: those that it stops have none.
mkdir "$tmp/many"
for ((i = 0; i < 2000; i++)); do head -c 30000 /dev/urandom >"$tmp/many/$i"; done
must stele build -q "$tmp/many" "$tmp/many.stele@v1"
printf 'damage' | dd of="$tmp/many.stele" bs=1 seek=50M conv=notrunc status=none
run stele compact -j 8 "$tmp/many.stele@v1" v2
is "3 1" "$status $(grep -c 'cannot .* sample' <<<"$err")" "one damaged sample is said once" ||
	diag "$err"

done_testing
