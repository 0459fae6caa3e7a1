/* SPDX-License-Identifier: BSD-3-Clause */
/* RNBD 2 on the wire, doc/protocol.md 8; names are the kernel's (drivers/block/rnbd/rnbd-proto.h).
 * Each message is the user message of an RTRS request. */
#ifndef RNBD_PROTO_H
#define RNBD_PROTO_H

#include <stddef.h>
#include <stdint.h>

#include "wire-int.h"

#define RNBD_PROTO_VER_MAJOR 2
#define RNBD_NAME_MAX 255		/* of dev_name, with the terminating NUL */
#define RNBD_SECTOR_SIZE 512u
#define RNBD_SECTOR_SHIFT 9

enum rnbd_msg_type {
	RNBD_MSG_SESS_INFO = 0,
	RNBD_MSG_SESS_INFO_RSP = 1,
	RNBD_MSG_OPEN = 2,
	RNBD_MSG_OPEN_RSP = 3,
	RNBD_MSG_IO = 4,
	RNBD_MSG_CLOSE = 5,
	/* ours, with RNBD_EXT_LIST: rnbd-ext.h */
	RNBD_MSG_LIST = 0x8000,
	RNBD_MSG_LIST_RSP = 0x8001,
	RNBD_MSG_EXTENTS = 0x8002,	/* the data of an RNBD_OP_EXTENTS: rnbd-ext.h */
	RNBD_MSG_PROBE = 0x8003,	/* with RNBD_EXT_PROBE */
};

enum rnbd_access_mode {
	RNBD_ACCESS_RO = 0,
	RNBD_ACCESS_RW = 1,
	RNBD_ACCESS_MIGRATION = 2,
};

enum rnbd_io_op {			/* bits 0-7 of rw */
	RNBD_OP_READ = 0,
	RNBD_OP_WRITE = 1,
	RNBD_OP_FLUSH = 2,
	RNBD_OP_DISCARD = 3,
	RNBD_OP_SECURE_ERASE = 4,
	RNBD_OP_WRITE_ZEROES = 5,
	RNBD_OP_EXTENTS = 0x80,		/* ours, with RNBD_EXT_EXTENTS */
};

#define RNBD_OP_MASK 0xFFu
#define RNBD_F_SYNC 0x100u
#define RNBD_F_FUA 0x200u
#define RNBD_F_PREFLUSH 0x400u		/* minor 2.1, not negotiated: accepted at any time */
#define RNBD_F_NOUNMAP 0x800u		/* minor 2.2, not negotiated either */
#define RNBD_F_ALL (RNBD_F_SYNC | RNBD_F_FUA | RNBD_F_PREFLUSH | RNBD_F_NOUNMAP)

#define RNBD_FLUSH_SECTOR UINT64_MAX	/* sector of the kernel's FLUSH (doc/traps.md 17) */

#define RNBD_CACHE_FUA 0x1u		/* cache_policy */
#define RNBD_CACHE_WRITEBACK 0x2u

struct rnbd_msg_hdr {
	le16 type;
	uint8_t padding[2];
};

/* Our extension in the reserved bytes (rnbd-msg.h, doc/decisions.md D10). */
struct rnbd_msg_sess_info {		/* SESS_INFO and SESS_INFO_RSP */
	struct rnbd_msg_hdr hdr;
	uint8_t ver;
	uint8_t reserved[31];
};

/* The client had the device open on another server, which no path leads to any more. */
#define RNBD_OPEN_TAKE_OVER 0x1u

/* The reason for which an OPEN fails: ours, with RNBD_EXT_REASON of both sides.  The answer has
 * RNBD_REFUSAL_BASE and the number in place of an errno.  Numbers stay. */
enum rnbd_refusal {
	RNBD_REFUSES_NOT = 0,		/* an errno alone */
	RNBD_REFUSES_READ_ONLY = 1,	/* the export is read-only for all clients */
	RNBD_REFUSES_READER = 2,	/* the export is read-only for this client */
	RNBD_REFUSES_WRITER = 3,	/* another session has the export open for writing */
	RNBD_REFUSES_CLOSING = 4,	/* a handle that is closing is in the way */
	RNBD_REFUSES_OPENING = 5,	/* the server is opening the storage, or taking its lock */
	RNBD_REFUSES_LOCKED = 6,	/* another server keeps the lock of the storage */
	RNBD_NREFUSALS
};

