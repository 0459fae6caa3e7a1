/* SPDX-License-Identifier: BSD-3-Clause */
/* Set-up messages: byte vectors of doc/protocol.md appendix A, and every check of every decoder. */
#include <errno.h>
#include <signal.h>

#include "unit.h"

#include "rtrs-msg.h"

static const uint8_t conn_req_vector[] = {
	0x00, 0x00, 0xbd, 0x1b, 0x00, 0x02, 0x00, 0x00, 0x05, 0x00, 0x01, 0x00, 0x10, 0x11,
	0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f,
	0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d,
	0x2e, 0x2f, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};
_Static_assert(sizeof(conn_req_vector) == 56, "as long as the message");

/* One field overwritten; @len bytes are given to the decoder. */
struct edit {
	const char *name;
	size_t len, at, width;
	uint64_t value;
	int ret;
};

static uint8_t *edited(const struct edit *e, const void *valid, size_t valid_len)
{
	uint8_t *buf = malloc(MAX(valid_len, e->len) + 1), *tight;

	cr_assert_not_null(buf);
	memset(buf, 0xa5, MAX(valid_len, e->len));
	memcpy(buf, valid, valid_len);
	for (size_t i = 0; i < e->width; i++)
		buf[e->at + i] = (uint8_t)(e->value >> 8 * i);
	tight = tight_copy(buf, e->len);
	free(buf);
	return tight;
}

static void expect_why(const struct edit *e, const char *why)
{
	cr_assert_eq(!why, !e->ret, "%s: rule \"%s\"", e->name, why ? why : "none");
}

Test(rtrs_msg, conn_req_vector)
{
	struct rtrs_conn_req req = { .cid = 0, .cid_num = 5, .recon_cnt = 1,
				     .flags = RTRS_CONN_REQ_FIRST_CONN };
	struct rtrs_conn_req got;
	struct rtrs_msg_conn_req m;
	const char *why = NULL;

	for (uint8_t i = 0; i < RTRS_UUID_LEN; i++) {
		req.sess_uuid[i] = 0x10 + i;
		req.paths_uuid[i] = 0x20 + i;
	}
	memset(&m, 0xa5, sizeof(m));
	rtrs_conn_req_encode(&m, &req);
	expect_bytes(&m, conn_req_vector, sizeof(m), "CONN_REQ");
	cr_assert_eq(rtrs_conn_req_decode(conn_req_vector, 56, &got, &why), 0);
	cr_assert_eq(got.cid, 0);
	cr_assert_eq(got.cid_num, 5);
	cr_assert_eq(got.recon_cnt, 1);
	cr_assert_eq(got.flags, RTRS_CONN_REQ_FIRST_CONN);
	expect_bytes(got.sess_uuid, req.sess_uuid, RTRS_UUID_LEN, "sess_uuid");
	expect_bytes(got.paths_uuid, req.paths_uuid, RTRS_UUID_LEN, "paths_uuid");
}

Test(rtrs_msg, conn_req_checks)
{
	static const struct edit edits[] = {
		{ "valid", 56, 0, 0, 0, 0 },
		{ "empty", 0, 0, 0, 0, -ECONNRESET },
		{ "one byte short", 55, 0, 0, 0, -ECONNRESET },
		{ "longer (AF_IB)", 92, 0, 0, 0, 0 },
		{ "longest", 196, 0, 0, 0, 0 },
		{ "cma_version overwritten", 56, 0, 2, 0xffff, 0 },
		{ "magic 0", 56, 2, 2, 0, -ECONNRESET },
		{ "magic swapped", 56, 2, 2, 0xbd1b, -ECONNRESET },
		{ "magic + 1", 56, 2, 2, 0x1bbe, -ECONNRESET },
		{ "magic max", 56, 2, 2, 0xffff, -ECONNRESET },
		{ "version 0", 56, 4, 2, 0, -ECONNRESET },
		{ "version 1.255", 56, 4, 2, 0x01ff, -ECONNRESET },
		{ "version 2.255", 56, 4, 2, 0x02ff, 0 },
		{ "version 3.0", 56, 4, 2, 0x0300, -ECONNRESET },
		{ "version max", 56, 4, 2, 0xffff, -ECONNRESET },
		{ "cid last", 56, 6, 2, 4, 0 },
		{ "cid = cid_num", 56, 6, 2, 5, -ECONNRESET },
		{ "cid max", 56, 6, 2, 0xffff, -ECONNRESET },
		{ "cid_num 0", 56, 8, 2, 0, -ECONNRESET },
		{ "cid_num 1", 56, 8, 2, 1, 0 },
		{ "cid_num 4096", 56, 8, 2, 4096, 0 },
		{ "cid_num 4097", 56, 8, 2, 4097, -ECONNRESET },
		{ "cid_num max", 56, 8, 2, 0xffff, -ECONNRESET },
		{ "cid and cid_num max", 56, 6, 4, 0xffffffff, -ECONNRESET },
		{ "recon_cnt max", 56, 10, 2, 0xffff, 0 },
		{ "unknown flags", 56, 44, 1, 0xff, 0 },
		{ "reserved garbage", 56, 45, 8, UINT64_MAX, 0 },
	};

	for_each_case(e, edits) {
		uint8_t *buf = edited(e, conn_req_vector, sizeof(conn_req_vector));
		struct rtrs_conn_req req;
		const char *why = NULL;
		int ret = rtrs_conn_req_decode(buf, e->len, &req, &why);

		cr_assert_eq(ret, e->ret, "%s: %d", e->name, ret);
		expect_why(e, why);
		free(buf);
	}
}

