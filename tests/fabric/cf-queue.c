/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance: when requests complete, in which order, and what becomes of them in a failure. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "conformance.h"
#include "util.h"

/* a: both sides polled one completion at a time, sends of every kind mixed. */
FAB_TEST(promise_a_order)
{
	enum { N = 48 };
	struct region src, dst;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;

	pair_connect(w, &p, &default_attr);
	src = region_create(p.a->pd, 4096, IBV_ACCESS_LOCAL_WRITE);
	dst = region_create(p.b->pd, 4096, RIGHTS);
	p.a->quota = p.b->quota = 1;
	check_eq(post_recvs(p.b, 0, N), 0);
	for (unsigned i = 0; i < N; i++) {
		sge = region_sge(&src, 0, 1 + i * 64);
		if (i % 3 == 0) {
			wr = wr_send(i, NULL);
			wr.opcode = IBV_WR_SEND_WITH_IMM;
			wr.imm_data = htobe32(i);
		} else {
			wr = wr_write_imm(i, i % 3 == 1 ? &sge : NULL, target(&dst, 0), i);
		}
		wr.send_flags = IBV_SEND_SIGNALED;
		check_eq(post(p.a, &wr, 1), 0);
	}
	world_until(w, p.a->nsends == N && p.b->nrecvs == N);
	for (unsigned i = 0; i < N; i++) {
		check_eq(p.a->sends[i].id, i);
		check_eq(p.a->sends[i].wc.status, IBV_WC_SUCCESS);
		check_eq(p.b->recvs[i].id, i);
		check_eq(p.b->recvs[i].wc.status, IBV_WC_SUCCESS);
		check_eq(be32toh(p.b->recvs[i].wc.imm_data), i);
	}
	region_destroy(&src);
	region_destroy(&dst);
	pair_close(&p);
}

/* b: a queue of 8 carries hundreds of unsignaled requests, and nothing is heard of them. */
FAB_TEST(promise_b_unsignaled)
{
	const struct fab_qp_attr small = { .max_send_wr = 8, .max_recv_wr = 64, .max_send_sge = 1 };
	struct ibv_send_wr wr[2];
	struct pair p;

	pair_connect(w, &p, &small);
	check_eq(post_recvs(p.b, 0, 64), 0);
	check_eq(post_recvs(p.a, 0, 64), 0);
	for (unsigned i = 0; i < 200; i++) {
		wr[0] = wr_write(0, NULL, 0, 0);
		wr[1] = wr_write_imm(1, NULL, 0, 0, i);
		check_eq(post(p.a, wr, 2), 0);
		world_until(w, p.b->nrecvs == i + 1);
		/* The answer, as every protocol above has one. */
		wr[1] = wr_write_imm(2, NULL, 0, 0, i);
		check_eq(post(p.b, &wr[1], 1), 0);
		world_until(w, p.a->nrecvs == i + 1);
		check_eq(post_recvs(p.b, 0, 1), 0);
		check_eq(post_recvs(p.a, 0, 1), 0);
	}
	check_eq(p.a->nsends, 0);
	check_eq(p.b->nsends, 0);
	wr[0] = wr_write_imm(7, NULL, 0, 0, 7);
	wr[0].send_flags = IBV_SEND_SIGNALED;
	check_eq(post(p.a, wr, 1), 0);
	world_until(w, p.a->nsends == 1);
	check_eq(p.a->sends[0].id, 7);
	pair_close(&p);
}

static unsigned count(const struct seen *seen, unsigned n, unsigned id)
{
	unsigned found = 0;

	for (unsigned i = 0; i < n; i++)
		found += seen[i].id == id;
	return found;
}

/* Each of the ids 0..n-1 was seen once, and after the first that failed all did. */
static void check_flushed(const struct seen *seen, unsigned n)
{
	bool failed = false;

	for (unsigned i = 0; i < n; i++) {
		check_eq(count(seen, n, i), 1);
		check_eq(seen[i].id, i);
		if (failed)
			check_eq(seen[i].wc.status, IBV_WC_WR_FLUSH_ERR);
		failed |= seen[i].wc.status != IBV_WC_SUCCESS;
	}
}

