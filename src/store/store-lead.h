/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether this server may write a store that other servers have, too (the flag "shared=yes"; D21).
 *
 * The engine's lock decides: an owner without the lock is fenced, and its late writes never land.
 * A server takes the lock when a client opens the store for writing, and gives the lock back when
 * the last writer has closed the store, so the other server need not break it.  A living owner has
 * STORE_LEAD_PATIENCE_MS to give it back.  An engine that fences only as long as the lock is held
 * keeps the lock until the other server has asked for it (store_driver.yield).
 *
 * A server that lost the lock to another server learns of it when a request to the storage fails,
 * and in any case within a few seconds: clients that only read, or have no request, would go on
 * with what the next owner writes.  The engine tells (store-rbd-priv.h), or the server looks
 * (store_driver.owns).  It answers no request any more then, fails the paths of all clients that
 * have the store open, opens the store again, and stands by.
 *
 * Two clients that see one server each could break the lock in turns.  So a server that lost the
 * lock STORE_LEAD_BREAKS times may break it once in STORE_LEAD_BREAK_MS, and waits in between.  A
 * lock that this server has broken, and another one was faster to take, counts as lost.
 *
 * Owned by its store.  Control thread, unless a function says otherwise. */
#ifndef STORE_LEAD_H
#define STORE_LEAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "fsm.h"
#include "loop.h"
#include "rnbd-proto.h"
#include "worker.h"

struct export;
struct store;

#define STORE_LEAD_PATIENCE_MS 1000u
/* For a client that may not break the lock: the owner may be about to lose its last writer. */
#define STORE_LEAD_POLITE_MS 4000u
#define STORE_LEAD_BREAK_MS 30000u
#define STORE_LEAD_BREAKS 4u

enum store_lead_state {
	STORE_LEAD_STANDBY,
	STORE_LEAD_TAKING,		/* the worker waits for the lock, or breaks it */
	STORE_LEAD_OWNER,		/* a timer looks */
	STORE_LEAD_LOOKING,		/* as the owner; the worker looks whether this server still
					 * has the lock */
	STORE_LEAD_YIELDING,		/* the worker gives the lock back */
	STORE_LEAD_KEEPING,		/* nobody writes, and the lock stays until another server
					 * asks for it; a timer looks */
	STORE_LEAD_FENCED,		/* another server has broken the lock; clients still have
					 * the store open */
	STORE_LEAD_RENEWING,		/* the worker opens the store again */
	STORE_LEAD_AGAIN,		/* the store could not be opened; a timer tries again */
	STORE_LEAD_NAMELESS,		/* the last name that was written has gone; others are
					 * read */
	STORE_LEAD_NSTATES
};

enum store_lead_event {
	STORE_LEAD_EV_WANTED,		/* a client opens the store for writing */
	STORE_LEAD_EV_TAKEN,
	STORE_LEAD_EV_OURS,		/* this server still has the lock, or nothing is known */
	STORE_LEAD_EV_REFUSED,		/* the other server keeps the lock: lead->error */
	STORE_LEAD_EV_NO_WRITER,	/* the last writer has closed the store */
	STORE_LEAD_EV_YIELDED,
	STORE_LEAD_EV_KEPT,		/* this server has the lock, and may not give it back yet,
					 * or stops while it does */
	STORE_LEAD_EV_FOUND,		/* likewise, from before its start */
	STORE_LEAD_EV_LOST,		/* a request or a question failed, because another server
					 * has broken the lock */
	STORE_LEAD_EV_LOST_UNSEEN,	/* the worker failed for the same reason, and has ended */
	STORE_LEAD_EV_UNUSED,		/* no client has the store open */
	STORE_LEAD_EV_RENEWED,
	STORE_LEAD_EV_FAILED,		/* the store could not be opened again */
	STORE_LEAD_EV_TIMER,
	STORE_LEAD_EV_LEFT,		/* the last name that is written goes */
	STORE_LEAD_EV_JOINED,		/* the first such name comes */
	STORE_LEAD_NEVENTS
};

/* The wish of an administrator: store_lead_break(). */
struct store_lead_break {
	bool force;			/* as if all other servers had gone for good */
	/* 0, this server has taken the lock, or -errno; words in @why, or "". */
	void (*done)(struct store_lead_break *wish, int rc, const char *why);
};

