/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket of a program: a unix stream socket on the program's loop.  A client sends one
 * JSON object per line and gets one per line, in order: {"ok":true, ...} or {"ok":false,
 * "error":TEXT}.  man/rtrsctl.pod has the commands.
 *
 * Nothing here blocks and nothing runs on another thread than the loop's.  The memory that clients
 * can make a program hold is bounded: so many clients, one line and one answer of each.  A client
 * that sends no JSON object is told so and cut off.  A client that is silent in the middle of a
 * line, that does not read, or that asks for nothing for CTL_IDLE_MS, is cut off.  Only the user
 * who runs the program and root can connect: the mode of the socket is 0600. */
#ifndef CTL_H
#define CTL_H

#include <stddef.h>

#include <jansson.h>

#include "loop.h"
#include "unix-sock.h"

#define CTL_LINE_MAX 4096		/* bytes, with the newline */
#define CTL_CLIENTS_MAX 16
#define CTL_IDLE_MS 30000

struct ctl;
struct ctl_client;

/* A command of @client, which the program answers with one of the two functions below: from inside
 * this call or later, once.  @command is an object and goes when this returns.  Thread of the
 * loop. */
typedef void ctl_serve_fn(struct ctl_client *client, const json_t *command, void *arg);

/* Answer with @answer, an object whose reference is taken; NULL: there was no memory for it. */
void ctl_answer(struct ctl_client *client, json_t *answer);
/* Answer that it cannot be, and why. */
void ctl_refuse(struct ctl_client *client, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Listen at @path; a socket there that nobody listens at any more is replaced.  The loop's thread.
 * 0, or -errno with the path and the reason in @err: -EADDRINUSE, and by which process. */
int ctl_open(struct loop *loop, const char *path, ctl_serve_fn *serve, void *arg, struct ctl **out,
	     char *err, size_t errlen);
/* The same in two steps, for a program that forks in between.  First @sock gets the name and
 * listens; any thread. */
int ctl_listen(struct unix_sock *sock, const char *path, char *err, size_t errlen);
/* Then its clients are served.  @sock is taken when 0 is returned, and the caller's otherwise.  The
 * loop's thread. */
int ctl_open_at(struct loop *loop, struct unix_sock *sock, ctl_serve_fn *serve, void *arg,
		struct ctl **out, char *err, size_t errlen);
/* Remove the name of the socket and nothing else, because the program exits at once: for a signal
 * handler on the loop's thread, which does not come between the lines of ctl_close(). */
void ctl_unlink(const struct ctl *ctl);
/* Remove the socket and cut all clients off, then run @done(@arg), once, not from inside this call.
 * Commands that are not answered yet are waited for.  The loop's thread. */
void ctl_close(struct ctl *ctl, void (*done)(void *arg), void *arg);

#endif
