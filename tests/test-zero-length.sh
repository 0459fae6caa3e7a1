#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Requests of 0 bytes are an error of the client's (EINVAL) or nothing; the connection goes on.
. ./tests/functions.sh
requires_server; requires_plugin
requires nbdsh --version

random_file "$tmp/disk" 65536
start_server "disk=$tmp/disk"
start_nbdkit "server=127.0.0.1:$server_port" export=disk

export file=$tmp/disk
nbdsh_run "$uri" <<'END'
import os

content = open(os.environ["file"], "rb").read()
h.set_strict_mode(0)
for offset in (0, 1, 65535, 65536):
    for name, call in (("pread", lambda: h.pread(0, offset)),
                       ("pwrite", lambda: h.pwrite(b"", offset)),
                       ("zero", lambda: h.zero(0, offset)),
                       ("trim", lambda: h.trim(0, offset)),
                       ("cache", lambda: h.cache(0, offset))):
        try:
            call()
        except nbd.Error as e:
            # nbdkit's own answers.
            assert e.errno in ("EINVAL", "ENOSPC"), (name, offset, e)
assert h.pread(65536, 0) == content
h.flush()
END
[ "$(stat -c %s "$tmp/disk")" -eq 65536 ]
