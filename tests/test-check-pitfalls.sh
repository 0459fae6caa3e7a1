#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check-pitfalls.sh sees names of each kind, and neither comments nor what does not run.
set -u
check=$(cd "${srcdir:-$(dirname "$0")/..}/tests" && pwd)/check-pitfalls.sh
tree=$(mktemp -d) || exit 99
trap 'rm -rf "$tree"' EXIT
failed=0

# 01-10 Criterion, 11-20 simulation, 21-25 hostile, 26 conformance, 27 and 28 scripts, 29-38 the manual
fresh_tree() {
	rm -rf "${tree:?}"/*
	mkdir -p "$tree/man" "$tree/tests/unit" "$tree/tests/sim" "$tree/tests/hostile" \
		"$tree/tests/fabric" "$tree/tests/guest"
	printf 'Test(a, p%s_x)\n' 01 02 03 04 05 06 07 > "$tree/tests/unit/test-a.c"
	printf 'Test(a_b, p08_p09_p10_x, .signal = SIGABRT)\n' > "$tree/tests/unit/test-b.c"
	printf '\t\t{ "p%s-x", test_x },\n' 11 12 13 14 15 16 17 18 19 20 > "$tree/tests/sim/test-sim-a.c"
	printf '\t{ "p%s x", READ },\n' 21 22 23 24 25 > "$tree/tests/hostile/cases-a.c"
	printf '\tTEST(promise_e_p26_x),\n' > "$tree/tests/fabric/conformance.c"
	printf '\t%%D%%/test-p27-p28-x.sh \\\n' > "$tree/tests/guest/local.mk"
	echo > "$tree/tests/local.mk"
	printf '=item p%s\n\nno hardware\n\n' 29 30 31 32 33 34 35 36 37 38 > "$tree/man/rtrs-protocol.pod"
}

expect_missing() {
	if out=$(sh "$check" "$tree" 2>&1); then
		echo "not missed: $1"
		failed=1
	elif [ "$(printf '%s\n' "$out" | cut -d : -f 1)" != "$1" ]; then
		echo "expected $1 to be missing, got: $out"
		failed=1
	fi
}

# spoil NUMBER FILE SED-EXPRESSION: what it does takes this one away, and no other
spoil() {
	fresh_tree
	sed "$3" "$tree/$2" > "$tree/new" && mv "$tree/new" "$tree/$2"
	expect_missing "p$1"
}

fresh_tree
out=$(sh "$check" "$tree" 2>&1) || { echo "a whole tree was refused: $out"; failed=1; }
spoil 07 tests/unit/test-a.c '/p07/d'
spoil 07 tests/unit/test-a.c 's,.*p07.*,/* & */,'
spoil 07 tests/unit/test-a.c 's,p07,x_p07,'
spoil 07 tests/unit/test-a.c 's,p07,p07x,'
spoil 09 tests/unit/test-b.c 's,p09,x,;s,p08_x_p10,p10_p08,'
spoil 14 tests/sim/test-sim-a.c 's,.*p14.*,// &,'
spoil 14 tests/sim/test-sim-a.c 's,.*p14.*,	CHECK("p14-x");,'
spoil 22 tests/hostile/cases-a.c 's,p22 x,x p22,'
spoil 26 tests/fabric/conformance.c 's,TEST,/* TEST,'
spoil 29 man/rtrs-protocol.pod 's,^=item p29,see p29,'
fresh_tree
: > "$tree/tests/guest/local.mk"
: > "$tree/tests/guest/test-p27-p28-x.sh"
expect_missing 'p27
p28'
sh "$check" "$tree/none" >/dev/null 2>&1 && { echo "a tree that does not exist"; failed=1; }
exit $failed
