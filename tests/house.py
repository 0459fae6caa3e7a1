#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The rules of this tree that a program can check.

	house.py [--list] [TOP OF A TREE [RULE...]]

Prints each violation, as FILE:LINE: WHY, and fails when there is one.  The rules (RULES, at the
end) are what the functions here say, each for itself, and "circles" is in units.py: --list prints
what that one counts.  tests/test-house.sh shows that each rule finds something.
"""
import collections
import glob
import os
import re
import sys

import units

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
read = units.read


def files(pattern, *folders):
    """Files below @folders whose name matches all of @pattern, but for what a guest keeps."""
    for folder in folders:
        for where, _, names in sorted(os.walk(folder)):
            if not where.startswith("tests/guest/cache"):
                yield from (os.path.join(where, n) for n in sorted(names)
                            if re.fullmatch(pattern, n))


def line_of(text, pos):
    return 1 + text.count("\n", 0, pos)


# ---- layers ----

# A folder of src/ may include headers of these folders, besides its own.  +X: of X, and all that
# X may; =X: all that X may.
LAYERS = """
common/base:
common/ctl common/journal common/metrics common/opt common/secrets: common/base
common/rtrs common/rnbd common/reactor nbd: common/base
common/auth: common/base common/secrets common/fabric common/rtrs
common/fabric: common/base common/secrets
common/fabric/tcp common/fabric/verbs frwr: common/base common/fabric
rtrs-client/io: common/base common/fabric common/rtrs frwr
rtrs-client/loop: +rtrs-client/io
rtrs-client/path: +rtrs-client/io common/auth common/secrets
rtrs-client/sess: +rtrs-client/path
rtrs-client/dev: +rtrs-client/sess common/rnbd
rtrs-client/conf: =rtrs-client/dev common/opt common/metrics
rtrs-client/ctl: +rtrs-client/conf rtrs-client/dev common/ctl
rtrs-client/start: +rtrs-client/ctl
nbdkit-rtrs-plugin: +rtrs-client/start nbd
nbd-relay: +rtrs-client/start rtrs-client/loop nbd
rtrs-nbd: +nbd-relay common/journal
rtrs-attach: +nbd-relay common/journal rtrs-ublk
rtrs-bench rtrs-ublk: +rtrs-client/start rtrs-client/loop
rtrs-psk: common/base common/opt common/secrets
rtrsctl: common/base common/opt common/ctl common/secrets common/fabric common/rtrs
store: common/base common/opt common/rnbd common/reactor
store/file store/mem store/rbd: +store
rtrs-server/conf: +store common/fabric common/rtrs common/metrics common/auth common/secrets
rtrs-server/rtrs: common/base common/auth common/secrets common/fabric common/rtrs frwr
rtrs-server/rtrs: common/reactor store rtrs-server/conf rtrs-server
rtrs-server/rnbd: +rtrs-server/rtrs common/rnbd
rtrs-server/change: +rtrs-server/rnbd common/opt
rtrs-server/ctl: +rtrs-server/change common/ctl common/metrics
rtrs-server: +rtrs-server/ctl common/journal
"""

# What code without IO, sockets, threads and time may see.
PURE = """assert.h config.h endian.h errno.h infiniband/verbs.h inttypes.h isa-l/crc.h limits.h
linux/types.h stdarg.h stdatomic.h stdbool.h stddef.h stdint.h stdlib.h string.h zlib.h""".split()

# Headers, of the system and ours, that only these files below src/ may include.
ONLY = {
    "liburing.h": r"(common/reactor/|rtrs-ublk/ublk-kernel\.c$)",
    "seccomp.h": r"rtrs-server/filter\.[ch]$",
    "systemd/sd-journal.h": r"common/journal/",
    "rbd/librbd.h": r"store/rbd/store-rbd-priv\.h$",
    "rados/librados.h": r"store/rbd/store-rbd-priv\.h$",
    "gnutls/gnutls.h": r"common/(auth/auth-crypto|secrets/certs|"
                       r"fabric/(fab-(tls|tls-session|tls-stream|tls-priv)|tcp/tcp-k?tls))\.[ch]$",
    "gnutls/crypto.h": r"common/(auth/auth-crypto|secrets/certs|fabric/fab-tls)\.c$",
    "isa-l/crc.h": r"common/rtrs/rtrs-req\.c$",
    "nettle/curve25519.h": r"common/auth/auth-crypto\.c$",
    "microhttpd.h": r"common/metrics/metric-http\.c$",
    "nbdkit-plugin.h": r"nbdkit-rtrs-plugin/plugin\.c$",
    "jansson.h": r"(common/ctl|rtrsctl|rtrs-client/ctl|rtrs-server/ctl)/|rtrs-bench/report\.c$|"
                 r"(rtrs-nbd/gate-clients|rtrs-attach/attach-list)\.c$",
    "netlink/genl/genl.h": r"rtrs-attach/attach-nbd\.c$",
    "rdma/rdma_cma.h": r"common/fabric/verbs/[a-z-]+\.c$",
    "infiniband/verbs.h": r"(common/(fabric|rtrs)|frwr|rtrs-client/[a-z]+|rtrs-server)/",
    "psk.h": r"(common/(secrets|auth)|rtrs-psk)/",
    "certs.h": r"common/secrets/",
    "srv.h": r"rtrs-server/(ctl/[a-z-]+|[a-z]+)\.[ch]$",
    "loop-impl.h": r"(common/base/loop(-poll)?\.c|common/fabric/tcp/tcp-cm\.h|"
                   r"common/reactor/reactor-ring\.h)$",
    "reactor-ring.h": r"(common/reactor/|store/store-uring\.c$|store/file/store-file-io\.h$)",
}


def layers_of(table):
    """{folder: folders whose headers it may include}"""
    said, found = collections.defaultdict(list), {}
    for row in table.strip().split("\n"):
        folders, uses = row.split(":")
        for folder in folders.split():
            said[folder] += uses.split()

    def all_of(folder):
        if folder not in found:
            found[folder] = set()
            for use in said[folder]:
                found[folder] |= all_of(use[1:]) if use[0] in "+=" else set()
                found[folder] |= {use.lstrip("+")} if use[0] != "=" else set()
        return found[folder]

    return {folder: all_of(folder) for folder in said}


def layers():
    """The include law: which folder below src/ may include headers of which, and which files may
    see which system headers.  And one that is like it: text becomes JSON in one function."""
    uses, home = layers_of(LAYERS), {}
    paths = list(files(r".*\.[ch]", "src"))
    for path in paths:
        folder, base = os.path.split(path)
        if path.endswith(".h"):
            if base in home:
                yield f"{path}: has the same name as one in {home[base]}"
            home[base] = folder
    for path in paths:
        folder, base = os.path.split(path)
        inside = path[len("src/"):]
        if folder[len("src/"):] not in uses:
            yield f"{path}: {folder} has no rule: add it to LAYERS of house.py"
        pure = folder in ("src/common/rtrs", "src/common/rnbd") or re.search(r"-fsm\.[ch]$", base)
        for n, line in enumerate(read(path).split("\n"), 1):
            where = f"{path}:{n}"
            if (path != "src/common/ctl/ctl-json.c"
                    and re.search(r"json_stringn?(_nocheck)?\(|json_pack.*s:s", line)):
                # jansson refuses what is no UTF-8.
                yield f'{where}: text for JSON goes through ctl_json_text() ("s:o")'
            if not re.match(r"[ \t]*#[ \t]*include", line):
                continue
            found = re.search(r'(["<])([^">]*)[">]', line)
            if not found:
                yield f"{where}: an include that cannot be read: {line}"
                continue
            ours, header = found[1] == '"', found[2]
            target = home.get(header)
            quoted = f'"{header}"' if ours else f"<{header}>"
            if ours and header == "config.h":
                continue
            if ours and not target:
                yield f"{where}: {quoted} is not below src/"
                continue
            if header in ONLY and not re.match(ONLY[header], inside):
                yield f"{where}: {quoted} is not for this file"
            if not ours:
                if pure and header not in PURE:
                    yield f"{where}: {quoted} in pure code"
                if target:
                    yield f"{where}: {quoted} is ours: include it in quotes"
            elif target != folder:
                if header.endswith("-priv.h"):
                    yield f"{where}: {quoted} is private to {target}"
                elif target[len("src/"):] not in uses.get(folder[len("src/"):], ()):
                    yield f"{where}: {folder} may not use {target} ({quoted})"


# What ublk-kernel.c maps is a device, which loses none.  clt-kept.c maps the one page of a file
# that is its user's alone and is locked: a store has to be there when the process is killed behind
# it, and no thread may wait for the file (D27).
MAPS = ("src/rtrs-ublk/ublk-kernel.c", "src/rtrs-client/start/clt-kept.c")


def mappings():
    """No program maps a file: who touches a page that the file has lost by then gets SIGBUS."""
    for path in files(r".*\.[ch]", "src"):
        if path in MAPS:
            continue
        text = read(path)
        for call in re.finditer(r"\bmmap\([^;]*;", text):
            if "MAP_ANONYMOUS" not in call[0]:
                yield (f"{path}:{line_of(text, call.start())}: mmap() of a file, which may shrink "
                       "(SIGBUS): read it")


# ---- doc/limits.md ----

LIMIT = re.compile(r"_(?:MAX|IOS|GUESTS|MEMORY|MS|TIMEOUT)_")
UNITS = {"": 1, "ms": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def macros():
    """{name: {file: line}}, and {(name, file): number} of those that are numbers"""
    where, value = collections.defaultdict(dict), {}
    for path in files(r".*\.[ch]", "src"):
        text = read(path)
        for m in re.finditer(r"^[ \t]*#[ \t]*define[ \t]+([A-Z]\w*)[ \t]+(\S[^\n]*)", text, re.M):
            where[m[1]][path] = line_of(text, m.start())
            number = re.sub(r"\(size_t\)|UINT64_C", "", m[2].split("/*")[0])
            number = re.sub(r"\b(0x[\da-f]+|\d+)(?:u?l*)\b", r"\1", number, flags=re.I).strip()
            if re.fullmatch(r"[\s\d()<*+-]*(?:0x[\da-f]+)?[\s\d()<*+-]*", number, re.I):
                try:
                    value[m[1], path] = eval(number)  # digits, brackets and < * + - alone
                except (SyntaxError, TypeError):
                    pass
    return where, value


def is_value(text, n, name):
    """Is @text, "64 MiB and so on", the number @n of the macro @name?"""
    m = re.match(r"([\d,]+)(?: (KiB|MiB|GiB|TiB|s|ms)\b)?", text)
    if not m:
        return False
    unit = m[2] or ""
    return int(m[1].replace(",", "")) * (UNITS.get(unit) or
                                         (1 if name.endswith("_S") else 1000)) == n


def limit_tests(cell):
    """Why the cell with the tests of a limit is wrong."""
    if cell.startswith("none"):
        if not re.match(r"none: \w+ \w+", cell):
            yield "it does not say why no test stands there"
        return
    for one in re.split(r";\s*", cell):
        m = re.fullmatch(r"(tests/[\w./-]+)(?: (.+))?", one)
        if not m or not os.path.isfile(m[1]) or not read(m[1]):
            yield f'"{one}": there is no such test'
            continue
        for word in re.split(r",\s*", m[2] or ""):
            if word and not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", read(m[1])):
                yield f"{m[1]} has no {word}"


def limits():
    """The tables of doc/limits.md tell the truth: each limit stands in the named file with the
    named value, each test exists, and no limit of src/ is missing.  A row is

    | `NAME` | VALUE | src/FILE | what is beyond | tests/FILE word, word; tests/FILE word |

    NAME is a macro, or the name of an option, in quotes there (`--memory`: "memory").  VALUE of a
    macro that is a number is compared: 64 MiB, 5 s, 256.  Several names have as many values, with
    "; " between.  A test is a file with words of it; "none: REASON" says why no test stands there.
    The page has each macro of LIMIT in a row, or in the list at its end."""
    where, value = macros()
    named, rows = collections.defaultdict(list), set()
    for n, line in enumerate(read("doc/limits.md").split("\n"), 1):
        at = f"doc/limits.md:{n}"
        for name in set(re.findall(r"`([A-Z]\w+)`", line)):
            named[name].append(at)
        if not line.startswith("| `"):
            continue
        cells = [c.strip() for c in line[1:].rstrip("|").split("|")]
        if len(cells) != 5:
            yield f"{at}: a row has five cells"
            continue
        cell, is_, path, beyond, tests = cells
        text = read(path) if os.path.isfile(path) else None
        if text is None:
            yield f"{at}: {path} does not exist"
        names = re.findall(r"`([^`]+)`", cell)
        values = re.split(r";\s*", is_) if len(names) > 1 else [is_]
        if len(values) < len(names):
            yield f"{at}: a value for each name"
        for name, is_ in zip(names, values + [""] * len(names)):
            if (name, path) in rows:
                yield f"{at}: {name} of {path} has another row"
            rows.add((name, path))
            word = rf'"{name[2:]}"' if name.startswith("--") else rf"\b{re.escape(name)}\b"
            if text is None or not re.search(word, text):
                yield f"{at}: {path} has no {name}"
            number = value.get((name, path))
            if number is not None and not is_value(is_, number, name):
                yield f"{at}: {name} is {number}, not {is_}"
        if not beyond:
            yield f"{at}: it does not say what is beyond"
        yield from (f"{at}: {why}" for why in limit_tests(tests))
    if not rows:
        yield "doc/limits.md:0: has no rows"
    for name in sorted(named):
        if name not in where:
            yield from (f"{at}: there is no {name} in src/" for at in named[name])
    for name in sorted(where):
        if LIMIT.search(f"_{name}_") and name not in named:
            yield from (f"{path}:{n}: {name} is not in doc/limits.md"
                        for path, n in sorted(where[name].items()))


# ---- doc/walks.md ----

WALKS = ("A read", "A read through rtrs-nbd", "A write with FUA", "A lost path",
         "An export that comes, grows and goes")


def walks():
    """Each `FILE:FUNCTION` of doc/walks.md is the definition of a function in that file, and each
    `src/FILE` exists."""
    text = read("doc/walks.md")
    names = sorted(set(re.findall(r"`(src/[^`]*)`", text)))
    for name in names:
        path, _, function = name.partition(":")
        if not os.path.isfile(path):
            yield f"doc/walks.md: {name}: there is no {path}"
        # A line that begins with the type and does not end as a declaration does.
        elif function and not re.search(rf"^[a-z][\w *]*[ *]{re.escape(function)}\((?!.*;$)",
                                        read(path), re.M):
            yield f"doc/walks.md: {name}: {path} does not define it"
    for walk in WALKS:
        if f"\n## {walk}\n" not in "\n" + text:
            yield f"doc/walks.md: no '## {walk}'"
    if len(names) < 30:
        yield f"doc/walks.md names {len(names)} places: the walks are not there"


# ---- citations ----

CITED = {"decisions": r"D\d+", "verbs": r"[QI]\d+", "traps": r"\d+",
         "protocol": r"(?:\d+(?:\.\d+)*|[Aa]ppendix [A-Z])"}
# Between a page and its number: blanks, or the head of the next line of a comment.
GAP = r"(?:[ \t]|\n[ \t]*(?:\*(?!/)|#|//)?[ \t]*)+"


def headings(page):
    """The numbers of a page: (what is wrong with them, them)."""
    path, numbers, last, wrong = f"doc/{page}.md", set(), {}, []
    if not os.path.isfile(path):
        return [f"{path}:0: is missing"], numbers
    for n, line in enumerate(read(path).split("\n"), 1):
        m = re.match(rf"##+ ({CITED[page]})(?= |$)", line)
        if not m:
            continue
        this = m[1]
        letter, number = re.match(r"([A-Z]?)\D*(\d*)", this).groups()
        if this.lower() in numbers:
            wrong.append(f"{path}:{n}: {this} stands twice")
        elif page != "protocol":
            if int(number) != last.get(letter, 0) + 1:
                wrong.append(f"{path}:{n}: {this} does not follow {letter}{last.get(letter, 0)}")
            last[letter] = int(number)
        numbers.add(this.lower())
    return wrong + ([] if numbers else [f"{path}:0: has no numbers"]), numbers


def citations():
    """What the code, the tests and the manuals cite stands in the tree: a page in doc/, and in it
    the number, which is a heading of the page.  A citation is

    doc/decisions.md D6     also with a list: D6 and D13; D6, D13
    doc/traps.md 17
    doc/protocol.md 3.4     also 1 to 5, and appendix A
    doc/verbs.md Q1, I2

    and may go on in the next line of a comment.  In .c and .h files a citation of these pages has a
    number, and D6 or Q1 without a page is a citation, too.  Pages in doc/ name files that exist,
    and number without gaps; a trap names files with a test that has its number (p17)."""
    number = {}
    for page in sorted(CITED):
        wrong, number[page] = headings(page)
        yield from wrong
    paths = [p for p in ("HACKING", "README.md", "SECURITY") if os.path.isfile(p)]
    paths += glob.glob("doc/*.md") + glob.glob("man/*.pod")
    paths += files(r".*\.([ch]|sh|in|mk|py|list)|README", "src", "tests", "bench", "build-aux")
    # The test of this rule names what does not exist.
    for path in sorted(set(paths) - {"tests/house_test.py"}):
        yield from (f"{path}:{line_of(read(path), pos)}: {why}"
                    for pos, why in cited_in(path, read(path), number))


def cited_in(path, text, number):
    """(position, what is wrong) of the citations in a file."""
    code, pos, lists = path.endswith((".c", ".h")), 0, []
    while m := re.compile(r"(?<![\w./$-])((?:[\w.-]+/)*)([\w-]+)\.md\b").search(text, pos):
        folder, page, pos = m[1], m[2], m.end()
        if path.endswith(".py") and not folder:
            continue  # a member of a variable
        name = f"{folder}{page}.md"
        if not re.fullmatch(r"(?:doc/[\w-]+|README)\.md", name) or not os.path.isfile(name):
            yield m.start(), f"{name} is no page of this tree"
        elif folder and page in CITED:
            item = CITED[page]
            found = re.compile(rf"{GAP}({item}(?:,?{GAP}(?:and{GAP}|to{GAP})?{item})*)(?!\w)"
                               ).match(text, pos)
            if found:
                pos = found.end()
                lists.append(found.span())
                for n in re.findall(item, found[1]):
                    if n.lower() not in number[page]:
                        yield m.start(), f"{name} has no {n}"
            elif code:
                yield m.start(), f"{name} without a number"
    for m in re.finditer(rf"\bpitfalls?{GAP}\(?\d+", text, re.I):
        yield m.start(), "a trap is cited as doc/traps.md and its number"
    for m in re.finditer(r"(?<![\w./%-])([DQ])(\d{1,2})(?![\w.])", text) if code else ():
        page = "decisions" if m[1] == "D" else "verbs"
        if (m[0].lower() not in number[page]
                and not any(a <= m.start() <= b for a, b in lists)):
            yield m.start(), f"there is no {m[0]}"
    if path.startswith("doc/"):
        for m in re.finditer(r"(?<![\w./-])((?:src|tests|man|bench|build-aux)/[\w./-]*\w)", text):
            if not os.path.exists(m[1]):
                yield m.start(), f"{m[1]} does not exist"
    for m in re.finditer(r"(?<![\w./-])tests/[\w./-]+\.(?:c|sh)\b",
                         text) if path == "doc/traps.md" else ():
        heads = re.findall(r"^##? (\d+)?", text[:m.start()], re.M)
        if heads and heads[-1] and os.path.isfile(m[0]):
            test = f"p{int(heads[-1]):02d}"
            if not re.search(rf"{test}(?!\d)", m[0] + " " + read(m[0])):
                yield m.start(), f"{m[0]} has no test {test}"


# ---- numbers in the names of tests ----

# What runs: Criterion's, a case of the conformance suite, a row of a table of tests.
CRITERION = r"^Test\([a-z_]*, *([a-z0-9_]*)[,)]"
PROMISE = r"^FAB_TEST(?:_THREADS)?\(promise_[a-z]_([a-z0-9_]*)\)"


def named_tests(places):
    """The names that the patterns of (files, pattern) find."""
    for wanted, pattern in places:
        for path in glob.glob(wanted):
            yield from re.findall(pattern, read(path), re.M)


def scripts(pattern, *folders):
    for folder in folders:
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            yield from re.findall(pattern, name)


def at_the_head(names, number):
    """The numbers with which these names begin; one may carry several, one after the other."""
    return {n for name in names
            for n in re.match(rf"((?:{number}(?:[-_ ]|$))*)", name)[0].replace("_", "-")
            .replace(" ", "-").split("-")}


def pitfalls():
    """Each of the 41 traps of RTRS, RNBD and NBD (doc/traps.md) has a test whose name carries its
    number (p07), or an item in man/rtrs-protocol.pod that says why it has none.  A name is one that
    runs: of Criterion, SIM_TEST(p07_name), a row { "p07-name", function } of tests/hostile, a case
    of the conformance suite, test-p07-name.sh."""
    names = [*named_tests((("tests/unit/*.c", CRITERION),
                           ("tests/sim/test-sim-*.c", r"^SIM_TEST\((\w*)\)"),
                           ("tests/hostile/cases-*.c", r'^\t*\{ "([^"]*)",'),
                           ("tests/fabric/cf-*.c", PROMISE),
                           ("man/rtrs-protocol.pod", r"^=item (p\d\d)$"))),
             *scripts(r"^test-(p\d\d[a-z0-9-]*)\.sh$", "tests", "tests/guest")]
    have = at_the_head(names, r"p\d\d")
    for n in range(1, 42):
        if f"p{n:02d}" not in have:
            yield (f"p{n:02d}: no test carries this number, and man/rtrs-protocol.pod does not say "
                   "why")


def frwr_rows():
    """Each requirement of src/frwr (r01 to r43 and r08a, tests/frwr/README) and each item of the
    list of its tests (t01 to t28) has a test whose name carries its number, or a line
    "<tab>r04<blank>why" in tests/README.  A name is one that runs: of Criterion, a program of
    tests/frwr/programs, a case of tests/frwr/device-*.c or of the conformance suite, a script in
    tests/guest, where manual- is one, too."""
    names = [*named_tests((("tests/frwr/*.c", CRITERION),
                           ("tests/frwr/programs", r"^([a-z0-9-]*) "),
                           ("tests/frwr/device-*.c", r"^FAB_TEST\(([a-z0-9_]*)\)"),
                           ("tests/fabric/cf-*.c", PROMISE),
                           ("tests/README", r"^\t([rt]\d\da?) "))),
             *scripts(r"^(?:test|manual)-([a-z0-9-]*)\.sh$", "tests/guest")]
    have = at_the_head(names, r"[rt]\d\da?")
    for row in ["r08a", *(f"r{n:02d}" for n in range(1, 44)), *(f"t{n:02d}" for n in range(1, 29))]:
        if row not in have:
            yield f"{row}: no test carries this number, and tests/README does not say why"


# ---- messages with a number ----

def log_ids():
    """The messages that matter: each row of the table has a number of its own, a place in the code
    that logs it, and an item in the manual with the same number and meaning; the manual and the
    code have no others."""
    table, manual = "src/common/base/log.h", "man/rtrs-server.pod"
    rows, numbers = {}, {}
    for name, number, means in re.findall(r'^\tROW\((\w+),[\s\\]*"([^"]*)",[\s\\]*"([^"]*)"\)',
                                          read(table), re.M):
        if not re.fullmatch(r"[0-9a-f]{32}", number):
            yield f'{table}: {name}: "{number}" is no number of 32 digits 0-9 and a-f'
        if number in numbers:
            yield f"{table}: {name} has the number of {numbers[number]}"
        rows[name], numbers[number] = (number, means), name
    if not rows:
        yield f"{table}: no row was found"
    used = set()
    for path in files(r".*\.[ch]", "src"):
        if path != table:
            used |= set(re.findall(r"LOG_FIELDS\(([A-Z_]+)\b", read(path)))
            used |= set(re.findall(r"(?:CLT_PATH|DEV)_FIELDS\([^,()]+, ([A-Z_]+)\)", read(path)))
    items = re.findall(r"^=item ([A-Z_]+) C<([0-9a-f]{32})>\n\n(.+?)\n\n", read(manual),
                       re.M | re.S)
    for name, number, says in items:
        says = says.replace("\n", " ")
        says = says[0].lower() + says[1:]
        if name not in rows:
            yield f"{manual}: {name} is in no row of {table}"
            continue
        is_, means = rows[name]
        if number != is_:
            yield f"{manual}: {name}: C<{number}>, and {is_} in {table}"
        if not says.startswith(f"{means} ("):
            yield f'{manual}: {name}: begins otherwise than "{means}" in {table}'
        if not re.search(r"\)\. +\S", says):
            yield f"{manual}: {name}: does not say what to do"
    for name in sorted(rows):
        if name not in used:
            yield f"{name}: nothing in src/ logs it"
        if name not in {item[0] for item in items}:
            yield f"{manual}: {name} is not told"


# ---- words ----

WORDS = (
    (r"\bhaggl\w*", "negotiate"),
    (r"\bshakes?\b(?! hands)", "handshake"),
    (r"\bstrangers?\b", "an unknown client, an unauthenticated connection"),
    (r"\banew\b", "again, new"),
    (r"\b(?:is|are|was|were|been) told\b", "is reported, is notified"),
    (r"\btells? (?:all|that|the|its|of|in|over)\b", "reports"),
    (r"\bmend(?:s|ed)?\b", "correct, fix"),
    (r"\bwho(?:ever)? has it open\b", "clients that have it open"),
    (r"\bwhoever (?:is between|verifies|knows)\b", "an attacker, a peer, a client"),
    (r"\bstays? as it was\b", "unchanged"),
    (r"\bfrom the next start on\b", "after a restart"),
    (r"\bask and command", "query and control"),
    (r"\bservers before one\b", "servers sharing one"),
    (r"\bgo(?:es|ing)? on without\b", "continue without"),
)
STRING = re.compile(r"/\*.*?\*/|\"((?:\\.|[^\"\\])*)\"|'(?:\\.|[^'\\])+'", re.S)


def words():
    """What users read has the field's words, and none of the words that this project once had for
    itself: in README, SECURITY, some pages, the manuals and the strings of src/."""
    for path in ["README.md", "SECURITY", "doc/peers.md", "doc/promises.md",
                 *sorted(glob.glob("man/*.pod")), *files(r".*\.[ch]", "src")]:
        text = read(path)
        parts = [(0, text)]
        if path.endswith((".c", ".h")):
            parts = [(m.start(1), m[1]) for m in STRING.finditer(text) if m[1] is not None]
        for at, part in parts:
            for pattern, better in WORDS:
                for m in re.finditer(pattern, part.replace("\n", " "), re.I):
                    yield f'{path}:{line_of(text, at + m.start())}: "{m[0]}": write: {better}'


# ---- the shape of the code ----

# Bool fields of one struct, whatever its name: more than BOOLS of them are a state that nobody has
# named, or options.
BOOLS = 4


def circles():
    """Files that need each other in a circle, and what else units.py measures: not more than there
    are today.  To lower a limit (PARTS there) is part of a change that makes a circle smaller."""
    for line, over, found in units.measure("."):
        if "--list" in sys.argv:
            print(line, *found, sep="\n    ")
        yield from over


def structs():
    """No struct or enum is defined twice, and none has more than BOOLS bool fields."""
    seen = collections.defaultdict(list)
    for path in files(r"[^.]+\.[ch]", "src"):
        for m in re.finditer(r"^\t*((?:struct|enum) \w+) \{", read(path), re.M):
            seen[m[1]].append(path)
        yield from (f"{path}: struct {name} has {len(names)} bools, of at most {BOOLS}"
                    for name, names in units.bools_of(path) if len(names) > BOOLS)
    yield from (f"{paths[0]}: {name} is defined twice: {' '.join(paths)}"
                for name, paths in sorted(seen.items()) if len(paths) > 1)


# How many lines may be wider than WIDTH: those of the shell are long strings and code of other
# languages.
WIDTH = 100
WIDE = ((r".*\.[ch]", ("src", "tests"), 0), (r".*\.py", ("tests",), 0),
        (r".*\.sh", ("tests",), 195))


def wide():
    """Lines of src/ and tests/ are at most WIDTH columns wide; tabs are 8."""
    for pattern, folders, most in WIDE:
        found = [f"{path}:{n}: {len(line.expandtabs(8))} columns, of at most {WIDTH}"
                 for path in files(pattern, *folders)
                 for n, line in enumerate(read(path).split("\n"), 1)
                 if len(line.expandtabs(8)) > WIDTH]
        yield from found if len(found) > most else ()


STOPPER = "tests/stop-threads.sh"
SIGNALS = (
    (r"^(?!\s*(#|//|/?\*)).*(\bSIGSTOP\b|\bp?kill(all)?\b.*\s-(s\s*|-signal[ =])?"
     r"(SIG)?(STOP|19)\b)", "stop_all_threads waits until each thread stands still"),
    (r"^\s*cleanup_fn kill ", "kill_process, stop_process and stop_daemon wait for the end"),
)


def signals():
    """Who stops a process, or ends one behind a test, waits until it is so; STOPPER does."""
    for path in files(r".*\.(sh|in|py|[ch])", "bench", "build-aux", "contrib", "doc", "tests"):
        if path not in (STOPPER, "tests/house_test.py"):
            for n, line in enumerate(read(path).split("\n"), 1):
                yield from (f"{path}:{n}: a signal that nobody waits for: {better}"
                            for pattern, better in SIGNALS if re.match(pattern, line))


# Each rule, and what of the tree it needs.
RULES = {
    layers: ("src",),
    mappings: ("src",),
    limits: ("src", "doc/limits.md"),
    walks: ("src", "doc/walks.md"),
    citations: ("src", "doc"),
    pitfalls: ("tests", "man/rtrs-protocol.pod"),
    frwr_rows: ("tests/frwr", "tests/README"),
    log_ids: ("src/common/base/log.h", "man/rtrs-server.pod"),
    words: ("src", "man"),
    circles: ("src",),
    structs: ("src",),
    wide: ("src", "tests"),
    signals: ("tests",),
}


def check(top, names=()):
    """The violations in the tree @top of the rules @names, or of all."""
    os.chdir(top)
    found = []
    for rule, needs in RULES.items():
        if not names or rule.__name__ in names:
            missing = [path for path in needs if not os.path.exists(path)]
            found += [f"{rule.__name__}: {top} has no {path}" for path in missing] or list(rule())
    return found


def main():
    args = [a for a in sys.argv[1:] if a != "--list"]
    top, names = (args or [TOP])[0], args[1:]
    known = [rule.__name__ for rule in RULES]
    if top.startswith("-") or not set(names) <= set(known):
        sys.exit(f"{__doc__}\nThe rules: {', '.join(known)}")
    if not os.path.isdir(top):
        sys.exit(f"house.py: {top}: not a directory")
    found = check(top, names)
    print("".join(f"{line}\n" for line in found), end="")
    if found:
        sys.exit(f"house.py: {len(found)} violations")


if __name__ == "__main__":
    main()
