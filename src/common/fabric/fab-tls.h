/* SPDX-License-Identifier: BSD-3-Clause */
/* The needs of an end for TLS: the mode, and the credentials.  TLS 1.3 alone, AES-128-GCM before
 * ChaCha20-Poly1305, always with an ephemeral Diffie-Hellman exchange; no tickets, no early data.
 * The words are nbdkit's.
 *
 * Made once, before threads that use it, and then constant but for its secrets (secrets.h).  A
 * handshake takes a copy of the key when the client has named it, and certificates when its session
 * is made, and keeps both.  Sessions that were made with a struct fab_tls end before it does. */
#ifndef FAB_TLS_H
#define FAB_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "secrets.h"

enum fab_tls_mode {
	FAB_TLS_OFF,			/* plain alone */
	FAB_TLS_ON,			/* TLS with a peer that has TLS, else plain */
	FAB_TLS_REQUIRE,		/* TLS alone */
	FAB_TLS_MODES
};
/* "off", "on", "require". */
extern const char *const fab_tls_mode_names[FAB_TLS_MODES];

/* Whether the kernel encrypts when the handshake is done (kTLS). */
enum fab_ktls_mode {
	FAB_KTLS_OFF,
	FAB_KTLS_AUTO,			/* where kernel and cipher can */
	FAB_KTLS_MODES
};
/* "off", "auto". */
extern const char *const fab_ktls_mode_names[FAB_KTLS_MODES];

/* The protocol of the bytes in TLS.  A client that names another one (ALPN) is refused: a key that
 * nbdkit has, too, does not connect a client of RTRS to an NBD server. */
enum fab_tls_protocol {
	FAB_TLS_RTRS,
	FAB_TLS_NBD,			/* STARTTLS: NBD clients name none */
	FAB_TLS_PROTOCOLS
};

/* Read nbdkit's words for a truth: "true", "yes", "on", "1" or "false", "no", "off", "0".  False:
 * another word. */
bool fab_tls_parse_bool(const char *text, bool *value);

/* The options of a user.  Texts live during fab_tls_create() alone. */
struct fab_tls_conf {
	bool server;
	enum fab_tls_protocol protocol;
	bool asked;			/* @mode was given; else require, if @psk or @certificates
					 * was */
	enum fab_tls_mode mode;
	bool auth;			/* who has no TLS, over RDMA, is proven by messages: then
					 * such connections are none of a mode that was not asked */
	const char *psk;		/* a file of keys; NULL: none */
	const char *username;		/* client: whose key of @psk; NULL: the only one */
	const char *certificates;	/* a directory; NULL: none */
	const char *hostname;		/* client: the name in the server's certificate; NULL: the
					 * address */
	bool verify_peer;		/* check the peer's certificate */
	enum fab_ktls_mode ktls;
};

/* The file or directory that @conf has; NULL: none. */
static inline const char *fab_tls_conf_file(const struct fab_tls_conf *conf)
{
	return conf->psk ? conf->psk : conf->certificates;
}
/* The mode that @conf means. */
enum fab_tls_mode fab_tls_conf_mode(const struct fab_tls_conf *conf);

struct fab_tls {
	enum fab_tls_mode mode;
	bool spares_rdma;		/* fab_tls_conf.auth, and the mode was not asked for */
	bool ktls;			/* tcp: the kernel makes the records, where it can */

	/* of sessions (fab-tls-stream.h) */
	bool server, verify_peer;
	enum fab_tls_protocol protocol;
	struct gnutls_priority_st *priority;
	/* of both kinds one is not NULL, with keys */
	struct gnutls_psk_server_credentials_st *psk_server;
	struct gnutls_psk_client_credentials_st *psk_client;
	char *hostname;			/* NULL: the address */
	struct secrets *secrets;
};

/* Read keys or certificates as @conf says.  ON, which whoever is between can make off, is a line in
 * the log.  With FAB_KTLS_AUTO the kernel is asked what it has,
 * which may take seconds (fab-tls.h).  @out gets NULL if TLS is off.  0, or -errno with a line in
 * @err that names option and value: "tls-psk=FILE: ...". */
int fab_tls_create(const struct fab_tls_conf *conf, struct fab_tls **out, char *err, size_t len);
/* Wipe and free @tls; NULL: do nothing. */
void fab_tls_destroy(struct fab_tls *tls);
/* The keys or certificates of @tls; NULL: @tls is NULL. */
static inline struct secrets *fab_tls_secrets(const struct fab_tls *tls)
{
	return tls ? tls->secrets : NULL;
}
/* The mode; of NULL FAB_TLS_OFF. */
static inline enum fab_tls_mode fab_tls_mode(const struct fab_tls *tls)
{
	return tls ? tls->mode : FAB_TLS_OFF;
}

/* ---- TLS of the kernel (kTLS): the module tls, and ciphers ----
 *
 * The first use of either may have the kernel load a module, and the caller waits for modprobe; so
 * may each use of what cannot be loaded.  No thread that has connections is to wait for that: the
 * kernel is asked once, before there are any, and the answer holds as long as the process lives. */

/* Ask, unless that was done.  May take seconds.  Any thread. */
void fab_ktls_ask(void);
/* 0: the kernel has the module, or could not be asked; or errno.  After fab_ktls_ask(). */
int fab_ktls_module_error(void);
/* The same of the module and of @cipher, a TLS_CIPHER_* of <linux/tls.h>. */
int fab_ktls_cipher_error(uint16_t cipher);

/* ---- fab-tls-session.c: sessions ----
 *
 * A session has the credentials of an end, and the peer that it has shown.  Any thread, one at a
 * time for a session. */

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
