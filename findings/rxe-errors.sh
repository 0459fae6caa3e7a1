#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Guess: what the InfiniBand specification says of failures holds for soft-RoCE, which people test with.  With rxe of
# Linux 6.12 it does not:
# - A queue that is armed for solicited completions alone is woken by a failure, too: rxe wakes nobody, neither for a
#   request that failed nor for a receive that was flushed.  Who sleeps so misses the end of the connection.
# - A message that is longer than the receive is LOC_LEN_ERR there, and REM_INV_REQ_ERR for the sender: rxe has
#   LOC_QP_OP_ERR and REM_OP_ERR, which send the search to the wrong place.
. "$(dirname "$0")/guest.sh"

guest_packages linux-image-6.12.118+deb13-amd64=6.12.118-1 python3-pyverbs=56.1-1
cp "$here/rxe_pair.py" "$tmp/trixie"
cat >"$tmp/trixie/program.py" <<'END'
import sys

sys.path.insert(0, '/')
from rxe_pair import e, pair, status
from pyverbs.device import Context
from pyverbs.qp import QPAttr

context = Context(name='rxe0')
for only in False, True:
    a, b = pair(context)
    a.sent.req_notify(only)
    a.write(1, b.mr.buf)
    print('armed for solicited only:' if only else 'armed for all:', 'request', a.woken(), status(a.sent), end=', ')
    a, b = pair(context)
    a.received.req_notify(only)
    a.receive(64)
    a.qp.modify(QPAttr(qp_state=e.IBV_QPS_ERR), e.IBV_QP_STATE)
    print('receive', a.woken(), status(a.received))
a, b = pair(context)
b.received.req_notify(True)
b.receive(64)
a.send(8, e.IBV_SEND_SOLICITED)
print('armed for solicited only: solicited', b.woken(), status(b.received))
a, b = pair(context)
b.receive(100)
a.send(200)
print('200 bytes to 100:', status(a.sent), status(b.received))
END
cat >"$tmp/job" <<'END'
ip addr add 10.0.2.15/24 dev eth0
ip link set eth0 up
rdma link add rxe0 type rxe netdev eth0
sleep 1
python3 -u /program.py
END
seen=$(in_guest "$tmp/job" rdma_rxe ib_uverbs)
expect "rxe" "$seen" \
"armed for all: request event REM_ACCESS_ERR, receive event WR_FLUSH_ERR
armed for solicited only: request no event REM_ACCESS_ERR, receive no event WR_FLUSH_ERR
armed for solicited only: solicited event SUCCESS
200 bytes to 100: REM_OP_ERR LOC_QP_OP_ERR"
