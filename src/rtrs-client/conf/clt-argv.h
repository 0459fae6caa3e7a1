/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of a front end that is a program by itself: its options, and words, some of
 * which are parameters.
 *
 * Each mistake is a line on stderr.  Functions return -1: go on; else the exit status.  Main
 * thread. */
#ifndef CLT_ARGV_H
#define CLT_ARGV_H

#include "clt-conf.h"

/* Rows that such programs have. */
#define CLT_ROW_FOREGROUND \
	.name = "foreground", .letter = 'f', .type = OPT_FLAG, \
	OPT_FIELD(struct clt_conf, run.foreground), .holds = OPT_AT_START | OPT_IN_FILE, \
	.help = "do not become a daemon"
#define CLT_ROW_VERBOSE \
	.name = "verbose", .letter = 'v', .type = OPT_FLAG, \
	OPT_FIELD(struct clt_conf, run.verbose), \
	.holds = OPT_AT_START | OPT_IN_FILE | OPT_AT_RUN_TIME, .carry_out = clt_argv_verbose, \
	.help = "log successes, too"
#define CLT_ROW_CHECK \
	.name = "check", .type = OPT_FLAG, OPT_FIELD(struct clt_conf, run.check), \
	.holds = OPT_AT_START, .instead = "give --check on the command line", \
	.help = "check parameters and keys, and exit"

/* opt.carry_out of "verbose".  Any thread. */
void clt_argv_verbose(const void *conf, void *program);
/* opt_table.body: print the help of the parameters. */
void clt_argv_help(FILE *out);
/* clt_front.others: a file may be that of the other end. */
extern const char *const clt_argv_of_server[];
extern const char clt_argv_of_server_are[];

/* Read the options of conf->front out of @argv.  argv[*@first] is the first other word. */
int clt_argv_read(struct clt_conf *conf, int argc, char **argv, int *first);
/* clt_conf_set(). */
int clt_argv_set(struct clt_conf *conf, const char *key, const char *value);
/* True if @word is KEY=VALUE, which is set then, with *@status. */
bool clt_argv_key_value(struct clt_conf *conf, char *word, int *status);
/* clt_conf_complete(). */
int clt_argv_complete(struct clt_conf *conf);
/* The end of --check: all is right. */
int clt_argv_checked(const struct clt_conf *conf);

#endif
