/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the numbers of a shared disk's servers, and the lock.  One thread.  take() is what
 * store-rbd-share.c does with librbd; the rest is the cluster's part. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "sim-core.h"
#include "sim-fiber.h"
#include "sim-share.h"
#include "sim-test.h"
#include "store-lead.h"

#define RETRY_MS 50u
#define WATCH_MS 30000u			/* a server that died still seems to be there */
#define NOBODY 0u

/* The thing that a number stands for. */
struct opener {
	struct sim_host *host;
	unsigned epoch;
	bool fenced, left;
	bool former;			/* of a program that has ended */
	uint64_t told_ms;		/* when the server met the fence first; 0: not yet */
	uint64_t seen_ms;		/* when the server was last seen alive */
};

struct sim_share {
	struct opener *openers;		/* of number i + 1 */
	unsigned n;
	unsigned owner, before;		/* @before: until changed_ms */
	uint64_t changed_ms;
	unsigned late_ms;
	unsigned breaks;
	bool let_break;
	int refuses;			/* -errno of each taking; 0: none is refused */
};

struct sim_share *sim_share_create(void)
{
	struct sim_share *s = calloc(1, sizeof(*s));

	assert(s);
	return s;
}

void sim_share_destroy(struct sim_share *s)
{
	free(s->openers);
	free(s);
}

static struct opener *opener_of(const struct sim_share *s, unsigned number)
{
	assert(number && number <= s->n);
	return &s->openers[number - 1];
}

static bool is_dead(const struct opener *o)
{
	return sim_is_ghost(o->host, o->epoch);
}

static void set_owner(struct sim_share *s, unsigned number)
{
	s->before = s->owner;
	s->owner = number;
	s->changed_ms = clock_now_ms();
}

unsigned sim_share_join(struct sim_share *s)
{
	s->openers = reallocarray(s->openers, s->n + 1, sizeof(*s->openers));
	assert(s->openers);
	s->openers[s->n++] = (struct opener){ .host = sim_host(), .epoch = sim_epoch() };
	return s->n;
}

void sim_share_leave(struct sim_share *s, unsigned number)
{
	struct opener *o = opener_of(s, number);

	if (is_dead(o))
		return;
	o->left = true;
	if (s->owner == number)
		set_owner(s, NOBODY);
}

bool sim_share_fenced(const struct sim_share *s, unsigned number)
{
	return opener_of(s, number)->fenced;
}

bool sim_share_owns(const struct sim_share *s, unsigned number)
{
	return s->owner == number;
}

void sim_share_told(struct sim_share *s, unsigned number)
{
	struct opener *o = opener_of(s, number);

	if (!o->told_ms && !is_dead(o))
		o->told_ms = clock_now_ms();
}

void sim_share_be_late(struct sim_share *s, unsigned ms)
{
	s->late_ms = ms;
}

void sim_share_fence(struct sim_share *s, const char *host)
{
	const struct sim_host *h = sim_host_find(host);

	for (unsigned i = 0; i < s->n; i++) {
		if (s->openers[i].host == h)
			s->openers[i].fenced = true;
	}
}

void sim_share_ended(struct sim_share *s, const char *host)
{
	const struct sim_host *h = sim_host_find(host);

	for (unsigned i = 0; i < s->n; i++) {
		if (s->openers[i].host == h)
			s->openers[i].former = true;
	}
}

void sim_share_let_break(struct sim_share *s)
{
	s->let_break = true;
}

unsigned sim_share_breaks(const struct sim_share *s)
{
	return s->breaks;
}

/* ---- what store-lead.h promises ---- */

/* The server of @number breaks the lock of another: may it, after so many losses? */
static void check_break(const struct sim_share *s, unsigned number)
{
	const struct opener *me = opener_of(s, number);
	uint64_t now = clock_now_ms(), losses_end_ms = 0;

	for (unsigned i = 0; i < s->n; i++) {
		const struct opener *o = &s->openers[i];

		if (o->host == me->host && o->epoch == me->epoch && !o->former && o->told_ms)
			losses_end_ms = MAX(losses_end_ms, o->told_ms) + STORE_LEAD_BREAK_MS;
	}
	if (losses_end_ms > now + (uint64_t)STORE_LEAD_BREAKS * STORE_LEAD_BREAK_MS)
		sim_test_failed(__FILE__, __LINE__,
				"a server breaks the lock more often than store-lead.h promises");
}

/* ---- taking ---- */

struct taking {
	struct sim_share *s;
	unsigned number;
	uint64_t may_break_ms, asked_ms;
	unsigned owner;			/* whom the service has named */
	uint64_t since_ms;		/* since when */
	bool broke;			/* the lock of that owner */
};

