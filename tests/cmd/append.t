#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# append.t - a dataset grows, changes and shrinks, snapshot by snapshot
#
# For each kind of target: what each snapshot holds is extracted and compared
# with a copy of the source as it was when the snapshot was made.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version

reader=$PWD/tests/cmd/reader.pl

# kept NAME: remember what the source holds now
kept() { cp -a "$tmp/src" "$tmp/as.$1"; }

# holds TARGET NAME WORDS: the snapshot holds just that, and is sound
holds() {
	rm -rf "$tmp/out"
	run stele extract -q "$1@$2" "$tmp/out"
	is "0 " "$status $err" "$3: $2 is extracted"
	run diff -r "$tmp/as.$2" "$tmp/out"
	is "0 " "$status $out" "$3: $2 is what the source was"
}

# ids are 0 ... n - 1, each once
dense() { # TARGET@NAME
	stele ls --json "$1" | jq -s -e 'length as $n | (map(.id) | sort) == [range($n)]' \
		>/dev/null
}

counts() { # JSON
	field "$1" '"\(.added) \(.updated) \(.deleted) \(.unchanged) \(.samples)"'
}
digest_of() { stele snapshot list --json "$1" |
	jq -r "select(.name == \"$2\") | .digest"; }

# payload TARGET NAME: what the catalog and info say; sizes TARGET@NAME: what it is
payload() {
	echo "$(stele snapshot list --json "$1" |
		jq "select(.name == \"$2\") | .payload_size")" \
		"$(stele info --json "$1@$2" | jq .snapshot.payload_size)"
}
sizes() { stele ls --json "$1" | jq -rs 'map(.size) | add | "\(.) \(.)"'; }

# labels TARGET NAME: DIRECTORY=LABEL, each once
labels() {
	"$reader" --dump="$2" "$1" 2>/dev/null | perl -lane '
		$_{(split "/", pack "H*", $F[1])[0] . "=$F[4]"} = 1;
		END { print join " ", sort keys %_ }'
}

# segment TARGET: what of it the first build wrote, up to the catalog
segment() {
	dd if="$1" iflag=direct,skip_bytes,count_bytes bs=64K skip=2M \
		count=$((used - 4096 - (2 << 20))) 2>/dev/null | sha256sum
}

