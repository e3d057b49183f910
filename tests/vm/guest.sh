#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# guest.sh - boot a guest kernel, run one command in it, give back its status
#
#	guest.sh [OPTION...] -- COMMAND ARG...
#
#	-d NAME:KEY=VALUE,...	a disk, in the guest /dev/vm/NAME
#		file=PATH	what it holds; made with size= when not there
#		size=BYTES	(default 256M)
#		block=512|4096	logical (default 512)
#		bus=nvme|virtio	(default nvme)
#		share=1		another guest uses the file at the same time
#		error=SECTOR	reads of that 512-byte sector fail
#	-m "MODULE OPTION=VALUE..."	loaded before the command; of a disk's driver
#			("nvme poll_queues=1"): how it is loaded
#	-s DIR		a directory that guest and host both write, same path
#	-n		a network: the host's addresses can be reached
#	-t SECONDS	for boot and command (default 400): then status 124
#	-k		show the kernel's messages
#
# The guest sees the host's filesystem, read-only below an overlay in memory,
# and the caller's exported variables. Status 125: the guest died. All of it is
# software emulation: what runs here says nothing about speed.
set -u

here=$(cd "$(dirname "$0")" && pwd)
vm=$("$here/prepare.sh") || exit 125
root=$vm/root
release=$(<"$vm/kernel/release")
boots_max=3
boot_seconds=120 # 4 on an idle machine

usage() {
	sed -n '/^#	guest.sh/,/^set/s/^#//p' "$0" >&2
	exit 2
}

disks=() modules=() shared='' network='' seconds=400 show=''
while getopts d:m:s:nt:k option; do
	case $option in
	d) disks+=("$OPTARG") ;;
	m) modules+=("$OPTARG") ;;
	s) shared=$(realpath "$OPTARG") || exit 2 ;;
	n) network=1 ;;
	t) seconds=$OPTARG ;;
	k) show=1 ;;
	*) usage ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || usage

control=$(mktemp -d "${TMPDIR:-/tmp}/guest.XXXXXX") || exit 125
qemu=
finish() {
	[ -z "$qemu" ] || kill -9 "$qemu" 2>/dev/null
	rm -rf "$control"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# ---- disks ----------------------------------------------------------------

args=()
wanted=() # modules

disk() { # NAME:KEY=VALUE,...
	local name=${1%%:*} pair file='' size=256M block=512 bus=nvme share=0
	local error='' node="n${#args[@]}" pairs backend blocks
	IFS=, read -ra pairs <<<"${1#"$name"}"
	for pair in ${pairs[@]+"${pairs[@]}"}; do
		pair=${pair#:}
		case ${pair%%=*} in
		file | size | block | bus | share | error)
			printf -v "${pair%%=*}" %s "${pair#*=}"
			;;
		*) usage ;;
		esac
	done
	file=${file:-$control/$name.disk}
	[ -e "$file" ] || truncate -s "$size" "$file" || exit 125
	backend="driver=file,node-name=$node,filename=$file"
	args+=(-blockdev "$backend,cache.no-flush=on,discard=unmap")
	if [ -n "$error" ]; then
		backend="driver=blkdebug,node-name=e$node,image=$node"
		backend+=,inject-error.0.event=none,inject-error.0.iotype=read
		backend+=,inject-error.0.errno=5,inject-error.0.sector=$error
		args+=(-blockdev "$backend")
		node=e$node
	fi
	case $share in 1) share=on ;; *) share=off ;; esac
	blocks="logical_block_size=$block,physical_block_size=$block,share-rw=$share"
	case $bus in
	nvme)
		args+=(-device "nvme,id=c$node,serial=$name,max_ioqpairs=4"
			-device "nvme-ns,bus=c$node,drive=$node,$blocks")
		wanted+=(nvme)
		;;
	virtio)
		args+=(-device "virtio-blk-pci,drive=$node,serial=$name,$blocks")
		wanted+=(virtio_blk)
		;;
	esac
}
for one in ${disks[@]+"${disks[@]}"}; do
	disk "$one"
done
if [ -n "$network" ]; then
	args+=(-netdev "user,id=net" -device "virtio-net-pci,netdev=net")
	wanted+=(virtio_net)
fi

# ---- what the guest is told -----------------------------------------------

