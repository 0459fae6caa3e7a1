/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of the verbs provider: rdma-core's devices under the contract of fabric.h.
 *
 * A connection owns an rdma_cm_id, a completion channel, a CQ and an RC queue pair.  A ring mirrors
 * its send queue, because a completion names a single work request and stands for all before.
 *
 * FAILURE.  A connection fails by the first of: a completion without success, the peer's
 * disconnect, a refused post, fab_disconnect().  verbs_conn_fail() notes the cause, moves the queue
 * pair to ERR and tells the peer.  Behind all posted requests verbs_conn_fail() then posts a
 * marker, which will flush as well.  Later posts never reach the device: @late keeps such posts,
 * and the poll flushes @late when the device's own flushes are in.
 *
 * Drained: the marker and all receives are back and @late is empty.  (A receive posted to a queue
 * pair in ERR may never flush on rxe; the marker, a send, makes rxe flush.)  A removed device, or a
 * device with a broken CQ, flushes nothing (conn_gone()), and another device may not have flushed
 * within VERBS_DRAIN_MS (siw never does): the queue pair is destroyed, and from then on the device
 * touches no memory.
 *
 * THE END.  What has drained is destroyed by a thread of its device (verbs-reap.c).
 *
 * DEVICES belong to librdmacm, which opens each at its first use.  The kernel waits for a driver
 * without hot-unplug (rxe, siw) until no process has the device open.  librdmacm closes a device
 * that is gone when librdmacm looks at the list of devices (verbs_dev_look()) and no id of the
 * device is left.  So a cm keeps an id of each device that the cm has used (struct verbs_dev), to
 * learn of the removal of an idle device.
 *
 * LOCKS, in this order: cm->lock (the connection of each id), post_lock (posted requests, @late),
 * cq_lock (the CQ, @stash), the locks of the table of windows (verbs-mw.c). */
#ifndef VERBS_PRIV_H
#define VERBS_PRIV_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>

#include "fabric.h"
#include "fsm.h"
#include "list.h"
#include "util.h"

struct rdma_cm_id;
struct rdma_event_channel;

#define VERBS_STASH 64
/* Bytes that the device is asked to copy into its queue (IBV_SEND_INLINE): the message of a read
 * with its descriptor has less than 100. */
#define VERBS_INLINE 128
#define VERBS_RESOLVE_MS 5000
#define VERBS_DRAIN_MS 10000u		/* for the flushes of a device after a failure */
#define VERBS_SEND_BIT 1u		/* wr_ids of receives are addresses, and even */
#define VERBS_MARKER_ID UINT64_MAX	/* wr_id of the marker */

struct verbs_cm {
	struct fab_cm fab;		/* fd: an epoll of the channel and of the timer */
	struct rdma_event_channel *channel;
	int timer_fd;			/* runs after a device was removed, see verbs_dev_look() */
	struct list listeners;
	/* rdma_cm_id.context of connections, @devs and what these have, @nreapers, @free */
	pthread_mutex_t lock;
	struct list devs;
	unsigned nreapers;		/* threads of verbs-reap.c */
	void (*free)(struct verbs_cm *cm);	/* the last reaper's; NULL: not destroyed */
};

/* A device that the cm has used.  The record ends when the device was removed, and neither a pd nor
 * a job is left. */
struct verbs_dev {
	struct list link;
	struct verbs_cm *cm;
	struct ibv_context *verbs;
	struct rdma_cm_id *id;		/* of a destroyed connection, or NULL */
	unsigned npds;
	bool gone;			/* removed */
	unsigned njobs;			/* not done; the thread of verbs-reap.c runs while any is */
	uint64_t since_ms;		/* of the job that runs; written by the thread */
	struct list jobs;		/* verbs_reap.link, not begun */
};

/* Something that the device may take long to let go of; embedded in it. */
struct verbs_reap {
	struct list link;
	void (*destroy)(struct verbs_reap *job);
	struct verbs_pd *pd;		/* NULL: the job of the pd itself */
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
	atomic_uint nconns;		/* not destroyed */
	atomic_uint nleaving;		/* jobs of the reaper */
	struct verbs_reap reap;
};

struct verbs_mr {
	struct fab_mr fab;		/* keys and range copied from @hw */
	struct ibv_mr *hw;
	struct verbs_reap reap;
};

/* The life of a connection's queues; from FAILED on, the connection has failed.  The table is in
 * verbs-conn.c. */
