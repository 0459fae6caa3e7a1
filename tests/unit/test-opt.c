/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of options: a command line through rows of each type, refusals word by word, help. */
#include <errno.h>

#include "unit.h"

#include "opt.h"

struct conf {
	bool flag, bright, bright_asked;
	unsigned number, scaled_ms;
	int attempts;
	uint64_t size, timeout_ms;
	enum { RED, GREEN, BLUE } colour;
	const char *text;
	unsigned others, watch;
};

static const char *const colours[] = { "red", "green", "blue" };
static const char *const no_yes[] = { "no", "yes" };

static int add_other(void *arg, const char *value, char *why, size_t len)
{
	struct conf *conf = arg;

	snprintf(why, len, "expected anything but no and gone");
	if (!strcmp(value, "no"))
		return -EINVAL;
	if (!strcmp(value, "gone"))
		return -ENOENT;
	conf->others++;
	return 0;
}

#define FIELD(field) OPT_FIELD(struct conf, field)
static const struct opt rows[] = {
	{ .group = "First", .name = "flag", .type = OPT_FLAG, FIELD(flag),
	  .holds = OPT_AT_START, .help = "a flag" },
	{ .name = "number", .type = OPT_NUMBER, FIELD(number), .arg = "N", .least = 2, .most = 9,
	  .fallback = "5", .holds = OPT_AT_START, .help = "a number" },
	{ .name = "scaled", .type = OPT_NUMBER, FIELD(scaled_ms), .arg = "SECONDS", .of = "seconds",
	  .least = 1, .most = 60, .scale = 1000, .fallback = "30", .shown = "30 s",
	  .holds = OPT_AT_START, .help = "one\nand two" },
	{ .group = "Second group", .name = "attempts", .type = OPT_NUMBER, FIELD(attempts),
	  .arg = "N", .most = 9, .special = "-1", .special_value = UINT64_MAX,
	  .special_help = "-1 for no end",
	  .fallback = "-1", .holds = OPT_AT_START,
	  .help = "how often a connection that was lost is made" },
	{ .name = "size", .type = OPT_SIZE, FIELD(size), .arg = "SIZE", .least = 512,
	  .most = 64u << 20, .step = 512, .holds = OPT_AT_START, .help = "a size" },
	{ .name = "room", .type = OPT_SIZE, FIELD(timeout_ms), .arg = "SIZE", .of = "IOs",
	  .least = 1, .most = UINT64_C(1) << 40,
	  .holds = OPT_AT_START, .help = "another one" },
	{ .name = "colour", .type = OPT_WORD, FIELD(colour), .words = colours, .nwords = 3,
	  .fallback = "green", .holds = OPT_AT_START, .help = "a word" },
	{ .name = "bright", .type = OPT_WORD, FIELD(bright), .words = no_yes, .nwords = 2,
	  OPT_ASKED(struct conf, bright_asked), .holds = OPT_AT_START, .help = "a word of two" },
	{ .name = "text", .type = OPT_TEXT, FIELD(text), .arg = "PATH|none", .of = "a path",
	  .special = "none", .holds = OPT_AT_START, .help = "a text" },
	{ .name = "other", .type = OPT_OTHER, .call = add_other, .arg = "X", .many = true,
	  .holds = OPT_AT_START, .help = "another one each time" },
	{ .name = "watch", .type = OPT_NUMBER, FIELD(watch), .arg = "N", .least = 1, .most = 7,
	  .optional = true, .fallback = "3", .holds = OPT_AT_START, .help = "again" },
	{ .name = "help", .letter = 'h', .type = OPT_HELP, .holds = OPT_AT_START,
	  .help = "print this and exit" },
};

static const struct opt_table table = {
	.program = "prog", .rows = rows, .n = ARRAY_SIZE(rows), .dashes = "--",
	.head = "Usage: prog\n\n",
	.tail = "\nThe end.\n", .column = 24,
};

static uint64_t given;
static int first;

