#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# posix.t - an image that the kernel mounts: the same files, whatever becomes of it
. "${0%/*}/../tap.sh"

requires grep -qw erofs /proc/filesystems
requires_root
requires fsck.erofs -V

cd "$tmp" || bail "cd"
mkdir mnt
mounted=
leave() { [ -z "$mounted" ] || umount "$mounted"; mounted=; }
cleanup leave
enter() { must mount -t erofs -o ro "$1" mnt && mounted=mnt; }

# A directory whose order is not that of the keys, large and empty files, odd names.
mkdir -p src/a/b src/a-b src/c
for ((i = 0; i < 200; i++)); do
	head -c $((RANDOM * 3)) /dev/urandom >"src/a/$i.bin"
done
echo x >src/a/b/x
echo y >src/a-b/y
: >src/c/empty
echo bang >'src/c/!bang'
echo minus >src/c/-minus
head -c 255 /dev/zero | tr '\0' n | xargs -I N touch src/c/N
head -c 9000000 /dev/urandom >src/large

# whole LOOP SNAPSHOT SOURCE WORDS: mounted, it is that
whole() {
	enter "$1"
	is "" "$(diff -r "$3" "mnt/$2" 2>&1)" "$4: the same files"
	leave
	ok "$4: verified" stele verify -q "$1"
	is erofs "$(blkid -p -o value -s TYPE "$1")" "$4: blkid knows it"
}

# every LOOP GRANULE WORDS: mounted, each snapshot is what extract makes of it
every() {
	local name names
	names=$(stele snapshot list --json "$1" | jq -r .name | sort | xargs)
	enter "$1"
	is "$names" "$(find mnt -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | xargs)" \
		"$3: each snapshot"
	for name in $names; do
		must stele extract -q "$1@$name" out
		is "" "$(diff -r out "mnt/$name" 2>&1)" "$3: $name is what extract makes"
		rm -r out
	done
	leave
	ok "$3: verified" stele verify -q "$1"
	# fsck.erofs 1.5 has blocks of 4096 bytes only.
	[ "$2" != 4096 ] || ok "$3: fsck.erofs finds nothing" fsck.erofs "$1"
}

