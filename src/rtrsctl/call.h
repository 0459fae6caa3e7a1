/* SPDX-License-Identifier: BSD-3-Clause */
/* A command to a program at a control socket, and the answer. */
#ifndef CALL_H
#define CALL_H

#include <jansson.h>

/* Does a program listen at @path?  0 or -errno. */
int call_try(const char *path);

/* Send @command to the program at @path.  Returns the answer, an object, which is the caller's.
 * NULL with the reason in @err: the program was not reached, has refused, or has sent more than 64
 * MiB. */
json_t *call_ask(const char *path, const json_t *command, char *err, size_t errlen);

#endif
