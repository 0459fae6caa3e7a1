/* SPDX-License-Identifier: BSD-3-Clause */
/* The server behind its control socket: the commands of rtrsctl (man/rtrsctl.pod).  Control
 * thread. */
#ifndef SRV_CTL_H
#define SRV_CTL_H

#include <stdbool.h>
#include <stddef.h>

struct ctl;
struct srv;

/* The command has been carried out, and @text has a line for each thing that was done; or @rc is
 * -errno, and @text says why nothing was. */
typedef void srv_ctl_done_fn(void *arg, int rc, const char *text);

/* What a command changes of the program, and what it is given. */
enum srv_ctl_change {
	SRV_CTL_EXPORT_ADD,		/* as the command line has it */
	SRV_CTL_EXPORT_REMOVE,		/* a name; by force: take it away from its openers */
	SRV_CTL_EXPORT_RESIZE,		/* a name; by force: a smaller size of one that is open,
					 * too */
	SRV_CTL_EXPORT_BREAK,		/* a name; by force: take the lock from a server that
					 * lives, too */
	SRV_CTL_EXPORT_SET,		/* "NAME,KEY=VALUE[,KEY=VALUE]..."; by force: take it away
					 * from who may not have it open so any more */
	SRV_CTL_EXPORT_SNAPSHOT,	/* "NAME\nSNAPSHOT", or "NAME\n" */
	SRV_CTL_RELOAD,			/* nothing; by force: all of the above, of all exports */
	SRV_CTL_SAVE,			/* nothing */
	SRV_CTL_CHANGES
};

/* The objects of the commands.  The caller's; constant while the socket is open. */
struct srv_ctl {
	struct srv *srv;
	/* Change @program.  @done runs once, in the call or later, and before ctl_close() ends. */
	void (*change)(void *program, enum srv_ctl_change what, const char *text, bool force,
		       srv_ctl_done_fn *done, void *arg);
	void *program;
};

/* Listen at the control socket of the server's configuration.  *@out is NULL if the configuration
 * has no socket, or if the default socket cannot be made, which is logged.  0, or -errno with one
 * line in @err. */
int srv_ctl_open(struct srv_ctl *c, struct ctl **out, char *err, size_t errlen);

#endif
