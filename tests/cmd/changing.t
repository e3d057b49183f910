#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# changing.t - a source that is overwritten, in its size, while a build reads it
#
# The build stops before each of its writes in turn: to the image, to the temporary file. It
# fails, naming the file, or has what the source held in the beginning; never a mixture, nor
# bytes under another key. Only the ctime tells: the mtime is put back.
. "${0%/*}/../tap.sh"
. tests/cmd/from.sh

! ldd "$BUILD/stele" | grep -qE 'lib[at]san' || skip_all "needs the calls of its own"
halt=$tmp/halt.so
"${CC:-cc}" -shared -fPIC -O1 -o "$halt" tests/cmd/halt/halt.c ||
	skip_all "needs a compiler"

TICK=0.02 # of the clock of files, in seconds, at most

cd "$tmp" || bail "cd"
mkdir one two store
for name in one two; do
	head -c 4M /dev/urandom | split -b 4K -a 4 -d --additional-suffix=.bin - "$name/"
done
mkfifo told go
export STELE_BACKEND=threads HALT_TOLD=$tmp/told HALT_GO=$tmp/go TMPDIR=$tmp/store

# halted N OPTION... SOURCE: a build that is stopped before its n-th write to $HALT_FILE;
# sets stopped to "stopped", or "ended", and then has its status and messages
halted() {
	local n=$1
	shift
	rm -f "$image"
	(
		HALT_AT=$n LD_PRELOAD=$halt "$BUILD/stele" build -q -j 1 --memory=1M "$@" \
			"$image" 2>err
		echo $? >status
		echo ended >told
	) &
	read -r stopped <told
}
resumed() {
	echo >go
	read -r stopped <told
	wait
	status=$(<status) err=$(<err)
}

# overwritten WORDS FILE HALTS [OPTION...] SOURCE: FILE holds FILE.one, then FILE.two, of the
# same size; HALTS: what the build is stopped at. WHOLE=1: FILE.two, as a whole, will do.
overwritten() {
	local words=$1 file=$2 n wrong='' wanted refused=0
	local -x HALT_FILE=$3
	shift 3
	is "$(stat -c %s "$file.one")" "$(stat -c %s "$file.two")" "$words: versions of one size"
	cp "$file.one" "$file"
	built "$@"
	is 0 "$status" "$words: can be built" || diag "$err"
	wanted=$(digest)
	if [ -n "${WHOLE:-}" ]; then
		cp "$file.two" "$file"
		built "$@"
		wanted+=" $(digest)"
	fi
	for ((n = 1; n < 100; n += STEP)); do
		cp -p "$file.one" "$file"
		sleep $TICK
		halted $n "$@"
		[ "$stopped" = stopped ] || break
		cat "$file.two" 1<>"$file"
		touch -r "$file.one" "$file"
		resumed
		if [ "$status" = 0 ]; then
			grep -qw "$(digest)" <<<"$wanted" || wrong+=" $n"
		elif grep -qE "cannot read (source )?'$file': a source file changed" <<<"$err"; then
			((refused++))
		else
			wrong+=" $n: $err"
		fi
	done
	wait
	is '' "$wrong" "$words: no mixture, and the file is named"
	ok "$words: refused" test $refused -gt 0 || diag "of $n"
}

# framed DIR REC IDX: a RecordIO file, and keys of its records: they end as DIR begins
framed() {
	KEYS=$3 perl -e 'open my $idx, ">", $ENV{KEYS}; my $at = 0; my $key = shift;
		for (@ARGV) {
			local $/; open my $in, "<", $_; my $data = <$in>;
			printf $idx "%04d%s\t%d\n", $n++, $key eq "one" ? 1 : 2, $at;
			$at += length(my $out = pack "VVVVQ<Q<a*", 0xced7230a, 24 + length $data,
				0, 0, 0, 0, $data);
			print $out;
		}' "$1" "$1"/* >"$2"
}

