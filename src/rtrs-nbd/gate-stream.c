/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a session of GnuTLS and two buffers: bytes read from the socket, and records to write.  So a
 * system call carries several records.  A failure of either side, and the client's end, stay. */
#include <config.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <gnutls/gnutls.h>

#include "fabric.h"
#include "gate-stream.h"
#include "util.h"

#define RECORD 16384u			/* plain bytes of a record */
#define RECORD_ROOM (RECORD + 512u)	/* with its header, its tag and a KeyUpdate */
#define ROOM (4 * RECORD_ROOM)

struct stream_buf {
	uint32_t head, tail;
	uint8_t bytes[ROOM];
};

struct gate_stream {
	struct nbd_stream base;
	gnutls_session_t session;
	struct fab_tls_end end;
	int fd;
	bool dry;			/* the socket had fewer bytes than asked for */
	enum { STREAM_RECEIVES, STREAM_ENDED } state;	/* ENDED: with @error, 0: by the client */
	int error;			/* errno */
	size_t record;			/* plain bytes of the largest record to send */
	char why[GATE_STREAM_WHY_LEN];
	struct stream_buf in, out;
	uint8_t plain[RECORD];		/* of several pieces, for one record */
};

static struct gate_stream *to_stream(struct nbd_stream *base)
{
	return container_of(base, struct gate_stream, base);
}

/* ---- what GnuTLS reads and writes ---- */

