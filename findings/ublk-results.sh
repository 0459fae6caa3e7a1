#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: a result of a ublk server that is shorter than the request is an error, or the driver asks for the rest, and an
# errno reaches the program.  With ublk_drv of Linux 6.12:
# - Of a READ or a WRITE the driver asks for the rest.  A WRITE_ZEROES or a DISCARD with a short result is done: the
#   BLKZEROOUT of 64 KiB succeeds, and half of the data stays.
# - FLUSH that fails with EOPNOTSUPP is a success of fsync(), so durability is lost without an error.
# - WRITE_ZEROES that fails with EOPNOTSUPP fails BLKZEROOUT: nobody writes zeroes instead.
# - ENOSPC stays ENOSPC, and EPERM and EROFS are EIO.
. "$(dirname "$0")/guest.sh"

guest_packages linux-image-6.12.118+deb13-amd64=6.12.118-1 gcc=4:14.2.0-1 libc6-dev=2.41-12+deb13u5 \
	liburing-dev=2.9-1
cp "$here/ublk-results.c" "$tmp/trixie"
chroot "$tmp/trixie" gcc -D_GNU_SOURCE -Wall -O1 -o /program /ublk-results.c -luring
cat >"$tmp/job" <<'END'
/program
END
seen=$(in_guest "$tmp/job" ublk_drv)
expect "ublk_drv" "$seen" \
"whole: WRITE ok (requests 1, last byte new), READ ok (requests 1)
  WRITE_ZEROES ok (last byte zero), DISCARD ok (last byte zero), FLUSH ok
half: WRITE ok (requests 2, last byte new), READ ok (requests 2)
  WRITE_ZEROES ok (last byte old), DISCARD ok (last byte old), FLUSH ok
ENOSPC: WRITE ENOSPC (requests 1, last byte old), READ ENOSPC (requests 1)
  WRITE_ZEROES ENOSPC (last byte old), DISCARD ENOSPC (last byte old), FLUSH ENOSPC
EPERM: WRITE EIO (requests 1, last byte old), READ EIO (requests 1)
  WRITE_ZEROES EIO (last byte old), DISCARD EIO (last byte old), FLUSH EIO
EROFS: WRITE EIO (requests 1, last byte old), READ EIO (requests 1)
  WRITE_ZEROES EIO (last byte old), DISCARD EIO (last byte old), FLUSH EIO
EOPNOTSUPP: WRITE EOPNOTSUPP (requests 1, last byte old), READ EOPNOTSUPP (requests 1)
  WRITE_ZEROES EOPNOTSUPP (last byte old), DISCARD ok (last byte old), FLUSH ok"
