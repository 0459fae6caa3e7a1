/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the trace of the running test.  One thread.  Addresses of simulated hosts become their
 * names, so that a trace reads well and does not depend on port numbers. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim-core.h"
#include "trace.h"

static char *text;
static size_t len, room;

void trace_reset(void)
{
	free(text);
	text = NULL;
	len = room = 0;
}

const char *trace_text(void)
{
	return text ? text : "";
}

static void append(const char *s)
{
	size_t n = strlen(s);

	if (len + n + 1 > room) {
		room = (len + n + 1) * 2;
		text = realloc(text, room);
		assert(text);
	}
	memcpy(text + len, s, n + 1);
	len += n;
}

/* Length of the address "10.0.N.N[:PORT]" at @s and the host's name, or 0. */
static size_t address_at(const char *s, char name[32])
{
	size_t n = strspn(s, "0123456789."), port;
	char ip[64];
	struct sim_host *h;
	struct fab_addr addr;
	char err[128];

	if (strncmp(s, "10.0.", 5) || n >= sizeof(ip))
		return 0;
	memcpy(ip, s, n);
	ip[n] = '\0';
	if (fab_addr_parse(ip, fab_provider_find("sim"), 0, &addr, err, sizeof(err)))
		return 0;
	h = sim_host_by_addr(&addr);
	if (!h)
		return 0;
	port = sim_host_addr_index(h, &addr);
	snprintf(name, 32, port ? "%s/%zu" : "%s", h->name, port);
	port = s[n] == ':' ? 1 + strspn(s + n + 1, "0123456789") : 0;
	return n + (port > 1 ? port : 0);
}

static void rename_hosts(const char *in, char *out, size_t size)
{
	size_t o = 0;

	while (*in && o + 1 < size) {
		char name[32];
		size_t n = address_at(in, name);

		if (!n) {
			out[o++] = *in++;
			continue;
		}
		o += (size_t)snprintf(out + o, size - o, "%s", name);
		in += n;
		if (o >= size)
			o = size - 1;
	}
	out[o] = '\0';
}

void trace_line(const char *who, const char *what)
{
	uint64_t now = sim_age_us();
	char line[1300], named[1100];

	rename_hosts(what, named, sizeof(named));
	snprintf(line, sizeof(line), "[%3u.%03u] %s %s\n", (unsigned)(now / 1000000),
		 (unsigned)(now / 1000 % 1000), who, named);
	if (getenv("SIM_TRACE"))
		fputs(line, stderr);
	append(line);
}

/* Of debug lines only the changes of state, but for those of connections: which one drains first is
 * the device's.  What ghosts say is of no interest. */
void trace_sink(enum log_level level, const char *line)
{
	if (level == LOG_LEVEL_DEBUG && (!strstr(line, " -> ") || strstr(line, ": connection: ")))
		return;
	if (!sim_is_ghost(sim_host(), sim_epoch()))
		trace_line(sim_host()->name, line);
}

void trace_expect(const char *expected)
{
	if (strcmp(trace_text(), expected)) {
		fflush(stdout);
		fprintf(stderr, "expected:\n%sgot:\n%s", expected, trace_text());
		exit(1);
	}
	trace_reset();
}
