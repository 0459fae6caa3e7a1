/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the stream of TLS of a connection and its lock, or the word that the kernel has the keys. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include <gnutls/gnutls.h>

#include "cleanup.h"
#include "fab-tls-stream.h"
#include "tcp-tls.h"

struct tcp_tls {
	pthread_mutex_t lock;		/* of @stream */
	struct fab_tls_stream *stream;
	bool kernel;			/* the kernel has the keys; constant from UP on */
	uint64_t budget;		/* bytes that the kernel may still encrypt */
	bool ended;			/* the receive side by the kernel; @end_errno 0: the peer
					 * ended its stream */
	int end_errno;
	char address[FAB_ADDR_STRLEN];	/* of the peer, for its certificate */
	char why[FAB_TLS_WHY_LEN];	/* ENDED: the cause */
};

/* ---- life ---- */

int tcp_tls_create(struct tcp_conn *c, const struct fab_tls *tls)
{
	struct tcp_tls *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	fab_addr_format_host(&c->base.peer, t->address, sizeof(t->address));
	/* The kernel decrypts all bytes that the handshake leaves in the socket. */
	t->stream = fab_tls_stream_create(tls, c->fd, t->address, tls->ktls);
	if (!t->stream) {
		free(t);
		return -ENOMEM;
	}
	fab_tls_stream_leave(t->stream, TCP_FRAME_REJECT);
	pthread_mutex_init(&t->lock, NULL);
	c->tls = t;
	return 0;
}

