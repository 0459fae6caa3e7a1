/* SPDX-License-Identifier: BSD-3-Clause */
/* --allow: prefixes of addresses, and whether a peer is in one.  Pure; owns nothing. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"

/* Clear what is behind the first @bits of @addr. */
static void mask(uint8_t addr[16], unsigned bits)
{
	for (unsigned i = 0; i < 16; i++) {
		unsigned keep = bits > 8 * i ? bits - 8 * i : 0;

		if (keep < 8)
			addr[i] &= (uint8_t)(0xff00u >> keep);
	}
}

static int parse_bits(const char *text, unsigned max, unsigned *bits)
{
	char *end;
	unsigned long value;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	value = strtoul(text, &end, 10);
	if (*end || value > max)
		return -EINVAL;
	*bits = (unsigned)value;
	return 0;
}

int conf_allow_parse(const char *text, struct srv_prefix *prefix)
{
	const char *slash = strchr(text, '/');
	size_t len = slash ? (size_t)(slash - text) : strlen(text);
	char addr[INET6_ADDRSTRLEN];

	if (len > 2 && text[0] == '[' && text[len - 1] == ']') {
		text++;
		len -= 2;
	}
	if (len >= sizeof(addr))
		return -EINVAL;
	memcpy(addr, text, len);
	addr[len] = '\0';
	memset(prefix, 0, sizeof(*prefix));
	if (inet_pton(AF_INET, addr, prefix->addr) == 1) {
		prefix->family = AF_INET;
		prefix->bits = 32;
	} else if (inet_pton(AF_INET6, addr, prefix->addr) == 1) {
		prefix->family = AF_INET6;
		prefix->bits = 128;
	} else {
		return -EINVAL;
	}
	if (slash && parse_bits(slash + 1, prefix->bits, &prefix->bits))
		return -EINVAL;
	mask(prefix->addr, prefix->bits);
	return 0;
}

static bool prefix_matches(const struct srv_prefix *prefix, int family, const uint8_t addr[16])
{
	uint8_t masked[16];

	if (prefix->family != family)
		return false;
	memcpy(masked, addr, sizeof(masked));
	mask(masked, prefix->bits);
	return !memcmp(masked, prefix->addr, sizeof(masked));
}

bool conf_allow_peer(const struct srv_conf *conf, const struct fab_addr *peer)
{
	int family = peer->ss.ss_family;
	uint8_t addr[16] = { 0 };

	if (!conf->nallow)
		return true;
	if (family == AF_INET) {
		memcpy(addr, &((const struct sockaddr_in *)&peer->ss)->sin_addr, 4);
	} else if (family == AF_INET6) {
		const struct in6_addr *a = &((const struct sockaddr_in6 *)&peer->ss)->sin6_addr;

		if (IN6_IS_ADDR_V4MAPPED(a)) {
			family = AF_INET;
			memcpy(addr, a->s6_addr + 12, 4);
		} else {
			memcpy(addr, a->s6_addr, 16);
		}
	}
	for (unsigned i = 0; i < conf->nallow; i++) {
		if (prefix_matches(&conf->allow[i], family, addr))
			return true;
	}
	return false;
}
