/* SPDX-License-Identifier: BSD-3-Clause */
/* Encode and decode RNBD messages.  Pure.
 *
 * Encoders fill the whole message with reserved bytes zeroed.  Decoders take bytes and length, copy
 * and check the fields.  Reserved bytes are garbage from a kernel peer.  The extension of SESS_INFO
 * guards itself with a magic and a CRC.  Our other reserved bytes (export_id, tag) count only from
 * a peer whose extension has the feature. */
#ifndef RNBD_MSG_H
#define RNBD_MSG_H

#include <errno.h>
#include <stdbool.h>

#include "rnbd-proto.h"

/* Type of a user message; -EINVAL when shorter than a header. */
static inline int rnbd_msg_type(const void *buf, size_t len)
{
	const struct rnbd_msg_hdr *hdr = buf;

	return len < sizeof(*hdr) ? -EINVAL : le16_get(hdr->type);
}

/* ---- the extension, doc/decisions.md D10 and D13 ----
 * The extension lies in the 31 reserved bytes of SESS_INFO (abilities of the client) and of
 * SESS_INFO_RSP (of the server).  A server answers an extension with an extension, and
 * never sends one unasked.  The kernel sends none: without magic and CRC-32 of the whole field
 * valid is false and all else is zero. */
#define RNBD_EXT_NOUNMAP 0x01u		/* honours RNBD_F_NOUNMAP */
#define RNBD_EXT_PREFLUSH 0x02u		/* honours RNBD_F_PREFLUSH */
#define RNBD_EXT_TAG 0x04u		/* client: IOs may have tags; server: reads tags */
#define RNBD_EXT_EXPORT_ID 0x08u	/* server: OPEN_RSP has an export_id */
#define RNBD_EXT_LIST 0x10u		/* server: names its exports; client: may ask */
#define RNBD_EXT_EXTENTS 0x20u		/* server: answers RNBD_OP_EXTENTS; client: may ask */
#define RNBD_EXT_SHARED 0x40u		/* server: other servers may have its exports, too; client:
					 * OPEN has flags */
#define RNBD_EXT_LATER 0x80u		/* server: EAGAIN answers the OPEN of an export without
					 * storage, or RNBD_REFUSES_OPENING while it opens the
					 * storage; client: sends the OPEN again */
#define RNBD_EXT_PROBE 0x100u		/* server: answers PROBE; client: sends it before a path is
					 * up */
#define RNBD_EXT_REASON 0x200u		/* server: an OPEN that fails has its reason; client: knows
					 * reasons (enum rnbd_refusal) */
#define RNBD_EXT_DIGEST 0x400u		/* client: wants digests (rtrs-req.h); server: they
					 * begin behind this answer, on this path */
#define RNBD_EXT_LINEAGE 0x800u		/* server: ends the earlier sessions of a lineage first
					 * (rtrs-msg.h) */
#define RNBD_EXT_ALL                                                                    \
	(RNBD_EXT_NOUNMAP | RNBD_EXT_PREFLUSH | RNBD_EXT_TAG | RNBD_EXT_EXPORT_ID |     \
	 RNBD_EXT_LIST | RNBD_EXT_EXTENTS | RNBD_EXT_LATER | RNBD_EXT_PROBE |         \
	 RNBD_EXT_REASON | RNBD_EXT_LINEAGE)

/* The names of these features for users, "nounmap", "preflush", ..., by the number of the bit. */
#define RNBD_EXT_FEATURES 12u
extern const char *const rnbd_ext_names[RNBD_EXT_FEATURES];

struct rnbd_ext {
	bool valid;
	uint32_t features;
	uint8_t boot_id[8];		/* server: changes when unflushed writes may have been
					 * lost, with its host's memory or in a failed sync: made
					 * of the host's boot id and a count of failures */
	uint32_t instance;		/* server: of its process, never 0; 0: not sent */
	uint32_t host;			/* server: 24 bits that identify its host over reboots;
					 * 0: not sent */
};

struct rnbd_sess_info {
	uint8_t ver;
	struct rnbd_ext ext;
};

/* Encode @type: RNBD_MSG_SESS_INFO or _RSP.  @info->ext is written only when valid. */
void rnbd_sess_info_encode(struct rnbd_msg_sess_info *m, enum rnbd_msg_type type,
			   const struct rnbd_sess_info *info);
/* Decode SESS_INFO or SESS_INFO_RSP.  -EINVAL: short.  The type of a reply is not checked: kernel
 * clients do not either. */
int rnbd_sess_info_decode(const void *buf, size_t len, struct rnbd_sess_info *info);

struct rnbd_open {
	enum rnbd_access_mode mode;
	uint8_t flags;			/* RNBD_OPEN_*, if the client has RNBD_EXT_SHARED */
	char name[RNBD_NAME_MAX];
};

