#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare ways to reach a file over NBD, with fio's nbd engine.

  ours   fio -> unix socket -> nbdkit rtrs  == tcp loopback ==> rtrs-server -> file
  peer   fio -> unix socket -> nbdkit nbd   == tcp loopback ==> nbdkit file -> file
  limit  fio -> unix socket -> nbdkit file -> file

  never, copy, always        ours with this --invalidate
  static, window             ours with this registration
  base                       ours as it stands in another build directory (--base)

All of them run in every round, one after the other for each row and in an order that rotates, on
the same preallocated and warmed file, with the same nbdkit, -t and kind of socket.  What counts is
the ratio within one round, so that a slow minute of the machine hits both sides of a ratio: the
table shows the median of these ratios and their spread, which is the smallest and the largest, or
with 6 rounds and more the interval that has the true median with a probability of 95 % or more
(of the order statistics; nothing is assumed about how the noise is distributed).

CPU per IO is the user and system time of all processes of the topology (not of fio) during one
fio run, divided by the number of IOs of that run.
"""

import argparse
import csv
import datetime
import fnmatch
import json
import math
import os
import platform
import re
import select
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROWS = [
    ("4k-randread-qd1", "randread", "4k", 1),
    ("4k-randread-qd16", "randread", "4k", 16),
    ("4k-randread-qd32", "randread", "4k", 32),
    ("4k-randwrite-qd1", "randwrite", "4k", 1),
    ("4k-randwrite-qd16", "randwrite", "4k", 16),
    ("4k-randwrite-qd32", "randwrite", "4k", 32),
    ("128k-read-qd16", "read", "128k", 16),
    ("128k-write-qd16", "write", "128k", 16),
]
VARIANTS = {
    "never": (["--invalidate=never"], []),
    "copy": (["--invalidate=copy"], []),
    "always": (["--invalidate=always"], []),
    "static": ([], ["registration=static"]),
    "window": ([], ["registration=window"]),
}
TOPOLOGIES = ["ours", "peer", "limit", "base"] + list(VARIANTS)
# Of those that run, these are divided: the first by the second.
RATIOS = [("ours", "base"), ("ours", "peer"), ("ours", "limit"), ("copy", "never"), ("always", "never"),
          ("ours", "static"), ("window", "static")]
START_TIMEOUT_S = 15
TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """The run cannot go on; the text says why."""


class Process:
    """A server in the foreground with its output in a log file."""

    def __init__(self, workdir, name, argv, pass_fds=(), env=None):
        self.name = name
        self.argv = argv
        self.logpath = os.path.join(workdir, name + ".log")
        with open(self.logpath, "wb") as log:
            self.popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                          pass_fds=pass_fds, env=env)

    def log(self):
        with open(self.logpath, errors="replace") as f:
            return f.read()

    def fail(self, what):
        raise Failed("%s %s\n  command: %s\n  output:\n%s" %
                     (self.name, what, " ".join(self.argv), self.log() or "    (none)"))

    def wait_for(self, what, ready):
        """Return what ready() gives, once it is true; Failed if the process ends or time is up."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            answer = ready()
            if answer:
                return answer
            if self.popen.poll() is not None:
                self.fail("ended with status %d before: %s" % (self.popen.returncode, what))
            if time.monotonic() > deadline:
                self.fail("took more than %d s: %s" % (START_TIMEOUT_S, what))
            time.sleep(0.01)

    def cpu_s(self):
        """CPU time of all its threads, ended ones included."""
        with open("/proc/%d/stat" % self.popen.pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * TICK_S

    def stop(self):
        if self.popen.poll() is None:
            self.popen.terminate()
            try:
                self.popen.wait(20)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()
                self.fail("did not end within 20 s of SIGTERM")
        if self.popen.returncode not in (0, -signal.SIGTERM):
            self.fail("ended with status %d" % self.popen.returncode)


class Topology:
    """The running servers of one topology and the NBD URI of its near end."""

    def __init__(self, name, args, workdir):
        self.name = name
        self.args = args
        self.workdir = tempfile.mkdtemp(prefix=name + ".", dir=workdir)
        self.processes = []
        self.socket = os.path.join(self.workdir, "nbd.sock")
        self.uri = "nbd+unix:///?socket=" + self.socket

    def start(self):
        if self.name in VARIANTS:
            self.start_ours(*VARIANTS[self.name])
        else:
            getattr(self, "start_" + self.name)()

    def stop(self):
        while self.processes:
            self.processes.pop().stop()

    def kill(self):
        for p in self.processes:
            if p.popen.poll() is None:
                p.popen.kill()
                p.popen.wait()
        self.processes = []

    def cpu_s(self):
        return sum(p.cpu_s() for p in self.processes)

    def spawn(self, *args, **kwargs):
        p = Process(self.workdir, *args, **kwargs)
        self.processes.append(p)
        return p

    def nbdkit(self, name, where, *plugin_and_args, **kwargs):
        """nbdkit with the options all topologies share; returns when it accepts connections."""
        pidfile = os.path.join(self.workdir, name + ".pid")
        argv = [self.args.nbdkit, "-f", "-t", str(self.args.threads), "-P", pidfile]
        p = self.spawn(name, kwargs.pop("wrap", []) + argv + where + list(plugin_and_args),
                       **kwargs)
        # nbdkit writes its pid when it is ready; the file may exist a moment before its content.
        p.wait_for("its pid file", lambda: os.path.exists(pidfile) and os.path.getsize(pidfile))

    def start_limit(self):
        self.nbdkit("nbdkit-file", ["-U", self.socket], "file", self.args.file)

    def start_peer(self):
        # The listening socket is ours and handed over, so that no port has to be guessed.
        with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
            port = listener.getsockname()[1]
            fd = listener.fileno()
            # Socket activation: descriptor 3, and the pid of the process that gets it.
            wrap = ["/bin/sh", "-c",
                    'exec 3<&%d; export LISTEN_FDS=1 LISTEN_PID=$$; exec "$@"' % fd, "sh"]
            self.nbdkit("nbdkit-file", [], "file", self.args.file, pass_fds=(fd,), wrap=wrap)
        self.nbdkit("nbdkit-nbd", ["-U", self.socket], "nbd", "hostname=127.0.0.1",
                    "port=%d" % port)

    def start_base(self):
        self.start_ours(server_program=os.path.join(self.args.base, "rtrs-server"),
                        plugin=os.path.join(self.args.base, ".libs/nbdkit-rtrs-plugin.so"))

    def shared_file_options(self, server):
        """All topologies run at once, on one file, and one at a time does something.  An older server has no lock."""
        text = subprocess.run([server, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
        options = []
        if "--no-lock" in text:
            options.append("--no-lock")
        if "--state-dir" in text:
            options += ["--state-dir", os.path.join(self.args.workdir, "state-" + self.name)]
        return options

    def start_ours(self, server_arg=(), plugin_arg=(), server_program=None, plugin=None):
        server_program = server_program or self.args.server
        rd, wr = os.pipe()
        try:
            server = self.spawn(
                "rtrs-server",
                [server_program, "--listen", "tcp://127.0.0.1:0", "--ready-fd", str(wr)]
                + self.shared_file_options(server_program) + self.args.server_arg + list(server_arg) + ["bench=" + self.args.file], pass_fds=(wr,))
        finally:
            os.close(wr)
        try:
            server.wait_for("readiness on --ready-fd",
                            lambda: select.select([rd], [], [], 0)[0] and os.read(rd, 64))
        finally:
            os.close(rd)
        port = server.wait_for("the port it listens on",
                               lambda: re.search(r"tcp://127\.0\.0\.1:([1-9]\d*)", server.log()))
        self.nbdkit("nbdkit-rtrs", ["-U", self.socket], plugin or self.args.plugin,
                    "server=127.0.0.1:" + port.group(1), "export=bench",
                    *self.args.plugin_arg, *plugin_arg)


def fio(args, row, uri):
    """Run fio once; returns (total IOs, IOs per second, median and 99th percentile in us)."""
    name, rw, bs, depth = row
    argv = ["fio", "--name=" + name, "--ioengine=nbd", "--uri=" + uri, "--rw=" + rw, "--bs=" + bs,
            "--iodepth=%d" % depth, "--time_based", "--runtime=%d" % args.runtime,
            "--norandommap", "--output-format=json"]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=args.runtime + 60, cwd=args.workdir)
    text = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        raise Failed("fio failed with status %d on %s\n%s%s" %
                     (done.returncode, uri, text, done.stderr.decode(errors="replace")))
    # fio may print notes before the JSON.
    job = json.loads(text[text.index("{"):])["jobs"][0]
    if job["error"]:
        raise Failed("fio reports error %d on %s" % (job["error"], uri))
    side = job["read" if "read" in rw else "write"]
    if side["total_ios"] == 0:
        raise Failed("fio did no IO on " + uri)
    percentile = side["clat_ns"]["percentile"]
    return (side["total_ios"], side["iops"],
            percentile["50.000000"] / 1000, percentile["99.000000"] / 1000)


def measure(args, topologies, rows, note):
    """One round: all rows against all running topologies.  Yields a dict for each fio run."""
    for i, row in enumerate(rows):
        turn = (note["round"] + i) % len(topologies)
        for topology in topologies[turn:] + topologies[:turn]:
            os.sync()		# what an earlier run left dirty is not this run's work
            before = topology.cpu_s()
            ios, iops, p50, p99 = fio(args, row, topology.uri)
            cpu_us = (topology.cpu_s() - before) * 1e6 / ios
            yield dict(note, row=row[0], topology=topology.name, ios=ios, iops=round(iops, 1),
                       p50_us=round(p50, 1), p99_us=round(p99, 1), cpu_us_per_io=round(cpu_us, 2))


def prepare_file(args):
    """Preallocate the file with data that is not zero, and read it into the page cache."""
    args.size = args.size_mib << 20
    block = os.urandom(1 << 20)
    with open(args.file, "wb") as f:
        os.posix_fallocate(f.fileno(), 0, args.size)
        for _ in range(args.size_mib):
            f.write(block)
        f.flush()
        os.fsync(f.fileno())
    with open(args.file, "rb") as f:
        while f.read(1 << 20):
            pass


def number(value):
    if value >= 9950:
        return "%.1fk" % (value / 1000)
    return "%.0f" % value if value >= 100 else "%.1f" % value


def spread(values):
    """What stands in brackets behind a median; the head of this file says what it is."""
    values = sorted(values)
    n, k = len(values), 0
    # Ranks k + 1 and n - k from both ends: the median is outside with 2 P(Binomial(n, 1/2) <= k).
    while n >= 6 and 2 * sum(math.comb(n, i) for i in range(k + 2)) <= 0.05 * 2 ** n:
        k += 1
    return "%.2f-%.2f" % (values[k], values[n - 1 - k])


def table(results, topologies, rows):
    """The results as a markdown table."""
    def values(row, topology, key):
        return {r["round"]: r[key] for r in results
                if r["row"] == row and r["topology"] == topology}

    def median(row, topology, key):
        return statistics.median(values(row, topology, key).values())

    def ratio(row, key, above, below):
        a, b = values(row, above, key), values(row, below, key)
        each = [a[n] / b[n] for n in a if n in b and b[n]]
        if not each:
            return "-"
        return "%.2f (%s)" % (statistics.median(each), spread(each))

    pairs = [(a, b) for a, b in RATIOS if a in topologies and b in topologies]
    head = ["row"] + [t + " IOPS" for t in topologies]
    head += ["%s/%s" % p for p in pairs]
    head += [t + " CPU µs/IO" for t in topologies]
    head += ["CPU %s/%s" % p for p in pairs[:1]]
    lines = [head, ["---"] + ["---:"] * (len(head) - 1)]
    for row in rows:
        name = row[0]
        line = [name] + [number(median(name, t, "iops")) for t in topologies]
        line += [ratio(name, "iops", a, b) for a, b in pairs]
        line += [number(median(name, t, "cpu_us_per_io")) for t in topologies]
        line += [ratio(name, "cpu_us_per_io", a, b) for a, b in pairs[:1]]
        lines.append(line)
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def machine(args):
    model = ""
    with open("/proc/cpuinfo") as f:
        found = re.search(r"^model name\s*:\s*(.*)$", f.read(), re.M)
        if found:
            model = found.group(1)
    version = subprocess.run([args.nbdkit, "--version"], stdout=subprocess.PIPE, check=True)
    return "%s, %d CPUs (%s), Linux %s, %s" % (
        datetime.date.today().isoformat(), os.cpu_count(), model, platform.release(),
        version.stdout.decode().strip())


def main():
    top = os.environ.get("top_builddir", ".")
    p = argparse.ArgumentParser(
        description="Compare nbdkit rtrs and rtrs-server with nbdkit nbd and nbdkit file.",
        epilog="Rows: " + ", ".join(r[0] for r in ROWS))
    p.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds [%(default)s]")
    p.add_argument("--runtime", type=int, default=5, metavar="S",
                   help="seconds of each fio run [%(default)s]")
    p.add_argument("--rows", default="*", metavar="GLOB[,GLOB]",
                   help="only these rows, e.g. '4k-*-qd32'")
    p.add_argument("--topologies", default=",".join(TOPOLOGIES[:3]), metavar="NAME[,NAME]",
                   help="of %s [%%(default)s]" % ", ".join(TOPOLOGIES))
    p.add_argument("--file", metavar="PATH",
                   help="the file to export, created and removed; must not exist [in a new"
                        " directory below $TMPDIR or /var/tmp]")
    p.add_argument("--size-mib", type=int, default=1024, metavar="N",
                   help="size of the file [%(default)s]")
    p.add_argument("--threads", type=int, default=32, metavar="N",
                   help="nbdkit -t of all topologies [%(default)s]")
    p.add_argument("--nbdkit", default="nbdkit", metavar="PROG", help="[%(default)s]")
    p.add_argument("--server", default=os.path.join(top, "rtrs-server"), metavar="PROG",
                   help="[%(default)s]")
    p.add_argument("--plugin", default=os.path.join(top, ".libs/nbdkit-rtrs-plugin.so"),
                   metavar="PATH", help="[%(default)s]")
    p.add_argument("--base", metavar="DIR",
                   help="another build directory, for the topology base: what a change costs is"
                        " --topologies=ours,base")
    p.add_argument("--server-arg", action="append", default=[], metavar="ARG",
                   help="pass on to rtrs-server; repeatable")
    p.add_argument("--plugin-arg", action="append", default=[], metavar="KEY=VALUE",
                   help="pass on to nbdkit rtrs; repeatable")
    p.add_argument("--csv", default="bench.csv", metavar="PATH",
                   help="every round as CSV [%(default)s]")
    p.add_argument("--md", metavar="PATH", help="write the table to a file as well")
    args = p.parse_args()

    rows = [r for r in ROWS if any(fnmatch.fnmatch(r[0], g) for g in args.rows.split(","))]
    if not rows:
        p.error("--rows=%s matches no row of: %s" % (args.rows, ", ".join(r[0] for r in ROWS)))
    names = args.topologies.split(",")
    for name in names:
        if name not in TOPOLOGIES:
            p.error("--topologies: %r is none of %s" % (name, ", ".join(TOPOLOGIES)))
    for option in ("rounds", "runtime", "size_mib", "threads"):
        if getattr(args, option) < 1:
            p.error("--%s must be at least 1" % option.replace("_", "-"))
    for prog in ("fio", args.nbdkit):
        if not shutil.which(prog):
            p.error("%s is not installed" % prog)
    if ("base" in names) != bool(args.base):
        p.error("--base=DIR and the topology base belong together")
    if args.base:
        args.base = os.path.abspath(args.base)
    if "ours" in names or set(names) & set(VARIANTS):
        for path in (args.server, args.plugin):
            if not os.path.exists(path):
                p.error("%s does not exist: run make first" % path)
        args.plugin = os.path.abspath(args.plugin)	# nbdkit takes a word without / as a name

    if args.file and os.path.lexists(args.file):
        p.error("--file: %s exists, and the file is overwritten" % args.file)

    base = os.environ.get("TMPDIR", "/var/tmp")
    args.workdir = tempfile.mkdtemp(prefix="nbdkit-rtrs-bench.", dir=base)
    args.file = os.path.abspath(args.file or os.path.join(args.workdir, "disk.img"))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    topologies, results = [], []
    try:
        prepare_file(args)
        with open(args.csv, "w", newline="") as out:
            writer = None
            for n in range(args.rounds):
                topologies = [Topology(name, args, args.workdir) for name in names]
                for t in topologies:
                    t.start()
                for r in measure(args, topologies, rows, {"round": n}):
                    if writer is None:
                        writer = csv.DictWriter(out, r.keys())
                        writer.writeheader()
                    writer.writerow(r)
                    out.flush()
                    results.append(r)
                    print("round %d  %-18s %-6s %9.0f IOPS  p99 %8.0f us  CPU %7.1f us/IO" %
                          (n, r["row"], r["topology"], r["iops"], r["p99_us"],
                           r["cpu_us_per_io"]), file=sys.stderr)
                for t in topologies:
                    t.stop()
        text = "%s; nbdkit -t %d, %d rounds of %d s, file of %d MiB in the page cache\n\n%s" % (
            machine(args), args.threads, args.rounds, args.runtime, args.size_mib,
            table(results, names, rows))
        print(text, end="")
        if args.md:
            with open(args.md, "w") as f:
                f.write(text)
    except Failed as e:
        print("bench: " + str(e), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        for t in topologies:
            t.kill()
        try:
            os.unlink(args.file)
        except FileNotFoundError:
            pass
        shutil.rmtree(args.workdir, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
