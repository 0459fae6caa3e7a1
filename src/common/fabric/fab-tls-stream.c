/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns a session of GnuTLS and two buffers: bytes read from the socket, and records to write.
 * GnuTLS reads and writes the buffers, so a system call carries several records.  The end of the
 * receive side stays. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <gnutls/gnutls.h>

#include "fab-tls-stream.h"
#include "util.h"

#define RECORD FAB_TLS_RECORD
#define RECORD_ROOM (RECORD + 512u)	/* with its header, its tag and a KeyUpdate */
#define ROOM (4 * RECORD_ROOM)

struct stream_buf {
	uint32_t head, tail;
	uint8_t bytes[ROOM];
};

enum reading {
	READING_EXACTLY,		/* what GnuTLS asks for */
	READING_AHEAD,
	READING_NOTHING,		/* the socket had fewer bytes than asked for */
	READING_ENDED,			/* the socket has ended */
};

struct fab_tls_stream {
	gnutls_session_t session;
	struct fab_tls_end end;
	int fd;
	bool heard;
	int left;			/* fab_tls_stream_leave(); -1: none */
	enum reading reading;
	enum { STREAM_RECEIVES, STREAM_ENDED } state;	/* ENDED: with @error, 0: by the peer */
	int error;			/* errno */
	size_t record;			/* plain bytes of the largest record to send */
	char why[FAB_TLS_WHY_LEN];
	struct stream_buf in, out;
	uint8_t plain[RECORD];		/* of several pieces, for one record */
};

/* ---- what GnuTLS reads and writes ---- */

