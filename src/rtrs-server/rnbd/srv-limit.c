/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the line of each export with limits, and the timer by which the line goes on.  The requests
 * are their threads'. */
#include <assert.h>
#include <errno.h>

#include "clock.h"
#include "srv-limit.h"
#include "srv-req.h"
#include "srv-rnbd-state.h"

static struct srv_limit *limit_of(const struct export *ex)
{
	return &srv_export_of(ex)->limit;
}

/* ---- buckets ---- */

/* True if the bucket @i counts requests of @dir. */
static bool counts(enum limit i, enum srv_limit_dir dir)
{
	if (i == LIMIT_IOPS || i == LIMIT_BPS)
		return true;
	return (i == LIMIT_IOPS_READ || i == LIMIT_BPS_READ) == (dir == SRV_LIMIT_READ);
}

/* The time when a request of @dir may go. */
static uint64_t ready_ns(const struct srv_limit *l, enum srv_limit_dir dir)
{
	uint64_t ready = 0;

	for (unsigned i = 0; i < LIMITS; i++) {
		if (counts(i, dir))
			ready = MAX(ready, bucket_ready_ns(&l->buckets[i]));
	}
	return ready;
}

/* Take the units of @w.  Returns the time that the units use of the tightest limit. */
static uint64_t take(struct srv_limit *l, const struct srv_limit_wait *w, uint64_t now_ns)
{
	uint64_t used = 0;

	for (unsigned i = 0; i < LIMITS; i++) {
		if (counts(i, w->dir))
			used = MAX(used, bucket_take(&l->buckets[i], i < LIMIT_BPS ? 1 : w->bytes,
						     now_ns));
	}
	return used;
}

/* ---- the line ---- */

static bool share_waits(const struct srv_limit_share *share)
{
	return !list_empty(&share->waiting[SRV_LIMIT_READ]) ||
	       !list_empty(&share->waiting[SRV_LIMIT_WRITE]);
}

/* Put @share at its place in the line, behind those that have used as much. */
static void share_line_up(struct srv_limit *l, struct srv_limit_share *share)
{
	struct list *at = &l->shares;

	while (at->prev != &l->shares &&
	       list_entry(at->prev, struct srv_limit_share, link)->used_ns > share->used_ns)
		at = at->prev;
	list_insert_before(at, &share->link);
}

static void wait_begin(struct srv_limit *l, struct srv_limit_wait *w, struct srv_limit_share *share)
{
	w->share = share;
	w->since_ns = 0;
	if (!share_waits(share)) {
		/* A session saves no turns while none of its requests waits. */
		share->used_ns = MAX(share->used_ns, l->used_ns);
		share_line_up(l, share);
	}
	list_add_tail(&share->waiting[w->dir], &w->link);
}

/* Take @w out of the line. */
static void wait_end(struct srv_limit *l, struct srv_limit_wait *w, int status, uint64_t now_ns)
{
	struct srv_limit_share *share = w->share;

	list_del(&w->link);
	w->share = NULL;
	w->status = status;
	if (w->since_ns) {
		l->stat.requests++;
		l->stat.ns += now_ns - w->since_ns;
	}
	if (!share_waits(share))
		list_del(&share->link);
}

/* The next request that waits for no direction of @blocked; NULL: none. */
static struct srv_limit_wait *next_wait(const struct srv_limit *l,
					const bool blocked[SRV_LIMIT_DIRS])
{
	struct srv_limit_share *share;

	list_for_each(share, &l->shares, link) {
		for (unsigned i = 0; i < SRV_LIMIT_DIRS; i++) {
			unsigned dir = (share->turn + i) % SRV_LIMIT_DIRS;

			if (!blocked[dir] && !list_empty(&share->waiting[dir]))
				return list_entry(share->waiting[dir].next, struct srv_limit_wait,
						  link);
		}
	}
	return NULL;
}

/* Let @w, which is next, go. */
static void let_go(struct srv_limit *l, struct srv_limit_wait *w, uint64_t now_ns)
{
	struct srv_limit_share *share = w->share;

	share->turn = w->dir == SRV_LIMIT_READ ? SRV_LIMIT_WRITE : SRV_LIMIT_READ;
	l->used_ns = share->used_ns;
	share->used_ns += take(l, w, now_ns);
	wait_end(l, w, 0, now_ns);
	if (share_waits(share)) {
		list_del(&share->link);
		share_line_up(l, share);
	}
}

