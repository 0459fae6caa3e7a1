/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line: defaults, every option, every mistake word by word; --allow; an
 * export's list of rules, its priority, and both on its line. */
#include <config.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <unistd.h>

#include "conf.h"
#include "export-spec.h"
#include "process.h"
#include "unix-sock.h"
#include <sys/sysinfo.h>

#include "opt-rules.h"
#include "unit.h"

static char path[64], spec[80];

static void setup(void)
{
	int fd;

	strcpy(path, "/tmp/test-conf.XXXXXX");
	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, 4096), 0);
	close(fd);
	snprintf(spec, sizeof(spec), "disk=%s", path);
}

static void teardown(void)
{
	unlink(path);
}

TestSuite(conf, .init = setup, .fini = teardown);

/* conf_parse() with the mistakes in @err, without the last end of line. */
static enum opt_result parse_words(struct srv_conf *conf, int argc, char **argv, char *err,
				   size_t errlen)
{
	FILE *errors = fmemopen(err, errlen, "w");
	enum opt_result result;

	err[0] = '\0';
	result = conf_parse(conf, CONF_START, argc, argv, errors);
	fclose(errors);
	err[strlen(err) - (*err && err[strlen(err) - 1] == '\n')] = '\0';
	return result;
}

/* Parse @args, split at blanks, with an export behind them if @with_export. */
static enum opt_result parse(struct srv_conf *conf, const char *args, bool with_export, char *err,
			      size_t errlen)
{
	static char copy[512];
	char *argv[64] = { (char *)"rtrs-server" }, *save, *word;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", args);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	cr_assert_lt((size_t)argc + 1, ARRAY_SIZE(argv));
	if (with_export)
		argv[argc++] = spec;
	argv[argc] = NULL;
	return parse_words(conf, argc, argv, err, errlen);
}

static const char *line_of(const struct conf_export *ex)
{
	static char text[256];
	char *line = export_line_text(&ex->spec);

	snprintf(text, sizeof(text), "%s", line);
	free(line);
	return text;
}

static void parse_ok(struct srv_conf *conf, const char *args)
{
	char err[512];

	cr_assert_eq(parse(conf, args, true, err, sizeof(err)), OPT_RUN, "%s: %s", args, err);
}

Test(conf, table) { opt_rules(&conf_options, sizeof(struct srv_conf), "rtrs-server.pod"); }

Test(conf, defaults)
{
	struct srv_conf conf;
	char addr[FAB_ADDR_STRLEN];

	parse_ok(&conf, "");
	cr_assert(conf.listeners[0].first && !conf.listeners[1].first);
	cr_assert_eq(conf.nlisteners, 2);
	cr_assert_str_eq(fab_addr_format(&conf.listeners[0].addr, addr, sizeof(addr)),
			 "127.0.0.1:1234");
	cr_assert_str_eq(fab_addr_format(&conf.listeners[1].addr, addr, sizeof(addr)),
			 "[::1]:1234");
	cr_assert_eq(conf.nexports, 1);
	cr_assert_str_eq(line_of(conf.exports[0]), spec);
	cr_assert_eq(conf_export_find(&conf, "disk"), conf.exports[0]);
	cr_assert_eq(conf.invalidate, SRV_INVALIDATE_AUTO);
	cr_assert_eq(conf.nallow, 0);
	cr_assert_eq(conf.queue_depth, 128);
	cr_assert_eq(conf.max_io_size, 131072);
	cr_assert_eq(conf.max_cons, CONF_MAX_CONS);
	cr_assert_eq(conf_host_cons(&conf), 6144);
	cr_assert_eq(conf.max_memory, MIN(machine()->memory / 2, (uint64_t)CONF_MAX_MEMORY));
	cr_assert(conf.threads == 1 ||
		  (conf.threads <= 4 && 2 * conf.threads <= (unsigned)get_nprocs()));
	cr_assert_eq(conf.hb_interval_ms, 0);	/* each transport has its own */
	cr_assert_eq(conf.hb_missed_max, 0);
	cr_assert_eq(conf.ready_fd, -1);
	cr_assert_eq(conf.log_level, LOG_LEVEL_INFO);
	conf_fini(&conf);
}

