/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may open an export: the list "allow =" of the export, at work (conf-allow.h).
 *
 * A session may see and open an export if the address of each path of the session is in the list.
 * The paths are those in service, and those that were let into the session and are about to be.  A
 * path from another address does not join a session that has such an export open.  A session that
 * has an export open keeps the export when the list changes.
 *
 * To a client an export that the client may not open does not exist.  Control thread. */
#ifndef SRV_ALLOW_H
#define SRV_ALLOW_H

#include <stdbool.h>
#include <stddef.h>

#include "conf-allow.h"

struct export;
struct srv_path;
struct srv_sess;

/* Give @ex @list, for all that opens from now on. */
void srv_allow_set(struct export *ex, const struct allow_list *list);
/* The list of @ex. */
const struct allow_list *srv_allow_of(const struct export *ex);

/* A path of @sess whose address the list of @ex does not have; NULL: @sess may open @ex. */
const struct srv_path *srv_allow_refuses(const struct srv_sess *sess, const struct export *ex);
/* The export named @name if @sess may open it, else NULL. */
struct export *srv_allow_find(const struct srv_sess *sess, const char *name);

/* srv_ops.path_joins: false if the session of @path has an export open that the address of @path
 * may not open.  The reason is in @cause. */
bool srv_allow_path(const struct srv_path *path, char *cause, size_t len);

#endif
