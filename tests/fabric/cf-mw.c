/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance: memory windows.  In each pair b has the windows and a writes through them. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "conformance.h"
#include "util.h"

#define WINDOW (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)

bool has_windows(const struct pair *p, enum ibv_mw_type type)
{
	struct fab_device_attr attr;

	check_eq(fab_query_device(p->b->conn, &attr), 0);
	if (attr.caps & FAB_CAP_MW(type)) {
		check(attr.max_mw > 0);
		return true;
	}
	printf("  SKIPPED: this device has no windows of type %d\n", (int)type);
	check(!provider_windows);
	check(fab_alloc_mw(p->b->pd, type) == NULL && errno == EOPNOTSUPP);
	return false;
}

void check_late(unsigned n)
{
	char what[80];

	check(n <= provider_late_bytes);
	if (!n)
		return;
	snprintf(what, sizeof(what), "%u bytes were placed under a key that was taken away", n);
	known_failure(what);
}

/* A pair with a region of 4096 bytes at b, a window that is not bound yet, and bytes 1.. at a. */
struct rig {
	struct world *w;
	struct pair p;
	struct region src, dst;
	struct ibv_mw *mw;
};

static bool rig_open(struct world *w, struct rig *r, enum ibv_mw_type type, size_t size)
{
	r->w = w;
	pair_connect(w, &r->p, &default_attr);
	if (!has_windows(&r->p, type)) {
		pair_close(&r->p);
		return false;
	}
	r->src = region_create(r->p.a->pd, size, 0);
	memset(r->src.mem, 0xff, size);
	r->dst = region_create(r->p.b->pd, size, WINDOW);
	r->mw = fab_alloc_mw(r->p.b->pd, type);
	check(r->mw != NULL);
	check_eq(r->mw->type, type);
	check_eq(post_recvs(r->p.a, 0, 8), 0);
	check_eq(post_recvs(r->p.b, 0, 8), 0);
	return true;
}

/* ORDER: windows before the connections they may be bound on, regions after their windows. */
static void rig_close(struct rig *r)
{
	check_eq(fab_dealloc_mw(r->mw), 0);
	region_destroy(&r->src);
	region_destroy(&r->dst);
	if (!r->p.a->drained || !r->p.b->drained) {
		pair_close(&r->p);
	} else {
		end_free(r->p.a);
		end_free(r->p.b);
	}
}

/* Bind and wait for it. */
static void rig_bind(struct rig *r, size_t off, size_t len)
{
	struct ibv_send_wr wr = wr_bind(0, r->mw, &r->dst, off, len);
	unsigned n = r->p.b->nsends;

	wr.send_flags = IBV_SEND_SIGNALED;
	check_eq(post(r->p.b, &wr, 1), 0);
	world_until(r->w, r->p.b->nsends == n + 1);
	check_eq(r->p.b->sends[n].wc.status, IBV_WC_SUCCESS);
	check_eq(r->p.b->sends[n].wc.opcode, IBV_WC_BIND_MW);
}

static void rig_inv(struct rig *r)
{
	struct ibv_send_wr wr = wr_inv(1, r->mw->rkey);
	unsigned n = r->p.b->nsends;

	wr.send_flags = IBV_SEND_SIGNALED;
	check_eq(post(r->p.b, &wr, 1), 0);
	world_until(r->w, r->p.b->nsends == n + 1);
	check_eq(r->p.b->sends[n].wc.status, IBV_WC_SUCCESS);
	check_eq(r->p.b->sends[n].wc.opcode, IBV_WC_LOCAL_INV);
}

/* From @e write @len bytes of @byte under @rkey; the immediate is @byte. */
static void write_byte(struct rig *r, struct end *e, uint32_t rkey, size_t off, size_t len,
		       uint8_t byte)
{
	struct ibv_sge sge = region_sge(&r->src, 0, len);
	struct ibv_send_wr wr = wr_write_imm(2, &sge, (uintptr_t)r->dst.mem + off, rkey, byte);

	memset(r->src.mem, byte, len);
	check_eq(post(e, &wr, 1), 0);
}

static void check_bytes(const struct rig *r, size_t off, size_t len, uint8_t byte)
{
	for (size_t i = off; i < off + len; i++)
		check_eq(r->dst.mem[i], byte);
}

/* The write arrives at @e. */
static void wrote(struct rig *r, struct end *e, size_t off, size_t len, uint8_t byte)
{
	unsigned n = e->nrecvs;

	world_until(r->w, e->nrecvs == n + 1);
	check_eq(e->recvs[n].wc.status, IBV_WC_SUCCESS);
	check_eq(be32toh(e->recvs[n].wc.imm_data), byte);
	check_bytes(r, off, len, byte);
	check_eq(post_recvs(e, 0, 1), 0);
}

