/* SPDX-License-Identifier: BSD-3-Clause */
/* Changes of a program that runs, one after the other in the order in which they came.
 *
 * A change with files has them read on a worker as soon as it comes, one part after the other, the
 * first parts of all changes first.  What a part takes away is taken away then (came()), and waits
 * neither for the next part nor for another change.  The rest of a change waits for its turn
 * (run()).  A change that has waited has its files read once more then: one before it may have
 * written them.
 *
 * Thread of the loop, unless a function says otherwise. */
#ifndef BASE_CHANGES_H
#define BASE_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "list.h"
#include "worker.h"

#define CHANGES_MORE 1

struct changes_call;

/* Constant. */
struct changes_ops {
	/* Read the files of call->part, maybe not for the first time.  Thread of the worker.
	 * NULL: there are none, and no came(). */
	void (*read)(struct changes_call *call);
	/* Do what does not wait.  0; CHANGES_MORE: the next part is to be read; or -errno with the
	 * reason in *@why: the change ends. */
	int (*came)(struct changes_call *call, const char **why);
	/* It is the turn of @call.  changes_end() follows, maybe inside of this call. */
	void (*run)(struct changes_call *call);
	/* @call has ended with @rc, as @text says: tell, and free it. */
	void (*end)(struct changes_call *call, int rc, const char *text);
};

enum changes_state {
	CHANGES_NEW,			/* a part of its files is to be read */
	CHANGES_READING,		/* on the worker */
	CHANGES_STALE,			/* likewise, and all are to be read once more */
	CHANGES_READY,			/* waits for its turn */
	CHANGES_RUNS,
};

/* One change; embedded in its owner, which lives until end(). */
struct changes_call {
	struct list link;
	const struct changes_ops *ops;
	struct changes *queue;
	enum changes_state state;
	unsigned part;			/* of its files, from 0 */
	struct worker_job job;
};

struct changes {
	struct list all;		/* changes_call.link, the first one first */
	struct worker worker;
	struct changes_call *starts;	/* whose run() has not returned; NULL: none */
	const char *stopping;		/* what changes are told that come no more; NULL: not yet */
};

void changes_init(struct changes *q, struct loop *loop);
/* Carry out @call as @ops say.  Its end may come inside of this call. */
void changes_add(struct changes *q, struct changes_call *call, const struct changes_ops *ops);
/* End @call, which runs, with @rc and @text. */
void changes_end(struct changes_call *call, int rc, const char *text);
/* If the change that came last has @ops and does not run, its files are read as they are now, and
 * it need not come again: true. */
bool changes_read_again(struct changes *q, const struct changes_ops *ops);
/* Have the worker run @job, behind the files that it reads.  0 or -errno. */
int changes_work(struct changes *q, struct worker_job *job);
/* Carry out no more changes: those that do not run end with -ECANCELED and @why, constant; one
 * whose files are being read ends behind that. */
void changes_stop(struct changes *q, const char *why);
/* True if files are being read. */
bool changes_reads(const struct changes *q);
/* Returns @why, the reason of a failure, with @lines behind it, which the failed change has done;
 * NULL: none.  *@all: NULL, or for the caller to free. */
const char *changes_and_done(const char *why, const char *lines, char **all);
/* After changes_stop(), and the end of all changes. */
void changes_fini(struct changes *q);

/* ---- the age of what was read: configuration and keys.  Any thread.
 *
 * A file that was changed since waits for a reload. */

/* The files are about to be read at the start, or a reload has taken effect. */
void files_age_reset(void);
/* Nanoseconds since the last reset. */
uint64_t files_age_ns(void);

#endif
