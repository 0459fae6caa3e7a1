# SPDX-License-Identifier: BSD-3-Clause
"""What a row of the bench does, and the files that it does it on.

A row is a run of fio, or the copy of a whole disk by nbdcopy or qemu-img, of the NBD URI of a topology; or a server alone
under rtrs-bench, beside a file alone under fio, both of one thread.  All return how many IOs there were (of a copy: MiB) and a dict: IOs per second, percentiles of the time that one takes.
"""

import json
import os
import statistics
import subprocess
import time

from targets import BESIDE, BESIDE_EIGHT, CONNECTIONS
from topologies import Failed

# name, how fio reads or writes, size, depth, NBD connections
FIO_ROWS = [
    ("4k-randread-qd1", "randread", "4k", 1, 1),
    ("4k-randread-qd2", "randread", "4k", 2, 1),
    ("4k-randread-qd4", "randread", "4k", 4, 1),
    ("4k-randread-qd8", "randread", "4k", 8, 1),
    ("4k-randread-qd16", "randread", "4k", 16, 1),
    ("4k-randread-qd32", "randread", "4k", 32, 1),
    ("4k-randread-qd64", "randread", "4k", 64, 1),
    ("4k-randwrite-qd1", "randwrite", "4k", 1, 1),
    ("4k-randwrite-qd16", "randwrite", "4k", 16, 1),
    ("4k-randwrite-qd32", "randwrite", "4k", 32, 1),
    ("128k-read-qd16", "read", "128k", 16, 1),
    ("128k-write-qd16", "write", "128k", 16, 1),
] + [(row, "randread", "4k", 4, n) for row, n in CONNECTIONS[1:]]
# Rows of clients that are measured beside others, which are not: who shares gateway and server has turns.
# name: clients at QD1 (4k reads), and of the others how many, how they read or write, size, depth, and whether their
# gateway is another one of the same server.
BESIDE_ROWS = {
    BESIDE: (1, 1, "randread", "4k", 128, False),
    BESIDE + "-elsewhere": (1, 1, "randread", "4k", 128, True),
    "4k-randread-qd1-beside-1m-write": (1, 1, "write", "1m", 16, False),
    BESIDE_EIGHT: (8, 2, "randread", "4k", 64, False),
}
ELSEWHERE_ROWS = [row for row in BESIDE_ROWS if BESIDE_ROWS[row][-1]]
# Of a disk with data, and of one whose data are a piece of SPARSE_PIECE in each SPARSE_STEP.
FULL_COPIES = ["nbdcopy-in", "nbdcopy-out"]
SPARSE_COPIES = ["sparse-nbdcopy", "sparse-convert"]
COPY_ROWS = FULL_COPIES + SPARSE_COPIES
# Servers, and the file, without nbdkit.
ALONE_ROWS = ["alone-4k-randread-qd32"]
ALONE_BLOCK, ALONE_DEPTH = "4k", 32
ROWS = [row[0] for row in FIO_ROWS] + list(BESIDE_ROWS) + ALONE_ROWS + COPY_ROWS
SPARSE_PIECE, SPARSE_STEP = 64 << 10, 2 << 20


def run(argv, args, timeout_s):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=timeout_s, cwd=args.workdir, env=dict(os.environ, HOME=args.workdir))
    text = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        raise Failed("%s\nfailed with status %d\n%s%s" % (" ".join(argv), done.returncode, text,
                                                         done.stderr.decode(errors="replace")))
    return text


def where(uri):
    if uri.startswith(("nbd+", "nbds+")):
        return ["--ioengine=nbd", "--uri=" + uri]
    if uri.startswith("rbd:"):
        return ["--ioengine=rbd", "--clientname=admin", "--pool=rbd", "--rbdname=" + uri[len("rbd:"):]]
    return ["--ioengine=io_uring", "--filename=" + uri]


def run_fio(args, uri, jobs):
    """Run fio with @jobs, lists of options, on @uri.  Returns what was done by each client: a dict of fio's."""
    text = run(["fio", "--output-format=json", "--name=global", *where(uri), "--time_based",
                "--runtime=%d" % args.runtime, "--norandommap", "--percentile_list=50:99:99.9"] + sum(jobs, []),
               args, args.runtime + 60)
    sides = []
    # fio may print notes before the JSON.
    for job in json.loads(text[text.index("{"):])["jobs"]:
        side = max(job["read"], job["write"], key=lambda side: side["total_ios"])
        if job["error"]:
            raise Failed("fio reports error %d on %s" % (job["error"], uri))
        if side["total_ios"] == 0:
            raise Failed("fio did no IO on " + uri)
        sides.append(dict(side, name=job["jobname"]))
    return sides


