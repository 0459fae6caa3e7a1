/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the listening sockets and the name of a unix socket.  A failure leaves no file behind. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "cleanup.h"
#include "fab-names.h"
#include "gate.h"
#include "log.h"
#include "number.h"
#include "process.h"

#define BACKLOG 512
#define PORT 10809			/* IANA's for NBD */

/* ---- given sockets ---- */

/* Sockets for another process were inherited, as behind a shell that does not exec.  libsystemd
 * passes over these without a word. */
static void tell_not_given(void)
{
	const char *pid = getenv("LISTEN_PID"), *n = getenv("LISTEN_FDS");

	if (!n || !strcmp(n, "0"))
		return;
	log_warn(NULL, "LISTEN_PID '%s': expected %d, the process of rtrs-nbd: the sockets of "
		 "LISTEN_FDS '%s' are not used", pid ? pid : "", (int)getpid(), n);
}

/* Take the given sockets.  Their number, or -errno. */
static int take_given(struct gate_listen *l, char *err, size_t len)
{
	int n = sd_listen_fds(0);

	if (n < 0)
		return fmt_error(n, err, len, "LISTEN_FDS '%s': %s", getenv("LISTEN_FDS"),
				 fds_strerror(n));
	if (n == 0)
		tell_not_given();
	sd_listen_fds(1);		/* forgets the variables */
	if (n > GATE_LISTEN_MAX)
		return fmt_error(-E2BIG, err, len, "LISTEN_FDS '%d': expected at most %d", n,
				 GATE_LISTEN_MAX);
	l->given = n > 0;
	for (int i = 0; i < n; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		if (sd_is_socket(fd, AF_UNSPEC, SOCK_STREAM, 1) <= 0)
			return fmt_error(-ENOTSOCK, err, len, "descriptor %d of LISTEN_FDS: "
					 "expected a stream socket that listens", fd);
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
		if (!l->dir || !mkdtemp(l->dir) || asprintf(&own, "%s/socket", l->dir) < 0)
			return fmt_error(-EIO, err, len, "cannot make a directory for a socket: %s",
					 fds_strerror(-errno));
		path = own;
	}
	r = unix_sock_listen(&l->socket, path, 0777, BACKLOG, err, len);
	if (r < 0)
		return r;
	l->fds[l->n++] = l->socket.fd;
	return 0;
}

/* ---- TCP ---- */

static struct fab_addr address_of(int fd)
{
	struct fab_addr addr = { .provider = &fab_tcp, .len = sizeof(addr.ss) };

	getsockname(fd, (struct sockaddr *)&addr.ss, &addr.len);
	return addr;
}

/* Listen at the address @addr.  The kernel chooses a port for the first address, and the other
 * addresses get the same port.  0 or -errno. */
static int listen_at(struct gate_listen *l, struct fab_addr *addr)
{
	int one = 1, fd = socket(addr->ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct fab_addr first;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (addr->ss.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (l->n) {
		first = address_of(l->fds[0]);
		fab_addr_set_port(addr, fab_addr_port(&first));
	}
	if (bind(fd, (struct sockaddr *)&addr->ss, addr->len) < 0 || listen(fd, BACKLOG) < 0) {
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
	const char *where = o->address ? o->address : "localhost";
	int port = o->port == GATE_PORT_NONE ? PORT : o->port, r = 0, n;
	struct fab_addr all[FAB_ADDRS_MAX];
	char why[128];

	_Static_assert(FAB_ADDRS_MAX <= GATE_LISTEN_MAX, "room for each address");
	n = fab_names_resolve(o->address, &fab_tcp, (uint16_t)port, all, why, sizeof(why));
	if (n < 0)
		return fmt_error(-ENOENT, err, len, "--ipaddr '%s' --port '%d': %s", where, port,
				 why);
	for (int i = 0; r == 0 && i < n; i++) {
		int one = listen_at(l, &all[i]);

		if (one < 0 && one != -EADDRNOTAVAIL && one != -EAFNOSUPPORT)
			r = one;
	}
	if (r == 0 && !l->n)
		r = -EADDRNOTAVAIL;
	return r < 0 ? fmt_error(r, err, len, "cannot listen on %s port %d: %s", where, port,
				 fds_strerror(r)) : 0;
}

/* ---- the whole ---- */

int gate_listen_open(struct gate_listen *l, const struct gate_options *o, char *err, size_t len)
{
	int r;

	*l = (struct gate_listen){ .socket.fd = -1 };
	r = take_given(l, err, len);
	if (r > 0 && (o->socket || o->address || o->port != GATE_PORT_NONE || o->run))
		r = fmt_error(-EINVAL, err, len, "LISTEN_FDS passes sockets: remove --unix, "
			      "--ipaddr, --port and --run, and their lines of the file (the port "
			      "of the server is server=HOST:PORT)");
	else if (r == 0)
		r = o->socket ? gate_listen_unix(l, o->socket, err, len)
			      : listen_tcp(l, o, err, len);
	if (r < 0) {
		gate_listen_close(l);
		return r;
	}
	for (unsigned i = 0; i < l->n && !l->port; i++) {
		struct fab_addr addr = address_of(l->fds[i]);

		l->port = fab_addr_port(&addr);
	}
	return 0;
}

const char *gate_listen_url(const struct gate_listen *l, unsigned i, char buf[FAB_ADDR_STRLEN])
{
	struct fab_addr addr = address_of(l->fds[i]);

	return fab_addr_url(&addr, buf, FAB_ADDR_STRLEN);
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
