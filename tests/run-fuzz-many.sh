#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# run-fuzz-many.sh TARGET RUNS: that many inputs for one fuzz target, a share on each processor,
# each with a seed of its own.  The rest is run-fuzz.sh's.
set -u
target=$1 runs=$2
here=$(dirname "$0")
jobs=$(nproc)
seed=${FUZZ_SEED:-$$}
logs=$(mktemp -d) || exit 99
pids='' job=0
trap 'rm -rf "$logs"' EXIT
# shellcheck disable=SC2086 # words
trap 'kill $pids; exit 143' TERM INT HUP
echo "$jobs times $(((runs + jobs - 1) / jobs)) inputs; on the way: $logs"
while [ $job -lt "$jobs" ]; do
	FUZZ_RUNS=$(((runs + jobs - 1) / jobs)) FUZZ_SEED=$((seed + job)) \
		sh "$here/run-fuzz.sh" "$target" >"$logs/$job" 2>&1 &
	pids="$pids $!" job=$((job + 1))
done
# A share that finds something ends alone: the others go on, and tell what they find.
status=0 job=0
for pid in $pids; do
	wait "$pid" || { status=$?; tail -n 60 "$logs/$job"; }
	grep -h '^Done ' "$logs/$job"
	job=$((job + 1))
done
exit $status
