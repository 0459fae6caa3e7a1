/* SPDX-License-Identifier: BSD-3-Clause */
/* Options in a file, through the same rows as a command line (opt.h).  Main thread.
 *
 *	# a comment
 *	[server]
 *	queue-depth = 64
 *	allow = 192.0.2.0/24
 *	allow = 198.51.100.0/24
 *	[export "disk0"]
 *	path = /srv/disk0.img
 *
 * A line ends with a newline, before which carriage returns may stand, or with the file.  It is
 * empty, a comment with '#' or ';' at its beginning, a header, or an option: "NAME = VALUE" or
 * "NAME: VALUE".  Blanks around names and values do not count, and ';' behind a blank begins a
 * comment.  '#' between blanks may be meant as one, and is refused.  A value in quotes is the text
 * between them, where "" is a quote, and a comment may follow; a value that only has quotes, or a
 * '#' in a word, is taken as it is.  So no line can have a value with a newline or a carriage
 * return in the middle.  A row that is not .many stands at most once in a section.  An OPT_FLAG is
 * yes or no. */
#ifndef OPT_FILE_H
#define OPT_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "opt.h"

/* Bytes of a line without the blanks at its ends: any path of the kernel fits. */
#define OPT_FILE_LINE_MAX 8192
/* Bytes of a file: 20,000 exports of 800 bytes each. */
#define OPT_FILE_MAX (16u << 20)

/* A kind of section. */
struct opt_section {
	/* "server"; NULL: the lines before any section */
	const char *name;
	bool titled;			/* [export "TITLE"] */
	const struct opt_table *table;	/* of rows with OPT_IN_FILE */
	/* names that another program takes here, as far as NULL; and what it is.  NULL: none */
	const char *const *others, *others_are;
	/* What another program calls @name, here; NULL: nothing.  NULL: no name is known. */
	const char *(*meant)(const char *name);
	/* Begin a section, and return the struct for @table to fill.  @where, "FILE:LINE", and
	 * @title, if @titled, end with the call.  NULL, with the expected title in @why: the whole
	 * section is passed over. */
	void *(*begin)(void *arg, const char *where, const char *title, char *why, size_t len);
	/* The section is complete, and no line of it was wrong.  False, with the reason in @why:
	 * the lines do not fit together.  NULL: any lines fit together. */
	bool (*end)(void *arg, const char *where, char *why, size_t len);
	/* Called for each value that was right; @value lives as long as the texts, and @where,
	 * "FILE:LINE", as long as the call.  NULL: the struct is enough. */
	void (*took)(void *arg, const char *where, const struct opt *row, const char *value);
};

/* Values of OPT_TEXT that were read: rows point to these texts. */
struct opt_texts {
	char **all;
	size_t n;
};

/* Read the regular file at @path.  Each mistake is a line "FILE:LINE: ..." in @errors, and the rest
 * is still read.  @sections are @n.  Texts are added to @texts.  0; -EINVAL: there is a mistake
 * that somebody has to mend, in the file, its name or its rights; another -errno: the file, or a
 * value as a name that does not resolve, cannot be used now.  Each is a line in @errors. */
int opt_file_read(const char *path, const struct opt_section *sections, unsigned n, void *arg,
		  struct opt_texts *texts, FILE *errors);
/* opt_file_read() of the @len bytes of @text, which has a zero byte behind and is changed. */
int opt_file_parse(const char *path, char *text, size_t len, const struct opt_section *sections,
		   unsigned n, void *arg, struct opt_texts *texts, FILE *errors);
/* A copy of @text that lives as long as @texts; NULL: no memory. */
char *opt_texts_keep(struct opt_texts *texts, const char *text);
/* Make the name of a file *@path absolute, which lives as long as @texts then.  The name is one in
 * @dir, or, NULL, in the working directory as the shell calls it: links stay, because they may lead
 * elsewhere later.  A name that is absolute, or NULL, stays as it is, and so does each name in a
 * directory that was removed.  0 or -ENOMEM. */
int opt_texts_absolute(struct opt_texts *texts, const char *dir, const char **path);
/* The working directory as the shell calls it, which lives as long as @texts; NULL: it was removed,
 * or there is no memory. */
const char *opt_texts_directory(struct opt_texts *texts);
/* Free the texts, to which no row points any more. */
void opt_texts_free(struct opt_texts *texts);

/* ---- a file, and the directory beside it: opt-dir.c ----
 *
 * Beside FILE is FILE.d/NAME.conf.  A file there is read behind FILE, in the order of the names.
 * One of them, FILE.d/rtrsctl-saved.conf, belongs to the program, which replaces it as a whole; the
 * others are the administrator's.  Blocks; any thread. */

/* For scandir(): 1 if @entry is a file that is read. */
int opt_dir_is_conf(const struct dirent *entry);
/* Call @read for @file, and for each file of its directory, which need not be there.  All are read,
 * behind a mistake, too.  Returns the first error, as of opt_file_read(), or 0. */
int opt_dir_read(const char *file, int (*read)(void *arg, const char *path, FILE *errors),
		 void *arg, FILE *errors);
/* The name of the program's file beside @file, for the caller to free; NULL: no memory. */
char *opt_dir_saved(const char *file);
/* True if @where, "FILE:LINE", is a line of @saved, the program's file; NULL: no. */
bool opt_dir_is_saved(const char *saved, const char *where);
/* Make @saved, a name of opt_dir_saved(), a file with the @n bytes of @text, so that it lasts
 * (plain_file_save()); NULL: remove it.  0, or -errno with one line in @err, and the file is as
 * before. */
int opt_dir_save(const char *saved, const char *text, size_t n, char *err, size_t len);

/* ---- a line as text: opt-line.c.  Pure, any thread ---- */

/* True if @c does not count at the ends of a line, a name or a value. */
bool opt_line_is_blank(char c);
/* Cut the blanks off both ends of @text.  Returns the begin of the rest. */
char *opt_line_trim(char *text);
/* A '#' in @value, which had no quotes, with a blank or an end at both sides: a user may mean a
 * comment.  NULL: none. */
const char *opt_line_hash(const char *value);
/* Take "NAME = VALUE" or "NAME: VALUE" apart, and the comment off.  *@value is NULL if there is
 * none, and *@quoted is true if it stood in quotes, which are off then.  Texts are in @line. */
void opt_line_split(char *line, char **name, char **value, bool *quoted);
/* Write to @out the line of an option, which reads back as @value, with quotes if need be.  @value
 * has no newline, and no carriage return. */
void opt_line_put(FILE *out, const char *name, const char *value);

#endif
