#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""make mutate: break the code in the ways that tests/mutants lists, and see that the tests notice.

Each mutant is applied to a copy of the tree, what its tests need is built, and they run; all of
them must fail.  The lists are read by this, and --check says whether they still fit the code;
tests/mutants/README has their format.  Exits with 1 when a mutant does not fit or build, survives
without a reason in the list, or is killed with one, and when fewer are killed than --rate says;
with 2 when it cannot begin."""

import argparse
import ctypes
import fcntl
import filecmp
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

import csource

TEST_LIMIT_S = 180      # one test; what hangs by a mutation has noticed it.  With a mutant ...
SLOWER = 20             # ... not above so many times what it took without, which counts as ...
LEAST_S = 1             # ... so much at least
KILL_AFTER_S = 10
BUILD_LIMIT_S = 900
PR_SET_CHILD_SUBREAPER = 36


class ListError(Exception):
    pass


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
    def __init__(self, name, breaks, where):
        self.name, self.breaks, self.where = name, breaks, where
        self.hunks, self.tests, self.survives = [], [], None


# ---- where a function is ----

def index(source, _known={}):
    """{name: files below src/ that define it}"""
    if source not in _known:
        found = _known[source] = {}
        for top, _, files in sorted(os.walk(os.path.join(source, 'src'))):
            for file in sorted(f for f in files if f.endswith(('.c', '.h'))):
                path = os.path.join(top, file)
                with open(path, encoding='utf-8') as f:
                    for d in csource.definitions(f.read().split('\n')):
                        paths = found.setdefault(d.name, [])
                        if path not in paths:
                            paths.append(path)
    return _known[source]


def paths_of(source, hunk):
    """The files that may have the place."""
    if hunk.path:
        return [hunk.path] if os.path.isfile(os.path.join(source, hunk.path)) else []
    paths = [os.path.relpath(p, source) for p in index(source).get(hunk.name, [])]
    return [p for p in paths if hunk.base in (None, os.path.basename(p))]


# ---- the lists ----

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
    with open(path, encoding='utf-8') as f:
        lines = f.read().splitlines()
    for number, line in enumerate(lines, 1):
        where = f'{os.path.basename(path)}:{number}'
        key, _, rest = line.partition(' ')
        if line.startswith('#') or not line.strip():
            continue
        if key == 'mutant':
            name, colon, breaks = rest.partition(':')
            if not colon or not re.fullmatch(r'[a-z0-9-]+', name) or not breaks.strip():
                raise ListError(f'{where}: expected "mutant NAME: WHAT IT BREAKS", got "{line}"')
            mutant = Mutant(name, breaks.strip(), where)
            mutants.append(mutant)
        elif not mutant:
            raise ListError(f'{where}: "{line}" belongs to no mutant')
        elif key == 'file':
            mutant.hunks.append(Hunk(path=rest.strip()))
        elif key == 'in':
            name, _, base = rest.strip().partition(' of ')
            mutant.hunks.append(Hunk(name=name, base=base or None))
        elif key == 'test':
            mutant.tests += tests_of(rest)
        elif key == 'survives':
            mutant.survives = rest.strip()
        elif line[0] == '\t' and mutant.survives:
            mutant.survives += ' ' + line.strip()
        elif line[0] == '\t' and not mutant.hunks:
            mutant.breaks += ' ' + line.strip()
        elif line[0] in '-+ ' and mutant.hunks:
            mutant.hunks[-1].lines.append((line[0], line[1:]))
        else:
            raise ListError(f'{where}: expected mutant, in, file, test, survives, or a line with '
                            f'-, + or a space behind a place, got "{line}"')
    return mutants


def last_of(lines, first, words):
    """The line that ends @words, which begin with line @first; None when other words stand there.
    Code is wrapped and indented again more often than it changes, so a line may end anywhere
    between words."""
    have = []
    for last in range(first, len(lines)):
        have += lines[last].split()
        if have != words[:len(have)]:
            return None
        if len(have) == len(words):
            return last
    return None


def find(lines, old, hunk):
    """(first, last) of the lines that are @old in @lines, within what @hunk names."""
    words = [word for line in old for word in line.split()]
    parts = [(0, len(lines) - 1)]
    if hunk.name:
        parts = [(d.first, d.last) for d in csource.definitions(lines) if d.name == hunk.name]
    found = []
    for begin, end in parts:
        for first in range(begin, end + 1):
            last = last_of(lines, first, words) if lines[first].strip() else None
            if last is not None and last <= end:
                found.append((first, last))
    return found


def mutated(source, mutant):
    """{path: text} with @mutant applied to the tree @source; ListError if it does not fit."""
    texts, changed = {}, []
    for hunk in mutant.hunks:
        paths, old = paths_of(source, hunk), hunk.side('- ')
        if not paths:
            raise ListError(f'{mutant.where}: {mutant.name} does not apply: there is no {hunk}')
        for path in paths:
            if path not in texts:
                with open(os.path.join(source, path), encoding='utf-8') as f:
                    texts[path] = f.read().split('\n')
        at = [(path, place) for path in paths if old
              for place in find(texts[path], old, hunk)]
        if len(at) != 1:
            first = next((text.strip() for sign, text in hunk.lines if sign in '- '), '')
            raise ListError(f'{mutant.where}: {mutant.name} does not apply: {hunk} has its old '
                            f'text {len(at)} times, expected once: "{first}"')
        path, (begin, end) = at[0]
        texts[path][begin:end + 1] = hunk.side('+ ')
        changed.append(path)
    return {path: '\n'.join(texts[path]) for path in changed}


def test_exists(source, test):
    if test.endswith('.sh'):
        return os.path.isfile(os.path.join(source, test))
    name = re.escape(os.path.basename(test))
    for top, _, files in os.walk(os.path.join(source, 'tests')):
        for file in files:
            if file not in ('local.mk', 'programs'):
                continue
            with open(os.path.join(top, file), encoding='utf-8') as f:
                if re.search(rf'(^|[\s/]){name}(\s|$)', f.read()):
                    return True
    return False


def load(directory, source):
    """All mutants, and what is wrong with the lists."""
    mutants, wrong, names = [], [], set()
    for file in sorted(os.listdir(directory)):
        if not file.endswith('.list'):
            continue
        try:
            mutants += parse(os.path.join(directory, file))
        except ListError as error:
            wrong.append(str(error))
    for m in mutants:
        try:
            if m.name in names:
                raise ListError(f'{m.where}: {m.name} is there twice')
            names.add(m.name)
            if not m.tests or not m.hunks:
                raise ListError(f'{m.where}: {m.name} has no test, or no place')
            for test in m.tests:
                if not test_exists(source, program_of(test)):
                    raise ListError(f'{m.where}: {m.name}: there is no test {program_of(test)}')
            for path, text in mutated(source, m).items():
                with open(os.path.join(source, path), encoding='utf-8') as f:
                    if f.read() == text:
                        raise ListError(f'{m.where}: {m.name} changes nothing')
        except ListError as error:
            wrong.append(str(error))
    return mutants, wrong


# ---- the copy of the tree ----

def is_code(path):
    return path.startswith(('src/', 'tests/', 'bench/', 'man/')) and \
        not path.endswith(('.mk', '.in'))


def files_of(top):
    return {os.path.relpath(os.path.join(d, f), top) for d, _, files in os.walk(top) for f in files}


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

def children():
    """Processes whose parent this is: what a run has left behind is given to us."""
    found = []
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as f:
                if int(f.read().rpartition(')')[2].split()[1]) == os.getpid():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def end_children():
    """Their own children come to us when they are gone."""
    pids = children()
    while pids:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except OSError:
                pass
        pids = children()


def run(command, log, limit_s, cwd):
    """Exit status, or None when the time was over."""
    log.write(f'$ {shlex.join(command)}\n')
    log.flush()
    process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                               env={**os.environ, 'srcdir': '../tree'}, start_new_session=True)
    try:
        return process.wait(timeout=limit_s)
    except subprocess.TimeoutExpired:
        log.write(f'time limit: {limit_s:.0f} s\n')
        try:        # scripts clean up
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=KILL_AFTER_S)
        except (OSError, subprocess.TimeoutExpired):
            pass
        return None
    finally:
        process.poll()
        end_children()


class Runner:
    def __init__(self, args):
        self.args = args
        self.tree, self.build = (os.path.join(os.path.abspath(args.dir), d)
                                 for d in ('tree', 'build'))
        self.logs = os.path.join(os.path.abspath(args.dir), 'logs')
        self.programs = args.programs.split()
        self.limits, self.took = {}, {}         # {test: seconds}

    def configure(self):
        """As the directory is configured that this runs in."""
        if os.path.isfile(os.path.join(self.build, 'Makefile')):
            return
        os.makedirs(self.build, exist_ok=True)
        arguments = subprocess.run([os.path.abspath('config.status'), '--config'], check=True,
                                   capture_output=True, text=True).stdout
        with open(os.path.join(self.logs, 'configure.log'), 'w', encoding='utf-8') as log:
            # By a relative path, because a top that is named by one may have spaces in it.
            arguments = [a for a in shlex.split(arguments) if not a.startswith('--srcdir')]
            if run(['../tree/configure'] + arguments, log, BUILD_LIMIT_S, self.build):
                sys.exit(f'mutate: configure failed: {log.name}')

    def needs(self, tests):
        """What to make for @tests: a program itself; for a script all programs, and the test's own
        that it names."""
        targets = []
        for test in map(program_of, tests):
            if not test.endswith('.sh'):
                targets.append(test)
                continue
            with open(os.path.join(self.tree, test), encoding='utf-8') as f:
                text = f.read()
            for p in self.programs:
                name = re.escape(os.path.basename(p).removesuffix('.la'))
                if re.search(rf'(^|[\s"\'/}}]){name}\b', text, re.M):
                    targets.append(p)
            targets.insert(0, 'all')
        return list(dict.fromkeys(targets))

    def make_programs(self, tests, log):
        targets = self.needs(tests)
        # By itself: "all" is a make of its own, and two would make the same library at once.
        for some in (['all'] if 'all' in targets else [], [t for t in targets if t != 'all']):
            # A mutant may leave something unused behind.
            if some and run(['make', f'-j{self.args.jobs}', 'WARN_CFLAGS=-w'] + some, log,
                            BUILD_LIMIT_S, self.build):
                return False
        return True

    @staticmethod
    def skipped_some(log, begin):
        """Did Criterion skip a case since @log was at @begin?  Its exit status says that all is
        well."""
        log.flush()
        with open(log.name, encoding='utf-8', errors='replace') as f:
            f.seek(begin)
            return any('[SKIP]' in line for line in f)

    def run_tests(self, tests, log):
        """{test: PASS, PART, FAIL, SKIP, LIMIT}: as make check runs them, and much sooner.  PART:
        what was not skipped passes."""
        results = {}
        for test in tests:
            program = program_of(test)
            if program.endswith('.sh'):
                command = ['bash', f'../tree/{program}']
            elif program.endswith('.crit'):
                command = ['sh', '../tree/tests/run-criterion.sh', f'./{program}']
            elif program.endswith('.fuzz'):
                command = ['env', 'FUZZ_RUNS=2000', 'sh', '../tree/tests/run-fuzz.sh',
                           f'./{program}']
            else:
                command = [f'./{program}']
            log.flush()
            begin, at = time.monotonic(), os.fstat(log.fileno()).st_size
            status = run(['env'] + shlex.split(test)[:-1] + command, log,
                         self.limits.get(test, self.args.limit),
                         self.build)
            self.took[test] = time.monotonic() - begin
            results[test] = {None: 'LIMIT', 0: 'PASS', 77: 'SKIP'}.get(status, 'FAIL')
            if results[test] == 'PASS' and program.endswith('.crit') and self.skipped_some(log, at):
                results[test] = 'PART'
            log.write(f'{results[test]} {test}: {status}\n')
        return results

    def baseline(self, tests):
        """What the tests say of the code as it is."""
        print(f'{len(tests)} tests on the code as it is', flush=True)
        with open(os.path.join(self.logs, 'baseline.log'), 'w', encoding='utf-8') as log:
            if not self.make_programs(tests, log):
                sys.exit(f'mutate: the code does not build: {log.name}')
            results = self.run_tests(tests, log)
            for test in [t for t in tests if results[t] in ('FAIL', 'LIMIT')]:
                results.update(self.run_tests([test], log))     # a busy machine has a second try
        self.limits = {t: min(self.args.limit, SLOWER * max(LEAST_S, s))
                       for t, s in self.took.items()}
        return results

    def mutant(self, m, baseline):
        """(verdict, details)"""
        bad = [t for t in m.tests if baseline[t] not in ('PASS', 'PART')]
        if bad:
            what = {'SKIP': 'is skipped here'}.get(baseline[bad[0]], 'fails without the mutant')
            return ('not-run' if baseline[bad[0]] == 'SKIP' else 'broken-test'), f'{bad[0]} {what}'
        texts, originals = mutated(self.tree, m), {}
        for path in texts:
            with open(os.path.join(self.tree, path), encoding='utf-8') as f:
                originals[path] = f.read()
        try:
            self.write(texts)
            with open(os.path.join(self.logs, m.name + '.log'), 'w', encoding='utf-8') as log:
                if not self.make_programs(m.tests, log):
                    return 'does-not-build', log.name
                results = self.run_tests(m.tests, log)
        finally:
            self.write(originals)
        passed = [t for t in m.tests if results[t] == 'PASS']
        skipped = [t for t in m.tests if results[t] in ('SKIP', 'PART')]
        if passed:
            return 'survived', ', '.join(passed) + ' did not see it'
        if skipped:
            return 'not-run', ', '.join(skipped) + ' is skipped here, or some of its cases are'
        return 'killed', ', '.join(t + (' (time limit)' if results[t] == 'LIMIT' else '')
                                   for t in m.tests)

    def write(self, texts):
        for path, text in texts.items():
            with open(os.path.join(self.tree, path), 'w', encoding='utf-8') as f:
                f.write(text)


def choose(mutants, args):
    if not args.mutants:
        return mutants[::args.every]
    names = {m.name for m in mutants}
    for name in args.mutants:
        if name not in names:
            sys.exit(f'mutate: there is no mutant {name}')
    return [m for m in mutants if m.name in args.mutants]


def summary(chosen, verdicts, rate):
    """Print it; True if all is well."""
    count = {v: sum(verdicts[m.name] == v for m in chosen)
             for v in ('killed', 'survived', 'not-run', 'does-not-build', 'broken-test')}
    ran = count['killed'] + count['survived']
    killed = 100.0 * count['killed'] / ran if ran else 0.0
    ok = not count['does-not-build'] and not count['broken-test'] and killed >= rate
    for m in chosen:
        if verdicts[m.name] == 'survived' and not m.survives:
            print(f'{m.where}: {m.name} survived: {m.breaks}')
            ok = False
        elif verdicts[m.name] == 'killed' and m.survives:
            print(f'{m.where}: {m.name} is killed, and the list says why it survives')
            ok = False
    print(f"{count['killed']} of {ran} mutants killed: {killed:.1f} %, {rate:g} % wanted; "
          f"{count['survived']} survived, {count['does-not-build']} do not build, "
          f"{count['not-run'] + count['broken-test']} not run")
    return ok


def main():
    parser = argparse.ArgumentParser(description='Break the code and see that the tests notice.')
    parser.add_argument('--list', required=True, metavar='DIR', help='where the lists are')
    parser.add_argument('--source', required=True, metavar='DIR', help='the tree')
    parser.add_argument('--check', action='store_true',
                        help='only see that each mutant still fits the code')
    parser.add_argument('--dir', default='mutate', help='where the copy is made, from DIR/new')
    parser.add_argument('--programs', default='', help='programs that scripts may need')
    parser.add_argument('--every', type=int, default=1, metavar='N', help='only each Nth mutant')
    parser.add_argument('--limit', type=int, default=TEST_LIMIT_S, help='seconds for one test')
    parser.add_argument('--jobs', type=int, default=os.cpu_count(), help='of make')
    parser.add_argument('--rate', type=float, default=95.0, help='percents that must be killed')
    parser.add_argument('mutants', nargs='*', metavar='MUTANT', help='only these')
    args = parser.parse_args()

    mutants, wrong = load(args.list, args.source)
    for line in wrong:
        print(line)
    if wrong or args.check:
        print(f'{len(mutants)} mutants, {len(wrong)} errors in the lists')
        return 1 if wrong else 0

    alone = open(os.path.join(args.dir, 'lock'), 'w', encoding='utf-8')
    try:
        fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(f'mutate: another one works in {os.path.abspath(args.dir)}')
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    chosen, runner, verdicts = choose(mutants, args), Runner(args), {}
    shutil.rmtree(runner.logs, ignore_errors=True)
    os.makedirs(runner.logs)
    update(os.path.join(os.path.abspath(args.dir), 'new'), runner.tree, runner.build)
    runner.configure()
    baseline = runner.baseline(list(dict.fromkeys(t for m in chosen for t in m.tests)))
    for m in chosen:
        begin = time.monotonic()
        verdicts[m.name], details = runner.mutant(m, baseline)
        print(f'{verdicts[m.name]:14} {m.name:32} {time.monotonic() - begin:4.0f} s  {details}',
              flush=True)
    return 0 if summary(chosen, verdicts, args.rate) else 1


if __name__ == '__main__':
    # Both end what is running, and leave the tree as it was.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
