/* SPDX-License-Identifier: BSD-3-Clause */
/* The plugin's parameters: what is taken, and that each mistake names its key and its value. */
#include <stdarg.h>

#include "unit.h"

#include "clock.h"
#include "plugin-conf.h"
#include "rtrs-msg.h"

/* nbdkit's side. */
void __attribute__((format(printf, 1, 2))) nbdkit_error(const char *fs, ...);
void nbdkit_debug(const char *fs, ...);

static char error[512];

void nbdkit_error(const char *fs, ...)
{
	va_list ap;

	va_start(ap, fs);
	vsnprintf(error, sizeof(error), fs, ap);
	va_end(ap);
}

void nbdkit_debug(const char *fs, ...)
{
}

static struct plugin_conf conf;

static void setup(void)
{
	plugin_conf_init(&conf);
	error[0] = '\0';
}

TestSuite(plugin_conf, .init = setup);

Test(plugin_conf, defaults)
{
	cr_assert_eq(plugin_conf_set(&conf, "server", "127.0.0.1"), 0);
	cr_assert_eq(plugin_conf_complete(&conf), 0);
	cr_assert_eq(fab_addr_port(&conf.paths[0].dst), RTRS_PORT);
	cr_assert_eq(conf.io_timeout_ms, 120000u);
	cr_assert_eq(conf.mode, RNBD_ACCESS_RW);
	cr_assert(conf.mode_auto);
	cr_assert(conf.connections >= 1 && conf.connections <= 8);
	cr_assert_eq(conf.registration, CLT_REG_AUTO);
	cr_assert_null(conf.export_name);
}

Test(plugin_conf, values)
{
	cr_assert_eq(plugin_conf_set(&conf, "server", "127.0.0.1:7"), 0);
	cr_assert_eq(plugin_conf_set(&conf, "export", "disk0"), 0);
	cr_assert_eq(plugin_conf_set(&conf, "transport", "tcp"), 0);
	cr_assert_eq(plugin_conf_set(&conf, "sessname", "s"), 0);
	cr_assert_eq(plugin_conf_set(&conf, "connections", "4095"), 0);
	cr_assert_eq(plugin_conf_set(&conf, "mode", "migration"), 0);
	cr_assert_eq(plugin_conf_set(&conf, "io-timeout", "forever"), 0);
	cr_assert_eq(plugin_conf_set(&conf, "poll", "50"), 0);
	cr_assert_null(conf.control);
	cr_assert_eq(plugin_conf_set(&conf, "control", "/run/x"), 0);
	cr_assert_str_eq(conf.control, "/run/x");
	cr_assert_eq(plugin_conf_set(&conf, "registration", "window"), 0);
	cr_assert_eq(conf.registration, CLT_REG_WINDOW);
	cr_assert_eq(conf.poll_us, 50);
	cr_assert_eq(plugin_conf_complete(&conf), 0);
	cr_assert_eq(fab_addr_port(&conf.paths[0].dst), 7);
	cr_assert_str_eq(conf.export_name, "disk0");
	cr_assert_str_eq(conf.sessname, "s");
	cr_assert_eq(conf.connections, 4095u);
	cr_assert_eq(conf.mode, RNBD_ACCESS_MIGRATION);
	cr_assert(!conf.mode_auto);
	cr_assert_eq(conf.io_timeout_ms, CLOCK_NEVER);
	setup();
	cr_assert_eq(plugin_conf_set(&conf, "control", "none"), 0);
	cr_assert_eq(plugin_conf_set(&conf, "registration", "static"), 0);
	cr_assert_eq(conf.registration, CLT_REG_STATIC);
	cr_assert_eq(plugin_conf_set(&conf, "mode", "ro"), 0);
	cr_assert_eq(conf.mode, RNBD_ACCESS_RO);
	cr_assert(!conf.mode_auto);
	setup();
	cr_assert_eq(plugin_conf_set(&conf, "registration", "auto"), 0);
	cr_assert_eq(conf.registration, CLT_REG_AUTO);
	cr_assert_eq(plugin_conf_set(&conf, "mode", "auto"), 0);
	cr_assert_eq(conf.mode, RNBD_ACCESS_RW);
	cr_assert(conf.mode_auto);
}

