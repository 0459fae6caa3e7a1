#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""house.py finds each kind of violation in a tree that has one, and nothing in one that has none.

A table for each rule: a tree in order, and rows of (file, change, violations).  A change is a text
that is appended, "=TEXT" in the place of the file, (REGEX, TEXT) as of sed, None: the file is gone,
or ">NAME": it has this name.  @violations is a part of each line that house.py prints then; of
several lines, a tuple.  None: nothing is wrong with it.
"""
import os
import re
import shutil
import sys
import tempfile

import house


def many(form, *numbers):
    return "".join(form % n for n in numbers)


LAYERS = {
    "src/common/base/wire-int.h": "#include <stdint.h>\n",
    "src/common/base/loop-impl.h": '#include "wire-int.h"\n',
    "src/common/fabric/fabric.h": "#include <infiniband/verbs.h>\n",
    "src/common/fabric/tcp/tcp-key.h": '#include "fabric.h"\n',
    "src/common/fabric/verbs/verbs-cm.c": '#include <rdma/rdma_cma.h>\n#include "fabric.h"\n',
    "src/common/fabric/verbs/verbs-priv.h": '#include "fabric.h"\n',
    "src/common/rtrs/rtrs-msg.h": '#include "wire-int.h"\n',
    "src/common/rnbd/rnbd-msg.h": '#include <string.h>\n#include <zlib.h>\n#include "wire-int.h"\n',
    "src/frwr/frwr.h": '#include "fabric.h"\n',
    "src/rtrs-client/io/clt-io.h": "#include <pthread.h>\n",
    "src/rtrs-client/path/clt-path.h": '#include "clt-io.h"\n',
    "src/rtrs-client/sess/clt-sess.h": '#include "clt-path.h"\n',
    "src/rtrs-client/dev/dev.h": '#include "clt-sess.h"\n#include "rnbd-msg.h"\n',
    "src/rtrs-client/dev/dev-priv.h": '#include "dev.h"\n',
    "src/rtrs-client/loop/clt-loop.h": '#include "clt-io.h"\n',
    "src/rtrs-client/ctl/clt-ctl.h": '#include <jansson.h>\n#include "dev.h"\n',
    "src/rtrs-client/start/clt-start.h": '#include "clt-ctl.h"\n',
    "src/nbdkit-rtrs-plugin/plugin.c":
        '#include <nbdkit-plugin.h>\n#include "config.h"\n#include "frwr.h"\n',
    "src/common/reactor/reactor.c": '#include "reactor-ring.h"\n',
    "src/common/reactor/reactor-ring.h": '#include <liburing.h>\n#include "loop-impl.h"\n',
    "src/store/file/store-file-io.h": '#include "reactor-ring.h"\n#include "rnbd-msg.h"\n',
    "src/rtrs-server/srv-fsm.h": '#include "rtrs-msg.h"\n',
    "src/rtrs-server/rtrs/srv-path.h": '#include "rtrs-msg.h"\n',
    "src/rtrs-server/rnbd/srv-open.h": '#include "srv-path.h"\n#include "rnbd-msg.h"\n',
}
# Includes that a file may not have, and why.
INCLUDES = """
common/base/wire-int.h "rtrs-msg.h" src/common/base may not use src/common/rtrs
common/base/wire-int.h <infiniband/verbs.h> is not for this file
common/rtrs/rtrs-msg.h "rnbd-msg.h" src/common/rtrs may not use src/common/rnbd
common/rtrs/rtrs-msg.h <time.h> <time.h> in pure code
common/rnbd/rnbd-msg.h <stdio.h> in pure code
common/fabric/fabric.h "tcp-key.h" src/common/fabric may not use src/common/fabric/tcp
common/fabric/fabric.h <rdma/rdma_cma.h> is not for this file
common/fabric/verbs/verbs-cm.c "tcp-key.h" may not use src/common/fabric/tcp
rtrs-client/io/clt-io.h "srv-fsm.h" may not use src/rtrs-server
rtrs-client/io/clt-io.h "clt-path.h" src/rtrs-client/io may not use src/rtrs-client/path
rtrs-client/dev/dev.h "clt-loop.h" may not use src/rtrs-client/loop
rtrs-client/ctl/clt-ctl.h "clt-start.h" may not use src/rtrs-client/start
rtrs-client/start/clt-start.h <jansson.h> is not for this file
nbdkit-rtrs-plugin/plugin.c "dev-priv.h" is private to src/rtrs-client/dev
nbdkit-rtrs-plugin/plugin.c <liburing.h> is not for this file
common/reactor/reactor.c "verbs-priv.h" is private to src/common/fabric/verbs
common/reactor/reactor.c "nowhere.h" is not below src/
common/reactor/reactor.c <wire-int.h> include it in quotes
common/reactor/reactor.c MACRO cannot be read
rtrs-server/srv-fsm.h "clt-io.h" may not use src/rtrs-client/io
rtrs-server/srv-fsm.h "loop-impl.h" is not for this file
rtrs-server/srv-fsm.h <liburing.h> is not for this file|in pure code
rtrs-server/rtrs/srv-path.h "srv-open.h" src/rtrs-server/rtrs may not use src/rtrs-server/rnbd
store/file/store-file-io.h "srv-fsm.h" src/store/file may not use src/rtrs-server
"""
LAYER_ROWS = [(f"src/{path}", f"#include {header}\n", tuple(why.split("|")))
              for path, header, why in (row.split(" ", 2) for row in INCLUDES.strip().split("\n"))
              ] + [
    ("src/nbdkit-rtrs-plugin/plugin.c", "json_string(name)\n", "goes through ctl_json_text()"),
    ("src/nbdkit-rtrs-plugin/plugin.c", 'json_pack("{s:i,s:s}", "n", 1, "name", name)\n',
     "plugin.c:4: text for JSON goes through ctl_json_text()"),
    ("src/extra/x.c", "\n", "src/extra has no rule: add it"),
    ("src/frwr/clt-start.h", "\n",
     "rtrs-client/start/clt-start.h: has the same name as one in src/frwr"),
]

MAPPINGS = {
    "src/a.c": "\tp = mmap(NULL, n, PROT_READ,\n\t\t MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n",
}
MAPPING_ROWS = [
    ("src/a.c", "\tp = mmap(NULL, n, PROT_READ,\n\t\t MAP_PRIVATE, fd, 0);\n",
     "src/a.c:3: mmap() of a file"),
    ("src/a.c", ("MAP_PRIVATE . MAP_ANONYMOUS", "MAP_SHARED"), "src/a.c:1: mmap() of a file"),
]

LIMITS = {
    "src/a/a.h": """#define A_MAX (64u << 20)\t\t/* bytes */
