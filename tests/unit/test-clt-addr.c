/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of a path: what is an address and what a name, and that all of it is read.  And the
 * addresses of a name, in the order in which they are tried. */
#include "unit.h"

#include "clt-sess.h"
#include "rtrs-proto.h"

Test(clt_addr, names)
{
	static const struct {
		const char *text;
		int r;
		const char *src, *dst;	/* names */
	} cases[] = {
		{ "192.0.2.1", 0, "", "" }, { "192.0.2.1:99", 0, "", "" },
		{ "[::1]:99", 0, "", "" }, { "tcp://192.0.2.1", 0, "", "" },
		{ "192.0.2.9@192.0.2.1:99", 0, "", "" },
		{ "tcp://192.0.2.9@192.0.2.1", 0, "", "" },
		{ "[fe80::1%1]", 0, "", "[fe80::1%1]" },
		{ "tcp://[fe80::1%eth7]:99", 0, "", "[fe80::1%eth7]:99" },
		{ "localhost", 0, "", "localhost" }, { "tcp://a.b:99", 0, "", "a.b:99" },
		{ "a@192.0.2.1", 0, "a", "" }, { "192.0.2.1@b", 0, "", "b" },
		{ "tcp://a@b:99", 0, "a", "b:99" },
		{ "", -1, "", "" }, { "a:b:c", -1, "", "" }, { "a:0", -1, "", "" },
		{ "*", -1, "", "" }, { "*:99", -1, "", "" }, { "[*]", -1, "", "" },
		{ "a@*", -1, "", "" }, { "192.0.2.9:9@192.0.2.1", -1, "", "" },
		{ "a:9@b", -1, "", "" }, { "192.0.2.1:99,192.0.2.2:99", -1, "", "" },
		{ "a,b,c", -1, "", "" }, { "[fe80::1%1]@b", 0, "[fe80::1%1]", "b" },
		{ "a:x", -1, "", "" }, { "quic://a", -1, "", "" }, { "fe80::1%eth0", -1, "", "" },
	};

	for_each_case(c, cases) {
		struct clt_sess_addr addr;
		char err[256];

		cr_assert_eq(clt_paths_parse(c->text, fab_provider_find("tcp"), &addr, err,
					     sizeof(err)),
			     c->r, "%s", c->text);
		if (c->r)
			continue;
		cr_assert_str_eq(addr.src_name, c->src);
		cr_assert_str_eq(addr.dst_name, c->dst);
		cr_assert_eq(addr.dst.provider, fab_provider_find("tcp"));
		cr_assert_eq(!addr.dst.len, *c->dst != '\0');
		cr_assert(*c->dst || fab_addr_port(&addr.dst) == RTRS_PORT ||
			  fab_addr_port(&addr.dst) == 99);
	}
}

/* Of a text that was cut off another address could be read. */
Test(clt_addr, text_is_read_to_its_end)
{
	static const struct {
		const char *begin, *end;
		int len, r;
		const char *want;
	} cases[] = {
		{ "192.0.2.1:", "99", CLT_ADDR_TEXT_MAX, 0, "" },
		{ "192.0.2.1:", "99", CLT_ADDR_TEXT_MAX + 1, -1, "at most 1023 bytes" },
		{ "192.0.2.1:", "99x", 512, -1, "the port must be" },
		{ "192.0.2.9:", "x@192.0.2.1", 266, -1, "the port must be" },
		{ "192.0.2.9:", "@192.0.2.1", CLT_ADDR_TEXT_MAX, 0, "" },
		{ "a:", "9", CLT_NAME_MAX, 0, "" },
		{ "a:", "9", CLT_NAME_MAX + 1, -1, "at most 263 bytes" },
		{ "a:", "9@b", 3 * CLT_NAME_MAX, -1, "at most 263 bytes" },
		{ "a", "://192.0.2.9@192.0.2.1", 600, -1, "unknown transport" },
		{ "a", "://192.0.2.1", 1100, -1, "at most 1023 bytes" },
		{ "a", "://192.0.2.9@192.0.2.1", 3000, -1, "at most 1023 bytes" },
	};

	for_each_case(c, cases) {
		struct clt_sess_addr addr;
		static char text[3001];
		char err[256] = "";

		snprintf(text, sizeof(text), "%s%0*d%s", c->begin,
			 c->len - (int)strlen(c->begin) - (int)strlen(c->end), 0, c->end);
		cr_assert_eq(strlen(text), (size_t)c->len);
		cr_assert_eq(clt_paths_parse(text, fab_provider_find("tcp"), &addr, err,
					     sizeof(err)), c->r,
			     "%s: %s", text, err);
		cr_assert(strstr(err, c->want), "%s: %s", text, err);
	}
}

