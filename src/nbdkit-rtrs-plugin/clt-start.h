/* SPDX-License-Identifier: BSD-3-Clause */
/* The session of this process: tried out once while a failure is still an exit status, then opened for
 * good after the fork.  Main thread; knows no nbdkit. */
#ifndef CLT_START_H
#define CLT_START_H

#include "clt-conf.h"
#include "rnbd-clt.h"

#define CLT_START_ERR 512

/* Connect, look for the export when one is configured, disconnect.  With transport=auto this decides:
 * conf->dst.provider becomes "rdma" where that way works, else "tcp", and the log says why.  0, or
 * -errno with the reason in @err. */
int clt_start_probe(struct conf *conf, char err[CLT_START_ERR]);
/* Open the session; it goes on trying when the first attempt fails.  0, or -errno with @err. */
int clt_start_session(const struct conf *conf, char err[CLT_START_ERR]);
/* Close it; nothing when there is none. */
void clt_start_end(void);
/* It. */
struct rnbd_clt *clt_start_clt(void);

#endif
