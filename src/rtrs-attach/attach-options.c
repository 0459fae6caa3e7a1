/* SPDX-License-Identifier: BSD-3-Clause */
/* The options, and a command line as a struct. */
#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attach.h"
#include "changes.h"
#include "cleanup.h"
#include "clock.h"
#include "clt-argv.h"
#include "clt-start.h"
#include "log.h"
#include "opt-rows.h"
#include "process.h"
#include "util.h"

#define FIELD(field) OPT_FIELD(struct attach_options, field)
/* Where NAME.conf is. */
#define CONF_DIR SYSCONFDIR "/rtrs"

#define DEPTH_MAX 4096			/* ublk_drv's */
#define QUEUES_DEFAULT 4u

#define IN_FILE (OPT_AT_START | OPT_IN_FILE)

const char *const attach_via_names[ATTACH_VIAS] = {
	[ATTACH_VIA_AUTO] = "auto", [ATTACH_VIA_UBLK] = "ublk", [ATTACH_VIA_NBD] = "nbd",
};

static const struct opt rows[] = {
	{ .name = "via", .type = OPT_WORD, FIELD(via), .words = attach_via_names,
	  .nwords = ATTACH_VIAS, .fallback = "auto", .holds = IN_FILE,
	  .help = "the kernel's driver" },
	{ .name = "queues", .type = OPT_NUMBER, FIELD(queues), .arg = "N", .least = 1,
	  .most = CLT_RUN_LOOPS, .shown = "1 per 2 CPUs, at most 4", .holds = IN_FILE,
	  .help = "threads of ublk" },
	{ .name = "depth", .type = OPT_NUMBER, FIELD(depth), .arg = "N", .least = 1,
	  .most = DEPTH_MAX, .fallback = "64", .holds = IN_FILE,
	  .help = "requests that each may have in flight" },
	{ CLT_ROW_FOREGROUND }, { CLT_ROW_VERBOSE }, { CLT_ROW_CHECK },
	{ .name = "list", .letter = 'l', .type = OPT_FLAG, FIELD(list), .holds = OPT_AT_START,
	  .instead = "give --list on the command line",
	  .help = "print all devices, and exit" },
	{ .name = "json", .type = OPT_FLAG, FIELD(format), .holds = OPT_AT_START,
	  .instead = "give --json on the command line",
	  .help = "the list as JSON" },
	{ .name = "udev", .type = OPT_TEXT, FIELD(udev), .arg = "DISK", .of = "a disk's name",
	  .holds = OPT_AT_START, .instead = "give --udev on the command line",
	  .help = "print what udev is to know of DISK, and exit" },
	{ OPT_ROW_HELP }, { OPT_ROW_VERSION },
};

_Static_assert(!offsetof(struct attach_options, session), "the file sets a struct attach_options");

const struct opt_table attach_options = {
	.program = "rtrs-attach",
	.rows = rows,
	.n = ARRAY_SIZE(rows),
	.more = clt_conf_part,
	.dashes = "--",
	.head = "Usage: rtrs-attach [OPTIONS] HOST[:PORT]/EXPORT [NAME] [KEY=VALUE ...]\n"
		"       rtrs-attach [OPTIONS] NAME\n"
		"       rtrs-attach --list [--json]\n"
		"Make an export of an RTRS/RNBD server a block device, /dev/rtrs/NAME.  NAME\n"
		"alone has its parameters in\n"
		"    (" CONF_DIR "/NAME.conf)\n"
		"\n"
		"Parameters, those of nbdkit rtrs:\n",
	.body = clt_argv_help,
	.tail = "\nio-timeout is forever by default here.\n"
		"Exit status: 0 the device works, or was detached; 1 a failure, 2 an error "
		"in\noptions or a file.\n",
	.column = 28,
};

/* ---- words ---- */

/* HOST/EXPORT: the export is what follows the first '/' behind rdma:// or tcp://.  That '/'; NULL:
 * @word has none. */
static const char *slash_of(const char *word)
{
	const char *slash = strchr(word, '/');

	if (slash && slash > word && slash[-1] == ':' && slash[1] == '/')
		slash = strchr(slash + 2, '/');
	return slash;
}

static int set_place(struct attach_options *o, const char *word)
{
	const char *slash = slash_of(word);
	char *server;
	int r;

	if (!strncmp(word, "unix:", 5)) {
		fprintf(stderr, "rtrs-attach: '%s': expected HOST/EXPORT; for a unix socket give "
			"server=unix:PATH export=EXPORT\n", word);
		return EXIT_USAGE;
	}
	if (o->session.server) {
		fprintf(stderr, "rtrs-attach: '%s': there is a server already, '%s'; path= is one "
			"more way to it\n", word, o->session.server);
		return EXIT_USAGE;
	}
	if (!slash || slash == word || !slash[1]) {
		fprintf(stderr, "rtrs-attach: '%s': expected HOST/EXPORT\n", word);
		return EXIT_USAGE;
	}
	server = opt_texts_keep(&o->session.texts, word);
	if (!server) {
		fprintf(stderr, "rtrs-attach: no memory\n");
		return EXIT_FAILED;
	}
	server[slash - word] = '\0';
	r = clt_argv_set(&o->session, "server", server);
	return r >= 0 ? r : clt_argv_set(&o->session, "export", server + (slash - word) + 1);
}

