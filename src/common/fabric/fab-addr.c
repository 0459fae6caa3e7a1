/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: as users write them, perhaps with a provider in front, and as values.  Owns nothing.
 * Any thread; name resolution may block.  A refusal says what is wrong and what is expected; the
 * caller puts the text in front. */
#include <config.h>

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "fabric.h"
#include "log.h"
#include "names.h"
#include "number.h"
#include "util.h"
#include "wire-int.h"

#define UNIX_SCHEME "unix:"
#ifdef HAVE_RDMA
#define FORMS "expected HOST[:PORT], tcp://HOST[:PORT], rdma://HOST[:PORT] or unix:PATH"
#else
#define FORMS "expected HOST[:PORT], tcp://HOST[:PORT] or unix:PATH"
#endif

/* The path of an AF_UNIX address; "": no name. */
static const char *unix_path(const struct fab_addr *addr)
{
	return ((const struct sockaddr_un *)&addr->ss)->sun_path;
}

static void format_unix(const struct fab_addr *addr, char *buf, size_t len)
{
	if (*unix_path(addr))
		snprintf(buf, len, UNIX_SCHEME "%s", unix_path(addr));
	else
		snprintf(buf, len, UNIX_SCHEME "pid=%d,uid=%u", (int)addr->pid,
			 (unsigned)addr->uid);
	mask_control(buf);
}

const char *fab_addr_format_host(const struct fab_addr *addr, char *buf, size_t len)
{
	char host[INET6_ADDRSTRLEN], scope[16] = "";
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&addr->ss;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&addr->ss;

	if (addr->len == 0) {
		snprintf(buf, len, "none");
	} else if (addr->ss.ss_family == AF_UNIX) {
		format_unix(addr, buf, len);
	} else if (addr->ss.ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
		if (v6->sin6_scope_id)
			snprintf(scope, sizeof(scope), "%%%u", v6->sin6_scope_id);
		snprintf(buf, len, "[%s%s]", host, scope);
	} else {
		inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
		snprintf(buf, len, "%s", host);
	}
	return buf;
}

const char *fab_addr_format(const struct fab_addr *addr, char *buf, size_t len)
{
	size_t n = strlen(fab_addr_format_host(addr, buf, len));

	if (addr->len && addr->ss.ss_family != AF_UNIX)
		snprintf(buf + n, len - n, ":%u", fab_addr_port(addr));
	return buf;
}

const char *fab_addr_url(const struct fab_addr *addr, char *buf, size_t len)
{
	size_t scheme = 0;

	if (addr->len && addr->ss.ss_family != AF_UNIX)
		scheme = (size_t)snprintf(buf, len, "%s://", fab_provider_name(addr->provider));
	if (scheme < len)
		fab_addr_format(addr, buf + scheme, len - scheme);
	return buf;
}

const char *fab_addr_transport(const struct fab_addr *addr)
{
	return fab_addr_is_unix(addr) ? "unix" : fab_provider_name(addr->provider);
}

bool fab_addr_text_is_unix(const char *text)
{
	return strncmp(text, UNIX_SCHEME, strlen(UNIX_SCHEME)) == 0;
}

bool fab_addr_text_agrees(const char *text, const struct fab_provider *p)
{
	const char *sep = strstr(text, "://");
	size_t len = strlen(p->name);

	if (fab_addr_text_is_unix(text))
		return p == &fab_tcp;
	return !sep || ((size_t)(sep - text) == len && !strncmp(text, p->name, len));
}

uint16_t fab_addr_port(const struct fab_addr *addr)
{
	if (addr->len == 0 || addr->ss.ss_family == AF_UNIX)
		return 0;
	if (addr->ss.ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)&addr->ss)->sin6_port);
	return ntohs(((const struct sockaddr_in *)&addr->ss)->sin_port);
}

void fab_addr_unix_peer(int fd, struct fab_addr *addr)
{
	struct ucred cred = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(cred);

	if (!fab_addr_is_unix(addr))
		return;
	memset(((struct sockaddr_un *)&addr->ss)->sun_path, 0,
	       sizeof(struct sockaddr_un) - offsetof(struct sockaddr_un, sun_path));
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	addr->pid = cred.pid;
	addr->uid = cred.uid;
}

bool fab_addr_same(const struct fab_addr *a, const struct fab_addr *b)
{
	return a->len == b->len &&
		(!a->len || (a->provider == b->provider && !memcmp(&a->ss, &b->ss, a->len)));
}

