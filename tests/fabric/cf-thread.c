/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance with threads: what may run at the same time does.  Made to be run under TSan. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sched.h>
#include <string.h>

#include "conformance.h"
#include "util.h"

/* An end polled by a thread of its own. */
struct poller {
	struct fab_conn *conn;
	pthread_t thread;
	atomic_bool done;
	struct fab_cqe recv, send;
	_Atomic unsigned received, sent, failed, unsent;
};

static void poller_recv(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct poller *p = container_of(cqe, struct poller, recv);
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)cqe };

	if (wc->status != IBV_WC_SUCCESS) {
		atomic_fetch_add(&p->failed, 1);
		return;
	}
	atomic_fetch_add(&p->received, 1);
	/* A revoke on another thread may have failed the connection, which then flushes this. */
	check_eq(fab_post_recv(conn, &wr), 0);
}

static void poller_send(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct poller *p = container_of(cqe, struct poller, send);

	atomic_fetch_add(wc->status == IBV_WC_SUCCESS ? &p->sent : &p->unsent, 1);
}

static void *poller_main(void *arg)
{
	struct poller *p = arg;
	short events;

	while (fab_dispatch(p->conn, 32) != -ENOTCONN) {
		struct pollfd fd = { .fd = fab_conn_fd(p->conn) };

		if (fab_arm(p->conn, &events))
			continue;
		fd.events = events;
		/* Nobody wakes this thread after a post that needs a re-arm, hence the limit. */
		provider_wait(&fd, 1, 1);
	}
	atomic_store(&p->done, true);
	return NULL;
}

/* Meanwhile the cm is served: through it some providers learn that the peer has gone. */
static void poller_join(struct world *w, struct poller *p)
{
	for (unsigned i = 0; !atomic_load(&p->done); i++) {
		check(i < WAIT_LIMIT_MS);
		world_step(w, 1);
	}
	pthread_join(p->thread, NULL);
}

static void poller_start(struct poller *p, struct end *e, unsigned nrecvs)
{
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&p->recv };

	memset(p, 0, sizeof(*p));
	e->quota = 0;
	p->conn = e->conn;
	p->recv.done = poller_recv;
	p->send.done = poller_send;
	for (unsigned i = 0; i < nrecvs; i++)
		check_eq(fab_post_recv(p->conn, &wr), 0);
	check_eq(pthread_create(&p->thread, NULL, poller_main, p), 0);
}

/* Two threads post on each end while a third polls it. */
struct poster {
	struct poller *from, *to;
	struct ibv_sge sge;
	uint64_t addr;
	uint32_t rkey;
	unsigned n;
	pthread_t thread;
};

static void *poster_main(void *arg)
{
	struct poster *q = arg;
	struct ibv_send_wr wr[2];

	for (unsigned i = 0; i < q->n; i++) {
		wr[0] = wr_write(0, &q->sge, q->addr, q->rkey);
		wr[1] = wr_write_imm(0, NULL, 0, 0, i);
		wr[0].wr_id = wr[1].wr_id = (uintptr_t)&q->from->send;
		wr[0].next = &wr[1];
		wr[1].next = NULL;
		wr[1].send_flags = IBV_SEND_SIGNALED;
		/* Both posters keep to 8 chains ahead of what is known to have arrived and to have
		 * completed: the peer has 64 receives, the queue 64 places. */
		while (i >= 8 && (atomic_load(&q->to->received) < 2 * (i - 8) ||
				  atomic_load(&q->from->sent) < 2 * (i - 8)))
			sched_yield();
		check_eq(fab_post_send(q->from->conn, wr), 0);
	}
	return NULL;
}

