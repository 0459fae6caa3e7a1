/* SPDX-License-Identifier: BSD-3-Clause */
/* A front end: a program that gives the client's devices to others. */
#ifndef CLT_FRONT_H
#define CLT_FRONT_H

/* What the kit has to know of a front end.  Constant. */
struct clt_front {
	const char *name;		/* in messages, in names of sessions and, as rundir.h lists it, of
					 * the control socket */
	const char *program;		/* that was built; rtrsctl is told this name */
	const char *help;		/* the command that prints the parameters */
};

#endif