/* Move to @gone all requests that may go at @now_ns.  Returns when the next may go; CLOCK_NEVER:
 * none waits. */
static uint64_t limit_run(struct srv_limit *l, uint64_t now_ns, struct list *gone)
{
	bool blocked[SRV_LIMIT_DIRS] = { false };
	uint64_t next = CLOCK_NEVER;
	struct srv_limit_wait *w;

	while ((w = next_wait(l, blocked))) {
		uint64_t ready = ready_ns(l, w->dir);

		if (ready > now_ns) {
			blocked[w->dir] = true;
			next = MIN(next, ready);
			continue;
		}
		let_go(l, w, now_ns);
		list_add_tail(gone, &w->link);
	}
	return next;
}

/* Send the requests of @gone home.  Without the lock. */
static void send_home(struct list *gone)
{
	struct srv_limit_wait *w;

	while ((w = list_pop_entry(gone, struct srv_limit_wait, link)))
		srv_req_send(&container_of(w, struct srv_rnbd_req, limit)->base);
}

/* ---- thread of the request ---- */

static void wait_init(struct srv_rnbd_req *req)
{
	enum rnbd_io_op op = req->io.op;
	bool moves = op == RNBD_OP_READ || op == RNBD_OP_WRITE;

	req->limit.dir = op == RNBD_OP_READ ? SRV_LIMIT_READ : SRV_LIMIT_WRITE;
	req->limit.bytes = moves ? req->io.len : 0;
}

/* Stand in line, and let go all that may go.  True: @w does not wait any more.  *@alarm is set if
 * the timer comes too late for those that wait. */
static bool line_up(struct srv_limit *l, struct srv_limit_wait *w, struct srv_limit_share *share,
		    struct list *gone, bool *alarm)
{
	uint64_t now_ns = clock_now_ns(), next;

	wait_begin(l, w, share);
	next = limit_run(l, now_ns, gone);
	*alarm = next < l->alarm_ns;
	l->alarm_ns = MIN(l->alarm_ns, next);
	if (w->share) {
		w->since_ns = now_ns;
		return false;
	}
	list_del(&w->link);
	return true;
}

int srv_limit_enter(struct srv_rnbd_req *req)
{
	struct srv_limit *l = limit_of(req->io.ex);
	struct srv_limit_share *share = &req->dev->limit;
	struct list gone = LIST_INIT(gone);
	bool alarm = false;
	int rc = -ENOTCONN;

	wait_init(req);
	/* ORDER: the stage first: once in line another thread may send @req home. */
	srv_req_enter(&req->base, SRV_REQ_LIMIT);
	pthread_mutex_lock(&l->lock);
	if (!share->kicked)
		rc = line_up(l, &req->limit, share, &gone, &alarm) ? 0 : -EINPROGRESS;
	pthread_mutex_unlock(&l->lock);
	if (rc == -EINPROGRESS)
		list_add_tail(&req->base.con->held, &req->base.link);
	send_home(&gone);
	if (alarm)
		srv_post_control(l->srv, &l->alarm_msg);
	return rc;
}

int srv_limit_result(struct srv_rnbd_req *req)
{
	list_del(&req->base.link);
	return srv_con_dead(req->base.con) ? -ECONNABORTED : req->limit.status;
}

/* Take @req out of the line.  False: @req is on its way home already. */
static bool give_up(struct srv_rnbd_req *req)
{
	struct srv_limit *l = limit_of(req->io.ex);
	bool waits;

	pthread_mutex_lock(&l->lock);
	waits = req->limit.share;
	if (waits)
		wait_end(l, &req->limit, -ECONNABORTED, clock_now_ns());
	pthread_mutex_unlock(&l->lock);
	return waits;
}

void srv_limit_con_cut(struct srv_con *con, void (*end)(struct srv_rnbd_req *req, int status))
{
	struct srv_req *base, *tmp;

	list_for_each_safe(base, tmp, &con->held, link) {
		struct srv_rnbd_req *req = srv_rnbd_req(base);

		if (!give_up(req))
			continue;
		list_del(&base->link);
		end(req, -ECONNABORTED);
	}
}

/* ---- control thread ---- */

