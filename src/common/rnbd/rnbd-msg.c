/* SPDX-License-Identifier: BSD-3-Clause */
/* RNBD messages, both directions.  Owns nothing; runs on the caller's thread; decoders fail with a
 * negative errno, for the answer of a server. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <zlib.h>

#include "rnbd-ext.h"
#include "rnbd-msg.h"
#include "util.h"

#define EXT_MAGIC "nbdkrtrs"
#define EXT_MAGIC_LEN 8

struct ext_wire {			/* in rnbd_msg_sess_info.reserved */
	uint8_t magic[EXT_MAGIC_LEN];
	le32 features;
	uint8_t boot_id[8];
	le32 instance;
	uint8_t host[3];
	le32 crc;			/* CRC-32 of the fields before */
};

_Static_assert(sizeof(struct ext_wire) == sizeof(((struct rnbd_msg_sess_info *)0)->reserved),
	       "the extension fills the reserved bytes");

const char *const rnbd_access_names[RNBD_ACCESS_MODES] = {
	[RNBD_ACCESS_RO] = "ro", [RNBD_ACCESS_RW] = "rw", [RNBD_ACCESS_MIGRATION] = "migration",
};

const char *const rnbd_ext_names[RNBD_EXT_FEATURES] = {
	"nounmap", "preflush", "tag", "export-id", "list", "extents", "shared", "later", "probe",
	"reason", "digest", "lineage",
};
_Static_assert(!((RNBD_EXT_ALL | RNBD_EXT_SHARED | RNBD_EXT_DIGEST) >> RNBD_EXT_FEATURES),
	       "each feature has a name");

static void hdr_encode(struct rnbd_msg_hdr *hdr, enum rnbd_msg_type type)
{
	hdr->type = le16_put((uint16_t)type);
	memset(hdr->padding, 0, sizeof(hdr->padding));
}

static uint32_t ext_crc(const struct ext_wire *w)
{
	return (uint32_t)crc32(0, (const Bytef *)w, offsetof(struct ext_wire, crc));
}

void rnbd_sess_info_encode(struct rnbd_msg_sess_info *m, enum rnbd_msg_type type,
			   const struct rnbd_sess_info *info)
{
	struct ext_wire *w = (void *)m->reserved;

	memset(m, 0, sizeof(*m));
	hdr_encode(&m->hdr, type);
	m->ver = info->ver;
	if (!info->ext.valid)
		return;
	memcpy(w->magic, EXT_MAGIC, EXT_MAGIC_LEN);
	w->features = le32_put(info->ext.features);
	memcpy(w->boot_id, info->ext.boot_id, sizeof(w->boot_id));
	w->instance = le32_put(info->ext.instance);
	for (unsigned i = 0; i < sizeof(w->host); i++)
		w->host[i] = (uint8_t)(info->ext.host >> 8 * i);
	w->crc = le32_put(ext_crc(w));
}

int rnbd_sess_info_decode(const void *buf, size_t len, struct rnbd_sess_info *info)
{
	const struct rnbd_msg_sess_info *m = buf;
	const struct ext_wire *w;

	if (len < sizeof(*m))
		return -EINVAL;
	w = (const void *)m->reserved;
	*info = (struct rnbd_sess_info){ .ver = m->ver };
	if (memcmp(w->magic, EXT_MAGIC, EXT_MAGIC_LEN) || le32_get(w->crc) != ext_crc(w))
		return 0;
	info->ext.valid = true;
	info->ext.features = le32_get(w->features);
	memcpy(info->ext.boot_id, w->boot_id, sizeof(w->boot_id));
	info->ext.instance = le32_get(w->instance);
	for (unsigned i = 0; i < sizeof(w->host); i++)
		info->ext.host |= (uint32_t)w->host[i] << 8 * i;
	return 0;
}

int rnbd_open_encode(struct rnbd_msg_open *m, const char *name, enum rnbd_access_mode mode)
{
	size_t len = strlen(name);

	if (len >= sizeof(m->dev_name))
		return -ENAMETOOLONG;
	memset(m, 0, sizeof(*m));
	hdr_encode(&m->hdr, RNBD_MSG_OPEN);
	m->access_mode = (uint8_t)mode;
	memcpy(m->dev_name, name, len);
	return 0;
}

int rnbd_open_decode(const void *buf, size_t len, struct rnbd_open *open)
{
	const struct rnbd_msg_open *m = buf;

	if (len < sizeof(*m) || m->access_mode > RNBD_ACCESS_MIGRATION)
		return -EINVAL;
	if (!m->dev_name[0] || !memchr(m->dev_name, '\0', sizeof(m->dev_name)))
		return -EINVAL;
	open->mode = (enum rnbd_access_mode)m->access_mode;
	open->flags = m->flags;
	memcpy(open->name, m->dev_name, sizeof(open->name));
	return 0;
}

