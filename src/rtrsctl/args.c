/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the tables of options and of commands.  The tables have the commands of all programs; a
 * program itself refuses the commands of others. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "names.h"
#include "opt-rows.h"
#include "say.h"
#include "unix-sock.h"
#include "util.h"

#define COLUMN 36

/* ---- the tables ---- */

static const struct command commands[] = {
	{ .name = "status", .asks = true, .sends = "stats", .answer = ANSWER_STATUS,
	  .help = "current work of each export and session" },
	{ .name = "top", .asks = true, .answer = ANSWER_TOP,
	  .help = "the same as a live view, with history" },
	{ .name = "check", .asks = true, .sends = "show", .answer = ANSWER_CHECK,
	  .help = "one line for monitoring, exit status 0 to 3" },
	{ .name = "doctor", .asks = true, .answer = ANSWER_DOCTOR, .arg = "config",
	  .arg_text = "[FILE]", .help = "find wrong settings of this machine" },
	{ .name = "clients", .asks = true, .sends = "stats", .answer = ANSWER_CLIENTS,
	  .help = "connected clients and their throughput" },
	{ .name = "explain", .kind = RUNDIR_SERVER, .arg = "export", .needs = 2,
	  .second = "client", .answer = ANSWER_EXPLAIN, .arg_text = "EXPORT CLIENT",
	  .help = "who may open it, and why not" },
	{ .name = "list", .asks = true },
	{ .name = "show", .asks = true },
	{ .name = "stats", .asks = true, .help = "names; states, too; counters, too" },
	{ .name = "stats reset", .help = "count from 0" },
	{ .name = "session disconnect", .kind = RUNDIR_SERVER, .arg = "session", .needs = 1,
	  .arg_text = "SESSION", .help = "the client reconnects by itself" },
	{ .name = "path add", .kind = RUNDIR_NBDKIT, .arg = "path", .needs = 1 },
	{ .name = "path remove", .kind = RUNDIR_NBDKIT, .arg = "path", .needs = 1 },
	{ .name = "path disconnect", .arg = "path", .needs = 1 },
	{ .name = "path reconnect", .kind = RUNDIR_NBDKIT, .arg = "path", .needs = 1,
	  .arg_text = "PATH", .help = "" },
	{ .name = "path save", .kind = RUNDIR_NBDKIT, .help = "save paths added at run time" },
	{ .name = "server accept", .kind = RUNDIR_NBDKIT,
	  .help = "take the copy that answers for a server" },
	{ .name = "policy", .kind = RUNDIR_NBDKIT, .arg = "policy", .arg_text = "[POLICY]",
	  .help = "round-robin, min-inflight, min-latency" },
	{ .name = "max-reconnect-attempts", .kind = RUNDIR_NBDKIT, .arg = "attempts",
	  .arg_text = "[N]", .help = "-1: forever" },
	{ .name = "export add", .kind = RUNDIR_SERVER, .arg = "export", .needs = 1,
	  .arg_text = "NAME=PATH[,FLAG]...", .help = "export PATH, too",
	  .no_more = "expected NAME=PATH as one word" },
	{ .name = "export remove", .kind = RUNDIR_SERVER, .arg = "export", .needs = 1,
	  .takes_force = true },
	{ .name = "export resize", .kind = RUNDIR_SERVER, .arg = "export", .needs = 1,
	  .takes_force = true, .arg_text = "EXPORT", .help = "",
	  .no_more = "an export has the size of its storage: give that the new size first "
	  "(truncate, lvextend, rbd resize)" },
	{ .name = "export kick", .kind = RUNDIR_SERVER, .arg = "export", .needs = 1,
	  .second = "client", .arg_text = "EXPORT [CLIENT]",
	  .help = "close it for all clients, or for one" },
	{ .name = "export snapshot", .kind = RUNDIR_SERVER, .arg = "export", .needs = 1,
	  .second = "snapshot", .arg_text = "EXPORT [NAME]",
	  .help = "a copy of now, if its storage can" },
	{ .name = "export break", .kind = RUNDIR_SERVER, .arg = "export", .needs = 1,
	  .takes_force = true, .arg_text = "EXPORT", .help = "take its lock from a dead server" },
	{ .name = "export set", .kind = RUNDIR_SERVER, .arg = "export", .needs = 1,
	  .takes_words = true, .takes_force = true, .arg_text = "EXPORT KEY=VALUE...",
	  .help = "iops, bps, allow, priority ..." },
	{ .name = "reload", .takes_force = true,
	  .help = "read the files again, apply the changes" },
	{ .name = "save", .kind = RUNDIR_SERVER, .help = "save exports added at run time" },
	{ .name = "log-level", .kind = RUNDIR_SERVER, .arg = "level", .arg_text = "[LEVEL]",
	  .help = "error, warning, info or debug" },
};

