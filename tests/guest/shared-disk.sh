# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Disks of two hosts: LIO exports backstores by SRP over soft-RoCE, and this guest logs in twice, as
# two initiators, two hosts to the device.  Source after lib.sh.
#
#	shared_target_up	modules, and the port
#	shared_store NAME DEVICE SIZE		a backstore, the next LUN of the port
#	shared_login N		the disks of initiator N, in the order of LUNs: disks_of[N]
#	shared_logout N		the disks of initiator N go, and what they have in flight
#
# LIO, because its backstore knows the reservations of several initiators; scsi_debug has one
# initiator, and QEMU 7.2 hands reservations to a disk of its host.  SRP and not tcm_loop, because
# PREEMPT AND ABORT never comes back there (doc/decisions.md D22).

# SCSI gives up a command that the fabric lost after 30 s, and SRP logs in again then.
TIMEOUT_S=$((2 * TIMEOUT_S))
target=/sys/kernel/config/target
shared_stores=()
declare -A disks_of

shared_target_up() {
	modprobe -a target_core_file sd_mod ib_srpt ib_srp
	[ -d /sys/kernel/config/target ] || mount -t configfs configfs /sys/kernel/config
	# Registrations outlive a loss of power: LIO keeps them here.
	mkdir -p /var/target/pr /var/target/alua
	gid=$(tr -d : </sys/class/infiniband/rxe0/ports/1/gids/0)
	port=$target/srpt/0x$gid
	cleanup_fn shared_target_down
	mkdir -p "$port/tpg"
	echo 5555 >"$target/srpt/discovery_auth/rdma_cm_port"
	echo 1 >"$port/tpg/enable"
}

shared_store() {
	local store=$target/core/fileio_0/$1 lun=$port/tpg/lun/lun_${#shared_stores[@]}

	mkdir -p "$store" "$lun"
	echo "fd_dev_name=$2,fd_dev_size=$3" >"$store/control"
	# The number by which all hosts know the disk.
	echo "rtrs-$1" >"$store/wwn/vpd_unit_serial"
	echo 1 >"$store/enable"
	echo 1 >"$store/attrib/emulate_write_cache"
	echo 1 >"$store/attrib/emulate_tpu"
	echo 1 >"$store/attrib/emulate_tpws"
	ln -s "$store" "$lun/store"
	shared_stores+=("$1")
}

shared_disks() {
	local disk

	for disk in /sys/class/scsi_disk/*/device/block/*; do
		if [ -b "/dev/${disk##*/}" ]; then echo "/dev/${disk##*/}"; fi
	done
}

shared_disks_are() {
	[ "$(shared_disks | wc -l)" -eq "$1" ]
}

shared_login() {
	local guid acl=$port/tpg/acls/0x000000000000000$1${gid:16} before i

	before=$(shared_disks)
	if [ ! -d "$acl" ]; then
		mkdir "$acl"
		for i in "${!shared_stores[@]}"; do
			mkdir "$acl/lun_$i"
			ln -s "$port/tpg/lun/lun_$i" "$acl/lun_$i/lun"
		done
	fi
	guid=$(cat /sys/module/ib_srpt/parameters/srpt_service_guid)
	guid=${guid#0x}
	# shellcheck disable=SC2154 # ip4: lib.sh
	echo "id_ext=$guid,ioc_guid=$guid,initiator_ext=$1,dest=$ip4:5555" \
		>/sys/class/infiniband_srp/srp-rxe0-1/add_target
	wait_until "disks of initiator $1" shared_disks_are \
		$(($(wc -w <<<"$before") + ${#shared_stores[@]}))
	disks_of[$1]=$(shared_disks | grep -vxF "${before:-none}" | tr '\n' ' ')
}

# The number of the host that has the disks of initiator $1.
shared_host() {
	local path

	path=$(readlink -f "/sys/class/block/$(basename "${disks_of[$1]%% *}")")
	sed -E 's,.*/host([0-9]+)/.*,\1,' <<<"$path"
}

# shared_drop HOST LEFT: the disks of this host go, "*" for all, and as many as LEFT stay.
shared_drop() {
	local rport

	for rport in /sys/class/srp_remote_ports/*; do
		[[ $rport = */port-$1:* ]] || continue
		[ ! -e "$rport/delete" ] || echo 1 >"$rport/delete"
	done
	wait_until "the end of disks" shared_disks_are "$2"
}

shared_logout() {
	shared_drop "$(shared_host "$1")" $(($(shared_disks | wc -l) - ${#shared_stores[@]}))
	disks_of[$1]=
}

shared_target_down() {
	local acl lun name

	shared_drop '*' 0
	echo 0 >"$port/tpg/enable"
	for acl in "$port"/tpg/acls/*; do
		[ -d "$acl" ] || continue
		for lun in "$acl"/lun_*; do
			rm -f "$lun/lun"
			rmdir "$lun"
		done
		rmdir "$acl"
	done
	for lun in "$port"/tpg/lun/lun_*; do
		[ -d "$lun" ] || continue
		rm -f "$lun/store"
		rmdir "$lun"
	done
	rmdir "$port/tpg" "$port"
	for name in "${shared_stores[@]}"; do
		rmdir "$target/core/fileio_0/$name"
	done
	rmdir "$target/core/fileio_0" "$target/srpt"
}