lifetime() { # TARGET WORDS
	local t=$1 what=$2 name old used first
	rm -rf "$tmp"/src "$tmp"/as.*
	tree_photos "$tmp/src"
	mv "$tmp/src/train/"* "$tmp/src" && rmdir "$tmp/src/train"
	kept v1
	must stele build -q --force "$tmp/src" "$t@v1"
	used=$(stele info --json "$t" | jq .image.used_size)
	first=$(segment "$t")

	mkdir "$tmp/src/ants"
	echo one >"$tmp/src/ants/1.jpg"
	echo two >"$tmp/src/cats/new.jpg"
	kept v2
	run stele append --json --note="a note" "$tmp/src" "$t@v2"
	is 41 "$(field "$out" .kept)" "$what: those that are there are not compared"
	is "0 2 0 0 41 43" "$status $(counts "$out")" "$what: two are added" ||
		diag "$err"
	is "v1 v2" "$(field "$out" '"\(.base) \(.snapshot)"')" \
		"$what: on top of the newest"
	ok "$what: few bytes are written" \
		test "$(field "$out" .written_size)" -lt 120000
	holds "$t" v2 "$what"

	# Another size, and another content of the same size and time.
	echo longer >"$tmp/src/ants/1.jpg"
	cp -p "$tmp/src/dogs/5.jpg" "$tmp/ref"
	head -c "$(stat -c %s "$tmp/ref")" /dev/urandom >"$tmp/src/dogs/5.jpg"
	touch -r "$tmp/ref" "$tmp/src/dogs/5.jpg"
	rm "$tmp/src/cats/3.jpg"
	run stele append --always --json "$tmp/src" "$t@same"
	is "0 0 0 0 43 43" "$status $(counts "$out")" \
		"$what: without options, changes are no matter"
	is "$(digest_of "$t" v2)" "$(digest_of "$t" same)" \
		"$what: nothing new is the same digest"
	run stele append --json -n --update --delete-missing "$tmp/src" "$t@v3"
	is "0 0 2 1 40 42" "$status $(counts "$out")" "$what: a dry run counts"
	run stele snapshot list "$t"
	ok "$what: and makes no snapshot" not grep -qw v3 <<<"$out"
	kept v3
	run stele append --json --update --delete-missing "$tmp/src" "$t@v3"
	is "0 0 2 1 40 42" "$status $(counts "$out")" \
		"$what: updated by size and by content, and deleted"
	holds "$t" v3 "$what"

	mkdir "$tmp/src/bees"
	head -c 30000 /dev/urandom >"$tmp/src/bees/1.jpg"
	kept v4
	run stele append --json --update --quick "$tmp/src" "$t@v4"
	is "0 1 0 0 42 43" "$status $(counts "$out")" "$what: with --quick"
	# A branch off the first one.
	rm -r "$tmp/src" && cp -a "$tmp/as.v1" "$tmp/src"
	mkdir "$tmp/src/emus" && echo e >"$tmp/src/emus/1"
	kept side
	run stele append --json --base=v1 --update --delete-missing "$tmp/src" "$t@side"
	is "0 1 0 0 41 42 v1" "$status $(counts "$out") $(field "$out" .base)" \
		"$what: --base"

	for name in v1 v2 v3 v4 side; do
		holds "$t" "$name" "$what"
		ok "$what: ids of $name are dense" dense "$t@$name"
		is "$(sizes "$t@$name")" "$(payload "$t" "$name")" \
			"$what: the size of $name is that of its live samples"
		ok "$what: $name is sound" stele verify -q "$t@$name"
	done
	run stele verify -q "$t"
	is "0 " "$status $out$err" "$what: all of it is sound"
	plain=$t # what the second reader can open
	if [[ $t == rbd:* ]]; then
		plain=$tmp/exported
		must on_ceph rbd export --no-progress "$rbd_image" "$plain"
	fi
	run "$reader" "$plain"
	is 0 "$status" "$what: so says the second reader" || diag "$err"
	is "ants=2 bees=3 cats=0 dogs=1" "$(labels "$plain" v4)" \
		"$what: classes are added behind"
	is "cats=0 dogs=1 emus=2" "$(labels "$plain" side)" \
		"$what: of each branch for itself"

	is "$first" "$(segment "$t")" "$what: not a byte of the first has changed"

	old=$(stele snapshot list --json "$t")
	run stele append "$tmp/src" "$t@v2"
	is 1 "$status" "$what: a name that is taken"
	ok "$what: is named" grep -qw "v2" <<<"$err" || diag "$err"
	run stele append --base=none "$tmp/src" "$t@v9"
	is 1 "$status" "$what: a base that is not there"
	ok "$what: is named, too" grep -qw "none" <<<"$err" || diag "$err"
	run stele append "$tmp/nowhere" "$t@v9"
	is 1 "$status" "$what: no source"
	is "$old" "$(stele snapshot list --json "$t")" "$what: nothing came of these"
}

each_target lifetime 64M

