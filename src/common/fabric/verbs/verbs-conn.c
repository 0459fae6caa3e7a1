/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a connection's queue pair, CQ and completion channel, from creation to destruction or to the
 * failure of the connection; verbs-priv.h says how a connection fails.  Errors as fabric.h says.
 * Posting: verbs-post.c; polling and draining: verbs-poll.c. */
#define FSM_PREFIX VERBS_CONN_

#include <config.h>

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "cleanup.h"
#include "clock.h"
#include "verbs-priv.h"

/* ---- life ---- */

struct verbs_conn *verbs_conn_alloc(struct fab_cm *cm)
{
	struct verbs_conn *c = aligned_alloc(_Alignof(struct verbs_conn), sizeof(*c));

	if (!c)
		return NULL;
	memset(c, 0, sizeof(*c));
	c->fab.ops = cm->ops;
	c->fab.cm = cm;
	pthread_mutex_init(&c->post_lock, NULL);
	pthread_mutex_init(&c->cq_lock, NULL);
	return c;
}

void verbs_conn_take_qp(struct verbs_conn *c)
{
	if (c->id->qp)
		c->qp = c->id->qp;
	c->id->qp = NULL;
}

void verbs_conn_fini(struct verbs_conn *c)
{
	if (c->qp)
		ibv_destroy_qp(c->qp);
	if (c->cq)
		ibv_destroy_cq(c->cq);
	if (c->channel)
		ibv_destroy_comp_channel(c->channel);
	free(c->sq);
	free(c->late);
	pthread_mutex_destroy(&c->cq_lock);
	pthread_mutex_destroy(&c->post_lock);
}

static int create_cq(struct verbs_conn *c, int cqe)
{
	c->channel = ibv_create_comp_channel(c->id->verbs);
	if (!c->channel || verbs_nonblock(c->channel->fd))
		return -errno;
	c->cq = ibv_create_cq(c->id->verbs, cqe, c, c->channel, 0);
	return c->cq ? 0 : errno ? -errno : -ENOMEM;
}

/* Try with inline data first: a device without room for VERBS_INLINE bytes refuses the queue
 * pair. */
static int create_qp(struct verbs_conn *c, struct ibv_pd *pd, const struct ibv_qp_init_attr *wanted)
{
	struct ibv_qp_init_attr init = *wanted;

	init.cap.max_inline_data = VERBS_INLINE;
	if (rdma_create_qp(c->id, pd, &init)) {
		init = *wanted;
		if (rdma_create_qp(c->id, pd, &init))
			return -errno;
	}
	c->max_inline = init.cap.max_inline_data;
	return 0;
}

/* After an error verbs_conn_fini() frees the objects made so far. */
int verbs_conn_create_qp(struct fab_conn *conn, struct fab_pd *fab_pd,
			 const struct fab_qp_attr *attr)
{
	struct verbs_conn *c = verbs_conn(conn);
	struct verbs_pd *pd = container_of(fab_pd, struct verbs_pd, fab);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct fab_device_attr dev;
	struct verbs_queues q;
	uint32_t n = 1;
	int err = verbs_dev_query(conn, &dev);

	if (err)
		return err;
	if (c->pd || pd->cm != verbs_cm(conn->cm) || pd->pd->context != c->id->verbs)
		return -EINVAL;
	verbs_dev_queues(attr, dev.max_sge, &q);
	atomic_fetch_add(&pd->nconns, 1);
	c->pd = pd;
	c->attr = *attr;
	c->signal_every = q.signal_every;
	while (n < attr->max_send_wr + c->signal_every)
		n *= 2;
	c->sq = calloc(n, sizeof(*c->sq));
	c->sq_mask = n - 1;
	if (!c->sq)
		return -ENOMEM;
	init.cap.max_send_wr = q.send_wr;
	init.cap.max_recv_wr = q.recv_wr;
	init.cap.max_send_sge = attr->max_send_sge;
	init.cap.max_recv_sge = q.recv_sge;
	err = create_cq(c, (int)q.cqe);
	if (err)
		return err;
	init.send_cq = init.recv_cq = c->cq;
	err = create_qp(c, pd->pd, &init);
	if (err)
		return err;
	verbs_dev_works(c->id->verbs);
	conn->fd = c->channel->fd;
	return 0;
}

