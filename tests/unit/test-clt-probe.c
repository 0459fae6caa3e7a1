/* SPDX-License-Identifier: BSD-3-Clause */
/* The choice of a transport (clt-start.h) when nobody answers: how long each attempt may take.  And
 * when the server is busy. */
#include "unit.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "clock.h"
#include "clt-cause.h"
#include "clt-start.h"
#include "number.h"

static struct {
	const char *provider;		/* of the path */
	unsigned setup_ms;
} attempts[8];
static unsigned nattempts;
static const char *busy;		/* the transport over which the server refuses first ... */
static unsigned nbusy;			/* ... so many attempts, ... */
static int busy_r;			/* ... with this -errno */

const struct fab_provider *__real_fab_provider_find(const char *name);
const struct fab_provider *__wrap_fab_provider_find(const char *name);
int __wrap_clt_start_run(struct clt_start *start, const struct clt_conf *conf, const char *suffix,
			 bool once, unsigned setup_ms, char err[CLT_FRONT_ERR]);
int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left);

/* Without an RDMA device, too. */
const struct fab_provider *__wrap_fab_provider_find(const char *name)
{
	static struct fab_provider rdma;

	if (strcmp(name, "rdma"))
		return __real_fab_provider_find(name);
	rdma = *__real_fab_provider_find("tcp");
	rdma.name = "rdma";
	return &rdma;
}

int __wrap_clt_start_run(struct clt_start *start, const struct clt_conf *conf, const char *suffix,
			 bool once, unsigned setup_ms, char err[CLT_FRONT_ERR])
{
	cr_assert_lt(nattempts, ARRAY_SIZE(attempts));
	attempts[nattempts].provider = conf->paths[0].dst.provider->name;
	attempts[nattempts++].setup_ms = setup_ms;
	if (nbusy && !strcmp(busy, conf->paths[0].dst.provider->name)) {
		nbusy--;
		snprintf(err, CLT_FRONT_ERR, "busy");
		return busy_r;
	}
	snprintf(err, CLT_FRONT_ERR, "no answer");
	return -ETIMEDOUT;
}

static const struct clt_front front = {
	.name = "front", .program = "front", .help = "--help",
};

/* Begin the start of a front end that names no transport. */
static void begin(struct clt_conf *conf, struct clt_start *start)
{
	char *why = NULL;

	clt_conf_init(conf, &front);
	cr_assert_eq(clt_conf_set(conf, "server", "127.0.0.1", &why), 0, "%s", why);
	cr_assert_eq(clt_conf_set(conf, "export", "disk", &why), 0, "%s", why);
	cr_assert_eq(clt_conf_complete(conf, &why), 0, "%s", why);
	cr_assert(conf->automatic);
	clt_start_init(start, conf);
}

/* RDMA has 5 s (CLT_PROBE_RDMA_MS), and tcp, which is tried then, the time of every attempt. */
Test(clt_probe, rdma_has_a_time)
{
	static struct clt_conf conf;
	static struct clt_start start;
	char err[CLT_FRONT_ERR] = "";

	begin(&conf, &start);
	cr_assert_eq(clt_probe(&start, err), -ETIMEDOUT);
	cr_assert_eq(nattempts, 2);
	cr_assert_str_eq(attempts[0].provider, "rdma");
	cr_assert_eq(attempts[0].setup_ms, 5000);
	cr_assert_str_eq(attempts[1].provider, "tcp");
	cr_assert_eq(attempts[1].setup_ms, 0);
	cr_assert(strstr(err, "no answer (over rdma: no answer)"), "%s", err);
	clt_conf_fini(&conf);
}

/* The transports of the attempts, in a row. */
static const char *transports(void)
{
	static char text[64];

	*text = '\0';
	for (unsigned i = 0; i < nattempts; i++)
		fmt_add(text, sizeof(text), " %s", attempts[i].provider);
	return text;
}

static uint64_t naps[8];		/* in ms */
static unsigned nnaps, last_nap = ARRAY_SIZE(naps);	/* a signal ends the last one */

