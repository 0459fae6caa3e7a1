/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive half of a connection: finds the request of each answer.  Handlers (clt_wc_*) run on
 * the thread with the poll role.  Never blocks.
 *
 * The happy path: clt_rx_poll() dispatches completions; con_recv() has the receive posted again,
 * and looks at the message: con_imm() splits an immediate, con_rsp() takes the chunk's new key with
 * it; con_answer() finds the slot by its number, and clt_tx_finish() gives the slot back.  A
 * heartbeat goes to the owner.
 *
 * Possible failures: a receive that fails, an answer to a request that is not in flight, an unknown
 * message, a key that was not invalidated although the answer says so: the connection fails. */
#include <errno.h>
#include <stdlib.h>

#include "clt-io-priv.h"
#include "counter.h"
#include "rtrs-imm.h"

#define REPOST_BATCH 32u		/* receives of one post */

static struct clt_slot *slot_by_id(struct clt_con *con, uint32_t id)
{
	struct clt_io *io = con->att->io;
	struct clt_slot *ctl = clt_slot_ctl(io);

	if (con->cid == 0 && id == 0 && atomic_load_explicit(&ctl->state, memory_order_relaxed))
		return ctl;
	return id < io->slots.n ? &io->slots.slot[id] : NULL;
}

/* The error of an answer that breaks the protocol.  With digests it has changed on its way. */
static int con_error(const struct clt_con *con)
{
	return con->att->digest == CLT_DIGEST_ON ? -EBADMSG : -EPROTO;
}

/* Does the answer to @slot, with @imm and @msg, have the digest of what came?  If not, @con fails,
 * and the request is sent again.  With digests only. */
static bool con_digest_fits(struct clt_con *con, const struct clt_slot *slot, __be32 imm,
			    const struct rtrs_msg_rsp *msg, int status)
{
	const struct clt_attempt *att = con->att;
	bool has_data = !status && clt_mem_has_data(slot, RTRS_DIR_READ);
	char asked[160] = "a message of the session";
	struct rtrs_digest_pair pair;

	if (!msg) {
		clt_tx_fail(con, -EBADMSG, "connection %u: answer to request %u without a digest",
			    con->cid, slot->id);
		return false;
	}
	if (rtrs_digest_fits(msg, sizeof(msg->key), imm,
			     has_data ? clt_mem_data(slot, att) : NULL, has_data ? slot->len : 0,
			     &pair))
		return true;
	if (slot->op->tell)
		slot->op->tell(slot->op, slot->off, slot->len, asked, sizeof(asked));
	clt_tx_fail(con, -EBADMSG, "connection %u: an answer did not arrive as it was sent: its "
		    "digest is %08x, expected %08x: %s", con->cid, pair.found, pair.expected,
		    asked);
	return false;
}

/* Take the answer with @imm; @msg: its message, NULL: it has none.
 *
 * RACE: the sender may clear CLT_SLOT_POST meanwhile, and goes on with @slot when no other bit but
 * CLT_SLOT_INV is left.  So the fields of @slot are written before CLT_SLOT_ANSWER is cleared. */
