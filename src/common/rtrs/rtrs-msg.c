/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up messages of a path, both directions.  Owns nothing; runs on the caller's thread; a decoder
 * fails with a negative errno and the broken rule in words, an encoder cannot fail. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "rtrs-msg.h"
#include "util.h"

static int msg_refuse(int err, const char **why, const char *rule)
{
	*why = rule;
	return err;
}

/* ---- the bytes for authentication ---- */

#define MAGIC_LEN (sizeof(RTRS_AUTH_MAGIC) - 1)	/* the version stands behind */

static void auth_encode(enum rtrs_auth auth, uint8_t version, const uint8_t *proof, uint8_t *kind,
			uint8_t *data, size_t len)
{
	if (auth == RTRS_AUTHS_ASKS) {
		*kind = RTRS_AUTH_ASK;
		memcpy(data, RTRS_AUTH_MAGIC, MAGIC_LEN);
		data[MAGIC_LEN] = version;
	} else if (auth == RTRS_AUTHS_PROVES) {
		*kind = RTRS_AUTH_TAG;
		memcpy(data, proof, len);
	}
}

static enum rtrs_auth auth_decode(uint8_t kind, const uint8_t *data, size_t len, uint8_t *version,
				  uint8_t *proof)
{
	memset(proof, 0, len);
	*version = 0;
	if (kind == RTRS_AUTH_TAG) {
		memcpy(proof, data, len);
		return RTRS_AUTHS_PROVES;
	}
	if (kind == RTRS_AUTH_ASK && !memcmp(data, RTRS_AUTH_MAGIC, MAGIC_LEN)) {
		*version = data[MAGIC_LEN];
		return RTRS_AUTHS_ASKS;
	}
	return RTRS_AUTHS_NOTHING;
}

/* ---- CONN_REQ and CONN_RSP ---- */

void rtrs_conn_req_encode(struct rtrs_msg_conn_req *m, const struct rtrs_conn_req *req)
{
	memset(m, 0, sizeof(*m));
	m->magic = le16_put(RTRS_MAGIC);
	m->version = le16_put(RTRS_PROTO_VER);
	m->cid = le16_put(req->cid);
	m->cid_num = le16_put(req->cid_num);
	m->recon_cnt = le16_put(req->recon_cnt);
	memcpy(m->sess_uuid, req->sess_uuid, RTRS_UUID_LEN);
	memcpy(m->paths_uuid, req->paths_uuid, RTRS_UUID_LEN);
	m->flags = req->flags;
	auth_encode(req->auth, req->auth_version, req->tag, &m->auth, m->auth_data,
		    sizeof(m->auth_data));
}

int rtrs_conn_req_decode(const void *buf, size_t len, struct rtrs_conn_req *req, const char **why)
{
	const struct rtrs_msg_conn_req *m = buf;

	if (len < sizeof(*m))
		return msg_refuse(-ECONNRESET, why, "connection request shorter than 56 bytes");
	if (le16_get(m->magic) != RTRS_MAGIC)
		return msg_refuse(-ECONNRESET, why, "connection request without the RTRS magic");
	if (le16_get(m->version) >> 8 != RTRS_PROTO_VER_MAJOR)
		return msg_refuse(-ECONNRESET, why, "major protocol version is not 2");
	if (le16_get(m->cid_num) > RTRS_MAX_CONS)
		return msg_refuse(-ECONNRESET, why, "more than 4096 connections");
	if (le16_get(m->cid) >= le16_get(m->cid_num))
		return msg_refuse(-ECONNRESET, why, "connection number not below their count");

	req->cid = le16_get(m->cid);
	req->cid_num = le16_get(m->cid_num);
	req->recon_cnt = le16_get(m->recon_cnt);
	memcpy(req->sess_uuid, m->sess_uuid, RTRS_UUID_LEN);
	memcpy(req->paths_uuid, m->paths_uuid, RTRS_UUID_LEN);
	req->flags = m->flags & (RTRS_CONN_REQ_FIRST_CONN | RTRS_CONN_REQ_HEARS |
				 RTRS_CONN_REQ_LINEAGE);
	req->auth = auth_decode(m->auth, m->auth_data, sizeof(m->auth_data), &req->auth_version,
				req->tag);
	return 0;
}

/* ---- lineages ---- */

/* Big-endian: memcmp() compares generations. */
void rtrs_lineage_uuid(uint8_t uuid[RTRS_UUID_LEN], const uint8_t id[RTRS_LINEAGE_LEN],
		       uint32_t generation)
{
	memcpy(uuid, id, RTRS_LINEAGE_LEN);
	for (unsigned i = RTRS_UUID_LEN; i-- > RTRS_LINEAGE_LEN; generation >>= 8)
		uuid[i] = (uint8_t)generation;
}

bool rtrs_lineage_same(const uint8_t a[RTRS_UUID_LEN], const uint8_t b[RTRS_UUID_LEN])
{
	return !memcmp(a, b, RTRS_LINEAGE_LEN);
}