bool fab_addr_same_host(const struct fab_addr *a, const struct fab_addr *b)
{
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)&a->ss;
	const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)&b->ss;
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)&a->ss;
	const struct sockaddr_in *b4 = (const struct sockaddr_in *)&b->ss;

	if (a->len == 0 || b->len == 0 || a->ss.ss_family != b->ss.ss_family)
		return false;
	if (a->ss.ss_family == AF_UNIX)
		return strcmp(unix_path(a), unix_path(b)) == 0 && a->uid == b->uid;
	if (a->ss.ss_family == AF_INET6)
		return memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0 &&
		       a6->sin6_scope_id == b6->sin6_scope_id;
	return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

bool fab_addr_same_net(const struct fab_addr *a, const struct fab_addr *b)
{
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)&a->ss;
	const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)&b->ss;

	/* Written as IPv6, all of IPv4 lies in a single network of 64 bits. */
	if (a->len == 0 || b->len == 0 || a->ss.ss_family != AF_INET6 ||
	    b->ss.ss_family != AF_INET6 || IN6_IS_ADDR_V4MAPPED(&a6->sin6_addr) ||
	    IN6_IS_ADDR_V4MAPPED(&b6->sin6_addr))
		return fab_addr_same_host(a, b);
	return memcmp(&a6->sin6_addr, &b6->sin6_addr, 8) == 0 &&
	       a6->sin6_scope_id == b6->sin6_scope_id;
}

/* The lower half of an IPv4 address that is written as IPv6: as the upper half of an address such a
 * number is reserved (0000::/8). */
static uint64_t net_of_v4(uint32_t host)
{
	return UINT64_C(0xffff) << 32 | host;
}

/* A multicast address (ff00::/8) is no peer's. */
static uint64_t net_of_user(uid_t uid)
{
	return UINT64_C(0xff) << 56 | uid;
}

uint64_t fab_addr_net(const struct fab_addr *addr)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&addr->ss;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&addr->ss;
	be64 upper;
	be32 lower;

	if (fab_addr_is_unix(addr))
		return net_of_user(addr->uid);
	if (addr->ss.ss_family != AF_INET6)
		return net_of_v4(ntohl(v4->sin_addr.s_addr));
	memcpy(&upper, v6->sin6_addr.s6_addr, sizeof(upper));
	memcpy(&lower, v6->sin6_addr.s6_addr + 12, sizeof(lower));
	if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		return net_of_v4(be32_get(lower));
	/* A link-local address, which alone has a scope, has zeroes there. */
	return be64_get(upper) ^ v6->sin6_scope_id;
}

/* ---- text ---- */

/* An address split in place: the positions of host and port in the text. */
struct split {
	char host[256];
	const char *port;	/* NULL: none given */
	uint16_t number;	/* of @port, or the default */
	const struct fab_provider *p;
	const char *why;	/* the fault of a malformed text */
};

#define NOT_ALL "'*' is no address: 0.0.0.0 has all of IPv4 listen, [::] all of IPv6"

/* The C library takes "*" for no host, which is loopback. */
static bool is_star(const char *host, size_t len)
{
	return len == 1 && *host == '*';
}

static int split_host(const char *text, size_t len, struct split *s)
{
	if (len == 0) {
		s->why = "the host is empty: " FORMS;
		return -EINVAL;
	}
	if (is_star(text, len)) {
		s->why = NOT_ALL;
		return -EINVAL;
	}
	if (memchr(text, '/', len)) {
		s->why = "a host has no '/': " FORMS;
		return -EINVAL;
	}
	if (len >= sizeof(s->host)) {
		s->why = "the host name is too long";
		return -EINVAL;
	}
	memcpy(s->host, text, len);
	s->host[len] = '\0';
	return 0;
}

static int split_text(const char *text, struct split *s)
{
	const char *end, *colon;

	s->port = NULL;
	if (text[0] == '[') {
		end = strchr(text, ']');
		if (!end || (end[1] != '\0' && end[1] != ':')) {
			s->why = "expected [IPV6] or [IPV6]:PORT";
			return -EINVAL;
		}
		if (end[1] == ':')
			s->port = end + 2;
		return split_host(text + 1, (size_t)(end - text) - 1, s);
	}
	colon = strchr(text, ':');
	if (strchr(text, ',')) {
		s->why = "expected one address, without a ','";
		return -EINVAL;
	}
	if (colon && strchr(colon + 1, ':')) {
		s->why = text[strspn(text, "0123456789abcdefABCDEF:.%")] && !strchr(text, '%') ?
			"more than one ':': " FORMS :
			"an IPv6 address is written in brackets: [IPV6]:PORT";
		return -EINVAL;
	}
	if (!colon)
		return split_host(text, strlen(text), s);
	s->port = colon + 1;
	return split_host(text, (size_t)(colon - text), s);
}

