/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: example-frwr [PROVIDER]
 *
 * How src/frwr is used, on real connections: a client that reads into a slot whose key lives as
 * long as the read, a server that answers, in one thread and in each mode that the device has.
 * With FABRIC_ADDRESS at the address of a device.  Behind the last answer the server writes once
 * more with the key that it was given, and has to lose its connection over it. */
#include <errno.h>
#include <string.h>

#include "frwr.h"
#include "harness.h"
#include "util.h"

#define READS 600u			/* keys have 8 bits that change */
#define SLOT 65536u

/* A request and its answer, as bytes. */
struct request {
	struct frwr_handle to;
	uint32_t number;
	bool need_inval;
};

struct answer {
	uint32_t number;
	bool invalidated;
};

/* One end, polled by us: a message that comes in and one that goes out. */
struct side {
	struct end *e;
	struct fab_cqe recv, sent;
	union {
		struct request request;
		struct answer answer;
		uint8_t bytes[64];
	} in, out;
	struct ibv_mr *in_mr, *out_mr;
};

struct client {
	struct side side;
	enum frwr_mode mode;
	struct frwr_pool *pool;
	struct frwr *w;
	struct frwr_entry entry;
	uint8_t *slot;
	struct ibv_mr *mr;
	uint32_t number;		/* of the read in flight */
	uint32_t done;			/* reads that are over */
};

struct server {
	struct side side;
	uint8_t *data;
	struct ibv_mr *mr;
	struct request last;
};

static struct client clt;
static struct server srv;

static void sent(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
}

static void side_open(struct side *s, struct end *e, void (*recv)(struct fab_conn *conn,
								  struct fab_cqe *cqe,
								  const struct ibv_wc *wc))
{
	e->quota = 0;			/* the harness does not poll it */
	s->e = e;
	s->recv.done = recv;
	s->sent.done = sent;
	s->in_mr = fab_reg_mr(e->pd, &s->in, sizeof(s->in), IBV_ACCESS_LOCAL_WRITE);
	s->out_mr = fab_reg_mr(e->pd, &s->out, sizeof(s->out), 0);
	check(s->in_mr && s->out_mr);
}

static void side_recv(struct side *s)
{
	struct ibv_sge sge = { (uintptr_t)&s->in, sizeof(s->in), s->in_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&s->recv, .sg_list = &sge, .num_sge = 1 };

	check_eq(fab_post_recv(s->e->conn, &wr), 0);
}

static struct ibv_send_wr side_wr(struct side *s, enum ibv_wr_opcode opcode, struct ibv_sge *sge)
{
	return (struct ibv_send_wr){ .wr_id = (uintptr_t)&s->sent, .opcode = opcode, .sg_list = sge,
				     .num_sge = sge ? 1 : 0 };
}

/* Post what frwr filled in.  In a program with threads: under the send lock of the connection. */
static void post_entry(struct fab_conn *conn, struct frwr_entry *e)
{
	int rc = fab_post_send(conn, e->first);

	e->posted(e, rc);
	check_eq(rc, 0);
}

/* ---- the client ---- */

static void client_read(void)
{
	struct side *s = &clt.side;
	struct ibv_sge sge = { (uintptr_t)&s->out, sizeof(s->out.request), s->out_mr->lkey };
	struct ibv_send_wr wr = side_wr(s, IBV_WR_SEND, &sge);
	struct request *q = &s->out.request;

	memset(clt.slot, 0, SLOT);
	q->number = ++clt.number;
	check_eq(frwr_map(clt.w, clt.mr, (uintptr_t)clt.slot, SLOT, FRWR_PEER_WRITES, &q->to), 0);
	/* Every other time, to see both ways. */
	q->need_inval = clt.mode == FRWR_MW2 && clt.number % 2;
	if (q->need_inval)
		check_eq(frwr_expect_reminv(clt.w), 0);
	check_eq(frwr_fill_send(&clt.entry, s->e->conn, clt.w, &wr, &wr), 0);
	post_entry(s->e->conn, &clt.entry);
}

