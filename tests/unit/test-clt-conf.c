/* SPDX-License-Identifier: BSD-3-Clause */
/* The plugin's parameters: what is taken, and that each mistake names its key and its value. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "opt-rules.h"
#include "unit.h"

#include "clock.h"
#include "clt-conf.h"
#include "rtrs-msg.h"
#include "unix-sock.h"

static const struct clt_front front = { .name = "front", .program = "the-front-end",
					.help = "front --help" };
static char *error;
static struct clt_conf conf;

static void setup(void)
{
	clt_conf_fini(&conf);
	clt_conf_init(&conf, &front);
	free(error);
	error = strdup("");
}

static int set(const char *key, const char *value)
{
	free(error);
	error = NULL;
	return clt_conf_set(&conf, key, value, &error);
}

static int complete(void)
{
	free(error);
	error = NULL;
	return clt_conf_complete(&conf, &error);
}

static void teardown(void)
{
	clt_conf_fini(&conf);
	free(error);
	error = NULL;
}

TestSuite(clt_conf, .init = setup, .fini = teardown);

Test(clt_conf, table)
{
	opt_rules(&clt_conf_options, sizeof(struct clt_conf), "nbdkit-rtrs-plugin.pod");
}

Test(clt_conf, defaults)
{
	cr_assert_eq(set("server", "127.0.0.1"), 0);
	cr_assert_eq(complete(), 0);
	cr_assert_eq(fab_addr_port(&conf.paths[0].dst), RTRS_PORT);
	cr_assert_eq(conf.sess.io_timeout_ms, 120000u);
	cr_assert_eq(conf.mode, RNBD_ACCESS_RW);
	cr_assert(conf.mode_auto);
	cr_assert(conf.sess.connections >= 1 && conf.sess.connections <= 8);
	cr_assert_eq(conf.sess.path.registration, CLT_REG_AUTO);
	cr_assert_eq(conf.sess.path.digest, RTRS_DIGEST_NONE);
	cr_assert_null(conf.export_name);
}

Test(clt_conf, values)
{
	cr_assert_eq(set("server", "127.0.0.1:7"), 0);
	cr_assert_eq(set("export", "disk0"), 0);
	cr_assert_eq(set("transport", "tcp"), 0);
	cr_assert_eq(set("sessname", "s"), 0);
	cr_assert_eq(set("connections", "4095"), 0);
	cr_assert_eq(set("mode", "migration"), 0);
	cr_assert_eq(set("io-timeout", "forever"), 0);
	cr_assert_eq(set("poll", "50"), 0);
	cr_assert_null(conf.control);
	cr_assert_eq(set("control", "/run/x"), 0);
	cr_assert_str_eq(conf.control, "/run/x");
	cr_assert_null(conf.name);
	cr_assert_eq(set("name", "rack 7"), 0);
	cr_assert_str_eq(conf.name, "rack 7");
	cr_assert_eq(set("registration", "window"), 0);
	cr_assert_eq(conf.sess.path.registration, CLT_REG_WINDOW);
	cr_assert_eq(set("digest", "crc32c"), rtrs_digest_works() ? 0 : -EINVAL);
	cr_assert_eq(conf.sess.path.digest, RTRS_DIGEST_CRC32C);
	cr_assert_eq(conf.sess.poll_us, 50);
	cr_assert_eq(complete(), 0);
	cr_assert_eq(fab_addr_port(&conf.paths[0].dst), 7);
	cr_assert_str_eq(conf.export_name, "disk0");
	cr_assert_str_eq(conf.sessname, "s");
	cr_assert_eq(conf.sess.connections, 4095u);
	cr_assert_eq(conf.mode, RNBD_ACCESS_MIGRATION);
	cr_assert(!conf.mode_auto);
	cr_assert_eq(conf.sess.io_timeout_ms, CLOCK_NEVER);
	setup();
	cr_assert_eq(set("control", "none"), 0);
	cr_assert_eq(set("registration", "static"), 0);
	cr_assert_eq(conf.sess.path.registration, CLT_REG_STATIC);
	cr_assert_eq(set("mode", "ro"), 0);
	cr_assert_eq(conf.mode, RNBD_ACCESS_RO);
	cr_assert(!conf.mode_auto);
	setup();
	cr_assert_eq(set("registration", "auto"), 0);
	cr_assert_eq(conf.sess.path.registration, CLT_REG_AUTO);
	cr_assert_eq(set("mode", "auto"), 0);
	cr_assert_eq(conf.mode, RNBD_ACCESS_RW);
	cr_assert(conf.mode_auto);
}

Test(clt_conf, transports)
{
	static const struct {
		const char *transport, *server;
		bool automatic;
		const char *provider;
	} cases[] = {
		{ "auto", "127.0.0.1", true, "tcp" }, { "tcp", "127.0.0.1", false, "tcp" },
		{ "auto", "unix:/a", false, "tcp" }, { "tcp", "unix:/a", false, "tcp" },
		{ "auto", "tcp://127.0.0.1", false, "tcp" },
		{ "tcp", "tcp://127.0.0.1", false, "tcp" },
#ifdef HAVE_RDMA
		{ "rdma", "127.0.0.1", false, "rdma" },
		{ "auto", "rdma://127.0.0.1", false, "rdma" },
		{ "rdma", "rdma://127.0.0.1", false, "rdma" },
#endif
	};

	for_each_case(c, cases) {
		setup();
		cr_assert_eq(set("transport", c->transport), 0);
		cr_assert_eq(set("server", c->server), 0);
		cr_assert_eq(complete(), 0);
		cr_assert_eq(conf.automatic, c->automatic, "%s %s", c->transport, c->server);
		cr_assert_str_eq(fab_provider_name(conf.paths[0].dst.provider), c->provider);
	}
}

/* server= is the first path; SRC stands in front of DST, behind the transport. */
Test(clt_conf, paths)
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
		cr_assert_eq(set(n++ ? "path" : "server", c->text), 0);
	cr_assert_eq(complete(), 0, "%s", error);
	cr_assert_eq(conf.npaths, n);
	n = 0;
	for_each_case(c, cases) {
		cr_assert_str_eq(fab_addr_format(&conf.paths[n].dst, text, sizeof(text)), c->dst);
		cr_assert_eq(!c->src, !conf.paths[n].src.len);
		if (c->src)
			cr_assert_str_eq(fab_addr_format(&conf.paths[n].src, text, sizeof(text)),
					 c->src);
		n++;
	}
	setup();
	cr_assert_eq(set("path", "127.0.0.1"), 0);
	cr_assert_eq(complete(), 0, "one path without server=: %s", error);
	/* One below the limit, the limit, one beyond, and four times as many. */
	for (unsigned many = CLT_PATHS_MAX - 1; many <= 4 * CLT_PATHS_MAX;
	     many += many > CLT_PATHS_MAX ? 3 * CLT_PATHS_MAX - 1 : 1) {
		static char texts[4 * CLT_PATHS_MAX][32];
		int r = 0;

		setup();
		for (n = 0; n < many && r == 0; n++) {
			snprintf(texts[n], sizeof(texts[n]), "127.0.0.%u", n + 1);
			r = set("path", texts[n]);
		}
		if (r == 0)
			r = complete();
		cr_assert_eq(r, many > CLT_PATHS_MAX ? -EINVAL : 0, "%u: %s", many, error);
		if (r) {
			cr_assert(strstr(error, "path=127.0.0."), "%s", error);
			cr_assert(strstr(error, "a session has at most 16 paths"), "%s", error);
		}
	}
}

