/* SPDX-License-Identifier: BSD-3-Clause */
/* Small, because it is all of a contract.
 *
 * A command to a program at a control socket, and the answer. */
#ifndef CALL_H
#define CALL_H

#include <jansson.h>

struct found_program;

/* Does a program listen at @path?  0 or -errno. */
int call_try(const char *path);

/* How long an answer may take, in seconds.  An added path is connected before the answer. */
#define CALL_PATIENCE_S 60
/* The same for an answer of a few names and numbers. */
#define CALL_GREET_S 5

/* Send @command to the program at @path, and wait for @patience_s seconds at most, however the
 * program sends its answer.  Returns the answer, an object, which is the caller's.  NULL with
 * the reason in @err: the program was not reached, has refused, or has sent more than 64 MiB. */
json_t *call_ask(const char *path, const json_t *command, unsigned patience_s, char *err,
		 size_t errlen);
/* The same for @command, a word, and CALL_GREET_S; a program that was silent is not asked again. */
json_t *call_program(const struct found_program *program, const char *command, char *err,
		     size_t len);

#endif
