/* SPDX-License-Identifier: BSD-3-Clause */
/* Conformance: what arrives where, and what must not. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance.h"
#include "util.h"

static void fill(struct region *r)
{
	for (size_t i = 0; i < r->len; i++)
		r->mem[i] = (uint8_t)(i * 31 + i / 256 + 1);
}

static bool all(const uint8_t *mem, size_t len, uint8_t byte)
{
	for (size_t i = 0; i < len; i++) {
		if (mem[i] != byte)
			return false;
	}
	return true;
}

/* d: what was written is there when the immediate behind it is. */
FAB_TEST(promise_d_visibility)
{
	struct region src, dst;
	struct ibv_send_wr wr[2];
	struct ibv_sge sge[2];
	struct pair p;

	pair_connect(w, &p, &default_attr);
	src = region_create(p.a->pd, 8192, IBV_ACCESS_LOCAL_WRITE);
	dst = region_create(p.b->pd, 8192, RIGHTS);
	fill(&src);
	sge[0] = region_sge(&src, 0, 4096);
	sge[1] = region_sge(&src, 4096, 4096);
	check_eq(post_recvs(p.b, 0, 2), 0);
	wr[0] = wr_write(0, &sge[0], target(&dst, 0));
	wr[1] = wr_write_imm(1, &sge[1], target(&dst, 4096), 0xabcdef01);
	/* A wish that no device can fulfil. */
	wr[1].send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	check_eq(post(p.a, wr, 2), 0);
	world_until(w, p.b->nrecvs == 1);
	check(memcmp(src.mem, dst.mem, 8192) == 0);
	check_eq(p.b->recvs[0].wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	check_eq(p.b->recvs[0].wc.byte_len, 4096);
	check(p.b->recvs[0].wc.wc_flags & IBV_WC_WITH_IMM);
	check_eq(be32toh(p.b->recvs[0].wc.imm_data), 0xabcdef01);
	/* A send is as good as an immediate. */
	memset(src.mem, 0x77, 4096);
	wr[1] = wr_send(2, NULL);
	check_eq(post(p.a, wr, 2), 0);
	world_until(w, p.b->nrecvs == 2);
	check(all(dst.mem, 4096, 0x77));
	check_eq(p.b->recvs[1].wc.opcode, IBV_WC_RECV);
	world_until(w, p.a->nsends == 1);
	check_eq(p.a->sends[0].id, 1);
	check_eq(p.a->sends[0].wc.opcode, IBV_WC_RDMA_WRITE);
	region_destroy(&src);
	region_destroy(&dst);
	pair_close(&p);
}

static void post_buffer(struct end *e, unsigned id, struct ibv_sge *sge, int n)
{
	struct ibv_recv_wr wr = { .wr_id = recv_id(id), .sg_list = sge, .num_sge = n };

	check_eq(fab_post_recv(e->conn, &wr), 0);
}

FAB_TEST(send_kinds)
{
	struct region src, dst;
	struct ibv_send_wr wr;
	struct ibv_sge from, to;
	struct pair p;

	pair_connect(w, &p, &default_attr);
	src = region_create(p.a->pd, 100, 0);
	dst = region_create(p.b->pd, 300, IBV_ACCESS_LOCAL_WRITE);
	fill(&src);
	for (unsigned i = 0; i < 3; i++) {
		to = region_sge(&dst, i * 100, 100);
		post_buffer(p.b, i, &to, 1);
	}
	from = region_sge(&src, 0, 100);
	wr = wr_send(0, &from);
	check_eq(post(p.a, &wr, 1), 0);
	from.length = 60;
	wr = wr_send(1, &from);
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	wr.send_flags = IBV_SEND_INLINE;
	wr.imm_data = htobe32(0x01020304);
	check_eq(post(p.a, &wr, 1), 0);
	/* Nothing at all, into a receive that would take something. */
	wr = wr_send(2, NULL);
	wr.send_flags = IBV_SEND_SIGNALED;
	check_eq(post(p.a, &wr, 1), 0);
	world_until(w, p.b->nrecvs == 3 && p.a->nsends == 1);
	check_eq(p.a->sends[0].wc.opcode, IBV_WC_SEND);
	check_eq(p.b->recvs[0].wc.byte_len, 100);
	check_eq(p.b->recvs[0].wc.wc_flags & IBV_WC_WITH_IMM, 0);
	check_eq(p.b->recvs[1].wc.byte_len, 60);
	check_eq(p.b->recvs[1].wc.opcode, IBV_WC_RECV);
	check(p.b->recvs[1].wc.wc_flags & IBV_WC_WITH_IMM);
	check_eq(be32toh(p.b->recvs[1].wc.imm_data), 0x01020304);
	check_eq(p.b->recvs[2].wc.byte_len, 0);
	check(memcmp(src.mem, dst.mem, 100) == 0);
	check(memcmp(src.mem, dst.mem + 100, 60) == 0);
	check(all(dst.mem + 160, 140, 0));
	region_destroy(&src);
	region_destroy(&dst);
	pair_close(&p);
}

/* Gathered from two pieces, scattered over four; empty elements are nothing. */
FAB_TEST(send_lists)
{
	struct region src, dst;
	struct ibv_sge from[2], to[FAB_RECV_SGE_MAX];
	struct ibv_send_wr wr;
	struct pair p;

	pair_connect(w, &p, &default_attr);
	src = region_create(p.a->pd, 1000, 0);
	dst = region_create(p.b->pd, 4000, RIGHTS);
	fill(&src);
	from[0] = region_sge(&src, 500, 500);
	from[1] = region_sge(&src, 0, 500);
	to[0] = region_sge(&dst, 0, 1);
	to[1] = region_sge(&dst, 1000, 998);
	to[2] = region_sge(&dst, 0, 0);
	to[3] = region_sge(&dst, 2000, 100);
	post_buffer(p.b, 0, to, 4);
	check_eq(post_recvs(p.b, 1, 1), 0);
	wr = wr_send(0, from);
	wr.num_sge = 2;
	check_eq(post(p.a, &wr, 1), 0);
	wr = wr_write_imm(1, from, target(&dst, 3000), 5);
	wr.num_sge = 2;
	check_eq(post(p.a, &wr, 1), 0);
	world_until(w, p.b->nrecvs == 2);
	check_eq(p.b->recvs[0].wc.byte_len, 1000);
	check_eq(dst.mem[0], src.mem[500]);
	check(memcmp(dst.mem + 1000, src.mem + 501, 499) == 0);
	check(memcmp(dst.mem + 1499, src.mem, 499) == 0);
	check_eq(dst.mem[2000], src.mem[499]);
	check(all(dst.mem + 2001, 999, 0));
	check(memcmp(dst.mem + 3000, src.mem + 500, 500) == 0);
	check(memcmp(dst.mem + 3500, src.mem, 500) == 0);
	/* So few bytes that a device copies them. */
	check_eq(post_recvs(p.b, 2, 1), 0);
	from[0].length = from[1].length = 40;
	wr.wr_id = send_id(2);
	wr.send_flags = IBV_SEND_INLINE;
	wr.wr.rdma.remote_addr += 100;
	check_eq(post(p.a, &wr, 1), 0);
	world_until(w, p.b->nrecvs == 3);
	check(memcmp(dst.mem + 3100, src.mem + 500, 40) == 0);
	check(memcmp(dst.mem + 3140, src.mem, 40) == 0);
	check(memcmp(dst.mem + 3180, src.mem + 680, 320) == 0);
	region_destroy(&src);
	region_destroy(&dst);
	pair_close(&p);
}

/* The connection failed on both ends: nothing succeeded at b and nothing changed there. */
void check_refused(struct world *w, struct pair *p)
{
	world_until(w, p->a->drained && p->b->drained);
	for (unsigned i = 0; i < p->b->nrecvs; i++)
		check(p->b->recvs[i].wc.status != IBV_WC_SUCCESS);
	check(fab_conn_cause(p->a->conn)[0] != '\0');
	check(fab_conn_cause(p->b->conn)[0] != '\0');
}

FAB_TEST(send_too_long)
{
	struct region src, dst;
	struct ibv_send_wr wr;
	struct ibv_sge from, to;
	struct pair p;

	pair_connect(w, &p, &default_attr);
	src = region_create(p.a->pd, 101, 0);
	dst = region_create(p.b->pd, 200, IBV_ACCESS_LOCAL_WRITE);
	fill(&src);
	to = region_sge(&dst, 0, 100);
	post_buffer(p.b, 0, &to, 1);
	check_eq(post_recvs(p.b, 1, 1), 0);
	from = region_sge(&src, 0, 101);
	wr = wr_send(0, &from);
	check_eq(post(p.a, &wr, 1), 0);
	check_refused(w, &p);
	check_eq(p.b->nrecvs, 2);
	check(all(dst.mem + 100, 100, 0));
	region_destroy(&src);
	region_destroy(&dst);
	end_free(p.a);
	end_free(p.b);
}

/* i: one violation each, of @len bytes; b has a region of 4096 in the middle of 12288 zeroes. */
struct violation {
	const char *what;
	int access;
	uint32_t rkey_xor;
	int64_t off;
	uint32_t len;
	bool revoked;
};

static const struct violation violations[] = {
	{ "another tag", RIGHTS, 0x01, 0, 16, false },
	{ "another index", RIGHTS, 0x100, 0, 16, false },
	{ "an index far outside", RIGHTS, 0xff000000, 0, 16, false },
	{ "no right to write", IBV_ACCESS_LOCAL_WRITE, 0, 0, 16, false },
	{ "no rights", 0, 0, 0, 16, false },
	{ "one byte behind", RIGHTS, 0, 4081, 16, false },
	{ "one byte in front", RIGHTS, 0, -1, 16, false },
	{ "right behind", RIGHTS, 0, 4096, 1, false },
	{ "longer than all of it", RIGHTS, 0, 0, 4097, false },
	{ "around the end of memory", RIGHTS, 0, -4096, 8192, false },
	{ "far away", RIGHTS, 0, INT64_MIN, 16, false },
	{ "revoked", RIGHTS, 0, 0, 16, true },
};

static void violate(struct world *w, const struct violation *v, bool imm)
{
	struct region src, page, dst;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;
	uint32_t rkey;
	uint64_t addr;

	pair_connect(w, &p, &default_attr);
	src = region_create(p.a->pd, 8192, 0);
	memset(src.mem, 0xff, src.len);
	page = region_create(p.b->pd, 12288, IBV_ACCESS_LOCAL_WRITE);
	dst.mr = fab_reg_mr(p.b->pd, page.mem + 4096, 4096, v->access);
	check(dst.mr != NULL);
	rkey = dst.mr->rkey ^ v->rkey_xor;
	addr = (uintptr_t)page.mem + 4096 + (uint64_t)v->off;
	if (v->revoked)
		region_revoke(&dst);
	check_eq(post_recvs(p.b, 0, 2), 0);
	sge = region_sge(&src, 0, v->len);
	wr = imm ? wr_write_imm(0, &sge, addr, rkey, 1) : wr_write(0, &sge, addr, rkey);
	check_eq(post(p.a, &wr, 1), 0);
	world_until(w, p.a->drained && p.b->drained);
	check_refused(w, &p);
	check(all(page.mem, page.len, 0));
	fab_dereg_mr(dst.mr);
	region_destroy(&src);
	region_destroy(&page);
	end_free(p.a);
	end_free(p.b);
}

FAB_TEST(promise_i_checks)
{
	for (unsigned i = 0; i < ARRAY_SIZE(violations); i++) {
		printf("  %s\n", violations[i].what);
		fflush(stdout);
		violate(w, &violations[i], false);
		violate(w, &violations[i], true);
	}
}

/* i: what is just inside is allowed, and nothing asks for a key where nothing is written. */
FAB_TEST(promise_i_edges)
{
	struct region src, dst;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;

	pair_connect(w, &p, &default_attr);
	src = region_create(p.a->pd, 4096, 0);
	dst = region_create(p.b->pd, 4096, RIGHTS);
	fill(&src);
	check_eq(post_recvs(p.b, 0, 4), 0);
	sge = region_sge(&src, 0, 4096);
	wr = wr_write_imm(0, &sge, target(&dst, 0), 0);
	check_eq(post(p.a, &wr, 1), 0);
	world_until(w, p.b->nrecvs == 1);
	check(memcmp(src.mem, dst.mem, 4096) == 0);
	sge = region_sge(&src, 0, 1);
	wr = wr_write_imm(1, &sge, target(&dst, 4095), 1);
	check_eq(post(p.a, &wr, 1), 0);
	world_until(w, p.b->nrecvs == 2);
	check_eq(dst.mem[4095], src.mem[0]);
	wr = wr_write_imm(2, NULL, 0x1234, 0xdeadbeef, 2);
	check_eq(post(p.a, &wr, 1), 0);
	wr = wr_write(3, NULL, UINT64_MAX, UINT32_MAX);
	check_eq(post(p.a, &wr, 1), 0);
	sge.length = 0;
	wr = wr_write_imm(4, &sge, target(&dst, 4096), 3);
	check_eq(post(p.a, &wr, 1), 0);
	world_until(w, p.b->nrecvs == 4);
	check_eq(p.b->recvs[3].wc.byte_len, 0);
	region_destroy(&src);
	region_destroy(&dst);
	pair_close(&p);
}

/* i: a key opens its own pd's memory and to no connection of another. */
FAB_TEST(promise_i_domains)
{
	struct region src, dst, none;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p, q;
	struct end *b2;

	pair_connect(w, &p, &default_attr);
	pair_connect(w, &q, &default_attr);
	/* So that q's pd has no key of this number. */
	none = region_create(p.b->pd, 64, RIGHTS);
	dst = region_create(p.b->pd, 4096, RIGHTS);
	/* A second connection in p's pd. */
	q.a->w->request = NULL;
	src = region_create(q.a->pd, 4096, 0);
	sge = region_sge(&src, 0, 64);
	check_eq(post_recvs(q.b, 0, 1), 0);
	wr = wr_write_imm(0, &sge, target(&dst, 0), 1);
	check_eq(post(q.a, &wr, 1), 0);
	check_refused(w, &q);
	region_destroy(&src);
	end_free(q.a);
	end_free(q.b);

	q.a = end_active(w, &w->addr, &default_attr);
	check_eq(fab_connect(q.a->conn, NULL, 0), 0);
	world_until(w, w->request);
	b2 = w->request;
	end_create_qp(b2, p.b->pd, &default_attr);
	check_eq(post_recvs(b2, 0, 1), 0);
	check_eq(end_accept(b2, NULL, 0), 0);
	world_until(w, q.a->established && b2->established);
	src = region_create(q.a->pd, 4096, 0);
	memset(src.mem, 0x42, 4096);
	sge = region_sge(&src, 0, 64);
	wr = wr_write_imm(0, &sge, target(&dst, 0), 1);
	check_eq(post(q.a, &wr, 1), 0);
	world_until(w, b2->nrecvs == 1);
	check_eq(b2->recvs[0].wc.status, IBV_WC_SUCCESS);
	check(all(dst.mem, 64, 0x42));
	region_destroy(&src);
	region_destroy(&none);
	end_close(q.a);
	end_close(b2);
	region_destroy(&dst);
	pair_close(&p);
}

/* k: hundreds of generations, so that tags wrap; the last key works, the one before does not. */
FAB_TEST(promise_k_rereg)
{
	struct region src, dst;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	uint32_t old = 0;
	struct pair p;

	pair_connect(w, &p, &default_attr);
	src = region_create(p.a->pd, 64, 0);
	dst = region_create(p.b->pd, 8192, RIGHTS);
	if (!provider_rereg) {
		check_eq(fab_rereg_mr(dst.mr, dst.mem, 64, RIGHTS), -ENOTSUP);
		region_destroy(&src);
		region_destroy(&dst);
		pair_close(&p);
		return;
	}
	sge = region_sge(&src, 0, 64);
	for (unsigned i = 0; i < 600; i++) {
		size_t off = i % 2 ? 4096 : 0;

		old = dst.mr->rkey;
		check_eq(fab_rereg_mr(dst.mr, dst.mem + off, 64, RIGHTS), 0);
		check(dst.mr->rkey != old);
		check_eq(dst.mr->length, 64);
		memset(src.mem, (int)i, 64);
		check_eq(post_recvs(p.b, i % 8, 1), 0);
		wr = wr_write_imm(0, &sge, target(&dst, off), i);
		check_eq(post(p.a, &wr, 1), 0);
		world_until(w, p.b->nrecvs == i + 1);
		check_eq(p.b->recvs[i].wc.status, IBV_WC_SUCCESS);
		check(all(dst.mem + off, 64, (uint8_t)i));
	}
	p.b->nrecvs = 0;
	check_eq(post_recvs(p.b, 0, 1), 0);
	wr = wr_write_imm(0, &sge, (uintptr_t)dst.mem + 4096, old, 1);
	memset(src.mem, 0x99, 64);
	check_eq(post(p.a, &wr, 1), 0);
	check_refused(w, &p);
	check(!all(dst.mem + 4096, 1, 0x99));
	region_destroy(&src);
	region_destroy(&dst);
	end_free(p.a);
	end_free(p.b);
}

/* k: closed, a key is as a dead one; opened again it is what it was. */
FAB_TEST(promise_k_suspend)
{
	struct region src, dst;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;
	uint32_t key;

	pair_connect(w, &p, &default_attr);
	src = region_create(p.a->pd, 64, 0);
	dst = region_create(p.b->pd, 64, RIGHTS);
	key = dst.mr->rkey;
	if (!provider_rereg) {
		check_eq(fab_suspend_mr(dst.mr), -ENOTSUP);
		check_eq(fab_resume_mr(dst.mr), -ENOTSUP);
		region_destroy(&src);
		region_destroy(&dst);
		pair_close(&p);
		return;
	}
	/* What was revoked has nothing to open. */
	check_eq(fab_revoke_mr(dst.mr), 0);
	check_eq(fab_resume_mr(dst.mr), -EINVAL);
	check_eq(fab_rereg_mr(dst.mr, dst.mem, 64, RIGHTS), 0);
	key = dst.mr->rkey;
	sge = region_sge(&src, 0, 64);
	for (unsigned i = 0; i < 300; i++) {
		check_eq(fab_suspend_mr(dst.mr), 0);
		if (i % 2)
			check_eq(fab_suspend_mr(dst.mr), 0);
		check_eq(fab_resume_mr(dst.mr), 0);
		if (i % 2)
			check_eq(fab_resume_mr(dst.mr), 0);
		check_eq(dst.mr->rkey, key);
		memset(src.mem, (int)i, 64);
		check_eq(post_recvs(p.b, i % 8, 1), 0);
		wr = wr_write_imm(0, &sge, target(&dst, 0), i);
		check_eq(post(p.a, &wr, 1), 0);
		world_until(w, p.b->nrecvs == i + 1);
		check_eq(p.b->recvs[i].wc.status, IBV_WC_SUCCESS);
		check(all(dst.mem, 64, (uint8_t)i));
	}
	p.b->nrecvs = 0;
	memset(dst.mem, 0, 64);
	check_eq(fab_suspend_mr(dst.mr), 0);
	check_eq(post_recvs(p.b, 0, 1), 0);
	memset(src.mem, 0x99, 64);
	wr = wr_write_imm(0, &sge, target(&dst, 0), 1);
	check_eq(post(p.a, &wr, 1), 0);
	check_refused(w, &p);
	check(all(dst.mem, 64, 0));
	region_destroy(&src);
	region_destroy(&dst);
	end_free(p.a);
	end_free(p.b);
}

static void placing_ends(struct world *w, void (*end)(struct region *dst))
{
	enum { SIZE = 16 << 20 };
	struct region src, dst;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;
	uint8_t *seen = malloc(SIZE);

	check(seen != NULL);
	pair_connect(w, &p, &default_attr);
	src = region_create(p.a->pd, SIZE, 0);
	memset(src.mem, 0xff, SIZE);
	dst = region_create(p.b->pd, SIZE, RIGHTS);
	check_eq(post_recvs(p.b, 0, 1), 0);
	sge = region_sge(&src, 0, SIZE);
	wr = wr_write_imm(0, &sge, target(&dst, 0), 1);
	check_eq(post(p.a, &wr, 1), 0);
	/* In short steps: some providers place without being polled. */
	for (int i = 0; i < WAIT_LIMIT_MS && dst.mem[0] != 0xff; i++)
		world_step(w, 1);
	check(dst.mem[0] == 0xff);
	check(dst.mem[SIZE - 1] == 0);
	end(&dst);
	memcpy(seen, dst.mem, SIZE);
	world_until(w, p.a->drained && p.b->drained);
	check(memcmp(seen, dst.mem, SIZE) == 0);
	check_refused(w, &p);
	free(seen);
	region_destroy(&src);
	region_destroy(&dst);
	end_free(p.a);
	end_free(p.b);
}

/* k: revoked in the middle of a large write: not a byte changes afterwards. */
FAB_TEST(promise_k_placing)
{
	placing_ends(w, region_revoke);
}

static void close_and_open(struct region *r)
{
	check_eq(fab_suspend_mr(r->mr), 0);
	check_eq(fab_resume_mr(r->mr), 0);
}

/* k: what is open again does not go on with what was closed. */
FAB_TEST(promise_k_suspend_placing)
{
	if (provider_rereg)
		placing_ends(w, close_and_open);
}

/* Hold @r and clear it. */
static void hold_and_clear(struct region *r)
{
	check_eq(fab_hold_mr(r->mr), 0);
	memset(r->mem, 0, r->len);
	fab_release_mr(r->mr);
}

/* n: a region can be held again and again until a peer has written, and then not before the key is
 * opened again; a write in the middle counts. */
FAB_TEST(promise_n_hold)
{
	enum { SIZE = 16 << 20 };
	struct region src, dst;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;

	pair_connect(w, &p, &default_attr);
	src = region_create(p.a->pd, SIZE, 0);
	dst = region_create(p.b->pd, SIZE, RIGHTS);
	check_eq(fab_sends_left(p.a->conn), !provider_rereg);
	if (!provider_rereg) {
		check_eq(fab_hold_mr(dst.mr), -ENOTSUP);
		region_destroy(&src);
		region_destroy(&dst);
		pair_close(&p);
		return;
	}
	memset(src.mem, 0xff, SIZE);
	for (unsigned i = 0; i < 3; i++) {
		hold_and_clear(&dst);
		hold_and_clear(&dst);
		check_eq(post_recvs(p.b, i, 1), 0);
		sge = region_sge(&src, 0, i == 2 ? SIZE : 64);
		wr = wr_write_imm(0, &sge, target(&dst, 0), i);
		check_eq(post(p.a, &wr, 1), 0);
		if (i == 2) {
			/* The rest stays outside the socket, since b is not polled. */
			check(fab_sends_left(p.a->conn));
			for (int n = 0; n < WAIT_LIMIT_MS && dst.mem[0] != 0xff; n++)
				world_step(w, 1);
			check(dst.mem[SIZE - 1] == 0);
			check_eq(fab_hold_mr(dst.mr), -EBUSY);
		}
		world_until(w, p.b->nrecvs == i + 1);
		for (int n = 0; n < WAIT_LIMIT_MS && fab_sends_left(p.a->conn); n++)
			world_step(w, 1);
		check(!fab_sends_left(p.a->conn));
		check_eq(fab_hold_mr(dst.mr), -EBUSY);
		check(all(dst.mem, sge.length, 0xff));
		check_eq(fab_suspend_mr(dst.mr), 0);
		check_eq(fab_hold_mr(dst.mr), -EBUSY);
		check_eq(fab_resume_mr(dst.mr), 0);
	}
	region_destroy(&src);
	region_destroy(&dst);
	pair_close(&p);
}

/* Whole pages alone. */
FAB_TEST(memory_given_back)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct pair p;
	uint8_t *mem;

	pair_connect(w, &p, &default_attr);
	mem = fab_alloc(p.b->pd, 4 * page);
	check(mem != NULL);
	memset(mem, 0xff, 4 * page);
	fab_give_back(mem + 1, 3 * page);
	check(all(mem, page, 0xff) && all(mem + 3 * page, page, 0xff));
	check(all(mem + page, 2 * page, 0));
	fab_give_back(mem + 1, page - 1);
	check(all(mem, page, 0xff));
	fab_free(mem, 4 * page);
	pair_close(&p);
}

