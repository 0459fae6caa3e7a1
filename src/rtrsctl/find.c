/* SPDX-License-Identifier: BSD-3-Clause */
/* The programs that run, by the sockets in directories, and the choice among them for a command.
 *
 * Each socket of a directory that may be a program's is asked for its name.  Of all that answer,
 * or are silent, those stay that the options want; a command with an effect needs exactly one.
 * Where none is left, or several are, the user gets the names to choose from.
 *
 * DIRECTORIES.  The default directory, and the neighbours, which systemd makes for services with a
 * RuntimeDirectory= of another name.  A neighbour with a name like "rtrs..." or "nbdkit..."
 * is of our programs, and so are directories below: each socket with the mode of a control socket
 * is asked.  Of other neighbours only sockets with default names are asked, because a foreign
 * program may take a question for a command. */
#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "answer.h"
#include "args.h"
#include "cleanup.h"
#include "find.h"
#include "names.h"
#include "number.h"
#include "say.h"
#include "unix-sock.h"

/* ---- programs ---- */

static void program_free(struct found_program *program)
{
	free(program->path);
	free(program->name);
}

/* Fill @program from @answer, to "list".  False: no memory. */
static bool program_read(struct found_program *program, const json_t *answer)
{
	const char *name = json_string_value(json_object_get(answer, "name"));

	program->server = answer_is_server(answer);
	program->pid = (long)answer_number(answer, "pid");
	program->name = name ? strdup(name) : NULL;
	return program->name || !name;
}

/* Fill @program, which does not answer, from the default name of a socket, "server-4711.sock". */
static void program_guess(struct found_program *program)
{
	const char *file = strrchr(program->path, '/') + 1;

	program->silent = true;
	program->server = rundir_is_socket(file, RUNDIR_SERVER);
	program->pid = strtol(file + strcspn(file, "0123456789"), NULL, 10);
}

/* Ask the listener at program->path.  0, -ENOMEM, or -ENOENT: not a program of this package, or a
 * killed program, or a program of another user. */
static int program_ask(struct found_program *program)
{
	char err[512];
	json_t *answer = call_program(program, "list", err, sizeof(err));
	int rc = -ENOENT;

	if (json_is_string(json_object_get(answer, "program"))) {
		rc = program_read(program, answer) ? 0 : -ENOMEM;
	} else if (rundir_is_socket(strrchr(program->path, '/') + 1, NULL) &&
		   !call_try(program->path)) {
		program_guess(program);
		rc = 0;
	}
	json_decref(answer);
	return rc;
}

/* Add @program to @found, which owns the strings then.  False: no memory. */
static bool found_grow(struct found *found, const struct found_program *program)
{
	struct found_program *all = realloc(found->at, (found->n + 1) * sizeof(*all));

	if (!all)
		return false;
	found->at = all;
	all[found->n++] = *program;
	return true;
}

/* Add the program at @path, if any listens. */
static bool find_add(struct found *found, const char *path)
{
	struct found_program program = { .path = strdup(path) };
	int rc = program.path ? program_ask(&program) : -ENOMEM;

	if (!rc && found_grow(found, &program))
		return true;
	program_free(&program);
	return rc == -ENOENT;
}

/* ---- directories ---- */

/* Can only root and this user write to @dir? Other users could imitate a program of this user.
 * Only root makes directories beside the default directory, so a directory of @ours with another
 * owner is a service's. */
static bool is_safe(const char *dir, bool ours)
{
	struct stat st;

	return !stat(dir, &st) && S_ISDIR(st.st_mode) && !(st.st_mode & (S_IWGRP | S_IWOTH)) &&
	       (!st.st_uid || st.st_uid == geteuid() || (ours && !geteuid()));
}

/* Has the file at @path the mode of a control socket, which no other socket has? */
static bool is_private_socket(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISSOCK(st.st_mode) &&
		!(st.st_mode & (S_IRWXG | S_IRWXO | S_IXUSR));
}

static bool is_name_of_ours(const char *name)
{
	return !strncmp(name, "rtrs", 4) || !strncmp(name, "nbdkit", 6);
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Looks at the file @name in a directory, at @path.  False: no memory. */
typedef bool look_fn(struct found *found, const char *path, const char *name, bool ours);

/* Call @look for each file in @dir, in the order of names.  False: no memory. */
static bool for_each_file(const char *dir, look_fn *look, struct found *found, bool ours)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, is_visible, alphasort);
	bool ok = true;

	for (int i = 0; i < n; i++) {
		_cleanup_free_ char *path = fmt_new("%s/%s", dir, entries[i]->d_name);

		ok = ok && path && look(found, path, entries[i]->d_name, ours);
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
	return ok;
}

