/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <errno.h>

#include "clt-hint.h"
#include "rtrs-proto.h"

_Static_assert(RTRS_PORT == 1234, "in words here");

static const char *hint_unix(int err)
{
	switch (err) {
	case -ENOENT:
		return " (is rtrs-server running with --listen unix:PATH?)";
	case -ECONNREFUSED:
		return " (is rtrs-server running? no process listens at this socket)";
	case -ENOTSOCK:
		return " (this path is not a socket)";
	case -EACCES:
		return " (this process needs the right to write to the socket)";
	default:
		return "";
	}
}

const char *clt_hint_unreachable(const struct fab_addr *dst, int err)
{
	if (fab_addr_is_unix(dst))
		return hint_unix(err);
	if (err == -ECONNREFUSED)
		return " (is rtrs-server running there? port 1234 is the default)";
	return "";
}

const char *clt_hint_source(const struct fab_addr *src, int err)
{
	if (src->len && err == -EADDRNOTAVAIL)
		return " (no interface of this machine has the address in front of '@')";
	return "";
}

const char *clt_hint_refused(const struct fab_addr *dst, unsigned cid, int err)
{
	if (err == -EACCES)
		return " (the session belongs to another identity, or is one of a client without; "
		       "the server's log says whose)";
	if (err == -EKEYREVOKED)
		return " (the server has taken the key out: it needs another one)";
	if (cid)		/* the server has let in connection 0 of this path */
		return "";
	switch (err) {
	case -ECONNRESET:
		if (fab_addr_is_unix(dst))
			return " (does its --allow contain this user? its log says why)";
		return " (does its --allow contain this address? its log says why)";
	case -EEXIST:
		return " (the session has a path between these addresses already)";
	case -ENOMEM:
		return " (a limit of the server: its log says which)";
	default:
		return "";
	}
}