Test(plugin_conf, transports)
{
	static const struct { const char *transport, *server; bool automatic; const char *provider; } cases[] = {
		{ "auto", "127.0.0.1", true, "tcp" }, { "tcp", "127.0.0.1", false, "tcp" },
		{ "auto", "unix:/a", false, "tcp" }, { "tcp", "unix:/a", false, "tcp" },
		{ "auto", "tcp://127.0.0.1", false, "tcp" }, { "tcp", "tcp://127.0.0.1", false, "tcp" },
#ifdef HAVE_RDMA
		{ "rdma", "127.0.0.1", false, "rdma" }, { "auto", "rdma://127.0.0.1", false, "rdma" },
		{ "rdma", "rdma://127.0.0.1", false, "rdma" },
#endif
	};

	for_each_case(c, cases) {
		setup();
		cr_assert_eq(plugin_conf_set(&conf, "transport", c->transport), 0);
		cr_assert_eq(plugin_conf_set(&conf, "server", c->server), 0);
		cr_assert_eq(plugin_conf_complete(&conf), 0);
		cr_assert_eq(conf.automatic, c->automatic, "%s %s", c->transport, c->server);
		cr_assert_str_eq(fab_provider_name(conf.paths[0].dst.provider), c->provider);
	}
}

/* server= is the first path; SRC stands in front of DST, behind the transport. */
Test(plugin_conf, paths)
{
	static const struct { const char *text, *src, *dst; } cases[] = {
		{ "127.0.0.1", NULL, "127.0.0.1:1234" }, { "127.0.0.2:7", NULL, "127.0.0.2:7" },
		{ "127.0.0.9@127.0.0.2", "127.0.0.9:0", "127.0.0.2:1234" },
		{ "127.0.0.9,127.0.0.2:7", "127.0.0.9:0", "127.0.0.2:7" },
		{ "tcp://127.0.0.8@127.0.0.2", "127.0.0.8:0", "127.0.0.2:1234" },
		{ "[::1]@[::1]:7", "[::1]:0", "[::1]:7" },
		{ "unix:/a@b,c:7", NULL, "unix:/a@b,c:7" },
	};
	char text[FAB_ADDR_STRLEN];
	unsigned n = 0;

	for_each_case(c, cases)
		cr_assert_eq(plugin_conf_set(&conf, n++ ? "path" : "server", c->text), 0);
	cr_assert_eq(plugin_conf_complete(&conf), 0, "%s", error);
	cr_assert_eq(conf.npaths, n);
	n = 0;
	for_each_case(c, cases) {
		cr_assert_str_eq(fab_addr_format(&conf.paths[n].dst, text, sizeof(text)), c->dst);
		cr_assert_eq(!c->src, !conf.paths[n].src.len);
		if (c->src)
			cr_assert_str_eq(fab_addr_format(&conf.paths[n].src, text, sizeof(text)), c->src);
		n++;
	}
	setup();
	cr_assert_eq(plugin_conf_set(&conf, "path", "127.0.0.1"), 0);
	cr_assert_eq(plugin_conf_complete(&conf), 0, "one path without server=: %s", error);
	for (n = 1; n < CLT_PATHS_MAX; n++)
		cr_assert_eq(plugin_conf_set(&conf, "path", "127.0.0.1"), 0);
	cr_assert_eq(plugin_conf_set(&conf, "path", "127.0.0.77"), -1);
	cr_assert(strstr(error, "127.0.0.77") && strstr(error, "16"), "%s", error);
}

