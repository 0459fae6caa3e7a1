#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws IOPS, latency and CPU per IO over the queue depth, from a CSV of make bench.

	plots.py doc/speed.csv >doc/speed.svg

Lines are medians of the rounds.  The same CSV always makes the same bytes.  The picture has a background of its own,
light or dark as the reader prefers, so it can be read on any page.
"""

import csv
import math
import re
import statistics
import sys

WIDTH, HEIGHT = 900, 330
TOP, BOTTOM = 74, 270
PANELS = ((62, 300), (366, 604), (670, 884))	# left and right
NAMES = {"ours": "nbdkit rtrs", "gateway": "rtrs-nbd", "gateway-unix": "rtrs-nbd, unix socket", "peer": "nbdkit nbd"}
STYLE = """
text { font: 12px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #374151 }
.head { font-size: 14px; font-weight: 600; fill: #111827 }
.back { fill: #fff; stroke: #d1d5db }
.grid { stroke: #e5e7eb }
.axis { stroke: #9ca3af }
path { fill: none; stroke-width: 2 }
.dash { stroke-dasharray: 3 3; stroke-width: 1.2 }
.ours { stroke: #2563eb }
.gateway { stroke: #059669 }
.gateway-unix { stroke: #9333ea }
.peer { stroke: #f59e0b }
@media (prefers-color-scheme: dark) {
text { fill: #d1d5db }
.head { fill: #f9fafb }
.back { fill: #111827; stroke: #374151 }
.grid { stroke: #293548 }
.ours { stroke: #60a5fa }
.gateway { stroke: #34d399 }
.gateway-unix { stroke: #c084fc }
}
"""


class Curves:
    """{(topology, key): {depth: median}} of 4k reads over one connection, and the topologies that there are."""

    def __init__(self, f):
        values = {}
        for row in csv.DictReader(f):
            depth = re.fullmatch(r"4k-randread-qd(\d+)", row["row"])
            if not depth or row["topology"] not in NAMES:
                continue
            for key in ("rate", "cpu_us_per_io", "p50_us", "p99_us"):
                values.setdefault((row["topology"], key), {}).setdefault(int(depth.group(1)), []).append(
                    float(row[key]))
        self.curves = {what: {depth: statistics.median(of_depth) for depth, of_depth in sorted(curve.items())}
                       for what, curve in values.items()}
        self.topologies = [name for name in NAMES if (name, "rate") in self.curves]
        self.depths = sorted({depth for curve in self.curves.values() for depth in curve})
        if len(self.depths) < 2:
            raise SystemExit("plots.py: the CSV has fewer than two depths of 4k-randread")


def nice(largest):
    """A step of a scale from 0 to at least @largest, in four to eight steps."""
    step = 10 ** math.floor(math.log10(largest / 4))
    return next(step * n for n in (1, 2, 5, 10) if largest / (step * n) <= 8)


def label(value, unit):
    if unit == "µs":
        return "%g ms" % (value / 1000) if value >= 1000 else "%g µs" % value
    return "%gk" % (value / 1000) if value >= 1000 else "%g" % value


class Panel:
    def __init__(self, out, curves, span, head, unit, log=False):
        self.out, self.curves, self.unit, self.log = out, curves, unit, log
        self.left, self.right = span
        self.out.append('<text class="head" x="%d" y="%d">%s</text>' % (self.left, TOP - 14, head))

    def x(self, depth):
        depths = self.curves.depths
        return self.left + (self.right - self.left) * math.log2(depth / depths[0]) / math.log2(
            depths[-1] / depths[0])

    def y(self, value):
        part = math.log10(value / self.low) / math.log10(self.high / self.low) if self.log else value / self.high
        return BOTTOM - (BOTTOM - TOP) * part

    def scale(self, keys):
        values = [v for (_, key), curve in self.curves.curves.items() if key in keys for v in curve.values()]
        if self.log:
            self.low, self.high = (10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values))))
            marks = [10 ** n for n in range(round(math.log10(self.low)), round(math.log10(self.high)) + 1)]
        else:
            step = nice(max(values))
            self.high = step * math.ceil(max(values) / step)
            marks = [step * n for n in range(round(self.high / step) + 1)]
        for mark in marks:
            y = self.y(mark)
            self.out.append('<path class="grid" d="M%d %.1fH%d"/>' % (self.left, y, self.right))
            self.out.append('<text x="%d" y="%.1f" text-anchor="end">%s</text>' % (
                self.left - 6, y + 4, label(mark, self.unit)))
        for depth in self.curves.depths:
            self.out.append('<text x="%.1f" y="%d" text-anchor="middle">%d</text>' % (self.x(depth), BOTTOM + 18, depth))
        self.out.append('<path class="axis" d="M%d %dH%d"/>' % (self.left, BOTTOM, self.right))

    def lines(self, key, more=""):
        for topology in self.curves.topologies:
            points = ["%.1f %.1f" % (self.x(depth), self.y(value))
                      for depth, value in self.curves.curves[topology, key].items()]
            self.out.append('<path class="%s%s" d="M%s"/>' % (topology, more, "L".join(points)))


def draw(curves):
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" '
           'aria-label="IOPS, latency and CPU time of 4k reads over the queue depth">' % (WIDTH, HEIGHT),
           "<style>%s</style>" % STYLE,
           '<rect class="back" x=".5" y=".5" width="%d" height="%d" rx="6"/>' % (WIDTH - 1, HEIGHT - 1)]
    x = PANELS[0][0]
    for topology in curves.topologies:
        out.append('<path class="%s" d="M%d 26h22"/>' % (topology, x))
        out.append('<text x="%d" y="30">%s</text>' % (x + 28, NAMES[topology]))
        x += 60 + 7 * len(NAMES[topology])
    panel = Panel(out, curves, PANELS[0], "IOPS", "")
    panel.scale({"rate"})
    panel.lines("rate")
    panel = Panel(out, curves, PANELS[1], "Latency: p50, dashed p99", "µs", log=True)
    panel.scale({"p50_us", "p99_us"})
    panel.lines("p50_us")
    panel.lines("p99_us", " dash")
    panel = Panel(out, curves, PANELS[2], "CPU µs per read", "")
    panel.scale({"cpu_us_per_io"})
    panel.lines("cpu_us_per_io")
    out.append('<text x="%d" y="%d" text-anchor="middle">4k random reads in flight</text>' % (WIDTH // 2, HEIGHT - 16))
    out.append("</svg>\n")
    return "\n".join(out)


def main():
    if len(sys.argv) != 2:
        raise SystemExit("usage: plots.py CSV >SVG")
    with open(sys.argv[1], newline="") as f:
        sys.stdout.write(draw(Curves(f)))


if __name__ == "__main__":
    main()
