/* SPDX-License-Identifier: BSD-3-Clause */
/* Words to struct options.  The words for a load are those of fio, those for a session the
 * plugin's. */
#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "options.h"
#include "rnbd-proto.h"
#include "rtrs-msg.h"
#include "rtrs-proto.h"
#include "size.h"

#define BLOCK_MAX (64u << 20)
#define SIZE_LIMIT (UINT64_C(1) << 60)
#define DEPTH_MAX 4096u
#define SPIN_US 100u

enum {
	OPT_RW = 256, OPT_RWMIXREAD, OPT_BS, OPT_IODEPTH, OPT_OFFSET, OPT_SIZE, OPT_RUNTIME, OPT_IOS, OPT_FUA, OPT_VERIFY,
	OPT_SEED, OPT_JSON, OPT_TRANSPORT, OPT_CONNECTIONS, OPT_SESSNAME, OPT_REGISTRATION, OPT_POLL, OPT_SERVER_UID,
};

static const struct option options[] = {
	{ "rw", required_argument, NULL, OPT_RW },
	{ "rwmixread", required_argument, NULL, OPT_RWMIXREAD },
	{ "bs", required_argument, NULL, OPT_BS },
	{ "iodepth", required_argument, NULL, OPT_IODEPTH },
	{ "offset", required_argument, NULL, OPT_OFFSET },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "runtime", required_argument, NULL, OPT_RUNTIME },
	{ "number-ios", required_argument, NULL, OPT_IOS },
	{ "fua", no_argument, NULL, OPT_FUA },
	{ "verify", no_argument, NULL, OPT_VERIFY },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "transport", required_argument, NULL, OPT_TRANSPORT },
	{ "connections", required_argument, NULL, OPT_CONNECTIONS },
	{ "sessname", required_argument, NULL, OPT_SESSNAME },
	{ "server-uid", required_argument, NULL, OPT_SERVER_UID },
	{ "registration", required_argument, NULL, OPT_REGISTRATION },
	{ "poll", required_argument, NULL, OPT_POLL },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ NULL, 0, NULL, 0 },
};

/* What has an effect with some values of --rw only. */
struct given {
	bool mix, seed;
	unsigned mix_percent;
};

static const char help[] =
"Usage: rtrs-bench [OPTIONS] HOST[:PORT]|unix:PATH EXPORT\n"
"Measure an RTRS/RNBD server: rtrs-server, or the kernel's.\n"
"\n"
"      --rw=WHAT              read, randread (default), and what destroys data:\n"
"                             write, randwrite, rw, randrw\n"
"      --rwmixread=PERCENT    reads of rw and randrw (default 50)\n"
"      --bs=SIZE              bytes of an IO (default 4K)\n"
"      --iodepth=N            IOs in flight (default 1)\n"
"      --offset=SIZE --size=SIZE  the part of the export (default: all of it)\n"
"      --runtime=SECONDS --number-ios=N  whatever comes first (default 10 s)\n"
"      --fua                  an answered write is on stable storage\n"
"      --verify               blocks say what they are, and are checked\n"
"      --seed=N               of random blocks (default 1)\n"
"      --json                 the result as JSON\n"
"      --transport=auto|rdma|tcp  how to reach the server (default: auto)\n"
"      --connections=N        for IO, 1..4095 (default 1)\n"
"      --sessname=NAME        name of the session (default: unique)\n"
"      --server-uid=USER[,USER]...  who may listen at unix:PATH (root, own user)\n"
"      --registration=auto|window|static  how long keys of reads live\n"
"      --poll=MICROSECONDS    look for at most so long before sleeping (100)\n"
"  -h, --help  -V, --version  print this, or the version, and exit\n"
"\n"
"Exit status: 0 done, 1 an error or blocks that differ, 2 a mistake above.\n";

static int wrong(const char *name, const char *value, const char *expected)
{
	fprintf(stderr, "rtrs-bench: --%s=%s: expected %s\n", name, value, expected);
	return OPTIONS_USAGE;
}

/* @what: "a number", or of what. */
static int number(const char *name, const char *value, const char *what, uint64_t min, uint64_t max,
		  uint64_t *n)
{
	char expected[96];

	if (number_parse(value, min, max, n))
		return -1;
	snprintf(expected, sizeof(expected), "%s from %" PRIu64 " to %" PRIu64, what, min, max);
	return wrong(name, value, expected);
}