/* From here on nobody can change what is in the slot. */
static void client_done(void *arg, int rc)
{
	check_eq(rc, 0);
	check_eq(frwr_state(clt.w), FRWR_FREE);
	for (unsigned i = 0; i < SLOT; i++)
		check_eq(clt.slot[i], (uint8_t)(clt.number + i));
	clt.done++;
	if (clt.done < READS)
		client_read();
}

static void client_answer(const struct answer *a)
{
	struct fab_conn *conn = clt.side.e->conn;
	int rc;

	check_eq(a->number, clt.number);
	/* -EPROTO: the server says what is not so; fail the path. */
	check_eq(frwr_answered(clt.w, a->invalidated), 0);
	rc = frwr_fill_unmap(&clt.entry, conn, clt.w, client_done, NULL);
	if (rc == 0)
		post_entry(conn, &clt.entry);
	else if (rc == 1 || rc == -EALREADY)	/* done, by us without a request, or by the peer */
		client_done(NULL, 0);
	else
		check_eq(rc, 0);
}

static void client_wc_recv(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct answer a = clt.side.in.answer;

	if (wc->status != IBV_WC_SUCCESS)
		return;
	side_recv(&clt.side);
	if (wc->byte_len == 0) {
		check(frwr_wc_may_inv(wc) && frwr_reminv(clt.pool, conn, wc) == clt.w);
		return;
	}
	client_answer(&a);
}

/* ---- the server ---- */

static void server_answer(const struct request *q)
{
	struct side *s = &srv.side;
	struct ibv_sge data = { (uintptr_t)srv.data, q->to.len, srv.mr->lkey };
	struct ibv_sge msg = { (uintptr_t)&s->out, sizeof(s->out.answer), s->out_mr->lkey };
	struct ibv_send_wr wr[3] = { side_wr(s, IBV_WR_RDMA_WRITE, &data),
				     side_wr(s, IBV_WR_SEND_WITH_INV, NULL),
				     side_wr(s, IBV_WR_SEND, &msg) };

	for (unsigned i = 0; i < SLOT; i++)
		srv.data[i] = (uint8_t)(q->number + i);
	s->out.answer = (struct answer){ q->number, q->need_inval };
	wr[0].wr.rdma.remote_addr = q->to.addr;
	wr[0].wr.rdma.rkey = q->to.rkey;
	wr[1].invalidate_rkey = q->to.rkey;
	wr[0].next = q->need_inval ? &wr[1] : &wr[2];
	wr[1].next = &wr[2];
	wr[2].send_flags = IBV_SEND_SIGNALED;
	check_eq(fab_post_send(s->e->conn, wr), 0);
}

static void server_wc_recv(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		return;
	srv.last = srv.side.in.request;
	side_recv(&srv.side);
	server_answer(&srv.last);
}

/* ---- both ---- */

/* Poll both ends until @done, or both have drained. */
static void run(struct world *w, const uint32_t *done, uint32_t until)
{
	struct end *ends[2] = { clt.side.e, srv.side.e };

	while (!(done && *done >= until) && !(ends[0]->drained && ends[1]->drained)) {
		struct pollfd fds[3] = { { .fd = fab_cm_fd(w->cm[0]), .events = POLLIN },
					 { .fd = -1 }, { .fd = -1 } };
		bool busy = false;

		for (unsigned i = 0; i < 2; i++) {
			int n = ends[i]->drained ? 0 : fab_dispatch(ends[i]->conn, 16);

			ends[i]->drained |= n == -ENOTCONN;
			busy |= n != 0;
		}
		for (unsigned i = 0; i < 2 && !busy; i++) {
			if (ends[i]->drained)
				continue;
			busy = fab_arm(ends[i]->conn, &fds[1 + i].events);
			fds[1 + i].fd = fab_conn_fd(ends[i]->conn);
		}
		if (!busy)
			check(provider_wait(fds, 3, WAIT_LIMIT_MS) > 0);
		world_step(w, 0);	/* events of the connections */
	}
}

