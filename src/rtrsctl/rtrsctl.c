/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: turns a command line into a command to control sockets, and the answers into
 * text. */
#include <config.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "answer.h"
#include "args.h"
#include "check.h"
#include "ctl-json.h"
#include "find.h"
#include "process.h"
#include "say.h"
#include "signals.h"
#include "state.h"
#include "text.h"
#include "util.h"
#include "views.h"

/* ---- asking ---- */

/* Set @member of @request to @text, a word of the user; NULL: do nothing.  False: the word cannot
 * be sent, as @err says. */
static bool put_word(json_t *request, const char *member, const char *text, char *err, size_t len)
{
	json_t *arg = text ? ctl_json_text(text) : NULL;

	if (arg && strcmp(json_string_value(arg), text)) {
		snprintf(err, len, "'%s' is not UTF-8: write names as \"rtrsctl list\" prints them",
			 text);
		json_decref(arg);
		return false;
	}
	if (text)
		json_object_set_new(request, member, arg);
	return true;
}

/* Send @command, with the words of @ctx, to the program at @socket.  NULL: @err has the reason. */
static json_t *ask_program(const struct ctx *ctx, const char *socket, const char *command,
			   char *err, size_t len)
{
	json_t *request, *answer = NULL;
	char forced[64];

	snprintf(forced, sizeof(forced), "%s%s", command, ctx->force ? " force" : "");
	request = json_pack("{s:o}", "command", ctl_json_text(forced));
	if (put_word(request, ctx->command->arg, ctx->arg, err, len) &&
	    put_word(request, ctx->command->second, ctx->second, err, len))
		answer = call_ask(socket, request, CALL_PATIENCE_S, err, len);
	json_decref(request);
	return answer;
}

/* Ask the program at @socket for the answer of the command.  About clients a server tells with its
 * counters, and rtrs-nbd has a command of its own; the answers of others have none. */
static json_t *ask_one(const struct ctx *ctx, const char *socket, char *err, size_t len)
{
	const struct command *c = ctx->command;
	json_t *answer = ask_program(ctx, socket, c->sends ? c->sends : c->name, err, len);

	if (!answer || c->answer != ANSWER_CLIENTS || !answer_is_nbd(answer))
		return answer;
	json_decref(answer);
	return ask_program(ctx, socket, "clients", err, len);
}

/* Ask each program of @found, and tell the user of programs without an answer.  Returns the number
 * of answers. */
static size_t ask_all(const struct ctx *ctx, const struct found *found, json_t **answers)
{
	static char err[TEXT_MAX_BYTES];
	size_t n = 0;

	for (size_t i = 0; i < found->n; i++) {
		answers[i] = ask_one(ctx, found->at[i].path, err, sizeof(err));
		if (!answers[i])
			say_error(EXIT_FAILED, "%s", err);
		n += answers[i] != NULL;
	}
	return n;
}

/* Room for an answer of each program.  Without memory the process ends, before any output. */
static json_t **new_answers(const struct found *found)
{
	json_t **answers = calloc(found->n, sizeof(json_t *));

	if (!answers)
		exit(say_error(EXIT_FAILED, "out of memory"));
	return answers;
}

static void drop_all(const struct found *found, json_t **answers)
{
	for (size_t i = 0; i < found->n; i++)
		json_decref(answers[i]);
}

/* ---- printing ---- */

static int answer_status(const struct ctx *ctx, const json_t *answer)
{
	if (ctx->command->answer == ANSWER_EXPLAIN)
		return explain_may(answer) ? EXIT_DONE : EXIT_FAILED;
	return ctx->command->answer == ANSWER_STATUS && state_of_all(answer) != HEALTH_UP ?
		EXIT_UNWELL : EXIT_DONE;
}

static void answer_print(const struct ctx *ctx, const json_t *answer)
{
	if (ctx->json)
		text_json(json_incref((json_t *)answer));
	else if (ctx->command->answer == ANSWER_EXPLAIN)
		explain_print(answer);
	else
		text_object(answer);
	std_out_flush();
}

static void screen_clear(const struct ctx *ctx)
{
	if (ctx->watch_s && !ctx->json && isatty(STDOUT_FILENO))
		fputs("\033[H\033[J", stdout);
}

/* Print the table of a program, under the program's name if several were found. */
static void print_table(const struct ctx *ctx, const struct found *found, const json_t *before,
			const json_t *now)
{
	char line[512];

	if (found->n > 1 && !ctx->json)
		printf("%s, process %lld\n", text_program(now, line, sizeof(line)),
		       (long long)answer_number(now, "pid"));
	if (ctx->command->answer == ANSWER_STATUS)
		status_print(before, now);
	else
		clients_print(before, now, ctx->json);
}

/* Returns the highest of all exit statuses. */
static int print_all(const struct ctx *ctx, const struct found *found, json_t **before,
		     json_t **now)
{
	int status = EXIT_DONE;
	bool first = true;

	for (size_t i = 0; i < found->n; i++) {
		if (!now[i]) {
			status = MAX(status, EXIT_FAILED);
			continue;
		}
		if (!first && !ctx->json)
			putchar('\n');
		first = false;
		if (before && before[i])
			print_table(ctx, found, before[i], now[i]);
		else if (!before)
			answer_print(ctx, now[i]);
		status = MAX(status, answer_status(ctx, now[i]));
	}
	return status;
}

