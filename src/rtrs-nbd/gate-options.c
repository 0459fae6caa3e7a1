/* SPDX-License-Identifier: BSD-3-Clause */
/* The options, and a command line as structs.  An option of nbdkit that is not there says what does
 * its work here. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "changes.h"
#include "clt-argv.h"
#include "clt-start.h"
#include "gate.h"
#include "log.h"
#include "nbd-server.h"
#include "number.h"
#include "opt-rows.h"
#include "process.h"
#include "unix-sock.h"
#include "util.h"

#define FIELD(field) OPT_FIELD(struct gate_options, field)
#define ASKED(field) OPT_ASKED(struct gate_options, field)
#define IN_FILE (OPT_AT_START | OPT_IN_FILE)

static void set_memory(const void *conf, void *program)
{
	const struct gate_options *o = conf;

	if (o->memory_changed)
		o->memory_changed(o->memory);
}

static const struct opt rows[] = {
	{ .name = "unix", .letter = 'U', .type = OPT_TEXT, FIELD(socket), .arg = "SOCKET",
	  .of = "a path, or -", .call = unix_sock_check, .holds = IN_FILE,
	  .help = "listen on a unix socket (-: a private one)" },
	{ .name = "ipaddr", .letter = 'i', .type = OPT_TEXT, FIELD(address), .arg = "ADDR",
	  .of = "an address of this machine", .shown = "127.0.0.1 and ::1", .holds = IN_FILE,
	  .help = "listen on this address" },
	{ .name = "port", .letter = 'p', .type = OPT_NUMBER, FIELD(port), .arg = "PORT",
	  .most = UINT16_MAX, .shown = "10809", .holds = IN_FILE,
	  .help = "listen on this port" },
	{ .name = "readonly", .letter = 'r', .type = OPT_FLAG, FIELD(readonly),
	  .holds = IN_FILE, .help = "clients may only read" },
	{ CLT_ROW_FOREGROUND },
	{ .name = "pidfile", .letter = 'P', .type = OPT_TEXT, FIELD(pidfile), .arg = "PIDFILE",
	  .of = "a path", .holds = IN_FILE, .help = "write the process ID when ready" },
	{ .name = "run", .type = OPT_TEXT, FIELD(run), .arg = "COMMAND", .of = "a command",
	  .holds = IN_FILE, .help = "serve while this command runs ($uri, $port)" },
	{ .name = "exportname", .letter = 'e', .type = OPT_TEXT, FIELD(uri_name), .arg = "NAME",
	  .of = "a name", .shown = "", .holds = IN_FILE, .help = "the export in $uri" },
	{ OPT_ROW_TLS(struct gate_options, tls_conf), .file_name = "nbd-tls",
	  .help = "encrypt NBD" },
	{ OPT_ROW_TLS_PSK(struct gate_options, tls_conf), .file_name = "nbd-tls-psk",
	  .help = "pre-shared keys of NBD clients, NAME:KEY" },
	{ OPT_ROW_TLS_CERTIFICATES(struct gate_options, tls_conf),
	  .file_name = "nbd-tls-certificates", .help = "X.509 certificates, for NBD clients" },
	{ .name = "tls-verify-peer", .file_name = "nbd-tls-verify-peer", .type = OPT_FLAG,
	  FIELD(tls_conf.verify_peer), .holds = IN_FILE,
	  .help = "ask NBD clients for certificates" },
	{ .name = "memory", .type = OPT_SIZE, FIELD(memory), .arg = "SIZE", .least = 128u << 20,
	  .most = UINT64_C(1) << 40, .fallback = "512M",
	  .shown = "512M, or half of the memory if less",
	  .holds = IN_FILE | OPT_AT_RUN_TIME, .carry_out = set_memory,
	  .help = "memory for data of all clients\n" },
	{ .name = "threads", .type = OPT_NUMBER, FIELD(threads), .arg = "N", .least = 1,
	  .most = CLT_RUN_LOOPS, .shown = "2 to 8: 1 per 2 CPUs", .holds = IN_FILE,
	  .help = "threads that serve clients" },
	{ CLT_ROW_VERBOSE }, { CLT_ROW_CHECK },
	{ OPT_ROW_HELP }, { OPT_ROW_VERSION },
};

_Static_assert(!offsetof(struct gate_options, session), "the file sets a struct gate_options");

const struct opt_table gate_options = {
	.program = "rtrs-nbd",
	.rows = rows,
	.n = ARRAY_SIZE(rows),
	.more = clt_conf_part,
	.dashes = "--",
	.head = "Usage: rtrs-nbd [OPTIONS] [server=]HOST[:PORT] [export=NAME] [KEY=VALUE ...]\n"
		"Give exports of an RTRS/RNBD server to NBD clients.\n"
		"\n"
		"Parameters, those of nbdkit rtrs:\n",
	.body = clt_argv_help,
	.tail = "\nExit status: 0 ended by SIGTERM, 1 a failure, 2 an error in options or a "
		"file.\n",
	.column = 28,
};

/* ---- options of nbdkit ---- */

