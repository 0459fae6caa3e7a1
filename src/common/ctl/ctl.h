/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket of a program: a unix stream socket on the program's loop.  A client sends a
 * JSON object per line and gets a JSON object per line, in order: {"ok":true, ...} or {"ok":false,
 * "error":TEXT}.  man/rtrsctl.pod has the commands.
 *
 * The happy path: ctl_open() listens; a client sends a line; ctl_serve_fn runs the command, mostly
 * by ctl_call() and a table; ctl_answer() sends the answer; ctl_close() ends all.  Possible
 * failures: the name is taken; a client sends no JSON object, an unknown command or member, or is
 * silent.
 *
 * No call blocks, and all code runs on the loop's thread.  The memory that clients can make a
 * program hold is bounded: CTL_CLIENTS_MAX clients, with a line and an answer each.  A client that
 * sends no JSON object gets an error and is cut off.  A client is also cut off when it is silent
 * within a line, reads no answer or sends no command for CTL_IDLE_MS.  Only the user who runs the
 * program and root can connect: the mode of the socket is 0600. */
#ifndef CTL_H
#define CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "loop.h"
#include "unix-sock.h"

/* Bytes, with the newline: a path of the kernel, each byte of which is escaped in an export and in
 * JSON. */
#define CTL_LINE_MAX 32768
#define CTL_CLIENTS_MAX 16
#define CTL_IDLE_MS 30000

struct ctl;
struct ctl_client;

/* Serves a command of @client.  The program calls ctl_answer() or ctl_refuse() once, inside this
 * call or later.  @command is an object that ends with this call.  Thread of the loop. */
typedef void ctl_serve_fn(struct ctl_client *client, const json_t *command, void *arg);

/* Answer with @answer, an object whose reference is taken; NULL: memory ran out. */
void ctl_answer(struct ctl_client *client, json_t *answer);
/* Answer that the command failed, with the reason, which may have many lines. */
void ctl_refuse(struct ctl_client *client, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Listen at @path; a socket at @path where no process listens any more is replaced.  The loop's
 * thread.  Returns 0, or -errno with the path and the reason in @err: -EADDRINUSE, and the process
 * that listens. */
int ctl_open(struct loop *loop, const char *path, ctl_serve_fn *serve, void *arg, struct ctl **out,
	     char *err, size_t errlen);
/* ctl_open() in two steps, for a program that forks in between.  The first step: give @sock the
 * name and listen.  Any thread. */
int ctl_listen(struct unix_sock *sock, const char *path, char *err, size_t errlen);
/* The second step: serve clients.  @sock is taken if 0 is returned, and the caller's after an
 * error.  The loop's thread. */
int ctl_open_at(struct loop *loop, struct unix_sock *sock, ctl_serve_fn *serve, void *arg,
		struct ctl **out, char *err, size_t errlen);
/* Remove only the name of the socket, because the program exits at once: for a signal handler on
 * the loop's thread, which does not interrupt ctl_close(). */
void ctl_unlink(const struct ctl *ctl);
/* Remove the socket and cut all clients off, then run @done(@arg), once, not from inside this call.
 * Commands in the program are waited for.  The loop's thread. */
void ctl_close(struct ctl *ctl, void (*done)(void *arg), void *arg);

/* ---- the commands of a program as a table ---- */

struct ctl_call {
	const char *name;
	/* Run the command and answer.  @value: of @member; NULL: not given. */
	void (*fn)(struct ctl_client *client, const char *value, void *arg);
	/* In place of @fn, if the command takes two strings. */
	void (*fn_two)(struct ctl_client *client, const char *value, const char *second,
		       void *arg);
	/* In place of @fn, if the command is one of several changes. @force: the client said "NAME
	 * force", which a command without takes_force does not have. */
	void (*fn_change)(struct ctl_client *client, int change, const char *value, bool force,
			  void *arg);
	int change;
	bool takes_force;
	const char *member;		/* a string that the command takes; NULL: none */
	bool needed;			/* refused without @member */
	const char *second;		/* another one, never needed; NULL: none */
};

/* Run the entry of @calls (@n, at least 1) that @command names.  An unknown command is refused, and
 * so is a member that the command does not take: the client may have asked for less than all. */
void ctl_call(struct ctl_client *client, const json_t *command, const char *program,
	      const struct ctl_call *calls, size_t n, void *arg);

/* True if @command names an entry of @calls (@n, or none). */
bool ctl_call_has(const json_t *command, const struct ctl_call *calls, size_t n);

/* Answer that the command is done, without data. */
void ctl_call_done(struct ctl_client *client);
/* Answer @client, a struct ctl_client, that a change has ended.  @rc 0: {"changes": [...]} with the
 * lines of @text; else the command is refused because of @text. */
void ctl_call_ended(void *client, int rc, const char *text);

#endif
