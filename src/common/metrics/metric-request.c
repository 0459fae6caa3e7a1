/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "metric-request.h"

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
