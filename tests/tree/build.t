#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# build.t - a copy of the tree: built, installed, used, uninstalled, cleaned
. "${0%/*}/../tap.sh"

requires git ls-files --error-unmatch Makefile

tree=$tmp/tree
dest=$tmp/dest
prefix=/opt/stele
mkdir "$tree"
git ls-files -z | xargs -0 cp --parents -t "$tree" || bail "cannot copy the tree"
cd "$tree" || exit 1

# Nothing of the make that runs this test shall leak in.
unset MAKEFLAGS MAKELEVEL MFLAGS O SAN CFLAGS DESTDIR
build() { make -s "$@" CFLAGS=-O0 PREFIX="$prefix" DESTDIR="$dest"; }
listing() { find . -path ./build -prune -o -type f -printf '%p %s %T@\n' | sort; }
installed() { find "$dest" ! -type d -printf '/%P\n' 2>/dev/null | sort; }

# What must be there, and nothing else.
expected() {
	[ ! -f cmd/stele.c ] || echo $prefix/bin/stele
	printf "$prefix/%s\n" include/stele{,_backing,_image,_loader,_mapping,_query,_reader}.h \
		include/stele_{source,tune,txn,write}.h lib/libstele.a lib/libstele.so \
		lib/libstele.so.0 "lib/libstele.so.$version" lib/pkgconfig/stele.pc \
		lib/udev/rules.d/60-stele.rules \
		share/bash-completion/completions/stele share/zsh/site-functions/_stele
	for page in man/*.[1-8]; do
		echo "$prefix/share/man/man${page##*.}/${page##*/}"
	done
}

uses_library() { # FLAG OF PKG-CONFIG
	local flags
	flags=$(PKG_CONFIG_PATH=$dest$prefix/lib/pkgconfig \
		pkg-config --define-variable=prefix="$dest$prefix" \
		--define-variable=libdir="$dest$prefix/lib" \
		--define-variable=includedir="$dest$prefix/include" \
		--cflags --libs "$@" stele) || return 1
	[ "$*" != --static ] || flags=${flags/-lstele/-l:libstele.a}
	# shellcheck disable=SC2086 # words
	"${CC:-cc}" "$tmp/use.c" $flags -o "$tmp/use" || return 1
	LD_LIBRARY_PATH=$dest$prefix/lib "$tmp/use"
}

version=$(sed -n 's/^#define STELE_VERSION_[A-Z]* //p' lib/stele.h | paste -sd .)
printf '%s\n' '#include <stele.h>' '#include <stdio.h>' \
	'int main(void) { return puts(stele_version()) < 0; }' >"$tmp/use.c"

before=$(listing)
ok "builds" build all
is "$before" "$(listing)" "the build leaves the tree as it was"
is "" "$(make all CFLAGS=-O0 2>&1)" "a second build has nothing to do"
if [ -f cmd/stele.c ]; then
	is "stele $version" "$(build/stele --version)" "the command's version"
fi

ok "installs" build install
is "$(expected | sort)" "$(installed)" "installs what it should"
ok "no path of the build in the pkg-config file" \
	not grep -F "$tmp" "$dest$prefix/lib/pkgconfig/stele.pc"
is "$version" "$(uses_library)" "a program with the shared library"
is "$version" "$(uses_library --static)" "a program with the static library"
python=$BUILD/venv/bin/python
if [ -x "$python" ]; then
	ok "installs the Python package" build install-python PYTHON="$python"
	package=$(dirname "$(find "$dest" -name '_stele.*.so')")
	is "$version" "$(LD_LIBRARY_PATH=$dest$prefix/lib PYTHONPATH=${package%/*} \
		"$python" -Bc 'import stele; print(stele.__version__)')" "which works"
	ok "uninstalls both" build uninstall PYTHON="$python"
else
	skip_block 2 "needs the environment of make python"
	ok "uninstalls" build uninstall
fi
is "" "$(installed)" "nothing is left"

make all V=1 CFLAGS=-O1 >"$tmp/again" 2>&1
ok "other CFLAGS build anew" grep -q -- '-O1.* lib/base/version.c' "$tmp/again"
ok "cleans" make -s clean
is "$before" "$(listing)" "and leaves the tree as it was"
ok "no build directory" not test -e build

done_testing
