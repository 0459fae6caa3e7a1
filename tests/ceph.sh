# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# A Ceph of one node for tests, in user space: a monitor and an osd of Debian's packages, on a
# sparse file in $tmp, without a manager, which IO and images do not need.  Source after
# functions.sh.
#
#	CEPH_NET="COMMAND..."	goes before the programs of Ceph: into a network namespace
#	CEPH_LEASE_RATIO=N	for an osd that is frozen for long, and not killed [0.8]
#	ceph_start		skips the test where the packages are missing; sets CEPH_CONF
#	osd_kill; osd_start; osd_freeze; osd_thaw
#	image NAME SIZE		makes it in the pool "rbd"
#	image_spec NAME		prints the target of an export
#	ceph_user NAME CAP...	makes client.NAME, as "ceph auth get-or-create" has it
#	image_export NAME FILE
# shellcheck disable=SC2154 # tmp

ceph_dir=$tmp/ceph
ceph_calls_s=$TIMEOUT_S		# a command of Ceph waits for ever by itself

# shellcheck disable=SC2086 # words
in_ceph() { ${CEPH_NET-} "$@"; }
ceph_() { in_ceph timeout "$ceph_calls_s" ceph "$@"; }
rbd_() { in_ceph timeout "$((3 * ceph_calls_s))" rbd "$@"; }

# Two ports that nobody has now.
free_ports() {
	in_ceph /usr/bin/python3 - <<-'PY'
	import socket
	taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
	print(*(s.getsockname()[1] for s in taken))
	PY
}

ceph_write_conf() {
	local v1 v2 classes
	read -r v1 v2 <<<"$(free_ports)"
	# Ceph 18 and 20 of Debian have a relative one, and look for it where the osd is started.
	classes=$(ceph-conf --name osd.0 --show-config-value osd_class_dir 2>>"$tmp/ceph.log")
	cat >"$CEPH_CONF" <<-CONF
	[global]
	fsid = $(cat /proc/sys/kernel/random/uuid)
	mon host = [v2:127.0.0.1:$v2,v1:127.0.0.1:$v1]
	public addr = 127.0.0.1
	auth cluster required = cephx
	auth service required = cephx
	auth client required = cephx
	keyring = $ceph_dir/keyring
	osd pool default size = 1
	osd pool default min size = 1
	osd pool default pg num = 8
	osd pool default pg autoscale mode = off
	osd crush chooseleaf type = 0
	mon allow pool size one = true
	mon warn on pool no redundancy = false
	run dir = $ceph_dir/run
	pid file = $ceph_dir/run/\$type.\$id.pid
	admin socket = $ceph_dir/run/\$cluster-\$name.\$pid.asok
	# Where a test that fails prints its end.
	log file = $tmp/\$name.log
	crash dir = $ceph_dir/log
	[mon]
	mon data = $ceph_dir/mon
	mon data avail warn = 1
	mon data avail crit = 1
	auth allow insecure global id reclaim = false
	[osd]
	osd data = $ceph_dir/osd
	osd class dir = /${classes#/}
	keyring = $ceph_dir/osd/keyring
	osd objectstore = bluestore
	bluestore block size = 4294967296
	bluestore block path =
	bluestore fsck on mount = false
	osd memory target = 939524096
	# A lease of reads is as long as this times the ratio.  An osd that comes back waits for the
	# end of leases that it gave before.  Shorter ones expire on a busy machine or in a freeze:
	# an osd without a peer that meets a request then keeps it "waiting for readable" for ever.
	osd heartbeat grace = 20
	osd pool default read lease ratio = ${CEPH_LEASE_RATIO-0.8}
	osd max object name len = 256
	CONF
}

osd_pid() { cat "$ceph_dir/run/osd.0.pid"; }
osd_is_up() { ceph_ osd stat | grep -q '1 up'; }

# The files of a killed osd are locked until the last of its threads has gone.
osd_start() {
	wait_until "the files of the osd" in_ceph ceph-osd -i 0
	wait_until "the osd" osd_is_up
}

osd_kill() {
	local pid
	pid=$(osd_pid)
	kill -KILL "$pid"
	wait_until "the end of the osd" process_ended "$pid"
}

osd_freeze() { stop_all_threads "$(osd_pid)"; }
osd_thaw() { kill -CONT "$(osd_pid)"; }

ceph_stop() {
	local file pid
	for file in "$ceph_dir"/run/*.pid; do
		pid=$(cat "$file") || continue
		kill -KILL "$pid" || continue
		wait_until "the end of Ceph" process_ended "$pid"
	done
}

ceph_start() {
	local ports uuid
	for program in ceph-mon ceph-osd ceph rbd; do
		command -v $program >/dev/null ||
			skip "needs a Ceph to try: install ceph-mon ceph-osd ceph-common"
	done
	"$RTRS_SERVER" x=rbd:none --check >"$tmp/out" 2>&1 || true
	grep 'expected rbd:POOL' "$tmp/out" ||
		skip "rtrs-server was built without librbd-dev"
	mkdir -p "$ceph_dir"/{mon,osd,run,log}
	export CEPH_CONF=$ceph_dir/ceph.conf
	ceph_write_conf
	ports=$(sed -n 's/^mon host = //p' "$CEPH_CONF")
	uuid=$(sed -n 's/^fsid = //p' "$CEPH_CONF")
	monmaptool --create --fsid "$uuid" --addv a "$ports" "$ceph_dir/monmap"
	cleanup_fn ceph_stop
	ceph-authtool --create-keyring "$ceph_dir/keyring" --gen-key -n mon. --cap mon 'allow *'
	ceph-authtool "$ceph_dir/keyring" --gen-key -n client.admin --cap mon 'allow *' \
		--cap osd 'allow *'
	in_ceph ceph-mon -i a --mkfs --monmap "$ceph_dir/monmap" --keyring "$ceph_dir/keyring" \
		>>"$tmp/ceph.log" 2>&1
	in_ceph ceph-mon -i a >>"$tmp/ceph.log" 2>&1
	wait_until "the monitor" ceph_ -s
	uuid=$(cat /proc/sys/kernel/random/uuid)
	ceph_ osd new "$uuid"
	ceph-authtool --create-keyring "$ceph_dir/osd/keyring" --gen-key -n osd.0
	ceph_ auth add osd.0 osd 'allow *' mon 'allow profile osd' -i "$ceph_dir/osd/keyring"
	in_ceph ceph-osd -i 0 --mkfs --osd-uuid "$uuid" >>"$tmp/ceph.log" 2>&1
	osd_start
	ceph_ osd pool create rbd 8
	ceph_ osd pool application enable rbd rbd
}

image() { rbd_ create --size "$2" "rbd/$1"; }
image_spec() { echo "rbd:rbd/$1,conf=$CEPH_CONF"; }
# image_export NAME FILE: the bytes of the image, by a reader of its own.
image_export() {
	rm -f "$2"
	rbd_ export --no-progress "rbd/$1" "$2"
}
ceph_user() { ceph_ auth get-or-create "client.$1" "${@:2}" >>"$ceph_dir/keyring"; }
