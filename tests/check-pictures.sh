#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The pictures of the state machines in doc/ are those of the tables in the code.
set -u
bad=0
# same FILE COMMAND...
same() {
	picture=${srcdir:-.}/doc/$1.dot
	shift
	"$@" | cmp - "$picture" || { echo "$picture is not what the table says: make doc"; bad=1; }
}
for t in session path connection; do
	same fsm-$t ./doc/fsm-dot $t
done
for t in path connection; do
	same fsm-server-$t ./doc/fsm-dot-server $t
done
exit $bad
