#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The files of contrib/examples as they stand: servers and gateways start with them on a machine
# that has their addresses, and the disks are where the comments of the files say.
. "$(dirname "$0")/own-namespace.sh" --net
. ./tests/functions.sh
requires_server; requires_gateway
[ "$IN_NAMESPACE" = yes ] || skip "no network namespace of its own"
requires ip -Version
requires nbdinfo --version
ip link set lo up
for address in 192.0.2.10 192.0.2.11 192.0.2.20 198.51.100.10 198.51.100.11; do
	ip addr add "$address/24" dev lo
done
examples=$top_srcdir/contrib/examples

# Each file stands in the table of README, and nothing else does.
(cd "$examples" && printf '%s\n' ./* | sed 's,^\./,,' | grep -v -x README) >"$tmp/files"
sed -n -E 's/^\t([a-z-]+\.[a-z]+)\t.*/\1/p' "$examples/README" | sort | diff "$tmp/files" -

# Files of others' programs: each is well formed, and right for its program where that is installed.
missing=()
/usr/bin/python3 - "$examples"/*.xml <<'END'
import sys, xml.etree.ElementTree as xml
for name in sys.argv[1:]:
    assert xml.parse(name).getroot().tag == "domain", name
END
if /usr/bin/python3 -c 'import yaml'; then
	# cloud-init's configuration of a gateway is that of gateway-tls.conf.
	/usr/bin/python3 - "$examples" >"$tmp/of-cloud-init" <<'END'
import sys, yaml
def load(name):
    return yaml.safe_load(open("%s/%s.yml" % (sys.argv[1], name)))
files = {f["path"]: f for f in load("cloud-init")["write_files"]}
key = files["/etc/rtrs/disk1.psk"]
assert key["permissions"] == "0600" and key["owner"].startswith("rtrs-nbd:"), key
assert all(f["defer"] for f in files.values()), "in front of the packages"
assert {"servers", "gateways"} == {play["hosts"] for play in load("ansible")}
checked = False
for play in load("ansible"):
    for task in play["tasks"]:
        copy = task.get("ansible.builtin.copy", {})
        if copy.get("dest", "").endswith(".psk"):
            assert copy["mode"] == "0600" and task["no_log"], task
            owner = copy["owner"]
        # A check as another user than that of the unit refuses its keys.
        check = " ".join([copy.get("validate", ""), task.get("ansible.builtin.command", "")])
        assert "--check" not in check or check.strip().startswith("runuser -u %s " % owner), check
        checked = checked or "--check" in check
assert checked
sys.stdout.write(files["/etc/rtrs/disk1.conf"]["content"])
END
	grep -v '^#' "$examples/gateway-tls.conf" | diff - "$tmp/of-cloud-init"
else
	missing+=("python3-yaml")
fi
if command -v cloud-init; then
	cloud-init schema --config-file "$examples/cloud-init.yml" | tee "$tmp/schema"
	grep -i '^valid ' "$tmp/schema"
else
	missing+=("cloud-init")
fi
if command -v ansible-playbook; then
	HOME=$tmp LC_ALL=C.UTF-8 ansible-playbook --syntax-check "$examples/ansible.yml"
else
	missing+=("ansible-core")
fi

# place FILE: where the table says, below $tmp.
place() {
	sed -n -E "s,^	$1	.*	(/etc/[^:]+):.*,\\1,p" "$examples/README"
}
# put FILE: the example is there, and its other files are below $tmp, too.
put() {
	local at

	at=$tmp$(place "$1")
	mkdir -p "$(dirname "$at")"
	sed -E "s,(= |- )/(etc|usr|var)/,\\1$tmp/\\2/," "$examples/$1" >"$at"
	echo "$at"
}
mkdir -p "$tmp/var/lib/rtrs-server"
truncate -s 8M "$tmp/var/lib/rtrs-server/disk0.img"
truncate -s 16M "$tmp/var/lib/rtrs-server/disk1.img"

# serve FILE: sets server_pid; the control socket is $tmp/server.ctl.
serve() {
	rm -f "$tmp/ready"
	mkfifo "$tmp/ready"
	"$RTRS_SERVER" --config "$(put "$1")" --control "$tmp/server.ctl" \
		--state-dir "$tmp/state" --ready-fd 9 >"$tmp/$1.log" 2>&1 9>"$tmp/ready" &
	server_pid=$!
	cleanup_fn stop_process "$server_pid"
	read -r -t "$TIMEOUT_S" _ <"$tmp/ready" || { cat "$tmp/$1.log"; fail "no start: $1"; }
}
# paths_are N: of the gateway, in any state that a path has.
paths_are() {
	"$top_builddir/rtrsctl" --socket "$tmp/gateway.ctl" show >"$tmp/shown"
	[ "$(grep -c -E '^ *path +[0-9]' "$tmp/shown")" -eq "$1" ]
}

serve server.conf
start_gateway config="$(put gateway.conf)" control="$tmp/gateway.ctl"
[ "$(nbdinfo --size "$uri")" -eq $((8 << 20)) ]
paths_are 2
for address in 192.0.2.10:9091 192.0.2.20:9092; do
	exec 5<>"/dev/tcp/${address%:*}/${address#*:}"
	printf 'GET /metrics HTTP/1.0\r\n\r\n' >&5
	grep -q '^rtrs_' <&5 || fail "no metrics at $address"
	exec 5>&-
done
stop_process "$gateway_pid"
stop_server "$server_pid"

mkdir -p "$tmp/etc/rtrs" "$tmp/etc/rtrs-server"
(
	umask 077
	for name in gateway1 backup1 gateway2; do
		"$top_builddir/rtrs-psk" $name >"$tmp/$name.psk"
	done
	cat "$tmp"/{gateway1,backup1,gateway2}.psk >"$tmp/etc/rtrs-server/keys.psk"
	cp "$tmp/gateway1.psk" "$tmp/etc/rtrs/disk1.psk"
)
serve server-tls.conf
disk1=$(put gateway-tls.conf)
start_gateway config="$disk1" control=none
[ "$(nbdinfo --size "$uri")" -eq $((16 << 20)) ]
start_gateway config="$disk1" control=none mode=ro tls-psk="$tmp/backup1.psk"
nbdinfo "$uri" | grep 'is_read_only: true'
refused() {
	must_fail timeout "$TIMEOUT_S" "$RTRS_NBD" -f -U "$tmp/refused.sock" config="$disk1" \
		control=none "$@" 2>"$tmp/refused"
	cat "$tmp/refused"
}
refused mode=rw tls-psk="$tmp/backup1.psk"
refused tls-psk="$tmp/gateway2.psk"
grep -F "no such export" "$tmp/refused"
stop_server "$server_pid"

put server.conf
put server-shared.conf
"$RTRS_SERVER" --config "$tmp$(place server.conf)" --check | tee "$tmp/checked"
grep -w disk2 "$tmp/checked"
start_gateway config="$(put gateway-shared.conf)" control="$tmp/gateway.ctl" \
	connect-timeout=forever
paths_are 4
stop_process "$gateway_pid"

# A device takes another kernel: guest/test-attach-units.sh.
if [ -x "$RTRS_ATTACH" ]; then
	"$RTRS_ATTACH" --check config="$(put attach.conf)" disk3
fi

# Proxmox VE calls its hook script with a machine and a phase: the gateways of this machine alone.
mkdir -p "$tmp/bin" "$tmp/etc/rtrs"
touch "$tmp"/etc/rtrs/{vm-100-disk-0,vm-100-disk-1,vm-1000-disk-0}.conf
sed "s, /etc/rtrs/, $tmp/etc/rtrs/," "$examples/proxmox.sh" >"$tmp/hook"
printf '#!/bin/sh\necho "$@" >>"%s"\n[ "$2" != "rtrs-nbd@vm-1000-disk-0.socket" ]\n' \
	"$tmp/called" >"$tmp/bin/systemctl"
chmod +x "$tmp/bin/systemctl"
hook() { PATH=$tmp/bin:$PATH sh "$tmp/hook" "$@"; }
: >"$tmp/called"
for phase in pre-start post-start pre-stop; do
	hook 100 $phase
done
unit() { echo "$1 rtrs-nbd@$2.socket rtrs-nbd@$2.service"; }
diff <(unit start vm-100-disk-0; unit start vm-100-disk-1) "$tmp/called"
hook 100 post-stop
[ "$(grep -c '^stop ' "$tmp/called")" -eq 2 ]
must_fail hook 1000 pre-start
hook 99 pre-start

command -v promtool >/dev/null || missing+=("prometheus")
[ ${#missing[@]} -eq 0 ] || skip "all but what needs these packages: ${missing[*]}"
config=$(put prometheus.yml)
mkdir -p "$tmp/usr/share/nbdkit-rtrs"
cp "$top_srcdir/contrib/alerts.yml" "$tmp/usr/share/nbdkit-rtrs"
promtool check config "$config" | tee "$tmp/promtool"
grep -F 'rules found' "$tmp/promtool"
