/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: turns a command line into a command to control sockets, and the answers into
 * text. */
#include <config.h>

#include <assert.h>
#include <stdlib.h>

#include "args.h"
#include "doctor.h"
#include "find.h"
#include "run.h"
#include "signals.h"
#include "std-fds.h"
#include "which.h"

static int run_found(struct ctx *ctx)
{
	struct found found = { .n = 0 };
	int status;

	if (ctx->dump)
		ctx->command = command_stats();
	assert(ctx->command);
	/* It looks at a machine without any program, too. */
	if (ctx->command->answer == ANSWER_DOCTOR)
		return doctor_run(ctx);
	status = which_programs(ctx, &found);
	if (status == EXIT_DONE)
		status = run_command(ctx, &found);
	find_free(&found);
	return status;
}

int main(int argc, char **argv)
{
	struct ctx ctx = { 0 };
	int status;

	/* ORDER: before anything else is opened. */
	if (std_fds_open() < 0)
		return EXIT_FAILED;
	signals_begin();
	status = args_parse(&ctx, argc, argv);
	if (status < 0)
		status = run_found(&ctx);
	free(ctx.words);
	/* This error goes to stderr with --json, too. */
	return std_out_end("rtrsctl", status);
}