#define B_GUESTS 256u
#define B_NET_GUESTS 0x40u
#define C_MS 5000
#define D_TIMEOUT_S 30u
#define E_MAX sizeof(struct e)
#define F_TEXT_MAX 24
#define G_DEPTH 7
""",
    "src/a/a.c": '{ .name = "memory" }\n',
    "tests/a.c": "Test(a, at_the_limit)\n",
    "doc/limits.md": """| limit | value | where | beyond | tests |
| --- | --- | --- | --- | --- |
| `A_MAX` | 64 MiB of data | src/a/a.h | an error | tests/a.c at_the_limit |
| `B_GUESTS`, `B_NET_GUESTS` | 256; 64 of a host | src/a/a.h | end | tests/a.c; tests/a.c Test, a |
| `C_MS` | 5 s | src/a/a.h | it ends | none: no such device |
| `D_TIMEOUT_S` | 30 s | src/a/a.h | it ends | none: no such device |
| `E_MAX` | as long as struct e | src/a/a.h | an error | none: no such device |
| `--memory` | 1 MiB | src/a/a.c | waits | none: no such device |
No limit: `F_TEXT_MAX`.
""",
}
PAGE = "doc/limits.md"
LIMIT_ROWS = [
    (PAGE, "| `G_DEPTH` | 7 | src/a/a.h | no | none: no device |\n", None),
    (PAGE, "| `G_DEPTH` | 8 | src/a/a.h | no | none: no device |\n",
     "doc/limits.md:10: G_DEPTH is 7, not 8"),
    (PAGE, "| `G_DEPTH` | 7 KiB | src/a/a.h | no | none: no device |\n", "G_DEPTH is 7, not 7 KiB"),
    (PAGE, ("5 s", "6 s"), "C_MS is 5000, not 6 s"),
    (PAGE, ("30 s", "30000"), "D_TIMEOUT_S is 30, not 30000"),
    (PAGE, ("256; 64", "256; 65"), "B_NET_GUESTS is 64, not 65"),
    (PAGE, ("256; 64", "256"), ("a value for each name", "B_NET_GUESTS is 64, not ")),
    (PAGE, ("64 MiB", "many"), "A_MAX is 67108864, not many of data"),
    (PAGE, ("(`E_MAX`.*) src/a/a.h", r"\1 src/a/a.c"), "src/a/a.c has no E_MAX"),
    (PAGE, ("(`E_MAX`.*) src/a/a.h", r"\1 src/a/b.h"),
     ("src/a/b.h does not exist", "src/a/b.h has no E_MAX")),
    (PAGE, ("--memory", "--depth"), "src/a/a.c has no --depth"),
    (PAGE, ("an error.*at_the_limit", "no | tests/b.c at_the_limit"), "there is no such test"),
    (PAGE, ("tests/a.c at_the_limit", "at_the_limit"), "there is no such test"),
    (PAGE, ("at_the_limit", "the_limit"), "tests/a.c has no the_limit"),
    (PAGE, 2 * "| `G_DEPTH` | 7 | src/a/a.h | no | none: no device |\n",
     "doc/limits.md:11: G_DEPTH of src/a/a.h has another row"),
    (PAGE, ("waits", ""), "it does not say what is beyond"),
    (PAGE, (r"waits \| none: no such device", "waits | none"), "it does not say why no test"),
    (PAGE, (r"waits \| none: no such device", "waits | none:"), "it does not say why no test"),
    (PAGE, (r"waits \| .*", "waits |"), "a row has five cells"),
    (PAGE, "`H_MAX` is gone\n", "there is no H_MAX in src/"),
    (PAGE, "=none\n", ("has no rows", *6 * ("is not in doc/limits.md",), "F_TEXT_MAX is not")),
] + [("src/a/b.h", f"#define {name} 5\n", f"src/a/b.h:1: {name} is not in doc/limits.md")
     for name in "NEW_MAX MAX_NEW NEW_IOS NEW_MEMORY NEW_GUESTS NEW_MS NEW_TIMEOUT".split()]

WALKS = {
    "src/a.c": "int declared(int a);\n" + many(
        "static struct s *f%d(int a,\n\tint b)\n{\n\tcalled();\n}\n", *range(30)),
    "doc/walks.md": many("## %s\n\n", *house.WALKS) + many("`src/a.c:f%d`\n", *range(30)),
}
WALK_ROWS = [("doc/walks.md", f"`{name}`\n", f"doc/walks.md: {name}: ") for name in (
    "src/a.c:f31", "src/a.c:declared", "src/a.c:called", "src/b.c:f1", "src/b.c")] + [
    ("doc/walks.md", "`src/a.c`\n", None),
    ("doc/walks.md", ("## A lost path", ""), "no '## A lost path'"),
    ("doc/walks.md", ("`src/a.c:f29`", ""), "the walks are not there"),
]

CITATIONS = {
    "doc/decisions.md":
        "# Decisions\n\n## D1 One\n\n## D2 Two\n\nSee src/a.c and doc/traps.md 2.\n",
    "doc/traps.md": "# Traps\n\n## 1 One\n\n## 2 Two tests/p02.c\n",
    "doc/verbs.md": "# Verbs\n\n## Q1 One\n\n## Q2 Two\n\n## I1 One\n",
    "doc/protocol.md": "# Wire\n\n## 1 One\n\n### 1.1 First\n\n## Appendix A Bytes\n",
    "doc/speed.md": "# Speed\n",
    "README.md": "doc/decisions.md has them, [speed](doc/speed.md)\n",
    "HACKING": "see doc/traps.md and README.md\n",
    "tests/guest/cache/kernel.c": "cited in design.md D9\n",
    "src/a.c": """/* One doc/decisions.md D1.  Two doc/decisions.md D1 and D2, doc/verbs.md Q1,
 * Q2, I1.  At the end of a line (Q2) doc/protocol.md
 * 1.1, and doc/protocol.md 1 to 1.1; doc/protocol.md appendix A, doc/traps.md 1, 2,
 * doc/traps.md 2.  No citations: 0xD9, QD9, D9x, D9.5, RFC 5040, rtrs-pri.h, README.md */
