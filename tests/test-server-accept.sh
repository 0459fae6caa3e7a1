#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A copy of a server takes its place: on the same machine with a copy of the file, and on another
# machine by the commands of rtrs-guide(7), A DEAD SERVER IS REPLACED.  Requests that wait go on
# there, the FLUSH of a user who had unflushed writes fails once, and without the command nothing is
# let in.
. "$(dirname "$0")/own-namespace.sh" --net --mount
. ./tests/functions.sh
requires_server; requires_gateway; requires_plain_build
[ "$IN_NAMESPACE" = yes ] || skip "no namespaces of its own"
requires ip -Version
requires nbdsh --version
[ -e /etc/machine-id ] || skip "this machine has no /etc/machine-id"
ip link set lo up
ip addr add 192.0.2.10/24 dev lo

# become MACHINE: servers that start from now on are on another one.
become() {
	printf '%032x\n' "$1" >"$tmp/machine-id-$1"
	mount --bind "$tmp/machine-id-$1" /etc/machine-id
}
mkdir "$tmp/bin" "$tmp/client" "$tmp/etc" "$tmp/old" "$tmp/srv"
cp "$top_builddir/rtrsctl" "$tmp/bin/"
ln -s "$RTRS_SERVER" "$tmp/bin/rtrs-server"
PATH=$tmp/bin:$PATH
on_gateway=(env "RUNTIME_DIRECTORY=$tmp/client" timeout "$TIMEOUT_S")

# A user who does as it is told, and keeps the disk open.
mkfifo "$tmp/go" "$tmp/said"
# It has gone if the test has come to its end.
end_user() {
	kill "$1" 2>/dev/null || return 0
	wait "$1" || true
}
user_of() {
	timeout $((4 * TIMEOUT_S)) nbdsh -u "$1" -c - <<-END &
		def attempt(call):
		    try:
		        call()
		        return "done"
		    except nbd.Error:
		        return "failed"
		words = {
		    "stable": lambda: attempt(lambda: (h.pwrite(b"s" * 512, 0), h.flush())),
		    "unflushed": lambda: attempt(lambda: h.pwrite(b"u" * 512, 512)),
		    "waits": lambda: attempt(lambda: h.pwrite(b"w" * 512, 1024)),
		    "flush": lambda: attempt(h.flush),
		    "look": lambda: "".join(chr(h.pread(512, o)[0] or 45) for o in (0, 512, 1024)),
		}
		while True:
		    with open("$tmp/go") as f:
		        word = f.read().strip()
		    if word == "end":
		        break
		    said = words[word]()
		    with open("$tmp/said", "w") as f:
		        f.write(said + "\n")
	END
	user_pid=$!
	cleanup_fn end_user "$user_pid"
}
heard() {
	local said
	read -r -t "$TIMEOUT_S" said <"$tmp/said"
	[ "$said" = "$2" ] || fail "$1: $said, expected $2"
}
user_says() { echo "$1" >"$tmp/go"; heard "$1" "$2"; }

# ---- another file on the same machine ----
become 1
truncate -s 1M "$tmp/old/disk0.img"
start_server --listen tcp://192.0.2.10:1234 "disk0=$tmp/old/disk0.img"
export RUNTIME_DIRECTORY=$tmp/client
start_gateway server=192.0.2.10 export=disk0 sessname=gw
export RUNTIME_DIRECTORY=$tmp/state
user_of "$uri"
user_says stable "done"
expect_failure 1 "nothing to accept" "${on_gateway[@]}" rtrsctl server accept
cp "$tmp/old/disk0.img" "$tmp/old/copy"
user_says unflushed "done"
stop_server "$server_pid"
start_server --listen tcp://192.0.2.10:1234 "disk0=$tmp/old/copy"
wait_line "$gateway_log" "it is not used; if it is a copy of the former one: rtrsctl server accept"
echo waits >"$tmp/go"
"${on_gateway[@]}" rtrsctl server accept
heard waits "done"
wait_line "$gateway_log" 'disk0: another file takes its place, accepted by rtrsctl'
user_says flush failed
user_says flush "done"
user_says look "s-w"
# The former file is another one now, and one answer of the administrator is for one file.
refusals() { [ "$(grep -c "$1" "$gateway_log")" -ge "$2" ]; }
stop_server "$server_pid"
start_server --listen tcp://192.0.2.10:1234 "disk0=$tmp/old/disk0.img"
wait_until "another refusal" refusals 'it is not used; if it is a copy' 2
stop_server "$server_pid"
start_server --listen tcp://192.0.2.10:1234 "disk0=$tmp/old/copy"
user_says stable "done"

# ---- the guide: another machine at the same address ----
cp "$tmp/old/copy" "$tmp/srv/disk0.img"
user_says unflushed "done"
kill_process "$server_pid"
wait_line "$gateway_log" 'lost: .*reconnecting'
echo waits >"$tmp/go"
become 2
/usr/bin/python3 "$top_srcdir/tests/guide-commands.py" "$top_srcdir/man/rtrs-guide.pod" replaced \
	"$tmp" >"$tmp/commands"
cat "$tmp/commands"
checks=0
gateway_is_well() {
	"${on_gateway[@]}" rtrsctl --gateway check
}
while IFS=$'\t' read -r machine word <&3; do
	eval "command=$word"
	case $machine:$command in
	"server:cat > "* | "server:rtrs-server --config "*" --check") bash -c "$command" ;;
	"server:rtrs-server --config "*)
		start_server --config "${command##* }"
		;;
	"gateway:rtrsctl --gateway check")
		checks=$((checks + 1))
		if [ $checks -eq 1 ]; then
			wait_line "$gateway_log" 'another machine than the paths led to before'
			expect_failure 2 'another machine than .*: rtrsctl server accept' \
				"${on_gateway[@]}" bash -c "$command >&2"
		else
			wait_until "a gateway without a problem" gateway_is_well
		fi
		;;
	"gateway:rtrsctl --name disk0 server accept")
		"${on_gateway[@]}" bash -c "$command"
		;;
	*) fail "rtrs-guide(7) prints a command that no test runs: $machine: $command" ;;
	esac
done 3<"$tmp/commands"
[ $checks -eq 2 ]
heard waits "done"
user_says flush failed
user_says flush "done"
user_says look "s-w"
[ "$(od -An -c -j1024 -N1 "$tmp/srv/disk0.img")" = "   w" ]
grep -q 'another machine was accepted in the place of the server: writes that were not' \
	"$gateway_log"

# ---- the former machine is another one from now on, and the word is for one machine ----
kill_process "$server_pid"
become 1
start_server --listen tcp://192.0.2.10:1234 "disk0=$tmp/old/copy"
wait_until "another refusal" refusals 'another machine than the paths led to before' 2
kill_process "$server_pid"
"${on_gateway[@]}" rtrsctl server accept
become 3
cp "$tmp/srv/disk0.img" "$tmp/old/third"
start_server --listen tcp://192.0.2.10:1234 "disk0=$tmp/old/third"
wait_until "a third refusal" refusals 'another machine than the paths led to before' 3
echo end >"$tmp/go"
kill_process "$server_pid"
become 2
start_server --config "$tmp/etc/rtrs-server.conf"
wait_until "a gateway without a problem" gateway_is_well
