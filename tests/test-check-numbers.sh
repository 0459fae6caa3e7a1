#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check-pitfalls.sh and check-frwr-rows.sh see names of each kind, and neither comments nor what
# does not run.
set -u
tests=$(cd "${srcdir:-$(dirname "$0")/..}/tests" && pwd)
tree=$(mktemp -d) || exit 99
trap 'rm -rf "$tree"' EXIT
failed=0

# p01-p10 Criterion, p11-p20 simulation, p21-p25 hostile, p26 conformance, p27 and p28 scripts,
# p29-p41 the manual
pitfalls_tree() {
	mkdir -p "$tree/man" "$tree/tests/unit" "$tree/tests/sim" "$tree/tests/hostile" \
		"$tree/tests/fabric" "$tree/tests/guest"
	printf 'Test(a, p%s_x)\n' 01 02 03 04 05 06 07 > "$tree/tests/unit/test-a.c"
	printf 'Test(a_b, p08_p09_p10_x, .signal = SIGABRT)\n' > "$tree/tests/unit/test-b.c"
	printf '\t\t{ "p%s-x", test_x },\n' 11 12 13 14 15 16 17 18 19 20 > \
		"$tree/tests/sim/test-sim-a.c"
	printf '\t{ "p%s x", READ },\n' 21 22 23 24 25 > "$tree/tests/hostile/cases-a.c"
	printf '\tTEST(promise_e_p26_x),\n' > "$tree/tests/fabric/conformance.c"
	: > "$tree/tests/guest/test-p27-p28-x.sh"
	printf '=item p%s\n\nno hardware\n\n' 29 30 31 32 33 34 35 36 37 38 39 40 41 > \
		"$tree/man/rtrs-protocol.pod"
}

# r01-r20, r08a and t01-t10 Criterion, t11-t15 programs, t16-t26 cases but for t18 and t20,
# conformance, t27 and t28 scripts, r21-r43 reasons
rows_tree() {
	mkdir -p "$tree/tests/frwr" "$tree/tests/fabric" "$tree/tests/guest"
	for n in 01 02 03 04 05 06 07 08 09 10; do
		printf 'Test(frwr_a, t%s_r%s_x)\n' "$n" "$n"
	done > "$tree/tests/frwr/test-a.c"
	for n in 08a 11 12 13 14 15 16 17 18 19 20; do
		printf 'Test(frwr_b, r%s_x, .signal = SIGABRT)\n' "$n"
	done > "$tree/tests/frwr/test-b.c"
	printf '%s  base clock\n' t11-t12-t13-x t14-t15-x > "$tree/tests/frwr/programs"
	printf '\tCASE(t%s_x),\n' 16 17 19 21 22 23 24 25 26 > "$tree/tests/frwr/device.c"
	printf '\tTEST(promise_m_t%s_x),\n' 18 20 > "$tree/tests/fabric/conformance.c"
	: > "$tree/tests/guest/test-t27-x.sh"
	: > "$tree/tests/guest/manual-t28-x.sh"
	for n in $(seq 21 43); do
		printf '\tr%s not here\n' "$n"
	done > "$tree/HACKING"
}

fresh_tree() {
	rm -rf "${tree:?}"/*
	"${what}_tree"
}

expect_missing() {
	if out=$(sh "$check" "$tree" 2>&1); then
		echo "$what: not missed: $1"
		failed=1
	elif [ "$(printf '%s\n' "$out" | cut -d : -f 1)" != "$1" ]; then
		echo "$what: expected $1 to be missing, got: $out"
		failed=1
	fi
}

# spoil NUMBER FILE SED-EXPRESSION: what it does takes this one away, and no other
spoil() {
	fresh_tree
	sed "$3" "$tree/$2" > "$tree/new" && mv "$tree/new" "$tree/$2"
	expect_missing "$1"
}

# begin WHAT SCRIPT: it accepts a whole tree, and none that is not there
begin() {
	what=$1 check=$tests/$2
	fresh_tree
	out=$(sh "$check" "$tree" 2>&1) ||
		{ echo "$what: a whole tree was refused: $out"; failed=1; }
	sh "$check" "$tree/none" >/dev/null 2>&1 &&
		{ echo "$what: a tree that does not exist"; failed=1; }
}

begin pitfalls check-pitfalls.sh
spoil p07 tests/unit/test-a.c '/p07/d'
spoil p07 tests/unit/test-a.c 's,.*p07.*,/* & */,'
spoil p07 tests/unit/test-a.c 's,p07,x_p07,'
spoil p07 tests/unit/test-a.c 's,p07,p07x,'
spoil p09 tests/unit/test-b.c 's,p09,x,;s,p08_x_p10,p10_p08,'
spoil p14 tests/sim/test-sim-a.c 's,.*p14.*,// &,'
spoil p14 tests/sim/test-sim-a.c 's,.*p14.*,	CHECK("p14-x");,'
spoil p22 tests/hostile/cases-a.c 's,p22 x,x p22,'
spoil p26 tests/fabric/conformance.c 's,TEST,/* TEST,'
spoil p29 man/rtrs-protocol.pod 's,^=item p29,see p29,'
fresh_tree
mv "$tree/tests/guest/test-p27-p28-x.sh" "$tree/tests/guest/p27-p28-x.sh"
expect_missing 'p27
p28'

begin rows check-frwr-rows.sh
spoil r07 tests/frwr/test-a.c 's,_r07_,_,'
spoil t07 tests/frwr/test-a.c 's,t07_r07,r07,'
spoil r07 tests/frwr/test-a.c 's,t07_r07,t07_x_r07,'
spoil r13 tests/frwr/test-b.c 's,.*r13.*,/* & */,'
spoil r13 tests/frwr/test-b.c 's,r13,r13x,'
spoil r08a tests/frwr/test-b.c 's,r08a,r08,'
spoil t12 tests/frwr/programs 's,t12-,,'
spoil t17 tests/frwr/device.c 's,.*t17.*,// &,'
spoil t18 tests/fabric/conformance.c 's,TEST(promise_m_t18,/* &,'
fresh_tree
mv "$tree/tests/guest/manual-t28-x.sh" "$tree/tests/guest/manual-t28-x.txt"
expect_missing t28
spoil r30 HACKING 's,^	r30,see r30,'
spoil r30 HACKING 's,^	r30 .*,	r30,'
fresh_tree
: > "$tree/tests/frwr/programs"
expect_missing 't11
t12
t13
t14
t15'
exit $failed