/* The names of the access modes for users, "ro", "rw", ..., by enum rnbd_access_mode. */
#define RNBD_ACCESS_MODES (RNBD_ACCESS_MIGRATION + 1)
extern const char *const rnbd_access_names[RNBD_ACCESS_MODES];

/* Encode OPEN of the device @name, without flags.  Returns 0 or -ENAMETOOLONG. */
int rnbd_open_encode(struct rnbd_msg_open *m, const char *name, enum rnbd_access_mode mode);
/* Decode OPEN.  -EINVAL: short, unknown mode, or an empty or unterminated name. */
int rnbd_open_decode(const void *buf, size_t len, struct rnbd_open *open);

/* Geometry of an opened device: the host form of rnbd_msg_open_rsp, sizes in bytes where the name
 * does not say sectors. */
struct rnbd_dev_info {
	uint32_t device_id;
	uint64_t nsectors;
	uint32_t max_hw_sectors;
	uint32_t max_write_zeroes_sectors;
	uint32_t max_discard_sectors;
	uint32_t discard_granularity;
	uint32_t discard_alignment;
	uint16_t physical_block_size;
	uint16_t logical_block_size;
	uint16_t max_segments;
	uint16_t secure_discard;	/* always 0 from us (doc/traps.md 21) */
	bool rotational;
	bool fua, writeback;		/* cache_policy */
	uint8_t export_id[8];		/* identity of the file and its host (RNBD_EXT_EXPORT_ID
					 * | RNBD_EXT_LIST) */
};

/* Encode OPEN_RSP. */
void rnbd_open_rsp_encode(struct rnbd_msg_open_rsp *m, const struct rnbd_dev_info *info);
/* Decode OPEN_RSP.  -EINVAL: short, a capacity whose bytes do not fit 63 bits, or a logical block
 * size that is below 512 or no power of two (doc/traps.md 35). */
int rnbd_open_rsp_decode(const void *buf, size_t len, struct rnbd_dev_info *info);

struct rnbd_io {
	uint32_t device_id;
	enum rnbd_io_op op;
	uint32_t flags;			/* RNBD_F_* */
	uint64_t sector;
	uint32_t bi_size;		/* bytes covered by the IO or the question */
	uint16_t prio;
	uint32_t tag;			/* RNBD_EXT_TAG; 0: none */
};

/* The name of @op for users: "read", ... */
const char *rnbd_op_name(enum rnbd_io_op op);
/* Encode IO. */
void rnbd_io_encode(struct rnbd_msg_io *m, const struct rnbd_io *io);
/* Decode IO, and check all that needs no device.  @data_len and @is_read are of the RTRS request.
 *  -EINVAL	short (less than RNBD_MSG_IO_MIN); data_len not 0 and not bi_size (doc/traps.md 18);
 *		bi_size no multiple of a sector; READ or WRITE with data_len 0 and bi_size not 0;
 *		op in the wrong direction (FLUSH may come in either); FLUSH with data;
 *		EXTENTS of nothing, with flags, or without room for one extent
 *  -EOPNOTSUPP	SECURE_ERASE, unknown op
 * Unknown flags are left out, as in the kernel's server: later versions of the protocol do not
 * negotiate flags.  FLUSH: sector and bi_size are ignored (doc/traps.md 17), and 0 in @io. */
int rnbd_io_decode(const void *buf, size_t len, uint32_t data_len, bool is_read,
		   struct rnbd_io *io);

/* The tag of an IO message, which need not be valid; 0 if the message is too short for a tag. */
uint32_t rnbd_io_tag(const void *buf, size_t len);

/* Encode CLOSE of the device @device_id. */
void rnbd_close_encode(struct rnbd_msg_close *m, uint32_t device_id);
/* Decode CLOSE.  -EINVAL: short. */
int rnbd_close_decode(const void *buf, size_t len, uint32_t *device_id);

/* Encode PROBE. */
void rnbd_probe_encode(struct rnbd_msg_probe *m);

/* The errno that a server may put on the wire for @err (0 or negative): an errno of the lists in
 * doc/protocol.md 8.2 and 8.5; -EDQUOT and -EFBIG become -ENOSPC, others -EIO. */
int rnbd_errno_to_wire(int err);

/* The status of an OPEN that fails because of @refusal, for a client with RNBD_EXT_REASON. */
int rnbd_refusal_to_wire(enum rnbd_refusal refusal);
/* The errno that a client without RNBD_EXT_REASON gets for @refusal. */
int rnbd_refusal_errno(enum rnbd_refusal refusal);
/* Take the status of an OPEN, 0 or negative: *@refusal is the reason, RNBD_REFUSES_NOT if there is
 * none or one of a newer server.  Returns the errno; -EIO for an unknown reason. */
int rnbd_refusal_from_wire(int status, enum rnbd_refusal *refusal);

#endif
