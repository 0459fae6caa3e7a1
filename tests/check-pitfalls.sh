#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Each of the 41 traps of RTRS, RNBD and NBD (doc/traps.md) has a test whose name carries its number
# (p07), or an item in man/rtrs-protocol.pod that says why it has none.
#
#	check-pitfalls.sh [DIRECTORY THAT HAS tests/ AND man/]
#
# Prints each number that has neither and fails when there is one.  A name is one that runs:
#
#	Test(suite, p07_name)			Criterion
#	{ "p07-name", function }		a row of a table in tests/sim or tests/hostile
#	TEST(promise_e_p07_name)		the conformance suite
#	test-p07-name.sh			a script in tests or tests/guest
#
# and may carry several numbers one after the other.
set -eu
root=${1:-${srcdir:-$(dirname "$0")/..}}
cd "$root"
[ -d tests ] && [ -f man/rtrs-protocol.pod ] ||
	{ echo "$0: $root: neither tests/ nor man/rtrs-protocol.pod"; exit 99; }

# One name a line.  Rows of tables only where the table is one of tests.
names() {
	cat tests/unit/*.c | sed -n 's/^Test([a-z_]*, *\([a-z0-9_]*\)[,)].*/\1/p'
	cat tests/sim/test-sim-*.c tests/hostile/cases-*.c |
		sed -n 's/^	*{ "\([^"]*\)",.*/\1/p'
	sed -n 's/^	TEST(promise_[a-z]_\([a-z0-9_]*\)).*/\1/p' tests/fabric/conformance.c
	ls tests tests/guest | sed -n 's,^test-\(p[0-9][0-9][a-z0-9-]*\)\.sh$,\1,p'
	sed -n 's/^=item \(p[0-9][0-9]\)$/\1/p' man/rtrs-protocol.pod
}

# The numbers at the head of each name.
numbers() {
	names | while IFS= read -r name; do
		while :; do
			case $name in
			p[0-9][0-9] | p[0-9][0-9][-_\ ]*) ;;
			*) break ;;
			esac
			n=${name%"${name#???}"}
			echo "$n"
			name=${name#???}
			name=${name#?}
		done
	done | sort -u
}

have=" $(numbers | tr '\n' ' ')"
failed=0 n=1
while [ $n -le 41 ]; do
	p=$(printf 'p%02d' $n)
	case $have in
	*" $p "*) ;;
	*) echo "$p: no test carries this number, and man/rtrs-protocol.pod does not say why"; failed=1 ;;
	esac
	n=$((n + 1))
done
exit $failed
