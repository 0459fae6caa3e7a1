/* SPDX-License-Identifier: BSD-3-Clause */
/* The options, and a command line as a struct options.  Names of options for a load are fio's;
 * names of options for a session are the plugin's. */
#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "process.h"
#include "rnbd-proto.h"
#include "rtrs-msg.h"
#include "rtrs-proto.h"

#define BLOCK_MAX (64u << 20)
#define SIZE_LIMIT (UINT64_C(1) << 60)
#define DEPTH_MAX 4096
#define RUNTIME_S 10

/* ---- values with rules of their own ---- */

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

static int set_transport(void *arg, const char *value, char *why, size_t len)
{
	struct options *o = arg;

	o->provider = o->transport == CLT_TRANSPORT_AUTO ? NULL : fab_provider_find(value);
	if (o->transport == CLT_TRANSPORT_AUTO || o->provider)
		return 0;
	snprintf(why, len, "expected tcp: this rtrs-bench was built without RDMA");
	return -EINVAL;
}

static int check_digest(void *arg, const char *value, char *why, size_t len)
{
	const struct options *o = arg;

	if (o->digest == RTRS_DIGEST_NONE || rtrs_digest_works())
		return 0;
	snprintf(why, len, "this rtrs-bench was built without ISA-L (libisal)");
	return -EINVAL;
}

static int set_sessname(void *arg, const char *value, char *why, size_t len)
{
	struct options *o = arg;

	if (rtrs_sessname_ok(value)) {
		o->sessname = value;
		return 0;
	}
	snprintf(why, len, "expected 1..%d characters without '/' and '.'", RTRS_NAME_MAX - 1);
	return -EINVAL;
}

static int set_server_uid(void *arg, const char *value, char *why, size_t len)
{
	struct options *o = arg;

	if (!fab_users_parse(value, &o->servers))
		return 0;
	snprintf(why, len, "expected names or numbers of users");
	return -EINVAL;
}

static int set_verify_peer(void *arg, const char *value, char *why, size_t len)
{
	struct options *o = arg;

	if (fab_tls_parse_bool(value, &o->tls_conf.verify_peer))
		return 0;
	snprintf(why, len, "expected true or false");
	return -EINVAL;
}

/* ---- the table ---- */

#define FIELD(field) OPT_FIELD(struct options, field)
#define ASKED(field) OPT_ASKED(struct options, field)

static const struct opt rows[] = {
	{ .name = "rw", .type = OPT_WORD, FIELD(rw), .arg = "WHAT", .words = rw_names,
	  .nwords = RW_N, .call = set_rw, .fallback = "randread", .shown = "",
	  .holds = OPT_AT_START, .help =
	  "read, randread (default); these destroy data:\nwrite, randwrite, rw, randrw" },
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
	{ .name = "transport", .type = OPT_WORD, FIELD(transport), .words = clt_transport_names,
	  .nwords = CLT_TRANSPORTS, .call = set_transport, .fallback = "auto",
	  .holds = OPT_AT_START, .help = "how to reach the server" },
	{ .name = "connections", .type = OPT_NUMBER, FIELD(connections), .arg = "N", .least = 1,
	  .most = RTRS_MAX_CONS - 1, .fallback = "1", .holds = OPT_AT_START, .help = "for IO" },
	{ .name = "sessname", .type = OPT_OTHER, .call = set_sessname, .arg = "NAME",
	  .holds = OPT_AT_START, .shown = "unique", .help = "name of the session" },
	{ .name = "server-uid", .type = OPT_OTHER, .call = set_server_uid, .arg = "USER[,USER]...",
	  .shown = "root, own user", .holds = OPT_AT_START,
	  .help = "users listening at unix:PATH" },
	{ .name = "tls", .type = OPT_WORD, FIELD(tls_conf.mode), .words = fab_tls_mode_names,
	  .nwords = FAB_TLS_MODES, ASKED(tls_conf.asked), .holds = OPT_AT_START,
	  .shown = "require with keys, else off", .help = "encrypt" },
	{ .name = "tls-psk", .type = OPT_TEXT, FIELD(tls_conf.psk), .arg = "FILE",
	  .of = "a file", .holds = OPT_AT_START, .help = "pre-shared keys, NAME:KEY" },
	{ .name = "tls-username", .type = OPT_TEXT, FIELD(tls_conf.username), .arg = "NAME",
	  .of = "a name", .holds = OPT_AT_START,
	  .help = "name of the key in tls-psk (default the only one)" },
	{ .name = "tls-certificates", .type = OPT_TEXT, FIELD(tls_conf.certificates),
	  .arg = "DIR", .of = "a directory", .holds = OPT_AT_START, .help = "X.509 certificates" },
	{ .name = "tls-hostname", .type = OPT_TEXT, FIELD(tls_conf.hostname), .arg = "NAME",
	  .of = "a name", .holds = OPT_AT_START,
	  .help = "name in the server's certificate (the address)" },
	{ .name = "tls-verify-peer", .type = OPT_OTHER, .call = set_verify_peer,
	  .arg = "BOOL", .holds = OPT_AT_START, .shown = "true",
	  .help = "check the server's certificate" },
	{ .name = "tls-ktls", .type = OPT_WORD, FIELD(tls_conf.ktls), .words = fab_ktls_mode_names,
	  .nwords = FAB_KTLS_MODES, .fallback = "off", .holds = OPT_AT_START,
	  .help = "have the kernel encrypt" },
	{ .name = "auth", .type = OPT_WORD, FIELD(auth_conf.mode), .words = auth_mode_names,
	  .nwords = AUTH_MODES, ASKED(auth_conf.asked), .holds = OPT_AT_START,
	  .shown = "require with keys", .help = "authenticate both ends" },
	{ .name = "auth-psk", .type = OPT_TEXT, FIELD(auth_conf.psk), .arg = "FILE",
	  .of = "a file", .holds = OPT_AT_START, .help = "pre-shared keys, NAME:KEY" },
	{ .name = "auth-username", .type = OPT_TEXT, FIELD(auth_conf.username), .arg = "NAME",
	  .of = "a name", .holds = OPT_AT_START,
	  .help = "name of the key in auth-psk (default the only one)" },
	{ .name = "auth-hostname", .type = OPT_TEXT, FIELD(auth_conf.hostname), .arg = "NAME",
	  .of = "a name", .holds = OPT_AT_START,
	  .help = "name that the server has to prove (default any)" },
	{ .name = "registration", .type = OPT_WORD, FIELD(registration),
	  .words = clt_registration_names, .nwords = CLT_NREGS, .fallback = "auto",
	  .holds = OPT_AT_START, .help = "lifetime of memory keys of reads" },
	{ .name = "digest", .type = OPT_WORD, FIELD(digest), .words = rtrs_digest_names,
	  .nwords = RTRS_DIGESTS, .call = check_digest, .fallback = "none",
	  .holds = OPT_AT_START, .help = "checksums of requests and answers" },
	{ .name = "poll", .type = OPT_NUMBER, FIELD(poll_us), .arg = "MICROSECONDS",
	  .of = "microseconds", .most = 1000000, .fallback = "100", .holds = OPT_AT_START,
	  .help = "busy-poll for up to this long before sleeping" },
	{ OPT_ROW_HELP }, { OPT_ROW_VERSION },
};

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