Test(conf, options)
{
	struct srv_conf conf;

	parse_ok(&conf, "--listen tcp://127.0.0.1:0 --listen=tcp://[::1]:99 --allow 10.0.0.0/8 "
		 "--allow ::1 --invalidate never --queue-depth 7 --max-io-size 1M --threads 3 "
		 "--max-sessions 4 --max-paths 5 --max-connections 6 --max-memory 3G "
		 "--setup-timeout 6 --heartbeat 100 --heartbeat-misses 2 --lock-timeout 7 "
		 "--ready-fd 8 --log-level debug");
	cr_assert_eq(conf.nlisteners, 2);
	cr_assert(conf.listeners[1].first && !conf.listeners[1].one_of);
	cr_assert_eq(fab_addr_port(&conf.listeners[0].addr), 0);
	cr_assert_eq(fab_addr_port(&conf.listeners[1].addr), 99);
	cr_assert_eq(conf.nallow, 2);
	cr_assert_eq(conf.invalidate, SRV_INVALIDATE_NEVER);
	cr_assert_eq(conf.queue_depth, 7);
	cr_assert_eq(conf.max_io_size, 1u << 20);
	cr_assert_eq(conf.threads, 3);
	cr_assert_eq(conf.max_sessions, 4);
	cr_assert_eq(conf.max_paths, 5);
	cr_assert_eq(conf.max_cons, 6);
	cr_assert_eq(conf_host_cons(&conf), 5);
	cr_assert_eq(conf.max_memory, UINT64_C(3) << 30);
	cr_assert_eq(conf.setup_timeout_ms, 6000);
	cr_assert_eq(conf.lock_timeout_ms, 7000);
	cr_assert_eq(conf.hb_interval_ms, 100);
	cr_assert_eq(conf.hb_missed_max, 2);
	cr_assert_eq(conf.ready_fd, 8);
	cr_assert_eq(conf.log_level, LOG_LEVEL_DEBUG);
	conf_fini(&conf);
}

Test(conf, control_socket)
{
	struct srv_conf conf;
	char want[64];

	setenv("RUNTIME_DIRECTORY", "/run/a:/run/b", 1);
	snprintf(want, sizeof(want), "/run/a/server-%d.sock", getpid());
	parse_ok(&conf, "");
	cr_assert_str_eq(conf.control.path, want);
	cr_assert_not(conf.control.asked);
	conf_fini(&conf);
	parse_ok(&conf, "--control none");
	cr_assert_null(conf.control.path);
	conf_fini(&conf);
	parse_ok(&conf, "--control=/x/y");
	cr_assert_str_eq(conf.control.path, "/x/y");
	cr_assert(conf.control.asked);
	conf_fini(&conf);
}

/* The program that started the server has closed the descriptor by the time of a reload. */
Test(conf, purpose)
{
	char *again[] = { (char *)"rtrs-server", (char *)"--ready-fd=65535", spec, NULL };
	struct srv_conf conf;
	char err[256];

	parse_ok(&conf, "");
	cr_assert_eq(conf.purpose, CONF_START);
	conf_fini(&conf);
	parse_ok(&conf, "--check");
	cr_assert_eq(conf.purpose, CONF_CHECK);
	conf_fini(&conf);
	cr_assert_eq(parse_words(&conf, 3, again, err, sizeof(err)), OPT_FAILED);
	cr_assert_str_eq(err, "--ready-fd '65535': expected an open file descriptor");
	conf_fini(&conf);
	cr_assert_eq(conf_parse(&conf, CONF_RELOAD, 3, again, stderr), OPT_RUN);
	cr_assert_eq(conf.purpose, CONF_RELOAD);
	conf_fini(&conf);
}

/* The name for rtrsctl: as given, or that of the first export of the start. */
Test(conf, name)
{
	static const struct {
		const char *args, *name;
	} cases[] = {
		{ "", "disk" }, { "--name=rack7", "rack7" }, { "--name rack7 other=/x", "rack7" },
		{ "other=/x", "other" },
	};

	for_each_case(c, cases) {
		struct srv_conf conf;

		parse_ok(&conf, c->args);
		cr_assert_str_eq(conf.name, c->name, "%s", c->args);
		conf_del_export(&conf, conf.exports[0]->spec.name);
		cr_assert_str_eq(conf.name, c->name, "%s", c->args);
		conf_fini(&conf);
	}
}

