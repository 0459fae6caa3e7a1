/* SPDX-License-Identifier: BSD-3-Clause */
/* The name of a control socket in the file system. */
#ifndef CTL_SOCK_H
#define CTL_SOCK_H

#include <stddef.h>
#include <sys/types.h>

struct ctl_sock {
	int fd;				/* listens; non-blocking */
	char *path;
	dev_t dev;			/* of what was made there */
	ino_t ino;
};

/* As ctl_open().  @sock is to be given to ctl_sock_remove() then, and its descriptor to be closed. */
int ctl_sock_listen(struct ctl_sock *sock, const char *path, char *err, size_t errlen);
/* Remove the name, unless something else has it now. */
void ctl_sock_remove(struct ctl_sock *sock);

#endif
