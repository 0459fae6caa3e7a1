/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of the process, which a front end and the session share.  Some are kept free for new
 * clients, so that each client hears why no more clients can stay. */
#ifndef CLT_FDS_H
#define CLT_FDS_H

#include <stdbool.h>
#include <stddef.h>

/* If @r is -EMFILE, append to @err, the text of this error, how many descriptors the process may
 * have.  Returns @r. */
int clt_fds_name_limit(int r, char *err, size_t len);
/* The number of descriptors to keep free for clients that come at the same time, until these are
 * sent away.  Each client has @client descriptors. */
unsigned clt_fds_reserve(unsigned client);
/* Are at least @n descriptors free? Opens none.  Any thread. */
bool clt_fds_free(unsigned n);

#endif
