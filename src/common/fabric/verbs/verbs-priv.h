/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the verbs provider: rdma-core's devices under the contract of fabric.h.
 *
 * A connection owns an rdma_cm_id, a completion channel, a CQ and an RC queue pair.  A ring mirrors
 * its send queue, because a completion names one work request and stands for all before it.
 *
 * FAILURE.  The first of: a completion that is no success, the peer's disconnect, a refused post,
 * fab_disconnect().  verbs_conn_fail() notes the cause, moves the queue pair to ERR and tells the
 * peer; then, behind everything that was posted, posts a marker that will flush as well.  Later
 * posts never reach the device: they are kept in @late and flushed by the poll when the device's
 * own flushes are in.  Drained: the marker and all receives are back and @late is empty.  (A
 * receive posted to a queue pair in ERR may never flush on rxe; the marker, a send, makes it.)  A
 * device that was removed, or whose CQ is broken, flushes nothing (conn_gone()): the poll destroys
 * the queue pair, and nothing touches memory any more.
 *
 * DEVICES belong to librdmacm, which opens each when it is first used.  The kernel waits for a
 * driver without hot-unplug (rxe, siw) until nobody has the device open.  librdmacm closes one that
 * is gone when it looks at the list of devices (verbs_dev_look()) and no id of it is left.  So a cm
 * keeps an id of each device that it has used (struct verbs_dev), to hear of the removal of an idle
 * one.
 *
 * LOCKS, in this order: cm->lock (which connection an id belongs to), post_lock (what is posted,
 * @late, @failing), cq_lock (the CQ, @stash), those of the table of windows (verbs-mw.c). */
#ifndef VERBS_PRIV_H
#define VERBS_PRIV_H

#include <errno.h>
#include <pthread.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>

#include "fabric.h"
#include "list.h"
#include "util.h"

struct rdma_cm_id;
struct rdma_event_channel;

#define VERBS_STASH 64
/* Bytes that the device is asked to take into its queue (IBV_SEND_INLINE): the message of a read
 * with its descriptor has less than 100. */
#define VERBS_INLINE 128
#define VERBS_RESOLVE_MS 5000
#define VERBS_SEND_BIT 1u		/* wr_ids of receives are addresses, and even */

struct verbs_cm {
	struct fab_cm fab;		/* fd: an epoll of the channel and of the timer */
	struct rdma_event_channel *channel;
	int timer_fd;			/* runs after a device was removed, see verbs_dev_look() */
	struct list listeners;
	pthread_mutex_t lock;		/* rdma_cm_id.context of connections, @devs */
	struct list devs;
};

/* A device that the cm has used; until it is removed and nothing of it is left. */
struct verbs_dev {
	struct list link;
	struct ibv_context *verbs;
	struct rdma_cm_id *id;		/* of a connection that has gone, or NULL */
	unsigned npds;
	bool gone;			/* removed */
};

struct verbs_listener {
	struct fab_listener fab;
	struct list link;
	struct rdma_cm_id *id;
};

struct verbs_pd {
	struct fab_pd fab;
	struct ibv_pd *pd;
	struct verbs_cm *cm;
	struct verbs_dev *dev;
};

struct verbs_mr {
	struct fab_mr fab;		/* keys and range copied from @hw */
	struct ibv_mr *hw;
};

/* A posted send. */
struct verbs_sqe {
	uint64_t wr_id;
	bool signaled;			/* its owner wants to hear of it */
};

struct verbs_conn {
	struct fab_conn fab;
	struct rdma_cm_id *id;
	const struct fab_pd *pd;	/* from verbs_conn_create_qp() on */
	bool passive;
	bool pending;			/* cm thread: its peer waits for us, or we for it */
	bool removed;			/* cm->lock: its device is */
	bool established;		/* cm thread */
	atomic_bool connected;		/* sends are possible */
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	bool armed;			/* polling thread: an event will come */
	struct fab_qp_attr attr;
	uint32_t max_inline;		/* bytes; 0: the device copies nothing */

	pthread_mutex_t post_lock;
	struct verbs_sqe *sq;		/* [sq_mask + 1] */
	uint32_t sq_mask;
	uint32_t sq_head;		/* next to post */
	uint32_t unsignaled;		/* posted since the last one that tells */
	uint32_t signal_every;
	uint64_t *late;			/* wr_ids that were posted after the failure */
	uint32_t nlate, late_taken, late_room;
	bool failing, drained;

	_Alignas(64) pthread_mutex_t cq_lock;
	atomic_uint sq_tail;		/* all before it are done */
	atomic_uint nrecvs;		/* receives in the device */
	bool marker_back;
	enum ibv_wc_status broken;	/* of the first completion that was no success */
	struct ibv_wc stash[VERBS_STASH];	/* taken from the CQ by others than fab_poll() */
	unsigned stash_first, stash_n;

	atomic_bool failed;		/* @failing for those without the lock */
	atomic_bool gone;		/* its CQ is broken */
};

static inline struct verbs_conn *verbs_conn(const struct fab_conn *conn)
{
	return container_of(conn, struct verbs_conn, fab);
}

static inline struct verbs_cm *verbs_cm(const struct fab_cm *cm)
{
	return container_of(cm, struct verbs_cm, fab);
}

static inline void verbs_addr(const struct fab_provider *p, const struct sockaddr *sa,
			      struct fab_addr *addr)
{
	addr->provider = p;
	addr->len = sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						sizeof(struct sockaddr_in);
	memcpy(&addr->ss, sa, addr->len);
}