/* In whatever order they come; a part of a name is not the name. */
Test(plugin_conf, contradicting_transports)
{
	static const struct { const char *transport, *server; } cases[] = {
		{ "tcp", "rdma://127.0.0.1" }, { "tcp", "tc://127.0.0.1" }, { "tcp", "tcpx://127.0.0.1" },
		{ "tcp", "://127.0.0.1" }, { "tcp", "rdma://no.such.host.invalid" },
#ifdef HAVE_RDMA
		{ "rdma", "tcp://127.0.0.1" }, { "rdma", "unix:/a" },
#endif
	};

	for_each_case(c, cases) {
		for (unsigned order = 0; order < 2; order++) {
			const char *keys[] = { "transport", "server" };
			const char *values[] = { c->transport, c->server };
			char both[2][64];

			setup();
			for (unsigned i = 0; i < 2; i++) {
				snprintf(both[i], sizeof(both[i]), "%s=%s", keys[i], values[i]);
				cr_assert_eq(plugin_conf_set(&conf, keys[i ^ order], values[i ^ order]), 0);
			}
			cr_assert_eq(plugin_conf_complete(&conf), -1, "%s %s", both[0], both[1]);
			cr_assert(strstr(error, both[0]) && strstr(error, both[1]), "%s", error);
		}
	}
}

Test(plugin_conf, mistakes)
{
	static const struct { const char *key, *value; } cases[] = {
		{ "server", "" }, { "export", "" }, { "transport", "x" },
		{ "sessname", "a/b" }, { "sessname", "a.b" }, { "sessname", "" },
		{ "connections", "0" }, { "connections", "4096" }, { "connections", "-1" },
		{ "connections", "1x" }, { "connections", "" }, { "connections", " 1" },
		{ "connections", "99999999999999999999" }, { "mode", "RW" }, { "mode", "" },
		{ "registration", "windows" }, { "registration", "" }, { "control", "" }, { "control", "here" }, { "poll", "-1" }, { "poll", "1000001" }, { "poll", "" },
		{ "io-timeout", "-1" }, { "io-timeout", "4294967296" }, { "io-timeout", "1s" },
		{ "connect-timeout", "soon" }, { "connect-timeout", "" }, { "path", "" }, { "policy", "fastest" },
		{ "policy", "" }, { "heartbeat", "99" }, { "heartbeat", "60001" }, { "heartbeat-misses", "0" },
		{ "heartbeat-misses", "101" }, { "max-reconnect-attempts", "-2" },
		{ "max-reconnect-attempts", "10000" }, { "max-reconnect-attempts", "" },
	};

	for_each_case(c, cases) {
		setup();
		cr_assert_eq(plugin_conf_set(&conf, c->key, c->value), -1, "%s=%s", c->key, c->value);
		cr_assert(strstr(error, c->key), "%s=%s: %s", c->key, c->value, error);
		cr_assert(strstr(error, c->value), "%s=%s: %s", c->key, c->value, error);
	}
	setup();
	cr_assert_eq(plugin_conf_set(&conf, "colour", "red"), -1);
	cr_assert(strstr(error, "colour"));
	cr_assert_null(strstr(error, "did you mean"), "%s", error);
	setup();
	cr_assert_eq(plugin_conf_complete(&conf), -1);
	cr_assert(strstr(error, "server="));
	cr_assert_eq(plugin_conf_set(&conf, "server", "a"), 0);
	cr_assert_eq(plugin_conf_set(&conf, "server", "b"), -1);
	cr_assert(strstr(error, "twice"));
}

/* What somebody means who writes something else. */
Test(plugin_conf, suggestions)
{
	static const struct { const char *key, *value, *want; } cases[] = {
		{ "exprot", "disk", "did you mean export=?" }, { "io_timeout", "5", "did you mean io-timeout=?" },
		{ "connection", "5", "did you mean connections=?" }, { "Mode", "ro", "did you mean mode=?" },
		{ "io-timeout", "never", "io-timeout=forever" }, { "io-timeout", "infinite", "io-timeout=forever" },
		{ "io-timeout", "-1", "io-timeout=forever" }, { "io-timeout", "", "io-timeout=forever" },
		{ "mode", "auot", "auto, rw, ro or migration" },
	};

	for_each_case(c, cases) {
		setup();
		cr_assert_eq(plugin_conf_set(&conf, c->key, c->value), -1, "%s=%s", c->key, c->value);
		cr_assert(strstr(error, c->key) && strstr(error, c->want), "%s=%s: %s", c->key, c->value, error);
	}
}

