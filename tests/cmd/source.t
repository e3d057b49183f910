#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# source.t - what becomes of each kind of source entry (stele-build(1))
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version

image=$tmp/image
build() {
	rm -f "$image"
	run stele build "$@" "$image"
}
skipped() { # JSON REASON: count and first keys
	field "$1" ".skipped.$2 | \"\\(.count) \\([.first[].key] | join(\" \"))\""
}

src=$tmp/src
mkdir -p "$src/dir" "$src/emptydir"
echo data >"$src/file"
ln -s file "$src/link"
ln -s dir "$src/dirlink"
ln -s nowhere "$src/dangling"
ln "$src/file" "$src/dir/hardlink"
mkfifo "$src/fifo"
(cd "$src" && perl -MIO::Socket::UNIX -e '
	IO::Socket::UNIX->new(Local => "socket", Listen => 1) or die')

build --json "$src"
is 0 "$status" "symlinks, fifos and sockets do not fail a build" || diag "$err"
is "3 dangling dirlink link" "$(skipped "$out" symlink |
	tr ' ' '\n' | sort | paste -sd ' ')" "symlinks are skipped and named"
is "2 fifo socket" "$(skipped "$out" special |
	tr ' ' '\n' | sort | paste -sd ' ')" "special files are skipped and named"
is "dir/hardlink file" "$(stele ls "$image" | paste -sd ' ')" \
	"regular files are samples, with each of their names"
build "$src"
ok "the summary counts what was skipped" \
	grep -q "^skipped *3: symbolic link$" <<<"$out"
ok "and names it" grep -q "^ *'link'$" <<<"$out"
build --quiet "$src"
is "0 " "$status $out$err" "--quiet prints nothing"
ln -s "$src" "$tmp/way"
build "$tmp/way"
is 0 "$status" "the source itself may be a symlink"
for ((i = 0; i < 15; i++)); do ln -s x "$src/more$i"; done
build "$src"
is 10 "$(sed -n '/symbolic link$/,/and .* more$/p' <<<"$out" | grep -c "^ *'")" \
	"the first ten of a reason are named"
ok "the others are counted" grep -q "^ *and 8 more$" <<<"$out"

run stele build "$src" "$src/inside"
is 0 "$status" "the target may lie in the source" || diag "$err"
is "" "$(stele ls "$src/inside" inside)" "and is not a sample of itself"
run stele build --force "$src" "$src/inside@again"
is "0 again" "$status $(stele snapshot list --json "$src/inside" | jq -r .name)" \
	"an image in the source may be built anew" || diag "$err"
# Another image there is a file like others, of which that is said.
must cp "$src/inside" "$src/older.stele"
older="hint: the image 'older.stele' in the source is a sample, too: '--exclude=*.stele' leaves"
run stele build "$src" "$src/inside.stele"
is "0 older.stele" "$status $(stele ls "$src/inside.stele" | grep -F .stele)" "an older image" ||
	diag "$err"
ok "is taken, but that is said" grep -qF "$older" <<<"$err" || diag "$err"
run stele append "$src" "$src/inside.stele@two"
ok "though not again" not grep -qF ".stele" <<<"$err" || diag "$err"
must cp "$src/inside" "$src/oldest.stele"
run stele append "$src" "$src/inside.stele@two"
ok "an append that takes one says so" grep -q "hint: the image 'old.*.stele'" <<<"$err" ||
	diag "$err"
run stele build --force --exclude='*.stele' "$src" "$src/inside.stele"
is "0 " "$status $err" "what leaves it out is told nothing"
is "" "$(stele ls "$src/inside.stele" | grep -F .stele)" "and has none"
rm "$src/inside.stele" "$src/older.stele" "$src/oldest.stele"

truncate -s 8M "$src/hole"
run stele build "$src" "$src/hole"
is 0 "$status" "nor is a hole a file to lose" || diag "$err"
rm "$src/inside" "$src/hole"

# ---- a target that is a file of the source ----

mkdir "$tmp/own"
cd "$tmp/own" || bail "cd"
mkdir -p d/deep env
for name in d/1 d/2 d/deep/3; do echo "$name" >"$name"; done
ln -s deep/3 d/link
printf 'path\nd/1\nd/2\n' >m.csv
printf 'a,b\n1,2\n' >x.csv
tar -cf x.tar d/1
tar -cf y.tar d/2
gzip -dc "$OLDPWD/tests/fixture/from/plain.mdb.gz" >env/data.mdb
content() { find . -type f -exec sha256sum {} + | sort; }
before=$(content)
while read -r file words; do
	for options in "" "-f" "-n -f" "-f --on-error=skip"; do
		# shellcheck disable=SC2086 # words
		run stele build $options $words <x.tar
		is "2 stele: '$file' is a file of the source, which the image would replace" \
			"$status $(head -n 1 <<<"$err")" "build $options $words: refused"
		is "$before" "$(content)" "build $options $words: all is there"
		ok "build $options $words: what to do next" \
			grep -q "^hint: give the image a name" <<<"$err" || diag "$err"
	done
