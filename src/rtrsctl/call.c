/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a connection for the time of a single answer; blocks, and gives up after a while. */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "cleanup.h"
#include "clock.h"
#include "ctl-json.h"
#include "find.h"
#include "text.h"
#include "util.h"

/* No program of this package has a longer answer. */
#define ANSWER_MAX ((size_t)64 << 20)

_Static_assert(sizeof(((struct sockaddr_un *)NULL)->sun_path) == 108, "in words here");
_Static_assert(ANSWER_MAX == 64 << 20, "in words here; read_line() gets there by doubling");

/* Connect to the socket at @path.  A descriptor or -errno; -EAGAIN: the queue of the listener has
 * been full for @patience_s seconds, or is, if that is 0. */
static int call_connect(const char *path, unsigned patience_s)
{
	const struct timeval patience = { .tv_sec = patience_s };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, rc;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (patience_s ? 0 : SOCK_NONBLOCK), 0);
	if (fd < 0)
		return -errno;
	/* connect() waits as long as a send may. */
	if (!setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) &&
	    !connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

int call_try(const char *path)
{
	int fd = call_connect(path, 0);

	if (fd >= 0)
		close(fd);
	/* Questions to a program that stands still stay in its queue. */
	return fd < 0 && fd != -EAGAIN ? fd : 0;
}

/* How long an answer is waited for, and when the user hears of it. */
struct patience {
	const char *path;		/* of the program */
	unsigned s;
	uint64_t deadline_ms, tell_ms;	/* CLOCK_NEVER: the user has heard of it */
};

static void tell(struct patience *p)
{
	p->tell_ms = CLOCK_NEVER;
	fprintf(stderr, "rtrsctl: %s: the program has not answered for %u s: waiting for %u s\n",
		p->path, CALL_GREET_S, p->s);
}

/* Wait for @events of @fd.  0, or -errno; -EAGAIN: the time is over. */
static int wait_for(int fd, short events, struct patience *p)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	uint64_t now, until;
	int n;

	do {
		now = clock_now_ms();
		if (now >= p->tell_ms && now < p->deadline_ms)
			tell(p);
		until = MIN(p->tell_ms, p->deadline_ms);
		n = now < until ? poll(&pfd, 1, (int)(until - now)) : 0;
	} while ((n < 0 && errno == EINTR) || (!n && clock_now_ms() < p->deadline_ms));
	return n < 0 ? -errno : n ? 0 : -EAGAIN;
}

/* 0 or -errno. */
static int send_line(int fd, const json_t *command, struct patience *p)
{
	_cleanup_free_ char *line = json_dumps(command, JSON_COMPACT);
	size_t len = line ? strlen(line) : 0;

	if (!line)
		return -ENOMEM;
	line[len++] = '\n';
	for (size_t sent = 0; sent < len;) {
		int rc = wait_for(fd, POLLOUT, p);
		ssize_t n;

		if (rc)
			return rc;
		n = send(fd, line + sent, len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN)
			return -errno;
		sent += (size_t)MAX(n, 0);
	}
	return 0;
}

/* Read up to @len bytes to @at.  Their number, at least 1, or -errno. */
static ssize_t read_some(int fd, void *at, size_t len, struct patience *p)
{
	ssize_t n;

	do {
		int rc = wait_for(fd, POLLIN, p);

		if (rc)
			return rc;
		n = recv(fd, at, len, MSG_DONTWAIT);
	} while (n < 0 && errno == EAGAIN);
	p->tell_ms = CLOCK_NEVER;
	return n < 0 ? -errno : n ? n : -ECONNRESET;
}

/* Read a line, the answer of the program.  NULL with @rc, -errno; -EMSGSIZE: the line is longer
 * than ANSWER_MAX. */
static json_t *read_line(int fd, struct patience *p, int *rc)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0, len = 0;
	json_t *answer;
	ssize_t n;

	do {
		*rc = -EMSGSIZE;
		if (len == ANSWER_MAX)
			return NULL;
		if (len == size) {
			char *more = realloc(line, size = MAX(2 * size, (size_t)65536));

			*rc = -ENOMEM;
			if (!more)
				return NULL;
			line = more;
		}
		n = read_some(fd, line + len, size - len, p);
		*rc = (int)MIN(n, 0);
		if (n < 0)
			return NULL;
		len += (size_t)n;
		/* An NBD server, for instance, would wait for the client now. */
		*rc = -EPROTO;
		if (*line != '{')
			return NULL;
	} while (line[len - 1] != '\n');
	answer = json_loadb(line, len, 0, NULL);
	*rc = answer ? 0 : -EPROTO;
	return answer;
}

/* Explain @rc to a user, who gave @path. */
static const char *call_why(const char *path, int rc)
{
	struct stat st;

	switch (rc) {
	case -ENAMETOOLONG:
		return "expected a path of at most 107 bytes";
	case -ECONNREFUSED:
		/* The kernel returns the same for a file, and for a directory. */
		if (!stat(path, &st) && !S_ISSOCK(st.st_mode))
			return "expected a control socket: this path is not a socket";
		return "Connection refused: the program is no longer running";
	case -EACCES:
		return "Permission denied: only root and the user who runs the program may connect";
	case -EAGAIN:
		return "the program does not answer";
	case -EMSGSIZE:
		return "expected an answer of at most 64 MiB";
	case -EPROTO:
		return "another kind of program listens there, not one with a control socket";
	default:
		return strerror(-rc);
	}
}

json_t *call_ask(const char *path, const json_t *command, unsigned patience_s, char *err,
		 size_t errlen)
{
	struct patience p = {
		.path = path, .s = patience_s,
		.deadline_ms = clock_now_ms() + patience_s * 1000ull,
		.tell_ms = clock_now_ms() + CALL_GREET_S * 1000ull,
	};
	_cleanup_close_ int fd = call_connect(path, CALL_GREET_S);
	int rc;
	json_t *answer = NULL;

	/* A program that stands still, and whom many have asked. */
	if (fd == -EAGAIN && patience_s > CALL_GREET_S) {
		tell(&p);
		fd = call_connect(path, patience_s - CALL_GREET_S);
	}
	rc = fd < 0 ? fd : send_line(fd, command, &p);
	/* A program that takes no more clients says so, and closes, before it reads. */
	if (!rc || rc == -EPIPE || rc == -ECONNRESET)
		answer = read_line(fd, &p, &rc);

	if (!answer) {
		snprintf(err, errlen, "%s: %s", path, call_why(path, rc));
	} else if (!json_is_true(json_object_get(answer, "ok"))) {
		const char *why = json_string_value(json_object_get(answer, "error"));

		text_lines(why ? why : "refused, without a reason", err, errlen);
		json_decref(answer);
		answer = NULL;
	}
	return answer;
}

json_t *call_program(const struct found_program *program, const char *command, char *err,
		     size_t len)
{
	json_t *request, *answer;

	if (program->silent) {
		snprintf(err, len, "%s: the program does not answer", program->path);
		return NULL;
	}
	request = json_pack("{s:o}", "command", ctl_json_text(command));
	answer = call_ask(program->path, request, CALL_GREET_S, err, len);
	json_decref(request);
	return answer;
}