/* Let go all that may go, and set the timer for the next. */
static void go_on(struct srv_limit *l)
{
	struct list gone = LIST_INIT(gone);
	uint64_t next;

	pthread_mutex_lock(&l->lock);
	next = limit_run(l, clock_now_ns(), &gone);
	l->alarm_ns = next;
	pthread_mutex_unlock(&l->lock);
	send_home(&gone);
	if (next == CLOCK_NEVER)
		loop_timer_cancel(&l->timer);
	else
		loop_timer_set(srv_loop(l->srv), &l->timer, next / 1000000 + 1);
}

static void limit_timer(struct loop_timer *timer)
{
	go_on(container_of(timer, struct srv_limit, timer));
}

static void limit_alarm(struct loop_msg *msg)
{
	go_on(container_of(msg, struct srv_limit, alarm_msg));
}

void srv_limit_begin(struct srv *srv, struct export *ex)
{
	struct srv_limit *l = limit_of(ex);

	l->srv = srv;
	list_add_tail(&srv_rnbd(srv)->limits, &l->link);
	loop_timer_init(&l->timer, limit_timer);
	loop_msg_init(&l->alarm_msg, limit_alarm);
	pthread_mutex_init(&l->lock, NULL);
	list_init(&l->shares);
	l->alarm_ns = CLOCK_NEVER;
}

void srv_limit_end(struct export *ex)
{
	struct srv_limit *l = limit_of(ex);

	assert(list_empty(&l->shares));
	loop_timer_cancel(&l->timer);
	loop_unpost(srv_loop(l->srv), &l->alarm_msg);
	list_del(&l->link);
	pthread_mutex_destroy(&l->lock);
}

static void limit_change(struct srv_limit *l, const struct limits *limits)
{
	uint64_t burst_ns = conf_limits_burst_ns(limits), now_ns = clock_now_ns();

	l->limits = *limits;
	pthread_mutex_lock(&l->lock);
	for (unsigned i = 0; i < LIMITS; i++)
		bucket_set(&l->buckets[i], limits->rate[i], burst_ns, now_ns);
	pthread_mutex_unlock(&l->lock);
	atomic_store_explicit(&l->on, conf_limits_any(limits), memory_order_relaxed);
	go_on(l);
}

void srv_limit_set(struct srv *srv, struct export *ex, const struct limits *limits)
{
	if (srv->life == SRV_RUNNING)
		limit_change(limit_of(ex), limits);
}

void srv_limit_stop(struct srv *srv)
{
	static const struct limits none;
	struct srv_limit *l;

	list_for_each(l, &srv_rnbd(srv)->limits, link)
		limit_change(l, &none);
}

void srv_limit_kick(struct export *ex, struct srv_limit_share *share)
{
	struct srv_limit *l = limit_of(ex);
	struct list gone = LIST_INIT(gone);
	uint64_t now_ns = clock_now_ns();
	struct srv_limit_wait *w, *next;

	pthread_mutex_lock(&l->lock);
	share->kicked = true;
	for (unsigned dir = 0; dir < SRV_LIMIT_DIRS; dir++) {
		list_for_each_safe(w, next, &share->waiting[dir], link) {
			wait_end(l, w, -ENOTCONN, now_ns);
			list_add_tail(&gone, &w->link);
		}
	}
	pthread_mutex_unlock(&l->lock);
	send_home(&gone);
}

void srv_limit_kick_over(struct export *ex, struct srv_limit_share *share)
{
	struct srv_limit *l = limit_of(ex);

	pthread_mutex_lock(&l->lock);
	share->kicked = false;
	pthread_mutex_unlock(&l->lock);
}

/* ---- counters ---- */

static struct srv_limit_stat stat_now(struct srv_limit *l)
{
	struct srv_limit_stat stat;

	pthread_mutex_lock(&l->lock);
	stat = l->stat;
	pthread_mutex_unlock(&l->lock);
	return stat;
}

void srv_limit_stat_ever(const struct export *ex, struct srv_limit_stat *stat)
{
	*stat = stat_now(limit_of(ex));
}

void srv_limit_stat(const struct export *ex, struct srv_limit_stat *stat)
{
	struct srv_limit *l = limit_of(ex);

	*stat = stat_now(l);
	stat->requests -= l->base.requests;
	stat->ns -= l->base.ns;
}

void srv_limit_stat_reset(const struct export *ex)
{
	struct srv_limit *l = limit_of(ex);

	l->base = stat_now(l);
}
