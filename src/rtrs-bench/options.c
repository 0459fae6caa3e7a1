/* SPDX-License-Identifier: BSD-3-Clause */
/* The options, and a command line as a struct options.  Names of options for a load are fio's;
 * options for a session are parameters of front ends (clt-conf.h). */
#include <config.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "clt-argv.h"
#include "opt-rows.h"
#include "process.h"
#include "rtrs-proto.h"

#define BLOCK_MAX (64u << 20)
#define SIZE_LIMIT (UINT64_C(1) << 60)
#define DEPTH_MAX 4096
#define RUNTIME_S 10

enum rw { RW_READ, RW_RANDREAD, RW_WRITE, RW_RANDWRITE, RW_RW, RW_RANDRW, RW_N };
static const char *const rw_names[RW_N] = {
	[RW_READ] = "read", [RW_RANDREAD] = "randread", [RW_WRITE] = "write",
	[RW_RANDWRITE] = "randwrite", [RW_RW] = "rw", [RW_RANDRW] = "randrw",
};

static int set_rw(void *arg, const char *value, char *why, size_t len)
{
	static const unsigned read_percent[RW_N] = {
		[RW_READ] = 100, [RW_RANDREAD] = 100, [RW_RW] = 50, [RW_RANDRW] = 50,
	};
	struct options *o = arg;

	o->load.random = !strncmp(value, "rand", 4);
	o->load.read_percent = read_percent[o->rw];
	return 0;
}

/* ---- the table ---- */

#define FIELD(field) OPT_FIELD(struct options, field)

static const struct opt own[] = {
	{ .name = "rw", .type = OPT_WORD, FIELD(rw), .words = rw_names, .nwords = RW_N,
	  .call = set_rw, .fallback = "randread", .holds = OPT_AT_START,
	  .help = "all but read and\nrandread destroy data\n" },
	{ .name = "rwmixread", .type = OPT_NUMBER, FIELD(mix_percent), .arg = "PERCENT",
	  .most = 100, .fallback = "50", .holds = OPT_AT_START,
	  .help = "share of reads in rw and randrw" },
	{ .name = "bs", .type = OPT_SIZE, FIELD(load.block), .arg = "SIZE", .least = VERIFY_MIN,
	  .most = BLOCK_MAX, .step = VERIFY_MIN, .fallback = "4K", .holds = OPT_AT_START,
	  .help = "bytes of an IO" },
	{ .name = "iodepth", .type = OPT_NUMBER, FIELD(load.depth), .arg = "N", .least = 1,
	  .most = DEPTH_MAX, .fallback = "1", .holds = OPT_AT_START, .help = "IOs in flight" },
	{ .name = "offset", .type = OPT_SIZE, FIELD(load.off), .arg = "SIZE", .most = SIZE_LIMIT,
	  .holds = OPT_AT_START, .shown = "0", .help = "where the part of the export begins" },
	{ .name = "size", .type = OPT_SIZE, FIELD(load.size), .arg = "SIZE", .least = 1,
	  .most = SIZE_LIMIT, .shown = "all of it", .holds = OPT_AT_START,
	  .help = "how long the part is" },
	{ .name = "runtime", .type = OPT_NUMBER, FIELD(load.runtime_s), .arg = "SECONDS",
	  .of = "seconds", .least = 1, .most = UINT32_MAX,
	  .holds = OPT_AT_START, .shown = "10", .help = "end after this time" },
	{ .name = "number-ios", .type = OPT_SIZE, FIELD(load.ios), .arg = "N", .of = "IOs",
	  .least = 1, .most = SIZE_LIMIT, .holds = OPT_AT_START, .shown = "no end",
	  .help = "or after so many IOs" },
	{ .name = "fua", .type = OPT_FLAG, FIELD(load.fua), .holds = OPT_AT_START,
	  .help = "write through" },
	{ .name = "verify", .type = OPT_FLAG, FIELD(load.verify), .holds = OPT_AT_START,
	  .help = "mark blocks that are written, and check them" },
	{ .name = "seed", .type = OPT_NUMBER, FIELD(load.seed), .arg = "N", .most = INT64_MAX,
	  .fallback = "1", .holds = OPT_AT_START, .help = "of the order of random blocks" },
	{ .name = "json", .type = OPT_FLAG, FIELD(json), .holds = OPT_AT_START,
	  .help = "print JSON" },
	{ .name = "connections", .type = OPT_NUMBER, FIELD(session.sess.connections), .arg = "N",
	  .least = 1, .most = RTRS_MAX_CONS - 1, .fallback = "1", .holds = OPT_AT_START,
	  .help = "for IO" },
};