/* A word that is, or begins with, @word. */
static const struct {
	const char *word, *instead;
} others[] = {
	{ "--filter", "filters are nbdkit's: use nbdkit --filter=... rtrs ..." },
	{ "-t", "there is no thread for a request; see --threads in rtrs-nbd(1)" },
	{ "--selinux-label", "start it with runcon" },
	{ "-u", "start it as that user, with runuser or User= of systemd" },
	{ "--user", "start it as that user, with runuser or User= of systemd" },
	{ "-g", "start it in that group, with runuser or Group= of systemd" },
	{ "--group", "start it in that group, with runuser or Group= of systemd" },
	{ "-s", "use --run, or socket activation" },
	{ "--single", "use --run, or socket activation" },
	{ "--log", "-f logs to stderr, a daemon to the system log" },
	{ "--vsock", "use nbdkit --vsock rtrs ..." },
	{ "--dump-plugin", "use nbdkit rtrs --dump-plugin" },
	{ "-D", "use -v" },
	{ "--debug", "use -v" },
	{ "-n", "newstyle is the only handshake" },
	{ "-o", "newstyle is the only handshake: use a newer client" },
	{ "--swap", "use systemd, or mlock the process" },
};

static bool is_word(const char *arg, const char *word)
{
	size_t len = strlen(word);

	/* Letters may have their value behind them. */
	return !strncmp(arg, word, len) && (word[1] != '-' || !arg[len] || arg[len] == '=' ||
					    arg[len] == '-');
}

static bool tell_other(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		for (unsigned k = 0; k < ARRAY_SIZE(others); k++) {
			if (!is_word(argv[i], others[k].word))
				continue;
			fprintf(stderr, "rtrs-nbd: option '%s' is nbdkit's: %s\n", argv[i],
				others[k].instead);
			return true;
		}
	}
	return false;
}

/* ---- the whole ---- */

/* KEY=VALUE, or the server alone as the first one.  -1: go on. */
static int set_parameter(struct clt_conf *conf, char *word, bool is_first)
{
	int status;

	if (clt_argv_key_value(conf, word, &status))
		return status;
	if (is_first)
		return clt_argv_set(conf, "server", word);
	fprintf(stderr, "rtrs-nbd: '%s': expected KEY=VALUE; only the server may come first, "
		"without its key\n", word);
	return EXIT_USAGE;
}

static int check_together(const struct gate_options *o, char *why, size_t len)
{
	bool daemon = !o->session.run.foreground && !o->run;
	const char *wrong = NULL;

	if (o->socket && (o->address || o->port != GATE_PORT_NONE))
		wrong = "--unix with --ipaddr or --port: give one or the other";
	else if (o->socket && !strcmp(o->socket, "-") && !o->run)
		wrong = "--unix '-': expected with --run, whose command gets the socket's address";
	else if (o->socket && *o->socket != '/' && strcmp(o->socket, "-") && daemon)
		wrong = "--unix: expected an absolute path, because a daemon changes to the root "
			"directory; or use -f";
	else if (o->uri_name && !o->run)
		wrong = "--exportname: expected with --run, whose $uri has the name; the server's "
			"export is export=NAME";
	else if (o->pidfile && *o->pidfile != '/' && daemon)
		wrong = "--pidfile: expected an absolute path, because a daemon changes to the "
			"root directory; or use -f";
	return wrong ? fmt_error(-EINVAL, why, len, "%s", wrong) : 0;
}

/* The clients of each thread need connections of their own, and room for a request. */
static int check_threads(const struct gate_options *o, char *why, size_t len)
{
	/* A reload leaves the threads as many as they are. */
	const struct gate_options *runs = !o->session.now ? o :
		container_of(o->session.now, struct gate_options, session);
	uint64_t memory = (uint64_t)runs->threads * NBD_SERVER_MEMORY_MIN;
	unsigned connections = o->session.sess.connections;

	if (connections < o->threads)
		return fmt_error(-EINVAL, why, len, "connections=%u with --threads=%u: expected a "
				 "connection for each thread, connections=%u or more", connections,
				 o->threads, o->threads);
	if (o->memory >= memory)
		return 0;
	return fmt_error(-EINVAL, why, len, "--memory=%lluM with --threads=%u: expected 64M for "
			 "each thread, --memory=%lluM or more",
			 (unsigned long long)o->memory >> 20, runs->threads,
			 (unsigned long long)memory >> 20);
}

