/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines that a user must see, but no errors: a path was lost, or has come back.  nbdkit itself has
 * a function for errors, and a function for lines under -v alone. */
#ifndef PLUGIN_TELL_H
#define PLUGIN_TELL_H

/* From now on write lines to the system log, if nbdkit has become a daemon, which has no stderr.
 * Earlier lines go to stderr.  Main thread, when nbdkit has forked or will not fork. */
void plugin_tell_forked(void);
/* Write @line, without a newline at the end.  Any thread. */
void plugin_tell(const char *line);

#endif
