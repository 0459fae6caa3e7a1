/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of an export as a table, beside those of its storage (export-spec.c).  Limits, rules
 * and the priority change while the server runs, by the same rows, and stand on the line of an
 * export, too.  Owns nothing. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "export-spec.h"
#include "number.h"
#include "util.h"

/* ---- values with rules of their own ---- */

static int check_bps(void *arg, const char *text, char *why, size_t len)
{
	const struct conf_export *ex = arg;

	for (unsigned i = LIMIT_BPS; i < LIMITS; i++) {
		uint64_t rate = ex->limits.rate[i];

		if (!rate || rate >= LIMIT_BPS_MIN)
			continue;
		return fmt_error(-EINVAL, why, len, "expected 4K or more bytes a second, or none");
	}
	return 0;
}

static int read_burst(void *arg, const char *text, char *why, size_t len)
{
	struct conf_export *ex = arg;
	const char *rest;
	uint64_t n;

	if (!strcmp(text, "none")) {
		n = 0;
	} else if (!number_prefix(text, &rest, &n) || n > LIMIT_BURST_MAX ||
		   (*rest && strcmp(rest, "s"))) {
		return fmt_error(-EINVAL, why, len, "expected a number of seconds from 1 to %u, "
				 "like 10s, or none", LIMIT_BURST_MAX);
	}
	ex->limits.burst_s = (unsigned)n;
	return 0;
}

static int read_allow(void *arg, const char *text, char *why, size_t len)
{
	struct conf_export *ex = arg;

	return conf_allow_list_add(&ex->allow, text, why, len);
}

static int read_read_only(void *arg, const char *text, char *why, size_t len)
{
	struct conf_export *ex = arg;

	if (!strcmp(text, "none") && !ex->read_only.n)
		return 0;
	if (!strcmp(text, "none") || !strcmp(text, "all"))
		return fmt_error(-EINVAL, why, len, "expected rules, or only 'none'");
	if (!strcmp(text, "yes") || !strcmp(text, "no"))
		return fmt_error(-EINVAL, why, len, "expected the clients that may only read; "
				 "mode = ro is for all of them");
	return conf_allow_list_add(&ex->read_only, text, why, len);
}

static int read_priority(void *arg, const char *text, char *why, size_t len)
{
	struct conf_export *ex = arg;

	return conf_limits_parse_priority(text, &ex->priority, why, len);
}

/* ---- the table ---- */

#define FIELD(field) OPT_FIELD(struct conf_export, field)
#define IOPS(i) \
	.type = OPT_NUMBER, FIELD(limits.rate[i]), .arg = "N", .most = LIMIT_IOPS_MAX, \
	.of = "requests a second", .special = "none", .holds = OPT_IN_FILE | OPT_AT_RUN_TIME
#define BPS(i) \
	.type = OPT_SIZE, FIELD(limits.rate[i]), .arg = "SIZE", .most = LIMIT_BPS_MAX, \
	.of = "bytes a second", .special = "none", .call = check_bps, \
	.holds = OPT_IN_FILE | OPT_AT_RUN_TIME

static const struct opt rows[] = {
	{ .name = "iops", IOPS(LIMIT_IOPS), .help = "requests a second" },
	{ .name = "iops-read", IOPS(LIMIT_IOPS_READ), .help = "reads" },
	{ .name = "iops-write", IOPS(LIMIT_IOPS_WRITE), .help = "writes, zeroes, discards" },
	{ .name = "bps", BPS(LIMIT_BPS), .help = "bytes a second" },
	{ .name = "bps-read", BPS(LIMIT_BPS_READ), .help = "read" },
	{ .name = "bps-write", BPS(LIMIT_BPS_WRITE), .help = "written" },
	{ .name = "burst", .type = OPT_OTHER, .call = read_burst, .arg = "SECONDS",
	  .holds = OPT_IN_FILE | OPT_AT_RUN_TIME,
	  .help = "what was not used is saved for so long" },
	{ .name = "allow", .type = OPT_OTHER, .call = read_allow, .arg = "CLIENT",
	  .many = true, .holds = OPT_IN_FILE | OPT_AT_RUN_TIME,
	  .help = "only these: ADDR[/BITS], uid:USER, unix, psk:NAME" },
	{ .name = "read-only", .type = OPT_OTHER, .call = read_read_only, .arg = "CLIENT",
	  .many = true, .holds = OPT_IN_FILE | OPT_AT_RUN_TIME,
	  .help = "and these, which may not write" },
	{ .name = "priority", .type = OPT_OTHER, .call = read_priority, .arg = "CLASS[:LEVEL]",
	  .holds = OPT_IN_FILE | OPT_AT_RUN_TIME,
	  .help = "the best that its IO gets" },
};

_Static_assert(!offsetof(struct conf_export, spec), "the rows of storage set a struct conf_export");

const struct opt_table conf_export_options = {
	.program = "rtrs-server", .rows = rows, .n = ARRAY_SIZE(rows), .dashes = "", .column = 34,
	.more = export_spec_part,
};

bool conf_export_same_settings(const struct conf_export *a, const struct conf_export *b)
{
	return conf_limits_same(&a->limits, &b->limits) &&
	       conf_allow_list_same(&a->allow, &b->allow) &&
	       conf_allow_list_same(&a->read_only, &b->read_only) && a->priority == b->priority;
}

/* ---- words of a line ---- */

