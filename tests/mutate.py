#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Break the code, and see that the tests notice (tests/mutants/README).

Without an option: the bugs of the lists; all tests of a bug must fail.  With --sample or --diff:
mutants that operators make (mutops.py); one test of the subsystem must fail.  Each is applied to a
copy of the tree, what a test needs is built, and the test runs.  --check says whether the lists
still fit the code.  Exits with 1 when a mutant of a list does not fit or build, a test fails
without a mutant, or fewer are killed than --rate says, or when it cannot begin."""

import argparse
import collections
import contextlib
import ctypes
import fcntl
import filecmp
import functools
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import csource
import mutops

TEST_LIMIT_S = 180      # one test; what hangs by a mutation has noticed it.  With a mutant ...
SLOWER = 10             # ... not above so many times what it took without, which counts as ...
LEAST_S = 2             # ... so much at least
KILL_AFTER_S = 10
BUILD_LIMIT_S = 900
MEMORY = os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') // 4     # of a process of a test
PR_SET_CHILD_SUBREAPER = 36
NOTICED = {'FAIL': '', 'LIMIT': ' (time limit)'}


class ListError(Exception):
    pass


def read(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def files_of(top):
    return {os.path.relpath(os.path.join(d, f), top) for d, _, files in os.walk(top) for f in files}


class Hunk:
    """A place: a file, or what defines @name, in any file below src/ or in those called @base."""
    def __init__(self, path=None, name=None, base=None):
        self.path, self.name, self.base = path, name, base
        self.lines = []                         # of (sign, text)

    def __str__(self):
        return self.path or self.name + (f' of {self.base}' if self.base else '')

    def side(self, signs):
        return [text for sign, text in self.lines if sign in signs]


class Mutant:
    """Of a list: all its tests must fail."""
    every = True

    def __init__(self, name, breaks, where):
        self.name, self.hunks, self.tests = name, [], []
        self.breaks, self.where = breaks, where

    def told(self):
        return f'{self.where}: {self.name} survived: {self.breaks}'

    def applied(self, source):
        return mutated(source, self)


class Operated:
    """Made by an operator: one test of the subsystem must fail."""
    every = False

    def __init__(self, made, tests):
        self.made, self.tests = made, tests
        self.name = f'{made.path}:{made.line}: {made.operator} in {made.function}'

    def told(self):
        return f'{self.name}\n-{self.made.old}\n+{self.made.new}'

    def applied(self, source):
        text = read(os.path.join(source, self.made.path))
        return {self.made.path: text[:self.made.begin] + self.made.text + text[self.made.end:]}


@functools.cache
def index(source):
    """{name: files below src/ that define it}"""
    found = collections.defaultdict(set)
    for path in files_of(os.path.join(source, 'src')):
        path = os.path.join('src', path)
        if path.endswith(('.c', '.h')):
            for d in csource.definitions(read(os.path.join(source, path)).split('\n')):
                found[d.name].add(path)
    return found


# ---- the lists ----

def numbered(path):
    """(place, line) of the file @path, without comments."""
    for number, line in enumerate(read(path).splitlines(), 1):
        if line.strip() and not line.startswith('#'):
            yield f'{os.path.basename(path)}:{number}', line


def tests_of(line):
    """Variables of the environment belong to all tests: "A=1 x y" is "A=1 x" and "A=1 y"."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = []
    variables = [w for w in words if '=' in w]
    return [shlex.join(variables + [w]) for w in words if '=' not in w]


def program_of(test):
    return shlex.split(test)[-1]


