/* SPDX-License-Identifier: BSD-3-Clause */
/* A client behind its control socket: what rtrsctl asks for (man/rtrsctl.pod), on the service
 * loop. */
#ifndef CLT_CTL_H
#define CLT_CTL_H

#include <stddef.h>

#include "client.h"
#include "clt-conf.h"

struct clt_ctl;

/* Before the fork: listen at @path, so that what is wrong there is an exit status; the process that
 * calls clt_ctl_open() has the socket.  NULL and "none": nothing.  0, or -errno with one line in
 * @err. */
int clt_ctl_bind(const char *path, char *err, size_t errlen);
/* Serve what was bound at @conf->control for @clt, a session of @conf that runs on @loop; NULL: at
 * the place of this process by default, or nowhere if that cannot be, which is a warning in the
 * log; "none": nowhere.  Blocks; not on the service thread.  0, with *@out NULL for nowhere, or
 * -errno with one line in @err. */
int clt_ctl_open(const struct clt_conf *conf, struct client *clt, struct loop *loop,
		 struct clt_ctl **out, char *err, size_t errlen);
/* Remove the socket.  Blocks likewise.  NULL: nothing. */
void clt_ctl_close(struct clt_ctl *ctl);

#endif