/* From here on nothing succeeds and nothing changes. */
static void refused(struct rig *r)
{
	static uint8_t before[4096];

	r->p.b->nrecvs = 0;
	memcpy(before, r->dst.mem, sizeof(before));
	check_refused(r->w, &r->p);
	check(memcmp(before, r->dst.mem, sizeof(before)) == 0);
}

/* m: from bind to invalidate, and not a moment longer. */
FAB_TEST(promise_m_bind)
{
	struct rig r;

	if (!rig_open(w, &r, IBV_MW_TYPE_2, 4096))
		return;
	rig_bind(&r, 0, 4096);
	write_byte(&r, r.p.a, r.mw->rkey, 0, 4096, 1);
	wrote(&r, r.p.b, 0, 4096, 1);
	write_byte(&r, r.p.a, r.mw->rkey, 4095, 1, 2);
	wrote(&r, r.p.b, 4095, 1, 2);
	check_eq(fab_rereg_mr(r.dst.mr, r.dst.mem, r.dst.len, WINDOW),
		 provider_rereg ? -EBUSY : -ENOTSUP);
	rig_inv(&r);
	/* Free again: any window of the pd may be bound, this one too. */
	rig_bind(&r, 0, 4096);
	write_byte(&r, r.p.a, r.mw->rkey, 0, 100, 3);
	wrote(&r, r.p.b, 0, 100, 3);
	rig_inv(&r);
	write_byte(&r, r.p.a, r.mw->rkey, 0, 100, 4);
	refused(&r);
	rig_close(&r);
}

/* m, i: where registering looks at no memory, a window of one region that is all there is: the
 * window opens its part, the region nothing. */
FAB_TEST(promise_m_all_memory)
{
	struct ibv_mr *all, *part;
	struct rig r;

	if (!provider_rereg) {
		printf("  SKIPPED: this device registers what is there\n");
		return;
	}
	for (unsigned turn = 0; turn < 2; turn++) {
		check(rig_open(w, &r, IBV_MW_TYPE_2, 4096));
		all = fab_reg_mr(r.p.b->pd, NULL, SIZE_MAX, WINDOW);
		check(all != NULL);
		part = r.dst.mr;
		r.dst.mr = all;
		rig_bind(&r, 100, 1000);
		write_byte(&r, r.p.a, r.mw->rkey, 100, 1000, 1);
		wrote(&r, r.p.b, 100, 1000, 1);
		if (turn)
			write_byte(&r, r.p.a, r.mw->rkey, 100, 1001, 2);
		else
			write_byte(&r, r.p.a, all->rkey, 100, 1, 2);
		refused(&r);
		r.dst.mr = part;
		check_eq(fab_dealloc_mw(r.mw), 0);
		r.mw = NULL;
		fab_dereg_mr(all);
		rig_close(&r);
	}
}

/* m, i: the peer calls what the window opens by its place there, and nothing else by anything. */
FAB_TEST(promise_m_zero_based)
{
	static const enum ibv_mw_type types[] = { IBV_MW_TYPE_2, IBV_MW_TYPE_1 };
	static const uint64_t bad[] = { 1, UINT64_MAX, 100 };	/* of as many bytes as it has */

	for (unsigned i = 0; i < 2 * ARRAY_SIZE(bad); i++) {
		struct fab_device_attr attr;
		struct ibv_send_wr wr;
		struct ibv_sge sge;
		struct rig r;

		if (!rig_open(w, &r, types[i % 2], 4096))
			continue;
		check_eq(fab_query_device(r.p.b->conn, &attr), 0);
		check_eq(!!(attr.caps & FAB_CAP_MW_ZERO_BASED), provider_zero_based);
		wr = wr_bind(0, r.mw, &r.dst, 100, 1000);
		wr.bind_mw.bind_info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
		wr.send_flags = IBV_SEND_SIGNALED;
		check_eq(post(r.p.b, &wr, 1), provider_zero_based ? 0 : -EINVAL);
		if (!provider_zero_based) {
			rig_close(&r);
			continue;
		}
		world_until(w, r.p.b->nsends == 1);
		check_eq(r.p.b->sends[0].wc.status, IBV_WC_SUCCESS);
		sge = region_sge(&r.src, 0, 1000);
		memset(r.src.mem, 1, 1000);
		wr = wr_write_imm(2, &sge, 0, r.mw->rkey, 1);
		check_eq(post(r.p.a, &wr, 1), 0);
		wrote(&r, r.p.b, 100, 1000, 1);
		check_bytes(&r, 0, 100, 0);
		check_bytes(&r, 1100, 2996, 0);
		memset(r.src.mem, 2, 1000);
		wr = wr_write_imm(2, &sge,
				  bad[i / 2] == 100 ? (uintptr_t)r.dst.mem + 100 : bad[i / 2],
				  r.mw->rkey, 2);
		check_eq(post(r.p.a, &wr, 1), 0);
		refused(&r);
		rig_close(&r);
	}
}

