# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2154 # tmp: of tap.sh; shared: the tests'
#
# guests.sh - guests that run the roles of one test side by side; sourced behind tap.sh
#
# The test calls itself in each guest, with the folder that all of them share and the role.

guest_pids=()
guest_roles=()

end_guests() { [ ${#guest_pids[@]} = 0 ] || kill "${guest_pids[@]}" 2>/dev/null; }

# boot_guests "ROLE..." SHARED OPTION...: options of guest.sh
boot_guests() {
	local role shared=$2
	read -ra guest_roles <<<"$1"
	shift 2
	cleanup end_guests
	for role in "${guest_roles[@]}"; do
		tests/vm/guest.sh "$@" -s "$shared" -- "$0" "$shared" "$role" \
			>"$tmp/$role.out" 2>&1 &
		guest_pids+=($!)
	done
}

# A check for each guest: its tests passed.
join_guests() {
	local role
	for role in "${guest_roles[@]}"; do
		wait "${guest_pids[0]}"
		is 0 $? "guest $role"
		guest_pids=("${guest_pids[@]:1}")
		diag "$(<"$tmp/$role.out")"
	done
}

# In a guest. await NAME: what another one leaves in $shared
await() {
	local i
	for ((i = 0; i < 1500; i++)); do
		[ -e "$shared/$1" ] && return
		sleep 0.2
	done
	bail "nobody left '$1'"
}
