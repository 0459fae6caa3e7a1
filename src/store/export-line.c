/* SPDX-License-Identifier: BSD-3-Clause */
/* Cuts a line into options, and writes one.  Owns nothing. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export-spec.h"

/* ---- reading ---- */

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
