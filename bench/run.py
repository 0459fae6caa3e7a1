#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compare ways to reach a file over NBD, with fio's nbd engine and nbdcopy.

  ours     fio -> unix socket -> nbdkit rtrs  == tcp loopback ==> rtrs-server -> file
  peer     fio -> unix socket -> nbdkit nbd   == tcp loopback ==> nbdkit file -> file
  unix, peer-unix            the two with a unix socket in place of tcp
  ceiling  fio -> unix socket -> nbdkit ceiling.so, where a second thread answers -> file
  gateway  ours with rtrs-nbd in the place of nbdkit; gateway-unix: with a unix socket in place of tcp
  limit    fio -> unix socket -> nbdkit file -> file
  tls, gateway-tls, peer-tls ours, gateway and peer with TLS 1.3 on the tcp leg, a pre-shared key, AES-128-GCM first
  digest   gateway with digest=crc32c
  gateway-nbds, peer-nbds    gateway and peer with TLS 1.3 on the leg of the NBD client alone, by certificates
  rbd      fio -> unix socket -> rtrs-nbd == unix socket ==> rtrs-server -> image of Ceph (rbd.sh)
  rbd-qemu, rbd-limit        fio -> unix socket -> qemu-nbd -> image; fio's rbd engine -> image

  never, copy, always        ours with this --invalidate
  static, window             ours with this registration
  base, base-gateway         ours and gateway as they stand in another build directory (--base)

All of them run in every round, one after the other for each row and in an order that rotates, on
the same preallocated and warmed file, with the same nbdkit, -t and kind of socket.  What counts is
the ratio within one round, so that a slow minute of the machine hits both sides of a ratio: the
tables show the median of these ratios and, in brackets, its interval (targets.py).  There are rounds until
each target is met or missed for sure, or --rounds are done.

