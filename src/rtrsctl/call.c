/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a connection for the time of a single answer; blocks, and gives up after a while. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "call.h"
#include "cleanup.h"

/* No program of this package has a longer answer. */
#define ANSWER_MAX ((size_t)64 << 20)

_Static_assert(sizeof(((struct sockaddr_un *)NULL)->sun_path) == 108, "in words here");
_Static_assert(ANSWER_MAX == 64 << 20, "in words here");

/* A descriptor or -errno. */
static int call_connect(const char *path, unsigned patience_s)
{
	const struct timeval patience = { .tv_sec = patience_s };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, rc;

	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	memcpy(addr.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) &&
	    !setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) &&
	    !connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

int call_try(const char *path)
{
	int fd = call_connect(path, CALL_GREET_S);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

/* 0 or -errno. */
static int send_line(int fd, const json_t *command)
{
	_cleanup_free_ char *line = json_dumps(command, JSON_COMPACT);
	size_t len = line ? strlen(line) : 0;

	if (!line)
		return -ENOMEM;
	line[len++] = '\n';
	for (size_t sent = 0; sent < len;) {
		ssize_t n = send(fd, line + sent, len - sent, MSG_NOSIGNAL);

		if (n < 0)
			return -errno;
		sent += (size_t)n;
	}
	return 0;
}

/* Read a line, the answer of the program.  NULL with errno; EMSGSIZE: the line is longer than
 * ANSWER_MAX. */
static json_t *read_line(int fd)
{
	_cleanup_free_ char *line = NULL;
	size_t size = 0, len = 0;
	json_t *answer;

	do {
		ssize_t n;

		if (len == ANSWER_MAX) {
			errno = EMSGSIZE;
			return NULL;
		}
		if (len == size) {
			char *more = realloc(line, size += 65536);

			if (!more)
				return NULL;
			line = more;
		}
		n = recv(fd, line + len, size - len, 0);
		if (n < 0)
			return NULL;
		if (!n) {
			errno = ECONNRESET;
			return NULL;
		}
		len += (size_t)n;
		/* An NBD server, for instance, would wait for the client now. */
		if (*line != '{') {
			errno = EPROTO;
			return NULL;
		}
	} while (line[len - 1] != '\n');
	answer = json_loadb(line, len, 0, NULL);
	if (!answer)
		errno = EPROTO;
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
		return "Connection refused: the program does not run any more";
	case -EACCES:
		return "Permission denied: root may ask, and the user who runs the program";
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
	_cleanup_close_ int fd = call_connect(path, patience_s);
	json_t *answer = NULL;
	int rc = fd < 0 ? fd : send_line(fd, command);

	if (!rc) {
		answer = read_line(fd);
		rc = -errno;
	}
	if (!answer) {
		snprintf(err, errlen, "%s: %s", path, call_why(path, rc));
	} else if (!json_is_true(json_object_get(answer, "ok"))) {
		const char *why = json_string_value(json_object_get(answer, "error"));

		snprintf(err, errlen, "%s", why ? why : "refused, without a reason");
		json_decref(answer);
		answer = NULL;
	}
	return answer;
}