/* c: more than any socket holds is posted to a peer that does not listen, then we give up. */
FAB_TEST(promise_c_flush)
{
	enum { N = 32, SIZE = 1 << 20 };
	struct region src, dst;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;

	pair_connect(w, &p, &default_attr);
	src = region_create(p.a->pd, SIZE, IBV_ACCESS_LOCAL_WRITE);
	dst = region_create(p.b->pd, SIZE, RIGHTS);
	sge = region_sge(&src, 0, SIZE);
	p.b->quota = 0;
	check_eq(post_recvs(p.a, 0, 3), 0);
	for (unsigned i = 0; i < N; i++) {
		wr = wr_write(i, &sge, target(&dst, 0));
		wr.send_flags = IBV_SEND_SIGNALED;
		check_eq(post(p.a, &wr, 1), 0);
	}
	fab_disconnect(p.a->conn);
	fab_disconnect(p.a->conn);
	/* Not drained, so these are taken, and flush though unsignaled. */
	for (unsigned i = N; i < N + 3; i++) {
		wr = wr_write_imm(i, NULL, 0, 0, i);
		check_eq(post(p.a, &wr, 1), 0);
	}
	check_eq(post_recvs(p.a, 3, 2), 0);
	p.a->quota = 3;
	world_until(w, p.a->drained);
	check_eq(p.a->nsends, N + 3);
	check_flushed(p.a->sends, p.a->nsends);
	check_eq(p.a->sends[N + 2].wc.status, IBV_WC_WR_FLUSH_ERR);
	check_eq(p.a->nrecvs, 5);
	check_flushed(p.a->recvs, 5);
	check_eq(p.a->recvs[0].wc.status, IBV_WC_WR_FLUSH_ERR);
	check(fab_conn_cause(p.a->conn)[0] != '\0');
	check_eq(post(p.a, &wr, 1), -ENOTCONN);
	check_eq(post_recvs(p.a, 0, 1), -ENOTCONN);
	p.b->quota = 16;
	world_until(w, p.b->drained);
	region_destroy(&src);
	region_destroy(&dst);
	end_free(p.a);
	end_free(p.b);
}

/* c: the peer of one that gives up hears of it, with all its posts flushed, and keeps the cause. */
FAB_TEST(promise_c_peer)
{
	struct pair p;
	char cause[256];

	pair_connect(w, &p, &default_attr);
	check_eq(post_recvs(p.b, 0, 5), 0);
	fab_disconnect(p.a->conn);
	world_until(w, p.a->drained && p.b->drained);
	check_eq(p.b->nrecvs, 5);
	check_flushed(p.b->recvs, 5);
	snprintf(cause, sizeof(cause), "%s", fab_conn_cause(p.b->conn));
	check(cause[0] != '\0');
	fab_disconnect(p.b->conn);
	check(strcmp(cause, fab_conn_cause(p.b->conn)) == 0);
	end_free(p.a);
	end_free(p.b);
}

static void no_receive(struct world *w, struct ibv_send_wr wr)
{
	struct pair p;

	pair_connect(w, &p, &default_attr);
	check_eq(post(p.a, &wr, 1), 0);
	if (provider_retries_rnr) {
		world_settle(w, 100);
		check_eq(p.b->nrecvs, 0);
		check_eq(post_recvs(p.b, 0, 1), 0);
		world_until(w, p.b->nrecvs == 1);
		check_eq(p.b->recvs[0].wc.status, IBV_WC_SUCCESS);
		pair_close(&p);
		return;
	}
	world_until(w, p.a->drained && p.b->drained);
	check_eq(p.b->nrecvs, 0);
	end_free(p.a);
	end_free(p.b);
}

FAB_TEST(promise_e_p12_no_receive)
{
	no_receive(w, wr_send(0, NULL));
	no_receive(w, wr_write_imm(0, NULL, 0, 0, 1));
}

/* f: handlers run from fab_dispatch() only, may post, and the budget is kept. */
struct pinger {
	struct fab_cqe recv, send;
	struct fab_conn *conn;
	bool inside;
	unsigned rounds, sent;
};

static struct pinger pingers[2];

static void ping(struct pinger *p)
{
	struct ibv_send_wr wr = { .wr_id = (uintptr_t)&p->send,
				  .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				  .send_flags = IBV_SEND_SIGNALED };

	p->inside = true;
	check_eq(fab_post_send(p->conn, &wr), 0);
	p->inside = false;
}

static void ping_recv(struct pinger *p)
{
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&p->recv };

	p->inside = true;
	check_eq(fab_post_recv(p->conn, &wr), 0);
	p->inside = false;
}

static void ping_recv_done(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct pinger *p = container_of(cqe, struct pinger, recv);

	check(conn == p->conn);
	check(!p->inside);
	if (wc->status != IBV_WC_SUCCESS)
		return;
	ping_recv(p);
	if (++p->rounds < 100)
		ping(p);
}

