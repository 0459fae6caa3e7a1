/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the state of a file while the file is read. */
#include <config.h>

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cleanup.h"
#include "names.h"
#include "number.h"
#include "opt-file.h"
#include "plain-file.h"
#include "process.h"

#define WHY_MAX 384

struct file {
	const char *path;
	char *where;			/* for where_text() */
	FILE *errors;
	const struct opt_section *sections;
	unsigned nsections;
	void *arg;
	struct opt_texts *texts;

	unsigned line, mistakes;
	int rc;				/* of the mistakes: -EINVAL, if one of them is */
	/* the section of the line */
	const struct opt_section *section;	/* NULL: unknown */
	unsigned section_line, section_mistakes;	/* of the header; 0: the head of the file */
	void *conf;			/* NULL: the lines are passed over */
	struct {
		const struct opt *row;	/* NULL: no more rows were given */
		unsigned line;
	} given[OPT_ROWS_MAX];
};

/* ---- mistakes ---- */

#define WHERE_MORE 16			/* bytes behind the path */

static const char *where_text(const struct file *f, unsigned line)
{
	sprintf(f->where, "%s:%u", f->path, line);
	return f->where;
}

/* @rc: as of opt_read(). */
__attribute__((format(printf, 4, 5)))
static void fault(struct file *f, int rc, unsigned line, const char *fmt, ...)
{
	va_list ap;

	f->mistakes++;
	if (f->rc != -EINVAL)
		f->rc = rc;
	fprintf(f->errors, "%s: ", where_text(f, line));
	va_start(ap, fmt);
	vfprintf(f->errors, fmt, ap);
	va_end(ap);
	fputc('\n', f->errors);
}

#define mistake(f, line, ...) fault(f, -EINVAL, line, __VA_ARGS__)

/* ---- sections ---- */

static void section_end(struct file *f)
{
	char why[WHY_MAX] = "";

	if (!f->conf || f->section_mistakes != f->mistakes || !f->section->end)
		return;
	if (!f->section->end(f->arg, where_text(f, f->section_line), why, sizeof(why)))
		mistake(f, f->section_line, "%s", why);
}

/* Begin the section @name, of the header in this line.  @title is NULL if the header has none. */
static void section_begin(struct file *f, const char *name, const char *title)
{
	char why[WHY_MAX] = "";

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
	f->conf = f->section->begin(f->arg, where_text(f, f->line), title, why, sizeof(why));
	if (!f->conf)
		mistake(f, f->line, "%s", why);
}

/* "[server] or [export \"NAME\"]"; "": this file has no sections.  Returns @buf. */
static const char *sections_text(const struct file *f, char buf[WHY_MAX])
{
	buf[0] = '\0';
	for (unsigned i = 0; i < f->nsections; i++) {
		const struct opt_section *s = &f->sections[i];
		size_t at = strlen(buf);

		if (s->name)
			snprintf(buf + at, WHY_MAX - at, "%s[%s%s]", *buf ? " or " : "", s->name,
				 s->titled ? " \"NAME\"" : "");
	}
	return buf;
}

static void tell_sections(struct file *f, const char *header)
{
	char expected[WHY_MAX];

	if (*sections_text(f, expected))
		mistake(f, f->line, "%s is no section of this file: expected %s", header, expected);
	else
		mistake(f, f->line, "%s: this file has no sections: expected only lines NAME = "
			"VALUE", header);
}

/* The header in @line, "[NAME]" or "[NAME \"TITLE\"]". */
static void header_read(struct file *f, const char *line)
{
	_cleanup_free_ char *header = strdup(line);
	char *end, *name, *rest, *title = NULL;

	section_end(f);
	end = header ? strchr(header, ']') : NULL;
	if (!end) {
		f->conf = NULL;
		f->section_line = f->line;
		mistake(f, f->line, header ? "%s: this header has no ']'" : "%s: out of memory",
			line);
		return;
	}
	name = header + 1;
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
	rest = opt_line_trim(end + 1);
	if (!f->section)
		tell_sections(f, line);
	else if (*rest && !strchr("#;", *rest))
		mistake(f, f->line, "'%s' behind the header: expected it on a line of its own",
			rest);
}

/* ---- values ---- */

char *opt_texts_keep(struct opt_texts *texts, const char *text)
{
	char **all = realloc(texts->all, (texts->n + 1) * sizeof(*all)), *copy;

	if (!all)
		return NULL;
	texts->all = all;
	copy = strdup(text);
	if (copy)
		all[texts->n++] = copy;
	return copy;
}

