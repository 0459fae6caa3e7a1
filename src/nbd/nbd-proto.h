/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers and layouts of the NBD protocol, with the names that the document of the NBD project
 * has; extended headers are those of its branch extension-ext-header. */
#ifndef NBD_PROTO_H
#define NBD_PROTO_H

#include "wire-int.h"

#define NBD_MAGIC 0x4e42444d41474943ull		/* "NBDMAGIC" */
#define NBD_OPT_MAGIC 0x49484156454f5054ull	/* "IHAVEOPT" */
#define NBD_REP_MAGIC 0x0003e889045565a9ull
#define NBD_REQUEST_MAGIC 0x25609513u
#define NBD_EXTENDED_REQUEST_MAGIC 0x21e41c71u
#define NBD_SIMPLE_REPLY_MAGIC 0x67446698u
#define NBD_STRUCTURED_REPLY_MAGIC 0x668e33efu
#define NBD_EXTENDED_REPLY_MAGIC 0x6e8a278cu

#define NBD_STRING_MAX 4096u			/* bytes of a name or a query */
#define NBD_EXPORT_NAME_ZEROES 124u		/* behind the reply, without NO_ZEROES */

/* ---- flags ---- */

#define NBD_FLAG_FIXED_NEWSTYLE 0x1u		/* of the server's and the client's greeting */
#define NBD_FLAG_NO_ZEROES 0x2u

#define NBD_FLAG_HAS_FLAGS 0x1u			/* of an export */
#define NBD_FLAG_READ_ONLY 0x2u
#define NBD_FLAG_SEND_FLUSH 0x4u
#define NBD_FLAG_SEND_FUA 0x8u
#define NBD_FLAG_ROTATIONAL 0x10u
#define NBD_FLAG_SEND_TRIM 0x20u
#define NBD_FLAG_SEND_WRITE_ZEROES 0x40u
#define NBD_FLAG_SEND_DF 0x80u
#define NBD_FLAG_CAN_MULTI_CONN 0x100u
#define NBD_FLAG_SEND_CACHE 0x400u
#define NBD_FLAG_SEND_FAST_ZERO 0x800u
#define NBD_FLAG_BLOCK_STATUS_PAYLOAD 0x1000u

#define NBD_CMD_FLAG_FUA 0x1u			/* of a request */
#define NBD_CMD_FLAG_NO_HOLE 0x2u
#define NBD_CMD_FLAG_DF 0x4u
#define NBD_CMD_FLAG_REQ_ONE 0x8u
#define NBD_CMD_FLAG_FAST_ZERO 0x10u
#define NBD_CMD_FLAG_PAYLOAD_LEN 0x20u

#define NBD_REPLY_FLAG_DONE 0x1u		/* of a chunk */

#define NBD_STATE_HOLE 0x1u			/* of base:allocation */
#define NBD_STATE_ZERO 0x2u

/* ---- kinds ---- */

enum nbd_opt {
	NBD_OPT_EXPORT_NAME = 1,
	NBD_OPT_ABORT = 2,
	NBD_OPT_LIST = 3,
	NBD_OPT_STARTTLS = 5,
	NBD_OPT_INFO = 6,
	NBD_OPT_GO = 7,
	NBD_OPT_STRUCTURED_REPLY = 8,
	NBD_OPT_LIST_META_CONTEXT = 9,
	NBD_OPT_SET_META_CONTEXT = 10,
	NBD_OPT_EXTENDED_HEADERS = 11,
};

enum nbd_rep {
	NBD_REP_ACK = 1,
	NBD_REP_SERVER = 2,
	NBD_REP_INFO = 3,
	NBD_REP_META_CONTEXT = 4,
};
#define NBD_REP_ERR 0x80000000u
#define NBD_REP_ERR_UNSUP (NBD_REP_ERR | 1)
#define NBD_REP_ERR_POLICY (NBD_REP_ERR | 2)
#define NBD_REP_ERR_INVALID (NBD_REP_ERR | 3)
#define NBD_REP_ERR_TLS_REQD (NBD_REP_ERR | 5)
#define NBD_REP_ERR_UNKNOWN (NBD_REP_ERR | 6)
#define NBD_REP_ERR_SHUTDOWN (NBD_REP_ERR | 7)
#define NBD_REP_ERR_TOO_BIG (NBD_REP_ERR | 9)
#define NBD_REP_ERR_EXT_HEADER_REQD (NBD_REP_ERR | 10)

