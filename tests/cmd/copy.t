#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# copy.t - a snapshot goes from target to target, and is the same everywhere
. "${0%/*}/../tap.sh"
. "${0%/*}/targets.sh"

requires jq --version

tree_photos "$tmp/photos"
head -c 7M /dev/urandom >"$tmp/photos/large"
must stele build -q --time 1700000000 --label pets "$tmp/photos" "$tmp/a@v1"
digest=$(stele info --json "$tmp/a" | jq -r .snapshot.digest)

digest_of() { stele info --json "$1" | jq -r .snapshot.digest; }

# sound TARGET WORDS: whole, and the same
sound() {
	is "$digest" "$(digest_of "$1")" "$2: the same digest"
	ok "$2: sound" stele verify -q "${1%@*}"
}

# ---- file, devices of both block sizes, file ----

copy_here() { # TARGET WORDS
	run stele copy --json "$tmp/a" "$1"
	is "0 " "$status $err" "$2: copied"
	is "1 true 0" "$(jq -r '"\(.segments_sent) \(.sent_size == .size) \(.resumed_size)"' \
		<<<"$out")" "$2: all of it sent"
	sound "$1" "$2"
	run stele copy --json "$tmp/a" "$1"
	is "0 0" "$(jq -r '"\(.segments_sent) \(.sent_size)"' <<<"$out")" \
		"$2: nothing is sent twice"
}
each_target copy_here 64M
if [ "$(id -u)" = 0 ]; then
	loop_new 64M 512
	small=$loop
	loop_new 64M 4096
	must stele copy -q "$tmp/a" "$small"
	must stele copy -q "$small" "$loop"
	must stele copy -q "$loop" "$tmp/back"
	sound "$tmp/back" "file, 512, 4096, file"
else
	must stele copy -q "$tmp/a" "$tmp/back"
	skip_block 2 "needs root"
fi
rm -rf "$tmp/x"
must stele extract -q "$tmp/back" "$tmp/x"
ok "every byte is there" diff -r "$tmp/photos" "$tmp/x"
is "pets 2023-11-14 22:13:20" "$(stele info --json "$tmp/back" | jq -r \
	'"\(.image.label) \(.snapshot.time | todate | sub("T"; " ") | rtrimstr("Z"))"')" \
	"label and the snapshot's time go along"

# ---- same input, same bytes ----

uuid=00112233-4455-6677-8899-aabbccddeeff
for i in 1 2; do
	must stele copy -q -j $i --uuid $uuid --time 1800000000 "$tmp/a" "$tmp/same$i"
done
ok "same source and options, same bytes" cmp "$tmp/same1" "$tmp/same2"
used() { stele info --json "$1" | jq .image.used_size; }
ok "no space is left between" test "$(used "$tmp/same1")" -lt $(($(used "$tmp/a") + 65536))

# ---- names, and what is there already ----

must stele build -q "$tmp/photos/train" "$tmp/b@w1"
run stele copy "$tmp/b" "$tmp/back"
is 0 "$status" "a second snapshot, of another image"
ok "says what was sent" grep -q "sent *1 of 1 segment" <<<"$out"
is "v1 w1" "$(stele snapshot list --json "$tmp/back" | jq -r .name | paste -sd ' ')" \
	"beside the first"
sound "$tmp/back@v1" "which stays"
ok "both are right" cmp "$tmp/photos/train/cats/7.jpg" \
	<(stele cat "$tmp/back@w1" cats/7.jpg)
run stele copy "$tmp/b" "$tmp/back@v1"
is 1 "$status" "a name that another snapshot has"
ok "is said" grep -q "another snapshot 'v1'" <<<"$err"
run stele copy --json "$tmp/a" "$tmp/back@again"
is "0 0" "$status $(jq .sent_size <<<"$out")" "another name costs no bytes"
run stele copy "$tmp/a" "$tmp/a@other"
is 2 "$status" "a target that is the source"
ok "is refused in these words" grep -q "is the source itself" <<<"$err"
ln -s a "$tmp/link"
run stele copy --force "$tmp/a" "$tmp/link@other"
is 2 "$status" "by another name, too, and with --force"
sound "$tmp/a" "the source"
run stele copy "$tmp/a@nosuch" "$tmp/new"
is 1 "$status" "no such snapshot"
ok "makes no file" test ! -e "$tmp/new"

