/* SPDX-License-Identifier: BSD-3-Clause */
/* The running programs with a control socket.  Main thread. */
#ifndef FIND_H
#define FIND_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
