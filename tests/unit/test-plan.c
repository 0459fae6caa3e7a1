/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans: what makes one configuration of another.  Nothing that they name exists. */
#include <config.h>

#include <unistd.h>

#include "plan.h"
#include "unit.h"

/* Read @line, split at blanks; the text belongs to @words. */
static void read_conf(struct srv_conf *conf, const char *line, char words[256])
{
	char *argv[32] = { (char *)"rtrs-server" }, *save, *word;
	int argc = 1;

	snprintf(words, 256, "%s", line);
	for (word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	cr_assert_eq(conf_parse(conf, CONF_START, argc, argv, stderr), OPT_RUN, "%s", line);
}

/* "-a +a=/a !log-level ?threads", the steps of @plan. */
static const char *text_of(const struct plan *plan, char *buf, size_t len)
{
	static const char marks[] = {
		[PLAN_CHANGE] = '!', [PLAN_RESTART] = '?',
	};
	char step[128];

	buf[0] = '\0';
	for (unsigned i = 0; i < plan->n; i++) {
		const struct plan_step *s = &plan->steps[i];
		size_t at = strlen(buf);

		if (s->option)
			snprintf(step, sizeof(step), "%c%s", marks[s->what], s->option->name);
		else
			plan_step_text(s, step, sizeof(step));
		snprintf(buf + at, len - at, "%s%s", i ? " " : "", step);
	}
	return buf;
}

Test(plan, steps)
{
	static const struct {
		const char *now, *wanted, *want;
	} cases[] = {
		{ NULL, "a=/a b=/b,readonly --threads=2 --log-level=debug",
		  "+a=/a +b=/b,readonly" },
		{ "a=/a b=/b", "b=/b a=/a", "" },
		{ "a=/a", "a=/a b=/b", "+b=/b" },
		{ "a=/a b=/b", "b=/b", "-a" },
		{ "a=/a b=/b", "c=/c", "-a -b +c=/c" },
		{ "a=/a", "a=/a,readonly", "-a +a=/a,readonly" },
		{ "a=/a,readonly,direct", "a=/a,direct,readonly,direct", "" },
		{ "x=/x", "a=/a\\,b\\,readonly", "-x +a=/a\\,b\\,readonly" },
		{ "a=/a\\,direct", "a=/a,direct", "-a +a=/a,direct" },
#ifdef HAVE_RBD
		{ "a=rbd:p/i,conf=/c,id=u", "a=rbd:p/i,id=u,conf=/c", "" },
		{ "a=rbd:p/i,conf=/c", "a=rbd:p/i,conf=/d", "-a +a=rbd:p/i,conf=/d" },
		{ "a=rbd:p/i,luks=/x\\,a,conf=/c", "a=rbd:p/i,conf=/c,luks=/x\\,a", "" },
		{ "a=rbd:p/i,luks=/x\\,readonly", "a=rbd:p/i,luks=/x,readonly",
		  "-a +a=rbd:p/i,readonly,luks=/x" },
#endif
		{ "a=/a b=/b", "a=/b b=/a", "-a -b +a=/b +b=/a" },
		{ "a=/a", "a=/a --log-level=debug", "!log-level" },
		{ "a=/a --threads=2", "a=/a --threads=3 --log-level=error", "!log-level ?threads" },
		{ "a=/a --threads=2", "b=/b --threads=3 --log-level=error",
		  "-a +b=/b !log-level ?threads" },
		{ "a=/a --max-io-size=128K", "a=/a --max-io-size=131072", "" },
		{ "a=/a --listen=tcp://127.0.0.1:1", "a=/a --listen=127.0.0.1:1", "" },
		{ "a=/a --listen=127.0.0.1:1", "a=/a --listen=127.0.0.1:2",
		  "-listen tcp://127.0.0.1:1 +listen tcp://127.0.0.1:2" },
		{ "a=/a --listen=127.0.0.1:1", "a=/a --listen=127.0.0.2:1",
		  "-listen tcp://127.0.0.1:1 +listen tcp://127.0.0.2:1" },
		{ "a=/a --listen=127.0.0.1:1", "a=/a --listen=127.0.0.1:1 --listen=unix:/u",
		  "+listen unix:/u" },
		{ "a=/a --listen=unix:/u --listen=127.0.0.1:1", "a=/a --listen=127.0.0.1:1",
		  "-listen unix:/u" },
		{ "a=/a --listen=unix:/v", "b=/b --listen=unix:/u --threads=3",
		  "-a -listen unix:/v +b=/b +listen unix:/u ?threads" },
		{ "a=/a --listen=127.0.0.1:0", "a=/a --listen=127.0.0.1:0", "" },
		{ "a=/a --allow=10.0.0.0/8", "a=/a --allow=10.1.2.3/8", "" },
		{ "a=/a --allow=10.0.0.0/8", "a=/a --allow=10.0.0.0/9", "!allow" },
		{ "a=/a --allow=10.0.0.0/8", "a=/a", "!allow" },
		{ "a=/a --control=none", "a=/a --control=/c", "?control" },
		{ "a=/a --control=/c", "a=/a --control=/c", "" },
		{ "a=/a --no-lock", "a=/a", "?no-lock" },
		{ "a=/a --setup-timeout=1", "a=/a --setup-timeout=2", "?setup-timeout" },
		/* The descriptor was closed when the start was over. */
		{ "a=/a --ready-fd=200", "a=/a", "" },
	};

	dup2(1, 200);
	for_each_case(c, cases) {
		char words[2][256], text[256];
		struct srv_conf now, wanted;
		struct plan plan;

		if (c->now)
			read_conf(&now, c->now, words[0]);
		read_conf(&wanted, c->wanted, words[1]);
		cr_assert_eq(plan_make(&plan, c->now ? &now : NULL, &wanted), 0);
		text_of(&plan, text, sizeof(text));
		cr_assert_str_eq(text, c->want, "%s > %s: %s", c->now, c->wanted, text);
		plan_fini(&plan);
		if (c->now)
			conf_fini(&now);
		conf_fini(&wanted);
	}
}

/* An address that was missing is tried again, and there is nothing to leave. */
Test(plan, missing_address)
{
	struct srv_conf now, wanted;
	struct plan plan;
	char words[2][256], text[256];

	read_conf(&now, "a=/a --listen=127.0.0.1:1 --listen=127.0.0.2:1 --listen=127.0.0.3:1",
		  words[0]);
	read_conf(&wanted, "a=/a --listen=127.0.0.1:1 --listen=127.0.0.2:1", words[1]);
	now.listeners[1].missing = true;
	now.listeners[2].missing = true;
	cr_assert_eq(plan_make(&plan, &now, &wanted), 0);
	text_of(&plan, text, sizeof(text));
	cr_assert_str_eq(text, "+listen tcp://127.0.0.2:1");
	plan_fini(&plan);
	/* A change that is no reload tries nothing again. */
	wanted.listeners[1].missing = true;
	cr_assert_eq(plan_make(&plan, &now, &wanted), 0);
	cr_assert_eq(plan.n, 0);
	plan_fini(&plan);
	conf_fini(&now);
	conf_fini(&wanted);
}

/* Limits change in place, and an export that is added has none before. */
Test(plan, limits)
{
	static const struct {
		const char *now, *now_limits, *wanted, *wanted_limits, *want;
	} cases[] = {
		{ NULL, NULL, "a=/a b=/b", "b,iops=1", "+a=/a +b=/b b: iops none -> 1" },
		{ "a=/a b=/b", "b,iops=1", "a=/a b=/b", "b,iops=1", "" },
		{ "a=/a b=/b", "b,iops=1", "b=/b a=/a", "b,iops=2,bps=1M",
		  "b: iops 1 -> 2, bps none -> 1M" },
		{ "a=/a", "a,iops=1,burst=5s", "a=/a", NULL,
		  "a: iops 1 -> none, burst 5s -> none" },
		{ "a=/a", "a,iops=1", "a=/b", "a,iops=1", "-a +a=/b a: iops none -> 1" },
		{ "a=/a", "a,iops=1", "b=/b", NULL, "-a +b=/b" },
		{ "a=/a b=/b", "a,iops=1", "a=/a b=/b", "b,iops=1",
		  "a: iops 1 -> none b: iops none -> 1" },
		{ NULL, NULL, "a=/a,allow=::1,::2 b=/b,priority=idle", NULL,
		  "+a=/a +b=/b a: allow all -> ::1, ::2 b: priority none -> idle" },
		{ "a=/a,allow=::1", NULL, "a=/a,allow=::1", NULL, "" },
		{ "a=/a,allow=::1", NULL, "a=/a", "a,allow=::1,priority=idle",
		  "a: priority none -> idle" },
		{ "a=/a,allow=::1,iops=1", NULL, "a=/a,readonly,allow=::1", NULL,
		  "-a +a=/a,readonly a: allow all -> ::1" },
		{ "a=/a,allow=::1,priority=idle", "a,iops=1", "a=/a", NULL,
		  "a: iops 1 -> none, allow ::1 -> all, priority idle -> none" },
		{ "a=/a,allow=psk:g", NULL, "a=/a,allow=psk:g,read-only=psk:b,::1", NULL,
		  "a: read-only none -> psk:b, ::1" },
		{ "a=/a,read-only=psk:b", NULL, "a=/a,read-only=cert:b", NULL,
		  "a: read-only psk:b -> cert:b" },
		{ "a=/a,allow=::1,::2", NULL, "a=/a,allow=::2,::1", NULL,
		  "a: allow ::1, ::2 -> ::2, ::1" },
	};

	for_each_case(c, cases) {
		char words[2][256], text[256], err[128];
		struct srv_conf now, wanted;
		struct plan plan;

		if (c->now)
			read_conf(&now, c->now, words[0]);
		read_conf(&wanted, c->wanted, words[1]);
		cr_assert(!c->now_limits ||
			  !conf_export_options_set(&now, c->now_limits, err, sizeof(err)));
		cr_assert(!c->wanted_limits ||
			  !conf_export_options_set(&wanted, c->wanted_limits, err, sizeof(err)));
		cr_assert_eq(plan_make(&plan, c->now ? &now : NULL, &wanted), 0);
		text_of(&plan, text, sizeof(text));
		cr_assert_str_eq(text, c->want, "%s > %s: %s", c->now, c->wanted, text);
		plan_fini(&plan);
		if (c->now)
			conf_fini(&now);
		conf_fini(&wanted);
	}
}

/* Every option that a file may have is compared: a row that nobody compares would never be told. */
Test(plan, each_option_is_compared)
{
	for (unsigned i = 0; i < conf_options.n; i++) {
		const struct opt *row = &conf_options.rows[i];

		if (row->holds & (OPT_IN_FILE | OPT_AT_RUN_TIME))
			cr_assert(row->size || row->same || !strcmp(row->name, "listen"), "%s",
				  row->name);
	}
}