/* The section of the file that has the option @name; NULL: none. */
static const struct opt_section *section_of(const struct file *f, const char *name)
{
	for (unsigned i = 0; i < f->nsections; i++) {
		const struct opt_section *s = &f->sections[i];
		const struct opt *row = s->name ? opt_find_in_file(s->table, name) : NULL;

		if (row && row->holds & OPT_IN_FILE)
			return s;
	}
	return NULL;
}

/* Refuse @name, which no row of the section has. */
static void no_option(struct file *f, const char *name)
{
	const struct opt_section *other;
	const char *meant = f->section->meant ? f->section->meant(name) : NULL;

	if (!meant)
		meant = opt_suggest(f->section->table, OPT_IN_FILE, name, strlen(name));
	for (const char *const *of = f->section->others; of && *of; of++) {
		if (!strcmp(*of, name)) {
			mistake(f, f->line, "'%s' is %s", name, f->section->others_are);
			return;
		}
	}
	other = section_of(f, name);
	if (other)
		mistake(f, f->line, "'%s' is an option of [%s%s]: expected it below that header",
			name, other->name, other->titled ? " \"NAME\"" : "");
	else
		mistake(f, f->line, "'%s' is no option of this %s (%s%s%s)", name,
			f->section->name ? "section" : "file",
			meant ? "did you mean " : "the manual has all options",
			meant ? meant : "", meant ? "?" : "");
}

/* The row of @name, which this line may have; NULL: it may not, which is told. */
static const struct opt *row_of(struct file *f, const char *name)
{
	const struct opt *row = opt_find_in_file(f->section->table, name);

	if (!row)
		no_option(f, name);
	if (!row || row->holds & OPT_IN_FILE)
		return row;
	mistake(f, f->line, "'%s' cannot stand in a file: %s", name,
		row->instead ? row->instead : "it prints, and ends the program");
	return NULL;
}

/* Note that this line has @row.  The line that has had @row before; 0: none. */
static unsigned note_given(struct file *f, const struct opt *row)
{
	unsigned i = 0;

	while (f->given[i].row && f->given[i].row != row)
		i++;
	if (f->given[i].row)
		return f->given[i].line;
	f->given[i].row = row;
	f->given[i].line = f->line;
	return 0;
}

static void tell_no_value(struct file *f, const struct opt *row)
{
	const char *name = opt_name(row, OPT_IN_FILE);
	char arg[128];

	mistake(f, f->line, "'%s' has no value: expected %s = %s", name, name,
		row->type == OPT_FLAG ? "yes or no" : opt_argument(row, arg, sizeof(arg)));
}

static void value_read(struct file *f, const struct opt *row, const char *value)
{
	const char *name = opt_name(row, OPT_IN_FILE);
	unsigned before = note_given(f, row);
	char why[WHY_MAX];
	char *kept;
	int rc;

	if (before && !row->many) {
		mistake(f, f->line, "'%s' is given twice: first in line %u%s%s%s", name, before,
			row->twice ? " (" : "", row->twice ? row->twice : "",
			row->twice ? ")" : "");
		return;
	}
	if (!*value) {
		tell_no_value(f, row);
		return;
	}
	kept = opt_texts_keep(f->texts, value);
	if (!kept) {
		fault(f, -ENOMEM, f->line, "out of memory");
		return;
	}
	rc = opt_read(row, f->conf, kept, why, sizeof(why));
	if (rc)
		fault(f, rc, f->line, "%s '%s': %s%s", name, value, why, strchr(value, '#') ?
		      " (a comment after a value begins with a blank and ';')" : "");
	else if (f->section->took)
		f->section->took(f->arg, where_text(f, f->line), row, kept);
}

/* @value has a '#' between blanks, as no path has that a user types: it may mean a comment, and may
 * be part of the text. */
static void tell_hash(struct file *f, const char *name, const char *value)
{
	const char *hash = opt_line_hash(value);
	int n = (int)(hash - value);

	while (n && opt_line_is_blank(value[n - 1]))
		n--;
	mistake(f, f->line, "%s '%s': '#' begins no comment after a value: expected %s = %.*s "
		";%s, or quotes around a value that has the '#'", name, value, name, n ? n : 5,
		n ? value : "VALUE", hash + 1);
}

/* @quoted: @value stood in quotes. */
static void option_read(struct file *f, const char *name, const char *value, bool quoted)
{
	const struct opt *row;
	char expected[WHY_MAX];

	if (!f->section && !f->section_line)
		mistake(f, f->line, "'%s' comes before the first section: expected %s above it",
			name, sections_text(f, expected));
	if (!f->section || !f->conf)
		return;
	if (!quoted && opt_line_hash(value)) {
		tell_hash(f, name, value);
		return;
	}
	row = row_of(f, name);
	if (row)
		value_read(f, row, value);
}