/* In whatever order they come; a part of a name is not the name. */
Test(clt_conf, contradicting_transports)
{
	static const struct { const char *transport, *server; } cases[] = {
		{ "tcp", "rdma://127.0.0.1" }, { "tcp", "tc://127.0.0.1" },
		{ "tcp", "tcpx://127.0.0.1" },
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
				cr_assert_eq(set(keys[i ^ order], values[i ^ order]), 0);
			}
			cr_assert_eq(complete(), -EINVAL, "%s %s", both[0], both[1]);
			cr_assert(strstr(error, both[0]) && strstr(error, both[1]), "%s", error);
		}
	}
}

Test(clt_conf, mistakes)
{
	static const struct { const char *key, *value; } cases[] = {
		{ "server", "" }, { "export", "" }, { "transport", "x" },
		{ "sessname", "a/b" }, { "sessname", "a.b" }, { "sessname", "" }, { "name", "" },
		{ "name", "a\tb" }, { "name", "\xff" },
		{ "connections", "0" }, { "connections", "4096" }, { "connections", "-1" },
		{ "connections", "1x" }, { "connections", "" }, { "connections", " 1" },
		{ "connections", "99999999999999999999" }, { "mode", "RW" }, { "mode", "" },
		{ "registration", "windows" }, { "registration", "" }, { "control", "" },
		{ "digest", "crc32" }, { "digest", "" },
		{ "control", "here" }, { "poll", "-1" }, { "poll", "1000001" }, { "poll", "" },
		{ "io-timeout", "-1" }, { "io-timeout", "4294967296" }, { "io-timeout", "1s" },
		{ "connect-timeout", "soon" }, { "connect-timeout", "" }, { "path", "" },
		{ "policy", "fastest" },
		{ "policy", "" }, { "heartbeat", "99" }, { "heartbeat", "60001" },
		{ "heartbeat-misses", "0" },
		{ "heartbeat-misses", "101" }, { "max-reconnect-attempts", "-2" },
		{ "max-reconnect-attempts", "10000" }, { "max-reconnect-attempts", "" },
	};

	for_each_case(c, cases) {
		setup();
		cr_assert_eq(set(c->key, c->value), -EINVAL, "%s=%s", c->key, c->value);
		cr_assert(strstr(error, c->key), "%s=%s: %s", c->key, c->value, error);
		cr_assert(strstr(error, c->value), "%s=%s: %s", c->key, c->value, error);
	}
	setup();
	cr_assert_eq(set("colour", "red"), -EINVAL);
	cr_assert(strstr(error, "colour"));
	cr_assert_null(strstr(error, "did you mean"), "%s", error);
	setup();
	cr_assert_eq(complete(), -EINVAL);
	cr_assert(strstr(error, "server="));
	cr_assert_eq(set("server", "a"), 0);
	cr_assert_eq(set("server", "b"), -EINVAL);
	cr_assert(strstr(error, "twice"));
}

