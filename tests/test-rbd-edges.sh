#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Edges of images of a Ceph: a write behind the end of one that became smaller fails, a walk over
# extents that fails reports no hole, and LUKS of the first version.
. ./tests/functions.sh
requires_server; requires_plugin
requires_plain_build
requires nbdsh --version
. "$top_srcdir/tests/ceph.sh"
at() { echo "nbd+unix:///$1?socket=$sock"; }

ceph_start
image shrinks 16M
image walk 16M
image luks 16M
printf 'a passphrase' >"$tmp/key"
rbd_ encryption format rbd/luks luks1 "$tmp/key"
start_server "shrinks=$(image_spec shrinks)" "walk=$(image_spec walk)" \
	"luks=$(image_spec luks),luks=$tmp/key"
start_nbdkit "server=127.0.0.1:$server_port"

nbdsh_run "$(at shrinks)" <<-'PY'
import os, subprocess
h.pwrite(b"a" * 4096, 12 << 20)
subprocess.run("rbd resize --no-progress --allow-shrink --size 8M rbd/shrinks", shell=True,
               check=True, timeout=60)
def fails(call):
    must_fail(call, "EIO ENOSPC", "what lies behind the end is answered")
fails(lambda: h.pwrite(b"b" * 4096, 12 << 20))
fails(lambda: h.pwrite(b"b" * 8192, (8 << 20) - 4096))
fails(lambda: h.zero(4096, 12 << 20))
h.pwrite(b"c" * 4096, (8 << 20) - 4096)
assert h.pread(4096, (8 << 20) - 4096) == b"c" * 4096
PY

# The cluster fences the server between two questions.
nbdsh_run "$(at luks)" <<-'PY'
h.pwrite(b"f" * 4096, 1 << 20)
h.flush()
assert h.pread(4096, 1 << 20) == b"f" * 4096
PY
image_export luks "$tmp/image"
head -c 4 "$tmp/image" | grep -q LUKS
must_fail grep -q -a ffffffffff "$tmp/image"

# Each placement group of an osd learns of the fence by itself: the header may be fenced before the
# objects are.
owner=$(rbd_ lock ls rbd/walk | awk '/^client/ { print $NF }')
nbdsh_run "$(at shrinks)" <<-PY
import subprocess, time
h = nbd.NBD()
h.add_meta_context("base:allocation")
h.connect_uri("$(at walk)")
def holes():
    found = []
    h.block_status(16 << 20, 0, lambda context, offset, e, error: found.extend(e))
    return any(found[1::2])
def fenced():
    try:
        h.pread(4096, 0)
    except nbd.Error:
        return True
    return False
def wait_until(what, holds):
    end = time.monotonic() + 30
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(what)
        time.sleep(0.05)
h.pwrite(b"w" * 4096, 0)
assert holes(), "no hole"
subprocess.run("timeout 60 ceph osd blocklist add $owner", shell=True, check=True)
wait_until("the server is not fenced", fenced)
wait_until("a hole that nobody has seen", lambda: not holes())
PY
