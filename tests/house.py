#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures the house: which files of src/ need each other, by the symbols of a build.

	house.py [--list] BUILD-DIRECTORY [SOURCE-DIRECTORY]

A file is a .c file.  It needs another when its object has a reference to a function that the other one
defines; what headers define inline is nobody's, and neither is a table, such as that of a provider.  For each part of src/ (PARTS) this prints, beside
how many are allowed:

circle		the largest set of files that need each other in a circle, if it is no module (MODULES)
back		references that run back up the order of files, in the order with the fewest of them
away		exported functions that are not in the file that their name says, nor in the folder whose functions
		have that prefix (PREFIX), in percent
bools		bool fields in the structs that a path, session, connection or request is made of
astray		exported functions with the prefix of another folder (ROOMS)

and for all of src/ the structs and enums that are defined twice.  --list says which they are.  Fails when a
value is above what is allowed.
"""
import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# part: folders below src/, and the limits of circle, back, away, bools and astray
PARTS = {
    "plugin": (["nbdkit-rtrs-plugin"], 0, 0, 5, 0, 0),
    "client": (["rtrs-client"], 4, 8, 5, 10, 0),
    "server": (["rtrs-server"], 4, 8, 5, 10, 0),
    "common": (["common"], 4, 8, 5, 10, 0),
    "frwr": (["frwr"], 4, 8, 5, 10, 0),
    "rtrsctl": (["rtrsctl"], 0, 0, 10, 0, 0),
    "bench": (["rtrs-bench"], 0, 0, 10, 0, 0),
}
TWICE = 0

# Files that are one module: what they promise others stands in the one header named here.
MODULES = {}

# A prefix is a room: its functions are in this folder and nowhere else.
ROOMS = {
    "ctl": "src/common/ctl", "rnbd": "src/common/rnbd", "rtrs": "src/common/rtrs", "fab": "src/common/fabric", "tcp": "src/common/fabric",
    "verbs": "src/common/fabric", "frwr": "src/frwr", "clt": "src/rtrs-client",
    "client": "src/rtrs-client", "dev": "src/rtrs-client", "plugin": "src/nbdkit-rtrs-plugin", "srv": "src/rtrs-server",
    "export": "src/rtrs-server/export", "exports": "src/rtrs-server/export", "reactor": "src/rtrs-server/reactor",
}

# A folder that is one module to those outside: its prefix is enough, unless the name says another file.
PREFIX = {"src/common/fabric": "fab", "src/common/rtrs": "rtrs", "src/common/rnbd": "rnbd", "src/frwr": "frwr"}

# Contracts whose functions each implementation has.
CONTRACT = ("loop_", "clt_wait_")

# What of their fields is state: the others are options and properties.
STATE = re.compile(r"(^|_)(path|sess|con|slots?|op|req|wait_con|chunks|pool|io|clt|client|ctl|srv|dev)$")


def sources(top, folders):
    for folder in folders:
        for top, _, names in sorted(os.walk(os.path.join(top, "src", folder))):
            for name in sorted(names):
                if re.fullmatch(r"[^.]+\.[ch]", name):
                    yield os.path.join(top, name)


def stem(path):
    return os.path.basename(path).rsplit(".", 1)[0]


def objects(build, folder_of):
    """One object for each source, in its folder: automake puts a target's name, in which there is a _, in front
    of some, and leaves what a file was that has another name or place by now."""
    found = {}
    for top, _, names in os.walk(os.path.join(build, "src")):
        folder = os.path.relpath(top, build).removesuffix("/.libs")
        for name in names:
            if not name.endswith(".o"):
                continue
            base = name[:-2]
            if base not in folder_of:
                base = re.sub(r"^(\w*_\w*|rtrsctl)-", "", base)
            if folder_of.get(base) == folder:
                found.setdefault(base, os.path.join(top, name))
    missing = sorted(set(folder_of) - set(found))
    if missing:
        sys.exit(f"house.py: not built: {', '.join(missing)} (make first)")
    return found


def symbols(path):
    """(functions, needed): names."""
    out = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
    functions, needed = set(), set()
    for line in out.splitlines():
        kind, name = line.split()[-2:]
        if kind == "U":
            needed.add(name)
        elif kind == "T":
            functions.add(name)
    return functions, needed


class Part:
    def __init__(self, build, top, folders):
        self.files = [f for f in sources(top, folders) if f.endswith(".c")]
        self.headers = [f for f in sources(top, folders) if f.endswith(".h")]
        self.folder = {stem(f): os.path.relpath(os.path.dirname(f), top) for f in self.files}
        self.stems = [stem(f) for f in self.files]
        found = objects(build, self.folder)
        table = {s: symbols(found[s]) for s in self.stems}
        home = {name: s for s in self.stems for name in table[s][0]}
        self.exported = {s: sorted(table[s][0]) for s in self.stems}
        # (from, to): the names that are needed
        self.needs = {}
        for s in self.stems:
            for name in table[s][1]:
                to = home.get(name)
                if to and to != s:
                    self.needs.setdefault((s, to), set()).add(name)

    def circles(self):
        """Sets of more than one file that need each other, largest first (Tarjan)."""
        after = {s: [b for a, b in self.needs if a == s] for s in self.stems}
        index, low, stack, on, result = {}, {}, [], set(), []

        def visit(v):
            index[v] = low[v] = len(index)
            stack.append(v)
            on.add(v)
            for w in after[v]:
                if w not in index:
                    visit(w)
                    low[v] = min(low[v], low[w])
                elif w in on:
                    low[v] = min(low[v], index[w])
            if low[v] == index[v]:
                circle = []
                while not circle or circle[-1] != v:
                    circle.append(stack.pop())
                    on.discard(circle[-1])
                if len(circle) > 1:
                    result.append(sorted(circle))

        for s in self.stems:
            if s not in index:
                visit(s)
        return sorted(result, key=len, reverse=True)

    def back(self):
        """References that run up, in an order that has few: within each circle files are moved to where they
        cause the fewest, until no move helps."""
        result = []
        for circle in self.circles():
            weight = {(a, b): len(n) for (a, b), n in self.needs.items() if a in circle and b in circle}
            order = sorted(circle, key=lambda v: sum(w for (a, b), w in weight.items() if b == v) -
                           sum(w for (a, b), w in weight.items() if a == v))

            def cost(order):
                at = {v: i for i, v in enumerate(order)}
                return sum(w for (a, b), w in weight.items() if at[a] > at[b])

            best, better = cost(order), True
            while better:
                better = False
                for v in circle:
                    rest = [u for u in order if u != v]
                    for i in range(len(order)):
                        trial = rest[:i] + [v] + rest[i:]
                        if cost(trial) < best:
                            order, best, better = trial, cost(trial), True
            at = {v: i for i, v in enumerate(order)}
            result += [(a, b, n) for (a, b) in sorted(weight) if at[a] > at[b]
                       for n in sorted(self.needs[a, b])]
        return result

    def away(self):
        """(file, function) where the longest name of a file that begins the function's is another's, or none's."""
        rooms = {s.replace("-", "_"): s for s in self.stems}
        result = []
        for s in self.stems:
            prefix = PREFIX.get(self.folder[s], "")
            for name in self.exported[s]:
                if name.startswith(CONTRACT):
                    continue
                fits = [r for r in rooms if name == r or name.startswith(r + "_")]
                if rooms[max(fits, key=len)] != s if fits else not prefix or not name.startswith(prefix + "_"):
                    result.append((s, name))
        return result

    def bools(self):
        result = []
        for path in self.headers + self.files:
            with open(path, encoding="utf-8") as f:
                text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
            for m in re.finditer(r"^struct (\w+) \{\n(.*?)^\}", text, flags=re.S | re.M):
                if not STATE.search(m[1]):
                    continue
                for line in re.findall(r"^\t+(?:_Atomic )?(?:atomic_bool|bool|_Atomic\(bool\)) ([^;(]*);", m[2], flags=re.M):
                    result += [(m[1], name.strip()) for name in line.split(",")]
        return result

    def astray(self):
        return [(s, name) for s in self.stems for name in self.exported[s]
                if not name.startswith(CONTRACT) and not self.folder[s].startswith(ROOMS.get(name.split("_")[0], self.folder[s]))]