static int number_u(const char *name, const char *value, const char *what, unsigned min, unsigned max,
		    unsigned *n)
{
	uint64_t x = 0;
	int r = number(name, value, what, min, max, &x);

	if (r < 0)
		*n = (unsigned)x;
	return r;
}

static int size(const char *name, const char *value, const char *what, uint64_t min, uint64_t max,
		uint64_t *n)
{
	char expected[160], least[SIZE_TEXT_MAX], most[SIZE_TEXT_MAX];
	uint64_t x;

	if (size_parse(value, &x) && x >= min && x <= max) {
		*n = x;
		return -1;
	}
	snprintf(expected, sizeof(expected), "%s from %s to %s, perhaps with " SIZE_UNITS " behind it", what,
		 size_text(min, least), size_text(max, most));
	return wrong(name, value, expected);
}

static int set_rw(struct options *o, const char *value)
{
	static const struct { const char *name; bool random; unsigned read_percent; } what[] = {
		{ "read", false, 100 }, { "randread", true, 100 }, { "write", false, 0 }, { "randwrite", true, 0 },
		{ "rw", false, 50 }, { "randrw", true, 50 },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(what); i++) {
		if (strcmp(value, what[i].name))
			continue;
		o->load.random = what[i].random;
		o->load.read_percent = what[i].read_percent;
		return -1;
	}
	return wrong("rw", value, "read, randread, write, randwrite, rw or randrw");
}

static int set_block(struct options *o, const char *value)
{
	uint64_t bs = 0;
	int r = size("bs", value, "a size", VERIFY_MIN, BLOCK_MAX, &bs);

	if (r < 0 && bs % VERIFY_MIN)
		return wrong("bs", value, "a multiple of 512");
	o->load.block = (uint32_t)bs;
	return r;
}

static int set_transport(struct options *o, const char *value)
{
	if (!strcmp(value, "auto")) {
		o->provider = NULL;
		return -1;
	}
	if (strcmp(value, "rdma") && strcmp(value, "tcp"))
		return wrong("transport", value, "auto, rdma or tcp");
	o->provider = fab_provider_find(value);
	return o->provider ? -1 : wrong("transport", value, "tcp: this rtrs-bench was built without RDMA");
}

static int set_sessname(struct options *o, const char *value)
{
	char expected[64];

	if (rtrs_sessname_ok(value)) {
		o->sessname = value;
		return -1;
	}
	snprintf(expected, sizeof(expected), "1..%d characters without '/' and '.'", RTRS_NAME_MAX - 1);
	return wrong("sessname", value, expected);
}

static int set_registration(struct options *o, const char *value)
{
	for (unsigned i = 0; i < CLT_NREGS; i++) {
		if (strcmp(value, clt_registration_names[i]))
			continue;
		o->registration = (enum clt_registration)i;
		return -1;
	}
	return wrong("registration", value, "auto, window or static");
}

static int set(struct options *o, int opt, const char *value, struct given *given)
{
	struct load_conf *l = &o->load;

	switch (opt) {
	case OPT_RW:
		return set_rw(o, value);
	case OPT_RWMIXREAD:
		given->mix = true;
		return number_u("rwmixread", value, "a number", 0, 100, &given->mix_percent);
	case OPT_BS:
		return set_block(o, value);
	case OPT_IODEPTH:
		return number_u("iodepth", value, "a number", 1, DEPTH_MAX, &l->depth);
	case OPT_OFFSET:
		return size("offset", value, "a size", 0, SIZE_LIMIT, &l->off);
	case OPT_SIZE:
		return size("size", value, "a size", 1, SIZE_LIMIT, &l->size);
	case OPT_RUNTIME:
		return number("runtime", value, "a number of seconds", 1, UINT32_MAX, &l->runtime_s);
	case OPT_IOS:
		return size("number-ios", value, "a number of IOs", 1, SIZE_LIMIT, &l->ios);
	case OPT_FUA:
		l->fua = true;
		return -1;
	case OPT_VERIFY:
		l->verify = true;
		return -1;
	case OPT_SEED:
		given->seed = true;
		return number("seed", value, "a number", 0, INT64_MAX, &l->seed);
	case OPT_JSON:
		o->json = true;
		return -1;
	case OPT_TRANSPORT:
		return set_transport(o, value);
	case OPT_CONNECTIONS:
		return number_u("connections", value, "a number", 1, RTRS_MAX_CONS - 1, &o->connections);
	case OPT_SESSNAME:
		return set_sessname(o, value);
	case OPT_REGISTRATION:
		return set_registration(o, value);
	case OPT_SERVER_UID:
		return fab_users_parse(value, &o->servers) ? wrong("server-uid", value, "names or numbers of users") : -1;
	case OPT_POLL:
		return number_u("poll", value, "a number of microseconds", 0, 1000000, &o->poll_us);
	case 'h':
		fputs(help, stdout);
		return 0;
	case 'V':
		puts("rtrs-bench " PACKAGE_VERSION);
		return 0;
	default:
		fputs("See rtrs-bench --help\n", stderr);
		return OPTIONS_USAGE;
	}
}

