/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns what is known of the storage of exports, and the waits for answers; control thread.
 *
 * For each export each question is with the storage once at a time, for all requests that came
 * before the question.  A storage that does not answer delays requests for SRV_SIZE_TIMEOUT, and
 * later requests not at all: these go by what is known.  A storage that refuses to tell changes
 * nothing of what is known. */
#include <string.h>

#include "clock.h"
#include "export-io.h"
#include "export-retry.h"
#include "export.h"
#include "log.h"
#include "srv-rnbd-state.h"

static struct log_limit size_limit = LOG_LIMIT_INIT(4, 10000);

static void size_learned(struct export *ex, int64_t size)
{
	uint64_t was = export_size(ex), is = (uint64_t)size;

	if (size < 0) {
		log_limited(&size_limit, LOG_LEVEL_WARN, ex->name,
			    "'%s' does not report its size: %s", ex->path, strerror((int)-size));
		return;
	}
	ex->found = is;
	if (is < was && ex->store->users && !ex->asking[EXPORT_ASK_SIZE].takes_shrunk)
		return;
	if (is > was)
		log_event(LOG_LEVEL_INFO, LOG_FIELDS(EXPORT_RESIZED, .export = ex->name), ex->name,
			  "'%s' has grown: %llu bytes instead of %llu", ex->path,
			  (unsigned long long)is, (unsigned long long)was);
	else if (is < was)
		log_event(LOG_LEVEL_WARN, LOG_FIELDS(EXPORT_RESIZED, .export = ex->name), ex->name,
			  "'%s' has shrunk: %llu bytes instead of %llu; requests beyond its end "
			  "fail",
			  ex->path, (unsigned long long)is, (unsigned long long)was);
	atomic_store_explicit(&ex->size, is, memory_order_release);
}

static void named_learned(struct export *ex, int64_t named)
{
	enum export_named was = ex->named;

	if (named < 0)
		return;
	ex->named = (enum export_named)named;
	if (ex->named == EXPORT_NAMED_OPEN || ex->life.rung != EXPORT_SHOWN)
		return;
	if (!ex->store->users)
		export_retry_replaced(ex);
	else if (ex->named != was)
		log_event(LOG_LEVEL_ERROR, LOG_FIELDS(EXPORT_FAILED, .export = ex->name), ex->name,
			  "'%s' now names %s: clients keep the storage that they have open, but a "
			  "restarted server will not find it", ex->path,
			  ex->named == EXPORT_NAMED_OTHER ? "another file" :
							    "no file");
}

static const struct question {
	bool (*ask)(struct reactor *r, struct export *ex, int64_t *answer,
		    void (*done)(struct export *ex, int64_t answer, void *arg), void *arg);
	void (*learned)(struct export *ex, int64_t answer);
	void (*answered)(struct export *ex, int64_t answer, void *arg);
} questions[EXPORT_QUESTIONS];

/* ---- waiters ---- */

bool srv_size_is_known(const struct srv_size_waiter *w)
{
	return (int)(w->ex->asking[w->question].known - w->turn) >= 0;
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

static void size_learn(struct export *ex, enum export_question question, int64_t answer)
{
	struct export_asking *a = &ex->asking[question];

	a->asked = false;
	a->known++;
	questions[question].learned(ex, answer);
	if (a->wanted == a->known)
		a->takes_shrunk = false;
}

/* Ask the storage of @ex.  True: the answer has come already. */
static bool size_ask_storage(struct srv_rnbd *rnbd, struct export *ex,
			     enum export_question question)
{
	const struct question *q = &questions[question];
	int64_t answer;

	ex->asking[question].asked = true;
	ex->asking[question].since_ms = clock_now_ms();
	if (!q->ask(srv_control(rnbd->srv), ex, &answer, q->answered, rnbd)) {
		export_hold(ex);
		return false;
	}
	size_learn(ex, question, answer);
	return true;
}

static void size_answered(struct srv_rnbd *rnbd, struct export *ex, enum export_question question,
			  int64_t answer)
{
	struct export_asking *a = &ex->asking[question];

	size_learn(ex, question, answer);
	/* Ask again for the requests that came after the question: the answer may be older than
	 * these requests. */
	if (a->wanted != a->known)
		size_ask_storage(rnbd, ex, question);
	/* ORDER: who waits refers to @ex. */
	size_go_on(rnbd, NULL);
	export_put(ex);
}

static void asked_size(struct export *ex, int64_t size, void *arg)
{
	size_answered(arg, ex, EXPORT_ASK_SIZE, size);
}

static void asked_named(struct export *ex, int64_t named, void *arg)
{
	size_answered(arg, ex, EXPORT_ASK_NAMED, named);
}

static const struct question questions[EXPORT_QUESTIONS] = {
	[EXPORT_ASK_SIZE] = { export_io_size, size_learned, asked_size },
	[EXPORT_ASK_NAMED] = { export_io_named, named_learned, asked_named },
};

bool srv_size_ask(struct srv_rnbd *rnbd, struct srv_size_waiter *w, struct export *ex)
{
	struct export_asking *a = &ex->asking[w->question];

	w->ex = ex;
	a->takes_shrunk |= !w->spares_openers;
	if (a->asked && clock_now_ms() - a->since_ms >= SRV_SIZE_TIMEOUT) {
		w->turn = a->known + 1;
		return true;
	}
	a->wanted = a->known + (a->asked ? 2 : 1);
	w->turn = a->wanted;
	if (!a->asked && size_ask_storage(rnbd, ex, w->question))
		return true;
	size_wait(rnbd, w);
	return false;
}

bool srv_size_ask_for(struct srv_req *req, struct export *ex,
		      enum export_question question,
		      void (*then)(struct srv_size_waiter *w))
{
	struct srv_size_waiter *w = &srv_rnbd_req(req)->size;

	w->question = question;
	w->path = req->path;
	w->then = then;
	return srv_size_ask(srv_rnbd(req->path->srv), w, ex);
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
