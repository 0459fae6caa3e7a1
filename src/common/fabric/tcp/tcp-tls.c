/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the session of a connection and two buffers: bytes read from the socket, and records to
 * write.  GnuTLS reads and writes the buffers, so a system call carries several records. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <gnutls/gnutls.h>

#include "cleanup.h"
#include "tcp-ktls.h"
#include "tcp-tls.h"

#define TLS_RECORD 16384u		/* plain bytes of a record */
#define TLS_RECORD_ROOM (TLS_RECORD + 512u)	/* with its header, its tag and a KeyUpdate */
#define TLS_BUF (4 * TLS_RECORD_ROOM)

struct tls_buf {
	uint32_t head, tail;
	uint8_t bytes[TLS_BUF];
};

struct tcp_tls {
	pthread_mutex_t lock;
	gnutls_session_t session;
	struct fab_tls_end end;
	int fd;
	bool heard;
	bool kernel;			/* the kernel has the keys; constant from UP on */
	uint64_t budget;		/* bytes that the kernel may still encrypt */
	bool exact;			/* read no byte behind what GnuTLS asks for */
	bool drained;			/* the socket had fewer bytes than asked for */
	bool ended;			/* the receive side; @end_errno 0: the peer ended its
					 * stream */
	int end_errno;
	char address[FAB_ADDR_STRLEN];	/* of the peer, for its certificate */
	char why[TCP_TLS_WHY_LEN];
	struct tls_buf in, out;
	uint8_t gather[TLS_RECORD];	/* a record out of several elements */
};

/* ---- what GnuTLS reads and writes ---- */

static ssize_t tls_pull(gnutls_transport_ptr_t arg, void *data, size_t len)
{
	struct tcp_tls *t = arg;
	struct tls_buf *in = &t->in;
	ssize_t n;

	if (t->exact) {
		n = recv(t->fd, data, len, MSG_DONTWAIT);
		if (n < 0)
			gnutls_transport_set_errno(t->session, t->end_errno = errno);
		t->heard |= n > 0;
		return n;
	}
	if (in->head == in->tail && t->drained) {
		gnutls_transport_set_errno(t->session, EAGAIN);
		return -1;
	}
	if (in->head == in->tail) {
		do {
			n = recv(t->fd, in->bytes, sizeof(in->bytes), MSG_DONTWAIT);
		} while (n < 0 && errno == EINTR);
		if (n < 0)
			gnutls_transport_set_errno(t->session, t->end_errno = errno);
		if (n <= 0)
			return n;
		t->heard = true;
		t->drained = (size_t)n < sizeof(in->bytes);
		in->head = 0;
		in->tail = (uint32_t)n;
	}
	len = MIN(len, (size_t)(in->tail - in->head));
	memcpy(data, in->bytes + in->head, len);
	in->head += (uint32_t)len;
	return (ssize_t)len;
}

/* There is room: tcp_tls_send() begins no record without, and a handshake has few bytes. */
static ssize_t tls_push(gnutls_transport_ptr_t arg, const void *data, size_t len)
{
	struct tcp_tls *t = arg;
	struct tls_buf *out = &t->out;

	if (len > sizeof(out->bytes) - out->tail) {
		gnutls_transport_set_errno(t->session, EAGAIN);
		return -1;
	}
	memcpy(out->bytes + out->tail, data, len);
	out->tail += (uint32_t)len;
	return (ssize_t)len;
}