done <<-'end'
	d/1 d d/1
	d/deep/3 d d/deep/3@v2
	d/link d d/link
	x.tar x.tar x.tar
	./x.tar ./x.tar x.tar@v2
	y.tar {x,y}.tar y.tar
	x.csv x.csv x.csv
	env/data.mdb --from=lmdb env env/data.mdb
	m.csv --from=manifest m.csv m.csv
	d/2 --from=manifest m.csv d/2
end
# shellcheck disable=SC2094 # that is refused
run stele build -f - x.tar <x.tar
is "2 $before" "$status $(content)" "nor what stdin is" || diag "$err"
ok "which is said" grep -q "'standard input' is a file of the source" <<<"$err"
cd "$OLDPWD" || bail "cd"

build "$src/file"
is 1 "$status" "a file is no source"
ok "no image is left of a build that failed" test ! -e "$image"
build "$tmp/nosuch"
is 1 "$status" "nor is what does not exist"
ok "which is named" grep -qF "$tmp/nosuch" <<<"$err"

# Unreadable: root reads all, so ask as somebody else, in a place that others
# can get to: the tree may lie in root's home.
shared=$(mktemp -d -p /var/tmp) || bail "no directory in /var/tmp"
cleanup rm -rf "$shared"
chmod 777 "$shared"
mkdir "$shared/open"
echo a >"$shared/open/a"
echo b >"$shared/open/b"
chmod 0 "$shared/open/b"
as_other() {
	if [ "$(id -u)" = 0 ]; then
		setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
	else
		"$@"
	fi
}
cp "$BUILD/stele" "$shared/stele"
if as_other "$shared/stele" --version >/dev/null 2>&1; then
	run as_other "$shared/stele" build "$shared/open" "$shared/other"
	is 1 "$status" "a file that cannot be read fails the build"
	ok "which is named" grep -q "b'.*Permission denied" <<<"$err" || diag "$err"
	ok "and leaves no file" test ! -e "$shared/other"
	run as_other "$shared/stele" build --json --on-error=skip "$shared/open" "$shared/other"
	is "0 1 b" "$status $(skipped "$out" unreadable)" \
		"--on-error=skip leaves it out and names it"
	is a "$(stele ls "$shared/other")" "the others are there"

	# Nothing at all can be read, which a device must not lose its image for.
	if [ "$(id -u)" = 0 ]; then
		loop_new 8M
		must stele build -q "$shared/open" "$loop"
		# A node of its own, whose mode udev does not set again.
		# shellcheck disable=SC2046 # two words
		must mknod -m 666 "$shared/node" b $(stat -c '%Hr %Lr' "$loop")
		before=$(sum "$loop")
		mkdir -m 755 "$shared/closed"
		echo 1 >"$shared/closed/1"
		chmod 0 "$shared/closed/1"
		run as_other env STELE_RUN_DIR="$shared/run" "$shared/stele" build --force \
			--on-error=skip "$shared/closed" "$shared/node"
		is 1 "$status" "nothing can be read: fails"
		ok "which is said" grep -q "the source has no samples that can be read" <<<"$err" ||
			diag "$err"
		is 1 "$(grep -c "skipped: 1: cannot be read, such as '1'" <<<"$err")" \
			"once, with what it was"
		is "$before" "$(sum "$loop")" "before anything is overwritten"
		run as_other env STELE_RUN_DIR="$shared/run" "$shared/stele" build --force \
			--allow-empty --on-error=skip "$shared/closed" "$shared/node"
		is "0 0" "$status $(stele info --json "$loop" | jq .snapshot.samples)" \
			"unless allowed"
	else
		skip_block 5 "needs root"
	fi

	# To append a file that cannot be read leaves the image as it is.
	kept() { stat -c %s "$shared/other"; stele info --json "$shared/other"; }
	before=$(kept)
	for again in 1 2; do
		run as_other "$shared/stele" append --on-error=skip "$shared/open" \
			"$shared/other@v2"
		ok "append: nothing to take, $again" grep -q "^nothing has changed" <<<"$out"
	done
	is "$before" "$(kept)" "append: nothing is kept"
	run as_other "$shared/stele" append -q --on-error=skip --size=16M "$shared/open" \
		"$shared/other@v2"
	is "0 $((16 << 20))" "$status $(stele info --json "$shared/other" | jq .image.image_size)" \
		"append: the image can grow all the same"
	for i in 1 2 3; do echo $i >"$shared/open/c$i"; done
	run as_other "$shared/stele" append -q --on-error=skip "$shared/open" "$shared/other@v3"
	rm "$shared/open/c1"
	run as_other "$shared/stele" append -q --on-error=skip --delete-missing "$shared/open" \
		"$shared/other@v4"
	is "0 2 2" "$status $(stele snapshot list --json "$shared/other" |
		jq -r 'select(.name == "v3" or .name == "v4") | .segments' | paste -sd ' ')" \
		"append: no segment of nothing but what cannot be read"
	ok "append: and the image is sound" stele verify -q "$shared/other"

	# What cannot be looked at may be there still.
	mkdir -p "$shared/deep/in/below" "$shared/deep/in-2" "$shared/deep/gone"
	for at in 1 in/1 in/below/1 in-2/1 gone/1 2 3 4 5; do
		echo "$at" >"$shared/deep/$at"
	done
	must stele build -q "$shared/deep" "$shared/depth"
	chmod 666 "$shared/depth"
	rm -r "$shared/deep/gone"
	chmod 0 "$shared/deep/in"
	run as_other "$shared/stele" append --json --on-error=skip --delete-missing \
		"$shared/deep" "$shared/depth@v2"
	is "0 1 in" "$status $(skipped "$out" unreadable)" "delete-missing: a directory is skipped"
	is "1 2 3 4 5 in-2/1 in/1 in/below/1" \
		"$(stele ls "$shared/depth@v2" | LC_ALL=C sort | xargs)" \
		"delete-missing: what lies below it stays"
	chmod 644 "$shared/deep/in" # can be listed, but not looked into
	rm "$shared/deep/2"
	run as_other "$shared/stele" append --json --on-error=skip --delete-missing \
		"$shared/deep" "$shared/depth@v3"
	is "0 2" "$status $(field "$out" .skipped.unreadable.count)" \
		"delete-missing: files are skipped, one by one"
	is "1 3 4 5 in-2/1 in/1 in/below/1" \
		"$(stele ls "$shared/depth@v3" | LC_ALL=C sort | xargs)" \
		"delete-missing: they stay, and what lies below them"
	chmod 755 "$shared/deep/in"