def parse(path):
    """The mutants of one file."""
    mutants, mutant = [], None
    for where, line in numbered(path):
        key, _, rest = line.partition(' ')
        name, colon, breaks = (word.strip() for word in rest.partition(':'))
        if key == 'mutant' and colon and breaks and re.fullmatch(r'[a-z0-9-]+', name):
            mutant = Mutant(name, breaks, where)
            mutants.append(mutant)
        elif not mutant or key == 'mutant':
            raise ListError(f'{where}: expected "mutant NAME: WHAT IT BREAKS", got "{line}"')
        elif key == 'file':
            mutant.hunks.append(Hunk(path=rest.strip()))
        elif key == 'in':
            name, _, base = rest.strip().partition(' of ')
            mutant.hunks.append(Hunk(name=name, base=base or None))
        elif key == 'test':
            mutant.tests += tests_of(rest)
        elif line[0] == '\t' and not mutant.hunks:
            mutant.breaks += ' ' + line.strip()
        elif line[0] in '-+ ' and mutant.hunks:
            mutant.hunks[-1].lines.append((line[0], line[1:]))
        else:
            raise ListError(f'{where}: expected mutant, in, file, test, or a line with '
                            f'-, + or a space below a place, got "{line}"')
    return mutants


def places(text, hunk):
    """[(begin, end)] of the old text of @hunk in @text, within what @hunk names.  Code is wrapped
    and indented again more often than it changes, so only words count."""
    words = ' '.join(hunk.side('- ')).split()
    old = re.compile(r'^[ \t]*' + r'\s+'.join(map(re.escape, words)) + r'[ \t]*$', re.M)
    starts, parts = mutops.line_starts(text), [(0, len(text))]
    if hunk.name:
        parts = [(starts[d.first], starts[d.last + 1])
                 for d in csource.definitions(text.split('\n')) if d.name == hunk.name]
    return [m.span() for begin, end in parts if words for m in old.finditer(text, begin, end)]


def mutated(source, mutant):
    """{path: text} with @mutant applied to the tree @source; ListError if it does not fit."""
    texts, changed = {}, set()
    for hunk in mutant.hunks:
        paths = [p for p in ([hunk.path] if hunk.path else index(source).get(hunk.name, []))
                 if hunk.base in (None, os.path.basename(p)) and
                 os.path.isfile(os.path.join(source, p))]
        if not paths:
            raise ListError(f'{mutant.where}: {mutant.name} does not apply: there is no {hunk}')
        for path in set(paths) - set(texts):
            texts[path] = read(os.path.join(source, path))
        at = [(path, *span) for path in paths for span in places(texts[path], hunk)]
        if len(at) != 1:
            first = next((text.strip() for sign, text in hunk.lines if sign in '- '), '')
            raise ListError(f'{mutant.where}: {mutant.name} does not apply: {hunk} has its old '
                            f'text {len(at)} times, expected once: "{first}"')
        path, begin, end = at[0]
        texts[path] = texts[path][:begin] + '\n'.join(hunk.side('+ ')) + texts[path][end:]
        changed.add(path)
    return {path: texts[path] for path in changed}


def test_exists(source, test):
    if test.endswith('.sh'):
        return os.path.isfile(os.path.join(source, test))
    return any(re.search(rf'(^|[\s/]){re.escape(os.path.basename(test))}(\s|$)',
                         read(os.path.join(top, file)))
               for top, _, files in os.walk(os.path.join(source, 'tests'))
               for file in files if file in ('local.mk', 'programs'))


def load(directory, source):
    """All mutants, and what is wrong with the lists."""
    mutants, wrong, names = [], [], set()
    for file in sorted(f for f in os.listdir(directory) if f.endswith('.list')):
        try:
            mutants += parse(os.path.join(directory, file))
        except ListError as error:
            wrong.append(str(error))
    for m in mutants:
        missing = [program_of(t) for t in m.tests if not test_exists(source, program_of(t))]
        try:
            texts = mutated(source, m)
        except ListError as error:
            wrong.append(str(error))
            continue
        wrong += [f'{m.where}: {m.name} {what}' for what, so in (
            ('is there twice', m.name in names),
            ('has no test, or no place', not m.tests or not m.hunks),
            (f'has no such test: {", ".join(missing)}', missing),
            ('changes nothing', any(text == read(os.path.join(source, path))
                                    for path, text in texts.items()))) if so]
        names.add(m.name)
    return mutants, wrong


# ---- what operators make ----

