/* SPDX-License-Identifier: BSD-3-Clause */
/* Words for the end of a handshake.  Owns nothing. */
#include <config.h>

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "tcp-cm.h"
#include "tcp-hs-why.h"

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