enum verbs_conn_state {
	VERBS_CONN_NEW,			/* sends are not possible yet */
	VERBS_CONN_OPEN,
	VERBS_CONN_FAILED,		/* the device flushes */
	VERBS_CONN_MARKED,		/* the same, and the marker is back */
	VERBS_CONN_STUCK,		/* the device is given up, and still has the queue pair */
	VERBS_CONN_STUCK_MARKED,	/* the same, and the marker is back */
	VERBS_CONN_LEFT,		/* given up: the queue pair is destroyed */
	VERBS_CONN_DRAINED,		/* no request is left, and no post is taken */
	VERBS_CONN_NSTATES,
};

enum verbs_conn_event {
	VERBS_CONN_EV_CONNECTED,
	VERBS_CONN_EV_FAIL,		/* under post_lock */
	VERBS_CONN_EV_MARKER,		/* the marker is back, or could not be posted */
	VERBS_CONN_EV_GIVE_UP,		/* nothing more will come of the device; post_lock */
	VERBS_CONN_EV_DESTROYED,	/* the queue pair of a device that is given up; post_lock */
	VERBS_CONN_EV_DRAIN,		/* the last late post is flushed; post_lock */
	VERBS_CONN_NEVENTS,
};

/* How a connection comes up, by what librdmacm reports.  The table is in verbs-event.c. */
enum verbs_setup_state {
	VERBS_SETUP_NEW,		/* active: looks for a device and a route */
	VERBS_SETUP_ASKS,		/* active: waits for the peer's answer */
	VERBS_SETUP_ASKED,		/* passive: the peer waits for our answer */
	VERBS_SETUP_ANSWERED,		/* passive: the peer waits no more */
	VERBS_SETUP_DONE,		/* established */
	VERBS_SETUP_FAILED,		/* active: the failure is reported */
	VERBS_SETUP_REMOVED,		/* the removal of the device is reported */
	VERBS_SETUP_NSTATES,
};

enum verbs_setup_event {
	VERBS_SETUP_EV_ADDRESS,		/* resolved */
	VERBS_SETUP_EV_ROUTE,		/* resolved */
	VERBS_SETUP_EV_ASK,		/* our request is sent */
	VERBS_SETUP_EV_REQUEST,		/* the peer's request is here */
	VERBS_SETUP_EV_ANSWER,		/* our accept or reject is sent */
	VERBS_SETUP_EV_ESTABLISHED,
	VERBS_SETUP_EV_REFUSED,		/* by the peer */
	VERBS_SETUP_EV_REJECTED,	/* by the peer's host */
	VERBS_SETUP_EV_LOST,
	VERBS_SETUP_EV_REMOVED,		/* the device */
	VERBS_SETUP_NEVENTS,
};

extern const struct fsm verbs_conn_fsm, verbs_setup_fsm;

/* A posted send. */
struct verbs_sqe {
	uint64_t wr_id;
	bool signaled;			/* the user asked for the completion */
};

struct verbs_conn {
	struct fab_conn fab;
	struct rdma_cm_id *id;
	struct verbs_pd *pd;		/* from verbs_conn_create_qp() on */
	struct verbs_reap give_up, reap;
	struct ibv_qp *qp;		/* @id->qp, from verbs_conn_take_qp() on */
	atomic_uint setup;		/* enum verbs_setup_state; thread of the cm */
	atomic_uint state;		/* enum verbs_conn_state */
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	bool armed;			/* polling thread: an event will come */
	struct fab_qp_attr attr;
	uint32_t max_inline;		/* bytes; 0: the device copies nothing */

	pthread_mutex_t post_lock;
	struct verbs_sqe *sq;		/* [sq_mask + 1] */
	uint32_t sq_mask;
	uint32_t sq_head;		/* next to post */
	uint32_t unsignaled;		/* posted since the last signaled send */
	uint32_t signal_every;
	uint64_t *late;			/* wr_ids posted after the failure */
	uint32_t nlate, late_taken, late_room;
	uint64_t failed_ms;		/* when @state became FAILED */

	_Alignas(64) pthread_mutex_t cq_lock;
	atomic_uint sq_tail;		/* all before @sq_tail are done */
	atomic_uint nrecvs;		/* receives in the device */
	enum ibv_wc_status broken;	/* status of the first completion without success */
	struct ibv_wc stash[VERBS_STASH];	/* taken from the CQ outside of fab_poll() */
	unsigned stash_first, stash_n;

	atomic_bool cq_broken;
};

/* The verbs_conn around @conn. */
static inline struct verbs_conn *verbs_conn(const struct fab_conn *conn)
{
	return container_of(conn, struct verbs_conn, fab);
}

/* True if @c has failed.  Any thread. */
static inline bool verbs_conn_failed(const struct verbs_conn *c)
{
	return atomic_load(&c->state) >= VERBS_CONN_FAILED;
}

