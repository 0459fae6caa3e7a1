#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: /dev/nbd0 has the block size that the server announces as its minimum (NBD_INFO_BLOCK_SIZE), and requests up to
# its maximum.  nbd-client 3.26.1 uses neither: the device has sectors of 512 bytes and requests up to 1280 KiB, so a
# READ of one sector, or of 128 KiB, fails at a server with 4096 and 64 KiB.  "-b 4096" sets the sectors.  For the
# maximum the administrator has to write to queue/max_sectors_kb (Linux 6.12).
. "$(dirname "$0")/guest.sh"

guest_packages linux-image-6.12.118+deb13-amd64=6.12.118-1 nbdkit=1.42.3-1 nbd-client=1:3.26.1-6.1 \
	libnbd-bin=1.22.2-1+b1
cat >"$tmp/job" <<'END'
# seen NUMBER [OPTION...]: sizes of the device, and what READs of it say
seen() {
	local queue=/sys/block/nbd$1/queue
	nbd-client -unix /tmp/socket "/dev/nbd$1" "${@:2}" >/tmp/log 2>&1 || cat /tmp/log
	for lower in no yes; do
		[ $lower = no ] || echo 64 >"$queue/max_sectors_kb"
		echo "nbd-client${2:+ ${*:2}}: sector $(cat "$queue/logical_block_size")," \
			"largest request $(cat "$queue/max_sectors_kb") KiB"
		for size in 512 4096 65536 131072; do
			if dd if="/dev/nbd$1" of=/dev/null bs=$size count=1 iflag=direct 2>/tmp/log; then
				echo "  $size: ok"
			else
				echo "  $size: $(sed -n 's/^dd: .*: //p' /tmp/log)"
			fi
		done
	done
}
nbdkit -U /tmp/socket -P /tmp/pid --filter=blocksize-policy memory 64M blocksize-minimum=4096 \
	blocksize-preferred=16384 blocksize-maximum=65536 blocksize-error-policy=error
timeout 30 sh -c 'until [ -s /tmp/pid ]; do sleep 0.1; done'
nbdinfo --no-content 'nbd+unix:///?socket=/tmp/socket' | sed -n 's/^\tblock_size_\(m[^ ]*\) \([0-9]*\).*/announced: \1 \2/p'
seen 0
seen 1 -b 4096
END
seen=$(in_guest "$tmp/job" nbd)
expect "nbd-client" "$seen" \
"announced: minimum: 4096
announced: maximum: 65536
nbd-client: sector 512, largest request 1280 KiB
  512: Input/output error
  4096: ok
  65536: ok
  131072: Input/output error
nbd-client: sector 512, largest request 64 KiB
  512: Input/output error
  4096: ok
  65536: ok
  131072: ok
nbd-client -b 4096: sector 4096, largest request 1280 KiB
  512: Invalid argument
  4096: ok
  65536: ok
  131072: Input/output error
nbd-client -b 4096: sector 4096, largest request 64 KiB
  512: Invalid argument
  4096: ok
  65536: ok
  131072: ok"
