#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare rtrs-server with the kernel's rnbd-server, both serving the kernel's rnbd-client.

Runs as root in a guest with an RDMA device (make bench-kernel boots one): both servers and the client
share it, so what is measured is the work of the CPUs.  The same devices stand behind both servers:

  null   null_blk: no storage at all
  ram    brd, a RAM disk that is full of data

Each is mapped once from each server, and fio (libaio, O_DIRECT) runs on one of the mappings at a time.
All of them run in every round, one after the other for each row and in an order that turns.  What
counts is the ratio within one round: the table shows the median of these ratios and their spread.
"""

import argparse
import fnmatch
import glob
import json
import os
import platform
import select
import signal
import statistics
import subprocess
import sys

ADDRESS = "10.1.0.1"
KERNEL_PORT, OUR_PORT = 1234, 1235
ROWS = [
    ("4k-randread-qd1", "randread", "4k", 1),
    ("4k-randread-qd16", "randread", "4k", 16),
    ("4k-randwrite-qd16", "randwrite", "4k", 16),
    ("128k-read-qd16", "read", "128k", 16),
]
DEVICES = {"null": "/dev/nullb0", "ram": "/dev/ram0"}
SERVERS = ["ours", "kernel"]
MAP_DEVICE = "/sys/devices/virtual/rnbd-client/ctl/map_device"


class Failed(Exception):
    """The run cannot go on; the text says why."""


def run(*argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode:
        raise Failed("%s: status %d\n%s" % (" ".join(argv), done.returncode,
                                            done.stdout.decode(errors="replace")))


def prepare(args):
    run("modprobe", "null_blk", "nr_devices=1", "gb=4")
    run("modprobe", "brd", "rd_nr=1", "rd_size=%d" % (args.ram_mib << 10))
    block = os.urandom(1 << 20)
    with open(DEVICES["ram"], "wb") as f:
        for _ in range(args.ram_mib):
            f.write(block)
    run("modprobe", "rtrs-server", "always_invalidate=" + args.always_invalidate)
    run("modprobe", "rnbd-server")
    run("modprobe", "rnbd-client")


def start_ours(args):
    rd, wr = os.pipe()
    log = open("/run/guest/rtrs-server.log", "wb")
    server = subprocess.Popen(
        [args.server, "--listen", "rdma://%s:%d" % (ADDRESS, OUR_PORT), "--ready-fd", str(wr),
         "--invalidate=" + args.invalidate] + args.server_arg
        + ["%s=%s,direct" % d for d in DEVICES.items()],
        stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=(wr,))
    os.close(wr)
    if not select.select([rd], [], [], 30)[0] or not os.read(rd, 64):
        with open("/run/guest/rtrs-server.log") as f:
            raise Failed("rtrs-server did not start: " + f.read())
    os.close(rd)
    return server


def map_device(server, name):
    """Map the device from that server; returns its path."""
    before = set(glob.glob("/sys/block/rnbd*"))
    port = OUR_PORT if server == "ours" else KERNEL_PORT
    # What the kernel's server opens is a path below /, what ours opens is an export.
    export = name if server == "ours" else DEVICES[name][1:]
    with open(MAP_DEVICE, "w") as f:
        f.write("sessname=%s dest_port=%d path=ip:%s@ip:%s device_path=%s" %
                (server, port, ADDRESS, ADDRESS, export))
    new = set(glob.glob("/sys/block/rnbd*")) - before
    if len(new) != 1:
        raise Failed("mapping %s of %s gave %d devices" % (name, server, len(new)))
    return "/dev/" + os.path.basename(new.pop())


def unmap(device):
    with open("/sys/block/%s/rnbd/unmap_device" % os.path.basename(device), "w") as f:
        f.write("normal")


def cpu_busy():
    """Seconds in which a CPU of this machine was not idle."""
    with open("/proc/stat") as f:
        fields = [int(n) for n in f.readline().split()[1:]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def fio(args, row, device):
    name, rw, bs, depth = row
    before = cpu_busy()
    done = subprocess.run(
        ["fio", "--name=" + name, "--filename=" + device, "--ioengine=libaio", "--direct=1",
         "--rw=" + rw, "--bs=" + bs, "--iodepth=%d" % depth, "--time_based",
         "--runtime=%d" % args.runtime, "--norandommap", "--output-format=json"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=args.runtime + 120)
    text = done.stdout.decode(errors="replace")
    if done.returncode:
        raise Failed("fio failed with status %d on %s\n%s" % (done.returncode, device, text))
    job = json.loads(text[text.index("{"):])["jobs"][0]
    side = job["read" if "read" in rw else "write"]
    if job["error"] or not side["total_ios"]:
        raise Failed("fio reports error %d and %d IOs on %s" %
                     (job["error"], side["total_ios"], device))
    return side["iops"], (cpu_busy() - before) * 1e6 / side["total_ios"]


def ratio(results, row, device, what):
    each = [r["ours"][what] / r["kernel"][what] for r in results[row, device]]
    return "%.2f (%.2f-%.2f)" % (statistics.median(each), min(each), max(each))


def median(results, row, device, server, what):
    return "%.0f" % statistics.median(r[server][what] for r in results[row, device])


def table(results, rows):
    head = ["device", "row", "ours IOPS", "kernel IOPS", "ours/kernel", "ours busy µs/IO",
            "kernel busy µs/IO"]
    lines = [head, ["---", "---"] + ["---:"] * (len(head) - 2)]
    for device in DEVICES:
        for row in rows:
            at = results, row[0], device
            lines.append([device, row[0], median(*at, "ours", 0), median(*at, "kernel", 0),
                          ratio(*at, 0), median(*at, "ours", 1), median(*at, "kernel", 1)])
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def measure(args, rows, devices):
    results = {(row[0], d): [] for row in rows for d in DEVICES}
    for n in range(args.rounds):
        for i, row in enumerate(rows):
            for k, device in enumerate(DEVICES):
                order = SERVERS if (n + i + k) % 2 else SERVERS[::-1]
                values = {s: fio(args, row, devices[s, device]) for s in order}
                results[row[0], device].append(values)
                print("round %d %s %s: ours %.0f, kernel %.0f" %
                      (n + 1, row[0], device, values["ours"][0], values["kernel"][0]),
                      file=sys.stderr, flush=True)
    return results


def main():
    p = argparse.ArgumentParser(description="Compare rtrs-server with the kernel's rnbd-server.",
                                epilog="Rows: " + ", ".join(r[0] for r in ROWS))
    p.add_argument("--rounds", type=int, default=5, metavar="N", help="[%(default)s]")
    p.add_argument("--runtime", type=int, default=2, metavar="S",
                   help="seconds of each fio run [%(default)s]")
    p.add_argument("--rows", default="*", metavar="GLOB", help="only these rows")
    p.add_argument("--ram-mib", type=int, default=256, metavar="N", help="[%(default)s]")
    p.add_argument("--server", default="./rtrs-server", metavar="PROG", help="[%(default)s]")
    p.add_argument("--invalidate", default="never", help="of rtrs-server [%(default)s]")
    p.add_argument("--always-invalidate", default="N", choices=("Y", "N"),
                   help="of the kernel's server [%(default)s]")
    p.add_argument("--server-arg", action="append", default=[], metavar="ARG",
                   help="pass on to rtrs-server; repeatable")
    args = p.parse_args()
    rows = [r for r in ROWS if fnmatch.fnmatch(r[0], args.rows)]
    if not rows:
        p.error("--rows=%s matches no row" % args.rows)
    if not os.path.isdir("/run/guest"):
        p.error("this runs in a guest only: make bench-kernel")

    prepare(args)
    server = start_ours(args)
    devices = {}
    try:
        for s in SERVERS:
            for d in DEVICES:
                devices[s, d] = map_device(s, d)
        results = measure(args, rows, devices)
    finally:
        for device in devices.values():
            unmap(device)
        server.send_signal(signal.SIGTERM)
        server.wait(30)
    print(table(results, rows))
    print("Linux %s, %d CPUs, rtrs-server --invalidate=%s, rtrs-server.ko always_invalidate=%s, "
          "%d rounds of %d s" % (platform.release(), os.cpu_count(), args.invalidate,
                                 args.always_invalidate, args.rounds, args.runtime))


try:
    main()
except Failed as e:
    sys.exit("bench/kernel.py: %s" % e)
