/* SPDX-License-Identifier: BSD-3-Clause */
/* A look at the storage of exports at the wish of an administrator.  Clients get the new sizes when
 * they open the export next (srv-size.h).  Control thread. */
#ifndef SRV_RESIZE_H
#define SRV_RESIZE_H

#include <stdbool.h>

struct srv;

/* The storage has answered, or does not answer.  @text has a line for each export whose size has
 * changed, "disk0 10G -> 20G", for each that has shrunk in use, for each whose storage does not
 * answer, and for each whose path does not name what is open. */
typedef void srv_resize_done_fn(void *arg, int rc, const char *text);

/* Learn the present size of the export called @name, or of all exports if @name is NULL, and what
 * the paths name.  A smaller size of an export that clients have open is taken with @force alone.
 * @done(@arg) follows after SRV_SIZE_TIMEOUT at the latest, maybe from inside this call: with
 * -ENOENT if no export has the name, -ENODEV if the export has no storage, -EBUSY if @name has
 * shrunk in use, -ENOMEM, or 0. */
void srv_resize(struct srv *srv, const char *name, bool force, srv_resize_done_fn *done, void *arg);
/* Learn what the paths of all exports name, and no size.  As srv_resize(). */
void srv_resize_look(struct srv *srv, srv_resize_done_fn *done, void *arg);

#endif
