/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the listening socket and the list of clients; thread of the loop.
 *
 * How it ends: ctl_close(); ctl_check_done() frees the struct after the last client and the
 * listener.  How it fails: only ctl_open() fails. */
#include <config.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "acceptor.h"
#include "ctl-client.h"
#include "ctl-json.h"
#include "ctl.h"
#include "number.h"
#include "util.h"

#define CTL_BACKLOG 16

static const char too_many[] = "{\"ok\":false,\"error\":\"too many clients\"}\n";

struct ctl {
	struct loop *loop;
	struct unix_sock sock;
	struct acceptor acceptor;
	struct list clients;		/* struct ctl_client */
	unsigned nclients;
	ctl_serve_fn *serve;
	void *arg;
	void (*done)(void *arg);	/* closing; NULL: open */
	void *done_arg;
};

/* ---- answers ---- */

void ctl_answer(struct ctl_client *c, json_t *answer)
{
	if (answer && !json_object_get(answer, "ok") &&
	    json_object_set_new(answer, "ok", json_true())) {
		json_decref(answer);
		answer = NULL;
	}
	ctl_client_answer(c, answer, CTL_CLIENT_WRITING);
}

void ctl_refuse(struct ctl_client *c, const char *fmt, ...)
{
	char *why = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&why, fmt, ap) < 0)
		why = NULL;
	va_end(ap);
	ctl_answer(c, json_pack("{s:b,s:o}", "ok", 0, "error",
				ctl_json_text(why ? why : "out of memory")));
	free(why);
}

/* ---- clients ---- */

static void ctl_check_done(struct ctl *ctl)
{
	void (*done)(void *arg) = ctl->done;
	void *arg = ctl->done_arg;

	if (!done || ctl->nclients || ctl->acceptor.watch.fd >= 0)
		return;
	free(ctl);
	done(arg);
}

static void ctl_serve(struct ctl_client *client, const json_t *command, void *arg)
{
	struct ctl *ctl = arg;

	ctl->serve(client, command, ctl->arg);
}

static void ctl_client_gone(struct ctl_client *c)
{
	struct ctl *ctl = c->arg;

	list_del(&c->link);
	free(c->out);
	free(c);
	ctl->nclients--;
	ctl_check_done(ctl);
}