# ---- a later snapshot ----

must stele build -q "$tmp/photos/train" "$tmp/grows@v1"
must stele copy -q "$tmp/grows" "$tmp/follows"
head -c 300K /dev/urandom >"$tmp/photos/train/new"
must stele append -q "$tmp/photos/train" "$tmp/grows@v2"
rm "$tmp/photos/train/new"
must stele append -q --delete-missing "$tmp/photos/train" "$tmp/grows@v3"
for v in 2 3; do
	run stele copy --json "$tmp/grows@v$v" "$tmp/follows"
	is "0 $((4 - v))" "$status $(jq .segments <<<"$out")" "v$v follows" || diag "$err"
	is $((v == 2)) "$(jq .segments_sent <<<"$out")" "v$v: sends what is new"
	ok "v$v: less than a whole" test "$(jq .sent_size <<<"$out")" -lt 400000
	is "" "$(stele diff "$tmp/grows@v$v" "$tmp/follows@v$v" 2>&1)" "v$v: the same"
	ok "v$v: sound" stele verify -q "$tmp/follows"
done

# ---- what is not ours ----

head -c 1M /dev/zero >"$tmp/foreign"
must mkfs.ext4 -q "$tmp/foreign" 20M
before=$(sum "$tmp/foreign")
run stele copy "$tmp/a" "$tmp/foreign"
is "1 $before" "$status $(sum "$tmp/foreign")" "a filesystem stays"
run stele copy --force -q "$tmp/a" "$tmp/foreign"
is 0 "$status" "unless told"
sound "$tmp/foreign" "over a filesystem"
must stele build -q "$tmp/photos/train/cats" "$tmp/old@v1"
run stele copy --force -q "$tmp/a" "$tmp/old"
is 0 "$status" "with --force an older image goes"
sound "$tmp/old" "over an older image"

# ---- damage ----

perl -e 'open F, "+<", shift; seek F, 5 << 20, 0; read F, my $c, 1;
	seek F, 5 << 20, 0; print F chr(ord($c) ^ 1)' "$tmp/same2"
run stele copy "$tmp/same2" "$tmp/damaged"
is 3 "$status" "a damaged source"
ok "is named" grep -q "damaged source: sample '.*' of .*: crc32c" <<<"$err" || diag "$err"
is "" "$(stele snapshot list "$tmp/damaged" | tail -n +2)" "nothing published"
must stele copy -q "$tmp/a" "$tmp/damaged"
sound "$tmp/damaged" "from a good one it goes on"
must stele build -q --label=kept "$tmp/photos/train/cats" "$tmp/kept@v1"
before=$(sum "$tmp/kept")
run stele copy --force "$tmp/same2" "$tmp/kept"
is "3 $before" "$status $(sum "$tmp/kept")" "a damaged source, over an image: that stays"
is "$tmp/kept" "$(ls "$tmp/kept"*)" "and nothing beside it"
if [ "$(id -u)" = 0 ]; then
	loop_new 64M
	must stele build -q --label=kept "$tmp/photos/train/cats" "$loop@v1"
	run stele copy --force "$tmp/same2" "$loop"
	is 3 "$status" "over one on a device"
	ok "what was lost is said" \
		grep -q "'$loop' has lost the image that it held: 'kept': 'v1'$" <<<"$err" ||
		diag "$err"
else
	skip_block 2 "needs root"
fi

# ---- interrupted ----