static void ping_send_done(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct pinger *p = container_of(cqe, struct pinger, send);

	check(!p->inside);
	p->sent += wc->status == IBV_WC_SUCCESS;
}

FAB_TEST(promise_f_only_poll)
{
	struct end *e[2];
	struct pair p;
	short events;

	pair_connect(w, &p, &default_attr);
	e[0] = p.a;
	e[1] = p.b;
	for (int i = 0; i < 2; i++) {
		e[i]->quota = 0;
		pingers[i] = (struct pinger){ .conn = e[i]->conn, .recv.done = ping_recv_done,
					      .send.done = ping_send_done };
		ping_recv(&pingers[i]);
	}
	ping(&pingers[0]);
	while (pingers[0].rounds < 99 || pingers[1].rounds < 100 || pingers[0].sent < 100) {
		struct pollfd fds[2];
		unsigned n = 0;
		bool busy = false;

		for (int i = 0; i < 2; i++) {
			int rc = fab_dispatch(e[i]->conn, 1);

			check(rc == 0 || rc == 1);
			busy |= rc > 0;
			if (fab_arm(e[i]->conn, &events))
				busy = true;
			else
				fds[n++] = (struct pollfd){ .fd = fab_conn_fd(e[i]->conn),
							    .events = events };
		}
		if (!busy)
			check(provider_wait(fds, n, WAIT_LIMIT_MS) > 0);
	}
	for (int i = 0; i < 2; i++) {
		fab_disconnect(e[i]->conn);
		while (fab_dispatch(e[i]->conn, 16) != -ENOTCONN) {
			if (!fab_arm(e[i]->conn, &events))
				world_step(w, 10);
		}
		end_free(e[i]);
	}
}

/* g: both ends send more than all buffers in between hold before either receives. */
FAB_TEST(promise_g_both_ways)
{
	enum { N = 24, SIZE = 1 << 20 };
	struct region src[2], dst[2];
	struct end *e[2];
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;

	pair_connect(w, &p, &default_attr);
	e[0] = p.a;
	e[1] = p.b;
	for (int i = 0; i < 2; i++) {
		src[i] = region_create(e[i]->pd, SIZE, IBV_ACCESS_LOCAL_WRITE);
		dst[i] = region_create(e[i]->pd, SIZE, RIGHTS);
		for (unsigned k = 0; k < SIZE; k++)
			src[i].mem[k] = (uint8_t)(k * 7 + k / 251 + (unsigned)i);
		check_eq(post_recvs(e[i], 0, N), 0);
	}
	for (unsigned k = 0; k < N; k++) {
		for (int i = 0; i < 2; i++) {
			sge = region_sge(&src[i], 0, SIZE);
			wr = wr_write_imm(k, &sge, target(&dst[!i], 0), k);
			check_eq(post(e[i], &wr, 1), 0);
		}
	}
	world_until(w, p.a->nrecvs == N && p.b->nrecvs == N);
	for (int i = 0; i < 2; i++) {
		check(memcmp(src[i].mem, dst[!i].mem, SIZE) == 0);
		check_eq(e[i]->recvs[N - 1].wc.byte_len, SIZE);
	}
	for (int i = 0; i < 2; i++) {
		region_destroy(&src[i]);
		region_destroy(&dst[i]);
	}
	pair_close(&p);
}

/* l: once a send has completed its buffer is ours again. */
FAB_TEST(promise_l_buffers)
{
	enum { N = 16, SIZE = 256 << 10 };
	struct region src, dst;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;

	pair_connect(w, &p, &default_attr);
	src = region_create(p.a->pd, SIZE, IBV_ACCESS_LOCAL_WRITE);
	dst = region_create(p.b->pd, (size_t)N * SIZE, RIGHTS);
	check_eq(post_recvs(p.b, 0, N), 0);
	for (unsigned i = 0; i < N; i++) {
		memset(src.mem, 1 + (int)i, SIZE);
		sge = region_sge(&src, 0, SIZE);
		wr = wr_write_imm(i, &sge, target(&dst, (size_t)i * SIZE), i);
		wr.send_flags = IBV_SEND_SIGNALED;
		check_eq(post(p.a, &wr, 1), 0);
		world_until(w, p.a->nsends == i + 1);
		memset(src.mem, 0xee, SIZE);
	}
	world_until(w, p.b->nrecvs == N);
	for (unsigned i = 0; i < N; i++) {
		for (unsigned k = 0; k < SIZE; k++)
			check(dst.mem[(size_t)i * SIZE + k] == 1 + i);
	}
	region_destroy(&src);
	region_destroy(&dst);
	pair_close(&p);
}

