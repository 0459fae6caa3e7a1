#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# While a server is away another user takes the name of its socket: he gets no byte, the log says
# who he is and who was expected, and IO goes on when the server is back.  server-uid= says who else
# is let.
. ./tests/functions.sh
requires_server; requires_plugin; requires_root
requires nbdsh --version
requires setpriv --reuid 65534 --regid 65534 --clear-groups true

chmod 755 "$tmp"
mkdir "$tmp/socks"
chmod 777 "$tmp/socks"
truncate -s 1M "$tmp/disk"
at=unix:$tmp/socks/s

# Listens at $1, says when, and tells how many bytes came in, of all who connected.
cat >"$tmp/stranger.py" <<'END'
import select, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
print("listens", flush=True)
n = conns = 0
socks = [s, sys.stdin]
while True:
    for r in select.select(socks, [], [])[0]:
        if r is s:
            socks.append(s.accept()[0])
            conns += 1
        elif r is sys.stdin:
            print("%d bytes" % n if conns else "nobody", flush=True)
            sys.exit(0)
        else:
            got = len(r.recv(4096))
            n += got
            if not got:
                socks.remove(r)
END

# stranger_begin, stranger_end: as nobody.
stranger_begin() {
	rm -f "$tmp/socks/s"
	coproc stranger { setpriv --reuid 65534 --regid 65534 --clear-groups /usr/bin/python3 \
		-u "$tmp/stranger.py" "$tmp/socks/s"; }
	stranger_pid=$stranger_PID stranger_out=${stranger[0]} stranger_in=${stranger[1]}
	read -r -t "$TIMEOUT_S" word <&"$stranger_out"
	[ "$word" = listens ]
	chmod 777 "$tmp/socks/s"
}

stranger_end() {
	echo >&"$stranger_in"
	read -r -t "$TIMEOUT_S" word <&"$stranger_out"
	expect_exit "$stranger_pid" 0
	rm "$tmp/socks/s"
}

# ---- at the start ----

refused='user 65534 listens there, expected user 0 \(server-uid\)'
stranger_begin
expect_nbdkit_failure "$at.*$refused" "server=$at" export=disk control=none
if [ -x "$top_builddir/rtrs-bench" ]; then
	expect_failure 1 "$refused" "$top_builddir/rtrs-bench" "$at" disk
	expect_failure 1 'expected user 0 or 1 \(server-uid\)' "$top_builddir/rtrs-bench" \
		--server-uid=root,1 "$at" disk
	expect_failure 2 "--server-uid 'no such': expected" \
		"$top_builddir/rtrs-bench" "--server-uid=no such" "$at" disk
fi
stranger_end
[ "$word" = "0 bytes" ] || fail "the stranger got $word"

# ---- who is named ----

start_server --listen "$at" --control none "disk=$tmp/disk"
first=$server_pid
expect_nbdkit_failure 'user 0 listens there.*expected user 65534' "server=$at" export=disk \
	control=none server-uid=65534
for bad in '' ',' 'nobody,' 'no such' -1 4294967295 1,2,3,4,5,6,7,8,9; do
	expect_nbdkit_failure "server-uid=$bad: expected names of users of this machine, or numbers, at most 8" \
		"server=$at" \
		"server-uid=$bad"
done

# ---- while the server is away ----

start_nbdkit "server=$at" export=disk control=none "server-uid=65533,root"
cat >"$tmp/client.py" <<'END'
import nbd, sys
h = nbd.NBD()
h.connect_uri(sys.argv[1])
for line in sys.stdin:
    h.pwrite(line[:1].encode() * 4096, 0)
    print("ok", flush=True)
END
coproc client { timeout $((8 * TIMEOUT_S)) /usr/bin/python3 "$tmp/client.py" "$uri"; }
client_pid_=$client_PID client_out=${client[0]} client_in=${client[1]}
echo a >&"$client_in"
read -r -t "$TIMEOUT_S" word <&"$client_out"
[ "$word" = ok ]
kill_process "$first"
stranger_begin
echo b >&"$client_in"
wait_line "$nbdkit_log" \
	"$at.*user 65534 listens there, expected user 65533 or 0"
stranger_end
[ "$word" = "0 bytes" ] || fail "the stranger got $word"
start_server --listen "$at" --control none "disk=$tmp/disk"
read -r -t $((2 * TIMEOUT_S)) word <&"$client_out"
[ "$word" = ok ]
eval "exec $client_in>&-"
expect_exit "$client_pid_" 0
[ "$(head -c 1 "$tmp/disk")" = b ]