/* Bit 0 is the kernel's.  In two bits that kernels do not look at a client says that it reads the
 * reason of a refusal, and that the uuid of its session is of a lineage. */
Test(rtrs_msg, conn_req_flags)
{
	cr_assert_eq(RTRS_CONN_REQ_FIRST_CONN, 1);
	cr_assert_eq(RTRS_CONN_REQ_HEARS, 2);
	cr_assert_eq(RTRS_CONN_REQ_LINEAGE, 4);
	for (unsigned flags = 0; flags < 256; flags++) {
		struct rtrs_conn_req req;
		struct rtrs_msg_conn_req m;
		const char *why;
		uint8_t buf[56];

		memcpy(buf, conn_req_vector, sizeof(buf));
		buf[44] = (uint8_t)flags;
		cr_assert_eq(rtrs_conn_req_decode(buf, sizeof(buf), &req, &why), 0);
		cr_assert_eq(req.flags, flags & 7, "%#x", flags);
		rtrs_conn_req_encode(&m, &req);
		cr_assert_eq(m.flags, flags & 7, "%#x", flags);
	}
}

Test(rtrs_msg, lineages)
{
	static const uint8_t id[RTRS_LINEAGE_LEN] = { 0xa0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
	static const uint8_t vector[RTRS_UUID_LEN] = { 0xa0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11,
						       0x12, 0x34, 0x56, 0x78 };
	static const uint32_t ordered[] = { 1, 2, 0xff, 0x100, 0xffff, 0x10000, 0x12345678,
					    0x80000000, UINT32_MAX };
	uint8_t a[RTRS_UUID_LEN], b[RTRS_UUID_LEN];

	rtrs_lineage_uuid(a, id, 0x12345678);
	expect_bytes(a, vector, sizeof(a), "uuid");
	for (unsigned i = 1; i < ARRAY_SIZE(ordered); i++) {
		rtrs_lineage_uuid(a, id, ordered[i - 1]);
		rtrs_lineage_uuid(b, id, ordered[i]);
		cr_assert(rtrs_lineage_same(a, b));
		cr_assert_lt(rtrs_lineage_compare(a, b), 0, "%#x", ordered[i]);
		cr_assert_gt(rtrs_lineage_compare(b, a), 0, "%#x", ordered[i]);
		cr_assert_eq(rtrs_lineage_compare(a, a), 0);
	}
	for (unsigned i = 0; i < RTRS_LINEAGE_LEN; i++) {
		memcpy(b, a, sizeof(b));
		b[i] ^= 0x80;
		cr_assert(!rtrs_lineage_same(a, b), "byte %u", i);
	}
}

static const struct rtrs_conn_rsp stock = { .queue_depth = 512, .max_io_size = 126976,
					    .max_hdr_size = 4096, .new_rkey = true };

Test(rtrs_msg, conn_rsp_vectors)
{
	static const uint8_t accept[56] = {
		0xbd, 0x1b, 0x00, 0x02, 0x00, 0x00, 0x00, 0x02, 0x00, 0xf0,
		0x01, 0x00, 0x00, 0x10, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00,
	};
	static const uint8_t reject[56] = { 0xbd, 0x1b, 0x00, 0x02, 0xfa, 0xff };
	struct rtrs_conn_rsp refused = stock;
	struct rtrs_msg_conn_rsp m;

	memset(&m, 0xa5, sizeof(m));
	rtrs_conn_rsp_encode(&m, &stock);
	expect_bytes(&m, accept, sizeof(m), "CONN_RSP");
	memset(&m, 0xa5, sizeof(m));
	refused.status = -ENXIO;
	rtrs_conn_rsp_encode(&m, &refused);
	expect_bytes(&m, reject, sizeof(m), "CONN_RSP reject");
}

/* A reject has its reason in bytes that a kernel sends as zero, and that an older client does not
 * look at: with the kind alone, and in a reject alone. */
Test(rtrs_msg, conn_rsp_refusal)
{
	static const uint8_t reject[56] = { 0xbd, 0x1b, 0x00, 0x02, 0xf3, 0xff, [20] = 0xa3,
					    [22] = 6 };
	struct rtrs_conn_rsp rsp = stock, got;
	struct rtrs_msg_conn_rsp m;
	const char *why;

	rsp.status = -EACCES;
	rsp.refusal = RTRS_REFUSES_UNPROVEN;
	memset(&m, 0xa5, sizeof(m));
	rtrs_conn_rsp_encode(&m, &rsp);
	expect_bytes(&m, reject, sizeof(m), "CONN_RSP reject with a reason");
	cr_assert_eq(rtrs_conn_rsp_decode(&m, sizeof(m), true, &got, &why), 0);
	cr_assert_eq(got.status, -EACCES);
	cr_assert_eq(got.refusal, RTRS_REFUSES_UNPROVEN);
	cr_assert_eq(got.auth, RTRS_AUTHS_NOTHING, "what an older client sees");
	m.refusal = le16_put(65535);	/* of a newer server */
	cr_assert_eq(rtrs_conn_rsp_decode(&m, sizeof(m), true, &got, &why), 0);
	cr_assert_eq(got.refusal, 65535);
	cr_assert_eq(rtrs_conn_rsp_decode(&m, sizeof(m), false, &got, &why), 0);
	cr_assert_eq(got.refusal, RTRS_REFUSES_NOT);
	m.auth = 0;
	cr_assert_eq(rtrs_conn_rsp_decode(&m, sizeof(m), true, &got, &why), 0);
	cr_assert_eq(got.refusal, RTRS_REFUSES_NOT);
	rsp.status = 0;
	rtrs_conn_rsp_encode(&m, &rsp);
	cr_assert_eq(m.auth, 0);
	cr_assert_eq(le16_get(m.refusal), 0);
}

/* Both ends ask with the magic and a version, and prove with other bytes (man/rtrs-protocol.pod):
 * the client's stand at 45; the server's kind stands at 20, and the rest at 24. */
static void check_auth(const uint8_t *m, bool of_server, enum rtrs_auth auth, uint8_t version,
		       const uint8_t *proof)
{
	struct rtrs_conn_req req;
	struct rtrs_conn_rsp rsp;
	const char *why;

	if (of_server) {
		cr_assert_eq(rtrs_conn_rsp_decode(m, 56, false, &rsp, &why), 0);
		cr_assert_eq(rsp.auth, auth);
		cr_assert_eq(rsp.auth_version, version);
		expect_bytes(rsp.proof, proof, sizeof(rsp.proof), "proof");
	} else {
		cr_assert_eq(rtrs_conn_req_decode(m, 56, &req, &why), 0);
		cr_assert_eq(req.auth, auth);
		cr_assert_eq(req.auth_version, version);
		expect_bytes(req.tag, proof, sizeof(req.tag), "tag");
	}
}

Test(rtrs_msg, auth_bytes)
{
	static const uint8_t none[RTRS_AUTH_PROOF_LEN];
	static const uint8_t ask[] = { 'r', 't', 'r', 's', '-', 'a', 'u', 't', 'h', 7 };
	uint8_t proof[RTRS_AUTH_PROOF_LEN], bytes[56];
	struct rtrs_conn_req req = { .cid_num = 1, .recon_cnt = 1, .auth_version = 7 };
	struct rtrs_conn_rsp rsp = stock;
	struct rtrs_msg_conn_req req_msg;
	struct rtrs_msg_conn_rsp rsp_msg;

	for (uint8_t i = 0; i < sizeof(proof); i++)
		proof[i] = 0x41 + i;
	memcpy(req.tag, proof, sizeof(req.tag));
	memcpy(rsp.proof, proof, sizeof(rsp.proof));
	rsp.auth_version = 7;
	for (unsigned of_server = 0; of_server < 2; of_server++) {
		unsigned kind = of_server ? 20 : 45, at = of_server ? 24 : 46;
		size_t len = of_server ? sizeof(rsp.proof) : sizeof(req.tag);

		for (enum rtrs_auth auth = RTRS_AUTHS_NOTHING; auth <= RTRS_AUTHS_PROVES; auth++) {
			static const uint8_t kinds[] = { 0, 0xa1, 0xa2 };
			const uint8_t *want = auth == RTRS_AUTHS_PROVES ? proof : none;

			req.auth = rsp.auth = auth;
			rtrs_conn_req_encode(&req_msg, &req);
			rtrs_conn_rsp_encode(&rsp_msg, &rsp);
			memcpy(bytes, of_server ? (void *)&rsp_msg : &req_msg, sizeof(bytes));
			cr_assert_eq(bytes[kind], kinds[auth]);
			if (auth == RTRS_AUTHS_ASKS)
				expect_bytes(bytes + at, ask, sizeof(ask), "an ask");
			else
				expect_bytes(bytes + at, want, len, "a proof, or nothing");
			check_auth(bytes, of_server, auth, auth == RTRS_AUTHS_ASKS ? 7 : 0, want);
		}
		/* Of another kind, or with another magic, an ask is nothing. */
		memcpy(bytes + at, ask, sizeof(ask));
		for (unsigned other = 0; other < 256; other++) {
			bytes[kind] = (uint8_t)other;
			if (other != 0xa1 && other != 0xa2)
				check_auth(bytes, of_server, RTRS_AUTHS_NOTHING, 0, none);
		}
		bytes[kind] = 0xa1;
		for (unsigned i = 0; i < 9; i++) {
			bytes[at + i] ^= 1;
			check_auth(bytes, of_server, RTRS_AUTHS_NOTHING, 0, none);
			bytes[at + i] ^= 1;
		}
		check_auth(bytes, of_server, RTRS_AUTHS_ASKS, 7, none);
	}
}

Test(rtrs_msg, conn_rsp_round_trip)
{
	struct rtrs_msg_conn_rsp m;
	struct rtrs_conn_rsp got;
	const char *why;

	rtrs_conn_rsp_encode(&m, &stock);
	cr_assert_eq(rtrs_conn_rsp_decode(&m, sizeof(m), false, &got, &why), 0);
	cr_assert_eq(got.status, 0);
	cr_assert_eq(got.queue_depth, 512);
	cr_assert_eq(got.max_io_size, 126976);
	cr_assert_eq(got.max_hdr_size, 4096);
	cr_assert(got.new_rkey);
}

Test(rtrs_msg, conn_rsp_checks)
{
	static const struct edit edits[] = {
		{ "valid", 56, 0, 0, 0, 0 },
		{ "empty", 0, 0, 0, 0, -ECONNRESET },
		{ "one byte short", 55, 0, 0, 0, -ECONNRESET },
		{ "padded by the CM", 196, 0, 0, 0, 0 },
		{ "magic 0", 56, 0, 2, 0, -ECONNRESET },
		{ "magic + 1", 56, 0, 2, 0x1bbe, -ECONNRESET },
		{ "magic max", 56, 0, 2, 0xffff, -ECONNRESET },
		{ "version 0", 56, 2, 2, 0, -ECONNRESET },
		{ "version 1.0", 56, 2, 2, 0x0100, -ECONNRESET },
		{ "version 2.1", 56, 2, 2, 0x0201, 0 },
		{ "version 3.0", 56, 2, 2, 0x0300, -ECONNRESET },
		{ "version max", 56, 2, 2, 0xffff, -ECONNRESET },
		{ "reserved garbage", 56, 20, 8, UINT64_MAX, 0 },
	};
	struct rtrs_msg_conn_rsp valid;

	rtrs_conn_rsp_encode(&valid, &stock);
	for_each_case(e, edits) {
		uint8_t *buf = edited(e, &valid, sizeof(valid));
		struct rtrs_conn_rsp rsp;
		const char *why = NULL;
		int ret = rtrs_conn_rsp_decode(buf, e->len, false, &rsp, &why);

		cr_assert_eq(ret, e->ret, "%s: %d", e->name, ret);
		expect_why(e, why);
		free(buf);
	}
}

Test(rtrs_msg, p02_conn_rsp_status)
{
	static const struct {
		uint16_t wire;
		bool rejected;
		int status;
	} table[] = {
		{ 0, false, 0 }, { 0, true, -ECONNRESET },
		{ 0xff98, true, -104 }, { 0xfffa, true, -6 }, { 0xfff4, true, -12 },
		{ 0xffef, true, -17 }, { 0xffff, false, -1 }, { 0x8000, true, -32768 },
		{ 1, true, -ECONNABORTED }, { 1, false, -ECONNABORTED },
		{ 0x7fff, true, -ECONNABORTED },
	};

	for_each_case(c, table) {
		struct rtrs_msg_conn_rsp m;
		struct rtrs_conn_rsp rsp;
		const char *why;

		rtrs_conn_rsp_encode(&m, &stock);
		m.errno_ = le16_put(c->wire);
		cr_assert_eq(rtrs_conn_rsp_decode(&m, sizeof(m), c->rejected, &rsp, &why), 0);
		cr_assert_eq(rsp.status, c->status, "%#x: %d", c->wire, rsp.status);
	}
}

Test(rtrs_msg, conn_rsp_new_rkey_is_bit_1)
{
	static const struct {
		uint32_t flags;
		bool new_rkey;
	} table[] = { { 0, false }, { 1, false }, { 2, true }, { UINT32_MAX, true },
		      { UINT32_MAX - 2, false } };

	for_each_case(c, table) {
		struct rtrs_msg_conn_rsp m;
		struct rtrs_conn_rsp rsp;
		const char *why;

		rtrs_conn_rsp_encode(&m, &stock);
		m.flags = le32_put(c->flags);
		cr_assert_eq(rtrs_conn_rsp_decode(&m, sizeof(m), false, &rsp, &why), 0);
		cr_assert_eq(rsp.new_rkey, c->new_rkey, "%#x", c->flags);
	}
}

Test(rtrs_msg, sessname)
{
	char name[300];

	cr_assert(rtrs_sessname_ok("a"));
	cr_assert(rtrs_sessname_ok("host:pid-7 with blanks"));
	cr_assert_not(rtrs_sessname_ok(""));
	cr_assert_not(rtrs_sessname_ok("."));
	cr_assert_not(rtrs_sessname_ok("a/b"));
	cr_assert_not(rtrs_sessname_ok("a.b"));
	memset(name, 'x', sizeof(name));
	name[254] = '\0';
	cr_assert(rtrs_sessname_ok(name));
	name[254] = 'x';
	name[255] = '\0';
	cr_assert_not(rtrs_sessname_ok(name));
}

Test(rtrs_msg, info_req)
{
	uint8_t expected[272] = { 0, 0, 's', 'e', 's', 's' };
	char name[RTRS_NAME_MAX], longest[255];
	struct rtrs_msg_info_req m;
	const char *why = NULL;

	memset(&m, 0xa5, sizeof(m));
	rtrs_info_req_encode(&m, "sess");
	expect_bytes(&m, expected, sizeof(m), "INFO_REQ");
	cr_assert_eq(rtrs_info_req_decode(&m, sizeof(m), name, &why), 0);
	cr_assert_str_eq(name, "sess");

	memset(longest, 'n', 254);
	longest[254] = '\0';
	rtrs_info_req_encode(&m, longest);
	cr_assert_eq(rtrs_info_req_decode(&m, sizeof(m), name, &why), 0);
	cr_assert_str_eq(name, longest);
}

Test(rtrs_msg, info_req_checks)
{
	static const struct edit edits[] = {
		{ "valid", 272, 0, 0, 0, 0 },
		{ "empty", 0, 0, 0, 0, -EINVAL },
		{ "one byte short", 271, 0, 0, 0, -EINVAL },
		{ "longer", 300, 0, 0, 0, 0 },
		{ "type 1", 272, 0, 2, 1, -EINVAL },
		{ "type max", 272, 0, 2, 0xffff, -EINVAL },
		{ "name empty", 272, 2, 1, 0, -EINVAL },
		{ "name with /", 272, 3, 1, '/', -EINVAL },
		{ "name with .", 272, 5, 1, '.', -EINVAL },
		{ "/ behind the name", 272, 7, 1, '/', 0 },
		{ "reserved garbage", 272, 257, 8, UINT64_MAX, 0 },
	};
	struct rtrs_msg_info_req valid;

	rtrs_info_req_encode(&valid, "sess");
	for_each_case(e, edits) {
		uint8_t *buf = edited(e, &valid, sizeof(valid));
		char name[RTRS_NAME_MAX];
		const char *why = NULL;
		int ret;

		memset(name, 'x', sizeof(name));
		ret = rtrs_info_req_decode(buf, e->len, name, &why);
		cr_assert_eq(ret, e->ret, "%s: %d", e->name, ret);
		expect_why(e, why);
		cr_assert_not_null(memchr(name, '\0', sizeof(name)), "%s: name has an end",
				   e->name);
		free(buf);
	}
}

/* Our bytes count with the whole magic alone, and a refusal is no session. */
Test(rtrs_msg, refusals)
{
	uint8_t expected[8] = { 1, 0, 0, 0, 5, 0 };
	struct rtrs_rbuf rbufs[4];
	struct rtrs_msg_info_req m;
	struct rtrs_msg_info_rsp rsp;
	char name[RTRS_NAME_MAX];
	struct rtrs_geom g;
	const char *why;

	rtrs_info_req_encode(&m, "sess");
	cr_assert_not(rtrs_info_req_hears(&m));
	rtrs_info_req_hear(&m);
	expect_bytes((uint8_t *)&m + 257, (const uint8_t *)"rtrs-why\0\0\0\0\0\0", 15, "hears");
	cr_assert(rtrs_info_req_hears(&m));
	cr_assert_eq(rtrs_info_req_decode(&m, sizeof(m), name, &why), 0);
	cr_assert_str_eq(name, "sess");
	m.hears[7]++;
	cr_assert_not(rtrs_info_req_hears(&m));

	memset(&rsp, 0xa5, sizeof(rsp));
	rtrs_info_refusal_encode(&rsp, RTRS_REFUSES_EXPORT);
	expect_bytes(&rsp, expected, rtrs_info_rsp_len(0), "refusal");
	cr_assert_eq(rtrs_info_refusal_decode(&rsp, sizeof(rsp)), RTRS_REFUSES_EXPORT);
	cr_assert_eq(rtrs_info_refusal_decode(&rsp, sizeof(rsp) - 1), RTRS_REFUSES_NOT);
	cr_assert_eq(rtrs_geom_init(&g, 4, 131072, 4096), 0);
	cr_assert_eq(rtrs_info_rsp_decode(&rsp, sizeof(rsp), &g, rbufs, &why), -ECONNRESET);
	rsp.sg_cnt = le16_put(1);
	cr_assert_eq(rtrs_info_refusal_decode(&rsp, sizeof(rsp)), RTRS_REFUSES_NOT);
	rsp.sg_cnt = le16_put(0);
	rsp.type = le16_put(RTRS_MSG_INFO_REQ);
	cr_assert_eq(rtrs_info_refusal_decode(&rsp, sizeof(rsp)), RTRS_REFUSES_NOT);
}

Test(rtrs_msg, info_req_without_an_end)
{
	struct rtrs_msg_info_req m;
	char name[RTRS_NAME_MAX];
	const char *why;

	rtrs_info_req_encode(&m, "sess");
	memset(m.pathname, 'x', sizeof(m.pathname));
	memset(m.hears, 'y', sizeof(m.hears));
	cr_assert_eq(rtrs_info_req_decode(&m, sizeof(m), name, &why), 0);
	cr_assert_eq(strlen(name), 254);
	cr_assert_null(strchr(name, 'y'));
}

Test(rtrs_msg, info_rsp_vector)
{
	static const uint8_t vector[] = {
		0x01, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x7f, 0x00, 0x00, 0x34, 0x12, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04,
	};
	const struct rtrs_region region = { 0x7f0000000000, 0x1234, 64 << 20 };
	static struct rtrs_rbuf rbufs[512];
	const char *why = NULL;
	struct rtrs_geom g;
	union {
		struct rtrs_msg_info_rsp m;
		uint8_t bytes[24];
	} u;

	cr_assert_eq(rtrs_info_rsp_len(1), sizeof(vector));
	memset(&u, 0xa5, sizeof(u));
	rtrs_info_rsp_encode(&u.m, &region, 1);
	expect_bytes(u.bytes, vector, sizeof(vector), "INFO_RSP");

	cr_assert_eq(rtrs_geom_init(&g, 512, 126976, 4096), 0);
	cr_assert_eq(rtrs_info_rsp_decode(vector, sizeof(vector), &g, rbufs, &why), 0);
	for (unsigned i = 0; i < 512; i++) {
		cr_assert_eq(rbufs[i].addr, 0x7f0000000000 + i * 131072ull);
		cr_assert_eq(rbufs[i].rkey, 0x1234);
	}
}

#define CHUNK 131072u

/* Queue depth 4, at most 5 regions. */
static const struct info_case {
	const char *name;
	unsigned n;
	struct rtrs_region regions[5];
	int ret;
} info_cases[] = {
	{ "one region", 1, { { 0x1000, 1, 4 * CHUNK } }, 0 },
	{ "two", 2, { { 0x1000, 1, 2 * CHUNK }, { 0x2000, 2, 2 * CHUNK } }, 0 },
	{ "two, unequal", 2, { { 0x1000, 1, 3 * CHUNK }, { 0x2000, 2, CHUNK } }, 0 },
	{ "four", 4, { { 1, 1, CHUNK }, { 2, 2, CHUNK }, { 3, 3, CHUNK }, { 4, 4, CHUNK } }, 0 },
	{ "three do not divide", 3, { { 1, 1, CHUNK }, { 2, 2, CHUNK }, { 3, 3, 2 * CHUNK } },
	  -ECONNRESET },
	{ "five", 5, { { 1, 1, CHUNK }, { 2, 2, CHUNK }, { 3, 3, CHUNK }, { 4, 4, CHUNK },
		       { 5, 5, CHUNK } }, -ECONNRESET },
	{ "length 0", 1, { { 0x1000, 1, 0 } }, -ECONNRESET },
	{ "length 0 of the last", 2, { { 1, 1, 4 * CHUNK }, { 2, 2, 0 } }, -ECONNRESET },
	{ "one byte less", 1, { { 0x1000, 1, 4 * CHUNK - 1 } }, -ECONNRESET },
	{ "one byte more", 1, { { 0x1000, 1, 4 * CHUNK + 1 } }, -ECONNRESET },
	{ "one chunk less", 1, { { 0x1000, 1, 3 * CHUNK } }, -ECONNRESET },
	{ "one chunk more", 1, { { 0x1000, 1, 5 * CHUNK } }, -ECONNRESET },
	{ "one chunk more in the second", 2, { { 1, 1, 2 * CHUNK }, { 2, 2, 3 * CHUNK } },
	  -ECONNRESET },
	{ "largest length", 1, { { 0x1000, 1, UINT32_MAX / CHUNK * CHUNK } }, -ECONNRESET },
	/* 0x8000 - 4 chunks and 8 chunks: their sum is right mod 2^32 */
	{ "sum wraps", 2, { { 1, 1, (0x8000u - 4) * CHUNK }, { 2, 2, 8 * CHUNK } }, -ECONNRESET },
	{ "second length 2^31", 2, { { 1, 1, 2 * CHUNK }, { 2, 2, 1u << 31 } }, -ECONNRESET },
	{ "last address", 1, { { UINT64_MAX - 4 * CHUNK, 1, 4 * CHUNK } }, 0 },
	{ "address wraps", 1, { { UINT64_MAX - 4 * CHUNK + 1, 1, 4 * CHUNK } }, -ECONNRESET },
	{ "address max", 1, { { UINT64_MAX, 1, 4 * CHUNK } }, -ECONNRESET },
};

Test(rtrs_msg, info_rsp_regions)
{
	struct rtrs_geom g;

	cr_assert_eq(rtrs_geom_init(&g, 4, CHUNK - 4096, 4096), 0);
	for_each_case(c, info_cases) {
		size_t len = rtrs_info_rsp_len(c->n);
		struct rtrs_msg_info_rsp *m = malloc(len);
		struct rtrs_rbuf *rbufs = calloc(4, sizeof(*rbufs));
		const char *why = NULL;
		int ret;

		cr_assert(m && rbufs);
		rtrs_info_rsp_encode(m, c->regions, c->n);
		ret = rtrs_info_rsp_decode(m, len, &g, rbufs, &why);
		cr_assert_eq(ret, c->ret, "%s: %d", c->name, ret);
		cr_assert_eq(!why, !ret, "%s", c->name);
		free(m);
		free(rbufs);
	}
}

Test(rtrs_msg, info_rsp_cuts_regions_into_chunks_in_order)
{
	const struct rtrs_region regions[] = { { 0x10000000, 7, 3 * CHUNK }, { 0x1000, 9, CHUNK } };
	static const struct rtrs_rbuf expected[] = { { 0x10000000, 7 }, { 0x10020000, 7 },
						     { 0x10040000, 7 }, { 0x1000, 9 } };
	struct rtrs_rbuf rbufs[4];
	struct rtrs_geom g;
	const char *why;
	union {
		struct rtrs_msg_info_rsp m;
		uint8_t bytes[40];
	} u;

	cr_assert_eq(rtrs_geom_init(&g, 4, CHUNK - 4096, 4096), 0);
	rtrs_info_rsp_encode(&u.m, regions, 2);
	cr_assert_eq(rtrs_info_rsp_decode(&u, 40, &g, rbufs, &why), 0);
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_eq(rbufs[i].addr, expected[i].addr);
		cr_assert_eq(rbufs[i].rkey, expected[i].rkey);
	}
}

