/* SPDX-License-Identifier: BSD-3-Clause */
/* Between the files of rtrs-bench: what the user says and sees.  load.h has the load.  Main thread,
 * unless a function says otherwise. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>

#include "auth-creds.h"
#include "clt-paths.h"
#include "clt-sess.h"
#include "fab-tls.h"
#include "load.h"
#include "opt.h"

/* ---- options.c: the command line; errors go to stderr, and name the option, the value and the
 * expected values ---- */

struct options {
	const char *server, *export;
	const char *sessname;		/* NULL: made up */
	unsigned rw;			/* the index of --rw's value in the names */
	unsigned mix_percent;		/* percentage of reads, if the load reads and writes */
	enum clt_transport transport;
	const struct fab_provider *provider;	/* of @transport; NULL: auto */
	struct clt_sess_addr addr;	/* of @server: a name is the session's to resolve */
	bool automatic;			/* try RDMA first, then @addr */
	unsigned connections;
	unsigned poll_us;
	struct fab_users servers;	/* of a unix socket */
	struct fab_tls_conf tls_conf;
	struct auth_conf auth_conf;
	struct fab_tls *tls;		/* NULL: no TLS */
	struct auth_creds *auth;	/* NULL: no authentication in messages */
	enum clt_registration registration;
	enum rtrs_digest digest;
	bool json;
	struct load_conf load;		/* size 0: to the end */
};

extern const struct opt_table options_table;

/* Read the command line, and the keys that the command line names, into @o.  -1: go on; else the
 * exit status of the program. */
int options_parse(struct options *o, int argc, char **argv);

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