class Operators:
    """The tests of each subsystem, and the mutants that no test can notice."""
    def __init__(self, directory, source):
        self.source, self.rows, self.wrong, folder = source, {}, [], None
        for where, line in numbered(os.path.join(directory, 'subsystems')):
            if not line[0].isspace():
                folder, _, line = line.partition(':')
                self.rows[folder] = []
                if not os.path.isdir(os.path.join(source, 'src', folder)):
                    self.wrong.append(f'{where}: there is no folder src/{folder}')
            for test in tests_of(line):
                self.rows.get(folder, []).append(test)
                if not test_exists(source, program_of(test)):
                    self.wrong.append(f'{where}: there is no test {program_of(test)}')
        entries = []
        for where, line in numbered(os.path.join(directory, 'equivalents')):
            if entry := re.fullmatch(r'(\w+) in (\w+): (.+)', line):
                entries.append((where, [entry[2], entry[1]]))
            elif line[0] in '-+' and entries:
                entries[-1][1].append(mutops.squeeze(line[1:]))
            elif line[0] != '\t':
                self.wrong.append(f'{where}: expected "OPERATOR in FUNCTION: REASON", or a line '
                                  f'with -, + or a tab below it, got "{line}"')
        self.known = {tuple(key) for _, key in entries}
        there = {m[2:6] for m in self.made(only={key[0] for _, key in entries})}
        self.wrong += [f'{where}: {key[1]} in {key[0]} does not make this: {" -> ".join(key[2:])}'
                       for where, key in entries if tuple(key) not in there]

    def made(self, below='', only=None):
        """All, of the files in src/@below; if @only, of these functions."""
        files = {p for name, paths in index(self.source).items() for p in paths
                 if p.startswith(os.path.join('src', below, '')) and (only is None or name in only)}
        return [m for path in sorted(files)
                for m in mutops.made(path, read(os.path.join(self.source, path)), only)]

    def chosen(self, args):
        """Those that the arguments ask for and whose survival needs a reason."""
        if args.diff:
            lines = changed_lines(args.diff)
            mutants = [m for m in self.made() if lines[m.path] & set(
                range(m.line, m.line + m.text.count('\n') + 1))]
        elif os.path.isdir(os.path.join(self.source, 'src', args.sample)):
            mutants = mutops.sample(self.made(args.sample), args.seed)
        else:
            sys.exit(f'mutate: SUBSYSTEM={args.sample}: expected a folder below src, like nbd')
        mutants = [m for m in mutants if m[2:6] not in self.known][args.first:]
        return [Operated(m, self.tests(m.path)) for m in mutants[:args.count]]

    def tests(self, path):
        folder = os.path.dirname(os.path.relpath(path, 'src'))
        while folder and folder not in self.rows:
            folder = os.path.dirname(folder)
        if not self.rows.get(folder):
            sys.exit(f'mutate: tests/mutants/subsystems has no row for {os.path.dirname(path)}')
        return self.rows[folder]


def changed_lines(diff):
    """{path: lines that @diff, of git diff -U0, has added}"""
    lines, path = collections.defaultdict(set), None
    for line in read(diff).split('\n'):
        if line.startswith('+++ '):
            path = line[4:].strip().removeprefix('b/')
        elif hunk := re.match(r'@@ -\S+ \+(\d+)(?:,(\d+))? @@', line):
            lines[path].update(range(int(hunk[1]), int(hunk[1]) + int(hunk[2] or 1)))
    return lines


# ---- the copy of the tree ----

def is_code(path):
    return path.startswith(('src/', 'tests/', 'bench/', 'man/')) and \
        not path.endswith(('.mk', '.in'))


def update(new, tree, build):
    """Make @tree what @new is, touching only what differs; start afresh when the way to build it
    does."""
    if os.path.isdir(tree):
        have, want = files_of(tree), files_of(new)
        differ = [p for p in want if p not in have or
                  not filecmp.cmp(os.path.join(new, p), os.path.join(tree, p), shallow=False)]
        if all(is_code(p) for p in differ + sorted(have - want)):
            for p in differ:
                os.makedirs(os.path.dirname(os.path.join(tree, p)), exist_ok=True)
                shutil.copyfile(os.path.join(new, p), os.path.join(tree, p))
            for p in have - want:
                os.unlink(os.path.join(tree, p))
            shutil.rmtree(new)
            return
        shutil.rmtree(tree)
    shutil.rmtree(build, ignore_errors=True)
    os.rename(new, tree)


