/* SPDX-License-Identifier: BSD-3-Clause */
/* The listening socket of metrics, as users write its address: "PORT" and "ADDR:PORT" with a
 * number as ADDR, "[ADDR]:PORT" for IPv6, and "unix:PATH" with an absolute path.  A PORT alone is
 * a port of 127.0.0.1; port 0 is any free port.  Any thread. */
#ifndef METRIC_SOCK_H
#define METRIC_SOCK_H

#include <stddef.h>

#include "metric-request.h"		/* metric_host_check() */
#include "metric-sock.h"		/* metric_sock_check() */
#include "unix-sock.h"

struct metric_sock {
	int fd;				/* listens; non-blocking; -1: no socket */
	struct unix_sock named;		/* path NULL: a socket of TCP */
	/* for people: "http://127.0.0.1:9091/metrics", "unix:/run/m.sock" */
	char url[128];
};

/* Check the form of @text.  0, or -EINVAL with the expected form in @why. */
int metric_sock_check(const char *text, char *why, size_t len);
/* Listen at @text.  A unix socket has mode 0660 less the umask.  0: metric_sock_close(),
 * metric_sock_leave() or metric_http_open() takes @sock; or -errno with address and reason in
 * @err. */
int metric_sock_listen(struct metric_sock *sock, const char *text, char *err, size_t len);
/* Remove only the name of a unix socket, because the program exits at once: a signal handler may
 * call. */
void metric_sock_unlink(const struct metric_sock *sock);
/* Remove the name of a unix socket, and listen on; metric_sock_close() follows.  Idempotent. */
void metric_sock_unname(struct metric_sock *sock);
/* Close @sock, and remove the name of a unix socket.  Idempotent. */
void metric_sock_close(struct metric_sock *sock);
/* Close @sock, and remove the name of a unix socket, unless a child forked meanwhile listens:
 * unix_sock_leave(), which may wait.  Idempotent. */
void metric_sock_leave(struct metric_sock *sock);

/* Is there a status page beside metrics over HTTP? */
enum metric_page_wanted { METRIC_PAGE_NO, METRIC_PAGE_YES, METRIC_PAGE_N };
/* "no", "yes". */
extern const char *const metric_page_names[METRIC_PAGE_N];

#endif