static void ctl_add(struct acceptor *a, int fd, const struct sockaddr_storage *addr, socklen_t len)
{
	struct ctl *ctl = container_of(a, struct ctl, acceptor);
	struct ctl_client *c;

	if (ctl->nclients == CTL_CLIENTS_MAX) {
		send(fd, too_many, sizeof(too_many) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		close(fd);
	} else if (ctl_client_create(ctl->loop, fd, ctl_serve, ctl, ctl_client_gone, &c)) {
		close(fd);
	} else {
		list_add_tail(&ctl->clients, &c->link);
		ctl->nclients++;
	}
}

static void ctl_listener_closed(struct loop_watch *w)
{
	struct ctl *ctl = container_of(w, struct ctl, acceptor.watch);

	close(w->fd);
	w->fd = -1;
	ctl_check_done(ctl);
}

/* ---- life ---- */

int ctl_listen(struct unix_sock *sock, const char *path, char *err, size_t errlen)
{
	return unix_sock_listen(sock, path, 0600, CTL_BACKLOG, err, errlen);
}

int ctl_open_at(struct loop *loop, struct unix_sock *sock, ctl_serve_fn *serve, void *arg,
		struct ctl **out, char *err, size_t errlen)
{
	struct ctl *ctl = calloc(1, sizeof(*ctl));
	int rc;

	if (!ctl)
		return fmt_error(-ENOMEM, err, errlen, "%s: no memory", sock->path);
	ctl->loop = loop;
	ctl->serve = serve;
	ctl->arg = arg;
	list_init(&ctl->clients);
	/* Listen again, so SO_PEERCRED names the process that serves to others who want the
	 * socket. */
	listen(sock->fd, CTL_BACKLOG);
	ctl->acceptor.take = ctl_add;
	ctl->acceptor.watch.fd = sock->fd;
	ctl->acceptor.watch.closed = ctl_listener_closed;
	rc = acceptor_start(&ctl->acceptor, loop);
	if (rc) {
		snprintf(err, errlen, "%s: cannot watch the socket: %s", sock->path, strerror(-rc));
		free(ctl);
		return rc;
	}
	ctl->sock = *sock;
	*out = ctl;
	return 0;
}

int ctl_open(struct loop *loop, const char *path, ctl_serve_fn *serve, void *arg, struct ctl **out,
	     char *err, size_t errlen)
{
	struct unix_sock sock;
	int rc = ctl_listen(&sock, path, err, errlen);

	if (rc)
		return rc;
	rc = ctl_open_at(loop, &sock, serve, arg, out, err, errlen);
	if (rc) {
		unix_sock_remove(&sock);
		close(sock.fd);
	}
	return rc;
}

void ctl_unlink(const struct ctl *ctl)
{
	unix_sock_unlink(&ctl->sock);
}

void ctl_close(struct ctl *ctl, void (*done)(void *arg), void *arg)
{
	struct ctl_client *c, *next;

	ctl->done = done;
	ctl->done_arg = arg;
	unix_sock_remove(&ctl->sock);
	list_for_each_safe(c, next, &ctl->clients, link)
		ctl_client_cut(c);
	acceptor_stop(&ctl->acceptor);
}

/* ---- the commands of a program as a table ---- */

void ctl_call_done(struct ctl_client *client)
{
	ctl_answer(client, json_object());
}

/* {"changes": [...]} with the lines of @text. */
static json_t *changes_json(const char *text)
{
	json_t *lines = json_array();
	bool ok = true;

	while (*text) {
		size_t len = strcspn(text, "\n");
		char *line = strndup(text, len);

		ok = ok && ctl_json_add(lines, line ? ctl_json_text(line) : NULL);
		free(line);
		text += len + (text[len] == '\n');
	}
	return json_pack("{s:o}", "changes", ctl_json_whole(lines, ok));
}

void ctl_call_ended(void *client, int rc, const char *text)
{
	size_t len = strlen(text);

	if (rc)		/* without the end of the last line */
		ctl_refuse(client, "%.*s", (int)(len - (len && text[len - 1] == '\n')), text);
	else
		ctl_answer(client, changes_json(text));
}

static bool takes(const struct ctl_call *c, const char *member)
{
	return (c->member && !strcmp(member, c->member)) ||
	       (c->second && !strcmp(member, c->second));
}

/* The string @member of @command; NULL: not given. */
static const char *value_of(const json_t *command, const char *member)
{
	return member ? json_string_value(json_object_get(command, member)) : NULL;
}

static bool call_check(struct ctl_client *client, const json_t *command, const struct ctl_call *c)
{
	const char *name;
	json_t *value;

	if (c->needed && !json_object_get(command, c->member)) {
		ctl_refuse(client, "%s: needs \"%s\"", c->name, c->member);
		return false;
	}
	json_object_foreach((json_t *)command, name, value) {
		if (!strcmp(name, "command"))
			continue;
		if (!takes(c, name)) {
			ctl_refuse(client, "%s: takes no \"%s\"", c->name, name);
			return false;
		}
		if (!json_is_string(value)) {
			ctl_refuse(client, "%s: \"%s\" must be a string", c->name, name);
			return false;
		}
	}
	return true;
}

/* True if @name is that of @c, or has " force" after it, which @force says. */
static bool call_matches(const struct ctl_call *c, const char *name, bool *force)
{
	size_t len = strlen(c->name);

	*force = c->takes_force && !strcmp(name + MIN(len, strlen(name)), " force");
	return *force ? !strncmp(name, c->name, len) : !strcmp(name, c->name);
}

/* The entry of @calls called @name; NULL: none. */
static const struct ctl_call *call_find(const char *name, const struct ctl_call *calls, size_t n,
					bool *force)
{
	for (size_t i = 0; i < n; i++) {
		if (call_matches(&calls[i], name, force))
			return &calls[i];
	}
	return NULL;
}

bool ctl_call_has(const json_t *command, const struct ctl_call *calls, size_t n)
{
	const char *name = value_of(command, "command");
	bool force;

	return name && call_find(name, calls, n, &force);
}

void ctl_call(struct ctl_client *client, const json_t *command, const char *program,
	      const struct ctl_call *calls, size_t n, void *arg)
{
	const json_t *member = json_object_get(command, "command");
	const char *name = json_string_value(member);
	const struct ctl_call *c;
	bool force;

	if (!name) {
		ctl_refuse(client, "\"command\" %s: expected one like {\"command\":\"%s\"}",
			   member ? "is no string" : "is missing", calls[0].name);
		return;
	}
	c = call_find(name, calls, n, &force);
	if (!c) {
		ctl_refuse(client, "%s has no command '%s'", program, name);
		return;
	}
	if (!call_check(client, command, c))
		return;
	if (c->fn_change)
		c->fn_change(client, c->change, value_of(command, c->member), force, arg);
	else if (c->fn_two)
		c->fn_two(client, value_of(command, c->member), value_of(command, c->second), arg);
	else
		c->fn(client, value_of(command, c->member), arg);
}
