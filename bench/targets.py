# SPDX-License-Identifier: BSD-3-Clause
"""What is wanted, and whether the rounds say that it is so.

A round gives one ratio for each target, of things that ran one after the other.  What the rounds say is the median of
these ratios and an interval that has the true median with a probability of 95 % or more (order statistics: nothing is
assumed about how the noise is distributed).  A target is met, or missed, when the whole interval is on one side of it.
"""

import math
import statistics

ENOUGH_ROUNDS = 6		# the least that have an interval of 95 %


def interval(values):
    """Of the median: what lies between the ranks k + 1 and n - k; with few values all of them."""
    values = sorted(values)
    n, k = len(values), 0
    # The median is outside with 2 P(Binomial(n, 1/2) <= k).
    while n >= ENOUGH_ROUNDS and 2 * sum(math.comb(n, i) for i in range(k + 2)) <= 0.05 * 2 ** n:
        k += 1
    return values[k], values[n - 1 - k]


def judge(ratios, least=None, most=None):
    """"met", "missed" or "open": at least @least, or at most @most, is wanted of the median of @ratios."""
    low, high = interval(ratios)
    good, bad = (low >= least, high < least) if most is None else (high <= most, low > most)
    decided = len(ratios) >= ENOUGH_ROUNDS
    return "met" if good and decided else "missed" if bad and decided else "open"


class Results:
    """Of all rounds: a number for each row, topology and kind ("rate", "cpu_us_per_io", "p50_us", ...)."""

    def __init__(self):
        self.runs = []

    def add(self, run):
        self.runs.append(run)

    def values(self, row, topology, key):
        """By round."""
        return {r["round"]: r[key] for r in self.runs
                if r["row"] == row and r["topology"] == topology and key in r}

    def median(self, row, topology, key):
        values = self.values(row, topology, key).values()
        return statistics.median(values) if values else None

    def ratios(self, key, above, below):
        """Of two (row, topology), within each round that has both."""
        a, b = self.values(*above, key), self.values(*below, key)
        return [a[n] / b[n] for n in sorted(a) if b.get(n)]


class Target:
    """One line of the table: NUMBER is at least LEAST, or at most MOST."""

    def __init__(self, number, what, rows, ratios, least=None, most=None):
        self.number, self.what = number, what
        self.rows = rows		# that it needs
        self.ratios = ratios		# (results) -> one for each round
        self.least, self.most = least, most

    def wanted(self):
        return "≥ %.2f" % self.least if self.most is None else "≤ %.2f" % self.most

    def verdict(self, results):
        """(median, low, high, "met", "missed" or "open"), or None when it was not measured."""
        ratios = self.ratios(results)
        if not ratios:
            return None
        return statistics.median(ratios), *interval(ratios), judge(ratios, self.least, self.most)


def ours_to(other, row, number, wanted, key="rate", what=None, ours="ours"):
    words = {"rate": "IOPS", "cpu_us_per_io": "CPU per IO"}[key]
    side = {"most" if key == "cpu_us_per_io" else "least": wanted}
    return Target(number, "%s, %s %s/%s" % (what or row, words, ours, other), [row],
                  lambda results: results.ratios(key, (row, ours), (row, other)), **side)


CONNECTIONS = [("4k-randread-qd4", 1)] + [("4k-randread-qd4-c%d" % n, n) for n in (2, 4, 8, 16, 32, 64)]
CONNECTIONS_OURS = [(row, n) for row, n in CONNECTIONS if n <= 16]
BESIDE = "4k-randread-qd1-beside-qd128"
BESIDE_EIGHT = "4k-randread-8-qd1-beside-2-qd64"


def connections_to_best(connections, topology, least):
    """(results) -> for each round: the least IOPS with @least connections or more, to the best with any number."""
    def ratios(results):
        rates = {n: results.values(row, topology, "rate") for row, n in connections}
        rounds = set.intersection(*(set(of_row) for of_row in rates.values()))
        return [min(rates[n][k] for n in rates if n >= least) / max(rates[n][k] for n in rates) for k in sorted(rounds)]
    return ratios


