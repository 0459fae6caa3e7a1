/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of the process, which nbdkit and this plugin share.
 *
 * nbdkit (1.32) that cannot accept a client for want of a descriptor tries again without end, and
 * one that accepts it but has no pipe for it keeps it waiting for ever.  Neither can be told to the
 * client, so some are kept free, and a client that would take them is sent away by us.  That is
 * when its connection has a thread and a pipe: more clients in one moment than the reserve is for
 * can be faster. */
#ifndef CLT_FDS_H
#define CLT_FDS_H

#include <stdbool.h>

/* What nbdkit opens between .get_ready and .after_fork: a pipe, listening sockets. */
#define CLT_FDS_NBDKIT 6u
/* Of a client: its socket and a pipe, open when .preconnect is called. */
#define CLT_FDS_CLIENT 3u

/* RLIMIT_NOFILE as it is now. */
unsigned long long clt_fds_limit(void);
/* Descriptors that are to stay free for clients that come at the same time, until they are sent
 * away. */
unsigned clt_fds_reserve(void);
/* At least @n descriptors are free.  Opens none.  Any thread. */
bool clt_fds_free(unsigned n);

#endif