const struct command *command_stats(void)
{
	const struct command *c = commands;

	while (strcmp(c->name, "stats"))
		c++;
	return c;
}

/* Commands that share a line are printed as "list|show|stats", or as "path
 * remove|disconnect|reconnect PATH". */
static void print_commands(FILE *out)
{
	char line[128] = "";

	for (unsigned i = 0; i < ARRAY_SIZE(commands); i++) {
		const struct command *c = &commands[i];
		const char *space = strchr(c->name, ' ');
		const char *more = *line && space ? space + 1 : c->name;
		size_t len = strlen(line);

		snprintf(line + len, sizeof(line) - len, "%s%s%s%s", len ? "|" : "  ", more,
			 c->arg_text ? " " : "", c->arg_text ? c->arg_text : "");
		if (!c->help)
			continue;
		if (*c->help)
			fprintf(out, "%-*s%s\n", COLUMN, line, c->help);
		else
			fprintf(out, "%s\n", line);
		line[0] = '\0';
	}
	fputs("\n", out);
}

#define FIELD(field) OPT_FIELD(struct ctx, field)

static const struct opt rows[] = {
	{ .name = "socket", .type = OPT_TEXT, FIELD(socket), .arg = "PATH",
	  .of = "the path of a control socket", .call = unix_sock_check, .holds = OPT_AT_START,
	  .help = "the program's control socket" },
	{ .name = "server", .type = OPT_FLAG, FIELD(wanted.server), .holds = OPT_AT_START,
	  .help = "only programs that are rtrs-server" },
	{ .name = "gateway", .type = OPT_FLAG, FIELD(wanted.gateway), .holds = OPT_AT_START,
	  .help = "only gateways" },
	{ .name = "pid", .type = OPT_NUMBER, FIELD(wanted.pid), .arg = "PID", .least = 1,
	  .most = 1 << 22 /* PID_MAX_LIMIT of Linux */, .holds = OPT_AT_START,
	  .help = "only the program with this number" },
	{ .name = "name", .type = OPT_TEXT, FIELD(wanted.name), .arg = "NAME",
	  .of = "the name of a program", .holds = OPT_AT_START,
	  .help = "only programs with this name" },
	{ .name = "json", .type = OPT_FLAG, FIELD(json), .holds = OPT_AT_START,
	  .help = "print the answer as JSON, on one line" },
	{ .name = "watch", .type = OPT_NUMBER, FIELD(watch_s), .arg = "SECONDS", .of = "seconds",
	  .least = 1, .most = 3600, .optional = true, .fallback = "1", .holds = OPT_AT_START,
	  .help = "repeat the command" },
	{ .name = "dump", .type = OPT_FLAG, FIELD(dump), .holds = OPT_AT_START,
	  .help = "print the stats of all programs, once" },
	{ .name = "force", .type = OPT_FLAG, FIELD(force), .holds = OPT_AT_START,
	  .help = "even if in use or locked by others" },
	{ OPT_ROW_HELP }, { OPT_ROW_VERSION },
};

const struct opt_table args_table = {
	.program = "rtrsctl",
	.rows = rows,
	.n = ARRAY_SIZE(rows),
	.dashes = "--",
	.head = "Usage: rtrsctl [OPTIONS] COMMAND\n"
		"Query and control a running rtrs-server, nbdkit-rtrs-plugin, rtrs-nbd or\n"
		"rtrs-attach.\n"
		"\n",
	.body = print_commands,
	.tail =
	"\nExit status: 0 done, 1 refused or not reached, 2 wrong usage, 3 not all up.\n",
	.column = COLUMN,
};

/* ---- the command ---- */

/* Find the command in @argv, which may be two words, @used.  NULL: no such command. */
static const struct command *find_command(char **argv, int argc, int *used)
{
	for (unsigned i = 0; i < ARRAY_SIZE(commands); i++) {
		const char *name = commands[i].name, *second = strchr(name, ' ');
		size_t len = second ? (size_t)(second - name) : strlen(name);

		if (strlen(argv[0]) != len || strncmp(argv[0], name, len))
			continue;
		if (second && (argc < 2 || strcmp(argv[1], second + 1)))
			continue;
		/* "stats" is the beginning of another command, too. */
		if (!second && argc > 1 && !commands[i].arg)
			continue;
		*used = second ? 2 : 1;
		return &commands[i];
	}
	return NULL;
}

