/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>

#include "number.h"
#include "opt-rules.h"
#include "unit.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyz-"
#define for_each_row(row, table) \
	for (const struct opt *row = (table)->rows; row < (table)->rows + (table)->n; row++)

static bool is_number(const struct opt *row)
{
	return row->type == OPT_NUMBER || row->type == OPT_SIZE;
}

static bool has_value(const struct opt *row)
{
	return is_number(row) || row->type == OPT_WORD || row->type == OPT_TEXT ||
		row->type == OPT_OTHER;
}

/* ---- rows ---- */

/* The checks are not inlined: with AddressSanitizer the frame of all of them together is larger
 * than the warnings allow. */
__attribute__((noinline))
static void check_names(const struct opt_table *t)
{
	const struct opt_table *part;
	unsigned n = 0;

	for (unsigned p = 0; (part = opt_part(t, p)); p++)
		n += part->n;
	cr_assert_leq(n, OPT_ROWS_MAX);
	for_each_row(a, t) {
		for (const struct opt *b = t->rows; b < a; b++) {
			cr_assert_str_neq(a->name, b->name, "a name stands in two rows");
			cr_assert(!a->letter || a->letter != b->letter, "%s and %s have one letter",
				  a->name, b->name);
		}
		for (const char *c = a->name; *c; c++)
			cr_assert(islower((unsigned char)*c) || *c == '-', "%s", a->name);
	}
}

static void check_limits(const struct opt *row)
{
	uint64_t scale = row->scale ? row->scale : 1,
		room = row->size == 4 ? UINT32_MAX : UINT64_MAX;

	if (!is_number(row)) {
		cr_assert(!row->least && !row->most && !row->scale && !row->step, "%s has limits",
			  row->name);
		return;
	}
	cr_assert_lt(row->least, row->most, "%s", row->name);
	cr_assert_leq(row->most, room / scale, "%s: the field is too small", row->name);
	if (row->step)
		cr_assert(row->least % row->step == 0 && row->most % row->step == 0, "%s",
			  row->name);
}

__attribute__((noinline))
static void check_row(const struct opt *row, size_t size)
{
	cr_assert(row->help, "%s has no help", row->name);
	cr_assert(row->holds & OPT_AT_START, "%s holds nowhere", row->name);
	cr_assert_leq(row->offset + row->size, size, "%s", row->name);
	cr_assert_eq(row->type == OPT_WORD, row->nwords > 0, "%s", row->name);
	/* The help has the words, from which they are completed. */
	cr_assert(!row->nwords || !row->arg, "%s", row->name);
	cr_assert(row->type != OPT_TEXT || row->of, "%s", row->name);
	cr_assert(row->type != OPT_OTHER || row->call, "%s", row->name);
	cr_assert(!has_value(row) || row->arg || row->nwords, "%s has no argument", row->name);
	cr_assert(!row->optional || row->fallback, "%s", row->name);
	/* opt_defaults() would say that the user has asked. */
	cr_assert(!row->asked_end || !row->fallback, "%s", row->name);
	cr_assert_leq(row->asked_end, size, "%s", row->name);
	cr_assert_eq(!!(row->holds & OPT_AT_RUN_TIME), !!row->carry_out, "%s", row->name);
	check_limits(row);
}

/* Two rows that set one field would undo each other. */
__attribute__((noinline))
static void check_fields(const struct opt_table *t)
{
	for_each_row(a, t) {
		for (const struct opt *b = t->rows; b < a; b++)
			cr_assert(!a->size || !b->size || a->offset + a->size <= b->offset ||
				  b->offset + b->size <= a->offset, "%s and %s set one field",
				  a->name, b->name);
	}
}

/* A value that no row takes is refused with what is expected, and changes nothing. */
__attribute__((noinline))
static void check_refusal(const struct opt *row, size_t size)
{
	char *conf = malloc(size), *before = malloc(size), why[256] = "", expected[256];

	memset(conf, 0xa5, size);
	memcpy(before, conf, size);
	if (is_number(row) || row->type == OPT_WORD) {
		cr_assert_eq(opt_read(row, conf, "\001", why, sizeof(why)), -EINVAL, "%s",
			     row->name);
		opt_expected(row, expected, sizeof(expected));
		cr_assert_str_eq(why, expected);
		cr_assert_eq(strncmp(why, "expected ", 9), 0, "%s: %s", row->name, why);
		expect_bytes(conf, before, size, row->name);
	}
	free(conf);
	free(before);
}

/* Read @value into a field of zeroes.  Returns whether the range of @row takes @value; the field is
 * in *@field then. */
