/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the one device of the mock provider; ends with mock_fini(), which finds what was left. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mock-hca.h"
#include "util.h"

#define MAX_KEYS 4096

struct mock_mw {
	struct fab_mw fab;
	uint32_t index, key;
	bool valid;
	struct mock_conn *conn;		/* type 2 */
	struct mock_mr *mr;
	uint64_t addr, len;
	unsigned access;
};

struct mock_mr {
	struct fab_mr fab;
	uint32_t index;
	int access;
	unsigned bound;
};

struct mock_hca mock;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mock_mw *mws[MAX_KEYS];
static struct mock_mr *mrs[MAX_KEYS];
static const struct fab_provider fab_mock;

static _Noreturn void die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static _Noreturn void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("mock HCA: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	abort();
}

static struct mock_conn *to_conn(const struct fab_conn *conn)
{
	return container_of(conn, struct mock_conn, fab);
}

static struct mock_mw *to_mw(struct ibv_mw *mw)
{
	return container_of(mw, struct mock_mw, fab.ibv);
}

static struct mock_mr *to_mr(struct ibv_mr *mr)
{
	return container_of(mr, struct mock_mr, fab.ibv);
}

/* ---- objects ---- */

void mock_init(void)
{
	memset(&mock, 0, sizeof(mock));
	mock.attr = (struct fab_device_attr){
		.max_qp_wr = 1024, .max_sge = 4, .mw_type_1 = true, .mw_type_2b = true,
		.max_mw = 1024,
	};
	mock.alloc_mw_fails_after = -1;
}

void mock_fini(void)
{
	if (mock.npd || mock.nqp || mock.nmr || mock.nmw)
		die("left over: %u pds, %u queue pairs, %u regions, %u windows", mock.npd, mock.nqp,
		    mock.nmr, mock.nmw);
	if (mock.mw_allocs != mock.mw_deallocs)
		die("%u windows were made and %u given back", mock.mw_allocs, mock.mw_deallocs);
}

struct fab_pd *mock_pd_create(void)
{
	struct fab_pd *pd = calloc(1, sizeof(*pd));

	pd->ops = &fab_mock;
	mock.npd++;
	return pd;
}

void mock_pd_destroy(struct fab_pd *pd)
{
	if (mock.nqp || mock.nmr || mock.nmw)
		die("pd destroyed with %u queue pairs, %u regions, %u windows", mock.nqp, mock.nmr,
		    mock.nmw);
	mock.npd--;
	free(pd);
}

struct mock_conn *mock_conn_create(struct fab_pd *pd, uint32_t depth)
{
	struct mock_conn *c = calloc(1, sizeof(*c));

	c->fab.ops = &fab_mock;
	c->pd = pd;
	c->depth = depth;
	mock.nqp++;
	return c;
}

void mock_conn_destroy(struct mock_conn *c)
{
	if (mock.nmw)
		die("queue pair destroyed before %u windows: 50 s", mock.nmw);
	mock.nqp--;
	free(c);
}

static int mock_query(const struct fab_conn *conn, struct fab_device_attr *attr)
{
	*attr = mock.attr;
	return 0;
}

static uint32_t free_index(void *const *table)
{
	for (uint32_t i = 1; i < MAX_KEYS; i++) {
		if (!table[i])
			return i;
	}
	die("too many keys");
}

/* Numbers of windows are scattered, those of regions are above them. */
static uint32_t mw_number(uint32_t index)
{
	return (uint32_t)((uint64_t)index * 5000011 % 0x7fffff) << 8;
}

static struct ibv_mw *mock_alloc_mw(struct fab_pd *pd, enum ibv_mw_type type)
{
	struct mock_mw *mw;

