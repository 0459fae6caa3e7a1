/* SPDX-License-Identifier: BSD-3-Clause */
/* Clients of the cluster that were fenced, or have lost the lock of their image: a latch. */
#ifndef STORE_RBD_LOST_H
#define STORE_RBD_LOST_H

#include <stdbool.h>

struct export;
struct loop;
struct rbd_asking;
struct store_rbd;

/* @result of an operation of @r as the request is to hear of it: once a client is fenced, all its
 * operations fail, also when the cluster has forgotten that.  Any thread. */
int store_rbd_lost(struct store_rbd *r, int result);
/* As store_driver.fenced.  A shared image is opened again by its lead (store-lead.h). */
bool store_rbd_lost_already(const struct export *ex);
/* Ask the cluster every few seconds whether @ex is fenced, so that a client without requests does
 * not read what the next owner writes: @ex may be idle until the cluster has forgotten.  @loop is
 * the control thread's.  NULL: no memory.  Control thread, as the next one. */
struct rbd_asking *store_rbd_lost_watch(const struct export *ex, struct loop *loop);
/* The handle of the export goes: end the question that is under way by it.  The next one follows
 * with the next handle.  NULL: nothing to do.  Under store_rbd.renews. */
void store_rbd_lost_cancel(struct rbd_asking *asking);
/* Ends the question under way, too.  No handle comes or goes meanwhile. */
void store_rbd_lost_unwatch(struct rbd_asking *asking);

#endif
