/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer: GnuTLS with the right key.  What the peer writes stands in line on the wire; what our
 * end writes, the peer reads from the socket. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "tls-rig.h"

/* Whole records. */
static ssize_t peer_push(gnutls_transport_ptr_t arg, const void *data, size_t len)
{
	wire_put(data, len);
	return (ssize_t)len;
}

static ssize_t peer_pull(gnutls_transport_ptr_t arg, void *data, size_t len)
{
	ssize_t n = recv(run.fd, data, len, MSG_DONTWAIT);

	gnutls_transport_set_errno(run.session, errno);
	return n;
}

void peer_begin(void)
{
	run.end.tls = sides_peer(run.flags);
	must(fab_tls_session(&run.end, "unix", &run.session) == 0);
	gnutls_transport_set_ptr(run.session, &run);
	gnutls_transport_set_push_function(run.session, peer_push);
	gnutls_transport_set_pull_function(run.session, peer_pull);
}

void peer_shake(void)
{
	int rc;

	if (run.shaken || run.dead)
		return;
	rc = gnutls_handshake(run.session);
	run.shaken = rc == 0;
	run.dead = rc < 0 && gnutls_error_is_fatal(rc);
}

/* ---- reading ---- */

static void take_frames(void)
{
	struct tcp_frame f;

	while (run.nin >= HDR) {
		must(!tcp_frame_decode(run.in, &f));
		must(f.length <= ROOM);
		if (run.nin < HDR + f.length)
			return;
		if (f.op == TCP_FRAME_SEND) {
			must(run.got < run.said);
			message_check(run.in + HDR, run.got++, f.length);
		}
		run.nin -= HDR + f.length;
		memmove(run.in, run.in + HDR + f.length, run.nin);
	}
}

void peer_read(void)
{
	ssize_t n = 1;

	while (run.shaken && !run.dead && n > 0) {
		n = gnutls_record_recv(run.session, run.in + run.nin, sizeof(run.in) - run.nin);
		if (n > 0)
			run.nin += (size_t)n;
		else if (n != GNUTLS_E_AGAIN)
			run.dead = true;
		take_frames();
	}
}

/* ---- writing ---- */

void peer_say(size_t len)
{
	static uint8_t out[HDR + ROOM];
	bool active = run.flags & FLAG_ACTIVE;

	if (!run.shaken || run.dead)
		return;
	if (!run.set_up) {
		message_frame(out, active ? TCP_FRAME_ACCEPT : TCP_FRAME_CONNECT, 0);
		len = 0;
		run.set_up = true;
	} else {
		len += 4;
		message_frame(out, TCP_FRAME_SEND, len);
		message_write(out + HDR, run.told++, len);
	}
	for (size_t at = 0, all = HDR + len; at < all;) {
		ssize_t n = gnutls_record_send(run.session, out + at, all - at);

		if (n <= 0) {
			run.dead = true;
			return;
		}
		at += (size_t)n;
	}
}

void peer_update_keys(bool ask)
{
	if (run.shaken && !run.dead)
		gnutls_session_key_update(run.session, ask ? GNUTLS_KU_PEER : 0);
}

void peer_alert(unsigned level, unsigned description)
{
	gnutls_alert_send(run.session, (gnutls_alert_level_t)level,
			  (gnutls_alert_description_t)description);
}

void peer_bye(void)
{
	if (run.shaken)
		gnutls_bye(run.session, GNUTLS_SHUT_WR);
}

void peer_say_in_plain(void)
{
	uint8_t hdr[HDR];

	message_frame(hdr, TCP_FRAME_CONNECT, 0);
	wire_arrive(hdr, sizeof(hdr));
}

void peer_finish(void)
{
	gnutls_deinit(run.session);
	close(run.fd);
}
