/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses addresses and headers, and listens.  Owns nothing: a socket is its caller's. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "metric-sock.h"
#include "process.h"

#define UNIX_PREFIX "unix:"
#define LOOPBACK "127.0.0.1"		/* of a port alone */
#define UNIX_MODE 0660
#define SOCK_BACKLOG 64

/* The path in @text; NULL: @text is no address of a unix socket. */
static const char *unix_path(const char *text)
{
	size_t len = sizeof(UNIX_PREFIX) - 1;

	return strncmp(text, UNIX_PREFIX, len) ? NULL : text + len;
}

static int not_an_address(char *why, size_t len)
{
	snprintf(why, len, "expected PORT (of " LOOPBACK "), ADDR:PORT with a numeric address "
		 "(0.0.0.0: all of IPv4), or unix:PATH with an absolute path");
	return -EINVAL;
}

/* Split @text in host and port.  A port alone has the host LOOPBACK. */
static bool split_host(const char *text, char host[INET6_ADDRSTRLEN], const char **port)
{
	const char *colon = strrchr(text, ':'), *from = text;
	size_t len;

	if (!colon) {
		memcpy(host, LOOPBACK, sizeof(LOOPBACK));
		*port = text;
		return true;
	}
	*port = colon + 1;
	len = (size_t)(colon - text);
	if (len > 2 && text[0] == '[' && colon[-1] == ']') {
		from++;
		len -= 2;
	} else if (memchr(text, ':', len)) {
		return false;
	}
	/* The C library takes "*" for 0.0.0.0 here. */
	if (!len || len >= INET6_ADDRSTRLEN || *from == '*')
		return false;
	memcpy(host, from, len);
	host[len] = '\0';
	return true;
}

/* getaddrinfo() takes 65536 for 0. */
static bool is_port(const char *text)
{
	size_t len = strspn(text, "0123456789");

	return len && len <= 5 && !text[len] && strtoul(text, NULL, 10) <= 65535;
}

static int parse_tcp(const char *text, struct addrinfo **ai, char *why, size_t len)
{
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
		.ai_socktype = SOCK_STREAM,
	};
	char host[INET6_ADDRSTRLEN];
	const char *port;

	if (!split_host(text, host, &port) || !is_port(port) || getaddrinfo(host, port, &hints, ai))
		return not_an_address(why, len);
	return 0;
}

int metric_sock_check(void *conf, const char *text, char *why, size_t len)
{
	const char *path = unix_path(text);
	struct addrinfo *ai;
	int r;

	if (path)
		return *path == '/' ? unix_sock_check(conf, path, why, len) :
				      not_an_address(why, len);
	r = parse_tcp(text, &ai, why, len);
	if (r == 0)
		freeaddrinfo(ai);
	return r;
}

/* ---- listen ---- */

static int listen_at(const struct addrinfo *ai)
{
	const int one = 1;
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), r;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, SOCK_BACKLOG) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

static const char *listen_hint(int err)
{
	switch (err) {
	case -EADDRINUSE:
		return ": another program listens there (ss -ltnp), and each needs a port of its "
		       "own";
	case -EADDRNOTAVAIL:
		return ": no interface of this machine has the address";
	case -EACCES:
		return ": a port this low needs root or CAP_NET_BIND_SERVICE";
	default:
		return "";
	}
}

