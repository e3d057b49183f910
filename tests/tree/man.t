#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# man.t - pages lint, know every function and command, and agree with --help
. "${0%/*}/../tap.sh"

requires git ls-files --error-unmatch Makefile
requires command -v mandoc

mapfile -t pages < <(git ls-files 'man/*.[1-8]')
mapfile -t commands < <(git ls-files 'cmd/*.c' | # cmd/cmd_NAME.c, cmd/NAME/NAME.c
	sed -nE 's,^cmd/(cmd_([a-z_]+)|([a-z]+)/\3)\.c$,\2\3,p' | tr _ -)

# Options that the page lists (.It Fl l , Fl Fl long), one a line.
page_options() {
	sed -n 's/^\.It Fl/Fl/p' "$1" | grep -oE '\<Fl (Fl |-)?[a-zA-Z0-9][a-z0-9-]*' |
		sed -E 's/^Fl (Fl |-)/--/; s/^Fl /-/' | sort -u
}

# Options that --help lists: what stands before the gap of two spaces.
help_options() {
	sed -nE 's/^ +(-.*)/\1/p' | sed -E 's/  .*//' |
		grep -oE '(^|[ ,])--?[a-zA-Z0-9][a-z0-9-]*' | tr -d ' ,' |
		grep -vxE -- '--help|-h' | sort -u
}

references() { # .Xr stele-x 1, as "man/stele-x.1"
	grep -hoE '\.?\<Xr stele[a-z-]* [1-8]' "$@" | sort -u |
		sed -E 's|.*Xr ([a-z-]+) ([1-8])|man/\1.\2|'
}

# Structs of C on stdin, a line for each member: STRUCT MEMBER.
members() {
	perl -0777 -ne '
		s,/\*.*?\*/,,gs;
		while (/^(?:struct|union) (stele_\w+) \{(.*?)^\};/gms) {
			my ($struct, @declarations) = ($1, split /;/, $2);
			for (@declarations) {
				print "$struct $1\n" and next if /\(\*(\w+)\)/;
				s/\[.*?\]//g;
				/(\w+)\s*$/ and print "$struct $1\n" for split /,/;
			}
		}' | sort
}
# The same of pages: their C, and the lists after a struct is named.
page_members() {
	{
		cat "$@" | grep -v '^\.' | members
		awk '/^\.(Vt|Ss) (struct|union) stele_/ && !list { struct = $3 }
			/^\.Bl/ { list = 1 }
			/^\.El/ { list = 0; struct = "" }
			/^\.It / && struct {
				for (i = take = 0; ++i <= NF;)
					if ($i ~ /^(Va|Fa|Fn)$/) take = 1
					else if ($i ~ /^[A-Z]/) take = 0
					else if ($i != "," && take) {
						print struct, $i
						if ($(i - 1) == "Fn") next
					}
			}' "$@"
	} | sort -u
}

check_command() {
	local name=$1 page=man/stele-$1.1

	run stele "$name" --help
	is "0 " "$status $err" "$name --help: status 0, nothing on stderr"
	is "" "$(awk 'length > 80' <<<"$out")" "$name --help: up to 80 columns"
	ok "$name: has a page" test -f "$page"
	[ ! -f "$page" ] || is "" \
		"$(diff <(help_options <<<"$out") <(page_options "$page"))" \
		"$name: --help and its page list the same options"
	run stele "$name" --no-such-option
	is "2 " "$status $out" "$name: a wrong option is status 2, and not output"
	ok "$name: says so" test -n "$err"
}

ok "there are pages" test "${#pages[@]}" -gt 0
ok "there are commands" test "${#commands[@]}" -gt 0
for page in "${pages[@]}"; do
	is "" "$(mandoc -Tlint -W warning "$page" 2>&1)" "$page lints"
	is "" "$(mandoc -Tutf8 "$page" | col -b | tr -s ' \t\n' ' ' |
		grep -oE "‘[^’]{0,60}‘|’’")" "$page: quotes are closed where they end"
done
is "" "$(references "${pages[@]}" | while read -r page; do
	[ -f "$page" ] || echo "$page"; done)" "pages refer to pages that exist"
is "" "$(sed -n 's/^\t\(stele_[a-z0-9_]*\);$/\1/p' lib/libstele.map |
	while read -r name; do grep -qw "$name" man/*.3 || echo "$name"; done)" \
	"each function has its place in section 3"

is "" "$(diff <(cat lib/stele*.h | members) <(page_members man/*.3))" \
	"section 3 lists the members of each struct, and no others"

is "" "$(printf '%s\n' "${pages[@]}" | sed -n 's|man/stele-\(.*\)\.1|\1|p' |
	grep -vxF "$(printf '%s\n' "${commands[@]}")")" "each page has its command"

if [ -x "$BUILD/stele" ]; then
	run stele --help
	is "0 " "$status $err" "stele --help: status 0, nothing on stderr"
	is "" "$(awk 'length > 80' <<<"$out")" "stele --help: up to 80 columns"
	help=$out
	for name in "${commands[@]}"; do
		check_command "$name"
		ok "stele --help lists $name" grep -qE "^ +$name\>" <<<"$help"
		ok "stele(1) refers to $name" grep -q "Xr stele-$name 1" man/stele.1
	done
fi

done_testing
