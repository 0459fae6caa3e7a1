/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the lead of a store: the table of its states, and the actions of the rows.  Control thread;
 * the driver's take(), yield() and renew() run on a worker of the store. */
#define FSM_PREFIX STORE_LEAD_

#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "export-life.h"
#include "log.h"
#include "store-lead.h"

#define AGAIN_MS 1000u

static struct export_life *life_of(const struct store_lead *lead)
{
	return lead->all->life;
}

static void lead_event(struct store_lead *lead, enum store_lead_event event)
{
	fsm_run(&store_lead_fsm, lead->ex ? lead->ex->name : "", &lead->state, event, lead);
}

/* ---- jobs ---- */

/* When the try under way may break the lock. */
static uint64_t may_break_ms(const struct store_lead *lead)
{
	if (!lead->force)
		return CLOCK_NEVER;
	/* The wait is for clients that would take the lock in turns. */
	return lead->breaking ? 0 : lead->may_break_ms;
}

/* Thread of the worker, as the next three. */
static void take_work(struct worker_job *job)
{
	struct store_lead *lead = container_of(job, struct store_lead, job);
	const struct store_driver *driver = lead->ex->driver;

	lead->rc = lead->breaking && lead->force && driver->forget ?
		driver->forget(lead->ex, lead->why, sizeof(lead->why)) : 0;
	if (!lead->rc)
		lead->rc = driver->take(lead->ex, may_break_ms(lead), lead->since_ms, lead->why,
					sizeof(lead->why));
}

static void yield_work(struct worker_job *job)
{
	struct store_lead *lead = container_of(job, struct store_lead, job);

	lead->rc = lead->ex->driver->yield(lead->ex);
}

static void look_work(struct worker_job *job)
{
	struct store_lead *lead = container_of(job, struct store_lead, job);

	lead->rc = lead->ex->driver->owns(lead->ex);
}

static void renew_work(struct worker_job *job)
{
	struct store_lead *lead = container_of(job, struct store_lead, job);

	lead->rc = lead->ex->driver->renew(lead->ex, lead->why,
					      sizeof(lead->why));
}

/* The names of the store stay until the job is done. */
static void begin(struct store_lead *lead, void (*work)(struct worker_job *job),
		  void (*done)(struct worker_job *job))
{
	int rc;

	lead->job.work = work;
	lead->job.done = done;
	lead->why[0] = '\0';
	store_hold(lead->store);
	life_of(lead)->nleads++;
	rc = worker_run(&lead->worker, &lead->job);
	if (!rc)
		return;
	lead->rc = rc;
	done(&lead->job);
}

/* The wish has come to its end. */
static void wish_ended(struct store_lead *lead, int rc, const char *why)
{
	struct store_lead_break *wish = lead->wish;

	lead->wish = NULL;
	if (wish)
		wish->done(wish, rc, why);
}

/* True if the store has a name that is written and is on its rings.  One on its way up may not have
 * been claimed: the driver cannot take the lock for it. */
static bool is_written(const struct store_lead *lead)
{
	const struct export *ex;

	list_for_each(ex, &lead->store->names, store_link) {
		if (!ex->spec.readonly && ex->life.rung >= EXPORT_ATTACHED)
			return lead->ex;
	}
	return false;
}

/* Begin the try for the wish, if there is one and no job is under way. */
static void wish_next(struct store_lead *lead)
{
	if (!lead->wish)
		return;
	if (!is_written(lead)) {
		wish_ended(lead, -ENODEV, "no name of its storage can be written now");
		return;
	}
	switch (atomic_load(&lead->state)) {
	case STORE_LEAD_STANDBY:
	case STORE_LEAD_KEEPING:
		lead->breaking = true;
		lead->force = lead->wish->force;
		lead->since_ms = 0;
		lead_event(lead, STORE_LEAD_EV_WANTED);
		break;
	case STORE_LEAD_OWNER:
	case STORE_LEAD_LOOKING:
		wish_ended(lead, -EALREADY, "this server has the lock");
		break;
	case STORE_LEAD_AGAIN:
		wish_ended(lead, lead->rc, lead->why);
		break;
	}
}

