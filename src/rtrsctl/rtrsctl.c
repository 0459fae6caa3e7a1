/* SPDX-License-Identifier: BSD-3-Clause */
/* The program: a command line to one command of a control socket, and its answer to text.  It knows
 * the words of all programs; which of them a program has, the program says. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call.h"
#include "ctl-json.h"
#include "find.h"
#include "number.h"
#include "resolve.h"
#include "rundir.h"
#include "say.h"
#include "status.h"
#include "std-fds.h"
#include "suggest.h"
#include "text.h"
#include "util.h"

enum { OPT_SOCKET = 256, OPT_JSON, OPT_WATCH, OPT_DUMP };

static const struct option options[] = {
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "watch", optional_argument, NULL, OPT_WATCH },
	{ "dump", no_argument, NULL, OPT_DUMP },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

static const char help[] =
"Usage: rtrsctl [OPTIONS] COMMAND\n"
"Ask and command an rtrs-server or nbdkit-rtrs-plugin that runs.\n"
"\n"
"  list                            names of exports, sessions and paths\n"
"  status                          what each export and session does now\n"
"  show                            states and properties of all of them\n"
"  stats                           counters, too\n"
"  stats reset                     count from 0\n"
"  session disconnect SESSION      its client comes back by itself\n"
"  path add PATH                   PATH: [SRC@]DST[:PORT]\n"
"  path remove|disconnect|reconnect PATH\n"
"  policy [POLICY]                 round-robin, min-inflight, min-latency\n"
"  max-reconnect-attempts [N]      -1: for ever\n"
"  export kick EXPORT              close it for all who have it open\n"
"  log-level [LEVEL]               error, warning, info or debug\n"
"\n"
"      --socket=PATH               the program's control socket\n"
"      --json                      the answer as it is, on one line\n"
"      --watch[=SECONDS]           again and again (default 1)\n"
"      --dump                      all of all programs, once\n"
"  -h, --help                      print this and exit\n"
"  -V, --version                   print the version and exit\n"
"\n"
"Exit status: 0 done, 1 refused or not reached, 2 a mistake above, 3 not all up.\n";

/* What is done with an answer. */
enum answer { ANSWER_TEXT, ANSWER_STATUS };

static const struct command {
	const char *name, *sends;	/* sends: NULL: its name */
	const char *arg;		/* the member that its argument becomes; NULL: it has
					 * none */
	bool needs_arg;
	bool asks;			/* changes nothing: of several programs all are asked */
	bool resolves;			/* names of hosts in its argument */
	const char *kind;		/* of program that has it; NULL: both */
	enum answer answer;
} commands[] = {
	{ .name = "list", .asks = true },
	{ .name = "show", .asks = true },
	{ .name = "stats", .asks = true },
	{ .name = "status", .asks = true, .sends = "stats", .answer = ANSWER_STATUS },
	{ .name = "stats reset" },
	{ .name = "session disconnect", .kind = RUNDIR_SERVER, .arg = "session", .needs_arg = true },
	{ .name = "path add", .kind = RUNDIR_NBDKIT, .arg = "path", .needs_arg = true,
	  .resolves = true },
	{ .name = "path remove", .kind = RUNDIR_NBDKIT, .arg = "path", .needs_arg = true },
	{ .name = "path disconnect", .arg = "path", .needs_arg = true },
	{ .name = "path reconnect", .kind = RUNDIR_NBDKIT, .arg = "path", .needs_arg = true },
	{ .name = "policy", .kind = RUNDIR_NBDKIT, .arg = "policy" },
	{ .name = "max-reconnect-attempts", .kind = RUNDIR_NBDKIT, .arg = "attempts" },
	{ .name = "export kick", .kind = RUNDIR_SERVER, .arg = "export", .needs_arg = true },
	{ .name = "log-level", .kind = RUNDIR_SERVER, .arg = "level" },
};

struct ctx {
	const char *socket;		/* NULL: not given */
	bool json, dump;
	unsigned watch_s;		/* 0: once */
	const struct command *command;
	const char *arg;
};

/* ---- command line ---- */

/* Find the command in @argv, which may be two words.  NULL: there is none. */
static const struct command *find_command(char **argv, int argc, int *used)
{
	for (unsigned i = 0; i < ARRAY_SIZE(commands); i++) {
		const char *name = commands[i].name, *second = strchr(name, ' ');
		size_t len = second ? (size_t)(second - name) : strlen(name);

		if (strlen(argv[0]) != len || strncmp(argv[0], name, len))
			continue;
		if (second && (argc < 2 || strcmp(argv[1], second + 1)))
			continue;
		/* "stats" is the beginning of another one. */
		if (!second && argc > 1 && !commands[i].arg)
			continue;
		*used = second ? 2 : 1;
		return &commands[i];
	}
	return NULL;
}