static int set_places(struct options *o, int argc, char **argv)
{
	char why[512];
	int r;

	if (argc != 2) {
		fprintf(stderr, "rtrs-bench: expected HOST[:PORT] and EXPORT, not %d arguments: see --help\n", argc);
		return OPTIONS_USAGE;
	}
	o->server = argv[0];
	o->export = argv[1];
	if (o->provider && !fab_addr_text_agrees(o->server, o->provider)) {
		fprintf(stderr, "rtrs-bench: --transport=%s contradicts %s: give one of them, or the same twice\n",
			fab_provider_name(o->provider), o->server);
		return OPTIONS_USAGE;
	}
	if (!*o->export || strlen(o->export) >= RNBD_NAME_MAX) {
		fprintf(stderr, "rtrs-bench: EXPORT '%s': expected a name of 1..%d characters\n", o->export,
			RNBD_NAME_MAX - 1);
		return OPTIONS_USAGE;
	}
	r = fab_addr_parse_peer(o->server, o->provider ? o->provider : fab_provider_find("tcp"), RTRS_PORT,
				&o->addr, why, sizeof(why));
	if (r < 0) {
		fprintf(stderr, "rtrs-bench: server %s: %s\n", o->server, why);
		/* Another machine, or another day, may know the host. */
		return r == -ENOENT ? OPTIONS_UNKNOWN_HOST : OPTIONS_USAGE;
	}
	/* An address that names its transport is tried over that alone. */
	o->automatic = !o->provider && !strstr(o->server, "://") && !fab_addr_is_unix(&o->addr);
	return -1;
}

/* Options that each are possible, and do nothing for the load that the others describe. */
static int check_together(struct options *o, const struct given *given)
{
	struct load_conf *l = &o->load;
	bool mixed = l->read_percent % 100 != 0;

	if (given->mix && !mixed) {
		fprintf(stderr, "rtrs-bench: --rwmixread=%u: expected with --rw=rw or --rw=randrw\n",
			given->mix_percent);
		return OPTIONS_USAGE;
	}
	if (given->seed && !mixed && !l->random) {
		fprintf(stderr, "rtrs-bench: --seed=%" PRIu64 ": expected with --rw=rw or a --rw of random blocks\n",
			l->seed);
		return OPTIONS_USAGE;
	}
	if (given->mix)
		l->read_percent = given->mix_percent;
	if (l->fua && l->read_percent == 100) {
		fputs("rtrs-bench: --fua: expected with a --rw that writes: write, randwrite, rw or randrw\n", stderr);
		return OPTIONS_USAGE;
	}
	return -1;
}

int options_parse(struct options *o, int argc, char **argv)
{
	struct given given = { .mix = false };
	int opt, status;

	*o = (struct options){
		.connections = 1,
		.poll_us = SPIN_US,
		.load = { .random = true, .read_percent = 100, .block = 4096, .depth = 1, .seed = 1 },
	};
	while ((opt = getopt_long(argc, argv, "hV", options, NULL)) != -1) {
		status = set(o, opt, optarg, &given);
		if (status >= 0)
			return status;
	}
	status = check_together(o, &given);
	if (status >= 0)
		return status;
	if (!o->load.runtime_s && !o->load.ios)
		o->load.runtime_s = 10;
	return set_places(o, argc - optind, argv + optind);
}
