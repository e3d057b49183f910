#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# tap.t - tap.sh and tap.c themselves: what is wrong comes out red
. "${0%/*}/../tap.sh"

# verdict NAME: green, red or skipped, as prove sees it
verdict() {
	local out
	out=$(prove --norc --exec '' "$1" 2>/dev/null) || { echo red && return; }
	case $out in *"Result: PASS"*) echo green ;; *) echo skipped ;; esac
}

# script LINE...: a test with these lines
script() {
	printf '%s\n' '#!/usr/bin/env bash' ". $PWD/tests/tap.sh" "$@" >"$tmp/t"
	chmod +x "$tmp/t"
}

# program LINE...: the same in C
program() {
	{
		printf '%s\n' '#include "tests/tap.h"' '#include <stdlib.h>'
		printf '%s\n' 'int main(void) {' "$@" '}'
	} >"$tmp/t.c"
	must "${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -I. -o "$tmp/t" "$tmp/t.c" \
		tests/tap.c
}

# is_verdict WANTED DESCRIPTION [VARIABLE=VALUE...]
is_verdict() {
	is "$1" "$(unset STRICT STRICT_ALLOW && export TAP=t "${@:3}" &&
		verdict "$tmp/t")" "$2"
}

script 'ok good true' done_testing
is_verdict green "sh: what holds"
script 'ok good true' 'ok bad false' done_testing
is_verdict red "sh: a check that fails"
script 'ok good true' 'lik a b' done_testing
is_verdict red "sh: a check that there is not"
script 'is 1 2 bad' done_testing
is_verdict red "sh: another number"
script 'ok good true'
is_verdict red "sh: no done_testing"
script 'ok good true' 'must false' 'ok good true' done_testing
is_verdict red "sh: a step that fails"
script done_testing
is_verdict red "sh: nothing checked"
script 'ok crash not bash -c "kill -SEGV \$\$"' done_testing
is_verdict red "sh: a crash is no orderly failure"
script 'requires false'
is_verdict skipped "sh: what is missing skips"
is_verdict red "sh: but under STRICT" STRICT=1
is_verdict skipped "sh: unless it is allowed" STRICT=1 \
	"STRICT_ALLOW=x:needs 'false':y"
script 'skip_block 2 "no moon"' done_testing
is_verdict green "sh: skipped checks"
is_verdict red "sh: but under STRICT" STRICT=1

# all that a test prints, and whether that is TAP
script 'ok loud bash -c "echo out; echo err >&2"' 'must echo must' 'echo bare >&2' \
	'cleanup echo late' 'bash -c "kill -KILL \$\$"' 'is 1 1 fine' done_testing
is "ok 1 - loud
ok 2 - fine
1..2" "$("$tmp/t" 2>&1)" "sh: of a test that is green, only TAP is seen"
script 'ok good echo before' 'ok bad bash -c "echo why; exit 1"' done_testing
is "ok 1 - good
not ok 2 - bad
# | why
1..2
# 1 of 2 failed" "$("$tmp/t" 2>&1)" "sh: what failed shows what it printed"
script 'ok good true' 'must bash -c "echo why; exit 1"' done_testing
is "ok 1 - good
not ok 2 - cannot go on: bash -c echo why; exit 1 (status 1)
# | why" "$("$tmp/t" 2>&1)" "sh: so does a step that failed"
script 'ok good true' 'unset nothing; echo $nothing' done_testing
ok "sh: so does a test that ends half way" grep -q "^# | .*nothing: unbound" \
	<<<"$("$tmp/t" 2>&1)"

script "cleanup touch $tmp/one" "cleanup mv $tmp/two $tmp/three" \
	"cleanup touch $tmp/two" 'echo "$tmp" >'"$tmp/name" 'kill $$; sleep 60'
is_verdict red "sh: a signal"
ok "sh: cleanups ran, last first" test -e "$tmp/one" -a -e "$tmp/three"
ok "sh: the test's directory is gone" not test -e "$(<"$tmp/name")"

program 'plan_lazy(); ok(1, "good"); return done();'
is_verdict green "C: what holds"
program 'plan_lazy(); ok(0, "bad"); return done();'
is_verdict red "C: a check that fails"
program 'plan_lazy(); ok(1, "good"); return 0;'
is_verdict red "C: no done()"
program 'plan(2); ok(1, "good"); return done();'
is_verdict red "C: fewer than planned"
program 'plan_lazy(); return done();'
is_verdict red "C: nothing checked"
program 'plan_lazy(); ok(1, "good"); abort();'
is_verdict red "C: a crash"
program 'plan_lazy(); is_blob("abc", "abd", 3, "blob"); return done();'
is_verdict red "C: other bytes"
program 'plan_lazy(); is_string("a", NULL, "string"); return done();'
is_verdict red "C: no string"
program 'skip_all("no %s", "moon");'
is_verdict skipped "C: a skip"
is_verdict red "C: but under STRICT" STRICT=1
is_verdict skipped "C: unless it is allowed" STRICT=1 "STRICT_ALLOW=sun:no moon"
is_verdict red "C: and a prefix is not the reason" STRICT=1 STRICT_ALLOW=no
done_testing
