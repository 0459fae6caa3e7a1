#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare the ways to have a remote disk as a block device of this machine.

  ublk         rtrs-attach --via=ublk == tcp loopback ==> rtrs-server
  nbd          rtrs-attach --via=nbd  == tcp loopback ==> rtrs-server
  nbdkit       nbd-client -> unix socket -> nbdkit rtrs == tcp loopback ==> rtrs-server
  rnbd         the kernel's rnbd-client == soft-RoCE ==> rtrs-server
  rnbd-kernel  the kernel's rnbd-client == soft-RoCE ==> the kernel's rnbd-server
  nvme         the kernel's nvme-tcp == tcp loopback ==> the kernel's nvmet

The storage of all is one null_blk.  With --storage=file it is one file on tmpfs, without the two ways of rnbd: the
kernel's rnbd-server has block devices alone.

Runs as root in a guest of one processor whose time passes by its instructions (make bench-attach boots one).  So
IOPS are the inverse of the instructions of one IO: of the user (fio), client, network, server and kernel together.
All ways run in every round, in an order that turns, and one way has the machine for itself.
"""

import argparse
import json
import os
import platform
import re
import signal
import stat
import statistics
import subprocess
import sys
import time

from kernel import Failed, cpu_busy, markdown, run

ADDRESS = "10.1.0.1"		# of the RDMA device
OUR_PORT, KERNEL_PORT, NVME_PORT = 1235, 1234, 4420
ROWS = [
    ("4k-randread-qd1", "randread", "4k", 1),
    ("4k-randread-qd32", "randread", "4k", 32),
    ("4k-randwrite-qd1", "randwrite", "4k", 1),
    ("4k-randwrite-qd32", "randwrite", "4k", 32),
    ("128k-read-qd8", "read", "128k", 8),
    ("128k-write-qd8", "write", "128k", 8),
]
WAIT_S = 60
NVMET = "/sys/kernel/config/nvmet"
LOGS = "/run/guest"


def wait_for(what, condition):
    """The first true value of @condition."""
    deadline = time.monotonic() + WAIT_S
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failed("no %s after %d s" % (what, WAIT_S))
        time.sleep(0.05)


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def start(name, *argv):
    """A process of ours, with its log."""
    with open("%s/%s.log" % (LOGS, name), "ab") as log:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.wait(WAIT_S)


def is_disk(path):
    """With a size.  The paths of nvme are in /sys/block, too, and have no node."""
    try:
        with open("/sys/block/%s/size" % os.path.basename(path)) as f:
            return int(f.read()) > 0 and stat.S_ISBLK(os.stat(path).st_mode)
    except FileNotFoundError:
        return False


def new_disk(prefix, before):
    """The path of a disk that was not there @before."""
    def look():
        new = ["/dev/" + name for name in set(os.listdir("/sys/block")) - before if name.startswith(prefix)]
        return next(filter(is_disk, new), None)
    return wait_for("disk " + prefix, look)


# ---- the ways: begin(args) returns the device and a function that ends it ----

def attach(args, via):
    server = "127.0.0.1:%d/disk" % OUR_PORT
    done = subprocess.run([args.top + "/rtrs-attach", "--via=" + via, server, "speed"] + args.key,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=WAIT_S)
    if done.returncode:
        raise Failed("rtrs-attach --via=%s: %s" % (via, done.stdout.decode(errors="replace")))
    with open("/run/rtrs/attach/speed") as f:
        disk = re.search(r"^disk=(.*)$", f.read(), re.M).group(1)
    return "/dev/" + disk, lambda: run(args.top + "/rtrs-detach", "speed")


def begin_nbdkit(args):
    sock, disk = "/run/speed.sock", "/dev/nbd9"
    nbdkit = start("nbdkit", "nbdkit", "-f", "-t", "32", "-U", sock, args.top + "/.libs/nbdkit-rtrs-plugin.so",
                   "127.0.0.1:%d" % OUR_PORT, "export=disk", *args.key)
    wait_for("socket of nbdkit", lambda: os.path.exists(sock))
    run("nbd-client", "-unix", sock, disk)
    wait_for(disk, lambda: os.path.exists("/sys/block/nbd9/pid"))

    def end():
        run("nbd-client", "-d", disk)
        stop(nbdkit)
        if os.path.exists(sock):
            os.unlink(sock)
    return disk, end


def begin_rnbd(args, session, port, export):
    before = set(os.listdir("/sys/block"))
    write("/sys/devices/virtual/rnbd-client/ctl/map_device", "sessname=%s dest_port=%d path=ip:%s@ip:%s device_path=%s" %
          (session, port, ADDRESS, ADDRESS, export))
    disk = new_disk("rnbd", before)
    # Other policies give EIO on a kernel that preempts its tasks (doc/traps.md 41).
    write("/sys/devices/virtual/rtrs-client/%s/mpath_policy" % session, "round-robin")

    def end():
        write("/sys/block/%s/rnbd/unmap_device" % os.path.basename(disk), "normal")
        wait_for("end of " + disk, lambda: not os.path.exists("/sys/block/" + os.path.basename(disk)))
    return disk, end


def begin_nvme(args):
    before = set(os.listdir("/sys/block"))
    write("/dev/nvme-fabrics", "transport=tcp,traddr=127.0.0.1,trsvcid=%d,nqn=speed,nr_io_queues=1,"
          "hostnqn=nqn.2014-08.org.nvmexpress:uuid:6ad6ba51-46ce-4b3c-98a1-ad2b4c1c1f4a,"
          "hostid=6ad6ba51-46ce-4b3c-98a1-ad2b4c1c1f4a" % NVME_PORT)
    disk = new_disk("nvme", before)

    def end():
        write("/sys/class/nvme/nvme0/delete_controller", "1")
        wait_for("end of " + disk, lambda: not os.path.exists("/sys/block/" + os.path.basename(disk)))
    return disk, end


WAYS = {
    "ublk": lambda args: attach(args, "ublk"),
    "nbd": lambda args: attach(args, "nbd"),
    "nbdkit": begin_nbdkit,
    "rnbd": lambda args: begin_rnbd(args, "ours", OUR_PORT, "disk"),
    "rnbd-kernel": lambda args: begin_rnbd(args, "kernel", KERNEL_PORT, args.disk[1:]),
    "nvme": begin_nvme,
}


# ---- servers ----

def prepare(args, ways):
    """The storage and all servers; returns ours."""
    run("modprobe", "-a", "nbd", "ublk_drv")
    if not os.path.isdir(NVMET):
        run("mount", "-t", "configfs", "configfs", "/sys/kernel/config")
    args.disk = "/dev/nullb0"
    if args.storage == "null":
        run("modprobe", "null_blk", "nr_devices=1", "gb=4")
        run("modprobe", "-a", "rnbd_client", "rnbd_server")
    else:
        args.disk = "/dev/shm/disk"
        with open(args.disk, "wb") as f:
            for _ in range(256):
                f.write(os.urandom(1 << 20))
    if "nvme" in ways:
        run("modprobe", "-a", "nvmet_tcp", "nvme_tcp")
        serve_nvme(args)
    listen = ["--listen", "tcp://127.0.0.1:%d" % OUR_PORT, "--listen", "rdma://%s:%d" % (ADDRESS, OUR_PORT)]
    server = start("rtrs-server", args.top + "/rtrs-server", *listen, "--threads=1", *args.server_arg,
                   "disk=%s%s" % (args.disk, ",direct" if args.storage == "null" else ""))
    wait_for("rtrs-server", lambda: server.poll() is not None or listens(OUR_PORT))
    if server.poll() is not None:
        raise Failed("rtrs-server ended: see %s/rtrs-server.log" % LOGS)
    return server


def listens(port):
    with open("/proc/net/tcp") as f:
        return any(line.split()[1].endswith(":%04X" % port) for line in f if " 0A " in line)


def serve_nvme(args):
    subsystem, port = NVMET + "/subsystems/speed", NVMET + "/ports/1"
    os.makedirs(subsystem + "/namespaces/1")
    write(subsystem + "/attr_allow_any_host", "1")
    write(subsystem + "/namespaces/1/device_path", args.disk)
    if args.storage == "file":
        write(subsystem + "/namespaces/1/buffered_io", "1")
    write(subsystem + "/namespaces/1/enable", "1")
    os.mkdir(port)
    for name, value in (("trtype", "tcp"), ("adrfam", "ipv4"), ("traddr", "127.0.0.1"), ("trsvcid", str(NVME_PORT))):
        write(port + "/addr_" + name, value)
    os.symlink(subsystem, port + "/subsystems/speed")


# ---- load ----

def fio(args, rows, disk):
    """{row: IOPS}, and the share of the time in which the processor had work."""
    # fio makes a file where there is none.
    if not is_disk(disk):
        raise Failed("%s is no block device" % disk)
    try:
        write("/sys/block/%s/queue/scheduler" % os.path.basename(disk), "none")
    except PermissionError:
        pass			# the head of the paths of nvme has no scheduler
    argv = ["fio", "--output-format=json", "--ioengine=io_uring", "--direct=1", "--thread", "--time_based",
            "--filename=" + disk, "--runtime=%dms" % (1000 * args.runtime), "--ramp_time=100ms", "--size=128m",
            "--norandommap"]
    for name, rw, bs, depth in rows:
        argv += ["--name=" + name, "--stonewall", "--rw=" + rw, "--bs=" + bs, "--iodepth=%d" % depth]
    before, at = cpu_busy(), time.monotonic()
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=1200)
    busy = (cpu_busy() - before) / (time.monotonic() - at)
    text = done.stdout.decode(errors="replace")
    if done.returncode:
        raise Failed("fio failed with status %d on %s\n%s" % (done.returncode, disk, text))
    results = {}
    for job in json.loads(text[text.index("{"):])["jobs"]:
        side = max(job["read"], job["write"], key=lambda side: side["total_ios"])
        if job["error"] or not side["total_ios"]:
            raise Failed("fio reports error %d and %d IOs on %s" % (job["error"], side["total_ios"], disk))
        results[job["jobname"]] = side["iops"]
    return results, busy


def table(ways, rows, rounds):
    """IOPS of each way, and of the first way to each other one."""
    lines = []
    for row, *_ in rows:
        of = {w: [r[w][row] for r in rounds] for w in ways}
        ratios = [[a / b for a, b in zip(of[ways[0]], of[w])] for w in ways[1:]]
        lines.append([row] + ["%.0f" % statistics.median(of[w]) for w in ways] +
                     ["%.2f (%.2f-%.2f)" % (statistics.median(r), min(r), max(r)) for r in ratios])
    return markdown(["row"] + ways + ["%s/%s" % (ways[0], w) for w in ways[1:]], lines, names=1)


def main():
    p = argparse.ArgumentParser(description="Compare the ways to have a remote disk as a block device.",
                                epilog="Rows: " + ", ".join(r[0] for r in ROWS))
    p.add_argument("--rounds", type=int, default=3, metavar="N", help="[%(default)s]")
    p.add_argument("--runtime", type=float, default=0.25, metavar="S", help="seconds of the guest for each row [%(default)s]")
    p.add_argument("--rows", default=",".join(r[0] for r in ROWS), metavar="ROW[,ROW]", help="only these rows")
    p.add_argument("--ways", default=",".join(WAYS), metavar="WAY[,WAY]", help="only these, the first one to the others")
    p.add_argument("--storage", choices=("null", "file"), default="null", help="[%(default)s]")
    p.add_argument("--key", action="append", default=[], metavar="KEY=VALUE", help="for our client; repeatable")
    p.add_argument("--server-arg", action="append", default=[], metavar="ARG", help="for rtrs-server; repeatable")
    p.add_argument("--top", default=".", metavar="DIR", help="the build directory of what is measured [%(default)s]")
    args = p.parse_args()
    ways, rows = args.ways.split(","), [r for r in ROWS if r[0] in args.rows.split(",")]
    if not rows or set(ways) - set(WAYS):
        p.error("--rows or --ways: nothing is known by that name")
    if args.storage == "file":
        ways = [w for w in ways if not w.startswith("rnbd")]
    if "nvme" in ways and subprocess.run(["modprobe", "-n", "-q", "-a", "nvmet_tcp", "nvme_tcp"]).returncode:
        print("without nvme: test_modules of tests/guest/prepare.sh lacks nvmet_tcp and nvme_tcp", flush=True)
        ways.remove("nvme")
    if not os.path.isdir(LOGS):
        p.error("this runs in a guest only: make bench-attach")
    server = prepare(args, ways)
    rounds = []
    for n in range(args.rounds):
        rounds.append({})
        for way in ways if n % 2 == 0 else ways[::-1]:
            disk, end = WAYS[way](args)
            try:
                rounds[-1][way], busy = fio(args, rows, disk)
            finally:
                end()
            print("round %d %s, busy %.2f: %s" % (n + 1, way, busy, ", ".join(
                "%s %.0f" % (row, value) for row, value in rounds[-1][way].items())), flush=True)
    stop(server)
    print("\n%s\nLinux %s, %d CPU, %s, %d rounds of %.2f s of the guest" %
          (table(ways, rows, rounds), platform.release(), os.cpu_count(), args.storage, args.rounds, args.runtime))


if __name__ == "__main__":
    try:
        main()
    except Failed as e:
        sys.exit("bench/attach.py: %s" % e)
