#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Run one fuzz target, FUZZ_RUNS inputs (20000), over its corpus: fuzz-X.fuzz reads
# tests/fuzz/corpus/X.
set -u
. "$(dirname "$0")/timeout.sh"
limit=${FUZZ_TIMEOUT:-$(test_timeout 900)} since=$(date +%s)
srcdir=${srcdir:-$(dirname "$0")/..}
name=${1##*/fuzz-}
corpus=$srcdir/tests/fuzz/corpus/${name%.fuzz}
[ -d "$corpus" ] || { echo "$0: no corpus directory $corpus"; exit 99; }

# libFuzzer writes what it finds into the first directory: never into the source tree.
found=$(mktemp -d) || exit 99
trap 'rm -rf "$found"' EXIT
# shellcheck disable=SC2086 # FUZZ_FLAGS is words
timeout -k 30 "$limit" "$1" -runs="${FUZZ_RUNS:-20000}" -seed="${FUZZ_SEED:-1}" \
	${FUZZ_FLAGS:-} "$found" "$corpus" &
# Whoever ends this script ends the target, too, which may have hours to go.
trap 'kill $!; exit 143' TERM INT HUP
wait $!
status=$?
test_timeout_say "$1" "$limit" $status "$since"
exit $status
