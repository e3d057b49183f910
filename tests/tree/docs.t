#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# docs.t - README, NEWS and HACKING speak of the tree that is there
. "${0%/*}/../tap.sh"

requires git ls-files --error-unmatch Makefile

# The C of README as a function that a program could have.
readme_program() {
	echo '#include <stele.h>'
	echo 'void consume(const void *data, uint64_t size);'
	echo 'int example(uint32_t rank, uint32_t world);'
	echo 'int example(uint32_t rank, uint32_t world) {'
	sed -n '/^```c$/,/^```$/p' README.md | grep -vE '^(```|#include)'
	echo 'return 0; }'
}

# compiles NAME FILE: as C, and as C++, where -Wextra wants all members initialized
compiles() {
	local std
	ok "$1 compiles as C" "${CC:-cc}" -std=gnu11 -Wall -Wextra -Werror -Ilib \
		-fsyntax-only "$2"
	for std in c++11 c++20; do
		ok "$1 compiles as $std" "${CXX:-g++}" -x c++ -std=$std -Wall \
			-Werror -Ilib -fsyntax-only "$2"
	done
}

# The program of a page, and the loop that stele(3) shows, in a function.
page_program() {
	sed -n '/^\.Sh EXAMPLES/,/^\.Ed/{/^\.Bd/,/^\.Ed/p}' "man/$1" |
		sed '/^\./d; s/\\e/\\/g'
}
page_loop() {
	printf '%s\n' '#include <stele.h>' \
		'void use(const void *data, uint64_t size);' \
		'void example(struct stele_reader *rd, const uint64_t *ids, int count);' \
		'void example(struct stele_reader *rd, const uint64_t *ids, int count) {' \
		'struct stele_sample samples[64]; int n, next = 0, done = 0;'
	sed -n '/^\.Ss Readers/,/^\.Ed/{/^\.Bd/,/^\.Ed/p}' man/stele.3 | sed '/^\./d'
	echo '}'
}

# What else stele(3) shows: options, and statistics of several readers.
page_pieces() {
	printf '%s\n' '#include <stele.h>' \
		'void options(const char *target, struct stele_dataset *ds);' \
		'void options(const char *target, struct stele_dataset *ds) {'
	sed -n '/^stands for the defaults/,/^\.Ed/{/^\.Bd/,/^\.Ed/p}' man/stele.3 |
		sed '/^\./d'
	printf '%s\n' '}' 'void stats(struct stele_reader **readers, int count);' \
		'void stats(struct stele_reader **readers, int count) { int i;'
	sed -n '/^\.Fn stele_stats_latencies$/,/^\.Ed/{/^\.Bd/,/^\.Ed/p}' man/stele.3 |
		sed '/^\./d'
	echo '}'
}

version=$(sed -n 's/^#define STELE_VERSION_[A-Z]* //p' lib/stele.h | paste -sd .)

for page in README.md HACKING.md; do
	ok "$page has up to 150 lines" test "$(wc -l <"$page")" -le 150
done
ok "README has C" grep -q '^```c$' README.md
readme_program >"$tmp/readme.c"
compiles "the C of README" "$tmp/readme.c"
page_loop >"$tmp/loop.c"
compiles "the loop of stele(3)" "$tmp/loop.c"
page_pieces >"$tmp/pieces.c"
is 2 "$(grep -cE 'STELE_OPTS|stele_stats_latencies' "$tmp/pieces.c")" \
	"stele(3) shows options and statistics"
compiles "what stele(3) shows" "$tmp/pieces.c"
# builds PAGE NAME: its program as $tmp/NAME
builds() {
	page_program "$1" >"$tmp/$2.c"
	"${CC:-cc}" -std=gnu11 -Wall -Wextra -Werror -Ilib "$tmp/$2.c" \
		-L"$BUILD" -lstele -Wl,-rpath,"$BUILD" -o "$tmp/$2"
}
ok "the program of stele(3) can be built" builds stele.3 first
compiles "the program of stele(3)" "$tmp/first.c"
mkdir "$tmp/src"
echo "Hello, stele" >"$tmp/src/hello"
must stele build -q "$tmp/src" "$tmp/image"
run "$tmp/first" "$tmp/image"
is "0 Hello, stele" "$status $out" "and reads a sample"
run "$tmp/first" "$tmp/none"
is 1 "$status" "or says why not"
ok "in words" grep -q "no such file" <<<"$err"
ok "the program of stele-loader(3) can be built" builds stele-loader.3 epochs
compiles "the program of stele-loader(3)" "$tmp/epochs.c"
for name in 1 2 3; do echo "$name" >"$tmp/src/$name"; done
must stele build -q "$tmp/src" "$tmp/four"
run env RANK=1 WORLD_SIZE=2 "$tmp/epochs" "$tmp/four"
is "0 epoch 0: 2 samples" "$status $(head -n 1 <<<"${out%%,*}")" \
	"and runs through its epochs"
is 2 "$(grep -c '^epoch' <<<"$out")" "of which there are two"
run "$tmp/epochs" "$tmp/none"
is "1 " "$status $out" "or says why not"
ok "the program of stele-source(3) can be built" builds stele-source.3 pets
compiles "the program of stele-source(3)" "$tmp/pets.c"
run "$tmp/pets" "$tmp/pets.image"
is "0 Rex → ball: dog of 30.5 kg, 3 points
Tom: cat of 4.25 kg, 2 points" "$status $out" "and reads back what it built"
run "$tmp/pets" "$tmp/pets.image"
is "1 " "$status $out" "or says why not"
ok "in words" grep -q "pets.image" <<<"$err"
ok "the program of stele-txn(3) can be built" builds stele-txn.3 words
compiles "the program of stele-txn(3)" "$tmp/words.c"
run "$tmp/words" "$tmp/words.image" one two
is "0 " "$status $err" "and writes its arguments"
run stele ls --fields "$tmp/words.image"
is 0 "$status" "as samples"
run stele cat "$tmp/words.image" 0002 --field number
is "0 2" "$status $out" "with their numbers"
run "$tmp/words" "$tmp/words.image" three
is "1 " "$status $out" "or says why not"
is "" "$(grep -oE '\]\([^)]*\)' ./*.md docs/*.md docs/*/*.md | tr -d '])(' |
	while IFS=: read -r page file; do
		[ -e "${page%/*}/${file%#*}" ] || echo "$page: $file"; done)" \
	"links lead to files and folders"
is "" "$(grep -ohE '(^    |`)make [a-z-]+' ./*.md | sed 's/.* //' |
	sort -u | while read -r target; do
	make -pnq 2>/dev/null | grep -q "^$target:" || echo "$target"; done)" \
	"make has the targets that they name"
is "" "$(grep -hE '^[$#] stele' README.md docs/*.md docs/*/*.md | grep -oE '\<stele [a-z]+' |
	sed 's/stele //' | sort -u | while read -r name; do
	[ "$name" = help ] || [ -f "cmd/cmd_$name.c" ] || [ -f "cmd/$name/$name.c" ] ||
		echo "$name"; done)" \
	"stele has the commands that README and docs/ show"
is "$version" "$(sed -n 's/^## \([0-9.]*\).*/\1/p' NEWS.md | head -n 1)" \
	"NEWS begins with this version"
is "" "$(grep -oE '^    +[a-z]+/ ' HACKING.md | tr -d ' ' | sort -u |
	while read -r folder; do
		[ -d "$folder" ] || [ -d "lib/$folder" ] || [ -d "tests/$folder" ] ||
			echo "$folder"
	done)" "the folders of HACKING's picture exist"

done_testing
