/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of rtrs-attach: what a command line becomes. */
#include <string.h>

#include "opt-rules.h"
#include "unit.h"

#include "attach.h"
#include "clock.h"

static const struct clt_front front = { .name = "rtrs-attach", .program = "rtrs-attach",
					.help = "help", .options = &attach_options,
					.conf_size = sizeof(struct attach_options),
					.defaults = attach_options_defaults,
					.complete = attach_options_complete };

static struct attach_options o;

/* Without the parameters, which test-clt-conf.c checks. */
Test(attach_options, table)
{
	struct opt_table table = attach_options;

	table.body = NULL;
	table.more = NULL;
	opt_rules(&table, sizeof(struct attach_options), "rtrs-attach.pod");
}

/* Parse @args, split at blanks. */
static int parse(const char *args)
{
	static char copy[512];
	char *argv[32] = { (char *)"rtrs-attach" }, *save, *word;
	int argc = 1;

	attach_options_fini(&o);
	snprintf(copy, sizeof(copy), "%s", args);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	return attach_options_parse(&o, &front, argc, argv);
}

Test(attach_options, place)
{
	cr_assert_eq(parse("127.0.0.1:1234/disk"), -1);
	cr_assert_str_eq(o.session.server, "127.0.0.1:1234");
	cr_assert_str_eq(o.session.export_name, "disk");
	cr_assert_str_eq(o.name, "disk");
	cr_assert_eq(parse("tcp://127.0.0.1/a/b home poll=7 --via=nbd -f -v"), -1);
	cr_assert_str_eq(o.session.server, "tcp://127.0.0.1");
	cr_assert_str_eq(o.session.export_name, "a/b");
	cr_assert_str_eq(o.name, "home");
	cr_assert_eq(o.session.sess.poll_us, 7);
	cr_assert_eq(o.via, ATTACH_VIA_NBD);
	cr_assert(o.session.run.foreground && o.session.run.verbose);
	cr_assert_eq(o.session.sess.io_timeout_ms, CLOCK_NEVER);
	cr_assert_eq(parse("127.0.0.1/disk io-timeout=7"), -1);
	cr_assert_eq(o.session.sess.io_timeout_ms, 7000);
	cr_assert_eq(parse("127.0.0.1/a://b/c home"), -1);
	cr_assert_str_eq(o.session.server, "127.0.0.1");
	cr_assert_str_eq(o.session.export_name, "a://b/c");
	cr_assert_eq(parse("server=unix:/run/srv export=disk"), -1);
	cr_assert_str_eq(o.session.server, "unix:/run/srv");
	cr_assert_str_eq(o.name, "disk");
}

Test(attach_options, mistakes)
{
	static const char *const cases[] = {
		"", "disk", "127.0.0.1/", "/disk", "127.0.0.1/disk one two", "127.0.0.1/a/b",
		"unix:/run/srv/disk", "--via=cow 127.0.0.1/disk", "--none-such 127.0.0.1/disk",
		"127.0.0.1/disk exprot=disk", "127.0.0.1/disk .name", "127.0.0.1/disk na,me",
		"server=127.0.0.1 name", "127.0.0.1/disk poll=-1", "--json", "--list disk",
		"--udev=nbd0 disk", "127.0.0.1/disk name.lock", "127.0.0.1/disk name.tmp",
		"tcp://127.0.0.1", "rdma://127.0.0.1 disk", "tcp://", "tcp://127.0.0.1/",
		"tcp:///disk", "rdma:///", "unix:/", "unix://", "unix:///srv", "://", "cow://disk",
	};

	for_each_case(c, cases)
		cr_assert_eq(parse(*c), 2, "%s", *c);
}

/* A queue of ublk has a loop, and connections of its own. */
Test(attach_options, queues)
{
	cr_assert_eq(parse("127.0.0.1/disk --queues=3 --depth=16 --via=ublk connections=3"), -1);
	cr_assert_eq(o.via, ATTACH_VIA_UBLK);
	cr_assert_eq(o.session.sess.nloops, 3);
	cr_assert_eq(o.depth, 16);
	cr_assert_eq(parse("127.0.0.1/disk --queues=3 connections=2"), 2);
	cr_assert_eq(parse("127.0.0.1/disk --queues=5"), -1);
	cr_assert_eq(o.session.sess.connections, 10, "small requests and large ones in each");
	cr_assert_eq(parse("127.0.0.1/disk connections=1"), -1);
	cr_assert(o.session.sess.nloops == 1 && o.session.sess.connections == 1);
	cr_assert_eq(parse("127.0.0.1/disk"), -1);
	cr_assert(o.session.sess.nloops >= 1 && o.session.sess.nloops <= 4);
	cr_assert_eq(o.depth, 64);
}

/* NAME alone reads its file, of which there is none. */
Test(attach_options, tasks)
{
	cr_assert_eq(parse("--list --json"), -1);
	cr_assert(o.list && o.format == ATTACH_JSON);
	cr_assert_eq(parse("--udev=nbd0"), -1);
	cr_assert_str_eq(o.udev, "nbd0");
	cr_assert_eq(parse("none-such"), 2);
	cr_assert_str_eq(o.session.config, SYSCONFDIR "/rtrs/none-such.conf");
	cr_assert_eq(parse("--check 127.0.0.1/disk"), 0);
}

/* One below the limit, the limit, one beyond, and four times as far. */
Test(attach_options, names)
{
	char line[512];

	for (size_t len = 62; len <= 256; len = len < 64 ? len + 1 : len * 4) {
		snprintf(line, sizeof(line), "127.0.0.1/disk %0*d", (int)len, 0);
		cr_assert_eq(parse(line), len < ATTACH_NAME_MAX ? -1 : 2, "%zu", len);
	}
}
