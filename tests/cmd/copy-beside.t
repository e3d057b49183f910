#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# copy-beside.t - what has the name of an unfinished copy, and is none, stays as it is
. "${0%/*}/../tap.sh"

requires jq --version

# source_of DIRECTORY: DIRECTORY.good with two segments, and DIRECTORY.damaged, of which a copy
# ends after the first
source_of() {
	mkdir "$1"
	head -c 100K /dev/urandom >"$1/1"
	must stele build -q "$1" "$1.good@v1"
	head -c 100K /dev/urandom >"$1/2"
	must stele append -q "$1" "$1.good@v2"
	must cp "$1.good" "$1.damaged"
	perl -e 'local $/; open F, "+<", shift; my $all = <F>; open G, "<", shift;
		my $at = index $all, substr <G>, 4096, 64; $at >= 0 or die;
		seek F, $at, 0; print F "X" x 64' "$1.damaged" "$1/2"
}
source_of "$tmp/s"
source_of "$tmp/else"
mkdir "$tmp/o" "$tmp/w"
head -c 10K /dev/urandom >"$tmp/o/mine"
must stele build -q "$tmp/o" "$tmp/other@mine"
must stele build -q "$tmp/o" "$tmp/old@t1"
digest=$(stele info --json "$tmp/s.good@v2" | jq -r .snapshot.digest)
over=$tmp/w/t
new=$over.new-${digest:0:8}

begin() { # WORDS
	what=$1
	rm -f "$tmp/w/"*
	must cp "$tmp/old" "$over"
}
copied() {
	is 0 "$status" "$what: copied" || diag "$err"
	is "v2" "$(stele snapshot list --json "$over" | jq -r .name)" "$what: with its snapshot"
	is "" "$(stele diff "$tmp/s.good@v2" "$over@v2" 2>&1)" "$what: the same"
	ok "$what: sound" stele verify -q "$over"
}
left_alone() {
	local before
	before=$(sum <"$new")
	local words="'$new' is no unfinished copy of this snapshot: it is left alone"
	run stele copy -n -f "$tmp/s.good@v2" "$over"
	is 0 "$status" "$what: a dry run"
	ok "$what: says what stays" grep -q "$words" <<<"$err" || diag "$err"
	run stele copy -q -f "$tmp/s.damaged@v2" "$over"
	is "3 $(sum <"$tmp/old")" "$status $(sum <"$over")" "$what: a copy that fails"
	is "t ${new##*/}" "$(find "$tmp/w" -type f -printf '%f\n' | sort | paste -sd ' ')" \
		"$what: leaves nothing"
	run stele copy -f "$tmp/s.good@v2" "$over"
	said=$err
	copied
	is "$before" "$(sum <"$new" 2>&1)" "$what: it is there as it was"
	ok "$what: that is said" grep -q "$words" <<<"$said" || diag "$said"
	is 1 "$(grep -c "$new" <<<"$said")" "$what: once"
}
taken() {
	run stele copy -f "$tmp/s.good@v2" "$over"
	said=$err
	copied
	is "" "$said" "$what: without a word"
	ok "$what: nothing is beside it" test ! -e "$new"
}
part() {
	run stele copy -q "$tmp/s.damaged@v2" "$new"
	is "3 1" "$status $(stele info --json "$new" 2>/dev/null | jq .image.segments)" \
		"$what: begun with a segment"
}

begin "an image with a snapshot of its own"
must cp "$tmp/other" "$new"
left_alone
begin "a damaged one"
must cp "$tmp/other" "$new"
for place in 0x1000 0x2000 0x100000 0x101000 0x180000 0x1ff000; do
	printf XXXXXXXX | dd of="$new" bs=8 seek=$((place / 8)) conv=notrunc status=none
done
left_alone
begin "a text file"
echo "my notes" >"$new"
left_alone
begin "a large file of something else"
head -c 4M /dev/urandom >"$new"
left_alone
begin "an unfinished copy to which something was added"
part
must stele append -q "$tmp/o" "$new@mine"
left_alone
begin "one from which that was deleted"
part
must stele append -q "$tmp/o" "$new@mine"
must stele snapshot delete -f "$new@mine"
left_alone
begin "a complete copy to which something was added"
must stele copy -q "$tmp/s.good@v2" "$new"
must stele append -q "$tmp/o" "$new@mine"
left_alone
begin "the unfinished copy of something else"
run stele copy -q "$tmp/else.damaged@v2" "$new"
is 3 "$status" "$what: begun"
left_alone
begin "a complete one, with something that was deleted"
must stele copy -q "$tmp/other" "$new"
must stele copy -q "$tmp/s.good@v2" "$new"
must stele snapshot delete -f "$new@mine"
left_alone

