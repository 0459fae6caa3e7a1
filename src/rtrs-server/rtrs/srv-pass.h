/* SPDX-License-Identifier: BSD-3-Clause */
/* The identity of the client of a connection, before a session or path is looked up
 * (doc/decisions.md D23).
 *
 * A client that has proven itself in messages has a pass: for one attempt of one path, for each of
 * its connections once, in their order, from one address, and for a limited time.  Control
 * thread. */
#ifndef SRV_PASS_H
#define SRV_PASS_H

#include <stdbool.h>

#include "auth-chap.h"
#include "auth-creds.h"
#include "fabric.h"
#include "list.h"
#include "rtrs-msg.h"

struct srv;
struct srv_pass;

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

/* End the passes of keys that are gone. */
void srv_pass_drop_old(struct srv *srv);

#endif
