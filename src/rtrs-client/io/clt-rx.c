/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive half of a connection: finds the request of each answer.  Handlers (clt_wc_*) run on
 * the thread with the poll role.  Never blocks.
 *
 * The happy path: clt_rx_poll() dispatches completions; con_recv() posts the receive again, then
 * looks at the message: con_imm() splits an immediate, con_rkey_rsp() takes the chunk's new key
 * with it; con_answer() finds the slot by its number, and clt_tx_finish() gives the slot back.  A
 * heartbeat goes to the owner.
 *
 * Possible failures: a receive that fails, an answer to a request that is not in flight, an unknown
 * message, a key that was not invalidated although the answer says so: the connection fails. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "clt-io-priv.h"
#include "probe.h"
#include "rtrs-imm.h"

static struct clt_slot *slot_by_id(struct clt_con *con, uint32_t id)
{
	struct clt_io *io = con->att->io;
	struct clt_slot *ctl = clt_slot_ctl(io);

	if (con->cid == 0 && id == 0 && atomic_load_explicit(&ctl->state, memory_order_relaxed))
		return ctl;
	return id < io->slots.n ? &io->slots.slot[id] : NULL;
}

/* RACE: the sender may clear CLT_SLOT_POST meanwhile, and goes on with @slot when no other bit but
 * CLT_SLOT_INV is left.  So the fields of @slot are written before CLT_SLOT_ANSWER is cleared. */
static void con_answer(struct clt_con *con, uint32_t id, int status, bool invalidated)
{
	struct clt_slot *slot = slot_by_id(con, id);
	unsigned state = slot ? atomic_load_explicit(&slot->state, memory_order_acquire) : 0;
	unsigned ours = 0, waits;

	/* The sender of a request reads -ECONNABORTED as the end of the path, and would send the
	 * request again for ever. */
	if (status == -ECONNABORTED)
		status = -EIO;
	if (!(state & CLT_SLOT_ANSWER) || state >> CLT_SLOT_KEY_SHIFT != con->key) {
		clt_tx_fail(con, -EPROTO,
			    "connection %u: answer to request %u, which is not in flight",
			    con->cid, id);
		return;
	}
	if (slot->window) {
		int r = clt_key_answered(slot, invalidated);

		if (r < 0) {
			clt_tx_fail(con, r, "connection %u: answer to request %u, which says "
				    "that its key was invalidated, and it was not", con->cid, id);
			return;
		}
		ours = r ? CLT_SLOT_INV : 0;
	}
	PROBE3(request__answered, con->key, id, status);
	if (slot->op->kind == CLT_OP_IO)
		counter_add(&con->answered, 1);
	slot->posted = false;
	slot->status = status;
	while (!atomic_compare_exchange_weak(&slot->state, &state,
					     (state & ~CLT_SLOT_ANSWER) | ours))
		;
	waits = ((state & ~CLT_SLOT_ANSWER) | ours) & CLT_SLOT_WAITS;
	if (!waits)
		clt_tx_finish(con, slot, status);
	else if (waits & CLT_SLOT_SENT)
		atomic_fetch_add(&con->unsent, 1);
	else if (waits == CLT_SLOT_INV)
		clt_tx_invalidate(con, slot);
}

static void con_imm(struct clt_con *con, __be32 imm)
{
	uint32_t payload = rtrs_imm_payload(imm), id;
	int status;

	switch (rtrs_imm_type(imm)) {
	case RTRS_IO_RSP_IMM:
	case RTRS_IO_RSP_W_INV_IMM:
		rtrs_imm_io_rsp_split(payload, &id, &status);
		con_answer(con, id, status, rtrs_imm_type(imm) == RTRS_IO_RSP_W_INV_IMM);
		return;
	case RTRS_HB_MSG_IMM:
	case RTRS_HB_ACK_IMM:
		con->att->ops->heartbeat(con, rtrs_imm_type(imm));
		return;
	}
	clt_tx_fail(con, -EPROTO, "connection %u: immediate 0x%08x of unknown type",
		    con->cid, be32toh(imm));
}

