/* SPDX-License-Identifier: BSD-3-Clause */
/* What the storage fails: lines of the log, and the writes that have failed in a row.
 *
 * The first operation of a kind on an export is logged at once.  The number of failures after it,
 * with the first of these, is logged once in FAILED_TELL_MS and at the end.  Owns the counts
 * (struct export_failures, under its lock) and one timer for each kind on each ring; the ring that
 * logs the first failure logs the rest.  Any thread, unless a function says otherwise.
 *
 * A failed sync is not logged here: store-file-sync.c latches and logs it. */
#include <config.h>

#include <errno.h>
#include <string.h>

#include "clock.h"
#include "exports.h"
#include "log.h"
#include "store-driver.h"

#define FAILED_TELL_MS 60000
#define WRITES_FAILED_MS 3600000	/* a failed write is told for so long */

static const char *const names[EXPORT_FAILED_KINDS] = {
	[EXPORT_FAILED_READ] = "READ",
	[EXPORT_FAILED_WRITE] = "WRITE",
	[EXPORT_FAILED_DISCARD] = "DISCARD",
	[EXPORT_FAILED_ZEROES] = "WRITE_ZEROES",
};

static enum export_failed_kind kind_of(enum rnbd_io_op op)
{
	switch (op) {
	case RNBD_OP_WRITE:
		return EXPORT_FAILED_WRITE;
	case RNBD_OP_DISCARD:
		return EXPORT_FAILED_DISCARD;
	case RNBD_OP_WRITE_ZEROES:
		return EXPORT_FAILED_ZEROES;
	default:
		return EXPORT_FAILED_READ;
	}
}

static const char *words_of(const struct export_slot *slot, int err)
{
	const char *words = slot->ops->words ? slot->ops->words(err) : NULL;

	return words ? words : strerror(-err);
}

/* ---- writes in a row ---- */

static uint64_t wrote(const struct export *ex)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < ex->all->nrings; i++)
		n += counter_get(&ex->pulse[i].wrote);
	return n;
}

/* Count a write that has failed with @err.  @ex->failures.lock is held. */
static void write_count(struct export *ex, int err)
{
	struct export_writes_failed *w = &ex->failures.writes;
	uint64_t before = wrote(ex), now_ms = clock_now_ms();

	if (!w->n || w->wrote != before)
		*w = (struct export_writes_failed){ .since_ms = now_ms, .wrote = before };
	w->n++;
	w->last_ms = now_ms;
	w->err = err;
}

struct export_writes_failed export_writes_failed(struct export *ex)
{
	struct export_writes_failed w;

	pthread_mutex_lock(&ex->failures.lock);
	w = ex->failures.writes;
	pthread_mutex_unlock(&ex->failures.lock);
	if (w.wrote != wrote(ex) || clock_now_ms() - w.last_ms > WRITES_FAILED_MS)
		w.n = 0;
	return w;
}

/* ---- lines of the log ---- */

/* Count the failure of @io.  True: @io is the first, and is to be logged. */
static bool failure_count(enum export_failed_kind kind, const struct export_io *io, int err)
{
	struct export_failures *all = &io->ex->failures;
	struct export_failure *f = &all->kinds[kind];
	bool first;

	pthread_mutex_lock(&all->lock);
	if (kind == EXPORT_FAILED_WRITE || (kind == EXPORT_FAILED_ZEROES && err != -EOPNOTSUPP))
		write_count(io->ex, err);
	first = !f->told;
	f->told = true;
	if (!first && !f->more++) {
		f->offset = io->offset;
		f->err = err;
	}
	pthread_mutex_unlock(&all->lock);
	return first;
}

/* Log the failures since the last line.  False: none, so the next failure is a first one again. */
static bool failures_tell_more(struct export_slot *slot, enum export_failed_kind kind)
{
	struct export *ex = slot->ex;
	struct export_failure *f = &ex->failures.kinds[kind], now;

	pthread_mutex_lock(&ex->failures.lock);
	now = *f;
	*f = (struct export_failure){ .told = now.more };
	pthread_mutex_unlock(&ex->failures.lock);
	if (now.more)
		log_event(LOG_LEVEL_ERROR, LOG_FIELDS(IO_FAILED, .export = ex->name), ex->name,
			  "%llu more of %s failed, the first of them at byte %llu: %s",
			  (unsigned long long)now.more, names[kind], (unsigned long long)now.offset,
			  words_of(slot, now.err));
	return now.more;
}

/* Thread of the ring. */
static void failed_timer_set(struct export_failed_timer *t)
{
	loop_timer_set(reactor_loop(t->slot->ring->reactor), &t->timer,
		       clock_now_ms() + FAILED_TELL_MS);
}

static void failed_timer(struct loop_timer *timer)
{
	struct export_failed_timer *t = container_of(timer, struct export_failed_timer, timer);

	t->armed = failures_tell_more(t->slot, t->kind);
	if (t->armed)
		failed_timer_set(t);
}

void export_io_failed(struct export_io *io, int err)
{
	enum export_failed_kind kind = kind_of(io->op);
	struct export_failed_timer *t = &io->slot->failed[kind];

	if (!failure_count(kind, io, err))
		return;
	log_event(LOG_LEVEL_ERROR, LOG_FIELDS(IO_FAILED, .export = io->ex->name), io->ex->name,
		  "%s of %u bytes at byte %llu failed: %s", names[kind], io->len,
		  (unsigned long long)io->offset, words_of(io->slot, err));
	t->armed = true;
	failed_timer_set(t);
}

void export_io_failed_init(struct export_slot *slot)
{
	for (unsigned i = 0; i < EXPORT_FAILED_KINDS; i++) {
		slot->failed[i].slot = slot;
		slot->failed[i].kind = (enum export_failed_kind)i;
		loop_timer_init(&slot->failed[i].timer, failed_timer);
	}
}

void export_io_failed_end(struct export_slot *slot)
{
	for (unsigned i = 0; i < EXPORT_FAILED_KINDS; i++) {
		if (!slot->failed[i].armed)
			continue;
		loop_timer_cancel(&slot->failed[i].timer);
		failures_tell_more(slot, slot->failed[i].kind);
	}
}