struct nap {
	struct sim_event ev;
	bool over;
};

static void nap_ends(struct sim_event *ev)
{
	container_of(ev, struct nap, ev)->over = true;
}

static bool nap_is_over(void *arg)
{
	return ((struct nap *)arg)->over;
}

static void nap(unsigned ms)
{
	struct nap n = { .over = false };

	sim_event_init(&n.ev, nap_ends);
	sim_event_at(&n.ev, sim_now_us() + ms * 1000ull);
	sim_fiber_wait(nap_is_over, &n);
}

/* The owner that the service names: the present one, or one of a while ago. */
static unsigned named_owner(const struct sim_share *s)
{
	bool late = clock_now_ms() < s->changed_ms + s->late_ms;

	return late && sim_chance(500) ? s->before : s->owner;
}

/* Does the service think that @number has the disk open? */
static bool watches(struct sim_share *s, unsigned number)
{
	struct opener *o = opener_of(s, number);

	if (!is_dead(o) || !o->seen_ms)
		o->seen_ms = clock_now_ms();
	return !o->left && clock_now_ms() - o->seen_ms < WATCH_MS;
}

/* The break is on its way for some time, as its answer is. */
static void break_lock(struct taking *t)
{
	struct sim_share *s = t->s;

	nap(sim_rand(s->late_ms + 1));
	/* Another server was faster, or the service has named a former owner, or this server has
	 * died. */
	if (s->owner != t->owner || is_dead(opener_of(s, t->number)))
		return;
	if (t->may_break_ms != CLOCK_NEVER && !s->let_break)
		check_break(s, t->number);
	s->breaks += !is_dead(opener_of(s, t->owner));
	opener_of(s, t->owner)->fenced = true;
	t->broke = true;
	set_owner(s, NOBODY);
	nap(sim_rand(s->late_ms + 1));
}

/* 0, -EAGAIN or -ESTALE, as of store_wait_patience(). */
static int patience(struct taking *t, unsigned owner)
{
	if (t->owner != owner) {
		t->since_ms = t->asked_ms && !t->owner ? t->asked_ms : clock_now_ms();
		t->owner = owner;
		if (t->broke)
			return -ESTALE;
	}
	return clock_now_ms() - t->since_ms >= STORE_LEAD_PATIENCE_MS ? 0 : -EAGAIN;
}

static int refuse(const struct taking *t, const char *text, char *why, size_t len)
{
	snprintf(why, len, "number %u %s", t->owner, text);
	return -EBUSY;
}

static int try_to_take(struct taking *t, char *why, size_t len)
{
	struct sim_share *s = t->s;
	unsigned owner = named_owner(s);
	int rc = owner ? patience(t, owner) : 0;

	if (sim_share_fenced(s, t->number))
		return -ESHUTDOWN;
	if (s->refuses) {
		snprintf(why, len, "the storage is away");
		return s->refuses;
	}
	if (rc)
		return rc;
	if (owner && t->may_break_ms == CLOCK_NEVER && watches(s, owner))
		return refuse(t, "has its lock", why, len);
	if (owner && t->may_break_ms != CLOCK_NEVER && clock_now_ms() < t->may_break_ms)
		return refuse(t, "has recently broken the lock of this server", why, len);
	if (owner)
		break_lock(t);
	if (sim_share_fenced(s, t->number))
		return -ESHUTDOWN;
	if (s->owner || is_dead(opener_of(s, t->number)))
		return -EAGAIN;
	set_owner(s, t->number);
	return 0;
}

int sim_share_take(struct sim_share *s, unsigned number, uint64_t may_break_ms, uint64_t since_ms,
		   const _Atomic(bool) *stopping, char *why, size_t len)
{
	struct taking t = { .s = s, .number = number, .may_break_ms = may_break_ms,
			    .asked_ms = since_ms };
	int rc = -ECANCELED;

	while (!is_dead(opener_of(s, number)) && !atomic_load(stopping)) {
		rc = try_to_take(&t, why, len);
		if (rc != -EAGAIN)
			break;
		nap(RETRY_MS);
		rc = -ECANCELED;
	}
	if (rc == -ESHUTDOWN)
		sim_share_told(s, number);
	return rc;
}

void sim_share_refuse(struct sim_share *s, int err)
{
	s->refuses = err;
}

int sim_share_yield(struct sim_share *s, unsigned number)
{
	if (is_dead(opener_of(s, number)))
		return 0;
	nap(sim_rand(s->late_ms + 1));
	if (sim_share_fenced(s, number)) {
		sim_share_told(s, number);
		return -ESHUTDOWN;
	}
	assert(s->owner == number);
	set_owner(s, NOBODY);
	return 0;
}
