/* SPDX-License-Identifier: BSD-3-Clause */
/* Drives both ends of connections from one thread.  Owns ends and their logs; ends with the
 * program, which a failed check or a wait without progress aborts. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "harness.h"
#include "util.h"

const struct fab_qp_attr default_attr = {
	.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 2
};

void check_failed(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
	exit(1);
}

void check_eq_failed(const char *file, int line, const char *a, long long va, const char *b,
		     long long vb)
{
	fprintf(stderr, "%s:%d: failed: %s == %s: %lld != %lld\n", file, line, a, b, va, vb);
	exit(1);
}

unsigned known_failures;
const char *provider_cipher;
const struct fab_tls *provider_tls[2];

void known_failure(const char *what)
{
	known_failures++;
	printf("  XFAIL: %s\n", what);
	fflush(stdout);
}

void world_init(struct world *w, const struct fab_provider *p)
{
	char err[256] = "";

	memset(w, 0, sizeof(*w));
	w->p = p;
	if (fab_addr_parse(provider_address, p, 0, &w->addr, err, sizeof(err)))
		check_failed(__FILE__, __LINE__, err);
	for (int i = 0; i < 2; i++)
		check_eq(fab_cm_create(&(struct fab_cm_conf){ .provider = p,
							      .tls = provider_tls[i] },
				       &w->cm[i]), 0);
	check_eq(fab_listen(w->cm[0], &w->addr, &w->listener), 0);
	fab_listener_addr(w->listener, &w->addr);
	check(fab_addr_is_unix(&w->addr) || fab_addr_port(&w->addr) != 0);
}

void world_fini(struct world *w)
{
	check_eq(w->nends, 0);
	fab_listener_destroy(w->listener);
	for (int i = 0; i < 2; i++)
		fab_cm_destroy(w->cm[i]);
}

static struct end *end_new(struct world *w)
{
	struct end *e = calloc(1, sizeof(*e));

	check(e != NULL);
	check(w->nends < WORLD_ENDS);
	e->w = w;
	e->quota = 16;
	w->ends[w->nends++] = e;
	return e;
}

static void check_cipher(const struct end *e)
{
	struct fab_identity id;

	fab_conn_identity(e->conn, &id);
	check(!provider_cipher || !strncmp(id.cipher, provider_cipher, strlen(provider_cipher)));
}

static void end_event(struct world *w, const struct fab_event *ev)
{
	struct end *e = ev->type == FAB_EVENT_CONNECT_REQUEST ? end_new(w) :
								fab_conn_context(ev->conn);

	if (ev->type != FAB_EVENT_ROUTE_RESOLVED &&
	    !(ev->type == FAB_EVENT_ESTABLISHED && e->passive)) {
		memcpy(e->pdata, ev->private_data, ev->private_data_len);
		e->pdata_len = ev->private_data_len;
	}
	switch (ev->type) {
	case FAB_EVENT_CONNECT_REQUEST:
		check(ev->listener != NULL);
		e->passive = true;
		e->conn = ev->conn;
		fab_conn_set_context(ev->conn, e);
		w->request = e;
		w->nrequests++;
		break;
	case FAB_EVENT_ROUTE_RESOLVED:
		e->status = 1;
		break;
	case FAB_EVENT_ESTABLISHED:
		e->established = e->pollable = true;
		check_cipher(e);
		break;
	case FAB_EVENT_REJECTED:
		e->rejected = true;
		break;
	case FAB_EVENT_UNREACHABLE:
		e->unreachable = true;
		e->status = ev->status;
		break;
	case FAB_EVENT_DISCONNECTED:
		fab_disconnect(e->conn);
		break;
	case FAB_EVENT_LISTENER_GONE:
		check(!"a device that goes");
	}
}

static struct fab_cqe send_cqes[SEEN_MAX], recv_cqes[SEEN_MAX];

uint64_t send_id(unsigned i)
{
	check(i < SEEN_MAX);
	return (uintptr_t)&send_cqes[i];
}

uint64_t recv_id(unsigned i)
{
	check(i < SEEN_MAX);
	return (uintptr_t)&recv_cqes[i];
}

static bool is_logged(uint64_t wr_id)
{
	return wr_id - recv_id(0) < sizeof(recv_cqes) || wr_id - send_id(0) < sizeof(send_cqes);
}

static bool is_recv(uint64_t wr_id, unsigned *i)
{
	uint64_t off = wr_id - recv_id(0);
	bool recv = off < sizeof(recv_cqes);

	if (!recv)
		off = wr_id - send_id(0);
	check(off < sizeof(send_cqes) && off % sizeof(send_cqes[0]) == 0);
	*i = (unsigned)(off / sizeof(send_cqes[0]));
	return recv;
}

static void end_log(struct end *e, const struct ibv_wc *wc)
{
	unsigned id;
	bool recv = is_recv(wc->wr_id, &id);
	struct seen *s;

	check((recv ? e->nrecvs : e->nsends) < SEEN_MAX);
	s = recv ? &e->recvs[e->nrecvs++] : &e->sends[e->nsends++];
	s->id = id;
	s->wc = *wc;
	if (wc->status == IBV_WC_SUCCESS)
		check_eq(recv, !!(wc->opcode & IBV_WC_RECV));
}

/* Returns true if there was something. */
static bool end_poll(struct end *e)
{
	struct ibv_wc wc[64];
	int n;

	if (!e->pollable || e->drained || e->quota == 0)
		return false;
	n = fab_poll(e->conn, wc, MIN(e->quota, (int)ARRAY_SIZE(wc)));
	if (n < 0) {
		check_eq(n, -ENOTCONN);
		check_eq(fab_poll(e->conn, wc, 1), -ENOTCONN);
		e->drained = true;
		return true;
	}
	for (int i = 0; i < n; i++) {
		if (e->dispatches && !is_logged(wc[i].wr_id)) {
			struct fab_cqe *cqe = (struct fab_cqe *)(uintptr_t)wc[i].wr_id;

			cqe->done(e->conn, cqe, &wc[i]);
		} else {
			end_log(e, &wc[i]);
		}
	}
	return n > 0;
}