/* d, m: what is bound in a chain is good for what the peer does on the next message of it; the old
 * key goes with LOCAL_INV in the same chain.  So often that keys wrap. */
FAB_TEST(promise_m_t18_chain)
{
	struct ibv_send_wr wr[3];
	struct rig r;
	uint32_t old;

	if (!rig_open(w, &r, IBV_MW_TYPE_2, 4096))
		return;
	rig_bind(&r, 0, 4096);
	for (unsigned i = 0; i < 600; i++) {
		old = r.mw->rkey;
		wr[0] = wr_inv(0, old);
		wr[1] = wr_bind(1, r.mw, &r.dst, 0, 4096);
		wr[2] = wr_send(2, NULL);
		check_eq(post(r.p.b, wr, 3), 0);
		check(r.mw->rkey != old && r.mw->rkey >> 8 == old >> 8);
		world_until(w, r.p.a->nrecvs == i + 1);
		check_eq(r.p.a->recvs[i].wc.status, IBV_WC_SUCCESS);
		check_eq(post_recvs(r.p.a, 0, 1), 0);
		write_byte(&r, r.p.a, r.mw->rkey, 0, 64, (uint8_t)i);
		wrote(&r, r.p.b, 0, 64, (uint8_t)i);
	}
	write_byte(&r, r.p.a, old, 0, 64, 0x55);
	refused(&r);
	rig_close(&r);
}

/* The next receive is that of @wr, which asks for @sge to be sent and the key to be invalidated. */
static void remote_inv(struct rig *r, struct ibv_sge *sge)
{
	struct ibv_sge data = region_sge(&r->src, 0, 64);
	struct ibv_send_wr wr[2];
	const struct ibv_wc *wc;

	rig_bind(r, 0, 4096);
	memset(r->src.mem, (int)r->mw->rkey, 64);
	r->p.b->nrecvs = 0;
	wr[0] = wr_write(0, &data, (uintptr_t)r->dst.mem, r->mw->rkey);
	wr[1] = wr_send_inv(1, sge, r->mw->rkey);
	check_eq(post(r->p.a, wr, 2), 0);
	world_until(r->w, r->p.b->nrecvs == 1);
	wc = &r->p.b->recvs[0].wc;
	check_eq(wc->status, IBV_WC_SUCCESS);
	check_eq(wc->opcode, IBV_WC_RECV);
	check(wc->wc_flags & IBV_WC_WITH_INV);
	check(!(wc->wc_flags & IBV_WC_WITH_IMM));
	check_eq(wc->invalidated_rkey, r->mw->rkey);
	check_eq(wc->byte_len, sge ? sge->length : 0);
	check_bytes(r, 0, 64, (uint8_t)r->mw->rkey);
}

/* k, m: the peer gives the key back, behind a write; the receive tells which. */
FAB_TEST(promise_m_remote_inv)
{
	struct ibv_recv_wr recv = { .wr_id = recv_id(9), .num_sge = 1 };
	struct ibv_send_wr wr = wr_send(0, NULL);
	struct ibv_sge from, to;
	struct region in;
	struct rig r;

	if (!rig_open(w, &r, IBV_MW_TYPE_2, 4096))
		return;
	remote_inv(&r, NULL);
	remote_inv(&r, NULL);
	/* With bytes of its own: use up the receives without room first. */
	r.p.b->nrecvs = 0;
	for (unsigned i = 0; i < 6; i++)
		check_eq(post(r.p.a, &wr, 1), 0);
	world_until(w, r.p.b->nrecvs == 6);
	in = region_create(r.p.b->pd, 64, IBV_ACCESS_LOCAL_WRITE);
	to = region_sge(&in, 0, 64);
	recv.sg_list = &to;
	check_eq(fab_post_recv(r.p.b->conn, &recv), 0);
	from = region_sge(&r.src, 0, 64);
	remote_inv(&r, &from);
	check(memcmp(in.mem, r.src.mem, 64) == 0);
	check_eq(post_recvs(r.p.b, 0, 2), 0);
	write_byte(&r, r.p.a, r.mw->rkey, 0, 64, (uint8_t)(r.mw->rkey + 1));
	refused(&r);
	region_destroy(&in);
	rig_close(&r);
}

