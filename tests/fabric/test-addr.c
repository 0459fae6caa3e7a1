/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses as users write them, and the sentence they get when they write them wrong. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "harness.h"
#include "util.h"

static const struct good {
	const char *text, *formatted;
} good[] = {
	{ "192.0.2.1", "192.0.2.1:1234" },
	{ "192.0.2.1:0", "192.0.2.1:0" },
	{ "192.0.2.1:65535", "192.0.2.1:65535" },
	{ "tcp://192.0.2.1:5", "192.0.2.1:5" },
	{ "tcp://[2001:db8::1]:5", "[2001:db8::1]:5" },
	{ "[::1]", "[::1]:1234" },
	{ "unix:/run/a.sock", "unix:/run/a.sock" },
	{ "unix:/a b,c@d:1", "unix:/a b,c@d:1" },
	{ "unix:/\xff\x1b\xc3\xa4", "unix:/\?\?\xc3\xa4" },	/* masked */
};

static const struct bad {
	const char *text;
	int rc;
	const char *says;
} bad[] = {
	{ "", -EINVAL, "empty" },
	{ ":1234", -EINVAL, "empty" },
	{ "[]:1", -EINVAL, "empty" },
	{ "192.0.2.1:", -EINVAL, "port" },
	{ "192.0.2.1:65536", -EINVAL, "port" },
	{ "192.0.2.1:99999999999999999999", -EINVAL, "port" },
	{ "192.0.2.1:+1", -EINVAL, "port" },
	{ "192.0.2.1: 1", -EINVAL, "port" },
	{ "192.0.2.1:1x", -EINVAL, "port" },
	{ "::1", -EINVAL, "brackets" },
	{ "[::1", -EINVAL, "[IPV6]" },
	{ "[::1]1234", -EINVAL, "[IPV6]" },
	{ "quic://192.0.2.1", -EPROTONOSUPPORT, "\"quic\"" },
	{ "tpc://192.0.2.1", -EPROTONOSUPPORT,
	  "\"tpc\" (did you mean tcp?): expected HOST[:PORT], tcp:" },
	{ "tpc://", -EPROTONOSUPPORT, "did you mean tcp?" },
	{ "://192.0.2.1", -EPROTONOSUPPORT, "transport" },
	{ "gid:fe80:0000:0000:0000:0000:0000:0000:0001", -EPROTONOSUPPORT, "the IP address" },
	{ "tcp://gid:fe80::1", -EPROTONOSUPPORT, "the IP address" },
	{ "gid:fe80::1:x", -EINVAL, "no GID" },
	{ "*", -EINVAL, "'*' is no address: 0.0.0.0 " },
	{ "tcp:192.0.2.1:1234", -EINVAL, "more than one ':'" },
	{ "tcp//192.0.2.1:1234", -EINVAL, "a host has no '/'" },
	{ "unix:", -EINVAL, "absolute path" },
	{ "unix:a.sock", -EINVAL, "absolute path" },
	{ "no-such-host.invalid", -ENOENT, "no-such-host.invalid" },
	{ "192.0.2.256.1", -ENOENT, "192.0.2.256.1" },
};

static void same_host(const struct fab_provider *tcp, const char *a, const char *b, bool same)
{
	struct fab_addr x, y;
	char err[256];

	check_eq(fab_addr_parse(a, tcp, 1, &x, err, sizeof(err)), 0);
	check_eq(fab_addr_parse(b, tcp, 2, &y, err, sizeof(err)), 0);
	check_eq(fab_addr_same_host(&x, &y), same);
}

static void same_net(const struct fab_provider *tcp, const char *a, const char *b, bool same)
{
	struct fab_addr x, y;
	char err[256];

	check_eq(fab_addr_parse(a, tcp, 1, &x, err, sizeof(err)), 0);
	check_eq(fab_addr_parse(b, tcp, 2, &y, err, sizeof(err)), 0);
	check_eq(fab_addr_same_net(&x, &y), same);
	check_eq(fab_addr_same_net(&y, &x), same);
	check_eq(fab_addr_net(&x) == fab_addr_net(&y), same);
	check(fab_addr_net(&x) != UINT64_MAX);
}