Test(conf, mistakes)
{
	static const struct {
		const char *args;
		bool with_export;
		enum opt_result result;
		const char *line;
	} cases[] = {
		{ "", false, OPT_USAGE,
		  "nothing to export: expected NAME=PATH, or --config=FILE, or the file " CONF_FILE
		  ": see rtrs-server --help" },
		{ "--nonsense", true, OPT_USAGE,
		  "option '--nonsense' is unknown, ambiguous or takes no value: see rtrs-server "
		  "--help" },
		{ "--control=", true, OPT_USAGE, "--control '': expected a path, or none" },
		{ "--thread=2", true, OPT_RUN, "" },
		{ "--treads=2", true, OPT_USAGE,
		  "option '--treads=2' is unknown, ambiguous or takes "
		  "no value (did you mean --threads?): see rtrs-server --help" },
		{ "-threads 2", true, OPT_USAGE,
		  "option '-t' is unknown, ambiguous or takes no value "
		  "(did you mean --threads?): see rtrs-server --help" },
		{ "-x", true, OPT_USAGE, "option '-x' is unknown, ambiguous or takes no value: see "
		  "rtrs-server --help" },
		{ "--help=yes", true, OPT_USAGE,
		  "option '--help=yes' is unknown, ambiguous or takes no value: see rtrs-server "
		  "--help" },
		{ "--threads", false, OPT_USAGE,
		  "option '--threads' needs a value: see rtrs-server --help" },
		{ "--threads 0", true, OPT_USAGE,
		  "--threads '0': expected a number from 1 to 256" },
		{ "--threads -1", true, OPT_USAGE,
		  "--threads '-1': expected a number from 1 to 256" },
		{ "--threads 2x", true, OPT_USAGE,
		  "--threads '2x': expected a number from 1 to 256" },
		{ "--queue-depth 65536", true, OPT_USAGE,
		  "--queue-depth '65536': expected a number from 1 to 65535" },
		{ "--queue-depth 99999999999999999999999", true, OPT_USAGE,
		  "--queue-depth '99999999999999999999999': expected a number from 1 to 65535" },
		{ "--max-io-size 5000", true, OPT_USAGE,
		  "--max-io-size '5000': expected a multiple of 4K from 4K to 64M" },
		{ "--max-io-size 65M", true, OPT_USAGE,
		  "--max-io-size '65M': expected a multiple of 4K from 4K to 64M" },
		{ "--max-io-size 4KB", true, OPT_USAGE,
		  "--max-io-size '4KB': expected a multiple of 4K from 4K to 64M" },
		{ "--queue-depth 9 --max-io-size 16M", true, OPT_USAGE, "--queue-depth 9 and "
		  "--max-io-size 16777216 do not fit together: "
		  "with that size the depth is at most 8" },
		{ "--queue-depth 8 --max-io-size 16M", true, OPT_RUN, "" },
		{ "--listen [::1]:9 --listen tcp://[::1]:9", true, OPT_USAGE,
		  "--listen 'tcp://[::1]:9': this address is given twice" },
		{ "--listen [::1]:0 --listen [::1]:0", true, OPT_RUN, "" },
		{ "--listen [::1]:0,auth=none --listen [::1]:0,auth=none", true, OPT_RUN, "" },
		{ "--listen [::1]:0 --listen [::1]:0,auth=none", true, OPT_USAGE,
		  "--listen '[::1]:0,auth=none': another listener with port 0 at this address has "
		  "another auth=: expected the same, or a port" },
		{ "--invalidate sometimes", true, OPT_USAGE,
		  "--invalidate 'sometimes': expected auto, always, copy or never" },
		{ "--heartbeat 99", true, OPT_USAGE,
		  "--heartbeat '99': expected a number of milliseconds from 100 to 60000" },
		{ "--heartbeat 5s", true, OPT_USAGE,
		  "--heartbeat '5s': expected a number of milliseconds from 100 to 60000" },
		{ "--lock-timeout 0", true, OPT_USAGE,
		  "--lock-timeout '0': expected a number of seconds from 1 to 86400" },
		{ "--heartbeat-misses 0", true, OPT_USAGE,
		  "--heartbeat-misses '0': expected a number from 1 to 100" },
		{ "--log-level loud", true, OPT_USAGE,
		  "--log-level 'loud': expected error, warning, info or debug" },
		{ "--allow 10.0.0.0/33", true, OPT_USAGE,
		  "--allow '10.0.0.0/33': expected a number "
		  "of bits from 0 to 32 after '/'" },
		{ "--allow /33", true, OPT_USAGE, "--allow '/33': expected ADDR or "
		  "ADDR/BITS with an IPv4 or IPv6 address, uid:USER or unix" },
		{ "--allow uid:no-such-user", true, OPT_FAILED,
		  "--allow 'uid:no-such-user': expected uid: "
		  "and the name of a user of this machine, or a number from 0 to 4294967294" },
		{ "--allow ::ffff:192.0.2.1/95", true, OPT_USAGE,
		  "--allow '::ffff:192.0.2.1/95': expected /96 or more for an IPv4 address in IPv6 "
		  "(::ffff:a.b.c.d), or the IPv4 address" },
		{ "--allow example.org", true, OPT_USAGE, "--allow 'example.org': expected ADDR or "
		  "ADDR/BITS with an IPv4 or IPv6 address, uid:USER or unix" },
		{ "--allow psk:gw1", true, OPT_USAGE, "--allow 'psk:gw1': who has a key or "
		  "certificate is known after the connection, so an export has this rule: expected "
		  "allow = psk:gw1 below [export \"NAME\"], or NAME=PATH,allow=psk:gw1" },
		{ "--allow cert:gw1", true, OPT_USAGE, "--allow 'cert:gw1': who has a key or "
		  "certificate is known after the connection, so an export has this rule: expected "
		  "allow = cert:gw1 below [export \"NAME\"], or NAME=PATH,allow=cert:gw1" },
		{ "--allow all", true, OPT_USAGE, "--allow 'all': without a rule every address may "
		  "connect: leave it out, or 0.0.0.0/0 and ::/0" },
		{ "--allow uid:", true, OPT_USAGE, "--allow 'uid:': expected uid: "
		  "and the name of a user of this machine, or a number from 0 to 4294967294" },
		{ "--allow uid:4294967295", true, OPT_USAGE,
		  "--allow 'uid:4294967295': expected uid: "
		  "and the name of a user of this machine, or a number from 0 to 4294967294" },
		{ "--listen unix:/a --listen unix:/a", true, OPT_USAGE,
		  "--listen 'unix:/a': this address is given twice" },
		{ "--listen unix:/a --listen unix:/b", true, OPT_RUN, "" },
		{ "disk=/a disk=/b", false, OPT_USAGE, "export name 'disk' is given twice" },
		{ "none=/no/such/file", true, OPT_RUN, "" },	/* nothing is opened */
		{ "disk", false, OPT_USAGE,
		  "'disk': expected NAME=PATH[,readonly][,direct][,force]" },
	};

	for_each_case(c, cases) {
		struct srv_conf conf;
		char err[512];

		cr_assert_eq(parse(&conf, c->args, c->with_export, err, sizeof(err)), c->result,
			     "%s: %s", c->args, err);
		cr_assert_str_eq(err, c->line);
		conf_fini(&conf);
	}
}

