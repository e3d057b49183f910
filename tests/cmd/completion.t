#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# completion.t - what bash and zsh complete, each word of a line
. "${0%/*}/../tap.sh"

mkdir -p "$tmp/photos/train/cats" "$tmp/photos/val/dogs"
for name in train/cats/1.jpg train/cats/2.jpg val/dogs/1.jpg README; do
	echo >"$tmp/photos/$name"
done
completion=$PWD/share/completion
cd "$tmp" || bail "cd"
must stele build -q photos image@v1
must stele snapshot create image@v2 --delete README
must stele map image@v1 pets

# completes WANTED LINE: in bash, as readline calls it, with the cursor at the end
completes() {
	# shellcheck disable=SC2016 # of that bash
	is "$1" "$(bash --norc -c '. "$1"; COMP_LINE=$2 COMP_POINT=${#2}
		read -ra COMP_WORDS <<<"$2"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_stele stele "${COMP_WORDS[COMP_CWORD]}" ""
		printf "%s\n" "${COMPREPLY[@]}"' bash "$completion/stele.bash" "$2" |
		sort | paste -sd ' ')" "bash: '$2'"
}
completes "info" "stele inf"
completes "map maps" "stele ma"
completes "export extract" "stele help ex"
completes "" "stele frobnicate "
completes "--json" "stele info --js"
completes "--skip-existing" "stele extract --sk"
completes "--ceph-conf= --ceph-user=" "stele verify --ce"
completes "--jobs=" "stele verify --jo"
completes "tar text tfrecord" "stele build --from=t"
completes "webdataset" "stele append --from=we"
completes "tar tfrecord" "stele export --to=t"
completes "fail skip" "stele append --on-error="
completes "source" "stele compact --order=so"
completes "fail skip" "stele append --on-error "
completes "tar text tfrecord" "stele build -q --from t"
completes "tar tfrecord" "stele export --to t"
completes "16" "stele compact --granule=1"
completes "crc" "stele bench --verify c"
completes "parent" "stele append --label-from=p"
completes "sequential" "stele bench --order=se"
completes "erofs" "stele mount --via=e"
completes "krbd" "stele map --via=k"
completes "damage" "stele help dam"
completes "--grace=" "stele gc --apply --g"
completes "create delete list rename undelete" "stele snapshot "
completes "off on" "stele posix "
completes "pets" "stele info pe"
completes "photos" "stele build ph"
completes "pets" "stele unmap "
completes "@v1 @v2" "stele info image@"
completes "@v2" "stele snapshot delete image@v2"
must stele snapshot create image@gone
must stele snapshot delete image@gone
completes "@gone" "stele snapshot undelete image@"
completes "@v1" "stele ls pets@v1"
completes "" "stele ls none@"
completes "README train/ val/" "stele cat image@v1 "
completes "train/cats/" "stele cat image@v1 train/"
completes "train/cats/1.jpg train/cats/2.jpg" "stele cat --field=x image@v1 train/cats/"
completes "val/" "stele ls image@v2 v"
completes "train/cats/" "stele cat --field data image@v1 train/"
completes "SELECT" "stele query image@v2 S"
completes "val/dogs/" "stele extract pets out val/"
completes "image" "stele export --prefix=im"
# shellcheck disable=SC2016 # of that bash
is "complete -F _stele stele" "$(bash --norc -c '. "$1"; complete -p stele' bash \
	"$completion/stele.bash")" "bash: is registered"

# What readline makes of it, with '@' as a break between words, as by default, and without.
typed() { # OPTION KEYS: the line, once they were typed
	TERM=dumb python3 - "$completion/stele.bash" "$@" <<-'END'
		import os, pty, sys
		pid, fd = pty.fork()
		if not pid:
		    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
		seen = b""
		def until(what):
		    global seen
		    while what not in seen:
		        seen += os.read(fd, 4096)
		def send(text):
		    os.write(fd, text.encode())
		file, option, keys = sys.argv[1:]
		send(f"shopt {option} hostcomplete; . {file}; PS1=re''ady:\n")
		until(b"ready:")
		send(keys + "\t\x01echo 'line:\x05'\n")
		until(b"\nline:")
		send("exit\n")
		try:
		    while True:
		        seen += os.read(fd, 4096) or sys.exit(1)
		except OSError:
		    pass
		print(seen.decode().split("\nline:")[1].split("\r")[0])
	END
}
for option in -s -u; do
	is "stele snapshot undelete image@gone " \
		"$(typed $option "stele snapshot undelete image@g")" "typed: shopt $option"
done

# All options of all commands that have help, and that are taken.
for command in $(stele __complete '' | grep -vE '^(-|help$)'); do
	is "$(stele help "$command" | sed -nE 's/^ +(-., )?(--[a-z-]+=?).*/\2/p' | sort -u)" \
		"$(stele __complete "$command" -- | sort -u |
			grep -vE '^--(ceph-.*=|timeout=|progress)$')" "$command: its options"
done

if command -v zsh >which 2>&1; then
	# As the completion system calls it, whose functions print what they get.
	zsh_completes() {
		is "$1" "$(zsh -fc 'compadd() { shift ${@[(i)--]}; print -l -- "$@" }
			_files() { print files }
			words=("${(@s: :)1}"); CURRENT=$#words
			. '"$completion/_stele" zsh "$2" | grep . | sort | paste -sd ' ')" \
			"zsh: '$2'"
	}
	zsh_completes "map maps" "stele ma"
	zsh_completes "--jobs=" "stele verify --jo"
	zsh_completes "image@v1 image@v2" "stele info image@"
	zsh_completes "train/cats/1.jpg train/cats/2.jpg" "stele cat image@v1 train/cats/"
	zsh_completes "files pets" "stele info pe"
else
	skip_block 5 "needs zsh"
fi

done_testing
