#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What is built has the protections that configure adds: position independent, relocations that are
# read-only from the start, stack protector, _FORTIFY_SOURCE, CET, and a stack that cannot be run
# and is probed page by page.
. ./tests/functions.sh
requires readelf --version
requires_plain_build	# sanitizers have flags of their own
grep -q '^HARDENING = yes$' Makefile || skip "configured with --disable-hardening"

# reads PATTERN OPTION...: what readelf says of $file has a line with PATTERN.
reads() {
	local pattern=$1
	shift
	readelf -W "$@" "$file" 2>/dev/null >"$tmp/read"
	grep -q -E -e "$pattern" "$tmp/read" || fail "$file: readelf $* has no $pattern"
}

compiled_with=(-fstack-protector-strong -fstack-clash-protection)
[ "$(uname -m)" != x86_64 ] || compiled_with+=(-fcf-protection)
built=0
for file in rtrs-server rtrs-nbd rtrsctl rtrs-bench rtrs-psk .libs/nbdkit-rtrs-plugin.so; do
	[ -f "$file" ] || continue
	built=$((built + 1))
	reads 'Type: +DYN ' --file-header
	[ "${file%.so}" != "$file" ] || reads 'FLAGS_1.* PIE' --dynamic
	reads 'FLAGS_1.* NOW' --dynamic
	reads ' GNU_RELRO ' --program-headers
	reads ' GNU_STACK .* RW ' --program-headers
	reads ' __stack_chk_fail' --dyn-syms
	# Without optimisation there is none, and with sanitizers there is to be none.
	if [ "$SANITIZERS" = no ] && grep -q -E '^CFLAGS = .*-O[1-3s]' Makefile; then
		reads ' __[a-z]+_chk(@|$)' --dyn-syms
	fi
	# GCC writes into the debugging information of each file how it was compiled.
	readelf --debug-dump=info "$file" 2>/dev/null >"$tmp/read"
	sed -n 's/.*DW_AT_producer.*\(GNU C[0-9 ]\)/\1/p' "$tmp/read" | sort -u >"$tmp/compiled"
	for flag in "${compiled_with[@]}"; do
		must_fail grep -v -e "$flag" "$tmp/compiled"
	done
done
[ $built -gt 0 ] || fail "nothing is built"
