#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A hook script of Proxmox VE: the gateways of a virtual machine start before it, and stop after it.  Those of the
# machine 100 have the files /etc/rtrs/vm-100-*.conf.
#   install -m 755 proxmox.sh /var/lib/vz/snippets/rtrs.sh; qm set 100 --hookscript local:snippets/rtrs.sh
set -eu
vm=$1 phase=$2

for conf in /etc/rtrs/vm-"$vm"-*.conf; do
	[ -e "$conf" ] || continue
	name=${conf##*/}
	name=${name%.conf}
	case $phase in
	# The machine does not start if this fails.
	pre-start) systemctl start "rtrs-nbd@$name.socket" "rtrs-nbd@$name.service" ;;
	post-stop) systemctl stop "rtrs-nbd@$name.socket" "rtrs-nbd@$name.service" ;;
	esac
done
