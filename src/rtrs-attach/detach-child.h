/* SPDX-License-Identifier: BSD-3-Clause */
/* A child does what may wait for a device in the kernel, where no signal ends it: a device whose
 * process or server is away answers nothing.  Its parent, which any signal ends, follows the child,
 * says for what it waits, and gives it up.  A child that is given up, or whose parent has ended,
 * ends when its call in the kernel does.  Main thread. */
#ifndef DETACH_CHILD_H
#define DETACH_CHILD_H

#include <stdbool.h>

/* The steps of a child, in this order. */
enum detach_step {
	DETACH_OPENS,			/* the device */
	DETACH_FLUSHES,
	DETACH_REMOVES,			/* the kernel does */
	DETACH_WAITS,			/* for the end of the process */
	DETACH_STEPS
};

/* Have @work, with @arg, detach the device @name in a child.  With @force a process of the device
 * that does not end is killed.  Blocks until the child has ended, or is given up.  0, or -1 with
 * the reason on stderr: also what @work returns. */
int detach_child_run(const char *name, bool force, int (*work)(const char *name, const void *arg),
		     const void *arg);
/* In the child: the next step begins. */
void detach_child_at(enum detach_step step);

#endif
