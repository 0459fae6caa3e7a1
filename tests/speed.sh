#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# How long this machine takes, in percent of the machine that the tests' time limits are made for:
# 100 to 1600.  make check writes this into tests/speed, once for a build directory, and limits grow
# by it, so that a slow machine is slow and no test fails there for it.  The best of three, because
# others may work meanwhile.
set -eu
reference_us=500000		# of that machine, for what is measured here
best=
for _ in 1 2 3; do
	begin=${EPOCHREALTIME/./}
	for ((i = 0; i < 200000; i++)); do
		:
	done
	us=$((${EPOCHREALTIME/./} - begin))
	[ -n "$best" ] && [ "$us" -ge "$best" ] || best=$us
done
percent=$((best * 100 / reference_us))
[ $percent -ge 100 ] || percent=100
[ $percent -le 1600 ] || percent=1600
echo $percent
