/* SPDX-License-Identifier: BSD-3-Clause */
/* An HCA that does not forgive: the fabric provider "mock", without sockets, so all that TSan sees
 * is what is tested.
 *
 * It has windows, keys, queue pairs that own windows of type 2, send queues whose places are free
 * again when their completion is polled, and the habits of hardware and of rxe that src/frwr is
 * built around: an invalidate of a window that is not bound stops the machine, ibv_mw.rkey is read
 * while posting, a request that fails surfaces as flushed.  What no provider may be asked (a range
 * outside of its region, a bound window bound again, wrong order of teardown, ...) ends the program
 * with the reason: each test is also a test that this did not happen.  Any thread; one lock.
 *
 * Queue pairs come from mock_conn_create() and are connected to nothing but the test, or from a
 * manager (fab_cm_create()): then struct mock_peer answers, and there is a descriptor to wait
 * on. */
#ifndef MOCK_HCA_H
#define MOCK_HCA_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"
#include "list.h"

#define MOCK_QUEUE 2048u		/* places of any queue */
#define MOCK_SGE 4u

/* A posted request. */
struct mock_wr {
	struct ibv_send_wr wr;
	struct ibv_sge sge[MOCK_SGE];
	uint32_t mw_rkey;		/* ibv_mw.rkey when it was posted */
	bool executed;
};

struct mock_recv {
	uint64_t wr_id;
	struct ibv_sge sge;
};

struct mock_conn {
	struct fab_conn fab;
	struct fab_pd *pd;
	uint32_t head, executed, tail;	/* of sq */
	uint32_t depth;			/* of the send queue; more is an overflow */
	uint32_t most;			/* places that were ever in use at once */
	bool hold;			/* do not execute for now */
	bool failed, drained;
	unsigned nposts;		/* calls of post_send */
	/* The next post takes so many requests and returns fail_rc, if that is not 0. */
	unsigned fail_at;
	int fail_rc;
	uint32_t rq_head, rq_tail, received_head, received_tail;
	/* of a manager's: */
	struct list link, event_link;
	enum fab_event_type event;
	int fd;				/* else -1 */
	bool up, armed;

	unsigned nlog;
	struct mock_wr log[64];		/* the last requests posted, a chain after the other */
	struct mock_wr sq[MOCK_QUEUE];
	struct mock_recv rq[MOCK_QUEUE];
	struct ibv_wc received[MOCK_QUEUE];	/* not polled yet */
};

/* The other end of all connections that a manager made.  Called with the lock. */
struct mock_peer {
	/* It accepts; private data of it, and how much. */
	size_t (*accept)(void *private_data);
	/* Anything but a bind or an invalidate was carried out on @c. */
	void (*arrived)(struct mock_conn *c, const struct ibv_send_wr *wr);
	void (*lost)(struct mock_conn *c);
};

struct mock_hca {
	struct fab_device_attr attr;
	int alloc_mw_fails_after;	/* so many succeed; negative: all */
	unsigned dealloc_mw_fails;	/* so many */
	unsigned reg_mr_fails;
	unsigned suspend_fails;		/* so many calls of fab_suspend_mr() and fab_resume_mr() */
	unsigned npd, nqp, nmr, nmw;	/* that exist */
	unsigned mw_allocs, mw_deallocs, deallocs_failed;
	bool windows_refused;		/* alloc_mw says EOPNOTSUPP in spite of attr */
	bool keys_stay;			/* rereg_mr leaves the key as it is */
	bool bind_refused;		/* it gives windows; a post with a bind says EOPNOTSUPP */
	bool unbind_refused;		/* only with one to nothing */
	enum ibv_wc_status bind_status;	/* on a broken connection, of binds in place of a flush */
	const struct mock_peer *peer;
};

extern struct mock_hca mock;
extern const struct fab_provider fab_mock;
/* Who has it may take it again, by calling any of these. */
extern pthread_mutex_t mock_lock;

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
/* Every connection that a manager made breaks, if it is up. */
void mock_cut(void);

/* The peer of @c: may it write (or read) there? */
bool mock_peer_write(struct mock_conn *c, uint32_t rkey, uint64_t addr, uint64_t len);
bool mock_peer_read(struct mock_conn *c, uint32_t rkey, uint64_t addr, uint64_t len);
/* It writes, which it must be allowed to. */
void mock_peer_place(struct mock_conn *c, uint32_t rkey, uint64_t addr, const void *data,
		     size_t len);
/* It sends with invalidate; this is the receive completion.  REM_INV_REQ_ERR fails the
 * connection. */
struct ibv_wc mock_peer_inv(struct mock_conn *c, uint32_t rkey);
/* A message of @wc.byte_len bytes at @data, or an immediate, takes a receive and completes as
 * @wc. */
void mock_peer_send(struct mock_conn *c, struct ibv_wc wc, const void *data);
/* Keys that a peer could write with now. */
unsigned mock_live_keys(void);

/* "BIND BIND WRITE_IMM*": the @n requests of the log, signaled ones with a star. */
const char *mock_log(const struct mock_conn *c);

#endif