# live GRANULE: built, changed in each way, and mounted again
live() {
	local granule=$1 words="granule $1" loop
	loop_new 64M
	stele build -q --posix --granule "$granule" --label photos src "$loop" || bail "build"
	whole "$loop" v1 src "$words, built"
	is photos "$(blkid -p -o value -s LABEL "$loop")" "$words: its label"
	every "$loop" "$granule" "$words, built"

	enter "$loop"
	ok "$words: O_DIRECT reads" dd if=mnt/v1/large of=direct bs=1M iflag=direct status=none
	ok "$words: the same" cmp -s direct src/large
	cp -r src more
	echo new >more/new
	echo news >more/a/b/x
	ok "$words: append while it is mounted" \
		stele append -q --update --granule "$granule" more "$loop@v2"
	is "" "$(diff -r src mnt/v1 2>&1)" "$words: what is mounted stays"
	is v1 "$(ls mnt)" "$words: as it was"
	leave
	whole "$loop" v2 more "$words, appended"
	enter "$loop"
	is "1 1 1 1" "$(stat -c %h mnt/v1/large mnt/v2/a/1.bin mnt/v2/a-b/y mnt/v2/new | xargs)" \
		"$words: one link, in however many snapshots"
	is "3 2 2" "$(stat -c %h mnt/v1/a mnt/v1/a/b mnt/v2/c | xargs)" \
		"$words: of directories, two and more"
	ok "$words: one file in both" test mnt/v1/large -ef mnt/v2/large
	ok "$words: unless it differs" not test mnt/v1/a/b/x -ef mnt/v2/a/b/x
	leave
	every "$loop" "$granule" "$words, appended"

	must stele snapshot rename "$loop@v1" old
	every "$loop" "$granule" "$words, renamed"
	must stele compact -q --granule "$granule" "$loop@v2" v3
	whole "$loop" v3 more "$words, compacted"
	every "$loop" "$granule" "$words, compacted"
	must stele snapshot delete --force "$loop@old"
	every "$loop" "$granule" "$words, deleted"
	must stele snapshot undelete "$loop@old"
	every "$loop" "$granule" "$words, undeleted"
	must stele snapshot create --base=old -d a/1.bin -d c/empty "$loop@less"
	every "$loop" "$granule" "$words, less"
	enter "$loop"
	ok "$words: the others are the same files" test mnt/less/large -ef mnt/old/large
	leave
	must stele snapshot delete --force "$loop@less"
	must stele snapshot delete --force "$loop@v2"
	enter "$loop"
	is "old v3" "$(find mnt -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | xargs)" \
		"$words: deleted"
	leave
	must stele gc --apply --force "$loop"
	whole "$loop" old src "$words, collected"
	whole "$loop" v3 more "$words, collected"
	every "$loop" "$granule" "$words, collected"
	ok "$words: info says so" grep -q "mountable *EROFS" <<<"$(stele info "$loop")"
	run stele copy -n "$loop@v3" "copy$granule"
	is "0 " "$status $err" "$words: a rehearsal of a copy"
	run stele copy "$loop@v3" "copy$granule"
	is "0 " "$status $err" "$words, copied: nothing to warn of"
	enter "copy$granule"
	is "" "$(diff -r more mnt/v3 2>&1)" "$words: a copy has the files, too"
	leave
	must stele copy -q "$loop@old" "copy$granule@old"
	every "copy$granule" "$granule" "$words, copied"
	must stele resize --size 96M "copy$granule" >/dev/null
	every "copy$granule" "$granule" "$words, resized"
	run stele posix -n off "$loop"
	is "0 would make '$loop' no EROFS any more" "$status ${out%%$'\n'*}" \
		"$words: what off would do"
	must stele posix off "$loop"
	is "" "$(blkid -p -o value -s TYPE "$loop")" "$words: off"
	ok "$words: sound" stele verify -q "$loop"
	run stele posix off "$loop"
	is "0 '$loop' was no EROFS" "$status $out" "$words: off again changes nothing"
	run stele posix -n on "$loop"
	is "0 would make '$loop' an EROFS, too" "$status ${out%%$'\n'*}" \
		"$words: what on would do"
	must stele posix on "$loop"
	run stele posix -n on "$loop"
	is "0 '$loop' was an EROFS already" "$status ${out%%$'\n'*}" "$words: nothing left to do"
	whole "$loop" v3 more "$words, on again"
	every "$loop" "$granule" "$words, on again"
	rm -r more
}
live 4096
live 512

# ---- a device with blocks of 4096 ------------------------------------------------

loop_new 64M 4096
fine=$tmp/fine.img
must stele build -q --posix --granule 512 src/a "$fine"
must stele build -q --posix src/c "$loop"
whole "$loop" v1 src/c "blocks of 4096"
must stele append -q src/a-b "$loop@v2"
for name in v1 v2; do
	ok "blocks of 4096: so is the granule of $name" \
		grep -q "^slots *granule 4096" <<<"$(stele info "$loop@$name")"
done
run stele build -q -f --posix --granule 512 src "$loop"
is 2 "$status" "blocks of 4096: a granule of 512 is refused"
ok "blocks of 4096: and why" grep -q "the device has blocks of that size" <<<"$err" || diag "$err"
ok "blocks of 4096: what was there stays" stele verify -q "$loop@v2"
run stele copy "$fine" "$loop@fine"
is 1 "$status" "blocks of 4096: so is a copy of one"
ok "blocks of 4096: and what helps" grep -q "^hint: .*--granule=4096" <<<"$err" || diag "$err"
run stele copy -f "$fine" "$loop"
is 0 "$status" "blocks of 4096: a new copy of it"
ok "blocks of 4096: is no files" grep -q "warning: .*cannot be mounted as files" <<<"$err"
run stele posix on "$loop"
is 1 "$status" "blocks of 4096: nor can it become some"
ok "blocks of 4096: what would help" grep -q "^hint: .*--granule=4096" <<<"$err" || diag "$err"