enum nbd_info {
	NBD_INFO_EXPORT = 0,
	NBD_INFO_NAME = 1,
	NBD_INFO_DESCRIPTION = 2,
	NBD_INFO_BLOCK_SIZE = 3,
};

enum nbd_cmd {
	NBD_CMD_READ = 0,
	NBD_CMD_WRITE = 1,
	NBD_CMD_DISC = 2,
	NBD_CMD_FLUSH = 3,
	NBD_CMD_TRIM = 4,
	NBD_CMD_CACHE = 5,
	NBD_CMD_WRITE_ZEROES = 6,
	NBD_CMD_BLOCK_STATUS = 7,
};

enum nbd_reply_type {
	NBD_REPLY_TYPE_NONE = 0,
	NBD_REPLY_TYPE_OFFSET_DATA = 1,
	NBD_REPLY_TYPE_BLOCK_STATUS = 5,
	NBD_REPLY_TYPE_BLOCK_STATUS_EXT = 6,
	NBD_REPLY_TYPE_ERROR = 0x8001,
};

enum nbd_error {
	NBD_EPERM = 1,
	NBD_EIO = 5,
	NBD_ENOMEM = 12,
	NBD_EINVAL = 22,
	NBD_ENOSPC = 28,
	NBD_EOVERFLOW = 75,
	NBD_ENOTSUP = 95,
};

/* ---- layouts ---- */

struct nbd_msg_greeting {
	be64 magic, opt_magic;
	be16 flags;
} __attribute__((packed));

struct nbd_msg_option {
	be64 magic;
	be32 option;
	be32 len;
} __attribute__((packed));

struct nbd_msg_option_reply {
	be64 magic;
	be32 option;
	be32 type;
	be32 len;
} __attribute__((packed));

struct nbd_msg_export_name {		/* the answer to NBD_OPT_EXPORT_NAME */
	be64 size;
	be16 flags;
} __attribute__((packed));

struct nbd_msg_info_export {
	be16 type;
	be64 size;
	be16 flags;
} __attribute__((packed));

struct nbd_msg_info_block_size {
	be16 type;
	be32 minimum, preferred, maximum;
} __attribute__((packed));

struct nbd_msg_request {
	be32 magic;
	be16 flags, type;
	be64 cookie;
	be64 offset;
	be32 length;
} __attribute__((packed));

struct nbd_msg_request_ext {
	be32 magic;
	be16 flags, type;
	be64 cookie;
	be64 offset;
	be64 length;
} __attribute__((packed));

struct nbd_msg_simple_reply {
	be32 magic;
	be32 error;
	be64 cookie;
} __attribute__((packed));

struct nbd_msg_chunk {
	be32 magic;
	be16 flags, type;
	be64 cookie;
	be32 length;
} __attribute__((packed));

struct nbd_msg_chunk_ext {
	be32 magic;
	be16 flags, type;
	be64 cookie;
	be64 offset;
	be64 length;
} __attribute__((packed));

struct nbd_msg_error {			/* the payload of an error chunk; a text follows */
	be32 error;
	be16 length;
} __attribute__((packed));

struct nbd_msg_status {			/* extents follow */
	be32 context;
	struct {
		be32 length, flags;
	} extent[];
} __attribute__((packed));

struct nbd_msg_status_ext {
	be32 context;
	be32 count;
	struct {
		be64 length, flags;
	} extent[];
} __attribute__((packed));

struct nbd_msg_status_payload {		/* of a BLOCK_STATUS with NBD_CMD_FLAG_PAYLOAD_LEN */
	be64 length;
	be32 context[];
} __attribute__((packed));

_Static_assert(sizeof(struct nbd_msg_greeting) == 18, "layout");
_Static_assert(sizeof(struct nbd_msg_option) == 16, "layout");
_Static_assert(sizeof(struct nbd_msg_option_reply) == 20, "layout");
_Static_assert(sizeof(struct nbd_msg_info_export) == 12, "layout");
_Static_assert(sizeof(struct nbd_msg_info_block_size) == 14, "layout");
_Static_assert(sizeof(struct nbd_msg_request) == 28, "layout");
_Static_assert(sizeof(struct nbd_msg_request_ext) == 32, "layout");
_Static_assert(sizeof(struct nbd_msg_simple_reply) == 16, "layout");
_Static_assert(sizeof(struct nbd_msg_chunk) == 20, "layout");
_Static_assert(sizeof(struct nbd_msg_chunk_ext) == 32, "layout");

#endif
