/* SPDX-License-Identifier: BSD-3-Clause */
/* Request headers.  Input: 32 bits off, 32 bits byte_len, one byte: how many bytes a client changes
 * between the two looks at its chunk, as many times 16 bits place (counted from off) and 8 bits
 * value, then what stands in the chunk from off on. */
#include "fuzz.h"
#include "rtrs-req.h"

#define DATA_MAX 12288u
#define HDR_MAX 4096u

static void decoded(const struct rtrs_geom *g, const struct rtrs_req *req, const uint8_t *copy,
		    uint32_t len, uint32_t off)
{
	uint8_t again[RTRS_HDR_MAX];

	must(req->usr == copy && req->usr_len <= len && req->usr_len <= RTRS_USR_MAX);
	must(req->data_len + req->usr_len == off && req->data_len <= g->max_io_size);
	must(req->dir == RTRS_DIR_READ || (!req->has_desc && !req->need_inval));
	must(req->has_desc == (req->dir == RTRS_DIR_READ && req->data_len));
	must(!req->has_desc || req->desc.len == req->data_len);
	must(!req->need_inval || req->has_desc);

	memcpy(again, req->usr, req->usr_len);
	must(rtrs_req_encode(req, again) == len);
	must(!memcmp(again, copy, req->usr_len + 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	uint32_t off = (uint32_t)fuzz_take(&in, 4), byte_len = (uint32_t)fuzz_take(&in, 4);
	unsigned nedits = (unsigned)fuzz_take(&in, 1) % 4;
	struct fuzz_in edits = in;
	uint32_t start, len, room;
	const char *why = NULL;
	struct rtrs_req req;
	struct rtrs_geom g;
	uint8_t *chunk, *copy;

	for (unsigned i = 0; i < nedits; i++)
		fuzz_take(&in, 3);
	must(!rtrs_geom_init(&g, 64, DATA_MAX, HDR_MAX));
	chunk = calloc(1, g.chunk_size);
	must(chunk);
	room = off < g.chunk_size ? g.chunk_size - off : 0;
	memcpy(chunk + g.chunk_size - room, in.p, MIN(in.left, (size_t)room));

	if (rtrs_req_extent(&g, chunk, off, byte_len, &start, &len, &why)) {
		must(why);
		free(chunk);
		return 0;
	}
	must(start <= off && range_ok(start, len, g.chunk_size) && len <= RTRS_HDR_MAX);
	for (unsigned i = 0; i < nedits; i++) {
		uint32_t at = off + (uint32_t)fuzz_take(&edits, 2) % 32;

		if (at < g.chunk_size)
			chunk[at] = (uint8_t)fuzz_take(&edits, 1);
	}
	copy = malloc(len);
	must(copy);
	memcpy(copy, chunk + start, len);
	if (rtrs_req_decode(&g, copy, start, len, off, byte_len, &req, &why))
		must(why);
	else
		decoded(&g, &req, copy, len, off);
	free(copy);
	free(chunk);
	return 0;
}