/* A second connection into @r's pd. */
static struct end *second(struct rig *r, struct end **peer)
{
	struct end *b2;

	r->w->request = NULL;
	*peer = end_active(r->w, &r->w->addr, NULL);
	end_create_qp(*peer, r->p.a->pd, &default_attr);
	check_eq(fab_connect((*peer)->conn, NULL, 0), 0);
	world_until(r->w, r->w->request);
	b2 = r->w->request;
	end_create_qp(b2, r->p.b->pd, &default_attr);
	check_eq(post_recvs(b2, 0, 4), 0);
	check_eq(end_accept(b2, NULL, 0), 0);
	world_until(r->w, (*peer)->established && b2->established);
	return b2;
}

/* m: a window of type 1 is good on each connection of the pd, can be bound again on any, and a bind
 * to nothing takes it away. */
FAB_TEST(promise_m_t20_type_1)
{
	struct ibv_send_wr wr[2];
	struct end *a2, *b2;
	uint32_t old;
	struct rig r;

	if (!rig_open(w, &r, IBV_MW_TYPE_1, 4096))
		return;
	b2 = second(&r, &a2);
	rig_bind(&r, 0, 4096);
	write_byte(&r, r.p.a, r.mw->rkey, 0, 4096, 1);
	wrote(&r, r.p.b, 0, 4096, 1);
	write_byte(&r, a2, r.mw->rkey, 0, 4096, 2);
	wrote(&r, b2, 0, 4096, 2);
	/* From the other connection, and with the message that tells the new key in one chain. */
	check_eq(post_recvs(a2, 0, 1), 0);
	for (unsigned i = 0; i < 300; i++) {
		old = r.mw->rkey;
		wr[0] = wr_bind(3, r.mw, &r.dst, 0, 4096);
		wr[1] = wr_send(4, NULL);
		check_eq(post(b2, wr, 2), 0);
		check_eq(r.mw->rkey, ibv_inc_rkey(old));
		world_until(w, a2->nrecvs == i + 1);
		check_eq(post_recvs(a2, 0, 1), 0);
		write_byte(&r, i % 2 ? r.p.a : a2, r.mw->rkey, 0, 64, (uint8_t)i);
		wrote(&r, i % 2 ? r.p.b : b2, 0, 64, (uint8_t)i);
	}
	rig_bind(&r, 0, 0);
	write_byte(&r, a2, r.mw->rkey, 0, 64, 0x66);
	world_until(w, a2->drained && b2->drained);
	check_eq(b2->recvs[b2->nrecvs - 1].wc.status != IBV_WC_SUCCESS, 1);
	check(r.dst.mem[0] != 0x66);
	/* Nothing of this is the first connection's business, and there the window is of use
	 * again. */
	rig_bind(&r, 0, 4096);
	write_byte(&r, r.p.a, r.mw->rkey, 0, 64, 3);
	wrote(&r, r.p.b, 0, 64, 3);
	write_byte(&r, r.p.a, old, 0, 64, 0x67);
	refused(&r);
	end_free(a2);
	end_free(b2);
	rig_close(&r);
}

/* a, d, m: binds of type 1 between ordinary requests, in a chain longer than what a provider may
 * post at once: all in their order. */
FAB_TEST(promise_m_mixed)
{
	enum { N = 40 };
	static struct ibv_send_wr wr[N];
	struct ibv_mw *mw[3];
	struct rig r;

	if (!rig_open(w, &r, IBV_MW_TYPE_1, 4096))
		return;
	check_eq(post_recvs(r.p.a, 8, N), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(mw); i++) {
		mw[i] = fab_alloc_mw(r.p.b->pd, IBV_MW_TYPE_1);
		check(mw[i] != NULL);
	}
	for (unsigned i = 0; i < N; i++) {
		/* Alone, two in a row, first and last. */
		if (i == 0 || i == 20 || i == N - 1)
			wr[i] = wr_bind(i, mw[i / 19], &r.dst, i / 19 * 1024, 1024);
		else if (i == 21)
			wr[i] = wr_bind(i, r.mw, &r.dst, 3072, 1024);
		else
			wr[i] = wr_send(i, NULL);
		wr[i].send_flags = IBV_SEND_SIGNALED;
	}
	check_eq(post(r.p.b, wr, N), 0);
	world_until(w, r.p.b->nsends == N && r.p.a->nrecvs == N - 4);
	for (unsigned i = 0; i < N; i++) {
		check_eq(r.p.b->sends[i].id, i);
		check_eq(r.p.b->sends[i].wc.status, IBV_WC_SUCCESS);
		check_eq(r.p.b->sends[i].wc.opcode,
			 wr[i].opcode == IBV_WR_BIND_MW ? IBV_WC_BIND_MW : IBV_WC_SEND);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(mw); i++) {
		write_byte(&r, r.p.a, mw[i]->rkey, i * 1024, 1024, (uint8_t)(i + 1));
		wrote(&r, r.p.b, i * 1024, 1024, (uint8_t)(i + 1));
	}
	write_byte(&r, r.p.a, r.mw->rkey, 3072, 1024, 9);
	wrote(&r, r.p.b, 3072, 1024, 9);
	for (unsigned i = 0; i < ARRAY_SIZE(mw); i++)
		check_eq(fab_dealloc_mw(mw[i]), 0);
	rig_close(&r);
}