Test(rtrs_msg, info_rsp_checks)
{
	static const struct edit edits[] = {
		{ "valid", 40, 0, 0, 0, 0 },
		{ "empty", 0, 0, 0, 0, -ECONNRESET },
		{ "no header", 7, 0, 0, 0, -ECONNRESET },
		{ "header only", 8, 0, 0, 0, -ECONNRESET },
		{ "one byte short", 39, 0, 0, 0, -ECONNRESET },
		{ "longer", 72, 0, 0, 0, 0 },
		{ "type 0", 40, 0, 2, 0, -ECONNRESET },
		{ "type 2", 40, 0, 2, 2, -ECONNRESET },
		{ "type max", 40, 0, 2, 0xffff, -ECONNRESET },
		{ "sg_cnt 0", 40, 2, 2, 0, -ECONNRESET },
		{ "sg_cnt 1 of 2", 40, 2, 2, 1, -ECONNRESET },
		{ "sg_cnt 4 of 2", 40, 2, 2, 4, -ECONNRESET },
		{ "sg_cnt 4 in longer", 72, 2, 2, 4, -ECONNRESET },
		{ "sg_cnt max", 40, 2, 2, 0xffff, -ECONNRESET },
		{ "reserved garbage", 40, 4, 4, 0xffffffff, 0 },
	};
	const struct rtrs_region regions[] = { { 0x1000, 7, 2 * CHUNK },
					       { 0x90000, 9, 2 * CHUNK } };
	struct rtrs_geom g;
	union {
		struct rtrs_msg_info_rsp m;
		uint8_t bytes[40];
	} valid;

	cr_assert_eq(rtrs_geom_init(&g, 4, CHUNK - 4096, 4096), 0);
	rtrs_info_rsp_encode(&valid.m, regions, 2);
	for_each_case(e, edits) {
		uint8_t *buf = edited(e, &valid, sizeof(valid));
		struct rtrs_rbuf *rbufs = calloc(4, sizeof(*rbufs));
		const char *why = NULL;
		int ret;

		cr_assert_not_null(rbufs);
		ret = rtrs_info_rsp_decode(buf, e->len, &g, rbufs, &why);
		cr_assert_eq(ret, e->ret, "%s: %d", e->name, ret);
		expect_why(e, why);
		free(rbufs);
		free(buf);
	}
}

