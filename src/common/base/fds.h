/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of the process, which a front end and the session share.  Some are kept free for new
 * clients of a front end that sends clients away, so that each client hears why, and for commands,
 * the log, and keys that are read again. */
#ifndef BASE_FDS_H
#define BASE_FDS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define FDS_PAUSE_MS 1000u
#define FDS_ACCEPT_ROUND 16u		/* clients in a turn */

/* If @r is -EMFILE, append to @err, the text of this error, how many descriptors the process may
 * have.  Returns @r. */
int fds_name_limit(int r, char *err, size_t len);
/* The number of descriptors to keep free, the reserve: as many clients may come at the same time,
 * until these are sent away.  Each client has @client descriptors. */
unsigned fds_reserve(unsigned client);
/* Are at least @n descriptors free? Opens none.  Any thread. */
bool fds_free(unsigned n);
/* Say in the log that clients wait because of @r, -errno.  Returns @r. */
int fds_tell_short(int r);
/* Take the next client of @listener, which does not block: a client that has gone meanwhile, or
 * whose network fails, is passed over.  Returns the descriptor, which does not block, with the
 * address; -EAGAIN: nobody is there; or another -errno, which the log has: pause for FDS_PAUSE_MS.
 * Any thread. */
int fds_accept(int listener, struct sockaddr_storage *addr, socklen_t *len);

#endif
