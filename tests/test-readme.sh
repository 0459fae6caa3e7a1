#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The commands that README.md prints, as it prints them: on a machine of their own as far as the
# network goes, which has the addresses of the examples.  A command that this test does not know is
# a failure.
# A mount of FUSE, too, is of this namespace.
. "$(dirname "$0")/own-namespace.sh" --net --mount
. ./tests/functions.sh
requires_server; requires_plugin; requires_plain_build
[ "$IN_NAMESPACE" = yes ] || skip "no network namespace of its own"
requires ip -Version
requires nbdcopy --version
requires ss --version
requires qemu-img --version
readme=$top_srcdir/README.md
[ -f "$readme" ] || skip "README.md is not part of this source"
ip link set lo up
ip addr add 192.0.2.10/24 dev lo
ip addr add 198.51.100.10/24 dev lo

# What is installed in the examples, and what stays behind, is here.
mkdir "$tmp/bin" "$tmp/run"
cat >"$tmp/bin/rtrs-server" <<END
#!/bin/bash
exec "$RTRS_SERVER" --ready-fd 9 "\$@"
END
cat >"$tmp/bin/nbdkit" <<END
#!/bin/bash
# The machine of the client.
export RUNTIME_DIRECTORY=$tmp/client
args=()
for arg; do
	[ "\$arg" != rtrs ] || arg=$(printf %q "$RTRS_PLUGIN")
	args+=("\$arg")
done
exec $(command -v nbdkit) -P "$tmp/nbdkit.pid" "\${args[@]}"
END
cp "$top_builddir/rtrsctl" "$RTRS_NBD" "$tmp/bin/"
chmod +x "$tmp/bin/rtrs-server" "$tmp/bin/nbdkit"
PATH=$tmp/bin:$PATH

# Commands in blocks, with lines that go on joined, and those of the table; /run is for root.
/usr/bin/python3 - "$readme" >"$tmp/commands" <<'END'
import re, sys
text = open(sys.argv[1]).read().replace("\\\n", "")
commands = []
for section in re.split(r"(?m)^## ", text):
    if section.startswith("The data path"):
        continue		# a picture
    commands += [re.sub(r"\s+#\s.*", "", m) for m in re.findall(r"(?m)^    (\S.*)", section)]
    commands += re.findall(r"(?m)^Then, with `(uri=[^`]*)`", section)
    if "| as | command |" in section:
        for row in re.findall(r"(?m)^\| (?:an?|information)\b[^|]*\|(.*)\|$", section):
            commands += re.findall(r"`([^`]*)`", row)
print("\n".join(re.sub(r"\s+", " ", c).strip() for c in commands))
END
cat "$tmp/commands"
sed -i "s,/run/,$tmp/run/,g" "$tmp/commands"

# shows_two_paths DIRECTORY
shows_two_paths() {
	RUNTIME_DIRECTORY=$1 rtrsctl show >"$tmp/shown"
	[ "$(grep -c -E '^ +state +connected$' "$tmp/shown")" -eq 2 ]
}