/* Of link-local addresses the interface belongs to the net. */
static void net_with_scope(const struct fab_provider *tcp)
{
	struct fab_addr x, y;
	char err[256];

	check_eq(fab_addr_parse("[fe80::1]", tcp, 1, &x, err, sizeof(err)), 0);
	y = x;
	((struct sockaddr_in6 *)&x.ss)->sin6_scope_id = 2;
	check(!fab_addr_same_net(&x, &y) && fab_addr_net(&x) != fab_addr_net(&y));
	((struct sockaddr_in6 *)&y.ss)->sin6_scope_id = 2;
	check(fab_addr_same_net(&x, &y) && fab_addr_net(&x) == fab_addr_net(&y));
	check_eq(fab_addr_parse("[::ffff:192.0.2.1]", tcp, 1, &x, err, sizeof(err)), 0);
	check_eq(fab_addr_parse("192.0.2.1", tcp, 1, &y, err, sizeof(err)), 0);
	check_eq(fab_addr_net(&x), fab_addr_net(&y));
}

/* Ends without a name are told apart by their user: processes are too cheap. */
static void unnamed(void)
{
	struct fab_addr a = { .provider = &fab_tcp, .ss.ss_family = AF_UNIX,
			      .len = sizeof(sa_family_t),
			      .pid = 42, .uid = 1000 };
	struct fab_addr b = a, named;
	char buf[FAB_ADDR_STRLEN], err[256];

	check(strcmp(fab_addr_format(&a, buf, sizeof(buf)), "unix:pid=42,uid=1000") == 0);
	check(fab_addr_is_unix(&a));
	check_eq(fab_addr_port(&a), 0);
	b.pid = 43;
	check(fab_addr_same_host(&a, &b) && fab_addr_same_net(&a, &b));
	check_eq(fab_addr_net(&a), fab_addr_net(&b));
	b.uid = 1001;
	check(!fab_addr_same_host(&a, &b) && !fab_addr_same_net(&a, &b));
	check(fab_addr_net(&a) != fab_addr_net(&b));
	b.uid = (uid_t)-1;		/* not known */
	check(fab_addr_net(&b) != UINT64_MAX);
	check_eq(fab_addr_parse("unix:/a", NULL, 1, &named, err, sizeof(err)), 0);
	check(!fab_addr_same_host(&a, &named));
	check_eq(fab_addr_parse("127.0.0.1", &fab_tcp, 1, &b, err, sizeof(err)), 0);
	check(fab_addr_net(&a) != fab_addr_net(&b));
	check(!fab_addr_is_unix(&b) && !fab_addr_same_host(&a, &b));
}

static void urls(const struct fab_provider *tcp)
{
	static const char *const texts[] = { "tcp://192.0.2.1:5", "tcp://[2001:db8::1]:5",
					     "unix:/run/a.sock" };
	struct fab_addr addr;
	char buf[FAB_ADDR_STRLEN], err[256];

	for (unsigned i = 0; i < ARRAY_SIZE(texts); i++) {
		check_eq(fab_addr_parse(texts[i], tcp, 1, &addr, err, sizeof(err)), 0);
		check(strcmp(fab_addr_url(&addr, buf, sizeof(buf)), texts[i]) == 0);
		check_eq(strlen(fab_addr_url(&addr, buf, 5)), 4);
	}
}

