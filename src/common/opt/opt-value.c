/* SPDX-License-Identifier: BSD-3-Clause */
/* A row checks the text of a value and stores it.  Owns nothing. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "number.h"
#include "opt.h"

/* ---- what is allowed ---- */

static void append_words(const struct opt *row, char *buf, size_t len)
{
	unsigned n = row->nwords;

	fmt_add(buf, len, "expected ");
	if (row->special)
		fmt_add(buf, len, "%s%s", row->special, n > 1 ? ", " : " or ");
	for (unsigned i = 0; i < n; i++)
		fmt_add(buf, len, "%s%s", row->words[i],
			i + 2 < n ? ", " : i + 2 == n ? " or " : "");
}

static void append_range(const struct opt *row, char *buf, size_t len)
{
	char least[SIZE_TEXT_MAX], most[SIZE_TEXT_MAX], step[SIZE_TEXT_MAX];
	bool size = row->type == OPT_SIZE;

	if (row->step)
		fmt_add(buf, len, "expected a multiple of %s", size_text(row->step, step));
	else
		fmt_add(buf, len, "expected a %s%s%s", size && !row->of ? "size" : "number",
			row->of ? " of " : "", row->of ? row->of : "");
	if (!size)
		fmt_add(buf, len, " from %" PRIu64 " to %" PRIu64, row->least, row->most);
	else
		fmt_add(buf, len, " from %s to %s%s", size_text(row->least, least),
			size_text(row->most, most),
			row->step ? "" : ", optionally with " SIZE_UNITS);
}

void opt_expected(const struct opt *row, char *buf, size_t len)
{
	buf[0] = '\0';
	if (row->type == OPT_WORD) {
		append_words(row, buf, len);
		return;
	}
	if (row->type == OPT_TEXT)
		fmt_add(buf, len, "expected %s", row->of);
	else if (row->type == OPT_FLAG)
		fmt_add(buf, len, "expected yes or no");
	else
		append_range(row, buf, len);
	if (row->special)
		fmt_add(buf, len, ", or %s",
			row->special_help ? row->special_help : row->special);
}

/* ---- reading ---- */

static void field_store(const struct opt *row, void *conf, uint64_t value)
{
	char *field = (char *)conf + row->offset;
	uint32_t u = (uint32_t)value;
	bool yes = value;

	if (row->size == sizeof(yes))
		memcpy(field, &yes, sizeof(yes));
	else if (row->size == sizeof(u))
		memcpy(field, &u, sizeof(u));
	else
		memcpy(field, &value, sizeof(value));
}

static bool read_number(const struct opt *row, const char *value, uint64_t *n)
{
	bool ok = row->type == OPT_SIZE ?
		  size_parse(value, n) && *n >= row->least && *n <= row->most :
		  number_parse(value, row->least, row->most, n);

	if (!ok || (row->step && *n % row->step))
		return false;
	if (row->scale)
		*n *= row->scale;
	return true;
}

static bool read_word(const struct opt *row, const char *value, uint64_t *n)
{
	for (unsigned i = 0; i < row->nwords; i++) {
		if (strcmp(value, row->words[i]))
			continue;
		*n = i;
		return true;
	}
	return false;
}

static bool read_text(const struct opt *row, void *conf, const char *value)
{
	if (*value)
		memcpy((char *)conf + row->offset, &value, sizeof(value));
	return *value;
}

static bool read_special(const struct opt *row, void *conf)
{
	const char *none = NULL;

	if (row->type == OPT_TEXT)
		memcpy((char *)conf + row->offset, &none, sizeof(none));
	else
		field_store(row, conf, row->special_value);
	return true;
}

/* A command line has no value, which is yes. */
static bool read_flag(const char *value, uint64_t *n)
{
	*n = !*value || !strcmp(value, "yes");
	return *n || !strcmp(value, "no");
}

