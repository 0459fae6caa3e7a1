/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines of a configuration, as far as they can be read: for a look at what they name.  Whether
 * they are right is for the program to say, which has the tables of options.  Main thread. */
#ifndef DOCTOR_CONF_H
#define DOCTOR_CONF_H

#include <stdbool.h>
#include <stddef.h>

struct doctor_line {
	char *section;			/* the name of the export; "": none */
	char *name, *value;
};

struct doctor_conf {			/* all 0: none */
	struct doctor_line *lines;
	size_t n;
	bool is_server;			/* it has a section of a server */
};

/* Add the lines of @path, and of the files "*.conf" in @path.d, to @conf, which doctor_conf_free()
 * frees in any case.  A line of text for each file or directory that cannot be read, for free();
 * NULL: no memory. */
char *doctor_conf_read(struct doctor_conf *conf, const char *path);
/* The value of the next line called @name, behind line *@at, which counts on; NULL: no more.
 * *@section, unless NULL: the section of the line.  *@at begins with 0. */
const char *doctor_conf_next(const struct doctor_conf *conf, const char *name, size_t *at,
			     const char **section);
/* The value of the line @name of @section; NULL: there is none. */
const char *doctor_conf_of(const struct doctor_conf *conf, const char *section, const char *name);
void doctor_conf_free(struct doctor_conf *conf);

#endif
