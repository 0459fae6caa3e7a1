/* SPDX-License-Identifier: BSD-3-Clause */
/* Words for refusals: each reason has its own, and fits a line of the client. */
#include <errno.h>

#include "unit.h"

#include "clt-cause.h"
#include "dev.h"
#include "rtrs-proto.h"

static const char *told[64];
static unsigned ntold;

/* Once, and not empty. */
static void expect_own(const char *text, unsigned number)
{
	cr_assert(*text, "%u has no words", number);
	for (unsigned i = 0; i < ntold; i++)
		cr_assert_str_neq(text, told[i], "%u has the words of another reason", number);
	told[ntold++] = text;
}

/* The reasons of a reject are those behind EXPORT, and IDENTITY. */
Test(clt_hint, each_reason_of_a_reject)
{
	for (unsigned n = 0; n < RTRS_NREFUSALS + 3; n++) {
		bool named = n == RTRS_REFUSES_IDENTITY ||
			     (n > RTRS_REFUSES_EXPORT && n < RTRS_NREFUSALS);
		const char *text = clt_cause_reason(n, true);

		if (!named) {
			cr_assert_str_eq(text, "", "%u", n);
			continue;
		}
		expect_own(text, n);
		/* Behind "connection 4095 was refused: ". */
		cr_assert_lt(strlen(text) + 30, CLT_WHY, "%u is cut", n);
	}
	cr_assert_str_eq(clt_cause_reason(65535, true), "");
	/* A client without a key needs one, and one with a key does not. */
	expect_own(clt_cause_reason(RTRS_REFUSES_UNPROVEN, false), 0);
	cr_assert(strstr(clt_cause_reason(RTRS_REFUSES_UNPROVEN, false), "auth-psk="));
	cr_assert(!strstr(clt_cause_reason(RTRS_REFUSES_UNPROVEN, true), "auth-psk="));
}

Test(clt_hint, each_reason_of_a_session)
{
	static char why[RTRS_REFUSES_EXPORT + 2][CLT_WHY];

	for (unsigned n = 1; n < ARRAY_SIZE(why); n++) {
		clt_cause_session(n, "vm-1", why[n], sizeof(why[n]));
		expect_own(why[n], n);
		cr_assert_eq(!strstr(why[n], ": reason "), n <= RTRS_REFUSES_EXPORT, "%s", why[n]);
	}
}

Test(clt_hint, each_reason_of_an_open)
{
	for (unsigned n = RNBD_REFUSES_NOT + 1; n < RNBD_NREFUSALS; n++)
		expect_own(dev_why(-EIO, (enum rnbd_refusal)n), n);
	/* Of a server that gives none. */
	expect_own(dev_why(-EPERM, RNBD_REFUSES_NOT), EPERM);
	expect_own(dev_why(-ENOENT, RNBD_REFUSES_NOT), ENOENT);
	expect_own(dev_why(-EROFS, RNBD_REFUSES_NOT), EROFS);
	cr_assert_str_eq(dev_why(-EACCES, RNBD_REFUSES_NOT), dev_why(-EROFS, RNBD_REFUSES_NOT));
	expect_own(dev_why(-EIO, RNBD_REFUSES_NOT), EIO);
	expect_own(dev_why(-ESHUTDOWN, RNBD_REFUSES_NOT), ESHUTDOWN);
	cr_assert_str_eq(dev_why(-ENOSPC, RNBD_REFUSES_NOT), strerror(ENOSPC));
}
