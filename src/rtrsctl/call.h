/* SPDX-License-Identifier: BSD-3-Clause */
/* One question to a program at its control socket. */
#ifndef CALL_H
#define CALL_H

#include <jansson.h>

/* Is there a program at @path?  0 or -errno. */
int call_try(const char *path);

/* Send @command to the program at @path.  Its answer, which is an object and the caller's; or NULL
 * when it could not be asked, or has refused, or has said more than 64 MiB:
 * with the reason in @err. */
json_t *call_ask(const char *path, const json_t *command, char *err, size_t errlen);

#endif
