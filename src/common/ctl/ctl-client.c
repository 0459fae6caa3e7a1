/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a client's descriptor, its line and its answer; thread of the loop.
 *
 * How it ends: the client closes, breaks a rule, or is idle for too long: ctl_client_cut().  gone()
 * runs when the loop has let go of the descriptor and the program has answered.  How it fails: a
 * client is cut off; other clients do not notice. */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "ctl-client.h"
#include "ctl-json.h"
#include "util.h"

static const char begins[] = " \t\r{";	/* of a command; without '\0' */
static const char no_memory[] = "{\"ok\":false,\"error\":\"out of memory\"}\n";

/* ---- end ---- */

static void client_watch_closed(struct loop_watch *w)
{
	struct ctl_client *c = container_of(w, struct ctl_client, watch);

	close(w->fd);
	w->fd = -1;
	if (c->state == CTL_CLIENT_CUT)
		c->gone(c);
}

void ctl_client_cut(struct ctl_client *c)
{
	if (c->state >= CTL_CLIENT_CUT)
		return;
	c->state = c->state == CTL_CLIENT_BUSY ? CTL_CLIENT_CUT_BUSY : CTL_CLIENT_CUT;
	loop_timer_cancel(&c->timer);
	loop_undefer(&c->task);
	loop_unwatch(&c->watch);
}

static void client_idle(struct loop_timer *timer)
{
	ctl_client_cut(container_of(timer, struct ctl_client, timer));
}

static void client_heard(struct ctl_client *c)
{
	loop_timer_set(c->loop, &c->timer, clock_now_ms() + CTL_IDLE_MS);
}

/* ---- answer ---- */

void ctl_client_answer(struct ctl_client *c, json_t *answer, enum ctl_client_state next)
{
	char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
	size_t len = text ? strlen(text) : 0;

	json_decref(answer);
	if (c->state == CTL_CLIENT_CUT_BUSY) {
		free(text);
		c->state = CTL_CLIENT_CUT;
		if (c->watch.fd < 0)
			c->gone(c);
		return;
	}
	c->sent = 0;
	if (text) {
		text[len] = '\n';	/* replaces the '\0' */
		c->out = text;
		c->outlen = len + 1;
	} else {
		c->out = strdup(no_memory);
		c->outlen = c->out ? sizeof(no_memory) - 1 : 0;
	}
	c->state = next;
	client_heard(c);
	loop_defer(c->loop, &c->task);
}

/* Send the answer.  False: not all is sent. */
static bool client_write(struct ctl_client *c)
{
	while (c->sent < c->outlen) {
		ssize_t n = send(c->watch.fd, c->out + c->sent, c->outlen - c->sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN) {
			ctl_client_cut(c);
			return false;
		}
		if (n < 0) {
			loop_watch_events(&c->watch, POLLOUT);
			return false;
		}
		c->sent += (size_t)n;
		client_heard(c);
	}
	free(c->out);
	c->out = NULL;
	c->outlen = 0;
	if (c->state == CTL_CLIENT_LAST)
		ctl_client_cut(c);
	else
		c->state = CTL_CLIENT_READING;
	return true;
}

/* ---- command ---- */

static void client_reject(struct ctl_client *c, const char *why)
{
	ctl_client_answer(c, json_pack("{s:b,s:o}", "ok", 0, "error", ctl_json_text(why)),
			  CTL_CLIENT_LAST);
}

/* Serve the command in the first @len bytes of @c->in. */
static void client_command(struct ctl_client *c, size_t len)
{
	json_error_t error;
	json_t *command = json_loadb(c->in, len, JSON_REJECT_DUPLICATES, &error);

	c->inlen -= len + 1;
	memmove(c->in, c->in + len + 1, c->inlen);
	loop_timer_cancel(&c->timer);
	loop_watch_events(&c->watch, 0);
	if (json_is_object(command)) {
		c->state = CTL_CLIENT_BUSY;
		c->serve(c, command, c->arg);
	} else {
		client_reject(c, "expected one JSON object per line");
	}
	json_decref(command);
}

/* Read on, or serve a command.  False: stop reading for now. */
static bool client_read(struct ctl_client *c)
{
	char *end = memchr(c->in, '\n', c->inlen);
	ssize_t n;

	if (end) {
		client_command(c, (size_t)(end - c->in));
		return false;
	}
	/* Refuse before the line is complete: a program that mistook this socket for another waits
	 * for a message. */
	if (c->inlen && !memchr(begins, c->in[0], sizeof(begins) - 1)) {
		client_reject(c, "expected one JSON object per line");
		return false;
	}
	if (c->inlen == sizeof(c->in)) {
		client_reject(c, "the line is too long");
		return false;
	}
	n = recv(c->watch.fd, c->in + c->inlen, sizeof(c->in) - c->inlen, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN) {
		loop_watch_events(&c->watch, POLLIN);
		return false;
	}
	if (n <= 0) {
		ctl_client_cut(c);
		return false;
	}
	c->inlen += (size_t)n;
	return true;
}

/* While the program has the command: cut off a client that has gone, because poll() would report
 * the hang-up again and again. */
static void client_check_gone(struct ctl_client *c)
{
	struct pollfd p = { .fd = c->watch.fd };

	if (poll(&p, 1, 0) > 0)
		ctl_client_cut(c);
}

static void client_run(struct ctl_client *c)
{
	bool more = true;

	while (more) {
		switch (c->state) {
		case CTL_CLIENT_READING:
			more = client_read(c);
			break;
		case CTL_CLIENT_WRITING:
		case CTL_CLIENT_LAST:
			more = client_write(c);
			break;
		case CTL_CLIENT_BUSY:
			client_check_gone(c);
			return;
		case CTL_CLIENT_CUT:
		case CTL_CLIENT_CUT_BUSY:
			return;
		}
	}
}

static bool client_ready(struct loop_watch *w)
{
	client_run(container_of(w, struct ctl_client, watch));
	return false;
}

static void client_go_on(struct loop_task *task)
{
	client_run(container_of(task, struct ctl_client, task));
}

int ctl_client_create(struct loop *loop, int fd, ctl_serve_fn *serve, void *arg,
		      void (*gone)(struct ctl_client *client), struct ctl_client **out)
{
	struct ctl_client *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return -ENOMEM;
	list_init(&c->link);
	c->loop = loop;
	c->serve = serve;
	c->arg = arg;
	c->gone = gone;
	loop_task_init(&c->task, client_go_on);
	loop_timer_init(&c->timer, client_idle);
	c->watch.fd = fd;
	c->watch.events = POLLIN;
	c->watch.ready = client_ready;
	c->watch.closed = client_watch_closed;
	rc = loop_watch(loop, &c->watch);
	if (rc) {
		free(c);
		return rc;
	}
	client_heard(c);
	*out = c;
	return 0;
}
