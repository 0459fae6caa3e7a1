/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the text of a path.  Owns nothing; any thread; a host name blocks for the resolver. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "clt-addr.h"
#include "rtrs-proto.h"

const char *const clt_transport_names[CLT_TRANSPORTS] = {
	[CLT_TRANSPORT_AUTO] = "auto", [CLT_TRANSPORT_RDMA] = "rdma", [CLT_TRANSPORT_TCP] = "tcp",
};

static size_t scheme_len(const char *text)
{
	const char *sep = strstr(text, "://");

	return sep ? (size_t)(sep - text) + 3 : 0;
}

bool clt_addr_is_open(const char *text)
{
	return !scheme_len(text) && !fab_addr_text_is_unix(text);
}

/* Is @host an address in digits, and no name for a resolver? */
static bool is_number(const char *host)
{
	size_t len = strlen(host);

	return *host == '[' ?
	       strchr(host, ':') && strspn(host, "[]0123456789abcdefABCDEF:.%") == len :
			      strspn(host, "0123456789.:") == len;
}

int clt_addr_parse(const char *text, const struct fab_provider *provider, bool numbers,
		   struct clt_sess_addr *addr, char *err, size_t errlen)
{
	const char *sep = strpbrk(text, "@,");
	size_t scheme = scheme_len(text);
	/* Each is as long as @text at most. */
	char src[CLT_ADDR_TEXT_MAX + 1] = "", dst[CLT_ADDR_TEXT_MAX + 1];
	int r = 0;

	memset(addr, 0, sizeof(*addr));
	/* A path in the file system may contain any character, and has no source. */
	if (fab_addr_text_is_unix(text))
		return fab_addr_parse(text, provider, 0, &addr->dst, err, errlen) < 0 ? -1 : 0;
	if (strlen(text) > CLT_ADDR_TEXT_MAX) {
		snprintf(err, errlen, "expected [SOURCE@]HOST[:PORT] of at most %d bytes",
			 CLT_ADDR_TEXT_MAX);
		return -1;
	}
	if (sep && (size_t)(sep - text) < scheme)
		sep = NULL;
	if (sep && sep == text + scheme) {
		snprintf(err, errlen,
			 "nothing stands in front of '%c': expected [SOURCE@]HOST[:PORT]", *sep);
		return -1;
	}
	if (sep)
		snprintf(src, sizeof(src), "%.*s", (int)(sep - text), text);
	snprintf(dst, sizeof(dst), "%.*s%s", (int)(sep ? scheme : 0), text, sep ? sep + 1 : text);
	if (numbers && ((sep && !is_number(src + scheme)) || !is_number(dst + scheme))) {
		snprintf(err, errlen, "expected addresses, no names");
		return -1;
	}
	if (sep)
		r = fab_addr_parse(src, provider, 0, &addr->src, err, errlen);
	if (r == 0)
		r = fab_addr_parse_peer(dst, provider, RTRS_PORT, &addr->dst, err, errlen);
	return r < 0 ? -1 : 0;
}
