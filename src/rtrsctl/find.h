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

/* Find the programs of this user, and for root of services: in the default directory, and in
 * neighbours, which systemd makes, without other writers.  A socket is a program's if the listener
 * answers "list".  A program without an answer is known by the default name of the socket.  Sockets
 * of this user's killed programs are removed.  @found is to be freed with find_free() in any case.
 * False: no memory.  Blocks for CALL_GREET_S for each program without an answer. */
bool find_programs(struct found *found);
/* Make @found the program at @path, which is not asked.  False: no memory. */
bool find_at(struct found *found, const char *path);
/* True if @program is @wanted. */
bool find_is_wanted(const struct found_program *program, const struct find_wanted *wanted);
/* Keep only @wanted programs in @found. */
void find_only(struct found *found, const struct find_wanted *wanted);
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
