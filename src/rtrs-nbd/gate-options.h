/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line and the file of config=: options as nbdkit spells them, and the parameters of
 * the plugin.  Main thread. */
#ifndef GATE_OPTIONS_H
#define GATE_OPTIONS_H

#include "clt-conf.h"

#define GATE_PORT_NONE (-1)

struct gate_options {
	struct clt_conf session;	/* ORDER: the first: clt_front.options */
	const char *socket;		/* -U; NULL: none, "-": one of its own for --run */
	const char *address;		/* -i; NULL: not given */
	int port;			/* -p; GATE_PORT_NONE: not given */
	const char *pidfile;		/* NULL: none */
	const char *run;		/* a command; NULL: none */
	const char *uri_name;		/* -e: the export in $uri; NULL: the default one */
	bool readonly, foreground, verbose;
	bool check;			/* read all of it, and exit */
	uint64_t memory;		/* bytes for data */
	/* A reload has changed @memory.  Service thread.  NULL: nothing to do. */
	void (*memory_changed)(uint64_t memory);
	unsigned threads;		/* loops for IO */
	struct fab_tls_conf tls_conf;	/* --tls..., for NBD clients */
	struct fab_tls *tls;		/* NULL: no TLS */
	char tls_user[PSK_NAME_MAX + 1];	/* the first name of --tls-psk at the start; "":
						 * none */
};

/* clt_front.options: the parameters are further rows.  In a file the options of TLS have names that
 * begin with nbd-, because those without are of the session. */
extern const struct opt_table gate_options;

/* clt_front.defaults() and complete(). */
void gate_options_defaults(struct clt_conf *conf);
int gate_options_complete(struct clt_conf *conf, char *why, size_t len);

/* Read the command line, and the file that config= names, into @o, for @front.  A value of the
 * command line replaces that of the file.  o->session.nloops becomes o->threads.  -1: go on; else
 * the exit status, and what is wrong is on stderr. */
int gate_options_parse(struct gate_options *o, const struct clt_front *front, int argc,
		       char **argv);
/* Free what gate_options_parse() has made, after a failure, too. */
void gate_options_fini(struct gate_options *o);

#endif
