#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws doc/demo.svg from a recording of doc/demo-record.sh, which says what is in one.

	demo-svg.py doc/demo.csv >doc/demo.svg

The same recording always makes the same bytes.  The picture has a background of its own, light or dark as the
reader prefers, so it can be read on any page.
"""

import csv
import math
import sys

WIDTH, HEIGHT = 900, 490
LEFT, RIGHT = 68, 884
# top and bottom of the panels
IOPS, LATENCY = (122, 272), (306, 440)
LATENCY_US = (100, 10_000_000)
UNITS = {100: "100 µs", 1000: "1 ms", 10_000: "10 ms", 100_000: "100 ms", 1_000_000: "1 s", 10_000_000: "10 s"}
STYLE = """
text { font: 12px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #374151 }
.head { font-size: 17px; font-weight: 600; fill: #111827 }
.name { font-weight: 600 }
.fault { font-weight: 600; fill: #b91c1c }
.back { fill: #fff; stroke: #d1d5db }
.grid { stroke: #e5e7eb }
.axis { stroke: #9ca3af }
.band { fill: #ef4444; fill-opacity: .14 }
.mark { stroke: #6b7280; stroke-dasharray: 3 3 }
.one { fill: #2563eb }
.two { fill: #f59e0b }
.half { fill: none; stroke: #059669; stroke-width: 1.5 }
.most { fill: none; stroke: #a855f7; stroke-width: 1.2 }
.peak { fill: #a855f7 }
@media (prefers-color-scheme: dark) {
text { fill: #d1d5db }
.head { fill: #f9fafb }
.fault { fill: #fca5a5 }
.back { fill: #111827; stroke: #374151 }
.grid { stroke: #293548 }
.band { fill-opacity: .25 }
.mark { stroke: #9ca3af }
.one { fill: #60a5fa }
.half { stroke: #34d399 }
.most { stroke: #c084fc }
.peak { fill: #c084fc }
}
"""


class Recording:
    """load: how requests were made; paths: what they went over; events: name -> seconds; rows: of numbers, None where
    nothing was answered."""

    def __init__(self, f):
        lines = f.read().splitlines()
        notes = dict(line[2:].split(",", 1) for line in lines if line.startswith("# "))
        self.load, self.paths = notes.pop("load"), notes.pop("paths")
        self.events = {name: float(seconds) for name, seconds in notes.items()}
        table = csv.DictReader(line for line in lines if not line.startswith("#"))
        self.rows = [{key: float(value) if value else None for key, value in row.items()} for row in table]
        self.step = self.rows[1]["seconds"] - self.rows[0]["seconds"]
        self.end = self.rows[-1]["seconds"] + self.step

    def slowest(self, begin, end):
        """The row in which the slowest request of a time was answered."""
        return max((row for row in self.rows if begin <= row["seconds"] < end and row["max_us"]),
                   key=lambda row: row["max_us"])


class Picture:
    def __init__(self, recording):
        self.rec = recording
        self.out = []
        rates = [row["requests"] / recording.step for row in recording.rows]
        # The next of 1, 2, 5, 10, 20, 50 ... is four to ten lines of the grid.
        self.line = 10 ** math.floor(math.log10(max(rates)))
        self.line *= next(part for part in (.2, .5, 1, 2) if max(rates) <= 5 * part * self.line)
        self.most = self.line * math.ceil(max(rates) / self.line)

    def put(self, element):
        self.out.append(element)

    def text(self, x, y, words, kind="", anchor="start"):
        kind = f' class="{kind}"' if kind else ""
        self.put(f'<text x="{x:.1f}" y="{y:.1f}"{kind} text-anchor="{anchor}">{words}</text>')

    def x(self, seconds):
        return LEFT + (RIGHT - LEFT) * min(seconds, self.rec.end) / self.rec.end

    def y_iops(self, rate):
        return IOPS[1] - (IOPS[1] - IOPS[0]) * rate / self.most

    @staticmethod
    def y_latency(us):
        low, high = map(math.log10, LATENCY_US)
        part = (math.log10(min(max(us, LATENCY_US[0]), LATENCY_US[1])) - low) / (high - low)
        return LATENCY[1] - (LATENCY[1] - LATENCY[0]) * part

    def level(self, y, label):
        self.put(f'<path class="grid" d="M{LEFT} {y:.1f}H{RIGHT}"/>')
        self.text(LEFT - 8, y + 4, label, anchor="end")

    def axes(self):
        for i in range(round(self.most / self.line) + 1):
            self.level(self.y_iops(i * self.line), f"{i * self.line:,.0f}")
        for us, label in UNITS.items():
            self.level(self.y_latency(us), label)
        every = 5 if self.rec.end >= 10 else 1
        for second in range(0, int(self.rec.end) + 1, every):
            x = self.x(second)
            for top, bottom in (IOPS, LATENCY):
                self.put(f'<path class="axis" d="M{x:.1f} {bottom}v5"/>')
            self.text(x, LATENCY[1] + 19, str(second), anchor="middle")
        for top, bottom in (IOPS, LATENCY):
            self.put(f'<path class="axis" d="M{LEFT} {bottom}H{RIGHT}"/>')
        self.text((LEFT + RIGHT) / 2, LATENCY[1] + 37, "seconds", anchor="middle")

    def fault(self, begin, end, words):
        a, b = self.x(self.rec.events[begin]), self.x(self.rec.events[end])
        for top, bottom in (IOPS, LATENCY):
            self.put(f'<path class="band" d="M{a:.1f} {top}H{b:.1f}V{bottom}H{a:.1f}z"/>')
        self.text(a, IOPS[0] - 21, words, "fault")

    def mark(self, event, words):
        x = self.x(self.rec.events[event])
        self.put(f'<path class="mark" d="M{x:.1f} {IOPS[0]}V{IOPS[1]}M{x:.1f} {LATENCY[0]}V{LATENCY[1]}"/>')
        self.text(x, IOPS[0] - 6, words)

    def area(self, kind, below, above):
        """Between two lists of rates, as steps."""
        there = "".join(f"H{self.x(i * self.rec.step):.1f}V{self.y_iops(rate):.1f}" for i, rate in enumerate(above))
        back = "".join(f"V{self.y_iops(rate):.1f}H{self.x(i * self.rec.step):.1f}"
                       for i, rate in reversed(list(enumerate(below))))
        self.put(f'<path class="{kind}" d="M{LEFT} {IOPS[1]}{there}H{RIGHT}{back}z"/>')

    def iops(self):
        """One cable's requests above the other's; requests are all of a size, so bytes tell whose."""
        lower, upper = [], []
        for row in self.rec.rows:
            rate, carried = row["requests"] / self.rec.step, row["bytes_1"] + row["bytes_2"]
            lower.append(rate * row["bytes_2"] / carried if carried else 0)
            upper.append(rate)
        self.area("two", [0] * len(lower), lower)
        self.area("one", lower, upper)

    def line_of(self, kind, column):
        """With a gap where nothing was answered."""
        d, pen = "", "M"
        for row in self.rec.rows:
            if row[column] is None:
                pen = "M"
                continue
            d += f"{pen}{self.x(row['seconds'] + self.rec.step / 2):.1f} {self.y_latency(row[column]):.1f}"
            pen = "L"
        self.put(f'<path class="{kind}" d="{d}"/>')

    def peak(self, begin, end):
        row = self.rec.slowest(begin, end)
        x, y = self.x(row["seconds"] + self.rec.step / 2), self.y_latency(row["max_us"])
        self.put(f'<circle class="peak" cx="{x:.1f}" cy="{y:.1f}" r="3.5"/>')
        self.text(x + 7, y - 3, f"{row['max_us'] / 1e6:.1f} s", "name")

    def legend(self, y, name, *entries):
        self.text(LEFT, y, name, "name")
        x = LEFT + 200
        for kind, words in entries:
            filled = kind in ("one", "two")
            shape = f"M{x} {y - 9}h14v9h-14z" if filled else f"M{x} {y - 4}h14"
            self.put(f'<path class="{kind}" d="{shape}"/>')
            self.text(x + 20, y, words)
            x += 160

    def draw(self):
        events = self.rec.events
        self.put(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
                 f'height="{HEIGHT}" role="img">')
        self.put("<title>IOPS and latency while a cable is pulled and the server is killed</title>")
        self.put(f"<style>{STYLE}</style>")
        self.put(f'<rect class="back" x=".5" y=".5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8"/>')
        self.text(LEFT, 30, "A cable is pulled, the server is killed: a pause, and no I/O error", "head")
        self.text(LEFT, 50, f"{self.rec.load}; {self.rec.paths}")
        self.legend(80, "requests per second", ("one", "over cable 1"), ("two", "over cable 2"))
        self.legend(LATENCY[0] - 10, "latency", ("half", "median"), ("most", "slowest request"))
        self.fault("pull", "plug", "cable 1 is out")
        self.fault("kill", "start", "no server")
        self.axes()
        self.iops()
        self.line_of("most", "max_us")
        self.line_of("half", "p50_us")
        self.mark("lost", f"noticed after {events['lost'] - events['pull']:.1f} s")
        self.mark("again", "path 1 is back")
        self.mark("both", "both paths are back")
        self.peak(events["pull"], events["plug"])
        self.peak(events["kill"], self.rec.end)
        self.put("</svg>")
        return "\n".join(self.out) + "\n"


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        picture = Picture(Recording(f)).draw()
    sys.stdout.buffer.write(picture.encode())


main()