/* As recv(2).  GnuTLS learns of a failure. */
static ssize_t read_socket(struct fab_tls_stream *s, void *at, size_t len)
{
	ssize_t n;

	do {
		n = recv(s->fd, at, len, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		gnutls_transport_set_errno(s->session, s->error = errno);
	if (n == 0)
		s->reading = READING_ENDED;
	s->heard |= n > 0;
	return n;
}

/* Fill the empty @s->in.  As recv(2). */
static ssize_t fill(struct fab_tls_stream *s)
{
	ssize_t n;

	if (s->reading == READING_NOTHING) {
		gnutls_transport_set_errno(s->session, EAGAIN);
		return -1;
	}
	n = read_socket(s, s->in.bytes, sizeof(s->in.bytes));
	if (n <= 0)
		return n;
	if ((size_t)n < sizeof(s->in.bytes))
		s->reading = READING_NOTHING;
	s->in.head = 0;
	s->in.tail = (uint32_t)n;
	return n;
}

/* Look at the first byte, which may be one that is left.  0: read; or -errno.  What the look has
 * not seen may be such a byte, too, when it comes. */
static int look(const struct fab_tls_stream *s)
{
	uint8_t byte;
	ssize_t n;

	if (s->heard || s->left < 0)
		return 0;
	do {
		n = recv(s->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n && byte == s->left ? -EAGAIN : 0;
}

static ssize_t stream_pull(gnutls_transport_ptr_t arg, void *data, size_t len)
{
	struct fab_tls_stream *s = arg;
	ssize_t n = 1;
	int rc = look(s);

	if (rc) {
		gnutls_transport_set_errno(s->session, s->error = -rc);
		return -1;
	}
	if (s->reading == READING_EXACTLY)
		return read_socket(s, data, len);
	if (s->in.head == s->in.tail)
		n = fill(s);
	if (n <= 0)
		return n;
	len = MIN(len, (size_t)(s->in.tail - s->in.head));
	memcpy(data, s->in.bytes + s->in.head, len);
	s->in.head += (uint32_t)len;
	return (ssize_t)len;
}

/* There is room for a record: make_room().  A handshake may have more. */
static ssize_t stream_push(gnutls_transport_ptr_t arg, const void *data, size_t len)
{
	struct fab_tls_stream *s = arg;

	if (len > sizeof(s->out.bytes) - s->out.tail) {
		gnutls_transport_set_errno(s->session, EAGAIN);
		return -1;
	}
	memcpy(s->out.bytes + s->out.tail, data, len);
	s->out.tail += (uint32_t)len;
	return (ssize_t)len;
}

int fab_tls_stream_flush(struct fab_tls_stream *s)
{
	struct stream_buf *out = &s->out;
	ssize_t n;

	while (out->head < out->tail) {
		n = send(s->fd, out->bytes + out->head, out->tail - out->head,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? (int)(out->tail - out->head) : -errno;
		out->head += (uint32_t)n;
	}
	out->head = out->tail = 0;
	return 0;
}

size_t fab_tls_stream_unsent(const struct fab_tls_stream *s)
{
	return s->out.tail - s->out.head;
}

/* ---- life ---- */

struct fab_tls_stream *fab_tls_stream_create(const struct fab_tls *tls, int fd,
					     const char *address, bool exact)
{
	struct fab_tls_stream *s = malloc(sizeof(*s));

	if (!s)
		return NULL;
	/* The bytes of the buffers stay untouched until they are used. */
	memset(s, 0, offsetof(struct fab_tls_stream, in));
	s->in.head = s->in.tail = s->out.head = s->out.tail = 0;
	s->fd = fd;
	s->left = -1;
	s->reading = exact ? READING_EXACTLY : READING_AHEAD;
	s->record = RECORD;
	s->end.tls = tls;
	if (fab_tls_session(&s->end, address, &s->session) < 0) {
		free(s);
		return NULL;
	}
	gnutls_transport_set_ptr(s->session, s);
	gnutls_transport_set_pull_function(s->session, stream_pull);
	gnutls_transport_set_push_function(s->session, stream_push);
	return s;
}

void fab_tls_stream_destroy(struct fab_tls_stream *s)
{
	if (!s)
		return;
	fab_tls_session_end(&s->end, s->session);
	/* Bytes of users. */
	explicit_bzero(s->plain, sizeof(s->plain));
	free(s);
}

size_t fab_tls_stream_memory(void)
{
	return sizeof(struct fab_tls_stream);
}

void fab_tls_stream_leave(struct fab_tls_stream *s, uint8_t byte)
{
	s->left = byte;
}

bool fab_tls_stream_heard(const struct fab_tls_stream *s)
{
	return s->heard;
}

struct gnutls_session_int *fab_tls_stream_session(const struct fab_tls_stream *s)
{
	return s->session;
}

const struct fab_tls_end *fab_tls_stream_end(const struct fab_tls_stream *s)
{
	return &s->end;
}

/* GnuTLS's @rc, or the cut behind: in the middle of a record GnuTLS calls a cut something else. */
static ssize_t cause_of(const struct fab_tls_stream *s, ssize_t rc)
{
	return rc < 0 && s->reading == READING_ENDED ? GNUTLS_E_PREMATURE_TERMINATION : rc;
}

/* ---- the handshake ---- */

/* The socket may have bytes again. */
static void ask_socket(struct fab_tls_stream *s)
{
	if (s->reading == READING_NOTHING)
		s->reading = READING_AHEAD;
}

/* True if the handshake, which said @rc and then had its bytes written but for @left, can go on
 * without the peer: a flight of long certificates does not fit the buffer at once, and behind a
 * record with a part of a message GnuTLS says EAGAIN, whatever follows. */
static bool goes_on(const struct fab_tls_stream *s, int rc, int left)
{
	if (rc == GNUTLS_E_AGAIN && !gnutls_record_get_direction(s->session))
		return s->in.head != s->in.tail && left >= 0;
	if (rc == GNUTLS_E_AGAIN)
		return left == 0;
	return rc < 0 && !gnutls_error_is_fatal(rc) && left >= 0;
}

int fab_tls_stream_handshake(struct fab_tls_stream *s, char why[FAB_TLS_WHY_LEN])
{
	int rc, left;

	ask_socket(s);
	do {
		rc = gnutls_handshake(s->session);
		left = fab_tls_stream_flush(s);
	} while (goes_on(s, rc, left));
	if (rc < 0 && gnutls_error_is_fatal(rc)) {
		rc = (int)cause_of(s, rc);
		fab_tls_handshake_cause(&s->end, s->session, rc, why, FAB_TLS_WHY_LEN);
		gnutls_alert_send_appropriate(s->session, rc);
		fab_tls_stream_flush(s);
		return rc == GNUTLS_E_PREMATURE_TERMINATION || rc == GNUTLS_E_PULL_ERROR ?
		       -ECONNRESET : -EPROTO;
	}
	if (left < 0) {
		snprintf(why, FAB_TLS_WHY_LEN, "TLS: %s", strerror(-left));
		return left;
	}
	return rc < 0 || left ? -EAGAIN : 0;
}

void fab_tls_stream_read_ahead(struct fab_tls_stream *s)
{
	s->reading = READING_AHEAD;
}

/* ---- sending ---- */

/* A place in an array of pieces. */
struct cursor {
	const struct iovec *iov;
	size_t n;
	size_t at;			/* in the first piece */
};

/* The next bytes at @c, at most *@len: in their place if they are in one piece, else copied to
 * @s->plain.  *@len becomes their number. */
static const void *next_bytes(struct fab_tls_stream *s, struct cursor *c, size_t *len)
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
		if (part == most || (!*len && !c->n))
			return *len = part, from;
		memcpy(s->plain + *len, from, part);
		*len += part;
	}
	return s->plain;
}

/* Make room for one more record: write what waits.  0 or -errno. */
static int make_room(struct fab_tls_stream *s)
{
	int left;

	if (sizeof(s->out.bytes) - s->out.tail >= RECORD_ROOM)
		return 0;
	left = fab_tls_stream_flush(s);
	return left > 0 ? -EAGAIN : left;
}

/* Make a record of @len bytes, or of as many as the peer takes.  Returns their number, or -1 with
 * errno. */
static ssize_t send_record(struct fab_tls_stream *s, const void *bytes, size_t len)
{
	ssize_t rc;

	do {
		rc = gnutls_record_send(s->session, bytes, len);
	} while (rc == GNUTLS_E_INTERRUPTED);
	if (rc > 0)
		return rc;
	/* The receiving thread may be reading the cause of its own end. */
	if (s->state != STREAM_ENDED)
		snprintf(s->why, sizeof(s->why), "TLS: a record was not sent: %s",
			 gnutls_strerror((int)rc));
	errno = EPROTO;
	return -1;
}

ssize_t fab_tls_stream_send(struct fab_tls_stream *s, const struct iovec *iov, size_t n)
{
	struct cursor c = { .iov = iov, .n = n }, before;
	size_t len, taken = 0;
	const void *bytes;
	ssize_t rc;
	int room = 0;

	while (c.n && (room = make_room(s)) == 0) {
		before = c;
		len = s->record;
		bytes = next_bytes(s, &c, &len);
		rc = len ? send_record(s, bytes, len) : 0;
		if (rc < 0)
			return -1;
		taken += (size_t)rc;
		if ((size_t)rc < len) {
			/* The peer has asked for smaller records (RFC 8449). */
			s->record = len = (size_t)rc;
			c = before;
			next_bytes(s, &c, &len);
		}
	}
	errno = -room;
	return room && !taken ? -1 : (ssize_t)taken;
}

void fab_tls_stream_bye(struct fab_tls_stream *s)
{
	if (make_room(s) == 0)
		gnutls_bye(s->session, GNUTLS_SHUT_WR);
}

/* ---- receiving ---- */

/* The receive side ends with @rc of GnuTLS.  The peer is told of a fault. */
static void stream_ended(struct fab_tls_stream *s, ssize_t rc)
{
	rc = cause_of(s, rc);
	s->state = STREAM_ENDED;
	*s->why = '\0';
	if (rc == 0) {
		s->error = 0;
	} else if (rc == GNUTLS_E_PULL_ERROR) {
		s->error = s->error ? s->error : ECONNRESET;
	} else if (rc == GNUTLS_E_FATAL_ALERT_RECEIVED) {
		s->error = EPROTO;
		fab_tls_alert_text(gnutls_alert_get(s->session), s->why, sizeof(s->why));
	} else if (rc == GNUTLS_E_PREMATURE_TERMINATION) {
		s->error = ECONNRESET;
		snprintf(s->why, sizeof(s->why), "peer closed: its TLS stream was cut");
	} else {
		s->error = EPROTO;
		snprintf(s->why, sizeof(s->why), "TLS: %s", gnutls_strerror((int)rc));
		gnutls_alert_send_appropriate(s->session, (int)rc);
		fab_tls_stream_flush(s);
	}
}

/* Receive up to @len bytes of a record at @at.  Their number; 0: none now, or the side has
 * ended. */
static size_t receive_some(struct fab_tls_stream *s, void *at, size_t len)
{
	ssize_t rc;

	/* Behind a KeyUpdate or an empty record GnuTLS says EAGAIN, whatever follows. */
	do {
		rc = gnutls_record_recv(s->session, at, len);
	} while (rc == GNUTLS_E_INTERRUPTED || rc == GNUTLS_E_WARNING_ALERT_RECEIVED ||
		 (rc == GNUTLS_E_AGAIN && s->in.head != s->in.tail));
	if (rc <= 0 && rc != GNUTLS_E_AGAIN)
		stream_ended(s, rc);
	return (size_t)MAX(rc, 0);
}

/* Go to the next place without bytes.  False: all have bytes. */
static bool next_place(struct fab_tls_take *take)
{
	while (take->n && take->at == take->iov->iov_len) {
		take->iov++;
		take->n--;
		take->at = 0;
	}
	return take->n;
}

bool fab_tls_stream_take(struct fab_tls_stream *s, struct fab_tls_take *take)
{
	size_t n;

	if (!take->begun)
		ask_socket(s);
	take->begun = true;
	if (!next_place(take) || s->state == STREAM_ENDED)
		return false;
	n = receive_some(s, (uint8_t *)take->iov->iov_base + take->at,
			 take->iov->iov_len - take->at);
	take->at += n;
	take->got += n;
	return n && next_place(take);
}

ssize_t fab_tls_stream_taken(const struct fab_tls_stream *s, const struct fab_tls_take *take)
{
	if (take->got)
		return (ssize_t)take->got;
	errno = s->state == STREAM_ENDED ? s->error : EAGAIN;
	return errno ? -1 : 0;
}

bool fab_tls_stream_pending(const struct fab_tls_stream *s)
{
	return s->state == STREAM_ENDED || s->in.head != s->in.tail ||
	       gnutls_record_check_pending(s->session) > 0;
}

const char *fab_tls_stream_why(const struct fab_tls_stream *s)
{
	return s->why;
}
