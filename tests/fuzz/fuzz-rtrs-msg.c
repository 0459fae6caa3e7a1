/* SPDX-License-Identifier: BSD-3-Clause */
/* Decoders of a path's set-up messages.  Input: one byte that chooses the decoder, numbers that the
 * decoder is called with, the message.  What is taken survives encode and decode. */
#include "fuzz.h"
#include "rtrs-msg.h"

static void conn_req(const uint8_t *buf, size_t len)
{
	struct rtrs_conn_req req, again;
	struct rtrs_msg_conn_req m;
	const char *why = NULL;

	memset(&req, 0, sizeof(req));
	memset(&again, 0, sizeof(again));
	if (rtrs_conn_req_decode(buf, len, &req, &why)) {
		must(why);
		return;
	}
	must(req.cid < req.cid_num && req.cid_num <= RTRS_MAX_CONS);
	rtrs_conn_req_encode(&m, &req);
	must(!rtrs_conn_req_decode(&m, sizeof(m), &again, &why));
	must(!memcmp(&req, &again, sizeof(req)));
}

static void conn_rsp(const uint8_t *buf, size_t len, bool rejected)
{
	struct rtrs_conn_rsp rsp, again;
	struct rtrs_msg_conn_rsp m;
	const char *why = NULL;

	if (rtrs_conn_rsp_decode(buf, len, rejected, &rsp, &why)) {
		must(why);
		return;
	}
	must(rsp.status <= 0 && (!rejected || rsp.status));
	rtrs_conn_rsp_encode(&m, &rsp);
	must(!rtrs_conn_rsp_decode(&m, sizeof(m), rejected, &again, &why));
	must(rsp.status == again.status && rsp.refusal == again.refusal);
	must(rejected || !rsp.refusal);
	must(rsp.status || (rsp.queue_depth == again.queue_depth &&
			    rsp.max_io_size == again.max_io_size &&
			    rsp.max_hdr_size == again.max_hdr_size &&
			    rsp.new_rkey == again.new_rkey));
}

static void info_req(const uint8_t *buf, size_t len)
{
	char name[RTRS_NAME_MAX], again[RTRS_NAME_MAX];
	struct rtrs_msg_info_req m;
	const char *why = NULL;
	int ret = rtrs_info_req_decode(buf, len, name, &why);

	must(memchr(name, '\0', sizeof(name)));
	if (ret) {
		must(why);
		return;
	}
	must(rtrs_sessname_ok(name));
	rtrs_info_req_encode(&m, name);
	must(!rtrs_info_req_hears(&m));
	if (rtrs_info_req_hears(buf))
		rtrs_info_req_hear(&m);
	must(rtrs_info_req_hears(&m) == rtrs_info_req_hears(buf));
	must(!rtrs_info_req_decode(&m, sizeof(m), again, &why));
	must(!strcmp(name, again));
}

static void info_rsp(const uint8_t *buf, size_t len, const struct rtrs_geom *g)
{
	struct rtrs_rbuf *rbufs = calloc(g->queue_depth, sizeof(*rbufs));
	const char *why = NULL;

	must(rbufs);
	if (rtrs_info_refusal_decode(buf, len))
		must(rtrs_info_rsp_decode(buf, len, g, rbufs, &why));
	if (rtrs_info_rsp_decode(buf, len, g, rbufs, &why))
		must(why);
	else
		for (unsigned i = 0; i < g->queue_depth; i++)
			must(rbufs[i].addr <= UINT64_MAX - g->chunk_size);
	free(rbufs);
}

static void rkey_rsp(const uint8_t *buf, size_t len, const struct rtrs_geom *g, uint32_t msg_id)
{
	const char *why = NULL;
	uint32_t rkey;

	if (rtrs_rkey_rsp_decode(buf, len, g, msg_id, &rkey, &why))
		must(why);
	else
		must(msg_id < g->queue_depth);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_in in = { data, size };
	unsigned which = (unsigned)fuzz_take(&in, 1);
	uint32_t queue_depth = (uint32_t)fuzz_take(&in, 2);
	uint32_t max_io_size = (uint32_t)fuzz_take(&in, 4);
	struct rtrs_geom g;
	uint8_t *buf;

	if (rtrs_geom_init(&g, queue_depth, max_io_size, 4096))
		must(!rtrs_geom_init(&g, 16, 61440, 4096));
	must(g.off_bits < 32 && g.chunk_size - 1 <= g.off_mask);
	buf = fuzz_rest(&in);
	switch (which % 6) {
	case 0:
		conn_req(buf, in.left);
		break;
	case 1:
	case 2:
		conn_rsp(buf, in.left, which % 6 == 2);
		break;
	case 3:
		info_req(buf, in.left);
		break;
	case 4:
		info_rsp(buf, in.left, &g);
		break;
	default:
		rkey_rsp(buf, in.left, &g, queue_depth);
	}
	free(buf);
	return 0;
}
