/* SPDX-License-Identifier: BSD-3-Clause */
/* A front end: a program that gives the client's devices to others. */
#ifndef CLT_FRONT_H
#define CLT_FRONT_H

#define CLT_FRONT_ERR 512		/* bytes of a text that says what is wrong */

/* The description of a front end for the kit.  Constant. */
struct clt_front {
	/* in messages, in names of sessions and, as rundir.h lists it, of the control socket */
	const char *name;
	const char *program;		/* that was built; rtrsctl is told this name */
	const char *help;		/* the command that prints the parameters */
	const struct clt_wait_ops *wait;	/* how its requests wait */
	unsigned start_fds;		/* descriptors that it opens between probe and start */
	unsigned client_fds;		/* descriptors of each client of its own */
	/* Sleep for a while; less than 0: the process is to end, and so requests that wait for a
	 * server are to fail.  On a thread of its own, again and again while a server is away. */
	int (*nap)(void);
};

#endif
