#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws doc/top.svg from a recording of doc/top-record.sh: screens of a terminal, one after another.

	top-svg.py doc/top.rec >doc/top.svg
	top-svg.py --frame N doc/top.rec		screen N alone, for a viewer that does not move pictures

The same recording always makes the same bytes.  The screens are turned by CSS alone.  A viewer that does not animate,
or whose user wants no motion, shows the screen with the lost path.
"""

import argparse
import re
import sys
from xml.sax.saxutils import escape

COLUMN, LINE, PAD, BAR = 8.2, 18, 14, 34
BARS = " ▁▂▃▄▅▆▇█"
TITLE = "rtrsctl top while a cable is pulled and put back"
COLORS = {1: "bad", 2: "good"}
STYLE = """
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1f2328;
 white-space: pre }
.back { fill: #fff; stroke: #d0d7de }
.bar { fill: #eaeef2 }
.head { fill: #d8dee4 }
.good { fill: #1a7f37 }
.bad { fill: #cf222e }
.bold { font-weight: 700 }
.curve { fill: #0969da }
.out { fill: #cf222e; font-weight: 700 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.back { fill: #0d1117; stroke: #30363d }
.bar { fill: #161b22 }
.head { fill: #30363d }
.good { fill: #3fb950 }
.bad, .out { fill: #f85149 }
.curve { fill: #4493f8 }
}
"""


def frames_of(f):
    """A list of (words about the cables, lines)."""
    frames = []
    for line in f.read().splitlines():
        begin = re.fullmatch(r"@ \d+ (.*)", line)
        if begin:
            frames.append((begin.group(1), []))
        else:
            frames[-1][1].append(line)
    return frames


def look(looks, codes):
    """The set of looks behind an SGR sequence."""
    looks = set(looks)
    for code in (int(c or 0) for c in codes.split(";")):
        if code == 0:
            looks = set()
        elif code == 1:
            looks.add("bold")
        elif code == 7:
            looks.add("head")
        elif 30 <= code <= 37 or code == 39:
            looks -= {"good", "bad"}
            looks |= {COLORS[code - 30]} if code - 30 in COLORS else set()
        elif code != 49:
            sys.exit(f"the terminal's sequence {code} is unknown")
    return looks


def cells_of(lines):
    """For each line (character, looks): sequences of a line hold on in the next."""
    looks, rows = set(), []
    for line in lines:
        row = []
        for part in re.split(r"(\x1b\[[0-9;]*m)", line):
            if part.startswith("\x1b"):
                looks = look(looks, part[2:-1])
            else:
                row += [(c, frozenset(looks)) for c in part]
        rows.append(row)
    return rows


def draw_line(row, y, columns):
    """Runs of one look as text, each at its column; curves as shapes, which no font makes uneven."""
    out, curve, at = [], "", 0
    if any("head" in looks for _, looks in row):
        out.append(f'<rect class="head" x="{PAD - 4}" y="{y - 13}" width="{columns * COLUMN + 8:.0f}" '
                   f'height="{LINE}"/>')
    for column, (c, _) in enumerate(row):
        if c in BARS[1:]:
            h = BARS.index(c) * 14 / 8
            curve += f"M{PAD + column * COLUMN:.1f} {y + 2}v-{h:.1f}h{COLUMN - .6:.1f}v{h:.1f}z"
    while at < len(row):
        looks, end = row[at][1] - {"head"}, at
        while end < len(row) and row[end][1] - {"head"} == looks:
            end += 1
        text = "".join(" " if c in BARS[1:] else c for c, _ in row[at:end])
        for run in re.finditer(r"\S+(?: \S+)*", text):
            kind = f' class="{" ".join(sorted(looks))}"' if looks else ""
            x = PAD + (at + run.start()) * COLUMN
            # The width of the run, whatever the font of the reader.
            out.append(f'<text x="{x:.1f}" y="{y}"{kind} textLength="{len(run.group()) * COLUMN:.1f}" '
                       f'lengthAdjust="spacingAndGlyphs">{escape(run.group())}</text>')
        at = end
    if curve:
        out.append(f'<path class="curve" d="{curve}"/>')
    return out


def draw_frame(frame, columns):
    words, lines = frame
    kind = ' class="out"' if "pulled" in words else ""
    out = [f'<text x="{PAD}" y="22"{kind}>{escape(words)}</text>']
    for i, row in enumerate(cells_of(lines)):
        out += draw_line(row, BAR + PAD + 12 + i * LINE, columns)
    return out


def draw(frames, only):
    columns = max(len(row) for _, lines in frames for row in cells_of(lines))
    width = round(columns * COLUMN) + 2 * PAD
    height = BAR + 2 * PAD + LINE * max(len(lines) for _, lines in frames)
    still = next(i for i, (_, lines) in enumerate(frames) if "degraded" in "".join(lines)) if only is None else only
    n = len(frames)
    show = "\n".join([".f { visibility: hidden }", ".still { visibility: visible }"])
    if only is None:
        show += f"\n.f {{ animation: turn {n}s step-end infinite }}\n" \
                f"@keyframes turn {{ 0% {{ visibility: visible }} {100 / n:.3f}% {{ visibility: hidden }} }}\n" \
                "@media (prefers-reduced-motion: reduce) { .f { animation: none } }"
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
           f'height="{height}" role="img">', f"<title>{TITLE}</title>", f"<style>{STYLE}{show}</style>",
           f'<rect class="back" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>',
           f'<path class="bar" d="M1 {BAR}V8a7 7 0 0 1 7 -7h{width - 16}a7 7 0 0 1 7 7V{BAR}z"/>']
    for i, frame in enumerate(frames):
        if only not in (None, i):
            continue
        kind = "f still" if i == still else "f"
        # All began before the picture was there, so none waits for its turn in sight.
        delay = f' style="animation-delay:{i - n}s"' if only is None else ""
        out += [f'<g class="{kind}"{delay}>', *draw_frame(frame, columns), "</g>"]
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--frame", type=int)
    parser.add_argument("recording")
    args = parser.parse_args()
    with open(args.recording, encoding="utf-8") as f:
        picture = draw(frames_of(f), args.frame)
    sys.stdout.buffer.write(picture.encode())


main()