Test(conf, listen_names_what_is_wrong)
{
	struct srv_conf conf;
	char err[512];

	cr_assert_eq(parse(&conf, "--listen tcp://127.0.0.1:70000", true, err, sizeof(err)),
		     OPT_USAGE);
	cr_assert_eq(strncmp(err, "--listen 'tcp://127.0.0.1:70000': ", 34), 0, "%s", err);
	conf_fini(&conf);
}

static struct fab_addr address(const char *text)
{
	struct fab_addr addr = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&addr.ss;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&addr.ss;

	addr.len = sizeof(addr.ss);
	if (!strncmp(text, "uid ", 4)) {
		addr.ss.ss_family = AF_UNIX;
		addr.uid = (uid_t)atoi(text + 4);
	} else if (!strcmp(text, "unknown")) {
		addr.len = 0;
	} else if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
	} else {
		cr_assert_eq(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
		in6->sin6_family = AF_INET6;
	}
	return addr;
}

Test(conf, allow)
{
	static const struct {
		const char *args, *peer;
		bool allowed;
	} cases[] = {
		{ "", "192.0.2.1", true },
		{ "", "2001:db8::1", true },
		{ "--allow 192.0.2.1", "192.0.2.1", true },
		{ "--allow 192.0.2.1", "192.0.2.2", false },
		{ "--allow 192.0.2.1", "2001:db8::1", false },
		{ "--allow 192.0.2.77/24", "192.0.2.200", true },
		{ "--allow 192.0.2.0/24", "192.0.3.1", false },
		{ "--allow 192.0.2.0/23", "192.0.3.1", true },
		{ "--allow 192.0.2.0/31", "192.0.2.1", true },
		{ "--allow 192.0.2.0/31", "192.0.2.2", false },
		{ "--allow 0.0.0.0/0", "203.0.113.9", true },
		{ "--allow 0.0.0.0/0", "2001:db8::1", false },
		{ "--allow 192.0.2.0/24", "::ffff:192.0.2.9", true },
		{ "--allow ::ffff:192.0.2.1", "192.0.2.1", true },
		{ "--allow ::ffff:192.0.2.1", "192.0.2.2", false },
		{ "--allow ::ffff:192.0.2.1", "::ffff:192.0.2.1", true },
		{ "--allow ::ffff:192.0.2.0/120", "192.0.2.9", true },
		{ "--allow ::ffff:192.0.2.0/120", "192.0.3.9", false },
		{ "--allow ::ffff:0:0/96", "203.0.113.9", true },
		{ "--allow ::ffff:0:0/96", "2001:db8::1", false },
		{ "--allow ::fffe:192.0.2.1", "192.0.2.1", false },
		{ "--allow 2001:db8::/32", "2001:db8:ffff::1", true },
		{ "--allow 2001:db8::/32", "2001:db9::1", false },
		{ "--allow [2001:db8::1]", "2001:db8::1", true },
		{ "--allow 2001:db8::/127", "2001:db8::1", true },
		{ "--allow 2001:db8::/127", "2001:db8::2", false },
		{ "--allow ::/0", "2001:db8::2", true },
		{ "--allow 10.0.0.1 --allow 192.0.2.0/24", "192.0.2.9", true },
		{ "", "uid 5", true },
		{ "--allow 10.0.0.1", "uid 5", true },
		{ "--allow uid:5", "uid 5", true },
		{ "--allow uid:5", "uid 6", false },
		{ "--allow uid:5 --allow uid:root", "uid 0", true },
		{ "--allow uid:5 --allow 10.0.0.1", "uid 6", false },
		{ "--allow uid:5", "192.0.2.1", false },
		{ "--allow uid:5", "0.0.0.0", false },
		{ "--allow unix", "uid 6", true },
		{ "--allow unix --allow uid:5", "uid 6", true },
		{ "--allow unix", "192.0.2.1", false },
		{ "--allow unix", "0.0.0.0", false },
	};

	for_each_case(c, cases) {
		struct srv_conf conf;
		struct fab_addr peer = address(c->peer);

		parse_ok(&conf, c->args);
		cr_assert_eq(conf_allow_peer(&conf, &peer), c->allowed, "%s: %s", c->args, c->peer);
		conf_fini(&conf);
	}
}

