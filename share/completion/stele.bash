# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# stele.bash - completion of commands, options, targets, snapshots, mapped names and keys

_stele() {
	local line=${COMP_LINE:0:COMP_POINT} breaks=${COMP_WORDBREAKS//[^:=@]/} cur prefix= i
	local -a words replies

	read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=("")
	cur=${words[-1]}
	COMPREPLY=()
	mapfile -t replies < <(stele __complete "${words[@]:1}" 2>/dev/null)
	# readline replaces only what follows the last of these characters, with '@' itself
	[ -n "$breaks" ] && prefix=${cur%"${cur##*["$breaks"]}"}
	prefix=${prefix%@}
	for i in "${replies[@]}"; do
		if [ "$i" = :files ]; then
			mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "${cur#*=}")
			compopt -o filenames 2>/dev/null
		else
			COMPREPLY+=("${i#"$prefix"}")
		fi
	done
	[[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[/=] ]] && compopt -o nospace 2>/dev/null
	return 0
}
complete -F _stele stele