must stele compact -q --granule 4096 "$loop" big
must stele snapshot delete "$loop@v1"
must stele posix on "$loop"
whole "$loop" big src/a "blocks of 4096, compacted"
run stele snapshot undelete "$loop@v1"
is 1 "$status" "blocks of 4096: nor does a granule of 512 come back"
ok "blocks of 4096: and how it would" \
	grep -q "^hint: run 'stele posix off' first.*--granule=4096" <<<"$err" || diag "$err"
whole "$loop" big src/a "blocks of 4096, as before"

# An image that was made elsewhere.
must stele build -q --size 32M --posix --granule 512 src/a moved
loop=$(losetup -b 4096 -f --show moved) || bail "losetup"
cleanup loop_drop "$loop"
ok "moved to blocks of 4096: info says that it cannot be mounted" \
	grep -q "blocks of 512 bytes: not here" <<<"$(stele info "$loop")"
is false "$(stele info --json "$loop" | jq .image.tree_mountable)" "moved: as JSON"
run stele mount --via erofs "$loop" mnt
is 1 "$status" "moved: nor is it"
ok "moved: it is told what would help" \
	grep -q "^hint: use --via=fuse; 'stele posix on'" <<<"$err" || diag "$err"
run stele posix on "$loop"
is 1 "$status" "moved: 'on' is refused"
ok "moved: with what helps" grep -q "^hint: use 'stele compact --granule=4096'" <<<"$err"
run stele compact --granule 4096 "$loop" big
is 0 "$status" "moved: that is possible"
ok "moved: the tree is given up" grep -q "warning: .* is no EROFS any more" <<<"$err"
ok "moved: as info says" test "$(stele info "$loop" | grep -c mountable)" = 0
must stele snapshot delete "$loop@v1"
must stele posix on "$loop"
whole "$loop" big src/a "moved to blocks of 4096, compacted"
ok "moved: info says so" grep -q "mountable *EROFS" <<<"$(stele info "$loop")"

# ---- the size of blocks ------------------------------------------------------------

# Small samples would be cheaper with 512, which fewer kernels mount.
mkdir tiny && for i in 1 2 3 4; do echo "$i" >"tiny/$i"; done
must stele build -q --posix src/a blocks
is 4096 "$(stele info --json blocks | jq .image.tree_block_size)" "large samples: blocks of 4096"
run stele append -q --label-from=none tiny blocks@small
is "0 " "$status $err" "small ones come to it"
must stele compact -q blocks@small packed
is "4096 4096 4096" "$(stele info --json blocks | jq .image.tree_block_size) $(
	for name in small packed; do
		stele info --json "blocks@$name" | jq .snapshot.granule
	done | xargs)" \
	"and get as large ones, also compacted"
whole blocks v1 src/a "with small ones"
echo 5 >tiny/5
run stele append --granule=512 --label-from=none tiny blocks@fine
is "0 512" "$status $(stele info --json blocks | jq .image.tree_block_size)" "unless asked for"
ok "which is said" grep -q "warning: a granule of 512 .* Linux mounts since 6.4" <<<"$err" ||
	diag "$err"
ok "info says so, too" grep -q "blocks of 512 bytes, Linux 6.4" <<<"$(stele info blocks)"

# ---- what is refused -------------------------------------------------------------

must stele build -q --granule 16 src small
run stele posix on small
is 1 "$status" "a granule of 16 cannot be mounted"
ok "and says so" grep -q "of 'v1' has a granule of 16" <<<"$err" || diag "$err"
ok "and what helps" grep -q "^hint: use 'stele compact --granule=512'" <<<"$err"
# Ids depend on the UUID: one of sixteen begins with a zero.
id=
for ((i = 100; i < 300; i++)); do
	must stele build -q -f --granule=16 --time=1 tiny zero \
		--uuid=00000000-0000-4000-8000-000000000$i
	id=$(stele posix on zero 2>&1 | sed -n 's/.*segment \([0-9a-f]*\) of.*/\1/p')
	[[ $id == 0* ]] && break
