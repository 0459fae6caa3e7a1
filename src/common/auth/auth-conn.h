/* SPDX-License-Identifier: BSD-3-Clause */
/* Authentication in CONN_REQ and CONN_RSP: what the handshake has to know of them, and the tags of
 * the connections that follow.  Pure, any thread. */
#ifndef AUTH_CONN_H
#define AUTH_CONN_H

#include <stdbool.h>

#include "auth-chap.h"
#include "rtrs-proto.h"

struct fab_conn;

/* Fill @channel: what protects @conn, as this end sees it. */
void auth_conn_channel(struct auth_channel *channel, const struct fab_conn *conn);
/* The version of authentication on @conn, as auth_chap_version(). */
uint8_t auth_conn_version(const struct fab_conn *conn);
/* Fill @where: the messages as they were sent, and what protects @conn. */
void auth_conn_where(struct auth_where *where, const struct rtrs_msg_conn_req *req,
		     const struct rtrs_msg_conn_rsp *rsp, const struct fab_conn *conn);

/* Each message has the @channel of its own connection.
 *
 * Put into @req, which says PROVES, its tag under @conn_key. */
void auth_conn_req_seal(struct rtrs_msg_conn_req *req, const struct auth_channel *channel,
			const uint8_t conn_key[AUTH_HASH_LEN]);
/* True if @req has the tag under @conn_key. */
bool auth_conn_req_ok(const struct rtrs_msg_conn_req *req, const struct auth_channel *channel,
		      const uint8_t conn_key[AUTH_HASH_LEN]);
/* Put into @rsp, which says PROVES, the proof for the CONN_REQ with @tag. */
void auth_conn_rsp_seal(struct rtrs_msg_conn_rsp *rsp, const struct auth_channel *channel,
			const uint8_t tag[AUTH_TAG_LEN], const uint8_t conn_key[AUTH_HASH_LEN]);
/* True if @rsp has the proof for the CONN_REQ with @tag. */
bool auth_conn_rsp_ok(const struct rtrs_msg_conn_rsp *rsp, const struct auth_channel *channel,
		      const uint8_t tag[AUTH_TAG_LEN], const uint8_t conn_key[AUTH_HASH_LEN]);

#endif