""",
    "tests/a.sh": "# doc/traps.md 2, doc/speed.md, $top/README.md\n",
    "tests/a.py": "args.md\n",
    "tests/p02.c": "Test(a, p02_x)\n",
    "man/a.pod": "doc/decisions.md D2\n",
}
# File, line of the violation, appended text.
CITED = r"""
src/a.c 5 /* design.md D1 */
src/a.c 6 /* as in\n * (frwr.md Q1) */
tests/a.sh 2 # style.md
HACKING 2 doc/none.md
doc/speed.md 2 anchors.md
src/a.c 5 /* ../shared/decisions.md D1 */
src/a.c 5 /* doc/decisions.md D3 */
src/a.c 5 /* doc/decisions.md\n * D2 and D1 and\n * D0 */
src/a.c 5 /* doc/traps.md 1,\n * 3 */
src/a.c 5 /* doc/protocol.md 1.2 */
src/a.c 5 /* doc/protocol.md 1 to 2 */
src/a.c 5 /* doc/protocol.md appendix B */
src/a.c 5 /* held (D3) */
src/a.c 5 /* a quirk (Q3) */
tests/a.sh 2 # doc/traps.md\n# 3
man/a.pod 2 doc/decisions.md D3
src/a.c 5 /* doc/traps.md */
src/a.c 5 /* pitfalls\n * 2 */
HACKING 2 Pitfall 2
doc/traps.md 6 ## 4 Four
doc/decisions.md 8 ## D2 Two
doc/verbs.md 8 ## I3 Three
doc/protocol.md 8 ### 1.1 First
doc/speed.md 2 src/b.c
doc/traps.md 6 tests/a.sh
doc/traps.md 8 \n## 3 Three\ntests/p02.c
"""
CITATION_ROWS = [(path, text.replace(r"\n", "\n") + "\n", f"{path}:{line}: ")
                 for path, line, text in (row.split(" ", 2) for row in CITED.strip().split("\n"))
                 ] + [
    ("doc/verbs.md", ("Q|I", "X"), ("doc/verbs.md:0: has no numbers", *4 * ("src/a.c:1: ",))),
    ("doc/traps.md", None, ("doc/traps.md:0: is missing", *5 * ("doc/traps.md is no page",))),
]

PITFALLS = {
    "tests/unit/test-a.c": many("Test(a, p%02d_x)\n", *range(1, 8)),
    "tests/unit/test-b.c": "Test(a_b, p08_p09_p10_x, .signal = SIGABRT)\n",
    "tests/sim/test-sim-a.c": many("SIM_TEST(p%02d_x)\n", *range(11, 21)),
    "tests/hostile/cases-a.c": many('\t{ "p%02d x", READ },\n', *range(21, 26)),
    "tests/fabric/cf-a.c": "FAB_TEST(promise_e_p26_x)\n",
    "tests/guest/test-p27-p28-x.sh": "",
    "man/rtrs-protocol.pod": many("=item p%02d\n\nno hardware\n\n", *range(29, 42)),
}
PITFALL_ROWS = [
    ("tests/unit/test-a.c", (".*p07.*", ""), "p07: no test carries this number"),
    ("tests/unit/test-a.c", (".*p07.*", r"/* \g<0> */"), "p07"),
    ("tests/unit/test-a.c", ("p07", "x_p07"), "p07"),
    ("tests/unit/test-a.c", ("p07", "p07x"), "p07"),
    ("tests/unit/test-b.c", ("p08_p09_p10", "p10_p08_x"), "p09"),
    ("tests/sim/test-sim-a.c", (".*p14.*", r"// \g<0>"), "p14"),
    ("tests/sim/test-sim-a.c", (".*p14.*", '\tCHECK(p14_x);'), "p14"),
    ("tests/hostile/cases-a.c", ("p22 x", "x p22"), "p22"),
    ("tests/fabric/cf-a.c", ("FAB", "/* FAB"), "p26"),
    ("man/rtrs-protocol.pod", ("^=item p29", "see p29"), "p29"),
    ("tests/guest/test-p27-p28-x.sh", ">tests/guest/p27-p28-x.sh", ("p27", "p28")),
]

FRWR = {
    "tests/frwr/test-a.c": "".join(f"Test(frwr_a, t{n:02d}_r{n:02d}_x)\n" for n in range(1, 11)),
    "tests/frwr/test-b.c": many("Test(frwr_b, r%s_x, .signal = SIGABRT)\n", "08a", *range(11, 21)),
    "tests/frwr/programs": "t11-t12-t13-x  base clock\nt14-t15-x  base clock\n",
    "tests/frwr/device-a.c": many("FAB_TEST(t%d_x)\n", 16, 17, 19, *range(21, 27)),
    "tests/fabric/cf-a.c": many("FAB_TEST_THREADS(promise_m_t%d_x)\n", 18, 20),
    "tests/guest/test-t27-x.sh": "",
    "tests/guest/manual-t28-x.sh": "",
    "tests/README": many("\tr%d not here\n", *range(21, 44)),
}
FRWR_ROWS = [
    ("tests/frwr/test-a.c", ("_r07_", "_"), "r07: no test carries this number, and tests/README"),
    ("tests/frwr/test-a.c", ("t07_r07", "r07"), "t07"),
    ("tests/frwr/test-a.c", ("t07_r07", "t07_x_r07"), "r07"),
    ("tests/frwr/test-b.c", (".*r13.*", r"/* \g<0> */"), "r13"),
    ("tests/frwr/test-b.c", ("r13", "r13x"), "r13"),
    ("tests/frwr/test-b.c", ("r08a", "r08"), "r08a"),
    ("tests/frwr/programs", ("t12-", ""), "t12"),
    ("tests/frwr/device-a.c", (".*t17.*", r"// \g<0>"), "t17"),
    ("tests/fabric/cf-a.c", (r"FAB_TEST_THREADS\(promise_m_t18", r"/* \g<0>"), "t18"),
    ("tests/guest/manual-t28-x.sh", ">tests/guest/manual-t28-x.txt", "t28"),
    ("tests/README", ("^\tr30", "see r30"), "r30"),
    ("tests/README", ("^\tr30 .*", "\tr30"), "r30"),
    ("tests/frwr/programs", "=\n", ("t11", "t12", "t13", "t14", "t15")),
]

ID, OTHER = 32 * "a", 32 * "b"
LOG_IDS = {
    "src/common/base/log.h": f'\tROW(DOWN, "{ID}", \\\n\t    "a path is down") \\\n',
    "src/a.c": "log_warn(LOG_FIELDS(DOWN), x);\n",
    "man/rtrs-server.pod": f"=item DOWN C<{ID}>\n\nA path\nis down (warning).  Look.\n\n=back\n",
}
TABLE, MANUAL = "src/common/base/log.h", "man/rtrs-server.pod"
LOG_ID_ROWS = [
    (TABLE, (ID, ID[1:] + "g"), ("is no number of 32 digits", "DOWN: C<")),
    (TABLE, f'\tROW(UP, "{ID}", "up")\n',
     ("UP has the number of DOWN", "UP: nothing in src/ logs it", "UP is not told")),
    (TABLE, "=\n", ("no row was found", "is in no row")),
    ("src/a.c", "=DEV_FIELDS(dev, DOWN)\n", None),
    ("src/a.c", "=LOG_FIELDS(UP)\n", "DOWN: nothing in src/ logs it"),
    (MANUAL, (ID, OTHER), f"DOWN: C<{OTHER}>, and {ID} in"),
    (MANUAL, ("is down", "was down"), 'begins otherwise than "a path is down"'),
    (MANUAL, ("  Look.", ""), "does not say what to do"),
    (MANUAL, ("DOWN", "UP"), ("UP is in no row", "DOWN is not told")),
]

USERS_READ = {
    "README.md": "The log reports it.\n", "SECURITY": "An attacker.\n", "doc/peers.md": "doc\n",
    "doc/promises.md": "doc\n", "man/a.pod": "=head1 NAME\n",
    "src/a.c": "/* A stranger is told. */\nchar *s = \"negotiate\", c = '\"';\n",
}
WORD_ROWS = [
    ("README.md", "A STRANGER reads.\n", 'README.md:2: "STRANGER": write: an unknown client'),
    ("man/a.pod", "=all stays as\nit was\n", 'man/a.pod:1: "stays as it was": write: unchanged'),
    ("SECURITY", "=haggling\n", 'SECURITY:1: "haggling": write: negotiate'),
    ("doc/promises.md", "=The log\ntells the reason.\n", 'doc/promises.md:2: "tells the": write'),
    ("src/a.c", '=int a;\nchar *s = "opened\\n" "anew";\n', 'src/a.c:2: "anew": write: again, new'),
]

CODE = {
    "src/frwr/frwr-a.c": "void frwr_b_x(void);\nvoid frwr_a_x(void) { frwr_b_x(); }\n",
    "src/frwr/frwr-b.c": "struct frwr_b { int n; };\nvoid frwr_b_x(void) {}\n",
    "src/common/rnbd/rnbd.c": "",
    **{f"src/rtrs-server/srv-{n}.c": f"void srv_{n}_x(void) {{}}\n" for n in range(1, 15)},
}
# What an inline function calls is needed, too, ...
ROUND = {
    "src/frwr/frwr-a.c": "void frwr_a_x(void) { frwr_b_y(); }\n",
    "src/frwr/frwr-b.h": "static inline void frwr_b_y(void) { frwr_priv(); }\n",
    "src/frwr/frwr-c.c": "void frwr_c_x(void) { frwr_a_x(); }\nvoid frwr_twice(void) {}\n",
    "src/frwr/frwr-d.c": "void frwr_twice(void) {}\n",
    "src/frwr/frwr-c-priv.h": "static inline void frwr_priv(void) { frwr_c_x(); }\n",
}
# ... but a comment, a string, a prototype, a field, a tag and what two files define are no calls.
ORDER = ("/* Calls frwr_c_x(). */\nint frwr_c_x(int a,\n\t     int b);\n"
         "static inline void frwr_priv(void) { struct frwr_c_x a = { .frwr_c_x = 1 };\n"
         "  frwr_twice(\"frwr_c_x\", a.frwr_c_x); }\n")
CIRCLE_ROWS = [
    ("src/frwr/frwr-c.c", "".join(f"void frwr_a_{n}(void) {{}}\n" for n in range(5)),
     5 * ("frwr: away: frwr-c: frwr_a_",)),
    ("src/frwr/frwr-c.c", "void rnbd_x(void) {}\n",
     ("frwr: away: frwr-c: rnbd_x", "frwr: astray: frwr-c: rnbd_x")),
    ("src/frwr/frwr.h", "".join(f"struct frwr_{s} {{\n\tbool a, b, c;\n\tatomic_bool d;\n}};\n"
                                for s in "path con sess req chunks".split()),
     (*19 * ("frwr: bools: frwr_",), "frwr: bools: frwr_chunks.d")),
    # Fourteen files, each of which calls the next one.
    ({f"src/rtrs-server/srv-{n}.c": f"void srv_{n}_x(void) {{ srv_{n % 14 + 1}_x(); }}\n"
      for n in range(1, 15)}, "",
     "server: circle: srv-1 srv-10 srv-11 srv-12 srv-13 srv-14 srv-2 srv-3 srv-4 srv-5 srv-6 "
     "srv-7 srv-8 srv-9"),
    # Forty calls in each direction between two files.
    ({f"src/rtrs-server/srv-{a}.c":
      "".join(f"void srv_{a}_{n}(void) {{ srv_{b}_{n}(); }}\n" for n in range(40))
      for a, b in ("ab", "ba")}, "", (*39 * ("server: back: srv-b > srv-a: srv_a_",),
                                      "server: back: srv-b > srv-a: srv_a_1")),
    (ROUND, "", "frwr: circle: frwr-a frwr-b frwr-c frwr-c-priv"),
    ({**ROUND, "src/frwr/frwr-c-priv.h": ORDER}, "", None),
]
STRUCT_ROWS = [
    # Of any struct, whatever its name: four are allowed, five are not.
    ("src/frwr/x.h", "struct frwr_x {\n\tbool a, b, c, d;\n};\n", None),
    ("src/frwr/x.h", "struct frwr_x {\n\tbool a, b, c, d;\n\tbool e;\n};\n",
     "src/frwr/x.h: struct frwr_x has 5 bools, of at most 4"),
    ("src/rtrs-server/y.h", "struct frwr_b { int n; };\n", "struct frwr_b is defined twice: src/"),
]

SHELL = {"tests/stop-threads.sh": "kill -STOP 1\n", "src/a.c": "", "tests/a.c": "",
         "tests/guest/a.sh": "# kill -STOP\nstop_all_threads 1\nkill -CONT 1\n"}
SIGNAL_ROWS = [("tests/guest/a.sh", f"={line}\n", "tests/guest/a.sh:1: a signal that nobody waits")
               for line in ("kill -STOP 1", "kill -s STOP 1", "pkill -SIGSTOP 1",
                            "kill --signal=STOP 1", "os.kill(1, signal.SIGSTOP)",
                            "\tcleanup_fn kill 1")] + [
    ("tests/guest/a.sh", "=cleanup_fn kill_process 1\n", None)]
WIDE_ROWS = [
    # Tabs are as wide as they look.
    ("tests/a.c", "\t\t" + 84 * "0" + "\n", None),
    ("tests/a.c", "\n\t\t" + 85 * "0" + "\n", "tests/a.c:2: 101 columns, of at most 100"),
    ("tests/a.py", 101 * "0" + "\n", "tests/a.py:1: 101 columns"),
    ("tests/guest/a.sh", house.WIDE[-1][-1] * (101 * "0" + "\n"), None),
    ("tests/guest/a.sh", (house.WIDE[-1][-1] + 1) * (101 * "0" + "\n"),
     (house.WIDE[-1][-1] + 1) * ("tests/guest/a.sh:",)),
]

TREES = {
    "layers": (LAYERS, LAYER_ROWS), "limits": (LIMITS, LIMIT_ROWS), "walks": (WALKS, WALK_ROWS),
    "citations": (CITATIONS, CITATION_ROWS), "pitfalls": (PITFALLS, PITFALL_ROWS),
    "frwr_rows": (FRWR, FRWR_ROWS), "log_ids": (LOG_IDS, LOG_ID_ROWS),
    "words": (USERS_READ, WORD_ROWS), "circles": (CODE, CIRCLE_ROWS),
    "mappings": (MAPPINGS, MAPPING_ROWS),
    "structs": (CODE, STRUCT_ROWS), "wide": (SHELL, WIDE_ROWS), "signals": (SHELL, SIGNAL_ROWS),
}


def make(tree, content):
    """The tree @tree with @content alone."""
    shutil.rmtree(tree, ignore_errors=True)
    for path, text in content.items():
        os.makedirs(os.path.dirname(os.path.join(tree, path)), exist_ok=True)
        with open(os.path.join(tree, path), "w", encoding="utf-8") as f:
            f.write(text)


def changed(content, path, change):
    """@content with a change; it must be one."""
    if isinstance(path, dict):
        return {**content, **path}
    content = dict(content)
    text = content.get(path, "")
    if change is None:
        del content[path]
    elif isinstance(change, tuple):
        content[path] = re.sub(*change, text, flags=re.M)
        assert content[path] != text, (path, change)
    elif change.startswith(">"):
        content[change[1:]] = content.pop(path)
    else:
        content[path] = change[1:] if change.startswith("=") else text + change
    return content


def main():
    bad, tried = 0, 0
    assert set(TREES) == {rule.__name__ for rule in house.RULES}, "a rule without a test"
    with tempfile.TemporaryDirectory(dir="/tmp") as top:
        tree = os.path.join(top, "tree")
        for rule, (content, rows) in TREES.items():
            for path, change, wanted in [("", "=", None), *rows]:
                make(tree, changed(content, path, change) if path else content)
                found = house.check(tree, [rule])
                wanted = (wanted,) if isinstance(wanted, str) else wanted or ()
                tried += 1
                if len(found) != len(wanted) or not all(any(w in f for f in found) for w in wanted):
                    print(f"{rule}: {path}: {change!r}:\n  expected {wanted}\n  got {found}")
                    bad += 1
            needs = {r.__name__: n for r, n in house.RULES.items()}[rule]
            for path in needs:
                rest = {p: t for p, t in content.items() if not f"{p}/".startswith(f"{path}/")}
                make(tree, rest or {"none": ""})
                if not any(f"has no {path}" in line for line in house.check(tree, [rule])):
                    print(f"{rule}: a tree without {path} is taken")
                    bad += 1
        os.chdir("/")
    print(f"{tried} trees, {bad} wrong")
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
