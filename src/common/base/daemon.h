/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that goes on in the background once it is ready.  Main thread. */
#ifndef BASE_DAEMON_H
#define BASE_DAEMON_H

/* Become a daemon: the caller goes on as the child.  The parent waits until the child is ready, and
 * ends with status 0; or with 1, when the child has ended before.  A signal that ends the parent
 * before sends the child SIGTERM.  Before any thread runs.  0, or -errno with nothing forked. */
int daemon_begin(void);
/* Let the parent end, because the daemon is ready.  From now on the standard descriptors of the
 * daemon are /dev/null.  Without a parent: nothing. */
void daemon_ready(void);

#endif
