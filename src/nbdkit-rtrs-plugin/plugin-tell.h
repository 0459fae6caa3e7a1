/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines that a user must see and that are no errors, such as that a path was lost or has come back:
 * nbdkit has a function for errors, and one for what only -v prints. */
#ifndef PLUGIN_TELL_H
#define PLUGIN_TELL_H

/* What comes before goes to stderr.  Main thread, when nbdkit has forked or will not: from then on
 * it is the system log where nbdkit has become a daemon, which has no stderr. */
void plugin_tell_forked(void);
/* One line without its end.  Any thread. */
void plugin_tell(const char *line);

#endif