/* Read @args, split at blanks. */
static enum opt_result parse(struct conf *conf, const char *args, char *err, size_t len)
{
	static char copy[512];
	char *argv[32] = { (char *)"prog" }, *save, *word;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", args);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	err[0] = '\0';
	given = 0;
	first = -1;
	memset(conf, 0, sizeof(*conf));
	opt_defaults(&table, conf);
	return opt_argv(&table, conf, argc, argv, &first, &given, err, len);
}

Test(opt, defaults)
{
	struct conf conf;
	char err[256];

	cr_assert_eq(parse(&conf, "", err, sizeof(err)), OPT_RUN);
	cr_assert_eq(conf.number, 5);
	cr_assert_eq(conf.scaled_ms, 30000);
	cr_assert_eq(conf.attempts, -1);
	cr_assert_eq(conf.colour, GREEN);
	cr_assert_not(conf.flag);
	cr_assert_eq(conf.watch, 0);		/* not asked for */
	cr_assert_not(conf.bright_asked);
	cr_assert_eq(given, 0);
	cr_assert_eq(first, 1);
}

/* A value that is the default was asked for, too; one that is refused was not. */
Test(opt, asked)
{
	struct conf conf;
	char err[256];

	cr_assert_eq(parse(&conf, "--bright=no", err, sizeof(err)), OPT_RUN);
	cr_assert_not(conf.bright);
	cr_assert(conf.bright_asked);
	cr_assert_not(conf.flag);
	cr_assert_eq(parse(&conf, "--bright=maybe", err, sizeof(err)), OPT_USAGE);
	cr_assert_not(conf.bright_asked);
}

Test(opt, values)
{
	struct conf conf;
	char err[256];

	cr_assert_eq(parse(&conf,
			   "a --flag --number=2 --scaled 60 b --attempts=0 --size=4K --room=8G "
			   "--colour=blue "
			   "--text=/x --other 1 --other=2 --watch", err, sizeof(err)), OPT_RUN,
		     "%s", err);
	cr_assert(conf.flag);
	cr_assert_eq(conf.number, 2);
	cr_assert_eq(conf.scaled_ms, 60000);
	cr_assert_eq(conf.attempts, 0);
	cr_assert_eq(conf.size, 4096);
	cr_assert_eq(conf.timeout_ms, 8ull << 30);
	cr_assert_eq(conf.colour, BLUE);
	cr_assert_str_eq(conf.text, "/x");
	cr_assert_eq(conf.others, 2);
	cr_assert_eq(conf.watch, 3);
	cr_assert_eq(first, 14);	/* a and b stand behind 13 words of options */
	cr_assert(opt_given(&table, given, "flag"));
	cr_assert(opt_given(&table, given, "watch"));
	cr_assert_not(opt_given(&table, given, "help"));
	cr_assert_eq(parse(&conf, "--text /x --text none --watch=7 --num 9", err, sizeof(err)),
		     OPT_RUN);
	cr_assert_null(conf.text);
	cr_assert_eq(conf.watch, 7);
	cr_assert_eq(conf.number, 9);
}

/* opt_text() writes a value as the user writes it. */
Test(opt, text)
{
	static const struct {
		const char *args, *name, *text;
	} cases[] = {
		{ "--flag", "flag", "yes" }, { "", "flag", "no" }, { "--number=7", "number", "7" },
		{ "--scaled=60", "scaled", "60" }, { "--attempts=9", "attempts", "9" },
		{ "", "attempts", "-1" }, { "--size=4K", "size", "4096" },
		{ "--room=8G", "room", "8589934592" }, { "--colour=blue", "colour", "blue" },
		{ "--text=/x", "text", "/x" }, { "--text=none", "text", "none" },
		{ "--bright=no", "bright", "no" }, { "--bright=yes", "bright", "yes" },
	};
	char err[256], buf[OPT_TEXT_MAX];
	struct conf conf;

	for_each_case(c, cases) {
		cr_assert_eq(parse(&conf, c->args, err, sizeof(err)), OPT_RUN, "%s", err);
		cr_assert_str_eq(opt_text(opt_find(&table, c->name), &conf, buf), c->text);
	}
}