static int parse_port(struct split *s, uint16_t *port)
{
	unsigned v;

	if (!s->port)
		return 0;
	if (!number_parse_u(s->port, 0, UINT16_MAX, &v)) {
		s->why = "the port must be a number from 0 to 65535";
		return -EINVAL;
	}
	*port = (uint16_t)v;
	return 0;
}

void fab_addr_set_port(struct fab_addr *addr, uint16_t port)
{
	if (addr->ss.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&addr->ss)->sin6_port = htons(port);
	else if (addr->ss.ss_family == AF_INET)
		((struct sockaddr_in *)&addr->ss)->sin_port = htons(port);
}

/* Add the address of @ai to the @n of @all, unless it is there.  The number now. */
static unsigned add_address(struct fab_addr *all, unsigned n, const struct addrinfo *ai,
			    const struct fab_provider *p, uint16_t port)
{
	struct fab_addr *addr = &all[n];

	*addr = (struct fab_addr){ .provider = p, .len = ai->ai_addrlen };
	memcpy(&addr->ss, ai->ai_addr, ai->ai_addrlen);
	fab_addr_set_port(addr, port);
	for (unsigned i = 0; i < n; i++) {
		if (fab_addr_same(&all[i], addr))
			return n;
	}
	return n + 1;
}

/* An IPv6 address behind which '%' names an interface that is not there. */
static bool lacks_interface(const char *host, char *why, size_t len)
{
	const char *scope = strchr(host, '%');

	if (!scope || !memchr(host, ':', (size_t)(scope - host)) || if_nametoindex(scope + 1))
		return false;
	snprintf(why, len, "there is no interface '%s'", scope + 1);
	return true;
}

static int numeric_host(const char *host, struct addrinfo **list)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM,
					.ai_flags = AI_NUMERICHOST };

	/* The "0" is for no host: the two addresses of loopback. */
	return getaddrinfo(host, "0", &hints, list);
}

int fab_addr_resolve(const char *host, const struct fab_provider *p, uint16_t port,
		     struct fab_addr *all, unsigned max, char *why, size_t len)
{
	/* All: a machine that has no address but ::1 of IPv6 can use this one. */
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	unsigned n = 0;
	int rc;

	if (host && is_star(host, strlen(host)))
		return fmt_error(-EINVAL, why, len, "%s", NOT_ALL);
	/* First as a numeric address, which needs no name server. */
	rc = numeric_host(host, &list);
	if (rc == EAI_NONAME && lacks_interface(host, why, len))
		return -ENOENT;
	if (rc == EAI_NONAME)
		rc = getaddrinfo(host, NULL, &hints, &list);
	if (rc)
		return fmt_error(-ENOENT, why, len, "%s",
				 rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
	for (const struct addrinfo *ai = list; ai && n < max; ai = ai->ai_next)
		n = add_address(all, n, ai, p, port);
	freeaddrinfo(list);
	return (int)n;
}

/* Refuse "gid:...", the form of the kernel's modules for InfiniBand ports.  librdmacm takes GIDs on
 * InfiniBand links only, in another port space than IP addresses: GIDs are not served. */
static int refuse_gid(const char *gid, char *err, size_t errlen)
{
	struct in6_addr in6;

	if (inet_pton(AF_INET6, gid, &in6) != 1)
		return fmt_error(-EINVAL, err, errlen, "\"%s\" is no GID: expected 8 groups as in "
				 "an IPv6 address, and no port", gid);
	snprintf(err, errlen, "GIDs are not served: give the IP address of the port's interface");
	return -EPROTONOSUPPORT;
}

static bool is_unbuilt(const char *transport)
{
#ifndef HAVE_RDMA
	if (strcmp(transport, "rdma") == 0)
		return true;
#endif
	return false;
}

static int refuse_transport(const char *name, char *err, size_t errlen)
{
	static const char *const names[] = { "tcp", "rdma", "unix" };
	const char *meant = suggest_name(name, strlen(name), names, ARRAY_SIZE(names));

	if (is_unbuilt(name))
		snprintf(err, errlen, "transport \"%s\" is not in this build (--without-rdma): "
			 FORMS, name);
	else if (meant)
		snprintf(err, errlen, "unknown transport \"%s\" (did you mean %s?): " FORMS, name,
			 meant);
	else
		snprintf(err, errlen, "unknown transport \"%s\": " FORMS, name);
	return -EPROTONOSUPPORT;
}

/* Parse "unix:PATH", absolute, because the programs change their directory (as daemons do). */
static int parse_unix(const char *text, struct fab_addr *addr, char *err, size_t errlen)
{
	struct sockaddr_un *un = (struct sockaddr_un *)&addr->ss;
	const char *path = text + strlen(UNIX_SCHEME);

	if (*path != '/' || strlen(path) >= sizeof(un->sun_path))
		return fmt_error(-EINVAL, err, errlen, "expected unix: and an absolute path of at "
				 "most %zu bytes", sizeof(un->sun_path) - 1);
	*addr = (struct fab_addr){ .provider = &fab_tcp, .len = sizeof(*un) };
	un->sun_family = AF_UNIX;
	memcpy(un->sun_path, path, strlen(path));
	return 0;
}

/* Split @text, which is not "unix:PATH", with its transport, or @p, in s->p.  0, or -errno with
 * @err. */
static int parse_text(const char *text, const struct fab_provider *p, uint16_t default_port,
		      struct split *s, char *err, size_t errlen)
{
	const char *sep = strstr(text, "://"), *rest = text;
	char name[32];
	int rc;