export uri=""
random_file "$tmp/image.raw" $((3 << 20))
cd "$tmp" || exit 1
known=0
while IFS= read -r command <&3; do
	case $command in
	./quickstart.sh) [ -x "$top_srcdir/tests/test-quickstart-keep.sh" ] ;;
	./check.sh)
		# It runs this.
		[ -x "$top_srcdir/check.sh" ]
		"$top_srcdir/check.sh" --help
		;;
	"apt install "*)
		# As quickstart.sh does it, which installs these.
		top=$top_srcdir
		# shellcheck disable=SC2086 # words
		diff <(. "$top_srcdir/build-aux/setup.sh"; printf '%s\n' $packages_build | sort) \
			<(printf '%s\n' ${command#apt install } | sort)
		;;
	"autoreconf -fi && ./configure && make" | "make check" | "sudo make install")
		echo "the build and 'make distcheck' run it"
		target=${command##* }
		make -C "$top_builddir" -n "${target/make/all}" >/dev/null
		;;
	"truncate -s 10G disk0.img") bash -c "$command" ;;
	"rtrs-server "*)
		# Each section has its server.
		run_cleanups
		rm -f "$tmp/ready"
		mkfifo "$tmp/ready"
		bash -c "exec $command" >"$tmp/server.log" 2>&1 9>"$tmp/ready" </dev/null &
		server_pid=$!
		cleanup_fn stop_process "$server_pid"
		read -r -t "$TIMEOUT_S" word <"$tmp/ready"
		[ -n "$word" ]
		;;
	"ss -Hxl src $tmp/run/disk0.sock | grep -q . || rm -f $tmp/run/disk0.sock")
		# That of an nbdkit that lives stays.
		nbdkit -U "$tmp/run/disk0.sock" null
		wait_until "nbdkit" test -s "$tmp/nbdkit.pid"
		bash -c "$command"
		[ -S "$tmp/run/disk0.sock" ]
		kill -KILL "$(cat "$tmp/nbdkit.pid")"
		wait_until "the end of nbdkit" process_ended "$(cat "$tmp/nbdkit.pid")"
		[ -S "$tmp/run/disk0.sock" ]
		bash -c "$command"
		[ ! -e "$tmp/run/disk0.sock" ]
		;;
	"nbdkit "*)
		rm -f "$tmp/nbdkit.pid"
		bash -c "$command" >"$tmp/nbdkit.log" 2>&1 </dev/null
		wait_until "nbdkit" test -s "$tmp/nbdkit.pid"
		# What is started later by others writes that file, too.
		cleanup_fn stop_daemon "$(cat "$tmp/nbdkit.pid")"
		;;
	"rtrs-nbd "*)
		RUNTIME_DIRECTORY=$tmp/client bash -c "$command -P $tmp/gateway.pid" </dev/null
		gateway=$(cat "$tmp/gateway.pid")
		timeout "$TIMEOUT_S" nbdinfo --size "nbd+unix:///?socket=$tmp/run/gate0.sock"
		stop_daemon "$gateway"
		;;
	"rtrsctl show")
		wait_until "two paths, on the server" shows_two_paths "$RUNTIME_DIRECTORY"
		wait_until "two paths, on the client" shows_two_paths "$tmp/client"
		;;
	"rtrsctl top")
		# script(1) is the terminal, where the user leaves at once.
		printf q | TERM=xterm timeout "$TIMEOUT_S" script -q -e -c "$command" "$tmp/top"
		grep -q 'rtrsctl top, .* program' "$tmp/top"
		;;
	"rtrsctl check")
		# On the machine of the gateway, and on that of the server.
		RUNTIME_DIRECTORY=$tmp/client bash -c "$command" | grep -x -E \
			'RTRS OK - [0-9]+ sessions?, ([0-9]+) of \1 paths up \| .*'
		bash -c "$command" | grep '^RTRS OK - '
		;;
	uri=*)
		eval "$command"
		;;
	"rtrs-attach "* | "umount /mnt && rtrs-detach disk0")
		echo "run in a guest: tests/guest/test-attach-nbd.sh"
		[ -x "$top_srcdir/tests/guest/test-attach-nbd.sh" ]
		;;
	"modprobe nbd; nbd-client -unix $tmp/run/disk0.sock /dev/nbd0")
		guest_attaches /dev/nbd0
		;;
	"qemu-system-x86_64 -drive "*)
		if command -v qemu-system-x86_64 >/dev/null; then
			echo quit | timeout $((4 * TIMEOUT_S)) bash -c \
				"${command/.../-machine q35,accel=tcg -nodefaults -display none -S -monitor stdio}"
		else
			not_run_here "$command" "no qemu-system-x86_64"
		fi
		;;
	"nbdcopy --progress image.raw "*)
		timeout "$TIMEOUT_S" bash -c "$command"
		cmp -n $((3 << 20)) image.raw disk0.img
		;;
	"qemu-img convert "*)
		random_file image.raw $((3 << 20))
		timeout "$TIMEOUT_S" bash -c "${command/.../-n -f raw -O raw image.raw}"
		cmp -n $((3 << 20)) image.raw disk0.img
		;;
	"nbdfuse mnt "*)
		if can_fuse; then
			mkdir mnt
			fuse_run mnt/nbd bash -c "exec $command"
			cmp -n $((3 << 20)) image.raw mnt/nbd
			fuse_stop mnt "$fuse_pid"
		else
			not_run_here "$command" "$why"
		fi
		;;
	"nbdinfo "*) timeout "$TIMEOUT_S" bash -c "$command" ;;
	*) fail "README.md prints a command that no test runs: $command" ;;
	esac
	known=$((known + 1))
done 3<"$tmp/commands"
[ $known -eq "$(wc -l <"$tmp/commands")" ]
[ $known -ge 20 ]

# A table and a picture say more about speed than many words, and doc/speed.md has the rest.
[ "$(sed -n '/^## Speed/,/^## /p' "$readme" | sed '$d' | wc -w)" -le 200 ]

# Targets that the text names.
{ grep -o -E '`make [a-z][a-z-]*' "$readme" | tr -d '\140' | sort -u; } >"$tmp/targets"
[ -s "$tmp/targets" ]
while read -r _ target <&3; do
	make -C "$top_builddir" -n "$target" >/dev/null ||
		fail "README.md: make $target: no such target"
done 3<"$tmp/targets"

# Tests and parts of check.sh that tables name as proof.
# shellcheck disable=SC2016 # no commands
{ grep -o -E '`(sim/|guest/)?test-[a-z0-9*-]+(\.(sh|c))?`|--full=[a-z-]+' "$readme" | tr -d '\140' | sort -u; } >"$tmp/proofs"
[ "$(wc -l <"$tmp/proofs")" -ge 20 ]
while read -r proof <&3; do
	case $proof in
	--full=*) grep -q -E "^all_parts.*[\" ]${proof#*=}[\" ]" "$top_srcdir/check.sh" ||
		fail "README.md: check.sh has no $proof" ;;
	*) compgen -G "$top_srcdir/tests/$proof*" >/dev/null || compgen -G "$top_srcdir/tests/guest/$proof*" >/dev/null ||
		fail "README.md: there is no tests/$proof" ;;
	esac
done 3<"$tmp/proofs"
printed_commands_end
