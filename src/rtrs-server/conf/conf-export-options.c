/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of an export as a table.  Limits, rules and the priority change while the server
 * runs, by the same rows, and stand on the line of an export, too.  Owns nothing. */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf-priv.h"
#include "number.h"
#include "util.h"

/* ---- values with rules of their own ---- */

static int check_bps(void *arg, const char *text, char *why, size_t len)
{
	const struct conf_export_lines *lines = arg;

	for (unsigned i = LIMIT_BPS; i < LIMITS; i++) {
		uint64_t rate = lines->limits.rate[i];

		if (!rate || rate >= LIMIT_BPS_MIN)
			continue;
		snprintf(why, len, "expected 4K or more bytes a second, or none");
		return -EINVAL;
	}
	return 0;
}

static int read_burst(void *arg, const char *text, char *why, size_t len)
{
	struct conf_export_lines *lines = arg;
	const char *rest;
	uint64_t n;

	if (!strcmp(text, "none")) {
		n = 0;
	} else if (!number_prefix(text, &rest, &n) || n > LIMIT_BURST_MAX ||
		   (*rest && strcmp(rest, "s"))) {
		snprintf(why, len, "expected a number of seconds from 1 to %u, like 10s, or none",
			 LIMIT_BURST_MAX);
		return -EINVAL;
	}
	lines->limits.burst_s = (unsigned)n;
	return 0;
}

static int read_allow(void *arg, const char *text, char *why, size_t len)
{
	struct conf_export_lines *lines = arg;

	return conf_allow_list_add(&lines->allow, text, why, len);
}

static int read_read_only(void *arg, const char *text, char *why, size_t len)
{
	struct conf_export_lines *lines = arg;

	if (!strcmp(text, "none") && !lines->read_only.n)
		return 0;
	if (!strcmp(text, "none") || !strcmp(text, "all")) {
		snprintf(why, len, "expected rules, or 'none' alone");
		return -EINVAL;
	}
	return conf_allow_list_add(&lines->read_only, text, why, len);
}

static int read_priority(void *arg, const char *text, char *why, size_t len)
{
	struct conf_export_lines *lines = arg;

	return conf_priority_parse(text, &lines->priority, why, len);
}

/* ---- the table ---- */

#define FIELD(field) OPT_FIELD(struct conf_export_lines, field)
#define IOPS(i) \
	.type = OPT_NUMBER, FIELD(limits.rate[i]), .arg = "N", .most = LIMIT_IOPS_MAX, \
	.of = "requests a second", .special = "none", .holds = OPT_IN_FILE | OPT_AT_RUN_TIME
#define BPS(i) \
	.type = OPT_SIZE, FIELD(limits.rate[i]), .arg = "SIZE", .most = LIMIT_BPS_MAX, \
	.of = "bytes a second", .special = "none", .call = check_bps, \
	.holds = OPT_IN_FILE | OPT_AT_RUN_TIME

static const struct opt rows[] = {
	{ .name = "path", .type = OPT_TEXT, FIELD(path), .arg = "PATH|mem:SIZE|rbd:POOL/IMAGE",
	  .of = "a path", .holds = OPT_IN_FILE, .help = "file, block device, memory, Ceph image" },
	{ .name = "mode", .type = OPT_WORD, FIELD(mode), .words = rnbd_access_names,
	  .nwords = RNBD_ACCESS_RW + 1, .fallback = "rw", .holds = OPT_IN_FILE,
	  .help = "what clients may do" },
	{ .name = "direct", .type = OPT_FLAG, FIELD(direct), .holds = OPT_IN_FILE,
	  .help = "use O_DIRECT" },
	{ .name = "force", .type = OPT_FLAG, FIELD(force), .holds = OPT_IN_FILE,
	  .help = "a device in use, too" },
	{ .name = "shared", .type = OPT_FLAG, FIELD(shared), .holds = OPT_IN_FILE,
	  .help = "another server may have it, too" },
	{ .name = "conf", .type = OPT_TEXT, FIELD(conf), .arg = "FILE", .of = "a path",
	  .holds = OPT_IN_FILE, .help = "Ceph image: Ceph's configuration" },
	{ .name = "id", .type = OPT_TEXT, FIELD(id), .arg = "NAME|USER", .of = "a name",
	  .holds = OPT_IN_FILE, .help = "its identity; Ceph image: user without client." },
	{ .name = "luks", .type = OPT_TEXT, FIELD(luks), .arg = "FILE", .of = "a path",
	  .holds = OPT_IN_FILE, .help = "Ceph image: file with the passphrase" },
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
	  .help = "of IO without one of its own" },
};

const struct opt_table conf_export_options = {
	.program = "rtrs-server", .rows = rows, .n = ARRAY_SIZE(rows), .dashes = "", .column = 34,
};

/* ---- words of a line ---- */