static int unknown_command(char **argv, int argc)
{
	const char *names[ARRAY_SIZE(commands)], *meant;
	char words[256];

	for (unsigned i = 0; i < ARRAY_SIZE(commands); i++)
		names[i] = commands[i].name;
	snprintf(words, sizeof(words), "%s%s%s", argv[0], argc > 1 ? " " : "", argc > 1 ? argv[1] : "");
	meant = suggest(words, strlen(words), names, ARRAY_SIZE(names));
	return say_error(EXIT_USAGE, "no command '%s'%s%s%s: see rtrsctl --help", words,
			 meant ? " (did you mean " : "", meant ? meant : "", meant ? "?)" : "");
}

static int parse_command(struct ctx *ctx, int argc, char **argv)
{
	int used = 0;

	if (!argc)
		return say_error(EXIT_USAGE, "no command: see rtrsctl --help");
	ctx->command = find_command(argv, argc, &used);
	if (!ctx->command)
		return unknown_command(argv, argc);
	argc -= used;
	argv += used;
	if (argc > (ctx->command->arg ? 1 : 0))
		return say_error(EXIT_USAGE, "%s: '%s' is one word too many: see rtrsctl --help",
				 ctx->command->name, argv[argc - 1]);
	ctx->arg = argc ? argv[0] : NULL;
	if (ctx->command->needs_arg && !ctx->arg)
		return say_error(EXIT_USAGE, "%s: which %s?", ctx->command->name, ctx->command->arg);
	return EXIT_DONE;
}

static int set_socket(struct ctx *ctx, const char *path)
{
	if (!*path)
		return say_error(EXIT_USAGE, "--socket=: expected the path of a control socket");
	ctx->socket = path;
	return EXIT_DONE;
}

static int set_watch(struct ctx *ctx, const char *text)
{
	ctx->watch_s = 1;
	if (text && !number_parse_u(text, 1, 3600, &ctx->watch_s))
		return say_error(EXIT_USAGE, "--watch=%s: expected a number of seconds from 1 to 3600",
				 text);
	return EXIT_DONE;
}

/* What getopt_long(), which is silent, has returned @opt for. */
static int bad_option(int opt, char **argv)
{
	const char *word = argv[optind - 1], *names[ARRAY_SIZE(options) - 1], *meant;

	if (opt == ':')
		return say_error(EXIT_USAGE, "%s: expected a value: see rtrsctl --help", word);
	if (strncmp(word, "--", 2))
		return say_error(EXIT_USAGE, "no option -%c: see rtrsctl --help", optopt);
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		names[i] = options[i].name;
	meant = suggest(word + 2, strcspn(word + 2, "="), names, ARRAY_SIZE(names));
	if (optopt)
		return say_error(EXIT_USAGE, "%s: expected no value: see rtrsctl --help", word);
	return say_error(EXIT_USAGE, "no option %s%s%s%s: see rtrsctl --help", word,
			 meant ? " (did you mean --" : "", meant ? meant : "", meant ? "?)" : "");
}

/* --json says how an error is told, wherever it stands. */
static void look_for_json(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		if (!strcmp(argv[i], "--json"))
			say_json();
	}
}

static bool is_negative(const char *word)
{
	return word[0] == '-' && word[1] >= '0' && word[1] <= '9';
}

/* -1: go on; else the program ends with it. */
static int parse(struct ctx *ctx, int argc, char **argv)
{
	/* To getopt() a number below 0 would be an option. */
	bool negative = argc > 1 && is_negative(argv[argc - 1]);
	int opt, rc = EXIT_DONE;

	argc -= negative;
	look_for_json(argc, argv);
	while (!rc && (opt = getopt_long(argc, argv, ":hV", options, NULL)) != -1) {
		switch (opt) {
		case OPT_SOCKET:
			rc = set_socket(ctx, optarg);
			break;
		case OPT_JSON:
			ctx->json = true;
			break;
		case OPT_WATCH:
			rc = set_watch(ctx, optarg);
			break;
		case OPT_DUMP:
			ctx->dump = true;
			break;
		case 'h':
			fputs(help, stdout);
			return EXIT_DONE;
		case 'V':
			printf("rtrsctl %s\n", PACKAGE_VERSION);
			return EXIT_DONE;
		default:
			return bad_option(opt, argv);
		}
	}
	if (rc)
		return rc;
	argc += negative;
	if (ctx->dump && argc > optind)
		return say_error(EXIT_USAGE, "--dump takes no command, and '%s' is one", argv[optind]);
	rc = ctx->dump ? EXIT_DONE : parse_command(ctx, argc - optind, argv + optind);
	return rc ? rc : -1;
}

/* ---- asking ---- */