bool world_step(struct world *w, int timeout_ms)
{
	struct pollfd fds[2 + WORLD_ENDS];
	bool busy = false;
	struct fab_event ev;
	unsigned n = 0;
	int rc;

	for (int i = 0; i < 2; i++) {
		while ((rc = fab_cm_get_event(w->cm[i], &ev)) > 0) {
			end_event(w, &ev);
			busy = true;
		}
		check_eq(rc, 0);
		fds[n++] = (struct pollfd){ .fd = fab_cm_fd(w->cm[i]), .events = POLLIN };
	}
	for (unsigned i = 0; i < w->nends; i++)
		busy |= end_poll(w->ends[i]);
	if (busy)
		return true;
	for (unsigned i = 0; i < w->nends; i++) {
		struct end *e = w->ends[i];
		short events = 0;

		if (!e->pollable || e->drained || e->quota == 0)
			continue;
		if (fab_arm(e->conn, &events))
			return true;
		fds[n++] = (struct pollfd){ .fd = fab_conn_fd(e->conn), .events = events };
	}
	return provider_wait(fds, n, timeout_ms) > 0;
}

void world_step_or_die(struct world *w, const char *file, int line, const char *what)
{
	if (!world_step(w, WAIT_LIMIT_MS))
		check_failed(file, line, what);
}

void world_settle(struct world *w, int quiet_ms)
{
	while (world_step(w, quiet_ms))
		;
}

struct end *end_active(struct world *w, const struct fab_addr *dst, const struct fab_qp_attr *attr)
{
	struct end *e = end_new(w);

	check_eq(fab_conn_create(w->cm[1], e, &e->conn), 0);
	check_eq(fab_resolve(e->conn, NULL, dst), 0);
	world_until(w, e->status == 1 || e->unreachable);
	if (e->status == 1 && attr)
		end_create_qp(e, NULL, attr);
	return e;
}

void end_create_qp(struct end *e, struct fab_pd *pd, const struct fab_qp_attr *attr)
{
	if (!pd) {
		check_eq(fab_pd_create(e->conn, &e->pd), 0);
		pd = e->pd;
	}
	check_eq(fab_create_qp(e->conn, pd, attr), 0);
	check(fab_conn_fd(e->conn) >= 0);
}

int end_accept(struct end *e, const void *private_data, size_t len)
{
	int rc = fab_accept(e->conn, private_data, len);

	e->pollable = rc == 0;
	return rc;
}

void end_gone(struct end *e)
{
	struct world *w = e->w;

	for (unsigned i = 0; i < w->nends; i++) {
		if (w->ends[i] == e)
			w->ends[i] = w->ends[--w->nends];
	}
	if (w->request == e)
		w->request = NULL;
	fab_pd_destroy(e->pd);
	free(e);
}

void end_free(struct end *e)
{
	fab_conn_destroy(e->conn);
	end_gone(e);
}

void end_close(struct end *e)
{
	fab_disconnect(e->conn);
	e->quota = 16;
	world_until(e->w, e->drained);
	end_free(e);
}

void pair_connect(struct world *w, struct pair *p, const struct fab_qp_attr *attr)
{
	p->a = end_active(w, &w->addr, attr);
	w->request = NULL;
	check_eq(fab_connect(p->a->conn, "hello", 5), 0);
	world_until(w, w->request);
	p->b = w->request;
	end_create_qp(p->b, NULL, attr);
	check_eq(end_accept(p->b, "welcome", 7), 0);
	world_until(w, p->a->established && p->b->established);
}

