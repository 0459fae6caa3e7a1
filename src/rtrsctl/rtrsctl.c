/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: turns a command line into a command to a control socket, and the answer into
 * text. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call.h"
#include "ctl-json.h"
#include "find.h"
#include "args.h"
#include "resolve.h"
#include "rundir.h"
#include "say.h"
#include "status.h"
#include "std-fds.h"
#include "text.h"
#include "util.h"

/* ---- asking ---- */

/* Send @command to the program of ctx->socket, with ctx->arg as @member.  NULL: the user has the
 * reason. */
static json_t *ask_program(const struct ctx *ctx, const char *command, const char *member)
{
	json_t *request = json_pack("{s:o}", "command", ctl_json_text(command)), *answer, *arg;
	char err[1024];

	if (member && ctx->arg) {
		arg = ctl_json_text(ctx->arg);
		if (arg && strcmp(json_string_value(arg), ctx->arg)) {
			say_error(EXIT_REFUSED,
				  "'%s' is no UTF-8: write names as \"rtrsctl list\" does",
				  ctx->arg);
			json_decref(arg);
			json_decref(request);
			return NULL;
		}
		json_object_set_new(request, member, arg);
	}
	if (ctx->force)
		json_object_set_new(request, "force", ctl_json_text("yes"));
	answer = call_ask(ctx->socket, request, err, sizeof(err));
	json_decref(request);
	if (!answer)
		say_error(EXIT_REFUSED, "%s", err);
	return answer;
}

static int answer_status(const struct ctx *ctx, const json_t *answer)
{
	return ctx->command->answer == ANSWER_STATUS && !status_is_well(answer) ? EXIT_UNWELL :
		EXIT_DONE;
}

static void answer_print(const struct ctx *ctx, const json_t *answer)
{
	if (ctx->json) {
		json_dumpf(answer, stdout, JSON_COMPACT);
		putchar('\n');
	} else {
		text_object(answer);
	}
	std_out_flush();
}

static void screen_clear(const struct ctx *ctx)
{
	if (ctx->watch_s && !ctx->json && isatty(STDOUT_FILENO))
		fputs("\033[H\033[J", stdout);
}

/* Send @command to each program of @found.  Returns how many have answered. */
static size_t ask_all(struct ctx *ctx, const struct found *found, const char *command,
		      const char *member, json_t **answers)
{
	size_t n = 0;

	for (size_t i = 0; i < found->n; i++) {
		ctx->socket = found->path[i];
		answers[i] = ask_program(ctx, command, member);
		n += answers[i] != NULL;
	}
	return n;
}

static void drop_all(const struct found *found, json_t **answers)
{
	for (size_t i = 0; i < found->n; i++)
		json_decref(answers[i]);
}

/* Print the table of a program, under the program's name if several were found. */
static void print_status(const struct found *found, const json_t *before, const json_t *now)
{
	const char *program = json_string_value(json_object_get(now, "program"));
	char line[256];

	if (found->n > 1)
		printf("%s %lld\n", text_safe(program ? program : "-", line, sizeof(line)),
		       (long long)json_integer_value(json_object_get(now, "pid")));
	status_print(before, now);
}

/* Returns the highest of all exit statuses. */
static int print_all(const struct ctx *ctx, const struct found *found, json_t **before,
		     json_t **now)
{
	int status = EXIT_DONE;
	bool first = true;

	for (size_t i = 0; i < found->n; i++) {
		if (!now[i]) {
			status = MAX(status, EXIT_REFUSED);
			continue;
		}
		if (!first && !ctx->json)
			putchar('\n');
		first = false;
		if (before && before[i])
			print_status(found, before[i], now[i]);
		else if (!before)
			answer_print(ctx, now[i]);
		status = MAX(status, answer_status(ctx, now[i]));
	}
	return status;
}

