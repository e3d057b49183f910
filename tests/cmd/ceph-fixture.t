#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# ceph-fixture.t - tests/ceph itself: up, I/O, faults, and nothing left behind
. "${0%/*}/../tap.sh"
. tests/ceph/words.sh

command -v ceph-mon >/dev/null || skip_all "needs Ceph"
ceph_dir=$(tests/ceph/place.sh) || skip_all "needs Ceph"
cleanup tests/ceph/down.sh "$ceph_dir"
ceph_conf=$ceph_dir/ceph.conf

# processes DIR: how many daemons name it
processes() { pgrep -fc "^ceph-(mon|osd) .*-c $1/ceph.conf"; }

# listening: addresses of our daemons' sockets, as the kernel prints them
listening() {
	local pid

	for pid in $(pgrep -f "^ceph-(mon|osd) .*-c $ceph_dir/ceph.conf"); do
		find "/proc/$pid/fd" -lname 'socket:*' -printf '%l\n'
	done | tr -cd '0-9\n' | awk 'NR == FNR { mine[$1]; next }
		$4 == "0A" && $10 in mine { sub(":.*", "", $2); print $2 }' - \
		/proc/net/tcp /proc/net/tcp6 | sort -u
}

# kick WHAT DAEMON...
kick() { must tests/ceph/kick.sh "$ceph_dir" "$@"; }

head -c 3000000 /dev/urandom >"$tmp/data"

# same IMAGE: it holds the data
same() {
	rm -f "$tmp/seen"
	on_ceph rbd export --no-progress "$1" "$tmp/seen" &&
		cmp "$tmp/data" "$tmp/seen"
}

run tests/ceph/up.sh "$ceph_dir"
is 0 "$status" "up" || diag "$err"
is 2 "$(processes "$ceph_dir")" "a monitor and an OSD"
is 0100007F "$(listening)" "listening on loopback alone"
must on_ceph rbd import --no-progress "$tmp/data" rbd/one
ok "I/O: what is written is read" same rbd/one
ok "user reader reads" on_ceph rbd --id reader info rbd/one
ok "user reader does not write" not on_ceph rbd --id reader resize \
	--no-progress --size 8M rbd/one
ok "user writer does" on_ceph rbd --id writer resize --no-progress \
	--size 4M rbd/one
must on_ceph rbd resize --no-progress --allow-shrink --size 3000000B rbd/one

kick kill osd.0
is 1 "$(processes "$ceph_dir")" "a killed OSD is gone when kick.sh returns"
kick start osd.0
ok "killed and started again it has its data" same rbd/one
kick kill osd.0 mon.a
kick start mon.a osd.0
ok "so with the monitor" same rbd/one
kick stop osd.0
on_ceph rbd export --no-progress rbd/one "$tmp/late" &
export=$!
sleep 0.3
ok "a stopped OSD answers nothing" kill -0 $export
kick cont osd.0
wait $export
ok "and goes on" cmp "$tmp/data" "$tmp/late"

run tests/ceph/up.sh "$ceph_dir"
is "0 2" "$status $(processes "$ceph_dir")" "up again: ends the old one"
is "" "$(on_ceph rbd ls rbd)" "and begins with nothing"
run tests/ceph/down.sh "$ceph_dir"
is "0 0" "$status $(processes "$ceph_dir")" "down: no process is left"
ok "down: no file is left" not test -e "$ceph_dir"
run tests/ceph/down.sh "$ceph_dir"
is 0 "$status" "down of what is not there"
mkdir "$tmp/mine"
echo data >"$tmp/mine/file"
run tests/ceph/up.sh "$tmp/mine"
is 1 "$status" "up: refuses somebody's directory"
run tests/ceph/down.sh "$tmp/mine"
is "1 data" "$status $(<"$tmp/mine/file")" "down: leaves it alone"

# ---- run.sh: one for all of a run ----

# shellcheck disable=SC2016 # for the inner shell
says='echo $STELE_TEST_CEPH; rbd --conf $STELE_TEST_CEPH ls rbd && exit 7'
run env -u STELE_TEST_CEPH tests/ceph/run.sh bash -c "$says"
is 7 "$status" "run.sh: the status of what it runs"
ok "run.sh: says how long the start took" grep -qE 'in [0-9]+\.[0-9]{3} s' <<<"$out"
dir=$(grep -o '/.*/stele-ceph[^/]*' <<<"$out")
is 0 "$(processes "$dir")" "run.sh: ends it"
ok "run.sh: removes it" not test -e "$dir"

for signal in TERM KILL; do
	env -u STELE_TEST_CEPH tests/ceph/run.sh sh -c \
		'echo "$STELE_TEST_CEPH" >"$1"; exec sleep 60' sh "$tmp/where" &
	job=$!
	until [ -s "$tmp/where" ]; do
		kill -0 $job 2>/dev/null || bail "run.sh ended"
		sleep 0.1
	done
	dir=$(dirname "$(<"$tmp/where")")
	rm "$tmp/where"
	until sleeper=$(pgrep -P "$job" sleep); do # which was sh a moment ago
		kill -0 $job 2>/dev/null || bail "run.sh ended"
	done
	kill -$signal $job
	wait $job 2>/dev/null
	if [ $signal = KILL ]; then
		kill "$sleeper"
		is 2 "$(processes "$dir")" "killed, it leaves its cluster"
		env -u STELE_TEST_CEPH tests/ceph/run.sh true >/dev/null
	fi
	is 0 "$(processes "$dir")" "SIG$signal: no process is left by the next run"
	ok "SIG$signal: no file" not test -e "$dir"
done

done_testing