static bool is_taken(const struct opt *row, void *conf, uint64_t value, uint64_t *field)
{
	char text[24], why[256] = "", expected[256];
	int r;

	snprintf(text, sizeof(text), "%" PRIu64, value);
	memset((char *)conf + row->offset, 0, row->size);
	r = opt_read(row, conf, text, why, sizeof(why));
	*field = 0;
	memcpy(field, (char *)conf + row->offset, row->size);
	opt_expected(row, expected, sizeof(expected));
	/* .call may refuse a value that the range takes, with words of its own. */
	return r == 0 || strcmp(why, expected) != 0;
}

static void check_edge(const struct opt *row, void *conf, uint64_t value, bool taken)
{
	uint64_t field, scale = row->scale ? row->scale : 1;

	cr_assert_eq(is_taken(row, conf, value, &field), taken, "%s=%" PRIu64, row->name, value);
	cr_assert_eq(field, taken ? value * scale : 0, "%s=%" PRIu64 " sets %" PRIu64, row->name,
		     value, field);
}

/* A range takes its first and last values, whole, and none beyond. */
__attribute__((noinline))
static void check_edges(const struct opt *row, size_t size)
{
	uint64_t step = row->step ? row->step : 1;
	void *conf = calloc(1, size);

	check_edge(row, conf, row->least, true);
	check_edge(row, conf, row->least + step, true);
	check_edge(row, conf, row->most - step, true);
	check_edge(row, conf, row->most, true);
	if (row->step) {
		check_edge(row, conf, row->least + 1, false);
		check_edge(row, conf, row->most - 1, false);
	}
	if (row->least >= step)
		check_edge(row, conf, row->least - step, false);
	if (row->most <= UINT64_MAX / 4) {
		check_edge(row, conf, row->most + 1, false);
		check_edge(row, conf, row->most + step, false);
		check_edge(row, conf, row->most * 4, false);
	}
	free(conf);
}

/* ---- files ---- */

static bool prints(const struct opt *row)
{
	return row->type == OPT_HELP || row->type == OPT_VERSION;
}

/* Where a program has a file, each option may stand there, or says what does in its place. */
__attribute__((noinline))
static void check_files(const struct opt_table *t)
{
	bool has_file = false;

	for_each_row(row, t)
		has_file |= row->holds & OPT_IN_FILE;
	if (!has_file)
		return;
	for_each_row(row, t)
		cr_assert(row->holds & OPT_IN_FILE ? !row->instead : row->instead || prints(row),
			  "%s cannot stand in a file, without a reason", row->name);
}

/* ---- help ---- */

static char *help_of(const struct opt_table *t)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	cr_assert_not_null(f);
	opt_help(t, f);
	fclose(f);
	return text;
}

/* "(/etc/rtrs-server.conf)" alone, which is as long as configure's directory. */
static bool is_path(const char *line)
{
	line += strspn(line, " ");
	return strncmp(line, "(/", 2) == 0 && line[strcspn(line, " \n")] == '\n';
}

__attribute__((noinline))
static void check_help(const struct opt_table *t)
{
	char *text = help_of(t), name[80];

	for_each_row(row, t) {
		/* nbdkit completes the keys that it finds in the first column. */
		if (*t->dashes)
			snprintf(name, sizeof(name), "%s%s", t->dashes, row->name);
		else
			snprintf(name, sizeof(name), "%s%s=", row->magic ? "[" : "\n", row->name);
		cr_assert_not_null(strstr(text, name), "the help has no %s", name);
	}
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
		cr_assert(end - line <= 80 || is_path(line), "%.*s", (int)(end - line), line);
	free(text);
}

/* ---- manual ---- */

static FILE *tree_open(const char *name, const char *mode)
{
	const char *top = getenv("srcdir");
	char *path;
	FILE *f;

	cr_assert_geq(asprintf(&path, "%s/%s", top ? top : ".", name), 0);
	f = fopen(path, mode);
	cr_assert_not_null(f, "%s", path);
	free(path);
	return f;
}

/* A file of the tree, to be freed. */
static char *tree_file(const char *name)
{
	FILE *f = tree_open(name, "r");
	char *text = NULL;
	size_t size = 0;

	cr_assert_geq(getdelim(&text, &size, '\0', f), 0);
	fclose(f);
	return text;
}

/* "C<off>|C<auto>", "I<PATH>|C<none>": all words, and names of others. */
static void put_argument(FILE *out, const struct opt *row)
{
	char arg[192], *save, *part;

	opt_argument(row, arg, sizeof(arg));
	for (part = strtok_r(arg, "|", &save); part; part = strtok_r(NULL, "|", &save))
		fprintf(out, "%c<%s>%s", part[strspn(part, LETTERS "0123456789")] ? 'I' : 'C', part,
			*save ? "|" : "");
}