/* The rows of a table stand in two parts, and one name in both. */
static const struct opt_table *more(unsigned i)
{
	static const struct opt more_rows[] = {
		{ .name = "flag", .type = OPT_FLAG },
		{ .name = "behind", .type = OPT_FLAG, .holds = OPT_AT_START },
	};
	static const struct opt_table part = { .rows = more_rows, .n = ARRAY_SIZE(more_rows) };

	return i ? NULL : &part;
}

Test(opt, parts)
{
	struct opt_table both = table;

	both.more = more;
	cr_assert_eq(opt_find(&both, "flag"), &rows[0]);
	cr_assert_null(opt_find(&table, "behind"));
	cr_assert_not_null(opt_find(&both, "behind"));
	cr_assert_str_eq(opt_suggest(&both, OPT_AT_START, "behnd", 5), "behind");
	cr_assert_null(opt_find(&both, "beyond"));
}

Test(opt, mistakes)
{
	static const struct {
		const char *args;
		enum opt_result result;
		const char *line;
	} cases[] = {
		{ "--number=1", OPT_USAGE, "--number '1': expected a number from 2 to 9" },
		{ "--number=10", OPT_USAGE, "--number '10': expected a number from 2 to 9" },
		{ "--number=", OPT_USAGE, "--number '': expected a number from 2 to 9" },
		{ "--number 2x", OPT_USAGE, "--number '2x': expected a number from 2 to 9" },
		{ "--scaled=1s", OPT_USAGE,
		  "--scaled '1s': expected a number of seconds from 1 to 60" },
		{ "--attempts=-2", OPT_USAGE,
		  "--attempts '-2': expected a number from 0 to 9, or -1 for no end" },
		{ "--size=1000", OPT_USAGE,
		  "--size '1000': expected a multiple of 512 from 512 to 64M" },
		{ "--size=65M", OPT_USAGE,
		  "--size '65M': expected a multiple of 512 from 512 to 64M" },
		{ "--room=0", OPT_USAGE,
		  "--room '0': expected a number of IOs from 1 to 1T, optionally with K, "
		  "M, G or T" },
		{ "--colour=re", OPT_USAGE, "--colour 're': expected red, green or blue" },
		{ "--text=", OPT_USAGE, "--text '': expected a path, or none" },
		{ "--other=no", OPT_USAGE, "--other 'no': expected anything but no and gone" },
		{ "--other=gone", OPT_FAILED, "--other 'gone': expected anything but no and gone" },
		{ "--watch=8", OPT_USAGE, "--watch '8': expected a number from 1 to 7" },
		{ "--colour", OPT_USAGE, "option '--colour' needs a value: see prog --help" },
		{ "--flags", OPT_USAGE, "option '--flags' is unknown, ambiguous or takes no value "
		  "(did you mean --flag?): see prog --help" },
		{ "--flag=1", OPT_USAGE,
		  "option '--flag=1' is unknown, ambiguous or takes no value: see prog --help" },
		{ "-x", OPT_USAGE,
		  "option '-x' is unknown, ambiguous or takes no value: see prog --help" },
	};

	for_each_case(c, cases) {
		struct conf conf;
		char err[256];

		cr_assert_eq(parse(&conf, c->args, err, sizeof(err)), c->result, "%s", c->args);
		cr_assert_str_eq(err, c->line);
	}
}

Test(opt, help)
{
	static const char want[] =
		"Usage: prog\n"
		"\n"
		"First:\n"
		"      --flag            a flag\n"
		"      --number=N        a number (default 5)\n"
		"      --scaled=SECONDS  one\n"
		"                        and two (default 30 s)\n"
		"\n"
		"Second group:\n"
		"      --attempts=N      how often a connection that was lost is made (-1)\n"
		"      --size=SIZE       a size\n"
		"      --room=SIZE       another one\n"
		"      --colour=red|green|blue  a word (default green)\n"
		"      --bright=no|yes   a word of two\n"
		"      --text=PATH|none  a text\n"
		"      --other=X         another one each time\n"
		"      --watch[=N]       again (default 3)\n"
		"  -h, --help            print this and exit\n"
		"\n"
		"The end.\n";
	char *got = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&got, &len);

	opt_help(&table, f);
	fclose(f);
	cr_assert_str_eq(got, want);
	free(got);
}
