/* SPDX-License-Identifier: BSD-3-Clause */
#include "rig.h"

static void must(int ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "rig: %s\n", what);
		abort();
	}
}

static void req_done(struct fab_conn *conn, struct fab_cqe *cqe, const struct ibv_wc *wc)
{
	struct rig *r = container_of(cqe, struct rig, req_cqe);

	r->nreq++;
	r->nreq_failed += wc->status != IBV_WC_SUCCESS;
}

void rig_open_access(struct rig *r, enum frwr_mode mode, int access)
{
	memset(r, 0, sizeof(*r));
	r->req_cqe.done = req_done;
	r->pd = mock_pd_create();
	for (unsigned i = 0; i < ARRAY_SIZE(r->c); i++)
		r->c[i] = mock_conn_create(r->pd, 256);
	r->mem = aligned_alloc(4096, RIG_SLOTS * RIG_SLOT);
	must(r->mem != NULL, "memory");
	for (unsigned i = 0; i < RIG_SLOTS; i++) {
		r->mr[i] = fab_reg_mr(r->pd, r->mem + i * RIG_SLOT, RIG_SLOT, access);
		must(r->mr[i] != NULL, "region");
	}
	must(frwr_pool_create(&r->pool, r->pd, mode, RIG_SLOTS) == 0, "pool");
}

void rig_open(struct rig *r, enum frwr_mode mode)
{
	mock_init();
	if (mode == FRWR_REREG)
		mock.attr.caps |= FAB_CAP_REREG_MR;
	if (mode == FRWR_SUSPEND)
		mock.attr.caps |= FAB_CAP_SUSPEND_MR;
	rig_open_access(r, mode, mode == FRWR_STATIC ?
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE :
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
}

void rig_close(struct rig *r)
{
	for (unsigned i = 0; i < ARRAY_SIZE(r->c); i++) {
		r->c[i]->hold = false;
		mock_conn_break(r->c[i], 0);
		mock_dispatch(r->c[i]);
		must(r->c[i]->drained, "drained");
	}
	frwr_pool_kill(r->pool);
	must(frwr_pool_destroy(r->pool) == 0, "pool destroyed");
	for (unsigned i = 0; i < ARRAY_SIZE(r->c); i++)
		mock_conn_destroy(r->c[i]);
	for (unsigned i = 0; i < RIG_SLOTS; i++)
		fab_dereg_mr(r->mr[i]);
	mock_pd_destroy(r->pd);
	free(r->mem);
	mock_fini();
}

struct frwr *rig_at(struct rig *r, unsigned i)
{
	return frwr_at(r->pool, i);
}

uint64_t rig_addr(const struct rig *r, unsigned i)
{
	return (uintptr_t)r->mem + i * RIG_SLOT;
}

int rig_map(struct rig *r, unsigned i, struct frwr_handle *h)
{
	return frwr_map(rig_at(r, i), r->mr[i], rig_addr(r, i), RIG_SLOT, FRWR_PEER_WRITES, h);
}

struct ibv_send_wr *rig_req(struct rig *r, bool signaled)
{
	r->req = (struct ibv_send_wr){ .wr_id = (uintptr_t)&r->req_cqe,
				       .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				       .send_flags = signaled ? IBV_SEND_SIGNALED : 0 };
	return &r->req;
}

int rig_post(struct rig *r, unsigned c, struct frwr_entry *e)
{
	int rc = fab_post_send(&r->c[c]->fab, e->first);

	e->posted(e, rc);
	return rc;
}

struct frwr_handle rig_valid(struct rig *r, unsigned c, unsigned i)
{
	struct ibv_send_wr *req = rig_req(r, false);
	struct frwr_handle h;
	struct frwr_entry e;

	rig_at(r, i)->next = NULL;
	must(rig_map(r, i, &h) == 0, "map");
	must(frwr_fill_send(&e, &r->c[c]->fab, rig_at(r, i), req, req) == 0, "fill");
	must(rig_post(r, c, &e) == 0, "post");
	must(frwr_state(rig_at(r, i)) == FRWR_VALID, "valid");
	return h;
}

void rig_done(void *rig, int rc)
{
	struct rig *r = rig;

	r->ndone++;
	r->done_rc = rc;
}

struct frwr *rig_list(struct rig *r, unsigned first, unsigned last)
{
	for (unsigned i = first; i <= last; i++)
		rig_at(r, i)->next = i < last ? rig_at(r, i + 1) : NULL;
	return rig_at(r, first);
}