done
is "0 16" "${id::1} ${#id}" "ids have all their digits"
must cp small shared
for name in w1 w2 w3 w4; do must stele snapshot create --base=v1 shared@$name; done
run stele posix on shared
ok "by snapshots that share it" \
	grep -qE "of 'v1', 'w1', 'w2' and 2 more has a granule of 16" <<<"$err" || diag "$err"
must stele build -q --granule=512 src mixed
mkdir -p "$tmp/other" && echo x >"$tmp/other/x"
must stele append -q --granule=16 --label-from=none "$tmp/other" mixed@v2
must stele snapshot delete mixed@v2
must stele posix on mixed
run stele snapshot undelete mixed@v2
is 1 "$status" "nor comes one back that has it"
ok "and how it does" grep -q "^hint: run 'stele posix off' first" <<<"$err" || diag "$err"
must stele posix off mixed
must stele snapshot undelete mixed@v2
run stele build -q --posix --granule 64 src none
is 2 "$status" "nor is it built so"
ok "nothing is left of that" test ! -e none
must stele build -q --posix src files
must cp files before
for dry in -n ""; do
	# shellcheck disable=SC2086 # an option or none
	run stele copy $dry small@v1 files@small
	is 1 "$status" "nor copied to an image that can be mounted $dry"
	ok "which is said" grep -q "has a granule of 16" <<<"$err" || diag "$err"
	ok "with what helps" grep -q "^hint: use 'stele compact --granule=512' and copy" <<<"$err"
	ok "and nothing was sent" not grep -q "resume" <<<"$err"
	# The intent of the writer is all that has changed.
	is "v1" "$(stele snapshot list --json files | jq -r .name)" "no snapshot came of it"
	is "$(stele info --json before | jq .image.generation)" \
		"$(stele info --json files | jq .image.generation)" "and no commit"
done

mkdir odd.src && echo 1 >odd.src/file
loop_new 64M
must stele build -q --posix src "$loop"
run stele build -q src "$loop"
is 1 "$status" "an image is not overwritten"
is 0 "$(grep -c erofs <<<"$err")" "its own EROFS is no other filesystem"
must mkfs.erofs foreign src/a-b
must dd if=foreign of="$loop" bs=1024 skip=1 seek=1 count=3 conv=notrunc status=none
run stele append -q src "$loop@v2"
is 1 "$status" "one of somebody else's is"
ok "and named" grep -q "carries erofs" <<<"$err"

# Damage to its own is put right by the next writer, as verify says, or by repair.
for by in "snapshot rename flipped.stele@v1 w1" "repair flipped.stele"; do for at in 1038 1075; do
	must stele build -q -f --posix src flipped.stele # the second in its UUID
	byte=$(od -An -tu1 -j $at -N 1 flipped.stele)
	printf '%b' "\\x$(printf %x $((byte ^ 255)))" |
		dd of=flipped.stele bs=1 seek=$at conv=notrunc status=none
	ok "$at: a flipped byte of block 0 is noted" grep -q "the next writer puts it right" <<<"$(
		stele verify flipped.stele 2>&1)"
	run stele repair -n flipped.stele
	is "0 block 0 to be rewritten, to show the tree of files" "$status $out" \
		"$at: repair -n says so, too"
	# shellcheck disable=SC2086 # words
	run stele $by
	is 0 "$status" "$at: ${by%% *}: it hinders no writer" || diag "$err"
	is "" "$(stele verify flipped.stele 2>&1 >"$tmp/null")" \
		"$at: ${by%% *}: which has put it right"
	run stele repair flipped.stele
	is "0 nothing to repair" "$status $out" "$at: ${by%% *}: that was all"
