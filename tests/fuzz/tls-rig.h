/* SPDX-License-Identifier: BSD-3-Clause */
/* The rig of fuzz-tls-stream.c: our end, which is the tcp provider with TLS; a peer, which is
 * GnuTLS with the right key; and the wire between them, on which the script lets bytes arrive.
 *
 * A file calls only those before it: tls-message, tls-sides, tls-end, tls-wire, tls-peer.  One
 * thread, one run at a time.  A broken promise ends the process (must()). */
#ifndef TLS_RIG_H
#define TLS_RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gnutls/gnutls.h>

#include "fab-tls.h"
#include "tcp-cm.h"

#define MSG_MAX 20000u			/* two records */
#define ROOM (4 + MSG_MAX)
#define RECORDS 128u
#define HDR TCP_FRAME_HDR_LEN

enum { FLAG_ACTIVE = 1, FLAG_ON = 2, FLAG_CHACHA = 4, FLAG_WITH_DH = 8 };

/* Bytes that the peer has made in one piece. */
struct record {
	uint8_t *bytes;
	size_t len;
};

extern struct run {
	unsigned flags;

	/* our end */
	struct fab_conn *conn;
	struct fab_pd *pd;
	struct ibv_mr *mr, *out_mr;
	bool drained, up, secret;
	uint32_t heard, said;		/* messages at our end, and of it */

	/* the peer */
	int fd;
	struct fab_tls_end end;
	gnutls_session_t session;
	bool shaken, dead;
	uint32_t told, got;		/* messages of the peer, and at the peer */
	bool set_up;			/* CONNECT or ACCEPT was said */
	uint8_t in[HDR + ROOM];
	size_t nin;

	/* the wire */
	struct record records[RECORDS];
	unsigned nrecords;
	struct record line[2 * RECORDS];	/* what is left of those that did not arrive */
	unsigned head, tail;
} run;

/* ---- tls-message.c: what both say ---- */

/* Write message @number, of @len bytes, at least 4. */
void message_write(uint8_t *at, uint32_t number, size_t len);
/* The @len bytes are message @number. */
void message_check(const uint8_t *at, uint32_t number, size_t len);
/* Write the header of a frame with @len bytes behind. */
void message_frame(uint8_t *at, enum tcp_frame_op op, size_t len);

/* ---- tls-sides.c: what lasts for all runs ---- */

/* Make keys, listeners and credentials, once. */
void sides_make(void);
/* Our cm in a run of @flags. */
struct fab_cm *sides_cm(unsigned flags);
/* A socket that is connected to our listener. */
int sides_connect(unsigned flags);
/* The address of the peer's listener, and the next connection there. */
const struct fab_addr *sides_dial(void);
int sides_accept(void);
/* The peer's credentials. */
const struct fab_tls *sides_peer(unsigned flags);

/* ---- tls-end.c: our end ---- */

/* Connect to the listener of the peer, if our end is active. */
void end_connect(void);
/* Take events, and poll. */
void end_step(void);
/* Poll. */
void end_take(void);
/* Post a message of 4 + @len bytes.  False: our end is not up. */
bool end_send(size_t len);
/* True if a message does not fit the socket. */
bool end_blocked(void);
/* Disconnect, if up. */
void end_disconnect(void);
/* End the connection, if there is one, and see that nothing is left. */
void end_finish(void);

/* ---- tls-wire.c: from the peer to our end ---- */

/* Put a record of the peer, a copy of these bytes, at the end of the line. */
void wire_put(const void *bytes, size_t len);
/* Bytes arrive, whatever stands in line. */
void wire_arrive(const void *bytes, size_t len);
/* At most so many bytes of the next record arrive. */
void wire_next(size_t at_most);
/* All records arrive. */
void wire_all(void);
/* The next record is lost. */
void wire_lose(void);
/* A copy of an earlier record is next. */
void wire_repeat(unsigned which);
/* The next two records change places. */
void wire_swap(void);
/* The next record arrives up to @where, and there a byte that was changed. */
void wire_change(size_t where, uint8_t by);
/* Free the records of the run. */
void wire_finish(void);

/* ---- tls-peer.c: the peer ---- */

/* Begin the session of the peer at run.fd. */
void peer_begin(void);
/* Take a step of the handshake. */
void peer_shake(void);
/* Read and check messages of our end. */
void peer_read(void);
/* Say the next message: at first CONNECT or ACCEPT, then a message of 4 + @len bytes. */
void peer_say(size_t len);
/* Change the keys, and with @ask ask for other keys of ours. */
void peer_update_keys(bool ask);
/* Send an alert. */
void peer_alert(unsigned level, unsigned description);
/* Say that the stream ends. */
void peer_bye(void);
/* A CONNECT in plain arrives. */
void peer_say_in_plain(void);
/* End the session, and close the socket. */
void peer_finish(void);

#endif
