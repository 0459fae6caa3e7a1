/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of rtrsctl: the table, and what a command line becomes. */
#include "opt-rules.h"
#include "unit.h"

#include "args.h"
#include "say.h"

int say_error(int status, const char *fmt, ...)
{
	return status;
}

void say_json(void)
{
}

static bool check;

void say_check(bool on)
{
	check = on;
}

Test(args, table) { opt_rules(&args_table, sizeof(struct ctx), "rtrsctl.pod"); }

/* Read @args, words with a space between, into @ctx. */
static int parse(struct ctx *ctx, const char *args)
{
	static char copy[128];
	char *argv[16] = { (char *)"rtrsctl" }, *save, *word;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", args);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	return args_parse(ctx, argc, argv);
}

Test(args, command_lines)
{
	static const struct {
		const char *args;
		int status;
		const char *command, *arg;
		unsigned watch_s;
	} cases[] = {
		{ "list", -1, "list", NULL, 0 },
		{ "stats", -1, "stats", NULL, 0 },
		{ "stats reset", -1, "stats reset", NULL, 0 },
		{ "stats all", EXIT_USAGE, NULL, NULL, 0 },
		{ "--watch status", -1, "status", NULL, 1 },
		{ "status --watch=7", -1, "status", NULL, 7 },
		{ "--watch 7 status", EXIT_USAGE, NULL, NULL, 1 },
		{ "path remove x", -1, "path remove", "x", 0 },
		{ "path remove", EXIT_USAGE, NULL, NULL, 0 },
		{ "max-reconnect-attempts -1", -1, "max-reconnect-attempts", "-1", 0 },
		{ "policy", -1, "policy", NULL, 0 },
		{ "--socket= list", EXIT_USAGE, NULL, NULL, 0 },
		{ "explain disk psk:gw1", -1, "explain", "disk", 0 },
		{ "explain disk", EXIT_USAGE, NULL, NULL, 0 },
		{ "explain", EXIT_USAGE, NULL, NULL, 0 },
		{ "explain disk psk:gw1 rw", EXIT_USAGE, NULL, NULL, 0 },
		{ "export kick disk", -1, "export kick", "disk", 0 },
		{ "export kick", EXIT_USAGE, NULL, NULL, 0 },
		{ "check", -1, "check", NULL, 0 },
		{ "check all", EXIT_USAGE, NULL, NULL, 0 },
		{ "clients --watch", -1, "clients", NULL, 1 },
		{ "--server --pid=7 --name=x list", -1, "list", NULL, 0 },
		{ "--server --gateway list", EXIT_USAGE, NULL, NULL, 0 },
		{ "--socket=x --server list", EXIT_USAGE, NULL, NULL, 0 },
		{ "--socket=x --gateway list", EXIT_USAGE, NULL, NULL, 0 },
		{ "--socket=x --pid=7 list", EXIT_USAGE, NULL, NULL, 0 },
		{ "--socket=x --name=x list", EXIT_USAGE, NULL, NULL, 0 },
		{ "--pid=0 list", EXIT_USAGE, NULL, NULL, 0 },
		{ "--dump", -1, NULL, NULL, 0 },
		{ "--dump list", EXIT_USAGE, NULL, NULL, 0 },
		{ "", EXIT_USAGE, NULL, NULL, 0 },
	};

	for_each_case(c, cases) {
		struct ctx ctx = { 0 };

		cr_assert_eq(parse(&ctx, c->args), c->status, "%s", c->args);
		if (c->status >= 0)
			continue;
		cr_assert_eq(ctx.watch_s, c->watch_s, "%s", c->args);
		cr_assert(!c->command || !strcmp(ctx.command->name, c->command), "%s", c->args);
		cr_assert(!c->arg || !strcmp(ctx.arg, c->arg), "%s", c->args);
	}
}

/* The form of an error, and 3 as its status, are for a monitoring system, which runs "check". */
Test(args, form_of_errors)
{
	static const struct {
		const char *args;
		bool check;
	} cases[] = {
		{ "check", true },
		{ "--bogus check", true },
		{ "--server check all", true },
		{ "--name=x doctor a b", true },
		{ "export remove doctor", false },
		{ "--name check reload", false },
		{ "explain check", false },
		{ "--name check bogus", false },
	};

	for_each_case(c, cases) {
		struct ctx ctx = { 0 };

		check = false;
		parse(&ctx, c->args);
		cr_assert_eq(check, c->check, "%s", c->args);
	}
}

/* What --dump asks for. */
Test(args, stats) { cr_assert_str_eq(command_stats()->name, "stats"); }
