/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients that may open an export, and for what: the lists "allow =" and "read-only =" of the
 * export, at work (conf-allow.h).
 *
 * An export without a rule in both lists is everybody's.  Otherwise a client may open the export if
 * a list has the client's address, user or identity; a client in "read-only =" may open for reading
 * alone, even if "allow =" has the client, too.
 *
 * A session may do what each of its paths may do.  The paths are those in service, and those that
 * were let into the session and are about to be.  A path that may not open, or not write, what the
 * session has open so, does not join the session.  A session that has an export open keeps the
 * export when the lists change.
 *
 * To a client an export that the client may not open does not exist.  Control thread. */
#ifndef SRV_ALLOW_H
#define SRV_ALLOW_H

#include <stdbool.h>
#include <stddef.h>

#include "conf-allow.h"

struct export;
struct srv_dev;
struct srv_path;
struct srv_sess;

enum srv_right {
	SRV_RIGHT_NONE,
	SRV_RIGHT_READ,
	SRV_RIGHT_ALL,
};

/* The right that the lists of an export give the client at @peer with the identity @identity, ""
 * for none.  *@rule is the rule that decides; NULL: none names the client.  Of a @peer that is not
 * known (len 0) the rules for addresses and users do not count.  Pure. */
enum srv_right srv_allow_right(const struct allow_list *allow, const struct allow_list *read_only,
			       const struct fab_addr *peer, const char *identity,
			       const struct srv_allow **rule);

/* A path of @sess that may not open @ex; NULL: @sess may open @ex. */
const struct srv_path *srv_allow_refuses(const struct srv_sess *sess, const struct export *ex);
/* A path of @sess for which @ex is read-only; NULL: @sess may write to @ex, if @sess may open
 * @ex. */
const struct srv_path *srv_allow_reads_only(const struct srv_sess *sess, const struct export *ex);
/* The export named @name if @sess may open it, else NULL. */
struct export *srv_allow_find(const struct srv_sess *sess, const char *name);
/* True if @sess may open the export @name of the configuration, which has no storage yet. */
bool srv_allow_awaits(const struct srv_sess *sess, const char *name);
/* True if the session of @dev may not have @dev open by the present lists. */
bool srv_allow_over(const struct srv_dev *dev);

/* srv_ops.path_joins: false if the session of @path has an export open that @path may not open
 * so.  The reason is in @cause. */
bool srv_allow_path(const struct srv_path *path, char *cause, size_t len);

#endif
