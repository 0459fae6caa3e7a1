/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers for people: aligned, with units. */
#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/* "10 GiB", "1.5 TiB", "512 B". */
const char *text_bytes(uint64_t bytes, char *buf, size_t len);
/* "950 ns", "6.3 us", "12 ms", "1.5 s"; "-" for 0. */
const char *text_time(uint64_t ns, char *buf, size_t len);
/* @text as a terminal may have it: a peer may have chosen it.  In @buf, cut off where it does not
 * fit. */
const char *text_safe(const char *text, char *buf, size_t len);

/* @object with all that is in it: what has a name under its name, operations as a table. */
void text_object(const json_t *object);

/* Print @nrows rows of @ncols cells, the first row being the heads, each column as wide as its
 * widest cell; those from @right on stand at the right.  @indent: in front of each row. */
#define TEXT_CELL 64
void text_table(const char (*cells)[TEXT_CELL], unsigned nrows, unsigned ncols, unsigned right,
		unsigned indent);

#endif
