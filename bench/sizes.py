#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure what a fleet costs: one server with many exports and sessions, and one host with many disks.

The first table is a server on its own: how long it takes to start and to have all gateways back after it was killed, its
memory, and the CPU of idle sessions.  The second compares, for the disks of one host, one rtrs-nbd for each disk with one
rtrs-nbd for all of them: memory, CPU while idle, and 4k random reads on all disks at once, in turns.  The third divides
--in-flight reads between 1 to 64 gateways, each with its disk, and between 1 to 64 NBD connections of one gateway, in
turns with nbdkit nbd before nbdkit file.  man/rtrs-guide.pod, SIZING, and doc/speed.md, "Many clients", have recorded
runs.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from topologies import Failed, Process


EACH = "one a disk"
HOST_ROWS = [(EACH, 1), ("one", 1), ("one, 2 threads", 2)]
GROWTH = [1, 4, 16, 64]


def pss_mib(process):
    """Memory of @process, in which a page that n processes share counts as 1/n."""
    with open("/proc/%d/smaps_rollup" % process.popen.pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:")) / 1024


class Fleet:
    """A server with @n exports, d0 and so on, and gateways."""

    all = []

    def __init__(self, args, n):
        self.all.append(self)
        self.args, self.n = args, n
        self.server = None
        self.dir = tempfile.mkdtemp(prefix="sizes.", dir=args.workdir)
        self.address = "unix:" + os.path.join(self.dir, "server.sock")
        self.gateways, self.started = [], 0
        self.control = os.path.join(self.dir, "ctl.sock")
        self.config = os.path.join(self.dir, "server.conf")
        with open(self.config, "w") as f:
            f.write("[server]\nlisten = %s\ncontrol = %s\nstate-dir = %s\nmax-sessions = 65536\nmax-paths = 65536\n"
                    "max-connections = 1048576\nmax-memory = 16T\n" % (self.address, self.control, self.dir))
            for i in range(n):
                path = os.path.join(self.dir, "disk%d" % i)
                with open(path, "wb") as disk:
                    os.truncate(disk.fileno(), args.size_mib << 20)
                f.write("\n[export \"d%d\"]\npath = %s\n" % (i, path))

    def start_server(self):
        """Returns the seconds until it is ready."""
        begin = time.monotonic()
        self.started += 1
        self.server = Process(self.dir, "server%d" % self.started, [self.args.server, "--config=" + self.config])
        self.server.wait_for("that it is ready", lambda: "ready, version" in self.server.log())
        return time.monotonic() - begin

    def start_gateway(self, name, parameters, threads):
        pidfile = os.path.join(self.dir, name + ".pid")
        gateway = Process(self.dir, name, [
            self.args.gateway, "-f", "-P", pidfile, "-U", os.path.join(self.dir, name + ".sock"), "--threads=%d" % threads,
            "server=" + self.address, "control=none",
            "connect-timeout=120", *parameters])
        self.gateways.append((gateway, pidfile))

    def wait_for_gateways(self):
        for gateway, pidfile in self.gateways:
            gateway.wait_for("its pid file", lambda: os.path.exists(pidfile) and os.path.getsize(pidfile))

    def sessions_up(self):
        done = subprocess.run([self.args.rtrsctl, "--socket=" + self.control, "--json", "show"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        if done.returncode:
            return 0
        return sum(s["state"] == "up" for s in json.loads(done.stdout)["sessions"])

    def wait_for_sessions(self, n):
        begin = time.monotonic()
        while self.sessions_up() < n:
            if time.monotonic() - begin > 120:
                raise Failed("%d of %d sessions are up after 120 s" % (self.sessions_up(), n))
            time.sleep(0.05)
        return time.monotonic() - begin

    def idle(self, seconds):
        """CPU of the server, and of all gateways, in percent of one CPU."""
        def cpu():
            return self.server.cpu_s(), sum(g.cpu_s() for g, _ in self.gateways)
        before, begin = cpu(), time.monotonic()
        time.sleep(seconds)
        took = time.monotonic() - begin
        return [100 * (b - a) / took for a, b in zip(before, cpu())]

    def gateways_mib(self):
        return sum(pss_mib(g) for g, _ in self.gateways)

    @classmethod
    def kill_all(cls):
        """What a run that failed has left."""
        for fleet in cls.all:
            for process in [g for g, _ in fleet.gateways] + [fleet.server]:
                if process and process.popen.poll() is None:
                    process.popen.kill()
                    process.popen.wait()

    def close(self):
        for gateway, _ in self.gateways:
            gateway.popen.terminate()
        for gateway, _ in self.gateways:
            gateway.stop()
        self.server.stop()
        shutil.rmtree(self.dir)


def server_row(args, exports, sessions):
    fleet = Fleet(args, exports)
    start_s = fleet.start_server()
    for i in range(sessions):
        fleet.start_gateway("g%d" % i, ["export=d%d" % (i % exports), "connections=%d" % args.connections], 1)
    fleet.wait_for_gateways()
    fleet.wait_for_sessions(sessions)
    time.sleep(2)			# an interval of heartbeats: what comes next is idle
    server_cpu, gateways_cpu = fleet.idle(args.seconds)
    row = dict(exports=exports, sessions=sessions, start_s=start_s, server_mib=pss_mib(fleet.server),
               gateway_mib=fleet.gateways_mib() / sessions if sessions else 0, server_cpu=server_cpu,
               gateways_cpu=gateways_cpu)
    fleet.server.popen.kill()
    fleet.server.popen.wait()
    begin = time.monotonic()
    fleet.start_server()
    fleet.wait_for_sessions(sessions)
    row["back_s"] = time.monotonic() - begin
    fleet.close()
    return row


def fio(args, fleet, disks, depth):
    """4k random reads at @depth on all @disks at once, (disk, gateway): IOPS, percentiles of their time, CPU time of an
    IO at the server and at the gateways."""
    argv = ["fio", "--output-format=json", "--name=global", "--thread", "--ioengine=nbd", "--rw=randread", "--bs=4k", "--time_based",
            "--runtime=%d" % args.runtime, "--iodepth=%d" % depth, "--norandommap", "--group_reporting",
            "--percentile_list=50:99"]
    for i, (disk, name) in enumerate(disks):
        argv += ["--name=job%d" % i, "--uri=nbd+unix:///d%d?socket=%s" % (disk, os.path.join(fleet.dir, name + ".sock"))]
    def cpu():
        return fleet.server.cpu_s(), sum(g.cpu_s() for g, _ in fleet.gateways)
    before = cpu()
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, cwd=fleet.dir)
    after = cpu()
    text = done.stdout.decode()
    side = json.loads(text[text.index("{"):])["jobs"][0]["read"]
    return dict(iops=side["iops"], p50_us=side["clat_ns"]["percentile"]["50.000000"] / 1000,
                p99_us=side["clat_ns"]["percentile"]["99.000000"] / 1000,
                **{key: 1e6 * (b - a) / side["total_ios"] for key, a, b in zip(("server_us", "gateway_us"), before, after)})


def host_rows(args):
    """The disks of one host, by one gateway for each and by one for all."""
    n, fleets = args.disks, {}
    for kind, threads in HOST_ROWS:
        fleet = fleets[kind] = Fleet(args, n)
        fleet.start_server()
        for i in range(n if kind == EACH else 1):
            fleet.start_gateway("g%d" % i, ["export=d%d" % i] if kind == EACH else [], threads)
        fleet.wait_for_gateways()
    rows = {kind: dict(mib=f.gateways_mib(), server_mib=pss_mib(f.server), idle=f.idle(args.seconds))
            for kind, f in fleets.items()}
    runs = {kind: [] for kind in fleets}
    for _ in range(args.rounds):
        for kind, f in fleets.items():
            runs[kind].append(fio(args, f, [(i, "g%d" % (i if kind == EACH else 0)) for i in range(n)], args.depth))
    for kind, f in fleets.items():
        rows[kind].update({key: statistics.median(run[key] for run in runs[kind]) for key in runs[kind][0]})
        rows[kind].update(loaded_mib=f.gateways_mib(), loaded_server_mib=pss_mib(f.server))
        f.close()
    return rows


class Peers:
    """As a Fleet, of nbdkit nbd before nbdkit file: gateways g0 and so on, of exports d0 and so on."""

    def __init__(self, args, n):
        self.dir = tempfile.mkdtemp(prefix="peers.", dir=args.workdir)
        disks, server = os.path.join(self.dir, "disks"), os.path.join(self.dir, "server.sock")
        os.mkdir(disks)
        for i in range(n):
            with open(os.path.join(disks, "d%d" % i), "wb") as disk:
                os.truncate(disk.fileno(), args.size_mib << 20)
        Fleet.all.append(self)
        self.gateways = []
        self.server = self.start("server", server, ["file", "dir=" + disks])
        for i in range(n):
            name = "g%d" % i
            self.gateways.append((self.start(name, os.path.join(self.dir, name + ".sock"),
                                             ["nbd", "socket=" + server, "export=d%d" % i]), None))

    def start(self, name, sock, what):
        pidfile = os.path.join(self.dir, name + ".pid")
        process = Process(self.dir, name, ["nbdkit", "-f", "-P", pidfile, "-U", sock, *what])
        process.wait_for("its pid file", lambda: os.path.exists(pidfile) and os.path.getsize(pidfile))
        return process

    def close(self):
        for process in [g for g, _ in self.gateways] + [self.server]:
            process.stop()
        shutil.rmtree(self.dir)


def growth_rows(args):
    """{(kind, n): medians of fio() of ours and of the peer} for n gateways, and n connections of one."""
    n = GROWTH[-1]
    ours, peers = Fleet(args, n), Peers(args, n)
    ours.start_server()
    for i in range(n):
        ours.start_gateway("g%d" % i, ["export=d%d" % i], 1)
    ours.wait_for_gateways()
    runs = {}
    for _ in range(args.rounds):
        for n in GROWTH:
            for kind, disks in (("gateways", [(i, "g%d" % i) for i in range(n)]), ("connections", [(0, "g0")] * n)):
                for fleet in ours, peers:
                    runs.setdefault((kind, n, fleet is peers), []).append(fio(args, fleet, disks, args.in_flight // n))
    ours.close()
    peers.close()
    return {row: {key: statistics.median(run[key] for run in done) for key in done[0]} for row, done in runs.items()}


def load():
    with open("/proc/loadavg") as f:
        return f.read().split()[0]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--exports", default="1,100,1000", help="exports of a server, one row each (%(default)s)")
    p.add_argument("--sessions", default="0,100,1000", help="sessions, likewise (%(default)s)")
    p.add_argument("--connections", type=int, default=1, help="connections of a session (%(default)s)")
    p.add_argument("--disks", type=int, default=16, help="disks of a host; 0: none (%(default)s)")
    p.add_argument("--depth", type=int, default=4, help="requests in flight of a disk (%(default)s)")
    p.add_argument("--in-flight", type=int, default=64, help="requests in flight of the third table; 0: none (%(default)s)")
    p.add_argument("--rounds", type=int, default=3, help="runs of fio (%(default)s)")
    p.add_argument("--runtime", type=int, default=3, help="seconds of a run (%(default)s)")
    p.add_argument("--seconds", type=int, default=20, help="for which idle programs are watched (%(default)s)")
    p.add_argument("--size-mib", type=int, default=64, help="of an export (%(default)s)")
    args = p.parse_args()
    top = os.path.abspath(os.environ.get("top_builddir", "."))
    args.server, args.gateway, args.rtrsctl = (os.path.join(top, name) for name in ("rtrs-server", "rtrs-nbd", "rtrsctl"))
    args.workdir = tempfile.mkdtemp(prefix="rtrs-sizes.")
    exports, sessions = ([int(word) for word in text.split(",")] for text in (args.exports, args.sessions))
    if len(exports) != len(sessions):
        p.error("--exports and --sessions: expected as many numbers in both")
    try:
        print("exports sessions  start s  back s  server MiB  gateway MiB  CPU server %%  CPU gateways %%   (load %s)" % load())
        for e, s in zip(exports, sessions):
            r = server_row(args, e, s)
            print("%7d %8d %8.2f %7.2f %11.1f %12.2f %13.2f %15.2f" % (
                e, s, r["start_s"], r["back_s"], r["server_mib"], r["gateway_mib"], r["server_cpu"], r["gateways_cpu"]),
                flush=True)
        if args.disks:
            print("\n%d disks of a host, 4k random reads at depth %d on each   (load %s)" % (args.disks, args.depth, load()))
            print("gateways         idle MiB  after IO  server after IO  idle CPU %     IOPS  p50 us  p99 us  CPU us/IO")
            for kind, r in host_rows(args).items():
                print("%-15s %9.1f %9.1f %16.1f %11.2f %8.0f %7.0f %7.0f %10.1f" % (
                    kind, r["mib"], r["loaded_mib"], r["loaded_server_mib"],
                    sum(r["idle"]), r["iops"], r["p50_us"], r["p99_us"], r["server_us"] + r["gateway_us"]))
        if args.in_flight:
            print("\n4k random reads, %d in flight   (load %s)" % (args.in_flight, load()))
            print("how many              IOPS  of the best  p50 us  p99 us  server us/IO  gateways us/IO   "
                  "nbdkit: IOPS  of the best")
            rows = growth_rows(args)
            for kind in "gateways", "connections":
                best = [max(rows[kind, n, peer]["iops"] for n in GROWTH) for peer in (False, True)]
                for n in GROWTH:
                    r, p = rows[kind, n, False], rows[kind, n, True]
                    print("%3d %-12s %9.0f %12.2f %7.0f %7.0f %13.1f %15.1f %15.0f %12.2f" % (
                        n, kind, r["iops"], r["iops"] / best[0], r["p50_us"], r["p99_us"], r["server_us"],
                        r["gateway_us"], p["iops"], p["iops"] / best[1]))
    except Failed as e:
        print("sizes: " + str(e), file=sys.stderr)
        return 1
    finally:
        Fleet.kill_all()
        shutil.rmtree(args.workdir, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
