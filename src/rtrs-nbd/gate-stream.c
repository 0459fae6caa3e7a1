/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a stream of TLS, and is the engine's stream for it. */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "fab-tls-stream.h"
#include "gate.h"
#include "util.h"

struct gate_stream {
	struct nbd_stream base;
	struct fab_tls_stream *tls;
	struct fab_identity id;		/* after the handshake */
	uint64_t epoch;			/* of the credentials that let the client in */
};

static struct gate_stream *stream_of(const struct nbd_stream *base)
{
	return container_of(base, struct gate_stream, base);
}

static struct fab_tls_stream *tls_of(const struct nbd_stream *base)
{
	return stream_of(base)->tls;
}

/* ---- the engine's calls ---- */

static ssize_t stream_recv(struct nbd_stream *base, const struct iovec *iov, size_t n)
{
	struct fab_tls_stream *tls = tls_of(base);
	struct fab_tls_take take = { .iov = iov, .n = n };

	while (fab_tls_stream_take(tls, &take))
		;
	return fab_tls_stream_taken(tls, &take);
}

static bool stream_pending(const struct nbd_stream *base)
{
	return fab_tls_stream_pending(tls_of(base));
}

static ssize_t stream_send(struct nbd_stream *base, const struct iovec *iov, size_t n)
{
	return fab_tls_stream_send(tls_of(base), iov, n);
}

static int stream_flush(struct nbd_stream *base)
{
	return fab_tls_stream_flush(tls_of(base));
}

static void stream_bye(struct nbd_stream *base)
{
	fab_tls_stream_bye(tls_of(base));
}

static const char *stream_why(const struct nbd_stream *base)
{
	return fab_tls_stream_why(tls_of(base));
}

static void stream_destroy(struct nbd_stream *base)
{
	gate_stream_destroy(container_of(base, struct gate_stream, base));
}

static const struct nbd_stream_ops stream_ops = {
	.recv = stream_recv, .pending = stream_pending, .send = stream_send,
	.flush = stream_flush, .bye = stream_bye, .why = stream_why, .destroy = stream_destroy,
};

struct nbd_stream *gate_stream_nbd(struct gate_stream *s)
{
	return &s->base;
}

/* ---- the set-up ---- */

struct gate_stream *gate_stream_create(const struct fab_tls *tls, int fd, uint64_t epoch)
{
	struct gate_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->base.ops = &stream_ops;
	s->epoch = epoch;
	s->tls = fab_tls_stream_create(tls, fd, "", false);
	if (!s->tls) {
		free(s);
		return NULL;
	}
	return s;
}

void gate_stream_destroy(struct gate_stream *s)
{
	if (!s)
		return;
	fab_tls_stream_destroy(s->tls);
	free(s);
}

int gate_stream_handshake(struct gate_stream *s, short *events, char why[FAB_TLS_WHY_LEN])
{
	int rc = fab_tls_stream_handshake(s->tls, why);

	if (rc == 0)
		fab_tls_identity(fab_tls_stream_end(s->tls), fab_tls_stream_session(s->tls),
				 &s->id);
	*events = (short)(POLLIN | (fab_tls_stream_unsent(s->tls) ? POLLOUT : 0));
	return rc;
}

void gate_stream_describe(const struct gate_stream *s, char *buf, size_t len)
{
	snprintf(buf, len, "%s%s%s", s->id.cipher, *s->id.name ? ", " : "", s->id.name);
}

const struct fab_identity *gate_stream_identity(const struct nbd_stream *s)
{
	return &stream_of(s)->id;
}

/* ---- trust ---- */

bool gate_stream_is_checked(const struct nbd_stream *s, uint64_t epoch)
{
	return stream_of(s)->epoch == epoch;
}

bool gate_stream_check(struct nbd_stream *base, uint64_t epoch, char why[FAB_TLS_WHY_LEN])
{
	struct gate_stream *s = stream_of(base);
	const struct fab_tls_end *end = fab_tls_stream_end(s->tls);
	const char *who = *s->id.name ? s->id.name : "a client without a name";

	if (s->id.key && !secrets_has_key(fab_tls_secrets(end->tls), s->id.key)) {
		snprintf(why, FAB_TLS_WHY_LEN, "the key of %s was removed", who);
		return false;
	}
	if (!fab_tls_trusts(end, fab_tls_stream_session(s->tls))) {
		snprintf(why, FAB_TLS_WHY_LEN, "the certificate of %s is no longer accepted",
			 who);
		return false;
	}
	s->epoch = epoch;
	return true;
}