/* Print tables from two answers each, which the rates need. */
static int run_status(struct ctx *ctx, const struct found *found)
{
	json_t *before[FIND_MAX], *now[FIND_MAX];
	int status = EXIT_REFUSED;
	size_t n = ask_all(ctx, found, "stats", NULL, before);

	while (n) {
		sleep(ctx->watch_s ? ctx->watch_s : 1);
		n = ask_all(ctx, found, "stats", NULL, now);
		if (n)
			screen_clear(ctx);
		status = print_all(ctx, found, before, now);
		drop_all(found, before);
		memcpy(before, now, sizeof(before));
		if (std_out_flush() < 0 || !ctx->watch_s)
			break;
	}
	drop_all(found, before);
	return status;
}

static int run_command(struct ctx *ctx, const struct found *found)
{
	const struct command *c = ctx->command;
	json_t *now[FIND_MAX];
	int status;
	size_t n;

	if (c->answer == ANSWER_STATUS && !ctx->json)
		return run_status(ctx, found);
	for (;;) {
		n = ask_all(ctx, found, c->sends ? c->sends : c->name, c->arg, now);
		if (n)
			screen_clear(ctx);
		status = print_all(ctx, found, NULL, now);
		drop_all(found, now);
		if (std_out_flush() < 0 || !n || !ctx->watch_s)
			return status;
		sleep(ctx->watch_s);
	}
}

/* ---- which program ---- */

static int none_found(const struct ctx *ctx)
{
	const char *dir = rundir_default(), *parent = rundir_parent(), *kind = ctx->command->kind;

	return say_error(EXIT_REFUSED, "no %s with a control socket in %s%s%s: see --socket",
			 !kind ? "program" : strcmp(kind, RUNDIR_SERVER) ?
			 "nbdkit-rtrs-plugin or rtrs-nbd" : "rtrs-server",
			 dir ? dir : "a directory of this user", parent ? " or beside it in " : "",
			 parent ? parent : "");
}

/* Ask the user to choose one of several programs. */
static int several_found(const struct ctx *ctx, const struct found *found)
{
	char command[512], arg[256] = "";

	if (ctx->arg)
		text_safe(ctx->arg, arg, sizeof(arg));
	snprintf(command, sizeof(command), "%s%s%s", ctx->command->name, *arg ? " " : "", arg);
	return say_choice("several programs run: choose one", command, found->path, found->n);
}

static int run_found(struct ctx *ctx)
{
	struct found found = { .n = 0 };
	int status;

	if (!ctx->socket)
		find_sockets(&found);
	else
		found.path[found.n++] = strdup(ctx->socket);
	if (ctx->dump)
		ctx->command = command_stats;
	assert(ctx->command);
	/* Of several programs choose only among programs with this command; a single program would
	 * refuse. */
	if (found.n > 1 && ctx->command->kind)
		find_only(&found, ctx->command->kind);
	if (!found.n)
		status = none_found(ctx);
	else if (found.n > 1 && !ctx->command->asks)
		status = several_found(ctx, &found);
	else
		status = run_command(ctx, &found);
	find_free(&found);
	return status;
}

static int run_resolved(struct ctx *ctx)
{
	char err[512], *path = NULL;
	int status;

	if (ctx->command && ctx->command->resolves) {
		path = resolve_path(ctx->arg, err, sizeof(err));
		if (!path)
			return say_error(EXIT_REFUSED, "%s '%s': %s", ctx->command->name, ctx->arg,
					 err);
		ctx->arg = path;
	}
	status = run_found(ctx);
	free(path);
	return status;
}

int main(int argc, char **argv)
{
	struct ctx ctx = { 0 };
	int status, rc;

	/* ORDER: before anything else is opened. */
	if (std_fds_open() < 0)
		return EXIT_REFUSED;
	status = args_parse(&ctx, argc, argv);
	if (status < 0)
		status = run_resolved(&ctx);
	free(ctx.words);
	/* This error goes to stderr with --json, too. */
	rc = std_out_flush();
	if (rc < 0 && status != EXIT_USAGE) {
		fprintf(stderr, "rtrsctl: standard output: %s\n", strerror(-rc));
		status = EXIT_REFUSED;
	}
	return status;
}
