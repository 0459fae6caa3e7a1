/* SPDX-License-Identifier: BSD-3-Clause */
/* Who has librbd's lock of an image.  Owns nothing; waits for the cluster, so it runs aside. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store-rbd-priv.h"

#define WATCHERS_MAX 64

int store_rbd_owner(rbd_image_t image, char owner[STORE_RBD_OWNER_MAX])
{
	rbd_lock_mode_t mode;
	char *owners[1];
	size_t n = 1;
	int rc = rbd_lib.rbd_lock_get_owners(image, &mode, owners, &n);

	if (rc == -ENOENT || (!rc && !n))
		return 0;
	if (rc < 0)
		return rc;
	snprintf(owner, STORE_RBD_OWNER_MAX, "%s", owners[0]);
	rbd_lib.rbd_lock_get_owners_cleanup(owners, n);
	return 1;
}

bool store_rbd_owner_watches(rbd_image_t image, const char *owner)
{
	rbd_image_watcher_t watchers[WATCHERS_MAX];
	size_t n = WATCHERS_MAX;
	bool found = false;
	int rc = rbd_lib.rbd_watchers_list(image, watchers, &n);

	if (rc < 0)
		return true;
	for (size_t i = 0; i < n; i++)
		found = found || !strcmp(watchers[i].addr, owner);
	rbd_lib.rbd_watchers_list_cleanup(watchers, n);
	return found;
}
