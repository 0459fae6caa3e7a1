/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of any storage, and what is done row by row.  Owns nothing but the texts of copies. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export-spec.h"
#include "export.h"
#include "names.h"
#include "store-driver.h"
#include "util.h"

#define FIELD(field) OPT_FIELD(struct export_spec, field)

static const char *const modes[] = { "rw", "ro" };	/* by export_spec.readonly */

/* Before the rows of the driver. */
static const struct opt first_rows[] = {
	{ .name = "path", .type = OPT_TEXT, FIELD(path), .arg = "PATH|mem:SIZE|rbd:POOL/IMAGE",
	  .of = "a path", .holds = OPT_IN_FILE, .help = "file, block device, memory, Ceph image" },
	{ .name = "mode", .type = OPT_WORD, FIELD(readonly), .words = modes,
	  .nwords = ARRAY_SIZE(modes), .holds = OPT_IN_FILE, .help = "what clients may do" },
	{ .name = "readonly", .type = OPT_FLAG, FIELD(readonly), .holds = OPT_AT_START,
	  .instead = "write mode = ro",
	  .help = "clients may not write" },
};

/* Behind them.  With an argument, because the flag is a word with a value on a line, too. */
static const struct opt last_rows[] = {
	{ .name = "shared", .type = OPT_FLAG, FIELD(shared), .arg = "yes|no",
	  .holds = OPT_AT_START | OPT_IN_FILE, .help = "two servers may share it" },
};

static const struct opt_table first = { .rows = first_rows, .n = ARRAY_SIZE(first_rows) };
static const struct opt_table last = { .rows = last_rows, .n = ARRAY_SIZE(last_rows) };

const struct opt *export_spec_row(const struct store_driver *driver, unsigned i)
{
	const struct opt_table *const parts[] = { &first, &driver->options, &last };

	for (unsigned p = 0; p < ARRAY_SIZE(parts); p++) {
		if (i < parts[p]->n)
			return &parts[p]->rows[i];
		i -= parts[p]->n;
	}
	return NULL;
}

const struct opt_table *export_spec_part(unsigned i)
{
	const struct store_driver *const *d = store_drivers;

	if (i < 2)
		return i ? &last : &first;
	for (i -= 2; i && (*d)->prefix; i--)
		d++;
	return i ? NULL : &(*d)->options;
}

/* The driver of the target @path. */
static const struct store_driver *export_spec_driver(const char *path)
{
	const struct store_driver *const *d = store_drivers;

	while ((*d)->prefix && strncmp(path, (*d)->prefix, strlen((*d)->prefix)))
		d++;
	return *d;
}

/* ---- checking ---- */

/* The name of @row where @holds says: with a '=' if a value follows on a line. */
static const char *label(const struct opt *row, unsigned holds, char *buf, size_t len)
{
	snprintf(buf, len, "%s%s", row->name,
		 holds & OPT_AT_START && export_spec_takes_value(row) ? "=" : "");
	return buf;
}

/* The rows of @driver that hold where @holds says, without one that is always refused.  Returns
 * their number. */
static unsigned rows_that_hold(const struct store_driver *driver, unsigned holds,
			       const struct opt *rows[OPT_ROWS_MAX])
{
	const struct opt *row;
	unsigned n = 0;

	for (unsigned i = 0; (row = export_spec_row(driver, i)); i++) {
		if (row->holds & holds && !(driver->alone && row == &last_rows[0]))
			rows[n++] = row;
	}
	return n;
}

/* The driver that has the option called by the @n bytes of @name; NULL: none. */
static const struct store_driver *driver_with(const char *name, size_t n)
{
	const struct store_driver *const *d = store_drivers;

	for (;; d++) {
		for (unsigned i = 0; i < (*d)->options.n; i++) {
			const char *row = (*d)->options.rows[i].name;

			if (strlen(row) == n && !memcmp(row, name, n))
				return *d;
		}
		if (!(*d)->prefix)
			return NULL;
	}
}

/* Write to @buf what is wrong with @option, which @spec cannot have. */
static void option_text(const struct export_spec *spec, const char *option, const char *meant,
			char *buf, size_t len)
{
	size_t n = strcspn(option, "=");
	const struct store_driver *other = driver_with(option, n);

	if (!other || other == spec->driver)
		snprintf(buf, len, "unknown flag '%.300s'%s%s%s", option,
			 meant ? " (did you mean " : "", meant ? meant : "", meant ? "?)" : "");
	else
		snprintf(buf, len, "'%.*s' is only for %s%s", (int)n, option,
			 other->prefix ? other->prefix : "files and block devices",
			 other->prefix ? " paths" : "");
}