/* ---- against the rules ---- */

enum rule {
	BIND_TWICE, BIND_NOTHING, BIND_BEHIND, BIND_IN_FRONT, BIND_LONG, BIND_NO_RIGHT,
	BIND_READ_ONLY, BIND_OTHER_PD, BIND_STALE, BIND_SAME, BIND_OTHER_KEY, BIND_NOT_NEXT,
	INV_STALE, INV_NEVER, INV_TWICE, INV_REGION, INV_TYPE_1, INV_ELSEWHERE,
};

static const struct rule_case {
	const char *what;
	enum rule rule;
	enum ibv_mw_type type;
} rule_cases[] = {
	{ "bind of a bound window", BIND_TWICE, IBV_MW_TYPE_2 },
	{ "bind of type 2 to nothing", BIND_NOTHING, IBV_MW_TYPE_2 },
	{ "bind behind the region", BIND_BEHIND, IBV_MW_TYPE_2 },
	{ "bind in front of the region", BIND_IN_FRONT, IBV_MW_TYPE_1 },
	{ "bind longer than the region", BIND_LONG, IBV_MW_TYPE_1 },
	{ "bind to a region without MW_BIND", BIND_NO_RIGHT, IBV_MW_TYPE_2 },
	{ "bind to a region without LOCAL_WRITE", BIND_READ_ONLY, IBV_MW_TYPE_2 },
	{ "bind to a region of another pd", BIND_OTHER_PD, IBV_MW_TYPE_2 },
	{ "bind with a stale ibv_mw.rkey", BIND_STALE, IBV_MW_TYPE_2 },
	{ "bind under the last key", BIND_SAME, IBV_MW_TYPE_2 },
	{ "bind under the key of another window", BIND_OTHER_KEY, IBV_MW_TYPE_2 },
	{ "bind of type 1 with a key of one's own", BIND_NOT_NEXT, IBV_MW_TYPE_1 },
	{ "invalidate of another tag", INV_STALE, IBV_MW_TYPE_2 },
	{ "invalidate of a window never bound", INV_NEVER, IBV_MW_TYPE_2 },
	{ "invalidate twice", INV_TWICE, IBV_MW_TYPE_2 },
	{ "invalidate of a region", INV_REGION, IBV_MW_TYPE_2 },
	{ "invalidate of type 1", INV_TYPE_1, IBV_MW_TYPE_1 },
	{ "invalidate on another connection", INV_ELSEWHERE, IBV_MW_TYPE_2 },
};

/* The request of @c, with what it needs; @other is a region of the kind it wants. */
static struct ibv_send_wr rule_wr(struct rig *r, const struct rule_case *c, struct region *other)
{
	struct ibv_send_wr wr = wr_bind(5, r->mw, other->mr ? other : &r->dst, 0, 64);

	switch (c->rule) {
	case BIND_NOTHING:
		wr.bind_mw.bind_info.length = 0;
		break;
	case BIND_BEHIND:
		wr.bind_mw.bind_info.addr += 4096 - 63;
		break;
	case BIND_IN_FRONT:
		wr.bind_mw.bind_info.addr -= 1;
		break;
	case BIND_LONG:
		wr.bind_mw.bind_info.length = 4097;
		break;
	case BIND_STALE:
		r->mw->rkey = ibv_inc_rkey(r->mw->rkey);
		break;
	case BIND_SAME:
		wr.bind_mw.rkey = r->mw->rkey;
		break;
	case BIND_OTHER_KEY:
		wr.bind_mw.rkey ^= 0x100;
		break;
	case BIND_NOT_NEXT:
		wr.bind_mw.rkey = ibv_inc_rkey(wr.bind_mw.rkey);
		break;
	case INV_STALE:
		wr = wr_inv(5, ibv_inc_rkey(r->mw->rkey));
		break;
	case INV_REGION:
		wr = wr_inv(5, r->dst.mr->rkey);
		break;
	case INV_NEVER:
	case INV_TWICE:
	case INV_TYPE_1:
	case INV_ELSEWHERE:
		wr = wr_inv(5, r->mw->rkey);
		break;
	default:
		break;
	}
	return wr;
}