	if (sep) {
		snprintf(name, sizeof(name), "%.*s", (int)(sep - text), text);
		p = fab_provider_find(name);
		rest = sep + 3;
		if (!p)
			return refuse_transport(name, err, errlen);
	}
	if (strncmp(rest, "gid:", 4) == 0)
		return refuse_gid(rest + 4, err, errlen);
	if (!p)
		return fmt_error(-EPROTONOSUPPORT, err, errlen, "no transport given: " FORMS);
	s->p = p;
	s->number = default_port;
	rc = split_text(rest, s);
	if (!rc)
		rc = parse_port(s, &s->number);
	if (rc)
		snprintf(err, errlen, "%s", s->why);
	return rc;
}

int fab_addr_parse_all(const char *text, const struct fab_provider *p, uint16_t default_port,
		       struct fab_addr *all, unsigned max, char *err, size_t errlen)
{
	struct split s;
	char why[128];
	int rc;

	if (fab_addr_text_is_unix(text))
		return parse_unix(text, all, err, errlen) ? -EINVAL : 1;
	rc = parse_text(text, p, default_port, &s, err, errlen);
	if (rc)
		return rc;
	rc = fab_addr_resolve(s.host, s.p, s.number, all, max, why, sizeof(why));
	if (rc < 0)
		snprintf(err, errlen, "cannot resolve \"%s\": %s", s.host, why);
	return rc;
}

int fab_addr_parse_text(const char *text, const struct fab_provider *p, uint16_t default_port,
			struct fab_addr *addr, char *err, size_t errlen)
{
	struct addrinfo *list;
	struct split s;
	int rc;

	if (fab_addr_text_is_unix(text))
		return parse_unix(text, addr, err, errlen);
	rc = parse_text(text, p, default_port, &s, err, errlen);
	if (rc)
		return rc;
	if (default_port && !s.number)
		return fmt_error(-EINVAL, err, errlen, "the port must be a number from 1 to 65535");
	if (strchr(s.host, '%') || numeric_host(s.host, &list)) {
		*addr = (struct fab_addr){ .provider = s.p };
		return 0;
	}
	add_address(addr, 0, list, s.p, s.number);
	freeaddrinfo(list);
	return 0;
}

int fab_addr_parse(const char *text, const struct fab_provider *p, uint16_t default_port,
		   struct fab_addr *addr, char *err, size_t errlen)
{
	int rc = fab_addr_parse_all(text, p, default_port, addr, 1, err, errlen);

	return rc < 0 ? rc : 0;
}

const char *fab_addr_log_name(const struct fab_addr *peer, char buf[FAB_ADDR_STRLEN])
{
	return peer->len && log_wants(LOG_LEVEL_DEBUG) ?
		fab_addr_format(peer, buf, FAB_ADDR_STRLEN) : NULL;
}
