/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing: the list of an export is in its struct srv_export_stat; control thread. */
#include <stdio.h>

#include "export.h"
#include "exports.h"
#include "srv-allow.h"
#include "srv-export-stat.h"
#include "srv-path.h"
#include "srv-rnbd-state.h"

void srv_allow_set(struct export *ex, const struct allow_list *list)
{
	((struct srv_export_stat *)ex->user)->allow = *list;
}

const struct allow_list *srv_allow_of(const struct export *ex)
{
	return &((const struct srv_export_stat *)ex->user)->allow;
}

static bool has_address(const struct export *ex, const struct srv_path *path)
{
	const struct allow_list *list = srv_allow_of(ex);

	return conf_allow_has(list->rules, list->n, &path->client);
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
		if (path_counts(path) && !has_address(ex, path))
			return path;
	}
	return NULL;
}

struct export *srv_allow_find(const struct srv_sess *sess, const char *name)
{
	struct export *ex = exports_find(srv_rnbd(sess->srv)->exports, name);

	return ex && !srv_allow_refuses(sess, ex) ? ex : NULL;
}

bool srv_allow_path(const struct srv_path *path, char *cause, size_t len)
{
	srv_dev_for_each(dev, &srv_rnbd_sess(path->sess)->devs) {
		if (dev->state != SRV_DEV_OPEN || has_address(dev->ex, path))
			continue;
		snprintf(cause, len, "its session has %s open, whose allow does not contain this "
			 "address", dev->ex->name);
		return false;
	}
	return true;
}
