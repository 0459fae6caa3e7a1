/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of hosts in the argument of "path add".  A program takes addresses alone: a name server
 * that does not answer would hold its heartbeats up. */
#ifndef RESOLVE_H
#define RESOLVE_H

#include <stddef.h>

/* "[SCHEME://][SRC@]DST[:PORT]" of @text with an address for each name, the first that this machine
 * knows, as path= of nbdkit-rtrs-plugin takes it.  @text that has another form stays as it is: the
 * program says what is wrong with it.  The caller's, or NULL with the reason in @err.  Blocks. */
char *resolve_path(const char *text, char *err, size_t errlen);

#endif