/* ---- the list of an export ---- */

/* The text of @list, until the next call. */
static const char *list_text(const struct allow_list *list)
{
	static char text[ALLOW_TEXT_MAX];

	return conf_allow_list_text(list, text, sizeof(text));
}

#define FORMS "expected ADDR or ADDR/BITS with an IPv4 or IPv6 address, uid:USER, unix, psk:NAME " \
	"or cert:NAME"
#define NAME "expected a name of 1 to 128 characters without spaces and ':' that does not " \
	"start with '#' or '/'"

Test(conf, allow_lists)
{
	static const struct {
		const char *text, *want;	/* how the list is written; "!": the mistake */
	} cases[] = {
		{ "all", "all" },
		{ "192.0.2.1", "192.0.2.1" },
		{ "192.0.2.77/24", "192.0.2.0/24" },
		{ " 192.0.2.1 ,\t[2001:db8::1] ", "192.0.2.1, 2001:db8::1" },
		{ "uid:root, 2001:db8::7/32,0.0.0.0/0", "uid:0, 2001:db8::/32, 0.0.0.0/0" },
		{ "all, ::/0", "::/0" },
		{ "psk:gw1,cert:gw-2, 192.0.2.1", "psk:gw1, cert:gw-2, 192.0.2.1" },
		{ "psk:\xc3\xa4.b@c_%s", "psk:\xc3\xa4.b@c_%s" },
		{ "unix, uid:5,psk:gw1", "unix, uid:5, psk:gw1" },
		{ "", "!" FORMS },
		{ "unix:", "!" FORMS },
		{ "unix:/run/a", "!" FORMS },
		{ "192.0.2.1,", "!'' in it: " FORMS },
		{ "none", "!" FORMS },
		{ "gw1", "!" FORMS },
		{ "PSK:gw1", "!" FORMS },
		{ "psk", "!" FORMS },
		{ "psk:", "!behind psk: " NAME },
		{ "psk:,gw1", "!'psk:' in it: behind psk: " NAME },
		{ "cert:", "!behind cert: " NAME },
		{ "psk:a b", "!behind psk: " NAME },
		{ "psk:a:b", "!behind psk: " NAME },
		{ "psk:a\nb", "!behind psk: " NAME },
		{ "psk:#61", "!behind psk: " NAME },
		{ "psk:/2", "!behind psk: " NAME },
		{ "psk:gw1/2", "!expected the name of an identity: the name of its key up to the "
		"'/'" },
		{ "192.0.2.1, all", "!'all' in it: expected 'all' alone, without addresses, "
				    "users and identities" },
		{ "psk:gw1, all", "!'all' in it: expected 'all' alone, without addresses, "
				  "users and identities" },
	};

	for_each_case(c, cases) {
		struct allow_list list = { .n = 0 };
		char why[192];
		int rc = conf_allow_list_add(&list, c->text, why, sizeof(why));

		cr_assert_eq(!rc, *c->want != '!', "%s: %d", c->text, rc);
		if (rc)
			cr_assert_str_eq(why, c->want + 1, "%s: %s", c->text, why);
		else
			cr_assert_str_eq(list_text(&list), c->want);
	}
}

static void random_rule(char *buf, size_t len)
{
	char addr[INET6_ADDRSTRLEN];
	uint8_t bytes[16];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)rand();
	switch (rand() % 4) {
	case 3:
		snprintf(buf, len, "psk:gw%d", rand() % 1000);
		break;
	case 0:
		inet_ntop(AF_INET, bytes, addr, sizeof(addr));
		snprintf(buf, len, "%s/%d", addr, rand() % 33);
		break;
	case 1:
		inet_ntop(AF_INET6, bytes, addr, sizeof(addr));
		snprintf(buf, len, "%s/%d", addr, rand() % 129);
		break;
	case 2:
		if (rand() % 8)
			snprintf(buf, len, "uid:%d", rand() % 100000);
		else
			snprintf(buf, len, "unix");
		break;
	}
}