/* Fill the empty @s->in.  As recv(2). */
static ssize_t stream_fill(struct gate_stream *s)
{
	ssize_t n;

	do {
		n = recv(s->fd, s->in.bytes, sizeof(s->in.bytes), MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	s->in.head = 0;
	s->in.tail = (uint32_t)MAX(n, 0);
	s->dry = s->in.tail < sizeof(s->in.bytes);
	return n;
}

static ssize_t stream_pull(gnutls_transport_ptr_t arg, void *data, size_t len)
{
	struct gate_stream *s = arg;
	ssize_t n = 1;

	if (s->in.head == s->in.tail) {
		errno = EAGAIN;
		n = s->dry ? -1 : stream_fill(s);
	}
	if (n <= 0) {
		s->error = n ? errno : 0;
		gnutls_transport_set_errno(s->session, s->error);
		return n;
	}
	len = MIN(len, (size_t)(s->in.tail - s->in.head));
	memcpy(data, s->in.bytes + s->in.head, len);
	s->in.head += (uint32_t)len;
	return (ssize_t)len;
}

/* There is room: stream_send() begins no record without, and a handshake has few bytes. */
static ssize_t stream_push(gnutls_transport_ptr_t arg, const void *data, size_t len)
{
	struct gate_stream *s = arg;

	if (len > sizeof(s->out.bytes) - s->out.tail) {
		gnutls_transport_set_errno(s->session, EAGAIN);
		return -1;
	}
	memcpy(s->out.bytes + s->out.tail, data, len);
	s->out.tail += (uint32_t)len;
	return (ssize_t)len;
}

/* Write the records that wait.  Returns the bytes that are left, or -errno. */
static int stream_flush(struct nbd_stream *base)
{
	struct gate_stream *s = to_stream(base);
	struct stream_buf *out = &s->out;
	ssize_t n;

	while (out->head < out->tail) {
		n = send(s->fd, out->bytes + out->head, out->tail - out->head,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (n < 0)
			return (int)(out->tail - out->head);
		out->head += (uint32_t)n;
	}
	out->head = out->tail = 0;
	return 0;
}

/* ---- the handshake ---- */

int gate_stream_handshake(struct gate_stream *s, short *events, char why[GATE_STREAM_WHY_LEN])
{
	int rc, left;

	s->dry = false;
	do {
		rc = gnutls_handshake(s->session);
		left = stream_flush(&s->base);
	} while (rc < 0 && !gnutls_error_is_fatal(rc) && rc != GNUTLS_E_AGAIN && left >= 0);
	if (rc < 0 && gnutls_error_is_fatal(rc)) {
		fab_tls_handshake_cause(&s->end, s->session, rc, why, GATE_STREAM_WHY_LEN);
		gnutls_alert_send_appropriate(s->session, rc);
		stream_flush(&s->base);
		return -EPROTO;
	}
	if (left < 0) {
		snprintf(why, GATE_STREAM_WHY_LEN, "TLS: %s", strerror(-left));
		return left;
	}
	*events = (short)(POLLIN | (left ? POLLOUT : 0));
	return rc < 0 || left ? -EAGAIN : 0;
}

void gate_stream_describe(const struct gate_stream *s, char *buf, size_t len)
{
	struct fab_identity id = { 0 };

	fab_tls_identity(&s->end, s->session, &id);
	snprintf(buf, len, "%s%s%s", id.cipher, *id.name ? ", " : "", id.name);
}

/* ---- sending ---- */

/* A place in an array of pieces. */
struct cursor {
	const struct iovec *iov;
	size_t n;
	size_t at;			/* in the first piece */
};

/* The next bytes at @c, at most *@len: in their place if one piece has so many, else copied to
 * @s->plain.  *@len becomes their number. */
static const void *next_bytes(struct gate_stream *s, struct cursor *c, size_t *len)
{
	size_t most = *len, part;
	const uint8_t *from;

	*len = 0;
	while (c->n && *len < most) {
		from = (const uint8_t *)c->iov->iov_base + c->at;
		part = MIN(c->iov->iov_len - c->at, most - *len);
		c->at += part;
		if (c->at == c->iov->iov_len) {
			c->iov++;
			c->n--;
			c->at = 0;
		}
		if (part == most)
			return *len = part, from;
		memcpy(s->plain + *len, from, part);
		*len += part;
	}
	return s->plain;
}

/* Is there room for one more record?  Without, write what waits first. */
static bool has_room(struct gate_stream *s)
{
	return sizeof(s->out.bytes) - s->out.tail >= RECORD_ROOM || stream_flush(&s->base) == 0;
}

static ssize_t stream_send(struct nbd_stream *base, const struct iovec *iov, size_t n)
{
	struct gate_stream *s = to_stream(base);
	struct cursor c = { .iov = iov, .n = n };
	size_t len, taken = 0;
	const void *bytes;
	ssize_t rc;

	while (c.n && has_room(s)) {
		len = s->record;
		bytes = next_bytes(s, &c, &len);
		rc = len ? gnutls_record_send(s->session, bytes, len) : 0;
		if (rc < 0) {
			snprintf(s->why, sizeof(s->why), "TLS: a record was not sent: %s",
				 gnutls_strerror((int)rc));
			errno = EPROTO;
			return -1;
		}
		taken += (size_t)rc;
		if ((size_t)rc < len) {
			/* The client has asked for smaller records. */
			s->record = (size_t)rc;
			break;
		}
	}
	errno = EAGAIN;
	return taken ? (ssize_t)taken : -1;
}

static void stream_bye(struct nbd_stream *base)
{
	gnutls_bye(to_stream(base)->session, GNUTLS_SHUT_WR);
}

/* ---- receiving ---- */

/* The receive side ends with @rc of GnuTLS. */
static void stream_ended(struct gate_stream *s, ssize_t rc)
{
	const char *name;

	s->state = STREAM_ENDED;
	if (rc == 0 || rc == GNUTLS_E_PULL_ERROR) {
		s->error = rc ? s->error : 0;
		return;
	}
	s->error = EPROTO;
	if (rc == GNUTLS_E_FATAL_ALERT_RECEIVED) {
		name = gnutls_alert_get_name(gnutls_alert_get(s->session));
		snprintf(s->why, sizeof(s->why), "TLS: the client sent an alert: %s",
			 name ? name : "unknown");
	} else if (rc == GNUTLS_E_PREMATURE_TERMINATION) {
		snprintf(s->why, sizeof(s->why), "TLS: the stream was cut: it has no end");
	} else {
		snprintf(s->why, sizeof(s->why), "TLS: %s", gnutls_strerror((int)rc));
		gnutls_alert_send_appropriate(s->session, (int)rc);
		stream_flush(&s->base);
	}
}

/* Receive up to @len bytes at @at.  Their number; 0: none now, or the side has ended. */
static size_t receive_some(struct gate_stream *s, void *at, size_t len)
{
	ssize_t rc;

	/* Behind a KeyUpdate GnuTLS says EAGAIN, whatever follows. */
	do {
		rc = gnutls_record_recv(s->session, at, len);
	} while (rc == GNUTLS_E_INTERRUPTED || rc == GNUTLS_E_WARNING_ALERT_RECEIVED ||
		 (rc == GNUTLS_E_AGAIN && s->in.head != s->in.tail));
	if (rc <= 0 && rc != GNUTLS_E_AGAIN)
		stream_ended(s, rc);
	return (size_t)MAX(rc, 0);
}

static ssize_t stream_recv(struct nbd_stream *base, const struct iovec *iov, size_t n)
{
	struct gate_stream *s = to_stream(base);
	size_t got = 0, at, some = 1;

	s->dry = false;
	for (size_t i = 0; i < n && some; i++) {
		for (at = 0; at < iov[i].iov_len && some; at += some) {
			some = s->state == STREAM_ENDED ? 0 :
			       receive_some(s, (uint8_t *)iov[i].iov_base + at,
					    iov[i].iov_len - at);
			got += some;
		}
	}
	if (got)
		return (ssize_t)got;
	errno = s->state == STREAM_ENDED ? s->error : EAGAIN;
	return errno ? -1 : 0;
}

static bool stream_pending(const struct nbd_stream *base)
{
	const struct gate_stream *s = container_of(base, const struct gate_stream, base);

	return s->state == STREAM_ENDED || s->in.head != s->in.tail ||
	       gnutls_record_check_pending(s->session) > 0;
}

static const char *stream_why(const struct nbd_stream *base)
{
	return container_of(base, const struct gate_stream, base)->why;
}

/* ---- life ---- */

static void stream_destroy(struct nbd_stream *base)
{
	gate_stream_destroy(to_stream(base));
}

static const struct nbd_stream_ops stream_ops = {
	.recv = stream_recv, .pending = stream_pending, .send = stream_send,
	.flush = stream_flush, .bye = stream_bye, .why = stream_why, .destroy = stream_destroy,
};

struct gate_stream *gate_stream_create(const struct fab_tls *tls, int fd)
{
	struct gate_stream *s = malloc(sizeof(*s));

	if (!s)
		return NULL;
	/* The bytes of the buffers stay untouched until they are used. */
	memset(s, 0, offsetof(struct gate_stream, in));
	s->in.head = s->in.tail = s->out.head = s->out.tail = 0;
	s->base.ops = &stream_ops;
	s->fd = fd;
	s->record = RECORD;
	s->end.tls = tls;
	if (fab_tls_session(&s->end, "", &s->session) < 0) {
		free(s);
		return NULL;
	}
	gnutls_transport_set_ptr(s->session, s);
	gnutls_transport_set_pull_function(s->session, stream_pull);
	gnutls_transport_set_push_function(s->session, stream_push);
	return s;
}

void gate_stream_destroy(struct gate_stream *s)
{
	if (!s)
		return;
	fab_tls_session_end(&s->end, s->session);
	/* Bytes of a client, and of disks. */
	explicit_bzero(s->plain, sizeof(s->plain));
	free(s);
}

struct nbd_stream *gate_stream_nbd(struct gate_stream *s)
{
	return &s->base;
}
