/* SPDX-License-Identifier: BSD-3-Clause */
/* What arrives for a path made by hand: events of its connections, INFO_RSP, answers with their
 * keys, heartbeats.  What no server may send ends the program. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "hpath.h"
#include "rtrs-imm.h"
#include "rtrs-req.h"

#define CON0_RECVS 1024

/* ---- events ---- */

/* What any of its connections is told holds for the path. */
static void take_geometry(struct hpath *p, const struct fab_event *ev)
{
	const char *why;

	if (rtrs_conn_rsp_decode(ev->private_data, ev->private_data_len, false, &p->rsp, &why))
		die("accepted with %zu bytes: %s", ev->private_data_len, why);
	if (p->rsp.auth == RTRS_AUTHS_ASKS)
		return;
	expect(!p->rsp.status && rtrs_info_rsp_len(p->rsp.queue_depth) <= HINFO_LEN);
	expect(!rtrs_geom_init(&p->geom, p->rsp.queue_depth, p->rsp.max_io_size,
			       p->rsp.max_hdr_size));
	if (!p->rbufs)
		p->rbufs = calloc(p->rsp.queue_depth, sizeof(*p->rbufs));
	expect(p->rbufs);
}

void hpath_event(const struct fab_event *ev)
{
	struct hcon *con = fab_conn_context(ev->conn);
	struct rtrs_conn_rsp rsp;
	const char *why;

	switch (ev->type) {
	case FAB_EVENT_ROUTE_RESOLVED:
		con->state = H_RESOLVED;
		break;
	case FAB_EVENT_ESTABLISHED:
		con->state = H_UP;
		take_geometry(con->path, ev);
		break;
	case FAB_EVENT_REJECTED:
		con->state = H_REFUSED;
		if (rtrs_conn_rsp_decode(ev->private_data, ev->private_data_len, true, &rsp, &why))
			die("rejected with %zu bytes: %s", ev->private_data_len, why);
		con->status = rsp.status;
		con->path->refusal = rsp.refusal;
		break;
	case FAB_EVENT_UNREACHABLE:
		con->state = H_UNREACHABLE;
		con->status = ev->status;
		break;
	case FAB_EVENT_DISCONNECTED:
		fab_disconnect(ev->conn);
		break;
	default:
		die("event %d for a client", ev->type);
	}
}

/* ---- completions ---- */

static struct rtrs_msg_rkey_rsp *key_recv(struct hpath *p, unsigned cid, unsigned turn)
{
	return &p->keys[cid * HRECVS + turn % HRECVS];
}

static void post_recvs(struct hpath *p, unsigned cid, unsigned n)
{
	struct hcon *con = &p->cons[cid];

	while (n--) {
		struct ibv_sge sge = { (uintptr_t)key_recv(p, cid, con->recvs_posted++),
				       sizeof(struct rtrs_msg_rkey_rsp), p->mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = (uintptr_t)con, .sg_list = &sge,
					  .num_sge = p->rsp.new_rkey ? 1 : 0 };

		if (fab_post_recv(con->conn, &wr))
			return;		/* the connection has failed: polling tells */
	}
}

static void heartbeat(struct hpath *p, unsigned cid)
{
	struct ibv_send_wr wr;

	rtrs_wr_heartbeat(&wr, (uintptr_t)&p->cons[cid], RTRS_HB_ACK_IMM);
	if (!p->mute)
		fab_post_send(p->cons[cid].conn, &wr);
}

static void answer_arrived(struct hpath *p, unsigned cid, __be32 imm,
			   const struct rtrs_msg_rkey_rsp *key)
{
	struct hanswer *answer;
	uint32_t msg_id;
	const char *why;
	int status;

	rtrs_imm_io_rsp_split(rtrs_imm_payload(imm), &msg_id, &status);
	if (msg_id >= HANSWERS)
		die("an answer to message %u", msg_id);
	answer = &p->answers[msg_id];
	answer->n++;
	answer->cid = cid;
	answer->type = rtrs_imm_type(imm);
	answer->status = status;
	answer->after_inv = p->cons[cid].ninv > 0;
	p->cons[cid].ninv = 0;
	if (!!key != p->rsp.new_rkey || msg_id >= p->geom.queue_depth)
		die("an answer to message %u with%s a key", msg_id, key ? "" : "out");
	answer->old_rkey = p->rbufs[msg_id].rkey;
	if (key && rtrs_rkey_rsp_decode(key, sizeof(*key), &p->geom, msg_id,
					&p->rbufs[msg_id].rkey, &why))
		die("RKEY_RSP: %s", why);
}

/* @key: what came with it, or NULL. */
static void con_immediate(struct hpath *p, unsigned cid, __be32 imm,
			  const struct rtrs_msg_rkey_rsp *key)
{
	switch (rtrs_imm_type(imm)) {
	case RTRS_IO_RSP_IMM:
	case RTRS_IO_RSP_W_INV_IMM:
		answer_arrived(p, cid, imm, key);
		break;
	case RTRS_HB_MSG_IMM:
		p->hb_msgs++;
		heartbeat(p, cid);
		break;
	case RTRS_HB_ACK_IMM:
		p->hb_acks++;
		break;
	default:
		die("immediate %#x from the server", be32toh(imm));
	}
	post_recvs(p, cid, 1);
}

static void info_arrived(struct hpath *p, uint32_t len)
{
	const char *why;

	if (p->info_done)
		die("a second SEND from the server");
	p->refusal = p->hears ? rtrs_info_refusal_decode(p->info_buf, len) : 0;
	if (p->refusal)
		return;
	if (rtrs_info_rsp_decode(p->info_buf, len, &p->geom, p->rbufs, &why))
		die("INFO_RSP: %s", why);
	p->info_done = true;
	for (unsigned cid = 0; cid < p->cid_num && cid < HCONS_MAX; cid++) {
		if (p->cons[cid].state == H_UP)
			post_recvs(p, cid, cid ? 2 * p->geom.queue_depth : CON0_RECVS);
	}
}

static void con_completion(struct hpath *p, unsigned cid, const struct ibv_wc *wc)
{
	const struct rtrs_msg_rkey_rsp *key;

	if (wc->wc_flags & IBV_WC_WITH_IMM) {
		key = key_recv(p, cid, p->cons[cid].recvs_met++);
		if (wc->opcode != IBV_WC_RECV)
			key = NULL;
		else if (wc->byte_len != sizeof(*key))
			die("%u bytes with an immediate", wc->byte_len);
		con_immediate(p, cid, wc->imm_data, key);
	} else if (wc->opcode == IBV_WC_RECV && (wc->wc_flags & IBV_WC_WITH_INV)) {
		p->cons[cid].recvs_met++;
		p->cons[cid].ninv++;
		post_recvs(p, cid, 1);
	} else if (wc->opcode == IBV_WC_RECV && p->listens) {
		p->said = wc->byte_len;
	} else if (wc->opcode == IBV_WC_RECV) {
		info_arrived(p, wc->byte_len);
	}
}

bool hpath_poll(struct hcon *con)
{
	struct ibv_wc wc[16];
	int n = fab_poll(con->conn, wc, ARRAY_SIZE(wc));

	if (n == -ENOTCONN) {
		con->state = H_CLOSED;
		return true;
	}
	for (int i = 0; i < n; i++) {
		if (wc[i].status == IBV_WC_SUCCESS)
			con_completion(con->path, (unsigned)(con - con->path->cons), &wc[i]);
	}
	return n > 0;
}