else
	skip_block 19 "needs setpriv, and a build that all may read"
fi

# Files of sysfs say that they have 4096 bytes and have fewer.
shrunk=/sys/devices/system/cpu/smt
if [ "$(stat -c %s $shrunk/active 2>/dev/null)" = 4096 ]; then
	build $shrunk
	is 1 "$status" "a file that shrinks fails the build"
	ok "and is named" grep -qE "(active|control)'.*(changed|shr)" <<<"$err" ||
		diag "$err"
	ok "and leaves no file" test ! -e "$image"
	build --json --on-error=skip --allow-empty $shrunk
	is "0 2" "$status $(field "$out" .skipped.changed.count)" \
		"--on-error=skip leaves it out and counts it"
	run stele verify "$image"
	is 0 "$status" "and the image is sound"
	echo good >"$tmp/good"
	must stele build -q --force --from=text "$tmp/good" "$image"
	before=$(sum "$image")
	run stele build --force --on-error=skip $shrunk "$image"
	is 1 "$status" "of which nothing is left: an error"
	ok "which is said" grep -q "the source has no samples that can be read" <<<"$err"
	is "$before" "$(sum "$image")" "and the old image stays"
	run stele append --on-error=skip --label-from=none $shrunk "$image@v2"
	is 1 "$status" "append: likewise"
else
	skip_block 9 "needs a file of sysfs"
fi

# A file that grows without end: it has grown when it is read, unless who writes it got
# no turn meanwhile; then once more.
mkdir "$tmp/grows"
head -c 20M /dev/zero >"$tmp/grows/bulk"
: >"$tmp/grows/log"
(while :; do echo line; done >>"$tmp/grows/log") &
writer=$!
cleanup kill "$writer"
until [ -s "$tmp/grows/log" ]; do :; done
for ((try = 0; try < 20; try++)); do
	build "$tmp/grows"
	[ "$status" = 0 ] || break
