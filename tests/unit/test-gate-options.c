/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of rtrs-nbd: the table, and what a command line becomes. */
#include "opt-rules.h"
#include "unit.h"

#include "gate-options.h"

static const struct clt_front front = { .name = "rtrs-nbd", .program = "rtrs-nbd", .help = "help" };

/* Without the parameters, which test-clt-conf.c checks. */
Test(gate_options, table)
{
	struct opt_table table = gate_options;

	table.body = NULL;
	opt_rules(&table, sizeof(struct gate_options), "rtrs-nbd.pod");
}

/* Parse @args, split at blanks. */
static int parse(struct gate_options *o, struct clt_conf *conf, const char *args)
{
	static char copy[512];
	char *argv[32] = { (char *)"rtrs-nbd" }, *save, *word;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", args);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	clt_conf_init(conf, &front);
	return gate_options_parse(o, conf, argc, argv);
}

static struct gate_options o;
static struct clt_conf conf;

Test(gate_options, letters)
{
	cr_assert_eq(parse(&o, &conf, "-U /s -r -f -P /p -e name -v 127.0.0.1 export=disk"), -1);
	cr_assert_str_eq(o.socket, "/s");
	cr_assert_str_eq(o.pidfile, "/p");
	cr_assert_str_eq(o.uri_name, "name");
	cr_assert(o.readonly && o.foreground && o.verbose);
	cr_assert_str_eq(conf.server, "127.0.0.1");
	cr_assert_str_eq(conf.export_name, "disk");
	cr_assert_eq(o.memory, 512u << 20);
}

Test(gate_options, tcp)
{
	cr_assert_eq(parse(&o, &conf, "server=unix:/srv -i127.0.0.1 --port=0 poll=0"), -1);
	cr_assert_str_eq(o.address, "127.0.0.1");
	cr_assert_eq(o.port, 0);
	cr_assert_eq(conf.poll_us, 0);
}

Test(gate_options, threads)
{
	cr_assert_eq(parse(&o, &conf, "-U /s 127.0.0.1"), -1);
	cr_assert(o.threads >= 1 && o.threads <= 8);
	cr_assert(conf.connections >= o.threads);
	cr_assert_eq(parse(&o, &conf, "-U /s --threads=8 127.0.0.1"), -1);
	cr_assert_eq(conf.nloops, 8);
	cr_assert_eq(conf.connections, 16, "small requests and large ones on each");
	cr_assert_eq(parse(&o, &conf, "-U /s --threads=4 127.0.0.1 connections=4"), -1);
	cr_assert_eq(conf.connections, 4);
}

Test(gate_options, mistakes)
{
	static const char *const cases[] = {
		"-U", "--none-such", "--filter=cow 127.0.0.1", "-t 32 127.0.0.1", "-t32 127.0.0.1",
		"--tls=maybe 127.0.0.1", "-U /s -p 1 127.0.0.1", "-U - 127.0.0.1",
		"-U s 127.0.0.1", "-P p -U /s 127.0.0.1", "-U /s 127.0.0.1 disk",
		"-U /s 127.0.0.1 exprot=disk", "-U /s --memory=1M 127.0.0.1",
		"-U /s --threads=0 127.0.0.1", "-U /s --threads=65 127.0.0.1",
		"-U /s --threads=4 127.0.0.1 connections=3",
		"-U /s --threads=3 --memory=128M 127.0.0.1", "-U /s",
	};

	for_each_case(c, cases)
		cr_assert_eq(parse(&o, &conf, *c), 2, "%s", *c);
}