/* The job of the lead has ended, perhaps that of the wish. */
static void wish_job_ended(struct store_lead *lead, enum store_lead_event event)
{
	bool was = lead->breaking;

	lead->breaking = false;
	/* Behind a loss the try is made again, when the store is open again. */
	if (was && event != STORE_LEAD_EV_LOST_UNSEEN)
		wish_ended(lead, lead->rc, lead->why);
	else
		wish_next(lead);
}

static void ended(struct store_lead *lead, enum store_lead_event event)
{
	struct export_life *life = life_of(lead);
	struct store *store = lead->store;

	lead_event(lead, event);
	/* ORDER: before OPENs begin the next try. */
	wish_job_ended(lead, event);
	if (life->users)
		life->users->store_led(life->arg, store);
	/* All OPENs that waited for this try have heard of it. */
	lead->error = 0;
	/* The client that wanted the store may have gone. */
	store_lead_closed(store);
	/* ORDER: the store may go when nobody holds it. */
	life->nleads--;
	loop_defer(life->loop, &life->task);
	store_put(store);
}

/* Count a loss, after which this server may have to wait before it breaks the lock. */
static void count_loss(struct store_lead *lead)
{
	const uint64_t free_ms = (uint64_t)STORE_LEAD_BREAKS * STORE_LEAD_BREAK_MS;
	uint64_t now = clock_now_ms();

	lead->losses_end_ms = MAX(lead->losses_end_ms, now) + STORE_LEAD_BREAK_MS;
	lead->may_break_ms = MAX(lead->losses_end_ms, now + free_ms) - free_ms;
}

static void take_done(struct worker_job *job)
{
	struct store_lead *lead = container_of(job, struct store_lead, job);

	if (lead->rc == -ESTALE) {
		count_loss(lead);
		lead->rc = -EBUSY;
	}
	lead->error = lead->rc;
	/* The cluster may have fenced this server while nobody used the store.  Then the client
	 * waits until the store is open again. */
	ended(lead, lead->rc == -ESHUTDOWN ? STORE_LEAD_EV_LOST_UNSEEN : lead->rc ?
		    STORE_LEAD_EV_REFUSED : STORE_LEAD_EV_TAKEN);
}

static void yield_done(struct worker_job *job)
{
	struct store_lead *lead = container_of(job, struct store_lead, job);

	ended(lead, lead->rc == -EAGAIN || lead->rc == -ECANCELED ? STORE_LEAD_EV_KEPT : lead->rc ?
		    STORE_LEAD_EV_LOST_UNSEEN : STORE_LEAD_EV_YIELDED);
}

static void look_done(struct worker_job *job)
{
	struct store_lead *lead = container_of(job, struct store_lead, job);

	ended(lead, lead->rc == -ESHUTDOWN ? STORE_LEAD_EV_LOST_UNSEEN : STORE_LEAD_EV_OURS);
}

static void renew_done(struct worker_job *job)
{
	struct store_lead *lead = container_of(job, struct store_lead, job);

	ended(lead, lead->rc ? STORE_LEAD_EV_FAILED : STORE_LEAD_EV_RENEWED);
}

/* ---- actions ---- */

static void take_lock(void *object)
{
	begin(object, take_work, take_done);
}

static void look_whether_ours(void *object)
{
	begin(object, look_work, look_done);
}

static void owner_looks_later(void *object)
{
	struct store_lead *lead = object;

	if (lead->ex->driver->owns && !life_of(lead)->ended)
		loop_timer_set(life_of(lead)->loop, &lead->timer,
			       clock_now_ms() + STORE_LEAD_LOOK_MS);
}

