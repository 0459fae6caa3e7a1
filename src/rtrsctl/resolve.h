/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of hosts in the argument of "path add".  A program takes addresses alone: a silent name
 * server would hold up the heartbeats of the program. */
#ifndef RESOLVE_H
#define RESOLVE_H

#include <stddef.h>

/* Replace each name in @text, "[SCHEME://][SRC@]DST[:PORT]", by the first address that this machine
 * finds, as path= of nbdkit-rtrs-plugin does.  A @text of another form stays: the program will
 * refuse the text with a reason.  Returns a string, which is the caller's, or NULL with the reason
 * in @err.  Blocks. */
char *resolve_path(const char *text, char *err, size_t errlen);

#endif