int rtrs_lineage_compare(const uint8_t a[RTRS_UUID_LEN], const uint8_t b[RTRS_UUID_LEN])
{
	return memcmp(a + RTRS_LINEAGE_LEN, b + RTRS_LINEAGE_LEN,
		      RTRS_UUID_LEN - RTRS_LINEAGE_LEN);
}

void rtrs_conn_rsp_encode(struct rtrs_msg_conn_rsp *m, const struct rtrs_conn_rsp *rsp)
{
	assert(rsp->status <= 0 && rsp->status >= INT16_MIN);
	memset(m, 0, sizeof(*m));
	m->magic = le16_put(RTRS_MAGIC);
	m->version = le16_put(RTRS_PROTO_VER);
	m->errno_ = le16_put((uint16_t)rsp->status);
	if (rsp->status && rsp->refusal) {
		m->auth = RTRS_REFUSAL_KIND;
		m->refusal = le16_put((uint16_t)rsp->refusal);
	}
	if (rsp->status)
		return;
	m->queue_depth = le16_put(rsp->queue_depth);
	m->max_io_size = le32_put(rsp->max_io_size);
	m->max_hdr_size = le32_put(rsp->max_hdr_size);
	m->flags = le32_put(rsp->new_rkey ? RTRS_MSG_NEW_RKEY_F : 0);
	auth_encode(rsp->auth, rsp->auth_version, rsp->proof, &m->auth, m->auth_data,
		    sizeof(m->auth_data));
}

int rtrs_conn_rsp_decode(const void *buf, size_t len, bool rejected, struct rtrs_conn_rsp *rsp,
			 const char **why)
{
	const struct rtrs_msg_conn_rsp *m = buf;

	if (len < sizeof(*m))
		return msg_refuse(-ECONNRESET, why, "connection response shorter than 56 bytes");
	if (le16_get(m->magic) != RTRS_MAGIC)
		return msg_refuse(-ECONNRESET, why, "connection response without the RTRS magic");
	if (le16_get(m->version) >> 8 != RTRS_PROTO_VER_MAJOR)
		return msg_refuse(-ECONNRESET, why, "major protocol version is not 2");

	rsp->status = (int16_t)le16_get(m->errno_);
	if (rsp->status > 0)
		rsp->status = -ECONNABORTED;
	else if (rejected && !rsp->status)
		rsp->status = -ECONNRESET;
	rsp->refusal = rejected && m->auth == RTRS_REFUSAL_KIND ? le16_get(m->refusal) :
		       RTRS_REFUSES_NOT;
	rsp->queue_depth = le16_get(m->queue_depth);
	rsp->max_io_size = le32_get(m->max_io_size);
	rsp->max_hdr_size = le32_get(m->max_hdr_size);
	rsp->new_rkey = le32_get(m->flags) & RTRS_MSG_NEW_RKEY_F;
	rsp->auth = auth_decode(m->auth, m->auth_data, sizeof(m->auth_data), &rsp->auth_version,
				rsp->proof);
	return 0;
}

bool rtrs_sessname_ok(const char *name)
{
	return *name && strlen(name) < RTRS_NAME_MAX && !strpbrk(name, "/.");
}

void rtrs_info_req_encode(struct rtrs_msg_info_req *m, const char *name)
{
	size_t len = strlen(name);

	assert(len < sizeof(m->pathname));
	memset(m, 0, sizeof(*m));
	m->type = le16_put(RTRS_MSG_INFO_REQ);
	memcpy(m->pathname, name, len);
}

int rtrs_info_req_decode(const void *buf, size_t len, char name[RTRS_NAME_MAX], const char **why)
{
	const struct rtrs_msg_info_req *m = buf;

	name[0] = '\0';
	if (len < sizeof(*m))
		return msg_refuse(-EINVAL, why, "INFO_REQ shorter than 272 bytes");
	if (le16_get(m->type) != RTRS_MSG_INFO_REQ)
		return msg_refuse(-EINVAL, why, "message type is not INFO_REQ");
	memcpy(name, m->pathname, RTRS_NAME_MAX);
	name[RTRS_NAME_MAX - 1] = '\0';
	if (!*name)
		return msg_refuse(-EINVAL, why, "session name is empty");
	if (!rtrs_sessname_ok(name))
		return msg_refuse(-EINVAL, why, "session name contains '/' or '.'");
	return 0;
}

void rtrs_info_req_hear(struct rtrs_msg_info_req *m)
{
	memcpy(m->hears, RTRS_HEARS_MAGIC, sizeof(m->hears));
}

bool rtrs_info_req_hears(const void *buf)
{
	const struct rtrs_msg_info_req *m = buf;

	return !memcmp(m->hears, RTRS_HEARS_MAGIC, sizeof(m->hears));
}