done; done
run stele posix on flipped.stele@w1
is 2 "$status" "posix is of a whole image"

# Nor is a commit undone whose block 0 cannot be written, nor one that fails in its last copy.
# failing IMAGE OFFSET: append with EIO at the last write there
failing() {
	local pid nth

	cp "$1" probe.stele
	STELE_BACKEND=threads ASAN_OPTIONS=detect_leaks=0 must strace -f -o trace \
		-e trace=pwrite64 stele append -q odd.src probe.stele@v2
	pid=$(grep ", 4096, $2) " trace | tail -n 1 | cut -d' ' -f1)
	nth=$(grep "^$pid " trace | grep -n ", 4096, $2) " | tail -n 1 | cut -d: -f1)
	STELE_BACKEND=threads ASAN_OPTIONS=detect_leaks=0 run strace -f -qq -o trace \
		-e inject=pwrite64:error=EIO:when="$nth" stele append odd.src "$1@v2"
	grep -q "INJECTED" trace || bail "no write at $2 failed"
}
must stele build -q --posix src front.stele@v1
failing front.stele 0
is 0 "$status" "block 0 cannot be written: the change is made all the same" || diag "$err"
ok "which is said" grep -q "^stele: warning: .*block 0 cannot show" <<<"$err" || diag "$err"
is "v1 v2" "$(stele snapshot list --json front.stele | jq -rs 'map(.name) | join(" ")')" \
	"and there"
ok "sound, but for block 0" grep -q "the next writer puts it right" <<<"$(
	stele verify front.stele 2>&1)"
must stele build -q --posix src copy.stele@v1
failing copy.stele 1052672
is 1 "$status" "a superblock cannot be written"
ok "whoever is told so hears that it may be there" \
	grep -q "may have taken effect nonetheless" <<<"$err" || diag "$err"
is "v1 v2" "$(stele snapshot list --json copy.stele | jq -rs 'map(.name) | join(" ")')" "as it is"
ok "sound" stele verify -q copy.stele

# Where a file's inode lies, or a directory's: EROFS numbers them so.
place_of() { echo $(($(stat -c %i "mnt/$1") * 32)); }
# flip IMAGE OFFSET
flip() {
	printf '%b' "\\x$(printf %x $(($(od -An -tu1 -j "$2" -N 1 "$1") ^ 255)))" |
		dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# An append and a rename keep what is there; a segment's files go with gc, when it does.
must stele build -q --posix --granule 4096 src kept.stele
enter kept.stele
file=$(place_of v1/large) dir=$(place_of v1/a)
leave
must stele append -q --granule 4096 odd.src kept.stele@v2
must stele snapshot rename kept.stele@v1 first
enter kept.stele
is "$file $file $dir" "$(place_of first/large) $(place_of v2/large) $(place_of first/a)" \
	"inodes stay where they are"
ok "a new snapshot has directories of its own" test "$(place_of v2/a)" != "$dir"
leave
must stele snapshot delete kept.stele@first
must stele snapshot undelete kept.stele@first
enter kept.stele
is "$file" "$(place_of first/large)" "undeleted: with the files that are there"
leave
must stele compact -q --granule 4096 kept.stele@v2 v3
must stele snapshot delete --force kept.stele@first
must stele snapshot delete --force kept.stele@v2
is 2 "$(stele gc --json kept.stele | jq -r 'select(.tree) | select(.offset <= '"$file"' and
	'"$file"' < .offset + .size or .offset <= '"$dir"' and '"$dir"' < .offset + .size) |
	.tree' | wc -l)" "gc would free the files of a segment, directories of a snapshot"
must stele gc --apply --force kept.stele >/dev/null
every kept.stele 4096 "all others collected"
is 0 "$(stele gc --json kept.stele | jq -s 'map(select(.tree)) | length')" "none is left"

