/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store-rbd-priv.h"

#define PARTS 3u

/* Cut target->text, which has no prefix, into parts.  False: there is a part too few, or empty. */
static bool cut(struct rbd_target *target)
{
	char *parts[PARTS], *rest = target->text, *part;
	char *snap = strchr(rest, '@');
	unsigned n = 0;

	if (snap) {
		*snap++ = '\0';
		if (!*snap || strpbrk(snap, "@/"))
			return false;
	}
	while ((part = strsep(&rest, "/"))) {
		if (!*part || n == PARTS)
			return false;
		parts[n++] = part;
	}
	if (n < 2)
		return false;
	target->pool = parts[0];
	target->space = n == PARTS ? parts[1] : "";
	target->image = parts[n - 1];
	target->snap = snap;
	return true;
}

int rbd_target_parse(struct rbd_target *target, const char *text)
{
	if (strncmp(text, RBD_TARGET_PREFIX, strlen(RBD_TARGET_PREFIX)))
		return -EINVAL;
	target->text = strdup(text + strlen(RBD_TARGET_PREFIX));
	if (!target->text)
		return -ENOMEM;
	if (cut(target))
		return 0;
	rbd_target_fini(target);
	return -EINVAL;
}

void rbd_target_fini(struct rbd_target *target)
{
	free(target->text);
	*target = (struct rbd_target){ 0 };
}
