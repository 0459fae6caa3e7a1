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

# Clients beside others: those at QD1 are told, with how equal they are; the IOs of all are counted.
import json
import loads
def fio(argv, *_):
    seen.append(argv)
    jobs = []
    for at in [i for i, word in enumerate(argv) if word.startswith("--name=") and word != "--name=global"]:
        options = dict(word[2:].split("=", 1) for word in argv[at:] if "=" in word)
        options.update(word[2:].split("=", 1) for word in reversed(argv[at:]) if "=" in word)
        for n in range(int(options.get("numjobs", 1))):
            ios = {"few": 7 + 7 * (n == 3), "many": 100}.get(options["name"], 7)
            times = {"50.000000": 1000 * ios, "99.000000": 2000 * ios, "99.900000": 3000 * ios}
            done, idle = {"total_ios": ios, "iops": ios, "clat_ns": {"percentile": times}}, {"total_ios": 0}
            reads = "read" in options["rw"]
            jobs.append({"jobname": options["name"], "error": 0, "read": done if reads else idle,
                         "write": idle if reads else done})
    return "a note\n" + json.dumps({"jobs": jobs})
loads.run = fio
seen = []
class Gateway:
    name, server = "gateway", "here"
    uri, other_uri = "nbd+unix:///?socket=one", "nbd+unix:///?socket=two"
class Alone(Gateway):
    other_uri = None
class Args:
    runtime = 1
assert loads.do(Args, "4k-randread-qd1", Gateway)[0] == 7
ios, numbers = loads.do(Args, targets.BESIDE, Gateway)
assert ios == 107 and numbers["jain"] == 1 and numbers["others_rate"] == 100
assert [numbers[key] for key in ("rate", "p50_us", "p99_us", "p999_us")] == [7, 7, 14, 21]
assert not [word for word in seen[-1] if word == "--uri=" + Gateway.other_uri]
ios, numbers = loads.do(Args, targets.BESIDE_EIGHT, Gateway)
assert ios == 7 * 7 + 14 + 2 * 100 and numbers["rate"] == 63 and numbers["others_rate"] == 200
assert numbers["jain"] == round(63 ** 2 / (8 * (7 * 49 + 196)), 3) and (numbers["p50_us"], numbers["p99_us"]) == (7, 28)
loads.do(Args, "4k-randread-qd1-beside-1m-write", Gateway)
assert {"--rw=write", "--bs=1m"} <= set(seen[-1])
elsewhere, = loads.ELSEWHERE_ROWS
loads.do(Args, elsewhere, Gateway)
at = seen[-1].index("--name=many")
assert "--uri=" + Gateway.other_uri in seen[-1][at:] and "--uri=" + Gateway.uri in seen[-1][:at]
assert loads.fits(elsewhere, Gateway) and not loads.fits(elsewhere, Alone) and loads.fits(targets.BESIDE, Alone)
table = run.turns_table(many, ["gateway"], [targets.BESIDE])
assert "| 1.50 (1.50-1.50) |" in table and not run.turns_table(many, ["gateway"], ["4k-randread-qd1"])

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