/* The row called @name, which changes at run time; NULL: the reason is in @err. */
static const struct opt *find_changing(const char *name, char *err, size_t len)
{
	const struct opt_table *table = &conf_export_options;
	const struct opt *row = opt_find(table, name);
	const char *meant;

	/* "readonly" of a line is not what "read-only" changes. */
	if (row && !(row->holds & (OPT_IN_FILE | OPT_AT_RUN_TIME)))
		row = NULL;
	if (row && !(row->holds & OPT_AT_RUN_TIME)) {
		snprintf(err, len, "'%s' cannot be changed: remove the export and add it again",
			 name);
		return NULL;
	}
	if (!row) {
		meant = opt_suggest(table, OPT_AT_RUN_TIME, name, strlen(name));
		snprintf(err, len, "there is no option '%s'%s%s%s", name, meant ?
			 " (did you mean " : ": expected iops, bps, burst, allow, read-only or "
			 "priority",
			 meant ? meant : "", meant ? "?)" : "");
	}
	return row;
}

/* Words of one line, "KEY=VALUE", that are read into @ex. */
struct line_words {
	struct conf_export ex;
	const struct opt *row;		/* of the last word; NULL: none was read */
	/* a rule of the list was read, which replaces those before the line */
	bool allow, read_only;
};

/* Empty the list of @row before the first rule of the line. */
static void begin_rules(struct line_words *words, const struct opt *row)
{
	bool allow = row->call == read_allow;
	bool *begun = allow ? &words->allow : &words->read_only;

	if (!*begun)
		(allow ? &words->ex.allow : &words->ex.read_only)->n = 0;
	*begun = true;
}

/* Read @word into @words: "KEY=VALUE", or a further value of the list that the last word named. */
static int read_word(struct line_words *words, char *word, char *err, size_t len)
{
	char *value = strchr(word, '='), why[192];
	int rc;

	if (value)
		*value++ = '\0';
	if (!value && words->row && words->row->many) {
		value = word;
	} else {
		words->row = find_changing(word, err, len);
		if (!words->row)
			return -EINVAL;
	}
	if (!value || !*value)
		return fmt_error(-EINVAL, err, len, "'%s' has no value: expected %s=VALUE", word,
				 word);
	if (words->row->many)
		begin_rules(words, words->row);
	rc = opt_read(words->row, &words->ex, value, why, sizeof(why));
	if (rc)
		snprintf(err, len, "%s '%s': %s", words->row->name, value, why);
	return rc;
}

/* ---- options on the line of an export ---- */

/* Is @word for this table, and not for the store?  A further rule of a list is: a flag has neither
 * '.' nor ':'.  A key that the user may have meant for one of the table is, too. */
static bool is_option(const struct line_words *words, const char *word)
{
	const struct opt_table *table = &conf_export_options;
	size_t n = strcspn(word, "=");
	char key[32];
	const struct opt *row;
	const char *meant;

	if (!word[n])
		return words->row && words->row->many && strpbrk(word, ".:");
	if (n >= sizeof(key))
		return false;
	snprintf(key, sizeof(key), "%.*s", (int)n, word);
	row = opt_find(table, key);
	meant = row ? NULL : opt_suggest(table, OPT_AT_START | OPT_AT_RUN_TIME, key, n);
	if (meant)
		row = opt_find(table, meant);
	return row && row->holds & OPT_AT_RUN_TIME;
}

/* Take @option of a line, if it is for this table (export-spec.h). */
static int take_option(void *arg, char *option, char *why, size_t len)
{
	struct line_words *words = arg;
	int rc;

	if (!is_option(words, option))
		return 0;
	rc = read_word(words, option, why, len);
	return rc ? rc : 1;
}

int conf_add_export(struct srv_conf *conf, const char *line, char *err, size_t len)
{
	struct line_words words = { .row = NULL };
	char *copy = strdup(line);
	int rc;

	if (!copy)
		return fmt_error(-ENOMEM, err, len, "out of memory");
	rc = export_line_read(&words.ex.spec, copy, take_option, &words, err, len);
	if (!rc)
		rc = conf_put_export(conf, &words.ex, NULL, err, len);
	free(copy);
	return rc;
}

int conf_set_export(struct srv_conf *conf, const char *line, char *err, size_t len)
{
	char *name = strndup(line, strcspn(line, "="));
	const struct conf_export *old = name ? conf_export_find(conf, name) : NULL;

	if (old && old->where)
		conf_del_export(conf, old->spec.name);
	free(name);
	return conf_add_export(conf, line, err, len);
}

/* ---- options at run time ---- */

/* Set options of @ex as @words says, "KEY=VALUE[,KEY=VALUE]...", which is cut up. */
static int set_options(struct conf_export *ex, char *words, char *err, size_t len)
{
	struct line_words read = { .ex = *ex };
	char *save, *word = strtok_r(words, ",", &save);
	int rc = 0;

	while (word && !rc) {
		rc = read_word(&read, word, err, len);
		word = strtok_r(NULL, ",", &save);
	}
	if (!rc)
		*ex = read.ex;
	return rc;
}

/* The ',' behind NAME, which has no '='.  NULL: none is there. */
static char *name_end(char *text)
{
	char *equals = strchr(text, '=');

	return equals ? memrchr(text, ',', (size_t)(equals - text)) : NULL;
}

int conf_export_options_set(struct srv_conf *conf, const char *text, char *err, size_t len)
{
	char *copy = strdup(text), *words = copy ? name_end(copy) : NULL;
	struct conf_export *ex;
	int rc = -EINVAL;

	if (!copy)
		return fmt_error(-ENOMEM, err, len, "out of memory");
	if (!words) {
		snprintf(err, len, "'%s': expected NAME and at least one KEY=VALUE", text);
		free(copy);
		return rc;
	}
	*words++ = '\0';
	ex = conf_export_find(conf, copy);
	if (ex) {
		rc = set_options(ex, words, err, len);
	} else {
		snprintf(err, len, "there is no export '%s'", copy);
		rc = -ENOENT;
	}
	free(copy);
	return rc;
}