Test(plugin_conf, session_names)
{
	char a[RTRS_NAME_MAX], b[RTRS_NAME_MAX];

	plugin_conf_sessname(&conf, a);
	plugin_conf_sessname(&conf, b);
	cr_assert(rtrs_sessname_ok(a));
	cr_assert(strcmp(a, b), "two made-up names are the same: %s", a);
	cr_assert_eq(plugin_conf_set(&conf, "sessname", "mine"), 0);
	plugin_conf_sessname(&conf, a);
	cr_assert_str_eq(a, "mine");
}

Test(plugin_conf, path_of_numbers)
{
	static const struct {
		const char *text;
		int r;
	} cases[] = {
		{ "192.0.2.1", 0 }, { "192.0.2.1:99", 0 }, { "[::1]:99", 0 }, { "tcp://192.0.2.1", 0 },
		{ "192.0.2.9@192.0.2.1:99", 0 }, { "tcp://192.0.2.9@192.0.2.1", 0 }, { "[fe80::1%1]", 0 },
		{ "localhost", -1 }, { "localhost:99", -1 }, { "localhost@192.0.2.1", -1 },
		{ "192.0.2.1@localhost", -1 }, { "tcp://localhost", -1 }, { "[localhost]", -1 },
		{ "[face]", -1 }, { "", -1 },
	};

	for_each_case(c, cases) {
		struct clt_sess_addr addr;
		char err[256];

		cr_assert_eq(plugin_conf_path(c->text, fab_provider_find("tcp"), true, &addr, err, sizeof(err)),
			     c->r, "%s", c->text);
		cr_assert(c->r || fab_addr_port(&addr.dst) == RTRS_PORT || fab_addr_port(&addr.dst) == 99);
	}
}

/* Of a text that was cut off another address could be read. */
Test(plugin_conf, path_is_read_to_its_end)
{
	static const struct {
		const char *begin, *end;
		int len, r;
		const char *want;
	} cases[] = {
		{ "192.0.2.1:", "99", PLUGIN_CONF_PATH_MAX, 0, "" },
		{ "192.0.2.1:", "99", PLUGIN_CONF_PATH_MAX + 1, -1, "at most 1023 bytes" },
		{ "192.0.2.1:", "99x", 512, -1, "expected addresses" },
		{ "192.0.2.9:", "x@192.0.2.1", 266, -1, "expected addresses" },
		{ "192.0.2.9:", "@192.0.2.1", PLUGIN_CONF_PATH_MAX, 0, "" },
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
		cr_assert_eq(plugin_conf_path(text, fab_provider_find("tcp"), true, &addr, err, sizeof(err)), c->r,
			     "%s: %s", text, err);
		cr_assert(strstr(err, c->want), "%s: %s", text, err);
	}
}

/* One of both would be ignored; paths alone are a list. */
Test(plugin_conf, given_twice)
{
	for (unsigned i = 0; plugin_conf_keys[i]; i++) {
		const char *key = plugin_conf_keys[i];
		char want[128];

		plugin_conf_init(&conf);
		error[0] = '\0';
		if (plugin_conf_set(&conf, key, "auto"))
			plugin_conf_set(&conf, key, "1");
		error[0] = '\0';
		if (!strcmp(key, "path")) {
			cr_assert_eq(plugin_conf_set(&conf, key, "b"), 0);
			continue;
		}
		cr_assert_eq(plugin_conf_set(&conf, key, "b"), -1, "%s", key);
		snprintf(want, sizeof(want), "%s=b: given twice, the first is %s=", key, key);
		cr_assert(strstr(error, want), "%s: %s", key, error);
	}
}

/* What users of nbdkit's plugin nbd type. */
Test(plugin_conf, parameters_of_nbd)
{
	cr_assert_eq(plugin_conf_set(&conf, "port", "7"), -1);
	cr_assert_str_eq(error, "unknown parameter 'port': write server=HOST:7");
	cr_assert_eq(plugin_conf_set(&conf, "hostname", "h"), -1);
	cr_assert_str_eq(error, "unknown parameter 'hostname': write server=h");
	cr_assert_eq(plugin_conf_set(&conf, "socket", "/s"), -1);
	cr_assert_str_eq(error, "unknown parameter 'socket': write server=unix:/s");
}
