#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures the house: which files of src/ need each other, by their source.

	house.py [--list] [SOURCE-DIRECTORY]

A unit is x.c with its x.h; x-priv.h is one by itself.  A unit needs another when its code names a
function that the other one defines, static inline ones of headers included; a table is nobody's,
such as that of a provider, and neither is a function that several units of a part define.  For each
part of src/ (PARTS) this prints, beside how many are allowed:

circle		the sizes of the largest sets of units that need each other in a circle
back		references that run back up the order of units, in the order with the fewest of them
away		exported functions that are not in the file that their name says, nor in the folder
		whose functions have that prefix (PREFIX), in percent
bools		bool fields in the structs that a path, session, connection or request is made of
astray		exported functions with the prefix of another folder (ROOMS)

and for all of src/ the structs and enums that are defined twice, how many structs have more than
BOOLS bool fields, the lines of src/ and tests/ that are wider than WIDTH columns (WIDE), and the
lines that stop a process, or end it behind a test, but do not wait until it is so (BARE).  --list
says which they are.  Fails when a value is above what is allowed.  To lower a limit is part of a
change that makes a circle smaller.
"""
import fnmatch
import os
import re
import sys

import csource

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# part: folders below src/; limits of circle (from the largest on), back, away, bools and astray
PARTS = {
    "plugin": (["nbdkit-rtrs-plugin"], 0, 0, 5, 0, 0),
    "client": (["rtrs-client"], (5, 2, 2), 11, 5, 11, 0),
    "server": (["rtrs-server"], (3, 2, 2), 8, 5, 7, 0),
    "store": (["store"], 0, 0, 5, 2, 0),
    "common": (["common"], 2, 3, 5, 3, 0),
    "frwr": (["frwr"], 3, 3, 5, 1, 0),
    "rtrsctl": (["rtrsctl"], 0, 0, 10, 0, 0),
    "bench": (["rtrs-bench"], 0, 0, 10, 0, 0),
    "nbd": (["nbd"], 0, 0, 30, 0, 0),
    "gateway": (["rtrs-nbd"], 0, 0, 10, 0, 0),
}
TWICE = 0

# Bool fields of one struct, whatever its name: more than BOOLS of them are a state that nobody has
# named, or options.
BOOLS = 4

# How many lines may be wider.  Each 0 stays; those of the shell are long strings and code of
# other languages.
WIDTH = 100
WIDE = {"src/*.[ch]": 0, "tests/*.[ch]": 0, "tests/*.sh": 174, "tests/*.py": 0}

# Signals whose sender does not wait until they have come, in the folders HAVE_SIGNALS; but for
# STOPPER, which waits.
HAVE_SIGNALS = ("bench", "build-aux", "contrib", "doc", "tests")
STOPPER = "tests/stop-threads.sh"
BARE = {
    "stop": re.compile(r"^(?!\s*(#|//|/?\*)).*(\bSIGSTOP\b|\bp?kill(all)?\b.*\s-(s\s*|-signal[ =])?"
                       r"(SIG)?(STOP|19)\b)"),
    "cleanup": re.compile(r"^\s*cleanup_fn kill "),
}

# A prefix is a room: its functions are in this folder and nowhere else.
ROOMS = {
    "ctl": "src/common/ctl", "metric": "src/common/metrics", "metrics": "src/common/metrics",
    "opt": "src/common/opt", "rnbd": "src/common/rnbd",
    "psk": "src/common/secrets", "certs": "src/common/secrets",
    "secrets": "src/common/secrets",
    "rtrs": "src/common/rtrs", "fab": "src/common/fabric", "tcp": "src/common/fabric",
    "verbs": "src/common/fabric", "frwr": "src/frwr", "clt": "src/rtrs-client",
    "client": "src/rtrs-client", "dev": "src/rtrs-client", "plugin": "src/nbdkit-rtrs-plugin",
    "srv": "src/rtrs-server", "export": "src/store", "exports": "src/store", "store": "src/store",
    "reactor": "src/rtrs-server/reactor", "nbd": "src/nbd", "gate": "src/rtrs-nbd",
}

# A folder that is one module: its prefix is enough, unless the name says another file.
PREFIX = {"src/common/fabric": "fab", "src/common/rtrs": "rtrs", "src/common/rnbd": "rnbd",
          "src/frwr": "frwr"}

# Contracts whose functions each implementation has.
CONTRACT = ("loop_",)

# What of their fields is state: the others are options and properties.
STATE = re.compile(r"(^|_)(path|sess|con|slots?|op|req|wait_con|chunks|pool|io|clt|client|ctl|srv|"
                   r"dev)$")

BOOL = r"^\t+(?:_Atomic )?(?:atomic_bool|bool|_Atomic\(bool\)) ([^;(]*);"


def sources(top, folders):
    for folder in folders:
        for top, _, names in sorted(os.walk(os.path.join(top, "src", folder))):
            for name in sorted(names):
                if re.fullmatch(r"[^.]+\.[ch]", name):
                    yield os.path.join(top, name)


def stem(path):
    """The name of a unit: x.c and x.h are one; x-priv.h, which several files share, is another."""
    return os.path.basename(path).rsplit(".", 1)[0]


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def words(text):
    """What the code in @text may call: not words of comments, strings, prototypes, tags, fields."""
    text = re.sub(r'''/\*.*?\*/|"(\\.|[^"\\])*"''', lambda m: '""' if m[0][0] == '"' else "", text,
                  flags=re.S)
    text = re.sub(r"^[a-z][^;{}()=]*\([^;{}]*\)[^;{}()]*;", "", text, flags=re.M)
    text = re.sub(r"\b(struct|enum|union)\s+\w+|(->|\.)\s*\w+", "", text)
    return set(re.findall(r"\b[a-z]\w+\b", text))


def bools_of(path):
    """The structs of a file: (name, names of bool fields)."""
    text = re.sub(r"/\*.*?\*/", "", read(path), flags=re.S)
    for m in re.finditer(r"^(?:static )?struct (\w+) \{\n(.*?)^\}", text, flags=re.S | re.M):
        yield m[1], [name.strip() for line in re.findall(BOOL, m[2], flags=re.M)
                     for name in line.split(",")]


class Part:
    def __init__(self, top, folders):
        paths = list(sources(top, folders))
        self.files = [f for f in paths if f.endswith(".c")]
        self.headers = [f for f in paths if f.endswith(".h")]
        self.folder = {stem(f): os.path.relpath(os.path.dirname(f), top) for f in self.files}
        self.stems = [stem(f) for f in self.files]
        self.units = sorted({stem(f) for f in paths})
        text = {f: read(f) for f in paths}
        functions = {f: [d for d in csource.definitions(text[f].split("\n"))
                         if d.kind == "function"] for f in paths}
        self.exported = {stem(f): sorted({d.name for d in functions[f] if not d.static})
                         for f in self.files}
        homes = {}
        for f in paths:
            for d in functions[f]:
                if f.endswith(".h") or not d.static:
                    homes.setdefault(d.name, set()).add(stem(f))
        # (from, to): the names that are needed
        self.needs = {}
        for f in paths:
            for name in words(text[f]):
                home = homes.get(name, ())
                for to in home if len(home) == 1 else ():
                    if to != stem(f):
                        self.needs.setdefault((stem(f), to), set()).add(name)

    def circles(self):
        """Sets of more than one unit that need each other, largest first (Tarjan)."""
        after = {s: sorted(b for a, b in self.needs if a == s) for s in self.units}
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

        for s in self.units:
            if s not in index:
                visit(s)
        return sorted(result, key=len, reverse=True)

    def back(self):
        """References that run up, in an order that has few: within each circle units are moved to
        where they cause the fewest, until no move helps."""
        result = []
        for circle in self.circles():
            weight = {(a, b): len(n) for (a, b), n in self.needs.items()
                      if a in circle and b in circle}
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
        """(file, function) where the longest file name that begins the function's is another's."""
        rooms = {s.replace("-", "_"): s for s in self.stems}
        result = []
        for s in self.stems:
            prefix = PREFIX.get(self.folder[s], "")
            for name in self.exported[s]:
                if name.startswith(CONTRACT):
                    continue
                fits = [r for r in rooms if name == r or name.startswith(r + "_")]
                own = not fits and prefix and name.startswith(prefix + "_")
                if not own and (not fits or rooms[max(fits, key=len)] != s):
                    result.append((s, name))
        return result

    def bools(self):
        return [(struct, name) for path in self.headers + self.files
                for struct, names in bools_of(path) if STATE.search(struct) for name in names]

    def astray(self):
        return [(s, name) for s in self.stems for name in self.exported[s]
                if not name.startswith(CONTRACT)
                and not self.folder[s].startswith(ROOMS.get(name.split("_")[0], self.folder[s]))]


def twice(top):
    """Structs and enums that are defined more than once: (name, files)."""
    seen = {}
    for path in sources(top, [""]):
        for m in re.finditer(r"^\t*((?:struct|enum) \w+) \{", read(path), flags=re.M):
            seen.setdefault(m[1], []).append(os.path.relpath(path, top))
    return [(name, files) for name, files in sorted(seen.items()) if len(files) > 1]


def many_bools(top):
    """Structs with more than BOOLS bool fields, the worst first: (number, name)."""
    return sorted(((len(names), struct) for path in sources(top, [""])
                   for struct, names in bools_of(path) if len(names) > BOOLS), reverse=True)


def wide(top):
    """{pattern: lines that are wider, "file:line"}"""
    found = {pattern: [] for pattern in WIDE}
    for pattern in WIDE:
        folder, name = pattern.split("/")
        for path, _, names in sorted(os.walk(os.path.join(top, folder))):
            for file in sorted(fnmatch.filter(names, name)):
                file = os.path.join(path, file)
                for n, line in enumerate(read(file).split("\n"), 1):
                    if len(line.expandtabs(8)) > WIDTH:
                        found[pattern].append(f"{os.path.relpath(file, top)}:{n}")
    return found


def bare(top):
    """Lines that send such a signal, "kind: file:line"."""
    found = []
    for folder in HAVE_SIGNALS:
        for path, _, names in sorted(os.walk(os.path.join(top, folder))):
            for file in sorted(n for n in names if n.endswith((".sh", ".in", ".py", ".c", ".h"))):
                name = os.path.relpath(os.path.join(path, file), top)
                lines = read(os.path.join(path, file)).split("\n") if name != STOPPER else ()
                found += [f"{kind}: {name}:{n}" for n, line in enumerate(lines, 1)
                          for kind, pattern in BARE.items() if pattern.match(line)]
    return found


def above(values, limits):
    """Is a value above its limit?  A circle beyond those that are allowed may have none."""
    return any(v > (limits[i] if i < len(limits) else 0) for i, v in enumerate(values))


def numbers(values):
    return " ".join(map(str, values)) or "0"


def measure(name, part, limits, wanted):
    """Print the line of a part, with its details if @wanted; True if all are within @limits."""
    circles, back, away = part.circles(), part.back(), part.away()
    bools, astray = part.bools(), part.astray()
    nfunctions = sum(map(len, part.exported.values()))
    values = [("circle", [len(c) for c in circles]), ("back", [len(back)]),
              ("away", [round(100 * len(away) / max(nfunctions, 1))]), ("bools", [len(bools)]),
              ("astray", [len(astray)])]
    bad, cells = False, []
    for (what, have), limit in zip(values, limits):
        limit = limit if isinstance(limit, tuple) else (limit,)
        over = above(have, limit)
        bad |= over
        cells.append(f"{what} {numbers(have)}/{numbers(limit)}{' !' if over else ''}")
    nneeds = sum(len(n) for n in part.needs.values())
    print(f"{name:8}{len(part.units):4} units, {nneeds} references: " + ", ".join(cells))
    if wanted:
        lines = [f"circle: {' '.join(c)}" for c in circles]
        lines += [f"back: {a} > {b}: {n}" for a, b, n in back]
        lines += [f"away: {s}: {n}" for s, n in away] + [f"bool: {s}.{n}" for s, n in bools]
        lines += [f"astray: {s}: {n}" for s, n in astray]
        print("".join(f"    {line}\n" for line in lines), end="")
    return not bad


def main():
    args = [a for a in sys.argv[1:] if a != "--list"]
    if len(args) > 1 or any(a.startswith("-") for a in args):
        sys.exit(__doc__)
    top = args[0] if args else TOP
    wanted = "--list" in sys.argv
    good = True
    for name, (folders, *limits) in PARTS.items():
        good &= measure(name, Part(top, folders), limits, wanted)
    names = twice(top)
    over = len(names) > TWICE
    good &= not over
    print(f"defined twice: {len(names)}/{TWICE}{' !' if over else ''}")
    for name, files in names if wanted or over else []:
        print(f"    twice: {name}: {' '.join(files)}")
    many = many_bools(top)
    good &= not many
    print(f"structs with more than {BOOLS} bools: {len(many)}/0{' !' if many else ''}")
    for n, name in many:
        print(f"    bools: {name}: {n}")
    lines = bare(top)
    good &= not lines
    print(f"signals that nobody waits for: {len(lines)}/0{' !' if lines else ''}")
    for line in lines:
        print(f"    {line}")
    for pattern, lines in wide(top).items():
        over = len(lines) > WIDE[pattern]
        good &= not over
        mark = " !" if over else ""
        print(f"wider than {WIDTH} in {pattern}: {len(lines)}/{WIDE[pattern]}{mark}")
        for line in lines if wanted or over else []:
            print(f"    wide: {line}")
    return not good


if __name__ == "__main__":
    sys.exit(main())
