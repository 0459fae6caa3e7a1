/* SPDX-License-Identifier: BSD-3-Clause */
/* Which driver ends which device. */
#include <config.h>

#include "attach-remove.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach-nbd.h"
#include "cleanup.h"
#include "number.h"
#include "ublk-disk.h"
#include "util.h"

static int remove_nbd(const struct attach_state *s, char *err, size_t len)
{
	struct attach_nbd *nbd;
	int index = attach_nbd_find(s->name), r;

	if (index < 0)
		return 0;
	r = attach_nbd_open(&nbd, err, len);
	if (r < 0)
		return r;
	r = attach_nbd_disconnect(nbd, index, err, len);
	attach_nbd_close(nbd);
	return r;
}

#ifdef HAVE_LIBURING
static int remove_ublk(const struct attach_state *s, char *err, size_t len)
{
	char why[UBLK_WHY];
	int id = ublk_disk_find(attach_state_mark(s), why), r;

	r = id < 0 ? id : ublk_disk_remove(id, why);
	return r < 0 && r != -ENODEV ? fmt_error(r, err, len, "%s", why) : 0;
}
#endif

static const struct {
	const char *driver;
	int (*remove)(const struct attach_state *s, char *err, size_t len);
} drivers[] = {
#ifdef HAVE_LIBURING
	{ "ublk", remove_ublk },
#endif
	{ "nbd", remove_nbd },
};

int attach_remove(const struct attach_state *s, char *err, size_t len)
{
	for (unsigned i = 0; i < ARRAY_SIZE(drivers); i++) {
		if (!strcmp(drivers[i].driver, s->driver))
			return drivers[i].remove(s, err, len);
	}
	snprintf(err, len, "this program knows no driver '%s'", s->driver);
	return -EOPNOTSUPP;
}

void attach_forget(const struct attach_state *s)
{
	_cleanup_free_ char *node = NULL, *session = attach_state_session(s->name);

	if (asprintf(&node, "/dev/rtrs/%s", s->name) >= 0)
		unlink(node);
	if (session)
		unlink(session);
	attach_state_remove(s->name);
}