/* Parameters that are options here. */
static const char *const of_session[] = {
	"transport", "sessname", "server-uid", "tls", "tls-psk", "tls-username",
	"tls-certificates", "tls-hostname", "tls-verify-peer", "tls-ktls", "auth", "auth-psk",
	"auth-username", "auth-hostname", "registration", "digest", "poll",
};

static const struct opt last[] = { { OPT_ROW_HELP }, { OPT_ROW_VERSION } };

static struct opt rows[ARRAY_SIZE(own) + ARRAY_SIZE(of_session) + ARRAY_SIZE(last)];

_Static_assert(!offsetof(struct options, session), "rows of parameters set a struct clt_conf");

const struct opt_table options_table = {
	.program = "rtrs-bench",
	.rows = rows,
	.n = ARRAY_SIZE(rows),
	.dashes = "--",
	.head = "Usage: rtrs-bench [OPTIONS] HOST[:PORT]|unix:PATH EXPORT\n"
		"Measure an RTRS/RNBD server: rtrs-server, or the kernel's.\n"
		"\n",
	.tail = "\nExit status: 0 done, 1 a failure, 2 an error in options or a file.\n",
	.column = 29,
};

void options_table_fill(void)
{
	struct opt *row = rows + ARRAY_SIZE(own);

	memcpy(rows, own, sizeof(own));
	for (unsigned i = 0; i < ARRAY_SIZE(of_session); i++, row++) {
		*row = *opt_find(&clt_conf_options, of_session[i]);
		row->holds = OPT_AT_START;
		row->carry_out = NULL;
	}
	memcpy(row, last, sizeof(last));
}

void options_defaults(struct clt_conf *conf)
{
	opt_defaults(&options_table, conf);
	/* There is no other path to go on with: a pause is part of what is measured, and a loss is
	 * the end. */
	conf->sess.path.hb_interval_ms = RTRS_HB_INTERVAL_MS;
	conf->sess.path.hb_misses = RTRS_HB_MISSED_MAX;
	conf->sess.io_timeout_ms = 0;
}

/* ---- the whole ---- */

static int set_places(struct options *o, int argc, char **argv)
{
	int r;

	if (argc != 2) {
		fprintf(stderr, "rtrs-bench: expected HOST[:PORT] and EXPORT, not %d arguments: "
			"see --help\n", argc);
		return EXIT_USAGE;
	}
	r = clt_argv_set(&o->session, "server", argv[0]);
	if (r < 0)
		r = clt_argv_set(&o->session, "export", argv[1]);
	o->session.mode = o->load.read_percent == 100 ? RNBD_ACCESS_RO : RNBD_ACCESS_RW;
	o->session.mode_auto = false;
	return r < 0 ? clt_argv_complete(&o->session) : r;
}

/* Refuse an option that has no effect on the load of the other options. */
static int check_load_options(struct options *o)
{
	uint64_t given = o->session.own_given;
	struct load_conf *l = &o->load;
	bool mixed = l->read_percent % 100 != 0,
		mix = opt_given(&options_table, given, "rwmixread");

	if (mix && !mixed) {
		fprintf(stderr,
			"rtrs-bench: --rwmixread '%u': expected with --rw=rw or --rw=randrw\n",
			o->mix_percent);
		return EXIT_USAGE;
	}
	if (opt_given(&options_table, given, "seed") && !mixed && !l->random) {
		fprintf(stderr, "rtrs-bench: --seed '%" PRIu64
			"': expected with --rw=rw or a --rw of random blocks\n", l->seed);
		return EXIT_USAGE;
	}
	if (mix)
		l->read_percent = o->mix_percent;
	if (l->fua && l->read_percent == 100) {
		fputs("rtrs-bench: --fua: expected with a --rw that writes: write, randwrite, "
		      "rw or randrw\n", stderr);
		return EXIT_USAGE;
	}
	if (!l->runtime_s && !l->ios)
		l->runtime_s = RUNTIME_S;
	return -1;
}

int options_parse(struct options *o, const struct clt_front *front, int argc, char **argv)
{
	int first = argc, r;

	options_table_fill();
	memset(o, 0, sizeof(*o));
	clt_conf_init(&o->session, front);
	r = clt_argv_read(&o->session, argc, argv, &first);
	if (r < 0)
		r = check_load_options(o);
	return r < 0 ? set_places(o, argc - first, argv + first) : r;
}