static int set_name(struct attach_options *o, const char *word)
{
	if (*o->name) {
		fprintf(stderr, "rtrs-attach: '%s': there is a NAME already, '%s'\n", word,
			o->name);
		return EXIT_USAGE;
	}
	if (!attach_name_ok(word)) {
		fprintf(stderr, "rtrs-attach: NAME '%s': expected at most %u letters, digits, "
			"'.', '_' and '-', the first a letter, a digit or '_', and not '.lock', "
			"'.new', '.session' or '.tmp' as the end\n", word, ATTACH_NAME_MAX - 1);
		return EXIT_USAGE;
	}
	snprintf(o->name, sizeof(o->name), "%s", word);
	return -1;
}

/* KEY=VALUE, HOST/EXPORT or NAME.  -1: go on. */
static int set_word(struct attach_options *o, char *word)
{
	int status;

	if (clt_argv_key_value(&o->session, word, &status))
		return status;
	if (strchr(word, '/'))
		return set_place(o, word);
	return set_name(o, word);
}

/* ---- the whole ---- */

void attach_options_defaults(struct clt_conf *conf)
{
	struct attach_options *o = container_of(conf, struct attach_options, session);

	opt_defaults(&attach_options, o);
	o->queues = MIN(MAX(machine()->cpus / 2, 1u), QUEUES_DEFAULT);
}

/* Fit what was not given: --queues to connections= that were given, else these to the queues. */
static void fit_queues(struct attach_options *o)
{
	struct clt_conf *conf = &o->session;
	bool given = clt_conf_given(conf, "connections");

	if (given && !opt_given(&attach_options, conf->own_given, "queues"))
		o->queues = MIN(o->queues, conf->sess.connections);
	/* Small requests and large ones in each queue. */
	if (!given)
		conf->sess.connections = MAX(conf->sess.connections, 2 * o->queues);
	conf->sess.nloops = o->queues;
}

int attach_options_complete(struct clt_conf *conf, char *why, size_t len)
{
	struct attach_options *o = container_of(conf, struct attach_options, session);

	fit_queues(o);
	if (conf->sess.connections < o->queues) {
		snprintf(why, len, "connections=%u with --queues=%u: expected a connection for "
			 "each queue, connections=%u or more", conf->sess.connections, o->queues,
			 o->queues);
		return -EINVAL;
	}
	/* A file system that gets an error goes read-only, or worse. */
	if (!clt_conf_given(conf, "io-timeout"))
		conf->sess.io_timeout_ms = CLOCK_NEVER;
	if (!conf->export_name) {
		snprintf(why, len, "no export: expected HOST/EXPORT, or export=NAME");
		return -EINVAL;
	}
	if (!*o->name && !attach_name_ok(conf->export_name)) {
		snprintf(why, len, "the export '%s' is no NAME of a device: give a NAME, too",
			 conf->export_name);
		return -EINVAL;
	}
	if (!*o->name)
		snprintf(o->name, sizeof(o->name), "%s", conf->export_name);
	return 0;
}

/* NAME alone has a file. */
static int default_file(struct attach_options *o)
{
	struct clt_conf *conf = &o->session;
	_cleanup_free_ char *path = NULL;
	char *kept;

	if (conf->server || conf->config || clt_conf_given(conf, "path"))
		return -1;
	if (!*o->name) {
		fprintf(stderr, "rtrs-attach: expected HOST/EXPORT, or a NAME whose parameters are "
			"in " CONF_DIR "/NAME.conf\n");
		return EXIT_USAGE;
	}
	if (asprintf(&path, CONF_DIR "/%s.conf", o->name) < 0 ||
	    !(kept = opt_texts_keep(&conf->texts, path))) {
		fprintf(stderr, "rtrs-attach: no memory\n");
		return EXIT_FAILED;
	}
	return clt_argv_set(conf, "config", kept);
}

static int read_line(struct attach_options *o, int argc, char **argv)
{
	int first = argc, r = clt_argv_read(&o->session, argc, argv, &first);

	for (int i = first; r < 0 && i < argc; i++)
		r = set_word(o, argv[i]);
	if (r < 0 && o->format == ATTACH_JSON && !o->list) {
		fprintf(stderr, "rtrs-attach: --json: expected with --list\n");
		return EXIT_USAGE;
	}
	if (r < 0 && (o->list || o->udev) && first < argc) {
		fprintf(stderr, "rtrs-attach: '%s': expected no further word with --%s\n",
			argv[first], o->list ? "list" : "udev");
		return EXIT_USAGE;
	}
	return r;
}

int attach_options_parse(struct attach_options *o, const struct clt_front *front, int argc,
			 char **argv)
{
	int r;

	memset(o, 0, sizeof(*o));
	files_age_reset();
	clt_conf_init(&o->session, front);
	r = read_line(o, argc, argv);
	if (r < 0 && (o->list || o->udev))
		return r;
	if (r < 0)
		r = default_file(o);
	if (r < 0)
		r = clt_argv_complete(&o->session);
	return r < 0 && o->session.run.check ? clt_argv_checked(&o->session) : r;
}

void attach_options_fini(struct attach_options *o)
{
	clt_conf_fini(&o->session);
}
