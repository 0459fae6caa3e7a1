/* SPDX-License-Identifier: BSD-3-Clause */
/* Snapshots of images, by the cluster.  Owns nothing.  librbd's cache is off, so all writes that
 * were answered are in the snapshot; librbd holds others back meanwhile. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store-rbd-priv.h"

int store_rbd_snapshot(struct export *ex, const char *name, char *text, size_t len)
{
	struct store_rbd *r = store_rbd(ex);
	int rc;

	/* Another server that breaks the lock has the handle replaced. */
	if (ex->spec.shared || ex->spec.readonly) {
		snprintf(text, len, "an image that is read-only, or shared by two servers, has no "
			 "snapshots here: \"rbd snap create %s@%s\" makes one",
			 ex->path + strlen(RBD_TARGET_PREFIX), name);
		return -EOPNOTSUPP;
	}
	/* A caller that gives up leaves the handle to this call. */
	r->lent = true;
	rc = rbd_lib.rbd_snap_create(r->handle.image, name);
	r->lent = false;
	if (rc)
		snprintf(text, len, "%s@%s: %s", ex->path, name,
			 rc == -EEXIST ? "a snapshot has this name already" : strerror(-rc));
	else
		snprintf(text, len, "%s@%s", ex->path, name);
	return rc;
}
