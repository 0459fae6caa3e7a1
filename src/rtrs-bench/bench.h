/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of rtrs-bench: what the user says and sees.  load.h has the load.  Main thread,
 * unless a function says otherwise. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>

#include "clt-conf.h"
#include "load.h"
#include "opt.h"

/* ---- options.c: the command line; errors go to stderr, and name the option, the value and the
 * expected values ---- */

struct options {
	struct clt_conf session;	/* ORDER: the first: clt_front.options */
	unsigned rw;			/* the index of --rw's value in the names */
	unsigned mix_percent;		/* percentage of reads, if the load reads and writes */
	bool json;
	struct load_conf load;		/* size 0: to the end */
};

/* clt_front.options, once options_table_fill() was called. */
extern const struct opt_table options_table;
void options_table_fill(void);
/* clt_front.defaults(). */
void options_defaults(struct clt_conf *conf);

/* Read the command line, and the keys that the command line names, into @o, for @front.  -1: go on;
 * else the exit status of the program.  o->session is to be freed, after a failure, too. */
int options_parse(struct options *o, const struct clt_front *front, int argc, char **argv);

/* ---- report.c: what a user sees of a load, its progress and its result ----
 *
 * Stderr: lines that stay, and, on a terminal, a line below, which is written again and again.  Any
 * thread. */

/* Is stderr a terminal? */
bool report_progress_possible(void);
/* Show @text in place of the previous text. */
void report_progress(const char *text);
/* Clear the shown text. */
void report_progress_end(void);
/* Write a line that stays, with the program's name in front. */
void report_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Print the result to stdout, for people. */
void report_text(const struct options *o, const struct load *l);
/* Print the result to stdout as JSON.  0, or -ENOMEM after a message on stderr. */
int report_json(const struct options *o, const struct load *l);

#endif
