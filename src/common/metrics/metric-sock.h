/* SPDX-License-Identifier: BSD-3-Clause */
/* The listening socket of metrics, as users write its address: "PORT" and "ADDR:PORT" with a
 * number as ADDR, "[ADDR]:PORT" for IPv6, and "unix:PATH" with an absolute path.  A PORT alone is
 * a port of 127.0.0.1; port 0 is any free port.  Any thread. */
#ifndef METRIC_SOCK_H
#define METRIC_SOCK_H

#include <stdbool.h>
#include <stddef.h>

#include "metric.h"
#include "unix-sock.h"

struct metric_sock {
	int fd;				/* listens; non-blocking; -1: no socket */
	struct unix_sock named;		/* path NULL: a socket of TCP */
	/* for people: "http://127.0.0.1:9091/metrics", "unix:/run/m.sock" */
	char url[128];
};

/* opt.call: check the form of @text, and the length of a path.  0, or -EINVAL with what is expected
 * in @why. */
int metric_sock_check(void *conf, const char *text, char *why, size_t len);
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

/* ---- what the headers of a request say: Host and Accept.  Pure ----
 *
 * Host has the names by which readers of metrics may ask for this program, against DNS rebinding: a
 * foreign page lets its own name lead to an address of ours, and the browser then hands our answer
 * to that page.  Such a request has the page's name in its header Host. */

/* opt.call: check the form of @names, "NAME[,NAME...]".  0, or -EINVAL with the expected form in
 * @why. */
int metric_host_check(void *conf, const char *names, char *why, size_t len);
/* Is @host, the value of a header Host, one of ours? An address is, and "localhost", the name of
 * this machine @own, whole or up to its first dot, and a name in @names.  NULL as @names: none.
 * NULL as @host is one of ours: a browser always has the header.  A port behind @host does not
 * count, nor do capitals. */
bool metric_host_is_ours(const char *host, const char *own, const char *names);

/* The format that @accept, the value of a header Accept (RFC 9110, 12.5.1), prefers.  NULL: there
 * is none.  A reader that takes both alike gets OpenMetrics if it names that, and a reader that
 * takes neither gets the text of Prometheus, as one that says nothing. */
enum metric_format metric_accept(const char *accept);

/* Is there a status page beside metrics over HTTP? */
enum metric_page_wanted { METRIC_PAGE_NO, METRIC_PAGE_YES, METRIC_PAGE_N };
/* "no", "yes". */
extern const char *const metric_page_names[METRIC_PAGE_N];

#endif
