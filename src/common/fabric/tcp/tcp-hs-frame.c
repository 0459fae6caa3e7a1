/* SPDX-License-Identifier: BSD-3-Clause */
/* What the states of a handshake (tcp-hs.c) do: frames, the end of connect(2), what comes before
 * and after TLS's own handshake, and the words for a failure.  Owns nothing; runs under cm->lock on
 * the cm's thread. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log.h"
#include "number.h"
#include "tcp-cm.h"
#include "tcp-tls.h"

/* Returns the bytes of the frame in @buf. */
static size_t encode_frame(uint8_t buf[TCP_FRAME_HDR_LEN + FAB_PRIVATE_DATA_MAX],
			   enum tcp_frame_op op, uint8_t flags, const void *data, size_t len)
{
	struct tcp_frame f = { .op = (uint8_t)op, .flags = flags, .length = (uint32_t)len,
			       .rkey = TCP_FRAME_VERSION, .addr = TCP_FRAME_MAGIC };

	tcp_frame_encode(buf, &f);
	if (len)
		memcpy(buf + TCP_FRAME_HDR_LEN, data, len);
	return TCP_FRAME_HDR_LEN + len;
}

int tcp_hs_send(struct tcp_conn *c, enum tcp_frame_op op, uint8_t flags, const void *data,
		size_t len)
{
	uint8_t buf[TCP_FRAME_HDR_LEN + FAB_PRIVATE_DATA_MAX];
	size_t all = encode_frame(buf, op, flags, data, len);
	ssize_t n = tcp_stream_send(c, &(struct iovec){ buf, all }, 1);

	if (n < 0)
		return -errno;
	return (size_t)n == all && !tcp_stream_flush(c) ? 0 : -ENOBUFS;
}

