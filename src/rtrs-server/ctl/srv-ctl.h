/* SPDX-License-Identifier: BSD-3-Clause */
/* The server behind its control socket: the commands of rtrsctl (man/rtrsctl.pod).  Control
 * thread. */
#ifndef SRV_CTL_H
#define SRV_CTL_H

#include <stddef.h>

struct ctl;
struct srv;

/* Listen at the control socket of @srv's configuration.  *@out is NULL if the configuration has no
 * socket, or if the default socket cannot be made, which is logged.  0, or -errno with one line in
 * @err. */
int srv_ctl_open(struct srv *srv, struct ctl **out, char *err, size_t errlen);

#endif