def gateway_to_peer():
    """What rtrs-nbd is wanted to be."""
    return [ours_to("peer", row, "S15", wanted, ours="gateway") for row, wanted in (
        ("4k-randread-qd1", 2.1), ("4k-randread-qd4", 1.8), ("4k-randread-qd16", 2.8), ("4k-randread-qd32", 3.5),
        ("4k-randwrite-qd32", 2.1), ("128k-read-qd16", 1.6), ("128k-write-qd16", 1.6))] + [
        ours_to("peer", "4k-randread-qd32", "S16", 0.3, "cpu_us_per_io", ours="gateway"),
        ours_to("limit", "4k-randread-qd32", "S17", 0.8, ours="gateway"),
        ours_to("peer", "nbdcopy-in", "S18", 1.5, what="1 GiB by nbdcopy, in", ours="gateway"),
        ours_to("peer", "nbdcopy-out", "S18", 1.5, what="1 GiB by nbdcopy, out", ours="gateway"),
        Target("S19", "16 to 64 NBD connections, the least IOPS to the best of 1 to 64, gateway", [row for row, _ in CONNECTIONS],
               connections_to_best(CONNECTIONS, "gateway", 16), least=0.9),
        Target("S20", "QD1 beside a client at QD128, p99 to QD1 alone, gateway", [BESIDE, "4k-randread-qd1"],
               lambda results: results.ratios("p99_us", (BESIDE, "gateway"), ("4k-randread-qd1", "gateway")), most=2)]


def tls_to_peer(number, ours, peer):
    """What a gateway with TLS on one leg is wanted to be, against nbdkit nbd with TLS on the same leg."""
    rows = ("4k-randread-qd1", "4k-randread-qd32", "4k-randwrite-qd1", "4k-randwrite-qd32", "128k-read-qd16",
            "128k-write-qd16")
    return [ours_to(peer, row, number, 1.2 if row.endswith("qd32") else 1.0, ours=ours) for row in rows]


TARGETS = [
    ours_to("peer", "4k-randread-qd16", "S1", 1.8),
    ours_to("peer", "4k-randread-qd32", "S1", 2.2),
    ours_to("ceiling", "4k-randread-qd16", "S2", 0.75),
    ours_to("ceiling", "4k-randread-qd32", "S2", 0.75),
    ours_to("peer", "4k-randread-qd1", "S3", 1.7),
    ours_to("peer", "4k-randwrite-qd1", "S3", 1.7),
    ours_to("peer", "4k-randread-qd2", "S4", 1.35),
    ours_to("peer", "4k-randread-qd4", "S4", 1.35),
    ours_to("peer", "4k-randread-qd16", "S5", 0.5, "cpu_us_per_io"),
    ours_to("peer", "4k-randread-qd32", "S5", 0.5, "cpu_us_per_io"),
    ours_to("peer", "4k-randwrite-qd16", "S6", 1.6),
    ours_to("peer", "4k-randwrite-qd32", "S6", 2.0),
    ours_to("peer", "128k-read-qd16", "S7", 1.5),
    ours_to("peer", "128k-write-qd16", "S7", 1.35),
    ours_to("peer", "4k-randread-qd32", "S8", 2.4, ours="unix"),
    ours_to("peer", "128k-read-qd16", "S8", 1.6, ours="unix"),
    ours_to("peer", "128k-write-qd16", "S8", 1.6, ours="unix"),
    Target("S9", "16 NBD connections, IOPS to the best of 1, 2, 4, 8, 16", [row for row, _ in CONNECTIONS_OURS],
           connections_to_best(CONNECTIONS_OURS, "ours", 16), least=0.92),
    ours_to("file", "alone-4k-randread-qd32", "S10", 0.5, what="server alone, 4k randread QD32, 1 thread"),
    ours_to("peer", "nbdcopy-in", "S13", 1.3, what="1 GiB by nbdcopy, in"),
    ours_to("peer", "nbdcopy-out", "S13", 1.3, what="1 GiB by nbdcopy, out"),
    ours_to("peer", "sparse-nbdcopy", "S14", 0.83, what="1 GiB, 97 % holes, by nbdcopy"),
    ours_to("peer", "sparse-convert", "S14", 0.83, what="1 GiB, 97 % holes, by qemu-img convert"),
] + gateway_to_peer() + tls_to_peer("S21", "tls", "peer-tls") + tls_to_peer("S21", "gateway-tls", "peer-tls") + \
    tls_to_peer("S22", "gateway-nbds", "peer-nbds") + [
        ours_to("gateway", row, "S23", 1.1, "cpu_us_per_io", ours="digest") for row in ("128k-read-qd16", "128k-write-qd16")]