static bool look_at_file(struct found *found, const char *path, const char *name, bool ours)
{
	if (rundir_is_socket(name, NULL) || (ours && is_private_socket(path)))
		return find_add(found, path);
	return true;
}

static bool find_in(struct found *found, const char *dir, bool ours)
{
	rundir_sweep(dir);
	return for_each_file(dir, look_at_file, found, ours);
}

/* A link in a directory that may belong to a service's user leads anywhere. */
static bool look_below(struct found *found, const char *path, const char *name, bool ours)
{
	struct stat st;

	return lstat(path, &st) || S_ISLNK(st.st_mode) || !is_safe(path, ours) ||
	       find_in(found, path, ours);
}

static bool look_beside(struct found *found, const char *path, const char *name, bool ours)
{
	ours = is_name_of_ours(name);
	if (!strcmp(path, rundir_default()) || !is_safe(path, ours))
		return true;
	return find_in(found, path, ours) &&
	       (!ours || for_each_file(path, look_below, found, ours));
}

/* Find the programs of this user, and for root of services: in the default directory, and in
 * neighbours, which systemd makes, without other writers.  A socket is a program's if the listener
 * answers "list".  A program without an answer is known by the default name of the socket.  Sockets
 * of this user's killed programs are removed.  @found is to be freed with find_free() in any case.
 * False: no memory.  Blocks for CALL_GREET_S for each program without an answer. */
static bool find_programs(struct found *found)
{
	const char *dir = rundir_default(), *parent = rundir_parent();

	if (!dir)
		return true;
	return find_in(found, dir, true) &&
	       (!parent || for_each_file(parent, look_beside, found, false));
}

/* Make @found the program at @path, which is not asked.  False: no memory. */
static bool find_at(struct found *found, const char *path)
{
	struct found_program program = { .path = strdup(path) };

	if (program.path && found_grow(found, &program))
		return true;
	program_free(&program);
	return false;
}

/* ---- choice ---- */

/* True if @program is @wanted. */
static bool find_is_wanted(const struct found_program *program, const struct find_wanted *wanted)
{
	if (program->server ? wanted->gateway : wanted->server)
		return false;
	if (wanted->pid && program->pid != (long)wanted->pid)
		return false;
	return !wanted->name || (program->name && !strcmp(program->name, wanted->name));
}

/* Keep only @wanted programs in @found. */
static void find_only(struct found *found, const struct find_wanted *wanted)
{
	size_t n = 0;

	for (size_t i = 0; i < found->n; i++) {
		if (find_is_wanted(&found->at[i], wanted))
			found->at[n++] = found->at[i];
		else
			program_free(&found->at[i]);
	}
	found->n = n;
}

bool find_chosen(struct found *found, const char *socket, const struct find_wanted *wanted)
{
	if (socket)
		return find_at(found, socket);
	if (!find_programs(found))
		return false;
	find_only(found, wanted);
	return true;
}

void find_free(struct found *found)
{
	for (size_t i = 0; i < found->n; i++)
		program_free(&found->at[i]);
	free(found->at);
}

/* ---- the choice for a command ---- */

/* The wanted kind of program, for a message. */
static const char *kind_text(const struct ctx *ctx)
{
	const char *kind = ctx->command->kind;

	if (ctx->wanted.server || (kind && !strcmp(kind, RUNDIR_SERVER)))
		return "rtrs-server";
	return ctx->wanted.gateway || kind ? "nbdkit-rtrs-plugin, rtrs-nbd or rtrs-attach" :
						      "program";
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

/* The programs that the user means lack the command: mostly it is typed at the other end. */
static int other_kind(const struct ctx *ctx)
{
	const char *kind = strcmp(ctx->command->kind, RUNDIR_SERVER) ?
			   "a gateway (rtrs-nbd, rtrs-attach, nbdkit-rtrs-plugin)" :
			   "rtrs-server";

	return say_error(EXIT_FAILED, "%s is a command for %s, and no such program%s runs on this "
			 "machine: type it on the machine where it runs", ctx->command->name, kind,
			 ctx->wanted.name || ctx->wanted.pid ? " of this --name or --pid" : "");
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

int find_for_command(const struct ctx *ctx, struct found *found)
{
	if (!(ctx->socket ? find_at(found, ctx->socket) : find_programs(found)))
		return say_error(EXIT_FAILED, "out of memory");
	if (ctx->socket)
		return EXIT_DONE;
	if (!any_wanted(ctx, found))
		return none_wanted(ctx, found);
	find_only(found, &ctx->wanted);
	keep_kind(ctx, found);
	if (!found->n)
		return other_kind(ctx);
	if (found->n > 1 && !ctx->command->asks)
		return say_choice("several programs run: choose one", ctx, found);
	return EXIT_DONE;
}
