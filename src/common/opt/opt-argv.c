/* SPDX-License-Identifier: BSD-3-Clause */
/* A command line, with the rules of getopt_long(3): names may be shortened, --NAME=VALUE or --NAME
 * VALUE, options may stand behind other words.  Owns nothing. */
#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "names.h"
#include "opt.h"

/* The value that getopt_long() returns for the first row. */
#define FIRST 256

struct words {
	struct option longs[OPT_ROWS_MAX + 1];
	char letters[2 * OPT_ROWS_MAX + 2];
};

static int has_arg(const struct opt *row)
{
	if (row->type == OPT_FLAG || row->type == OPT_HELP || row->type == OPT_VERSION)
		return no_argument;
	return row->optional ? optional_argument : required_argument;
}

/* @w is all zeroes. */
static void words_init(struct words *w, const struct opt_table *table)
{
	char *letter = w->letters;

	*letter++ = ':';
	for (unsigned i = 0; i < table->n; i++) {
		const struct opt *row = &table->rows[i];

		w->longs[i] = (struct option){ .name = row->name, .has_arg = has_arg(row),
					       .val = FIRST + (int)i };
		if (row->letter) {
			*letter++ = row->letter;
			if (has_arg(row) == required_argument)
				*letter++ = ':';
		}
	}
	*letter = '\0';
}

static const struct opt *row_of(const struct opt_table *table, int opt)
{
	const struct opt *row = table->rows;

	if (opt >= FIRST)
		return row + (opt - FIRST);
	while (row->letter != opt)
		row++;
	return row;
}

const char *opt_suggest(const struct opt_table *table, unsigned holds, const char *text, size_t len)
{
	const char *names[OPT_ROWS_MAX];
	const struct opt_table *part;
	unsigned n = 0;

	for (unsigned p = 0; (part = opt_part(table, p)); p++) {
		for (unsigned i = 0; i < part->n && n < OPT_ROWS_MAX; i++) {
			if (part->rows[i].holds & holds)
				names[n++] = opt_name(&part->rows[i], holds);
		}
	}
	return suggest_name(text, len, names, n);
}

/* Returns " (did you mean --NAME?)" for @word, an option with its dashes and maybe a value; or
 * "". */
static const char *did_you_mean(const struct opt_table *table, const char *word, char *buf,
				size_t len)
{
	struct opt_table own = *table;		/* further rows have no dashes */
	const char *name = word + strspn(word, "-"), *meant;

	own.more = NULL;
	meant = opt_suggest(&own, OPT_AT_START, name, strcspn(name, "="));
	buf[0] = '\0';
	/* No hint if the name is right, and the value is wrong. */
	if (meant && (name - word != 2 || strncmp(meant, name, strcspn(name, "="))))
		snprintf(buf, len, " (did you mean --%s?)", meant);
	return buf;
}

/* Describe in @err the option for which getopt_long() returned @opt, ':' or '?'. */
static void tell_bad_option(const struct opt_table *table, int opt, char **argv, char *err,
			    size_t len)
{
	/* optind is behind an option that is a word, but still at a group of letters. */
	char letter[] = { '-', (char)optopt, '\0' };
	bool is_letter = opt == '?' && optopt && optopt < FIRST;
	const char *text = is_letter ? letter : argv[optind - 1], *word = text;
	char meant[64];

	/* "-listen" is a group of letters, too. */
	if (is_letter && argv[optind] && argv[optind][0] == '-' && argv[optind][1] == letter[1])
		word = argv[optind];
	if (opt == ':')
		snprintf(err, len, "option '%s' needs a value: see %s --help", text,
			 table->program);
	else
		snprintf(err, len,
			 "option '%.*s' is unknown, ambiguous or takes no value%s: see %s --help",
			 (int)(len / 2), text, did_you_mean(table, word, meant, sizeof(meant)),
			 table->program);
}

/* Write to @err that the value @text is refused, and why: of a long value a part, so that the
 * reason has room. */
static void tell_bad_value(const struct opt *row, const char *text, const char *why, char *err,
			   size_t len)
{
	size_t others = strlen(row->name) + strlen(why) + sizeof("-- '...': ");
	size_t room = len > others ? len - others : 0;

	snprintf(err, len, "--%s '%.*s%s': %s", row->name, (int)room, text,
		 strlen(text) > room ? "..." : "", why);
}

static enum opt_result read_option(const struct opt_table *table, const struct opt *row, void *conf,
				   char *err, size_t len)
{
	char why[256];
	int rc;

	if (row->type == OPT_HELP) {
		opt_help(table, stdout);
		return OPT_EXIT;
	}
	if (row->type == OPT_VERSION) {
		printf("%s %s\n", table->program, PACKAGE_VERSION);
		return OPT_EXIT;
	}
	rc = opt_read(row, conf, optarg, why, sizeof(why));
	if (!rc)
		return OPT_RUN;
	tell_bad_value(row, optarg ? optarg : "", why, err, len);
	return rc == -EINVAL ? OPT_USAGE : OPT_FAILED;
}

enum opt_result opt_argv(const struct opt_table *table, void *conf, int argc, char **argv,
			 int *first, uint64_t *given, char *err, size_t len)
{
	enum opt_result result = OPT_RUN;
	struct words words = { 0 };
	int opt;

	words_init(&words, table);
	opterr = 0;
	optind = 0;	/* start afresh */
	while (result == OPT_RUN &&
	       (opt = getopt_long(argc, argv, words.letters, words.longs, NULL)) != -1) {
		if (opt == ':' || opt == '?') {
			tell_bad_option(table, opt, argv, err, len);
			return OPT_USAGE;
		}
		if (given)
			*given |= UINT64_C(1) << (row_of(table, opt) - table->rows);
		result = read_option(table, row_of(table, opt), conf, err, len);
	}
	*first = optind;
	return result;
}