static void begin_as_owner(void *object)
{
	struct store_lead *lead = object;
	const char *colon = *lead->why ? ": " : "";

	if (lead->breaking)
		log_event(LOG_LEVEL_WARN, LOG_FIELDS(LOCK_BROKEN, .export = lead->ex->name),
			  lead->ex->name, "rtrsctl export break%s has taken the lock for this "
			  "server%s%s", lead->force ? ", by force," : "", colon, lead->why);
	else
		log_info(lead->ex->name, "this server writes the store now%s%s", colon, lead->why);
	owner_looks_later(lead);
}

static void tell_refused(void *object)
{
	struct store_lead *lead = object;

	log_warn(lead->ex->name, "%s: %s", lead->rc == -EBUSY ? "another server writes the store" :
		 "this server cannot take the lock of the store",
		 *lead->why ? lead->why : strerror(-lead->rc));
}

static void give_lock_back(void *object)
{
	struct store_lead *lead = object;

	loop_timer_cancel(&lead->timer);
	begin(lead, yield_work, yield_done);
}

static void tell_standby(void *object)
{
	const struct store_lead *lead = object;

	log_info(lead->ex->name, "no client writes the store: another server may");
}

static void look_later(void *object)
{
	struct store_lead *lead = object;

	if (!life_of(lead)->ended)
		loop_timer_set(life_of(lead)->loop, &lead->timer,
			       clock_now_ms() + STORE_LEAD_KEEP_MS);
}

/* A client wants the store before the timer has looked. */
static void take_lock_again(void *object)
{
	struct store_lead *lead = object;

	loop_timer_cancel(&lead->timer);
	take_lock(lead);
}

static void lead_reopen(void *object)
{
	begin(object, renew_work, renew_done);
}

static void tell_loss(const struct store_lead *lead)
{
	log_warn(lead->ex->name, "another server has taken the store over: clients have to use "
		 "that server");
}

/* Another server has the lock of the store. */
static void end_paths(const struct store_lead *lead)
{
	const struct export_life *life = life_of(lead);

	if (life->users)
		life->users->store_fenced(life->arg, lead->store);
}

static void lose_clients(void *object)
{
	struct store_lead *lead = object;

	loop_timer_cancel(&lead->timer);
	count_loss(lead);
	tell_loss(lead);
	end_paths(lead);
	store_lead_closed(lead->store);
}

/* The request failed while the name still was there. */
static void lose_readers(void *object)
{
	end_paths(object);
}

static void try_later(void *object)
{
	struct store_lead *lead = object;

	log_warn(lead->ex->name, "cannot be opened again: %s; trying again",
		 *lead->why ? lead->why : strerror(-lead->rc));
	if (life_of(lead)->ended)
		return;
	loop_timer_set(life_of(lead)->loop, &lead->timer,
		       clock_now_ms() + AGAIN_MS);
}

/* ---- the table ---- */

