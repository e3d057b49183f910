#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# deb.sh DIR - Debian packages of the files that git knows, into DIR; lintian has the last word
#
# The changelog is made here: its version is that of stele.h, its time that of the last commit.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "$1"
to=$(cd "$1" && pwd)
version=$(sed -n 's/^#define STELE_VERSION_[A-Z]* //p' lib/stele.h | paste -sd .)
tree=$to/stele-$version
rm -rf "${to:?}"/*
mkdir "$tree"
git -c safe.directory='*' ls-files -z | xargs -0 cp --parents -t "$tree"
cp -r packaging/debian "$tree/debian"
mkdir "$tree/debian/source"
echo '3.0 (native)' >"$tree/debian/source/format"
cat >"$tree/debian/changelog" <<END
stele ($version) unstable; urgency=medium

  * See NEWS.md.

 -- Stele developers <stele@example.org>  $(git -c safe.directory='*' log -1 --format=%cD)
END
# Debian's own programs, and nothing of the make that runs this.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
unset MAKEFLAGS MAKELEVEL MFLAGS O SAN CFLAGS CPPFLAGS LDFLAGS DESTDIR PREFIX LIBDIR
(cd "$tree" && dpkg-buildpackage -us -uc -b "-j$(nproc)") >"$to/build.log" 2>&1 || {
	tail -n 20 "$to/build.log" >&2
	exit 1
}
rm -rf "$tree"
lintian --fail-on error,warning --allow-root "$to"/*.changes
