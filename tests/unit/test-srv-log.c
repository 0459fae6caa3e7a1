/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines that clients cause, with a clock that the test turns. */
#include <netinet/in.h>

#include "unit.h"

#include "clock.h"
#include "fabric.h"
#include "srv-log.h"

static uint64_t now_ms;
static struct srv_log hosts;
static struct log_limit wide = LOG_LIMIT_INIT(1000, 1);
static char last[256];
static unsigned lines;

uint64_t clock_now_ms(void)
{
	return now_ms;
}

static void sink(enum log_level level, const char *line)
{
	snprintf(last, sizeof(last), "%s", line);
	lines++;
}

static void setup(void)
{
	now_ms = 1000000;
	lines = 0;
	log_init(sink, LOG_LEVEL_INFO);
}

TestSuite(srv_log, .init = setup);

static struct fab_addr host(uint32_t n)
{
	struct fab_addr addr = { .len = sizeof(struct sockaddr_in) };
	struct sockaddr_in *in = (struct sockaddr_in *)&addr.ss;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0x0a000000 + n);
	return addr;
}

static unsigned passed(const struct fab_addr *addr, unsigned n)
{
	unsigned pass = 0;

	while (n--)
		pass += srv_log_pass(&hosts, addr);
	return pass;
}

Test(srv_log, one_host_is_bounded_and_others_are_not)
{
	struct fab_addr a = host(1), b = host(2);

	cr_assert_eq(passed(&a, 10000), SRV_LOG_BURST);
	cr_assert_eq(passed(&b, 100), 100);
	cr_assert_eq(lines, 0);
	/* It comes every 10 ms for an hour. */
	unsigned n = 0;

	for (unsigned i = 0; i < 360000; i++) {
		now_ms += 10;
		n += passed(&a, 1);
	}
	cr_assert_leq(n, 3600);
	cr_assert_geq(n, 3500);
	cr_assert_leq(lines, 361, "one line for each interval");
	cr_assert_geq(lines, 350);
}

Test(srv_log, what_was_held_back_is_told)
{
	struct fab_addr a = host(1);

	cr_assert_eq(passed(&a, SRV_LOG_BURST + 7), SRV_LOG_BURST);
	now_ms += SRV_LOG_INTERVAL_MS - 1;
	cr_assert_eq(passed(&a, 1), 0);
	now_ms++;
	cr_assert_eq(passed(&a, 1), 1);
	cr_assert_eq(lines, 1);
	cr_assert_str_eq(last, "8 lines about 10.0.0.1:0 were suppressed");
	/* After a quiet time it is as new. */
	now_ms += SRV_LOG_BURST * (SRV_LOG_INTERVAL_MS / SRV_LOG_PER_INTERVAL);
	cr_assert_eq(passed(&a, 10000), SRV_LOG_BURST);
	cr_assert_eq(lines, 1);
}

Test(srv_log, who_was_not_heard_of_is_forgotten)
{
	struct fab_addr a = host(1);

	cr_assert_eq(passed(&a, 10000), SRV_LOG_BURST);
	for (uint32_t i = 2; i < 2 + SRV_LOG_HOSTS - 1; i++) {
		struct fab_addr other = host(i);

		now_ms++;
		cr_assert_eq(passed(&other, 1), 1);
	}
	cr_assert_eq(passed(&a, 1), 0, "there is room for it");
	for (uint32_t i = 1000; i < 1000 + SRV_LOG_HOSTS; i++) {
		struct fab_addr other = host(i);

		now_ms++;
		cr_assert_eq(passed(&other, 1), 1);
	}
	cr_assert_eq(passed(&a, 1), 1);
}

/* Of a host that no limit holds back. */
static bool news(const char *obj, const char *line, unsigned *more)
{
	struct fab_addr quiet = host(99);

	return srv_log_news(&hosts, &quiet, &wide, obj, line, more);
}

