/* SPDX-License-Identifier: BSD-3-Clause */
/* An HCA that does not forgive: the fabric provider "mock".
 *
 * It has windows, keys, queue pairs that own windows of type 2, send queues whose places are free
 * again when their completion is polled, and the habits of hardware and of rxe that src/frwr is
 * built around: an invalidate of a window that is not bound stops the machine, ibv_mw.rkey is read
 * while posting, a request that fails surfaces as flushed.  What no provider may be asked (a range
 * outside of its region, a bound window bound again, wrong order of teardown, ...) ends the program
 * with the reason: each test is also a test that this did not happen.  Any thread; one lock. */
#ifndef MOCK_HCA_H
#define MOCK_HCA_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"

#define MOCK_SQ 4096u

/* A posted request. */
struct mock_wr {
	struct ibv_send_wr wr;
	uint32_t mw_rkey;		/* ibv_mw.rkey when it was posted */
	bool executed;
	enum ibv_wc_status status;
};

struct mock_conn {
	struct fab_conn fab;
	struct fab_pd *pd;
	struct mock_wr sq[MOCK_SQ];
	uint32_t head, executed, tail;
	uint32_t depth;			/* of the send queue; more is an overflow */
	uint32_t most;			/* places that were ever in use at once */
	bool hold;			/* do not execute for now */
	bool failed, drained;
	unsigned nposts;		/* calls of post_send */
	/* The next post takes so many requests and returns fail_rc, if that is not 0. */
	unsigned fail_at;
	int fail_rc;
	struct mock_wr log[64];		/* the last requests posted, a chain after the other */
	unsigned nlog;
};

struct mock_hca {
	struct fab_device_attr attr;
	int alloc_mw_fails_after;	/* so many succeed; negative: all */
	unsigned dealloc_mw_fails;	/* so many */
	unsigned reg_mr_fails;
	unsigned npd, nqp, nmr, nmw;	/* that exist */
	unsigned mw_allocs, mw_deallocs, deallocs_failed;
	bool windows_refused;		/* alloc_mw says EOPNOTSUPP in spite of attr */
	bool bind_refused;		/* it gives windows; a post with a bind says EOPNOTSUPP */
	bool unbind_refused;		/* only with one to nothing */
	enum ibv_wc_status bind_status;	/* on a broken connection, of binds in place of a flush */
};

extern struct mock_hca mock;

/* A device as new: windows of both types, region bounds as asked. */
void mock_init(void);
/* Nothing is left. */
void mock_fini(void);

struct fab_pd *mock_pd_create(void);
void mock_pd_destroy(struct fab_pd *pd);
/* A connected queue pair. */
struct mock_conn *mock_conn_create(struct fab_pd *pd, uint32_t depth);
void mock_conn_destroy(struct mock_conn *c);
/* It fails; what is posted completes as flushed, although the first @executed of it were carried
 * out. */
void mock_conn_break(struct mock_conn *c, unsigned executed);
/* Poll until nothing comes any more, calling the handlers. */
void mock_dispatch(struct mock_conn *c);

/* The peer of @c: may it write (or read) there? */
bool mock_peer_write(struct mock_conn *c, uint32_t rkey, uint64_t addr, uint64_t len);
bool mock_peer_read(struct mock_conn *c, uint32_t rkey, uint64_t addr, uint64_t len);
/* It sends with invalidate; this is the receive completion.  REM_INV_REQ_ERR fails the
 * connection. */
struct ibv_wc mock_peer_inv(struct mock_conn *c, uint32_t rkey);

/* "BIND BIND WRITE_IMM*": the @n requests of the log, signaled ones with a star. */
const char *mock_log(const struct mock_conn *c);

#endif
