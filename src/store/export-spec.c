/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of any storage, and what is done row by row.  Owns nothing but the texts of copies. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

const struct store_driver *export_spec_driver(const char *path)
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

int export_spec_unknown(const struct export_spec *spec, const char *option, unsigned holds,
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
