/* SPDX-License-Identifier: BSD-3-Clause */
/* Why a server cannot be reached, or refuses: hints in words, and the cause of a failed attempt. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "clt-cause.h"
#include "rtrs-proto.h"
#include "util.h"

#define TELL_AGAIN_MS 60000

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
	case CLT_BUSY:
		return " (of the socket: more connect to it than it lets wait)";
	default:
		return "";
	}
}

const char *clt_cause_unreachable(const struct fab_addr *dst, int err)
{
	if (fab_addr_is_unix(dst))
		return hint_unix(err);
	switch (err) {
	case -ECONNREFUSED:
		return " (no rtrs-server listens there, or a firewall rejects it; port 1234 is the "
		       "default)";
	case -EHOSTUNREACH:
		return " (no machine has this address, or a firewall rejects it)";
	case -ENETUNREACH:
		return " (this machine has no route to that network)";
	default:
		return "";
	}
}

const char *clt_cause_source(const struct fab_addr *src, int err)
{
	if (src->len && err == -EADDRNOTAVAIL)
		return " (no interface of this machine has the address in front of '@')";
	return "";
}

const char *clt_cause_reason(unsigned refusal, bool has_key)
{
	static const char *const hints[] = {
		[RTRS_REFUSES_IDENTITY] = "the session belongs to another identity (expected the "
			"same key or certificate on all paths; the server's log says whose)",
		[RTRS_REFUSES_OTHER_KEY] = "the session was made with another key of this identity "
			"(the key in use counts until all paths are lost)",
		[RTRS_REFUSES_KEY] = "the server has removed the key from its file (auth-psk= or "
				     "tls-psk= needs another one)",
		[RTRS_REFUSES_CERTIFICATE] = "the server no longer accepts the certificate "
					     "(revoked, expired, or of another authority: "
					     "tls-certificates= needs another one)",
		[RTRS_REFUSES_MIXED] = "another connection of the path has TLS and this one has "
				       "none, or vice versa (TLS may have been terminated between "
				       "the ends)",
		[RTRS_REFUSES_TWO_NAMES] = "the key of tls-psk= is of another identity than the "
			"key of auth-psk= (expected keys of one name)",
		[RTRS_REFUSES_SESSIONS] = "the server has as many sessions as it allows (its "
			"--max-sessions)",
		[RTRS_REFUSES_PATHS] = "the server has as many paths as it allows (its "
			"--max-paths)",
		[RTRS_REFUSES_MEMORY] = "the server has no memory left for another path, of this "
			"host or of all (its --max-memory and --queue-depth, or fewer "
			"connections= here)",
		[RTRS_REFUSES_CONNECTIONS] = "the server has as many connections as it allows, of "
			"this host or of all (its --max-connections, or fewer connections= here)",
		[RTRS_REFUSES_SETUPS] = "too many paths connect to the server at once, of this "
			"host or of all (this passes by itself)",
		[RTRS_REFUSES_OWN_PATHS] = "the session has as many paths as RTRS allows",
		[RTRS_REFUSES_STOPPING] = "the server is shutting down",
		[RTRS_REFUSES_CLOSING] = "a former path of this client has not closed at the "
			"server in time (the client tries again)",
		[RTRS_REFUSES_SUCCEEDED] = "a later process has taken over from this one (expected "
			"one process at a time)",
	};

	if (refusal == RTRS_REFUSES_UNPROVEN)
		return has_key ? "this connection is not of the path that was authenticated (too "
			"long ago, from another address, or TLS was terminated between the ends: "
			"the server's log says which)" :
			"the server requires authentication (auth-psk=FILE with a key that the "
			"server's --auth-psk has)";
	return refusal < ARRAY_SIZE(hints) && hints[refusal] ? hints[refusal] : "";
}

const char *clt_cause_refused(const struct fab_addr *dst, unsigned cid, int err)
{
	if (err == -EACCES)
		return " (it requires a key, auth-psk=FILE; or it is older, and takes a key of "
		       "this client over RDMA alone: upgrade the server; or the session belongs to "
		       "another identity; or TLS was terminated between the ends: the server's log "
		       "says which)";
	if (err == -EKEYREVOKED)
		return " (the server has removed this key: use another one)";
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

void clt_cause_session(unsigned refusal, const char *name, char *why, size_t len)
{
	static const char *const hints[] = {
		[RTRS_REFUSES_NAME] = "another client of the same identity has it (expected a "
				      "different sessname for each client; the server's log names "
				      "the other one)",
		[RTRS_REFUSES_NAME_CLOSING] = "a session with this name is closing, and has not "
			"ended in time",
		[RTRS_REFUSES_IDENTITY] = "the session belongs to another identity (expected the "
			"same key or certificate on all paths; the server's log says whose)",
		[RTRS_REFUSES_OTHER_NAME] = "the session has another name there (expected one "
			"sessname for all paths)",
		[RTRS_REFUSES_EXPORT] = "the session has an export open that this path may not "
			"open, or not for writing (expected an address that its allow and "
			"read-only take; the server's log says which)",
	};

	if (refusal < ARRAY_SIZE(hints) && hints[refusal])
		snprintf(why, len, "the server refused session '%.48s': %s", name, hints[refusal]);
	else
		snprintf(why, len, "the server refused session '%.48s': reason %u (its log says "
			 "more)", name, refusal);
}

/* ---- the cause of an attempt ---- */

void clt_cause_init(struct clt_cause *cause)
{
	memset(cause, 0, sizeof(*cause));
	pthread_mutex_init(&cause->lock, NULL);
}

void clt_cause_fini(struct clt_cause *cause)
{
	pthread_mutex_destroy(&cause->lock);
}

void clt_cause_keep(struct clt_cause *cause, int err, const char *text)
{
	pthread_mutex_lock(&cause->lock);
	cause->err = err;
	snprintf(cause->text, sizeof(cause->text), "%s", text);
	pthread_mutex_unlock(&cause->lock);
}

int clt_cause_get(struct clt_cause *cause, char text[CLT_WHY])
{
	int err;

	pthread_mutex_lock(&cause->lock);
	err = cause->err;
	memcpy(text, cause->text, sizeof(cause->text));
	pthread_mutex_unlock(&cause->lock);
	return err;
}

bool clt_cause_tell(struct clt_cause *cause, const char *text, bool big)
{
	uint64_t now = clock_now_ms();

	if (!big && !strcmp(text, cause->told) && now - cause->told_ms < TELL_AGAIN_MS)
		return false;
	cause->told_ms = now;
	snprintf(cause->told, sizeof(cause->told), "%s", text);
	return true;
}

void clt_cause_forget(struct clt_cause *cause)
{
	cause->told[0] = '\0';
	cause->told_ms = 0;
}
