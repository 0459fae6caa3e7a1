/* SPDX-License-Identifier: BSD-3-Clause */
#include <config.h>

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>

#include "number.h"
#include "opt-rules.h"
#include "unit.h"

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
	cr_assert_leq(t->n, OPT_ROWS_MAX);
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

/* A file of the tree, to be freed. */
static char *tree_file(const char *name)
{
	const char *top = getenv("srcdir");
	char *path, *text = NULL;
	size_t size = 0;
	FILE *f;

	cr_assert_geq(asprintf(&path, "%s/%s", top ? top : ".", name), 0);
	f = fopen(path, "r");
	cr_assert_not_null(f, "%s", path);
	cr_assert_geq(getdelim(&text, &size, '\0', f), 0);
	fclose(f);
	free(path);
	return text;
}

/* Copy into @buf the part of @pod, the manual, that is about @row: its =item, and the text as far
 * as the next.  Several items in a row share a text.  The marks B<>, C<>, I<> are left out, and
 * each blank is one. */
static void manual_of(const char *pod, const struct opt_table *t, const struct opt *row, char *buf,
		      size_t len)
{
	char item[80];
	const char *p, *end;
	size_t n = 0;

	snprintf(item, sizeof(item), "B<%s%s", t->dashes, row->name);
	for (p = strstr(pod, item); p; p = strstr(p + 1, item)) {
		const char *line = p, *behind = p + strlen(item);

		while (line > pod && line[-1] != '\n')
			line--;
		if (!strncmp(line, "=item ", 6) && *behind != '-' &&
		    !islower((unsigned char)*behind))
			break;
	}
	cr_assert_not_null(p, "the manual has no %s%s", t->dashes, row->name);
	for (end = p; !strncmp(end, "=item", 5) || end == p;) {
		end = strstr(end, "\n\n") + 2;
	}
	end = strstr(end, "\n=");
	for (; p < end && n + 1 < len; p++) {
		if (strchr("BCI", *p) && p[1] == '<')
			p++;
		else if (*p != '>' && !(isspace((unsigned char)*p) && n && buf[n - 1] == ' '))
			buf[n++] = isspace((unsigned char)*p) ? ' ' : *p;
	}
	buf[n] = '\0';
}

/* A limit of 2^32 or more is none for people. */
static void range_text(const struct opt *row, char *buf, size_t len)
{
	char least[SIZE_TEXT_MAX], most[SIZE_TEXT_MAX];

	buf[0] = '\0';
	if (!is_number(row) || row->most >= UINT32_MAX)
		return;
	if (row->type == OPT_SIZE)
		snprintf(buf, len, "%s to %s", size_text(row->least, least),
			 size_text(row->most, most));
	else
		snprintf(buf, len, "%" PRIu64 " to %" PRIu64, row->least, row->most);
}

__attribute__((noinline))
static void check_manual(const struct opt_table *t, const char *pod)
{
	static char text[8192];
	const char *shown, *end;
	char range[80];

	for_each_row(row, t) {
		manual_of(pod, t, row, text, sizeof(text));
		range_text(row, range, sizeof(range));
		cr_assert_not_null(strstr(text, range),
				   "the manual does not say that %s is from %s", row->name, range);
		shown = row->fallback;
		cr_assert(!shown || strstr(text, shown), "the manual has no default %s of %s",
			  shown, row->name);
		for (unsigned i = 0; i < row->nwords; i++)
			cr_assert_not_null(strstr(text, row->words[i]),
					   "the manual has no %s of %s", row->words[i], row->name);
		cr_assert(!row->special || strstr(text, row->special), "%s", row->name);
	}
	/* And no option that is none. */
	for (const char *p = strstr(pod, "=head1 OPTIONS"); p && (p = strstr(p, "\n=item B<--"));
	     p++) {
		end = strpbrk(p + 11, "=>[");
		snprintf(text, sizeof(text), "%.*s", (int)(end - p - 11), p + 11);
		cr_assert_not_null(opt_find(t, text), "the manual has an option %s", text);
	}
}

/* ---- completion ---- */

/* Options and "one|two" are completed as the help prints them; other words stand in the script. */
__attribute__((noinline))
static void check_completion(const struct opt_table *t, const char *script)
{
	char words[256] = "{";

	for_each_row(row, t) {
		if (row->type != OPT_WORD || !row->arg)
			continue;
		for (unsigned i = 0; i < row->nwords; i++)
			snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s%s",
				 i ? "," : "", row->words[i]);
		strcat(words, "}");
		cr_assert_not_null(strstr(script, words), "%s is not completed: %s", row->name,
				   words);
	}
}

void opt_rules(const struct opt_table *t, size_t size, const char *manual)
{
	char name[128], *pod, *script = tree_file("contrib/completion/rtrsctl");
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
	snprintf(name, sizeof(name), "man/%s", manual);
	pod = tree_file(name);
	check_manual(t, pod);
	if (*t->dashes)
		check_completion(t, script);
	free(pod);
	free(script);
	free(conf);
}
