#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Tests of files, with an image of a Ceph in the place of each file: copies, load that verifies,
# paths that fail, clients that are hostile, a server that stops with requests in flight.  Slow: all
# of them with check.sh --full=rbd, and without it a few.
. ./tests/functions.sh
requires_server; requires_plugin
requires_plain_build
. "$top_srcdir/tests/ceph.sh"

few=(qemu-img sigterm-inflight)
all=(qemu-img sigterm-inflight qemu-io multi-conn zero-length fio-verify readonly large past-end
	idle nbdcopy two-exports hostile)
[ -n "${RBD_FAULTS-}" ] || all=("${few[@]}")

ceph_start
failed=''
for name in "${all[@]}"; do
	status=0
	EXPORT_IMAGES=yes bash "$top_srcdir/tests/test-$name.sh" \
		</dev/null >"$tmp/$name.out" 2>&1 || status=$?
	echo "$name: $status"
	[ $status -eq 0 ] || [ $status -eq 77 ] || {
		failed="$failed $name"
		tail -n 60 "$tmp/$name.out"
	}
	# It did not take the file all the same.
	[ $status -ne 0 ] || grep -q "exports Ceph image 'rbd:rbd/" "$tmp/$name.out" ||
		grep -q '=rbd:rbd/' "$tmp/$name.out" || failed="$failed $name(file)"
done
[ -z "$failed" ] || fail "on images:$failed"