	if (!(type == IBV_MW_TYPE_1 ? mock.attr.mw_type_1 : mock.attr.mw_type_2b) ||
	    mock.windows_refused) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (mock.alloc_mw_fails_after >= 0 &&
	    mock.mw_allocs >= (unsigned)mock.alloc_mw_fails_after) {
		errno = ENOMEM;
		return NULL;
	}
	if (!mock.nqp)
		die("a window that is older than the queue pairs: 50 s at exit");
	mw = calloc(1, sizeof(*mw));
	mw->index = free_index((void *const *)mws);
	mw->fab.pd = pd;
	mw->fab.ibv.type = type;
	mw->fab.ibv.rkey = mw->key = mw_number(mw->index) | 0xfa;
	mws[mw->index] = mw;
	mock.nmw++;
	mock.mw_allocs++;
	return &mw->fab.ibv;
}

static void unbind(struct mock_mw *mw)
{
	if (mw->valid && mw->mr)
		mw->mr->bound--;
	mw->valid = false;
	mw->mr = NULL;
	mw->conn = NULL;
}

static int mock_dealloc_mw(struct ibv_mw *ibv)
{
	struct mock_mw *mw = to_mw(ibv);

	if (mock.dealloc_mw_fails) {
		mock.dealloc_mw_fails--;
		mock.deallocs_failed++;
		return -EBUSY;
	}
	unbind(mw);
	mws[mw->index] = NULL;
	mock.nmw--;
	mock.mw_deallocs++;
	free(mw);
	return 0;
}

static void mr_set(struct mock_mr *mr, void *addr, size_t length, int access)
{
	mr->fab.ibv.addr = addr;
	mr->fab.ibv.length = length;
	mr->access = access;
}