static void tell_url(struct metric_sock *sock)
{
	struct sockaddr_storage addr = { 0 };
	socklen_t len = sizeof(addr);
	char host[INET6_ADDRSTRLEN] = "", port[8] = "";

	getsockname(sock->fd, (struct sockaddr *)&addr, &len);
	getnameinfo((struct sockaddr *)&addr, len, host, sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(sock->url, sizeof(sock->url),
		 addr.ss_family == AF_INET6 ? "http://[%s]:%s/metrics" : "http://%s:%s/metrics",
		 host, port);
}

static int listen_tcp(struct metric_sock *sock, const char *text, char *err, size_t len)
{
	struct addrinfo *ai;
	char why[128];
	int r = parse_tcp(text, &ai, why, sizeof(why));

	if (r) {
		snprintf(err, len, "'%s': %s", text, why);
		return r;
	}
	sock->fd = listen_at(ai);
	freeaddrinfo(ai);
	if (sock->fd < 0) {
		r = sock->fd;
		snprintf(err, len, "'%s': cannot listen: %s%s", text, fds_strerror(r),
			 listen_hint(r));
		sock->fd = -1;
		return r;
	}
	tell_url(sock);
	return 0;
}

int metric_sock_listen(struct metric_sock *sock, const char *text, char *err, size_t len)
{
	const char *path = unix_path(text);
	int r;

	*sock = (struct metric_sock){ .fd = -1 };
	if (!path)
		return listen_tcp(sock, text, err, len);
	r = unix_sock_listen(&sock->named, path, UNIX_MODE, SOCK_BACKLOG, err, len);
	if (r)
		return r;
	sock->fd = sock->named.fd;
	snprintf(sock->url, sizeof(sock->url), UNIX_PREFIX "%s", path);
	return 0;
}

/* ---- end ---- */

void metric_sock_unlink(const struct metric_sock *sock)
{
	if (sock->named.path)
		unix_sock_unlink(&sock->named);
}

void metric_sock_unname(struct metric_sock *sock)
{
	if (sock->named.path)
		unix_sock_remove(&sock->named);
}

void metric_sock_close(struct metric_sock *sock)
{
	metric_sock_unname(sock);
	if (sock->fd >= 0)
		close(sock->fd);
	sock->fd = -1;
}

void metric_sock_leave(struct metric_sock *sock)
{
	if (!sock->named.path) {
		metric_sock_close(sock);
		return;
	}
	unix_sock_leave(&sock->named);
	sock->fd = -1;
}

const char *const metric_page_names[METRIC_PAGE_N] = { "no", "yes" };

/* ---- Host ---- */

#define NAME_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

int metric_host_check(void *conf, const char *names, char *why, size_t len)
{
	for (const char *at = names;; at++) {
		size_t n = strspn(at, NAME_BYTES);

		if (!n || (at[n] && at[n] != ','))
			break;
		at += n;
		if (!*at)
			return 0;
	}
	snprintf(why, len, "expected NAME[,NAME...], names of hosts without a port");
	return -EINVAL;
}

/* @a of @n bytes is @b, whatever the capitals. */
static bool same_name(const char *a, size_t n, const char *b, size_t m)
{
	return n && n == m && !strncasecmp(a, b, n);
}

static bool in_list(const char *host, size_t len, const char *names)
{
	for (const char *at = names; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (same_name(host, len, at, strcspn(at, ",")))
			return true;
	}
	return false;
}

static bool is_address(int family, const char *text, size_t len)
{
	char copy[INET6_ADDRSTRLEN], addr[sizeof(struct in6_addr)];

	if (len >= sizeof(copy))
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return inet_pton(family, copy, addr) == 1;
}

bool metric_host_is_ours(const char *host, const char *own, const char *names)
{
	size_t len;

	if (!host)
		return true;
	if (*host == '[') {
		len = strcspn(++host, "]");
		return host[len] && is_address(AF_INET6, host, len);
	}
	len = strcspn(host, ":");
	/* A name may end in the dot of DNS' root. */
	if (len && host[len - 1] == '.')
		len--;
	return is_address(AF_INET, host, len) || same_name(host, len, "localhost", 9) ||
	       same_name(host, len, own, strlen(own)) ||
	       same_name(host, len, own, strcspn(own, ".")) ||
	       in_list(host, len, names);
}

/* ---- Accept ----
 *
 * The quality of a type is that of the most exact range that it fits: type/subtype, then type slash
 * star, then the range of everything.  Parameters but q are not looked at: a reader of a version
 * that we do not have takes ours, too. */

/* How a range of the header fits a type; a larger value is more exact. */
enum fit { FIT_NOT, FIT_ALL, FIT_TYPE, FIT_EXACT };

struct wish {
	const char *type, *subtype;
	enum fit fit;
	unsigned q;			/* thousandths */
};

static bool same(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && !strncasecmp(text, word, len);
}

static enum fit fits(const struct wish *w, const char *range, size_t len)
{
	const char *slash = memchr(range, '/', len);
	size_t type = slash ? (size_t)(slash - range) : len, rest = slash ? len - type - 1 : 0;

	if (!slash)
		return FIT_NOT;
	if (same(range, type, "*") && same(slash + 1, rest, "*"))
		return FIT_ALL;
	if (!same(range, type, w->type))
		return FIT_NOT;
	if (same(slash + 1, rest, "*"))
		return FIT_TYPE;
	return same(slash + 1, rest, w->subtype) ? FIT_EXACT : FIT_NOT;
}

/* The value of the parameter q of @item, [@len], in thousandths; 1000 without one. */
static unsigned quality(const char *item, size_t len)
{
	const char *end = item + len, *at = memchr(item, ';', len);
	double q = 1;

	for (; at; at = memchr(at, ';', (size_t)(end - at))) {
		at += 1 + strspn(at + 1, " \t");
		if (at + 2 < end && !strncasecmp(at, "q=", 2))
			q = strtod(at + 2, NULL);
	}
	return q >= 1 ? 1000 : q > 0 ? (unsigned)(q * 1000) : 0;
}

enum metric_format metric_accept(const char *accept)
{
	struct wish open = { .type = "application", .subtype = "openmetrics-text" },
		text = { .type = "text", .subtype = "plain" };
	struct wish *wishes[] = { &open, &text };

	for (size_t len; accept && *accept; accept += len) {
		accept += strspn(accept, ", \t");
		len = strcspn(accept, ",");
		for (unsigned i = 0; i < 2; i++) {
			struct wish *w = wishes[i];
			enum fit fit = fits(w, accept, strcspn(accept, ",; \t"));
			unsigned q = quality(accept, len);

			if (fit == FIT_NOT || fit < w->fit || (fit == w->fit && q <= w->q))
				continue;
			w->fit = fit;
			w->q = q;
		}
	}
	return open.q > text.q || (open.q && open.q == text.q && open.fit == FIT_EXACT) ?
	       METRIC_OPENMETRICS : METRIC_PROMETHEUS;
}
