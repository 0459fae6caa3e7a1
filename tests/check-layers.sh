#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The include law: which directory below src/ may include headers of which, and which files may see
# which system headers.  And one that is like it: text becomes JSON in one function.
#
#	check-layers.sh [DIRECTORY THAT HAS src/]
#
# Prints each violation as FILE:LINE: and fails when there is one.
set -eu
root=${1:-${srcdir:-$(dirname "$0")/..}}
[ -d "$root/src" ] || { echo "$0: $root/src: not a directory"; exit 99; }
cd "$root"

files=$(find src -name '*.[ch]' | LC_ALL=C sort)
[ -n "$files" ] || { echo "$0: no C file below $root/src"; exit 99; }

# shellcheck disable=SC2086	# the names have no blanks
awk '
BEGIN {
	common = "src/common/"
	# directory -> directories whose headers it may include, besides its own
	uses[common "base"] = ""
	uses[common "ctl"] = common "base"
	uses[common "journal"] = common "base"
	uses[common "metrics"] = common "base"
	uses[common "opt"] = common "base"
	uses[common "secrets"] = common "base"
	uses[common "auth"] = common "base " common "secrets " common "fabric " common "rtrs"
	uses[common "fabric"] = common "base " common "secrets"
	uses[common "fabric/tcp"] = common "base " common "fabric"
	uses[common "fabric/verbs"] = common "base " common "fabric"
	uses[common "rtrs"] = common "base"
	uses[common "rnbd"] = common "base"
	uses["src/frwr"] = common "base " common "fabric"
	all = common "base " common "opt " common "ctl " common "metrics "
	all = all common "journal " common "secrets " common "fabric " common "rtrs "
	all = all common "rnbd " common "auth src/frwr"
	client = "src/rtrs-client/"
	uses[client "io"] = common "base " common "fabric " common "rtrs src/frwr"
	uses[client "loop"] = uses[client "io"] " " client "io"
	uses[client "path"] = uses[client "io"] " " client "io " common "auth " common "secrets"
	uses[client "sess"] = uses[client "path"] " " client "path"
	uses[client "dev"] = uses[client "sess"] " " client "sess " common "rnbd"
	uses[client "conf"] = uses[client "dev"] " " common "opt " common "metrics"
	uses[client "ctl"] = uses[client "conf"] " " client "conf " client "dev " common "ctl"
	uses[client "start"] = uses[client "ctl"] " " client "ctl"
	uses["src/nbdkit-rtrs-plugin"] = uses[client "start"] " " client "start src/nbd"
	server = "src/rtrs-server/"
	uses[server "reactor"] = common "base"
	uses["src/store"] = common "base " common "opt " common "rnbd " server "reactor"
	uses["src/store/file"] = uses["src/store"] " src/store"
	uses["src/store/mem"] = uses["src/store/file"]
	uses["src/store/rbd"] = uses["src/store/file"]
	uses[server "conf"] = common "base " common "opt " common "fabric " common "rtrs "
	uses[server "conf"] = uses[server "conf"] common "metrics "
	uses[server "conf"] = uses[server "conf"] common "rnbd src/store " server "reactor"
	rooms = server "reactor src/store " server "conf src/rtrs-server"
	uses[server "conf"] = uses[server "conf"] " " common "auth " common "secrets"
	uses[server "rtrs"] = common "base " common "auth " common "secrets " common "fabric "
	uses[server "rtrs"] = uses[server "rtrs"] common "rtrs src/frwr " rooms
	uses[server "rnbd"] = uses[server "rtrs"] " " server "rtrs " common "rnbd"
	uses[server "ctl"] = uses[server "rnbd"] " " server "rnbd " common "ctl"
	uses[server "ctl"] = uses[server "ctl"] " " common "metrics"
	uses[server "change"] = uses[server "ctl"] " " common "opt " server "ctl"
	uses["src/rtrs-server"] = all " " rooms " " server "rtrs " server "rnbd " server "ctl"
	uses["src/rtrs-server"] = uses["src/rtrs-server"] " " server "change"
	uses["src/rtrsctl"] = common "base " common "opt " common "ctl " common "secrets "
	uses["src/rtrsctl"] = uses["src/rtrsctl"] common "fabric " common "rtrs"
	uses["src/nbd"] = common "base"
	uses["src/rtrs-nbd"] = uses[client "start"] " " client "start " client "loop src/nbd "
	uses["src/rtrs-nbd"] = uses["src/rtrs-nbd"] common "journal"
	uses["src/rtrs-psk"] = common "base " common "opt " common "secrets"
	uses["src/rtrs-bench"] = uses[client "start"] " " client "start " client "loop"

	# what code without IO, sockets, threads and time may see
	n = split("assert.h endian.h errno.h infiniband/verbs.h inttypes.h limits.h " \
		  "linux/types.h stdarg.h stdatomic.h stdbool.h stddef.h stdint.h stdlib.h " \
		  "string.h zlib.h", a, " ")
	for (i = 1; i <= n; i++)
		pure_ok[a[i]] = 1

	# system header -> regular expression of the files that may include it
	only["liburing.h"] = "^src/rtrs-server/reactor/"
	only["seccomp.h"] = "^src/rtrs-server/filter(-calls)?\\.[ch]$"
	only["systemd/sd-journal.h"] = "^src/common/journal/"
	only["rbd/librbd.h"] = "^src/store/rbd/rbd-lib\\.h$"
	only["rados/librados.h"] = "^src/store/rbd/rbd-lib\\.h$"
	only["gnutls/gnutls.h"] = "^src/common/(auth/auth-crypto|secrets/cert(s|-names)|"
	only["gnutls/gnutls.h"] = only["gnutls/gnutls.h"] \
		"fabric/(fab-(tls|tls-session|tls-stream|tls-priv)|tcp/tcp-k?tls))\\.[ch]$"
	only["gnutls/crypto.h"] = "^src/common/(auth/auth-crypto|secrets/certs|fabric/fab-tls)\\.c$"
	only["nettle/curve25519.h"] = "^src/common/auth/auth-crypto\\.c$"
	only["microhttpd.h"] = "^src/common/metrics/metric-http\\.c$"
	only["nbdkit-plugin.h"] = "^src/nbdkit-rtrs-plugin/plugin\\.c$"
	only["jansson.h"] = "^src/(common/ctl|rtrsctl|rtrs-client/ctl)/|^src/rtrs-bench/report\\.c$|^src/rtrs-nbd/gate-clients\\.c$|^src/rtrs-server/ctl/"
	only["rdma/rdma_cma.h"] = "^src/common/fabric/verbs/[a-z-]+\\.c$"
	only["infiniband/verbs.h"] = "^src/(common/(fabric|rtrs)|frwr|rtrs-client/[a-z]+|rtrs-server)/"

	# header of ours -> likewise
	only["psk.h"] = "^src/(common/(secrets|auth)|rtrs-psk)/"
	only["certs.h"] = "^src/common/secrets/"
	only["srv.h"] = "^src/rtrs-server/(ctl/[a-z-]+|[a-z]+)\\.[ch]$"
	only["loop-impl.h"] = "^src/(common/base/loop(-poll)?\\.c|common/fabric/tcp/tcp-aside\\.h|"
	only["loop-impl.h"] = only["loop-impl.h"] "rtrs-server/reactor/reactor-ring\\.h)$"
	only["reactor-ring.h"] = "^src/(rtrs-server/reactor/|store/store-uring\\.c$|store/file/store-file-io\\.h$)"

	for (i = 1; i < ARGC; i++) {
		dir_of(ARGV[i])
		if (ARGV[i] ~ /\.h$/) {
			if (base in home)
				complain(ARGV[i], "has the same name as one in " home[base])
			home[base] = dir
		}
	}
}

