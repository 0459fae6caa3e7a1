/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans carried out upon files: the start, a step that cannot be prepared, a server that runs. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "apply.h"
#include "export.h"
#include "log.h"
#include "unit.h"

static char dir[64], cwd[256], err[512];
static struct exports exports;
static struct apply apply;

static void setup(void)
{
	cr_assert_not_null(getcwd(cwd, sizeof(cwd)));
	strcpy(dir, "/tmp/test-apply.XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
	for (char name[] = "a"; *name < 'd'; (*name)++) {
		int fd = open(name, O_RDWR | O_CREAT, 0600);

		cr_assert_geq(fd, 0);
		cr_assert_eq(ftruncate(fd, 4096), 0);
		close(fd);
	}
	exports_init(&exports, 3);
	apply_init(&apply, &exports);
	err[0] = '\0';
}

static void teardown(void)
{
	char command[128];

	apply_fini(&apply);
	exports_fini(&exports);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
	cr_assert_eq(chdir(cwd), 0);
}

TestSuite(apply, .init = setup, .fini = teardown);

/* A configuration with what @line says, split at blanks; the text is kept. */
static void read_conf(struct srv_conf *conf, const char *line)
{
	static char words[8][256];
	static unsigned n;
	char *argv[32] = { (char *)"rtrs-server", (char *)"--state-dir=state" };
	char *save, *word, *copy = words[n++ % 8];
	int argc = 2;

	snprintf(copy, 256, "%s", line);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	cr_assert_eq(conf_parse(conf, argc, argv, err, sizeof(err)), OPT_RUN, "%s: %s", line, err);
}

/* Prepare and commit what makes @wanted of @now. */
static int run(const struct srv_conf *now, const struct srv_conf *wanted)
{
	struct plan plan;
	int rc;

	cr_assert_eq(plan_make(&plan, now, wanted), 0);
	rc = apply_prepare(&apply, &plan, err, sizeof(err));
	if (!rc)
		rc = apply_commit(&apply, &plan, wanted, err, sizeof(err));
	plan_fini(&plan);
	return rc;
}

Test(apply, the_start_is_the_first_plan)
{
	struct srv_conf conf;

	read_conf(&conf, "a=a b=b,readonly");
	cr_assert_eq(run(NULL, &conf), 0, "%s", err);
	cr_assert_eq(exports.n, 2);
	cr_assert_not_null(exports_find(&exports, "a"));
	cr_assert(exports_find(&exports, "b")->readonly);
	cr_assert(exports.locked);
	cr_assert_eq(access("state", F_OK), 0);
	conf_fini(&conf);
}

Test(apply, a_start_that_cannot_be_prepared_takes_nothing)
{
	struct srv_conf conf;

	read_conf(&conf, "a=a none=none c=c");
	cr_assert_eq(run(NULL, &conf), -ENOENT);
	cr_assert_not_null(strstr(err, "'none'"), "%s", err);
	cr_assert_null(exports_find(&exports, "c"));
	cr_assert_not(exports.locked);
	cr_assert_neq(access("state", F_OK), 0);
	cr_assert_not(apply.runs);
	conf_fini(&conf);
}

Test(apply, the_state_directory_that_was_asked_for)
{
	struct srv_conf conf;

	read_conf(&conf, "a=a --state-dir=/dev/null/none");
	cr_assert_eq(run(NULL, &conf), -ENOTDIR, "%s", err);
	cr_assert_str_eq(err, "--state-dir '/dev/null/none' cannot be used: Not a directory");
	cr_assert_not(apply.runs);
	conf_fini(&conf);
}

/* The whole plan is refused, the option with it. */
Test(apply, a_server_that_runs_keeps_its_exports)
{
	static const struct { const char *wanted, *want; } cases[] = {
		{ "a=a b=b --log-level=debug",
		  "export 'b': cannot be added while the server runs" },
		{ "c=c --log-level=debug", "export 'a': cannot be removed while the server runs" },
		{ "a=a,readonly --log-level=debug",
		  "export 'a': cannot be removed while the server runs" },
	};
	struct srv_conf now, wanted;

	read_conf(&now, "a=a");
	cr_assert_eq(run(NULL, &now), 0, "%s", err);
	log_set_level(LOG_LEVEL_WARN);
	for_each_case(c, cases) {
		read_conf(&wanted, c->wanted);
		cr_assert_eq(run(&now, &wanted), -EOPNOTSUPP);
		cr_assert_str_eq(err, c->want);
		cr_assert_eq(exports.n, 1);
		cr_assert_eq(log_level(), LOG_LEVEL_WARN);
		conf_fini(&wanted);
	}
	conf_fini(&now);
}

Test(apply, a_server_that_runs_changes_options)
{
	struct srv_conf now, wanted;

	read_conf(&now, "a=a --threads=2");
	cr_assert_eq(run(NULL, &now), 0, "%s", err);
	read_conf(&wanted, "a=a --threads=3 --log-level=error");
	cr_assert_eq(run(&now, &wanted), 0, "%s", err);
	cr_assert_eq(log_level(), LOG_LEVEL_ERROR);
	cr_assert_eq(exports.n, 1);
	conf_fini(&wanted);
	conf_fini(&now);
}