static struct ibv_mr *mock_reg_mr(struct fab_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	struct mock_mr *mr;

	if (!length && !mock.attr.rereg_mr) {
		errno = ENOTSUP;
		return NULL;
	}
	if (mock.reg_mr_fails) {
		mock.reg_mr_fails--;
		errno = ENOMEM;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	mr->fab.pd = pd;
	mr->index = free_index((void *const *)mrs);
	mr->fab.ibv.lkey = mr->fab.ibv.rkey = (0x800000 + mr->index) << 8 | 0xf0;
	mr_set(mr, addr, length, access);
	mrs[mr->index] = mr;
	mock.nmr++;
	return &mr->fab.ibv;
}

static int mock_rereg_mr(struct ibv_mr *ibv, void *addr, size_t length, uint64_t iova, int access)
{
	if (!mock.attr.rereg_mr)
		return -ENOTSUP;
	if (to_mr(ibv)->bound)
		die("region changed under a window");
	mr_set(to_mr(ibv), addr, length, access);
	ibv->lkey = ibv->rkey = ibv_inc_rkey(ibv->rkey);
	return 0;
}

static void mock_dereg_mr(struct ibv_mr *ibv)
{
	struct mock_mr *mr = to_mr(ibv);

	if (mr->bound)
		die("region deregistered under %u windows", mr->bound);
	mrs[mr->index] = NULL;
	mock.nmr--;
	free(mr);
}

/* ---- keys ---- */

static struct mock_mw *mw_find(uint32_t rkey)
{
	for (unsigned i = 1; i < MAX_KEYS; i++) {
		if (mws[i] && mws[i]->key == rkey)
			return mws[i];
	}
	return NULL;
}

static struct mock_mr *mr_find(uint32_t rkey)
{
	for (unsigned i = 1; i < MAX_KEYS; i++) {
		if (mrs[i] && mrs[i]->fab.ibv.rkey == rkey)
			return mrs[i];
	}
	return NULL;
}

static bool peer_may(struct mock_conn *c, uint32_t rkey, uint64_t addr, uint64_t len, int right)
{
	struct mock_mw *mw;
	struct mock_mr *mr;
	bool ok = false;

	pthread_mutex_lock(&lock);
	mw = mw_find(rkey);
	mr = mr_find(rkey);
	if (c->failed)
		;
	else if (mw)
		ok = mw->valid && (!mw->conn || mw->conn == c) && (mw->access & (unsigned)right) &&
		     range_ok(addr - mw->addr, len, mw->len);
	else if (mr)
		ok = (mr->access & right) &&
		     range_ok(addr - (uintptr_t)mr->fab.ibv.addr, len, mr->fab.ibv.length);
	pthread_mutex_unlock(&lock);
	return ok;
}

bool mock_peer_write(struct mock_conn *c, uint32_t rkey, uint64_t addr, uint64_t len)
{
	return peer_may(c, rkey, addr, len, IBV_ACCESS_REMOTE_WRITE);
}

bool mock_peer_read(struct mock_conn *c, uint32_t rkey, uint64_t addr, uint64_t len)
{
	return peer_may(c, rkey, addr, len, IBV_ACCESS_REMOTE_READ);
}

/* False: fails the connection. */
static bool invalidate(struct mock_conn *c, uint32_t rkey)
{
	struct mock_mw *mw = mw_find(rkey);

	if (!mw || mw->fab.ibv.type == IBV_MW_TYPE_1)
		return false;
	if (!mw->valid)
		die("kernel panic: invalidate of key 0x%x, which is not bound", rkey);
	if (mw->conn != c)
		return false;
	unbind(mw);
	return true;
}

struct ibv_wc mock_peer_inv(struct mock_conn *c, uint32_t rkey)
{
	struct ibv_wc wc = { .opcode = IBV_WC_RECV, .wc_flags = IBV_WC_WITH_INV,
			     .invalidated_rkey = rkey };

	pthread_mutex_lock(&lock);
	if (c->failed) {
		wc.status = IBV_WC_WR_FLUSH_ERR;
	} else if (!invalidate(c, rkey)) {
		wc.status = IBV_WC_REM_INV_REQ_ERR;
		c->failed = true;
	}
	pthread_mutex_unlock(&lock);
	return wc;
}

/* ---- the send queue ---- */

/* What rxe checks before it takes it, and what would bring others down. */
static void check_bind(const struct ibv_send_wr *wr)
{
	const struct ibv_mw_bind_info *info = &wr->bind_mw.bind_info;

	if (wr->imm_data || wr->sg_list || wr->num_sge || (wr->send_flags & ~IBV_SEND_SIGNALED))
		die("a bind with something in it that is not its own");
	if (!info->mr)
		die("segmentation fault: a bind without a region");
}

/* False: fails the connection, which a program of ours must not bring about. */
static bool mw_bind(struct mock_conn *c, const struct mock_wr *m)
{
	const struct ibv_mw_bind_info *info = &m->wr.bind_mw.bind_info;
	struct mock_mw *mw = to_mw(m->wr.bind_mw.mw);
	struct mock_mr *mr = to_mr(info->mr);

	if (m->mw_rkey != mw->key)
		die("ibv_mw.rkey was 0x%x at the post of a bind, and the last key is 0x%x",
		    m->mw_rkey, mw->key);
	if (m->wr.bind_mw.rkey == mw->key || (m->wr.bind_mw.rkey ^ mw->key) >> 8)
		die("window bound to key 0x%x, and its last was 0x%x", m->wr.bind_mw.rkey, mw->key);
	if (mw->fab.ibv.type == IBV_MW_TYPE_2 && (mw->valid || !info->length))
		die("window of type 2 bound when it was bound, or to nothing");
	if (info->length && (!(mr->access & IBV_ACCESS_MW_BIND) ||
			     ((info->mw_access_flags & IBV_ACCESS_REMOTE_WRITE) &&
			      !(mr->access & IBV_ACCESS_LOCAL_WRITE)) ||
			     !range_ok(info->addr - (uintptr_t)mr->fab.ibv.addr, info->length,
				       mr->fab.ibv.length)))
		die("window bound to what its region does not allow");
	if (mw->fab.pd != c->pd || mr->fab.pd != c->pd)
		die("window bound across pds");
	unbind(mw);
	mw->key = m->wr.bind_mw.rkey;
	if (!info->length)
		return true;
	mw->valid = true;
	mw->conn = mw->fab.ibv.type == IBV_MW_TYPE_2 ? c : NULL;
	mw->mr = mr;
	mr->bound++;
	mw->addr = info->mw_access_flags & IBV_ACCESS_ZERO_BASED ? 0 : info->addr;
	mw->len = info->length;
	mw->access = info->mw_access_flags;
	return true;
}

static void execute(struct mock_conn *c, unsigned most)
{
	for (; c->executed != c->tail && most; c->executed++, most--) {
		struct mock_wr *m = &c->sq[c->executed % MOCK_SQ];
		bool ok = true;

		if (m->wr.opcode == IBV_WR_BIND_MW)
			ok = mw_bind(c, m);
		else if (m->wr.opcode == IBV_WR_LOCAL_INV)
			ok = invalidate(c, m->wr.invalidate_rkey);
		m->executed = true;
		if (!ok)
			die("an invalidate of key 0x%x, which is no window of this connection",
			    m->wr.invalidate_rkey);
	}
}

static void check_chain(const struct ibv_send_wr *wr)
{
	for (; wr; wr = wr->next) {
		if (wr->opcode != IBV_WR_BIND_MW)
			continue;
		for (const struct ibv_send_wr *v = wr->next; v; v = v->next) {
			if (v->opcode == IBV_WR_BIND_MW && v->bind_mw.mw == wr->bind_mw.mw)
				die("two binds of one window in one post");
		}
		check_bind(wr);
	}
}

static void take(struct mock_conn *c, const struct ibv_send_wr *wr)
{
	struct mock_wr *m = &c->sq[c->tail % MOCK_SQ];

	if (c->tail - c->head == MIN(c->depth, MOCK_SQ))
		die("send queue overflow: more than %u requests", c->depth);
	*m = (struct mock_wr){ .wr = *wr };
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

static int mock_post(struct fab_conn *conn, const struct ibv_send_wr *wr)
{
	struct mock_conn *c = to_conn(conn);
	unsigned n = 0;
	int rc = 0;

	pthread_mutex_lock(&lock);
	c->nposts++;
	check_chain(wr);
	if (c->drained) {
		pthread_mutex_unlock(&lock);
		return -ENOTCONN;
	}
	for (; wr && !rc; wr = wr->next, n++) {
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
		c->failed = true;
	}
	if (!c->hold && !c->failed)
		execute(c, MOCK_SQ);
	pthread_mutex_unlock(&lock);
	return rc;
}

static int mock_poll(struct fab_conn *conn, struct ibv_wc *wc, int n)
{
	static const uint8_t opcodes[] = {
		[IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
		[IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
		[IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
		[IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
	};
	struct mock_conn *c = to_conn(conn);
	int got = 0;

	pthread_mutex_lock(&lock);
	if (!c->hold && !c->failed)
		execute(c, MOCK_SQ);
	while (got < n && c->head != c->tail) {
		const struct mock_wr *m = &c->sq[c->head % MOCK_SQ];

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
	if (!got && c->failed && n) {
		c->drained = true;
		got = -ENOTCONN;
	}
	pthread_mutex_unlock(&lock);
	return got;
}

void mock_conn_break(struct mock_conn *c, unsigned executed)
{
	pthread_mutex_lock(&lock);
	execute(c, executed);
	c->failed = true;
	pthread_mutex_unlock(&lock);
}

void mock_dispatch(struct mock_conn *c)
{
	while (fab_dispatch(&c->fab, 64) > 0)
		;
}

static void mock_disconnect(struct fab_conn *conn, const char *cause)
{
	die("the fabric refused a post: %s", cause);
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

static const struct fab_provider fab_mock = {
	.name = "mock",
	.query_device = mock_query,
	.reg_mr = mock_reg_mr,
	.rereg_mr = mock_rereg_mr,
	.dereg_mr = mock_dereg_mr,
	.mw_zero_based = true,
	.alloc_mw = mock_alloc_mw,
	.dealloc_mw = mock_dealloc_mw,
	.post_send = mock_post,
	.poll = mock_poll,
	.disconnect = mock_disconnect,
};
