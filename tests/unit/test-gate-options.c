/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of rtrs-nbd: the table, and what a command line becomes. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "opt-rules.h"
#include "unit.h"

#include "gate.h"

static const struct clt_front front = { .name = "rtrs-nbd", .program = "rtrs-nbd", .help = "help",
					.options = &gate_options,
					.conf_size = sizeof(struct gate_options),
					.defaults = gate_options_defaults,
					.complete = gate_options_complete };

/* Without the parameters, which test-clt-conf.c checks. */
Test(gate_options, table)
{
	struct opt_table table = gate_options;

	table.body = NULL;
	table.more = NULL;
	opt_rules(&table, sizeof(struct gate_options), "rtrs-nbd.pod");
}

/* Parse @args, split at blanks. */
static int parse(struct gate_options *o, const char *args)
{
	static char copy[512];
	char *argv[32] = { (char *)"rtrs-nbd" }, *save, *word;
	int argc = 1;

	gate_options_fini(o);
	snprintf(copy, sizeof(copy), "%s", args);
	for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	return gate_options_parse(o, &front, argc, argv);
}

static struct gate_options o;

Test(gate_options, letters)
{
	cr_assert_eq(parse(&o, "-U /s -r -f -P /p -e name --run=true -v 127.0.0.1 export=disk"),
		     -1);
	cr_assert_str_eq(o.socket, "/s");
	cr_assert_str_eq(o.pidfile, "/p");
	cr_assert_str_eq(o.uri_name, "name");
	cr_assert(o.readonly && o.session.run.foreground && o.session.run.verbose);
	cr_assert_str_eq(o.session.server, "127.0.0.1");
	cr_assert_str_eq(o.session.export_name, "disk");
	cr_assert_eq(o.memory, 512u << 20);
}

Test(gate_options, tcp)
{
	cr_assert_eq(parse(&o, "server=unix:/srv -i127.0.0.1 --port=0 poll=0"), -1);
	cr_assert_str_eq(o.address, "127.0.0.1");
	cr_assert_eq(o.port, 0);
	cr_assert_eq(o.session.sess.poll_us, 0);
}

Test(gate_options, threads)
{
	cr_assert_eq(parse(&o, "-U /s 127.0.0.1"), -1);
	cr_assert(o.threads >= 2 && o.threads <= 8);
	cr_assert(o.session.sess.connections >= o.threads);
	/* As many as there are connections for. */
	cr_assert_eq(parse(&o, "-U /s 127.0.0.1 connections=1"), -1);
	cr_assert(o.threads == 1 && o.session.sess.nloops == 1 && o.session.sess.connections == 1);
	cr_assert_eq(parse(&o, "-U /s 127.0.0.1 connections=2"), -1);
	cr_assert(o.threads == 2 && o.session.sess.nloops == 2 && o.session.sess.connections == 2);
	cr_assert_eq(parse(&o, "-U /s 127.0.0.1 connections=32"), -1);
	cr_assert(o.threads >= 2 && o.threads <= 8 && o.session.sess.connections == 32);
	cr_assert_eq(parse(&o, "-U /s --threads=8 127.0.0.1"), -1);
	cr_assert_eq(o.session.sess.nloops, 8);
	cr_assert_eq(o.session.sess.connections, 16, "small requests and large ones on each");
	cr_assert_eq(parse(&o, "-U /s --threads=4 127.0.0.1 connections=4"), -1);
	cr_assert_eq(o.session.sess.connections, 4);
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
		cr_assert_eq(parse(&o, *c), 2, "%s", *c);
}

/* ---- the file of config= ---- */

/* Write @text to a file, and parse @args with it. */
static int parse_file(const char *text, const char *args)
{
	static char name[] = "/tmp/test-gate-options.XXXXXX", line[256];
	int fd = mkstemp(name), r;

	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	snprintf(line, sizeof(line), "config=%s %s", name, args);
	r = parse(&o, line);
	unlink(name);
	strcpy(name + strlen(name) - 6, "XXXXXX");
	return r;
}

#define SERVER "server = 127.0.0.1\n"

/* Options and parameters stand side by side, and the command line wins. */
Test(gate_options, file)
{
	cr_assert_eq(parse_file(SERVER "unix = /s\nthreads = 3\nmemory = 256M\nverbose = yes\n"
				"readonly = yes\nforeground = no\nexportname = e\nrun = true\n"
				"poll = 7\n",
				""), -1);
	cr_assert_str_eq(o.socket, "/s");
	cr_assert_eq(o.threads, 3);
	cr_assert_eq(o.memory, 256u << 20);
	cr_assert(o.session.run.verbose && o.readonly && !o.session.run.foreground);
	cr_assert_str_eq(o.uri_name, "e");
	cr_assert_eq(o.session.sess.poll_us, 7);
	cr_assert_eq(o.session.sess.nloops, 3);
	cr_assert_geq(o.session.sess.connections, 6);
	gate_options_fini(&o);
	cr_assert_eq(parse_file(SERVER "unix = /s\nthreads = 3\nverbose = no\nconnections = 2\n",
				"-v --threads=2 -U /t"), -1);
	cr_assert_str_eq(o.socket, "/t");
	cr_assert_eq(o.threads, 2);
	cr_assert(o.session.run.verbose);
	cr_assert_eq(o.session.sess.connections, 2);
	gate_options_fini(&o);
}

/* Options that do not fit together do not fit in a file either. */
Test(gate_options, file_mistakes)
{
	static const char *const cases[] = {
		"unix = /s\nport = 1\n", "unix = s\n", "threads = 4\nconnections = 3\n",
		"threads = 65\n", "verbose = maybe\n", "help = yes\n", "config = x\n",
		"nbd-tls = maybe\n", "nbd-tls-psk = /nowhere/at-all\n", "tls = require\n",
	};
	char text[128];

	for_each_case(c, cases) {
		snprintf(text, sizeof(text), SERVER "%s", *c);
		cr_assert_eq(parse_file(text, ""), 2, "%s", *c);
		gate_options_fini(&o);
	}
}

/* TLS of both ends in one file: NBD clients have names of their own. */
Test(gate_options, file_tls)
{
	cr_assert_eq(parse_file(SERVER "nbd-tls = off\n", ""), -1);
	cr_assert(o.tls_conf.asked && o.tls_conf.mode == FAB_TLS_OFF);
	cr_assert_not(o.session.tls_conf.asked);
	gate_options_fini(&o);
	cr_assert_eq(parse_file(SERVER "tls = off\n", ""), -1);
	cr_assert(o.session.tls_conf.asked && o.session.tls_conf.mode == FAB_TLS_OFF);
	cr_assert_not(o.tls_conf.asked);
	gate_options_fini(&o);
}

/* A reload leaves the threads as many as they are, whatever the default for that memory is. */
Test(gate_options, memory_of_threads_that_run)
{
	static struct gate_options now;
	char why[256] = "";

	cr_assert_eq(parse(&now, "127.0.0.1 --threads=4 connections=9"), -1);
	cr_assert_eq(parse(&o, "127.0.0.1 --memory=128M"), -1);
	o.session.now = &now.session;
	cr_assert_eq(gate_options_complete(&o.session, why, sizeof(why)), -EINVAL);
	cr_assert_str_eq(why, "--memory=128M with --threads=4: expected 64M for each thread, "
			 "--memory=256M or more");
	now.threads = 2;
	cr_assert_eq(gate_options_complete(&o.session, why, sizeof(why)), 0, "%s", why);
}
