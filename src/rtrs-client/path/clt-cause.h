/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a server cannot be reached, or refuses: hints for people, by the error and by the address
 * given, and the cause of a failed attempt.  Hints are pure: any thread, no memory. */
#ifndef CLT_CAUSE_H
#define CLT_CAUSE_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "fabric.h"

/* The hint for no connection to @dst, because of @err: a static string, " (...)", or "" where the
 * error says all. */
const char *clt_cause_unreachable(const struct fab_addr *dst, int err);
/* The hint for no way from @src, which may be none, because of @err.  As above. */
const char *clt_cause_source(const struct fab_addr *src, int err);
/* The words for @refusal, an enum rtrs_refusal in a reject, for a client that has a key (@has_key):
 * what the server refuses, and what to do.  "": no reason was given, or one of a newer server. */
const char *clt_cause_reason(unsigned refusal, bool has_key);
/* The hint for connection @cid, which the server at @dst, a kernel's or an older one, has refused
 * with @err and without a reason.  As clt_cause_unreachable(). */
const char *clt_cause_refused(const struct fab_addr *dst, unsigned cid, int err);
/* Write to @why the reason for which the server has not let a path into session @name: an enum
 * rtrs_refusal, or a number of a newer server. */
void clt_cause_session(unsigned refusal, const char *name, char *why, size_t len);

/* ---- the cause of a failed attempt, and the text last told to people ----
 * Any thread keeps a cause; the
 * service thread gets the cause, and tells an unchanged cause again only after a minute. */

#define CLT_WHY 256

/* The -errno of an attempt that met a server with too many paths in set-up: of all its limits this
 * one is over by itself.  Nothing else here has this errno. */
#define CLT_BUSY (-EUSERS)

struct clt_cause {
	pthread_mutex_t lock;
	int err;			/* lock: -errno */
	char text[CLT_WHY];		/* lock */
	/* service thread */
	char told[CLT_WHY];		/* the text told last, or "" */
	uint64_t told_ms;
};

/* Initialize @cause: nothing was kept or told. */
void clt_cause_init(struct clt_cause *cause);
/* Free the lock of @cause, which no thread uses any more. */
void clt_cause_fini(struct clt_cause *cause);
/* Keep @err and @text, the cause of a failure; a @text longer than CLT_WHY is cut.  Any thread; the
 * state of the path lets a single cause of each attempt come here. */
void clt_cause_keep(struct clt_cause *cause, int err, const char *text);
/* Get the kept error, and the @text.  Any thread. */
int clt_cause_get(struct clt_cause *cause, char text[CLT_WHY]);
/* Is @text to be told? Yes, if @text is @big news, differs from the text told last, or was told a
 * minute ago.  Then @text becomes the text told last.  Service thread. */
bool clt_cause_tell(struct clt_cause *cause, const char *text, bool big);
/* Forget the text told last.  Service thread. */
void clt_cause_forget(struct clt_cause *cause);

#endif