/* The poller sleeps; somebody posts: its completion reaches the sleeper, by the descriptor that was
 * armed or because fab_need_rearm() says that he has to be woken. */
FAB_TEST(sleep_and_post)
{
	struct ibv_send_wr wr = wr_write_imm(0, NULL, 0, 0, 1);
	struct pollfd fd;
	struct ibv_wc wc;
	short events;
	struct pair p;

	pair_connect(w, &p, &default_attr);
	world_settle(w, 10);
	p.a->quota = 0;
	check_eq(post_recvs(p.b, 0, 8), 0);
	wr.send_flags = IBV_SEND_SIGNALED;
	for (unsigned i = 0; i < 8; i++) {
		while (fab_arm(p.a->conn, &events))
			check_eq(fab_poll(p.a->conn, &wc, 1), 0);
		check(!fab_need_rearm(p.a->conn));
		check_eq(post(p.a, &wr, 1), 0);
		world_until(w, p.b->nrecvs == i + 1);
		fd = (struct pollfd){ .fd = fab_conn_fd(p.a->conn), .events = events };
		check(fab_need_rearm(p.a->conn) || provider_wait(&fd, 1, WAIT_LIMIT_MS) == 1);
		check_eq(fab_poll(p.a->conn, &wc, 1), 1);
		check_eq(wc.wr_id, send_id(0));
		check(!fab_need_rearm(p.a->conn));
	}
	pair_close(&p);
}

/* Bytes have come to @e, whose peer has been told that they were sent. */
static void bytes_are_there(struct world *w, struct end *e)
{
	struct pollfd fd = { .fd = fab_conn_fd(e->conn), .events = POLLIN };

	if (w->p == fab_provider_find("tcp"))
		check_eq(provider_wait(&fd, 1, WAIT_LIMIT_MS), 1);
}

/* Take completions of @e up to the @want-th, each poll behind a fab_arm() that returned 1: a caller
 * that takes edges would sleep otherwise, and the edge of what has come is over. */
static void take_without_sleep(struct end *e, int got, int want)
{
	struct ibv_wc wc[8];
	short events;

	for (;;) {
		int n = fab_poll(e->conn, wc, 8);

		check(n >= 0);
		got += n;
		if (got >= want)
			break;
		check_eq(fab_arm(e->conn, &events), 1);
	}
	check_eq(got, want);
}

/* An edge that comes in front of a poll is not lost, whatever the poll was for: a send that has
 * completed, or the rest of a full poll. */
FAB_TEST(edge_before_poll)
{
	struct ibv_send_wr wr = wr_send(0, NULL);
	struct ibv_wc wc;
	short events;
	struct pair p;

	pair_connect(w, &p, &default_attr);
	check_eq(post_recvs(p.a, 0, 8), 0);
	check_eq(post_recvs(p.b, 0, 8), 0);
	world_settle(w, 10);
	p.a->quota = 0;
	while (fab_arm(p.a->conn, &events))
		check_eq(fab_poll(p.a->conn, &wc, 1), 0);
	check_eq(fab_poll(p.a->conn, &wc, 1), 0);

	wr.send_flags = IBV_SEND_SIGNALED;
	check_eq(post(p.a, &wr, 1), 0);
	world_until(w, p.b->nrecvs == 1);
	world_settle(w, 10);
	fab_arm(p.a->conn, &events);	/* of most providers it returns 1, for the send */
	check_eq(post(p.b, &wr, 1), 0);
	world_until(w, p.b->nsends == 1);
	bytes_are_there(w, p.a);
	take_without_sleep(p.a, 0, 2);

	for (unsigned i = 0; i < 3; i++)
		check_eq(post(p.b, &wr, 1), 0);
	world_until(w, p.b->nsends == 4);
	bytes_are_there(w, p.a);
	for (fab_arm(p.a->conn, &events); !fab_poll(p.a->conn, &wc, 1);
	     fab_arm(p.a->conn, &events))
		world_step(w, 10);
	check_eq(post(p.b, &wr, 1), 0);
	world_until(w, p.b->nsends == 5);
	bytes_are_there(w, p.a);
	take_without_sleep(p.a, 1, 4);
	pair_close(&p);
}
