#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# rtrsctl and a server whose sessions have two paths: what is said to a session is done to all its
# paths and to no other session, and what is said to all is done to all.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

rtrsctl=$top_builddir/rtrsctl

truncate -s 8M "$tmp/disk"
start_server --listen tcp://127.0.0.1:0 --listen tcp://127.0.0.2:0 "disk=$tmp/disk"
first=127.0.0.1:$server_port
second=$(sed -n 's,.*tcp://\(127\.0\.0\.2:[0-9]*\)$,\1,p' "$server_log" | head -n 1)
start_nbdkit "$first" path="$second" export=disk transport=tcp sessname=one mode=ro \
	policy=round-robin control=none
uri1=$uri
start_nbdkit "$first" path="$second" export=disk transport=tcp sessname=two mode=ro \
	policy=round-robin control=none
export uri1 uri

# Both open it, and read over both paths.
nbdsh_run "$uri1" <<'END'
import json, os, subprocess, time

def ask(*args):
    subprocess.run(["./rtrsctl", *args], check=True)

def paths():
    out = subprocess.run(["./rtrsctl", "--json", "stats"], stdout=subprocess.PIPE, check=True).stdout
    return {s["name"]: {p["dst_addr"]: p for p in s["paths"] if p["state"] == "connected"}
            for s in json.loads(out)["sessions"] if s["devices"]}

def wait_for_four():
    while [len(paths().get(n, [])) for n in ("one", "two")] != [2, 2]:
        time.sleep(0.05)

def counts(op):
    return sorted(p["stats"][op]["count"] for s in paths().values() for p in s.values())

h2 = nbd.NBD()
h2.connect_uri(os.environ["uri"])
wait_for_four()
for i in range(64):
    assert h.pread(4096, i * 4096) == bytes(4096)
    assert h2.pread(4096, i * 4096) == bytes(4096)
before = counts("read")
assert len(before) == 4 and before[0] > 0, before
ask("stats", "reset")
assert counts("read") == [0] * 4, counts("read")

# One session is cut, with both its paths, and the other one with none.
before = {n: {p["src_addr"] for p in s.values()} for n, s in paths().items()}
ask("session", "disconnect", "one")
assert h.pread(4096, 0) == bytes(4096)
wait_for_four()
after = {n: {p["src_addr"] for p in s.values()} for n, s in paths().items()}
assert not before["one"] & after["one"], (before, after)
assert before["two"] == after["two"], (before, after)

# One path is cut, and no other.
name = next(iter(paths()["two"].values()))["name"]
ask("path", "disconnect", name)
for i in range(4):
    assert h2.pread(4096, 0) == bytes(4096)
wait_for_four()
again = {n: {p["src_addr"] for p in s.values()} for n, s in paths().items()}
assert len(after["two"] & again["two"]) == 1 and after["one"] == again["one"], (after, again)

# The export is taken away from both.
ask("export", "kick", "disk")
for c in h, h2:
    for i in range(4):
        try:
            c.pread(4096, 0)
            raise SystemExit("a request of one who was kicked did not fail")
        except nbd.Error:
            pass
END
is "paths that rtrsctl cut" "$(grep -c 'path down: disconnected by rtrsctl$' "$server_log")" 3
is "and of session one" "$(grep -c 'one/.*path down: disconnected by rtrsctl$' "$server_log")" 2
