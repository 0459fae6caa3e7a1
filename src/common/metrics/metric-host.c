/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "metric-host.h"

#define NAME_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

int metric_host_check(const char *names, char *why, size_t len)
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
static bool same(const char *a, size_t n, const char *b, size_t m)
{
	return n && n == m && !strncasecmp(a, b, n);
}

static bool in_list(const char *host, size_t len, const char *names)
{
	for (const char *at = names; at; at = strchr(at, ',')) {
		at += *at == ',';
		if (same(host, len, at, strcspn(at, ",")))
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
	return is_address(AF_INET, host, len) || same(host, len, "localhost", 9) ||
	       same(host, len, own, strlen(own)) || same(host, len, own, strcspn(own, ".")) ||
	       in_list(host, len, names);
}
