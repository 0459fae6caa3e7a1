/* SPDX-License-Identifier: BSD-3-Clause */
/* The user's description of an export: its name, its target, and the options of its storage.
 *
 * Each option is a row (opt.h), which reads its value into struct export_spec: the rows of any
 * storage are here, a driver owns those of its kind (store_driver.options).  A line of text
 * (export-spec.h), a section of a file, and commands fill the struct through these rows; a line and
 * a section are written through them.  Any thread. */
#ifndef EXPORT_SPEC_H
#define EXPORT_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opt.h"

struct store_driver;

/* How a user makes an export read-only, for a message. */
#define STORE_READONLY "add ',readonly', or in a file the line mode = ro"

/* Texts belong to who filled the struct; those of export_spec_copy() belong to the copy. */
struct export_spec {
	const char *name;
	const char *path;		/* the target: a path, or with the prefix of a driver */
	const struct store_driver *driver;	/* of @path; set by export_spec_check() */
	bool readonly;
	bool shared;			/* other servers may have the storage, too (store-lead.h) */
	/* of drivers; NULL: not given */
	bool direct, force;
	const char *id, *conf, *luks;
};

/* Check @spec, without opening anything: a name that is empty, too long, or has "..", no path, an
 * option of another kind of storage, options that do not fit together.  0, or -errno with one line
 * in @err. */
int export_spec_check(struct export_spec *spec, char *err, size_t len);
/* Make @to a copy of @from, which is checked.  0 or -ENOMEM, with nothing in @to. */
int export_spec_copy(struct export_spec *to, const struct export_spec *from);
/* Free the texts of @spec, which is a copy or all zeroes. */
void export_spec_free(struct export_spec *spec);
/* True if @a and @b, which are checked, describe one export. */
bool export_spec_same(const struct export_spec *a, const struct export_spec *b);

/* The capabilities, as bits 1 << CAP_..., that the export of @spec, which is checked, needs as long
 * as it lives, beside those that each server keeps (confine.h). */
uint64_t export_spec_capabilities(const struct export_spec *spec);

/* Row @i of exports of @driver, in the order in which users see the options; NULL: no such row. */
const struct opt *export_spec_row(const struct store_driver *driver, unsigned i);
/* Part @i of the rows of all storage (opt_table.more). */
const struct opt_table *export_spec_part(unsigned i);
/* True if @row has a value on a line: "id=NAME", but "direct". */
static inline bool export_spec_takes_value(const struct opt *row)
{
	return row->type != OPT_FLAG || row->arg;
}

/* ---- export-spec.c: an export as a line of text ---- */

/* "NAME=PATH[,readonly][,FLAG|,KEY=VALUE]...", with the options of the storage of PATH.  A ',' or
 * '\' in PATH or VALUE is written "\,", "\\".  Pure, any thread. */

/* Take @option, a part of a line between two commas, which is for someone else.  1: taken; 0: it is
 * for the storage; -errno: a mistake, with words in @why. */
typedef int export_line_other_fn(void *arg, char *option, char *why, size_t len);

/* Read @line, which is cut up and has the texts of @spec.  Calls @other(@arg), unless NULL, for
 * each option.  0, or -errno with one line in @err: bad syntax, an unknown option, or as
 * export_spec_check(), which is called. */
int export_line_read(struct export_spec *spec, char *line, export_line_other_fn *other, void *arg,
		     char *err, size_t len);
/* The line of @spec, which is checked, to be freed; NULL: no memory. */
char *export_line_text(const struct export_spec *spec);

#endif