/* What somebody means who writes something else. */
Test(clt_conf, suggestions)
{
	static const struct { const char *key, *value, *want; } cases[] = {
		{ "exprot", "disk", "did you mean export=?" },
		{ "io_timeout", "5", "did you mean io-timeout=?" },
		{ "connection", "5", "did you mean connections=?" },
		{ "Mode", "ro", "did you mean mode=?" },
		{ "io-timeout", "never", "io-timeout=forever" },
		{ "io-timeout", "infinite", "io-timeout=forever" },
		{ "io-timeout", "-1", "io-timeout=forever" },
		{ "io-timeout", "", "io-timeout=forever" },
		{ "mode", "auot", "auto, ro, rw or migration" },
	};

	for_each_case(c, cases) {
		setup();
		cr_assert_eq(set(c->key, c->value), -EINVAL, "%s=%s", c->key, c->value);
		cr_assert(strstr(error, c->key) && strstr(error, c->want), "%s=%s: %s", c->key,
			  c->value, error);
	}
}

Test(clt_conf, session_names)
{
	char a[RTRS_NAME_MAX], b[RTRS_NAME_MAX];

	clt_conf_sessname(&conf, a);
	clt_conf_sessname(&conf, b);
	cr_assert(rtrs_sessname_ok(a));
	cr_assert(strcmp(a, b), "two made-up names are the same: %s", a);
	cr_assert_eq(set("sessname", "mine"), 0);
	clt_conf_sessname(&conf, a);
	cr_assert_str_eq(a, "mine");
}

Test(clt_conf, names_have_a_length)
{
	static const unsigned lens[] = { RUNDIR_NAME_MAX - 2, RUNDIR_NAME_MAX - 1, RUNDIR_NAME_MAX,
					 4 * RUNDIR_NAME_MAX };
	static char name[4 * RUNDIR_NAME_MAX + 1];

	for_each_case(len, lens) {
		clt_conf_fini(&conf);
		clt_conf_init(&conf, &front);
		memset(name, 'n', sizeof(name));
		name[*len] = '\0';
		cr_assert_eq(set("name", name), *len < RUNDIR_NAME_MAX ? 0 : -EINVAL, "%u", *len);
		if (*len < RUNDIR_NAME_MAX)
			cr_assert_str_eq(conf.name, name);
		else
			cr_assert(strstr(error, "expected 1 to 255 bytes"), "%s", error);
	}
}

/* One of both would be ignored; paths alone are a list. */
Test(clt_conf, given_twice)
{
	for (unsigned i = 0; i < clt_conf_options.n; i++) {
		const char *key = clt_conf_options.rows[i].name;
		char want[128];

		clt_conf_fini(&conf);
		clt_conf_init(&conf, &front);
		if (set(key, "auto"))
			set(key, "1");
		if (!strcmp(key, "path")) {
			cr_assert_eq(set(key, "b"), 0);
			continue;
		}
		cr_assert_eq(set(key, "b"), -EINVAL, "%s", key);
		snprintf(want, sizeof(want), "%s=b: given twice, the first is %s=", key, key);
		cr_assert(strstr(error, want), "%s: %s", key, error);
	}
}

