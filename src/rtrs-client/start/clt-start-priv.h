/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions for both the probe and the lasting session. */
#ifndef CLT_START_PRIV_H
#define CLT_START_PRIV_H

#include "clt-start.h"

/* Start a session of @conf, whose name ends with @suffix, and wait for nothing.  @once, @setup_ms:
 * struct clt_sess_conf.  0, or -errno with @err. */
int clt_start_run(struct clt_start *start, const struct clt_conf *conf, const char *suffix,
		  bool once, unsigned setup_ms, char err[CLT_FRONT_ERR]);
/* The number of connections of the session. */
unsigned clt_start_cons(struct clt_start *start);

#endif
