/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of a path: which are addresses, and that all of it is read. */
#include "unit.h"

#include "clt-addr.h"
#include "rtrs-proto.h"

Test(clt_addr, numbers)
{
	static const struct {
		const char *text;
		int r;
	} cases[] = {
		{ "192.0.2.1", 0 }, { "192.0.2.1:99", 0 }, { "[::1]:99", 0 },
		{ "tcp://192.0.2.1", 0 },
		{ "192.0.2.9@192.0.2.1:99", 0 }, { "tcp://192.0.2.9@192.0.2.1", 0 },
		{ "[fe80::1%1]", 0 },
		{ "localhost", -1 }, { "localhost:99", -1 }, { "localhost@192.0.2.1", -1 },
		{ "192.0.2.1@localhost", -1 }, { "tcp://localhost", -1 }, { "[localhost]", -1 },
		{ "[face]", -1 }, { "", -1 },
	};

	for_each_case(c, cases) {
		struct clt_sess_addr addr;
		char err[256];

		cr_assert_eq(clt_addr_parse(c->text, fab_provider_find("tcp"), true, &addr, err,
					    sizeof(err)),
			     c->r, "%s", c->text);
		cr_assert(c->r || fab_addr_port(&addr.dst) == RTRS_PORT ||
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
		{ "192.0.2.1:", "99x", 512, -1, "expected addresses" },
		{ "192.0.2.9:", "x@192.0.2.1", 266, -1, "expected addresses" },
		{ "192.0.2.9:", "@192.0.2.1", CLT_ADDR_TEXT_MAX, 0, "" },
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
		cr_assert_eq(clt_addr_parse(text, fab_provider_find("tcp"), true, &addr, err,
					    sizeof(err)), c->r,
			     "%s: %s", text, err);
		cr_assert(strstr(err, c->want), "%s: %s", text, err);
	}
}

Test(clt_addr, open_transport)
{
	cr_assert(clt_addr_is_open("192.0.2.9@192.0.2.1:99"));
	cr_assert_not(clt_addr_is_open("tcp://192.0.2.1"));
	cr_assert_not(clt_addr_is_open("unix:/s"));
}
