/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the text of a path.  Owns nothing; any thread. */
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

/* Read an end, @text, into @addr, or, if it is no address, into @name, too.  0, or -1 with @err. */
static int parse_end(const char *text, const struct fab_provider *provider, uint16_t port,
		     struct fab_addr *addr, char name[CLT_NAME_MAX + 1], char *err, size_t errlen)
{
	const char *rest = text + scheme_len(text);

	if (fab_addr_parse_text(text, provider, port, addr, err, errlen))
		return -1;
	if (addr->len)
		return 0;
	if (strlen(rest) > CLT_NAME_MAX) {
		snprintf(err, errlen, "expected a name and a port of at most %d bytes",
			 CLT_NAME_MAX);
		return -1;
	}
	strcpy(name, rest);
	return 0;
}

int clt_addr_parse(const char *text, const struct fab_provider *provider,
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
			 "nothing before '%c': expected [SOURCE@]HOST[:PORT]", *sep);
		return -1;
	}
	if (sep)
		snprintf(src, sizeof(src), "%.*s", (int)(sep - text), text);
	snprintf(dst, sizeof(dst), "%.*s%s", (int)(sep ? scheme : 0), text, sep ? sep + 1 : text);
	if (sep)
		r = parse_end(src, provider, 0, &addr->src, addr->src_name, err, errlen);
	if (r == 0)
		r = parse_end(dst, provider, RTRS_PORT, &addr->dst, addr->dst_name, err, errlen);
	return r;
}

const char *clt_addr_url(const struct clt_sess_addr *addr, char buf[CLT_ADDR_TEXT_MAX + 1])
{
	int n = 0;

	if (*addr->dst_name || !fab_addr_is_unix(&addr->dst))
		n = sprintf(buf, "%s://", fab_provider_name(addr->dst.provider));
	clt_sess_addr_text(addr, buf + n, (size_t)(CLT_ADDR_TEXT_MAX + 1 - n));
	return buf;
}