/* The row called @name, which changes at run time; NULL: the reason is in @err. */
static const struct opt *find_changing(const char *name, char *err, size_t len)
{
	const struct opt_table *table = &conf_export_options;
	const struct opt *row = opt_find(table, name);
	const char *meant;

	if (row && !(row->holds & OPT_AT_RUN_TIME)) {
		snprintf(err, len, "'%s' does not change: remove the export and add it again",
			 name);
		return NULL;
	}
	if (!row) {
		meant = opt_suggest(table, name, strlen(name));
		snprintf(err, len, "there is no option '%s'%s%s%s", name, meant ?
			 " (did you mean " : ": expected iops, bps, burst, allow, read-only or "
			 "priority",
			 meant ? meant : "", meant ? "?)" : "");
	}
	return row;
}

/* Words of one line, "KEY=VALUE", that are read into @lines. */
struct line_words {
	struct conf_export_lines lines;
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
		(allow ? &words->lines.allow : &words->lines.read_only)->n = 0;
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
	if (!value || !*value) {
		snprintf(err, len, "'%s' has no value: expected %s=VALUE", word, word);
		return -EINVAL;
	}
	if (words->row->many)
		begin_rules(words, words->row);
	rc = opt_read(words->row, &words->lines, value, why, sizeof(why));
	if (rc)
		snprintf(err, len, "%s '%s': %s", words->row->name, value, why);
	return rc;
}

void conf_export_take(struct conf_export *ex, const struct conf_export_lines *lines)
{
	ex->limits = lines->limits;
	ex->allow = lines->allow;
	ex->read_only = lines->read_only;
	ex->priority = lines->priority;
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
	if (!strcmp(key, "readonly"))	/* the flag, and no mistake for "read-only" */
		return false;
	row = opt_find(table, key);
	meant = row ? NULL : opt_suggest(table, key, n);
	if (meant)
		row = opt_find(table, meant);
	return row && row->holds & OPT_AT_RUN_TIME;
}

/* The ',' behind the word at @at, or the end; a ',' behind a backslash belongs to the word. */
static char *word_end(char *at)
{
	while (*at && *at != ',')
		at += at[0] == '\\' && at[1] ? 2 : 1;
	return at;
}

/* Read the words "KEY=VALUE" of @spec, NAME=PATH[,WORD]..., into @words, and take them out of
 * @spec; the flags stay. */
static int split_line(char *spec, struct line_words *words, char *err, size_t len)
{
	char *at = word_end(spec + strcspn(spec, "=")), *out = at, why[320];
	int rc = 0;

	while (!rc && *at) {
		char *word = at + 1, *end = word_end(word), after = *end;

		*end = '\0';
		if (is_option(words, word)) {
			rc = read_word(words, word, why, sizeof(why));
		} else {
			*out++ = ',';
			memmove(out, word, strlen(word) + 1);
			out += strlen(out);
		}
		*end = after;
		at = end;
	}
	*out = '\0';
	if (rc)
		snprintf(err, len, "export '%.*s': %s", (int)strcspn(spec, "="), spec, why);
	return rc;
}

int conf_add_export(struct srv_conf *conf, const char *spec, char *err, size_t len)
{
	struct line_words words = { .row = NULL };
	char *copy = strdup(spec);
	int rc;

	if (!copy) {
		snprintf(err, len, "out of memory");
		return -ENOMEM;
	}
	rc = split_line(copy, &words, err, len);
	if (!rc)
		rc = conf_add_export_of(conf, copy, NULL, err, len);
	if (!rc)
		conf_export_take(conf->exports[conf->nexports - 1], &words.lines);
	free(copy);
	return rc;
}

int conf_set_export(struct srv_conf *conf, const char *spec, char *err, size_t len)
{
	char *name = strndup(spec, strcspn(spec, "="));
	const struct conf_export *old = name ? conf_export_find(conf, name) : NULL;

	if (old && old->where)
		conf_del_export(conf, old->name);
	free(name);
	return conf_add_export(conf, spec, err, len);
}

/* ---- options at run time ---- */

/* Set options of @ex as @words says, "KEY=VALUE[,KEY=VALUE]...", which is cut up. */
static int set_options(struct conf_export *ex, char *words, char *err, size_t len)
{
	struct line_words read = {
		.lines = { .limits = ex->limits, .allow = ex->allow, .read_only = ex->read_only,
			   .priority = ex->priority },
	};
	char *save, *word = strtok_r(words, ",", &save);
	int rc = 0;

	while (word && !rc) {
		rc = read_word(&read, word, err, len);
		word = strtok_r(NULL, ",", &save);
	}
	if (!rc)
		conf_export_take(ex, &read.lines);
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

	if (!copy) {
		snprintf(err, len, "out of memory");
		return -ENOMEM;
	}
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
