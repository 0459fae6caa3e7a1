# SPDX-License-Identifier: BSD-3-Clause
"""Mutants that operators make of the functions of a C file (tests/mutants/README has the table).

A function is taken apart into words, without comments, lines of the preprocessor and calls that
log, debug or assert.  An operator is a generator of (first word, last word, new text)."""
import collections
import hashlib
import re

import csource

# @old and @new: the lines that change, as one, which name the mutant in tests/mutants/equivalents
Made = collections.namedtuple('Made', 'path line function operator old new begin end text')

WORD = re.compile(r'''/\*.*?\*/|//[^\n]*|^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*|'''
                  r'''"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\d[\w.]*|\w+|->|\+\+|--|'''
                  r'''(?:<<|>>|[-+*/%&|^=!<>])=|&&|\|\||<<|>>|\S''', re.S | re.M)
NOT_CODE = re.compile(r'/\*|//|\s*#')
SILENT = re.compile(r'(_Static_)?assert|(srv_)?log(_\w+)?|\w+_log|(nbdkit_)?debug|perror|syslog')
NAME = re.compile(r'[A-Za-z_]\w*')
ASSIGN = re.compile(r'([-+*/%&|^]|<<|>>)?=')
NUMBER = re.compile(r'(0x[0-9a-fA-F]+|\d+)[uUlL]*')
HEADS = ('if', 'while', 'for', 'switch')
NO_CALL = HEADS + ('return', 'sizeof', 'else', 'do', 'case', 'default', 'goto', 'free')
OTHER = {'<': '<=', '<=': '<', '>': '>=', '>=': '>', '==': '!=', '!=': '==', '&&': '||', '||': '&&'}


class Words:
    """The words of a function's body."""
    def __init__(self, text, begin, end):
        self.source, self.text, self.at = text, [], []
        skip = 0                        # parentheses of a call that logs
        for m in WORD.finditer(text, text.index('{', begin, end), end):
            word = m[0]
            if NOT_CODE.match(word):
                continue
            if skip or (word == '(' and self.text and SILENT.fullmatch(self.text[-1])):
                skip += {'(': 1, ')': -1}.get(word, 0)
                continue
            self.text.append(word)
            self.at.append(m.span())
        self.text.append('')            # nothing is behind the end of it
        self.at.append((end, end))
        self.pair, self.within, stack = {}, [], []
        for i, word in enumerate(self.text):
            if word in ')]}' and word and stack:
                self.pair[i] = stack[-1]
                self.pair[stack.pop()] = i
            self.within.append(self.text[stack[-1]] if stack else '')
            if word in ('(', '[', '{'):
                stack.append(i)

    def raw(self, first, last):
        return self.source[self.at[first][0]:self.at[last][1]]

    def label(self, i):
        """Does the colon @i end a label?"""
        while i > 0 and self.text[i - 1] not in (';', '{', '}', '?', ':'):
            i -= 1
        return self.text[i - 1] != '?' and (
            self.text[i] in ('case', 'default') or self.text[i + 1] == ':')

    def statements(self):
        """The first words of statements."""
        for i in range(1, len(self.text) - 1):
            before = self.text[i - 1]
            if self.within[i] == '{' and (
                    before in (';', '{', '}', 'else', 'do') or
                    before == ':' and self.label(i - 1) or
                    before == ')' and self.text[self.pair[i - 1] - 1] in HEADS):
                yield i

    def lvalue(self, i):
        """The word behind what may be assigned to or called, or None."""
        while self.text[i] == '*':
            i += 1
        if not NAME.fullmatch(self.text[i]) or self.text[i] in NO_CALL:
            return None
        i += 1
        while self.text[i] in ('.', '->', '['):
            i = self.pair.get(i, i + 1) + 1
        return i

    def end_of(self, i, ends=(';',)):
        """The word of @ends that comes next and is within no parentheses, or None."""
        while i is not None and self.text[i] not in ends:
            i = None if self.text[i] in (')', ']', '}', '') else self.pair.get(i, i) + 1
        return i


def compare(w):
    for i, word in enumerate(w.text):
        if word in OTHER:
            yield i, i, OTHER[word]


