# SPDX-License-Identifier: BSD-3-Clause
"""NEWS names each option whose default is another one than in an earlier version.

	defaults.py BEFORE NOW NEWS-OF-BEFORE NEWS PROGRAM...

BEFORE and NOW are build directories.  The defaults are those of --help: the last text in brackets
of an option, "(default 128)" or "(128)".  An entry of NEWS that the NEWS of before has not must say
NAME=VALUE, VALUE being the first word of the default of now, or have both and the word default.
Prints how many options were compared, and the changes.  Status 1: NEWS lacks one.
"""
import itertools
import re
import subprocess
import sys

# The directory of this default is one of configure.
LEFT_OUT = {'config'}


def blocks(text):
    """Yield the names with their arguments, and the words, of each option of the help @text."""
    names, words = [], ''
    for line in text.splitlines():
        begins = (re.match(r' {0,6}((?:-\w, )?--[a-z].*)', line) or
                  re.match(r'(\[?[a-z-]+\]?=.*)', line))
        if not begins and names and line.startswith(' ' * 12):
            words += ' ' + line.strip()
            continue
        yield names, words
        names, words = [], ''
        rest = begins[1].split() if begins else []
        while rest and (rest[0].startswith('-') or not names):
            found = re.match(r'\[?(?:--)?([a-z-]+)\]?\[?=?([^]]*)', rest.pop(0))
            if not found[1].startswith('-'):
                names.append((found[1], found[2]))
        words = ' '.join(rest)
    yield names, words


def is_value(value, arg):
    """Whether @value, of several options in one line, may be that of the one with @arg."""
    return value in arg.split('|') or (re.fullmatch(r'\d+\w*', value) and '|' not in arg)


def defaults(program):
    """The defaults in the help of @program.  Some older lines have several options."""
    found = {}
    text = subprocess.run([program, '--help'], check=True, stdout=subprocess.PIPE, text=True).stdout
    for names, words in blocks(text):
        brackets = re.search(r'\(default ([^()]+)\)', words) or re.search(r'\(([^()]+)\)$', words)
        if not names or not brackets:
            continue
        if len(names) == 1:
            # A build without the option has no other default.
            found[names[0][0]] = brackets[1].removesuffix(', if built with it')
            continue
        values = brackets[1].split(', ')
        as_many = len(names) == len(values)
        pairs = zip(names, values) if as_many else itertools.product(names, values)
        found.update((name, value) for (name, arg), value in pairs if is_value(value, arg))
    return found


def entries(path):
    """The entries of a NEWS, each with its spaces as one."""
    with open(path, encoding='utf-8') as file:
        return {' '.join(entry.split()) for entry in re.split(r'\n(?=- )|\n\n', file.read())}


def has(entry, word):
    return re.search(r'(?<![\w-])%s(?![\w-])' % re.escape(word), entry)


def names_default(entry, name, value):
    return has(entry, '%s=%s' % (name, value)) or (
        has(entry, name) and has(entry, value) and re.search(r'\bdefaults?\b', entry))


def main(before, now, news_before, news, *programs):
    new = entries(news) - entries(news_before)
    compared = missing = 0
    for program in programs:
        old, current = (defaults('%s/%s' % (build, program)) for build in (before, now))
        for name in sorted((old.keys() & current.keys()) - LEFT_OUT):
            compared += 1
            if old[name] == current[name]:
                continue
            value = re.match(r'[^\s;,]+', current[name])[0]
            named = any(names_default(entry, name, value) for entry in new)
            missing += not named
            print('%s, %s: the default was %s, and is %s: %s' % (
                program, name, old[name], current[name], 'in NEWS' if named else 'not in NEWS'))
    print('defaults compared: %d' % compared)
    return 1 if missing else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