/* The verbs_cm around @cm. */
static inline struct verbs_cm *verbs_cm(const struct fab_cm *cm)
{
	return container_of(cm, struct verbs_cm, fab);
}

/* Make @addr the IPv4 or IPv6 address @sa of provider @p. */
static inline void verbs_addr(const struct fab_provider *p, const struct sockaddr *sa,
			      struct fab_addr *addr)
{
	addr->provider = p;
	addr->len = sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						sizeof(struct sockaddr_in);
	memcpy(&addr->ss, sa, addr->len);
}

/* -errno after a failed call of rdma-core; -EIO if the call left errno 0. */
static inline int verbs_neg_errno(void)
{
	return errno ? -errno : -EIO;
}

/* Have reads of @fd fail with EAGAIN where they would wait.  0, or -1 and errno. */
static inline int verbs_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

/* The queues of the device that carry queues of a user's fab_qp_attr. */
struct verbs_queues {
	uint32_t signal_every;
	uint32_t send_wr, recv_wr, cqe;
	uint32_t recv_sge;
};

/* Functions of the provider's table have the contracts of their namesakes in fabric.h. */

/* verbs-reap.c: have the device's thread call @job->destroy, behind all earlier jobs.  If there is
 * no thread, the caller makes the call, which may block. */
void verbs_reap(struct verbs_pd *pd, struct verbs_reap *job);
/* True if connections of @pd are being destroyed, and no other one is left: what else of @pd is
 * destroyed now follows them. */
bool verbs_reap_follows(const struct verbs_pd *pd);
/* True if @dev has not done a job for VERBS_DRAIN_MS.  cm->lock held. */
bool verbs_reap_is_late(const struct verbs_dev *dev);

/* verbs-event.c: make the next event of the reports of librdmacm. */
int verbs_event_get(struct fab_cm *cm, struct fab_event *ev);
/* Move the set-up of @c along, for one of the events that nobody reports: ASK, ANSWER. */
void verbs_event_step(struct verbs_conn *c, enum verbs_setup_event event);

/* verbs-dev.c: devices */
/* The limits of a device as offered to users: queues of any size within @attr fit
 * (verbs_dev_queues()).  Windows: by the device's flags, before a trial.  Pure. */
void verbs_dev_limits(const struct ibv_device_attr *dev, struct fab_device_attr *attr);
/* True if @device, which may be NULL, cannot RDMA_WRITE_WITH_IMM: then RTRS cannot use it, and
 * neither end begins a connection there. */
bool verbs_dev_lacks_imm(const struct ibv_context *device);
/* The same for users. */
#define VERBS_LACKS_IMM "speaks iWARP, which has no RDMA_WRITE_WITH_IMM"
/* Size the device's queues for @attr.  @max_sge: of the device.  Pure. */
void verbs_dev_queues(const struct fab_qp_attr *attr, uint32_t max_sge, struct verbs_queues *q);
/* The attributes of a listener's device; -ENODEV without a device. */
int verbs_dev_query_listener(const struct fab_listener *fab, struct fab_device_attr *attr);
/* The attributes of the device of @conn, after trying its windows; -EINVAL without a device. */
int verbs_dev_query(const struct fab_conn *conn, struct fab_device_attr *attr);
/* The record of @device in @cm, made if missing; NULL: no memory.  cm->lock held. */
struct verbs_dev *verbs_dev_get(struct verbs_cm *cm, struct ibv_context *device);
/* Free @dev, if the device was removed, and neither a pd nor a job is left.  Returns the id of a
 * freed record, for the caller to destroy without the lock, or NULL.  cm->lock held. */
struct rdma_cm_id *verbs_dev_release(struct verbs_dev *dev);
/* Note that @device was removed: its connections complete nothing more, and verbs_dev_look() has
 * work.  Any thread. */
void verbs_dev_removed(struct ibv_context *device);
/* True if @device was removed.  Any thread. */
bool verbs_dev_is_removed(const struct ibv_context *device);
/* Read the events of @device about removal and broken CQs.  Called for a connection that has failed
 * and does not drain. */
void verbs_dev_events(struct ibv_context *device);
/* Note that @device exists, because a queue pair was made on @device. */
void verbs_dev_works(struct ibv_context *device);
/* If a device was removed, have librdmacm look at the list of devices.  True: call again in a
 * while, because at first the kernel still shows the device. */
bool verbs_dev_look(void);

/* verbs-pd.c: allocate a pd, and have the cm keep the record of its device.  -EBUSY:
 * verbs_reap_is_late(), so that what paths leave behind has a bound. */