def call(w):
    for i in w.statements():
        cast = i + 3 if w.text[i:i + 3] == ['(', 'void', ')'] else i
        j = w.lvalue(cast)
        if j and w.text[j] == '(' and w.text[w.pair[j] + 1] == ';':
            yield i, w.pair[j] + 1, ';'


def constant(w):
    for i, word in enumerate(w.text):
        if word in ('true', 'false') and w.text[i - 2:i + 2] != ['while', '(', word, ')']:
            yield i, i, 'false' if word == 'true' else 'true'
        elif NUMBER.fullmatch(word) and w.text[i - 1] != '[' and w.text[i - 2:i] != ['while', '(']:
            yield i, i, f'({word} + 1)'
        elif NUMBER.fullmatch(word) and w.text[i - 1] == '[' and not (
                NAME.fullmatch(w.text[i - 3]) or w.text[i - 3] == '*'):     # no array is declared
            yield i, i, f'({word} + 1)'


def error(w):
    for i, word in enumerate(w.text):
        if word == 'return' and re.fullmatch(r'-E[A-Z0-9]+;', ''.join(w.text[i + 1:i + 4])) and \
                i + 5 < len(w.text) - 1:                # a function does not end without a value
            yield i, i + 3, ';'


def negate(w):
    for i, word in enumerate(w.text):
        if word in ('if', 'while') and w.text[i + 1] == '(':
            condition = w.text[i + 2:w.pair[i + 1]]
            if len(condition) == 1 and not NAME.fullmatch(condition[0]) or condition == ['true']:
                continue
            plain = not any(c in ('&&', '||', '?') for c in condition)
            if not (plain and any(c in ('==', '!=') for c in condition)):       # compare does it
                yield i + 1, w.pair[i + 1], '(!' + w.raw(i + 1, w.pair[i + 1]) + ')'


def swap(w):
    for i, word in enumerate(w.text):
        colon = w.end_of(i + 1, (':',)) if word == '?' else None
        if colon and '?' not in w.text[i + 1:colon]:
            end = w.end_of(colon + 1, (';', ',', ':', ')', ']', '}'))
            if end and colon > i + 1:
                yield i + 1, end - 1, f'({w.raw(colon + 1, end - 1)}) : ({w.raw(i + 1, colon - 1)})'


def assign(w):
    for i in w.statements():
        j = i + 1 if w.text[i] in ('++', '--') else w.lvalue(i)
        if j and (j == i + 1 and w.text[i] in ('++', '--') or ASSIGN.fullmatch(w.text[j]) or
                  w.text[j] in ('++', '--')):
            end = w.end_of(j)
            if end:
                yield i, end, ';'


OPERATORS = (compare, call, constant, error, negate, swap, assign)


def squeeze(text):
    return ' '.join(text.split())


def line_starts(text):
    """Where each line begins, and one more."""
    return [0] + [m.end() for m in re.finditer('\n|$', text)]


def made(path, text, only=None):
    """Those of the file @path with @text, in its order; of the functions @only."""
    starts, found = line_starts(text), []
    for d in csource.definitions(text.split('\n')):
        begin, end = starts[d.first], starts[d.last + 1]
        if d.kind != 'function' or only is not None and d.name not in only or \
                '{' not in text[begin:end]:
            continue
        words = Words(text, begin, end)
        for operator in OPERATORS:
            for first, last, new in operator(words):
                a, b = words.at[first][0], words.at[last][1]
                left, right = text.rfind('\n', 0, a) + 1, text.find('\n', b)
                # Lines below stay where they were.
                new += '\n' * (text.count('\n', a, b) - new.count('\n'))
                found.append(Made(path, text.count('\n', 0, a) + 1, d.name, operator.__name__,
                                  squeeze(text[left:right]),
                                  squeeze(text[left:a] + new + text[b:right]), a, b, new))
    return sorted(found, key=lambda m: (m.begin, m.operator))


def sample(mutants, seed):
    """All of them in an order that @seed gives, and that a change elsewhere in the code keeps."""
    def key(pair):
        m, n = pair
        return hashlib.sha256(f'{seed} {m[2:6]} {n}'.encode()).digest()
    count, pairs = collections.Counter(), []
    for m in mutants:
        count[m[2:6]] += 1
        pairs.append((m, count[m[2:6]]))
    return [m for m, _ in sorted(pairs, key=key)]