int main(void)
{
	const struct fab_provider *tcp = fab_provider_find("tcp");
	struct fab_addr addr, none = { 0 };
	char buf[FAB_ADDR_STRLEN], err[256], longname[400];

	check(tcp != NULL);
	check(strcmp(fab_provider_name(tcp), "tcp") == 0);
	check(fab_provider_find("tc") == NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(good); i++) {
		check_eq(fab_addr_parse(good[i].text, tcp, 1234, &addr, err, sizeof(err)), 0);
		check(addr.provider == tcp);
		check(strcmp(fab_addr_format(&addr, buf, sizeof(buf)), good[i].formatted) == 0);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		err[0] = '\0';
		check_eq(fab_addr_parse(bad[i].text, tcp, 1234, &addr, err, sizeof(err)),
			 bad[i].rc);
		printf("%s\n", err);
		check(strstr(err, bad[i].says) != NULL);
		/* A name of this form may be found another time. */
		check(bad[i].rc == -ENOENT || strstr(err, "expected") || strstr(err, "must") ||
		      strstr(err, "give the") || strstr(err, "written") ||
		      strstr(err, " has all "));
	}
	unnamed();
	urls(tcp);
	memset(longname, 'a', sizeof(longname) - 1);
	longname[sizeof(longname) - 1] = '\0';
	check_eq(fab_addr_parse(longname, tcp, 1, &addr, err, sizeof(err)), -EINVAL);
	/* What sun_path holds with its end. */
	memcpy(longname, "unix:/", 6);
	longname[5 + 108] = '\0';
	check_eq(fab_addr_parse(longname, tcp, 1, &addr, err, sizeof(err)), -EINVAL);
	longname[5 + 107] = '\0';
	check_eq(fab_addr_parse(longname, tcp, 1, &addr, err, sizeof(err)), 0);
	check(strcmp(fab_addr_url(&addr, buf, sizeof(buf)), longname) == 0);
	check_eq(fab_addr_parse("192.0.2.1", NULL, 1, &addr, err, sizeof(err)), -EPROTONOSUPPORT);
	check(err[0] != '\0');
	if (!fab_provider_find("rdma")) {
		check_eq(fab_addr_parse("rdma://192.0.2.1", tcp, 1, &addr, err, sizeof(err)),
			 -EPROTONOSUPPORT);
		check(strstr(err, "--without-rdma"));
	}

	same_host(tcp, "192.0.2.1:1", "192.0.2.1:2", true);
	same_host(tcp, "192.0.2.1", "192.0.2.2", false);
	same_host(tcp, "[2001:db8::1]", "[2001:db8::1]:7", true);
	same_host(tcp, "[2001:db8::1]", "[2001:db8::2]", false);
	same_host(tcp, "[::1]", "127.0.0.1", false);
	same_host(tcp, "unix:/a", "unix:/a", true);
	same_host(tcp, "unix:/a", "unix:/b", false);
	same_host(tcp, "unix:/a", "127.0.0.1", false);
	check(!fab_addr_same_host(&none, &none));
	same_net(tcp, "192.0.2.1:1", "192.0.2.1:2", true);
	same_net(tcp, "192.0.2.1", "192.0.2.2", false);
	same_net(tcp, "[2001:db8::1]", "[2001:db8::ffff:0:0:1]", true);
	same_net(tcp, "[2001:db8::1]", "[2001:db8:0:1::1]", false);
	same_net(tcp, "[2001:db8:1::1]", "[2001:db8:1:0:8000::]", true);
	same_net(tcp, "[::ffff:192.0.2.1]", "[::ffff:192.0.2.2]", false);
	same_net(tcp, "[::1]", "[::ffff:192.0.2.2]", false);
	same_net(tcp, "[::1]", "127.0.0.1", false);
	check(!fab_addr_same_net(&none, &none));
	net_with_scope(tcp);
	check_eq(fab_addr_port(&none), 0);
	check(strcmp(fab_addr_format(&none, buf, sizeof(buf)), "none") == 0);
	check_eq(fab_addr_parse("192.0.2.1", tcp, 7, &addr, err, sizeof(err)), 0);
	check_eq(strlen(fab_addr_format(&addr, buf, 5)), 4);
	return 0;
}
