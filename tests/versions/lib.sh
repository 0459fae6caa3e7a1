# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For the tests of the version policy (doc/versions.md), which run in the top build directory,
# on top of tests/functions.sh.  Two builds meet: "now" is this one, "before" is that of an
# earlier commit, below $BEFORE_BUILD.  build-aux/versions.sh builds it and runs the tests.
#
#	. ./tests/functions.sh
#	. "$top_srcdir/tests/versions/lib.sh"
#	use before; start_server disk=...	the programs that start from here on; and $rtrsctl
#	start_front rtrs-nbd KEY=VALUE...	sets front_pid, front_log, and uri

[ -n "${BEFORE_BUILD-}" ] && [ -x "$BEFORE_BUILD/rtrs-server" ] ||
	fail "BEFORE_BUILD='${BEFORE_BUILD-}': no build of an earlier commit;" \
		"build-aux/versions.sh makes one"

now_build=$top_builddir

# build_of before|now: where its programs are.
build_of() {
	local name=${1}_build

	[ "$1" != before ] || name=BEFORE_BUILD
	echo "${!name}"
}

# use before|now
# shellcheck disable=SC2034 # used by functions.sh and the tests
use() {
	local build

	build=$(build_of "$1")
	RTRS_SERVER=$build/rtrs-server
	RTRS_NBD=$build/rtrs-nbd
	RTRS_PLUGIN=$build/.libs/nbdkit-rtrs-plugin.so
	rtrsctl=$build/rtrsctl
}

# other before|now
other() {
	case $1 in
	before) echo now ;;
	now) echo before ;;
	esac
}

# start_front nbdkit|rtrs-nbd KEY=VALUE...
# shellcheck disable=SC2034 # used by the tests
start_front() {
	case $1 in
	nbdkit)
		start_nbdkit "${@:2}"
		front_pid=$nbdkit_pid front_log=$nbdkit_log
		;;
	rtrs-nbd)
		start_gateway "${@:2}"
		front_pid=$gateway_pid front_log=$gateway_log
		;;
	esac
}

# load_starts URI: nbd-load.py in the background; load_goes_on waits for two turns that began and
# ended since, load_ends for its end without an error.
load_starts() {
	rm -f "$tmp/stop"
	echo 0 >"$tmp/stop.turns"
	STOP=$tmp/stop nbdsh -u "$1" -c - <"$top_srcdir/tests/nbd-load.py" >"$tmp/load.log" 2>&1 &
	load_pid=$!
	load_goes_on
}

load_goes_on() {
	wait_until "IO to go on" turns_above_or_ended $(($(cat "$tmp/stop.turns") + 1))
	! process_ended "$load_pid" || { cat "$tmp/load.log"; fail "IO has failed"; }
}

turns_above_or_ended() {
	process_ended "$load_pid" || [ "$(cat "$tmp/stop.turns")" -gt "$1" ]
}

load_ends() {
	load_goes_on
	: >"$tmp/stop"
	expect_exit "$load_pid" 0
}

# client_starts: an NBD client of $uri that does one command a line: write, flush, read, which
# answer ok or the errno; ask COMMAND ANSWER; client_ends.
client_starts() {
	cat >"$tmp/client.py" <<-'END'
	import sys, nbd
	h = nbd.NBD()
	h.connect_uri(sys.argv[1])
	for n, line in enumerate(sys.stdin):
	    try:
	        if line == "write\n":
	            h.pwrite(bytes([n % 255 + 1]) * 512, n * 512)
	        elif line == "flush\n":
	            h.flush()
	        elif line == "read\n":
	            h.pread(512, 0)
	        else:
	            raise SystemExit("unknown command " + line)
	        print("ok", flush=True)
	    except nbd.Error as e:
	        print(e.errno, flush=True)
	END
	coproc client { timeout $((8 * TIMEOUT_S)) /usr/bin/python3 "$tmp/client.py" "$uri"; }
	client_pid=$client_PID
}

ask() {
	echo "$1" >&"${client[1]}"
	answered "$2"
}

# answered ANSWER: that of the command that was given.
answered() {
	local answer=""

	read -r -t $((2 * TIMEOUT_S)) answer <&"${client[0]}" || fail "no answer of the NBD client"
	[ "$answer" = "$1" ] || fail "the NBD client had $answer instead of $1"
}

client_ends() {
	eval "exec ${client[1]}>&-"
	expect_exit "$client_pid" 0
}