def percentiles(side):
    return [side["clat_ns"]["percentile"]["%.6f" % p] / 1000 for p in (50, 99, 99.9)]


def numbers(rate, p50, p99, p999, **more):
    return dict(rate=round(rate, 1), p50_us=round(p50, 1), p99_us=round(p99, 1), p999_us=round(p999, 1), **more)


def fio(args, row, uri):
    """One run: IOs, IOs per second, percentiles of the time that one takes."""
    name, rw, bs, depth, connections = row
    side, = run_fio(args, uri, [["--name=" + name, "--rw=" + rw, "--bs=" + bs, "--iodepth=%d" % depth,
                                 "--numjobs=%d" % connections, "--group_reporting"]])
    return side["total_ios"], numbers(side["iops"], *percentiles(side))


def beside(args, row, topology):
    """The same of the clients at QD1 (their median p50, and the worst of their other percentiles), with Jain's index of
    their rates, and the rate of those beside them."""
    few, many, rw, bs, depth, elsewhere = BESIDE_ROWS[row]
    jobs = [["--name=few", "--rw=randread", "--bs=4k", "--iodepth=1", "--numjobs=%d" % few],
            ["--name=many", "--rw=" + rw, "--bs=" + bs, "--iodepth=%d" % depth, "--numjobs=%d" % many]]
    if elsewhere:
        jobs[1] += where(topology.other_uri)
    sides = run_fio(args, topology.uri, jobs)
    rates, times = zip(*((side["iops"], percentiles(side)) for side in sides if side["name"] == "few"))
    p50, p99, p999 = zip(*times)
    others = sum(side["iops"] for side in sides if side["name"] == "many")
    return sum(side["total_ios"] for side in sides), numbers(
        sum(rates), statistics.median(p50), max(p99), max(p999), others_rate=round(others, 1),
        jain=round(sum(rates) ** 2 / (len(rates) * sum(r * r for r in rates)), 3))


def copy(args, row, uri):
    """One copy of the whole disk; an IO is a MiB."""
    if row == "sparse-convert":
        argv = ["qemu-img", "convert", "-f", "raw", "-O", "raw", uri, args.copied]
    else:
        argv = {"nbdcopy-in": ["nbdcopy", args.source, uri], "nbdcopy-out": ["nbdcopy", uri, "null:"],
                "sparse-nbdcopy": ["nbdcopy", uri, args.copied]}[row]
    begin = time.monotonic()
    run(argv, args, 600)
    took = time.monotonic() - begin
    if os.path.exists(args.copied):
        os.unlink(args.copied)
    return args.size_mib, dict(rate=round(args.size_mib / took, 1), p50_us=0, p99_us=0, p999_us=0)


def alone(args, row, topology):
    if not topology.server:
        return fio(args, (row, "randread", ALONE_BLOCK, ALONE_DEPTH, 1), topology.file)
    result = json.loads(run([args.rtrs_bench, "--json", "--bs=" + ALONE_BLOCK, "--iodepth=%d" % ALONE_DEPTH,
                             "--runtime=%d" % args.runtime, topology.server, "bench"], args, args.runtime + 60))
    side = result["read"]
    p50, p99, p999 = (round(side[key] / 1000, 1) for key in ("p50_ns", "p99_ns", "p999_ns"))
    return side["ios"], dict(rate=round(side["iops"], 1), p50_us=p50, p99_us=p99, p999_us=p999)


def fits(row, topology):
    """Has @topology what @row is done on?"""
    if row in ALONE_ROWS:
        return bool(topology.server or topology.name == "file")
    return topology.name != "file" and bool(topology.other_uri or row not in ELSEWHERE_ROWS)


def do(args, row, topology):
    if row in ALONE_ROWS:
        return alone(args, row, topology)
    if row in BESIDE_ROWS:
        return beside(args, row, topology)
    if row in COPY_ROWS:
        return copy(args, row, topology.uri)
    return fio(args, {row[0]: row for row in FIO_ROWS}[row], topology.uri)


def prepare_file(path, size_mib):
    """Preallocate the file with data that is not zero, and read it into the page cache."""
    block = os.urandom(1 << 20)
    with open(path, "wb") as f:
        os.posix_fallocate(f.fileno(), 0, size_mib << 20)
        for _ in range(size_mib):
            f.write(block)
        f.flush()
        os.fsync(f.fileno())
    with open(path, "rb") as f:
        while f.read(1 << 20):
            pass


def prepare_sparse_file(path, size_mib):
    with open(path, "wb") as f:
        f.truncate(size_mib << 20)
        for at in range(0, size_mib << 20, SPARSE_STEP):
            f.seek(at)
            f.write(os.urandom(SPARSE_PIECE))
        f.flush()
        os.fsync(f.fileno())
