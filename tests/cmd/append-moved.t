#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# append-moved.t - append --quick of files that came in with a directory, or behind a link
#
# A rename changes no time of the files below what is renamed: they are as old as before, of
# the same size, under each other's names. On each filesystem that there is here.
. "${0%/*}/../tap.sh"
. tests/cmd/targets.sh

requires jq --version

counts() { # JSON
	field "$1" '"\(.added) \(.updated) \(.deleted) \(.unchanged)"'
}

# fresh: files of before the build, of one size; and their image
fresh() {
	rm -rf "$top/q" "$top/image" "$top/out" "$top/aside"
	mkdir -p "$top/q/cat/in" "$top/q/dog/in" "$top/q/eel"
	for name in cat/1 cat/in/1 dog/1 dog/in/1 eel/1; do
		printf '%-20s' "$name" >"$top/q/$name"
	done
	"$@"
	sleep 1.1
	must stele build -q --follow "$top/q" "$top/image@v1"
}

swap() { # PATH PATH
	mv "$1" "$top/aside" && mv "$2" "$1" && mv "$top/aside" "$2"
}

quick() { # WORDS COUNTS [OPTION...]
	local words=$1 counts=$2 made
	shift 2
	run stele append --json --update --quick "$@" "$top/q" "$top/image@v2"
	is "0 $counts" "$status $(counts "$out")" "$where: $words" || diag "$err"
	rm -rf "$top/out"
	made=$(field "$out" 'if .created then "v2" else "v1" end')
	must stele extract -q "$top/image@$made" "$top/out"
	run diff -r "$top/q" "$top/out"
	is "0 " "$status $out" "$where: $words: the snapshot is what the source is"
}

# In the middle of fresh: a link to a directory; and one to a file.
link() {
	mkdir "$top/first" "$top/second"
	printf '%-20s' one >"$top/first/1"
	printf '%-20s' two >"$top/second/1"
	ln -s "$top/first" "$top/q/eel/linked"
}
links() {
	link
	ln -s "$top/first/1" "$top/q/eel/file"
}

all() { # DIRECTORY
	top=$1 where=$(stat -f -c %T "$1")

	fresh
	quick "nothing has changed" "0 0 0 5"
	swap "$top/q/cat" "$top/q/dog"
	quick "two directories change places" "0 4 0 1" --delete-missing

	fresh
	swap "$top/q/cat/in" "$top/q/dog/in"
	quick "two that lie deeper" "0 2 0 3"

	fresh
	swap "$top/q/cat" "$top/q/dog"
	echo new >"$top/q/cat/new" && echo new >"$top/q/dog/new"
	quick "two that get files, too" "2 4 0 1"

	fresh
	mv "$top/q/cat" "$top/aside" && mkdir "$top/q/cat" && mv "$top/q/dog/in" "$top/q/cat"
	quick "one that comes from another" "0 1 2 2" --delete-missing --force

	fresh
	cp -a "$top/q" "$top/other" && sleep 1.1
	printf '%-20s' other >"$top/other/eel/1" && rm -r "$top/image"
	sleep 1.1
	must stele build -q "$top/q" "$top/image@v1"
	rm -r "$top/q" && mv "$top/other" "$top/q"
	quick "the source itself" "0 1 0 4"

	rm -rf "$top/first" "$top/second"
	fresh links
	quick "links are as they were" "0 0 0 7" --follow
	ln -sfn "$top/second" "$top/q/eel/linked"
	quick "a link leads to another directory" "0 1 0 6" --follow
	rm -rf "$top/first" "$top/second"
	fresh links
	ln -sf "$top/second/1" "$top/q/eel/file"
	quick "a link leads to another file" "0 1 0 6" --follow
	rm -rf "$top/first" "$top/second"
	fresh link
	swap "$top/first" "$top/second"
	quick "what a link leads to is another directory" "0 1 0 5" --follow

	# SOURCE is a link
	fresh
	cp -a "$top/q" "$top/old" && mv "$top/q" "$top/new" && swap "$top/new/cat" "$top/new/dog"
	ln -s old "$top/q" && sleep 1.1 && rm "$top/image"
	must stele build -q "$top/q" "$top/image@v1"
	ln -sfn new "$top/q"
	quick "SOURCE is a link that was turned" "0 4 0 1"
	rm -r "$top/old" "$top/new" "$top/first" "$top/second"
}

all "$tmp"
shm=$(mktemp -d -p /dev/shm 2>/dev/null) && cleanup rm -rf "$shm" && all "$shm"

done_testing