# ---- processes ----

def end_children():
    """What a run has left behind is given to us, and so are its children when it is gone."""
    while True:
        pids = read(f'/proc/self/task/{os.getpid()}/children').split()
        if not pids:
            return
        for pid in map(int, pids):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def run(command, log, limit_s, cwd, memory=None):
    """Exit status, or None when the time was over."""
    log.write(f'$ {shlex.join(command)}\n')
    log.flush()
    if memory:
        command = ['prlimit', f'--data={memory}'] + command
    process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                               env={**os.environ, 'srcdir': '../tree'}, start_new_session=True)
    try:
        return process.wait(timeout=limit_s)
    except subprocess.TimeoutExpired:
        log.write(f'time limit: {limit_s:.0f} s\n')
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):       # scripts clean up
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=KILL_AFTER_S)
        return None
    finally:
        process.poll()
        end_children()


class Runner:
    def __init__(self, args):
        self.args = args
        self.tree, self.build, self.logs = (os.path.abspath(os.path.join('mutate', d))
                                            for d in ('tree', 'build', 'logs'))
        self.programs = args.programs.split()
        self.limits, self.took = {}, {}         # {test: seconds}
        self.good, self.broken = set(), []      # tests that pass, and that fail, without a mutant
        self.hits = collections.Counter()       # {(file, test): mutants it has killed}
        self.memory, self.objects = None, {}    # {file of the compiler: what is in it}

    def configure(self):
        """As the directory is configured that this runs in."""
        shutil.rmtree(self.logs, ignore_errors=True)
        os.makedirs(self.logs)
        update('mutate/new', self.tree, self.build)
        makefile = os.path.join(self.build, 'Makefile')
        if not os.path.isfile(makefile):
            os.makedirs(self.build, exist_ok=True)
            arguments = subprocess.run([os.path.abspath('config.status'), '--config'], check=True,
                                       capture_output=True, text=True).stdout
            with open(os.path.join(self.logs, 'configure.log'), 'w', encoding='utf-8') as log:
                # By a relative path: a top that is named by one may have spaces in it.
                arguments = [a for a in shlex.split(arguments) if not a.startswith('--srcdir')]
                if run(['../tree/configure'] + arguments, log, BUILD_LIMIT_S, self.build):
                    sys.exit(f'mutate: configure failed: {log.name}')
        self.memory = None if '-fsanitize' in read(makefile) else MEMORY

    def needs(self, test):
        """What to make for @test: a program itself; for a script all programs, and the test's own
        that it names."""
        if not test.endswith('.sh'):
            return [], [test]
        text = read(os.path.join(self.tree, test))
        names = {p: re.escape(os.path.basename(p).removesuffix('.la')) for p in self.programs}
        return ['all'], [p for p in names
                         if re.search(rf'(^|[\s"\'/}}]){names[p]}\b', text, re.M)]

    def make(self, test, log):
        # "all" by itself: it is a make of its own, and two would make the same library at once.
        # A mutant may leave something unused behind.
        return not any(some and run(['make', f'-j{os.cpu_count()}', 'WARN_CFLAGS=-w'] + some, log,
                                    BUILD_LIMIT_S, self.build)
                       for some in self.needs(program_of(test)))

    def compiled(self, path):
        """What is in the file @path of the compiler, but what is for debuggers."""
        bare = os.path.join(self.logs, 'bare.o')
        subprocess.run(['objcopy', '-g', path, bare], check=True)
        with open(bare, 'rb') as f:
            return f.read()

    def remember(self, mutants):
        """What the compiler makes of the files that @mutants change, as they are."""
        names = tuple({os.path.basename(m.made.path)[:-1] + 'o' for m in mutants
                       if not m.every and m.made.path.endswith('.c')})
        for top, _, files in os.walk(self.build):
            for path in (os.path.join(top, f) for f in files if f.endswith(names)):
                self.objects[path] = self.compiled(path)

    def is_same(self, m, since):
        """Has the compiler made the same of the file with @m, which is there @since?"""
        if m.made.path.endswith('.h'):                  # it is in any file
            return False
        built = [o for o in self.objects if os.stat(o).st_mtime_ns > since and
                 o.endswith(os.path.basename(m.made.path)[:-1] + 'o')]
        return bool(built) and all(self.compiled(o) == self.objects[o] for o in built)

    def run_test(self, test, log):
        """PASS, FAIL, SKIP, LIMIT: as make check runs it, and much sooner.  Criterion's exit status
        says that all is well when some cases were skipped."""
        program = program_of(test)
        command = {'.sh': ['bash', f'../tree/{program}'],
                   '.crit': ['sh', '../tree/tests/run-criterion.sh', f'./{program}'],
                   '.fuzz': ['env', 'FUZZ_RUNS=2000', 'sh', '../tree/tests/run-fuzz.sh',
                             f'./{program}']}.get(os.path.splitext(program)[1], [f'./{program}'])
        log.flush()
        begin, at = time.monotonic(), os.fstat(log.fileno()).st_size
        status = run(['env'] + shlex.split(test)[:-1] + command, log,
                     self.limits.get(test, self.args.limit), self.build, self.memory)
        self.took[test] = time.monotonic() - begin
        result = {None: 'LIMIT', 0: 'PASS', 77: 'SKIP'}.get(status, 'FAIL')
        with open(log.name, encoding='utf-8', errors='replace') as f:
            f.seek(at)
            if result == 'PASS' and program.endswith('.crit') and '[SKIP]' in f.read():
                result = 'SKIP'
        log.write(f'{result} {test}: {status}\n')
        return result

    def baseline(self, mutants):
        """What the tests say of the code as it is."""
        tests = list(dict.fromkeys(t for m in mutants for t in m.tests))
        print(f'{len(tests)} tests on the code as it is', flush=True)
        with open(os.path.join(self.logs, 'baseline.log'), 'w', encoding='utf-8') as log:
            for test in tests:
                if not self.make(test, log):
                    sys.exit(f'mutate: the code does not build: {log.name}')
                result = self.run_test(test, log)
                if result in NOTICED:                   # a busy machine has a second try
                    result = self.run_test(test, log)
                if result == 'SKIP':
                    print(f'{test} is skipped here, or some of its cases are')
                elif result in NOTICED:
                    print(f'{test} fails without a mutant')
                    self.broken.append(test)
                else:
                    self.good.add(test)
        self.limits = {t: min(self.args.limit, SLOWER * max(LEAST_S, s))
                       for t, s in self.took.items()}
        self.remember(mutants)

    def mutant(self, m):
        """(verdict, details)"""
        tests = [t for t in m.tests if t in self.good]
        if not tests or m.every and tests != m.tests:
            return 'not-run', ', '.join(t for t in m.tests if t not in tests) or 'no test'
        texts, since = m.applied(self.tree), time.time_ns()
        originals = {path: read(os.path.join(self.tree, path)) for path in texts}
        log_name = re.sub(r'\W+', '-', m.name) + '.log'
        try:
            self.write(texts)
            with open(os.path.join(self.logs, log_name), 'w', encoding='utf-8') as log:
                return self.judge(m, tests, since, log)
        finally:
            self.write(originals)

    def judge(self, m, tests, since, log):
        seen = []
        for test in sorted(tests, key=lambda t: -self.hits[m.name.partition(':')[0], t]):
            if not self.make(test, log):
                return 'does-not-build', log.name
            if not m.every and self.is_same(m, since):
                return 'same', 'for the compiler'
            result = self.run_test(test, log)
            if result in NOTICED:
                seen.append(test + NOTICED[result])
                self.hits[m.name.partition(':')[0], test] += 1
            if m.every != (result in NOTICED):
                break
        if seen and len(seen) == (len(tests) if m.every else 1):
            return 'killed', ', '.join(seen)
        return 'survived', f'{test} did not see it' if m.every else f'{len(tests)} tests'

    def write(self, texts):
        for path, text in texts.items():
            with open(os.path.join(self.tree, path), 'w', encoding='utf-8') as f:
                f.write(text)


