#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# check-deb.t - the packages of DEB_DIR install, work and go again in a fresh Debian 12
#
# The root is made by mmdebstrap, and holds what our packages depend on and nothing else: so
# a dependency that is missing shows.
. "${0%/*}/../tests/tap.sh"

requires_root
requires mmdebstrap --version
: "${DEB_DIR:=$BUILD/deb}"
root=$tmp/root

inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }
apt() { inside DEBIAN_FRONTEND=noninteractive apt-get -qq -y "$@"; }
leftovers() { find "$root" -xdev -path '*stele*' ! -path "$root/tmp/*" -printf '%P\n'; }

must mmdebstrap --mode=root --variant=apt --aptopt='APT::Install-Recommends "false"' \
	bookworm "$root"
is "" "$(leftovers)" "a root without a trace of it"
must cp "$DEB_DIR"/*.deb "$root/tmp/"
for name in stele libstele0 libstele-dev python3-stele; do
	ok "$name: a package" compgen -G "$root/tmp/${name}_[0-9]*.deb"
	mv "$root/tmp/$name"_[0-9]*.deb "$root/tmp/$name.deb"
done
leave() { umount "$root/proc"; }
must mount -t proc proc "$root/proc" && cleanup leave
must apt update

ok "stele installs" apt install /tmp/stele.deb
ok "and builds an image" inside stele build -q --posix /usr/share/doc /tmp/image@v1
ok "that is sound" inside stele verify -q /tmp/image
ok "and gives the files back" inside stele extract -q /tmp/image /tmp/out
is "" "$(cd "$root" && find usr/share/doc -type f | sed 's,usr/share/doc/,,' | sort |
	comm -3 - <(cd tmp/out && find . -type f | sed 's,^./,,' | sort))" "all of them"
ok "man pages" inside test -e /usr/share/man/man1/stele-view.1.gz
ok "a unit for maps at boot" inside test -x /lib/systemd/system-generators/stele-maps-generator
is "$(inside stele __complete inf)" info "completions"
is "no" "$(inside test -e /usr/include/stele.h && echo yes || echo no)" "no headers yet"

ok "python3-stele installs" apt install /tmp/libstele0.deb /tmp/python3-stele.deb
is "$(inside stele ls /tmp/image | wc -l) True" "$(inside python3 -c 'import stele
ds = stele.open("/tmp/image")
with open("/usr/share/doc/dpkg/copyright", "rb") as file:
    print(len(ds), bytes(ds["dpkg/copyright"]) == file.read())')" "and reads the image"
is "stele $(inside dpkg-query -W -f '${Version}' stele)" "$(inside python3 -m stele --version)" \
	"python -m stele is the command"

ok "libstele-dev installs" apt install /tmp/libstele-dev.deb
printf '%s\n' '#include <stele.h>' '#include <stdio.h>' \
	'int main(void) { return puts(stele_version()) < 0; }' >"$tmp/use.c"
# The compiler is this machine's: that of the root would take longer than all else.
libs=$(cd "$root" && echo usr/lib/*-linux-gnu)
ok "a program builds" "${CC:-cc}" -I "$root/usr/include" "$tmp/use.c" -L "$root/$libs" -lstele \
	-Wl,--unresolved-symbols=ignore-in-shared-libs -o "$root/tmp/use"
is "$(inside dpkg-query -W -f '${Version}' libstele0)" "$(inside /tmp/use)" "and runs"

ok "all are removed" apt purge stele libstele0 libstele-dev python3-stele
is "" "$(leftovers)" "without a trace"

done_testing
