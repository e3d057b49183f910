#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# prepare.sh - QEMU and a Debian kernel for the tests on a guest, once
#
#	prepare.sh	prints the directory that guest.sh uses
#
# Everything goes into STELE_VM_DIR (default: stele-vm in the user's cache
# directory): packages are fetched by apt and unpacked there, none is
# installed. Below it: root/ (programs), kernel/ (its modules), vmlinux,
# initrd, mods (modules.dep). A kernel other than KERNEL is fetched anew.
set -eu

dir=${STELE_VM_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/stele-vm}
here=$(cd "$(dirname "$0")" && pwd)
kernel=${STELE_VM_KERNEL:-}

say() { printf 'prepare: %s\n' "$*" >&2; }
give_up() {
	say "$*"
	exit 1
}

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
exec 9>"$dir/lock"
flock 9

# ---- programs -------------------------------------------------------------

# Those that the machine has are not fetched; what they depend on is.
programs="qemu-system-x86 busybox-static cpio zstd kmod"

fetch_programs() {
	local fetched=$dir/programs.new unpacked=$dir/root.new deb
	rm -rf "$fetched" "$unpacked"
	mkdir -p "$fetched/partial" "$unpacked"
	say "fetching QEMU into $dir"
	# Nothing gets installed, so the lock of those who do is not needed.
	# shellcheck disable=SC2086 # words
	apt-get -qq -o Debug::NoLocking=1 -o Dir::Cache::archives="$fetched" \
		-o APT::Sandbox::User=root --download-only --reinstall -y \
		install --no-install-recommends $programs >&2 ||
		give_up "apt-get could not fetch $programs"
	for deb in "$fetched"/*.deb; do
		dpkg-deb -x "$deb" "$unpacked"
	done
	rm -rf "$fetched" "$dir/root"
	mv "$unpacked" "$dir/root"
}
[ -d "$dir/root" ] || fetch_programs

root=$dir/root
lib=$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu
# in_root PROGRAM ARG...: of those that were fetched
in_root() { LD_LIBRARY_PATH=$lib "$@"; }

# ---- kernel ---------------------------------------------------------------

# A meta package depends on the package that has the kernel.
kernel_package() {
	local meta
	for meta in $kernel linux-image-6.12-amd64 linux-image-amd64; do
		apt-cache depends "$meta" 2>/dev/null |
			awk '/Depends: linux-image-/ { print $2; exit }' |
			grep . && return
	done
	return 1
}

# vmlinux out of bzImage: 4 boots in a guest without KVM cost more than this.
unpack_kernel() {
	perl -e '
		undef $/;
		my $image = <STDIN>;
		die "not a bzImage\n" if substr($image, 0x202, 4) ne "HdrS";
		my $setup = unpack("C", substr($image, 0x1f1, 1)) || 4;
		my ($at, $size) = unpack("VV", substr($image, 0x248, 8));
		print substr($image, ($setup + 1) * 512 + $at, $size);
	' <"$1" >"$2.packed"
	case $(od -An -tx1 -N4 "$2.packed") in
	' 28 b5 2f fd') in_root "$root/usr/bin/zstd" -dcqf "$2.packed" ;;
	' fd 37 7a 58') xz -dc --single-stream "$2.packed" ;;
	*) give_up "'$1' is packed in a way that is not known" ;;
	esac >"$2" || [ -s "$2" ] # the payload has its size behind it
	rm "$2.packed"
}

fetch_kernel() { # PACKAGE
	local new=$dir/kernel.new release
	rm -rf "$new"
	mkdir -p "$new"
	say "fetching $1"
	(cd "$new" && apt-get -qq -o APT::Sandbox::User=root download "$1") ||
		give_up "apt-get could not fetch $1"
	dpkg-deb -x "$new/$1"_*.deb "$new"
	rm "$new"/*.deb
	release=${1#linux-image-}
	# What compressed modules save in bytes they cost in the guest's time.
	find "$new/lib/modules" -name '*.ko.xz' -print0 |
		xargs -0 -r -P "$(nproc)" -n 64 xz -d
	ln -sf kmod "$root/bin/depmod"
	in_root "$root/bin/depmod" -b "$new" "$release"
	unpack_kernel "$new/boot/vmlinuz-$release" "$new/vmlinux"
	printf '%s\n' "$release" >"$new/release"
	rm -rf "$dir/kernel"
	mv "$new" "$dir/kernel"
}
package=$(kernel_package) || give_up "apt knows no Debian kernel"
release=$(cat "$dir/kernel/release" 2>/dev/null) || release=
[ "linux-image-$release" = "$package" ] || fetch_kernel "$package"
release=${package#linux-image-}

# ---- first root of the guest ----------------------------------------------

# modules NAME...: files of these and all they need, in the order of loading
modules() {
	local name
	for name; do
		in_root "$root/bin/modprobe" -d "$dir/kernel" -S "$release" \
			-C /dev/null --show-depends "$name" ||
			give_up "kernel $release has no module $name"
	done | awk '$1 == "insmod" && !seen[$2]++ { print $2 }'
}
ln -sf kmod "$root/bin/modprobe"

make_initrd() {
	local new=$dir/initrd.new ko
	rm -rf "$new"
	mkdir -p "$new"/{bin,m,proc,sys,dev,lower,upper,new}
	cp "$root/bin/busybox" "$new/bin/"
	cp "$here/init" "$new/init"
	while read -r ko; do
		cp "$ko" "$new/m/"
		printf '%s\n' "${ko##*/}" >>"$new/m/order"
	done < <(modules virtio_pci virtio_console 9pnet_virtio 9p overlay)
	chmod 755 "$new/init"
	(cd "$new" && find . | in_root "$root/bin/cpio" -oH newc --quiet) \
		>"$dir/initrd.part"
	rm -rf "$new"
	mv "$dir/initrd.part" "$dir/initrd"
}
if [ ! "$dir/initrd" -nt "$here/init" ] || [ ! "$dir/initrd" -nt "$dir/kernel" ]; then
	make_initrd
fi
printf '%s\n' "$dir"