/* ---- config= ---- */

static char file[64];

/* Write @text to the file of config=. */
static void write_file(const char *text)
{
	FILE *f;

	if (!*file) {
		strcpy(file, "/tmp/test-clt-conf.XXXXXX");
		close(mkstemp(file));
	}
	f = fopen(file, "w");
	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
}

/* Write @text to the file @name of the directory beside. */
static void write_beside(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s.d", file);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s.d/%s", file, name);
	f = fopen(path, "w");
	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
}

static void file_teardown(void)
{
	char command[256];

	clt_conf_fini(&conf);
	snprintf(command, sizeof(command), "rm -rf %s %s.d", file, file);
	cr_assert_eq(system(command), 0);
}

Test(clt_conf, file, .fini = file_teardown)
{
	write_file("server = 127.0.0.1:7\npath=127.0.0.2:8\n# comment\nexport = disk 1\n"
		   "mode = ro\nio-timeout = forever\nconnections=3\n");
	cr_assert_eq(set("config", file), 0);
	cr_assert_eq(complete(), 0, "%s", error);
	cr_assert_eq(conf.npaths, 2);
	cr_assert_eq(fab_addr_port(&conf.paths[1].dst), 8);
	cr_assert_str_eq(conf.export_name, "disk 1");
	cr_assert_eq(conf.mode, RNBD_ACCESS_RO);
	cr_assert_not(conf.mode_auto);
	cr_assert_eq(conf.sess.io_timeout_ms, CLOCK_NEVER);
	cr_assert_eq(conf.sess.connections, 3);
}

/* Whether config= stands first or last, the command line wins. */
Test(clt_conf, file_and_command_line, .fini = file_teardown)
{
	write_file("server = 127.0.0.1:7\npath=127.0.0.2:8\nexport = disk1\nmode = ro\npoll=7\n");
	for (unsigned last = 0; last < 2; last++) {
		setup();
		cr_assert(last || !set("config", file));
		cr_assert_eq(set("server", "127.0.0.3:9"), 0);
		cr_assert_eq(set("mode", "auto"), 0);
		cr_assert(!last || !set("config", file));
		cr_assert_eq(complete(), 0, "%s", error);
		cr_assert_eq(conf.npaths, 1);
		cr_assert_eq(fab_addr_port(&conf.paths[0].dst), 9);
		cr_assert_str_eq(conf.server, "127.0.0.3:9");
		cr_assert_str_eq(conf.export_name, "disk1");
		cr_assert(conf.mode_auto);
		cr_assert_eq(conf.mode, RNBD_ACCESS_RW);
		cr_assert_eq(conf.sess.poll_us, 7);
		clt_conf_fini(&conf);
	}
}

/* All paths are paths; of another parameter the last file counts, and the command line wins. */
Test(clt_conf, files_beside, .fini = file_teardown)
{
	write_file("server = 127.0.0.1:7\nexport = disk1\nmode = ro\npoll = 7\nname = a\n");
	write_beside("b.conf", "poll = 9\npath = 127.0.0.3:7\nname = c\n");
	write_beside("a.conf", "poll = 8\nserver = 127.0.0.2:7\nmode = rw\n");
	write_beside("no", "poll = x\n");
	write_beside(".c.conf", "poll = x\n");
	cr_assert_eq(set("config", file), 0);
	cr_assert_eq(set("name", "b"), 0);
	cr_assert_eq(complete(), 0, "%s", error);
	cr_assert_eq(conf.npaths, 3);
	for (unsigned i = 0; i < 3; i++) {
		char text[FAB_ADDR_STRLEN], want[32];

		snprintf(want, sizeof(want), "127.0.0.%u:7", i + 1);
		cr_assert_str_eq(fab_addr_format(&conf.paths[i].dst, text, sizeof(text)), want);
	}
	cr_assert_str_eq(conf.server, "127.0.0.1:7");
	cr_assert_str_eq(conf.export_name, "disk1");
	cr_assert_eq(conf.mode, RNBD_ACCESS_RW);
	cr_assert_eq(conf.sess.poll_us, 9);
	cr_assert_str_eq(conf.name, "b");
	clt_conf_fini(&conf);

	setup();
	cr_assert_eq(set("config", file), 0);
	cr_assert_eq(set("server", "127.0.0.9:7"), 0);
	cr_assert_eq(complete(), 0, "%s", error);
	cr_assert_eq(conf.npaths, 1);
	clt_conf_fini(&conf);

	/* Mistakes of all files. */
	setup();
	write_beside("a.conf", "poll = x\n");
	write_beside("b.conf", "mode = x\n");
	cr_assert_eq(set("config", file), 0);
	cr_assert_eq(complete(), -EINVAL);
	cr_assert(strstr(error, ".d/a.conf:1: poll 'x'") && strstr(error, ".d/b.conf:1: mode 'x'"),
		  "%s", error);
}

