#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The commands that rtrs-guide(7) prints, in their order, one a line and quoted for a shell:

	guide-commands.py FILE rest ROOT
		of all sections but the others here; /etc, /run and /srv are below ROOT
	guide-commands.py FILE ceph|heads|disk|multipath|qemu ROOT
		of the section that needs a Ceph, two servers before one, two servers before a disk,
		a multipath device, or a running QEMU, likewise
	guide-commands.py FILE walk
		of the walk, as MACHINE, HEADING and command with a tab between: the machine that
		the paragraph in front names, "On the server" or "On the gateway"
	guide-commands.py FILE replaced ROOT
		of the section about a dead server, as MACHINE and command likewise, below ROOT

The walk is the section that begins with two empty machines.  A here document is part of its
command.  A paragraph that is indented by two blanks is a table.
"""
import re
import shlex
import sys

WALK = "FROM TWO MACHINES TO UNITS"
CEPH = "IMAGES OF CEPH"
HEADS = "TWO SERVERS SHARING ONE IMAGE"
DISK = "TWO SERVERS SHARING ONE DISK"
MACHINES = "DISKS OF RUNNING VIRTUAL MACHINES"
REPLACED = "A DEAD SERVER IS REPLACED"
LAYERS = "MULTIPATH, DRBD AND KRBD BELOW ONE SERVER"
PARTS = {WALK: "walk", CEPH: "ceph", HEADS: "heads", DISK: "disk", LAYERS: "multipath",
         MACHINES: "qemu", REPLACED: "replaced"}


def commands(paragraph):
    lines = [line[1:] for line in paragraph.split("\n")]
    while lines:
        line = lines.pop(0)
        while line.endswith("\\"):
            line = line[:-1] + lines.pop(0).lstrip()
        if line.endswith("<<END"):
            while not line.endswith("\nEND"):
                line += "\n" + lines.pop(0)
        yield line


def parts(pod):
    """(section, heading, machine, command) of each command."""
    section = heading = machine = None
    for paragraph in re.split(r"\n\n+", pod.split("=head1 VERSION")[0]):
        if paragraph.startswith("=head"):
            level, heading = paragraph.split(" ", 1)
            section = heading if level == "=head1" else section
            machine = None
        elif paragraph.startswith("  "):
            machine = None			# a table
        elif paragraph.startswith(" "):
            for command in commands(paragraph):
                yield section, heading, machine, command
            machine = None
        else:
            named = re.findall(r"\b[Oo]n the (server|gateway)\b", re.sub(r"\s+", " ", paragraph))
            machine = named[-1] if named else None


def quoted(text):
    return shlex.quote(text).replace("\n", "'$'\\n''")


pod, what = open(sys.argv[1]).read(), sys.argv[2]
found = 0
for section, heading, machine, command in parts(pod):
    if PARTS.get(section, "rest") != what:
        continue
    found += 1
    if what in ("walk", "replaced") and not machine:
        sys.exit("%s: no sentence says on which machine this is typed: %s" % (heading, command))
    if what == "walk":
        print("\t".join((machine, heading, quoted(command))))
        continue
    command = quoted(re.sub(r"(?<![\w/])/(etc|run|srv)\b", sys.argv[3] + r"/\1", command))
    print("\t".join((machine, command)) if what == "replaced" else command)
if not found:
    sys.exit("%s: no commands: %s" % (sys.argv[1], what))