/* What is written is read as the same list, up to the longest; a buffer that is short is never
 * exceeded, and says so; one rule more is refused. */
Test(conf, allow_lists_are_written_as_they_are_read)
{
	srand(1);
	for (unsigned n = 0; n <= ALLOW_LIST_MAX; n++) {
		static struct allow_list list, again;
		char rule[64], why[192];
		const char *text;

		list.n = again.n = 0;
		for (unsigned i = 0; i < n; i++) {
			random_rule(rule, sizeof(rule));
			cr_assert_eq(conf_allow_list_add(&list, rule, why, sizeof(why)), 0,
				     "%s: %s", rule, why);
		}
		text = list_text(&list);
		cr_assert_null(strstr(text, "..."), "%s", text);
		cr_assert_eq(conf_allow_list_add(&again, text, why, sizeof(why)), 0, "%s", why);
		cr_assert(conf_allow_list_same(&list, &again), "%s", text);
		for (size_t len = 16; len <= strlen(text); len += 7) {
			char *cut = malloc(len);	/* its end is a wall for a sanitizer */

			conf_allow_list_text(&list, cut, len);
			cr_assert(strlen(cut) < len && strstr(cut, "..."), "%zu: %s", len, cut);
			cr_assert(!strncmp(cut, text, strlen(cut) - strlen("...")));
			free(cut);
		}
		if (!n)
			continue;
		again.rules[n - 1].bits ^= 1;
		cr_assert(!conf_allow_list_same(&list, &again));
		again = list;
		again.n--;
		cr_assert(!conf_allow_list_same(&list, &again));
		if (n == ALLOW_LIST_MAX)
			cr_assert_eq(conf_allow_list_add(&list, "::1", why, sizeof(why)), -EINVAL);
	}
}

/* A peer is in a list if it is in one of the rules, in any order of them. */
Test(conf, allow_lists_are_unions)
{
	srand(2);
	for (unsigned round = 0; round < 2000; round++) {
		struct allow_list list = { .n = 0 };
		char rule[64], why[192];
		struct in_addr in = { .s_addr = (in_addr_t)rand() & htonl(0xff0000ff) };
		struct fab_addr peer = address("192.0.2.1");
		bool any = false;

		((struct sockaddr_in *)&peer.ss)->sin_addr = in;
		for (int i = 0, n = 1 + rand() % 5; i < n; i++) {
			struct in_addr other = { .s_addr = (in_addr_t)rand() & htonl(0xff0000ff) };
			int bits = rand() % 10;
			uint32_t differ = ntohl(in.s_addr ^ other.s_addr);

			snprintf(rule, sizeof(rule), "%s/%d", inet_ntoa(other), bits);
			cr_assert_eq(conf_allow_list_add(&list, rule, why, sizeof(why)), 0);
			any = any || !bits || !(differ >> (32 - bits));
		}
		cr_assert_eq(!!conf_allow_find(list.rules, list.n, &peer, ""), any);
	}
}

/* ---- priorities ---- */

Test(conf, priorities)
{
	static const struct {
		const char *text;
		uint16_t prio;
	} cases[] = {
		{ "none", 0 },
		{ "realtime", IOPRIO_CLASS_RT << IOPRIO_CLASS_SHIFT | 4 },
		{ "realtime:0", IOPRIO_CLASS_RT << IOPRIO_CLASS_SHIFT },
		{ "best-effort:7", IOPRIO_CLASS_BE << IOPRIO_CLASS_SHIFT | 7 },
		{ "idle", IOPRIO_CLASS_IDLE << IOPRIO_CLASS_SHIFT },
	};
	static const char *const bad[] = {
		"", ":", "rt", "realtime:8", "realtime:", "realtime:-1", "best-effort:1x", "idle:0",
		"none:0", "Idle", "idle ", "best-effort:01:1",
	};
	char text[PRIORITY_TEXT_MAX], why[192];
	uint16_t prio, again;

	for_each_case(c, cases) {
		cr_assert_eq(conf_limits_parse_priority(c->text, &prio, why, sizeof(why)), 0, "%s",
			     c->text);
		cr_assert_eq(prio, c->prio, "%s: 0x%x", c->text, prio);
		conf_limits_priority_text(prio, text);
		cr_assert_eq(conf_limits_parse_priority(text, &again, why, sizeof(why)), 0, "%s",
			     text);
		cr_assert_eq(again, prio, "%s", text);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		prio = 77;
		cr_assert_eq(conf_limits_parse_priority(bad[i], &prio, why, sizeof(why)), -EINVAL,
			     "'%s'", bad[i]);
		cr_assert_eq(prio, 77, "%s", bad[i]);
		cr_assert_str_eq(why, "expected realtime or best-effort, each optionally with "
				 ":0 to :7, "
				      "idle or none");
	}
}