# Damage to what stays is told until it is written anew.
must cp kept.stele sound.stele
enter kept.stele
places=("$(place_of v3/large)" "$(place_of v3/a)")
leave
for at in "${places[@]}"; do
	must cp sound.stele kept.stele
	flip kept.stele "$((at + 8))"
	run stele verify kept.stele
	is 3 "$status" "an inode is damaged"
	ok "and told where" grep -q "^damaged tree at $((at / 4096 * 4096))+" <<<"$out" ||
		diag "$out"
	must stele append -q --granule 4096 odd.src kept.stele@v4
	ok "an append leaves it so" not stele verify -q kept.stele 2>"$tmp/null"
	damage="stele: warning: the tree of files is damaged, and"
	run stele posix -n on kept.stele
	is "0 $damage would be written anew" "$status $err" "a dry run of 'on' says what it is for"
	run stele posix on kept.stele
	is "0 $damage is written anew" "$status $err" "and so does 'on'"
	every kept.stele 4096 "written anew"
	run stele posix on kept.stele
	is "0 " "$status $err" "after which nothing is left to do"
done

# Nor does damage to the tree's root: in its front, beside that, in another block.
must stele build -q --posix odd.src tree.stele
must stele snapshot create --base=v1 tree.stele@v2
while IFS=: read -r tree _; do
	[ "$tree" = 1024 ] || ! cmp -s -i 1024:"$tree" -n 512 tree.stele tree.stele || break
done < <(LC_ALL=C grep -obUaP '\xe2\xe1\xf5\xe0' tree.stele)
for at in 2 700 5000; do
	for change in "append -q --allow-empty src TARGET@v3" "compact -q TARGET@v1 v3" \
		"snapshot delete TARGET@v1" "posix on TARGET" "posix off TARGET"; do
		cp tree.stele torn.stele
		printf '\377' | dd of=torn.stele bs=1 seek=$((tree + at)) conv=notrunc status=none
		ok "byte $at of the tree is damaged" grep -q "^damaged tree" <<<"$(
			stele verify torn.stele 2>&1)"
		# shellcheck disable=SC2086 # words
		run stele ${change/TARGET/torn.stele}
		is 0 "$status" "byte $at: ${change%% TARGET*}" || diag "$err"
		is "" "$(stele verify torn.stele 2>&1 >"$tmp/null")" "and all is sound"
	done
done

# Room for the samples, and not for the tree: what is built stays.
must stele build -q --granule=4096 src lacks.stele
loop_new "$(stat -c %s lacks.stele)"
must stele build -q odd.src "$loop@old"
run stele build -q --posix --force src "$loop@new"
is 1 "$status" "no room for the tree" || diag "$err"
ok "is said" grep -q "is built, but cannot be mounted" <<<"$err"
is "new" "$(stele snapshot list --json "$loop" | jq -r .name)" "the image is there"
is "" "$(stele verify "$loop" 2>&1 >"$tmp/null")" "and sound"

# ---- names -------------------------------------------------------------------------

mkdir odd
echo 1 >odd/file
must stele build -q --posix odd odd.stele
is "" "$(stele verify odd.stele 2>&1 >"$tmp/null")" "an image of one file"
enter odd.stele
is 1 "$(cat mnt/v1/file)" "mounted from a file"
leave
mkdir both both/dir both/dir/file
echo 1 >both/dir/file/below
must tar -cf both.tar -C both dir/file/below
must tar -rf both.tar -C odd --transform 's/^/dir\//' file
run stele build --posix both.tar both.stele
is 0 "$status" "a file that is a directory, too" || diag "$err"
ok "is named" grep -q "1 sample cannot be a file, such as 'dir/file': mounted, the image lacks" \
	<<<"$err" || diag "$err"
for force in "" --force; do
	# shellcheck disable=SC2086 # an option or none
	run stele extract $force both.stele both.out
	is 1 "$status" "nor can both be extracted $force"
	ok "which is said" grep -qE "file(/below)?': a (file|directory) has th(at|e) name" \
		<<<"$err" || diag "$err"
done

done_testing