/* " (1 to 4096, default 1)".  A limit of 2^32, or of 2^60 bytes, is none for people. */
static void put_values(FILE *out, const struct opt *row)
{
	const char *shown = row->shown && *row->shown ? row->shown : row->fallback, *sep = " (";
	uint64_t none = row->type == OPT_SIZE ? UINT64_C(1) << 60 : UINT32_MAX;
	char least[SIZE_TEXT_MAX], most[SIZE_TEXT_MAX];

	if (row->type == OPT_SIZE && row->most < none)
		fprintf(out, "%s%s to %s", sep, size_text(row->least, least),
			size_text(row->most, most));
	else if (is_number(row) && row->most < none)
		fprintf(out, "%s%" PRIu64 " to %" PRIu64, sep, row->least, row->most);
	else if (is_number(row) && row->least)
		fprintf(out, "%sat least %" PRIu64, sep, row->least);
	if (is_number(row) && (row->most < none || row->least))
		sep = ", ";
	if (row->step) {
		fprintf(out, "%sa multiple of %s", sep, size_text(row->step, least));
		sep = ", ";
	}
	if (shown)
		fprintf(out, "%sdefault %s", sep, shown);
	if (shown || *sep == ',')
		fputc(')', out);
}

/* The line =item of @row. */
static void put_item(FILE *out, const struct opt_table *t, const struct opt *row)
{
	bool dashes = *t->dashes, value = has_value(row);

	fputs("=item ", out);
	if (row->letter)
		fprintf(out, "B<-%c>, ", row->letter);
	fprintf(out, dashes ? "B<--%s>" : row->magic ? "[B<%s=>]" : "B<%s=>", row->name);
	if (dashes && value)
		fputs(row->optional ? "[=" : "=", out);
	if (value)
		put_argument(out, row);
	if (row->optional)
		fputc(']', out);
	put_values(out, row);
	fputc('\n', out);
}

/* Copy into @name that of the option of @line, an =item; false: it is about none. */
static bool item_name(const struct opt_table *t, const char *line, char name[64])
{
	size_t n, dashes = strlen(t->dashes);
	const char *p = line + 6;

	if (strncmp(line, "=item ", 6))
		return false;
	if (dashes && !strncmp(p, "B<-", 3) && p[3] != '-')
		p = strstr(p, ", ") ? strstr(p, ", ") + 2 : "";
	p += *p == '[';
	if (strncmp(p, "B<", 2) || strncmp(p + 2, t->dashes, dashes))
		return false;
	p += 2 + dashes;
	n = strspn(p, LETTERS);
	snprintf(name, 64, "%.*s", (int)n, p);
	return n && (dashes || p[n] == '=');
}

/* @pod, the manual @name, with the line =item of each row as the row has it; to be freed. */
static char *with_items(const struct opt_table *t, const char *name, const char *pod)
{
	char *copy = strdup(pod), *rest = copy, *line, *text = NULL, option[64];
	unsigned seen[OPT_ROWS_MAX] = { 0 };
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	while ((line = strsep(&rest, "\n"))) {
		const struct opt *row;

		if (!item_name(t, line, option)) {
			fprintf(out, rest ? "%s\n" : "%s", line);
			continue;
		}
		row = opt_find(t, option);
		cr_assert_not_null(row, "%s has an option %s", name, option);
		seen[row - t->rows]++;
		put_item(out, t, row);
	}
	fclose(out);
	for_each_row(row, t)
		cr_assert_eq(seen[row - t->rows], 1, "%s: %u items of %s", name,
			     seen[row - t->rows], row->name);
	free(copy);
	return text;
}

/* Names, arguments, ranges and defaults stand in the lines =item of the manual as in the rows.
 * With MAN_ITEMS=write they are written there: make man-items. */
__attribute__((noinline))
static void check_manual(const struct opt_table *t, const char *manual)
{
	char name[128], *pod, *text, *a, *b;
	FILE *out;

	snprintf(name, sizeof(name), "man/%s", manual);
	pod = tree_file(name);
	text = with_items(t, name, pod);
	if (strcmp(pod, text) && getenv("MAN_ITEMS")) {
		out = tree_open(name, "w");
		fputs(text, out);
		cr_assert_eq(fclose(out), 0);
	} else if (strcmp(pod, text)) {
		for (a = pod, b = text; *a == *b; a++)
			b++;
		while (b > text && b[-1] != '\n')
			b--;
		cr_assert_fail("%s: expected '%.*s', see make man-items", name,
			       (int)strcspn(b, "\n"), b);
	}
	free(pod);
	free(text);
}

void opt_rules(const struct opt_table *t, size_t size, const char *manual)
{
	void *conf = calloc(1, size);

	check_names(t);
	check_fields(t);
	check_files(t);
	for_each_row(row, t) {
		check_row(row, size);
		check_refusal(row, size);
		if (is_number(row))
			check_edges(row, size);
	}
	opt_defaults(t, conf);	/* asserts that each default is allowed */
	check_help(t);
	check_manual(t, manual);
	free(conf);
}
