/* SPDX-License-Identifier: BSD-3-Clause */
/* NBD's handshake: what each option is answered, and which ones end the connection. */
#include <errno.h>
#include <string.h>

#include "nbd-opt.h"
#include "unit.h"

static struct nbd_negotiation h;
static struct nbd_buf out;

/* Drop the first @len bytes of @out. */
static void take(size_t len)
{
	out.len -= len;
	memmove(out.mem, out.mem + len, out.len);
}

static void begin(void)
{
	static const uint8_t flags[4] = { 0, 0, 0, 3 };

	out = (struct nbd_buf){ 0 };
	nbd_negotiate_begin(&h, NBD_TLS_OFF, &out);
	cr_assert_eq(out.len, 18);
	cr_assert_eq(memcmp(out.mem, "NBDMAGICIHAVEOPT\0\3", 18), 0);
	take(out.len);
	cr_assert_eq(nbd_negotiate_step(&h, flags, 4, &out), 4);
}

static void end(void)
{
	nbd_buf_fini(&out);
}

TestSuite(nbd_opt, .init = begin, .fini = end);

/* Give it @option with @len bytes of @data, whole.  Returns what the step does. */
static ssize_t give(uint32_t option, const void *data, uint32_t len)
{
	struct nbd_msg_option m = { be64_put(NBD_OPT_MAGIC), be32_put(option), be32_put(len) };
	uint8_t *buf = malloc(sizeof(m) + len);
	ssize_t n;

	cr_assert_not_null(buf);
	memcpy(buf, &m, sizeof(m));
	if (len)
		memcpy(buf + sizeof(m), data, len);
	/* All but the last byte is not enough. */
	cr_assert_eq(nbd_negotiate_step(&h, buf, sizeof(m) + len - 1, &out), 0);
	n = nbd_negotiate_step(&h, buf, sizeof(m) + len, &out);
	free(buf);
	return n;
}

/* Give the header alone of an option with @len bytes of data. */
static ssize_t give_header(uint32_t option, uint32_t len)
{
	struct nbd_msg_option m = { be64_put(NBD_OPT_MAGIC), be32_put(option), be32_put(len) };

	return nbd_negotiate_step(&h, (const void *)&m, sizeof(m), &out);
}

/* @len bytes of data come, are dropped, and an option may follow. */
static void expect_skipped(uint32_t len)
{
	static const uint8_t data[4096];

	for (uint32_t n; len; len -= n) {
		n = MIN(len, (uint32_t)sizeof(data));
		cr_assert_eq(h.state, NBD_NEGOTIATE_SKIPS);
		cr_assert_eq(nbd_negotiate_step(&h, data, n, &out), n);
	}
	cr_assert_eq(h.state, NBD_NEGOTIATE_OPTION);
	cr_assert_eq(out.len, 0);
}

/* Take a reply of @type to @option off the output.  Returns the bytes of its data. */
static uint32_t expect(uint32_t option, uint32_t type)
{
	struct nbd_msg_option_reply m;
	uint32_t len;

	cr_assert_geq(out.len, sizeof(m), "no reply");
	memcpy(&m, out.mem, sizeof(m));
	cr_assert_eq(be64_get(m.magic), NBD_REP_MAGIC);
	cr_assert_eq(be32_get(m.option), option);
	cr_assert_eq(be32_get(m.type), type, "type %x, not %x", be32_get(m.type), type);
	len = be32_get(m.len);
	cr_assert_geq(out.len, sizeof(m) + len);
	take(sizeof(m) + len);
	return len;
}

static void expect_no_more(void)
{
	cr_assert_eq(out.len, 0, "%zu bytes more", out.len);
}

static const uint8_t go_disk[] = "\0\0\0\4disk\0\1\0\3";
#define GO_LEN 12u

static struct nbd_export export_of(void)
{
	return (struct nbd_export){ .size = 4096, .block_min = 1, .block_preferred = 4096,
				    .name = "disk", .description = "text" };
}