Test(rtrs_msg, p03_info_rsp_bits_are_counted_with_the_queue_depth)
{
	/* one region would pass a check that counts regions (doc/traps.md 3) */
	struct rtrs_geom g = { .queue_depth = 512, .chunk_size = 1 << 20, .max_io_size = 1 << 19,
			       .max_hdr_size = 1 << 19 };
	const struct rtrs_region region = { 0x1000, 7, 512u << 20 };
	static struct rtrs_rbuf rbufs[512];
	const char *why = NULL;
	union {
		struct rtrs_msg_info_rsp m;
		uint8_t bytes[24];
	} u;

	rtrs_info_rsp_encode(&u.m, &region, 1);
	cr_assert_eq(rtrs_info_rsp_decode(&u, 24, &g, rbufs, &why), -ECONNRESET);
	cr_assert_str_eq(why, "queue depth and chunk size need more than 28 bits");
}

Test(rtrs_msg, rkey_rsp_vector)
{
	struct rtrs_msg_rkey_rsp m;
	const char *why = NULL;
	struct rtrs_geom g;
	uint32_t rkey = 0;

	memset(&m, 0xa5, sizeof(m));
	rtrs_rkey_rsp_encode(&m, 5, 0x1235);
	expect_bytes(&m, "\x04\x00\x05\x00\x35\x12\x00\x00", 8, "RKEY_RSP");
	cr_assert_eq(rtrs_geom_init(&g, 512, 126976, 4096), 0);
	cr_assert_eq(rtrs_rkey_rsp_decode(&m, sizeof(m), &g, 5, &rkey, &why), 0);
	cr_assert_eq(rkey, 0x1235);
}