/* A path in two files is one path; in one file it is a mistake. */
Test(clt_conf, paths_of_two_files, .fini = file_teardown)
{
	char text[64 * CLT_CONF_PATHS_MAX] = "server = 127.0.0.1\n";

	write_file("server = 127.0.0.1:7\n");
	write_beside("a.conf", "path = tcp://127.0.0.1:7\npath = tcp://127.0.0.2:7\n");
	write_beside("b.conf", "path = 127.0.0.2:7\npath = 127.0.0.3:7\n");
	cr_assert_eq(set("config", file), 0);
	cr_assert_eq(complete(), 0, "%s", error);
	cr_assert_eq(conf.npaths, 3);
	cr_assert_str_eq(conf.path_texts[1], "tcp://127.0.0.2:7");
	cr_assert_str_eq(conf.path_texts[2], "127.0.0.3:7");
	cr_assert_str_eq(strrchr(conf.path_wheres[2], '/'), "/b.conf:2");
	clt_conf_fini(&conf);

	setup();
	write_beside("b.conf", "path = 127.0.0.3:7\npath = tcp://127.0.0.3:7\n");
	cr_assert_eq(set("config", file), 0);
	cr_assert_eq(complete(), -EINVAL);
	cr_assert(strstr(error, "are one path: give each path once"), "%s", error);
	clt_conf_fini(&conf);

	/* 16 paths, each in two files; the 17th. */
	for (unsigned i = 2; i <= CLT_PATHS_MAX; i++)
		sprintf(text + strlen(text), "path = 127.0.0.%u\n", i);
	write_file(text);
	write_beside("a.conf", text);
	write_beside("b.conf", "");
	setup();
	cr_assert_eq(set("config", file), 0);
	cr_assert_eq(complete(), 0, "%s", error);
	cr_assert_eq(conf.npaths, CLT_PATHS_MAX);
	clt_conf_fini(&conf);
	setup();
	strcpy(strstr(text, "path = 127.0.0.2\n"), "path = 127.0.0.17\n");
	write_beside("a.conf", text);
	cr_assert_eq(set("config", file), 0);
	cr_assert_eq(complete(), -EINVAL);
	cr_assert_str_eq(error + strlen(file), ".d/a.conf:2: path '127.0.0.17': a session has at "
			 "most 16 paths, those of all files together");
}

Test(clt_conf, file_mistakes, .fini = file_teardown)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "server = a\nserver = b\n", ":2: 'server' is given twice: first in line 1 "
		  "(another address of this server is a path)" },
		{ "server = a\ntimeout = 5\n", ":2: 'timeout' is no option of this file (did you "
		  "mean io-timeout?)" },
		{ "host = a\n", ":1: 'host' is no option of this file (did you mean server?)" },
		{ "exprt = a\n",
		  ":1: 'exprt' is no option of this file (did you mean export?)" },
		{ "config = x\n",
		  ":1: 'config' cannot stand in a file: a file cannot name another file" },
		{ "mode = rx\n", ":1: mode 'rx': expected auto, ro, rw or migration" },
		{ "[server]\n",
		  ":1: [server]: this file has no sections: expected only lines NAME = VALUE" },
		{ "export = a\n", "server= is missing: give the address of an rtrs-server, "
		  "HOST[:PORT]" },
	};

	for_each_case(c, cases) {
		setup();
		write_file(c->text);
		cr_assert_eq(set("config", file), 0);
		cr_assert_eq(complete(), -EINVAL);
		cr_assert_str_eq(error + (*c->want == ':' ? strlen(file) : 0), c->want);
		clt_conf_fini(&conf);
	}
	setup();
	cr_assert_eq(set("config", "/nowhere/at-all"), 0);
	cr_assert_eq(complete(), -EINVAL);
	cr_assert_str_eq(error, "/nowhere/at-all: No such file or directory: create it; "
			 "rtrs-guide(7) has examples");
}