Test(nbd_opt, go)
{
	struct nbd_export export = export_of();

	cr_assert_eq(give(NBD_OPT_GO, go_disk, GO_LEN), 16 + GO_LEN);
	cr_assert_eq(h.state, NBD_NEGOTIATE_OPENS);
	cr_assert_str_eq(h.name, "disk");
	cr_assert_eq(nbd_negotiate_opened(&h, 0, NULL, &export, &out), 0);
	cr_assert_eq(h.state, NBD_NEGOTIATE_SERVES);
	cr_assert_eq(export.flags, NBD_FLAG_HAS_FLAGS);
	cr_assert_eq(expect(NBD_OPT_GO, NBD_REP_INFO), 12);
	cr_assert_eq(expect(NBD_OPT_GO, NBD_REP_INFO), 6);
	cr_assert_eq(expect(NBD_OPT_GO, NBD_REP_INFO), 6);
	cr_assert_eq(expect(NBD_OPT_GO, NBD_REP_INFO), 14);
	cr_assert_eq(expect(NBD_OPT_GO, NBD_REP_ACK), 0);
	expect_no_more();
}

Test(nbd_opt, go_fails)
{
	static const struct {
		int status;
		uint32_t rep;
	} cases[] = {
		{ -ENOENT, NBD_REP_ERR_UNKNOWN }, { -EPERM, NBD_REP_ERR_POLICY },
		{ -ESHUTDOWN, NBD_REP_ERR_SHUTDOWN }, { -EIO, NBD_REP_ERR_UNKNOWN },
	};

	for_each_case(c, cases) {
		give(NBD_OPT_GO, go_disk, GO_LEN);
		cr_assert_eq(nbd_negotiate_opened(&h, c->status, "why", NULL, &out), 0);
		cr_assert_eq(h.state, NBD_NEGOTIATE_OPTION);
		cr_assert_eq(expect(NBD_OPT_GO, c->rep), 3);
	}
}

Test(nbd_opt, info_does_not_serve)
{
	struct nbd_export export = export_of();

	give(NBD_OPT_INFO, go_disk, GO_LEN);
	cr_assert_eq(h.state, NBD_NEGOTIATE_LOOKS);
	nbd_negotiate_opened(&h, 0, NULL, &export, &out);
	cr_assert_eq(h.state, NBD_NEGOTIATE_OPTION);
}

/* A name that the client has abbreviated comes back as the server has it. */
Test(nbd_opt, name_of_the_default)
{
	struct nbd_export export = export_of();

	give(NBD_OPT_GO, "\0\0\0\0\0\0", 6);
	nbd_negotiate_opened(&h, 0, NULL, &export, &out);
	expect(NBD_OPT_GO, NBD_REP_INFO);
	cr_assert_eq(memcmp((char *)out.mem + 20, "\0\1disk", 6), 0);
	cr_assert_eq(expect(NBD_OPT_GO, NBD_REP_INFO), 6);
}

Test(nbd_opt, go_with_wrong_data)
{
	static const struct {
		const char *data;
		uint32_t len;
	} cases[] = {
		{ "\0\0\0", 3 }, { "\0\0\0\4dis", 7 }, { "\0\0\0\4disk\0\2\0\3", 12 },
		{ "\0\0\0\4disk\0\0\0", 11 }, { "\377\377\377\377disk\0\0", 10 },
		{ "\0\0\0\4di\0k\0\0", 10 },
	};

	for_each_case(c, cases) {
		cr_assert_gt(give(NBD_OPT_GO, c->data, c->len), 0);
		cr_assert_eq(h.state, NBD_NEGOTIATE_OPTION);
		expect(NBD_OPT_GO, NBD_REP_ERR_INVALID);
	}
}

Test(nbd_opt, longest_name)
{
	static uint8_t data[4 + NBD_STRING_MAX + 1 + 2];
	be32 len = be32_put(NBD_STRING_MAX);

	memset(data, 'x', sizeof(data));
	memcpy(data, &len, 4);
	memset(data + 4 + NBD_STRING_MAX, 0, 2);	/* no information */
	give(NBD_OPT_GO, data, 4 + NBD_STRING_MAX + 2);
	cr_assert_eq(h.state, NBD_NEGOTIATE_OPENS);
	h.state = NBD_NEGOTIATE_OPTION;
	len = be32_put(NBD_STRING_MAX + 1);
	memcpy(data, &len, 4);
	data[4 + NBD_STRING_MAX] = 'x';
	data[4 + NBD_STRING_MAX + 1] = data[4 + NBD_STRING_MAX + 2] = 0;
	give(NBD_OPT_GO, data, sizeof(data));
	expect(NBD_OPT_GO, NBD_REP_ERR_INVALID);
}

