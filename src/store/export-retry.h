/* SPDX-License-Identifier: BSD-3-Clause */
/* Exports without their storage: each is opened again, by the life of exports (export-life.h),
 * until it is open or dropped.  Meanwhile clients find no export of the name, or its predecessor,
 * which has another spec.
 *
 * A path that is tried again waits for no lock, because other exports stand in line behind it.
 * Control thread. */
#ifndef EXPORT_RETRY_H
#define EXPORT_RETRY_H

#include <stdint.h>

#include "export.h"
#include "exports.h"

#define EXPORT_RETRY_MS 5000		/* between the end of a try and the next one */

enum export_retry_state {
	EXPORT_RETRY_WAITS,		/* for the timer */
	EXPORT_RETRY_OPENS,		/* in the line of the life */
	EXPORT_RETRY_DROPPED,		/* likewise; what was opened is closed again */
};

struct export_retry {
	struct list link;		/* exports.retries */
	struct index_node by_name;	/* exports.retries_by_name */
	struct exports *exports;
	struct export_spec spec;	/* a copy */
	const char *name;		/* of @spec */
	char *why;			/* the last failure in one line; "": not tried yet */
	enum export_retry_state state;
	uint64_t since_ms;		/* the name has been without its storage */
	uint64_t next_ms;		/* of the next try */
};

/* Have the export opened that @spec, which is checked, describes.  @why: why that has failed, in
 * one line, which is logged; NULL: it is tried at once.  Replaces an older retry of the name.
 * Before export_life_init(), too.  0 or -ENOMEM. */
int export_retry_add(struct exports *e, const struct export_spec *spec, const char *why);
/* Forget the retry of @name, if there is one. */
void export_retry_drop(struct exports *e, const char *name);
/* The retry of @name; NULL: none. */
struct export_retry *export_retry_find(const struct exports *e, const char *name);
/* True if clients find no export of the name, no predecessor either. */
bool export_retry_is_bare(const struct export_retry *retry);
/* The path of @ex, which is listed and which nobody has open, names other storage or nothing: take
 * @ex off the list, and have the path opened again. */
void export_retry_replaced(struct export *ex);
/* The word for the state of @retry, which is bare: "opening" before the first failure; "failed". */
const char *export_retry_bare_word(const struct export_retry *retry);
/* The word for the state of @ex: "removed", unless it is listed; "fenced": store_driver.fenced;
 * "ok"; "stale": another spec is to follow, as soon as its storage can be opened; "replaced",
 * "unlinked": what its path names. */
const char *export_retry_word(const struct export *ex);

/* exports.aside: take @ex, which the start cannot serve because of @why, off the list, and try
 * again. */
int export_retry_aside(struct exports *e, struct export *ex, const char *why);

/* e->life has begun: try. */
void export_retry_begin(struct exports *e);
/* Try no more.  Before export_life_stop(). */
void export_retry_end(struct exports *e);
/* Free all.  Before exports_fini(). */
void export_retry_fini(struct exports *e);

#endif