void rnbd_open_rsp_encode(struct rnbd_msg_open_rsp *m, const struct rnbd_dev_info *info)
{
	memset(m, 0, sizeof(*m));
	hdr_encode(&m->hdr, RNBD_MSG_OPEN_RSP);
	m->device_id = le32_put(info->device_id);
	m->nsectors = le64_put(info->nsectors);
	m->max_hw_sectors = le32_put(info->max_hw_sectors);
	m->max_write_zeroes_sectors = le32_put(info->max_write_zeroes_sectors);
	m->max_discard_sectors = le32_put(info->max_discard_sectors);
	m->discard_granularity = le32_put(info->discard_granularity);
	m->discard_alignment = le32_put(info->discard_alignment);
	m->physical_block_size = le16_put(info->physical_block_size);
	m->logical_block_size = le16_put(info->logical_block_size);
	m->max_segments = le16_put(info->max_segments);
	m->secure_discard = le16_put(info->secure_discard);
	m->obsolete_rotational = info->rotational;
	m->cache_policy = (info->fua ? RNBD_CACHE_FUA : 0) |
			  (info->writeback ? RNBD_CACHE_WRITEBACK : 0);
	memcpy(m->export_id, info->export_id, sizeof(m->export_id));
}

int rnbd_open_rsp_decode(const void *buf, size_t len, struct rnbd_dev_info *info)
{
	const struct rnbd_msg_open_rsp *m = buf;
	uint16_t block_size;

	if (len < sizeof(*m))
		return -EINVAL;
	block_size = le16_get(m->logical_block_size);
	if (block_size < RNBD_SECTOR_SIZE || !is_pow2(block_size))
		return -EINVAL;
	if (le64_get(m->nsectors) > INT64_MAX >> RNBD_SECTOR_SHIFT)
		return -EINVAL;
	*info = (struct rnbd_dev_info){
		.device_id = le32_get(m->device_id),
		.nsectors = le64_get(m->nsectors),
		.max_hw_sectors = le32_get(m->max_hw_sectors),
		.max_write_zeroes_sectors = le32_get(m->max_write_zeroes_sectors),
		.max_discard_sectors = le32_get(m->max_discard_sectors),
		.discard_granularity = le32_get(m->discard_granularity),
		.discard_alignment = le32_get(m->discard_alignment),
		.physical_block_size = le16_get(m->physical_block_size),
		.logical_block_size = block_size,
		.max_segments = le16_get(m->max_segments),
		.secure_discard = le16_get(m->secure_discard),
		.rotational = m->obsolete_rotational,
		.fua = m->cache_policy & RNBD_CACHE_FUA,
		.writeback = m->cache_policy & RNBD_CACHE_WRITEBACK,
	};
	memcpy(info->export_id, m->export_id, sizeof(info->export_id));
	return 0;
}

const char *rnbd_op_name(enum rnbd_io_op op)
{
	static const char *const names[] = {
		[RNBD_OP_READ] = "read", [RNBD_OP_WRITE] = "write", [RNBD_OP_FLUSH] = "flush",
		[RNBD_OP_DISCARD] = "discard", [RNBD_OP_SECURE_ERASE] = "secure erase",
		[RNBD_OP_WRITE_ZEROES] = "write zeroes",
	};

	return op < ARRAY_SIZE(names) ? names[op] : "extents";
}

void rnbd_io_encode(struct rnbd_msg_io *m, const struct rnbd_io *io)
{
	memset(m, 0, sizeof(*m));
	hdr_encode(&m->hdr, RNBD_MSG_IO);
	m->device_id = le32_put(io->device_id);
	m->sector = le64_put(io->sector);
	m->rw = le32_put(io->op | io->flags);
	m->bi_size = le32_put(io->bi_size);
	m->prio = le16_put(io->prio);
	m->tag = le32_put(io->tag);
}

uint32_t rnbd_io_tag(const void *buf, size_t len)
{
	const struct rnbd_msg_io *m = buf;

	return len >= sizeof(*m) ? le32_get(m->tag) : 0;
}

/* EXTENTS: the request's data is the answer, so @data_len is not bi_size. */
static int extents_check_size(const struct rnbd_io *io, uint32_t data_len)
{
	if (data_len < RNBD_EXTENTS_ROOM_MIN || (io->flags & ~RNBD_F_SYNC))
		return -EINVAL;
	return !io->bi_size || io->bi_size % RNBD_SECTOR_SIZE ? -EINVAL : 0;
}

