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

/* Requests of commands to the program.  @done(@arg) runs once, in the call or later, and before
 * ctl_close() ends. */
struct srv_ctl_ops {
	void (*export_add)(void *program, const char *spec, srv_ctl_done_fn *done, void *arg);
	/* @force: take the export away from its openers. */
	void (*export_remove)(void *program, const char *name, bool force, srv_ctl_done_fn *done,
			      void *arg);
	/* @force: take a smaller size although clients have the export open. */
	void (*export_resize)(void *program, const char *name, bool force, srv_ctl_done_fn *done,
			      void *arg);
	/* @force: take the lock from a server that lives, too. */
	void (*export_break)(void *program, const char *name, bool force, srv_ctl_done_fn *done,
			     void *arg);
	/* @text: "NAME,KEY=VALUE[,KEY=VALUE]...".  @force: take the export away from who may not
	 * have it open so any more. */
	void (*export_set)(void *program, const char *text, bool force, srv_ctl_done_fn *done,
			   void *arg);
	/* @force: all of the above, of all exports. */
	void (*reload)(void *program, bool force, srv_ctl_done_fn *done, void *arg);
	void (*save)(void *program, srv_ctl_done_fn *done, void *arg);
};

/* The objects of the commands.  The caller's; constant while the socket is open. */
struct srv_ctl {
	struct srv *srv;
	const struct srv_ctl_ops *ops;
	void *program;			/* of @ops */
};

/* Listen at the control socket of the server's configuration.  *@out is NULL if the configuration
 * has no socket, or if the default socket cannot be made, which is logged.  0, or -errno with one
 * line in @err. */
int srv_ctl_open(struct srv_ctl *c, struct ctl **out, char *err, size_t errlen);

#endif
