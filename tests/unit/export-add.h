/* SPDX-License-Identifier: BSD-3-Clause */
/* Exports of lines of text, as a user writes them. */
#ifndef TESTS_EXPORT_ADD_H
#define TESTS_EXPORT_ADD_H

#include <stdlib.h>
#include <string.h>

#include "export-spec.h"
#include "exports.h"

/* Read @line, and add its export to @e.  0, or -errno with one line in @err. */
static inline int export_add_line(struct exports *e, const char *line, char *err, size_t len)
{
	struct export_spec spec = { 0 };
	char *copy = strdup(line);
	int rc = export_line_read(&spec, copy, NULL, NULL, err, len);

	if (!rc)
		rc = exports_add(e, &spec, err, len);
	free(copy);
	return rc;
}

#endif
