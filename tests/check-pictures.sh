#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The pictures in doc/ show what they say: state machines the tables in the code, demo and
# top their recordings.
set -u
bad=0
doc=${srcdir:-.}/doc
# same FILE COMMAND...
same() {
	picture=$doc/$1.dot
	shift
	"$@" | cmp - "$picture" || { echo "$picture is not what the table says: make doc"; bad=1; }
}
for t in session path connection service device handshake queue; do
	same fsm-$t ./doc/fsm-dot $t
done
for t in path connection handshake lead; do
	same fsm-server-$t ./doc/fsm-dot-server $t
done
"$doc/demo-svg.py" "$doc/demo.csv" | cmp - "$doc/demo.svg" ||
	{ echo "demo.svg is not of demo.csv: make demo"; bad=1; }
"$doc/top-svg.py" "$doc/top.rec" | cmp - "$doc/top.svg" ||
	{ echo "top.svg is not of top.rec: make demo"; bad=1; }
"$doc/../bench/plots.py" "$doc/speed.csv" | cmp - "$doc/speed.svg" ||
	{ echo "speed.svg is not of speed.csv: make plots"; bad=1; }
exit $bad
