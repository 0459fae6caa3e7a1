/* SPDX-License-Identifier: BSD-3-Clause */
/* Restricts a ring to what the server does with it: an attacker who can write to the ring cannot
 * open files or sockets through it, past the filter of system calls. */
#ifndef REACTOR_RESTRICT_H
#define REACTOR_RESTRICT_H

struct io_uring;

/* Restrict @ring, which is disabled still, to the operations, flags and registrations of the
 * server.  The restrictions begin when the ring is enabled; others fail with -EACCES from then on.
 * Any thread.  0 or -errno. */
int reactor_restrict(struct io_uring *ring);

#endif
