/* SPDX-License-Identifier: BSD-3-Clause */
/* An export as a line of text: "NAME=PATH[,readonly][,FLAG|,KEY=VALUE]...", with the options of the
 * storage of PATH (export-spec.h).  A ',' or '\' in PATH or VALUE is written "\,", "\\".  Pure, any
 * thread. */
#ifndef EXPORT_LINE_H
#define EXPORT_LINE_H

#include "export-spec.h"

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
