/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of rtrs-bench: the table, and what a command line becomes. */
#include "opt-rules.h"
#include "unit.h"

#include "bench.h"
#include "process.h"

static const struct clt_front front = { .name = "rtrs-bench", .program = "rtrs-bench",
					.help = "help", .options = &options_table,
					.conf_size = sizeof(struct options),
					.defaults = options_defaults };
static struct options o;

Test(options, table)
{
	options_table_fill();
	opt_rules(&options_table, sizeof(struct options), "rtrs-bench.pod");
}

/* Parse @args, split at blanks, with a server and an export behind them. */
static int parse(const char *args)
{
	static char copy[512];
	char *argv[32] = { (char *)"rtrs-bench" }, *save, *word;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s 127.0.0.1 disk", args);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	clt_conf_fini(&o.session);
	return options_parse(&o, &front, argc, argv);
}

Test(options, loads)
{
	static const struct {
		const char *args;
		bool random;
		unsigned read_percent;
		uint64_t runtime_s, ios;
	} cases[] = {
		{ "", true, 100, 10, 0 },
		{ "--rw=read", false, 100, 10, 0 },
		{ "--rw=write", false, 0, 10, 0 },
		{ "--rw=randwrite --number-ios=1K", true, 0, 0, 1024 },
		{ "--rw=rw --runtime=3", false, 50, 3, 0 },
		{ "--rw=randrw --rwmixread=30", true, 30, 10, 0 },
		{ "--rw=write --rw=randread", true, 100, 10, 0 },
	};

	for_each_case(c, cases) {
		cr_assert_eq(parse(c->args), -1, "%s", c->args);
		cr_assert_eq(o.load.random, c->random, "%s", c->args);
		cr_assert_eq(o.load.read_percent, c->read_percent, "%s", c->args);
		cr_assert_eq(o.load.runtime_s, c->runtime_s, "%s", c->args);
		cr_assert_eq(o.load.ios, c->ios, "%s", c->args);
		cr_assert_eq(o.load.block, 4096);
		cr_assert_eq(o.load.depth, 1);
		cr_assert_eq(o.load.seed, 1);
		cr_assert_eq(o.session.sess.connections, 1);
		cr_assert_eq(o.session.sess.poll_us, 100);
		cr_assert_str_empty(o.session.sessname);
		cr_assert(o.session.automatic);
	}
}

Test(options, of_no_effect)
{
	static const char *const cases[] = { "--rwmixread=30", "--rw=read --seed=7", "--fua",
					     "--rw=rw --rwmixread=100 --fua" };
	for_each_case(c, cases)
		cr_assert_eq(parse(*c), EXIT_USAGE, "%s", *c);
}
