#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each requirement of src/frwr (r01 to r43 and r08a, tests/frwr/README) and each item of the list of
# its tests (t01 to t28) has a test whose name carries its number, or a line in HACKING that says
# why not.
#
#	check-frwr-rows.sh [DIRECTORY THAT HAS tests/ AND HACKING]
#
# Prints each number that has neither and fails when there is one.  A name is one that runs:
#
#	Test(suite, t03_r19_name)		Criterion, in tests/frwr
#	t04-t15-name				a program: a row of tests/frwr/programs
#	CASE(t16_name)				a case of tests/frwr/device.c
#	TEST(promise_m_t18_name)		the conformance suite
#	test-t27-name.sh, manual-		a script in tests/guest
#
# and a reason in HACKING is a line "<tab>r04<blank>why".
set -eu
root=${1:-${srcdir:-$(dirname "$0")/..}}
cd "$root"
[ -d tests/frwr ] && [ -f HACKING ] ||
	{ echo "$0: $root: neither tests/frwr nor HACKING"; exit 99; }

# One name a line.
names() {
	cat tests/frwr/*.c | sed -n 's/^Test([a-z_]*, *\([a-z0-9_]*\)[,)].*/\1/p'
	sed -n 's/^\([a-z0-9-]*\) .*/\1/p' tests/frwr/programs
	sed -n 's/^	CASE(\([a-z0-9_]*\)).*/\1/p' tests/frwr/device.c
	sed -n 's/^	TEST(promise_[a-z]_\([a-z0-9_]*\)).*/\1/p' tests/fabric/conformance.c
	ls tests/guest | sed -n 's,^\(test\|manual\)-\([a-z0-9-]*\)\.sh$,\2,p'
	sed -n 's/^	\([rt][0-9][0-9]a\{0,1\}\) .*/\1/p' HACKING
}

# The numbers at the head of each name.
have=" $(names | tr - _ | awk -F_ '{
	for (i = 1; i <= NF && $i ~ /^[rt][0-9][0-9]a?$/; i++)
		print $i
}' | sort -u | tr '\n' ' ')"

want() {
	for n in 01 02 03 04 05 06 07 08 08a 09 $(seq 10 43); do
		echo "r$n"
	done
	for n in 01 02 03 04 05 06 07 08 09 $(seq 10 28); do
		echo "t$n"
	done
}

failed=0
for row in $(want); do
	case $have in
	*" $row "*) ;;
	*) echo "$row: no test carries this number, and HACKING does not say why"; failed=1 ;;
	esac
done
exit $failed