static struct region rule_region(struct rig *r, enum rule rule)
{
	struct region none = { 0 };

	switch (rule) {
	case BIND_NO_RIGHT:
		return region_create(r->p.b->pd, 4096, RIGHTS);
	case BIND_READ_ONLY:
		return region_create(r->p.b->pd, 4096, IBV_ACCESS_MW_BIND);
	case BIND_OTHER_PD:
		return region_create(r->p.a->pd, 4096, WINDOW);
	default:
		return none;
	}
}

static void break_rule(struct world *w, const struct rule_case *c)
{
	struct end *a2, *b2;
	struct region other;
	struct ibv_send_wr wr;
	struct rig r;

	if (!rig_open(w, &r, c->type, 4096))
		return;
	other = rule_region(&r, c->rule);
	if (c->rule == BIND_TWICE || c->rule == INV_STALE || c->rule == INV_TWICE ||
	    c->rule == INV_TYPE_1 || c->rule == INV_ELSEWHERE || c->rule == BIND_STALE)
		rig_bind(&r, 0, 4096);
	if (c->rule == INV_TWICE || c->rule == BIND_STALE)
		rig_inv(&r);
	if (c->rule == INV_ELSEWHERE) {
		b2 = second(&r, &a2);
		wr = rule_wr(&r, c, &other);
		check_eq(post(b2, &wr, 1), 0);
		world_until(w, b2->drained && a2->drained);
		check(b2->nsends == 1 && b2->sends[0].wc.status != IBV_WC_SUCCESS);
		/* And the window is as it was. */
		write_byte(&r, r.p.a, r.mw->rkey, 0, 64, 9);
		wrote(&r, r.p.b, 0, 64, 9);
		end_free(a2);
		end_free(b2);
		rig_close(&r);
		return;
	}
	r.p.b->nsends = 0;
	wr = rule_wr(&r, c, &other);
	check_eq(post(r.p.b, &wr, 1), 0);
	refused(&r);
	check(r.p.b->nsends == 1 && r.p.b->sends[0].wc.status != IBV_WC_SUCCESS);
	check_eq(r.p.b->sends[0].id, 5);
	check_eq(fab_dealloc_mw(r.mw), 0);
	r.mw = NULL;
	if (other.mr)
		region_destroy(&other);
	rig_close(&r);
}

FAB_TEST(promise_m_rules)
{
	for (unsigned i = 0; i < ARRAY_SIZE(rule_cases); i++) {
		printf("  %s\n", rule_cases[i].what);
		fflush(stdout);
		break_rule(w, &rule_cases[i]);
	}
}

static _Noreturn void kept_after_all(const char *flag)
{
	fprintf(stderr, "XPASS: this device does it right now: say so in %s\n", flag);
	exit(1);
}

/* The window that must be as it was is gone. */
static void taken_all_the_same(struct rig *r)
{
	world_until(r->w, r->p.b->nrecvs || (r->p.a->drained && r->p.b->drained));
	if (r->p.b->nrecvs && r->p.b->recvs[0].wc.status == IBV_WC_SUCCESS)
		kept_after_all("provider_peer_inv_checked");
	refused(r);
	known_failure("a peer takes away windows that are bound on other connections");
}