def summary(tried, runner, rate):
    """Print it; True if all is well."""
    for m, verdict in tried:
        if verdict == 'survived':
            print(m.told())
    count = collections.Counter(verdict for _, verdict in tried)
    ran = count['killed'] + count['survived']
    killed = 100.0 * count['killed'] / ran if ran else 0.0
    print(f"{count['killed']} of {ran} mutants killed: {killed:.1f} %, {rate:g} % wanted; "
          f"{count['survived']} survived, {count['does-not-build']} do not build, "
          f"{count['same']} are the same program, {count['not-run']} not run; {len(tried)} tried")
    return not runner.broken and (killed >= rate or not ran) and not any(
        m.every and verdict == 'does-not-build' for m, verdict in tried)


def main():
    parser = argparse.ArgumentParser(description='Break the code and see that the tests notice.')
    parser.add_argument('--list', required=True, metavar='DIR', help='where the lists are')
    parser.add_argument('--source', required=True, metavar='DIR', help='the tree')
    parser.add_argument('--check', action='store_true',
                        help='only see that each mutant still fits the code')
    parser.add_argument('--sample', metavar='FOLDER', help='what operators make below src/FOLDER')
    parser.add_argument('--diff', metavar='FILE', help='... on the lines that git diff -U0 added')
    parser.add_argument('--seed', default='1', help='another order of --sample')
    parser.add_argument('--first', type=int, default=0, metavar='N', help='leave out so many')
    parser.add_argument('--count', type=int, metavar='N', help='of --sample and --diff')
    parser.add_argument('--minutes', type=float, help='begin no mutant later')
    parser.add_argument('--dry', action='store_true', help='print the mutants only')
    parser.add_argument('--programs', default='', help='programs that scripts may need')
    parser.add_argument('--limit', type=int, default=TEST_LIMIT_S, help='seconds for one test')
    parser.add_argument('--rate', type=float, default=100.0, help='percents that must be killed')
    parser.add_argument('mutants', nargs='*', metavar='MUTANT', help='only these of the lists')
    args = parser.parse_args()

    mutants, wrong = load(args.list, args.source)
    operators = Operators(args.list, args.source)
    wrong += operators.wrong
    for line in wrong:
        print(line)
    if wrong or args.check:
        print(f'{len(mutants)} mutants, {len(wrong)} errors in the lists')
        return 1 if wrong else 0
    by_name = {m.name: m for m in mutants}
    if unknown := [name for name in args.mutants if name not in by_name]:
        sys.exit(f'mutate: there is no mutant {unknown[0]}')
    if args.sample is not None or args.diff:
        chosen = operators.chosen(args)
    else:
        chosen = [by_name[name] for name in args.mutants] or mutants
    if args.dry:
        for m in chosen:
            print(m.told())
        return 0

    alone = open('mutate/lock', 'w', encoding='utf-8')
    try:
        fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(f'mutate: another one works in {os.path.abspath("mutate")}')
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    runner, tried, started = Runner(args), [], time.monotonic()
    runner.configure()
    runner.baseline(chosen)
    try:
        for m in chosen:
            begin = time.monotonic()
            if args.minutes and begin - started > 60 * args.minutes:
                break
            verdict, details = runner.mutant(m)
            tried.append((m, verdict))
            print(f'{verdict:14} {m.name:32} {time.monotonic() - begin:4.0f} s  {details}',
                  flush=True)
    except KeyboardInterrupt:
        runner.broken.append('an interrupt')
    return 0 if summary(tried, runner, args.rate) else 1


if __name__ == '__main__':
    # Both end what is running, leave the tree as it was, and print what was found until then.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