/* The key of the last read is dead: to use it costs the connection, and the slot stays as it is. */
static void late_write(struct world *w)
{
	struct side *s = &srv.side;
	struct ibv_sge data = { (uintptr_t)srv.data, SLOT, srv.mr->lkey };
	struct ibv_send_wr wr = side_wr(s, IBV_WR_RDMA_WRITE, &data);

	memset(srv.data, 0xff, SLOT);
	wr.wr.rdma.remote_addr = srv.last.to.addr;
	wr.wr.rdma.rkey = srv.last.to.rkey;
	check_eq(fab_post_send(s->e->conn, &wr), 0);
	run(w, NULL, 0);
	for (unsigned i = 0; i < SLOT; i++)
		check_eq(clt.slot[i], (uint8_t)(clt.number + i));
}

static void side_close(struct side *s)
{
	fab_dereg_mr(s->in_mr);
	fab_dereg_mr(s->out_mr);
	end_free(s->e);
}

static void one_mode(struct world *w, enum frwr_mode mode)
{
	const int stat = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	const int window = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND;
	struct frwr_stats st;
	struct pair p;

	/* ORDER: connections, regions, windows. */
	pair_connect(w, &p, &default_attr);
	memset(&clt, 0, sizeof(clt));
	memset(&srv, 0, sizeof(srv));
	clt.mode = mode;
	side_open(&clt.side, p.a, client_wc_recv);
	side_open(&srv.side, p.b, server_wc_recv);
	clt.slot = calloc(1, SLOT);
	srv.data = calloc(1, SLOT);
	check(clt.slot && srv.data);
	srv.mr = fab_reg_mr(p.b->pd, srv.data, SLOT, 0);
	if (mode != FRWR_REREG)
		clt.mr = fab_reg_mr(p.a->pd, clt.slot, SLOT, mode == FRWR_STATIC ? stat : window);
	check(srv.mr && (clt.mr || mode == FRWR_REREG));
	check_eq(frwr_pool_create(&clt.pool, p.a->pd, mode, 1), 0);
	clt.w = frwr_at(clt.pool, 0);
	side_recv(&srv.side);
	for (unsigned i = 0; i < 4; i++)
		side_recv(&clt.side);
	client_read();
	run(w, &clt.done, READS);
	check_eq(clt.done, READS);
	frwr_stats(clt.pool, &st);
	printf("%s: %u reads, %u binds, %u keys taken away by us, %u by the peer\n",
	       frwr_mode_name(mode), clt.done, (unsigned)st.bind_posted, (unsigned)st.local_inv,
	       (unsigned)st.remote_inv);
	check_eq(st.mapped, READS);
	check_eq(st.local_inv + st.remote_inv, mode == FRWR_STATIC ? 0 : READS);
	if (mode == FRWR_STATIC) {
		fab_disconnect(p.a->conn);
		run(w, NULL, 0);
	} else {
		late_write(w);
	}
	/* ORDER: drained; windows, regions, connections. */
	frwr_pool_kill(clt.pool);
	check_eq(frwr_pool_destroy(clt.pool), 0);
	fab_dereg_mr(clt.mr);
	fab_dereg_mr(srv.mr);
	side_close(&clt.side);
	side_close(&srv.side);
	free(clt.slot);
	free(srv.data);
}

int main(int argc, char **argv)
{
	const struct fab_provider *p;
	struct frwr_caps caps;
	struct world w;
	struct pair q;
	char why[256];

	provider_start();
	p = fab_provider_find(argc > 1 ? argv[1] : "tcp");
	check(p != NULL);
	world_init(&w, p);
	pair_connect(&w, &q, &default_attr);
	check_eq(frwr_query(q.a->conn, q.a->pd, &caps), 0);
	pair_close(&q);
	check(frwr_pick(&caps, frwr_order_client, 3, why, sizeof(why)) >= 0);
	printf("a client would use %s\n", why);
	for (int mode = 0; mode < FRWR_NMODES; mode++) {
		if (caps.rc[mode])
			printf("%s: SKIPPED: %s\n", frwr_mode_name((enum frwr_mode)mode),
			       caps.why[mode]);
		else
			one_mode(&w, (enum frwr_mode)mode);
	}
	world_fini(&w);
	return 0;
}
