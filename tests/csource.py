# SPDX-License-Identifier: BSD-3-Clause
"""Where the functions, macros, tables and structs of a C file begin and end.  The code is in kernel
style: a definition begins in the first column, and so does the brace that ends one of several
lines."""
import collections
import re

# @kind: function, macro, type or table; @first and @last: lines, from 0
Definition = collections.namedtuple('Definition', 'name kind static first last')

QUOTED = re.compile(r'''"(\\.|[^"\\])*"|'(\\.|[^'\\])*'|/\*.*?\*/|//.*''')
TAGGED = re.compile(r'\b(?:struct|union|enum)\s+\w+\s*$')
VARIABLE = re.compile(r'(\w+)\s*(\[[^\]]*\]\s*)*$')


def bare(line):
    """@line without strings, characters and comments that end in it."""
    return QUOTED.sub(lambda m: '""' if m[0][0] == '"' else ' ', line)


def callee(head):
    """The name before the last parenthesis that is within no other, or None."""
    depth, name = 0, None
    for m in re.finditer(r'(\w+)\s*\(|[()]', head):
        if m[1] and depth == 0:
            name = m[1]
        depth += -1 if m[0] == ')' else 1
    return name


def head_of(text):
    return re.split(r'[{;]|(?<![=!<>])=(?!=)', text, maxsplit=1)[0]


def name_of(text):
    """(name, kind) of the definition @text; None for a declaration."""
    head = head_of(text)
    body = text[len(head):len(head) + 1] == '{'
    tag = TAGGED.search(head)
    if tag and body:
        return ' '.join(tag[0].split()), 'type'
    name = callee(head)
    if name:
        return (name, 'function') if body else None
    variable = VARIABLE.search(head)
    return (variable[1], 'table') if variable else None


def statement(lines, first):
    """(text, last): what begins in line @first, up to its semicolon or last brace."""
    text, depth = '', 0
    for last in range(first, len(lines)):
        line = bare(lines[last])
        text += line + '\n'
        depth += line.count('{') - line.count('}')
        if lines[last].startswith('}') or depth <= 0 and line.rstrip().endswith((';', '}')):
            return text, last
    return text, len(lines) - 1


def definitions(lines):
    """Those of a file, in its order."""
    i, comment = 0, False
    while i < len(lines):
        first, line = i, lines[i]
        i += 1
        if comment or line.startswith('/*'):
            comment = '*/' not in line
        elif macro := re.match(r'#\s*define\s+(\w+)', line):
            while lines[i - 1].endswith('\\') and i < len(lines):
                i += 1
            yield Definition(macro[1], 'macro', False, first, i - 1)
        elif re.match(r'\w', line):
            text, last = statement(lines, first)
            i = last + 1
            if found := name_of(text):
                yield Definition(*found, bool(re.search(r'\bstatic\b', head_of(text))), first, last)
