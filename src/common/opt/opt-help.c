/* SPDX-License-Identifier: BSD-3-Clause */
/* The help of a table.  Owns nothing. */
#include <string.h>

#include "opt.h"

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
	fprintf(out, "%s%s\n", line, fallback);
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