# no_file WORDS COMMAND...: what is no file of that name stays, which is said
no_file() {
	begin "$1"
	must "${@:2}"
	before=$(stat -c '%F %i %h' "$new")
	words="'$new' is no unfinished copy of this snapshot: it is left alone"
	for dry in -n ""; do
		# shellcheck disable=SC2086 # an option or none
		run timeout 20 stele copy $dry -f "$tmp/s.good@v2" "$over"
		ok "$what: that is said $dry" grep -q "$words" <<<"$err" || diag "$err"
		is 1 "$(grep -c "$new" <<<"$err")" "$what: once $dry" || diag "$err"
		is "$before" "$(stat -c '%F %i %h' "$new")" "$what: is there as it was $dry"
	done
	copied
	is "$(sum <"$tmp/other")" "$(sum <"$tmp/mine")" "$what: nor is the user's own image changed"
}
must cp "$tmp/other" "$tmp/mine"
no_file "a directory" mkdir "$new"
rmdir "$new"
no_file "a fifo" mkfifo "$new"
no_file "a dangling symlink" ln -s "$tmp/none" "$new"
no_file "a symlink to an image" ln -s "$tmp/mine" "$new"
no_file "a hard link to an image" ln "$tmp/mine" "$new"

# in_use SOURCE WORDS: what somebody has at the other end of it stays as it is, name and all
in_use() {
	local before dry
	before="$(stat -c '%i %h' "$new") $(sum <"$new")"
	for dry in -n ""; do
		# shellcheck disable=SC2086 # an option or none
		run stele copy $dry -f "$1" "$over"
		ok "$what: that is said $dry" grep -q "'$new' is $2.*; it is left alone" \
			<<<"$err" || diag "$err"
		is 1 "$(grep -c "$new" <<<"$err")" "$what: once $dry" || diag "$err"
		is "$before" "$(stat -c '%i %h' "$new") $(sum <"$new")" \
			"$what: it is as it was $dry"
	done
	copied
	run stele copy -q "$1" "$over"
	is 0 "$status" "$what: the target is in nobody's use" || diag "$err"
	must cp "$tmp/old" "$over"
	run stele copy -q -f "$tmp/s.damaged@v2" "$over"
	is "3 $before" "$status $(stat -c '%i %h' "$new") $(sum <"$new")" \
		"$what: nor does a copy that fails touch it"
}
begin "the source"
must cp "$tmp/s.good" "$new"
in_use "$new@v2" "the source itself"

if [ "$(id -u)" = 0 ] && loop=$(losetup -f --show "$tmp/other" 2>/dev/null); then
	losetup -d "$loop"
	for source in good damaged; do
		begin "the $source source, under a loop device"
		must cp "$tmp/s.$source" "$new"
		loop=$(losetup -f --show "$new") || bail "no loop device"
		cleanup loop_drop "$loop"
		if [ $source = good ]; then
			in_use "$loop@v2" "in use: it is under loop device ${loop##*/}"
		else
			before=$(sum <"$new")
			run stele copy -q -f "$loop@v2" "$over"
			is "3 $before" "$status $(sum <"$new" 2>&1)" "$what: it stays" ||
				diag "$err"
		fi
		losetup -d "$loop"
	done
	begin "an unfinished copy, under a loop device"
	part
	loop=$(losetup -f --show "$new") && cleanup loop_drop "$loop"
	in_use "$tmp/s.good@v2" "in use: it is under loop device ${loop##*/}"
	losetup -d "$loop"
	begin "by another number, under a loop device"
	must cp "$tmp/mine" "$over.new-0123abcd"
	loop=$(losetup -f --show "$over.new-0123abcd") && cleanup loop_drop "$loop"
	run stele copy -f "$tmp/s.good@v2" "$over"
	is "0 " "$status $(grep interrupted <<<"$err")" "$what: is not to be removed"
	losetup -d "$loop"
else
	skip_block 1 "needs loop devices"
fi

mounts='import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(sys.argv[1].encode(), sys.argv[2].encode(), b"erofs", 1, b""):
	print(os.strerror(ctypes.get_errno())); sys.exit(1)
print("ready", flush=True); sys.stdin.readline()'
mkdir "$tmp/mnt"
cleanup umount -q "$tmp/mnt"
for space in "" apart; do
	begin "a complete copy that is mounted, ${space:-here}"
	must stele copy -q "$tmp/s.good@v2" "$new"
	must stele posix on "$new"
	# shellcheck disable=SC2086 # words
	coproc holder { $space python3 -c "$mounts" "$new" "$tmp/mnt" 2>&1; }
	# shellcheck disable=SC2154 # bash sets it
	pid=$holder_PID
	read -r ready <&"${holder[0]}" || ready=
	if [ "$ready" != ready ]; then
		skip_block 1 "needs a kernel that mounts EROFS from files"
		break
	fi
	in_use "$tmp/s.good@v2" "in use: it is mounted on $tmp/mnt"
	echo >&"${holder[1]}"
	wait "$pid"
	umount -q "$tmp/mnt"