CPU per IO is the user and system time of all processes of the topology (not of fio) during one
run, divided by the number of IOs of that run.  What others have of the machine's CPUs is looked at before each
round, while all is still: a machine that is busy tells nothing, and the verdict says so.
"""

import argparse
import csv
import datetime
import fnmatch
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import loads
from loads import COPY_ROWS, ROWS
from targets import ENOUGH_ROUNDS, TARGETS, Results, interval
from topologies import TOPOLOGIES, VARIANTS, Failed, Topology, make_certificates, make_keys

# Of those that run, these are divided: the first by the second.
RATIOS = [("ours", "base"), ("gateway", "base-gateway"), ("ours", "peer"), ("ours", "ceiling"), ("ours", "limit"), ("unix", "peer"),
          ("unix", "peer-unix"), ("gateway", "peer"), ("gateway-unix", "peer"), ("gateway", "ours"), ("gateway", "limit"),
          ("tls", "peer-tls"), ("gateway-tls", "peer-tls"), ("tls", "ours"), ("gateway-tls", "gateway"), ("peer-tls", "peer"),
          ("gateway-nbds", "peer-nbds"), ("gateway-nbds", "gateway"), ("peer-nbds", "peer"),
          ("digest", "gateway"), ("rbd", "rbd-qemu"), ("rbd", "rbd-limit"), ("copy", "never"),
          ("always", "never"), ("ours", "static"), ("window", "static")]
KEYED = {"tls", "gateway-tls", "peer-tls"}
CERTIFIED = {"gateway-nbds", "peer-nbds"}
# What TLS costs, and costs others.
TLS = dict(topologies="ours,tls,gateway,gateway-tls,gateway-nbds,peer,peer-tls,peer-nbds",
           rows="4k-*-qd1,4k-*-qd32,128k-*", csv="bench-tls.csv")
# The picture of speed over depth.
PLOTS = dict(topologies="ours,peer,gateway,gateway-unix",
             rows=",".join(row[0] for row in loads.FIO_ROWS if row[0].startswith("4k-randread-") and row[4] == 1),
             csv=os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "doc", "speed.csv")))
FIELDS = ("round", "row", "topology", "ios", "cpu_us_per_io", "rate", "p50_us", "p99_us", "p999_us", "others_rate", "jain")
LOOK_S = 0.5			# at what others do
BUSY = 0.10			# of the CPUs: a machine that tells nothing
STOLEN = 0.05


def cpu_times():
    """(all, idle, stolen) ticks of all CPUs."""
    with open("/proc/stat") as f:
        ticks = [int(word) for word in f.readline().split()[1:9]]
    return sum(ticks), ticks[3] + ticks[4], ticks[7]


class Machine:
    """What others have of the CPUs, by round: busy while the bench stands still, stolen all the time."""

    def __init__(self):
        self.busy, self.stolen = [], []
        self.since = cpu_times()

    def look(self):
        total, _, stolen = (now - then for now, then in zip(cpu_times(), self.since))
        if total:
            self.stolen.append(stolen / total)
        begin = cpu_times()
        time.sleep(LOOK_S)
        total, idle, _ = (now - then for now, then in zip(cpu_times(), begin))
        self.busy.append(1 - idle / max(total, 1))
        self.since = cpu_times()

    def too_busy(self):
        return statistics.median(self.busy) > BUSY or statistics.median(self.stolen) > STOLEN

    def words(self):
        return "others had %.0f %% of the CPUs (median of %d looks), %.1f %% were stolen" % (
            100 * statistics.median(self.busy), len(self.busy), 100 * statistics.median(self.stolen))


def file_of(args, row):
    return args.sparse if row in loads.SPARSE_COPIES else args.file


def measure(args, topologies, rows, number):
    """One round: all rows against all running topologies.  Yields a dict for each run."""
    for i, row in enumerate(rows):
        of_row = [t for t in topologies if t.file == file_of(args, row) and loads.fits(row, t)]
        turn = (number + i) % max(len(of_row), 1)
        for topology in of_row[turn:] + of_row[:turn]:
            os.sync()		# what an earlier run left dirty is not this run's work
            before = topology.cpu_s()
            ios, numbers = loads.do(args, row, topology)
            cpu_us = (topology.cpu_s() - before) * 1e6 / ios
            yield dict(round=number, row=row, topology=topology.name, ios=ios, cpu_us_per_io=round(cpu_us, 2),
                       **numbers)


def number(value):
    if value is None:
        return "-"
    if value >= 9950:
        return "%.1fk" % (value / 1000)
    return "%.0f" % value if value >= 100 else "%.1f" % value


def markdown(lines):
    lines = [lines[0], ["---"] + ["---:"] * (len(lines[0]) - 1)] + lines[1:]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def with_interval(ratios):
    return "%.2f (%.2f-%.2f)" % (statistics.median(ratios), *interval(ratios)) if ratios else "-"


def ratio_table(results, topologies, rows):
    pairs = [(a, b) for a, b in RATIOS if a in topologies and b in topologies]
    cpu_pairs = [p for p in pairs if p in pairs[:1] or p[1] in ("peer-tls", "peer-nbds")]
    lines = [["row"] + [t + " IOPS" for t in topologies] + ["%s/%s" % p for p in pairs] +
             [t + " CPU µs/IO" for t in topologies] + ["CPU %s/%s" % p for p in cpu_pairs]]
    for row in rows:
        def ratio(key, a, b):
            return with_interval(results.ratios(key, (row, a), (row, b)))
        lines.append([row] + [number(results.median(row, t, "rate")) for t in topologies] +
                     [ratio("rate", a, b) for a, b in pairs] +
                     [number(results.median(row, t, "cpu_us_per_io")) for t in topologies] +
                     [ratio("cpu_us_per_io", a, b) for a, b in cpu_pairs])
    return markdown(lines)


def latency_table(results, topologies, rows):
    columns = [(t, words, key) for t in topologies for words, key in
               (("p50", "p50_us"), ("p99", "p99_us"), ("p99.9", "p999_us"))]
    return markdown([["row, µs"] + ["%s %s" % (t, words) for t, words, _ in columns]] +
                    [[row] + [number(results.median(row, t, key)) for t, _, key in columns]
                     for row in rows if row not in COPY_ROWS])


def turns_table(results, topologies, rows):
    """Of clients beside others: what they have of what one has alone, and how equal they are."""
    lines = [["QD1 beside others"] + ["%s %s" % (t, words) for t in topologies for words in
                                      ("IOPS/alone", "p50/alone", "p99/alone", "others IOPS", "Jain's index")]]
    for row in rows:
        if row not in loads.BESIDE_ROWS:
            continue
        line = [row]
        for t in topologies:
            for key in ("rate", "p50_us", "p99_us"):
                line.append(with_interval(results.ratios(key, (row, t), ("4k-randread-qd1", t))))
            line += [number(results.median(row, t, "others_rate")), "%.2f" % (results.median(row, t, "jain") or 0)]
        lines.append(line)
    return markdown(lines) if len(lines) > 1 else ""


def target_table(results, machine):
    lines = [["", "wanted", "measured", "verdict"]]
    for target in TARGETS:
        verdict = target.verdict(results)
        if not verdict:
            continue
        median, low, high, word = verdict
        if machine.too_busy():
            word = "the machine is too busy to tell"
        elif word == "open":
            word = "too close to tell"
        lines.append(["%s %s" % (target.number, target.what), target.wanted(),
                      "%.2f (%.2f-%.2f)" % (median, low, high), word])
    return markdown(lines) if len(lines) > 1 else ""


def all_decided(results):
    verdicts = [verdict for verdict in (target.verdict(results) for target in TARGETS) if verdict]
    return bool(verdicts) and all(word != "open" for *_, word in verdicts)


def words_of_machine(args):
    model = ""
    with open("/proc/cpuinfo") as f:
        found = re.search(r"^model name\s*:\s*(.*)$", f.read(), re.M)
        if found:
            model = found.group(1)
    version = subprocess.run([args.nbdkit, "--version"], stdout=subprocess.PIPE, check=True)
    return "%s, %d CPUs (%s), Linux %s, %s" % (
        datetime.date.today().isoformat(), os.cpu_count(), model, platform.release(),
        version.stdout.decode().strip())


def arguments():
    top = os.environ.get("top_builddir", ".")
    p = argparse.ArgumentParser(
        description="Compare nbdkit rtrs and rtrs-server with nbdkit nbd and nbdkit file.",
        epilog="Rows: " + ", ".join(ROWS))
    p.add_argument("--rounds", type=int, default=15, metavar="N",
                   help="at most so many; no more than needed to tell, and %d for that [%%(default)s]" % ENOUGH_ROUNDS)
    p.add_argument("--runtime", type=int, default=2, metavar="S",
                   help="seconds of each fio run [%(default)s]")
    p.add_argument("--plots", action="store_true",
                   help="what make plots draws: 4k reads at all depths, %s, into doc/speed.csv" % PLOTS["topologies"])
    p.add_argument("--tls", action="store_true",
                   help="what TLS costs: %s, rows %s, into %s" % (TLS["topologies"], TLS["rows"], TLS["csv"]))
    p.add_argument("--rows", default="*", metavar="GLOB[,GLOB]",
                   help="only these rows, e.g. '4k-*-qd32'")
    p.add_argument("--topologies", default=",".join(TOPOLOGIES[:4]), metavar="NAME[,NAME]",
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
    p.add_argument("--rtrs-bench", default=os.path.join(top, "rtrs-bench"), metavar="PROG",
                   help="[%(default)s]")
    p.add_argument("--rtrs-psk", default=os.path.join(top, "rtrs-psk"), metavar="PROG", help="[%(default)s]")
    p.add_argument("--plugin", default=os.path.join(top, ".libs/nbdkit-rtrs-plugin.so"),
                   metavar="PATH", help="[%(default)s]")
    p.add_argument("--ceiling", default=os.path.join(top, ".libs/ceiling.so"), metavar="PATH", help="[%(default)s]")
    p.add_argument("--base", metavar="DIR",
                   help="another build directory, for the topology base: what a change costs is"
                        " --topologies=ours,base")
    p.add_argument("--server-arg", action="append", default=[], metavar="ARG",
                   help="pass on to rtrs-server; repeatable")
    p.add_argument("--plugin-arg", action="append", default=[], metavar="KEY=VALUE",
                   help="pass on to nbdkit rtrs; repeatable")
    p.add_argument("--csv", default="bench.csv", metavar="PATH",
                   help="every round as CSV [%(default)s]")
    p.add_argument("--md", metavar="PATH", help="write the tables to a file as well")
    known = p.parse_known_args()[0]
    for wanted, defaults in ((known.plots, PLOTS), (known.tls, TLS)):
        if wanted:
            p.set_defaults(**defaults)
    args = p.parse_args()

    args.rows = [row for row in ROWS if any(fnmatch.fnmatch(row, g) for g in args.rows.split(","))]
    if not args.rows:
        p.error("--rows matches no row of: %s" % ", ".join(ROWS))
    args.topologies = args.topologies.split(",")
    for name in args.topologies:
        if name not in TOPOLOGIES:
            p.error("--topologies: %r is none of %s" % (name, ", ".join(TOPOLOGIES)))
    for option in ("rounds", "runtime", "size_mib", "threads"):
        if getattr(args, option) < 1:
            p.error("--%s must be at least 1" % option.replace("_", "-"))
    for prog in (["fio", args.nbdkit] + ["nbdcopy"] * bool(set(args.rows) & set(COPY_ROWS)) +
                 ["qemu-img"] * ("sparse-convert" in args.rows) + ["certtool"] * bool(CERTIFIED & set(args.topologies))):
        if not shutil.which(prog):
            p.error("%s is not installed" % prog)
    if bool({"base", "base-gateway"} & set(args.topologies)) != bool(args.base):
        p.error("--base=DIR and the topologies base and base-gateway belong together")
    if args.base:
        args.base = os.path.abspath(args.base)
    ours = set(args.topologies) & ({"ours", "unix"} | (KEYED | CERTIFIED) - {"peer-tls", "peer-nbds"}) or set(args.topologies) & set(VARIANTS)
    for path in [args.server, args.plugin, args.rtrs_bench] * bool(ours) + [args.ceiling] * ("ceiling" in args.topologies) + \
            [args.rtrs_psk] * bool(KEYED & set(args.topologies)):
        if not os.path.exists(path):
            p.error("%s does not exist: run make first" % path)
    # nbdkit takes a word without / as a name, and what runs in the directory of the files needs a whole path
    args.rtrs_bench = os.path.abspath(args.rtrs_bench)
    args.plugin, args.ceiling = os.path.abspath(args.plugin), os.path.abspath(args.ceiling)
    if args.file and os.path.lexists(args.file):
        p.error("--file: %s exists, and the file is overwritten" % args.file)
    return args


def rounds(args, results, machine, topologies):
    """Until there are enough; each is written to the CSV when it is there."""
    with open(args.csv, "w", newline="") as out:
        writer = csv.DictWriter(out, FIELDS)
        writer.writeheader()
        for n in range(args.rounds):
            machine.look()
            topologies[:] = [Topology(name, args, args.workdir, path) for name in args.topologies
                             for path in sorted({file_of(args, row) for row in args.rows})]
            for t in topologies:
                t.start()
                if set(args.rows) & set(loads.ELSEWHERE_ROWS):
                    t.start_other()
            for r in measure(args, topologies, args.rows, n):
                writer.writerow(r)
                out.flush()
                results.add(r)
                print("round %d  %-19s %-7s %9.0f /s  p99 %8.0f us  CPU %7.1f us/IO" %
                      (n, r["row"], r["topology"], r["rate"], r["p99_us"], r["cpu_us_per_io"]), file=sys.stderr)
            for t in topologies:
                t.stop()
            if all_decided(results):
                return n + 1
    return args.rounds


def main():
    args = arguments()
    args.workdir = tempfile.mkdtemp(prefix="nbdkit-rtrs-bench.", dir=os.environ.get("TMPDIR", "/var/tmp"))
    args.file = os.path.abspath(args.file or os.path.join(args.workdir, "disk.img"))
    args.source, args.sparse, args.copied = (os.path.join(args.workdir, name + ".img")
                                             for name in ("source", "sparse", "copied"))
    args.keys = os.path.join(args.workdir, "keys.psk")
    args.certificates = os.path.join(args.workdir, ".pki", "libnbd")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    topologies, results, machine = [], Results(), Machine()
    try:
        loads.prepare_file(args.file, args.size_mib)
        if "nbdcopy-in" in args.rows:
            loads.prepare_file(args.source, args.size_mib)
        if set(args.rows) & set(loads.SPARSE_COPIES):
            loads.prepare_sparse_file(args.sparse, args.size_mib)
        if KEYED & set(args.topologies):
            make_keys(os.path.abspath(args.rtrs_psk), args.keys)
        if CERTIFIED & set(args.topologies):
            make_certificates(args.certificates)
        done = rounds(args, results, machine, topologies)
        tables = [target_table(results, machine), ratio_table(results, args.topologies, args.rows),
                  latency_table(results, args.topologies, args.rows),
                  turns_table(results, args.topologies, args.rows)]
        text = "%s; nbdkit -t %d, %d rounds of %d s, file of %d MiB in the page cache; %s\n\n%s" % (
            words_of_machine(args), args.threads, done, args.runtime, args.size_mib, machine.words(),
            "\n".join(table for table in tables if table))
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
        if os.path.exists(args.file):
            os.unlink(args.file)
        shutil.rmtree(args.workdir, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
