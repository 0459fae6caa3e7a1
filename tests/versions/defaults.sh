#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# NEWS names each option whose default is another one than before.
. ./tests/functions.sh
. "$top_srcdir/tests/versions/lib.sh"
requires_gateway

programs=(rtrs-server rtrs-nbd rtrsctl rtrs-bench rtrs-psk)
# named NEWS-OF-BEFORE NEWS
named() {
	python3 "$top_srcdir/tests/versions/defaults.py" "$BEFORE_BUILD" "$now_build" "$1" "$2" \
		"${programs[@]}" | tee "$tmp/out"
}
named "$BEFORE_BUILD/../NEWS" "$top_srcdir/NEWS"
compared=$(sed -n 's/^defaults compared: //p' "$tmp/out")
[ "$compared" -ge 50 ] || fail "$compared defaults were compared, expected 50 or more"
# With a NEWS that says nothing new each changed default is missing.
! grep -q ': in NEWS' "$tmp/out" || must_fail named "$top_srcdir/NEWS" "$top_srcdir/NEWS"
