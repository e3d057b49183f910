#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# shared.t - two machines on one disk: one publishes while the other reads
#
# Two guests share an NVMe disk of 4096-byte blocks. The reader reads the first snapshot
# all the while the writer publishes others, and then opens those. Its page
# cache is full of what the disk held before.
if [ -n "${GUEST-}" ]; then export TMPDIR=/dev/shm; fi
. "${0%/*}/../tap.sh"
. "${0%/*}/guests.sh"
shared=${1-} me=${2-}
disk=/dev/vm/shared

writer() {
	run stele build -q "$shared/first" "$disk@v1"
	is 0 "$status" "build v1" || diag "$err"
	: >"$shared/v1"
	await reading
	run stele append -q "$shared/second" "$disk@v2" --base v1
	is 0 "$status" "append v2" || diag "$err"
	run stele append -q --delete-missing "$shared/third" "$disk@v3" --base v2
	is 0 "$status" "append v3, which lacks what v1 has" || diag "$err"
	: >"$shared/v3"
	await read
	run stele verify "$disk"
	is 0 "$status" "verify of all" || diag "$out" "$err"
}

# compare SNAPSHOT SOURCE: each sample in random order
compare() { "$BUILD/tests/demo/demo" compare "$disk@$1" "$shared/$2" >"$tmp/out"; }

reader() {
	local rounds=0 wrong=0
	await v1
	dd if="$disk" of=/dev/null bs=1M status=none # through the page cache
	while [ ! -e "$shared/v3" ]; do
		compare v1 first || wrong=$((wrong + 1))
		rounds=$((rounds + 1))
		: >"$shared/reading"
	done
	diag "$rounds rounds"
	is 0 "$wrong" "v1, while others were published"
	ok "v2, opened afterwards" compare v2 second
	ok "v3" compare v3 third
	ok "v1 once more" compare v1 first
	STELE_BACKEND=threads ok "v3 by threads" compare v3 third
	is "v1 v2 v3" "$(stele snapshot list --json "$disk" | jq -r .name | xargs)" \
		"all are listed"
	stele extract -q "$disk@v2" "$tmp/copy"
	ok "the tree of v2" diff -r "$shared/second" "$tmp/copy"
	: >"$shared/read"
}

if [ -n "${GUEST-}" ]; then
	"$me"
	done_testing
fi

# ---- on the host -------------------------------------------------------------

requires jq --version
stele append --help >/dev/null 2>&1 || skip_all "needs stele append"
shared=$tmp/shared
mkdir -p "$shared"/{first,second,third}
for ((i = 0; i < 60; i++)); do
	head -c $((i * 3000 + 100)) /dev/urandom >"$shared/first/$i"
done
cp "$shared"/first/* "$shared/second/"
for ((i = 60; i < 80; i++)); do
	head -c $((i * 1000)) /dev/urandom >"$shared/second/$i"
done
cp "$shared"/second/[4-7]* "$shared/third/"
head -c 500000 /dev/urandom >"$shared/third/new"

truncate -s 128M "$tmp/disk"
boot_guests "writer reader" "$shared" -d "shared:file=$tmp/disk,block=4096,share=1" -t 500
join_guests
ok "the disk, as the host sees it" stele verify -q "$tmp/disk"
done_testing
