/* SPDX-License-Identifier: BSD-3-Clause */
/* A session of TLS with the credentials of an end (fab-tls.h), and the peer that it has shown.
 *
 * Any thread, one at a time for a session. */
#ifndef FAB_TLS_SESSION_H
#define FAB_TLS_SESSION_H

#include "fab-tls.h"

struct fab_identity;
struct gnutls_session_int;

#define FAB_TLS_RECORD 16384u		/* plain bytes of a record, without another limit */

/* A session's end, which lives as long as the session. */
struct fab_tls_end {
	const struct fab_tls *tls;
	char identity[PSK_NAME_MAX + 1];	/* whose key the client uses, as it says; "": not
						 * said yet */
	bool unknown;				/* server: no key has this name */
	uint64_t key;				/* server: the serial of the key, and its age */
	int64_t key_since_s;
	struct certs *certs;			/* a reference; NULL: none */
	const char *address;			/* of the peer */
	unsigned faults;			/* of the peer's certificate, GnuTLS's bits */
	bool judged;				/* the peer's certificate has passed */
	uint32_t record;			/* plain bytes of the largest record that the peer
						 * takes (RFC 8449); after the handshake */
	uint16_t offers;			/* server: the newest version that the client
						 * offers, 0x0303 for TLS 1.2; 0: not known */
};

/* Make a session of TLS for @end, not connected; @address is the peer's, as a text that lives as
 * long as the session.  Give the session to fab_tls_session_end().  0 or -ENOMEM. */
int fab_tls_session(struct fab_tls_end *end, const char *address,
		    struct gnutls_session_int **out);
/* Free @session of @end. */
void fab_tls_session_end(struct fab_tls_end *end, struct gnutls_session_int *session);
/* False: the peer's certificate was verified in the handshake of @session, and the certificates
 * that @end->tls has now would not let it pass, or it has ended.  After the handshake; another
 * thread may use @session meanwhile. */
bool fab_tls_trusts(const struct fab_tls_end *end, struct gnutls_session_int *session);
/* Fill @id, which is empty, after the handshake of @session: the peer of a server by its key, or by
 * its certificate if certificates are verified; the peer of a client has no name here. */
void fab_tls_identity(const struct fab_tls_end *end, struct gnutls_session_int *session,
		      struct fab_identity *id);
/* Write to @why the cause for which the handshake of @end, a session, has failed with GnuTLS's
 * error @rc. */
void fab_tls_handshake_cause(const struct fab_tls_end *end, struct gnutls_session_int *session,
			     int rc, char *why, size_t len);
/* Write to @why what the alert @alert of RFC 8446 means, which a peer has sent after the
 * handshake. */
void fab_tls_alert_text(unsigned alert, char *why, size_t len);

#endif
