/* SPDX-License-Identifier: BSD-3-Clause */
/* What an administrator asks of the storage of exports: sizes, and the lock of a shared one.
 * Control thread. */
#ifndef SRV_STORAGE_H
#define SRV_STORAGE_H

#include <stdbool.h>

#include "store-lead.h"

struct export;
struct srv;

/* ---- a look at the storage; clients get the new sizes when they open the export next ---- */

/* The storage has answered, or does not answer. */
typedef void srv_storage_done_fn(void *arg, int rc, const char *text);

/* Learn the present size of the export called @name, or of all exports if @name is NULL, and what
 * the paths name.  A smaller size of an export that clients have open is taken with @force alone.
 * The text has a line for each export whose size has changed, "disk0 10G -> 20G", for each that has
 * shrunk in use, for each whose storage does not answer, and for each whose path does not name what
 * is open.
 * @done(@arg) follows after SRV_SIZE_TIMEOUT at the latest, maybe from inside this call: with
 * -ENOENT if no export has the name, -ENODEV if the export has no storage, -EBUSY if @name has
 * shrunk in use, -ENOMEM, or 0. */
void srv_storage_resize(struct srv *srv, const char *name, bool force, srv_storage_done_fn *done,
			void *arg);
/* Learn what the paths of all exports name, and no size.  As srv_storage_resize(). */
void srv_storage_look(struct srv *srv, srv_storage_done_fn *done, void *arg);

/* ---- the lock of a shared export, which no client asks this server to take from a server that
 * never comes back (store_lead_break()) ---- */

/* Embedded in its owner, and busy from srv_storage_break() until @done. */
struct srv_storage_break {
	struct store_lead_break wish;
	struct export *ex;		/* held; NULL: not busy */
	srv_storage_done_fn *done;
	void *arg;
};

/* Take the lock of the export called @name; @force: from a server that lives, too, and the engine
 * forgets all other servers.  @done(@arg) follows, maybe from inside this call: with 0 and a line
 * about the lock, which this server has taken, or with the reason why not. */
void srv_storage_break(struct srv *srv, struct srv_storage_break *b, const char *name, bool force,
		       srv_storage_done_fn *done, void *arg);
/* The server stops: @done follows inside this call, and the try ends by itself. */
void srv_storage_break_stop(struct srv_storage_break *b);

#endif
