/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of changes: change.c, which has the turns, change-reload.c, whose reloads come
 * before theirs, and change-snapshot.c. */
#ifndef CHANGE_PRIV_H
#define CHANGE_PRIV_H

#include "change.h"
#include "secrets-set.h"
#include "util.h"

/* A kind of changes. */
struct change_ops {
	struct changes_ops queued;
	const char *what;		/* in the log */
	/* Of reloads.  Tell the log of the end of @call; @sized: the plan holds, and the storage
	 * was asked. */
	void (*tell)(const struct change_call *call, bool sized, int rc, const char *text);
	/* Take the keys of @call that are new, behind its plan.  Returns all lines up to here: what
	 * was taken away, @text of the plan, keys that are new; NULL: no memory. */
	char *(*give)(struct change_call *call, const char *text);
};

struct change_call {
	struct secrets_change secrets;	/* of a reload, but for .queued */
	struct change *change;
	char *text;			/* the name of an export, or what is to change */
	bool force;
	change_done_fn *done;		/* NULL: SIGHUP, which the log tells of */
	void *arg;
	struct srv_conf wanted;
	/* a reload; of the job */
	enum opt_result read;		/* the files */
	bool trusted;			/* those of keys and certificates */
	char *mistakes;			/* a line each */

	char *doubts;			/* tell.h, of the plan; a line each */
};

static inline struct change_call *change_call_of(struct changes_call *queued)
{
	return container_of(queued, struct change_call, secrets.queued);
}

static inline const struct change_ops *change_ops_of(const struct change_call *call)
{
	return container_of(call->secrets.queued.ops, struct change_ops, queued);
}

/* A reload by a command, and by SIGHUP. */
extern const struct change_ops change_reload_ops, change_hup_ops;
/* A snapshot of an export. */
extern const struct change_ops change_snapshot_ops;
/* The change whose turn it is has ended. */
void change_ended(struct change *change, int rc, const char *text);
/* Carry out a change by @ops; @text: NULL for none. */
void change_add(struct change *change, const struct change_ops *ops, const char *text, bool force,
		change_done_fn *done, void *arg);
/* It is the turn of @queued, which begins at @state. */
struct change_call *change_take_turn(struct changes_call *queued, enum change_state state);
/* Carry out the plan that leads to call->wanted, which is complete. */
void change_run_plan(struct change_call *call);
/* changes_ops.end() of all changes. */
void change_call_end(struct changes_call *queued, int rc, const char *text);

/* The lines of what @call has taken away; "": nothing. */
static inline const char *change_withdrawn(const struct change_call *call)
{
	return call->secrets.withdrawn ? call->secrets.withdrawn : "";
}

#endif