/* m: what a peer may not invalidate.  Its send goes; here the receive fails, and the connection. */
FAB_TEST(promise_m_remote_rules)
{
	static const char *const what[] = { "another tag", "an unknown key", "a region", "type 1",
					    "twice", "bound on another connection" };

	for (unsigned i = 0; i < ARRAY_SIZE(what); i++) {
		struct end *a2 = NULL, *b2 = NULL, *from;
		struct ibv_send_wr wr;
		struct rig r;
		uint32_t rkey;

		printf("  %s\n", what[i]);
		fflush(stdout);
		if (i == 4 && !provider_peer_inv_checked) {
			printf("  SKIPPED: it would stop this machine\n");
			continue;
		}
		if (!rig_open(w, &r, i == 3 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2, 4096))
			return;
		rig_bind(&r, 0, 4096);
		rkey = i == 0 ? ibv_inc_rkey(r.mw->rkey) : i == 1 ? r.mw->rkey ^ 0xff000000 :
		       i == 2 ? r.dst.mr->rkey : r.mw->rkey;
		from = r.p.a;
		if (i == 5) {
			b2 = second(&r, &a2);
			from = a2;
		}
		wr = wr_send_inv(0, NULL, rkey);
		if (i == 4) {
			check_eq(post(from, &wr, 1), 0);
			world_until(w, r.p.b->nrecvs == 1);
			check_eq(r.p.b->recvs[0].wc.status, IBV_WC_SUCCESS);
			r.p.b->nrecvs = 0;
		}
		check_eq(post(from, &wr, 1), 0);
		if (i == 5) {
			world_until(w, a2->drained && b2->drained);
			check_eq(b2->recvs[0].wc.status, IBV_WC_REM_INV_REQ_ERR);
			write_byte(&r, r.p.a, r.mw->rkey, 0, 64, 9);
			if (provider_peer_inv_checked)
				wrote(&r, r.p.b, 0, 64, 9);
			else
				taken_all_the_same(&r);
			end_free(a2);
			end_free(b2);
		} else {
			refused(&r);
			check_eq(r.p.b->recvs[0].wc.status, IBV_WC_REM_INV_REQ_ERR);
		}
		rig_close(&r);
	}
}

/* m: the peer invalidates unasked, and before that is polled we do.  The second of the two costs
 * the connection; on rxe it must not come as far as the device. */
FAB_TEST(promise_m_both_invalidate)
{
	struct ibv_send_wr wr;
	struct rig r;

	if (!rig_open(w, &r, IBV_MW_TYPE_2, 4096))
		return;
	rig_bind(&r, 0, 4096);
	r.p.b->quota = 0;
	wr = wr_send_inv(0, NULL, r.mw->rkey);
	wr.send_flags = IBV_SEND_SIGNALED;
	check_eq(post(r.p.a, &wr, 1), 0);
	world_until(w, r.p.a->nsends == 1);
	check_eq(r.p.a->sends[0].wc.status, IBV_WC_SUCCESS);
	wr = wr_inv(0, r.mw->rkey);
	check_eq(post(r.p.b, &wr, 1), 0);
	r.p.b->quota = 16;
	world_until(w, r.p.a->drained && r.p.b->drained);
	check(strstr(fab_conn_cause(r.p.b->conn), "invalid") != NULL);
	rig_close(&r);
}

/* The write that must not arrive does. */
static void arrives_all_the_same(struct rig *r, size_t off, size_t len, uint8_t byte)
{
	world_until(r->w, r->p.b->nrecvs || (r->p.a->drained && r->p.b->drained));
	if (!r->p.b->nrecvs || r->p.b->recvs[0].wc.status != IBV_WC_SUCCESS)
		kept_after_all("provider_window_bounds");
	check_bytes(r, off, len, byte);
	known_failure("peers write beyond a window, as far as its region goes");
}

/* i, m: writes that a window does not allow. */
FAB_TEST(promise_m_t20_writes)
{
	static const struct {
		const char *what;
		int64_t off;
		uint32_t len;
		bool bounds, elsewhere, no_right, mr_key;
	} cases[] = {
		{ .what = "behind the region", .off = 4000, .len = 97 },
		{ .what = "behind the window", .off = 2000, .len = 49, .bounds = true },
		{ .what = "in front of the window", .off = 1023, .len = 1, .bounds = true },
		{ .what = "on another connection", .off = 1024, .len = 1, .elsewhere = true },
		{ .what = "without the right", .off = 1024, .len = 1, .no_right = true },
		{ .what = "with the key of the region", .off = 1024, .len = 1, .mr_key = true },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct end *a2 = NULL, *b2 = NULL;
		struct ibv_send_wr wr;
		struct rig r;

		printf("  %s\n", cases[i].what);
		fflush(stdout);
		if (!rig_open(w, &r, IBV_MW_TYPE_2, 4096))
			return;
		wr = wr_bind(0, r.mw, &r.dst, 1024, 1024);
		if (cases[i].no_right)
			wr.bind_mw.bind_info.mw_access_flags = 0;
		wr.send_flags = IBV_SEND_SIGNALED;
		check_eq(post(r.p.b, &wr, 1), 0);
		world_until(w, r.p.b->nsends == 1);
		check_eq(r.p.b->sends[0].wc.status, IBV_WC_SUCCESS);
		if (cases[i].elsewhere) {
			b2 = second(&r, &a2);
			write_byte(&r, a2, r.mw->rkey, (size_t)cases[i].off, cases[i].len, 9);
			world_until(w, a2->drained && b2->drained);
			check_eq(b2->recvs[0].wc.status != IBV_WC_SUCCESS, 1);
			check_bytes(&r, 0, 4096, 0);
			end_free(a2);
			end_free(b2);
			write_byte(&r, r.p.a, r.mw->rkey, 1024, 1024, 9);
			wrote(&r, r.p.b, 1024, 1024, 9);
		} else {
			write_byte(&r, r.p.a, cases[i].mr_key ? r.dst.mr->rkey : r.mw->rkey,
				   (size_t)cases[i].off, cases[i].len, 9);
			if (cases[i].bounds && !provider_window_bounds) {
				arrives_all_the_same(&r, (size_t)cases[i].off, cases[i].len, 9);
			} else {
				refused(&r);
				check_bytes(&r, 0, 4096, 0);
			}
		}
		rig_close(&r);
	}
}