Test(clt_addr, open_transport)
{
	cr_assert(clt_paths_is_open("192.0.2.9@192.0.2.1:99"));
	cr_assert_not(clt_paths_is_open("tcp://192.0.2.1"));
	cr_assert_not(clt_paths_is_open("unix:/s"));
}

static struct clt_sess_addr sess_addr(const char *text)
{
	struct clt_sess_addr addr;
	char err[256];

	cr_assert_eq(clt_paths_parse(text, fab_provider_find("tcp"), &addr, err, sizeof(err)), 0);
	return addr;
}

/* Of a name the text counts, whatever it was resolved to. */
Test(clt_addr, same_paths)
{
	static const struct { const char *a, *b; bool same; } cases[] = {
		{ "192.0.2.1", "192.0.2.1:1234", true }, { "192.0.2.1", "192.0.2.2", false },
		{ "a", "a", true }, { "a", "b", false }, { "a", "192.0.2.1", false },
		{ "192.0.2.9@a", "192.0.2.9@a", true }, { "192.0.2.9@a", "192.0.2.8@a", false },
		{ "x@192.0.2.1", "x@192.0.2.1", true }, { "x@192.0.2.1", "x@192.0.2.2", false },
		{ "x@a", "y@a", false }, { "192.0.2.9@a", "a", false },
	};

	for_each_case(c, cases) {
		struct clt_sess_addr a = sess_addr(c->a), b = sess_addr(c->b);

		cr_assert_eq(clt_paths_same(&a, &b), c->same, "%s %s", c->a, c->b);
	}
}

/* ---- the addresses of a name ---- */

static struct clt_found found;
static struct clt_names names;

static struct fab_addr address(const char *text)
{
	return sess_addr(text).dst;
}

static void expect_round(const char *const *want)
{
	struct fab_addr src = { 0 }, dst;
	char text[FAB_ADDR_STRLEN];

	clt_names_begin(&names, &found);
	for (; *want; want++) {
		cr_assert(clt_names_left(&names));
		clt_names_next(&names, &src, &dst);
		cr_assert_str_eq(fab_addr_format_host(&dst, text, sizeof(text)), *want);
	}
	cr_assert_not(clt_names_left(&names));
}

#define EXPECT_ROUND(...) expect_round((const char *[]){ __VA_ARGS__, NULL })

Test(clt_addr, order_of_a_round)
{
	struct fab_addr one = address("192.0.2.1"), two = address("192.0.2.2"),
			three = address("192.0.2.3");

	found.ndst = 3;
	found.dst[0] = one, found.dst[1] = two, found.dst[2] = three;
	cr_assert_not(clt_names_left(&names));
	EXPECT_ROUND("192.0.2.1", "192.0.2.2", "192.0.2.3");
	/* The good one first, another machine last. */
	clt_names_good(&names, &three);
	EXPECT_ROUND("192.0.2.3", "192.0.2.1", "192.0.2.2");
	clt_names_other(&names, &one);
	clt_names_other(&names, &one);
	EXPECT_ROUND("192.0.2.3", "192.0.2.2", "192.0.2.1");
	/* Another machine that is taken at last is none any more. */
	clt_names_begin(&names, &found);
	clt_names_good(&names, &one);
	cr_assert_not(clt_names_left(&names));
	EXPECT_ROUND("192.0.2.1", "192.0.2.2", "192.0.2.3");
	/* The name moves. */
	found.ndst = 2;
	found.dst[0] = three;
	EXPECT_ROUND("192.0.2.3", "192.0.2.2");
}

Test(clt_addr, source_of_the_family)
{
	struct fab_addr v4 = address("192.0.2.1"), v6 = address("[2001:db8::1]"), src, dst;

	found.nsrc = found.ndst = 2;
	found.src[0] = found.dst[1] = v6;
	found.src[1] = found.dst[0] = v4;
	clt_names_begin(&names, &found);
	clt_names_next(&names, &src, &dst);
	cr_assert(fab_addr_same(&src, &v4) && fab_addr_same(&dst, &v4));
	clt_names_next(&names, &src, &dst);
	cr_assert(fab_addr_same(&src, &v6) && fab_addr_same(&dst, &v6));
}
