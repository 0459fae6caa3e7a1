/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors of the process, which a front end and its session share.  Some are kept free for
 * clients that come, so that each of them hears why it cannot stay. */
#ifndef CLT_FDS_H
#define CLT_FDS_H

#include <stdbool.h>
#include <stddef.h>

/* Append to @err, a text about @r, how many descriptors there may be if that is what @r is about.
 * Returns @r. */
int clt_fds_name_limit(int r, char *err, size_t len);
/* Descriptors that are to stay free for clients that come at the same time, until they are sent
 * away; each has @client of them. */
unsigned clt_fds_reserve(unsigned client);
/* At least @n descriptors are free.  Opens none.  Any thread. */
bool clt_fds_free(unsigned n);

#endif
