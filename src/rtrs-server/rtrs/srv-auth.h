/* SPDX-License-Identifier: BSD-3-Clause */
/* Who a client is, before a session or path is looked up (doc/decisions.md D23): connections on
 * which clients prove that, and the passes that they get.  A connection for the proof carries
 * nothing else; its client comes back with a pass.
 *
 * At most SRV_MAX_GUESTS are open at once, of which a host has SRV_MAX_HOST_GUESTS, each for
 * SRV_GUEST_TIMEOUT.  One more pushes out another one (unproven.h).  Control thread. */
#ifndef SRV_AUTH_H
#define SRV_AUTH_H

#include <stdbool.h>

#include "auth-chap.h"
#include "auth-creds.h"
#include "fabric.h"
#include "list.h"
#include "loop.h"
#include "rtrs-msg.h"
#include "secrets-set.h"
#include "unproven.h"

struct fab_conn;
struct fab_tls;
struct srv;
struct srv_conf;
struct srv_pass;

#define SRV_MAX_GUESTS 256u
#define SRV_MAX_HOST_GUESTS 64u
#define SRV_GUEST_TIMEOUT 10000		/* ms */

struct srv_guests {
	struct list all;		/* struct srv_guest, the oldest first */
	unsigned n;			/* of these, also those that are leaving */
	struct unproven unproven;	/* of these, not told to leave */
};

void srv_auth_init(struct srv *srv);
/* Take @conn over, if the client asks for authentication, in the version of @conn, and its
 * listener, of @mode, does.  False: @conn is a connection as any other.  @msg: @req as it came. */
bool srv_auth_takes(struct srv *srv, struct fab_conn *conn, enum auth_mode mode,
		    const struct rtrs_conn_req *req, const struct rtrs_msg_conn_req *msg);
/* The peer of @conn has gone.  False: @conn is not for authentication. */
bool srv_auth_disconnected(struct srv *srv, struct fab_conn *conn);
/* End all: the server shuts down.  srv->part_gone() follows. */
void srv_auth_stop(struct srv *srv);

/* ---- srv-pass.c: the identity of the client of a connection ---- */

/* A client that has proven itself in messages has a pass: for one attempt of one path, for each of
 * its connections once, in their order, from one address, and for a limited time. */

/* The proofs that the client of a connection has given. */
struct srv_who {
	struct fab_identity id;		/* id.name "": anonymous; id.key: of @key, or @tls_key */
	uint64_t tls_key;		/* serial of the key of TLS; 0: none */
	char key[AUTH_NAME_MAX + 1];	/* by messages: the name of its key; "": by TLS, or not */
	uint8_t key_id[16];		/* of @key */
	uint8_t conn_key[AUTH_HASH_LEN];/* of @key */
};

struct srv_passes {
	struct list all;		/* struct srv_pass, the oldest first */
	unsigned n;
};

void srv_pass_init(struct srv_passes *passes);
/* Free all. */
void srv_pass_fini(struct srv_passes *passes);

/* Give a pass to the client of @conn, which has sent @req and proven itself by @chap.  0 or
 * -ENOMEM. */
int srv_pass_give(struct srv *srv, struct fab_conn *conn, const struct rtrs_conn_req *req,
		  const struct auth_chap *chap);
/* Fill @who for @conn at a listener of @mode, whose CONN_REQ is @req, as it came in @msg.
 * RTRS_REFUSES_NOT; or the reason to refuse it, in words in *@why, valid until the next call. */
enum rtrs_refusal srv_pass_who(struct srv *srv, struct fab_conn *conn, enum auth_mode mode,
			       const struct rtrs_conn_req *req,
			       const struct rtrs_msg_conn_req *msg, struct srv_who *who,
			       const char **why);
/* The attempt of the path with @conn_key (struct srv_who) is over: end its pass, if it has one. */
void srv_pass_attempt_over(struct srv *srv, const uint8_t conn_key[AUTH_HASH_LEN]);

/* End the passes of keys that are gone. */
void srv_pass_drop_old(struct srv *srv);

/* ---- srv-pass.c too: the keys of clients, and the certificates, while the server runs ---- */

/* Other files take effect for the handshakes that follow, and the paths of a key that was removed,
 * or of a certificate that would not pass any more, are ended. */

/* Read the files of @conf for a start: *@tls and *@auth are NULL for none, and the caller's behind
 * an error, too.  0; -EINVAL: a mistake in an option or a file; another -errno: not now.  @err gets
 * the option, its value and the reason. */
int srv_keys_open(const struct srv_conf *conf, struct fab_tls **tls, struct auth_creds **auth,
		  char *err, size_t errlen);
/* Read the files of @conf, and forget them: a later start can read them, too.  0, or -errno and a
 * line in @errors for each that cannot be used.  Any thread. */
int srv_keys_try(const struct srv_conf *conf, FILE *errors);

/* True if a key of @tls or @auth, either NULL for none, is that of the identity @identity,
 * "psk:NAME".  Any thread. */
bool srv_keys_name(const struct fab_tls *tls, const struct auth_creds *auth, const char *identity);
/* True if the server has keys of either kind, or certificates.  Constant; any thread. */
bool srv_keys_any(const struct srv *srv);
/* True if the key with the serial @key is still one of the server, or @key is 0. */
bool srv_keys_hold(const struct srv *srv, uint64_t key);
/* Have @set, which is all 0, read the files that @srv was started with.  Any thread. */
void srv_keys_add(const struct srv *srv, struct secrets_set *set);
/* As secrets_change_withdraw(), and end the paths of those who are trusted no more: "-key gw1 (2
 * paths ended)".  Paths end whose certificate is revoked, not of these authorities, or over; the
 * last of these if the certificates are no others, too. */
int srv_keys_withdraw(struct srv *srv, struct secrets_change *change, char **lines);

#endif