int __wrap_nanosleep(const struct timespec *wanted, struct timespec *left)
{
	cr_assert_lt(nnaps, ARRAY_SIZE(naps));
	naps[nnaps++] = (uint64_t)wanted->tv_sec * 1000 + (uint64_t)wanted->tv_nsec / 1000000;
	return nnaps < last_nap ? 0 : -1;
}

/* No attempt begins behind connect-timeout. */
Test(clt_probe, naps_within_the_time)
{
	static struct clt_conf conf;
	static struct clt_start start;
	char err[CLT_FRONT_ERR];

	begin(&conf, &start);
	clt_conf_choose(&conf, fab_provider_find("tcp"));
	conf.automatic = false;
	conf.connect_timeout_ms = 700;
	busy = "tcp";
	busy_r = CLT_BUSY;
	nbusy = last_nap = 7;
	cr_assert_eq(clt_probe_connect(&start, "-probe", err), CLT_BUSY);
	cr_assert_eq(nnaps, 7);
	for (unsigned n = 0; n < nnaps; n++)
		cr_assert_leq(naps[n], 700);
	clt_conf_fini(&conf);
}

/* Clients that were started together do not come back together: behind each attempt that met a busy
 * server they wait longer, up to 4 s, and not all as long. */
Test(clt_probe, naps_before_a_busy_server)
{
	uint64_t least = UINT64_MAX, most = 0;

	for (unsigned i = 0; i < 50; i++) {
		static struct clt_conf conf;
		static struct clt_start start;
		char err[CLT_FRONT_ERR];

		begin(&conf, &start);
		clt_conf_choose(&conf, fab_provider_find("tcp"));
		conf.automatic = false;
		nattempts = nnaps = 0;
		busy = "tcp";
		busy_r = CLT_BUSY;
		nbusy = 7;
		cr_assert_eq(clt_probe_connect(&start, "-probe", err), -ETIMEDOUT);
		cr_assert_eq(nnaps, 7);
		for (unsigned n = 0; n < nnaps; n++) {
			uint64_t ms = MIN(250u << n, 4000u);

			cr_assert(naps[n] >= ms / 2 && naps[n] <= ms, "nap %u: %" PRIu64, n,
				  naps[n]);
		}
		least = MIN(least, naps[6]);
		most = MAX(most, naps[6]);
		clt_conf_fini(&conf);
	}
	cr_assert_gt(most, least + 500);
}

/* A server that is busy over RDMA is tried over RDMA again, and one without RDMA over tcp alone;
 * one at another limit, which the probe of another client may have filled, is tried again.  With
 * connect-timeout=forever the start does not wait. */
Test(clt_probe, busy_server)
{
	static const struct {
		const char *over;
		int refusal;
		unsigned n;
		bool forever;
		int r;
		const char *row;
	} cases[] = {
		{ "rdma", CLT_BUSY, 2, false, -ETIMEDOUT, " rdma rdma rdma tcp" },
		{ "tcp", CLT_BUSY, 2, false, -ETIMEDOUT, " rdma tcp tcp tcp" },
		{ "rdma", CLT_BUSY, 1, true, CLT_BUSY, " rdma" },
		{ "tcp", CLT_BUSY, 1, true, CLT_BUSY, " rdma tcp" },
		{ "tcp", -ENOMEM, 1, false, -ETIMEDOUT, " rdma tcp rdma tcp" },
		{ "tcp", -ENOMEM, 1, true, -ENOMEM, " rdma tcp" },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		static struct clt_conf conf;
		static struct clt_start start;
		char err[CLT_FRONT_ERR] = "";

		begin(&conf, &start);
		if (cases[i].forever)
			conf.connect_timeout_ms = CLOCK_NEVER;
		nattempts = nnaps = 0;
		busy = cases[i].over;
		busy_r = cases[i].refusal;
		nbusy = cases[i].n;
		cr_assert_eq(clt_probe_connect(&start, "-probe", err), cases[i].r);
		cr_assert_str_eq(transports(), cases[i].row, "case %u:%s", i, transports());
		clt_conf_fini(&conf);
	}
}
