/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the sizes of exports, and the requests that wait for one; control thread.
 *
 * The storage is asked once at a time for each export, for all that had come before it was asked.
 * A storage that does not answer holds requests up for SRV_SIZE_TIMEOUT, and later ones not at all:
 * they go by what is known.  What it refuses to tell stays as it was. */
#include <string.h>

#include "clock.h"
#include "export-io.h"
#include "log.h"
#include "srv-req.h"
#include "srv-size.h"

static struct log_limit size_limit = LOG_LIMIT_INIT(4, 10000);

static void learned(struct export *ex, int64_t size)
{
	uint64_t was = export_size(ex), is = (uint64_t)size;

	ex->sizing.asked = false;
	ex->sizing.known++;
	if (size < 0) {
		log_limited(&size_limit, LOG_LEVEL_WARN, ex->name, "'%s' does not tell its size: %s", ex->path,
			    strerror((int)-size));
		return;
	}
	if (is > was)
		log_info(ex->name, "'%s' has grown: %llu bytes instead of %llu", ex->path,
			 (unsigned long long)is, (unsigned long long)was);
	else if (is < was)
		log_warn(ex->name, "'%s' has shrunk: %llu bytes instead of %llu; requests behind its end fail",
			 ex->path, (unsigned long long)is, (unsigned long long)was);
	atomic_store_explicit(&ex->size, is, memory_order_release);
}

static bool is_known(const struct srv_req *req)
{
	return (int)(req->sized->sizing.known - req->size_turn) >= 0;
}

/* All wait equally long, so the first one is the next whose time is over. */
static void rearm(struct srv *srv)
{
	loop_timer_cancel(&srv->size_timer);
	if (!list_empty(&srv->size_waiters))
		loop_timer_set(srv_loop(srv), &srv->size_timer,
			       list_entry(srv->size_waiters.next, struct srv_req, link)->deadline_ms);
}

/* Those that have waited long enough go on, and those of @failed. */
static void go_on(struct srv *srv, const struct srv_path *failed)
{
	uint64_t now = clock_now_ms();
	struct srv_req *req, *tmp;
	struct list ready = LIST_INIT(ready);

	list_for_each_safe(req, tmp, &srv->size_waiters, link) {
		if (!is_known(req) && req->deadline_ms > now && req->path != failed)
			continue;
		list_del(&req->link);
		list_add_tail(&ready, &req->link);
	}
	rearm(srv);
	while ((req = list_pop_entry(&ready, struct srv_req, link)))
		req->size_then(req);
}

static void answered(struct export *ex, int64_t size, void *arg);

/* True: the answer is there already. */
static bool ask(struct srv *srv, struct export *ex)
{
	int64_t size;

	ex->sizing.asked = true;
	ex->sizing.since_ms = clock_now_ms();
	if (!export_io_size(srv_control(srv), ex, &size, answered, srv))
		return false;
	learned(ex, size);
	return true;
}

static void answered(struct export *ex, int64_t size, void *arg)
{
	learned(ex, size);
	/* They came while it was asked: what it said may be older than they are. */
	if (ex->sizing.wanted != ex->sizing.known)
		ask(arg, ex);
	go_on(arg, NULL);
}

static void timeout(struct loop_timer *timer)
{
	go_on(container_of(timer, struct srv, size_timer), NULL);
}

bool srv_size_ask(struct srv_req *req, struct export *ex, void (*then)(struct srv_req *req))
{
	struct srv *srv = req->path->srv;
	struct export_sizing *s = &ex->sizing;
	uint64_t now = clock_now_ms();

	if (s->asked && now - s->since_ms >= SRV_SIZE_TIMEOUT)
		return true;
	s->wanted = s->known + (s->asked ? 2 : 1);
	req->sized = ex;
	req->size_turn = s->wanted;
	if (!s->asked && ask(srv, ex))
		return true;
	req->size_then = then;
	req->deadline_ms = now + SRV_SIZE_TIMEOUT;
	list_add_tail(&srv->size_waiters, &req->link);
	rearm(srv);
	return false;
}

void srv_size_path_failed(struct srv_path *path)
{
	go_on(path->srv, path);
}

void srv_size_init(struct srv *srv)
{
	list_init(&srv->size_waiters);
	loop_timer_init(&srv->size_timer, timeout);
}
