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

/* Those in the directory where programs make them by default at which somebody listens. */
void find_sockets(struct found *found);
void find_free(struct found *found);

#endif
