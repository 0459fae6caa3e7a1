/* SPDX-License-Identifier: BSD-3-Clause */
/* Knows no program: members are printed in the order of the answer, and their units follow from
 * their names. */
#include <config.h>

#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include "answer.h"
#include "names.h"
#include "text.h"
#include "util.h"

#define INDENT 2u
#define OP_COLUMNS 7u
#define OPS_MAX 16u

/* ---- width ----
 * Tables of the C library know the width of a character, those of a locale of our own: the user's
 * locale may have another encoding than answers have.  Without C.UTF-8, which is part of the C
 * library from glibc 2.35 on, each character has one column. */

/* The locale, made once; (locale_t)0: this machine has none. */
static locale_t utf8_locale(void)
{
	static locale_t locale;
	static bool asked;

	if (!asked)
		locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	asked = true;
	return locale;
}

static int characters(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

/* The columns of @text in the present locale. */
static int columns(const char *text)
{
	size_t left = strlen(text), n;
	mbstate_t state = { 0 };
	int width = 0;
	wchar_t c;

	for (; left; text += n, left -= n) {
		n = mbrtowc(&c, text, left, &state);
		if (n == (size_t)-1 || n == (size_t)-2 || !n)
			return width + characters(text);
		/* A character that the table does not know has a column. */
		width += wcwidth(c) < 0 ? 1 : wcwidth(c);
	}
	return width;
}

int text_width(const char *text)
{
	locale_t before;
	int width;

	if (!utf8_locale())
		return characters(text);
	before = uselocale(utf8_locale());
	width = columns(text);
	uselocale(before);
	return width;
}

/* ---- values ---- */

/* Write @value in the largest of the @n @units that leaves 1 or more, each @step of the one before,
 * with two figures, or whole units.  Returns @buf. */
static const char *put_scaled(double value, unsigned step, const char *const units[], unsigned n,
			      char *buf, size_t len)
{
	unsigned u = 0;

	for (; value >= step && u + 1 < n; u++)
		value /= step;
	snprintf(buf, len, "%.*f %s", value < 10 && value != (double)(int)value ? 1 : 0, value,
		 units[u]);
	return buf;
}

const char *text_bytes(uint64_t bytes, char *buf, size_t len)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };

	return put_scaled((double)bytes, 1024, units, ARRAY_SIZE(units), buf, len);
}

const char *text_time(uint64_t ns, char *buf, size_t len)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };

	if (ns)
		return put_scaled((double)ns, 1000, units, ARRAY_SIZE(units), buf, len);
	snprintf(buf, len, "-");
	return buf;
}

const char *text_safe(const char *text, char *buf, size_t len)
{
	snprintf(buf, len, "%s", text);
	mask_control(buf);
	return buf;
}

const char *text_lines(const char *text, char *buf, size_t len)
{
	const size_t more = 40;		/* of the last line */
	size_t n = len - more, left = 0;

	if (strlen(text) < len) {
		strcpy(buf, text);
		return buf;
	}
	while (n && text[n] != '\n')
		n--;
	for (const char *end = text + n; end && end[1]; end = strchr(end + 1, '\n'))
		left++;
	if (n)
		snprintf(buf, len, "%.*s\nand %zu lines more", (int)n, text, left);
	else
		snprintf(buf, len, "%s", text);
	return buf;
}

const char *text_program(const json_t *answer, char *buf, size_t len)
{
	const char *program = answer_string(answer, "program"),
		*name = answer_string(answer, "name");
	char text[512];

	snprintf(text, sizeof(text), "%s%s%s", program, strcmp(name, "-") ? " " : "",
		 strcmp(name, "-") ? name : "");
	return text_safe(text, buf, len);
}

const char *text_date(time_t at, char *buf, size_t len)
{
	struct tm tm;

	if (!gmtime_r(&at, &tm) || !strftime(buf, len, "%Y-%m-%d", &tm))
		snprintf(buf, len, "-");
	return buf;
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n >= m && !strcmp(name + n - m, end);
}

/* Write @value, which is neither an object nor an array, with the unit of @name. */
static const char *scalar_text(const char *name, const json_t *value, char *buf, size_t len)
{
	uint64_t n = (uint64_t)json_integer_value(value);

	switch (json_typeof(value)) {
	case JSON_STRING:
		return text_safe(*json_string_value(value) ? json_string_value(value) : "-", buf,
				 len);
	case JSON_INTEGER:
		if (ends_with(name, "_ns"))
			return text_time(n, buf, len);
		if (ends_with(name, "size") || ends_with(name, "bytes") || !strcmp(name, "memory"))
			return text_bytes(n, buf, len);
		if (!strcmp(name, "time"))
			return text_date((time_t)n, buf, len);
		snprintf(buf, len, "%lld", (long long)n);
		return buf;
	case JSON_TRUE:
		return "yes";
	case JSON_FALSE:
		return "no";
	default:
		return "-";
	}
}

/* ---- tables ---- */

/* Print @text with blanks up to @width columns: in front if @right. */
static void put_cell(const char *text, int width, bool right)
{
	int blanks = MAX(width - text_width(text), 0);

	printf("%*s%s%*s", right ? blanks : 0, "", text, right ? 0 : blanks, "");
}

void text_table(const char (*cells)[TEXT_CELL], unsigned nrows, unsigned ncols, unsigned right,
		unsigned indent)
{
	int *widths = calloc(ncols, sizeof(*widths));

	if (!widths)
		return;
	for (size_t i = 0; i < (size_t)nrows * ncols; i++)
		widths[i % ncols] = MAX(widths[i % ncols], text_width(cells[i]));
	/* No blanks at the end of a line. */
	if (ncols <= right)
		widths[ncols - 1] = 0;
	for (unsigned row = 0; row < nrows; row++) {
		printf("%*s", (int)indent, "");
		for (unsigned col = 0; col < ncols; col++) {
			put_cell(cells[(size_t)row * ncols + col], widths[col], col >= right);
			fputs(col + 1 < ncols ? "  " : "\n", stdout);
		}
	}
	free(widths);
}

