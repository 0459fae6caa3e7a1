/* SPDX-License-Identifier: BSD-3-Clause */
/* The receive machine of the tcp provider.  Input: a script of what a peer writes and what happens
 * at this end meanwhile, one byte of action, then its arguments:
 *
 *	0	a frame: op, flags, region, 16 bits offset, 16 bits length, 8 bits imm; payload is
 *		made up.  Offset and length are as the peer says, the address and key are right
 *	1	the same without its payload
 *	2	8 bits n, then n bytes of stream as they are
 *	3	poll, for up to 8 bits completions
 *	4	post a receive with 8 bits of room
 *	5	take the key of a region away and give a new one: region, 8 bits fewer bytes
 *	6	disconnect here
 *	7	bind the window of the last region, or invalidate it if it is bound: 8 bits fewer
 *		bytes
 *
 * Whatever it says: nothing outside of what a live key gives changes, every receive completes once,
 * the connection drains. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "tcp-conn.h"

#define NREGIONS 4u		/* the first without the right, the last seen through a window */
#define WINDOW (NREGIONS - 1)
#define GUARD 64u
#define SPAN 1024u		/* of a region between its guards */
#define NRECVS 64u
#define ROOM 255u

static struct fab_cm *cm;

struct region {
	uint8_t *mem;		/* GUARD, SPAN, GUARD bytes */
	uint8_t before[GUARD + SPAN + GUARD];
	struct ibv_mr *mr;
};

struct run {
	struct ibv_mw *mw;
	uint32_t bound;			/* bytes that it opens, 0: none */
	struct fab_cqe send_cqe;
	struct fab_conn *conn;
	struct fab_pd *pd;
	int peer;
	struct region regions[NREGIONS];
	uint8_t *bufs[NRECVS];
	struct fab_cqe cqes[NRECVS];
	unsigned posted, completed;
	struct ibv_mr *buf_mrs[NRECVS];
	bool drained;
};

static void start(struct run *r)
{
	static const struct fab_qp_attr attr = { .max_send_wr = 4, .max_recv_wr = NRECVS,
						 .max_send_sge = 1 };
	static const int access[NREGIONS] = {
		IBV_ACCESS_LOCAL_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
	};
	struct tcp_conn *c;
	int fds[2];

	memset(r, 0, sizeof(*r));
	if (!cm)
		must(fab_cm_create(&(struct fab_cm_conf){ .provider = fab_provider_find("tcp") },
				   &cm) == 0);
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	must(tcp_conn_new(cm, fds[0], &c) == 0);
	r->peer = fds[1];
	r->conn = &c->base;
	must(fab_pd_create(r->conn, &r->pd) == 0);
	must(fab_create_qp(r->conn, r->pd, &attr) == 0);
	atomic_store(&c->state, TCP_UP);
	for (unsigned i = 0; i < NREGIONS; i++) {
		struct region *g = &r->regions[i];

		g->mem = malloc(sizeof(g->before));
		must(g->mem);
		memset(g->mem, 0xa0 + (int)i, sizeof(g->before));
		g->mr = fab_reg_mr(r->pd, g->mem + GUARD, SPAN, access[i]);
		must(g->mr);
		memcpy(g->before, g->mem, sizeof(g->before));
	}
	r->mw = fab_alloc_mw(r->pd, IBV_MW_TYPE_2);
	must(r->mw);
}

/* Nothing changed where no key leads: guards, the region without the right, what was cut off. */
static void check_regions(const struct run *r)
{
	for (unsigned i = 0; i < NREGIONS; i++) {
		const struct region *g = &r->regions[i];
		size_t len = i == WINDOW ? r->bound : i ? g->mr->length : 0;

		must(!memcmp(g->mem, g->before, GUARD));
		must(!memcmp(g->mem + GUARD + len, g->before + GUARD + len, SPAN - len + GUARD));
	}
}

/* The window has been taken away: what is there now stays. */
static void closed(struct run *r, uint32_t rkey)
{
	struct region *g = &r->regions[WINDOW];

	must(r->bound && rkey == r->mw->rkey);
	r->bound = 0;
	memcpy(g->before, g->mem, sizeof(g->before));
}