void tcp_hs_send_refusal(int fd, const void *data, size_t len)
{
	uint8_t buf[TCP_FRAME_HDR_LEN + FAB_PRIVATE_DATA_MAX];
	size_t all = encode_frame(buf, TCP_FRAME_REJECT, 0, data, len);

	(void)!send(fd, buf, all, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static bool first_byte_ok(uint8_t op)
{
	return op == TCP_FRAME_CONNECT || op == TCP_FRAME_ACCEPT || op == TCP_FRAME_REJECT;
}

int tcp_hs_read(struct tcp_conn *c, struct tcp_frame *f, const char **why)
{
	uint32_t need;
	ssize_t n;

	*why = "";
	for (;;) {
		need = TCP_FRAME_HDR_LEN;
		/* Checked before a whole header: a peer of another protocol may send less, and
		 * wait. */
		if (c->hs_len && !first_byte_ok(c->hs_buf[0])) {
			*why = NULL;
			return -EPROTO;
		}
		if (c->hs_len >= TCP_FRAME_HDR_LEN) {
			const char *wrong = tcp_frame_decode(c->hs_buf, f);

			if (wrong) {
				*why = wrong;
				return -EPROTO;
			}
			need += f->length;
			if (c->hs_len == need)
				return 0;
		}
		n = tcp_stream_recv(c, &(struct iovec){ c->hs_buf + c->hs_len,
							need - c->hs_len }, 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			*why = tcp_stream_why(c);
		if (n <= 0)
			return n ? -errno : -ECONNRESET;
		c->hs_len += (uint32_t)n;
	}
}

/* ---- the end of connect(2) ---- */

/* 0 if the listener runs as a user that the cm trusts: any user may have taken the name of an
 * AF_UNIX address. */
static int check_user(const struct tcp_conn *c, char why[FAB_TLS_WHY_LEN])
{
	const struct fab_users *servers = &c->base.cm->servers;
	struct ucred cred = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(cred);
	char users[FAB_TLS_WHY_LEN / 2];

	if (!fab_addr_is_unix(&c->base.peer))
		return 0;
	getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	if (fab_users_have(servers, cred.uid))
		return 0;
	/* Its process may have left the socket to a child, and its number to anybody. */
	snprintf(why, FAB_TLS_WHY_LEN, "user %u listens there, expected user %s (server-uid)",
		 (unsigned)cred.uid, fab_users_format(servers, users, sizeof(users)));
	return -ECONNABORTED;
}

/* Note our own address. */
static int note_local(struct tcp_conn *c)
{
	struct fab_addr *local = &c->base.local;

	local->len = sizeof(local->ss);
	if (getsockname(c->fd, (struct sockaddr *)&local->ss, &local->len))
		return -errno;
	local->pid = getpid();
	local->uid = geteuid();
	return 0;
}

int tcp_hs_connected(struct tcp_conn *c, char why[FAB_TLS_WHY_LEN])
{
	socklen_t len = sizeof(int);
	int err = 0, rc;

	*why = '\0';
	rc = getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len) ? -errno : -err;
	if (!rc)
		rc = check_user(c, why);
	if (!rc)
		rc = note_local(c);
	if (rc && !*why)
		snprintf(why, FAB_TLS_WHY_LEN, "%s", strerror(-rc));
	return rc;
}

/* ---- words for the end of a handshake ---- */

#define HS_SAID_MAX 60u			/* bytes kept of another protocol */

/* Protocols that are known by their first bytes. */
static const struct {
	const char *begin;
	uint32_t len;
	const char *told;
} others[] = {
	{ "NBDMAGIC", 8, "the peer is an NBD server, not an rtrs-server: write the address of "
			 "rtrs-server, or use nbdkit's nbd plugin" },
	{ "{\"ok\"", 5, "the peer is a control socket, for rtrsctl: write the address of "
		       "rtrs-server" },
	{ "\x15\x03", 2, "the peer does not speak RTRS, but TLS" },
	{ "\x16\x03", 2, "the peer does not speak RTRS, but TLS" },
};

void tcp_hs_why_said(struct tcp_conn *c, char why[FAB_TLS_WHY_LEN])
{
	char said[HS_SAID_MAX + 1] = "";
	uint32_t n = 0;

	if (c->hs_len < HS_SAID_MAX) {
		ssize_t more = recv(c->fd, c->hs_buf + c->hs_len, HS_SAID_MAX - c->hs_len,
				    MSG_DONTWAIT);

		c->hs_len += more > 0 ? (uint32_t)more : 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		if (c->hs_len >= others[i].len &&
		    !memcmp(c->hs_buf, others[i].begin, others[i].len)) {
			snprintf(why, FAB_TLS_WHY_LEN, "%s", others[i].told);
			return;
		}
	}
	while (n < MIN(c->hs_len, HS_SAID_MAX) && c->hs_buf[n] >= ' ' && c->hs_buf[n] < 0x7f) {
		said[n] = (char)c->hs_buf[n];
		n++;
	}
	if (n == c->hs_len || n == HS_SAID_MAX || c->hs_buf[n] == '\r' || c->hs_buf[n] == '\n') {
		snprintf(why, FAB_TLS_WHY_LEN, "the peer does not speak RTRS (it said '%s')", said);
		return;
	}
	for (size_t i = 0; i < MIN(c->hs_len, 8u); i++)
		snprintf(said + 3 * i, sizeof(said) - 3 * i, " %02x", c->hs_buf[i]);
	snprintf(why, FAB_TLS_WHY_LEN, "the peer does not speak RTRS (its first bytes are%s)",
		 said);
}

const char *tcp_hs_why_silent(const struct tcp_conn *c)
{
	_Static_assert(CM_HANDSHAKE_MS == 10000, "in words here");

	if (tcp_conn_state(c) == TCP_CONNECTING)
		return "no TCP connection in 10 s: no machine has this address, or a firewall "
		       "drops it";
	if (tcp_conn_state(c) == TCP_WAIT_REPLY && !c->hs_len)
		return "the peer accepted the connection and said nothing for 10 s: no "
		       "rtrs-server, or an overloaded one";
	if (tcp_conn_state(c) == TCP_SECURING || tcp_conn_state(c) == TCP_TAKES_TLS)
		return "TLS: no handshake in time";
	return "no handshake in time";
}

const char *tcp_hs_why_closed(const struct tcp_conn *c)
{
	if (tcp_conn_state(c) == TCP_WAIT_REPLY && !c->hs_len)
		return "the peer closed the connection without an answer: no rtrs-server, or an "
		       "overloaded one";
	if (tcp_conn_state(c) == TCP_SKIPS_HELLO || tcp_conn_state(c) == TCP_WAIT_PLAIN)
		return "the peer wants TLS, which is off here";
	return "peer closed";
}

/* ---- TLS ---- */

/* TLS in the handshake: whether a connection has TLS, and what comes before and behind the steps of
 * TLS's own handshake (tcp-aside.c).
 *
 * An unproven peer's first byte tells TLS from CONNECT.  A side without TLS answers a hello of TLS
 * with REJECT, TCP_FRAME_F_TLS, in plain, and goes on: the peer may send CONNECT
 * in plain.  A side that requires TLS answers a plain CONNECT with the same, and closes.
 *
 * Owns nothing; runs under cm->lock on the cm's thread. */

#define TLS_HANDSHAKE_RECORD 0x16	/* the first byte of a hello */
#define TLS_RECORD_HDR 5u
#define TLS_RECORD_MAX (16384u + 256u)

/* The first byte that the peer sent, which stays; -1: none yet, or none ever. */
static int peek_byte(struct tcp_conn *c)
{
	uint8_t byte;
	ssize_t n;

	do {
		n = recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n == 0)
		errno = ECONNRESET;
	return n == 1 ? byte : -1;
}

int tcp_hs_tls_look(struct tcp_conn *c)
{
	enum fab_tls_mode mode = fab_tls_mode(c->base.cm->tls);
	int byte = peek_byte(c);

	if (byte < 0 && errno == EAGAIN)
		return -EAGAIN;
	if (byte != TLS_HANDSHAKE_RECORD)
		return mode == FAB_TLS_REQUIRE ? TCP_EV_NO_PLAIN : TCP_EV_PLAIN;
	return mode == FAB_TLS_OFF ? TCP_EV_NO_TLS : TCP_EV_TLS;
}

/* ---- a hello that is refused ---- */

/* Read up to @want bytes into @buf.  Returns their number, or -errno. */
static ssize_t read_some(struct tcp_conn *c, void *buf, size_t want)
{
	ssize_t n;

	do {
		n = recv(c->fd, buf, want, MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n ? n : -ECONNRESET;
}

int tcp_hs_tls_hello(struct tcp_conn *c)
{
	uint32_t len;

	while (c->hs_len < TLS_RECORD_HDR) {
		ssize_t n = read_some(c, c->hs_buf + c->hs_len, TLS_RECORD_HDR - c->hs_len);

		if (n < 0)
			return (int)n;
		c->hs_len += (uint32_t)n;
	}
	len = (uint32_t)c->hs_buf[3] << 8 | c->hs_buf[4];
	if (c->hs_buf[1] != 3 || !len || len > TLS_RECORD_MAX)
		return 0;
	c->hs_skip = len;
	return 1;
}

int tcp_hs_tls_skip(struct tcp_conn *c)
{
	uint8_t scratch[512];

	while (c->hs_skip) {
		ssize_t n = read_some(c, scratch, MIN((size_t)c->hs_skip, sizeof(scratch)));

		if (n < 0)
			return (int)n;
		c->hs_skip -= (uint32_t)n;
	}
	c->hs_len = 0;
	return tcp_hs_send(c, TCP_FRAME_REJECT, TCP_FRAME_F_TLS, NULL, 0);
}

/* ---- steps ---- */

bool tcp_hs_tls_answered(struct tcp_conn *c)
{
	/* The server has no TLS, or refuses the address. */
	return !tcp_tls_heard(c) && peek_byte(c) == TCP_FRAME_REJECT;
}

int tcp_hs_tls_done(struct tcp_conn *c, char why[FAB_TLS_WHY_LEN])
{
	char text[FAB_TLS_WHY_LEN] = "", addr[FAB_ADDR_STRLEN];
	int rc = tcp_tls_hand_over(c, text);

	if (rc < 0)
		return fmt_error(rc, why, FAB_TLS_WHY_LEN, "%s", text);
	fab_addr_format(&c->base.peer, addr, sizeof(addr));
	if (!rc && *text)
		log_dbg(NULL, "tcp %s: no kTLS: %s", addr, text);
	log_dbg(NULL, "tcp %s: %s", addr, tcp_tls_describe(c, text, sizeof(text)));
	return 0;
}
