/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line: options and a command.  Main thread; errors are told by say.h. */
#ifndef ARGS_H
#define ARGS_H

#include <stdbool.h>

#include "opt.h"

/* What is done with an answer. */
enum answer { ANSWER_TEXT, ANSWER_STATUS };

struct command {
	const char *name, *sends;	/* sends: NULL: its name */
	/* the member that its argument becomes; NULL: it has none */
	const char *arg;
	bool needs_arg;
	bool asks;			/* changes nothing: of several programs all are asked */
	bool resolves;			/* names of hosts in its argument */
	const char *kind;		/* of program that has it; NULL: both */
	enum answer answer;
	const char *arg_text;		/* the argument in --help; NULL: none */
	/* NULL: --help has the command on the line of the next one */
	const char *help;
};

struct ctx {
	const char *socket;		/* NULL: not given */
	bool json, dump;
	unsigned watch_s;		/* 0: once */
	const struct command *command;
	const char *arg;
};

extern const struct opt_table args_table;
/* "stats", which --dump asks for. */
extern const struct command *const command_stats;

/* -1: go on; else the program ends with this exit status.  With --dump there is no command. */
int args_parse(struct ctx *ctx, int argc, char **argv);

#endif
