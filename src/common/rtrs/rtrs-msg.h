/* SPDX-License-Identifier: BSD-3-Clause */
/* Encode and decode the set-up messages of a path.  Pure.
 *
 * Encoders fill the whole message, reserved bytes zeroed, and cannot fail.  Decoders take bytes and
 * length, copy and check, and return 0 or the negative errno of doc/protocol.md 1 to 4.  Decoders
 * never look at reserved and padding bytes (doc/traps.md 24).  Our bytes for authentication and
 * for refusals count only with their magic or kind: other bytes are those of a peer without. */
#ifndef RTRS_MSG_H
#define RTRS_MSG_H

#include <stdbool.h>

#include "rtrs-imm.h"

/* What the bytes for authentication say (doc/decisions.md D23). */
enum rtrs_auth {
	RTRS_AUTHS_NOTHING,		/* a kernel; a client or server without authentication */
	RTRS_AUTHS_ASKS,		/* client: able to; server: on this connection, now */
	RTRS_AUTHS_PROVES,		/* with a tag, or a proof */
};

struct rtrs_conn_req {
	uint16_t cid, cid_num;
	uint16_t recon_cnt;
	uint8_t sess_uuid[RTRS_UUID_LEN];	/* the path */
	uint8_t paths_uuid[RTRS_UUID_LEN];	/* the session */
	uint8_t flags;			/* RTRS_CONN_REQ_FIRST_CONN, _HEARS, _LINEAGE */
	enum rtrs_auth auth;
	uint8_t auth_version;		/* ASKS: any (auth_chap_version()) */
	uint8_t tag[RTRS_AUTH_TAG_LEN];	/* PROVES */
};

/* Encode the private data of a connect. */
void rtrs_conn_req_encode(struct rtrs_msg_conn_req *m, const struct rtrs_conn_req *req);
/* Decode the private data of a connect.  -ECONNRESET: broken is a rule 1-5 of doc/protocol.md 1.7,
 * told in @why (static text). */
int rtrs_conn_req_decode(const void *buf, size_t len, struct rtrs_conn_req *req, const char **why);

/* ---- lineages: sessions of one client, each of which takes the place of the one before ---- */

/* Make @uuid that of a session: the @generation-th of the lineage @id, random bytes that stay. */
void rtrs_lineage_uuid(uint8_t uuid[RTRS_UUID_LEN], const uint8_t id[RTRS_LINEAGE_LEN],
		       uint32_t generation);
/* True if @a and @b, of sessions with lineages, are of one lineage. */
bool rtrs_lineage_same(const uint8_t a[RTRS_UUID_LEN], const uint8_t b[RTRS_UUID_LEN]);
/* Less than, equal to or greater than 0, as @a came before @b in their lineage, is @b, or came
 * behind it. */
int rtrs_lineage_compare(const uint8_t a[RTRS_UUID_LEN], const uint8_t b[RTRS_UUID_LEN]);

struct rtrs_conn_rsp {
	int status;			/* 0 accepted, else negative errno */
	unsigned refusal;		/* of a reject: enum rtrs_refusal, or of a newer server */
	uint16_t queue_depth;
	uint32_t max_io_size, max_hdr_size;
	bool new_rkey;
	enum rtrs_auth auth;		/* only with status 0 */
	uint8_t auth_version;		/* as of struct rtrs_conn_req */
	uint8_t proof[RTRS_AUTH_PROOF_LEN];	/* PROVES */
};

/* Encode an accept, or a reject if @rsp->status is negative: all other fields but @rsp->refusal are
 * then sent as zero. */
void rtrs_conn_rsp_encode(struct rtrs_msg_conn_rsp *m, const struct rtrs_conn_rsp *rsp);
/* Decode an accept, or a reject (@rejected).  -ECONNRESET with @why: too short, wrong magic or
 * major version.  0: @rsp is set, and its status may be an error.  A positive errno on the wire
 * becomes -ECONNABORTED, and 0 in a reject becomes -ECONNRESET.  Only a reject has a refusal.
 * rtrs_geom_init() checks the sizes. */
int rtrs_conn_rsp_decode(const void *buf, size_t len, bool rejected, struct rtrs_conn_rsp *rsp,
			 const char **why);

/* Encode INFO_REQ with the session name @name, at most RTRS_NAME_MAX - 1 characters. */
void rtrs_info_req_encode(struct rtrs_msg_info_req *m, const char *name);
/* Decode INFO_REQ.  -EINVAL: short, wrong type, name empty, or with '/' or '.'.  @name is always
 * terminated. */
int rtrs_info_req_decode(const void *buf, size_t len, char name[RTRS_NAME_MAX], const char **why);
/* Say in @m, which is encoded, that the client hears a refusal. */
void rtrs_info_req_hear(struct rtrs_msg_info_req *m);
/* True if the sender of the INFO_REQ @buf, which is decoded, hears a refusal. */
bool rtrs_info_req_hears(const void *buf);
/* True if @name may be a session name: not empty, short enough, neither '/' nor '.'. */
bool rtrs_sessname_ok(const char *name);

/* Bytes of an INFO_RSP with @sg_cnt regions. */
static inline size_t rtrs_info_rsp_len(unsigned sg_cnt)
{
	return sizeof(struct rtrs_msg_info_rsp) + sg_cnt * sizeof(struct rtrs_sg_desc);
}

/* A chunk as the client addresses it. */
struct rtrs_rbuf {
	uint64_t addr;
	uint32_t rkey;
};

struct rtrs_region {
	uint64_t addr;
	uint32_t key, len;
};

/* Encode INFO_RSP with @n regions.  @m has room for rtrs_info_rsp_len(@n). */
void rtrs_info_rsp_encode(struct rtrs_msg_info_rsp *m, const struct rtrs_region *regions,
			  unsigned n);
/* Decode INFO_RSP and cut its regions into chunks: fills @rbufs[g->queue_depth].  Checks all of
 * doc/protocol.md 2.5, and the bits of the queue depth (doc/traps.md 3).  -ECONNRESET with @why. */
int rtrs_info_rsp_decode(const void *buf, size_t len, const struct rtrs_geom *g,
			 struct rtrs_rbuf *rbufs, const char **why);

/* Encode the INFO_RSP that says why there is no session, for a client that hears refusals.  Its
 * length is rtrs_info_rsp_len(0). */
void rtrs_info_refusal_encode(struct rtrs_msg_info_rsp *m, enum rtrs_refusal refusal);
/* The refusal in the INFO_RSP @buf, maybe a number of a newer server.  RTRS_REFUSES_NOT: none, and
 * rtrs_info_rsp_decode() is to judge. */
unsigned rtrs_info_refusal_decode(const void *buf, size_t len);

/* Encode the RKEY_RSP that tells the new key @rkey of chunk @buf_id. */
void rtrs_rkey_rsp_encode(struct rtrs_msg_rkey_rsp *m, uint16_t buf_id, uint32_t rkey);
/* Decode an RKEY_RSP.  @msg_id is of the immediate that came with the message.  -ECONNRESET with
 * @why. */
int rtrs_rkey_rsp_decode(const void *buf, size_t len, const struct rtrs_geom *g, uint32_t msg_id,
			 uint32_t *rkey, const char **why);

#endif
