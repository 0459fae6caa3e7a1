/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of a name within a bound: a name server may be silent for longer than one waits.
 * Any thread that may block.  clt-names.h is for a loop, which may not.  Short: two calls. */
#ifndef FAB_NAMES_H
#define FAB_NAMES_H

#include "fabric.h"

/* For the resolver; and while it has not answered another question. */
#define FAB_NAMES_MS 10000u
#define FAB_NAMES_AGAIN_MS 1000u
#define FAB_NAMES_LEFT_MAX 16u		/* threads that stay behind */

/* As fab_addr_parse_all(), with room for FAB_ADDRS_MAX.  -ETIMEDOUT: the resolver has not answered
 * in time, and its thread stays behind; -ECANCELED: the end of the program has begun (process.h);
 * -EBUSY: too many threads stay behind. */
int fab_names_find(const char *text, const struct fab_provider *p, uint16_t default_port,
		   struct fab_addr all[FAB_ADDRS_MAX], char *err, size_t errlen);
/* As fab_addr_resolve(), within the same bound. */
int fab_names_resolve(const char *host, const struct fab_provider *p, uint16_t port,
		      struct fab_addr all[FAB_ADDRS_MAX], char *why, size_t len);

#endif
