/* SPDX-License-Identifier: BSD-3-Clause */
/* Which driver has which device; and the links in /dev/rtrs. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach.h"
#include "cleanup.h"
#include "number.h"
#include "util.h"

const struct attach_driver *const attach_drivers[ATTACH_VIAS] = {
#ifdef HAVE_LIBURING
	[ATTACH_VIA_UBLK] = &attach_via_ublk,
#endif
	[ATTACH_VIA_NBD] = &attach_via_nbd,
};

/* True if @driver may be that of @s. */
static bool may_be(const struct attach_driver *driver, const struct attach_state *s)
{
	return driver && (!*s->driver || !strcmp(driver->name, s->driver));
}

int driver_find(struct attach_state *s)
{
	int r = -EOPNOTSUPP;

	for (unsigned i = 0; i < ATTACH_VIAS; i++) {
		if (!may_be(attach_drivers[i], s))
			continue;
		r = attach_drivers[i]->find(s);
		if (r >= 0 || r == -EEXIST) {
			snprintf(s->driver, sizeof(s->driver), "%s", attach_drivers[i]->name);
			s->index = r;
			return MIN(r, 0);
		}
	}
	if (r == -ENODEV) {
		s->index = -1;
		*s->disk = '\0';
	}
	return r;
}

int driver_remove(const struct attach_state *s, char *err, size_t len)
{
	for (unsigned i = 0; i < ATTACH_VIAS; i++) {
		if (may_be(attach_drivers[i], s))
			return attach_drivers[i]->remove(s, err, len);
	}
	return fmt_error(-EOPNOTSUPP, err, len, "this program knows no driver '%s'", s->driver);
}

int driver_other(const struct attach_state *s, char *err, size_t len)
{
	return fmt_error(-EEXIST, err, len, "/dev/%s is of another export than " ATTACH_DIRECTORY
			 "/%s has: remove this file, and rtrs-attach finds the device again",
			 s->disk, s->name);
}

/* ---- /dev/rtrs ---- */

const char *driver_node(const char *name, char buf[ATTACH_NODE_LEN])
{
	snprintf(buf, ATTACH_NODE_LEN, ATTACH_LINKS "/%s", name);
	return buf;
}

int driver_node_make(const struct attach_state *s, char *err, size_t len)
{
	char node[ATTACH_NODE_LEN];
	_cleanup_free_ char *target = NULL, *new = NULL;
	int r = 0;

	driver_node(s->name, node);
	if (asprintf(&target, "../%s", s->disk) < 0 || asprintf(&new, "%s.new", node) < 0)
		r = -ENOMEM;
	else if ((mkdir(ATTACH_LINKS, 0755) < 0 && errno != EEXIST) ||
		 (unlink(new) < 0 && errno != ENOENT) || symlink(target, new) < 0 ||
		 rename(new, node) < 0)
		r = -errno;
	if (r < 0)
		snprintf(err, len, "%s: %s", node, strerror(-r));
	return r;
}

uint64_t driver_node_size(const char *disk)
{
	char text[32];
	uint64_t sectors;

	if (!*disk || !attach_read_line(text, sizeof(text), "/sys/block/%s/size", disk) ||
	    !number_parse(text, 0, UINT64_MAX / 512, &sectors))
		return 0;
	return sectors * 512;
}

void driver_forget(const struct attach_state *s)
{
	_cleanup_free_ char *session = attach_state_session(s->name);
	char node[ATTACH_NODE_LEN];

	unlink(driver_node(s->name, node));
	if (session)
		unlink(session);
	attach_state_remove(s->name);
}