/* Of a call of rdma-core that has failed; some forget to say why. */
static inline int verbs_neg_errno(void)
{
	return errno ? -errno : -EIO;
}

/* The queues of the device behind those that the user asks of us. */
struct verbs_queues {
	uint32_t signal_every;
	uint32_t send_wr, recv_wr, cqe;
	uint32_t recv_sge;
};

/* verbs-listen.c: listeners */
int verbs_listen(struct fab_cm *cm, const struct fab_addr *addr, struct fab_listener **out);
void verbs_listen_destroy(struct fab_listener *fab);
/* The one with @id, or NULL. */
struct verbs_listener *verbs_listen_of(const struct verbs_cm *cm, const struct rdma_cm_id *id);

/* verbs-event.c: what librdmacm reports */
int verbs_event_get(struct fab_cm *cm, struct fab_event *ev);

/* verbs-dev.c: devices */
/* The limits of a device as we offer them: whatever is asked for within @attr fits
 * (verbs_dev_queues()). Windows: as the device says, before a trial.  Pure. */
void verbs_dev_limits(const struct ibv_device_attr *dev, struct fab_device_attr *attr);
void verbs_dev_queues(const struct fab_qp_attr *attr, uint32_t max_sge, struct verbs_queues *q);
int verbs_dev_query_listener(const struct fab_listener *fab, struct fab_device_attr *attr);
int verbs_dev_query(const struct fab_conn *conn, struct fab_device_attr *attr);
/* @cm's record of @device, made if need be; NULL: no memory.  cm->lock held. */
struct verbs_dev *verbs_dev_get(struct verbs_cm *cm, struct ibv_context *device);
/* When @dev is not needed any more it is gone; returns its id, for the caller to destroy without
 * lock, or NULL.  cm->lock held. */
struct rdma_cm_id *verbs_dev_release(struct verbs_dev *dev);
/* @device was removed: its connections complete nothing, and librdmacm has to look.  Any thread. */
void verbs_dev_removed(struct ibv_context *device);
bool verbs_dev_is_removed(const struct ibv_context *device);
/* Look for what @device reports of itself and of completion queues: a connection asks that has
 * failed and does not drain. */
void verbs_dev_events(struct ibv_context *device);
/* A queue pair was made on @device: it is there. */
void verbs_dev_works(struct ibv_context *device);
/* If a device was removed, have librdmacm look at what there is.  True: call again in a while,
 * because at first the kernel still shows the device. */
bool verbs_dev_look(void);

/* verbs-pd.c: protection domains; verbs-mr.c: memory */
int verbs_pd_create(struct fab_conn *conn, struct fab_pd **out);
void verbs_pd_destroy(struct fab_pd *fab);
struct ibv_mr *verbs_mr_reg(struct fab_pd *fab, void *addr, size_t length, uint64_t iova,
			    int access);
void verbs_mr_dereg(struct ibv_mr *ibv);

/* verbs-mw.c: windows */
struct ibv_mw *verbs_mw_alloc(struct fab_pd *pd, enum ibv_mw_type type);
int verbs_mw_dealloc(struct ibv_mw *ibv);
static inline bool verbs_mw_is(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_BIND_MW || wr->opcode == IBV_WR_LOCAL_INV;
}
/* verbs has a call of its own for it. */
static inline bool verbs_mw_is_alone(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_BIND_MW && wr->bind_mw.mw->type == IBV_MW_TYPE_1;
}
/* A bind or invalidate as the device gets it, but for its wr_id, and as done; or what is wrong with
 * it.  NULL: it is posted next, or @c has failed.  Under post_lock. */
const char *verbs_mw_fill(const struct verbs_conn *c, const struct ibv_send_wr *wr,
			  struct ibv_send_wr *hw);
/* Post a chain without any verbs_mw_is_alone(), or one alone.  Returns 0 or a positive errno; then
 * @unable: it was a bind or invalidate that the device cannot do. */
int verbs_mw_post(struct ibv_qp *qp, struct ibv_send_wr *hw, bool *unable);
/* A SEND_WITH_INV of @rkey came on @c.  False: it is not of a window that is bound there. */
bool verbs_mw_peer_inv(const struct verbs_conn *c, uint32_t rkey);

/* verbs-conn.c: queues */
/* A connection without an id, or NULL: no memory. */
struct verbs_conn *verbs_conn_alloc(struct fab_cm *cm);
/* Frees the queue pair and all that belongs to it; not the id. */
void verbs_conn_fini(struct verbs_conn *c);
int verbs_conn_create_qp(struct fab_conn *conn, struct fab_pd *pd, const struct fab_qp_attr *attr);
int verbs_conn_poll(struct fab_conn *conn, struct ibv_wc *wc, int n);
int verbs_conn_arm(struct fab_conn *conn, short *events);
int verbs_conn_need_rearm(const struct fab_conn *conn);
void verbs_conn_disconnect(struct fab_conn *conn, const char *cause);
void verbs_conn_fail(struct verbs_conn *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* verbs_conn_fail() under post_lock. */
void verbs_conn_fail_locked(struct verbs_conn *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Take in what the device has completed so far. */
void verbs_conn_look(struct verbs_conn *c);

/* verbs-post.c: posting */
int verbs_post_send(struct fab_conn *conn, const struct ibv_send_wr *wr);
int verbs_post_recv(struct fab_conn *conn, const struct ibv_recv_wr *wr);

#endif
