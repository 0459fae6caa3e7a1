#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Each option, parameter and key of a file that a program of before has is taken by that of now,
# and what a file of before says is what it says now; units keep their names and sockets.  The
# tables are the help of before: an option that is not there any more, or takes another kind of
# value, is named.
. ./tests/functions.sh
. "$top_srcdir/tests/versions/lib.sh"
requires_plugin; requires_gateway

umask 077
"$top_builddir/rtrs-psk" alice >"$tmp/keys.psk"
truncate -s 1M "$tmp/disk"

# value_of NAME ARG: one that an option or key with this text behind its name takes; nothing for a
# flag, whose ARG is "-".
value_of() {
	case $1:$2 in
	*:-) ;;
	config:*) echo "$tmp/empty" ;;
	rw:*) echo randread ;;
	memory:*) echo 512M ;;
	*-verify-peer:*) echo true ;;
	*-psk:*) echo "$tmp/keys.psk" ;;
	listen:*) echo "unix:$tmp/rtrs.sock" ;;
	allow:* | read-only:*) echo uid:root ;;
	path:* | server:*) echo 127.0.0.1:1 ;;
	server-uid:*) echo root ;;
	cpus:*) echo 0 ;;
	ready-fd:*) echo 9 ;;
	*:MILLISECONDS*) echo 1000 ;;
	*:ADDR:PORT*) echo 127.0.0.1:9099 ;;
	*:PATH"|"none) echo none ;;
	*:SECONDS*) echo 30 ;;
	*:*"|"*) echo "${2%%|*}" ;;
	*:FILE | *:PATH | *:DIR) echo "$tmp/none" ;;
	*:SIZE | *:BYTES) echo 1M ;;
	*:LEVEL) echo info ;;
	*) echo 4 ;;
	esac
}
: >"$tmp/empty"

# taken NAME COMMAND...: it fails, and says nothing but that no-such-key is none.
taken() {
	local status=0

	timeout "$TIMEOUT_S" "${@:2}" </dev/null >"$tmp/out" 2>&1 || status=$?
	[ $status -ne 0 ] && [ $status -lt 124 ] && [ "$(grep -c no-such-key "$tmp/out")" -eq 1 ] &&
		! grep -v no-such-key "$tmp/out" ||
		wrong+="$(printf '\n%s: status %s: %s' "$1" $status "$(head -n 2 "$tmp/out")")"
	n=$((n + 1))
}

# options_of PROGRAM: "NAME ARG" a line, as the help of before has them behind dashes.
options_of() {
	"$BEFORE_BUILD/$1" --help | grep -o -E -- '--[a-z][a-z-]+(\[?=[^], ]+)?' |
		sed -E 's/^--//; s/\[?=/ /; /^[^ ]*$/s/$/ -/' | sort -u
}

# parameters: the same, of both gateways.
parameters() {
	"$BEFORE_BUILD/rtrs-nbd" --help | sed -E -n 's/^\[?([a-z-]+)=\]?([^ ]+) .*/\1 \2/p'
}

# counted WHAT LEAST: so many were tried.
counted() {
	[ "$n" -ge "$2" ] || fail "$1: $n options of before, expected $2 or more"
	echo "$1: $n"
	n=0
}

wrong='' n=0
for program in rtrs-server:30 rtrs-nbd:12 rtrsctl:8 rtrs-bench:20 rtrs-psk:0; do
	while read -r name arg <&3; do
		case $name in help | version | ready-fd | run) continue ;; esac
		value=$(value_of "$name" "$arg")
		taken "${program%:*} --$name" "$top_builddir/${program%:*}" \
			"--$name${value:+=$value}" --no-such-key
	done 3< <(options_of "${program%:*}")
	counted "options of $program" "${program#*:}"
done

gateway=("$top_builddir/rtrs-nbd" -f -U "$tmp/nbd.sock")
while read -r name arg <&3; do
	value=$(value_of "$name" "$arg")
	taken "rtrs-nbd $name=" "${gateway[@]}" "$name=$value" no-such-key=1
	preload=$(nbdkit_preload)
	taken "nbdkit rtrs $name=" env ${preload:+LD_PRELOAD=$preload} nbdkit -f -U "$tmp/nbd.sock" \
		"$top_builddir/.libs/nbdkit-rtrs-plugin.so" "$name=$value" no-such-key=1
	[ "$name" != config ] || continue
	printf '%s = %s\nno-such-key = 1\n' "$name" "$value" >"$tmp/conf"
	taken "a file of a gateway: $name" "${gateway[@]}" config="$tmp/conf"