function dir_of(path) {
	base = path
	sub(/.*\//, "", base)
	dir = substr(path, 1, length(path) - length(base) - 1)
}

function complain(where, what) {
	print where ": " what
	bad++
}

function check_own(where, h,	target) {
	if (h == "config.h")
		return
	if (!(h in home)) {
		complain(where, "\"" h "\" is not below src/")
		return
	}
	if ((h in only) && FILENAME !~ only[h])
		complain(where, "\"" h "\" is not for this file")
	target = home[h]
	if (target == dir)
		return
	if (h ~ /-priv\.h$/)
		complain(where, "\"" h "\" is private to " target)
	else if (index(" " uses[dir] " ", " " target " ") == 0)
		complain(where, dir " may not use " target " (\"" h "\")")
}

function check_system(where, h) {
	if ((dir == common "rtrs" || dir == common "rnbd" || base ~ /-fsm\.[ch]$/) && !(h in pure_ok))
		complain(where, "<" h "> in pure code")
	if ((h in only) && FILENAME !~ only[h])
		complain(where, "<" h "> is not for this file")
	if (h in home)
		complain(where, "<" h "> is ours: include it in quotes")
}

FNR == 1 {
	dir_of(FILENAME)
	if (!(dir in uses))
		complain(FILENAME, dir " has no rule: add it to check-layers.sh")
}

/^[ \t]*#[ \t]*include/ {
	where = FILENAME ":" FNR
	if (match($0, /"[^"]*"/))
		check_own(where, substr($0, RSTART + 1, RLENGTH - 2))
	else if (match($0, /<[^>]*>/))
		check_system(where, substr($0, RSTART + 1, RLENGTH - 2))
	else
		complain(where, "an include that cannot be read: " $0)
}

# Text becomes JSON in one function, because jansson refuses what is no UTF-8: ctl_json_text().
/json_string[n]?(_nocheck)?\(|json_pack.*s:s/ && FILENAME != common "ctl/ctl-json.c" {
	complain(FILENAME ":" FNR, "text for JSON goes through ctl_json_text() (\"s:o\")")
}

END {
	if (bad) {
		print bad " violations of the include law"
		exit 1
	}
}
' $files