/* Refuse @option, "KEY" or "KEY=VALUE", which is not for the storage of @spec: -EINVAL, with a line
 * in @err that names the options that hold where @holds says (enum opt_holds). */
static int export_spec_unknown(const struct export_spec *spec, const char *option, unsigned holds,
			char *err, size_t len)
{
	const struct opt *rows[OPT_ROWS_MAX];
	const char *names[OPT_ROWS_MAX], *meant;
	unsigned n = rows_that_hold(spec->driver, holds, rows);
	char expected[160] = "", name[32], what[512];

	for (unsigned i = 0; i < n; i++) {
		size_t at = strlen(expected);

		names[i] = rows[i]->name;
		snprintf(expected + at, sizeof(expected) - at, "%s%s",
			 !i ? "" : i + 1 < n ? ", " : " or ",
			 label(rows[i], holds, name, sizeof(name)));
	}
	meant = suggest_name(option, strcspn(option, "="), names, n);
	option_text(spec, option, meant, what, sizeof(what));
	snprintf(err, len, "export '%s': %s: expected %s%s", spec->name, what, expected,
		 holds & OPT_AT_START ? " (a comma in PATH is written '\\,')" : "");
	return -EINVAL;
}

/* A row of another kind of storage that has set its field of @spec; NULL: none. */
static const struct opt *foreign_row(const struct export_spec *spec)
{
	static const struct export_spec none;
	struct export_spec rest = *spec;
	const struct opt_table *part;
	const struct opt *row;

	for (unsigned i = 0; (row = export_spec_row(spec->driver, i)); i++)
		memset((char *)&rest + row->offset, 0, row->size);
	for (unsigned p = 0; (part = export_spec_part(p)); p++) {
		for (row = part->rows; row < part->rows + part->n; row++) {
			if (!opt_same(row, &rest, &none))
				return row;
		}
	}
	return NULL;
}

static int check_name(const char *name, char *err, size_t len)
{
	if (!*name) {
		snprintf(err, len, "export without a name: expected NAME=PATH");
		return -EINVAL;
	}
	if (strlen(name) >= RNBD_NAME_MAX) {
		snprintf(err, len, "export name '%.32s...' has %zu bytes: at most %d fit the "
			 "protocol", name, strlen(name), RNBD_NAME_MAX - 1);
		return -ENAMETOOLONG;
	}
	if (strstr(name, "..")) {
		snprintf(err, len, "export name '%s': '..' is not allowed in a name", name);
		return -EINVAL;
	}
	return 0;
}

int export_spec_check(struct export_spec *spec, char *err, size_t len)
{
	const struct opt *foreign;
	int rc = check_name(spec->name, err, len);

	if (rc)
		return rc;
	if (!spec->path || !*spec->path) {
		snprintf(err, len, "export '%s': no path: expected NAME=PATH", spec->name);
		return -EINVAL;
	}
	spec->driver = export_spec_driver(spec->path);
	foreign = foreign_row(spec);
	if (foreign)
		return export_spec_unknown(spec, foreign->name, OPT_IN_FILE, err, len);
	if (spec->shared && spec->driver->alone) {
		snprintf(err, len, "export '%s': shared=yes: %s", spec->name, spec->driver->alone);
		return -EINVAL;
	}
	return spec->driver->check(spec, err, len);
}

/* ---- copies ---- */

/* Call @each for the place of each text in @spec. */
static bool for_each_text(struct export_spec *spec, bool (*each)(const char **text))
{
	const struct opt *row;
	bool ok = each(&spec->name);

	for (unsigned i = 0; (row = export_spec_row(spec->driver, i)); i++) {
		if (row->type == OPT_TEXT)
			ok = each((const char **)(void *)((char *)spec + row->offset)) && ok;
	}
	return ok;
}

static bool text_copy(const char **text)
{
	const char *from = *text;

	*text = from ? strdup(from) : NULL;
	return *text || !from;
}

static bool text_free(const char **text)
{
	free((char *)(uintptr_t)*text);
	return true;
}

int export_spec_copy(struct export_spec *to, const struct export_spec *from)
{
	*to = *from;
	if (for_each_text(to, text_copy))
		return 0;
	export_spec_free(to);
	return -ENOMEM;
}

void export_spec_free(struct export_spec *spec)
{
	if (spec->driver)
		for_each_text(spec, text_free);
	*spec = (struct export_spec){ 0 };
}

bool export_spec_same(const struct export_spec *a, const struct export_spec *b)
{
	const struct opt *row;

	if (a->driver != b->driver || strcmp(a->name, b->name))
		return false;
	for (unsigned i = 0; (row = export_spec_row(a->driver, i)); i++) {
		if (!opt_same(row, a, b))
			return false;
	}
	return true;
}