mkdir "$tmp/big"
for i in 1 2 3; do head -c 80M /dev/urandom >"$tmp/big/$i"; done
must stele build -q "$tmp/big" "$tmp/big.stele"
digest=$(digest_of "$tmp/big.stele")
# reached FILE: a sample is there, and part of the next: 96 MiB are written. (All its
# blocks may be there before.)
reached() {
	[ "$(stat -c %s "$1" 2>/dev/null || echo 0)" -gt $((97 << 20)) ] &&
		! cmp -s -n 4096 -i $((96 << 20)):0 "$1" /dev/zero
}

resumed=0
# The signal may find all bytes sent, but for the last few: then once more, too.
for ((try = 0; try < 5 && !resumed; try++)); do
	stopped KILL "$tmp/k" stele copy -q -j 1 "$tmp/big.stele" "$tmp/k"
	run stele copy --json "$tmp/big.stele" "$tmp/k"
	resumed=$(jq 'if .resumed_size > 0 and .sent_size > 0 and
		.sent_size + .resumed_size == .size then 1 else 0 end' <<<"$out")
done
is 1 "$resumed" "killed: goes on within the segment" || diag "$out$err"
sound "$tmp/k" "killed and gone on"

stopped KILL "$tmp/e" stele copy -q -j 1 "$tmp/big.stele" "$tmp/e"
run stele ls "$tmp/e"
ok "killed: what is to be done is said of the empty image" \
	grep -q "^hint: .*run 'stele copy' again" <<<"$err" || diag "$err"
for command in info verify "snapshot list"; do
	# shellcheck disable=SC2086 # words
	run stele $command "$tmp/e"
	is 0 "$status" "killed: $command of the empty image"
	ok "killed: $command says that it was interrupted" \
		grep -q "empty image: process .* was interrupted" <<<"$out$err"
	ok "killed: $command says what to do" \
		grep -q "^hint: run 'stele copy' again" <<<"$err" || diag "$err"
done
if [ "$(id -u)" = 0 ]; then
	loop_new 300M
	err=
	for ((try = 0; try < 5 && ! ${#err}; try++)); do
		must blkdiscard "$loop"
		must stele build -q --label=kept "$tmp/photos/train/cats" "$loop@v1"
		stele copy -f -q -j 1 "$tmp/big.stele" "$loop" &
		until reached "$loop_file"; do kill -0 $! 2>/dev/null || break; done
		kill -KILL $! 2>/dev/null
		wait $! 2>/dev/null
		run stele info "$loop"
	done
	ok "killed on a device: what it has overwritten is said" \
		grep -q "empty image: it has overwritten 'kept': 'v1'" <<<"$err" || diag "$err"
	must stele copy -q "$tmp/big.stele" "$loop"
	run stele info "$loop"
	is "0 " "$status $err" "killed on a device: run again, it is whole"
else
	skip_block 2 "needs root"
fi
stopped INT "$tmp/k" stele copy -j 1 "$tmp/big.stele" "$tmp/k"
is 130 "$status" "it dies of a signal"
ok "and says how to resume" grep -q "run the same command to resume" "$tmp/err" ||
	diag "$(<"$tmp/err")"
must stele copy -q "$tmp/big.stele" "$tmp/k"
sound "$tmp/k" "as it does"

# Before anything is sent there is an image that holds nothing, in a file of its full size.
# at_once CMD...: stopped when it asks for space, before it begins to send
at_once() {
	ASAN_OPTIONS=detect_leaks=0 run env --default-signal=INT \
		strace -f -qq -o "$tmp/trace" -e signal=none -e trace=fallocate \
		-e inject=fallocate:signal=INT:when=1 "$@"
}
if strace -qq -e signal=none -e trace=fallocate true 2>/dev/null; then
	for force in "" --force; do
		# shellcheck disable=SC2086 # none, or one
		at_once stele copy $force "$tmp/big.stele" "$tmp/at-once"
		is 130 "$status" "stopped at once${force:+, with $force}" || diag "$out" "$err"
		words="'$tmp/at-once' keeps an empty image; run the same command to resume"
		is "stele: $words${force:+, without $force}" "$(tail -1 <<<"$err")" \
			"and says what is there by now" || diag "$err"
		must stele copy -q "$tmp/big.stele" "$tmp/at-once"
		sound "$tmp/at-once" "as it does"
		rm "$tmp/at-once"
	done
	must cp "$tmp/kept" "$tmp/over"
	at_once stele copy --force "$tmp/big.stele" "$tmp/over"
	is "130 $before" "$status $(sum "$tmp/over")" "stopped at once, over a file: it stays"
	is "$tmp/over" "$(echo "$tmp/over"*)" "and nothing is beside it"
	ok "nor said to be" not grep -q keeps <<<"$err" || diag "$err"
	at_once stele copy "$tmp/big.stele" "$tmp/at-once"
	at_once stele copy --force "$tmp/big.stele" "$tmp/at-once"
	is 130 "$status" "stopped at once, over an empty image"
	ok "nor is anything beside that" not grep -q keeps <<<"$err" || diag "$err"
	rm "$tmp/at-once"
else
	skip_block 13 "needs strace"
fi

# Over a file: it stays until the copy is complete, and that is resumed beside it.
must cp "$tmp/kept" "$tmp/over"
new=$tmp/over.new-${digest:0:8}
resumed=0
for ((try = 0; try < 5 && !resumed; try++)); do
	stopped KILL "$new" stele copy -q -f -j 1 "$tmp/big.stele" "$tmp/over"
	is "$before" "$(sum "$tmp/over")" "killed with --force: the old image is there"
	ok "the new one beside it" test -f "$new"
	run stele build -n -f "$tmp/photos" "$tmp/over"
	ok "which a build names" grep -q "'$new' was left by an interrupted" <<<"$err" ||
		diag "$err"
	run stele copy --json -f "$tmp/big.stele" "$tmp/over"
	resumed=$(jq 'if .resumed_size > 0 and .sent_size > 0 then 1 else 0 end' <<<"$out")
	[ "$resumed" = 1 ] || cp "$tmp/kept" "$tmp/over"
done
is "1 0 " "$resumed $status $err" "the same command goes on with it" || diag "$out"
sound "$tmp/over" "then it is the new image"
ok "and nothing is beside it" test ! -e "$new"
must cp "$tmp/kept" "$tmp/over"
stopped INT "$new" stele copy -f -j 1 "$tmp/big.stele" "$tmp/over"
is "130 $before" "$status $(sum "$tmp/over")" "of a signal, too"
ok "and it is said how to resume" grep -q \
	"a new file beside '$tmp/over' keeps .*; run the same command to resume$" "$tmp/err" ||
	diag "$(<"$tmp/err")"
head -c 1M /dev/urandom | dd of="$new" bs=4096 seek=1 conv=notrunc status=none
must stele copy -q -f "$tmp/big.stele" "$tmp/over"
sound "$tmp/over" "what is not whole is not gone on with"
# The same of one that has all but its name: its segments, or superblocks and witnesses.
for places in "$((0x280000))" "$((0x1000)) $((0x100000)) $((0x180000)) $((0x1ff000))" \
	"$((0x2000)) $((0x101000)) $((0x180000)) $((0x1ff000))"; do
	must cp "$tmp/kept" "$tmp/over"
	must stele copy -q "$tmp/big.stele" "$new"
	for place in $places; do
		printf XXXXXXXX | dd of="$new" bs=8 seek=$((place / 8)) conv=notrunc status=none
	done
	run stele copy -n -f "$tmp/big.stele" "$tmp/over"
	is 0 "$status" "damaged at $places: a dry run" || diag "$err"
	run stele copy -q -f "$tmp/big.stele" "$tmp/over"
	is 0 "$status" "damaged at $places: made good" || diag "$err"
	sound "$tmp/over" "damaged at $places: the new image"
	ok "and nothing is beside it" test ! -e "$new"
done
must cp "$tmp/kept" "$tmp/over"
must stele copy -q "$tmp/kept" "$new@v1"
run stele copy -q -f "$tmp/big.stele" "$tmp/over@v1"
is "0" "$status" "what is no copy of it, of the same name, is in nobody's way"
is "" "$(stele diff "$tmp/big.stele" "$tmp/over@v1" 2>&1)" "nor comes with it"
ok "nor goes" stele verify -q "$new@v1"
rm "$new"
must cp "$tmp/kept" "$tmp/over"
must cp "$tmp/kept" "$tmp/elsewhere"
ln -s elsewhere "$new"
must stele copy -q -f "$tmp/big.stele" "$tmp/over"
sound "$tmp/over" "a link of that name is not followed"
is "$before" "$(sum "$tmp/elsewhere")" "nor what it leads to written"
rm "$new"
must cp "$tmp/kept" "$tmp/over"
must stele copy -q "$tmp/big.stele" "$new"
run stele copy -q -f "$tmp/big.stele" "$tmp/over@renamed"
is "0 renamed" "$status $(stele snapshot list --json "$tmp/over" | jq -r .name)" \
	"resumed under another name: that is the only one"
is "" "$(stele diff "$tmp/big.stele" "$tmp/over" 2>&1)" "with all that it holds"
ok "and nothing is beside it" test ! -e "$new"

# Killed before there is an image: that looks like a build that was killed.
unfinished() { stele snapshot list "$1" 2>&1 | grep -q unfinished; }
stopped KILL "$tmp/u" stele build -q "$tmp/big" "$tmp/u"
ok "an unfinished image" unfinished "$tmp/u"
run stele copy "$tmp/a" "$tmp/u"
is 1 "$status" "it is not taken"
ok "what helps is said" grep -q -- "^hint: use --force .*nothing is lost" <<<"$err" || diag "$err"
run stele copy -q --force "$tmp/a" "$tmp/u"
is "0 " "$status $err" "with --force it is"
is "" "$(stele diff "$tmp/a" "$tmp/u" 2>&1)" "the snapshot is there"

# Deleted and overwritten while it is copied: no damage.
must cp "$tmp/big.stele" "$tmp/leaves"
stele copy -q -j 1 "$tmp/leaves" "$tmp/late" 2>"$tmp/err" &
pid=$!
until reached "$tmp/late"; do kill -0 $pid 2>/dev/null || break; done
kill -STOP $pid
must stele snapshot delete --force "$tmp/leaves@v1"
must stele gc --apply --force "$tmp/leaves" >/dev/null
must stele append -q "$tmp/big" "$tmp/leaves@v2"
kill -CONT $pid
wait $pid
is 1 $? "a source that is deleted meanwhile is not damaged"
ok "what it is is said" grep -q "was deleted" "$tmp/err" || diag "$(<"$tmp/err")"
ok "and no damage" not grep -q "damage\|crc32c" "$tmp/err" || diag "$(<"$tmp/err")"
rm "$tmp/leaves" "$tmp/late"

# ---- what another image left on the target ----

# Asked for reproducible output, two builds give their segments one id: what the one left
# where the other is copied to passes checksums. Same sizes, other keys.
for name in one two; do
	mkdir "$tmp/$name"
	for ((i = 0; i < 12; i++)); do
		head -c $((100 + i)) /dev/urandom >"$tmp/$name/$(md5sum <<<"$name$i" | head -c 9)"
	done
	must stele build -q --boundary=64K --uuid=00112233-4455-6677-8899-aabbccddeeff \
		"$tmp/$name" "$tmp/$name.stele"
done
must stele copy -q "$tmp/one.stele" "$tmp/both"
must stele snapshot delete --force "$tmp/both@v1"
must stele gc --apply --force "$tmp/both"
must stele copy -q "$tmp/two.stele" "$tmp/both"
for file in "$tmp/two"/*; do
	stele cat "$tmp/both" "${file##*/}" | cmp -s - "$file" || echo "$file"
done >"$tmp/wrong"
is "" "$(<"$tmp/wrong")" "each key leads to its own sample"
ok "the image is sound" stele verify -q "$tmp/both"

# ---- no room ----

run stele copy --size=8M "$tmp/a" "$tmp/tiny"
is 1 "$status" "a file of a size that does not do"
ok "is not made" test ! -e "$tmp/tiny"
requires_root
loop_new 8M
must mkfs.ext4 -q "$loop" # nothing of it may go
before=$(sum "$loop")
run stele copy --force "$tmp/a" "$loop"
is "1 $before" "$status $(sum "$loop")" "a device that is too small stays"
must wipefs -qa "$loop"
loop_new 30M
must stele copy -q "$tmp/b" "$loop"
run stele copy "$tmp/big.stele" "$loop"
is 1 "$status" "an image without room"
is w1 "$(stele snapshot list --json "$loop" | jq -r .name)" "stays as it is"
loop_new 340M
must mkfs.ext4 -q "$loop"
mkdir "$tmp/mnt"
must mount "$loop" "$tmp/mnt"
cleanup umount "$tmp/mnt"
must stele copy -q "$tmp/b" "$tmp/mnt/image"
head -c 160M /dev/zero >"$tmp/mnt/filler"
before=$(stat -c '%s %b' "$tmp/mnt/image")
run stele copy "$tmp/big.stele" "$tmp/mnt/image"
is 1 "$status" "a filesystem without room for a growing image"
is "$before" "$(stat -c '%s %b' "$tmp/mnt/image")" "gives nothing"
is w1 "$(stele snapshot list --json "$tmp/mnt/image" | jq -r .name)" \
	"leaves what was there"
ok "and it sound" stele verify -q "$tmp/mnt/image"
rm "$tmp/mnt/filler"
run stele copy --json "$tmp/big.stele" "$tmp/mnt/image"
is 0 "$status" "with room again it is copied" || diag "$err$out"
sound "$tmp/mnt/image@v1" "then"

# ---- two of the same at once ----

mkdir "$tmp/slow"
head -c 40M /dev/zero >"$tmp/slow/zeros"
must stele build -q "$tmp/slow" "$tmp/slow.stele@v1"
# twins: its status and that of a second one, that begins a moment later
twins() {
	rm -f "$tmp/twin"
	stele copy -q "$tmp/slow.stele" "$tmp/twin" 2>"$tmp/err1" &
	sleep "$1"
	run stele copy -q "$tmp/slow.stele" "$tmp/twin"
	wait $!
	statuses="$? $status"
	errors="$err$(<"$tmp/err1")"
}
# On a slow disk the first takes longer than the second waits, which is told so.
for i in 1 2 3 4; do
	for ((try = 0; try < 20; try++)); do
		twins "0.00$i"
		[[ $errors == *"in use"* || $errors == *"is writing to it"* ]] || break
	done
	is "0 0" "$statuses" "two at once, $i: the second waits, and finds it there" ||
		diag "$errors"
	ok "two at once, $i: nobody is to force it" \
		not grep -qE "force|existing" <<<"$errors"
	ok "two at once, $i: sound" stele verify -q "$tmp/twin"
done

# between CALL=N DO: a copy, with DO done before the N-th CALL for its target
between() {
	rm -f "$tmp/twin"
	BETWEEN_FILE=$tmp/twin BETWEEN_DO=$2 LD_PRELOAD=$tmp/between.so run \
		env "BETWEEN_$1" stele copy -q "$tmp/slow.stele" "$tmp/twin"
}
if ! ldd "$BUILD/stele" | grep -qE 'lib[at]san' &&
	"${CC:-cc}" -shared -fPIC -O1 -o "$tmp/between.so" tests/cmd/between/between.c; then
	for do in "stele copy -q $tmp/slow.stele $tmp/twin" ": >>$tmp/twin"; do
		for call in AT=1 STAT={2..7}; do
			between "$call" "$do"
			is "0 " "$status $err" "another is faster, before $call: ${do%% *}"
			ok "then it is sound" stele verify -q "$tmp/twin"
		done
	done
	between AT=1 "echo something >$tmp/twin"
	is "1 something" "$status $(<"$tmp/twin")" "another's file is left alone"
	ok "what is said names force" grep -q "^hint: use --force" <<<"$err" || diag "$err"
else
	skip_block 30 "needs the calls of its own, and a compiler"
fi

rm -f "$tmp/twin"
stele copy -q "$tmp/slow.stele" "$tmp/twin" 2>"$tmp/err1" &
pid=$!
until grep -qs WRITE /proc/$pid/fdinfo/*; do
	kill -0 $pid 2>/dev/null || break
done
kill -STOP $pid
run stele copy -q "$tmp/slow.stele" "$tmp/twin"
is 1 "$status" "one that takes its time: the second is refused"
ok "by name of the first" grep -q "process $pid " <<<"$err" || diag "$err"
ok "to try again" grep -q "^hint: try again" <<<"$err" || diag "$err"
kill -CONT $pid
wait $pid
is 0 $? "the first one goes on" || diag "$(<"$tmp/err1")"
rm -rf "$tmp/slow" "$tmp/slow.stele" "$tmp/twin"

# ---- what snapshots there have ----

mkdir "$tmp/few"
for i in 1 2 3; do head -c 30000 /dev/urandom >"$tmp/few/$i"; done
must stele build -q "$tmp/few" "$tmp/few.stele@v1"
must stele copy -q "$tmp/few.stele@v1" "$tmp/many.stele"
echo new >"$tmp/few/4"
must stele append -q "$tmp/few" "$tmp/few.stele@v2"
run stele copy "$tmp/few.stele@v2" "$tmp/many.stele@also"
is 0 "$status" "a segment that is there: is not read" || diag "$err"
ok "a segment that is there: that is said" grep -qE "^  not read  1 segment, .* that snapshots `
	`there have: 'stele verify $tmp/many.stele@also' reads all$" <<<"$out" || diag "$out"
run stele copy --json "$tmp/few.stele@v2" "$tmp/many.stele@also"
is "2 true" "$(jq -r '"\(.segments_unread) \(.unread_size == .size)"' <<<"$out")" \
	"there already: nor is it then" || diag "$out"
run stele copy --json "$tmp/few.stele@v2" "$tmp/new.stele"
is "0 0" "$(jq -r '"\(.segments_unread) \(.unread_size)"' <<<"$out")" \
	"a new image: all of it was" || diag "$out"
# The ends of its sections are.
must stele copy -q "$tmp/few.stele@v1" "$tmp/torn.stele"
must perl -e 'open F, "+<", shift; my ($at, $found) = (0, 0);
	while (read F, my $block, 4096) {
		my ($magic, $type) = unpack "a8V", $block;
		if ($magic =~ /^.STELE/s && $type == 8) {
			seek F, $at + 100, 0; print F "XXXX"; seek F, $at + 4096, 0; $found++;
		}
		$at += 4096;
	}
	exit !$found' "$tmp/torn.stele"
for dry in -n ""; do
	# shellcheck disable=SC2086 # an option or none
	run stele copy $dry "$tmp/few.stele@v2" "$tmp/torn.stele"
	is 3 "$status" "a segment there whose digests are damaged: no snapshot uses it $dry"
	ok "that is said $dry" grep -q "digests of segment" <<<"$err" || diag "$err"
	is v1 "$(stele snapshot list --json "$tmp/torn.stele" | jq -r .name)" "nor is there one"
done
rm -rf "$tmp/few" "$tmp/few.stele" "$tmp/many.stele" "$tmp/new.stele" "$tmp/torn.stele"

done_testing