/* ---- lines ---- */

/* This line has @name alone, and no value. */
static void word_alone(struct file *f, const char *name)
{
	const struct opt *row = f->conf ? opt_find_in_file(f->section->table, name) : NULL;

	if (row)
		row = row_of(f, name);
	else
		mistake(f, f->line, "'%.64s': expected NAME = VALUE", name);
	if (row)
		tell_no_value(f, row);
}

static void line_option(struct file *f, char *line)
{
	char *name, *value;
	bool quoted;

	opt_line_split(line, &name, &value, &quoted);
	if (value)
		option_read(f, name, value, quoted);
	else
		word_alone(f, name);
}

static const char mark[] = "\xef\xbb\xbf";	/* of an editor, in front of UTF-8 */

/* Read the @len bytes of @line, and a zero byte behind. */
static void line_read(struct file *f, char *line, size_t len)
{
	size_t bytes = strlen(line);

	line = opt_line_trim(line);
	if (bytes != len)
		mistake(f, f->line, "this line has a byte of 0");
	else if (strchr(line, '\r'))
		mistake(f, f->line, "this line has a carriage return in its middle: expected a "
			"newline at the end of each line");
	else if (!strncmp(line, mark, strlen(mark)))
		mistake(f, f->line, "this line begins with a byte order mark: expected none but at "
			"the beginning of a file");
	else if (strlen(line) > OPT_FILE_LINE_MAX)
		mistake(f, f->line, "this line has %zu bytes: expected at most %d", strlen(line),
			OPT_FILE_LINE_MAX);
	else if (*line == '[')
		header_read(f, line);
	else if (*line && *line != '#' && *line != ';')
		line_option(f, line);
}

/* Read the @len bytes of @text, and a zero byte behind. */
static void lines_read(struct file *f, char *text, size_t len)
{
	char *end = text + len, *stop;

	if (!strncmp(text, mark, strlen(mark)))
		text += strlen(mark);
	for (; text < end; text = stop + 1) {
		stop = memchr(text, '\n', (size_t)(end - text));
		stop = stop ? stop : end;
		*stop = '\0';
		f->line++;
		line_read(f, text, (size_t)(stop - text));
	}
}

int opt_file_parse(const char *path, char *text, size_t len, const struct opt_section *sections,
		   unsigned n, void *arg, struct opt_texts *texts, FILE *errors)
{
	struct file f = {
		.path = path, .errors = errors, .sections = sections, .nsections = n, .arg = arg,
		.texts = texts,
	};

	f.where = malloc(strlen(path) + WHERE_MORE);
	if (!f.where) {
		fprintf(errors, "%s: out of memory\n", path);
		return -ENOMEM;
	}
	section_begin(&f, NULL, NULL);
	lines_read(&f, text, len);
	section_end(&f);
	free(f.where);
	return f.rc;
}

int opt_file_read(const char *path, const struct opt_section *sections, unsigned n, void *arg,
		  struct opt_texts *texts, FILE *errors)
{
	struct plain_file file;
	char why[WHY_MAX];
	int rc = plain_file_load(path, OPT_FILE_MAX, &file, why, sizeof(why));

	if (rc) {
		fprintf(errors, "%s: %s", path, why);
		if (rc == -ENOENT)
			fputs(": create it; rtrs-guide(7) has examples", errors);
		else if (rc == -EACCES)
			fputs(who_closed(path, rc, geteuid(), "chown or chmod it", why,
					 sizeof(why)), errors);
		fputc('\n', errors);
		return exit_file_error(rc);
	}
	rc = opt_file_parse(path, file.text, file.n, sections, n, arg, texts, errors);
	plain_file_free(&file);
	return rc;
}

const char *opt_texts_directory(struct opt_texts *texts)
{
	_cleanup_free_ char *dir = get_current_dir_name();

	return dir ? opt_texts_keep(texts, dir) : NULL;
}

int opt_texts_absolute(struct opt_texts *texts, const char *dir, const char **path)
{
	_cleanup_free_ char *here = NULL, *text = NULL;
	const char *kept;

	if (!*path || **path == '/')
		return 0;
	if (!dir)
		dir = here = get_current_dir_name();
	if (!dir)
		return errno == ENOMEM ? -ENOMEM : 0;
	text = fmt_new("%s/%s", strcmp(dir, "/") ? dir : "", *path);
	kept = text ? opt_texts_keep(texts, text) : NULL;
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
