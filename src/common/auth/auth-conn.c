/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns nothing. */
#include <string.h>

#include "auth-conn.h"
#include "fabric.h"

/* The connection manager may write the first two bytes of a CONN_REQ. */
#define REQ_SKIPPED 2u
#define REQ_TAGGED (offsetof(struct rtrs_msg_conn_req, auth_data) - REQ_SKIPPED)

_Static_assert(sizeof(((struct auth_where *)0)->conn_req) ==
	       sizeof(struct rtrs_msg_conn_req) - REQ_SKIPPED, "all of it");
_Static_assert(sizeof(((struct auth_where *)0)->conn_rsp) == sizeof(struct rtrs_msg_conn_rsp),
	       "all of it");
_Static_assert(AUTH_TAG_LEN == RTRS_AUTH_TAG_LEN && AUTH_PROOF_LEN == RTRS_AUTH_PROOF_LEN,
	       "the places in CONN_REQ and CONN_RSP");

void auth_conn_channel(struct auth_channel *channel, const struct fab_conn *conn)
{
	const char *transport;
	struct fab_addr peer;

	memset(channel, 0, sizeof(*channel));
	fab_conn_addrs(conn, NULL, &peer);
	transport = fab_addr_transport(&peer);
	memcpy(channel->transport, transport, strnlen(transport, sizeof(channel->transport)));
	fab_conn_binding(conn, channel->binding);
}

uint8_t auth_conn_version(const struct fab_conn *conn)
{
	struct auth_channel channel;

	auth_conn_channel(&channel, conn);
	return auth_chap_version(&channel);
}

void auth_conn_where(struct auth_where *where, const struct rtrs_msg_conn_req *req,
		     const struct rtrs_msg_conn_rsp *rsp, const struct fab_conn *conn)
{
	memcpy(where->conn_req, (const uint8_t *)req + REQ_SKIPPED, sizeof(where->conn_req));
	memcpy(where->conn_rsp, rsp, sizeof(where->conn_rsp));
	auth_conn_channel(&where->channel, conn);
}

static void tag_of(const struct rtrs_msg_conn_req *req, const struct auth_channel *channel,
		   const uint8_t conn_key[AUTH_HASH_LEN], uint8_t tag[AUTH_TAG_LEN])
{
	auth_chap_tag(conn_key, channel, (const uint8_t *)req + REQ_SKIPPED, REQ_TAGGED, tag);
}

void auth_conn_req_seal(struct rtrs_msg_conn_req *req, const struct auth_channel *channel,
			const uint8_t conn_key[AUTH_HASH_LEN])
{
	tag_of(req, channel, conn_key, req->auth_data);
}

bool auth_conn_req_ok(const struct rtrs_msg_conn_req *req, const struct auth_channel *channel,
		      const uint8_t conn_key[AUTH_HASH_LEN])
{
	uint8_t tag[AUTH_TAG_LEN];

	tag_of(req, channel, conn_key, tag);
	return req->auth == RTRS_AUTH_TAG && auth_crypto_same(tag, req->auth_data, sizeof(tag));
}

static void proof_of(const struct rtrs_msg_conn_rsp *rsp, const struct auth_channel *channel,
		     const uint8_t tag[AUTH_TAG_LEN], const uint8_t conn_key[AUTH_HASH_LEN],
		     uint8_t proof[AUTH_PROOF_LEN])
{
	auth_chap_accept_proof(conn_key, channel, tag, AUTH_TAG_LEN, (const uint8_t *)rsp,
			       offsetof(struct rtrs_msg_conn_rsp, auth_data), proof);
}

void auth_conn_rsp_seal(struct rtrs_msg_conn_rsp *rsp, const struct auth_channel *channel,
			const uint8_t tag[AUTH_TAG_LEN], const uint8_t conn_key[AUTH_HASH_LEN])
{
	proof_of(rsp, channel, tag, conn_key, rsp->auth_data);
}

bool auth_conn_rsp_ok(const struct rtrs_msg_conn_rsp *rsp, const struct auth_channel *channel,
		      const uint8_t tag[AUTH_TAG_LEN], const uint8_t conn_key[AUTH_HASH_LEN])
{
	uint8_t proof[AUTH_PROOF_LEN];

	proof_of(rsp, channel, tag, conn_key, proof);
	return rsp->auth == RTRS_AUTH_TAG && auth_crypto_same(proof, rsp->auth_data, sizeof(proof));
}
