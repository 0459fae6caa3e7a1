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

#endif