/* ---- options on the line of an export ---- */

#define FLAG(flag, meant) \
	"export 'a': unknown flag '" flag "'" meant ": expected readonly, direct, force, id= or " \
	"shared= (a comma in PATH is written '\\,')"

Test(conf, options_on_a_line)
{
	static const struct {
		const char *spec, *left, *allow, *priority;
		uint64_t iops;
	} cases[] = {
		{ "a=/a", "a=/a", "all", "none", 0 },
		{ "a=/a,iops=5", "a=/a", "all", "none", 5 },
		{ "a=/a,readonly,iops=5,direct", "a=/a,readonly,direct", "all", "none", 5 },
		{ "a=/a,allow=192.0.2.1,::1,readonly,priority=idle", "a=/a,readonly",
		  "192.0.2.1, ::1", "idle", 0 },
		{ "a=/a,allow=192.0.2.1,direct,allow=uid:5,uid:6", "a=/a,direct",
		  "192.0.2.1, uid:5, uid:6", "none", 0 },
		{ "a=/a\\,allow=::1,allow=::2", "a=/a\\,allow=::1", "::2", "none", 0 },
		{ "a=/a\\\\,allow=::2", "a=/a\\\\", "::2", "none", 0 },
		{ "a,b=/a=b,priority=best-effort:3", "a,b=/a=b", "all", "best-effort:3", 0 },
	};
	static const struct {
		const char *spec, *err;
	} bad[] = {
		{ "a=/a,alow=::1",
		  "export 'a': there is no option 'alow' (did you mean allow?)" },
		{ "a=/a,mode=ro", FLAG("mode=ro", "") },
		{ "a=/a,direct=yes", FLAG("direct=yes", " (did you mean direct?)") },
		{ "a=/a,idd=x", FLAG("idd=x", " (did you mean id?)") },
		{ "a=/a,readonly=yes", FLAG("readonly=yes", " (did you mean readonly?)") },
		{ "a=/a,shared", "export 'a': 'shared=' has no value" },
		{ "a=/a,iops=1,b=c\\,iops=2", FLAG("b=c,iops=2", "") },
		{ "a=/a,allow=", "export 'a': 'allow' has no value: expected allow=VALUE" },
		{ "a=/a,allow=::1,1.2.3", "export 'a': allow '1.2.3': expected ADDR or ADDR/BITS "
					  "with an IPv4 or IPv6 address, uid:USER, unix, "
					  "psk:NAME or cert:NAME" },
		{ "a=/a,", FLAG("", "") },
		{ "a=/a,iops=1,,direct", FLAG("", "") },
		{ "a=/a,::1", FLAG("::1", "") },
	};
	struct srv_conf conf = { .nexports = 0 };
	char err[384];

	for_each_case(c, cases) {
		char priority[PRIORITY_TEXT_MAX];
		const struct conf_export *ex;

		cr_assert_eq(conf_add_export(&conf, c->spec, err, sizeof(err)), 0, "%s: %s",
			     c->spec, err);
		ex = conf.exports[0];
		cr_assert_str_eq(line_of(ex), c->left);
		cr_assert_str_eq(list_text(&ex->allow), c->allow);
		cr_assert_str_eq(conf_limits_priority_text(ex->priority, priority), c->priority);
		cr_assert_eq(ex->limits.rate[LIMIT_IOPS], c->iops);
		cr_assert_eq(conf_del_export(&conf, ex->spec.name), 0);
	}
	for_each_case(c, bad) {
		cr_assert(conf_add_export(&conf, c->spec, err, sizeof(err)) < 0, "%s", c->spec);
		cr_assert_str_eq(err, c->err, "%s: %s", c->spec, err);
		cr_assert_eq(conf.nexports, 0);
	}
	conf_fini(&conf);
}

/* However many flags a line has, none is lost: an export that its line makes read-only is
 * read-only. */
Test(conf, flags_of_a_line_have_no_number)
{
	static const unsigned numbers[] = { 1, 14, 15, 16, 17, 64 };
	struct srv_conf conf = { .nexports = 0 };
	char line[640], err[384];

	for_each_case(n, numbers) {
		strcpy(line, "a=/a");
		for (unsigned i = 0; i < *n; i++)
			strcat(line, ",direct");
		strcat(line, ",readonly");
		cr_assert_eq(conf_add_export(&conf, line, err, sizeof(err)), 0, "%s", err);
		cr_assert_str_eq(line_of(conf.exports[0]), "a=/a,readonly,direct", "%u flags", *n);
		cr_assert_eq(conf_del_export(&conf, "a"), 0);
	}
	conf_fini(&conf);
}

