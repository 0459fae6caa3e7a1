/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line: options and a command.  Main thread; errors go through say.h. */
#ifndef ARGS_H
#define ARGS_H

#include <stdbool.h>

#include "find.h"
#include "opt.h"

/* How an answer is printed: as text_object(), check.h or one of views.h does. */
enum answer {
	ANSWER_TEXT, ANSWER_STATUS, ANSWER_CHECK, ANSWER_CLIENTS, ANSWER_EXPLAIN, ANSWER_TOP,
	ANSWER_DOCTOR
};

struct command {
	const char *name, *sends;	/* @sends, the command to the program; NULL: @name */
	/* the member of the request with the argument; NULL: no argument */
	const char *arg;
	const char *second;		/* likewise, of another argument behind */
	unsigned needs;			/* of both arguments */
	bool asks;			/* changes nothing: if several programs run, all are
					 * asked */
	bool takes_force;		/* --force */
	bool takes_words;		/* one or more, behind the argument; joined by ',' */
	const char *no_more;		/* why no further word; NULL: see --help */
	const char *kind;		/* of program with this command; NULL: both */
	enum answer answer;
	const char *arg_text;		/* the argument in --help; NULL: none */
	/* NULL: --help has this command on the line of the next */
	const char *help;
};

struct ctx {
	const char *socket;		/* NULL: not given */
	struct find_wanted wanted;	/* all 0 with @socket */
	bool json, dump, force;
	unsigned watch_s;		/* 0: once */
	const struct command *command;
	char **typed;			/* [ntyped]: the words of the command, and behind it */
	int ntyped;
	const char *arg, *second;	/* NULL: not given */
	char *words;			/* @arg, if words were joined; the caller frees the text */
};

extern const struct opt_table args_table;
/* "stats", the command of --dump. */
const struct command *command_stats(void);

/* Read the command line into @ctx.  -1: go on; else the exit status of the program.  With --dump
 * ctx->command is NULL. */
int args_parse(struct ctx *ctx, int argc, char **argv);

#endif
