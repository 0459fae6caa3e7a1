/* SPDX-License-Identifier: BSD-3-Clause */
/* The control sockets of this user's programs. */
#ifndef FIND_H
#define FIND_H

#include <stddef.h>

#define FIND_MAX 64

struct found {
	char *path[FIND_MAX];		/* in order of their names */
	size_t n;
};

/* Those that programs have made by default, by name, and at which somebody listens: in the
 * directory for them and in those beside it, made by systemd, that are root's or this user's and
 * that nobody else may write to.  Sockets of this user's programs that were killed are removed. */
void find_sockets(struct found *found);
/* Keep those of programs of @kind (rundir.h), of what find_sockets() has found. */
void find_only(struct found *found, const char *kind);
void find_free(struct found *found);

#endif
