/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's part of each export and each store: counters, and a share of the private buffers of
 * each thread. */
#ifndef SRV_EXPORT_H
#define SRV_EXPORT_H

#include <stdint.h>

#include "export-life.h"

struct srv;

/* For export_life_init(), with the struct srv as its @arg. */
extern const struct export_users srv_export_users;

/* The exports that a server begins with.  0 or -ENOMEM; srv_export_fini() in any case.  Control
 * thread; no other thread serves yet. */
int srv_export_init(struct srv *srv);
/* Give @ex the priority @prio (conf-priority.h), for IO that begins from now on. */
void srv_export_set_prio(struct srv *srv, struct export *ex, uint16_t prio);
/* No thread serves any more. */
void srv_export_fini(struct srv *srv);

/* ---- exports as people see them; control thread ---- */

/* These are the exports that clients find, and the removed ones that clients still have open.  Of
 * exports with the same name and the same store people see one: the listed one, or else the one
 * that was removed first.  The users of all of them are its users. */

/* The export that people see for @ex, which clients find or have open. */
struct export *srv_export_shown(const struct export *ex);
/* The first of these exports, if @ex is NULL, or the next one behind @ex; NULL: no more.  Those
 * that clients find come first. */
struct export *srv_export_next(const struct srv *srv, const struct export *ex);
/* The body may not let exports come or go. */
#define srv_export_each(ex, srv)                                                                   \
	for (ex = srv_export_next(srv, NULL); ex; ex = srv_export_next(srv, ex))

#endif
