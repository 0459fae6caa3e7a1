/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses as values: written and compared.  Owns nothing; any thread. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "fabric.h"

const char *fab_addr_format(const struct fab_addr *addr, char *buf, size_t len)
{
	char host[INET6_ADDRSTRLEN], scope[16] = "";
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&addr->ss;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)&addr->ss;

	if (addr->len == 0) {
		snprintf(buf, len, "none");
	} else if (addr->ss.ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host));
		if (v6->sin6_scope_id)
			snprintf(scope, sizeof(scope), "%%%u", v6->sin6_scope_id);
		snprintf(buf, len, "[%s%s]:%u", host, scope, ntohs(v6->sin6_port));
	} else {
		inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host));
		snprintf(buf, len, "%s:%u", host, ntohs(v4->sin_port));
	}
	return buf;
}

uint16_t fab_addr_port(const struct fab_addr *addr)
{
	if (addr->len == 0)
		return 0;
	if (addr->ss.ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)&addr->ss)->sin6_port);
	return ntohs(((const struct sockaddr_in *)&addr->ss)->sin_port);
}

bool fab_addr_same_host(const struct fab_addr *a, const struct fab_addr *b)
{
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)&a->ss;
	const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)&b->ss;
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)&a->ss;
	const struct sockaddr_in *b4 = (const struct sockaddr_in *)&b->ss;

	if (a->len == 0 || b->len == 0 || a->ss.ss_family != b->ss.ss_family)
		return false;
	if (a->ss.ss_family == AF_INET6)
		return memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0 &&
		       a6->sin6_scope_id == b6->sin6_scope_id;
	return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

bool fab_addr_same_net(const struct fab_addr *a, const struct fab_addr *b)
{
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)&a->ss;
	const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)&b->ss;

	/* All of IPv4 lies in one such network, written as IPv6. */
	if (a->len == 0 || b->len == 0 || a->ss.ss_family != AF_INET6 || b->ss.ss_family != AF_INET6 ||
	    IN6_IS_ADDR_V4MAPPED(&a6->sin6_addr) || IN6_IS_ADDR_V4MAPPED(&b6->sin6_addr))
		return fab_addr_same_host(a, b);
	return memcmp(&a6->sin6_addr, &b6->sin6_addr, 8) == 0 &&
	       a6->sin6_scope_id == b6->sin6_scope_id;
}