struct store_lead {
	struct exports *all;
	struct store *store;
	struct export *ex;		/* the first name that is written; NULL: NAMELESS */
	atomic_uint state;		/* enum store_lead_state; any thread reads */
	struct worker worker;
	struct worker_job job;
	struct loop_msg fenced_msg;
	struct loop_timer timer;
	bool begun;			/* @worker belongs to a loop */
	bool force;			/* of the try under way, or the last one */
	uint64_t since_ms;		/* of store_lead_want(), likewise */
	struct store_lead_break *wish;	/* the caller's; NULL: none */
	bool breaking;			/* the try under way is for @wish */
	int rc;				/* of @job */
	char why[256];			/* of @rc */
	int error;			/* why the lock was not taken, while store_led() runs: 0 or
					 * -errno */
	uint64_t may_break_ms;		/* when this server may break the lock */
	uint64_t losses_end_ms;		/* each loss counts STORE_LEAD_BREAK_MS, one behind another:
					 * the end of the last one */
};

/* How often a server that keeps the lock without a writer looks whether another one asks. */
#define STORE_LEAD_KEEP_MS 400u
/* How often an owner looks whether it is one (store_driver.owns). */
#define STORE_LEAD_LOOK_MS 5000u

/* Make @store shared, which is written under the name @ex, too.  A store that has had such a name
 * has its lead.  0 or -ENOMEM. */
int store_lead_join(struct store *store, struct export *ex);
/* The names of @store can be used from now on.  Control thread. */
void store_lead_begin(struct store *store);
/* The program ends (export_life.ended): a store that cannot be reopened is not tried again. */
void store_lead_end(struct store *store);
/* @ex goes, and no client has it open: the next name that is written goes on.  Without one no job
 * begins by a timer any more.  No job runs. */
void store_lead_goes(struct store *store, const struct export *ex);
/* The same, and @ex is no name of @store any more.  No job runs.  The lead stays, because requests
 * under other names may fail at any time. */
void store_lead_left(struct store *store, const struct export *ex);
/* @store goes, which may have no lead. */
void store_lead_destroy(struct store *store);

/* True if a request to @store that failed because another server has the lock is answered by
 * nobody: store_lead_lost() follows.  Any thread. */
bool store_lead_fences(const struct store *store);
/* True if this server may write @store now.  Any thread. */
bool store_lead_is_owner(const struct store *store);
/* The word for the state of @store as NVMe's ANA has it: "optimized", "standby".  Any thread. */
const char *store_lead_word(const struct store *store);
/* True if a client may open @ex in @mode now. */
bool store_lead_lets(const struct export *ex, enum rnbd_access_mode mode);
/* A client opens @store, which does not let it: take the lock; by @force, if the client had the
 * store open on the other server and lost its paths.  The time that a living owner has began at
 * @since_ms, when the client told so for the first of its stores: all of them were lost with the
 * same paths.  export_users.store_led() follows. */
void store_lead_want(struct store *store, bool force, uint64_t since_ms);
/* For an OPEN that has waited, inside export_users.store_led(): 0, or -errno: the try to take the
 * lock has failed, and a try by @force would fail as well.  0 at any other time. */
int store_lead_error(const struct store *store, bool force);
/* Why the last try to take the lock of @store has failed, because another server keeps it; "": this
 * server does not stand by, or has not tried.  Control thread. */
const char *store_lead_refusal(const struct store *store);
/* Take the lock of @store for no client: as store_lead_want() does, behind the job under way.  By
 * force the lock is broken at any time, and the engine forgets all other servers.  @wish->done()
 * follows, maybe from inside this call.  One wish at a time. */
void store_lead_break(struct store *store, struct store_lead_break *wish);
/* Drop the wish, without done().  The try under way ends by itself. */
void store_lead_break_drop(struct store *store);
/* A client has closed @store, which may have no lead. */
void store_lead_closed(struct store *store);
/* A request, or a question for the size, has failed because another server has the lock.  Any
 * thread. */
void store_lead_lost(struct store *store);

extern const struct fsm store_lead_fsm;

#endif
