#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare the queue of src/rtrs-ublk over a kernel that does nothing (ublk-null.c) with rtrs-bench.

Both have one thread, the same connections over TCP to the same rtrs-server, and as many IOs in flight.  They run in
turns, in each round in another order; what counts is the ratio within a round, of IOPS and of the client's CPU time.

With --instructions callgrind counts what one IO takes in user space, of either: of two runs of different lengths the
difference.  Nobody looks before a sleep then, because the number of looks is a matter of time.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from kernel import markdown
from targets import interval, judge
from topologies import Failed, Process

ROWS = [("4k-randread-qd1", "read", 1, 4096), ("4k-randread-qd32", "read", 32, 4096),
        ("4k-randwrite-qd32", "write", 32, 4096), ("128k-randread-qd8", "read", 8, 128 << 10)]
LEAST = 0.8			# S24
FEW, MANY = 500, 5500		# IOs under callgrind
KINDS = ["bench", "ublk"]


def command(args, kind, row, ios, poll):
    _, op, depth, size = row
    if kind == "bench":
        return [args.top + "/rtrs-bench", "--json", "--rw=rand" + op, "--bs=%d" % size, "--iodepth=%d" % depth,
                "--number-ios=%d" % ios, "--runtime=1000", "--connections=2", "--poll=%d" % poll, args.server, "disk"]
    return [args.top + "/bench/ublk-null", op, str(depth), str(size), str(ios), "server=" + args.server, "export=disk",
            "connections=2", "poll=%d" % poll]


def run(argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=1200)
    out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    if done.returncode:
        raise Failed("%s\nfailed with status %d\n%s%s" % (" ".join(argv), done.returncode, out, err))
    return out, err


def measure(args, kind, row):
    """IOPS, and CPU time of one IO in microseconds."""
    out, _ = run(command(args, kind, row, args.ios * row[2], 100))
    if kind == "ublk":
        return tuple(float(word) for word in out.split())
    report = json.loads(out)
    return report[row[1]]["iops"], report["cpu_us_per_io"]


def count(args, kind, row):
    """Instructions of one IO."""
    def of(ios):
        _, err = run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"] +
                     command(args, kind, row, ios, 0))
        return int(re.search(r"Collected : (\d+)", err).group(1))
    return (of(MANY) - of(FEW)) / (MANY - FEW)


def text(ratios):
    return "%.2f (%.2f-%.2f)" % (statistics.median(ratios), *interval(ratios))


def print_rounds(rows, rounds):
    lines = []
    for row in rows:
        runs = [r[row[0]] for r in rounds]
        iops, cpu = [[r["ublk"][i] / r["bench"][i] for r in runs] for i in (0, 1)]
        lines.append([row[0]] + ["%.0f" % statistics.median(r[k][0] for r in runs) for k in KINDS] +
                     [text(iops)] + ["%.1f" % statistics.median(r[k][1] for r in runs) for k in KINDS] +
                     [text(cpu), judge(iops, least=LEAST)])
    print(markdown(["row", "rtrs-bench IOPS", "ublk IOPS", "ublk/rtrs-bench", "rtrs-bench CPU µs/IO", "ublk CPU µs/IO",
                    "CPU ublk/rtrs-bench", "≥ %.2f" % LEAST], lines, names=1))


def main():
    p = argparse.ArgumentParser(description="Compare the queue of a disk by ublk, over no kernel, with rtrs-bench.")
    p.add_argument("--rounds", type=int, default=6, metavar="N", help="[%(default)s]")
    p.add_argument("--ios", type=int, default=2000, metavar="N", help="of a run, times the depth [%(default)s]")
    p.add_argument("--instructions", action="store_true", help="count instructions instead")
    p.add_argument("--top", default=os.environ.get("top_builddir", "."), metavar="DIR", help="[%(default)s]")
    args = p.parse_args()
    if args.instructions and not shutil.which("valgrind"):
        p.error("valgrind is not installed")
    workdir = tempfile.mkdtemp(prefix="nbdkit-rtrs-ublk.")
    server = None
    try:
        disk = os.path.join(workdir, "disk")
        with open(disk, "wb") as f:
            f.write(os.urandom(64 << 20))
        server = Process(workdir, "rtrs-server", [args.top + "/rtrs-server", "--threads=1", "--listen=tcp://127.0.0.1:0",
                                                  "--state-dir=" + workdir, "disk=" + disk])
        args.server = server.wait_for("listening", lambda: re.search(r"listening on tcp://(\S+)", server.log())).group(1)
        if args.instructions:
            counts = {row[0]: [count(args, k, row) for k in KINDS] for row in ROWS}
            print(markdown(["row", "rtrs-bench", "ublk", "ublk/rtrs-bench"],
                           [[row, "%.0f" % a, "%.0f" % b, "%.2f" % (b / a)] for row, (a, b) in counts.items()], names=1))
        else:
            rounds = []
            for n in range(args.rounds):
                rounds.append({row[0]: {k: measure(args, k, row) for k in KINDS[::1 if n % 2 else -1]} for row in ROWS})
            print_rounds(ROWS, rounds)
            print("%d rounds, a load of %.0f" % (args.rounds, os.getloadavg()[1]))
        server.stop()
    except Failed as e:
        print("bench-ublk: " + str(e), file=sys.stderr)
        return 1
    finally:
        if server and server.popen.poll() is None:
            server.popen.kill()
        shutil.rmtree(workdir, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
