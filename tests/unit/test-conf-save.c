/* SPDX-License-Identifier: BSD-3-Clause */
/* What "rtrsctl save" writes comes back as it was, or is not written. */
#include <config.h>

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf.h"
#include "unit.h"

static char dir[64], config[128], saved[192], report[1024], err[512];
static struct srv_conf now, files;

static void setup(void)
{
	strcpy(dir, "/tmp/test-conf-save.XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	snprintf(config, sizeof(config), "%s/a.conf", dir);
	snprintf(saved, sizeof(saved), "%s.d/rtrsctl-saved.conf", config);
	now = (struct srv_conf){ 0 };
	files = (struct srv_conf){ .config = config };
}

static void teardown(void)
{
	char command[128];

	conf_fini(&now);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(conf_file_save, .init = setup, .fini = teardown);

static void add(const char *spec)
{
	cr_assert_eq(conf_add_export(&now, spec, err, sizeof(err)), 0, "%s: %s", spec, err);
}

static int save(void)
{
	FILE *out = fmemopen(report, sizeof(report), "w");
	int rc;

	rc = conf_file_save(&now, &files, out, err, sizeof(err));
	fclose(out);
	return rc;
}

/* The file that is there, and nothing beside it. */
static void expect_file(const char *line)
{
	char text[1024] = "", beside[256];
	FILE *f = fopen(saved, "r");

	cr_assert_not_null(f);
	cr_assert_gt(fread(text, 1, sizeof(text) - 1, f), 0);
	fclose(f);
	cr_assert_not_null(strstr(text, line), "%s", text);
	snprintf(beside, sizeof(beside), "%s.tmp", saved);
	cr_assert_neq(access(beside, F_OK), 0);
}

Test(conf_file_save, what_a_file_holds)
{
	static const struct {
		const char *spec, *why;
	} cases[] = {
		{ "a=/x", NULL },
		{ "a b=/x y\\,z\\\\;#\"=,readonly,direct", NULL },
		{ "a=mem:1M,iops=5,burst=2s,allow=192.0.2.1,192.0.2.2,priority=idle", NULL },
		{ "a]=/x", "[export \"a]\"] is no section of this file: expected [server] or "
		  "[export \"NAME\"]" },
		{ "a\n=/x", "[export \"a: this header has no ']'" },
		{ "a=/x ;y", NULL }, { "a=/x # y", NULL }, { "a=\"/x\"", NULL }, { "a=;x", NULL },
		{ "a=/y ", NULL }, { "a=\t/y", NULL },
		{ "a=/x\ry", "this line has a carriage return in its middle: expected a newline at "
		  "the end of each line" },
	};
	static const char not[] = "': its name or path cannot be written in a file: ";

	for_each_case(c, cases) {
		int rc;

		add(c->spec);
		rc = conf_file_holds(now.exports[0], err, sizeof(err));
		cr_assert_eq(rc, c->why ? -EINVAL : 0, "%s: %s", c->spec, err);
		if (c->why) {
			const char *why = strstr(err, not);

			cr_assert_not_null(why, "%s", err);
			cr_assert_str_eq(why + strlen(not), c->why);
		}
		conf_del_export(&now, now.exports[0]->spec.name);
	}
}

/* A file in a directory with a long name is ours, too. */
Test(conf_file_save, long_name_of_the_file)
{
	static char deep[512], saved_again[1024];

	snprintf(deep, sizeof(deep), "%s/%0200d", dir, 1);
	cr_assert_eq(mkdir(deep, 0700), 0);
	snprintf(deep + strlen(deep), sizeof(deep) - strlen(deep), "/%0200d", 2);
	files.config = deep;
	add("a=/x");
	cr_assert_eq(save(), 0, "%s", err);
	snprintf(saved_again, sizeof(saved_again), "%s.d/rtrsctl-saved.conf", deep);
	cr_assert_eq(conf_file_read(&files, saved_again, stderr), 0);
	cr_assert_eq(conf_del_export(&now, "a"), 0);
	add("a=/y");
	cr_assert_eq(save(), 0, "%s", err);
	cr_assert_str_eq(report, "saved a=/y\n");
	files.config = NULL;
	conf_fini(&files);
}

Test(conf_file_save, what_comes_back)
{
	add("a=/x,readonly");
	add("b c=/y\\,z");
	cr_assert_eq(save(), 0, "%s", err);
	cr_assert_str_eq(report, "saved a=/x,readonly\nsaved b c=/y\\,z\n");
	expect_file("path = /y,z\n");
}

/* A file has no mistake then, and another export under the same name. */
Test(conf_file_save, what_comes_back_as_another_one)
{
	static const char *const specs[] = { "b=/y\nmode = ro" };

	for_each_case(spec, specs) {
		now = (struct srv_conf){ 0 };
		add("a=/x");
		cr_assert_eq(save(), 0, "%s", err);
		add(*spec);
		cr_assert_eq(save(), -EINVAL, "'%s'", *spec);
		cr_assert_str_eq(err, "export 'b': its name or path cannot be written in a file: "
				 "it would be read as another one");
		expect_file("path = /x\n");
		conf_fini(&now);
	}
	now = (struct srv_conf){ 0 };
}
