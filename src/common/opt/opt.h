/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of a program as a table.  A row describes an option: name, argument, allowed values,
 * default, help, where the option holds, and the field of the program's struct to set.  The command
 * line, key=value and a control socket read values through the row, so a wrong value is refused
 * with the same words everywhere.  --help is made of the rows.
 *
 *	static const struct opt rows[] = {
 *		{ .name = "threads", .type = OPT_NUMBER, OPT_FIELD(struct conf, threads),
 *		  .arg = "N", .least = 1, .most = 256, .fallback = "4",
 *		  .holds = OPT_AT_START, .help = "threads that serve" },
 *		...
 *
 * A duration is a number @of seconds, milliseconds or microseconds.  Owns nothing: a text value
 * stays in its place.  Main thread, but for opt_read() and opt_find(). */
#ifndef OPT_H
#define OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum opt_type {
	/* bool: true, or an enum: 1; no argument, but yes or no in a file */
	OPT_FLAG,
	OPT_NUMBER,		/* unsigned, int or uint64_t: @least to @most */
	/* unsigned or uint64_t: @least to @most, perhaps with a letter of SIZE_UNITS */
	OPT_SIZE,
	OPT_WORD,		/* an enum, or bool: the place of the value in @words */
	OPT_TEXT,		/* const char *: the value, which is not empty */
	OPT_OTHER,		/* @call reads the value */
	OPT_HELP,		/* print the help, or the version, and end; no argument */
	OPT_VERSION,
};

/* @number, a macro, as a user writes it: for opt.fallback. */
#define OPT_DEFAULT(number) OPT_DEFAULT_TEXT(number)
#define OPT_DEFAULT_TEXT(number) #number

/* Where an option holds. */
enum opt_holds {
	OPT_AT_START = 1,	/* on the command line, or key=value of the program that starts */
	OPT_IN_FILE = 2,	/* in a file of options */
	OPT_AT_RUN_TIME = 4,	/* changed while the program runs */
};

struct opt {
	const char *name;		/* without dashes */
	const char *file_name;		/* in a file; NULL: @name */
	char letter;			/* -h; 0: none */
	enum opt_type type;
	/* the name of the argument in the help; NULL: none, or the words */
	const char *arg;
	uint64_t least, most;		/* OPT_NUMBER, OPT_SIZE */
	uint64_t step;			/* the value is a multiple of @step; 0: of 1 */
	uint64_t scale;			/* factor from the value to the field; 0: 1 */
	/* the unit of a number: "seconds"; the kind of a text: "a path" */
	const char *of;
	const char *const *words;
	unsigned nwords;
	const char *special;		/* another word allowed: "forever"; NULL: none */
	uint64_t special_value;		/* the field then; of a text: NULL */
	const char *special_help;	/* NULL: @special */
	const char *fallback;		/* the default, as a user writes it; NULL: the program's */
	/* the default in the help; NULL: @fallback; "": not shown, @help names the default */
	const char *shown;
	const char *group;		/* --help: a heading before this row; NULL: none */
	/* a few words; '\n': further lines, the last of which the default follows */
	const char *help;
	unsigned holds;			/* of enum opt_holds */
	/* Without OPT_IN_FILE: what a file has in its place, or why it has nothing.  NULL: the
	 * program has no file. */
	const char *instead;
	bool many;			/* each time adds a value, and replaces none */
	const char *twice;		/* what else a second one may mean; NULL: nothing */
	/* the argument may be left out: the value is then @fallback */
	bool optional;
	bool magic;			/* of key=value: the name may be left out */
	size_t offset, size;		/* of the field; OPT_FIELD */
	/* behind a bool that becomes true when a user gives a value, which may be the default;
	 * OPT_ASKED; 0: none */
	size_t asked_end;
	/* OPT_OTHER: read @value into @conf.  Other types: called, if set, after the field was set.
	 * Returns 0; -EINVAL: the value is wrong on any machine; another -errno: the value cannot
	 * be used here.  @why, of @len bytes, gets the expected value. */
	int (*call)(void *conf, const char *value, char *why, size_t len);
	/* OPT_AT_RUN_TIME: make @program go on with the value in @conf. */
	void (*carry_out)(const void *conf, void *program);
	/* OPT_OTHER: true if @a and @b have the same value; NULL: opt_same() is not called. */
	bool (*same)(const void *a, const void *b);
};
#define OPT_FIELD(type_, field_) \
	.offset = offsetof(type_, field_), .size = sizeof(((type_ *)0)->field_)