/* ---- failure ---- */

/* post_lock held.  Without a queue pair nothing has been posted, and nothing is to flush. */
static void stop_queues(void *object)
{
	struct verbs_conn *c = object;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_send_wr marker = { .wr_id = VERBS_MARKER_ID, .opcode = IBV_WR_RDMA_WRITE,
				      .send_flags = IBV_SEND_SIGNALED }, *bad;

	if (c->id->qp) {
		ibv_modify_qp(c->id->qp, &attr, IBV_QP_STATE);
		rdma_disconnect(c->id);	/* fails without a connection: no peer to tell */
	}
	if (!c->id->qp || ibv_post_send(c->id->qp, &marker, &bad))
		verbs_conn_step(c, VERBS_CONN_EV_MARKER);
}

static const struct fsm_row rows[] = {
	ROW(IN(NEW), CONNECTED, OPEN, NULL),
	ROW(IN(NEW) | IN(OPEN), FAIL, FAILED, stop_queues),
	ROW(IN(FAILED), MARKER, MARKED, NULL),
	ROW(IN(FAILED), GIVE_UP, STUCK, NULL),
	ROW(IN(MARKED), GIVE_UP, STUCK_MARKED, NULL),
	ROW(IN(STUCK), MARKER, STUCK_MARKED, NULL),
	ROW(IN(STUCK) | IN(STUCK_MARKED), DESTROYED, LEFT, NULL),
	ROW(IN(MARKED) | IN(LEFT) | IN(STUCK_MARKED), DRAIN, DRAINED, NULL),

	/* too late to matter */
	STAY(ALL & ~IN(NEW), CONNECTED),
	/* A marker whose post failed may come all the same (doc/verbs.md Q21). */
	STAY(IN(MARKED) | IN(STUCK_MARKED) | IN(LEFT) | IN(DRAINED), MARKER),
	STAY(IN(DRAINED), DRAIN),
	STAY(IN(DRAINED), DESTROYED),
};

static const char *const states[VERBS_CONN_NSTATES] = {
	"new", "open", "failed", "marked", "stuck", "stuck+marked", "left", "drained",
};

static const char *const events[VERBS_CONN_NEVENTS] = {
	"connected", "fail", "marker", "give up", "destroyed", "drain",
};

const struct fsm verbs_conn_fsm = FSM("queues", rows, states, events);

void verbs_conn_step(struct verbs_conn *c, enum verbs_conn_event event)
{
	char name[FAB_ADDR_STRLEN];

	fsm_run(&verbs_conn_fsm, fab_addr_log_name(&c->fab.peer, name), &c->state, event, c);
}

/* post_lock held. */
static void conn_start_failing(struct verbs_conn *c)
{
	if (verbs_conn_failed(c))
		return;
	c->failed_ms = clock_now_ms();	/* ORDER: in front of the state */
	verbs_conn_step(c, VERBS_CONN_EV_FAIL);
}

void verbs_conn_fail_locked(struct verbs_conn *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fab_conn_note_cause(&c->fab, fmt, ap);
	va_end(ap);
	conn_start_failing(c);
}

void verbs_conn_fail(struct verbs_conn *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fab_conn_note_cause(&c->fab, fmt, ap);
	va_end(ap);
	LOCK_SCOPE(&c->post_lock);
	conn_start_failing(c);
}

void verbs_conn_disconnect(struct fab_conn *conn, const char *cause)
{
	verbs_conn_fail(verbs_conn(conn), "%s", cause);
}

void verbs_conn_mtu(const struct fab_conn *conn, struct fab_mtu *mtu)
{
	const struct verbs_conn *c = verbs_conn(conn);
	struct ibv_qp *qp = c->qp ? c->qp : c->id ? c->id->qp : NULL;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (!qp || ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU, &init) ||
	    attr.qp_state != IBV_QPS_RTS || attr.path_mtu < IBV_MTU_256)
		return;
	mtu->path = mtu->sent = 128u << attr.path_mtu;
}
