#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What TLS costs where the kernel can make the records: rtrs-bench and rtrs-server, over TCP in plain, over TLS by GnuTLS,
and over kTLS, one after the other for each row in each round.  Runs in a guest (make bench-ktls), where one kernel has
both ends; its processors are emulated, so only the ratios within a round tell anything, and those not of hardware."""

import argparse
import json
import os
import re
import select
import statistics
import subprocess
import sys
import tempfile

from targets import interval

ROWS = [("4k-randread-qd1", "randread", "4K", 1), ("4k-randread-qd32", "randread", "4K", 32),
        ("128k-read-qd16", "read", "128K", 16), ("128k-write-qd16", "write", "128K", 16)]
KINDS = ["plain", "tls", "ktls"]


def start_server(kind, keys, log):
    rd, wr = os.pipe()
    tls = [] if kind == "plain" else ["--tls=require", "--tls-psk=" + keys, "--tls-ktls=" + ("auto" if kind == "ktls" else "off")]
    server = subprocess.Popen(["./rtrs-server", "--listen", "tcp://127.0.0.1:0", "--control", "none", "--log-level=debug",
                               "--ready-fd", str(wr)] + tls + ["disk=mem:64M"], stdout=log, stderr=log, pass_fds=(wr,))
    os.close(wr)
    if not select.select([rd], [], [], 60)[0] or not os.read(rd, 64):
        raise SystemExit("rtrs-server did not start: see " + log.name)
    os.close(rd)
    with open(log.name) as f:
        return server, re.search(r"listening on tcp://(\S+)$", f.read(), re.M).group(1)


def measure(address, kind, keys, row, runtime):
    _, rw, bs, depth = row
    tls = [] if kind == "plain" else ["--tls=require", "--tls-psk=" + keys, "--tls-ktls=" + ("auto" if kind == "ktls" else "off")]
    text = subprocess.run(["./rtrs-bench", "--json", "--rw=" + rw, "--bs=" + bs, "--iodepth=%d" % depth,
                           "--runtime=%d" % runtime] + tls + [address, "disk"], stdout=subprocess.PIPE, check=True).stdout
    return json.loads(text)["read" if "read" in rw else "write"]["iops"]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--rounds", type=int, default=6)
    p.add_argument("--runtime", type=int, default=2)
    args = p.parse_args()
    subprocess.run(["modprobe", "tls"], check=True)
    with tempfile.TemporaryDirectory() as tmp:
        keys = os.path.join(tmp, "keys")
        with open(os.open(keys, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as f:
            subprocess.run(["./rtrs-psk", "bench"], stdout=f, check=True)
        logs = {kind: open(os.path.join(tmp, kind), "w+") for kind in KINDS}
        servers = {kind: start_server(kind, keys, logs[kind]) for kind in KINDS}
        rates = {(row[0], kind): [] for row in ROWS for kind in KINDS}
        for n in range(args.rounds):
            for row in ROWS:
                for kind in KINDS[n % 3:] + KINDS[:n % 3]:
                    rates[row[0], kind].append(measure(servers[kind][1], kind, keys, row, args.runtime))
                    print("round %d  %-18s %-6s %9.0f /s" % (n, row[0], kind, rates[row[0], kind][-1]), file=sys.stderr)
        for server, _ in servers.values():
            server.terminate()
            server.wait()
        for kind, words in (("plain", "TLS 1.3"), ("tls", "kTLS 1.3"), ("ktls", ": TLS 1.3")):
            logs[kind].seek(0)
            if words in logs[kind].read():
                raise SystemExit("a connection of %s said %r" % (kind, words))
    print("| row | " + " | ".join(kind + " IOPS" for kind in KINDS) + " | tls/plain | ktls/plain | ktls/tls |")
    print("| --- |" + " ---: |" * 6)
    for name, *_ in ROWS:
        by = [rates[name, kind] for kind in KINDS]
        ratios = [[a / b for a, b in zip(by[i], by[j])] for i, j in ((1, 0), (2, 0), (2, 1))]
        print("| %s | %s | %s |" % (name, " | ".join("%.0f" % statistics.median(r) for r in by),
                                    " | ".join("%.2f (%.2f-%.2f)" % (statistics.median(r), *interval(r)) for r in ratios)))


main()
