#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What the bench says of its rounds: an interval has the median as often as it says, a verdict needs
# enough rounds and all of the interval, and a busy machine is said to be one.  How fast anything
# is, is no test.
. ./tests/functions.sh
cat >"$tmp/test.py" <<'END'
import random
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import run
import targets

chance = random.Random(1)
for n in range(targets.ENOUGH_ROUNDS, 20):
    hits = 0
    for _ in range(2000):
        # Skewed, with a median of 1.
        low, high = targets.interval([chance.expovariate(0.6931471805599453) for _ in range(n)])
        assert low <= high
        hits += low <= 1 <= high
    assert hits >= 0.935 * 2000, (n, hits)

def results(ratios, key="rate", row="4k-randread-qd16"):
    r = targets.Results()
    for n, ratio in enumerate(ratios):
        for topology, value in (("ours", 1000 * ratio), ("peer", 1000)):
            r.add({"round": n, "row": row, "topology": topology, key: value})
    return r

def word(target, ratios, **kwargs):
    return target.verdict(results(ratios, **kwargs))[3]

fast = targets.ours_to("peer", "4k-randread-qd16", "S", 1.8)
cheap = targets.ours_to("peer", "4k-randread-qd16", "S", 0.5, "cpu_us_per_io")
assert fast.verdict(targets.Results()) is None
for n in range(1, 20):
    enough = n >= targets.ENOUGH_ROUNDS
    assert word(fast, [1.9] * n) == ("met" if enough else "open")
    assert word(fast, [1.7] * n) == ("missed" if enough else "open")
    assert word(cheap, [0.4] * n, key="cpu_us_per_io") == ("met" if enough else "open")
    assert word(cheap, [0.6] * n, key="cpu_us_per_io") == ("missed" if enough else "open")
    assert word(fast, [1.7, 1.9] * n) == "open"
    # Rounds go on as long as a target is open.
    assert run.all_decided(results([1.9] * n, row="4k-randread-qd4")) == enough
    assert not run.all_decided(results([1.3, 1.4] * n, row="4k-randread-qd4"))
assert run.all_decided(targets.Results()) is False

# A round that lacks one side does not count, nor does one of another row.
r = results([1.9] * 8)
r.add({"round": 8, "row": "4k-randread-qd16", "topology": "ours", "rate": 1})
assert fast.verdict(r)[:3] == (1.9, 1.9, 1.9)

# Each target is of rows that there are, and each row of connections is there.
for target in targets.TARGETS:
    assert target.rows and set(target.rows) <= set(run.ROWS), target.what
    assert (target.least is None) != (target.most is None)
many = targets.Results()
for row, n in targets.CONNECTIONS:
    for number in range(8):
        many.add({"round": number, "row": row, "topology": "ours", "rate": 90 if n == 16 else 100 if n == 4 else 50})
        many.add({"round": number, "row": row, "topology": "gateway",
                  "rate": {1: 50, 8: 100, 32: 80, 2: 40}.get(n, 90)})
by_number = {target.number: target for target in targets.TARGETS}
assert by_number["S9"].verdict(many)[0] == 0.9
# The least of those from 16 on.
assert by_number["S19"].verdict(many)[0] == 0.8
for number in range(8):
    many.add({"round": number, "row": targets.BESIDE, "topology": "gateway", "p99_us": 150})
    many.add({"round": number, "row": "4k-randread-qd1", "topology": "gateway", "p99_us": 100})
assert by_number["S20"].verdict(many)[0::3] == (1.5, "met")

# Of two clients the first is told, and the IOs of both are counted.
import loads
times = '{"percentile": {"50.000000": 1000, "99.000000": 2000, "99.900000": 3000}}'
loads.run = lambda argv, *_: seen.append(argv) or '{"jobs": [%s]}' % ",".join(
    '{"error": 0, "read": {"total_ios": %d, "iops": %d, "clat_ns": %s}}' % (n, n, times)
    for n in (7, 100)[:argv.count("--new_group") + 1])
