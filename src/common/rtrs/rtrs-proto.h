/* SPDX-License-Identifier: BSD-3-Clause */
/* RTRS 2.0 on the wire: structures, constants, limits.  Facts: doc/protocol.md 1 to 5; names are
 * the kernel's (drivers/infiniband/ulp/rtrs/rtrs-pri.h).  Only the encoders and decoders of this
 * directory look into these structs. */
#ifndef RTRS_PROTO_H
#define RTRS_PROTO_H

#include <stddef.h>
#include <stdint.h>

#include "wire-int.h"

#define RTRS_MAGIC 0x1BBD
#define RTRS_PROTO_VER_MAJOR 2
#define RTRS_PROTO_VER 0x0200
#define RTRS_PORT 1234			/* default port of both ends */

#define RTRS_UUID_LEN 16
#define RTRS_LINEAGE_LEN 12		/* of the uuid of a session that has a lineage */
#define RTRS_NAME_MAX 255		/* with the terminating NUL */
#define RTRS_MAX_PATHS 128		/* per session */
#define RTRS_MAX_CONS 4096		/* per path */
#define RTRS_MAX_QUEUE_DEPTH 65535
#define RTRS_SERVICE_CON_DEPTH 512	/* receives the server keeps on connection 0 */

#define RTRS_IMM_PAYL_BITS 28

#define RTRS_HB_INTERVAL_MS 5000
#define RTRS_HB_MISSED_MAX 5
#define RTRS_CONNECT_TIMEOUT_MS 30000

enum rtrs_msg_type {
	RTRS_MSG_INFO_REQ = 0,
	RTRS_MSG_INFO_RSP = 1,
	RTRS_MSG_WRITE = 2,
	RTRS_MSG_READ = 3,
	RTRS_MSG_RKEY_RSP = 4,
};

enum rtrs_imm_type {
	RTRS_IO_REQ_IMM = 0,
	RTRS_IO_RSP_IMM = 1,
	RTRS_IO_RSP_W_INV_IMM = 2,
	RTRS_HB_MSG_IMM = 8,
	RTRS_HB_ACK_IMM = 9,
};

#define RTRS_CONN_REQ_FIRST_CONN 0x01	/* rtrs_msg_conn_req.flags */
/* likewise, ours: the client reads rtrs_msg_conn_rsp.refusal */
#define RTRS_CONN_REQ_HEARS 0x02
/* likewise: the session has a lineage, and paths_uuid is rtrs_lineage_uuid() */
#define RTRS_CONN_REQ_LINEAGE 0x04
#define RTRS_MSG_NEW_RKEY_F 0x02	/* rtrs_msg_conn_rsp.flags: always_invalidate */
#define RTRS_MSG_NEED_INVAL_F 0x01	/* rtrs_msg_rdma_read.flags */

/* Authentication (doc/decisions.md D23): ours, in bytes that are zero from a kernel. */
#define RTRS_AUTH_ASK 0xA1		/* .auth: the client asks whether, the server says that */
#define RTRS_AUTH_TAG 0xA2		/* .auth: a connection of a path that is authenticated */
#define RTRS_REFUSAL_KIND 0xA3		/* .auth of a reject: .refusal has the reason */
#define RTRS_AUTH_MAGIC "rtrs-auth"	/* of an ASK, followed by the version */
#define RTRS_AUTH_TAG_LEN 10
#define RTRS_AUTH_PROOF_LEN 32

struct rtrs_msg_conn_req {		/* private data of connect, doc/protocol.md 1.4 */
	uint8_t cma_version;		/* 0: overwritten by the CM on AF_IB */
	uint8_t ip_version;		/* 0: must not look like an IP header on AF_IB */
	le16 magic;
	le16 version;
	le16 cid;
	le16 cid_num;
	le16 recon_cnt;
	uint8_t sess_uuid[RTRS_UUID_LEN];	/* the path */
	uint8_t paths_uuid[RTRS_UUID_LEN];	/* the session */
	uint8_t flags;
	uint8_t auth;			/* RTRS_AUTH_*; 0: a kernel, or none */
	uint8_t auth_data[RTRS_AUTH_TAG_LEN];	/* magic and version, or the tag */
};

struct rtrs_msg_conn_rsp {		/* private data of accept and reject, 1.5 */
	le16 magic;
	le16 version;
	le16 errno_;			/* reject: negative errno, 16 bit two's complement */
	le16 queue_depth;
	le32 max_io_size;
	le32 max_hdr_size;
	le32 flags;
	uint8_t auth;			/* RTRS_AUTH_*, RTRS_REFUSAL_KIND; 0: a kernel, or none */
	uint8_t reserved;
	le16 refusal;			/* with RTRS_REFUSAL_KIND: enum rtrs_refusal */
	uint8_t auth_data[RTRS_AUTH_PROOF_LEN];	/* magic and version, or the proof */
};

/* A refusal in a reject, or in INFO_RSP: ours, for a client that says in CONN_REQ, or in INFO_REQ,
 * that it reads the reason.  Numbers stay: a client may be older or newer than its server. */
#define RTRS_HEARS_MAGIC "rtrs-why"
#define RTRS_HEARS_LEN 8

