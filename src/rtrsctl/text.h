/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers for people: aligned, with units. */
#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <jansson.h>

/* The room of a text on a terminal, which is neither its bytes nor its characters. */

/* The columns of @text, UTF-8 without control characters.  Main thread. */
int text_width(const char *text);

/* Write @bytes as "10 GiB", "1.5 TiB" or "512 B".  Returns @buf. */
const char *text_bytes(uint64_t bytes, char *buf, size_t len);
/* Write @ns as "950 ns", "6.3 us", "12 ms" or "1.5 s"; "-" for 0.  Returns @buf. */
const char *text_time(uint64_t ns, char *buf, size_t len);
/* Write the day of @at, seconds since 1970, in UTC as "2026-11-27"; "-" if there is none, or if
 * @buf has no room.  Returns @buf. */
const char *text_date(time_t at, char *buf, size_t len);
/* Mask the control characters in @text, which a peer may have chosen, for a terminal.  Returns
 * @buf, with as much of @text as fits. */
const char *text_safe(const char *text, char *buf, size_t len);
/* Write @text, lines, to @buf; of a text that is too long as many whole lines as fit, and a line
 * that says how many are left out.  @len is at least 128.  Returns @buf. */
const char *text_lines(const char *text, char *buf, size_t len);

/* Write the kind and the name of the program of @answer: "rtrs-server disk0".  Returns @buf. */
const char *text_program(const json_t *answer, char *buf, size_t len);
/* Print @object, whose reference is taken, as JSON on a line. */
void text_json(json_t *object);
/* Print @object with all members: an item with a name under a heading with the name, operations as
 * a table. */
void text_object(const json_t *object);

#define TEXT_CELL 64
/* Print @nrows rows of @ncols cells, the first row being the heads.  A column is as wide as the
 * widest cell; columns from @right on are aligned to the right.  @indent: spaces in front of each
 * row. */
void text_table(const char (*cells)[TEXT_CELL], unsigned nrows, unsigned ncols, unsigned right,
		unsigned indent);

#endif
