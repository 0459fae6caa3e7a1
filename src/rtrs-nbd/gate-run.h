/* SPDX-License-Identifier: BSD-3-Clause */
/* The surroundings of a serving program: the daemon, its process number, and the command of --run.
 * Main thread. */
#ifndef GATE_RUN_H
#define GATE_RUN_H

#include "gate-listen.h"

/* Become a daemon: the caller goes on as the child.  The parent waits until the child is ready, and
 * ends with its status.  Before any thread runs.  0, or -errno with nothing forked. */
int gate_run_daemon(void);
/* Let the parent end, because the daemon is ready.  From now on the standard descriptors of the
 * daemon are /dev/null.  Without a parent: nothing. */
void gate_run_ready(void);

/* Write the process's number to @path.  0, or -errno with @err. */
int gate_run_pidfile(const char *path, char *err, size_t len);

/* Start o->run in a shell whose variables name the socket of @l.  0 with *@pid, or -errno with
 * @err. */
int gate_run_command(const struct gate_options *o, const struct gate_listen *l, pid_t *pid,
		     char *err, size_t len);

#endif
