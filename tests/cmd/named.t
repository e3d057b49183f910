#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# named.t - a failure names its cause: the process that builds, the directory that is missing,
# the filesystem that is full, the sample that is damaged
. "${0%/*}/../tap.sh"

mkdir "$tmp/src"
cd "$tmp" || bail "cd"
for name in a b; do head -c 100000 /dev/urandom >"src/$name"; done

# ---- an image under construction ----

mkdir big
for i in 1 2 3 4; do head -c 40M /dev/urandom >"big/$i"; done

# begun TARGET: a build of it that has announced itself, in superblocks, too, and is stopped;
# sets builder
begun() {
	local i
	stele build -q big "$1" &
	builder=$!
	for ((i = 0; i < 500; i++)); do
		kill -STOP $builder || bail "the build has ended"
		dd if="$1" bs=4096 skip=1 count=1 status=none 2>/dev/null | grep -qa STELE &&
			grep -q "unfinished image" <<<"$(stele info "$1" 2>&1)" && return
		kill -CONT $builder
		sleep 0.005
	done
	bail "no build was seen"
}
under_construction() { # TARGET WORDS
	local command
	begun "$1"
	for command in info ls verify; do
		run stele $command "$1"
		is "1 " "$status $out" "$2: $command while it is built"
		ok "$2: $command names the process" grep -qE "unfinished image: being written \
by process $builder \(stele\) of this machine, since 20[0-9-]+ [0-9:]+ UTC" <<<"$err" ||
			diag "$err"
	done
	is "hint: wait until that has ended" "${err##*$'\n'}" "$2: what to do"
	kill -KILL $builder
	wait $builder 2>/dev/null
	run stele info "$1"
	ok "$2: killed, it is said" grep -q \
		"process $builder of '$(uname -n)' was interrupted" <<<"$err" || diag "$err"
	is "hint: run 'stele build --force' or 'stele copy --force' again" "${err##*$'\n'}" \
		"$2: what to do then"
	# Another machine: its process cannot be seen from here.
	"$BUILD/tests/cmd/forge" host "$1" elsewhere || bail "forge"
	run stele info "$1"
	ok "$2: of another machine" grep -q \
		"process $builder of 'elsewhere' may still be writing it" <<<"$err" || diag "$err"
}
under_construction file "a file"
if [ "$(id -u)" = 0 ]; then
	loop_new 200M
	under_construction "$loop" "a device"
else
	skip_block 10 "needs root"
fi

# ---- what is missing ----

for words in "build src none/there/image" "copy file2 none/there/image"; do
	must stele build -q --force src file2
	# shellcheck disable=SC2086 # words
	run stele $words
	is "1 stele: cannot create 'none/there/image': no directory 'none/there'
hint: make that directory first" \
		"$status $err" "$words: the directory is named"
done
run stele export file2 none/there/x.tar
ok "export, too" grep -q "no directory 'none/there'" <<<"$err" || diag "$err"
run stele extract file2 none/there/x
ok "extract, too" grep -q "no directory 'none/there'" <<<"$err" || diag "$err"
for command in extract export mount; do
	run stele $command file2 ""
	is 2 "$status" "$command: an empty name is wrong usage"
	ok "$command: and called that" \
		grep -qE "^stele: the name of (DIR|FILE) is empty" <<<"$err" || diag "$err"
done

# ---- what is full ----

mkdir small
if [ "$(id -u)" = 0 ] && mount -t tmpfs -o size=2M none small 2>mount.err; then
	cleanup umount "$tmp/small"
	for words in "build big small/image" "copy new small/image"; do
		[ -e new ] || must stele build -q big new
		# shellcheck disable=SC2086 # words
		run stele $words
		is 1 "$status" "$words: fails"
		ok "$words: says that the filesystem is full" grep -qE "'small/image': \
its filesystem is full: needs [0-9]+ bytes, and has [0-9]+" \
			<<<"$err" || diag "$err"
		is "hint: free space there, or choose another place" "${err##*$'\n'}" \
			"$words: what to do"
	done
else
	skip_block 6 "needs a tmpfs"
fi

# ---- what is damaged ----

must perl -e 'local $/; open S, "<", "src/b"; open I, "+<", "file2";
	my $at = index <I>, substr <S>, 0, 64; die if $at < 0;
	seek I, $at + 50, 0; print I "XYZ"'
run stele copy file2 copied
is 3 "$status" "a damaged source"
ok "its sample is named" grep -q "damaged source: sample 'b' of" <<<"$err" || diag "$err"

done_testing
