/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of rtrs-server: which files are read and in which order, what an [export] becomes, and that
 * the command line wins. */
#include <config.h>

#include <sys/stat.h>
#include <unistd.h>

#include "conf.h"
#include "export-spec.h"
#include "opt-rules.h"
#include "unit.h"

static char dir[64], file[128];

static void write_file(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	cr_assert_not_null(f, "%s", path);
	fputs(text, f);
	fclose(f);
}

static void setup(void)
{
	char sub[128];

	strcpy(dir, "/tmp/test-conf-file.XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	snprintf(sub, sizeof(sub), "%s/a.conf.d", dir);
	cr_assert_eq(mkdir(sub, 0755), 0);
	snprintf(file, sizeof(file), "--config=%s/a.conf", dir);
}

static void teardown(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(conf_file, .init = setup, .fini = teardown);

/* Parse @line, split at blanks, behind --config.  Returns the mistakes, without the directory. */
static const char *parse(struct srv_conf *conf, const char *line, enum opt_result want)
{
	static char words[256], told[1024];
	char *argv[32] = { (char *)"rtrs-server", file }, *save, *word, *at;
	FILE *errors = fmemopen(told, sizeof(told), "w");
	enum opt_result result;
	int argc = 2;

	snprintf(words, sizeof(words), "%s", line);
	for (word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	memset(told, 0, sizeof(told));
	result = conf_parse(conf, CONF_START, argc, argv, errors);
	fclose(errors);
	cr_assert_eq(result, want, "%s: %s", line, told);
	while ((at = strstr(told, dir)))
		memmove(at, at + strlen(dir) + 1, strlen(at + strlen(dir) + 1) + 1);
	return told;
}

/* "a=/a b=/b", the exports of @conf. */
static const char *exports_of(const struct srv_conf *conf)
{
	static char text[512];

	text[0] = '\0';
	for (unsigned i = 0; i < conf->nexports; i++) {
		char *line = export_line_text(&conf->exports[i]->spec);

		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
			 line);
		free(line);
	}
	return text;
}

Test(conf_file, export_keys)
{
	for (unsigned i = 0; i < conf_export_options.n; i++)
		cr_assert(conf_export_options.rows[i].holds & OPT_IN_FILE);
}

Test(conf_file, exports)
{
	static const struct {
		const char *text, *spec;
	} cases[] = {
		{ "[export \"a\"]\npath=/x/y\n", "a=/x/y" },
		{ "[export \"a\"]\npath=/x\nmode=rw\ndirect=no\nforce=no\n", "a=/x" },
		{ "[export \"a\"]\nmode=ro\npath=/x\n", "a=/x,readonly" },
		{ "[export \"a\"]\npath=/x\nforce=yes\ndirect=yes\n", "a=/x,direct,force" },
		{ "[export \"a\"]\ndirect=yes\npath=/x\nmode=ro\n",
		  "a=/x,readonly,direct" },
		{ "[export \"a b\"]\npath=/x,direct\n", "a b=/x\\,direct" },
		{ "[export \"a\"]\npath=/x\\y\n", "a=/x\\\\y" },
		{ "[export \"a\"]\npath=mem:1M\n", "a=mem:1M" },
	};
	struct srv_conf conf;

	for_each_case(c, cases) {
		write_file("a.conf", c->text);
		cr_assert_str_eq(parse(&conf, "", OPT_RUN), "");
		cr_assert_str_eq(exports_of(&conf), c->spec);
		conf_fini(&conf);
	}
}

/* The limits of the export "a" of @conf, as changes of none. */
static const char *limits_of(const struct srv_conf *conf)
{
	static const struct limits none;
	static char text[256];

	return conf_limits_change_text(&none, &conf_export_find(conf, "a")->limits, text,
				       sizeof(text));
}

Test(conf_file, limits)
{
	static const struct {
		const char *lines, *want;
	} cases[] = {
		{ "", "" },
		{ "iops=1\n", "iops none -> 1" },
		{ "iops=none\nbps=0\nburst=none\n", "" },
		{ "bps-write=4K\nbps-read=1T\nburst=1\n",
		  "bps-read none -> 1T, bps-write none -> 4K, burst none -> 1s" },
		{ "iops=1000000000\niops-read=2\niops-write=3\nbps=5000\nburst=3600s\n",
		  "iops none -> 1000000000, iops-read none -> 2, iops-write none -> 3, "
		  "bps none -> 5000, burst none -> 3600s" },
	};
	struct srv_conf conf, copy;
	char text[256];

	for_each_case(c, cases) {
		snprintf(text, sizeof(text), "[export \"a\"]\npath=/a\n%s[export \"b\"]\n"
			 "path=/b\n", c->lines);
		write_file("a.conf", text);
		cr_assert_str_eq(parse(&conf, "", OPT_RUN), "");
		cr_assert_str_eq(limits_of(&conf), c->want);
		cr_assert(!conf_limits_any(&conf_export_find(&conf, "b")->limits));
		cr_assert_eq(conf_copy(&copy, &conf), 0);
		cr_assert_str_eq(limits_of(&copy), c->want);
		conf_fini(&copy);
		conf_fini(&conf);
	}
}

Test(conf_file, limits_that_are_none)
{
	struct srv_conf conf;

	write_file("a.conf", "[export \"a\"]\npath=/a\niops=-1\niops-read=1K\nbps=4095\n"
		   "bps-write=2T\nburst=10m\niops-write=1000000001\n");
	cr_assert_str_eq(parse(&conf, "", OPT_USAGE),
		"a.conf:3: iops '-1': expected a number of requests a second from 0 to 1000000000, "
		"or none\n"
		"a.conf:4: iops-read '1K': expected a number of requests a second from 0 to "
		"1000000000, or none\n"
		"a.conf:5: bps '4095': expected 4K or more bytes a second, or none\n"
		"a.conf:6: bps-write '2T': expected a number of bytes a second from 0 to 1T, "
		"optionally with K, M, G or T, or none\n"
		"a.conf:7: burst '10m': expected a number of seconds from 1 to 3600, like 10s, or "
		"none\n"
		"a.conf:8: iops-write '1000000001': expected a number of requests a second from 0 "
		"to 1000000000, or none\n");
	conf_fini(&conf);
}

Test(conf_file, limits_at_run_time)
{
	static const struct {
		const char *text, *err;
	} cases[] = {
		{ "a,iops=5", NULL },
		{ "a,bps=1M,iops=6,burst=2s", NULL },
		{ "a,iops=none", NULL },
		{ "a,b,iops=7", NULL },
		{ "a", "'a': expected NAME and at least one KEY=VALUE" },
		{ "a=1", "'a=1': expected NAME and at least one KEY=VALUE" },
		{ "c,iops=1", "there is no export 'c'" },
		{ "a,iops=9,ipos=1", "there is no option 'ipos' (did you mean iops?)" },
		{ "a,iops=9,xyzzy=1",
		  "there is no option 'xyzzy': expected iops, bps, burst, allow, read-only or "
		  "priority" },
		{ "a,iops=9,direct=yes",
		  "'direct' cannot be changed: remove the export and add it again" },
		{ "a,iops=9,bps", "'bps' has no value: expected bps=VALUE" },
		{ "a,iops=9,bps=", "'bps' has no value: expected bps=VALUE" },
		{ "a,iops=9,bps=1", "bps '1': expected 4K or more bytes a second, or none" },
		{ "a,iops=9,burst=1h",
		  "burst '1h': expected a number of seconds from 1 to 3600, like 10s, or none" },
	};
	struct srv_conf conf;
	char err[256];

	write_file("a.conf", "[export \"a\"]\npath=/a\n[export \"a,b\"]\npath=/b\n");
	cr_assert_str_eq(parse(&conf, "", OPT_RUN), "");
	for_each_case(c, cases) {
		int rc = conf_export_options_set(&conf, c->text, err, sizeof(err));

		cr_assert_eq(!rc, !c->err, "%s: %d", c->text, rc);
		if (c->err)
			cr_assert_str_eq(err, c->err);
	}
	/* A mistake changes nothing, and keys that are not named stay. */
	cr_assert_str_eq(limits_of(&conf), "bps none -> 1M, burst none -> 2s");
	cr_assert_eq(conf_export_find(&conf, "a,b")->limits.rate[LIMIT_IOPS], 7);
	conf_fini(&conf);
}

/* What is set at run time replaces the rules, however many words name them. */
Test(conf_file, rules_and_priority)
{
	static const struct {
		const char *text, *allow, *priority;
	} cases[] = {
		{ "a,iops=5", "192.0.2.1, uid:5, ::/0", "idle" },
		{ "a,priority=none", "192.0.2.1, uid:5, ::/0", "none" },
		{ "a,allow=10.0.0.1,10.0.0.2,iops=6", "10.0.0.1, 10.0.0.2", "none" },
		{ "a,allow=10.0.0.3,priority=realtime:1,allow=10.0.0.4", "10.0.0.3, 10.0.0.4",
		  "realtime:1" },
		{ "a,allow=all", "all", "realtime:1" },
		{ "a,allow=10.0.0.5,10.0.0.256", NULL, NULL },
		{ "a,allow=10.0.0.5,priority=4", NULL, NULL },
		{ "a,allow=10.0.0.5,iops", NULL, NULL },
		{ "a,iops=1,10.0.0.5", NULL, NULL },
	};
	struct srv_conf conf, copy;
	static char allow[ALLOW_TEXT_MAX];
	char priority[PRIORITY_TEXT_MAX], err[256];

	write_file("a.conf", "[export \"a\"]\npath=/a\nallow=192.0.2.1, uid:5\nallow=::/0\n"
		   "priority=idle\n[export \"b\"]\npath=/b\n");
	cr_assert_str_eq(parse(&conf, "", OPT_RUN), "");
	cr_assert_eq(conf_export_find(&conf, "b")->allow.n, 0);
	cr_assert_eq(conf_export_find(&conf, "b")->priority, 0);
	for_each_case(c, cases) {
		const struct conf_export *ex;
		int rc = conf_export_options_set(&conf, c->text, err, sizeof(err));

		cr_assert_eq(!rc, !!c->allow, "%s: %d", c->text, rc);
		cr_assert_eq(conf_copy(&copy, &conf), 0);
		ex = conf_export_find(&copy, "a");
		if (rc) {
			cr_assert_eq(ex->allow.n, 0);	/* as the one before left it */
		} else {
			conf_allow_list_text(&ex->allow, allow, sizeof(allow));
			cr_assert_str_eq(allow, c->allow);
			conf_limits_priority_text(ex->priority, priority);
			cr_assert_str_eq(priority, c->priority);
		}
		conf_fini(&copy);
	}
	conf_fini(&conf);
}

/* The two lists of an export, each replaced by its own words alone. */
Test(conf_file, read_only_rules)
{
	static const struct {
		const char *text, *allow, *read_only;	/* NULL: refused */
	} cases[] = {
		{ "a,iops=5", "psk:gw1", "psk:backup, uid:5" },
		{ "a,allow=psk:gw1,psk:gw2", "psk:gw1, psk:gw2", "psk:backup, uid:5" },
		{ "a,read-only=psk:b2,10.0.0.1,allow=psk:gw3,read-only=psk:b3", "psk:gw3",
		  "psk:b2, 10.0.0.1, psk:b3" },
		{ "a,read-only=psk:b4,none", NULL, NULL },
		{ "a,read-only=all", NULL, NULL },
		{ "a,read-only=psk:", NULL, NULL },
		{ "a,read-only=none", "psk:gw3", "all" },
		{ "a,allow=all", "all", "all" },
	};
	struct srv_conf conf, copy;
	static char allow[ALLOW_TEXT_MAX], read_only[ALLOW_TEXT_MAX];
	char err[256];

	write_file("a.conf", "[export \"a\"]\npath=/a\nallow=psk:gw1\nread-only=psk:backup, uid:5\n"
		   "[export \"b\"]\npath=/b\nread-only=none\n");
	cr_assert_str_eq(parse(&conf, "c=/c,allow=psk:gw1,psk:gw2,read-only=cert:b,readonly",
			       OPT_RUN), "");
	cr_assert_eq(conf_export_find(&conf, "b")->read_only.n, 0);
	cr_assert_eq(conf_export_find(&conf, "c")->allow.n, 2);
	cr_assert_eq(conf_export_find(&conf, "c")->read_only.n, 1);
	cr_assert(conf_export_find(&conf, "c")->spec.readonly);
	for_each_case(c, cases) {
		const struct conf_export *ex;
		int rc = conf_export_options_set(&conf, c->text, err, sizeof(err));

		cr_assert_eq(!rc, !!c->allow, "%s: %d", c->text, rc);
		if (rc)
			continue;
		cr_assert_eq(conf_copy(&copy, &conf), 0);
		ex = conf_export_find(&copy, "a");
		cr_assert_str_eq(conf_allow_list_text(&ex->allow, allow, sizeof(allow)), c->allow);
		cr_assert_str_eq(conf_allow_list_text(&ex->read_only, read_only,
						      sizeof(read_only)), c->read_only);
		conf_fini(&copy);
	}
	conf_fini(&conf);
}

Test(conf_file, rules_and_priority_that_are_none)
{
	struct srv_conf conf;

	write_file("a.conf", "[export \"a\"]\npath=/a\nallow=10.0.0.0/33\nallow=none\n"
		   "priority=low\npriority=idle\n");
	cr_assert_str_eq(parse(&conf, "", OPT_USAGE),
		"a.conf:3: allow '10.0.0.0/33': expected a number of bits from 0 to 32 after "
		"'/'\n"
		"a.conf:4: allow 'none': expected ADDR or ADDR/BITS with an IPv4 or IPv6 address, "
		"uid:USER, unix, psk:NAME or cert:NAME\n"
		"a.conf:5: priority 'low': expected realtime or best-effort, each optionally with "
		":0 to :7, idle or none\n"
		"a.conf:6: 'priority' is given twice: first in line 5\n");
	conf_fini(&conf);
}

Test(conf_file, options_of_the_other_end)
{
	struct srv_conf conf;

	write_file("a.conf", "[server]\nio-timeout=5\npath=/a\n[export \"a\"]\npath=/a\n"
		   "server=192.0.2.1\nread-only=yes\n");
	cr_assert_str_eq(parse(&conf, "", OPT_USAGE),
		"a.conf:2: 'io-timeout' is an option of gateways: expected it in the file of the "
		"gateway\n"
		"a.conf:3: 'path' is an option of [export \"NAME\"]: expected it below that "
		"header\n"
		"a.conf:6: 'server' is an option of gateways: expected it in the file of the "
		"gateway\n"
		"a.conf:7: read-only 'yes': expected the clients that may only read; mode = ro is "
		"for all of them\n");
	conf_fini(&conf);
}

Test(conf_file, order)
{
	struct srv_conf conf;

	write_file("a.conf", "[server]\nthreads=1\npoll=1\n[export \"1\"]\npath=/1\n");
	write_file("a.conf.d/20.conf", "[server]\nthreads=3\nallow=10.0.0.2\n[export \"3\"]\n"
		   "path=/3\n");
	write_file("a.conf.d/10.conf", "[server]\nthreads=2\nallow=10.0.0.1\n[export \"2\"]\n"
		   "path=/2\n");
	write_file("a.conf.d/.hidden.conf", "nonsense");
	write_file("a.conf.d/10.conf.dpkg-old", "nonsense");
	write_file("a.conf.d/conf", "nonsense");
	cr_assert_str_eq(parse(&conf, "", OPT_RUN), "");
	cr_assert_str_eq(exports_of(&conf), "1=/1 2=/2 3=/3");
	cr_assert_eq(conf.threads, 3);
	cr_assert_eq(conf.poll_us, 1);
	cr_assert_eq(conf.nallow, 2);
	conf_fini(&conf);
}

Test(conf_file, command_line_wins)
{
	struct srv_conf conf;
	char listen[128];

	write_file("a.conf", "[server]\nthreads=2\nlog-level=debug\nlisten=127.0.0.1:1\n"
		   "listen=127.0.0.1:2\nallow=10.0.0.1\n[export \"ab\"]\npath=/b\n"
		   "[export \"a\"]\npath=/a\nmode=ro\n");
	cr_assert_str_eq(parse(&conf, "--threads=5 --listen=127.0.0.1:3 a=/other aa=/a c=/c",
			       OPT_RUN), "");
	cr_assert_str_eq(exports_of(&conf), "ab=/b a=/other aa=/a c=/c");
	cr_assert_eq(conf.threads, 5);
	cr_assert_eq(conf.log_level, LOG_LEVEL_DEBUG);
	cr_assert_eq(conf.nallow, 1);
	cr_assert_eq(conf.nlisteners, 1);
	cr_assert_str_eq(fab_addr_format(&conf.listeners[0].addr, listen, sizeof(listen)),
			 "127.0.0.1:3");
	conf_fini(&conf);
	cr_assert_str_eq(parse(&conf, "--allow=10.0.0.2 --allow=10.0.0.3", OPT_RUN), "");
	cr_assert_eq(conf.nallow, 2);
	cr_assert_eq(conf.nlisteners, 2);
	conf_fini(&conf);
	/* The command line itself still has each name once. */
	cr_assert_str_eq(parse(&conf, "a=/1 a=/2", OPT_USAGE), "export name 'a' is given twice\n");
	conf_fini(&conf);
}

Test(conf_file, all_mistakes_of_all_files)
{
	struct srv_conf conf;

	write_file("a.conf", "[server]\nthreads=none\n[export \"a\"]\npath=/a\n"
		   "[export \"b..\"]\npath=/b\n");
	write_file("a.conf.d/x.conf", "[export \"a\"]\npath=/a\n[server]\nready-fd=9\n"
		   "[export \"m\"]\npath=mem:1M\ndirect=yes\n");
	cr_assert_str_eq(parse(&conf, "--queue-depth=3", OPT_USAGE),
		"a.conf:2: threads 'none': expected a number from 1 to 256\n"
		"a.conf:5: export name 'b..': '..' is not allowed in a name\n"
		"a.conf.d/x.conf:1: export name 'a' is given twice: first in a.conf:3\n"
		"a.conf.d/x.conf:4: 'ready-fd' cannot stand in a file: the program that starts the "
		"server opens the descriptor\n"
		"a.conf.d/x.conf:5: export 'm': 'direct' is only for files and block devices: "
		"expected path or mode\n");
	conf_fini(&conf);
}

/* The exports of a command line, as users write them. */
Test(conf_file, words_of_the_command_line)
{
	struct srv_conf conf;

	write_file("a.conf", "[export \"a\"]\npath=/a\nreadonly\n[export \"b\"]\npath=/b\n"
		   "readonly=yes\n[export \"c\"]\npath=/c\ndirect\n");
	cr_assert_str_eq(parse(&conf, "", OPT_USAGE),
		"a.conf:3: 'readonly' cannot stand in a file: write mode = ro\n"
		"a.conf:6: 'readonly' cannot stand in a file: write mode = ro\n"
		"a.conf:9: 'direct' has no value: expected direct = yes or no\n");
	conf_fini(&conf);
}

#ifdef HAVE_RBD
/* The keys of an image are the flags of a command line, and a comma in a value stays there. */
Test(conf_file, ceph_image)
{
	struct srv_conf conf;

	write_file("a.conf", "[export \"a\"]\npath=rbd:p/n/i\nid=gw\nluks=/k,1\nconf=/c\\d\n");
	cr_assert_str_eq(parse(&conf, "", OPT_RUN), "");
	cr_assert_str_eq(exports_of(&conf), "a=rbd:p/n/i,conf=/c\\\\d,id=gw,luks=/k\\,1");
	conf_fini(&conf);
	write_file("a.conf", "[export \"a\"]\npath=rbd:p\n[export \"b\"]\npath=/b\nluks=gw\n"
		   "[export \"c\"]\npath=rbd:p/i@s\n[export \"d\"]\npath=rbd:p/i\nidd=a\n");
	cr_assert_str_eq(parse(&conf, "", OPT_USAGE),
		"a.conf:1: export 'a': 'rbd:p': expected rbd:POOL/[NAMESPACE/]IMAGE[@SNAP]\n"
		"a.conf:3: export 'b': 'luks' is only for rbd: paths: expected path, mode, "
		"direct, force, id or shared\n"
		"a.conf:6: export 'c': 'rbd:p/i@s' is a snapshot: export it read-only: "
		"add ',readonly', or in a file the line mode = ro\n"
		"a.conf:10: 'idd' is no option of this section (did you mean id?)\n");
	conf_fini(&conf);
}
#endif

Test(conf_file, none_or_empty)
{
	struct srv_conf conf;

	cr_assert_str_eq(parse(&conf, "a=/a", OPT_USAGE), "a.conf: No such file or directory: "
			 "create it; rtrs-guide(7) has examples\n");
	conf_fini(&conf);
	/* Exports may come while the server runs. */
	write_file("a.conf", "");
	cr_assert_str_eq(parse(&conf, "", OPT_RUN), "");
	cr_assert_eq(conf.nexports, 0);
	conf_fini(&conf);
}

/* A server that runs adopts what can change: nothing of it is left to do then, and what holds from
 * the next start on is still said. */
Test(conf_file, adopt)
{
	struct srv_conf now, wanted;

	write_file("a.conf", "[server]\nthreads=1\nallow=10.0.0.1\n[export \"a\"]\npath=/a\n");
	parse(&now, "", OPT_RUN);
	write_file("a.conf", "[server]\nthreads=2\nallow=10.0.0.2\nlog-level=debug\n"
		   "[export \"b\"]\npath=/b\n");
	parse(&wanted, "", OPT_RUN);
	conf_adopt(&now, &wanted);
	cr_assert_str_eq(exports_of(&now), "b=/b");
	cr_assert_eq(now.log_level, LOG_LEVEL_DEBUG);
	cr_assert_eq(now.allow[0].addr[3], 2);
	cr_assert_eq(now.threads, 1);
	conf_fini(&wanted);
	conf_fini(&now);
}