enum rtrs_refusal {
	RTRS_REFUSES_NOT = 0,		/* no reason: as from a kernel */
	/* in an INFO_RSP without regions */
	RTRS_REFUSES_NAME = 1,		/* another session of this identity has the name */
	RTRS_REFUSES_NAME_CLOSING = 2,	/* the same, and that session is closing */
	RTRS_REFUSES_IDENTITY = 3,	/* the session belongs to another identity; also in a
					 * reject */
	RTRS_REFUSES_OTHER_NAME = 4,	/* the session has another name */
	RTRS_REFUSES_EXPORT = 5,	/* the session has an export open that this path may not
					 * open, or not for writing */
	/* In a reject.  UNPROVEN is the only reason for a client that has to prove who it is and
	 * has not; the others follow the proof. */
	RTRS_REFUSES_UNPROVEN = 6,	/* the listener demands a proof, and none holds */
	RTRS_REFUSES_OTHER_KEY = 7,	/* another key of the identity made the session or path */
	RTRS_REFUSES_KEY = 8,		/* the key was taken out */
	RTRS_REFUSES_CERTIFICATE = 9,	/* the certificate is not accepted any more */
	RTRS_REFUSES_MIXED = 10,	/* TLS on one connection of the path, none on another */
	RTRS_REFUSES_TWO_NAMES = 11,	/* the key of TLS is of another identity than the proof */
	RTRS_REFUSES_SESSIONS = 12,	/* limits: of sessions, */
	RTRS_REFUSES_PATHS = 13,	/* of paths, */
	RTRS_REFUSES_MEMORY = 14,	/* of memory for requests, */
	RTRS_REFUSES_CONNECTIONS = 15,	/* of connections, */
	RTRS_REFUSES_SETUPS = 16,	/* of paths in set-up, */
	RTRS_REFUSES_OWN_PATHS = 17,	/* of paths of the session */
	RTRS_REFUSES_STOPPING = 18,	/* the server is shutting down */
	RTRS_REFUSES_CLOSING = 19,	/* a former path of the client is still closing */
	RTRS_REFUSES_SUCCEEDED = 20,	/* a later session of the same lineage is there */
	RTRS_NREFUSALS
};

struct rtrs_msg_info_req {		/* 2.4 */
	le16 type;
	uint8_t pathname[RTRS_NAME_MAX];
	uint8_t hears[RTRS_HEARS_LEN];	/* RTRS_HEARS_MAGIC; zero from a kernel */
	uint8_t reserved[7];
};

struct rtrs_sg_desc {
	le64 addr;
	le32 key;
	le32 len;
};

struct rtrs_msg_info_rsp {		/* 2.5 */
	le16 type;
	le16 sg_cnt;
	le16 refusal;			/* with sg_cnt 0: enum rtrs_refusal */
	uint8_t reserved[2];
	struct rtrs_sg_desc desc[];
};

struct rtrs_msg_rkey_rsp {		/* section 4 */
	le16 type;
	le16 buf_id;
	le32 rkey;
};

struct rtrs_msg_rsp {			/* of an answer with a digest: ours */
	struct rtrs_msg_rkey_rsp key;	/* without NEW_RKEY its rkey is 0 */
	le32 digest;
};

struct rtrs_msg_rdma_write {		/* 3.1: at the end of the chunk's used part */
	le16 type;
	le16 usr_len;
};

struct rtrs_msg_rdma_read {
	le16 type;
	le16 usr_len;
	le16 flags;
	le16 sg_cnt;
	struct rtrs_sg_desc desc[];
};

_Static_assert(sizeof(struct rtrs_msg_conn_req) == 56, "doc/protocol.md 1.4");
_Static_assert(offsetof(struct rtrs_msg_conn_req, sess_uuid) == 12, "doc/protocol.md 1.4");
_Static_assert(offsetof(struct rtrs_msg_conn_req, flags) == 44, "doc/protocol.md 1.4");
_Static_assert(sizeof(struct rtrs_msg_conn_rsp) == 56, "doc/protocol.md 1.5");
_Static_assert(offsetof(struct rtrs_msg_conn_rsp, flags) == 16, "doc/protocol.md 1.5");
_Static_assert(offsetof(struct rtrs_msg_conn_req, auth) == 45, "man/rtrs-protocol.pod");
_Static_assert(offsetof(struct rtrs_msg_conn_rsp, auth) == 20, "man/rtrs-protocol.pod");
_Static_assert(offsetof(struct rtrs_msg_conn_rsp, refusal) == 22, "man/rtrs-protocol.pod");
_Static_assert(offsetof(struct rtrs_msg_conn_rsp, auth_data) == 24, "man/rtrs-protocol.pod");
_Static_assert(sizeof(RTRS_AUTH_MAGIC) == RTRS_AUTH_TAG_LEN, "the version stands at the NUL");
_Static_assert(sizeof(struct rtrs_msg_info_req) == 272, "doc/protocol.md 2.4");
_Static_assert(sizeof(RTRS_HEARS_MAGIC) == RTRS_HEARS_LEN + 1, "doc/protocol.md 2.4");
_Static_assert(sizeof(struct rtrs_sg_desc) == 16, "doc/protocol.md 2.5");
_Static_assert(sizeof(struct rtrs_msg_info_rsp) == 8, "doc/protocol.md 2.5");
_Static_assert(sizeof(struct rtrs_msg_rkey_rsp) == 8, "doc/protocol.md 4");
_Static_assert(sizeof(struct rtrs_msg_rsp) == 12, "man/rtrs-protocol.pod");
_Static_assert(sizeof(struct rtrs_msg_rdma_write) == 4, "doc/protocol.md 3.1");
_Static_assert(sizeof(struct rtrs_msg_rdma_read) == 8, "doc/protocol.md 3.1");

#endif
