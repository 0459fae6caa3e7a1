/* SPDX-License-Identifier: BSD-3-Clause */
/* Small, because a front end binds, opens and closes it.
 *
 * The control socket of a client, with the commands of rtrsctl (man/rtrsctl.pod), on the service
 * loop. */
#ifndef CLT_CTL_H
#define CLT_CTL_H

#include <stddef.h>

#include "client.h"
#include "clt-conf.h"

struct clt_ctl;
struct clt_reload;

/* Listen at @path, before the fork, so that a failure is an exit status.  The process that calls
 * clt_ctl_open() gets the socket.  NULL and "none": do nothing.  0, or -errno with a line in
 * @err. */
int clt_ctl_bind(const char *path, char *err, size_t errlen);
/* Serve the socket bound at @conf->control for @clt, a session of @conf that runs on @loop, with
 * @reload for the command of this name; both outlive the socket, and commands change options of
 * @conf.  NULL, of @conf->control:
 * serve the default place of this process, or warn in the log and serve nowhere.  "none": serve
 * nowhere.  Blocks; not on the service thread.  0, with *@out NULL for nowhere, or -errno with a
 * line in @err. */
int clt_ctl_open(struct clt_conf *conf, struct client *clt, struct loop *loop,
		 struct clt_reload *reload, struct clt_ctl **out, char *err, size_t errlen);
/* Close and remove the socket; NULL: do nothing.  Blocks; not on the service thread. */
void clt_ctl_close(struct clt_ctl *ctl);

#endif