/* Take a new chunk key, and the answer in the same message (doc/protocol.md 4). */
static void con_rkey_rsp(struct clt_con *con, const struct rtrs_msg_rkey_rsp *msg,
			 const struct ibv_wc *wc)
{
	struct clt_attempt *att = con->att;
	unsigned type = rtrs_imm_type(wc->imm_data);
	const char *why = "payload with an immediate that is no answer";
	uint32_t id = 0, rkey;
	int status = 0;

	if (type == RTRS_IO_RSP_IMM || type == RTRS_IO_RSP_W_INV_IMM) {
		rtrs_imm_io_rsp_split(rtrs_imm_payload(wc->imm_data), &id, &status);
		if (rtrs_rkey_rsp_decode(msg, wc->byte_len, &att->geom, id, &rkey, &why) == 0) {
			att->rbufs[id].rkey = rkey;
			con_answer(con, id, status, type == RTRS_IO_RSP_W_INV_IMM);
			return;
		}
	}
	clt_tx_fail(con, -EPROTO, "connection %u: %s", con->cid, why);
}

static void con_repost(struct clt_con *con, struct clt_recv *recv)
{
	struct ibv_sge sge;
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&con->recv_cqe };

	if (recv) {
		sge.addr = (uintptr_t)&recv->msg;
		sge.length = sizeof(recv->msg);
		sge.lkey = con->recvs_mr->lkey;
		wr.wr_id = (uintptr_t)&recv->cqe;
		wr.sg_list = &sge;
		wr.num_sge = 1;
	}
	if (fab_post_recv(con->fab, &wr) < 0)
		clt_tx_lost(con);
}

static void con_recv(struct clt_con *con, struct clt_recv *recv, const struct ibv_wc *wc)
{
	struct rtrs_msg_rkey_rsp msg;

	if (wc->status != IBV_WC_SUCCESS) {
		clt_tx_wc_fail(con, "a receive", wc);
		return;
	}
	rtrs_hb_rx(&con->att->hb);
	if (recv)
		msg = recv->msg;
	con_repost(con, recv);
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		con_imm(con, wc->imm_data);
	else if (recv && (wc->wc_flags & IBV_WC_WITH_IMM))
		con_rkey_rsp(con, &msg, wc);
	else if (!frwr_wc_may_inv(wc))
		clt_tx_fail(con, -EPROTO, "connection %u: unexpected message of %u bytes",
			    con->cid, wc->byte_len);
	else if (!clt_key_reminv(con, wc))
		clt_tx_fail(con, -EPROTO, "connection %u: invalidate of key 0x%x, which was "
			    "not asked for", con->cid, wc->invalidated_rkey);
}

static void clt_wc_recv(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	con_recv(container_of(cqe, struct clt_con, recv_cqe), NULL, wc);
}

static void clt_wc_recv_rkey(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	con_recv(fab_conn_context(conn), container_of(cqe, struct clt_recv, cqe), wc);
}

int clt_rx_post(struct clt_con *con, unsigned n)
{
	bool sized = con->att->new_rkey;

	con->recv_cqe.done = clt_wc_recv;
	con->nrecvs = sized ? n : 0;
	if (sized) {
		con->recvs = calloc(n, sizeof(*con->recvs));
		if (!con->recvs)
			return -ENOMEM;
		con->recvs_mr = fab_reg_mr(con->att->pd, con->recvs, n * sizeof(*con->recvs),
					   IBV_ACCESS_LOCAL_WRITE);
		if (!con->recvs_mr)
			return -errno;
	}
	for (unsigned i = 0; i < n; i++) {
		if (sized)
			con->recvs[i].cqe.done = clt_wc_recv_rkey;
		con_repost(con, sized ? &con->recvs[i] : NULL);
	}
	return 0;
}

void clt_rx_free(struct clt_con *con)
{
	if (con->recvs_mr)
		fab_dereg_mr(con->recvs_mr);
	free(con->recvs);
	con->recvs_mr = NULL;
	con->recvs = NULL;
}

int clt_rx_poll(struct clt_con *con, int budget)
{
	int n;

	clt_wait_batch_begin(con->att->io->wait);
	n = fab_dispatch(con->fab, budget);
	if (n == -ENOTCONN) {
		clt_tx_fail(con, -ECONNRESET, "connection %u: %s", con->cid,
			    fab_conn_cause(con->fab));
	}
	clt_wait_batch_end(con->att->io->wait);
	if (atomic_exchange(&con->has_inv, false))
		clt_tx_flush(con);
	return n;
}