/* Sizes of @io against the request that carries it: 0 or -EINVAL. */
static int io_check_size(const struct rnbd_io *io, uint32_t data_len)
{
	bool needs_data = io->op == RNBD_OP_READ || io->op == RNBD_OP_WRITE;

	if (data_len ? data_len != io->bi_size : needs_data && io->bi_size)
		return -EINVAL;
	return io->bi_size % RNBD_SECTOR_SIZE ? -EINVAL : 0;
}

int rnbd_io_decode(const void *buf, size_t len, uint32_t data_len, bool is_read,
		   struct rnbd_io *io)
{
	const struct rnbd_msg_io *m = buf;
	uint32_t rw;

	if (len < RNBD_MSG_IO_MIN)
		return -EINVAL;
	rw = le32_get(m->rw);
	*io = (struct rnbd_io){
		.device_id = le32_get(m->device_id),
		.op = (enum rnbd_io_op)(rw & RNBD_OP_MASK),
		.flags = rw & RNBD_F_ALL,
		.prio = len >= sizeof(*m) ? le16_get(m->prio) : 0,
		.tag = rnbd_io_tag(buf, len),
	};
	switch (io->op) {
	case RNBD_OP_FLUSH:
		/* an answer with data would be old bytes of the chunk */
		return data_len ? -EINVAL : 0;
	case RNBD_OP_READ:
	case RNBD_OP_EXTENTS:
		if (!is_read)
			return -EINVAL;
		break;
	case RNBD_OP_WRITE:
	case RNBD_OP_DISCARD:
	case RNBD_OP_WRITE_ZEROES:
		if (is_read)
			return -EINVAL;
		break;
	default:
		return -EOPNOTSUPP;
	}
	io->sector = le64_get(m->sector);
	io->bi_size = le32_get(m->bi_size);
	return io->op == RNBD_OP_EXTENTS ? extents_check_size(io, data_len) :
		io_check_size(io, data_len);
}

void rnbd_close_encode(struct rnbd_msg_close *m, uint32_t device_id)
{
	hdr_encode(&m->hdr, RNBD_MSG_CLOSE);
	m->device_id = le32_put(device_id);
}

void rnbd_probe_encode(struct rnbd_msg_probe *m)
{
	*m = (struct rnbd_msg_probe){ 0 };
	hdr_encode(&m->hdr, RNBD_MSG_PROBE);
}

int rnbd_close_decode(const void *buf, size_t len, uint32_t *device_id)
{
	const struct rnbd_msg_close *m = buf;

	if (len < sizeof(*m))
		return -EINVAL;
	*device_id = le32_get(m->device_id);
	return 0;
}

int rnbd_refusal_errno(enum rnbd_refusal refusal)
{
	static const int errnos[RNBD_NREFUSALS] = {
		[RNBD_REFUSES_READ_ONLY] = -EROFS,
		[RNBD_REFUSES_READER] = -EROFS,
		[RNBD_REFUSES_WRITER] = -EPERM,
		[RNBD_REFUSES_CLOSING] = -EPERM,
		[RNBD_REFUSES_OPENING] = -EIO,
		[RNBD_REFUSES_LOCKED] = -EBUSY,
	};

	return errnos[refusal];
}

int rnbd_refusal_to_wire(enum rnbd_refusal refusal)
{
	return -(RNBD_REFUSAL_BASE + (int)refusal);
}

int rnbd_refusal_from_wire(int status, enum rnbd_refusal *refusal)
{
	int number = -status - RNBD_REFUSAL_BASE;

	*refusal = RNBD_REFUSES_NOT;
	if (number < 0)
		return status;
	if (!number || number >= RNBD_NREFUSALS)
		return -EIO;
	*refusal = (enum rnbd_refusal)number;
	return rnbd_refusal_errno(*refusal);
}

int rnbd_errno_to_wire(int err)
{
	static const int known[] = {
		/* doc/protocol.md 8.5: the kernel's block errors */
		EIO, EOPNOTSUPP, ENOSPC, ETIMEDOUT, ENOLINK, EREMOTEIO, EBADE, ENODATA, EILSEQ,
		EBUSY, EAGAIN, ENODEV, ENOTCONN, ENOMEM, EINVAL, EPERM, EROFS,
		/* 8.2: the errors of an OPEN */
		ENOENT, EACCES, ENOTBLK, EEXIST,
	};

	assert(err <= 0);
	if (!err)
		return 0;
	/* No room, in the words of a quota and of RLIMIT_FSIZE. */
	if (err == -EDQUOT || err == -EFBIG)
		return -ENOSPC;
	for (unsigned i = 0; i < ARRAY_SIZE(known); i++) {
		if (err == -known[i])
			return err;
	}
	return -EIO;
}
