/* SPDX-License-Identifier: BSD-3-Clause */
/* Small, because nbdkit alone needs it.
 *
 * Lines that a user must see, but no errors: a path was lost, or has come back.  nbdkit itself has
 * a function for errors, and a function for lines under -v alone.
 *
 * At nbdkit's end a thread of the plugin may stand in nbdkit's functions with the lock of stdio's
 * stderr, which nobody reads.  exit() of glibc 2.41 waits for this lock, that of 2.36 does not:
 * tests/test-log-stuck.sh. */
#ifndef PLUGIN_TELL_H
#define PLUGIN_TELL_H

#include <pthread.h>

/* From now on write lines to the system log, if nbdkit has become a daemon, which has no stderr.
 * Earlier lines go to stderr.  Main thread, when nbdkit has forked or will not fork. */
void plugin_tell_forked(void);
/* Write @line, without a newline at the end.  Any thread. */
void plugin_tell(const char *line);

/* The calling thread is about to write by nbdkit, and can be let go.  Any thread. */
void plugin_tell_by_nbdkit(void);
/* nbdkit ends, and @thread, which has called plugin_tell_by_nbdkit(), has written to stderr for
 * a second or more: stderr becomes /dev/null, and the write ends with an error.  Main thread. */
void plugin_tell_let_go(pthread_t thread);

#endif