/* The only command whose second word is @word; NULL: there is none, or several. */
static const char *command_of(const char *word)
{
	const char *only = NULL;

	for (unsigned i = 0; i < ARRAY_SIZE(commands); i++) {
		const char *second = strchr(commands[i].name, ' ');

		if (!second || strcmp(second + 1, word))
			continue;
		if (only)
			return NULL;
		only = commands[i].name;
	}
	return only;
}

/* True if @command has two words, of which the first is @word. */
static bool is_of_group(const struct command *command, const char *word)
{
	size_t n = strlen(word);

	return !strncmp(command->name, word, n) && command->name[n] == ' ';
}

/* The words of other programs for the second word of a command. */
static const char *word_of_others(const char *word)
{
	static const struct {
		const char *others, *ours;
	} words[] = {
		{ "rm", "remove" }, { "del", "remove" }, { "delete", "remove" },
		{ "create", "add" }, { "new", "add" }, { "change", "set" }, { "edit", "set" },
		{ "limit", "set" }, { "grow", "resize" },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(words); i++) {
		if (!strcmp(words[i].others, word))
			return words[i].ours;
	}
	return word;
}

/* Refuse @word, which is no second word of the @group: a nearest name may be the opposite of what
 * is meant.  0: there is no such group. */
static int refuse_in_group(const char *group, const char *word)
{
	const char *ours = word ? word_of_others(word) : "";
	size_t n = strlen(group);
	char all[256] = "";

	for (unsigned i = 0; i < ARRAY_SIZE(commands); i++) {
		const char *name = commands[i].name;
		size_t len = strlen(all);

		if (!is_of_group(&commands[i], group))
			continue;
		if (ours != word && !strcmp(name + n + 1, ours))
			return say_error(EXIT_USAGE, "no command '%s %s' (did you mean %s?): see "
					 "rtrsctl --help", group, word, name);
		snprintf(all + len, sizeof(all) - len, "%s%s", len ? ", " : "", name + n + 1);
	}
	if (!*all)
		return 0;
	return say_error(EXIT_USAGE, "no command '%s%s%s': expected %s %s; \"rtrsctl "
			 "list\" and \"show\" print all that is there", group, word ? " " : "",
			 word ? word : "", group, all);
}

/* Refuse @word behind a command that takes none.  0: @name is no such command. */
static int refuse_word(const char *name, const char *word)
{
	for (unsigned i = 0; word && i < ARRAY_SIZE(commands); i++) {
		if (!commands[i].arg && !strcmp(commands[i].name, name))
			return say_error(EXIT_USAGE, "%s: '%s' is one word too many: this command "
					 "is about all that is there", name, word);
	}
	return 0;
}

/* Refuse what systemd or an option does.  0: @word is none of these. */
static int refuse_of_others(const char *word)
{
	if (!strcmp(word, "start") || !strcmp(word, "stop") || !strcmp(word, "restart"))
		return say_error(EXIT_USAGE, "no command '%s': systemd does that, as in: systemctl "
				 "%s rtrs-server", word, word);
	if (!strcmp(word, "help") || !strcmp(word, "version"))
		return say_error(EXIT_USAGE, "no command '%s': expected rtrsctl --%s", word, word);
	return 0;
}

static int unknown_command(char **argv, int argc)
{
	const char *names[ARRAY_SIZE(commands)], *meant, *second = argc > 1 ? argv[1] : NULL;
	char words[256];
	int rc = refuse_of_others(argv[0]);

	if (!rc)
		rc = refuse_word(argv[0], second);
	if (!rc)
		rc = refuse_in_group(argv[0], second);
	if (rc)
		return rc;
	for (unsigned i = 0; i < ARRAY_SIZE(commands); i++)
		names[i] = commands[i].name;
	snprintf(words, sizeof(words), "%s%s%s", argv[0], second ? " " : "", second ? second : "");
	meant = command_of(word_of_others(argv[0]));
	if (!meant)
		meant = suggest_name(words, strlen(words), names, ARRAY_SIZE(names));
	return say_error(EXIT_USAGE, "no command '%s'%s%s%s: see rtrsctl --help", words,
			 meant ? " (did you mean " : "", meant ? meant : "", meant ? "?)" : "");
}

/* Make one argument, "NAME,WORD,...", of the @argc words, two or more. */
static int join_words(struct ctx *ctx, int argc, char **argv)
{
	size_t len = 0;
	char *to;

	if (!strchr(argv[1], '='))
		return say_error(EXIT_USAGE, "%s: '%s': expected KEY=VALUE%s%s%s%s",
				 ctx->command->name, argv[1], argc > 2 ? ", as " : "",
				 argc > 2 ? argv[1] : "", argc > 2 ? "=" : "",
				 argc > 2 ? argv[2] : "");

	for (int i = 0; i < argc; i++)
		len += strlen(argv[i]) + 1;
	ctx->words = to = malloc(len);
	if (!to)
		return say_error(EXIT_FAILED, "out of memory");
	for (int i = 0; i < argc; i++)
		to = stpcpy(stpcpy(to, i ? "," : ""), argv[i]);
	ctx->arg = ctx->words;
	return EXIT_DONE;
}