Test(nbd_opt, export_name)
{
	struct nbd_export export = export_of();

	give(NBD_OPT_EXPORT_NAME, "disk", 4);
	cr_assert_eq(h.state, NBD_NEGOTIATE_OPENS);
	nbd_negotiate_opened(&h, 0, NULL, &export, &out);
	cr_assert_eq(out.len, 10, "NO_ZEROES");
	take(out.len);
	h.flags = NBD_FLAG_FIXED_NEWSTYLE;
	h.state = NBD_NEGOTIATE_OPENS;
	nbd_negotiate_opened(&h, 0, NULL, &export, &out);
	cr_assert_eq(out.len, 134);
	h.state = NBD_NEGOTIATE_OPENS;
	cr_assert_eq(nbd_negotiate_opened(&h, -ENOENT, "why", NULL, &out), -EPROTO);
	cr_assert_str_eq(h.why, "why");
}

Test(nbd_opt, headers)
{
	struct nbd_export export = export_of();

	give(NBD_OPT_STRUCTURED_REPLY, "x", 1);
	expect(NBD_OPT_STRUCTURED_REPLY, NBD_REP_ERR_INVALID);
	give(NBD_OPT_STRUCTURED_REPLY, NULL, 0);
	expect(NBD_OPT_STRUCTURED_REPLY, NBD_REP_ACK);
	cr_assert_eq(h.headers, NBD_HEADERS_STRUCTURED);
	give(NBD_OPT_EXTENDED_HEADERS, NULL, 0);
	expect(NBD_OPT_EXTENDED_HEADERS, NBD_REP_ACK);
	cr_assert_eq(h.headers, NBD_HEADERS_EXTENDED);
	give(NBD_OPT_STRUCTURED_REPLY, NULL, 0);
	expect(NBD_OPT_STRUCTURED_REPLY, NBD_REP_ERR_EXT_HEADER_REQD);
	give(NBD_OPT_EXTENDED_HEADERS, NULL, 0);
	expect(NBD_OPT_EXTENDED_HEADERS, NBD_REP_ERR_INVALID);
	give(NBD_OPT_INFO, go_disk, GO_LEN);
	nbd_negotiate_opened(&h, 0, NULL, &export, &out);
	cr_assert_eq(export.flags, NBD_FLAG_HAS_FLAGS | NBD_FLAG_SEND_DF);
	export.flags = 0;
	give(NBD_OPT_GO, go_disk, GO_LEN);
	nbd_negotiate_opened(&h, 0, NULL, &export, &out);
	cr_assert_eq(export.flags, NBD_FLAG_HAS_FLAGS | NBD_FLAG_SEND_DF);
	h.state = NBD_NEGOTIATE_OPTION;
	cr_assert_eq(give(NBD_OPT_EXPORT_NAME, "disk", 4), -EPROTO);
}

static const uint8_t meta[] = "\0\0\0\4disk\0\0\0\1\0\0\0\17base:allocation";
#define META_LEN 31u

Test(nbd_opt, contexts)
{
	struct nbd_export export = export_of();

	give(NBD_OPT_SET_META_CONTEXT, meta, META_LEN);
	expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_ERR_INVALID);
	give(NBD_OPT_EXTENDED_HEADERS, NULL, 0);
	expect(NBD_OPT_EXTENDED_HEADERS, NBD_REP_ACK);
	give(NBD_OPT_LIST_META_CONTEXT, "\0\0\0\4disk\0\0\0\0", 12);
	cr_assert_eq(expect(NBD_OPT_LIST_META_CONTEXT, NBD_REP_META_CONTEXT), 19);
	expect(NBD_OPT_LIST_META_CONTEXT, NBD_REP_ACK);
	give(NBD_OPT_LIST_META_CONTEXT, "\0\0\0\4disk\0\0\0\1\0\0\0\5qemu:", 21);
	expect(NBD_OPT_LIST_META_CONTEXT, NBD_REP_ACK);
	give(NBD_OPT_SET_META_CONTEXT, meta, META_LEN);
	cr_assert_eq(expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_META_CONTEXT), 19);
	expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_ACK);
	give(NBD_OPT_GO, go_disk, GO_LEN);
	cr_assert(nbd_negotiate_status(&h));
	nbd_negotiate_opened(&h, 0, NULL, &export, &out);
	cr_assert(export.flags & NBD_FLAG_BLOCK_STATUS_PAYLOAD);
	/* It was chosen for that export alone. */
	take(out.len);
	h.state = NBD_NEGOTIATE_OPTION;
	give(NBD_OPT_GO, "\0\0\0\4risk\0\0", 10);
	cr_assert(!nbd_negotiate_status(&h));
}