done 3< <(parameters)
counted "parameters of gateways, three times" 90

# in_file LINES: of a server.
in_file() {
	printf '%s\nno-such-key = 1\n' "$1" >"$tmp/conf"
	taken "a file of a server: $1" "$top_builddir/rtrs-server" --config "$tmp/conf" --check
}
while read -r name arg <&3; do
	case $name in help | version | config | check | ready-fd) continue ;; esac
	value=$(value_of "$name" "$arg")
	in_file "$(printf '[server]\n%s = %s' "$name" "${value:-yes}")"
done 3< <(options_of rtrs-server)
counted "options of a server in a file" 28
# The keys of an export, which its help does not have.
export=$(printf '[export "x"]\npath = %s' "$tmp/disk")
for line in "mode = ro" "mode = rw" "direct = yes" "force = no" "shared = no" "iops = 1000" "iops-read = 2000" \
	"iops-write = none" "bps = 1M" "bps-read = 2G" "bps-write = 0" "burst = 10s" "burst = 10" "allow = 192.0.2.1" \
	"allow = 192.0.2.0/24, 2001:db8::/32, uid:root, unix, psk:a, cert:b" "allow = all" "read-only = psk:backup" \
	"read-only = none" "priority = realtime" "priority = best-effort:3" "priority = idle" \
		"priority = none"; do
	in_file "$export
$line"
done
in_file "$(printf '[export "r"]\npath = rbd:pool/image\nconf = /etc/ceph/ceph.conf\nid = rtrs\nluks = /etc/luks\nmode = ro')"
counted "keys of an export" 20
[ -z "$wrong" ] || fail "not taken any more:$wrong"

# One file, and what both make of it.
cat >"$tmp/whole.conf" <<-END
	# a comment
	; another one
	[server]
	listen = tcp://127.0.0.1:0
	  listen = unix:$tmp/rtrs.sock
	allow = 192.0.2.0/24
	allow: uid:root
	queue-depth=64
	tls-psk = $tmp/keys.psk   ; of all gateways
	tls = on
	[export "data 1"]
	path = $tmp/disk
	direct = yes
	[export "golden"]
	path = $tmp/a, b
	mode = ro
	iops = 1000
	END
for version in before now; do
	use "$version"
	"$RTRS_SERVER" --config "$tmp/whole.conf" --check >"$tmp/$version.plan"
	cat "$tmp/$version.plan"
done
# What listens and what is exported; the words may change.
for version in before now; do
	grep -o -E "${tmp}[^ ]*( b)?|127\.0\.0\.1:0|data 1|golden|readonly|direct" \
		"$tmp/$version.plan" | sort >"$tmp/$version.words"
done
[ "$(wc -l <"$tmp/before.words")" -ge 6 ]
diff "$tmp/before.words" "$tmp/now.words"

# Units have the names of before, at the same sockets, and the server is the same user.
kept_of() {
	grep -E '^(ListenStream|SocketGroup|StateDirectory|User|Group)=' "$1" | sort
}
while read -r unit; do
	[ -f "$now_build/$unit" ] || fail "there is no $unit any more"
	gone=$(comm -23 <(kept_of "$BEFORE_BUILD/$unit") <(kept_of "$now_build/$unit"))
	[ -z "$gone" ] || fail "$unit has no more: $gone"
	n=$((n + 1))
done < <(cd "$BEFORE_BUILD" && ls contrib/systemd/*.service contrib/systemd/*.socket)
counted "units" 6

# What is taken no more, as NEWS says under "Breaks", is refused by a line that says what to write.
use now
# changed LINE REGEX: a file of a server with this line of an export, which the version of before
# took.
changed() {
	printf '[export "x"]\n%s\n' "$1" >"$tmp/conf"
	"$BEFORE_BUILD/rtrs-server" --config "$tmp/conf" --check
	expect_failure 2 "$2" "$RTRS_SERVER" --config "$tmp/conf" --check
}
changed "path = $tmp/disk # x" \
	"'#' begins no comment after a value: expected path = $tmp/disk ; x, or quotes"
printf '[export "x"]\npath = %s\n' "$tmp/disk" >"$tmp/conf"
"$BEFORE_BUILD/rtrs-server" --config <(cat "$tmp/conf") --check
expect_failure 2 'expected a regular file' "$RTRS_SERVER" --config <(cat "$tmp/conf") --check
expect_failure 2 "--port 'nbd': expected a number from 0 to 65535" "$RTRS_NBD" -f -p nbd 127.0.0.1:1