static int parse_command(struct ctx *ctx, int argc, char **argv)
{
	int used = 0, most;

	if (!argc)
		return say_error(EXIT_USAGE, "no command: see rtrsctl --help");
	ctx->typed = argv;
	ctx->ntyped = argc;
	ctx->command = find_command(argv, argc, &used);
	if (!ctx->command)
		return unknown_command(argv, argc);
	argc -= used;
	argv += used;
	if (ctx->command->takes_words && argc && strchr(argv[0], '='))
		return say_error(EXIT_USAGE, "%s: which export? Expected its name in front of '%s'",
				 ctx->command->name, argv[0]);
	if (ctx->command->takes_words && argc > 1)
		return join_words(ctx, argc, argv);
	most = (ctx->command->arg != NULL) + (ctx->command->second != NULL);
	if (argc > most)
		return say_error(EXIT_USAGE, "%s: '%s' is one word too many: %s",
				 ctx->command->name, argv[argc - 1], ctx->command->no_more ?
				 ctx->command->no_more : "see rtrsctl --help");
	ctx->arg = argc ? argv[0] : NULL;
	ctx->second = argc > 1 ? argv[1] : NULL;
	if (argc < (int)ctx->command->needs)
		return say_error(EXIT_USAGE, "%s: which %s?", ctx->command->name,
				 argc ? ctx->command->second : ctx->command->arg);
	if (ctx->command->takes_words)
		return say_error(EXIT_USAGE, "%s: expected KEY=VALUE after '%s'",
				 ctx->command->name, ctx->arg);
	return EXIT_DONE;
}

/* ---- the whole ---- */

/* True if @word is a command of a monitoring system, to which the exit status of a mistake would be
 * a state. */
static bool is_check(const char *word)
{
	return !strcmp(word, "check") || !strcmp(word, "doctor");
}

/* --json applies to errors, too, wherever --json stands, and the form of a check until it is known
 * which word is the command. */
static void look_for_form(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		if (!strcmp(argv[i], "--json"))
			say_json();
		if (is_check(argv[i]))
			say_check(true);
	}
}

/* 0, or an exit status. */
static int check_selection(const struct ctx *ctx)
{
	const struct find_wanted *wanted = &ctx->wanted;

	if (wanted->server && wanted->gateway)
		return say_error(EXIT_USAGE,
				 "--server and --gateway: give one, or none for both kinds");
	if (ctx->socket && (wanted->server || wanted->gateway || wanted->pid || wanted->name))
		return say_error(EXIT_USAGE, "--socket names the program: --server, --gateway, "
				 "--pid and --name are for programs that rtrsctl finds");
	return EXIT_DONE;
}

static bool is_negative(const char *word)
{
	return word[0] == '-' && word[1] >= '0' && word[1] <= '9';
}

int args_parse(struct ctx *ctx, int argc, char **argv)
{
	/* getopt() would take a number below 0 for an option. */
	bool negative = argc > 1 && is_negative(argv[argc - 1]);
	enum opt_result result;
	int first = argc, rc;
	char err[512];

	argc -= negative;
	look_for_form(argc, argv);
	result = opt_argv(&args_table, ctx, argc, argv, &first, NULL, err, sizeof(err));
	if (result == OPT_EXIT)
		return EXIT_DONE;
	if (result != OPT_RUN)
		return say_error(EXIT_USAGE, "%s", err);
	argc += negative;
	if (first < argc)
		say_check(is_check(argv[first]));
	if (ctx->dump && argc > first)
		return say_error(EXIT_USAGE, "--dump takes no command, and '%s' is one",
				 argv[first]);
	rc = check_selection(ctx);
	if (!rc && !ctx->dump)
		rc = parse_command(ctx, argc - first, argv + first);
	if (!rc && ctx->watch_s && ctx->command && ctx->command->answer == ANSWER_DOCTOR)
		return say_error(EXIT_USAGE, "doctor looks once: leave --watch out");
	if (!rc && ctx->force && !(ctx->command && ctx->command->takes_force))
		return say_error(EXIT_USAGE, "--force belongs to reload, export remove, export "
				 "resize, export set and export break");
	return rc ? rc : -1;
}
