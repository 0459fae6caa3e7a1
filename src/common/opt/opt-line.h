/* SPDX-License-Identifier: BSD-3-Clause */
/* A line of a file of options (opt-file.h) as text.  Pure.  Any thread. */
#ifndef OPT_LINE_H
#define OPT_LINE_H

#include <stdbool.h>
#include <stdio.h>

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
