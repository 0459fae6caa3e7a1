#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check-frwr-rows.sh sees names of each kind, and neither comments nor what does not run.
set -u
check=$(cd "${srcdir:-$(dirname "$0")/..}/tests" && pwd)/check-frwr-rows.sh
tree=$(mktemp -d) || exit 99
trap 'rm -rf "$tree"' EXIT
failed=0

# r01-r20, r08a and t01-t10 Criterion, t11-t15 programs, r21-r43 reasons
fresh_tree() {
	rm -rf "${tree:?}"/*
	mkdir -p "$tree/tests/frwr"
	for n in 01 02 03 04 05 06 07 08 09 10; do
		printf 'Test(frwr_a, t%s_r%s_x)\n' $n $n
	done > "$tree/tests/frwr/test-a.c"
	for n in 08a 11 12 13 14 15 16 17 18 19 20; do
		printf 'Test(frwr_b, r%s_x, .signal = SIGABRT)\n' $n
	done > "$tree/tests/frwr/test-b.c"
	printf 'PROGRAMS = %%D%%/t11-t12-t13-x %%D%%/t14-t15-x\n' > "$tree/tests/frwr/local.mk"
	for n in $(seq 21 43); do
		printf '\tr%s not here\n' "$n"
	done > "$tree/HACKING"
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

# spoil ROW FILE SED-EXPRESSION: what it does takes this one away, and no other
spoil() {
	fresh_tree
	sed "$3" "$tree/$2" > "$tree/new" && mv "$tree/new" "$tree/$2"
	expect_missing "$1"
}

fresh_tree
out=$(sh "$check" "$tree" 2>&1) || { echo "a whole tree was refused: $out"; failed=1; }
spoil r07 tests/frwr/test-a.c 's,_r07_,_,'
spoil t07 tests/frwr/test-a.c 's,t07_r07,r07,'
spoil r07 tests/frwr/test-a.c 's,t07_r07,t07_x_r07,'
spoil r13 tests/frwr/test-b.c 's,.*r13.*,/* & */,'
spoil r13 tests/frwr/test-b.c 's,r13,r13x,'
spoil r08a tests/frwr/test-b.c 's,r08a,r08,'
spoil t12 tests/frwr/local.mk 's,t12-,,'
spoil r30 HACKING 's,^	r30,see r30,'
spoil r30 HACKING 's,^	r30 .*,	r30,'
fresh_tree
: > "$tree/tests/frwr/local.mk"
expect_missing 't11
t12
t13
t14
t15'
sh "$check" "$tree/none" >/dev/null 2>&1 && { echo "a tree that does not exist"; failed=1; }
exit $failed
