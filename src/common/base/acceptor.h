/* SPDX-License-Identifier: BSD-3-Clause */
/* An acceptor takes the clients of a listening socket, on a loop.  Without descriptors, memory, or
 * room at its owner, it says so in the log and pauses: clients wait in the backlog.  A client that
 * has gone meanwhile, or whose network fails, is passed over.  Thread of the loop.  Short: two
 * calls. */
#ifndef BASE_ACCEPTOR_H
#define BASE_ACCEPTOR_H

#include <sys/socket.h>

#include "loop.h"

/* Embedded in its owner, who sets what is not private; the rest is zero. */
struct acceptor {
	/* A client at @addr has come.  @fd is the owner's, and does not block.  Not for
	 * acceptor_stop(). */
	void (*take)(struct acceptor *a, int fd, const struct sockaddr_storage *addr,
		     socklen_t len);
	bool (*has_room)(struct acceptor *a);	/* for another client; NULL: always */
	struct loop_watch watch;	/* @fd, and @closed or NULL */

	/* private */
	struct loop_timer again;
};

/* Take the clients of @a->watch.fd, which listens and does not block.  0 or -errno. */
int acceptor_start(struct acceptor *a, struct loop *loop);
/* Take no more.  The socket is the owner's as after loop_unwatch().  Idempotent. */
void acceptor_stop(struct acceptor *a);

#endif