/* "base:" asks for all of a namespace, and chooses nothing; a choice takes the one before back. */
Test(nbd_opt, contexts_of_a_namespace)
{
	static const uint8_t all[] = "\0\0\0\4disk\0\0\0\1\0\0\0\5base:";

	give(NBD_OPT_STRUCTURED_REPLY, NULL, 0);
	expect(NBD_OPT_STRUCTURED_REPLY, NBD_REP_ACK);
	give(NBD_OPT_LIST_META_CONTEXT, all, 21);
	expect(NBD_OPT_LIST_META_CONTEXT, NBD_REP_META_CONTEXT);
	expect(NBD_OPT_LIST_META_CONTEXT, NBD_REP_ACK);
	give(NBD_OPT_SET_META_CONTEXT, meta, META_LEN);
	expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_META_CONTEXT);
	expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_ACK);
	cr_assert(nbd_negotiate_status(&h));
	give(NBD_OPT_SET_META_CONTEXT, all, 21);
	expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_ACK);
	cr_assert(!nbd_negotiate_status(&h));
}

Test(nbd_opt, contexts_with_wrong_data)
{
	give(NBD_OPT_STRUCTURED_REPLY, NULL, 0);
	expect(NBD_OPT_STRUCTURED_REPLY, NBD_REP_ACK);
	for (uint32_t len = 0; len < META_LEN; len++) {
		give(NBD_OPT_SET_META_CONTEXT, meta, len);
		expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_ERR_INVALID);
	}
	give(NBD_OPT_SET_META_CONTEXT, meta, META_LEN + 1);
	expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_ERR_INVALID);
	cr_assert(!h.status[0]);
}

Test(nbd_opt, list)
{
	give(NBD_OPT_LIST, "x", 1);
	expect(NBD_OPT_LIST, NBD_REP_ERR_INVALID);
	give(NBD_OPT_LIST, NULL, 0);
	cr_assert_eq(h.state, NBD_NEGOTIATE_LISTS);
	nbd_negotiate_name(&h, "disk", &out);
	nbd_negotiate_listed(&h, 0, NULL, &out);
	cr_assert_eq(expect(NBD_OPT_LIST, NBD_REP_SERVER), 8);
	expect(NBD_OPT_LIST, NBD_REP_ACK);
	cr_assert_eq(h.state, NBD_NEGOTIATE_OPTION);
}

/* The longest list, of 10000 exports with the longest names, gets away whole. */
Test(nbd_opt, longest_list)
{
	char name[254 + 1];		/* RNBD_NAME_MAX */

	give(NBD_OPT_LIST, NULL, 0);
	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	for (unsigned i = 0; i < 10000; i++)
		nbd_negotiate_name(&h, name, &out);
	nbd_negotiate_listed(&h, 0, NULL, &out);
	cr_assert_eq(out.error, 0);
	cr_assert_eq(out.len, 10000 * (20 + 4 + sizeof(name) - 1) + 20);
}

/* What is beyond the limit of answers is an error, and changes no byte in front of it. */
Test(nbd_opt, answers_have_a_limit)
{
	static const size_t lens[] = { NBD_BUF_MAX - 1, NBD_BUF_MAX, NBD_BUF_MAX + 1,
				       4 * (size_t)NBD_BUF_MAX };
	uint8_t *bytes = calloc(4, NBD_BUF_MAX);

	for_each_case(len, lens) {
		struct nbd_buf buf = { 0 };
		size_t half = NBD_BUF_MAX / 2;

		memset(bytes, 0x11, half);
		nbd_buf_add(&buf, bytes, half);
		memset(bytes, 0x22, half);
		nbd_buf_add(&buf, bytes, *len - half);
		cr_assert_eq(buf.error, *len <= NBD_BUF_MAX ? 0 : -ENOMEM);
		cr_assert_eq(buf.len, *len <= NBD_BUF_MAX ? *len : half);
		cr_assert_eq(buf.mem[half - 1], 0x11);
		cr_assert(buf.error || buf.mem[half] == 0x22);
		nbd_buf_fini(&buf);
	}
	free(bytes);
}

/* A list that cannot be had is not an empty one. */
Test(nbd_opt, list_fails)
{
	give(NBD_OPT_LIST, NULL, 0);
	nbd_negotiate_listed(&h, -EIO, "why", &out);
	cr_assert_eq(expect(NBD_OPT_LIST, NBD_REP_ERR_POLICY), 3);
	give(NBD_OPT_LIST, NULL, 0);
	nbd_negotiate_listed(&h, -ESHUTDOWN, "why", &out);
	cr_assert_eq(expect(NBD_OPT_LIST, NBD_REP_ERR_SHUTDOWN), 3);
}

