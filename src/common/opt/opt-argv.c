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
		for (unsigned i = 0; i < part->n; i++) {
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

/* The help of a table.  Owns nothing. */

#define WIDTH 80

const char *opt_argument(const struct opt *row, char *buf, size_t len)
{
	size_t used = 0;

	buf[0] = '\0';
	if (row->arg || !row->nwords) {
		snprintf(buf, len, "%s", row->arg ? row->arg : "");
		return buf;
	}
	if (row->special)
		used = (size_t)snprintf(buf, len, "%s|", row->special);
	for (unsigned i = 0; i < row->nwords; i++)
		used += (size_t)snprintf(buf + used, len - used, "%s%s", i ? "|" : "",
					 row->words[i]);
	return buf;
}

/* Write the names and the argument of @row to @buf: "--queue-depth=N", "-h, --help",
 * "--watch[=SECONDS]", "mode=auto|rw", "[server=]HOST".  Returns the length. */
static size_t name_text(const struct opt_table *table, const struct opt *row, char *buf, size_t len)
{
	bool dashes = *table->dashes;
	char arg[128], letter[] = { '-', row->letter, ',', ' ', '\0' };
	int n;

	opt_argument(row, arg, sizeof(arg));
	if (row->magic)
		n = snprintf(buf, len, "[%s=]%s", row->name, arg);
	else
		n = snprintf(buf, len, "%s%s%s%s%s%s%s", row->letter ? letter : "", table->dashes,
			     row->name, row->optional ? "[" : "", *arg || !dashes ? "=" : "", arg,
			     row->optional ? "]" : "");
	return (size_t)n;
}

/* Print the names of @row.  Returns the column behind them. */
static size_t print_names(const struct opt_table *table, const struct opt *row, FILE *out)
{
	size_t indent = *table->dashes ? row->letter ? 2 : 6 : 0;
	char name[192];
	size_t len = name_text(table, row, name, sizeof(name));

	fprintf(out, "%*s%s", (int)indent, "", name);
	return indent + len;
}

/* Write " (default 128)" to @buf, or " (128)" if the line has no room behind column @at; "" without
 * a default. */
static void default_text(const struct opt *row, size_t at, char *buf, size_t len)
{
	const char *shown = row->shown ? row->shown : row->fallback;

	buf[0] = '\0';
	if (!shown || !*shown)
		return;
	snprintf(buf, len, " (default %s)", shown);
	if (at + strlen(buf) > WIDTH)
		snprintf(buf, len, " (%s)", shown);
}

/* Print the help of @row, whose lines begin at @column, behind names that end at column @at. */
static void print_words(const struct opt *row, size_t at, size_t column, FILE *out)
{
	const char *line = row->help, *end = strchr(line, '\n');
	char fallback[96];

	if (at >= column)
		column = at + 2;
	fprintf(out, "%*s", (int)(column - at), "");
	for (; end; line = end + 1, end = strchr(line, '\n'))
		fprintf(out, "%.*s\n%*s", (int)(end - line), line, (int)column, "");
	default_text(row, column + strlen(line), fallback, sizeof(fallback));
	/* The default may have a line of its own. */
	fprintf(out, "%s%s\n", line, *line ? fallback : fallback + 1);
}

void opt_help_rows(const struct opt_table *table, FILE *out)
{
	for (const struct opt *row = table->rows; row < table->rows + table->n; row++) {
		if (row->group)
			fprintf(out, "%s%s:\n", row == table->rows ? "" : "\n", row->group);
		print_words(row, print_names(table, row, out), table->column, out);
	}
}

void opt_help(const struct opt_table *table, FILE *out)
{
	fputs(table->head, out);
	if (table->body)
		table->body(out);
	opt_help_rows(table, out);
	if (table->tail)
		fputs(table->tail, out);
}