Test(srv_log, a_line_that_is_said_again_is_told_once_a_minute)
{
	unsigned more = 99;

	cr_assert(news("a", "refused", &more));
	cr_assert_eq(more, 0);
	for (unsigned i = 0; i < 10; i++) {
		now_ms += 500;
		cr_assert_not(news("a", "refused", &more));
	}
	/* Another client, another reason */
	cr_assert(news("b", "refused", &more));
	cr_assert(news("a", "refused by b", &more));
	cr_assert_eq(more, 0);
	now_ms += SRV_LOG_AGAIN_MS - 5000 - 1;
	cr_assert_not(news("a", "refused", &more));
	now_ms++;
	cr_assert(news("a", "refused", &more));
	cr_assert_eq(more, 11);
	cr_assert_not(news("a", "refused", &more));
}

static void again(uint32_t n, uint16_t port, const char *session, const char *line)
{
	struct fab_addr addr = host(n);

	((struct sockaddr_in *)&addr.ss)->sin_port = htons(port);
	lines = 0;
	srv_log_again(&hosts, &addr, &wide, LOG_LEVEL_WARN,
		      LOG_FIELDS(CLIENT_REFUSED, .session = session), "peer", line);
}

/* A client has another port each time. */
Test(srv_log, a_client_that_tries_again_has_a_line_a_minute)
{
	again(1, 1000, NULL, "refused");
	cr_assert_str_eq(last, "peer: refused");
	again(1, 1001, NULL, "refused");
	cr_assert_eq(lines, 0);
	again(2, 1001, NULL, "refused");
	cr_assert_eq(lines, 1);
	again(1, 1001, NULL, "refused, too");
	cr_assert_eq(lines, 1);
	again(1, 1001, "s", "refused");
	cr_assert_eq(lines, 1);
	now_ms += SRV_LOG_AGAIN_MS;
	again(1, 1002, NULL, "refused");
	cr_assert_str_eq(last, "peer: refused; repeated 1 more times");
	now_ms += SRV_LOG_AGAIN_MS;
	again(1, 1003, NULL, "refused");
	cr_assert_str_eq(last, "peer: refused");
}

Test(srv_log, of_many_lines_the_oldest_is_forgotten)
{
	char line[16];
	unsigned more;

	for (unsigned i = 0; i <= SRV_LOG_LINES; i++) {
		now_ms++;
		snprintf(line, sizeof(line), "%u", i);
		cr_assert(news("a", line, &more));
	}
	cr_assert_not(news("a", "1", &more));
	cr_assert(news("a", "0", &more));
}

/* A limit that holds a line back does not count as its being told. */
Test(srv_log, a_line_that_was_held_back_is_told_later)
{
	struct log_limit narrow = LOG_LIMIT_INIT(1, SRV_LOG_INTERVAL_MS);
	struct fab_addr a = host(1), b = host(2);
	unsigned more = 99;

	/* by the limit of its host */
	passed(&a, 10000);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_not(srv_log_news(&hosts, &a, &wide, "a", "refused", &more));
	now_ms += SRV_LOG_INTERVAL_MS;
	cr_assert(srv_log_news(&hosts, &a, &wide, "a", "refused", &more));
	cr_assert_eq(more, 3);
	/* by that of all */
	cr_assert(srv_log_news(&hosts, &b, &narrow, "b", "refused", &more));
	cr_assert_not(srv_log_news(&hosts, &b, &narrow, "b", "refused again", &more));
	cr_assert_not(srv_log_news(&hosts, &b, &narrow, "b", "refused again", &more));
	now_ms += SRV_LOG_INTERVAL_MS;
	cr_assert(srv_log_news(&hosts, &b, &narrow, "b", "refused again", &more));
	cr_assert_eq(more, 2);
	/* It is told once. */
	cr_assert_not(srv_log_news(&hosts, &b, &narrow, "b", "refused again", &more));
}