static void con_answer(struct clt_con *con, __be32 imm, const struct rtrs_msg_rsp *msg)
{
	struct clt_slot *slot;
	unsigned state, ours = 0, waits;
	uint32_t id;
	int status;

	rtrs_imm_io_rsp_split(rtrs_imm_payload(imm), &id, &status);
	slot = slot_by_id(con, id);
	state = slot ? atomic_load_explicit(&slot->state, memory_order_acquire) : 0;
	if (!(state & CLT_SLOT_ANSWER) || state >> CLT_SLOT_KEY_SHIFT != con->key) {
		clt_tx_fail(con, con_error(con),
			    "connection %u: answer to request %u, which is not in flight",
			    con->cid, id);
		return;
	}
	if (con->att->digest == CLT_DIGEST_ON && !con_digest_fits(con, slot, imm, msg, status))
		return;
	/* The sender of a request reads -ECONNABORTED as the end of the path, and would send the
	 * request again for ever. */
	if (status == -ECONNABORTED)
		status = -EIO;
	if (slot->window) {
		int r = clt_key_answered(slot, rtrs_imm_type(imm) == RTRS_IO_RSP_W_INV_IMM);

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
	switch (rtrs_imm_type(imm)) {
	case RTRS_IO_RSP_IMM:
	case RTRS_IO_RSP_W_INV_IMM:
		con_answer(con, imm, NULL);
		return;
	case RTRS_HB_MSG_IMM:
	case RTRS_HB_ACK_IMM:
		con->att->ops->heartbeat(con, rtrs_imm_type(imm));
		return;
	}
	clt_tx_fail(con, -EPROTO, "connection %u: immediate 0x%08x of unknown type",
		    con->cid, be32toh(imm));
}

/* Take a new chunk key (doc/protocol.md 4) from the message of an answer.  Returns NULL, or the
 * rule that the message breaks. */
static const char *con_take_key(const struct clt_con *con, const struct rtrs_msg_rsp *msg,
				const struct ibv_wc *wc)
{
	struct clt_attempt *att = con->att;
	unsigned type = rtrs_imm_type(wc->imm_data);
	const char *why = NULL;
	uint32_t id, rkey;
	int status;

	if (type != RTRS_IO_RSP_IMM && type != RTRS_IO_RSP_W_INV_IMM)
		return "payload with an immediate that is no answer";
	if (att->digest == CLT_DIGEST_ON && wc->byte_len < sizeof(*msg))
		return "answer that is too short for a digest";
	rtrs_imm_io_rsp_split(rtrs_imm_payload(wc->imm_data), &id, &status);
	if (rtrs_rkey_rsp_decode(&msg->key, wc->byte_len, &att->geom, id, &rkey, &why) == 0 &&
	    att->new_rkey)
		att->rbufs[id].rkey = rkey;
	return why;
}

/* Take an answer with a message. */
static void con_rsp(struct clt_con *con, const struct rtrs_msg_rsp *msg, const struct ibv_wc *wc)
{
	const char *why = con_take_key(con, msg, wc);

	if (why)
		clt_tx_fail(con, con_error(con), "connection %u: %s", con->cid, why);
	else
		con_answer(con, wc->imm_data, msg);
}

static void con_post_sized(struct clt_con *con, struct clt_recv *recv)
{
	struct ibv_sge sge = { (uintptr_t)&recv->msg, sizeof(recv->msg), con->recvs_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&recv->cqe, .sg_list = &sge, .num_sge = 1 };

	if (fab_post_recv(con->fab, &wr) < 0)
		clt_tx_lost(con);
}

/* Post the empty receives that are due, with one call. */
static void con_post_empty(struct clt_con *con)
{
	struct ibv_recv_wr wr[REPOST_BATCH], *next = NULL;

	while (con->due) {
		struct ibv_recv_wr *w = &wr[--con->due];

		w->wr_id = (uintptr_t)&con->recv_cqe;
		w->next = next;
		w->sg_list = NULL;
		w->num_sge = 0;
		next = w;
	}
	if (fab_post_recv(con->fab, next) < 0)
		clt_tx_lost(con);
}

/* Post the receive @recv, or an empty one, which goes with others.  An attempt without windows has
 * a spare receive for each permit, so the server finds one for each request meanwhile. */
static void con_post_recv(struct clt_con *con, struct clt_recv *recv)
{
	const struct clt_attempt *att = con->att;
	unsigned batch = clt_key_is_window(att->mode) ? 1 : MIN(att->depth, REPOST_BATCH);

	if (recv)
		con_post_sized(con, recv);
	else if (++con->due == batch)
		con_post_empty(con);
}

static void con_recv(struct clt_con *con, struct clt_recv *recv, const struct ibv_wc *wc)
{
	struct rtrs_msg_rsp msg;

	if (wc->status != IBV_WC_SUCCESS) {
		clt_tx_wc_fail(con, "a receive", wc);
		return;
	}
	rtrs_hb_rx(&con->att->hb);
	if (recv)
		msg = recv->msg;
	con_post_recv(con, recv);
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		con_imm(con, wc->imm_data);
	else if (recv && (wc->wc_flags & IBV_WC_WITH_IMM))
		con_rsp(con, &msg, wc);
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
	bool sized = con->att->new_rkey || con->att->digest != CLT_DIGEST_NONE;

	con->recv_cqe.done = clt_wc_recv;
	con->due = 0;		/* those of the last attempt are gone with it */
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
		con_post_recv(con, sized ? &con->recvs[i] : NULL);
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
	if (n == -ENOTCONN)
		clt_tx_fail(con, -ECONNRESET, "connection %u: %s", con->cid,
			    fab_conn_cause(con->fab));
	clt_wait_batch_end(con->att->io->wait);
	if (atomic_exchange(&con->has_inv, false))
		clt_tx_flush(con);
	return n;
}
