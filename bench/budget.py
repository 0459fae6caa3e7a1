#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Count the system calls of one 4k read: in nbdkit with the plugin, and in rtrs-server.

strace counts the calls of all threads between the first read and the last.  At depth 1 each call belongs to one read.
Deeper, one call does the work of several, and of how many depends on who is slow, which under strace is who makes most
calls: what is counted there is that there are fewer, not how many fewer.  Nobody looks before a sleep (poll=0), because
under strace a look is no look.  What the calls are for is in doc/speed.md.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import loads
from topologies import START_TIMEOUT_S, Failed, Topology

CLIENT = """
import os
import sys
depth = int(os.environ["DEPTH"])
buffers = [nbd.Buffer(4096) for _ in range(depth)]
def start(i):
    return h.aio_pread(buffers[i % depth], i * 4096 % (1 << 20))
for n in (int(line) for line in sys.stdin):
    begun = min(depth, n)
    cookies = [start(i) for i in range(begun)]
    while cookies:
        h.poll(-1)
        cookies = [c for c in cookies if not h.aio_command_completed(c)]
        while begun < n and len(cookies) < depth:
            cookies.append(start(begun))
            begun += 1
    print("done", flush=True)
"""


class Counter:
    """strace of all threads of one process, from here to counts()."""

    def __init__(self, process, workdir):
        self.name, self.path = process.name, os.path.join(workdir, process.name + ".strace")
        self.popen = subprocess.Popen(["strace", "-f", "-c", "-o", self.path, "-p", str(process.popen.pid)],
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        # It says of the process, and of its threads if there are some, that they are attached.
        line = self.popen.stdout.readline().decode()
        if "attached" not in line:
            self.popen.kill()
            raise Failed("strace cannot attach to %s: %s" % (self.name, line.strip()))

    def counts(self):
        self.popen.send_signal(signal.SIGINT)
        self.popen.communicate(timeout=START_TIMEOUT_S)
        with open(self.path) as f:
            found = re.findall(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?(\w+)$", f.read(), re.M)
        return {name: int(calls) for calls, name in found if name != "total"}


def count(topology, reads, depth, workdir):
    """{process: {system call: how many for each read}}, of calls that at least one read in ten has."""
    client = subprocess.Popen(["/usr/bin/python3", "-m", "nbd", "-u", topology.uri, "-c", CLIENT], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True, env={**os.environ, "DEPTH": str(depth)})

    def read(n):
        client.stdin.write("%d\n" % n)
        client.stdin.flush()
        if client.stdout.readline() != "done\n":
            raise Failed("the NBD client failed")

    try:
        read(10)
        counters = [Counter(process, workdir) for process in topology.processes]
        read(reads)
        return {c.name: {name: calls / reads for name, calls in c.counts().items() if calls * 10 >= reads}
                for c in counters}
    finally:
        client.stdin.close()
        client.wait()


def print_table(depths, counts):
    """@counts: of each of @depths, as from count()."""
    print("| process | system call | %s |" % " | ".join("for each of %d" % depth for depth in depths))
    print("| --- | --- |" + " ---: |" * len(depths))
    for name in counts[0]:
        calls = {call for of_depth in counts for call in of_depth[name]}
        lines = {call: [of_depth[name].get(call, 0) for of_depth in counts] for call in calls}
        lines["all"] = [sum(of_depth[name].values()) for of_depth in counts]
        for call, numbers in sorted(lines.items(), key=lambda item: (item[0] == "all", -item[1][0], item[0])):
            print("| %s | %s | %s |" % (name, call, " | ".join("%.1f" % n for n in numbers)))


def main():
    top = os.environ.get("top_builddir", ".")
    p = argparse.ArgumentParser(description="Count the system calls of one 4k read.")
    p.add_argument("--reads", type=int, default=1000, metavar="N", help="[%(default)s]")
    p.add_argument("--depths", default="1,32", metavar="N[,N]", help="reads in flight [%(default)s]")
    p.add_argument("--topology", choices=("ours", "unix", "peer"), default="ours", help="[%(default)s]")
    args = p.parse_args(namespace=argparse.Namespace(
        nbdkit="nbdkit", threads=32, server=os.path.join(top, "rtrs-server"),
        plugin=os.path.abspath(os.path.join(top, ".libs/nbdkit-rtrs-plugin.so")),
        server_arg=["--poll=0"], plugin_arg=["poll=0"],
        # Of an export that can be written the server looks for other users, in each process, for as long as it takes.
        export_flags=",readonly"))
    for program in ("strace", "nbdsh"):
        if not shutil.which(program):
            p.error("%s is not installed" % program)
    depths = [int(word) for word in args.depths.split(",")]
    args.workdir = tempfile.mkdtemp(prefix="nbdkit-rtrs-budget.")
    disk = os.path.join(args.workdir, "disk.img")
    topology = Topology(args.topology, args, args.workdir, disk)
    try:
        loads.prepare_file(disk, 1)
        topology.start()
        counts = [count(topology, args.reads, depth, args.workdir) for depth in depths]
        topology.stop()
    except Failed as e:
        print("budget: " + str(e), file=sys.stderr)
        return 1
    finally:
        topology.kill()
        shutil.rmtree(args.workdir, ignore_errors=True)
    print_table(depths, counts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
