/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS in the handshake: whether a connection has TLS, and what comes before and behind the steps of
 * TLS's own handshake (tcp-aside.c).
 *
 * An unproven peer's first byte tells TLS from CONNECT.  A side without TLS answers a hello of TLS
 * with REJECT, TCP_FRAME_F_TLS, in plain, and goes on: the peer may send CONNECT
 * in plain.  A side that requires TLS answers a plain CONNECT with the same, and closes.
 *
 * Owns nothing; runs under cm->lock on the cm's thread. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "log.h"
#include "tcp-hs-frame.h"
#include "tcp-hs-tls.h"
#include "tcp-tls.h"

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

	if (rc < 0) {
		snprintf(why, FAB_TLS_WHY_LEN, "%s", text);
		return rc;
	}
	fab_addr_format(&c->base.peer, addr, sizeof(addr));
	if (!rc && *text)
		log_dbg(NULL, "tcp %s: no kTLS: %s", addr, text);
	log_dbg(NULL, "tcp %s: %s", addr, tcp_tls_describe(c, text, sizeof(text)));
	return 0;
}