# arrayed DIR: a NumPy file
arrayed() {
	perl -e 'printf "\x93NUMPY\x01\x00%s%-117s\n", pack("v", 118),
		q({"descr": "|u1", "fortran_order": False, "shape": (1024, 4096)}) =~ tr/"/\x27/r'
	cat "$1"/*
}

# tabled DIR: CSV
tabled() {
	local file n=0
	echo key,value
	for file in "$1"/*; do echo "$((n++)),$(base64 -w 0 "$file")"; done
}

for name in one two; do
	tar cf "s.tar.$name" --sort=name -C $name .
	gzip <"s.tar.$name" >"s.tgz.$name"
	truncate -s 5M "s.tgz.$name"
	framed $name "s.rec.$name" "s.idx.$name"
	arrayed $name >"s.npy.$name"
	tabled $name >"s.csv.$name"
	cat $name/* >"large.$name"
done
echo path >m.csv
echo large >>m.csv
cp s.idx.one s.idx

STEP=3
overwritten tar s.tar "$image" s.tar
overwritten webdataset s.tar "$image" --from=webdataset s.tar
overwritten "a file of records" s.rec "$image" s.rec
overwritten "an array" s.npy "$image" s.npy
overwritten "a table" s.csv "$image" s.csv
WHOLE=1 overwritten "a file that is named" large "$image" --from=manifest m.csv
STEP=1
overwritten "a compressed file" s.tgz "$tmp/store" s.tgz
gzip <s.rec.one >s.rec
overwritten "the index of records" s.idx "$tmp/store" s.rec

# ---- what is left out ----

# left N HALTS SOURCE...: a build that leaves out; sets kept, and wrong: samples of neither
# s.tar.one nor rest.tar
left() {
	local n=$1 key file
	local -x HALT_FILE=$2
	shift 2
	cp s.tar.one s.tar
	cp s.tgz.one s.tgz
	sleep $TICK
	halted "$n" --on-error=skip "$@"
	for file in s.tar s.tgz; do cat "$file.two" 1<>"$file"; done
	resumed
	rm -rf out
	[ "$status" = 0 ] && must stele extract -q "$image" out
	kept=$(find out -type f | wc -l) wrong=''
	while read -r key; do
		cmp -s "one/$key" "out/$key" || cmp -s rest "out/$key" || wrong+=" $key"
	done < <(cd out && find . -type f)
}

# blocks NAME FILE...: a compressed tar of them as NAME.0 and so on, with as many bytes as the
# inflater reads at a time: what is of two versions is not damaged, then
blocks() {
	local name=$1 part
	shift
	mkdir "$name"
	tar c -b 1 -C one "$@" | head -c -1024 | split -b $((26 * 9))b - "$name/"
	for part in "$name"/*; do
		gzip -n "$part"
		truncate -s 128K "$part.gz"
	done
}

echo rest >rest
tar cf rest.tar rest
left 16 "$image" s.tar
is 0 "$status" "skip: a build that leaves out" || diag "$err"
ok "skip: has what was read before, not the rest" test "$kept" -gt 0 -a "$kept" -lt 1024 ||
	diag "$kept"
is '' "$wrong" "skip: each with its bytes"

blocks parts --sort=name .
cat parts/*.gz >s.tgz.one
blocks others --sort=name --transform=s/^/other-/ .
cat others/*.gz >s.tgz.two
left 1 "$tmp/store" s.tgz rest.tar
is "0 1 " "$status $kept $wrong" "skip: a compressed file as a whole" || diag "$err"
mv parts/aa.gz parts/zz.gz
cat parts/*.gz >s.tgz.two
left 1 "$tmp/store" s.tgz rest.tar
is 1 "$status" "skip: not where two versions have a key twice"
ok "skip: and says why" grep -q "twice: 's.tgz' .*, which changed while it was read" <<<"$err" ||
	diag "$err"
ok "skip: and what to do" grep -q "hint: run it again once nobody writes there" <<<"$err"

# ---- an environment of LMDB, which is overwritten by another one, or cut off ----

# replaced WORDS FILE: by that file
replaced() {
	local -x HALT_FILE=$image
	halted 16 --on-error=skip env
	[ "$2" = larger/data.mdb ] || : >env/data.mdb
	cat "$2" 1<>env/data.mdb
	resumed
	is 0 "$status" "$1: a build that leaves out" || diag "$err"
	rm -rf out
	must stele extract -q "$image" out
	is 1 "$(cat out/* | fold -w1 | sort -u | wc -l)" "$1: has values of the first one only"
	kept=$(find out -type f | wc -l)
	ok "$1: not all of them" test "$kept" -gt 0 -a "$kept" -lt 100 || diag "$kept"
}
if [ -x "$BUILD/tests/cmd/lmdb-writer" ]; then
	mkdir smaller larger
	must "$BUILD/tests/cmd/lmdb-writer" smaller 10 30000 4
	must "$BUILD/tests/cmd/lmdb-writer" larger 400 30000 1
	for words in "a lock file" "no lock file"; do
		for file in smaller/data.mdb larger/data.mdb /dev/null; do
			rm -rf env
			mkdir env
			must "$BUILD/tests/cmd/lmdb-writer" env 100 30000 3
			[ "$words" = "a lock file" ] || rm env/lock.mdb
			replaced "$words, $file" "$file"
		done
	done
else
	skip_block 18 "needs LMDB"
fi

done_testing