Test(nbd_opt, others)
{
	give(NBD_OPT_STARTTLS, NULL, 0);
	expect(NBD_OPT_STARTTLS, NBD_REP_ERR_POLICY);
	give(4, "x", 1);
	expect(4, NBD_REP_ERR_UNSUP);
	give(NBD_OPT_ABORT, NULL, 0);
	expect(NBD_OPT_ABORT, NBD_REP_ACK);
	cr_assert_eq(h.state, NBD_NEGOTIATE_LEFT);
}

/* An option that is too long is answered by its header, and its data is dropped. */
Test(nbd_opt, too_long)
{
	static const uint32_t known[] = {
		NBD_OPT_LIST, NBD_OPT_STARTTLS, NBD_OPT_INFO, NBD_OPT_GO, NBD_OPT_STRUCTURED_REPLY,
		NBD_OPT_LIST_META_CONTEXT, NBD_OPT_SET_META_CONTEXT, NBD_OPT_EXTENDED_HEADERS,
	};

	for (unsigned i = 0; i < ARRAY_SIZE(known); i++) {
		cr_assert_eq(give_header(known[i], NBD_OPTION_MAX + 1), 16);
		expect(known[i], NBD_REP_ERR_TOO_BIG);
		expect_skipped(NBD_OPTION_MAX + 1);
	}
	cr_assert_eq(give_header(77, NBD_OPTION_MAX + 1), 16);
	expect(77, NBD_REP_ERR_UNSUP);
	expect_skipped(NBD_OPTION_MAX + 1);
	cr_assert_eq(give_header(77, NBD_OPTION_SKIP_MAX), 16);
	expect(77, NBD_REP_ERR_UNSUP);
	expect_skipped(NBD_OPTION_SKIP_MAX);
	give(NBD_OPT_LIST, NULL, 0);
	cr_assert_eq(h.state, NBD_NEGOTIATE_LISTS);
	h.state = NBD_NEGOTIATE_OPTION;
	cr_assert_eq(give_header(77, NBD_OPTION_SKIP_MAX + 1), -EPROTO);
	/* It has no error reply. */
	cr_assert_eq(give_header(NBD_OPT_EXPORT_NAME, NBD_OPTION_MAX + 1), -EPROTO);
	cr_assert_eq(out.len, 0);
}

/* A choice that fails leaves none, whatever it fails for. */
Test(nbd_opt, too_long_choice)
{
	give(NBD_OPT_EXTENDED_HEADERS, NULL, 0);
	expect(NBD_OPT_EXTENDED_HEADERS, NBD_REP_ACK);
	give(NBD_OPT_SET_META_CONTEXT, meta, META_LEN);
	expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_META_CONTEXT);
	expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_ACK);
	give_header(NBD_OPT_LIST_META_CONTEXT, NBD_OPTION_MAX + 1);
	expect(NBD_OPT_LIST_META_CONTEXT, NBD_REP_ERR_TOO_BIG);
	expect_skipped(NBD_OPTION_MAX + 1);
	give(NBD_OPT_GO, go_disk, GO_LEN);
	cr_assert(nbd_negotiate_status(&h));
	h.state = NBD_NEGOTIATE_OPTION;
	give_header(NBD_OPT_SET_META_CONTEXT, NBD_OPTION_MAX + 1);
	expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_ERR_TOO_BIG);
	expect_skipped(NBD_OPTION_MAX + 1);
	give(NBD_OPT_GO, go_disk, GO_LEN);
	cr_assert(!nbd_negotiate_status(&h));
}

Test(nbd_opt, greetings_that_end)
{
	static const uint8_t unknown[4] = { 0, 0, 0, 7 }, old[4] = { 0, 0, 0, 0 };

	h.state = NBD_NEGOTIATE_FLAGS;
	cr_assert_eq(nbd_negotiate_step(&h, unknown, 4, &out), -EPROTO);
	cr_assert_eq(nbd_negotiate_step(&h, old, 4, &out), 4);
	cr_assert_eq(give(NBD_OPT_LIST, NULL, 0), -EPROTO);
	cr_assert_eq(nbd_negotiate_step(&h, (const uint8_t *)"0123456789abcdef", 16, &out),
		     -EPROTO);
}