static const struct fsm_row rows[] = {
	ROW(IN(STANDBY), WANTED, TAKING, take_lock),
	ROW(IN(TAKING), TAKEN, OWNER, begin_as_owner),
	ROW(IN(TAKING), REFUSED, STANDBY, tell_refused),
	ROW(IN(OWNER), TIMER, LOOKING, look_whether_ours),
	ROW(IN(LOOKING), OURS, OWNER, owner_looks_later),
	ROW(IN(OWNER), NO_WRITER, YIELDING, give_lock_back),
	ROW(IN(YIELDING), YIELDED, STANDBY, tell_standby),
	ROW(IN(YIELDING), KEPT, KEEPING, look_later),
	ROW(IN(STANDBY), FOUND, KEEPING, look_later),
	ROW(IN(KEEPING), TIMER, YIELDING, give_lock_back),
	ROW(IN(KEEPING), WANTED, TAKING, take_lock_again),

	ROW(IN(OWNER) | IN(STANDBY) | IN(KEEPING), LOST, FENCED, lose_clients),
	ROW(IN(TAKING) | IN(YIELDING) | IN(LOOKING), LOST_UNSEEN, FENCED, lose_clients),
	ROW(IN(FENCED), UNUSED, RENEWING, lead_reopen),
	ROW(IN(RENEWING), RENEWED, STANDBY, NULL),
	ROW(IN(RENEWING), FAILED, AGAIN, try_later),
	ROW(IN(AGAIN), TIMER, RENEWING, lead_reopen),

	ROW(IN(STANDBY) | IN(OWNER) | IN(KEEPING) | IN(FENCED) | IN(AGAIN), LEFT, NAMELESS, NULL),
	ROW(IN(NAMELESS), JOINED, STANDBY, NULL),
	ROW(IN(NAMELESS), LOST, NAMELESS, lose_readers),

	STAY(ALL & ~(IN(STANDBY) | IN(KEEPING)), WANTED),
	STAY(ALL & ~IN(OWNER), NO_WRITER),
	/* In TAKING, LOOKING and YIELDING the worker ends first, and finds the same. */
	STAY(ALL & ~(IN(OWNER) | IN(STANDBY) | IN(KEEPING) | IN(NAMELESS)), LOST),
	STAY(ALL & ~IN(FENCED), UNUSED),
};

static const char *const states[STORE_LEAD_NSTATES] = {
	"standby", "taking", "owner", "looking", "yielding", "keeping", "fenced", "renewing",
	"again", "nameless",
};

static const char *const events[STORE_LEAD_NEVENTS] = {
	"wanted", "taken", "ours", "refused", "no writer", "yielded", "kept", "found", "lost",
	"lost unseen", "unused", "renewed", "failed", "timer", "left", "joined",
};

const struct fsm store_lead_fsm = FSM("lead", rows, states, events);

/* ---- begin and end ---- */

static void fenced_msg(struct loop_msg *msg)
{
	lead_event(container_of(msg, struct store_lead, fenced_msg), STORE_LEAD_EV_LOST);
}

static void again_timer(struct loop_timer *timer)
{
	lead_event(container_of(timer, struct store_lead, timer), STORE_LEAD_EV_TIMER);
}

static struct store_lead *new_lead(struct exports *all, struct store *store)
{
	struct store_lead *lead = calloc(1, sizeof(*lead));

	if (!lead)
		return NULL;
	lead->all = all;
	lead->store = store;
	atomic_init(&lead->state, STORE_LEAD_NAMELESS);
	loop_msg_init(&lead->fenced_msg, fenced_msg);
	loop_timer_init(&lead->timer, again_timer);
	return lead;
}

int store_lead_join(struct store *store, struct export *ex)
{
	if (!store->lead)
		store->lead = new_lead(ex->all, store);
	if (!store->lead)
		return -ENOMEM;
	if (store->lead->ex)
		return 0;
	store->lead->ex = ex;
	lead_event(store->lead, STORE_LEAD_EV_JOINED);
	return 0;
}

/* The control thread's loop runs jobs of the lead. */
static void lead_ready(struct store_lead *lead)
{
	if (!lead->begun)
		worker_init(&lead->worker, life_of(lead)->loop);
	lead->begun = true;
}

void store_lead_begin(struct store *store)
{
	struct store_lead *lead = store->lead;
	unsigned state = lead ? atomic_load(&lead->state) : STORE_LEAD_OWNER;

	if (state != STORE_LEAD_STANDBY || !store->driver->keeps || !store->driver->keeps(store))
		return;
	lead_ready(lead);
	lead_event(lead, STORE_LEAD_EV_FOUND);
}

void store_lead_end(struct store *store)
{
	if (store->lead)
		loop_timer_cancel(&store->lead->timer);
}

/* @ex goes: the next name that is written goes on, in the same state.  True if @ex is the last such
 * name. */
