/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the sizes of exports, and the waits for a size; control thread.
 *
 * For each export one question at a time is with the storage, for all requests that came before
 * the question.  A storage that does not answer delays requests for SRV_SIZE_TIMEOUT, and later
 * requests not at all: these go by the known size.  A size that the storage refuses to tell stays
 * the known size. */
#include <string.h>

#include "clock.h"
#include "export-io.h"
#include "export.h"
#include "log.h"
#include "srv-rnbd-state.h"
#include "srv-size.h"

static struct log_limit size_limit = LOG_LIMIT_INIT(4, 10000);

static void size_learned(struct export *ex, int64_t size)
{
	uint64_t was = export_size(ex), is = (uint64_t)size;

	ex->sizing.asked = false;
	ex->sizing.known++;
	if (size < 0) {
		log_limited(&size_limit, LOG_LEVEL_WARN, ex->name,
			    "'%s' does not tell its size: %s", ex->path, strerror((int)-size));
		return;
	}
	if (is > was)
		log_event(LOG_LEVEL_INFO, LOG_FIELDS(EXPORT_RESIZED, .export = ex->name), ex->name,
			  "'%s' has grown: %llu bytes instead of %llu", ex->path,
			  (unsigned long long)is, (unsigned long long)was);
	else if (is < was)
		log_event(LOG_LEVEL_WARN, LOG_FIELDS(EXPORT_RESIZED, .export = ex->name), ex->name,
			  "'%s' has shrunk: %llu bytes instead of %llu; requests behind "
			  "its end fail",
			  ex->path, (unsigned long long)is, (unsigned long long)was);
	atomic_store_explicit(&ex->size, is, memory_order_release);
}

/* ---- waiters ---- */

bool srv_size_is_known(const struct srv_size_waiter *w)
{
	return (int)(w->ex->sizing.known - w->turn) >= 0;
}

/* The first waiter is the next whose time is over, because all wait equally long. */
static void size_rearm(struct srv_rnbd *rnbd)
{
	struct srv_size_waiter *first;

	loop_timer_cancel(&rnbd->size_timer);
	if (list_empty(&rnbd->size_waiters))
		return;
	first = list_entry(rnbd->size_waiters.next, struct srv_size_waiter, link);
	loop_timer_set(srv_loop(rnbd->srv), &rnbd->size_timer, first->deadline_ms);
}

static void size_wait(struct srv_rnbd *rnbd, struct srv_size_waiter *w)
{
	w->deadline_ms = clock_now_ms() + SRV_SIZE_TIMEOUT;
	list_add_tail(&rnbd->size_waiters, &w->link);
	size_rearm(rnbd);
}

/* Go on with who has waited long enough, and with the waiters of @failed, if not NULL. */
static void size_go_on(struct srv_rnbd *rnbd, const struct srv_path *failed)
{
	uint64_t now = clock_now_ms();
	struct srv_size_waiter *w, *tmp;
	struct list ready = LIST_INIT(ready);

	list_for_each_safe(w, tmp, &rnbd->size_waiters, link) {
		if (!srv_size_is_known(w) && w->deadline_ms > now && !(failed && w->path == failed))
			continue;
		list_del(&w->link);
		list_add_tail(&ready, &w->link);
	}
	size_rearm(rnbd);
	while ((w = list_pop_entry(&ready, struct srv_size_waiter, link)))
		w->then(w);
}

static void size_timeout(struct loop_timer *timer)
{
	size_go_on(container_of(timer, struct srv_rnbd, size_timer), NULL);
}

/* ---- asking the storage ---- */

static void size_answered(struct export *ex, int64_t size, void *arg);

/* Ask the storage for the size of @ex.  True: the answer has come already. */
static bool size_ask_storage(struct srv_rnbd *rnbd, struct export *ex)
{
	int64_t size;

	ex->sizing.asked = true;
	ex->sizing.since_ms = clock_now_ms();
	if (!export_io_size(srv_control(rnbd->srv), ex, &size, size_answered, rnbd)) {
		export_hold(ex);
		return false;
	}
	size_learned(ex, size);
	return true;
}

static void size_answered(struct export *ex, int64_t size, void *arg)
{
	size_learned(ex, size);
	/* Ask again for the requests that came after the question: the answer may be older than
	 * these requests. */
	if (ex->sizing.wanted != ex->sizing.known)
		size_ask_storage(arg, ex);
	/* ORDER: who waits refers to @ex. */
	size_go_on(arg, NULL);
	export_put(ex);
}

bool srv_size_ask(struct srv_rnbd *rnbd, struct srv_size_waiter *w, struct export *ex)
{
	struct export_sizing *s = &ex->sizing;

	w->ex = ex;
	if (s->asked && clock_now_ms() - s->since_ms >= SRV_SIZE_TIMEOUT) {
		w->turn = s->known + 1;
		return true;
	}
	s->wanted = s->known + (s->asked ? 2 : 1);
	w->turn = s->wanted;
	if (!s->asked && size_ask_storage(rnbd, ex))
		return true;
	size_wait(rnbd, w);
	return false;
}

void srv_size_path_failed(struct srv_path *path)
{
	size_go_on(srv_rnbd(path->srv), path);
}

void srv_size_init(struct srv_rnbd *rnbd)
{
	list_init(&rnbd->size_waiters);
	loop_timer_init(&rnbd->size_timer, size_timeout);
}