#define OPT_ASKED(type_, field_) .asked_end = offsetof(type_, field_) + sizeof(bool)

struct opt_table {
	const char *program;
	const struct opt *rows;
	unsigned n;			/* with @more: at most OPT_ROWS_MAX */
	/* opt_find(), opt_suggest() and files: part @i of the further rows, whose fields are in the
	 * same struct; NULL: no such part.  NULL: no further rows.  Of rows with one name the first
	 * counts. */
	const struct opt_table *(*more)(unsigned i);
	const char *dashes;		/* "--", or "" of key=value */
	const char *head, *tail;	/* of the help, whole lines */
	/* prints the part between @head and the options; NULL: nothing */
	void (*body)(FILE *out);
	unsigned column;		/* where the help of an option begins */
};
#define OPT_ROWS_MAX 64

/* How a command line was read. */
enum opt_result {
	OPT_RUN,
	OPT_EXIT,			/* --help, --version: printed to stdout */
	OPT_USAGE,			/* wrong on any machine */
	OPT_FAILED,			/* a value cannot be used here */
};

/* Set the fields of @conf whose rows have a default; the others stay. */
void opt_defaults(const struct opt_table *table, void *conf);

/* Set the field of @row in @conf to @value.  Returns 0; or an error as .call does, with "expected
 * ..." in @why.  A refused value leaves the field unchanged, unless .call refused.  Any thread. */
int opt_read(const struct opt *row, void *conf, const char *value, char *why, size_t len);

/* Read the options of @argv into @conf.  Other words move behind the options; argv[*@first] is the
 * first of these.  @given, if not NULL, gets a bit for the place of each row that was given.  With
 * OPT_USAGE and OPT_FAILED @err gets a line with option, value and expected value. */
enum opt_result opt_argv(const struct opt_table *table, void *conf, int argc, char **argv,
			 int *first, uint64_t *given, char *err, size_t len);

/* Part @i of the rows of @table, which is part 0; NULL: no such part.  Any thread. */
const struct opt_table *opt_part(const struct opt_table *table, unsigned i);
/* The name of @row where @holds says. */
static inline const char *opt_name(const struct opt *row, unsigned holds)
{
	return holds == OPT_IN_FILE && row->file_name ? row->file_name : row->name;
}
/* The row called @name; NULL: none.  Any thread. */
const struct opt *opt_find(const struct opt_table *table, const char *name);
/* The row that is called @name in a file; NULL: none.  Any thread. */
const struct opt *opt_find_in_file(const struct opt_table *table, const char *name);
/* The name nearest to the @len bytes of @text of an option that holds at one of @holds; NULL: none
 * is near. */
const char *opt_suggest(const struct opt_table *table, unsigned holds, const char *text,
			size_t len);
/* True if @row has the same value in @a and @b.  Any thread. */
bool opt_same(const struct opt *row, const void *a, const void *b);
/* The value of @row in @conf, as opt_read() reads it: a text as it is, or a number written to @buf.
 * @row has a value, and is not OPT_OTHER.  Any thread. */
#define OPT_TEXT_MAX 24u		/* bytes for any number */
const char *opt_text(const struct opt *row, const void *conf, char buf[OPT_TEXT_MAX]);
/* True if @given, of opt_argv(), has the bit of the row called @name. */
bool opt_given(const struct opt_table *table, uint64_t given, const char *name);

/* Write to @buf the message of opt_read(): "expected a number from 1 to 256".  @row has a value,
 * and is not OPT_OTHER. */
void opt_expected(const struct opt *row, char *buf, size_t len);
/* Write to @buf the name of the argument in the help: "N", "auto|rdma|tcp"; "": none.  Returns
 * @buf. */
const char *opt_argument(const struct opt *row, char *buf, size_t len);
/* Print the help of the whole table. */
void opt_help(const struct opt_table *table, FILE *out);
/* Print the help of the rows of the table. */
void opt_help_rows(const struct opt_table *table, FILE *out);

#endif