done
is 1 "$status" "a file that grows fails the build"
ok "and is named" grep -q "log'" <<<"$err" || diag "$err"
for ((try = 0; try < 20; try++)); do
	build --json --on-error=skip "$tmp/grows"
	[ "$status $(field "$out" .skipped)" = "0 {}" ] || break
done
is "0 1 log" "$status $(skipped "$out" changed)" \
	"--on-error=skip leaves it out and names it"
is bulk "$(stele ls "$image")" "the others are there"
run stele verify "$image"
is 0 "$status" "and the image is sound" || diag "$out"

# Without samples.
mkdir -p "$tmp/none/dir"
for try in "" --dry-run; do
	build $try -q "$tmp/none"
	is "1 " "$status $out" "nothing to build is an error: $try"
	ok "and said" grep -q "the source has no samples" <<<"$err" || diag "$err"
	ok "no image is made" test ! -e "$image"
done
build -q --allow-empty "$tmp/none"
is "0 0" "$status $(stele info --json "$image" | jq .snapshot.samples)" "--allow-empty"
ln -s "$src/file" "$tmp/none/link"
ln -s nowhere "$tmp/none/dir/dangling"
build -q "$tmp/none"
is 1 "$status" "nor are symlinks samples"
ok "which are reported, even with -q" \
	grep -q "skipped: 2: symbolic link, such as" <<<"$err" || diag "$err"
build -q --allow-empty "$tmp/none"
ok "and if nothing else is asked for" grep -q "skipped: 2: symbolic link" <<<"$err"

# Symlinks that are followed.
build --json --follow "$tmp/none"
is "0 link 5 1 dir/dangling" \
	"$status $(stele ls --json "$image" | jq -r '"\(.key) \(.size)"') \
$(skipped "$out" symlink)" \
	"--follow: one to a file is a sample, one to nowhere is skipped" || diag "$err"
is data "$(stele cat "$image" link)" "with the bytes of the file"
mkdir -p "$tmp/far/sub" "$tmp/way2"
echo x >"$tmp/far/sub/x"
ln -s ../far "$tmp/way2/a"
ln -s ../far "$tmp/way2/b"
build --follow "$tmp/way2"
is "0 a/sub/x b/sub/x" "$status $(stele ls "$image" | paste -sd ' ')" \
	"--follow: directories, one of them twice" || diag "$err"
ln -s ../../far "$tmp/far/sub/up"
build --follow "$tmp/way2"
is 1 "$status" "--follow: a cycle is refused"
ok "and named" grep -q "sub/up' is a symbolic link to a directory that it lies in" <<<"$err"
rm "$tmp/far/sub/up" && ln -s self "$tmp/far/self"
build --follow "$tmp/way2"
is 1 "$status" "--follow: so is a symlink to itself"
ok "and named" grep -q "/self' is a symbolic link to itself" <<<"$err"

# Labels.
tree_photos "$tmp/photos"
build --json "$tmp/photos"
is "0 2" "$status $(field "$out" .classes)" "labels are on for deep trees"
build --json "$tmp/photos/train"
is "0 2" "$status $(field "$out" .classes)" "a class is a top directory"
run stele info "$image"
ok "info counts them" grep -q 'label i64 (2 classes)' <<<"$out"
build --json --label-from=none "$tmp/photos"
is "0 0" "$status $(field "$out" .classes)" "--label-from=none"
build --json "$tmp/photos/train/cats"
is "0 0" "$status $(field "$out" .classes)" "no labels for flat trees"

# Dry runs.
run stele build --dry-run "$tmp/photos"
is 0 "$status" "a dry run needs no target"
ok "and says that it is one" grep -q 'dry run' <<<"$out"
run stele build -n --json "$tmp/photos" "$tmp/dry"
end=$(field "$out" .image_end)
ok "a dry run makes no file" test ! -e "$tmp/dry"
run stele build --json "$tmp/photos" "$tmp/dry"
is "$end" "$(field "$out" .image_end)" "and predicts the very end"
is "$end" "$(stat -c %s "$tmp/dry")" "to which the file is made"
rm "$tmp/dry"
run stele build --size=64M "$tmp/photos" "$tmp/dry"
is "0 $((64 << 20))" "$status $(stat -c %s "$tmp/dry")" "--size sets it"

# What is not there is no directory either, for any option that goes with files only.
for option in --example --datum --key=x --type=x:text --arrays=x; do
	build "$option" "$tmp/nowhere"
	is 1 "$status" "no source, and $option"
	ok "no source, and $option: is said" \
		grep -q "'$tmp/nowhere': No such file or directory" <<<"$err" || diag "$err"
done

done_testing