uint64_t export_spec_capabilities(const struct export_spec *spec)
{
	return spec->shared ? spec->driver->shared_capabilities : 0;
}

/* ---- a line: reading ---- */

/* End the text at @at with its first ',' that no '\' stands before.  Returns what is behind the
 * comma; NULL: there is none. */
static char *cut(char *at)
{
	while (*at && *at != ',')
		at += at[0] == '\\' && at[1] ? 2 : 1;
	if (!*at)
		return NULL;
	*at = '\0';
	return at + 1;
}

/* Take the escapes out of @text.  Returns @text. */
static char *unescape(char *text)
{
	char *out = text;

	for (const char *at = text; *at; at++) {
		if (at[0] == '\\' && (at[1] == ',' || at[1] == '\\'))
			at++;
		*out++ = *at;
	}
	*out = '\0';
	return text;
}

/* The row of the @n bytes of @key on a line of @driver, with its number in *@number; NULL: none. */
static const struct opt *find_row(const struct store_driver *driver, const char *key, size_t n,
				  unsigned *number)
{
	const struct opt *row;

	for (*number = 0; (row = export_spec_row(driver, *number)); ++*number) {
		if (row->holds & OPT_AT_START && strlen(row->name) == n &&
		    !memcmp(row->name, key, n))
			return row;
	}
	return NULL;
}

/* Read @option into @spec.  @seen has a bit for each row that has a value already. */
static int read_option(struct export_spec *spec, char *option, uint64_t *seen, char *err,
		       size_t len)
{
	size_t n = strcspn(option, "=");
	char *value = option[n] ? unescape(option + n + 1) : NULL, why[192];
	unsigned number;
	const struct opt *row = find_row(spec->driver, option, n, &number);
	bool valued = row && export_spec_takes_value(row);
	int rc;

	if (!row || (value && !valued))
		return export_spec_unknown(spec, option, OPT_AT_START, err, len);
	if (valued && *seen >> number & 1) {
		snprintf(err, len, "export '%s': '%s=' is given twice", spec->name, row->name);
		return -EINVAL;
	}
	*seen |= UINT64_C(1) << number;
	if (valued && (!value || !*value)) {
		snprintf(err, len, "export '%s': '%s=' has no value", spec->name, row->name);
		return -EINVAL;
	}
	rc = opt_read(row, spec, value, why, sizeof(why));
	if (rc)
		snprintf(err, len, "export '%s': %s='%s': %s", spec->name, row->name, value, why);
	return rc;
}

/* Read @option by @other, or else into @spec. */
static int read_any(struct export_spec *spec, char *option, export_line_other_fn *other, void *arg,
		    uint64_t *seen, char *err, size_t len)
{
	char why[320];
	int rc = other ? other(arg, option, why, sizeof(why)) : 0;

	if (rc < 0)
		snprintf(err, len, "export '%s': %s", spec->name, why);
	if (rc)
		return rc < 0 ? rc : 0;
	return read_option(spec, option, seen, err, len);
}

int export_line_read(struct export_spec *spec, char *line, export_line_other_fn *other, void *arg,
		     char *err, size_t len)
{
	char *path = strchr(line, '='), *next;
	uint64_t seen = 0;
	int rc = 0;

	if (!path) {
		snprintf(err, len, "'%s': expected NAME=PATH[,readonly][,direct][,force]", line);
		return -EINVAL;
	}
	*path++ = '\0';
	next = cut(path);
	spec->name = line;
	spec->path = unescape(path);
	spec->driver = export_spec_driver(path);
	while (next && !rc) {
		char *option = next;

		next = cut(option);
		rc = read_any(spec, option, other, arg, &seen, err, len);
	}
	return rc ? rc : export_spec_check(spec, err, len);
}

/* ---- writing ---- */

static void put_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == ',' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
}

char *export_line_text(const struct export_spec *spec)
{
	static const struct export_spec none;
	char *text = NULL, buf[OPT_TEXT_MAX];
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	const struct opt *row;

	if (!out)
		return NULL;
	fprintf(out, "%s=", spec->name);
	put_escaped(out, spec->path);
	for (unsigned i = 0; (row = export_spec_row(spec->driver, i)); i++) {
		if (!(row->holds & OPT_AT_START) || opt_same(row, spec, &none))
			continue;
		fprintf(out, ",%s%s", row->name, export_spec_takes_value(row) ? "=" : "");
		if (export_spec_takes_value(row))
			put_escaped(out, opt_text(row, spec, buf));
	}
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}
