/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs of the mock HCA.  The send queue executes while posting, unless it is held; both
 * queues complete into what mock_poll() takes. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "mock-priv.h"

/* ---- life ---- */

void mock_qp_init(struct mock_conn *c, struct fab_pd *pd, uint32_t depth)
{
	if (mock_windows_of(pd))
		mock_die("%u windows that are older than a queue pair: 50 s at exit",
			 mock_windows_of(pd));
	c->pd = pd;
	c->depth = depth;
	mock.nqp++;
}

void mock_qp_fini(struct mock_conn *c)
{
	if (mock_windows_of(c->pd))
		mock_die("queue pair destroyed before %u windows: 50 s", mock_windows_of(c->pd));
	mock.nqp--;
}

struct mock_conn *mock_conn_create(struct fab_pd *pd, uint32_t depth)
{
	struct mock_conn *c = calloc(1, sizeof(*c));

	c->fab.ops = &fab_mock;
	c->fd = -1;
	LOCK_SCOPE(&mock_lock);
	mock_qp_init(c, pd, depth);
	return c;
}

void mock_conn_destroy(struct mock_conn *c)
{
	LOCK_SCOPE(&mock_lock);
	mock_qp_fini(c);
	free(c);
}

static void wake(struct mock_conn *c)
{
	c->armed = false;
	if (c->fd >= 0)
		eventfd_write(c->fd, 1);
}

void mock_conn_fail(struct mock_conn *c)
{
	if (c->failed)
		return;
	c->failed = true;
	if (c->fab.cm)
		mock.peer->lost(c);
	wake(c);
}

/* ---- the send queue ---- */

/* What rxe checks before it takes it, and what would bring others down. */
static void check_bind(const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

	if (wr->imm_data || wr->sg_list || wr->num_sge || (wr->send_flags & ~IBV_SEND_SIGNALED))
		mock_die("a bind with something in it that is not its own");
	if (!info->mr)
		mock_die("segmentation fault: a bind without a region");
}

static void execute_one(struct mock_conn *c, struct mock_wr *m)
{
	switch (m->wr.opcode) {
	case IBV_WR_BIND_MW:
		mock_bind(c, m);
		break;
	case IBV_WR_LOCAL_INV:
		if (!mock_invalidate(c, m->wr.invalidate_rkey))
			mock_die("an invalidate of key 0x%x, which is no window of this connection",
				 m->wr.invalidate_rkey);
		break;
	default:
		if (c->fab.cm)
			mock.peer->arrived(c, &m->wr);
	}
	m->executed = true;
}

static void execute(struct mock_conn *c, unsigned most)
{
	for (; c->executed != c->tail && most; c->executed++, most--)
		execute_one(c, &c->sq[c->executed % MOCK_QUEUE]);
}

static void check_chain(const struct ibv_send_wr *wr)
{
	for (; wr; wr = wr->next) {
		if (wr->opcode != IBV_WR_BIND_MW)
			continue;
		for (const struct ibv_send_wr *v = wr->next; v; v = v->next) {
			if (v->opcode == IBV_WR_BIND_MW && v->bind_mw.mw == wr->bind_mw.mw)
				mock_die("two binds of one window in one post");
		}
		check_bind(wr);
	}
}

static void take(struct mock_conn *c, const struct ibv_send_wr *wr)
{
	struct mock_wr *m = &c->sq[c->tail % MOCK_QUEUE];

	if (c->tail - c->head == MIN(c->depth, MOCK_QUEUE))
		mock_die("send queue overflow: more than %u requests", c->depth);
	if (wr->num_sge > (int)mock.attr.max_sge)
		mock_die("%d pieces in a request", wr->num_sge);
	*m = (struct mock_wr){ .wr = *wr };
	m->wr.sg_list = m->sge;
	for (int i = 0; i < wr->num_sge; i++) {
		mock_check_sge(c->pd, &wr->sg_list[i]);
		m->sge[i] = wr->sg_list[i];
	}
	if (wr->opcode == IBV_WR_BIND_MW)
		m->mw_rkey = wr->bind_mw.mw->rkey;
	c->log[c->nlog++ % ARRAY_SIZE(c->log)] = *m;
	c->tail++;
	c->most = MAX(c->most, c->tail - c->head);
}

static bool bind_refused(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_BIND_MW &&
	       (mock.bind_refused || (mock.unbind_refused && !wr->bind_mw.bind_info.length));
}

static enum ibv_wc_status failed_status(const struct mock_wr *m)
{
	return m->wr.opcode == IBV_WR_BIND_MW && mock.bind_status ? mock.bind_status :
								   IBV_WC_WR_FLUSH_ERR;
}

/* Something of it can be polled. */
static bool completed(const struct mock_conn *c)
{
	if (c->failed)
		return true;
	for (uint32_t i = c->head; i != c->executed; i++) {
		if (c->sq[i % MOCK_QUEUE].wr.send_flags & IBV_SEND_SIGNALED)
			return true;
	}
	return false;
}

/* As much of @wr as the queue takes. */
static int post_chain(struct mock_conn *c, const struct ibv_send_wr *wr)
{
	int rc = 0;

	for (unsigned n = 0; wr; wr = wr->next, n++) {
		if (c->fail_rc && n == c->fail_at)
			break;
		if (bind_refused(wr)) {
			c->fail_rc = -EOPNOTSUPP;
			break;
		}
		take(c, wr);
	}
	if (c->fail_rc) {
		rc = c->fail_rc;
		c->fail_rc = 0;
		mock_conn_fail(c);
	}
	if (!c->hold && !c->failed)
		execute(c, MOCK_QUEUE);
	return rc;
}