def twice(top):
    """Structs and enums that are defined more than once: (name, files)."""
    seen = {}
    for path in sources(top, [""]):
        with open(path, encoding="utf-8") as f:
            for m in re.finditer(r"^\t*((?:struct|enum) \w+) \{", f.read(), flags=re.M):
                seen.setdefault(m[1], []).append(os.path.relpath(path, top))
    return [(name, files) for name, files in sorted(seen.items()) if len(files) > 1]


def main():
    args = [a for a in sys.argv[1:] if a != "--list"]
    if len(args) not in (1, 2):
        sys.exit(__doc__)
    build, top = args if len(args) == 2 else (args[0], TOP)
    wanted = "--list" in sys.argv
    bad = False
    for name, (folders, *limits) in PARTS.items():
        part = Part(build, top, folders)
        modules = [set(m) for m in MODULES.get(name, {}).values()]
        circles = [c for c in part.circles() if not any(set(c) <= m for m in modules)]
        back, away, bools, astray = part.back(), part.away(), part.bools(), part.astray()
        nfunctions = sum(map(len, part.exported.values()))
        values = [("circle", max(map(len, circles), default=0)), ("back", len(back)),
                  ("away", round(100 * len(away) / max(nfunctions, 1))), ("bools", len(bools)), ("astray", len(astray))]
        cells = []
        for (what, value), limit in zip(values, limits):
            over = value > limit
            bad |= over
            cells.append(f"{what} {value}/{limit}{' !' if over else ''}")
        print(f"{name:8}{len(part.stems):4} files, {sum(len(n) for n in part.needs.values())} references: " + ", ".join(cells))
        if wanted:
            for c in circles:
                print("    circle:", " ".join(c))
            for a, b, n in back:
                print(f"    back: {a} > {b}: {n}")
            for s, n in away:
                print(f"    away: {s}: {n}")
            for s, n in bools:
                print(f"    bool: {s}.{n}")
            for s, n in astray:
                print(f"    astray: {s}: {n}")
    names = twice(top)
    print(f"defined twice: {len(names)}/{TWICE}")
    for name, files in names if wanted or len(names) > TWICE else []:
        print(f"    twice: {name}: {' '.join(files)}")
    return bad or len(names) > TWICE


if __name__ == "__main__":
    sys.exit(main())