/* Print a table of @ops, {"read": {"count": ...}, ...}, without operations of count 0. */
static void print_ops(json_t *ops, unsigned indent)
{
	static const char *const heads[OP_COLUMNS] = {
		"OP", "COUNT", "BYTES", "ERRORS", "p50", "p99", "p99.9",
	};
	static const char *const members[OP_COLUMNS] = {
		NULL, "count", "bytes", "errors", "p50_ns", "p99_ns", "p999_ns",
	};
	static char cells[OP_COLUMNS * (OPS_MAX + 1)][TEXT_CELL];
	unsigned nrows = 1;
	const char *name;
	json_t *op;

	for (unsigned col = 0; col < OP_COLUMNS; col++)
		snprintf(cells[col], TEXT_CELL, "%s", heads[col]);
	json_object_foreach(ops, name, op) {
		if (nrows > OPS_MAX || !json_integer_value(json_object_get(op, "count")))
			continue;
		text_safe(name, cells[(size_t)nrows * OP_COLUMNS], TEXT_CELL);
		for (unsigned col = 1; col < OP_COLUMNS; col++) {
			const json_t *value = json_object_get(op, members[col]);
			char buf[TEXT_CELL];

			snprintf(cells[(size_t)nrows * OP_COLUMNS + col], TEXT_CELL, "%s",
				 value ? scalar_text(members[col], value, buf, sizeof(buf)) : "-");
		}
		nrows++;
	}
	if (nrows > 1)
		text_table((const char (*)[TEXT_CELL])cells, nrows, OP_COLUMNS, 1, indent);
}

/* ---- objects ---- */

/* Is @name in a heading already, or nothing for people? */
static bool is_hidden(const char *name)
{
	return !strcmp(name, "name") || !strcmp(name, "program") || !strcmp(name, "ok") ||
	       !strcmp(name, "now_ns");
}

/* Print @name without the unit, which the value has. */
static const char *key_text(const char *name, char *buf, size_t len)
{
	text_safe(name, buf, len);
	if (ends_with(buf, "_ns"))
		buf[strlen(buf) - 3] = '\0';
	return buf;
}

static void print_scalars(json_t *object, unsigned indent)
{
	const char *name;
	json_t *value;
	int width = 0;

	json_object_foreach(object, name, value) {
		char text[TEXT_CELL];

		if (!json_is_object(value) && !json_is_array(value) && !is_hidden(name))
			width = MAX(width, text_width(key_text(name, text, sizeof(text))));
	}
	json_object_foreach(object, name, value) {
		char text[TEXT_CELL], buf[1024];

		if (json_is_object(value) || json_is_array(value) || is_hidden(name))
			continue;
		printf("%*s", (int)indent, "");
		put_cell(key_text(name, text, sizeof(text)), width, false);
		printf("  %s\n", scalar_text(name, value, buf, sizeof(buf)));
	}
}

static void print_object(json_t *object, unsigned indent);

/* The texts of @array, each on a line. */
static void print_lines(const json_t *array, unsigned indent)
{
	char line[1024];
	json_t *item;
	size_t i;

	json_array_foreach(array, i, item) {
		if (json_is_string(item))
			printf("%*s%s\n", (int)indent, "",
			       scalar_text("", item, line, sizeof(line)));
	}
}

/* The objects of the array @name, "paths", each as "path NAME". */
static void print_array(const char *name, const json_t *array, unsigned indent)
{
	char what[TEXT_CELL], who[1024];
	json_t *item;
	size_t i;

	text_safe(name, what, sizeof(what));
	if (ends_with(what, "s"))
		what[strlen(what) - 1] = '\0';
	json_array_foreach(array, i, item) {
		const json_t *title = json_object_get(item, "name");

		if (json_is_string(item))
			continue;
		if (!title)
			title = json_object_get(item, "export");
		printf("%*s%s %s\n", (int)indent, "", what,
		       title ? scalar_text("name", title, who, sizeof(who)) : "");
		if (json_is_object(item))
			print_object(item, indent + INDENT);
	}
}

/* Has @object an object for each operation, or members of its own? */
static bool is_ops(json_t *object)
{
	void *first = json_object_iter(object);

	return !first || json_is_object(json_object_iter_value(first));
}

/* The object @name: a table of operations, or its members below its name. */
static void print_member(const char *name, json_t *object, unsigned indent)
{
	char what[TEXT_CELL];

	if (is_ops(object)) {
		print_ops(object, indent);
	} else {
		printf("%*s%s\n", (int)indent, "", text_safe(name, what, sizeof(what)));
		print_object(object, indent + INDENT);
	}
}

static void print_object(json_t *object, unsigned indent)
{
	const char *name;
	json_t *value;

	print_scalars(object, indent);
	json_object_foreach(object, name, value) {
		if (json_is_object(value))
			print_member(name, value, indent);
		else if (json_is_array(value))
			print_array(name, value, indent);
		if (json_is_array(value))
			print_lines(value, indent);
	}
}

void text_json(json_t *object)
{
	json_dumpf(object, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(object);
}

void text_object(const json_t *object)
{
	const json_t *program = json_object_get(object, "program");
	char buf[512];

	if (program)
		printf("%s\n", text_program(object, buf, sizeof(buf)));
	print_object((json_t *)object, program ? INDENT : 0);
}