/* ---- commands ---- */

/* True if @answer is of a program without clients; NULL: it may have some. */
static bool is_other(const json_t *answer)
{
	return answer && !answer_is_server(answer) && !answer_is_nbd(answer);
}

/* Tell a user who has asked only programs without clients that there is nobody to list: @answer is
 * of the one at @path. */
static void say_no_list(const json_t *answer, const char *path)
{
	const char *program = answer_string(answer, "program");

	say_error(EXIT_FAILED, "%s has no list of NBD clients: %s (%s)", program,
		  strcmp(program, "nbdkit-rtrs-plugin") ? "it has a block device" :
		  "nbdkit serves them", path);
}

/* Leave in @found, and in @answers, the programs that have clients, rtrs-nbd and rtrs-server.
 * Returns the number of answers. */
static size_t drop_others(struct found *found, json_t **answers)
{
	size_t n = 0, nanswers = 0;
	bool none = true;

	for (size_t i = 0; i < found->n; i++)
		none = none && is_other(answers[i]);
	if (none && found->n)
		say_no_list(answers[0], found->at[0].path);
	for (size_t i = 0; i < found->n; i++) {
		if (is_other(answers[i])) {
			json_decref(answers[i]);
			continue;
		}
		nanswers += answers[i] != NULL;
		found->at[n] = found->at[i];
		answers[n++] = answers[i];
	}
	found->n = n;
	return nanswers;
}

/* Print tables from two answers each, which the rates need. */
static int run_looks(const struct ctx *ctx, const struct found *all)
{
	json_t **before = new_answers(all), **now = new_answers(all), **swap;
	struct found_program *programs = calloc(all->n, sizeof(*programs));
	struct found asked = { .at = programs, .n = all->n };
	int status = EXIT_FAILED;
	size_t n;

	if (!programs)
		exit(say_error(EXIT_FAILED, "out of memory"));
	memcpy(programs, all->at, all->n * sizeof(*programs));
	n = ask_all(ctx, &asked, before);
	if (ctx->command->answer == ANSWER_CLIENTS)
		n = drop_others(&asked, before);
	while (n) {
		sleep(ctx->watch_s ? ctx->watch_s : 1);
		n = ask_all(ctx, &asked, now);
		if (n)
			screen_clear(ctx);
		status = print_all(ctx, &asked, before, now);
		drop_all(&asked, before);
		swap = before;
		before = now;
		now = swap;
		if (std_out_flush() < 0 || !ctx->watch_s)
			break;
	}
	drop_all(&asked, before);
	free(programs);
	free(before);
	free(now);
	return status;
}

static void check_program(struct check *check, const struct found_program *program)
{
	char err[1024];
	json_t *answer = call_program(program, "show", err, sizeof(err));
	struct stat st;

	if (answer) {
		check_add(check, answer);
		/* The socket is of the program's user. */
		check_keys(check, answer, stat(program->path, &st) ? geteuid() : st.st_uid);
	} else {
		check_add_silent(check, err);
	}
	json_decref(answer);
}

/* Print a line about all programs together. */
static int run_check(const struct ctx *ctx, const struct found *found)
{
	for (;;) {
		struct check check = { 0 };
		enum check_level level;

		for (size_t i = 0; i < found->n; i++)
			check_program(&check, &found->at[i]);
		check_print(&check, ctx->json);
		level = check.level;
		check_fini(&check);
		if (std_out_flush() < 0 || !ctx->watch_s)
			return (int)level;
		sleep(ctx->watch_s);
	}
}

static int run_once(const struct ctx *ctx, const struct found *found)
{
	json_t **now = new_answers(found);
	int status;
	size_t n;

	for (;;) {
		n = ask_all(ctx, found, now);
		if (n)
			screen_clear(ctx);
		status = print_all(ctx, found, NULL, now);
		drop_all(found, now);
		if (std_out_flush() < 0 || !n || !ctx->watch_s)
			break;
		sleep(ctx->watch_s);
	}
	free(now);
	return status;
}

/* Send the command of @ctx to each program of @found, and print the answers, once or until the
 * output ends.  Returns the exit status, the highest of all. */
static int run_command(const struct ctx *ctx, const struct found *found)
{
	switch (ctx->command->answer) {
	case ANSWER_CHECK:
		return run_check(ctx, found);
	case ANSWER_CLIENTS:
		return run_looks(ctx, found);
	case ANSWER_STATUS:
		return ctx->json ? run_once(ctx, found) : run_looks(ctx, found);
	case ANSWER_TOP:
		return top_run(ctx);
	case ANSWER_DOCTOR:		/* see run_found() */
	case ANSWER_TEXT:
	case ANSWER_EXPLAIN:
		break;
	}
	return run_once(ctx, found);
}

/* ---- main ---- */

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
	status = find_for_command(ctx, &found);
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
	say_begin();
	status = args_parse(&ctx, argc, argv);
	if (status < 0)
		status = run_found(&ctx);
	free(ctx.words);
	/* This error goes to stderr with --json, too. */
	return std_out_end("rtrsctl", status);
}
