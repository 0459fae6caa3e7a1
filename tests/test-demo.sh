#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# make demo, in a third of the time and beside the picture that is in the tree.
. ./tests/functions.sh
requires_server; requires_plugin; requires_plain_build
status=0
"$top_srcdir/doc/demo-record.sh" "$tmp/demo.csv" 1000 3500 7000 7500 10000 || status=$?
[ $status -ne 77 ] || skip "doc/demo-record.sh was skipped"
[ $status -eq 0 ]
"$top_srcdir/doc/demo-svg.py" "$tmp/demo.csv" >"$tmp/demo.svg"
python3 - "$tmp/demo.csv" "$tmp/demo.svg" <<'END'
import sys, xml.dom.minidom
with open(sys.argv[1]) as f:
    lines = f.read().splitlines()
events = dict(line[2:].split(",", 1) for line in lines if line.startswith("# "))
times = [float(events[name]) for name in ("pull", "lost", "plug", "again", "kill", "start", "both")]
assert times == sorted(times), times
rows = [line.split(",") for line in lines if line[0].isdigit()]
assert 95 <= len(rows) <= 105, len(rows)

def total(column, begin, end):
    return sum(int(row[column]) for row in rows if begin <= float(row[0]) < end - .2)

# Bytes are those of the cables: nothing goes over the one that is cut, nothing is answered by the
# dead.
_, lost, plug, _, kill, _, _ = times
assert total(4, lost, plug) < 100_000 < 1_000_000 < total(5, lost, plug)
assert total(1, kill + .1, kill + .6) == 0
picture = xml.dom.minidom.parse(sys.argv[2])
assert len(picture.getElementsByTagName("circle")) == 2
END
