/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of rtrs-server: which files are read and in which order, what an [export] becomes, and that
 * the command line wins. */
#include <config.h>

#include <sys/stat.h>
#include <unistd.h>

#include "conf.h"
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
	result = conf_parse(conf, argc, argv, errors);
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
	for (unsigned i = 0; i < conf->nexports; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "",
			 conf->exports[i].spec);
	return text;
}

Test(conf_file, export_keys)
{
	for (unsigned i = 0; i < conf_export_options.n; i++)
		cr_assert_eq(conf_export_options.rows[i].holds, OPT_IN_FILE);
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
	cr_assert_str_eq(fab_addr_format(&conf.listeners[0], listen, sizeof(listen)),
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
	cr_assert_str_eq(parse(&conf, "--queue-depth=3", OPT_FAILED),
		"a.conf:2: threads 'none': expected a number from 1 to 256\n"
		"a.conf:5: export name 'b..': '..' is not allowed in a name\n"
		"a.conf.d/x.conf:1: export name 'a' is given twice: first in a.conf:3\n"
		"a.conf.d/x.conf:4: 'ready-fd' holds on the command line only\n"
		"a.conf.d/x.conf:5: export 'm': unknown flag 'direct': expected readonly (a comma "
		"in PATH is written '\\,')\n");
	conf_fini(&conf);
}

Test(conf_file, none_or_empty)
{
	struct srv_conf conf;

	cr_assert_str_eq(parse(&conf, "a=/a", OPT_FAILED), "a.conf: No such file or directory\n");
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
