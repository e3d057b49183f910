#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# dry-run.t - -n of every verb that writes: the refusals of the real run, and no write
. "${0%/*}/../tap.sh"

cd "$tmp" || bail "cd"
mkdir -p src/a src/b more other
for i in 1 2 3 4 5; do
	head -c "$((i * 1000))" /dev/urandom >"src/a/$i"
	head -c "$((i * 700))" /dev/urandom >"src/b/$i"
	head -c "$((i * 500))" /dev/urandom >"more/new$i"
done

# state: bytes, size, blocks and times of all targets; what loop devices have counted
state() {
	sha256sum -- *.stele foreign
	stat -c '%n %s %b %Y %Z' -- *.stele foreign
	[ -z "${loop:-}" ] || cut -c1-300 "/sys/block/${loop#/dev/}/stat" |
		awk '{ print $5, $7, $12 }'
	ls
}

# refuses STATUS VERB WORDS...: with -n and without it alike
refuses() {
	local wanted=$1 verb=$2 before after dry
	shift 2
	before=$(state)
	# shellcheck disable=SC2086 # two words
	run stele $verb -n "$@"
	dry="$status $err"
	after=$(state)
	is "$before" "$after" "$verb -n $*: writes nothing"
	# shellcheck disable=SC2086 # two words
	run stele $verb "$@"
	is "$dry" "$status $err" "$verb $*: refuses as the dry run did"
	is "$wanted" "$status" "$verb $*: with status $wanted"
}

# rehearses WANTED VERB WORDS...: succeeds, says so, writes nothing
rehearses() {
	local wanted=$1 verb=$2 before after
	shift 2
	before=$(state)
	# shellcheck disable=SC2086 # two words
	run stele $verb -n "$@"
	after=$(state)
	is "0 " "$status $(grep -v warning <<<"$err")" "$verb -n $*"
	is "$before" "$after" "$verb -n $*: writes nothing"
	ok "$verb -n $*: says '$wanted'" grep -qe "$wanted" <<<"$out$err"
}

must stele build -q src image.stele@v1
must stele append -q more image.stele@v2
must truncate -s 8M foreign
must mkfs.ext4 -q -L keepsake foreign

# ---- build ----

rehearses "nothing was written" build src new.stele
is "" "$(ls new.stele 2>/dev/null)" "build -n: makes no file"
rehearses "nothing was written" build src
refuses 1 build src none/new.stele
refuses 1 build src image.stele@v3
refuses 1 build src foreign
refuses 1 build src /dev/no-such-device
refuses 1 copy image.stele@v1 /dev/no-such-device
must ln -s none/new.stele dangling
refuses 1 build src dangling
refuses 1 build --force src dangling
refuses 1 build --size 1M src new.stele
rehearses "would be overwritten.*ext4.*keepsake" build -f src foreign
rehearses "holds a Stele image, snapshots 'v1', 'v2', which would be overwritten" \
	build -f src image.stele
ok "the image is sound" stele verify -q image.stele

# ---- append ----

rehearses "5 added" append --base=v1 more image.stele@v3
refuses 1 append more image.stele@v2
refuses 1 append --base=v9 more image.stele@v3
refuses 1 append none image.stele@v3

# ---- sources that cannot be read ----

if [ "$(id -u)" = 0 ]; then
	as() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
else
	as() { "$@"; }
fi
must chmod 755 "$tmp"
must chmod 777 .
cp src/a/1 other/x
cp src/a/1 other/y
cp image.stele mine.stele
must chmod 666 mine.stele
must chmod 000 other/x
for words in "build other fresh.stele" "append other mine.stele@v3"; do
	read -r verb rest <<<"$words"
	before=$(state)
	# shellcheck disable=SC2086 # words
	run as "$BUILD/stele" "$verb" -n $rest
	is 1 "$status" "$verb -n: an unreadable file"
	ok "$verb -n: is named" grep -qF "cannot read source 'x': Permission denied" <<<"$err"
	ok "$verb -n: may be left out" grep -qe "hint.*--on-error=skip" <<<"$err"
	is "$before" "$(state)" "$verb -n: writes nothing"
	# shellcheck disable=SC2086 # words
	run as "$BUILD/stele" "$verb" -n --on-error=skip $rest
	is 0 "$status" "$verb -n: it may be left out"
	ok "$verb -n: says so" grep -q "cannot be read" <<<"$out"
