/* SPDX-License-Identifier: BSD-3-Clause */
/* The names by which readers ask for metrics: ours, and those of strangers. */
#include <errno.h>

#include "metric-sock.h"
#include "unit.h"

#define OWN "gw1.example.com"
#define NAMES "store,disks.example.com"

Test(metric_host, ours)
{
	static const char *const ours[] = {
		"127.0.0.1", "127.0.0.1:9091", "192.0.2.7:80", "[::1]", "[::1]:9091",
		"[2001:db8::7]:9091", "localhost", "localhost:9091", "LocalHost:9091",
		"localhost.", "gw1.example.com", "GW1.example.com:9091", "gw1.example.com.:9091",
		"gw1", "gw1:9091", "store", "store:9091", "disks.example.com",
		"Disks.Example.com:1",
	};

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		cr_assert(metric_host_is_ours(ours[i], OWN, NAMES), "%s", ours[i]);
	cr_assert(metric_host_is_ours(NULL, OWN, NAMES), "no browser");
	cr_assert(metric_host_is_ours("gw1", OWN, NULL));
}

Test(metric_host, strangers)
{
	static const char *const strangers[] = {
		"", ":9091", ".", "evil.example", "evil.example:9091", "gw1.evil.example",
		"localhost.evil.example", "evil.localhost", "gw1.example", "gw1.example.com.evil",
		"gw1.example.comm", "gw", "disks", "store,disks.example.com", ",", "example.com",
		"127.0.0.1.evil.example", "127.0.0.1x", "127.1", "0x7f000001", "[evil.example]",
		"[::1", "[]", "[", "[127.0.0.1]", "::1", "localhost,", "localhos",
		"0000000000000000000000000000000000000000000000000000000000000000",
	};

	for (size_t i = 0; i < sizeof(strangers) / sizeof(*strangers); i++)
		cr_assert(!metric_host_is_ours(strangers[i], OWN, NAMES), "%s", strangers[i]);
	cr_assert(!metric_host_is_ours("store", OWN, NULL));
	cr_assert(!metric_host_is_ours("", "", NULL), "a machine without a name");
	cr_assert(!metric_host_is_ours("evil.example", "", NULL));
}

Test(metric_host, form)
{
	static const char *const good[] = {
		"a", "a,b", "gw1.example.com,store_2", "xn--e-9ga.org",
	};
	static const char *const bad[] = {
		"", ",", "a,", ",a", "a,,b", "a b", "a:9091", "*", "a/b",
	};
	char why[128];

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		cr_assert_eq(metric_host_check(good[i], why, sizeof(why)), 0, "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		cr_assert_eq(metric_host_check(bad[i], why, sizeof(why)), -EINVAL, "%s", bad[i]);
		cr_assert_str_eq(why, "expected NAME[,NAME...], names of hosts without a port");
	}
}
