/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <config.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rundir.h"
#include "say.h"
#include "suggest.h"
#include "text.h"
#include "which.h"

/* The wanted kind of program, for a message. */
static const char *kind_text(const struct ctx *ctx)
{
	const char *kind = ctx->command->kind;

	if (ctx->wanted.server || (kind && !strcmp(kind, RUNDIR_SERVER)))
		return "rtrs-server";
	return ctx->wanted.gateway || kind ? "nbdkit-rtrs-plugin or rtrs-nbd" : "program";
}

static int none_found(const struct ctx *ctx)
{
	const char *dir = rundir_default(), *parent = rundir_parent();

	return say_error(EXIT_FAILED, "no %s with a control socket in %s%s%s: is its unit "
			 "running (systemctl status '*rtrs*')? For a socket elsewhere "
			 "see --socket%s",
			 kind_text(ctx), dir ? dir : "a directory of this user",
			 parent ? " or beside it in " : "", parent ? parent : "",
			 geteuid() ? ", or try as root, who sees the programs of all users" : "");
}

/* Tell the user that none of the programs @all is wanted, and guess which name was meant. */
static int none_wanted(const struct ctx *ctx, const struct found *all)
{
	const struct find_wanted *wanted = &ctx->wanted;
	const char *meant = NULL;

	if (!all->n || (!wanted->pid && !wanted->name))
		return none_found(ctx);
	if (wanted->pid)
		return say_error(EXIT_FAILED, "--pid %u: this process is no %s with a control "
				 "socket: see rtrsctl list", wanted->pid, kind_text(ctx));
	for (size_t i = 0; i < all->n && !meant; i++) {
		const char *name = all->at[i].name;

		/* A program of the other kind may have the name. */
		if (name && strcmp(name, wanted->name))
			meant = suggest_name(wanted->name, strlen(wanted->name), &name, 1);
	}
	return say_error(EXIT_FAILED, "--name '%s': no %s that runs has this name%s%s%s: see "
			 "rtrsctl list, and rtrsctl doctor if it does not start",
			 wanted->name, kind_text(ctx), meant ? " (did you mean " : "",
			 meant ? meant : "", meant ? "?)" : "");
}

/* Ask the user to choose one of several programs. */
static int several_found(const struct ctx *ctx, const struct found *found)
{
	char command[512], arg[256] = "";

	if (ctx->arg)
		text_safe(ctx->arg, arg, sizeof(arg));
	snprintf(command, sizeof(command), "%s%s%s", ctx->command->name, *arg ? " " : "", arg);
	return say_choice("several programs run: choose one", command, found);
}

/* Leave in @found the programs with the command of @ctx. */
static void keep_kind(const struct ctx *ctx, struct found *found)
{
	const char *kind = ctx->command->kind;
	bool server = kind && !strcmp(kind, RUNDIR_SERVER);
	struct find_wanted wanted = { .server = server, .gateway = kind && !server };

	find_only(found, &wanted);
}

/* True if a program of @found is wanted. */
static bool any_wanted(const struct ctx *ctx, const struct found *found)
{
	for (size_t i = 0; i < found->n; i++) {
		if (find_is_wanted(&found->at[i], &ctx->wanted))
			return true;
	}
	return false;
}

int which_programs(const struct ctx *ctx, struct found *found)
{
	if (!(ctx->socket ? find_at(found, ctx->socket) : find_programs(found)))
		return say_error(EXIT_FAILED, "out of memory");
	if (ctx->socket)
		return EXIT_DONE;
	if (!any_wanted(ctx, found))
		return none_wanted(ctx, found);
	find_only(found, &ctx->wanted);
	/* Of several programs choose only among programs with this command; a single program would
	 * refuse. */
	if (found->n > 1)
		keep_kind(ctx, found);
	if (!found->n)
		return none_found(ctx);
	if (found->n > 1 && !ctx->command->asks)
		return several_found(ctx, found);
	return EXIT_DONE;
}