done

# By other names of that kind, of a build.
for name in directory fifo dangling symlink link short other; do
	begin "another name, a $name"
	also=$over.new-0123abcd
	case $name in
	directory) must mkdir "$also" ;;
	fifo) must mkfifo "$also" ;;
	dangling) must ln -s "$tmp/none" "$also" ;;
	symlink) must ln -s "$tmp/mine" "$also" ;;
	link) must ln "$tmp/mine" "$also" ;;
	short) must cp "$tmp/mine" "$over.new-backup" ;;
	other) must cp "$tmp/mine" "$also.bak" ;;
	esac
	run timeout 20 stele build -f "$tmp/o" "$over"
	is "0 " "$status $(grep interrupted <<<"$err")" "$what: is none that a build has left"
	rm -rf "$also"
done
begin "what a build has left"
must cp "$tmp/mine" "$over.new-0123abcd"
run stele build -f "$tmp/o" "$over"
ok "$what: is named" grep -q "new-0123abcd' was left by an interrupted build" <<<"$err"

begin "an unfinished copy"
part
taken
begin "a complete one"
must stele copy -q "$tmp/s.good@v2" "$new@other"
taken
begin "an empty file"
: >"$new"
taken
begin "a hole"
truncate -s 3M "$new"
taken
begin "one without superblocks"
part
for place in 0x1000 0x2000 0x100000 0x101000 0x180000 0x1ff000; do
	printf XXXXXXXX | dd of="$new" bs=8 seek=$((place / 8)) conv=notrunc status=none
done
taken

# ---- what cannot take the place of the old ----

# The last step fails when all is copied.
if strace -qq -e trace=rename -e inject=rename:error=EIO true 2>/dev/null; then
	begin "a file that cannot be replaced"
	ASAN_OPTIONS=detect_leaks=0 run strace -f -qq -o "$tmp/trace" -e signal=none \
		-e trace=rename -e inject=rename:error=EIO stele copy -f "$tmp/s.good@v2" "$over"
	is "1 stele: cannot replace '$over': Input/output error" "$status $err" "$what"
	is "t $(sum <"$tmp/old")" "$(ls "$tmp/w") $(sum <"$over")" \
		"$what: is there alone, as it was"
else
	skip_block 2 "needs strace"
fi

# That of somebody else in a directory with the sticky bit may be written, and not replaced.
if [ "$(id -u)" = 0 ] && command -v setpriv >"$tmp/which"; then
	begin "a file of somebody else"
	chmod 755 "$tmp"
	chmod 1777 "$tmp/w"
	chmod 666 "$over"
	inode=$(stat -c %i "$over")
	for command in "copy -nf $tmp/s.good@v2" "copy -f $tmp/s.good@v2" "build -qnf $tmp/s" \
		"build -qf $tmp/s"; do
		# shellcheck disable=SC2086 # words
		run setpriv --reuid=65534 --regid=65534 --clear-groups \
			"$BUILD/stele" $command "$over"
		is "1 1" "$status $(grep -c "^stele: cannot replace '$over': " <<<"$err")" \
			"${command%% /*}: $what" || diag "$err"
		is "hint: run it as its owner" "$(tail -n 1 <<<"$err" | cut -d: -f1,2)" \
			"${command%% /*}: is said so"
	done
	is "$inode t $(sum <"$tmp/old")" "$(stat -c %i "$over") $(ls "$tmp/w") $(sum <"$over")" \
		"$what: is there alone, as it was"
	chmod 755 "$tmp/w"
else
	skip_block 9 "needs root and setpriv"
fi

# ---- names that leave no room for more ----

x=$(printf 'x%.0s' {1..241})
for name in "${x}xx" "${x}yyyyyyyyyyyyyy" "${x}ü34567890123"; do
	over=$tmp/w/$name
	new=$tmp/w/${name::242}.new-${digest:0:8}
	[[ $name == *ü* ]] && new=$tmp/w/$x.new-${digest:0:8}
	begin "a name of $(printf %s "$name" | wc -c) bytes"
	run stele copy -q -n -f "$tmp/s.good@v2" "$over"
	is "0 1" "$status $(wc -l <<<"$err")" "$what: rehearsed, and warned of the image" ||
		diag "$err"
	run stele build -q -f "$tmp/s" "$over"
	is "0 " "$status $err" "$what: built over"
	begin "the copy that was interrupted there"
	part
	taken
done

done_testing