static void begin_with(enum nbd_tls_mode tls)
{
	static const uint8_t flags[4] = { 0, 0, 0, 3 };

	nbd_buf_fini(&out);
	nbd_negotiate_begin(&h, tls, &out);
	take(out.len);
	cr_assert_eq(nbd_negotiate_step(&h, flags, 4, &out), 4);
}

Test(nbd_opt, tls_required)
{
	static const uint32_t refused[] = {
		NBD_OPT_LIST, NBD_OPT_INFO, NBD_OPT_GO, NBD_OPT_STRUCTURED_REPLY,
		NBD_OPT_LIST_META_CONTEXT, NBD_OPT_SET_META_CONTEXT, NBD_OPT_EXTENDED_HEADERS, 99,
	};

	begin_with(NBD_TLS_REQUIRE);
	for (unsigned i = 0; i < ARRAY_SIZE(refused); i++) {
		cr_assert_eq(give_header(refused[i], 6), 16);
		expect(refused[i], NBD_REP_ERR_TLS_REQD);
		expect_skipped(6);
		cr_assert_eq(give_header(refused[i], 0), 16);
		expect(refused[i], NBD_REP_ERR_TLS_REQD);
		cr_assert_eq(h.state, NBD_NEGOTIATE_OPTION);
	}
	cr_assert_eq(give_header(NBD_OPT_EXPORT_NAME, 4), -EPROTO);
	give(NBD_OPT_ABORT, NULL, 0);
	expect(NBD_OPT_ABORT, NBD_REP_ACK);
}

/* In clear no data is waited for, however long. */
Test(nbd_opt, tls_required_no_data)
{
	begin_with(NBD_TLS_REQUIRE);
	give_header(NBD_OPT_GO, NBD_OPTION_SKIP_MAX);
	expect(NBD_OPT_GO, NBD_REP_ERR_TLS_REQD);
	expect_skipped(NBD_OPTION_SKIP_MAX);
	cr_assert_eq(give_header(NBD_OPT_GO, NBD_OPTION_SKIP_MAX + 1), -EPROTO);
	begin_with(NBD_TLS_REQUIRE);
	give_header(NBD_OPT_STARTTLS, 16384);
	expect(NBD_OPT_STARTTLS, NBD_REP_ERR_INVALID);
	expect_skipped(16384);
	give_header(NBD_OPT_ABORT, 16384);
	expect(NBD_OPT_ABORT, NBD_REP_ACK);
	cr_assert_eq(h.state, NBD_NEGOTIATE_LEFT);
}

Test(nbd_opt, tls_begins)
{
	begin_with(NBD_TLS_REQUIRE);
	give_header(NBD_OPT_STARTTLS, 1);
	expect(NBD_OPT_STARTTLS, NBD_REP_ERR_INVALID);
	expect_skipped(1);
	give(NBD_OPT_STARTTLS, NULL, 0);
	expect(NBD_OPT_STARTTLS, NBD_REP_ACK);
	cr_assert_eq(h.state, NBD_NEGOTIATE_SECURES);
	/* Nothing is taken until TLS has begun. */
	cr_assert_eq(give(NBD_OPT_LIST, NULL, 0), 0);
	nbd_negotiate_secured(&h);
	give(NBD_OPT_STARTTLS, NULL, 0);
	expect(NBD_OPT_STARTTLS, NBD_REP_ERR_INVALID);
	give(NBD_OPT_LIST, NULL, 0);
	cr_assert_eq(h.state, NBD_NEGOTIATE_LISTS);
}

Test(nbd_opt, tls_forgets)
{
	begin_with(NBD_TLS_ON);
	give(NBD_OPT_STRUCTURED_REPLY, NULL, 0);
	expect(NBD_OPT_STRUCTURED_REPLY, NBD_REP_ACK);
	give(NBD_OPT_SET_META_CONTEXT, meta, sizeof(meta) - 1);
	expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_META_CONTEXT);
	expect(NBD_OPT_SET_META_CONTEXT, NBD_REP_ACK);
	cr_assert(nbd_negotiate_status(&h));
	give(NBD_OPT_STARTTLS, NULL, 0);
	expect(NBD_OPT_STARTTLS, NBD_REP_ACK);
	nbd_negotiate_secured(&h);
	cr_assert_eq(h.headers, NBD_HEADERS_SIMPLE);
	cr_assert_str_empty(h.name);
	cr_assert_str_empty(h.status);
}
