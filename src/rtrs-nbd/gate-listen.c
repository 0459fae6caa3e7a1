/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the listening sockets and the name of a unix socket.  A failure leaves no file behind. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "cleanup.h"
#include "gate-listen.h"

#define BACKLOG 512
#define PORT 10809			/* IANA's for NBD */

/* ---- given sockets ---- */

/* Take the given sockets.  Their number, or -errno. */
static int take_given(struct gate_listen *l, char *err, size_t len)
{
	int n = sd_listen_fds(1);

	if (n < 0) {
		snprintf(err, len, "LISTEN_FDS '%s': %s", getenv("LISTEN_FDS"), strerror(-n));
		return n;
	}
	if (n > GATE_LISTEN_MAX) {
		snprintf(err, len, "LISTEN_FDS '%d': expected at most %d", n, GATE_LISTEN_MAX);
		return -E2BIG;
	}
	l->given = n > 0;
	for (int i = 0; i < n; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0) {
			snprintf(err, len, "descriptor %d of LISTEN_FDS: expected a stream socket "
				 "that listens", fd);
			return -ENOTSOCK;
		}
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
		l->fds[l->n++] = fd;
	}
	return n;
}

/* ---- a unix socket ---- */

static int gate_listen_unix(struct gate_listen *l, const char *path, char *err, size_t len)
{
	_cleanup_free_ char *own = NULL;
	int r;

	if (!strcmp(path, "-")) {
		l->dir = strdup("/tmp/rtrs-nbd.XXXXXX");
		if (!l->dir || !mkdtemp(l->dir) || asprintf(&own, "%s/socket", l->dir) < 0) {
			snprintf(err, len, "cannot make a directory for a socket: %s",
				 strerror(errno));
			return -EIO;
		}
		path = own;
	}
	r = unix_sock_listen(&l->socket, path, 0777, BACKLOG, err, len);
	if (r < 0)
		return r;
	l->fds[l->n++] = l->socket.fd;
	return 0;
}

/* ---- TCP ---- */

static unsigned port_of(int fd)
{
	struct sockaddr_storage addr = { 0 };
	socklen_t len = sizeof(addr);

	getsockname(fd, (struct sockaddr *)&addr, &len);
	if (addr.ss_family == AF_INET)
		return ntohs(((struct sockaddr_in *)&addr)->sin_port);
	if (addr.ss_family == AF_INET6)
		return ntohs(((struct sockaddr_in6 *)&addr)->sin6_port);
	return 0;
}

/* The kernel chooses a port for the first address, and the other addresses get the same port. */
static void port_set(struct sockaddr *addr, unsigned port)
{
	if (addr->sa_family == AF_INET)
		((struct sockaddr_in *)addr)->sin_port = htons((uint16_t)port);
	else if (addr->sa_family == AF_INET6)
		((struct sockaddr_in6 *)addr)->sin6_port = htons((uint16_t)port);
}

/* Listen at the address @ai.  0 or -errno. */
static int listen_at(struct gate_listen *l, const struct addrinfo *ai)
{
	int one = 1, fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (ai->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (l->n)
		port_set(ai->ai_addr, port_of(l->fds[0]));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	l->fds[l->n++] = fd;
	return 0;
}

/* Listen at each address of the name.  A machine without IPv6 has fewer, which is no error. */
static int listen_tcp(struct gate_listen *l, const struct gate_options *o, char *err, size_t len)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	const char *where = o->address ? o->address : "localhost";
	struct addrinfo *list;
	char port[16];
	int rc, r = 0;

	snprintf(port, sizeof(port), "%d", o->port == GATE_PORT_NONE ? PORT : o->port);
	rc = getaddrinfo(o->address, port, &hints, &list);
	if (rc) {
		snprintf(err, len, "--ipaddr '%s' --port '%s': %s", where, port, gai_strerror(rc));
		return -ENOENT;
	}
	for (const struct addrinfo *ai = list; ai && l->n < GATE_LISTEN_MAX; ai = ai->ai_next) {
		int one = listen_at(l, ai);

		if (one < 0 && one != -EADDRNOTAVAIL && one != -EAFNOSUPPORT)
			r = one;
		if (r < 0)
			break;
	}
	freeaddrinfo(list);
	if (r == 0 && !l->n)
		r = -EADDRNOTAVAIL;
	if (r < 0)
		snprintf(err, len, "cannot listen at %s port %s: %s", where, port, strerror(-r));
	return r;
}

/* ---- the whole ---- */

int gate_listen_open(struct gate_listen *l, const struct gate_options *o, char *err, size_t len)
{
	int r;

	*l = (struct gate_listen){ .socket.fd = -1 };
	r = take_given(l, err, len);
	if (r > 0 && (o->socket || o->address || o->port != GATE_PORT_NONE)) {
		snprintf(err, len, "LISTEN_FDS gives sockets: --unix, --ipaddr and --port are not "
			 "expected with them");
		r = -EINVAL;
	} else if (r == 0) {
		r = o->socket ? gate_listen_unix(l, o->socket, err, len)
			      : listen_tcp(l, o, err, len);
	}
	if (r < 0) {
		gate_listen_close(l);
		return r;
	}
	for (unsigned i = 0; i < l->n && !l->port; i++)
		l->port = port_of(l->fds[i]);
	return 0;
}

void gate_listen_close(struct gate_listen *l)
{
	/* ORDER: the name goes before the socket, so that no client finds a dead one. */
	if (l->socket.path)
		unix_sock_remove(&l->socket);
	for (unsigned i = 0; i < l->n; i++)
		close(l->fds[i]);
	l->n = 0;
	if (l->dir)
		rmdir(l->dir);
	free(l->dir);
	l->dir = NULL;
}

int gate_listen_peer(int fd, struct fab_addr *peer)
{
	*peer = (struct fab_addr){ .provider = &fab_tcp, .len = sizeof(peer->ss) };
	if (getpeername(fd, (struct sockaddr *)&peer->ss, &peer->len))
		return -errno;
	fab_addr_unix_peer(fd, peer);
	return 0;
}
