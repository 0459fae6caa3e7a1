# SPDX-License-Identifier: BSD-3-Clause
"""For findings about rxe: two connected queue pairs of one process."""
import os
import select
import time

import pyverbs.enums as e
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ, CompChannel
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

ALL = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_WRITE
STATUS = {getattr(e, name): name[7:] for name in dir(e)
          if name.startswith('IBV_WC_') and name.endswith(('_ERR', 'SUCCESS'))}


def descriptors():
    """Those of events: the device's one, and one for each channel."""
    found = set()
    for fd in os.listdir('/proc/self/fd'):
        try:
            if 'infinibandevent' in os.readlink('/proc/self/fd/' + fd):
                found.add(int(fd))
        except FileNotFoundError:
            pass
    return found


class End:
    def __init__(self, context):
        before = descriptors()
        self.context = context
        self.pd = PD(context)
        self.channel = CompChannel(context)
        self.fd, = descriptors() - before
        self.sent = CQ(context, 16, None, self.channel, 0)
        self.received = CQ(context, 16, None, self.channel, 0)
        self.mr = MR(self.pd, 65536, ALL)
        cap = QPCap(max_send_wr=8, max_recv_wr=8, max_send_sge=1, max_recv_sge=1)
        self.qp = QP(self.pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.sent, rcq=self.received, cap=cap, sq_sig_all=1))

    def connect(self, peer, retries):
        gid = next(i for i in range(16) if '0000:ffff:' in str(self.context.query_gid(1, i)))
        a = QPAttr(qp_state=e.IBV_QPS_INIT, port_num=1, path_mtu=e.IBV_MTU_1024)
        a.qp_access_flags = ALL
        a.dest_qp_num = peer.qp.qp_num
        a.rq_psn = a.sq_psn = a.rnr_retry = a.max_rd_atomic = a.max_dest_rd_atomic = 1
        a.min_rnr_timer = 12
        a.timeout = 14          # 67 ms
        a.retry_cnt = retries
        route = GlobalRoute(dgid=self.context.query_gid(1, gid), sgid_index=gid)
        a.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        self.qp.modify(a, e.IBV_QP_STATE | e.IBV_QP_PKEY_INDEX | e.IBV_QP_PORT | e.IBV_QP_ACCESS_FLAGS)
        a.qp_state = e.IBV_QPS_RTR
        self.qp.modify(a, e.IBV_QP_STATE | e.IBV_QP_AV | e.IBV_QP_PATH_MTU | e.IBV_QP_DEST_QPN | e.IBV_QP_RQ_PSN |
                       e.IBV_QP_MAX_DEST_RD_ATOMIC | e.IBV_QP_MIN_RNR_TIMER)
        a.qp_state = e.IBV_QPS_RTS
        self.qp.modify(a, e.IBV_QP_STATE | e.IBV_QP_TIMEOUT | e.IBV_QP_RETRY_CNT | e.IBV_QP_RNR_RETRY |
                       e.IBV_QP_SQ_PSN | e.IBV_QP_MAX_QP_RD_ATOMIC)

    def send(self, length, flags=0):
        self.qp.post_send(SendWR(num_sge=1, sg=[SGE(self.mr.buf, length, self.mr.lkey)], opcode=e.IBV_WR_SEND,
                                 send_flags=flags))

    def write(self, key, address):
        request = SendWR(num_sge=1, sg=[SGE(self.mr.buf, 8, self.mr.lkey)], opcode=e.IBV_WR_RDMA_WRITE)
        request.set_wr_rdma(key, address)
        self.qp.post_send(request)

    def receive(self, length):
        self.qp.post_recv(RecvWR(num_sge=1, sg=[SGE(self.mr.buf, length, self.mr.lkey)]))

    def woken(self):
        """Whether the channel has an event within three seconds."""
        return 'event' if select.select([self.fd], [], [], 3)[0] else 'no event'


def pair(context, retries=6):
    a, b = End(context), End(context)
    a.connect(b, retries)
    b.connect(a, retries)
    return a, b


def status(cq, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        n, completions = cq.poll(1)
        if n:
            return STATUS[completions[0].status]
        time.sleep(0.01)
    return 'none'
