/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock of a shared export at the wish of an administrator, whom no client asked to take the
 * lock from a server that never comes back (store_lead_break()).  Control thread. */
#ifndef SRV_BREAK_H
#define SRV_BREAK_H

#include <stdbool.h>

#include "store-lead.h"

struct export;
struct srv;

/* @rc is 0: this server has taken the lock, and @text is a line about it.  Or -errno, and @text
 * says why not. */
typedef void srv_break_done_fn(void *arg, int rc, const char *text);

/* Embedded in its owner, and busy from srv_break() until @done. */
struct srv_break {
	struct store_lead_break wish;
	struct export *ex;		/* held; NULL: not busy */
	srv_break_done_fn *done;
	void *arg;
};

/* Take the lock of the export called @name; @force: from a server that lives, too, and the engine
 * forgets all other servers.  @done(@arg) follows, maybe from inside this call. */
void srv_break(struct srv *srv, struct srv_break *b, const char *name, bool force,
	       srv_break_done_fn *done, void *arg);
/* The server stops: @done follows inside this call, and the try ends by itself. */
void srv_break_stop(struct srv_break *b);

#endif