int mock_post_send(struct fab_conn *conn, const struct ibv_send_wr *wr)
{
	struct mock_conn *c = to_conn(conn);
	int rc;

	LOCK_SCOPE(&mock_lock);
	c->nposts++;
	check_chain(wr);
	rc = c->drained ? -ENOTCONN : post_chain(c, wr);
	if (c->armed && completed(c))
		wake(c);
	return rc;
}

/* ---- the receive queue ---- */

int mock_post_recv(struct fab_conn *conn, const struct ibv_recv_wr *wr)
{
	struct mock_conn *c = to_conn(conn);

	LOCK_SCOPE(&mock_lock);
	for (; wr; wr = wr->next) {
		struct mock_recv *r = &c->rq[c->rq_tail++ % MOCK_QUEUE];

		if (c->rq_tail - c->rq_head > MOCK_QUEUE || wr->num_sge > 1)
			mock_die("receive queue overflow, or a receive in pieces");
		*r = (struct mock_recv){ .wr_id = wr->wr_id };
		if (wr->num_sge) {
			mock_check_sge(c->pd, wr->sg_list);
			r->sge = *wr->sg_list;
		}
	}
	return 0;
}

void mock_peer_send(struct mock_conn *c, struct ibv_wc wc, const void *data)
{
	const struct mock_recv *r;

	LOCK_SCOPE(&mock_lock);
	if (c->failed)
		return;
	r = &c->rq[c->rq_head % MOCK_QUEUE];
	if (c->rq_head == c->rq_tail || r->sge.length < wc.byte_len)
		mock_die("no receive for a message of %u bytes", wc.byte_len);
	if (wc.byte_len)
		memcpy((void *)(uintptr_t)r->sge.addr, data, wc.byte_len);
	c->rq_head++;
	wc.wr_id = r->wr_id;
	c->received[c->received_tail++ % MOCK_QUEUE] = wc;
	if (c->received_tail - c->received_head > MOCK_QUEUE)
		mock_die("completion queue overflow");
	if (c->armed)
		wake(c);
}

/* ---- completions ---- */

static int poll_sends(struct mock_conn *c, struct ibv_wc *wc, int n)
{
	static const uint8_t opcodes[] = {
		[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
		[IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
		[IBV_WR_SEND] = IBV_WC_SEND,
		[IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
	};
	int got = 0;

	while (got < n && c->head != c->tail) {
		const struct mock_wr *m = &c->sq[c->head % MOCK_QUEUE];

		if (!m->executed && !c->failed)
			break;
		c->head++;
		if (!c->failed && !(m->wr.send_flags & IBV_SEND_SIGNALED))
			continue;
		wc[got++] = (struct ibv_wc){
			.wr_id = m->wr.wr_id,
			.status = c->failed ? failed_status(m) : IBV_WC_SUCCESS,
			.opcode = c->failed ? 0 : opcodes[m->wr.opcode],
		};
	}
	return got;
}

static int poll_receives(struct mock_conn *c, struct ibv_wc *wc, int n)
{
	int got = 0;

	while (got < n && c->received_head != c->received_tail)
		wc[got++] = c->received[c->received_head++ % MOCK_QUEUE];
	while (c->failed && got < n && c->rq_head != c->rq_tail)
		wc[got++] = (struct ibv_wc){ .wr_id = c->rq[c->rq_head++ % MOCK_QUEUE].wr_id,
					     .status = IBV_WC_WR_FLUSH_ERR };
	return got;
}

int mock_poll(struct fab_conn *conn, struct ibv_wc *wc, int n)
{
	struct mock_conn *c = to_conn(conn);
	eventfd_t ignored;
	int got;

	if (c->fd >= 0)
		eventfd_read(c->fd, &ignored);
	LOCK_SCOPE(&mock_lock);
	c->armed = false;
	if (!c->hold && !c->failed)
		execute(c, MOCK_QUEUE);
	got = poll_sends(c, wc, n);
	got += poll_receives(c, wc + got, n - got);
	if (!got && c->failed && n) {
		c->drained = true;
		got = -ENOTCONN;
	}
	return got;
}

int mock_arm(struct fab_conn *conn, short *events)
{
	struct mock_conn *c = to_conn(conn);
	bool work;

	LOCK_SCOPE(&mock_lock);
	work = completed(c) || c->received_head != c->received_tail;
	c->armed = !work;
	*events = POLLIN;
	return work;
}

/* ---- the test's side ---- */

void mock_conn_break(struct mock_conn *c, unsigned executed)
{
	LOCK_SCOPE(&mock_lock);
	execute(c, executed);
	mock_conn_fail(c);
}

void mock_dispatch(struct mock_conn *c)
{
	while (fab_dispatch(&c->fab, 64) > 0)
		;
}

const char *mock_log(const struct mock_conn *c)
{
	static const char *const names[] = {
		[IBV_WR_RDMA_WRITE] = "WRITE", [IBV_WR_RDMA_WRITE_WITH_IMM] = "WRITE_IMM",
		[IBV_WR_SEND] = "SEND", [IBV_WR_SEND_WITH_IMM] = "SEND_IMM",
		[IBV_WR_LOCAL_INV] = "LINV", [IBV_WR_BIND_MW] = "BIND",
		[IBV_WR_SEND_WITH_INV] = "SEND_INV",
	};
	static char text[1024];
	size_t at = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < MIN(c->nlog, (unsigned)ARRAY_SIZE(c->log)); i++) {
		const struct ibv_send_wr *wr = &c->log[i].wr;
		const char *name = names[wr->opcode];

		if (wr->opcode == IBV_WR_BIND_MW && !wr->bind_mw.bind_info.length)
			name = "UNBIND";
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%s%s", at ? " " : "", name,
				       wr->send_flags & IBV_SEND_SIGNALED ? "*" : "");
	}
	return text;
}