# "/path/of.ko option=value": each module and what it needs, in order
load_list() {
	local one
	for one in ${modules[@]+"${modules[@]}"} ${wanted[@]+"${wanted[@]}"}; do
		# shellcheck disable=SC2086 # module and options are words
		LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu \
			"$root/bin/modprobe" -d "$vm/kernel" -S "$release" \
			-C /dev/null --show-depends $one ||
			echo "guest: no module '$one'" >&2
	done | sed -n 's/^insmod //p' | awk '!seen[$1]++'
}
load_list >"$control/modules"
printf '%s=%q\n' disks "${#disks[@]}" shared "$shared" >"$control/settings"
{
	export -p | grep -v ' TERM=\| HOME=\| SHLVL='
	printf 'cd %q\n' "$PWD"
	printf 'export HOME=/root GUEST=1 DM_DISABLE_UDEV=1\n'
	printf 'ulimit -l unlimited\n'
	printf '%q ' "$@"
	echo
} >"$control/command"
cat >"$control/second" <<'END'
: >/guest/started
bash /guest/command </dev/null >/dev/hvc0 2>&1
echo $? >/guest/status
sync
# isa-debug-exit ends QEMU at once; else power off
dd if=/dev/zero of=/dev/port bs=1 seek=1281 count=1 conv=notrunc status=none
echo o >/proc/sysrq-trigger
sleep 30
END

# ---- boot -----------------------------------------------------------------

khz=$(awk '/cpu MHz/ { printf "%d", $4 * 1000; exit }' /proc/cpuinfo)
# Quick to boot, with a clock that emulation does not upset.
kernel_words="console=ttyS0 loglevel=7 panic=-1 oops=panic mitigations=off"
kernel_words+=" nokaslr norandmaps audit=0 nowatchdog cryptomgr.notests"
kernel_words+=" no_timer_check tsc=reliable tsc_early_khz=$khz"
kernel_words+=" random.trust_cpu=on rcupdate.rcu_expedited=1"
# One CPU, yet two could be: QEMU 7.2 leaves memory barriers out of a guest that
# can have only one, and NVMe doorbells get lost.
start() {
	local share=(-fsdev "local,id=g,path=$control,security_model=none"
		-device "virtio-9p-pci,fsdev=g,mount_tag=guest")
	[ -z "$shared" ] ||
		share+=(-fsdev "local,id=s,path=$shared,security_model=none"
			-device "virtio-9p-pci,fsdev=s,mount_tag=shared")
	: >"$control/kernel.log"
	LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu \
		"$root/usr/bin/qemu-system-x86_64" \
		-L "$root/usr/share/qemu" -L "$root/usr/share/seabios" \
		-L "$root/usr/lib/ipxe/qemu" \
		-machine q35 -bios "$root/usr/share/qemu/qboot.rom" \
		-accel tcg,thread=multi,tb-size=384 -cpu max,la57=off \
		-smp cpus=1,maxcpus=2 -m 1280 -nodefaults -no-user-config \
		-display none -no-reboot -rtc base=utc \
		-device isa-debug-exit,iobase=0x501,iosize=1 \
		-chardev stdio,id=out,signal=off \
		-device virtio-serial-pci -device virtconsole,chardev=out \
		-serial "file:$control/kernel.log" \
		-kernel "$vm/kernel/vmlinux" -initrd "$vm/initrd" \
		-append "$kernel_words" \
		-fsdev local,id=r,path=/,security_model=none,readonly=on,multidevs=remap \
		-device virtio-9p-pci,fsdev=r,mount_tag=root \
		"${share[@]}" ${args[@]+"${args[@]}"} \
		</dev/null 2>"$control/qemu.log" &
	qemu=$!
}

# Until QEMU ends, or time is over: sets why.
watch() {
	local begin=$SECONDS
	why=died
	while kill -0 "$qemu" 2>/dev/null; do
		sleep 0.1
		if [ "$SECONDS" -ge "$seconds" ]; then
			why=timeout
		elif [ $((SECONDS - begin)) -ge $boot_seconds ] &&
			[ ! -e "$control/started" ]; then
			why=boot
		else
			continue
		fi
		kill -9 "$qemu" 2>/dev/null
	done
	wait "$qemu" 2>/dev/null
	qemu=
}

SECONDS=0
for ((boot = 1; boot <= boots_max; boot++)); do
	start
	watch
	# About one boot in a hundred fails under emulation.
	if [ -e "$control/started" ] || [ "$why" = timeout ]; then break; fi
done
if [ -e "$control/status" ]; then
	[ -z "$show" ] || cat "$control/kernel.log" >&2
	exit "$(<"$control/status")"
fi
{
	echo "guest: no status ($why)"
	cat "$control/qemu.log"
	tail -c 6000 "$control/kernel.log"
} >&2
[ "$why" = timeout ] && exit 124
exit 125
