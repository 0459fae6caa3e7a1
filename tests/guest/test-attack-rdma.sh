#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# guest: kernel=6.12 timeout=240
# Writes at a wrong time or place, over RDMA: by a client, as in tests/test-attack.sh, and by a server.
. ./tests/functions.sh
. "$top_srcdir/tests/guest/lib.sh"
requires_server

ATTACK_SERVER=rdma://$ip4:1234 bash "$top_srcdir/tests/test-attack.sh"
# The other way round.
./tests/hostile/test-hsrv "rdma://$ip4:1300"
