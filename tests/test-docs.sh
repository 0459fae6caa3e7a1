#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# --help, --dump-plugin and a file name the same options and parameters, no more and no less; the
# manuals have the same version, and are well-formed POD; --help fits a terminal.
# tests/unit/opt-rules.c compares the options of the manuals.
. ./tests/functions.sh
requires_server; requires_plugin
requires command -v podchecker

man=$top_srcdir/man
for page in "$man"/*.pod; do
	podchecker -warnings "$page"
	# The sections of a manual, in their order, as far as it has them.
	sections=$(sed -n 's/^=head1 //p' "$page" | grep -x -E \
		'NAME|SYNOPSIS|DESCRIPTION|EXAMPLES|PARAMETERS|OPTIONS|EXIT STATUS|LIMITS|ENVIRONMENT|FILES|VERSION|SEE ALSO')
	want=$(printf '%s\n' NAME SYNOPSIS DESCRIPTION EXAMPLES PARAMETERS OPTIONS 'EXIT STATUS' \
		LIMITS ENVIRONMENT FILES \
		VERSION 'SEE ALSO' | grep -x -F "$sections")
	[ "$sections" = "$want" ] || fail "sections of $page: $sections"
	# Those that a program's manual must have.
	if [[ $page != */rtrs-protocol.pod && $page != */rtrs-guide.pod ]]; then
		for section in SYNOPSIS DESCRIPTION EXAMPLES 'EXIT STATUS' ENVIRONMENT \
			'SEE ALSO'; do
			grep -q -x -F "$section" <<<"$sections" || fail "$page has no $section"
		done
	fi
	# Figures and commands fit a terminal as man(1) shows them.
	pod2text --indent=7 --width=80 "$page" |
		awk 'length > 80 { print; bad = 1 } END { exit bad }' ||
		fail "$page: these lines are wider than 80 columns"
done

# fits_terminal FILE: 80 columns, and an option a line.  A path that has its line for itself is as
# long as configure's directory.
fits_terminal() {
	local lines width
	lines=$(wc -l <"$1")
	width=$(awk '!/^ +\(\/[^ ]*\)$/ { if (length > w) w = length } END { print w }' "$1")
	[ "$lines" -ge 5 ] || fail "$1 has $lines lines"
	[ "$width" -le 80 ] || fail "$1 is $width columns wide"
	must_fail grep -E -- '^ .*--.* --' "$1"
}

# files_take HEAD PROGRAM [ARGUMENT...] <OPTIONS: each option may stand in a file, behind the line
# HEAD, or the file's error says what does in its place: these are in $tmp/files.not.
files_take() {
	local head=$1 option
	shift
	: >"$tmp/files.not"
	while IFS= read -r option <&3; do
		printf '%s\n' "$head" "$option =" >"$tmp/files.conf"
		"$@" >"$tmp/files.out" 2>&1 </dev/null && fail "takes '$option =' in a file"
		if grep -q "conf:2: '$option' cannot stand in a file: ." "$tmp/files.out"; then
			echo "$option" >>"$tmp/files.not"
		elif ! grep -q "files.conf:2: '$option' has no value" "$tmp/files.out"; then
			cat "$tmp/files.out"
			fail "a file does not take '$option'"
		fi
	done 3<&0
}

# The scripts, too, and in the lines that a terminal has without scrolling.
for script in quickstart.sh check.sh; do
	"$top_srcdir/$script" --help >"$tmp/script.help"
	fits_terminal "$tmp/script.help"
done

# ---- peers ----
# Each test that stands for a cell of ours is a test.
# shellcheck disable=SC2016 # a backtick
grep -o -E '`([a-z]+/)?test-[a-z-]+\.(sh|c)`' "$top_srcdir/doc/peers.md" | tr -d '\140' |
	sort -u >"$tmp/peers.tests"
[ "$(wc -l <"$tmp/peers.tests")" -ge 30 ]
while IFS= read -r name; do
	[ -f "$top_srcdir/tests/$name" ] || fail "doc/peers.md names tests/$name: there is none"
done <"$tmp/peers.tests"

# ---- promises, and behaviours of devices ----
# Each test that they name is in the tree, and has the cases that follow its name.
/usr/bin/python3 - "$top_srcdir" <<'END' || fail "a page names tests that do not exist"
import os, re, sys
top, wrong, tests = sys.argv[1], 0, 0
text = "".join(open(f"{top}/doc/{page}.md").read() for page in ("promises", "devices"))
for name, cases in re.findall(r"`((?:[a-z]+/)?[\w-]+\.(?:sh|c|py))`(?:: ([\w, -]+))?", text):
    path = f"{top}/tests/{name}"
    tests += 1
    if not os.path.exists(path):
        print(f"tests/{name} does not exist")
        wrong += 1
        continue
    code = open(path).read()
    for case in filter(None, map(str.strip, cases.split(","))):
        if case not in code and case.replace("-", "_") not in code:
            print(f"tests/{name} has no case {case}")
            wrong += 1
sys.exit(wrong > 0 or tests < 80)
END
# A reader has one page of security, and a glossary of 25 words, which README names.
[ "$(wc -l <"$top_srcdir/SECURITY")" -le 66 ] || fail "SECURITY is longer than a page"
words=$(sed -n '/^=head1 GLOSSARY/,/^=head1 VERSION/p' "$man/rtrs-guide.pod" | grep -c '^=item')
[ "$words" -eq 25 ] && grep -q 'glossary of 25 words' "$top_srcdir/README.md" ||
	fail "the glossary of the guide has $words words"

