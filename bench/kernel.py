#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare rtrs-server with the kernel's rnbd-server, both serving the kernel's rnbd-client.

Runs as root in a guest with an RDMA device (make bench-kernel boots one): both servers and the client
share it, so what is measured is the work of the CPUs.  The same devices stand behind both servers:

  null   null_blk: no storage at all
  ram    brd, a RAM disk that is full of data

Each is mapped from each server, and fio (libaio, O_DIRECT) runs on one of the mappings at a time.
All of them run in every round, one after the other for each row and in an order that turns.  What
counts is the ratio within one round: the table shows the median of these ratios and their spread.

With --protection=never,always both servers run twice in every round, without and with keys that end
with their request (--invalidate, always_invalidate), and a second table shows what that costs each.
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
import time

from targets import judge

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
ALWAYS_INVALIDATE = {"never": "N", "copy": "N", "always": "Y"}	# of the kernel's server
UNLOAD_TIMEOUT_S = 30
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
    run("modprobe", "rnbd-client")


def start_kernel(protection):
    run("modprobe", "rtrs-server", "always_invalidate=" + ALWAYS_INVALIDATE[protection])
    run("modprobe", "rnbd-server")


def stop_kernel():
    """Its sessions close some time after the last device was unmapped."""
    deadline = time.monotonic() + UNLOAD_TIMEOUT_S
    while True:
        try:
            run("modprobe", "-r", "rnbd-server", "rtrs-server")
            return
        except Failed:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def start_ours(args, protection):
    rd, wr = os.pipe()
    log = open("/run/guest/rtrs-server.log", "wb")
    server = subprocess.Popen(
        [args.server, "--listen", "rdma://%s:%d" % (ADDRESS, OUR_PORT), "--ready-fd", str(wr),
         "--invalidate=" + protection] + args.server_arg
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


def ratios(rounds, above, below):
    """What every round says of @above and of @below, which are (server, protection)."""
    return [r[above][0] / r[below][0] for r in rounds]


def median_of_ratios(rounds, above, below):
    each = ratios(rounds, above, below)
    return "%.2f (%.2f-%.2f)" % (statistics.median(each), min(each), max(each))


def median(rounds, key, what):
    return "%.0f" % statistics.median(r[key][what] for r in rounds)


def markdown(head, lines, names=2):
    """The first @names columns are text."""
    lines = [head, ["---"] * names + ["---:"] * (len(head) - names)] + lines
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def verdict(rounds, row, ours, kernel):
    """S12: at depth, where each IO does not wait for its own wake-up."""
    least = 1.0 if platform.release().startswith("6.1.") else 0.85
    if row.endswith("qd1"):
        return ""
    word = judge(ratios(rounds, ours, kernel), least=least)
    return "≥ %.2f %s" % (least, "too close, or too few rounds, to tell" if word == "open" else word)


def table(results, protection):
    """Our server beside the kernel's."""
    ours, kernel = [(s, protection) for s in SERVERS]
    return markdown(
        ["device", "row", "ours IOPS", "kernel IOPS", "ours/kernel", "ours busy µs/IO",
         "kernel busy µs/IO", "S12"],
        [[device, row, median(r, ours, 0), median(r, kernel, 0), median_of_ratios(r, ours, kernel),
          median(r, ours, 1), median(r, kernel, 1), verdict(r, row, ours, kernel)] for (device, row), r in results.items()])


def cost_table(results, protection):
    """What protection leaves of the speed that each server has without."""
    return markdown(
        ["device", "row"] + ["%s: %s/never" % (s, protection) for s in SERVERS],
        [[device, row] + [median_of_ratios(r, (s, protection), (s, "never")) for s in SERVERS]
         for (device, row), r in results.items()])


def measure(args, rows, protection, n, rounds):
    """Both servers with @protection: all rows once, into the last of @rounds of each."""
    start_kernel(protection)
    server = start_ours(args, protection)
    devices = {}
    try:
        for s in SERVERS:
            for d in DEVICES:
                devices[s, d] = map_device(s, d)
        for i, row in enumerate(rows):
            for k, device in enumerate(DEVICES):
                for s in SERVERS if (n + i + k) % 2 else SERVERS[::-1]:
                    value = fio(args, row, devices[s, device])
                    rounds[device, row[0]][-1][s, protection] = value
                    print("round %d %s %s %s %s: %.0f" %
                          (n + 1, row[0], device, protection, s, value[0]),
                          file=sys.stderr, flush=True)
    finally:
        for device in devices.values():
            unmap(device)
        server.send_signal(signal.SIGTERM)
        server.wait(30)
        stop_kernel()


def main():
    p = argparse.ArgumentParser(description="Compare rtrs-server with the kernel's rnbd-server.",
                                epilog="Rows: " + ", ".join(r[0] for r in ROWS))
    p.add_argument("--rounds", type=int, default=6, metavar="N", help="[%(default)s]")
    p.add_argument("--runtime", type=int, default=2, metavar="S",
                   help="seconds of each fio run [%(default)s]")
    p.add_argument("--rows", default="*", metavar="GLOB", help="only these rows")
    p.add_argument("--ram-mib", type=int, default=256, metavar="N", help="[%(default)s]")
    p.add_argument("--server", default="./rtrs-server", metavar="PROG", help="[%(default)s]")
    p.add_argument("--protection", default="never", metavar="NAME[,NAME]",
                   help="of %s; the kernel's server has never and always, and never beside our copy"
                   " [%%(default)s]" % ", ".join(ALWAYS_INVALIDATE))
    p.add_argument("--server-arg", action="append", default=[], metavar="ARG",
                   help="pass on to rtrs-server; repeatable")
    args = p.parse_args()
    rows = [r for r in ROWS if fnmatch.fnmatch(r[0], args.rows)]
    if not rows:
        p.error("--rows=%s matches no row" % args.rows)
    protections = args.protection.split(",")
    for protection in protections:
        if protection not in ALWAYS_INVALIDATE:
            p.error("--protection: %r is none of %s" % (protection, ", ".join(ALWAYS_INVALIDATE)))
    if not os.path.isdir("/run/guest"):
        p.error("this runs in a guest only: make bench-kernel")

    prepare(args)
    rounds = {(d, row[0]): [] for d in DEVICES for row in rows}
    for n in range(args.rounds):
        for of_row in rounds.values():
            of_row.append({})
        for i in range(len(protections)):
            measure(args, rows, protections[(n + i) % len(protections)], n, rounds)
    for protection in protections:
        print("rtrs-server --invalidate=%s, always_invalidate=%s\n\n%s" %
              (protection, ALWAYS_INVALIDATE[protection], table(rounds, protection)))
    if "never" in protections:
        for protection in protections:
            if protection != "never":
                print(cost_table(rounds, protection))
    print("Linux %s, %d CPUs, %d rounds of %d s" %
          (platform.release(), os.cpu_count(), args.rounds, args.runtime))


if __name__ == "__main__":
    try:
        main()
    except Failed as e:
        sys.exit("bench/kernel.py: %s" % e)
