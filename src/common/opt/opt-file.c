/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the state of a file while the file is read.
 *
 * libinih asks line_read() for each line, and then gives the name and the value of that line to
 * line_value(), unless the line is a header, a comment, or no option at all.  So a line that should
 * have been an option is missed at the next line. */
#include <config.h>

#include <assert.h>
#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "opt-file.h"
#include "plain-file.h"

#define WHY_MAX 384

struct file {
	const char *path;
	char *next, *end;		/* what is left of the text; *end is a zero byte */
	FILE *errors;
	const struct opt_section *sections;
	unsigned nsections;
	void *arg;
	struct opt_texts *texts;

	unsigned line, mistakes;
	bool expects_value;		/* the line before is to be an option, and was not yet */
	/* the section of the line */
	const struct opt_section *section;	/* NULL: unknown */
	unsigned section_line, section_mistakes;	/* of the header; 0: the head of the file */
	void *conf;			/* NULL: the lines are passed over */
	unsigned given[OPT_ROWS_MAX];	/* the line of each row; 0: not given */
};

/* ---- mistakes ---- */

static const char *where_text(const struct file *f, unsigned line, char *buf, size_t len)
{
	snprintf(buf, len, "%s:%u", f->path, line);
	return buf;
}

__attribute__((format(printf, 3, 4)))
static void mistake(struct file *f, unsigned line, const char *fmt, ...)
{
	char where[WHY_MAX];
	va_list ap;

	f->mistakes++;
	fprintf(f->errors, "%s: ", where_text(f, line, where, sizeof(where)));
	va_start(ap, fmt);
	vfprintf(f->errors, fmt, ap);
	va_end(ap);
	fputc('\n', f->errors);
}

/* ---- sections ---- */

static void section_end(struct file *f)
{
	char where[WHY_MAX], why[WHY_MAX] = "";

	if (!f->conf || f->section_mistakes != f->mistakes || !f->section->end)
		return;
	where_text(f, f->section_line, where, sizeof(where));
	if (!f->section->end(f->arg, where, why, sizeof(why)))
		mistake(f, f->section_line, "%s", why);
}

/* Begin the section @name, of the header in this line.  @title is NULL if the header has none. */
static void section_begin(struct file *f, const char *name, const char *title)
{
	char where[WHY_MAX], why[WHY_MAX] = "";

	f->conf = NULL;
	f->section = NULL;
	f->section_line = f->line;
	f->section_mistakes = f->mistakes;
	memset(f->given, 0, sizeof(f->given));
	for (unsigned i = 0; i < f->nsections && !f->section; i++) {
		const struct opt_section *s = &f->sections[i];

		if (s->name ? name && !strcmp(s->name, name) && s->titled == !!title : !name)
			f->section = s;
	}
	if (!f->section)
		return;
	f->conf = f->section->begin(f->arg, where_text(f, f->line, where, sizeof(where)), title,
				    why, sizeof(why));
	if (!f->conf)
		mistake(f, f->line, "%s", why);
}

/* "[server] or [export \"NAME\"]" */
static void tell_sections(struct file *f, const char *header)
{
	char expected[WHY_MAX] = "";

	for (unsigned i = 0; i < f->nsections; i++) {
		const struct opt_section *s = &f->sections[i];
		size_t at = strlen(expected);

		if (s->name)
			snprintf(expected + at, sizeof(expected) - at, "%s[%s%s]",
				 *expected ? " or " : "", s->name, s->titled ? " \"NAME\"" : "");
	}
	if (*expected)
		mistake(f, f->line, "%s is no section of this file: expected %s", header, expected);
	else
		mistake(f, f->line, "%s: this file has no sections", header);
}

/* The header in @line, "[NAME]" or "[NAME \"TITLE\"]". */
static void header_read(struct file *f, const char *line)
{
	char header[OPT_FILE_LINE_MAX + 1], *end, *title = NULL;
	char *name = header + 1;

	section_end(f);
	snprintf(header, sizeof(header), "%s", line);
	end = strchr(header, ']');
	if (!end) {
		f->conf = NULL;
		f->section_line = f->line;
		mistake(f, f->line, "%s: this header has no ']'", header);
		return;
	}
	*end = '\0';
	if (end[-1] == '"') {
		end[-1] = '\0';
		title = strchr(name, '"');
	}
	if (title) {
		*title++ = '\0';
		name[strcspn(name, " \t")] = '\0';
	}
	section_begin(f, name, title);
	if (!f->section)
		tell_sections(f, line);
}

/* ---- values ---- */

/* A copy of @value that lives as long as the texts; NULL: no memory. */
static char *text_keep(struct opt_texts *texts, const char *value)
{
	char **all = realloc(texts->all, (texts->n + 1) * sizeof(*all)), *copy;

	if (!all)
		return NULL;
	texts->all = all;
	copy = strdup(value);
	if (copy)
		all[texts->n++] = copy;
	return copy;
}