# ---- programs ----
version=$("$RTRS_SERVER" --version | grep -o -E '[0-9]+\.[0-9]+\.[0-9]+')
programs=(rtrs-server rtrsctl rtrs-bench rtrs-psk rtrs-nbd)
! [ -x "$RTRS_ATTACH" ] || programs+=(rtrs-attach rtrs-detach)
for program in "${programs[@]}"; do
	"$top_builddir/$program" --help >"$tmp/$program.help"
	fits_terminal "$tmp/$program.help"
	"$top_builddir/$program" --version | grep -q -w -F "$version"
	grep -q -F "nbdkit-rtrs $version." "$man/$program.pod"
	# Names and values in the manual: unit/opt-rules.c, but for the one whose table is its own.
	grep -o -E -- '(^ +(-., )?| )--[a-z-]+' "$tmp/$program.help" | grep -o -E -- '--.*' |
		sort -u >"$tmp/$program.options"
	[ $program != rtrs-detach ] || diff -u "$tmp/$program.options" <(
		grep '^=item' "$man/$program.pod" | grep -o -E 'B<--[a-z-]+' | cut -c 3- | sort -u)
	# -h and -V are the same everywhere.
	for option in 'h --help' 'V --version'; do
		diff <("$top_builddir/$program" "-${option% *}") \
			<("$top_builddir/$program" "${option#* }")
		grep -q -x -F "=item B<-${option% *}>, B<${option#* }>" "$man/$program.pod"
	done
done
cut -c 3- "$tmp/rtrs-server.options" | files_take '[server]' "$RTRS_SERVER" --config="$tmp/files.conf"
diff -u <(printf '%s\n' check config help ready-fd version) "$tmp/files.not"
# In a file TLS of NBD clients has names of its own.
sed -E -e 's/^--//' -e 's/^tls/nbd-&/' "$tmp/rtrs-nbd.options" >"$tmp/nbd.options"
files_take '' "$RTRS_NBD" config="$tmp/files.conf" <"$tmp/nbd.options"
diff -u <(printf '%s\n' check help version) "$tmp/files.not"

# ---- rtrsctl ----
# Each command: in --help, in the manual, and completed.
sed -n -E 's/^  ([a-z][a-z| -]*[a-z])( \[?[A-Z]+\]?)?(  .*|$)/\1/p' "$tmp/rtrsctl.help" \
	>"$tmp/commands"
[ "$(tr '|' '\n' <"$tmp/commands" | wc -l)" -ge 10 ]
while read -r words rest; do
	for first in ${words//|/ }; do
		grep -q "^=item B<$first${rest:+ ${rest%%|*}}>" "$man/rtrsctl.pod" ||
			fail "not in the manual: $first $rest"
		grep -q -w -e "$first" "$top_srcdir/contrib/completion/rtrsctl" ||
			fail "not completed: $first"
	done
done <"$tmp/commands"
# Each state of a session and of a path; "up" of a path is told as "connected".
for table in session path server-path; do
	sed -n 's/^\ts[0-9]* \[label="\([^"]*\)".*/\1/p' "$top_srcdir/doc/fsm-$table.dot" \
		>"$tmp/states"
	[ "$(wc -l <"$tmp/states")" -ge 5 ]
	while IFS= read -r state; do
		grep -q -F "C<$state>" "$man/rtrsctl.pod" ||
			fail "the manual of rtrsctl has no state $state"
	done <"$tmp/states"
done

# ---- the plugin ----
preload=$(nbdkit_preload)
kit() { env ${preload:+LD_PRELOAD=$preload} nbdkit "$RTRS_PLUGIN" "$@"; }
kit --help | sed -n '/^plugin:/,$p' | grep -v '^plugin:\|^(' >"$tmp/plugin.help"
fits_terminal "$tmp/plugin.help"
grep -o -E '^\[?[a-z-]+=' "$tmp/plugin.help" | tr -d '[=' | sort -u >"$tmp/help.parameters"
kit --dump-plugin | sed -n 's/^rtrs_parameters=//p' | tr , '\n' | sort -u >"$tmp/dump.parameters"
diff -u "$tmp/help.parameters" "$tmp/dump.parameters"
while IFS= read -r parameter; do
	expect_nbdkit_failure "$parameter" "$parameter=" "$parameter="
done <"$tmp/help.parameters"
for front in "$RTRS_NBD" kit; do
	files_take '' "$front" config="$tmp/files.conf" <"$tmp/help.parameters"
	diff -u <(echo config) "$tmp/files.not"
done
# Options of rtrs-nbd in a file that nbdkit reads, too: each error says where nbdkit has its own.
while IFS= read -r option; do
	echo "$option = 1" >"$tmp/files.conf"
	kit config="$tmp/files.conf" >"$tmp/files.out" 2>&1 </dev/null || true
	grep -q "files.conf:1: '$option' is an option of rtrs-nbd: give nbdkit" "$tmp/files.out" ||
		fail "nothing is said of '$option' of rtrs-nbd in a file of nbdkit"
done < <(grep -v -x 'check\|help\|version' "$tmp/nbd.options")
# What --dump-plugin says about this plugin is explained in the manual.
kit --dump-plugin >"$tmp/dump"
grep -q -x 'name=rtrs' "$tmp/dump"
grep -q -x "version=$version" "$tmp/dump"
grep -q -x 'magic_config_key=server' "$tmp/dump"
grep -q -x 'thread_model=parallel' "$tmp/dump"
grep -q -F "nbdkit-rtrs $version." "$man/nbdkit-rtrs-plugin.pod"
while IFS= read -r key; do
	grep -q -F "$key" "$man/nbdkit-rtrs-plugin.pod" ||
		fail "$key of --dump-plugin is not in the manual"
done < <(sed -n 's/^\(rtrs_[a-z_]*\)=.*/\1/p' "$tmp/dump")