FAB_TEST_THREADS(promise_h_threads)
{
	enum { N = 1000, SIZE = 2048 };
	struct region src[2], dst[2];
	struct poller pollers[2];
	struct poster posters[4];
	struct end *e[2];
	struct pair p;

	pair_connect(w, &p, &default_attr);
	e[0] = p.a;
	e[1] = p.b;
	for (int i = 0; i < 2; i++) {
		src[i] = region_create(e[i]->pd, SIZE, 0);
		dst[i] = region_create(e[i]->pd, SIZE, RIGHTS);
		poller_start(&pollers[i], e[i], 64);
	}
	for (int i = 0; i < 4; i++) {
		posters[i] = (struct poster){
			.from = &pollers[i % 2], .to = &pollers[!(i % 2)], .n = N,
			.sge = region_sge(&src[i % 2], 0, SIZE),
			.addr = (uintptr_t)dst[!(i % 2)].mem, .rkey = dst[!(i % 2)].mr->rkey,
		};
		check_eq(pthread_create(&posters[i].thread, NULL, poster_main, &posters[i]), 0);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(posters[i].thread, NULL);
	for (int i = 0; i < 2; i++) {
		while (atomic_load(&pollers[i].received) < 2 * N ||
		       atomic_load(&pollers[i].sent) < 2 * N)
			sched_yield();
	}
	fab_disconnect(p.a->conn);
	for (int i = 0; i < 2; i++) {
		poller_join(w, &pollers[i]);
		check_eq(atomic_load(&pollers[i].failed), 64);
		region_destroy(&src[i]);
		region_destroy(&dst[i]);
	}
	end_free(p.a);
	end_free(p.b);
}

/* Posts eight writes; in vain once the connection has failed. */
static void *writer_main(void *arg)
{
	struct poster *q = arg;

	for (unsigned i = 0; i < q->n; i++) {
		struct ibv_send_wr wr = wr_write_imm(0, &q->sge, q->addr, q->rkey, i);

		wr.wr_id = (uintptr_t)&q->from->send;
		if (fab_post_send(q->from->conn, &wr))
			break;
	}
	return NULL;
}

/* A region that its peer fills again and again, as a client does a chunk: the end with the region
 * looks at the bytes, and opens the key again.  Meanwhile a thread gives the memory back. */
struct filled {
	struct poller p;		/* its receives look */
	struct region r;
	_Atomic unsigned looked;
	atomic_bool stop;
	_Atomic unsigned held, refused;	/* how often */
	pthread_t thread;
};

static void filled_recv(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct filled *f = container_of(container_of(cqe, struct poller, recv), struct filled, p);
	struct ibv_recv_wr wr = { .wr_id = (uintptr_t)cqe };
	uint8_t byte = (uint8_t)(atomic_load(&f->looked) + 1);

	if (wc->status != IBV_WC_SUCCESS)
		return;
	for (size_t i = 0; i < f->r.len; i += 64)
		check_eq(f->r.mem[i], byte);
	check_eq(fab_suspend_mr(f->r.mr), 0);
	check_eq(fab_post_recv(conn, &wr), 0);
	check_eq(fab_resume_mr(f->r.mr), 0);
	atomic_fetch_add(&f->looked, 1);
}

static void *hold_main(void *arg)
{
	struct filled *f = arg;

	while (!atomic_load(&f->stop)) {
		if (fab_hold_mr(f->r.mr)) {
			atomic_fetch_add(&f->refused, 1);
			sched_yield();
			continue;
		}
		/* A write that comes meanwhile, and does not wait, is cleared. */
		for (unsigned i = 0; i < 8; i++) {
			sched_yield();
			memset(f->r.mem, 0, f->r.len);
		}
		fab_release_mr(f->r.mr);
		atomic_fetch_add(&f->held, 1);
	}
	return NULL;
}

/* n: no byte of a write is lost, whenever it comes. */
FAB_TEST_THREADS(promise_n_threads)
{
	enum { SIZE = 16384, N = 64 };
	struct filled f = { .held = 0 };
	struct region src;
	struct poller a;
	struct pair p;

	pair_connect(w, &p, &default_attr);
	src = region_create(p.a->pd, SIZE, 0);
	f.r = region_create(p.b->pd, SIZE, RIGHTS);
	if (!provider_rereg) {
		region_destroy(&src);
		region_destroy(&f.r);
		pair_close(&p);
		return;
	}
	poller_start(&a, p.a, 1);
	poller_start(&f.p, p.b, 4);
	f.p.recv.done = filled_recv;
	check_eq(pthread_create(&f.thread, NULL, hold_main, &f), 0);
	/* Else the machine was busy elsewhere, and nothing was tried. */
	for (unsigned i = 0; i < N || !atomic_load(&f.held) || !atomic_load(&f.refused); i++) {
		struct ibv_sge sge = region_sge(&src, 0, SIZE);
		struct ibv_send_wr wr = wr_write_imm(0, &sge, (uintptr_t)f.r.mem, f.r.mr->rkey, i);

		check(i < 10000 * N);
		memset(src.mem, (int)(i + 1), SIZE);
		wr.wr_id = (uintptr_t)&a.send;
		wr.send_flags = IBV_SEND_SIGNALED;
		check_eq(fab_post_send(a.conn, &wr), 0);
		while (atomic_load(&f.looked) <= i || atomic_load(&a.sent) <= i)
			sched_yield();
	}
	atomic_store(&f.stop, true);
	pthread_join(f.thread, NULL);
	fab_disconnect(p.a->conn);
	poller_join(w, &a);
	poller_join(w, &f.p);
	region_destroy(&src);
	region_destroy(&f.r);
	end_free(p.a);
	end_free(p.b);
}

/* How the key of a round is taken away. */
enum revoke { BY_REGION, BY_LOCAL_INV, BY_NEXT_BIND };

/* Take the window away with a request on @b, and wait until that is done: well or with the
 * connection. */
static void revoke_window(struct poller *b, struct ibv_mw *mw, const struct region *r)
{
	unsigned before = atomic_load(&b->sent) + atomic_load(&b->unsent);
	struct ibv_send_wr wr = mw->type == IBV_MW_TYPE_2 ? wr_inv(0, mw->rkey) :
							    wr_bind(0, mw, r, 0, 0);

	wr.wr_id = (uintptr_t)&b->send;
	wr.send_flags = IBV_SEND_SIGNALED;
	if (fab_post_send(b->conn, &wr))
		return;		/* drained */
	while (atomic_load(&b->sent) + atomic_load(&b->unsent) == before)
		sched_yield();
}

static struct ibv_mw *window_open(struct end *e, enum revoke how, const struct region *r)
{
	struct ibv_mw *mw = fab_alloc_mw(e->pd, how == BY_LOCAL_INV ? IBV_MW_TYPE_2 :
								      IBV_MW_TYPE_1);
	struct ibv_send_wr wr;

	check(mw != NULL);
	wr = wr_bind(0, mw, r, 0, r->len);
	wr.send_flags = IBV_SEND_SIGNALED;
	check_eq(post(e, &wr, 1), 0);
	world_until(e->w, e->nsends == 1);
	return mw;
}

/* One write after the other while another thread takes the key away: what it then writes there
 * itself stays.  The writes are posted by a thread because a provider may do all of a write before
 * the post returns (rxe of Linux 6.1).  Returns true if the connection was hit in the middle. */
static bool revoke_round(struct world *w, enum revoke how, unsigned delay)
{
	enum { SIZE = 1 << 20 };
	struct ibv_mw *mw = NULL;
	struct region src, dst;
	struct poller a, b;
	struct poster writer;
	unsigned late = 0;
	struct pair p;
	bool hit;

	pair_connect(w, &p, &default_attr);
	src = region_create(p.a->pd, SIZE, 0);
	memset(src.mem, 0xff, SIZE);
	dst = region_create(p.b->pd, SIZE, RIGHTS | (how == BY_REGION ? 0 : IBV_ACCESS_MW_BIND));
	if (how != BY_REGION)
		mw = window_open(p.b, how, &dst);
	poller_start(&a, p.a, 1);
	poller_start(&b, p.b, 16);
	writer = (struct poster){
		.from = &a, .n = 8, .sge = region_sge(&src, 0, SIZE),
		.addr = (uintptr_t)dst.mem, .rkey = mw ? mw->rkey : dst.mr->rkey,
	};
	check_eq(pthread_create(&writer.thread, NULL, writer_main, &writer), 0);
	while (atomic_load(&b.received) < delay)
		sched_yield();
	if (mw)
		revoke_window(&b, mw, &dst);
	else
		region_revoke(&dst);
	memset(dst.mem, 0x11, SIZE);
	/* With the key gone the rest of the writes, if any, fail the connection. */
	for (int i = 0; i < 200 && atomic_load(&b.received) < 8 && !atomic_load(&b.failed); i++)
		poll(NULL, 0, 1);
	hit = atomic_load(&b.received) < 8;
	pthread_join(writer.thread, NULL);
	fab_disconnect(p.a->conn);
	poller_join(w, &a);
	poller_join(w, &b);
	for (unsigned i = 0; i < SIZE; i++)
		late += dst.mem[i] != 0x11;
	if (how == BY_REGION)
		check_eq(late, 0);
	else
		check_late(late);
	check_eq(fab_dealloc_mw(mw), 0);
	region_destroy(&src);
	region_destroy(&dst);
	end_free(p.a);
	end_free(p.b);
	return hit;
}

static void revoke_rounds(struct world *w, enum revoke how)
{
	unsigned hits = 0;

	/* Where nothing was hit the machine was busy elsewhere. */
	for (unsigned i = 0; i < 24 || (hits == 0 && i < 500); i++)
		hits += revoke_round(w, how, i % 4);
	check(hits > 0);
}

FAB_TEST_THREADS(promise_k_threads)
{
	revoke_rounds(w, BY_REGION);
}

FAB_TEST_THREADS(promise_k_window_threads)
{
	bool type_1, type_2;
	struct pair p;

	pair_connect(w, &p, &default_attr);
	type_1 = has_windows(&p, IBV_MW_TYPE_1);
	type_2 = has_windows(&p, IBV_MW_TYPE_2);
	pair_close(&p);
	if (type_2)
		revoke_rounds(w, BY_LOCAL_INV);
	if (type_1)
		revoke_rounds(w, BY_NEXT_BIND);
}
