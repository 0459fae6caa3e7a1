/* SPDX-License-Identifier: BSD-3-Clause */
/* Which driver has which device. */
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
#include "ublk-dev.h"
#include "util.h"

static int find_nbd(struct attach_state *s)
{
	int index = attach_nbd_find(s->name);

	if (index >= 0)
		snprintf(s->disk, sizeof(s->disk), "nbd%d", index);
	return index == -ENOENT ? -ENODEV : index;
}

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
static int find_ublk(struct attach_state *s)
{
	char why[UBLK_WHY];
	/* Not by its number: the kernel knows that of a removed disk while our process has it. */
	int id = ublk_disk_find(attach_state_mark(s), why);

	if (id >= 0)
		snprintf(s->disk, sizeof(s->disk), "ublkb%d", id);
	return id == -ENOENT ? -ENODEV : id;
}

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
	int (*find)(struct attach_state *s);	/* sets s->disk; the index, or -errno */
	int (*remove)(const struct attach_state *s, char *err, size_t len);
} drivers[] = {
#ifdef HAVE_LIBURING
	{ "ublk", find_ublk, remove_ublk },
#endif
	{ "nbd", find_nbd, remove_nbd },
};

int attach_find_disk(struct attach_state *s)
{
	int r = -EOPNOTSUPP;

	for (unsigned i = 0; i < ARRAY_SIZE(drivers); i++) {
		if (!strcmp(drivers[i].driver, s->driver))
			r = drivers[i].find(s);
	}
	if (r >= 0) {
		s->index = r;
		return 0;
	}
	if (r == -ENODEV) {
		s->index = -1;
		*s->disk = '\0';
	}
	return r;
}

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