static int absolute_names(struct gate_options *o)
{
	const char *dir = o->session.dir;
	struct opt_texts *texts = &o->session.texts;

	return opt_texts_absolute(texts, dir, &o->tls_conf.psk) ||
	       opt_texts_absolute(texts, dir, &o->tls_conf.certificates) ? -ENOMEM : 0;
}

/* Read keys and certificates for NBD clients.  The session's own are parameters, without --. */
static int complete_tls(struct gate_options *o)
{
	char why[512];
	int rc;

	o->tls_conf.server = true;
	o->tls_conf.protocol = FAB_TLS_NBD;
	rc = fab_tls_create(&o->tls_conf, &o->tls, why, sizeof(why));
	if (rc < 0) {
		fprintf(stderr, "rtrs-nbd: --%s\n", why);
		return exit_status_of(exit_file_error(rc));
	}
	if (o->tls && o->tls_conf.psk)
		snprintf(o->tls_user, sizeof(o->tls_user), "%s",
			 secrets_own_name(fab_tls_secrets(o->tls)));
	/* ORDER: a mistake is told with the name that the user gave. */
	if (!absolute_names(o))
		return -1;
	fprintf(stderr, "rtrs-nbd: no memory\n");
	return EXIT_FAILED;
}

void gate_options_fini(struct gate_options *o)
{
	clt_conf_fini(&o->session);
	fab_tls_destroy(o->tls);
	o->tls = NULL;
}

void gate_options_defaults(struct clt_conf *conf)
{
	struct gate_options *o = container_of(conf, struct gate_options, session);

	o->port = GATE_PORT_NONE;
	opt_defaults(&gate_options, o);
	/* Two at least, on one CPU, too: a client with a few small requests then rarely waits for
	 * the passes of one with many, or with large ones. */
	o->threads = MIN(MAX(machine()->cpus / 2, 2u), 8u);
}

/* Fit the defaults of what was not given: --threads and --memory into half of the memory, --threads
 * to connections= that were given, and else these to the threads. */
static void gate_fit(struct gate_options *o)
{
	uint64_t each = NBD_SERVER_MEMORY_MIN, room = MAX(machine()->memory / 2, each);
	struct clt_conf *conf = &o->session;
	bool fewer = clt_conf_given(conf, "connections") && conf->sess.connections < o->threads;

	if (!opt_given(&gate_options, conf->own_given, "threads") && fewer)
		o->threads = conf->sess.connections;
	if (!opt_given(&gate_options, conf->own_given, "threads"))
		o->threads = (unsigned)MIN(o->threads, MIN(o->memory, room) / each);
	if (!opt_given(&gate_options, conf->own_given, "memory"))
		o->memory = MIN(o->memory, MAX(room, o->threads * each));
	conf->sess.nloops = o->threads;
	/* Small requests and large ones on each loop. */
	if (!clt_conf_given(conf, "connections"))
		conf->sess.connections = MAX(conf->sess.connections, 2 * o->threads);
}

int gate_options_complete(struct clt_conf *conf, char *why, size_t len)
{
	struct gate_options *o = container_of(conf, struct gate_options, session);
	int r;

	gate_fit(o);
	r = check_together(o, why, len);
	if (r == 0)
		r = check_threads(o, why, len);
	/* The start needs the names that the user gave: complete_tls(). */
	if (r == 0 && conf->now && absolute_names(o))
		r = fmt_error(-ENOMEM, why, len, "no memory");
	return r;
}

int gate_options_parse(struct gate_options *o, const struct clt_front *front, int argc, char **argv)
{
	int first = argc, r;

	memset(o, 0, sizeof(*o));
	files_age_reset();
	clt_conf_init(&o->session, front);
	if (tell_other(argc, argv))
		return EXIT_USAGE;
	r = clt_argv_read(&o->session, argc, argv, &first);
	for (int i = first; r < 0 && i < argc; i++)
		r = set_parameter(&o->session, argv[i], i == first);
	if (r < 0)
		r = clt_argv_complete(&o->session);
	if (r < 0)
		r = complete_tls(o);
	return r < 0 && o->session.run.check ? clt_argv_checked(&o->session) : r;
}