/* NULL: it has been said why. */
static json_t *ask(const struct ctx *ctx, const char *command, const char *member)
{
	json_t *request = json_pack("{s:o}", "command", ctl_json_text(command)), *answer, *arg;
	char err[1024];

	if (member && ctx->arg) {
		arg = ctl_json_text(ctx->arg);
		if (arg && strcmp(json_string_value(arg), ctx->arg)) {
			say_error(EXIT_REFUSED, "'%s' is no UTF-8: write names as \"rtrsctl list\" does", ctx->arg);
			json_decref(arg);
			json_decref(request);
			return NULL;
		}
		json_object_set_new(request, member, arg);
	}
	answer = call_ask(ctx->socket, request, err, sizeof(err));
	json_decref(request);
	if (!answer)
		say_error(EXIT_REFUSED, "%s", err);
	return answer;
}

static int status_of(const struct ctx *ctx, const json_t *answer)
{
	return ctx->command->answer == ANSWER_STATUS && !status_is_well(answer) ? EXIT_UNWELL : EXIT_DONE;
}

static void print(const struct ctx *ctx, const json_t *answer)
{
	if (ctx->json) {
		json_dumpf(answer, stdout, JSON_COMPACT);
		putchar('\n');
	} else {
		text_object(answer);
	}
	std_out_flush();
}

static void clear(const struct ctx *ctx)
{
	if (ctx->watch_s && !ctx->json && isatty(STDOUT_FILENO))
		fputs("\033[H\033[J", stdout);
}

/* Ask each program of @found.  How many have answered. */
static size_t ask_all(struct ctx *ctx, const struct found *found, const char *command, const char *member,
		      json_t **answers)
{
	size_t n = 0;

	for (size_t i = 0; i < found->n; i++) {
		ctx->socket = found->path[i];
		answers[i] = ask(ctx, command, member);
		n += answers[i] != NULL;
	}
	return n;
}

static void drop_all(const struct found *found, json_t **answers)
{
	for (size_t i = 0; i < found->n; i++)
		json_decref(answers[i]);
}

/* The table of a program, under its name where there are several. */
static void print_status(const struct found *found, const json_t *before, const json_t *now)
{
	const char *program = json_string_value(json_object_get(now, "program"));
	char line[256];

	if (found->n > 1)
		printf("%s %lld\n", text_safe(program ? program : "-", line, sizeof(line)),
		       (long long)json_integer_value(json_object_get(now, "pid")));
	status_print(before, now);
}

/* Exit status: the highest of all of them. */
static int print_all(const struct ctx *ctx, const struct found *found, json_t **before, json_t **now)
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
			print(ctx, now[i]);
		status = MAX(status, status_of(ctx, now[i]));
	}
	return status;
}

/* Rates need two answers. */
static int run_status(struct ctx *ctx, const struct found *found)
{
	json_t *before[FIND_MAX], *now[FIND_MAX];
	int status = EXIT_REFUSED;
	size_t n = ask_all(ctx, found, "stats", NULL, before);

	while (n) {
		sleep(ctx->watch_s ? ctx->watch_s : 1);
		n = ask_all(ctx, found, "stats", NULL, now);
		if (n)
			clear(ctx);
		status = print_all(ctx, found, before, now);
		drop_all(found, before);
		memcpy(before, now, sizeof(before));
		if (std_out_flush() < 0 || !ctx->watch_s)
			break;
	}
	drop_all(found, before);
	return status;
}

static int run(struct ctx *ctx, const struct found *found)
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
			clear(ctx);
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
			 !kind ? "program" : strcmp(kind, RUNDIR_SERVER) ? "nbdkit-rtrs-plugin" : "rtrs-server",
			 dir ? dir : "a directory of this user", parent ? " or beside it in " : "",
			 parent ? parent : "");
}

/* Several, of which one is meant. */
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
		ctx->command = &commands[2];	/* stats */
	assert(ctx->command);
	/* One that has the command, if any has: another one says that it has not. */
	if (found.n > 1 && ctx->command->kind)
		find_only(&found, ctx->command->kind);
	if (!found.n)
		status = none_found(ctx);
	else if (found.n > 1 && !ctx->command->asks)
		status = several_found(ctx, &found);
	else
		status = run(ctx, &found);
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
			return say_error(EXIT_REFUSED, "%s '%s': %s", ctx->command->name, ctx->arg, err);
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
	status = parse(&ctx, argc, argv);
	if (status < 0)
		status = run_resolved(&ctx);
	/* On stderr with --json, too. */
	rc = std_out_flush();
	if (rc < 0 && status != EXIT_USAGE) {
		fprintf(stderr, "rtrsctl: standard output: %s\n", strerror(-rc));
		status = EXIT_REFUSED;
	}
	return status;
}
