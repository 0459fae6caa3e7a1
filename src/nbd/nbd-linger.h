/* SPDX-License-Identifier: BSD-3-Clause */
/* A socket whose output is over: what a close() at once would take from the client. */
#ifndef NBD_LINGER_H
#define NBD_LINGER_H

enum nbd_linger {
	NBD_LINGER_OVER,		/* nothing, or the client has closed */
	NBD_LINGER_INPUT,		/* input came since the last look: more may come */
	NBD_LINGER_OUTPUT,		/* the client's machine has not all bytes yet */
};

/* Drop the input of @fd, a non-blocking stream socket after SHUT_WR, and look. */
enum nbd_linger nbd_linger_look(int fd);

#endif
