# SPDX-License-Identifier: BSD-3-Clause
"""Which files of src/ need each other, by their source: house.py prints and limits it.

A unit is x.c with its x.h; x-priv.h is one by itself.  A unit needs another when its code names a
function that the other one defines, static inline ones of headers included; a table is nobody's,
such as that of a provider, and neither is a function that several units of a part define.  For each
part of src/ (PARTS):

circle		the sizes of the largest sets of units that need each other in a circle
back		references that run back up the order of units, in the order with the fewest of them
away		exported functions that are not in the file that their name says, nor in the folder
		whose functions have that prefix (PREFIX), in percent
bools		bool fields in the structs that a path, session, connection or request is made of
astray		exported functions with the prefix of another folder (ROOMS)
"""
import os
import re

import csource

# part: folders below src/; limits of circle (from the largest on), back, away, bools and astray
PARTS = {
    "plugin": (["nbdkit-rtrs-plugin"], 0, 0, 5, 0, 0),
    "client": (["rtrs-client"], (4, 2, 2), 11, 5, 11, 0),
    "server": (["rtrs-server"], (3, 2), 5, 5, 7, 0),
    "store": (["store"], 0, 0, 5, 2, 0),
    "common": (["common"], 2, 3, 5, 3, 0),
    "frwr": (["frwr"], 3, 3, 5, 1, 0),
    "rtrsctl": (["rtrsctl"], 0, 0, 10, 0, 0),
    "bench": (["rtrs-bench"], 0, 0, 10, 0, 0),
    "nbd": (["nbd"], 0, 0, 5, 0, 0),
    "relay": (["nbd-relay"], 0, 0, 10, 0, 0),
    "gateway": (["rtrs-nbd"], 0, 0, 10, 0, 0),
    "attach": (["rtrs-attach"], 0, 0, 10, 0, 0),
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
    "reactor": "src/common/reactor", "nbd": "src/nbd", "gate": "src/rtrs-nbd",
    "relay": "src/nbd-relay", "attach": "src/rtrs-attach",
}

# Prefixes of functions in a file of another name, which has several small things of one kind.
HOMES = {
    "end": "process", "fds": "process", "std": "process", "daemon": "process",
    "secret_alloc": "process", "secret_free": "process", "secret_no": "process",
    "hist": "counter", "io_stat": "counter", "files_age": "changes", "rundir": "unix-sock",
    "ctl_secrets": "ctl-json", "ctl_path": "ctl-json", "ctl_stat": "ctl-json",
    "secret_name": "psk", "secret_file": "psk", "secrets_change": "secrets-set",
    "metric_host": "metric-sock", "metric_accept": "metric-sock",
    "tcp_pd": "tcp-key", "tcp_mr": "tcp-key", "tcp_mw": "tcp-key",
    "tcp_hs_connected": "tcp-hs-frame", "tcp_hs_read": "tcp-hs-frame",
    "tcp_hs_send": "tcp-hs-frame", "tcp_hs_tls": "tcp-hs-frame",
    "tcp_hs_why": "tcp-hs-frame", "verbs_devices": "verbs-dev", "verbs_mr": "verbs-pd",
    "metric_file": "metrics", "auth_key": "auth-creds", "auth_conn": "auth-creds",
    "size": "number", "fmt": "number", "mask": "names", "suggest": "names", "intern": "names",
    "who": "names", "export_line": "export-spec", "doctor_proc": "doctor-note",
    "doctor_tool": "doctor-note", "srv_flap": "srv-log", "srv_flaps": "srv-log",
    "srv_keys": "srv-pass", "srv_stat": "srv-export", "rbd_lib": "store-rbd-connect",
    "rbd_target": "store-rbd-connect", "export_record": "export-state",
    "store_file_desc": "store-file-claim", "detach_child": "attach-helper", "clt_run": "clt-start",
}

# A folder that is one module: its prefix is enough, unless the name says another file.
PREFIX = {"src/common/fabric": "fab", "src/common/opt": "opt", "src/common/rtrs": "rtrs",
          "src/common/rnbd": "rnbd", "src/frwr": "frwr", "src/nbd": "nbd",
          "src/rtrs-client/dev": "dev", "src/rtrs-client/path": "clt_path"}

# Contracts whose functions each implementation has.
CONTRACT = ("loop_",)

# What of their fields is state: the others are options and properties.
STATE = re.compile(r"(^|_)(path|sess|con|slots?|op|req|wait_con|chunks|pool|io|clt|client|ctl|srv|"
                   r"dev)$")

BOOL = r"^\t+(?:_Atomic )?(?:atomic_bool|bool|_Atomic\(bool\)) ([^;(]*);"


def sources(top, folders):
    for folder in folders:
        for where, _, names in sorted(os.walk(os.path.join(top, "src", folder))):
            for name in sorted(names):
                if re.fullmatch(r"[^.]+\.[ch]", name):
                    yield os.path.join(where, name)


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
        """Sets of more than one unit that need each other, largest first."""
        after, reach = {s: {b for a, b in self.needs if a == s} for s in self.units}, {}
        for s in self.units:
            reach[s], new = set(), {s}
            while new:
                new = set().union(*(after[v] for v in new)) - reach[s]
                reach[s] |= new
        found = {tuple(v for v in sorted(reach[s]) if s in reach[v]) for s in self.units}
        return sorted(sorted(c for c in found if c), key=len, reverse=True)

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
        rooms.update({prefix: s for prefix, s in HOMES.items() if s in self.stems})
        result = []
        for s in self.stems:
            prefix = PREFIX.get(self.folder[s], "")
            for name in self.exported[s]:
                if name.startswith(CONTRACT):
                    continue
                fits = [r for r in rooms if r != prefix and
                        (name == r or name.startswith(r + "_"))]
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


def measure(top):
    """For each part (its line, what is more than allowed, all that was found)."""
    for name, (folders, *limits) in PARTS.items():
        part = Part(top, folders)
        circles, away = part.circles(), part.away()
        found = {
            "circle": [" ".join(c) for c in circles],
            "back": [f"{a} > {b}: {n}" for a, b, n in part.back()],
            "away": [f"{s}: {n}" for s, n in away],
            "bools": [f"{s}.{n}" for s, n in part.bools()],
            "astray": [f"{s}: {n}" for s, n in part.astray()],
        }
        have = {what: [len(lines)] for what, lines in found.items()}
        have["circle"] = [len(c) for c in circles]
        have["away"] = [round(100 * len(away) / max(sum(map(len, part.exported.values())), 1))]
        cells, over, details = [], [], []
        for (what, values), limit in zip(have.items(), limits):
            limit = limit if isinstance(limit, tuple) else (limit,)
            cell = f"{what} {numbers(values)}/{numbers(limit)}"
            # A circle beyond those that are allowed may have none.
            if any(v > (limit[i] if i < len(limit) else 0) for i, v in enumerate(values)):
                cell += " !"
                over += [f"{name}: {what}: {line}" for line in found[what]]
            cells.append(cell)
            details += [f"{what}: {line}" for line in found[what]]
        yield f"{name:8}{len(part.units):4} units: " + ", ".join(cells), over, details


def numbers(values):
    return " ".join(map(str, values)) or "0"