#define RNBD_REFUSAL_BASE 256		/* above all errnos; an answer has 9 bits */

struct rnbd_msg_open {
	struct rnbd_msg_hdr hdr;
	uint8_t access_mode;
	uint8_t flags;			/* ours, with RNBD_EXT_SHARED; reserved for the kernel */
	uint8_t dev_name[RNBD_NAME_MAX];
	uint8_t reserved[3];
};

struct rnbd_msg_open_rsp {
	struct rnbd_msg_hdr hdr;
	le32 device_id;
	le64 nsectors;
	le32 max_hw_sectors;
	le32 max_write_zeroes_sectors;
	le32 max_discard_sectors;
	le32 discard_granularity;
	le32 discard_alignment;
	le16 physical_block_size;
	le16 logical_block_size;
	le16 max_segments;
	le16 secure_discard;
	uint8_t obsolete_rotational;
	uint8_t cache_policy;
	uint8_t export_id[8];		/* ours, with RNBD_EXT_EXPORT_ID; reserved for the kernel */
	uint8_t reserved[2];
};

struct rnbd_msg_io {
	struct rnbd_msg_hdr hdr;
	le32 device_id;
	le64 sector;
	le32 rw;
	le32 bi_size;
	le16 prio;
	le32 tag;			/* ours, with RNBD_EXT_TAG; padding for the kernel */
	uint8_t padding[2];
};

#define RNBD_VER_PRIO 2u		/* major version from which prio counts */
#define RNBD_MSG_IO_MIN 24u		/* a peer without prio */

struct rnbd_msg_close {
	struct rnbd_msg_hdr hdr;
	le32 device_id;
};

/* Ours: ask for the names of the exports. */
struct rnbd_msg_list {
	struct rnbd_msg_hdr hdr;
	le32 first;			/* number of the first name wanted */
};

struct rnbd_msg_list_rsp {
	struct rnbd_msg_hdr hdr;
	le32 n;				/* the names that follow, each behind a byte with its
					 * length */
	le32 left;			/* number of names behind these */
};

/* Ours: do packets of full size pass?  The data of a WRITE means nothing, the data that answers a
 * READ is zero. */
struct rnbd_msg_probe {
	struct rnbd_msg_hdr hdr;
	uint8_t reserved[4];
};

/* Ours: the parts of a range that hold data.  Followed by n extents. */
struct rnbd_msg_extents {
	struct rnbd_msg_hdr hdr;
	le32 n;
};

struct rnbd_msg_extent {
	le32 nsectors;
	le32 what;			/* RNBD_EXTENT_* */
};

_Static_assert(sizeof(struct rnbd_msg_sess_info) == 36, "doc/protocol.md 8.1");
_Static_assert(sizeof(struct rnbd_msg_open) == 264, "doc/protocol.md 8.2");
_Static_assert(offsetof(struct rnbd_msg_open, dev_name) == 6, "doc/protocol.md 8.2");
_Static_assert(sizeof(struct rnbd_msg_open_rsp) == 56, "doc/protocol.md 8.3");
_Static_assert(offsetof(struct rnbd_msg_open_rsp, cache_policy) == 45, "doc/protocol.md 8.3");
_Static_assert(offsetof(struct rnbd_msg_open_rsp, export_id) == 46, "man/rtrs-protocol.pod");
_Static_assert(sizeof(struct rnbd_msg_io) == 32, "doc/protocol.md 8.4");
_Static_assert(offsetof(struct rnbd_msg_io, prio) == 24, "doc/protocol.md 8.4");
_Static_assert(offsetof(struct rnbd_msg_io, tag) == 26, "man/rtrs-protocol.pod");
_Static_assert(sizeof(struct rnbd_msg_close) == 8, "doc/protocol.md 8.6");
_Static_assert(sizeof(struct rnbd_msg_list) == 8, "man/rtrs-protocol.pod");
_Static_assert(sizeof(struct rnbd_msg_list_rsp) == 12, "man/rtrs-protocol.pod");
_Static_assert(sizeof(struct rnbd_msg_probe) == 8, "man/rtrs-protocol.pod");
_Static_assert(sizeof(struct rnbd_msg_extents) == 8, "man/rtrs-protocol.pod");
_Static_assert(sizeof(struct rnbd_msg_extent) == 8, "man/rtrs-protocol.pod");

#endif
