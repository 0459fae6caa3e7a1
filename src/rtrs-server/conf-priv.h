/* SPDX-License-Identifier: BSD-3-Clause */
/* Between conf.c and conf-allow.c. */
#ifndef CONF_PRIV_H
#define CONF_PRIV_H

#include "conf.h"

#define CONF_THREADS_DEFAULT 4
#define CONF_THREADS_MAX 256
#define CONF_POLL_US_MAX 1000000u

/* "ADDR" or "ADDR/BITS"; an IPv6 address may stand in brackets.  0 or -EINVAL.  Pure. */
int conf_allow_parse(const char *text, struct srv_prefix *prefix);

#endif