/* The row of @name, which this line may have; NULL: it may not, which is told. */
static const struct opt *row_of(struct file *f, const char *name)
{
	const struct opt *row = opt_find(f->section->table, name);
	const char *meant;

	if (row && !(row->holds & OPT_IN_FILE)) {
		mistake(f, f->line, "'%s' holds on the command line only", name);
		return NULL;
	}
	if (!row) {
		meant = opt_suggest(f->section->table, name, strlen(name));
		mistake(f, f->line, "'%s' is no option of this section%s%s%s", name,
			meant ? " (did you mean " : "", meant ? meant : "", meant ? "?)" : "");
		return NULL;
	}
	return row;
}

static void value_read(struct file *f, const struct opt *row, const char *value)
{
	unsigned *given = &f->given[row - f->section->table->rows];
	char why[WHY_MAX];
	char *kept;

	if (*given && !row->many) {
		mistake(f, f->line, "'%s' is given twice: first in line %u", row->name, *given);
		return;
	}
	*given = f->line;
	if (!*value) {
		mistake(f, f->line, "'%s' has no value", row->name);
		return;
	}
	kept = text_keep(f->texts, value);
	if (!kept)
		mistake(f, f->line, "out of memory");
	else if (opt_read(row, f->conf, kept, why, sizeof(why)))
		mistake(f, f->line, "%s '%s': %s", row->name, value, why);
	else if (f->section->took)
		f->section->took(f->arg, row, kept);
}

/* A handler of libinih.  @section is not used: libinih cuts the section short. */
static int line_value(void *arg, const char *section, const char *name, const char *value)
{
	struct file *f = arg;
	const struct opt *row;

	f->expects_value = false;
	if (!f->section && !f->section_line)
		mistake(f, f->line, "'%s' stands before the first section", name);
	if (!f->section || !f->conf)
		return 1;
	row = row_of(f, name);
	if (row)
		value_read(f, row, value);
	return 1;
}

/* ---- lines ---- */

/* The line before this one was to be an option, and libinih has found none. */
static void line_missed(struct file *f)
{
	if (f->expects_value)
		mistake(f, f->line, "expected NAME = VALUE");
	f->expects_value = false;
}

static bool line_is_option(const char *line)
{
	return *line && *line != '#' && *line != ';' && *line != '[';
}

/* Check the @len bytes of @line.  False, which is told: libinih is not to see the line. */
static bool line_check(struct file *f, const char *line, size_t len)
{
	if (strlen(line) != len)
		mistake(f, f->line, "this line has a byte of 0");
	else if (len > OPT_FILE_LINE_MAX)
		mistake(f, f->line, "this line has %zu bytes: expected at most %d", len,
			OPT_FILE_LINE_MAX);
	else
		return true;
	return false;
}

/* Get the next line without its end and the blanks in front, which would make the line part of the
 * line before.  NULL: the file has ended. */
static char *line_get(struct file *f, size_t *len)
{
	char *line = f->next, *end = memchr(line, '\n', (size_t)(f->end - line));

	if (line == f->end)
		return NULL;
	f->next = end ? end + 1 : f->end;
	end = end ? end : f->end;
	while (end > line && end[-1] == '\r')
		end--;
	*end = '\0';
	line += strspn(line, " \t");
	*len = (size_t)(end - line);
	return line;
}

/* The reader of libinih: the next line in @buf. */
static char *line_read(char *buf, int size, void *arg)
{
	struct file *f = arg;
	size_t len = 0;
	char *line;

	assert(size > OPT_FILE_LINE_MAX);
	line_missed(f);
	line = line_get(f, &len);
	if (!line)
		return NULL;
	f->line++;
	buf[0] = '\0';
	if (line_check(f, line, len)) {
		if (*line == '[')
			header_read(f, line);
		snprintf(buf, (size_t)size, "%s", line);
		f->expects_value = line_is_option(line);
	}
	return buf;
}

unsigned opt_file_read(const char *path, const struct opt_section *sections, unsigned n, void *arg,
		       struct opt_texts *texts, FILE *errors)
{
	struct file f = {
		.path = path, .errors = errors, .sections = sections, .nsections = n, .arg = arg,
		.texts = texts,
	};
	struct plain_file text;
	char why[WHY_MAX];

	if (plain_file_load(path, OPT_FILE_MAX, &text, why, sizeof(why))) {
		fprintf(errors, "%s: %s\n", path, why);
		return 1;
	}
	f.next = text.text;
	f.end = text.text + text.n;
	section_begin(&f, NULL, NULL);
	ini_parse_stream(line_read, &f, line_value, &f);
	section_end(&f);
	plain_file_free(&text);
	return f.mistakes;
}

int opt_texts_absolute(struct opt_texts *texts, const char **path)
{
	_cleanup_free_ char *dir = NULL, *text = NULL;
	const char *kept;

	if (!*path || **path == '/')
		return 0;
	dir = get_current_dir_name();
	if (!dir)
		return errno == ENOMEM ? -ENOMEM : 0;
	if (asprintf(&text, "%s/%s", strcmp(dir, "/") ? dir : "", *path) < 0)
		return -ENOMEM;
	kept = text_keep(texts, text);
	if (!kept)
		return -ENOMEM;
	*path = kept;
	return 0;
}

void opt_texts_free(struct opt_texts *texts)
{
	while (texts->n)
		free(texts->all[--texts->n]);
	free(texts->all);
	texts->all = NULL;
}