void rtrs_info_rsp_encode(struct rtrs_msg_info_rsp *m, const struct rtrs_region *regions,
			  unsigned n)
{
	assert(n && n <= RTRS_MAX_QUEUE_DEPTH);
	memset(m, 0, rtrs_info_rsp_len(n));
	m->type = le16_put(RTRS_MSG_INFO_RSP);
	m->sg_cnt = le16_put((uint16_t)n);
	for (unsigned i = 0; i < n; i++) {
		m->desc[i].addr = le64_put(regions[i].addr);
		m->desc[i].key = le32_put(regions[i].key);
		m->desc[i].len = le32_put(regions[i].len);
	}
}

/* Cut a region into chunks, from number *@next on.  Returns NULL or the broken rule. */
static const char *region_cut(const struct rtrs_sg_desc *d, const struct rtrs_geom *g,
			      struct rtrs_rbuf *rbufs, uint32_t *next)
{
	uint64_t addr = le64_get(d->addr);
	uint32_t key = le32_get(d->key);
	uint32_t len = le32_get(d->len);

	if (!len || len % g->chunk_size)
		return "length of a region is no multiple of the chunk size";
	if (addr > UINT64_MAX - len)
		return "region wraps around the address space";
	if (len / g->chunk_size > g->queue_depth - *next)
		return "regions hold more than queue depth chunks";
	for (; len; len -= g->chunk_size, addr += g->chunk_size)
		rbufs[(*next)++] = (struct rtrs_rbuf){ .addr = addr, .rkey = key };
	return NULL;
}

int rtrs_info_rsp_decode(const void *buf, size_t len, const struct rtrs_geom *g,
			 struct rtrs_rbuf *rbufs, const char **why)
{
	const struct rtrs_msg_info_rsp *m = buf;
	uint32_t filled = 0;
	unsigned sg_cnt;

	if (len < sizeof(*m))
		return msg_refuse(-ECONNRESET, why, "INFO_RSP shorter than 8 bytes");
	if (le16_get(m->type) != RTRS_MSG_INFO_RSP)
		return msg_refuse(-ECONNRESET, why, "message type is not INFO_RSP");
	sg_cnt = le16_get(m->sg_cnt);
	if (!sg_cnt || g->queue_depth % sg_cnt)
		return msg_refuse(-ECONNRESET, why,
				  "number of regions does not divide the queue depth");
	if (len < rtrs_info_rsp_len(sg_cnt))
		return msg_refuse(-ECONNRESET, why, "INFO_RSP shorter than its regions");
	if (ceil_log2(g->queue_depth) + ceil_log2(g->chunk_size) > RTRS_IMM_PAYL_BITS)
		return msg_refuse(-ECONNRESET, why,
				  "queue depth and chunk size need more than 28 bits");

	for (unsigned i = 0; i < sg_cnt; i++) {
		const char *rule = region_cut(&m->desc[i], g, rbufs, &filled);

		if (rule)
			return msg_refuse(-ECONNRESET, why, rule);
	}
	if (filled != g->queue_depth)
		return msg_refuse(-ECONNRESET, why, "regions hold fewer than queue depth chunks");
	return 0;
}

void rtrs_info_refusal_encode(struct rtrs_msg_info_rsp *m, enum rtrs_refusal refusal)
{
	memset(m, 0, sizeof(*m));
	m->type = le16_put(RTRS_MSG_INFO_RSP);
	m->refusal = le16_put((uint16_t)refusal);
}

unsigned rtrs_info_refusal_decode(const void *buf, size_t len)
{
	const struct rtrs_msg_info_rsp *m = buf;

	if (len < sizeof(*m) || le16_get(m->type) != RTRS_MSG_INFO_RSP || le16_get(m->sg_cnt))
		return RTRS_REFUSES_NOT;
	return le16_get(m->refusal);
}

void rtrs_rkey_rsp_encode(struct rtrs_msg_rkey_rsp *m, uint16_t buf_id, uint32_t rkey)
{
	m->type = le16_put(RTRS_MSG_RKEY_RSP);
	m->buf_id = le16_put(buf_id);
	m->rkey = le32_put(rkey);
}

int rtrs_rkey_rsp_decode(const void *buf, size_t len, const struct rtrs_geom *g, uint32_t msg_id,
			 uint32_t *rkey, const char **why)
{
	const struct rtrs_msg_rkey_rsp *m = buf;

	if (len < sizeof(*m))
		return msg_refuse(-ECONNRESET, why, "RKEY_RSP shorter than 8 bytes");
	if (le16_get(m->type) != RTRS_MSG_RKEY_RSP)
		return msg_refuse(-ECONNRESET, why, "message type is not RKEY_RSP");
	if (le16_get(m->buf_id) >= g->queue_depth)
		return msg_refuse(-ECONNRESET, why, "RKEY_RSP for a chunk beyond the queue depth");
	if (le16_get(m->buf_id) != msg_id)
		return msg_refuse(-ECONNRESET, why,
				  "RKEY_RSP for another chunk than its immediate");
	*rkey = le32_get(m->rkey);
	return 0;
}