/* Write the records that wait.  0: none is left; or -1 with errno. */
static int out_flush(struct tcp_tls *t)
{
	struct tls_buf *out = &t->out;
	ssize_t n;

	while (out->head != out->tail) {
		n = send(t->fd, out->bytes + out->head, out->tail - out->head,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		out->head += (uint32_t)n;
	}
	out->head = out->tail = 0;
	return 0;
}

/* ---- life ---- */

int tcp_tls_create(struct tcp_conn *c, const struct fab_tls *tls)
{
	struct tcp_tls *t = malloc(sizeof(*t));

	if (!t)
		return -ENOMEM;
	/* The buffers stay untouched until they are used. */
	memset(t, 0, offsetof(struct tcp_tls, in));
	t->in.head = t->in.tail = t->out.head = t->out.tail = 0;
	t->fd = c->fd;
	t->end.tls = tls;
	/* The kernel decrypts all bytes that the handshake leaves in the socket. */
	t->exact = tls->ktls;
	fab_addr_format_host(&c->base.peer, t->address, sizeof(t->address));
	if (fab_tls_session(&t->end, t->address, &t->session)) {
		free(t);
		return -ENOMEM;
	}
	gnutls_transport_set_ptr(t->session, t);
	gnutls_transport_set_pull_function(t->session, tls_pull);
	gnutls_transport_set_push_function(t->session, tls_push);
	pthread_mutex_init(&t->lock, NULL);
	c->tls = t;
	return 0;
}

void tcp_tls_destroy(struct tcp_conn *c)
{
	struct tcp_tls *t = c->tls;

	if (!t)
		return;
	c->tls = NULL;
	fab_tls_session_end(&t->end, t->session);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

size_t tcp_tls_memory(void)
{
	return sizeof(struct tcp_tls);
}

bool tcp_tls_heard(const struct tcp_conn *c)
{
	return c->tls->heard;
}

void tcp_tls_identity(const struct tcp_conn *c, struct fab_identity *id)
{
	char cipher[sizeof(id->cipher)];

	fab_tls_identity(&c->tls->end, c->tls->session, id);
	if (!c->tls->kernel)
		return;
	memcpy(cipher, id->cipher, sizeof(cipher));
	snprintf(id->cipher, sizeof(id->cipher), "k%.*s", (int)sizeof(cipher) - 2, cipher);
}

bool tcp_tls_trusts(const struct tcp_conn *c)
{
	return fab_tls_trusts(&c->tls->end, c->tls->session, c->tls->address);
}

bool tcp_tls_binding(const struct tcp_conn *c, uint8_t out[FAB_BINDING_LEN])
{
	static const char label[] = "EXPORTER-rtrs-auth";

	return gnutls_prf_rfc5705(c->tls->session, sizeof(label) - 1, label, 0, NULL,
				  FAB_BINDING_LEN, (char *)out) >= 0;
}

const char *tcp_tls_describe(const struct tcp_conn *c, char *buf, size_t len)
{
	struct tcp_tls *t = c->tls;

	snprintf(buf, len, "%sTLS 1.3, %s%s%s", t->kernel ? "k" : "",
		 gnutls_cipher_get_name(gnutls_cipher_get(t->session)),
		 *t->end.identity ? ", key of " : "", t->end.identity);
	return buf;
}

/* ---- the handshake ---- */

int tcp_tls_handshake(struct tcp_conn *c, uint32_t *events, char why[TCP_TLS_WHY_LEN])
{
	struct tcp_tls *t = c->tls;
	int rc, rest;

	LOCK_SCOPE(&t->lock);
	t->drained = false;
	do {
		rc = gnutls_handshake(t->session);
		rest = out_flush(t);
	} while (rc < 0 && !gnutls_error_is_fatal(rc) && rc != GNUTLS_E_AGAIN);
	if (rc < 0 && rc != GNUTLS_E_AGAIN) {
		fab_tls_handshake_cause(&t->end, t->session, rc, why, TCP_TLS_WHY_LEN);
		gnutls_alert_send_appropriate(t->session, rc);
		out_flush(t);
		return rc == GNUTLS_E_PREMATURE_TERMINATION ? -ECONNRESET : -EPROTO;
	}
	if (rest && errno != EAGAIN) {
		rc = -errno;
		snprintf(why, TCP_TLS_WHY_LEN, "%s", strerror(errno));
		return rc;
	}
	*events = EPOLLIN | (rest ? EPOLLOUT : 0);
	return rc < 0 || rest ? -EAGAIN : 0;
}

int tcp_tls_hand_over(struct tcp_conn *c, char why[TCP_TLS_WHY_LEN])
{
	struct tcp_tls *t = c->tls;
	int rc;

	if (!t->end.tls->ktls)
		return 0;
	t->exact = false;
	if (fab_addr_is_unix(&c->base.peer)) {
		snprintf(why, TCP_TLS_WHY_LEN, "a unix socket has no kTLS");
		return 0;
	}
	rc = tcp_ktls_start(t->fd, t->session, why, TCP_TLS_WHY_LEN);
	t->kernel = rc == 1;
	t->budget = gnutls_cipher_get(t->session) == GNUTLS_CIPHER_AES_128_GCM ?
			    TCP_KTLS_GCM_BYTES : UINT64_MAX;
	return rc;
}

/* ---- sending ---- */

/* A place in an array of elements. */
struct tls_cursor {
	const struct iovec *iov;
	unsigned n;
	size_t at;			/* in the first */
};

/* The next bytes at @cur, at most a record: in their place if they are in one element, else copied
 * to @t->gather. */
static const uint8_t *next_record(struct tcp_tls *t, struct tls_cursor *cur, size_t *len)
{
	const uint8_t *first;
	size_t part;

	*len = 0;
	while (cur->n && *len < TLS_RECORD) {
		first = (const uint8_t *)cur->iov->iov_base + cur->at;
		part = MIN(cur->iov->iov_len - cur->at, TLS_RECORD - *len);
		cur->at += part;
		if (cur->at == cur->iov->iov_len) {
			cur->iov++;
			cur->n--;
			cur->at = 0;
		}
		if (!*len && (part == TLS_RECORD || !cur->n)) {
			*len = part;
			return first;
		}
		memcpy(t->gather + *len, first, part);
		*len += part;
	}
	return t->gather;
}

/* Room for a record more?  Else write what waits first. */
static bool make_room(struct tcp_tls *t)
{
	struct tls_buf *out = &t->out;

	if (sizeof(out->bytes) - out->tail >= TLS_RECORD_ROOM)
		return true;
	return out_flush(t) == 0;
}

/* Encrypt @len bytes at @record: in one record, or in smaller ones if the peer has asked for these
 * (RFC 8449).  Returns the bytes that had room, all unless the socket is full; or -1. */
static ssize_t send_record(struct tcp_tls *t, const uint8_t *record, size_t len)
{
	size_t sent = 0;
	ssize_t rc;

	while (sent < len && make_room(t)) {
		do {
			rc = gnutls_record_send(t->session, record + sent, len - sent);
		} while (rc == GNUTLS_E_INTERRUPTED);
		if (rc < 0) {
			errno = EPROTO;
			return -1;
		}
		sent += (size_t)rc;
	}
	return (ssize_t)sent;
}

ssize_t tcp_tls_send(struct tcp_conn *c, struct iovec *iov, unsigned n)
{
	struct tcp_tls *t = c->tls;
	struct tls_cursor cur = { .iov = iov, .n = n };
	const uint8_t *record;
	size_t len, taken = 0;
	ssize_t sent;

	if (t->kernel)
		return tcp_ktls_send(t->fd, iov, n, &t->budget);
	LOCK_SCOPE(&t->lock);
	while (cur.n && make_room(t)) {
		record = next_record(t, &cur, &len);
		if (!len)
			continue;
		sent = send_record(t, record, len);
		if (sent < 0)
			return -1;
		taken += (size_t)sent;
		if ((size_t)sent < len)
			break;
	}
	if (taken && out_flush(t) && errno != EAGAIN)
		return -1;
	return taken ? (ssize_t)taken : -1;
}

int tcp_tls_flush(struct tcp_conn *c)
{
	struct tcp_tls *t = c->tls;

	LOCK_SCOPE(&t->lock);
	return out_flush(t);
}

void tcp_tls_bye(struct tcp_conn *c)
{
	struct tcp_tls *t = c->tls;

	if (t->kernel) {
		tcp_ktls_bye(t->fd);
		return;
	}
	LOCK_SCOPE(&t->lock);
	if (t->out.head != t->out.tail)
		return;
	gnutls_bye(t->session, GNUTLS_SHUT_WR);
	out_flush(t);
}

/* ---- receiving ---- */

/* End the receive side.  The peer is told of a fault. */
static void receive_ended(struct tcp_tls *t, ssize_t rc)
{
	const char *name;

	t->ended = true;
	if (rc == 0) {
		t->end_errno = 0;
	} else if (rc == GNUTLS_E_PULL_ERROR) {
		t->end_errno = t->end_errno ? t->end_errno : ECONNRESET;
	} else if (rc == GNUTLS_E_FATAL_ALERT_RECEIVED) {
		name = gnutls_alert_get_name(gnutls_alert_get(t->session));
		t->end_errno = EPROTO;
		snprintf(t->why, sizeof(t->why), "peer failed the connection: TLS alert: %s",
			 name ? name : "unknown");
	} else if (rc == GNUTLS_E_PREMATURE_TERMINATION) {
		t->end_errno = ECONNRESET;
		snprintf(t->why, sizeof(t->why), "peer closed: its TLS stream was cut");
	} else {
		t->end_errno = EPROTO;
		snprintf(t->why, sizeof(t->why), "TLS: %s", gnutls_strerror((int)rc));
		gnutls_alert_send_appropriate(t->session, (int)rc);
		out_flush(t);
	}
}

/* Receive up to @len bytes at @at.  Returns as recv(2), with GnuTLS's errors. */
static ssize_t receive_some(struct tcp_tls *t, uint8_t *at, size_t len)
{
	ssize_t rc;

	LOCK_SCOPE(&t->lock);
	do {
		rc = gnutls_record_recv(t->session, at, len);
	} while (rc == GNUTLS_E_INTERRUPTED || rc == GNUTLS_E_WARNING_ALERT_RECEIVED);
	if (rc <= 0 && rc != GNUTLS_E_AGAIN)
		receive_ended(t, rc);
	return rc;
}

/* As tcp_tls_recv(), with the kernel's keys. */
static ssize_t receive_by_kernel(struct tcp_tls *t, struct iovec *iov, unsigned n)
{
	struct tcp_ktls_end end = { .why = t->why, .why_len = sizeof(t->why) };
	ssize_t rc;

	if (t->ended) {
		errno = t->end_errno;
		return t->end_errno ? -1 : 0;
	}
	rc = tcp_ktls_recv(t->fd, iov, n, &end);
	if (end.ended) {
		t->ended = true;
		t->end_errno = end.error;
	}
	return rc;
}

ssize_t tcp_tls_recv(struct tcp_conn *c, struct iovec *iov, unsigned n)
{
	struct tcp_tls *t = c->tls;
	size_t got = 0, at;
	ssize_t rc = 1;

	if (t->kernel)
		return receive_by_kernel(t, iov, n);

	t->drained = false;
	for (unsigned i = 0; i < n && rc > 0; i++) {
		for (at = 0; at < iov[i].iov_len && rc > 0 && !t->ended; at += (size_t)MAX(rc, 0)) {
			rc = receive_some(t, (uint8_t *)iov[i].iov_base + at, iov[i].iov_len - at);
			got += (size_t)MAX(rc, 0);
		}
	}
	if (got)
		return (ssize_t)got;
	errno = t->ended ? t->end_errno : EAGAIN;
	return t->ended && !t->end_errno ? 0 : -1;
}

bool tcp_tls_pending(const struct tcp_conn *c)
{
	const struct tcp_tls *t = c->tls;

	if (t->kernel)
		return t->ended;
	return t->ended || t->in.head != t->in.tail || gnutls_record_check_pending(t->session) > 0;
}

const char *tcp_tls_why(const struct tcp_conn *c)
{
	return c->tls->why;
}