/* c, m: on a failed connection binds and invalidates flush; a window that was bound there can be
 * deallocated, and its region after it. */
FAB_TEST(promise_m_dead)
{
	struct ibv_send_wr wr[2];
	struct rig r;

	if (!rig_open(w, &r, IBV_MW_TYPE_2, 4096))
		return;
	rig_bind(&r, 0, 4096);
	fab_disconnect(r.p.b->conn);
	r.p.b->nsends = 0;
	wr[0] = wr_inv(1, r.mw->rkey);
	wr[1] = wr_bind(2, r.mw, &r.dst, 0, 64);
	check_eq(post(r.p.b, wr, 2), 0);
	world_until(w, r.p.a->drained && r.p.b->drained);
	check_eq(r.p.b->nsends, 2);
	for (unsigned i = 0; i < 2; i++) {
		check_eq(r.p.b->sends[i].id, i + 1);
		check_eq(r.p.b->sends[i].wc.status, IBV_WC_WR_FLUSH_ERR);
	}
	rig_close(&r);
}

/* k: taken away in the middle of a large write, in one way or another. */
FAB_TEST(promise_k_windows)
{
	enum { SIZE = 16 << 20 };
	static const char *const how[] = { "LOCAL_INV", "a bind to nothing on another connection",
					   "a bind elsewhere on another connection", "dealloc" };
	uint8_t *seen = malloc(SIZE);

	check(seen != NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(how); i++) {
		struct end *a2 = NULL, *b2 = NULL, *on;
		struct ibv_send_wr wr;
		struct ibv_sge sge;
		unsigned late;
		struct rig r;

		printf("  %s\n", how[i]);
		fflush(stdout);
		if (!rig_open(w, &r, i == 1 || i == 2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2, SIZE))
			break;
		if (i == 1 || i == 2)
			b2 = second(&r, &a2);
		on = b2 ? b2 : r.p.b;
		rig_bind(&r, 0, SIZE);
		sge = region_sge(&r.src, 0, SIZE);
		wr = wr_write_imm(0, &sge, (uintptr_t)r.dst.mem, r.mw->rkey, 1);
		check_eq(post(r.p.a, &wr, 1), 0);
		/* In short steps: some providers place without being polled. */
		for (int k = 0; k < WAIT_LIMIT_MS && r.dst.mem[0] != 0xff; k++)
			world_step(w, 1);
		check(r.dst.mem[0] == 0xff);
		check(r.dst.mem[SIZE - 1] == 0);
		on->nsends = 0;
		wr = i == 0 ? wr_inv(1, r.mw->rkey) :
			      wr_bind(1, r.mw, &r.dst, SIZE / 2, i == 1 ? 0 : SIZE / 2);
		wr.send_flags = IBV_SEND_SIGNALED;
		if (i == 3) {
			check_eq(fab_dealloc_mw(r.mw), 0);
			r.mw = NULL;
		} else {
			check_eq(post(on, &wr, 1), 0);
			world_until(w, on->nsends == 1);
			check(on != b2 || on->sends[0].wc.status == IBV_WC_SUCCESS);
		}
		memcpy(seen, r.dst.mem, SIZE);
		world_until(w, r.p.a->drained && r.p.b->drained);
		for (unsigned k = late = 0; k < SIZE; k++)
			late += seen[k] != r.dst.mem[k];
		/* A dealloc ends the write, but waits for nothing. */
		if (i == 3)
			check(r.dst.mem[SIZE - 1] == 0);
		else
			check_late(late);
		check_refused(w, &r.p);
		if (b2) {
			end_close(a2);
			end_close(b2);
		}
		rig_close(&r);
	}
	free(seen);
}
