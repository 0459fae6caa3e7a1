/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's part of each export and each store: counters, and a share of the private buffers of
 * each thread. */
#ifndef SRV_EXPORT_H
#define SRV_EXPORT_H

#include "export-life.h"

struct srv;

/* For export_life_init(), with the struct srv as its @arg. */
extern const struct export_users srv_export_users;

/* The exports that a server begins with.  0 or -ENOMEM; srv_export_fini() in any case.  Control
 * thread; no other thread serves yet. */
int srv_export_init(struct srv *srv);
/* No thread serves any more. */
void srv_export_fini(struct srv *srv);

#endif