/* Names of 128 bytes, and longer ones, which are refused. */
Test(conf, allow_names_have_a_length)
{
	static struct allow_list list;
	char text[300], why[192];

	for (unsigned n = 1; n <= 256; n++) {
		list.n = 0;
		snprintf(text, sizeof(text), "psk:%0*d", (int)n, 0);
		cr_assert_eq(!conf_allow_list_add(&list, text, why, sizeof(why)), n <= 128, "%u",
			     n);
		if (n <= 128)
			cr_assert_str_eq(list_text(&list), text);
	}
}

Test(conf, names_have_a_length)
{
	static const unsigned lens[] = { RUNDIR_NAME_MAX - 2, RUNDIR_NAME_MAX - 1, RUNDIR_NAME_MAX,
					 4 * RUNDIR_NAME_MAX };
	static char word[16 + 4 * RUNDIR_NAME_MAX], err[4096];
	char *argv[] = { (char *)"rtrs-server", word, spec, NULL };

	for_each_case(len, lens) {
		struct srv_conf conf;

		snprintf(word, sizeof(word), "--name=%0*d", (int)*len, 0);
		cr_assert_eq(parse_words(&conf, 3, argv, err, sizeof(err)),
			     *len < RUNDIR_NAME_MAX ? OPT_RUN : OPT_USAGE, "%u: %s", *len, err);
		if (*len < RUNDIR_NAME_MAX)
			cr_assert_str_eq(conf.name, word + strlen("--name="));
		else
			cr_assert(strstr(err, "expected 1 to 255 bytes"), "%s", err);
		conf_fini(&conf);
	}
}

/* Rules for identities: of all kinds of rules one is enough, the kinds do not mix, and nobody is
 * no identity.  A peer of a unix socket is in no network. */
Test(conf, allow_identities)
{
	static const struct {
		const char *rules, *peer, *identity;
		bool named;
	} cases[] = {
		{ "psk:gw1", "192.0.2.1", "psk:gw1", true },
		{ "psk:gw1", "192.0.2.1", "psk:gw2", false },
		{ "psk:gw1", "192.0.2.1", "psk:gw", false },
		{ "psk:gw1", "192.0.2.1", "psk:gw11", false },
		{ "psk:gw1", "192.0.2.1", "psk:GW1", false },
		{ "psk:gw1", "192.0.2.1", "cert:gw1", false },
		{ "psk:gw1", "192.0.2.1", "", false },
		{ "cert:gw1", "192.0.2.1", "cert:gw1", true },
		{ "psk:gw1, 192.0.2.0/24", "192.0.2.1", "", true },
		{ "psk:gw1, 192.0.2.0/24", "192.0.3.1", "", false },
		{ "psk:gw1, 192.0.2.0/24", "192.0.3.1", "psk:gw1", true },
		{ "192.0.2.0/24", "uid 5", "", false },
		{ "0.0.0.0/0, ::/0", "uid 5", "", false },
		{ "0.0.0.0/0, unix", "uid 5", "", true },
		{ "unix", "uid 0", "psk:gw1", true },
		{ "unix", "0.0.0.0", "", false },
		{ "192.0.2.0/24, psk:gw1", "uid 5", "", false },
		{ "192.0.2.0/24, psk:gw1", "uid 5", "psk:gw2", false },
		{ "psk:gw1", "uid 5", "psk:gw1", true },
		{ "psk:gw1, uid:5", "uid 5", "", true },
		{ "psk:gw1, uid:5", "uid 5", "psk:gw2", true },
		{ "psk:gw1, uid:5", "uid 6", "psk:gw1", true },
		{ "psk:gw1, uid:5", "uid 6", "psk:gw2", false },
		{ "uid:5", "uid 6", "psk:gw1", false },
		{ "0.0.0.0/0, ::/0, unix, uid:5", "unknown", "psk:gw1", false },
		{ "0.0.0.0/0, psk:gw1", "unknown", "psk:gw1", true },
		{ "cert:gw1, psk:gw1", "unknown", "", false },
	};

	for_each_case(c, cases) {
		struct allow_list list = { .n = 0 };
		struct fab_addr peer = address(c->peer);
		char why[192];

		cr_assert_eq(conf_allow_list_add(&list, c->rules, why, sizeof(why)), 0);
		cr_assert_eq(!!conf_allow_find(list.rules, list.n, &peer, c->identity), c->named,
			     "%s: %s %s", c->rules, c->peer, c->identity);
		cr_assert_null(conf_allow_find(list.rules, 0, &peer, c->identity));
	}
}
