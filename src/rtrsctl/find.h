/* SPDX-License-Identifier: BSD-3-Clause */
/* The control sockets of this user's programs. */
#ifndef FIND_H
#define FIND_H

#include <stddef.h>

#define FIND_MAX 64

struct found {
	char *path[FIND_MAX];		/* in the order of names */
	size_t n;
};

/* Find the sockets with default names at which a program listens.  Looks in the default directory,
 * and in neighbours, made by systemd, that only root and this user may write to.  Sockets of this
 * user's killed programs are removed.  @found is to be freed with find_free(). */
void find_sockets(struct found *found);
/* Keep only the sockets of programs of @kind (rundir.h) in @found, from find_sockets(). */
void find_only(struct found *found, const char *kind);
/* Free the paths in @found. */
void find_free(struct found *found);

#endif