seen = []
class Gateway:
    uri = "nbd+unix:///"
class Args:
    runtime = 1
assert loads.do(Args, "4k-randread-qd1", Gateway)[0] == 7
ios, numbers = loads.do(Args, targets.BESIDE, Gateway)
assert (ios, numbers["rate"], numbers["p99_us"]) == (107, 7, 2.0)
one, both = (argv[argv.index("--name=global"):] for argv in seen)
assert [word for word in both if word.startswith("--iodepth")] == ["--iodepth=1", "--iodepth=128"]
assert one[1:7] == both[1:7] and "--iodepth=128" not in one

assert targets.judge([1.9] * 6, least=1.8) == "met" and targets.judge([1.9] * 5, least=1.8) == "open"
assert targets.judge([0.4] * 6, most=0.3) == "missed" and targets.judge([0.2] * 6, most=0.3) == "met"

# What is drawn is measured: all depths, of all lines that the picture can have.
import plots
assert set(run.PLOTS["topologies"].split(",")) == set(plots.NAMES) <= set(run.TOPOLOGIES)
assert set(run.PLOTS["rows"].split(",")) == {"4k-randread-qd%d" % 2 ** n for n in range(7)} <= set(run.ROWS)

# TLS costs what each row of each gateway says, and a bench without --tls has no TLS in it.
import fnmatch
kinds = [t for t in targets.TARGETS if t.number == "S21"]
near = [t for t in targets.TARGETS if t.number == "S22"]
wanted_rows = [row for row in run.ROWS
               if any(fnmatch.fnmatch(row, g) for g in run.TLS["rows"].split(","))]
assert {"4k-randread-qd1", "4k-randread-qd32", "128k-read-qd16"} <= set(wanted_rows)
assert sorted(row for t in kinds for row in t.rows) == sorted(2 * wanted_rows)
assert sorted(row for t in near for row in t.rows) == sorted(wanted_rows)
assert {t.least for t in kinds if t.rows[0].endswith("qd32")} == {1.2}
assert {t.least for t in kinds if not t.rows[0].endswith("qd32")} == {1.0}
assert run.KEYED | run.CERTIFIED <= set(run.TLS["topologies"].split(",")) <= set(run.TOPOLOGIES)
assert not (run.KEYED | run.CERTIFIED) & set(run.TOPOLOGIES[:4])
tls = targets.Results()
for n in range(8):
    for topology, rate in (("tls", 1100), ("gateway-tls", 1300), ("peer-tls", 1000)):
        tls.add({"round": n, "row": "4k-randread-qd32", "topology": topology, "rate": rate,
                 "cpu_us_per_io": rate})
assert [t.verdict(tls)[3] for t in kinds if t.verdict(tls)] == ["missed", "met"]
table = run.ratio_table(tls, ["tls", "gateway-tls", "peer-tls"], ["4k-randread-qd32"])
assert "CPU gateway-tls/peer-tls" in table
import os
import stat
import topologies
keys = os.path.join(os.environ["tmp"], "keys")
topologies.make_keys("/bin/echo", keys)
assert stat.S_IMODE(os.stat(keys).st_mode) == 0o600 and open(keys).read() == "bench\n"

machine = run.Machine()
machine.busy, machine.stolen = [0.01] * 5, [0.0] * 5
assert not machine.too_busy()
assert "| met |" in run.target_table(results([1.9] * 8), machine)
machine.busy = [0.5] * 5
assert machine.too_busy()
assert "too busy" in run.target_table(results([1.9] * 8), machine)
machine.busy, machine.stolen = [0.01] * 5, [0.2] * 5
assert machine.too_busy()
END
env "tmp=$tmp" /usr/bin/python3 "$tmp/test.py" "$top_srcdir/bench"
status=0
/usr/bin/python3 "$top_srcdir/bench/run.py" --rows=nothing 2>"$tmp/refused" || status=$?
[ $status -eq 2 ]
grep "error: --rows matches no row of: 4k-randread-qd1, " "$tmp/refused"