# --quick: what it may not be taken in by. Files are of before the build.
rm -rf "$tmp"/src
tree_photos "$tmp/src"
sleep 1.1
must stele build -q "$tmp/src" "$tmp/quick@v1"
victim=$tmp/src/train/dogs/4.jpg
renew() { head -c "$(stat -c %s "$victim")" /dev/urandom >"$1"; }
quick() { run stele append --json --update --quick "$tmp/src" "$tmp/quick@$1"; }
quick none
is "0 0 0 0 41 41" "$status $(counts "$out")" "quick: nothing has changed"
touch -r "$victim" "$tmp/ref"
renew "$victim" && touch -r "$tmp/ref" "$victim"
quick back
is "0 0 1 0 40 41" "$status $(counts "$out")" "quick: an old time that was set"
renew "$tmp/other" && touch -r "$tmp/ref" "$tmp/other" && mv "$tmp/other" "$victim"
quick moved
is "0 0 1 0 40 41" "$status $(counts "$out")" "quick: another file moved there"
renew "$victim"
must stele append -q "$tmp/src" "$tmp/quick@plain"
quick late
is "0 0 1 0 40 41" "$status $(counts "$out")" \
	"quick: what a snapshot in between left alone"
quick settled
is "0 0 0 0 41 41" "$status $(counts "$out")" "quick: nothing since"
must stele build -q --time=2100-01-01 "$tmp/src" "$tmp/future@v1"
renew "$victim"
run stele append --json --update --quick "$tmp/src" "$tmp/future@v2"
is "0 0 1 0 40 41" "$status $(counts "$out")" "quick: a time to come"
ok "quick: which is told" grep -q "reading every file" <<<"$err" || diag "$err"

# Labels: what the base has none of, or a field too many.
must stele build -q --label-from=none "$tmp/src/train" "$tmp/plain@v1"
mkdir "$tmp/src/train/eels" && echo eel >"$tmp/src/train/eels/1"
must stele append -q "$tmp/src/train" "$tmp/plain@v2"
is 1 "$(stele info --json "$tmp/plain@v2" | jq '.snapshot.fields | length')" \
	"no labels on a base that has none"
must stele build -q --label-from=1 "$tmp/src/train/eels" "$tmp/top@v1"
echo top >"$tmp/src/train/eels/2"
must stele append -q "$tmp/src/train/eels" "$tmp/top@v2"
run "$reader" --dump=v2 "$tmp/top"
is "-1 -1" "$(awk '{print $5}' <<<"$out" | paste -sd ' ')" \
	"right at the top, the label is -1"

# Nothing to do; too much to do.
must stele build -q --force "$tmp/src/train" "$tmp/still@v1"
before=$(sha256sum <"$tmp/still")
digest=$(digest_of "$tmp/still" v1)
run stele append --json --update "$tmp/src/train" "$tmp/still@v2"
is "0 false 0 $digest" \
	"$status $(field "$out" '"\(.created) \(.written_size) \(.digest)"')" \
	"nothing has changed: no snapshot"
is v1 "$(stele snapshot list --json "$tmp/still" | jq -r .name)" "not there either"
for try in "" --dry-run; do
	run stele append $try "$tmp/src/train" "$tmp/still@v2"
	ok "and it is said: $try" grep -q "^nothing has changed since 'v1': no snapshot" <<<"$out"
	ok "and what was not asked: $try" grep -q "^hint: .*: --update does that" <<<"$err"
done
is "$before" "$(sha256sum <"$tmp/still")" "the image is as it was"
mkdir "$tmp/mixed"
cp -r "$tmp/src/train/." "$tmp/mixed"
echo new >"$tmp/mixed/new.jpg"
known=$(stele info --json "$tmp/still" | jq .snapshot.samples)
run stele append -n "$tmp/mixed" "$tmp/still@v2"
ok "also if something else is new" grep -q "^hint: $known samples .* not compared: " <<<"$err" ||
	diag "$err"
