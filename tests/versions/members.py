# SPDX-License-Identifier: BSD-3-Clause
# members.py BEFORE NOW: each member of the JSON answer in the file BEFORE is in that of NOW, with
# a value of the same type.  Elements of a list are taken together, and so are the members of an
# object that is a map of names.
import json
import sys


def types(value, where="", into=None):
    into = {} if into is None else into
    into.setdefault(where, set()).add("number" if isinstance(value, (int, float)) and
                                      not isinstance(value, bool) else type(value).__name__)
    if isinstance(value, dict):
        for name, member in value.items():
            types(member, where + "." + name, into)
    elif isinstance(value, list):
        for member in value:
            types(member, where + "[]", into)
    return into


before, now = (types(json.load(open(name))) for name in sys.argv[1:3])
assert len(before) > 2, before
wrong = ["%s: was %s, is %s" % (where, sorted(kinds), sorted(now.get(where, {"not there"})))
         for where, kinds in before.items() if not kinds <= now.get(where, set())]
print("%d members were compared" % len(before))
sys.exit("\n".join(wrong) or 0)
