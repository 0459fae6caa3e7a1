/* SPDX-License-Identifier: BSD-3-Clause */
/* The running programs with a control socket, and commands to them.  Main thread. */
#ifndef FIND_H
#define FIND_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

struct ctx;

struct found_program {
	char *path;			/* of the control socket */
	char *name;			/* NULL: not known */
	long pid;			/* 0: not known */
	bool server;			/* an rtrs-server, or else a client */
	bool silent;			/* stands still: has not answered for CALL_GREET_S */
};

struct found {				/* all 0: none */
	struct found_program *at;	/* by directory, in the order of file names */
	size_t n;
};

/* The choice of a user among the programs. */
struct find_wanted {
	bool server, gateway;		/* only this kind; neither: both */
	unsigned pid;			/* 0: any */
	const char *name;		/* NULL: any */
};

/* Find the program at @socket, or, if that is NULL, the @wanted ones.  As find_programs(). */
bool find_chosen(struct found *found, const char *socket, const struct find_wanted *wanted);
/* Free the programs in @found. */
void find_free(struct found *found);

/* Make @found the programs for the command of @ctx: the program of --socket, or all wanted
 * programs, but a single program for a command with an effect.  EXIT_DONE: @found has a program or
 * more.  Another exit status: the user has the reason.  @found is to be freed with find_free() in
 * any case. */
int find_for_command(const struct ctx *ctx, struct found *found);

/* ---- call.c: a command to a program, and the answer ---- */

/* Does a program listen at @path?  0 or -errno. */
int call_try(const char *path);

/* How long an answer may take, in seconds: a reload waits for new paths. */
#define CALL_PATIENCE_S 60
/* The same for an answer of a few names and numbers. */
#define CALL_GREET_S 5

/* Send @command to the program at @path, and wait for @patience_s seconds at most, however the
 * program sends its answer; behind CALL_GREET_S a line of stderr says so.  Returns the answer, an
 * object, which is the caller's.  NULL with the reason in @err: the program was not reached, has
 * refused, or has sent more than 64 MiB. */
json_t *call_ask(const char *path, const json_t *command, unsigned patience_s, char *err,
		 size_t errlen);
/* The same for @command, a word, and CALL_GREET_S; a program that was silent is not asked again. */
json_t *call_program(const struct found_program *program, const char *command, char *err,
		     size_t len);

#endif
