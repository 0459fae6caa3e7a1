#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=200 full
# guest: kernel=6.1 timeout=200 full
# The kernel's NBD client on the gateway: file systems made and filled over one kind of socket and
# RDMA are whole over the other and tcp.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server; requires_plugin
command -v nbd-client >/dev/null || skip "nbd-client is not installed"
requires mkfs.xfs -V

truncate -s 320M "$tmp/disk"
[ -x ./fab-conformance-verbs ] || skip "built without rdma-core"
start_server --listen tcp://127.0.0.1:0 --listen "rdma://$ip4:1234" disk="$tmp/disk"
over_rdma=("$ip4:1234" transport=rdma)
over_tcp=("127.0.0.1:$server_port" transport=tcp)
mkdir "$tmp/mnt"
sums() {
	( cd "$tmp/mnt" && find . -type f -print0 | sort -z | xargs -0 sha256sum )
}

# round FS MKFS-OPTION FIRST-SOCKET SECOND-SOCKET CHECK...
round() {
	local fs=$1 option=$2 first=$3 second=$4

	shift 4
	nbd_gateway "$first" "${over_rdma[@]}" export=disk
	nbd_attach
	"mkfs.$fs" "$option" /dev/nbd0
	mount -t "$fs" /dev/nbd0 "$tmp/mnt"
	cp -a "$top_srcdir/src" "$top_srcdir/man" "$tmp/mnt/"
	# Many small files, a large one, and holes in the tree.
	for i in $(seq 200); do
		echo "$i" >"$tmp/mnt/src/small-$i"
	done
	random_file "$tmp/mnt/large" 30000001
	rm -r "$tmp/mnt/src/common"
	mv "$tmp/mnt/man" "$tmp/mnt/src/man"
	sums >"$tmp/$fs.sums"
	umount "$tmp/mnt"
	"$@" /dev/nbd0
	nbd_detach
	stop_process "$nbdkit_pid"

	nbd_gateway "$second" "${over_tcp[@]}" export=disk
	nbd_attach -readonly
	"$@" /dev/nbd0
	mount -t "$fs" -o ro /dev/nbd0 "$tmp/mnt"
	sums | cmp - "$tmp/$fs.sums"
	umount "$tmp/mnt"
	nbd_detach
	stop_process "$nbdkit_pid"
}

round ext4 -q unix tcp fsck.ext4 -f -n
# -f: the device holds ext4.
round xfs -f tcp unix xfs_repair -n