done
must chmod 644 other/x
must chmod 444 mine.stele
run as "$BUILD/stele" append -n other mine.stele@v3
is 1 "$status" "append -n: no permission"
ok "append -n: says so" grep -qF "cannot open 'mine.stele': Permission denied" <<<"$err"
rm -f mine.stele
must mkdir closed
must cp image.stele closed/
must chmod 666 closed/image.stele
run as "$BUILD/stele" build -n -f src closed/image.stele
if [ "$(id -u)" = 0 ]; then
	is 1 "$status" "build -n -f: no permission to create a file beside it"
	ok "build -n -f: says so" \
		grep -qF "cannot replace 'closed/image.stele': Permission denied" <<<"$err" ||
		diag "$err"
	run as "$BUILD/stele" extract image.stele@v1 closed/out
	is "1 hint: choose a DIR of your own, or run it as a user who may write there" \
		"$status $(tail -n1 <<<"$err")" "extract: no permission"
else
	skip_block 3 "needs root"
fi
rm -r closed

# ---- copy ----

rehearses "to send.* 2 of 2 segments" copy image.stele@v2 new.stele
is "" "$(ls new.stele 2>/dev/null)" "copy -n: makes no file"
must stele copy -q image.stele@v1 copy.stele
rehearses "to send.* 1 of 2 segments" copy image.stele@v2 copy.stele
refuses 1 copy image.stele@v1 foreign
rehearses "would be overwritten.*ext4" copy -f image.stele@v1 foreign
refuses 1 copy image.stele@v2 copy.stele@v1
refuses 1 copy image.stele@v9 copy.stele
refuses 1 copy --size 1M image.stele@v2 new.stele

# ---- snapshots ----

rehearses "would create snapshot 'few': 14 samples" "snapshot create" -d a/1 image.stele@few
refuses 1 "snapshot create" -d none image.stele@few
refuses 1 "snapshot create" image.stele@v2
rehearses "would rename 'image.stele@v1' to 'one'" "snapshot rename" image.stele@v1 one
refuses 1 "snapshot rename" image.stele@v1 v2
refuses 1 "snapshot rename" image.stele@v9 one
rehearses "would delete 'image.stele@v1'" "snapshot delete" image.stele@v1
refuses 1 "snapshot delete" image.stele@v9

# ---- compact, gc, resize ----

rehearses "nothing was written" compact image.stele@v2 whole
refuses 1 compact image.stele@v2 v1
refuses 2 compact image.stele whole
must stele snapshot delete image.stele@v2
rehearses "to free; dry run" gc --apply --force image.stele
refuses 2 gc --apply image.stele
rehearses "16.0 MiB, was" resize --size 16M image.stele
refuses 2 resize --size 1M image.stele
refuses 1 resize none.stele

echo key,label >none.csv
run stele build -n none.csv
is "1 stele: cannot build an image: the source has no samples" "$status ${err%%$'\n'*}" \
	"build -n of a source that has none, without a target"

# ---- what is written is what was foretold ----

run stele append -n --json more image.stele@v2
foretold=$(jq -c '[.added, .segment_samples, .slots_size, .image_end]' <<<"$out")
run stele append --json more image.stele@v2
is "$(jq -c '[.added, .segment_samples, .slots_size, .image_end]' <<<"$out")" \
	"$foretold" "append -n foretells"
run stele build -n --json --uuid 01234567-89ab-4def-8123-456789abcdef src new.stele
foretold=$(jq -c '[.samples, .image_end, .target_size]' <<<"$out")
run stele build --json --uuid 01234567-89ab-4def-8123-456789abcdef src new.stele
is "$(jq -c '[.samples, .image_end, .target_size]' <<<"$out")" "$foretold" \
	"build -n foretells"

# ---- devices ----

if [ "$(id -u)" != 0 ]; then
	skip_block 1 "needs root"
	done_testing
fi
loop_new 16M 512
rehearses "nothing was written" build src "$loop"
must stele build -q src "$loop@v1"
must sync
rehearses "snapshots 'v1', which would be overwritten" build -f src "$loop"
rehearses "5 added" append more "$loop@v2"
rehearses "would create" "snapshot create" -d a/1 "$loop@v2"
rehearses "to send" copy image.stele@v2 "$loop@v2"
rehearses "nothing was written" compact "$loop@v1" whole
rehearses "would delete" "snapshot delete" --force "$loop@v1"
refuses 2 resize --size 64M "$loop"
head -c 20M /dev/urandom >more/large
refuses 1 append more "$loop@v2"
rm more/large
dd if=/dev/zero of="$loop" bs=4096 seek=1 count=1 conv=notrunc status=none
must mkfs.vfat -I "$loop"
must sync
refuses 1 repair "$loop"
must wipefs -qa "$loop"
exec 5<>"$loop"
refuses 1 build -f src "$loop"
exec 5>&-
mkdir mnt
must mkfs.ext4 -q "$loop"
must mount -o ro "$loop" mnt # by nobody else it is written to
refuses 1 build -f src "$loop"
refuses 1 append more "$loop@v2"
must umount mnt
done_testing