/* ---- the whole ---- */

/* Read the keys.  RDMA has no TLS. */
static int set_tls(struct options *o)
{
	const struct fab_provider *tcp = fab_provider_find("tcp");
	char why[512];
	int rc;

	o->tls_conf.auth = auth_mode(o->auth) == AUTH_MODE_REQUIRE;
	rc = fab_tls_create(&o->tls_conf, &o->tls, why, sizeof(why));
	if (rc) {
		fprintf(stderr, "rtrs-bench: --%s\n", why);
		return exit_status_of(exit_file_error(rc));
	}
	if (fab_tls_mode(o->tls) != FAB_TLS_REQUIRE || o->tls->spares_rdma)
		return -1;
	if ((o->provider && o->provider != tcp) || !fab_addr_text_agrees(o->server, tcp)) {
		fprintf(stderr, "rtrs-bench: %s: there is no TLS over RDMA%s\n",
			o->tls_conf.asked ? "--tls=require" :
			o->tls_conf.psk ? "--tls-psk" : "--tls-certificates",
			o->tls_conf.asked ? "" : ": expected --auth=require beside it, or "
						 "--tls=on");
		return EXIT_USAGE;
	}
	o->provider = tcp;
	return -1;
}

/* Read the keys for messages. */
static int set_auth(struct options *o)
{
	char why[512];
	int rc = auth_creds_create(&o->auth_conf, &o->auth, why, sizeof(why));

	if (!rc)
		return -1;
	fprintf(stderr, "rtrs-bench: --%s\n", why);
	return exit_status_of(exit_file_error(rc));
}

static int set_places(struct options *o, int argc, char **argv)
{
	char why[512];
	int r;

	if (argc != 2) {
		fprintf(stderr,
			"rtrs-bench: expected HOST[:PORT] and EXPORT, "
			"not %d arguments: see --help\n", argc);
		return EXIT_USAGE;
	}
	o->server = argv[0];
	o->export = argv[1];
	r = set_auth(o);
	if (r < 0)
		r = set_tls(o);
	if (r >= 0)
		return r;
	if (o->provider && !fab_addr_text_agrees(o->server, o->provider)) {
		fprintf(stderr,
			"rtrs-bench: --transport=%s contradicts %s: give one of them, "
			"or the same twice\n",
			fab_provider_name(o->provider), o->server);
		return EXIT_USAGE;
	}
	if (!*o->export || strlen(o->export) >= RNBD_NAME_MAX) {
		fprintf(stderr, "rtrs-bench: EXPORT '%s': expected a name of 1..%d characters\n",
			o->export, RNBD_NAME_MAX - 1);
		return EXIT_USAGE;
	}
	if (clt_paths_parse(o->server, o->provider ? o->provider : fab_provider_find("tcp"),
			    &o->addr, why, sizeof(why)) < 0) {
		fprintf(stderr, "rtrs-bench: server %s: %s\n", o->server, why);
		return EXIT_USAGE;
	}
	/* An address with a transport in front is tried over this transport alone. */
	o->automatic = !o->provider && clt_paths_is_open(o->server);
	return -1;
}

/* Refuse an option that has no effect on the load of the other options. */
static int check_load_options(struct options *o, uint64_t given)
{
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
	return -1;
}

int options_parse(struct options *o, int argc, char **argv)
{
	enum opt_result result;
	uint64_t given = 0;
	char err[512];
	int first = argc, status;

	memset(o, 0, sizeof(*o));
	o->tls_conf.verify_peer = true;
	opt_defaults(&options_table, o);
	result = opt_argv(&options_table, o, argc, argv, &first, &given, err, sizeof(err));
	if (result == OPT_EXIT)
		return std_out_end("rtrs-bench", EXIT_DONE);
	if (result != OPT_RUN) {
		fprintf(stderr, "rtrs-bench: %s\n", err);
		return EXIT_USAGE;
	}
	status = check_load_options(o, given);
	if (status >= 0)
		return status;
	if (!o->load.runtime_s && !o->load.ios)
		o->load.runtime_s = RUNTIME_S;
	return set_places(o, argc - first, argv + first);
}