/* A region whose first byte is called otherwise: by peers, in lists, in binds. */
#define IOVA 0x7000000000ull

static struct region region_iova(struct fab_pd *pd, size_t len, int access)
{
	struct region r = { .len = len };

	r.mem = aligned_alloc(4096, len);
	check(r.mem != NULL);
	memset(r.mem, 0, len);
	r.mr = fab_reg_mr_iova(pd, r.mem, len, IOVA, access);
	check(r.mr != NULL);
	check(fab_mr_iova(r.mr) == IOVA || fab_mr_iova(r.mr) == (uintptr_t)r.mem);
	return r;
}

static void iova_window(struct world *w, struct pair *p, struct region *src)
{
	struct region dst = region_iova(p->b->pd, 8192,
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = fab_alloc_mw(p->b->pd, IBV_MW_TYPE_1);
	struct ibv_send_wr wr = wr_bind(0, mw, &dst, 4096, 4096);
	struct ibv_sge sge = { fab_mr_iova(src->mr), 100, src->mr->lkey };
	unsigned nsends = p->b->nsends, nrecvs = p->b->nrecvs;

	wr.bind_mw.bind_info.addr = fab_mr_iova(dst.mr) + 4096;
	wr.send_flags = IBV_SEND_SIGNALED;
	check_eq(post(p->b, &wr, 1), 0);
	world_until(w, p->b->nsends > nsends);
	check_eq(p->b->sends[nsends].wc.status, IBV_WC_SUCCESS);
	wr = wr_write_imm(0, &sge, fab_mr_iova(dst.mr) + 5000, mw->rkey, 1);
	check_eq(post(p->a, &wr, 1), 0);
	world_until(w, p->b->nrecvs > nrecvs);
	check(!memcmp(dst.mem + 5000, src->mem, 100) && all(dst.mem, 5000, 0) &&
	      all(dst.mem + 5100, 8192 - 5100, 0));
	check_eq(fab_dealloc_mw(mw), 0);
	region_destroy(&dst);
}

/* a writes 100 bytes of 0x42. */
static void write_named(struct pair *p, struct region *src, uint64_t name, uint32_t key)
{
	struct ibv_sge sge = region_sge(src, 0, 100);
	struct ibv_send_wr wr = wr_write_imm(0, &sge, name, key, 1);

	memset(src->mem, 0x42, 100);
	check_eq(post(p->a, &wr, 1), 0);
}

static const struct bad_name {
	bool old;
	size_t off;
	bool by_address;
} bad_names[] = {
	{ true, 0, false }, { false, 1, false }, { false, (size_t)-1, false }, { false, 0, true },
};

static void rereg_named(struct world *w, struct pair *p, struct region *src, struct region *dst,
			const struct bad_name *bad)
{
	uint64_t name = IOVA + 5;
	uint32_t old;

	check_eq(fab_rereg_mr_iova(dst->mr, dst->mem, 100, UINT64_MAX - 99, RIGHTS), -EINVAL);
	check_eq(fab_rereg_mr_iova(dst->mr, dst->mem + 10, 100, name, RIGHTS), 0);
	old = dst->mr->rkey;
	check_eq(fab_rereg_mr_iova(dst->mr, dst->mem + 1001, 100, name, RIGHTS), 0);
	check(dst->mr->rkey != old && dst->mr->length == 100 && fab_mr_iova(dst->mr) == name);
	check(fab_mr_covers(dst->mr, p->b->pd, name, 100, RIGHTS));
	check(!fab_mr_covers(dst->mr, p->b->pd, name, 101, RIGHTS));
	write_named(p, src, name, dst->mr->rkey);
	world_until(w, p->b->nrecvs == 1);
	check(all(dst->mem, 1001, 0) && all(dst->mem + 1001, 100, 0x42) &&
	      all(dst->mem + 1101, 8192 - 1101, 0));
	memset(dst->mem, 0, 8192);
	write_named(p, src, bad->by_address ? (uintptr_t)dst->mem + 1001 : name + bad->off,
		    bad->old ? old : dst->mr->rkey);
	world_until(w, p->a->drained && p->b->drained);
	check(all(dst->mem, 8192, 0));
	/* Without a name it has its address again. */
	check_eq(fab_rereg_mr(dst->mr, dst->mem, 100, RIGHTS), 0);
	check(fab_mr_iova(dst->mr) == (uintptr_t)dst->mem);
}

/* k, too: another range under the same name, which need not lie in a page as the range does; the
 * last key reaches it and the one before nothing, nor the last one a byte further or the
 * address. */
FAB_TEST(rereg_by_iova)
{
	for (unsigned i = 0; i < sizeof(bad_names) / sizeof(bad_names[0]); i++) {
		struct region src, dst;
		struct pair p;

		pair_connect(w, &p, &default_attr);
		src = region_create(p.a->pd, 100, 0);
		dst = region_create(p.b->pd, 8192, RIGHTS);
		check_eq(post_recvs(p.b, 0, 2), 0);
		if (provider_rereg) {
			rereg_named(w, &p, &src, &dst, &bad_names[i]);
		} else {
			check_eq(fab_rereg_mr_iova(dst.mr, dst.mem, 100, IOVA, RIGHTS), -ENOTSUP);
			check(fab_mr_iova(dst.mr) == (uintptr_t)dst.mem);
		}
		region_destroy(&src);
		region_destroy(&dst);
		if (p.a->drained) {
			end_free(p.a);
			end_free(p.b);
		} else {
			pair_close(&p);
		}
	}
}

FAB_TEST(region_by_iova)
{
	struct region src, dst;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct pair p;

	pair_connect(w, &p, &default_attr);
	check(!fab_reg_mr_iova(p.b->pd, &p, 8, (uintptr_t)&p + 1, 0) && errno == EINVAL);
	check(!fab_reg_mr_iova(p.b->pd, &p, 8, UINT64_MAX - 7, 0) && errno == EINVAL);
	src = region_iova(p.a->pd, 4096, IBV_ACCESS_LOCAL_WRITE);
	dst = region_iova(p.b->pd, 4096, RIGHTS);
	fill(&src);
	check(fab_mr_covers(dst.mr, p.b->pd, fab_mr_iova(dst.mr), 4096, RIGHTS));
	check(!fab_mr_covers(dst.mr, p.b->pd, fab_mr_iova(dst.mr) + 1, 4096, RIGHTS));
	check_eq(post_recvs(p.b, 0, 1), 0);
	sge = (struct ibv_sge){ fab_mr_iova(src.mr) + 10, 100, src.mr->lkey };
	wr = wr_write_imm(0, &sge, fab_mr_iova(dst.mr) + 1000, dst.mr->rkey, 1);
	check_eq(post(p.a, &wr, 1), 0);
	world_until(w, p.b->nrecvs == 1);
	check(!memcmp(dst.mem + 1000, src.mem + 10, 100));
	/* Into a receive. */
	sge = (struct ibv_sge){ fab_mr_iova(dst.mr) + 2000, 100, dst.mr->lkey };
	post_buffer(p.b, 1, &sge, 1);
	sge = (struct ibv_sge){ fab_mr_iova(src.mr), 100, src.mr->lkey };
	wr = wr_send(1, &sge);
	check_eq(post(p.a, &wr, 1), 0);
	world_until(w, p.b->nrecvs == 2);
	check(!memcmp(dst.mem + 2000, src.mem, 100));
	check(all(dst.mem, 1000, 0) && all(dst.mem + 1100, 900, 0) && all(dst.mem + 2100, 1996, 0));
	check_eq(post_recvs(p.b, 2, 2), 0);
	if (has_windows(&p, IBV_MW_TYPE_1))
		iova_window(w, &p, &src);
	/* Its address says nothing to anybody. */
	if (fab_mr_iova(dst.mr) != (uintptr_t)dst.mem) {
		memset(dst.mem, 0, 4096);
		wr = wr_write_imm(9, &sge, (uintptr_t)dst.mem, dst.mr->rkey, 1);
		check_eq(post(p.a, &wr, 1), 0);
		world_until(w, p.a->drained && p.b->drained);
		check(all(dst.mem, 4096, 0));
	}
	region_destroy(&src);
	region_destroy(&dst);
	if (p.a->drained) {
		end_free(p.a);
		end_free(p.b);
	} else {
		pair_close(&p);
	}
}