static void window(struct run *r, uint32_t fewer)
{
	const struct region *g = &r->regions[WINDOW];
	struct ibv_send_wr wr = { .wr_id = (uintptr_t)&r->send_cqe };
	bool failed = fab_conn_cause(r->conn)[0];

	if (r->bound) {
		wr.opcode = IBV_WR_LOCAL_INV;
		wr.invalidate_rkey = r->mw->rkey;
		must(fab_post_send(r->conn, &wr) == 0 || failed);
		/* Unless the peer was faster and nobody has polled for it. */
		if (!failed && !fab_conn_cause(r->conn)[0])
			closed(r, r->mw->rkey);
		return;
	}
	wr.opcode = IBV_WR_BIND_MW;
	wr.bind_mw.mw = r->mw;
	wr.bind_mw.rkey = ibv_inc_rkey(r->mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = g->mr, .addr = (uintptr_t)g->mem + GUARD, .length = SPAN - fewer,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	must(fab_post_send(r->conn, &wr) == 0 || failed);
	if (!failed) {
		must(!fab_conn_cause(r->conn)[0]);
		r->mw->rkey = wr.bind_mw.rkey;
		r->bound = SPAN - fewer;
	}
}

static void take(struct run *r, int n)
{
	static struct ibv_wc wc[256];
	int rc = fab_poll(r->conn, wc, n);

	must(rc <= n);
	if (rc < 0) {
		must(rc == -ENOTCONN && r->completed == r->posted);
		r->drained = true;
		return;
	}
	for (int i = 0; i < rc; i++) {
		if (wc[i].wr_id == (uintptr_t)&r->send_cqe) {
			must(wc[i].status != IBV_WC_SUCCESS && fab_conn_cause(r->conn)[0]);
			continue;
		}
		must(wc[i].wr_id == (uintptr_t)&r->cqes[r->completed]);
		r->completed++;
		must(wc[i].status == IBV_WC_SUCCESS || fab_conn_cause(r->conn)[0]);
		if (wc[i].status == IBV_WC_SUCCESS && wc[i].opcode == IBV_WC_RECV)
			must(wc[i].byte_len <= ROOM);
		if (wc[i].status == IBV_WC_SUCCESS && (wc[i].wc_flags & IBV_WC_WITH_INV))
			closed(r, wc[i].invalidated_rkey);
	}
	check_regions(r);
}

/* What does not fit the socket is what a blocked peer would not have sent. */
static void say(struct run *r, const void *p, size_t len)
{
	if (send(r->peer, p, len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		must(errno == EAGAIN || errno == EPIPE || errno == ECONNRESET);
}

static void say_frame(struct run *r, struct fuzz_in *in, bool payload)
{
	static uint8_t buf[TCP_FRAME_HDR_LEN + UINT16_MAX];
	struct tcp_frame f = { .op = (uint8_t)fuzz_take(in, 1),
			       .flags = (uint8_t)fuzz_take(in, 1) };
	unsigned which = (unsigned)fuzz_take(in, 1) % NREGIONS;
	const struct region *g = &r->regions[which];

	f.addr = (uintptr_t)g->mem + GUARD + (uint64_t)(int64_t)(int16_t)fuzz_take(in, 2);
	f.length = (uint32_t)fuzz_take(in, 2);
	f.imm = (uint32_t)fuzz_take(in, 1);
	f.rkey = which == WINDOW ? r->mw->rkey : g->mr->rkey;
	if (f.op < TCP_FRAME_RDMA_WRITE) {
		f.addr = 0;
		f.rkey = f.op == TCP_FRAME_SEND_WITH_INV ? f.rkey : 0;
	}
	tcp_frame_encode(buf, &f);
	memset(buf + TCP_FRAME_HDR_LEN, 0x5c, f.length);
	say(r, buf, TCP_FRAME_HDR_LEN + (payload ? f.length : 0));
}

static void say_bytes(struct run *r, struct fuzz_in *in)
{
	size_t n = MIN((size_t)fuzz_take(in, 1), in->left);

	say(r, in->p, n);
	in->p += n;
	in->left -= n;
}

static void post_recv(struct run *r, uint32_t room)
{
	struct ibv_recv_wr wr = { 0 };
	struct ibv_sge sge;

	if (r->posted == NRECVS || r->drained)
		return;
	r->bufs[r->posted] = malloc(room ? room : 1);
	must(r->bufs[r->posted]);
	r->buf_mrs[r->posted] = fab_reg_mr(r->pd, r->bufs[r->posted], room, IBV_ACCESS_LOCAL_WRITE);
	must(r->buf_mrs[r->posted]);
	sge = (struct ibv_sge){ .addr = (uintptr_t)r->bufs[r->posted], .length = room,
				.lkey = r->buf_mrs[r->posted]->lkey };
	wr.wr_id = (uintptr_t)&r->cqes[r->posted];
	wr.sg_list = &sge;
	wr.num_sge = 1;
	must(fab_post_recv(r->conn, &wr) == 0);
	r->posted++;
}

static void rekey(struct run *r, unsigned which, uint32_t fewer)
{
	struct region *g = &r->regions[1 + which % (NREGIONS - 2)];
	uint32_t old = g->mr->rkey;

	must(fab_rereg_mr(g->mr, g->mem + GUARD, SPAN - fewer,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) == 0);
	must(g->mr->rkey != old);
	memcpy(g->before, g->mem, sizeof(g->before));
}

static void finish(struct run *r)
{
	short events;

	shutdown(r->peer, SHUT_WR);
	for (unsigned i = 0; !r->drained; i++) {
		must(i < 10000);
		if (!fab_arm(r->conn, &events))
			must(events == POLLIN);
		take(r, 200);
	}
	check_regions(r);
	must(fab_conn_cause(r->conn)[0]);
	must(fab_dealloc_mw(r->mw) == 0);
	/* Gone before the regions: a placement it was in must not be left behind in their keys. */
	fab_conn_destroy(r->conn);
	for (unsigned i = 0; i < NREGIONS; i++) {
		fab_dereg_mr(r->regions[i].mr);
		free(r->regions[i].mem);
	}
	for (unsigned i = 0; i < r->posted; i++) {
		fab_dereg_mr(r->buf_mrs[i]);
		free(r->bufs[i]);
	}
	fab_pd_destroy(r->pd);
	close(r->peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	static struct run r;
	unsigned action;
	short events;

	start(&r);
	while (in.left) {
		action = (unsigned)fuzz_take(&in, 1) % 8;
		if (action < 2) {
			say_frame(&r, &in, action == 0);
		} else if (action == 2) {
			say_bytes(&r, &in);
		} else if (action == 3 && !r.drained) {
			if (!fab_arm(r.conn, &events))
				must(events == POLLIN);
			take(&r, (int)fuzz_take(&in, 1));
		} else if (action == 4) {
			post_recv(&r, (uint32_t)fuzz_take(&in, 1));
		} else if (action == 5) {
			rekey(&r, (unsigned)fuzz_take(&in, 1), (uint32_t)fuzz_take(&in, 1));
		} else if (action == 6) {
			fab_disconnect(r.conn);
		} else if (action == 7 && !r.drained) {
			window(&r, (uint32_t)fuzz_take(&in, 1));
		}
	}
	finish(&r);
	return 0;
}