void tcp_tls_free(struct tcp_tls *t)
{
	fab_tls_stream_destroy(t->stream);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

void tcp_tls_destroy(struct tcp_conn *c)
{
	if (c->tls)
		tcp_tls_free(c->tls);
	c->tls = NULL;
}

size_t tcp_tls_memory(void)
{
	return sizeof(struct tcp_tls) + fab_tls_stream_memory();
}

/* ---- the handshake ---- */

bool tcp_tls_heard(const struct tcp_conn *c)
{
	return fab_tls_stream_heard(c->tls->stream);
}

int tcp_tls_handshake(struct tcp_tls *t, uint32_t *events, char why[FAB_TLS_WHY_LEN])
{
	int rc;

	LOCK_SCOPE(&t->lock);
	rc = fab_tls_stream_handshake(t->stream, why);
	*events = EPOLLIN | (fab_tls_stream_unsent(t->stream) ? EPOLLOUT : 0);
	return rc;
}

int tcp_tls_hand_over(struct tcp_conn *c, char why[FAB_TLS_WHY_LEN])
{
	struct tcp_tls *t = c->tls;
	const struct fab_tls_end *end = fab_tls_stream_end(t->stream);
	gnutls_session_t session = fab_tls_stream_session(t->stream);
	int rc;

	if (!end->tls->ktls)
		return 0;
	fab_tls_stream_read_ahead(t->stream);
	if (fab_addr_is_unix(&c->base.peer)) {
		snprintf(why, FAB_TLS_WHY_LEN, "a unix socket has no kTLS");
		return 0;
	}
	if (end->record < FAB_TLS_RECORD) {
		snprintf(why, FAB_TLS_WHY_LEN, "the peer takes records of %u bytes at most, and "
			 "the kernel sends larger ones", end->record);
		return 0;
	}
	rc = tcp_ktls_start(c->fd, session, why, FAB_TLS_WHY_LEN);
	t->kernel = rc == 1;
	t->budget = gnutls_cipher_get(session) == GNUTLS_CIPHER_AES_128_GCM ? TCP_KTLS_GCM_BYTES :
									      UINT64_MAX;
	return rc;
}

/* ---- who the peer is ---- */

void tcp_tls_identity(const struct tcp_conn *c, struct fab_identity *id)
{
	const struct fab_tls_stream *stream = c->tls->stream;
	char cipher[sizeof(id->cipher)];

	fab_tls_identity(fab_tls_stream_end(stream), fab_tls_stream_session(stream), id);
	if (!c->tls->kernel)
		return;
	memcpy(cipher, id->cipher, sizeof(cipher));
	snprintf(id->cipher, sizeof(id->cipher), "k%.*s", (int)sizeof(cipher) - 2, cipher);
}

bool tcp_tls_trusts(const struct tcp_conn *c)
{
	const struct fab_tls_stream *stream = c->tls->stream;

	return fab_tls_trusts(fab_tls_stream_end(stream), fab_tls_stream_session(stream));
}

bool tcp_tls_binding(const struct tcp_conn *c, uint8_t out[FAB_BINDING_LEN])
{
	static const char label[] = "EXPORTER-rtrs-auth";

	/* As in auth-crypto.h: nobody may go on without it, as if the connection were in plain. */
	if (gnutls_prf_rfc5705(fab_tls_stream_session(c->tls->stream), sizeof(label) - 1, label,
			       0, NULL, FAB_BINDING_LEN, (char *)out) < 0)
		abort();
	return true;
}

const char *tcp_tls_describe(const struct tcp_conn *c, char *buf, size_t len)
{
	const struct tcp_tls *t = c->tls;
	const char *identity = fab_tls_stream_end(t->stream)->identity;

	snprintf(buf, len, "%sTLS 1.3, %s%s%s", t->kernel ? "k" : "",
		 gnutls_cipher_get_name(gnutls_cipher_get(fab_tls_stream_session(t->stream))),
		 *identity ? ", key of " : "", identity);
	return buf;
}

/* ---- sending ---- */

/* Write what waits.  0: nothing is left; or -1 with errno. */
static int flush(struct tcp_tls *t)
{
	int left = fab_tls_stream_flush(t->stream);

	errno = left < 0 ? -left : EAGAIN;
	return left ? -1 : 0;
}

ssize_t tcp_tls_send(struct tcp_conn *c, struct iovec *iov, unsigned n)
{
	struct tcp_tls *t = c->tls;
	ssize_t taken;

	if (t->kernel)
		return tcp_ktls_send(c->fd, iov, n, &t->budget);
	LOCK_SCOPE(&t->lock);
	taken = fab_tls_stream_send(t->stream, iov, n);
	if (taken > 0 && flush(t) && errno != EAGAIN)
		return -1;
	return taken;
}

int tcp_tls_flush(struct tcp_conn *c)
{
	LOCK_SCOPE(&c->tls->lock);
	return flush(c->tls);
}

void tcp_tls_bye(struct tcp_conn *c)
{
	struct tcp_tls *t = c->tls;

	if (t->kernel) {
		tcp_ktls_bye(c->fd);
		return;
	}
	LOCK_SCOPE(&t->lock);
	fab_tls_stream_bye(t->stream);
	flush(t);
}

/* ---- receiving ---- */

/* As tcp_tls_recv(), with the kernel's keys. */
static ssize_t receive_by_kernel(struct tcp_conn *c, struct iovec *iov, unsigned n)
{
	struct tcp_tls *t = c->tls;
	struct tcp_ktls_end end = { .why = t->why, .why_len = sizeof(t->why) };
	ssize_t rc;

	if (t->ended) {
		errno = t->end_errno;
		return t->end_errno ? -1 : 0;
	}
	rc = tcp_ktls_recv(c->fd, iov, n, &end);
	if (end.ended) {
		t->ended = true;
		t->end_errno = end.error;
	}
	return rc;
}

/* Receive one record: a thread that sends need not wait for all. */
static bool take_record(struct tcp_tls *t, struct fab_tls_take *take)
{
	LOCK_SCOPE(&t->lock);
	return fab_tls_stream_take(t->stream, take);
}

ssize_t tcp_tls_recv(struct tcp_conn *c, struct iovec *iov, unsigned n)
{
	struct tcp_tls *t = c->tls;
	struct fab_tls_take take = { .iov = iov, .n = n };

	if (t->kernel)
		return receive_by_kernel(c, iov, n);
	while (take_record(t, &take))
		;
	return fab_tls_stream_taken(t->stream, &take);
}

bool tcp_tls_pending(const struct tcp_conn *c)
{
	const struct tcp_tls *t = c->tls;

	return t->kernel ? t->ended : fab_tls_stream_pending(t->stream);
}

const char *tcp_tls_why(const struct tcp_conn *c)
{
	const struct tcp_tls *t = c->tls;

	return t->kernel ? t->why : fab_tls_stream_why(t->stream);
}
