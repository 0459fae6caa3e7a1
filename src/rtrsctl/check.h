/* SPDX-License-Identifier: BSD-3-Clause */
/* The health of programs as a line and an exit status for a monitoring system, in the form of a
 * plug-in: "RTRS OK - 1 session, 2 of 2 paths up | sessions=1 paths=2 paths_up=2".  Main thread. */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <jansson.h>

#include "state.h"

/* The exit status. */
enum check_level { CHECK_OK, CHECK_WARNING, CHECK_CRITICAL, CHECK_UNKNOWN, CHECK_LEVELS };
/* "OK", "WARNING", ... */
extern const char *const check_words[CHECK_LEVELS];

struct check {				/* all 0: no program */
	enum check_level level;
	unsigned programs, sessions, paths, paths_up;
	json_t *problems;		/* an array of lines; NULL: none */
};

/* Count the sessions and paths in @answer, to "show", and note the exports whose sync has failed,
 * the exports whose storage does not answer, and the sessions with a loss. */
void check_add(struct check *check, const json_t *answer);
/* Note a program without an answer, because of @why. */
void check_add_silent(struct check *check, const char *why);
/* The level of a problem that is no worse than @health. */
enum check_level check_level_of(enum health health);
/* Print @check on standard output, as JSON or as a line. */
void check_print(const struct check *check, bool json);
/* Free the problems. */
void check_fini(struct check *check);

#define CHECK_DIGEST_S (24 * 3600)	/* so long a wrong digest is told */

/* The keys and certificates of programs, for the health of these.  Main thread. */

#define CHECK_CERTS_DAYS 14		/* a certificate that ends sooner is told */

/* Read the files of keys that @answer, to "show" of a program of @user, names, and note in @check
 * what is wrong there: the next reload or start of the program would fail.  A file that this user
 * may not read, as that of another user, is not judged.  Note a certificate that ends soon or has
 * ended, too. */
void check_keys(struct check *check, const json_t *answer, uid_t user);

#endif
