# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# For tests of units in a guest: systemd as process 1 of a namespace, with our units and without the
# host's.  Sourced behind lib.sh.
systemd=/lib/systemd/systemd
[ -x $systemd ] || skip "systemd is not installed"

# value UNIT PATTERN: the part in parentheses of the unit's line.
value() {
	sed -n "s|^ExecStart=$2.*|\\1|p" "$top_builddir/contrib/systemd/$1"
}

# copy_units: ours are all that systemd finds below /etc.
copy_units() {
	rm -rf /etc/systemd/system/* /lib/systemd/system/*.wants /lib/systemd/system-generators/*
	cp "$top_builddir"/contrib/systemd/*.{service,socket} \
		"$top_srcdir/contrib/systemd/rtrs-servers.target" \
		/etc/systemd/system
}

# start_systemd: nothing of the host's starts but the journal.  Sets manager, its process, and one,
# process 1 of the namespace.
start_systemd() {
	cat >/etc/systemd/system/rtrs-test.target <<END
[Unit]
DefaultDependencies=no
Wants=systemd-journald.service
AllowIsolate=yes
END
	: >/etc/fstab
	mkdir -p /sys/fs/cgroup /var/log/journal
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	cleanup_fn umount --lazy /sys/fs/cgroup
	# By this folder rules of udev know a systemd that runs: LVM's ask it to activate volumes.
	cleanup_fn rm -rf /run/systemd/system
	systemd_log=$tmp/systemd.log
	# systemd mounts credentials in a namespace of its own.
	unshare --propagation=shared --pid --fork --mount-proc --kill-child \
		env -i PATH="$PATH" container=guest \
		$systemd --system --unit=rtrs-test.target --log-target=console --log-level=notice \
		</dev/null >"$systemd_log" 2>&1 &
	manager=$!
	cleanup_fn kill_process $manager
	# systemd answers processes of its namespace only.
	wait_until "process 1" pgrep -P $manager
	one=$(pgrep -P $manager)
	wait_until "systemd" booted
}

# in_units COMMAND...: as a process of the namespace.
in_units() {
	nsenter --target "$one" --pid --mount "$@"
}

systemctl() {
	in_units systemctl "$@"
}

booted() {
	systemctl is-active rtrs-test.target
}

# must_start UNIT...: or what the journal has of them.
must_start() {
	systemctl start "$@" && return
	systemctl status "$@"
	journalctl --no-pager -n 40
	fail "does not start: $*"
}