Test(rtrs_msg, rkey_rsp_checks)
{
	static const struct {
		const char *name;
		size_t len;
		uint16_t type, buf_id;
		uint32_t msg_id;
		int ret;
	} table[] = {
		{ "valid", 8, 4, 511, 511, 0 },
		{ "longer", 9, 4, 5, 5, 0 },
		{ "empty", 0, 4, 5, 5, -ECONNRESET },
		{ "one byte short", 7, 4, 5, 5, -ECONNRESET },
		{ "type 0", 8, 0, 5, 5, -ECONNRESET },
		{ "type 5", 8, 5, 5, 5, -ECONNRESET },
		{ "type max", 8, 0xffff, 5, 5, -ECONNRESET },
		{ "buf_id = queue depth", 8, 4, 512, 512, -ECONNRESET },
		{ "buf_id max", 8, 4, 0xffff, 0xffff, -ECONNRESET },
		{ "another message", 8, 4, 5, 6, -ECONNRESET },
		{ "message past 16 bits", 8, 4, 5, 0x10005, -ECONNRESET },
	};
	struct rtrs_geom g;

	cr_assert_eq(rtrs_geom_init(&g, 512, 126976, 4096), 0);
	for_each_case(c, table) {
		uint8_t bytes[16] = { 0 };
		const char *why = NULL;
		uint32_t rkey = 1;
		uint8_t *buf;
		int ret;

		rtrs_rkey_rsp_encode((void *)bytes, c->buf_id, 0x77);
		bytes[0] = (uint8_t)c->type;
		bytes[1] = (uint8_t)(c->type >> 8);
		buf = tight_copy(bytes, c->len);
		ret = rtrs_rkey_rsp_decode(buf, c->len, &g, c->msg_id, &rkey, &why);
		cr_assert_eq(ret, c->ret, "%s: %d", c->name, ret);
		cr_assert_eq(rkey, ret ? 1 : 0x77, "%s", c->name);
		cr_assert_eq(!why, !ret, "%s", c->name);
		free(buf);
	}
}

Test(rtrs_msg, p02_an_answer_with_a_positive_errno_is_a_bug, .signal = SIGABRT)
{
	struct rtrs_conn_rsp rsp = { .status = EIO };
	struct rtrs_msg_conn_rsp m;

	rtrs_conn_rsp_encode(&m, &rsp);
}
