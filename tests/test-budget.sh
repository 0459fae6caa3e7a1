#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The script that counts the system calls of a read (doc/speed.md) counts them: no end sends or
# receives more than once for each, one read after the other or many at a time, and the table in
# doc/ names all calls that there are.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version
requires strace -V
[ "$SANITIZERS" = no ] && [ -z "${VALGRIND_TESTS-}" ] ||
	skip "sanitizers and valgrind make system calls of their own"
strace -o "$tmp/true" true || skip "strace may not look at processes here"

export top_builddir
"$top_srcdir/bench/budget.py" --reads=200 | tee "$tmp/budget"
/usr/bin/python3 - "$tmp/budget" "$top_srcdir/doc/speed.md" <<'END'
import re
import sys
alone, many = {}, {}
for line in open(sys.argv[1]):
    cells = [cell.strip() for cell in line.strip("|\n").split("|")]
    if cells[0] in ("rtrs-server", "nbdkit-rtrs"):
        alone[cells[0], cells[1]], many[cells[0], cells[1]] = float(cells[2]), float(cells[3])
for process in ("rtrs-server", "nbdkit-rtrs"):
    for call in ("sendmsg", "recvmsg"):
        # A thread that is slow to sleep may find the next one there.
        assert 0.5 <= alone[process, call] <= 1.1, (process, call, alone)
        assert many[process, call] <= 1.1, (process, call, many)
assert alone["nbdkit-rtrs", "all"] <= 14 and alone["rtrs-server", "all"] <= 6, alone
section = open(sys.argv[2]).read().split("## The budget of one read", 1)[1].split("\n## ", 1)[0]
named = set(re.findall(r"`(\w+)`", section))
missing = {call for calls in (alone, many) for (_, call), n in calls.items() if call != "all" and n >= 0.5} - named
assert not missing, missing
END
