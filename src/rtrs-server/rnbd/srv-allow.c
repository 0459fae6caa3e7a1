/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: the lists of an export are in its struct srv_export; control thread. */
#include <stdio.h>

#include "export.h"
#include "exports.h"
#include "srv-allow.h"
#include "srv-path.h"
#include "srv-rnbd-state.h"

enum srv_right srv_allow_right(const struct allow_list *allow, const struct allow_list *read_only,
			       const struct fab_addr *peer, const char *identity,
			       const struct srv_allow **rule)
{
	*rule = conf_allow_find(read_only->rules, read_only->n, peer, identity);
	if (*rule)
		return SRV_RIGHT_READ;
	if (!allow->n)			/* a rule of the other list keeps others out */
		return read_only->n ? SRV_RIGHT_NONE : SRV_RIGHT_ALL;
	*rule = conf_allow_find(allow->rules, allow->n, peer, identity);
	return *rule ? SRV_RIGHT_ALL : SRV_RIGHT_NONE;
}

static enum srv_right right_of(const struct export *ex, const struct srv_path *path)
{
	const struct srv_export *own = srv_export_of(ex);
	const struct srv_allow *rule;

	return srv_allow_right(&own->allow, &own->read_only, &path->client, path->identity, &rule);
}

static bool may_only_read(const struct export *ex, const struct srv_path *path)
{
	return right_of(ex, path) == SRV_RIGHT_READ;
}

static bool may_open(const struct export *ex, const struct srv_path *path)
{
	return right_of(ex, path) != SRV_RIGHT_NONE;
}

/* True if @path is in service, or was let in and will be.  A path that has just connected is judged
 * when the path wants to join. */
static bool path_counts(const struct srv_path *path)
{
	return path->state == SRV_PATH_CONNECTED ||
	       (path->state == SRV_PATH_CONNECTING && path->info.state == SRV_INFO_NAMED);
}

const struct srv_path *srv_allow_refuses(const struct srv_sess *sess, const struct export *ex)
{
	const struct srv_path *path;

	list_for_each(path, &sess->paths, link) {
		if (path_counts(path) && !may_open(ex, path))
			return path;
	}
	return NULL;
}

const struct srv_path *srv_allow_reads_only(const struct srv_sess *sess, const struct export *ex)
{
	const struct srv_path *path;

	list_for_each(path, &sess->paths, link) {
		if (path_counts(path) && may_only_read(ex, path))
			return path;
	}
	return NULL;
}

struct export *srv_allow_find(const struct srv_sess *sess, const char *name)
{
	struct export *ex = exports_find(srv_rnbd(sess->srv)->exports, name);

	return ex && !srv_allow_refuses(sess, ex) ? ex : NULL;
}

bool srv_allow_awaits(const struct srv_sess *sess, const char *name)
{
	const struct conf_export *wanted = conf_export_find(sess->srv->conf, name);
	const struct srv_allow *rule;
	const struct srv_path *path;

	list_for_each(path, &sess->paths, link) {
		if (path_counts(path) && wanted &&
		    !srv_allow_right(&wanted->allow, &wanted->read_only, &path->client,
				     path->identity, &rule))
			return false;
	}
	return wanted;
}

bool srv_allow_over(const struct srv_dev *dev)
{
	return srv_allow_refuses(dev->sess, dev->ex) ||
	       (dev->mode != RNBD_ACCESS_RO && srv_allow_reads_only(dev->sess, dev->ex));
}

bool srv_allow_path(const struct srv_path *path, char *cause, size_t len)
{
	srv_dev_for_each(dev, &srv_rnbd_sess(path->sess)->devs) {
		if (dev->state != SRV_DEV_OPEN)
			continue;
		if (!may_open(dev->ex, path))
			snprintf(cause, len, "its session has %s open, whose allow does not "
				 "contain this address", dev->ex->name);
		else if (dev->mode != RNBD_ACCESS_RO && may_only_read(dev->ex, path))
			snprintf(cause, len, "its session has %s open for writing, which is "
				 "read-only for this address", dev->ex->name);
		else
			continue;
		return false;
	}
	return true;
}