void pair_close(struct pair *p)
{
	end_close(p->a);
	end_close(p->b);
}

struct region region_create(struct fab_pd *pd, size_t len, int access)
{
	struct region r = { .len = len };

	r.mem = calloc(1, len ? len : 1);
	check(r.mem != NULL);
	r.mr = fab_reg_mr(pd, r.mem, len, access);
	check(r.mr != NULL);
	return r;
}

void region_revoke(struct region *r)
{
	if (provider_rereg) {
		check_eq(fab_revoke_mr(r->mr), 0);
	} else {
		fab_dereg_mr(r->mr);
		r->mr = NULL;
	}
}

void region_destroy(struct region *r)
{
	fab_dereg_mr(r->mr);
	free(r->mem);
}

struct ibv_sge region_sge(const struct region *r, size_t off, size_t len)
{
	return (struct ibv_sge){ .addr = (uintptr_t)r->mem + off, .length = (uint32_t)len,
				 .lkey = r->mr->lkey };
}

int post_recvs(struct end *e, unsigned first, unsigned n)
{
	int rc = 0;

	for (unsigned i = 0; i < n && !rc; i++) {
		struct ibv_recv_wr wr = { .wr_id = recv_id(first + i) };

		rc = fab_post_recv(e->conn, &wr);
	}
	return rc;
}

static struct ibv_send_wr wr_new(unsigned id, enum ibv_wr_opcode opcode, struct ibv_sge *sge)
{
	return (struct ibv_send_wr){ .wr_id = send_id(id), .opcode = opcode, .sg_list = sge,
				     .num_sge = sge ? 1 : 0 };
}

struct ibv_send_wr wr_write(unsigned id, struct ibv_sge *sge, uint64_t addr, uint32_t rkey)
{
	struct ibv_send_wr wr = wr_new(id, IBV_WR_RDMA_WRITE, sge);

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = rkey;
	return wr;
}

struct ibv_send_wr wr_write_imm(unsigned id, struct ibv_sge *sge, uint64_t addr, uint32_t rkey,
				uint32_t imm)
{
	struct ibv_send_wr wr = wr_write(id, sge, addr, rkey);

	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.imm_data = htobe32(imm);
	return wr;
}

struct ibv_send_wr wr_send(unsigned id, struct ibv_sge *sge)
{
	return wr_new(id, IBV_WR_SEND, sge);
}

struct ibv_send_wr wr_send_inv(unsigned id, struct ibv_sge *sge, uint32_t rkey)
{
	struct ibv_send_wr wr = wr_new(id, IBV_WR_SEND_WITH_INV, sge);

	wr.invalidate_rkey = rkey;
	return wr;
}

struct ibv_send_wr wr_inv(unsigned id, uint32_t rkey)
{
	struct ibv_send_wr wr = wr_new(id, IBV_WR_LOCAL_INV, NULL);

	wr.invalidate_rkey = rkey;
	return wr;
}

struct ibv_send_wr wr_bind(unsigned id, struct ibv_mw *mw, const struct region *r, size_t off,
			   size_t len)
{
	struct ibv_send_wr wr = wr_new(id, IBV_WR_BIND_MW, NULL);

	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = r->mr, .addr = (uintptr_t)r->mem + off, .length = len,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	return wr;
}

int post(struct end *e, struct ibv_send_wr *wr, unsigned n)
{
	int rc;

	for (unsigned i = 0; i < n; i++)
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	rc = fab_post_send(e->conn, wr);
	for (unsigned i = 0; i < n && !rc; i++) {
		if (wr[i].opcode == IBV_WR_BIND_MW)
			wr[i].bind_mw.mw->rkey = wr[i].bind_mw.rkey;
	}
	return rc;
}

/* ---- tests ---- */

static struct fab_test *tests;

void fab_test_add(struct fab_test *test)
{
	struct fab_test **last = &tests;

	while (*last)
		last = &(*last)->next;
	*last = test;
}

static bool chosen(const char *name, char **names)
{
	bool all = !names || !*names;

	for (; !all && *names; names++) {
		if (strncmp(name, *names, strlen(*names)) == 0)
			return true;
	}
	return all;
}

unsigned fab_tests_run(const struct fab_provider *p, struct world *w, char **names,
		       void (*after)(void))
{
	unsigned n = 0;

	for (struct fab_test *t = tests; t; t = t->next) {
		if (!chosen(t->name, names) || (t->threads && !provider_threads))
			continue;
		printf("%s\n", t->name);
		fflush(stdout);
		world_init(w, p);
		if (t->run)
			t->run(w);
		else
			t->run_alone();
		world_fini(w);
		if (after)
			after();
		n++;
	}
	return n;
}