int verbs_pd_create(struct fab_conn *conn, struct fab_pd **out);
/* Free the pd, or have the reaper do that; may free the record of a removed device and destroy its
 * id. */
void verbs_pd_destroy(struct fab_pd *fab);
/* verbs-pd.c: register memory; ENOTSUP if @length is 0. */
struct ibv_mr *verbs_mr_reg(struct fab_pd *fab, void *addr, size_t length, uint64_t iova,
			    int access);
/* Deregister and free the region, or have the reaper do that. */
void verbs_mr_dereg(struct ibv_mr *ibv);

/* verbs-mw.c: allocate a window and enter the window in the table. */
struct ibv_mw *verbs_mw_alloc(struct fab_pd *pd, enum ibv_mw_type type);
/* Free the window, or have the reaper do that: 0.  The windows of a removed device count as
 * freed, too. */
int verbs_mw_dealloc(struct ibv_mw *ibv);
/* True if @wr concerns a window. */
static inline bool verbs_mw_is(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_BIND_MW || wr->opcode == IBV_WR_LOCAL_INV;
}
/* True if @wr binds a window of type 1, for which libibverbs has a call of its own. */
static inline bool verbs_mw_is_alone(const struct ibv_send_wr *wr)
{
	return wr->opcode == IBV_WR_BIND_MW && wr->bind_mw.mw->type == IBV_MW_TYPE_1;
}
/* Translate the bind or invalidate @wr into @hw, all but wr_id, and note the new state of the
 * window.  Returns NULL or the fault.  After NULL @hw is posted next, or @c has failed.  post_lock
 * held. */
const char *verbs_mw_fill(const struct verbs_conn *c, const struct ibv_send_wr *wr,
			  struct ibv_send_wr *hw);
/* Post a chain without a verbs_mw_is_alone(), or a single verbs_mw_is_alone().  Returns 0 or a
 * positive errno.  @unable: the device cannot do the bind or invalidate that failed. */
int verbs_mw_post(struct ibv_qp *qp, struct ibv_send_wr *hw, bool *unable);
/* Note that a SEND_WITH_INV of @rkey came on @c.  False: @rkey is no window's bound on @c. */
bool verbs_mw_peer_inv(const struct verbs_conn *c, uint32_t rkey);

/* verbs-conn.c: make a connection without an id; NULL: no memory. */
struct verbs_conn *verbs_conn_alloc(struct fab_cm *cm);
/* Take the queue pair from the id, in front of its end on another thread: librdmacm, which moves
 * the queue pair of an id along in rdma_get_cm_event(), has none any more. */
void verbs_conn_take_qp(struct verbs_conn *c);
/* Free the queues of @c, with the queue pair that was taken, and their memory, but neither the id
 * nor @c. */
void verbs_conn_fini(struct verbs_conn *c);
/* Make CQ and queue pair; after an error verbs_conn_fini() frees the objects made so far. */
int verbs_conn_create_qp(struct fab_conn *conn, struct fab_pd *pd, const struct fab_qp_attr *attr);
/* Move the queues of @c along.  Any thread; FAIL comes by verbs_conn_fail() alone. */
void verbs_conn_step(struct verbs_conn *c, enum verbs_conn_event event);
/* Call verbs_conn_fail() with @cause. */
void verbs_conn_disconnect(struct fab_conn *conn, const char *cause);
/* fab_conn_mtu(). */
void verbs_conn_mtu(const struct fab_conn *conn, struct fab_mtu *mtu);
/* Fail @c with the cause in words, unless @c has failed already.  Takes post_lock. */
void verbs_conn_fail(struct verbs_conn *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* verbs_conn_fail() for a caller that holds post_lock. */
void verbs_conn_fail_locked(struct verbs_conn *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* verbs-poll.c: take completions; after a failure flush late posts, too, and give up a device that
 * is removed or late. */
int verbs_poll(struct fab_conn *conn, struct ibv_wc *wc, int n);
/* Ask the CQ for an event, unless work waits; makes system calls. */
int verbs_poll_arm(struct fab_conn *conn, short *events);
/* FAB_REARM_EVENTS after a failure, otherwise 0. */
int verbs_poll_need_rearm(const struct fab_conn *conn);
/* Move completions from the CQ to @stash, so that @sq_tail and windows are up to date. */
void verbs_poll_look(struct verbs_conn *c);

/* verbs-post.c: post a chain, in batches; after a failure keep the chain in @late. */
int verbs_post_send(struct fab_conn *conn, const struct ibv_send_wr *wr);
/* Post receives; after a failure keep the receives in @late. */
int verbs_post_recv(struct fab_conn *conn, const struct ibv_recv_wr *wr);

#endif
