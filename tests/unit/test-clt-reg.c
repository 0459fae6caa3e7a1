/* SPDX-License-Identifier: BSD-3-Clause */
/* Which keys READs have: the rule of registration=, for each kind of device, with the reasons that
 * it gives; and how many requests a small device has windows and queues for. */
#include <errno.h>

#include "unit.h"

#include "clt-key.h"

#define NO(mode) (1u << (mode))
#define RXE (FRWR_QUIRK_MR_BOUNDS | FRWR_QUIRK_INV_FATAL | FRWR_QUIRK_RETRIED_BIND | \
	     FRWR_QUIRK_INV_FLAG)

static struct frwr_caps caps_without(unsigned no, unsigned quirks)
{
	struct frwr_caps caps = { .quirks = quirks };

	caps.why[FRWR_MW2] = "none of type 2B";
	caps.why[FRWR_MW1] = "none of type 1";
	for (unsigned i = 0; i < FRWR_NMODES; i++)
		caps.rc[i] = no & NO(i) ? -EOPNOTSUPP : 0;
	return caps;
}

Test(clt_reg, rule)
{
	static const struct {
		enum clt_registration want;
		bool direct;
		unsigned no, quirks;
		int mode;
		const char *why;
	} cases[] = {
		/* tcp */
		{ CLT_REG_AUTO, true, 0, 0, FRWR_REREG, "free over TCP" },
		{ CLT_REG_WINDOW, true, 0, 0, FRWR_MW2, "type 2" },
		{ CLT_REG_WINDOW, true, NO(FRWR_MW2), 0, FRWR_MW1, "(none of type 2B)" },
		{ CLT_REG_WINDOW, true, NO(FRWR_MW2) | NO(FRWR_MW1), 0, FRWR_REREG,
		  "(none of type 1)" },
		{ CLT_REG_STATIC, true, 0, 0, FRWR_STATIC, "static" },
		/* hardware */
		{ CLT_REG_AUTO, false, 0, 0, FRWR_MW2, "type 2" },
		{ CLT_REG_AUTO, false, NO(FRWR_MW2), 0, FRWR_MW1, "(none of type 2B)" },
		{ CLT_REG_AUTO, false, NO(FRWR_MW2) | NO(FRWR_MW1), 0, FRWR_STATIC,
		  "(none of type 1)" },
		{ CLT_REG_AUTO, false, 0, FRWR_QUIRK_MR_BOUNDS, FRWR_MW2, "type 2" },
		{ CLT_REG_AUTO, false, 0, FRWR_QUIRK_RETRIED_BIND, FRWR_STATIC, "lost packet" },
		{ CLT_REG_WINDOW, false, NO(FRWR_MW2) | NO(FRWR_MW1), 0, -EOPNOTSUPP,
		  "registration=window: none of type 1; use registration=static" },
		{ CLT_REG_STATIC, false, NO(FRWR_MW2) | NO(FRWR_MW1), 0, FRWR_STATIC, "static" },
		/* soft-RoCE */
		{ CLT_REG_AUTO, false, 0, RXE, FRWR_STATIC, "stop this machine" },
		{ CLT_REG_WINDOW, false, 0, RXE, FRWR_MW2, "type 2" },
	};

	for_each_case(c, cases) {
		struct frwr_caps caps = caps_without(c->no, c->quirks);
		char why[192] = "";

		cr_assert_eq(clt_key_pick(c->want, &caps, c->direct, why, sizeof(why)), c->mode,
			     "case %zu", (size_t)(c - cases));
		cr_assert(strstr(why, c->why), "case %zu: %s", (size_t)(c - cases), why);
	}
}

Test(clt_reg, depth)
{
	static const struct {
		enum frwr_mode mode;
		uint32_t max_wr, max_mw;
		unsigned want, depth;
	} cases[] = {
		/* bind, request, invalidate; two receives and a spare; a window for control */
		{ FRWR_MW2, 1000, 1000, 128, 128 },
		{ FRWR_MW2, 30, 1000, 128, 10 },
		{ FRWR_MW2, 1000, 5, 128, 4 },
		{ FRWR_MW2, 3, 1000, 128, 1 },
		{ FRWR_MW2, 2, 1000, 128, 0 },
		{ FRWR_MW2, 1000, 1, 128, 0 },
		{ FRWR_MW2, 1000, 0, 128, 0 },
		{ FRWR_MW1, 1000, 5, 128, 4 },
		{ FRWR_STATIC, 2, 0, 7, 7 },
		{ FRWR_REREG, 2, 0, 7, 7 },
	};

	for_each_case(c, cases) {
		struct frwr_caps caps = {
			.dev = { .max_qp_wr = c->max_wr, .max_sge = 2, .max_mw = c->max_mw },
		};
		uint32_t send_wr;

		cr_assert_eq(clt_key_depth(&caps, c->mode, c->want, &send_wr), c->depth, "case %zu",
			     (size_t)(c - cases));
		cr_assert(send_wr <= c->max_wr);
		if (clt_key_is_window(c->mode) && c->depth)
			cr_assert(send_wr >= 3 * c->depth);
	}
}
