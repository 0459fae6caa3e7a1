#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=7.3 smp=4 clock=instructions timeout=300 full
# p41: rnbd-client on a preemptible kernel gives EIO under min-inflight and min-latency while its path to the
# kernel's own server is connected (doc/traps.md 41); with round-robin it does not.
#
# The test fails on the day that Linux is mended: then the advice in rtrs-guide(7) and README goes, and
# rnbd_map (lib.sh) sets no policy.  Of parallel requests some 20 to 40 in 100 failed when this was written, so
# none of the thousands here is no chance.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires fio --version

# Keys that stay: what is watched here are the client's paths.
modprobe rtrs-server always_invalidate=N
modprobe -a rnbd-client rnbd-server null_blk
nreads=2048

# The reads of fio that had no error.
good_reads() {
	python3 -c 'import json, sys
print(sum(job["read"]["io_bytes"] for job in json.load(open(sys.argv[1]))["jobs"]) // 4096)' "$tmp/fio.json"
}

# reads POLICY: set nfailed to the number of $nreads parallel reads of $dev that fail, with the path connected
# from the first to the last.  A path that is lost says nothing of policies.
reads() {
	local lost

	echo "$1" >"$rtrs_sysfs/policy/mpath_policy"
	lost=$(dmesg | grep -c "Device disconnected" || true)
	fio --name=reads --filename="$dev" --direct=1 --ioengine=libaio --iodepth=16 --numjobs=4 \
		--rw=randread --bs=4k --size=$((nreads << 10)) --continue_on_error=all \
		--output-format=json --output="$tmp/fio.json" || true
	[ "$(dmesg | grep -c "Device disconnected" || true)" -eq "$lost" ] ||
		skip "the path was lost while the reads ran"
	rnbd_connected policy
	nfailed=$((nreads - $(good_reads)))
	echo "$1: $nfailed of $nreads reads failed"
}

rnbd_map policy /dev/nullb0
for policy in min-inflight min-latency; do
	reads $policy
	[ $nfailed -gt 0 ] || fail "$policy is mended in $(uname -r): see the head of this test"
done
reads round-robin
[ $nfailed -eq 0 ] || fail "round-robin has the fault, too"
rnbd_unmap "$dev"
modprobe -r rnbd-server