/* Set the field.  False: the value is wrong. */
static bool read_field(const struct opt *row, void *conf, const char *value)
{
	uint64_t n = 0;
	bool ok;

	if (row->special && !strcmp(value, row->special))
		return read_special(row, conf);
	switch (row->type) {
	case OPT_FLAG:
		ok = read_flag(value, &n);
		break;
	case OPT_NUMBER:
	case OPT_SIZE:
		ok = read_number(row, value, &n);
		break;
	case OPT_WORD:
		ok = read_word(row, value, &n);
		break;
	case OPT_TEXT:
		return read_text(row, conf, value);
	default:
		return true;
	}
	if (ok)
		field_store(row, conf, n);
	return ok;
}

int opt_read(const struct opt *row, void *conf, const char *value, char *why, size_t len)
{
	if (!value)
		value = row->optional ? row->fallback : "";
	if (!read_field(row, conf, value)) {
		opt_expected(row, why, len);
		return -EINVAL;
	}
	if (row->asked_end)
		((bool *)((char *)conf + row->asked_end))[-1] = true;
	return row->call ? row->call(conf, value, why, len) : 0;
}

static uint64_t field_load(const struct opt *row, const void *conf)
{
	const char *field = (const char *)conf + row->offset;
	uint64_t value;
	uint32_t u;
	bool yes;

	if (row->size == sizeof(yes))
		return memcpy(&yes, field, sizeof(yes)), yes;
	if (row->size == sizeof(u))
		return memcpy(&u, field, sizeof(u)), u;
	memcpy(&value, field, sizeof(value));
	return value;
}

const char *opt_text(const struct opt *row, const void *conf, char buf[OPT_TEXT_MAX])
{
	uint64_t value = field_load(row, conf), special = row->special_value;
	const char *text;

	if (row->size == sizeof(uint32_t))
		special = (uint32_t)special;
	if (row->special && value == special)
		return row->special;
	switch (row->type) {
	case OPT_TEXT:
		memcpy(&text, (const char *)conf + row->offset, sizeof(text));
		return text;
	case OPT_FLAG:
		return value ? "yes" : "no";
	case OPT_WORD:
		return row->words[value];
	default:
		/* Not given, and no constant stands in its place. */
		if (value < row->least && row->shown)
			return row->shown;
		snprintf(buf, OPT_TEXT_MAX, "%" PRIu64, value / (row->scale ? row->scale : 1));
		return buf;
	}
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

bool opt_same(const struct opt *row, const void *a, const void *b)
{
	const char *in_a = (const char *)a + row->offset, *in_b = (const char *)b + row->offset;

	if (row->same)
		return row->same(a, b);
	if (row->type == OPT_TEXT)
		return same_text(*(const char *const *)in_a, *(const char *const *)in_b);
	return !memcmp(in_a, in_b, row->size);
}

/* ---- tables ---- */

void opt_defaults(const struct opt_table *table, void *conf)
{
	char why[256];

	for (const struct opt *row = table->rows; row < table->rows + table->n; row++) {
		int rc = row->fallback && !row->optional ?
			opt_read(row, conf, row->fallback, why, sizeof(why)) : 0;

		assert(!rc);
	}
}

const struct opt_table *opt_part(const struct opt_table *table, unsigned i)
{
	if (!i)
		return table;
	return table->more ? table->more(i - 1) : NULL;
}

static const struct opt *find(const struct opt_table *table, unsigned holds, const char *name)
{
	const struct opt_table *part;

	for (unsigned p = 0; (part = opt_part(table, p)); p++) {
		for (unsigned i = 0; i < part->n; i++) {
			if (!strcmp(opt_name(&part->rows[i], holds), name))
				return &part->rows[i];
		}
	}
	return NULL;
}

const struct opt *opt_find(const struct opt_table *table, const char *name)
{
	return find(table, OPT_AT_START, name);
}

const struct opt *opt_find_in_file(const struct opt_table *table, const char *name)
{
	return find(table, OPT_IN_FILE, name);
}

bool opt_given(const struct opt_table *table, uint64_t given, const char *name)
{
	const struct opt *row = opt_find(table, name);

	assert(row);
	return given >> (row - table->rows) & 1;
}