static bool last_goes(const struct store *store, const struct export *ex)
{
	struct store_lead *lead = store->lead;
	struct export *next;

	if (!lead || lead->ex != ex)
		return false;
	next = store_other_writer(store, ex);
	if (next)
		lead->ex = next;
	return !next;
}

void store_lead_goes(struct store *store, const struct export *ex)
{
	if (last_goes(store, ex))
		store_lead_end(store);
}

void store_lead_left(struct store *store, const struct export *ex)
{
	struct store_lead *lead = store->lead;

	if (!last_goes(store, ex))
		return;
	loop_timer_cancel(&lead->timer);
	lead_event(lead, STORE_LEAD_EV_LEFT);
	lead->ex = NULL;
	wish_next(lead);
}

void store_lead_destroy(struct store *store)
{
	struct store_lead *lead = store->lead;

	if (!lead)
		return;
	if (life_of(lead))
		loop_unpost(life_of(lead)->loop, &lead->fenced_msg);
	if (lead->begun)
		worker_fini(&lead->worker);
	free(lead);
	store->lead = NULL;
}

/* ---- calls ---- */

bool store_lead_fences(const struct store *store)
{
	return store->lead && atomic_load(&store->lead->state) != STORE_LEAD_NAMELESS;
}

bool store_lead_is_owner(const struct store *store)
{
	unsigned state = store->lead ? atomic_load(&store->lead->state) : STORE_LEAD_OWNER;

	return 1u << state & (IN(OWNER) | IN(LOOKING) | IN(NAMELESS));
}

const char *store_lead_word(const struct store *store)
{
	return store_lead_is_owner(store) ? "optimized" : "standby";
}

bool store_lead_lets(const struct export *ex, enum rnbd_access_mode mode)
{
	const struct store_lead *lead = ex->store->lead;
	unsigned state = lead ? atomic_load(&lead->state) : STORE_LEAD_OWNER;

	if (mode != RNBD_ACCESS_RO)
		return 1u << state & (IN(OWNER) | IN(LOOKING));
	return state < STORE_LEAD_FENCED || ex != lead->ex;
}

void store_lead_want(struct store *store, bool force, uint64_t since_ms)
{
	struct store_lead *lead = store->lead;

	lead_ready(lead);
	if (1u << atomic_load(&lead->state) & (IN(STANDBY) | IN(KEEPING))) {
		lead->force = force;
		lead->since_ms = force ? since_ms : 0;
	}
	lead_event(lead, STORE_LEAD_EV_WANTED);
}

int store_lead_error(const struct store *store, bool force)
{
	const struct store_lead *lead = store->lead;

	if (!lead || atomic_load(&lead->state) != STORE_LEAD_STANDBY || (force && !lead->force))
		return 0;
	return lead->error;
}

const char *store_lead_refusal(const struct store *store)
{
	const struct store_lead *lead = store->lead;

	/* No job runs then, which would write it. */
	if (!lead || atomic_load(&lead->state) != STORE_LEAD_STANDBY || lead->rc != -EBUSY)
		return "";
	return lead->why;
}

void store_lead_break(struct store *store, struct store_lead_break *wish)
{
	struct store_lead *lead = store->lead;

	lead_ready(lead);
	lead->wish = wish;
	wish_next(lead);
}

void store_lead_break_drop(struct store *store)
{
	store->lead->wish = NULL;
}

void store_lead_closed(struct store *store)
{
	struct store_lead *lead = store->lead;

	/* The end of the program gives the lock back with the store. */
	if (!lead || !life_of(lead) || life_of(lead)->ended)
		return;
	if (!store->writers)
		lead_event(lead, STORE_LEAD_EV_NO_WRITER);
	if (!store->users)
		lead_event(lead, STORE_LEAD_EV_UNUSED);
}

void store_lead_lost(struct store *store)
{
	loop_post(life_of(store->lead)->loop, &store->lead->fenced_msg);
}