run stele append -n --update "$tmp/mixed" "$tmp/still@v2"
ok "and not if they are compared" not grep -q "^hint" <<<"$err"
run stele append -q --size=16M "$tmp/src/train" "$tmp/still@v2"
is "0 v1 $((16 << 20))" "$status $(stele snapshot list --json "$tmp/still" | jq -r .name) \
$(stele info --json "$tmp/still" | jq .image.image_size)" "an image can grow all the same"
run stele append -n --always "$tmp/src/train" "$tmp/still@v2"
ok "--always: of no slots nothing is said" not grep -q "^slots" <<<"$out"
run stele append --json --always "$tmp/src/train" "$tmp/still@v2"
is "0 true $digest" "$status $(field "$out" '"\(.created) \(.digest)"')" "--always"
for try in "" --dry-run; do
	run stele append $try --delete-missing "$tmp/src/train/eels" "$tmp/still@v3"
	is 1 "$status" "more than half would be deleted: $try"
	ok "which is said" grep -q "lacks 43 of the 43 samples of 'v2'" <<<"$err" || diag "$err"
done
mkdir "$tmp/void"
run stele append --delete-missing --force "$tmp/void" "$tmp/still@v3"
is 1 "$status" "a source without samples"
run stele append -q --delete-missing --allow-empty --force "$tmp/void" "$tmp/still@v3"
is "0 0" "$status $(stele info --json "$tmp/still@v3" | jq .snapshot.samples)" "unless told twice"

# Wrong usage.
for wrong in "--quick" "--force" "--label=x" "--uuid=$(cat /proc/sys/kernel/random/uuid)" \
	"--label-from=0" "--base="; do
	run stele append "$wrong" "$tmp/src" "$tmp/plain@v3"
	is "2 " "$status $out" "append $wrong is wrong usage"
done
run stele append "$tmp/src" "$tmp/plain"
is 2 "$status" "append without a name fails"
ok "and says how" grep -q "@NAME" <<<"$err" || diag "$err"
for wrong in "--update" "--base=v1" "--delete-missing" "--quick"; do
	run stele build "$wrong" "$tmp/src" "$tmp/new"
	is "2 " "$status $out" "build $wrong is wrong usage"
done

# A file grows by what is needed, or to what is asked for; never into itself.
cp "$tmp/plain" "$tmp/src/inside"
run stele append --json --size=8M "$tmp/src" "$tmp/src/inside@v3"
is "0 $((8 << 20))" "$status $(stat -c %s "$tmp/src/inside")" "--size" || diag "$err"
is 1 "$(field "$out" .skipped.target.count)" "the target itself is left out"
ok "and the image is sound" stele verify -q "$tmp/src/inside"

must stele build -q "$tmp/src" "$tmp/taken@v1"
run stele append "$tmp/src" "$tmp/taken@v1"
is 1 "$status" "a name that is taken is refused"
is "stele: cannot append '$tmp/src' to '$tmp/taken@v1': there is a snapshot 'v1' already" \
	"$(grep -v ^hint <<<"$err")" "and nothing else is said"

# ---- a snapshot comes between two looks of a reader ----

must stele build -q "$tmp/src/train" "$tmp/one@v1"

# between N CMD...: the append is made before the N-th time that the image is opened
between() {
	local n=$1
	shift
	must cp "$tmp/one" "$tmp/two"
	BETWEEN_FILE=$tmp/two BETWEEN_AT=$n LD_PRELOAD=$tmp/between.so \
		BETWEEN_DO="stele append -q $tmp/src/train/eels $tmp/two@v2" run "$@"
	must stele cat "$tmp/two@v2" 1 >/dev/null
}
if ldd "$BUILD/stele" | grep -qE 'lib[at]san' ||
	! "${CC:-cc}" -shared -fPIC -O1 -o "$tmp/between.so" tests/cmd/between/between.c; then
	skip_block 6 "needs the calls of its own, and a compiler"
	done_testing
fi
for ((n = 1; n < 3; n++)); do
	between $n stele info --json "$tmp/two"
	is "0 " "$status $err" "info, overtaken before look $n"
	is "2 false" "$(jq -r '"\(.image.snapshots | length) \(has("snapshot"))"' <<<"$out")" \
		"tells of both"
	between $n stele info "$tmp/two@v1"
	is "0 " "$status $err" "and of the one that is named"
done

done_testing
