/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of metrics, line by line, in both formats. */
#include <errno.h>

#include "metric-sock.h"
#include "metric.h"
#include "unit.h"

struct program {
	const char *name;
	uint64_t n;
	struct hist times;
};

static void read_plain(struct metric_out *out, const void *program)
{
	metric_value(out, NULL, ((const struct program *)program)->n);
}

static void read_labelled(struct metric_out *out, const void *program)
{
	const struct program *p = program;

	metric_value(out, METRIC_LABELS({ "name", p->name }, { "kind", "a" }), p->n);
	metric_value(out, METRIC_LABELS({ "name", p->name }, { "kind", "b" }), 1);
}

static void read_times(struct metric_out *out, const void *program)
{
	const struct program *p = program;

	metric_hist(out, METRIC_LABELS({ "name", p->name }), &p->times);
}

static const char *process;		/* of the next text */

/* The text of the single row @row, for the caller to free. */
static char *text_of(const struct metric *row, const struct program *p, enum metric_format format)
{
	const struct metric_table table = { row, 1 };
	size_t len;
	char *text = metric_text(&table, p, format, process, &len);

	cr_assert_not_null(text);
	cr_assert_eq(len, strlen(text));
	return text;
}

static void expect_text(const struct metric *row, const struct program *p,
			enum metric_format format, const char *want)
{
	char *text = text_of(row, p, format);

	cr_assert_str_eq(text, want, "got:\n%s\nexpected:\n%s", text, want);
	free(text);
}

Test(metric, counters_have_the_name_of_their_format)
{
	const struct metric row = { .name = "x_sent_bytes", .type = METRIC_COUNTER,
				    .unit = METRIC_BYTES, .help = "Sent.", .read = read_plain };
	const struct program p = { .n = UINT64_MAX };

	expect_text(&row, &p, METRIC_PROMETHEUS,
		    "# HELP x_sent_bytes_total Sent.\n"
		    "# TYPE x_sent_bytes_total counter\n"
		    "x_sent_bytes_total 18446744073709551615\n");
	expect_text(&row, &p, METRIC_OPENMETRICS,
		    "# HELP x_sent_bytes Sent.\n"
		    "# TYPE x_sent_bytes counter\n"
		    "# UNIT x_sent_bytes bytes\n"
		    "x_sent_bytes_total 18446744073709551615\n"
		    "# EOF\n");
}

/* In each sample, with labels and without. */
Test(metric, names_its_process)
{
	static void (*const reads[])(struct metric_out *out, const void *program) = {
		read_plain, read_labelled, read_times,
	};
	static const unsigned samples[] = { 1, 2, 25 };
	const struct program p = { .name = "d" };

	process = "disk \"a\"";
	for (unsigned i = 0; i < ARRAY_SIZE(reads); i++) {
		const struct metric row = { .name = "x", .type = METRIC_GAUGE, .help = "X.",
					    .read = reads[i] };
		char *text = text_of(&row, &p, METRIC_PROMETHEUS), *at = text;
		unsigned n = 0;

		while ((at = strstr(at, "{process=\"disk \\\"a\\\"\"")) && at++)
			n++;
		cr_assert_eq(n, samples[i], "%u: %s", i, text);
		free(text);
	}
}

Test(metric, infos_are_gauges_for_prometheus)
{
	const struct metric row = { .name = "x_build", .type = METRIC_INFO, .help = "Build.",
				    .read = read_labelled };
	const struct program p = { .name = "n", .n = 1 };

	expect_text(&row, &p, METRIC_PROMETHEUS,
		    "# HELP x_build_info Build.\n"
		    "# TYPE x_build_info gauge\n"
		    "x_build_info{name=\"n\",kind=\"a\"} 1\n"
		    "x_build_info{name=\"n\",kind=\"b\"} 1\n");
	expect_text(&row, &p, METRIC_OPENMETRICS,
		    "# HELP x_build Build.\n"
		    "# TYPE x_build info\n"
		    "x_build_info{name=\"n\",kind=\"a\"} 1\n"
		    "x_build_info{name=\"n\",kind=\"b\"} 1\n"
		    "# EOF\n");
}

Test(metric, seconds_are_exact)
{
	const struct metric row = { .name = "x_seconds", .type = METRIC_GAUGE,
				    .unit = METRIC_SECONDS, .help = "Time.", .read = read_plain };
	static const struct {
		uint64_t ns;
		const char *want;
	} cases[] = {
		{ 0, "\nx_seconds 0\n" },
		{ 1, "\nx_seconds 0.000000001\n" },
		{ 1500000000, "\nx_seconds 1.5\n" },
		{ 60000000000, "\nx_seconds 60\n" },
		{ UINT64_MAX, "\nx_seconds 18446744073.709551615\n" },
	};

	for_each_case(c, cases) {
		const struct program p = { .n = c->ns };
		char *text = text_of(&row, &p, METRIC_PROMETHEUS);

		cr_assert_not_null(strstr(text, c->want), "%s: no %s", text, c->want);
		free(text);
	}
}

/* A name that a peer chose adds neither a label nor a sample, and the text stays UTF-8. */
Test(metric, hostile_labels)
{
	const struct metric row = { .name = "x", .type = METRIC_GAUGE, .help = "X.",
				    .read = read_labelled };
	static const struct {
		const char *name, *want;
	} cases[] = {
		{ "a\"} 9\nx 8\nb", "x{name=\"a\\\"} 9?x 8?b\",kind=\"a\"} 7\n" },
		{ "\\", "x{name=\"\\\\\",kind=\"a\"} 7\n" },
		{ "\\n\"", "x{name=\"\\\\n\\\"\",kind=\"a\"} 7\n" },
		{ "\xff\xc3\xa4\x01", "x{name=\"?\xc3\xa4?\",kind=\"a\"} 7\n" },
		{ "", "x{name=\"\",kind=\"a\"} 7\n" },
	};

	for_each_case(c, cases) {
		const struct program p = { .name = c->name, .n = 7 };
		char *text = text_of(&row, &p, METRIC_PROMETHEUS);
		unsigned lines = 0;

		for (const char *s = text; *s; s++)
			lines += *s == '\n';
		cr_assert_eq(lines, 4, "%s", text);
		cr_assert_not_null(strstr(text, c->want), "%s: no %s", text, c->want);
		free(text);
	}
}

Test(metric, long_labels_are_cut_off)
{
	const struct metric row = { .name = "x", .type = METRIC_GAUGE, .help = "X.",
				    .read = read_labelled };
	char name[2 * METRIC_LABEL_MAX] = "";
	struct program p = { .name = name };
	char *text;

	memset(name, '"', sizeof(name) - 1);
	text = text_of(&row, &p, METRIC_PROMETHEUS);
	cr_assert_not_null(strstr(text, "\\\"\",kind=\"b\"} 1\n"));
	cr_assert_lt(strlen(text), 5 * METRIC_LABEL_MAX);
	free(text);
}

Test(metric, buckets_are_cumulative)
{
	const struct metric row = { .name = "x_seconds", .type = METRIC_HISTOGRAM,
				    .unit = METRIC_SECONDS, .help = "X.", .read = read_times };
	struct program p = { .name = "d" };
	const char *at;
	char *text;
	unsigned n = 0;
	uint64_t last = 0;

	hist_count(&p.times, 1);
	hist_count(&p.times, 8191);
	hist_count(&p.times, 8192);
	hist_count(&p.times, 1000000);
	hist_count(&p.times, UINT64_C(100000000000));
	text = text_of(&row, &p, METRIC_OPENMETRICS);
	for (at = text; (at = strstr(at, "_bucket{name=\"d\",le=\"")); at++, n++) {
		uint64_t value = strtoull(strchr(at, ' ') + 1, NULL, 10);

		cr_assert_geq(value, last);
		last = value;
	}
	cr_assert_eq(n, 23);
	cr_assert_not_null(strstr(text, "x_seconds_bucket{name=\"d\",le=\"0.000008192\"} 2\n"));
	cr_assert_not_null(strstr(text, "x_seconds_bucket{name=\"d\",le=\"0.000016384\"} 3\n"));
	cr_assert_not_null(strstr(text, "x_seconds_bucket{name=\"d\",le=\"0.001048576\"} 4\n"));
	cr_assert_not_null(strstr(text, "x_seconds_bucket{name=\"d\",le=\"17.179869184\"} 4\n"
				  "x_seconds_bucket{name=\"d\",le=\"+Inf\"} 5\n"
				  "x_seconds_sum{name=\"d\"} 100.001016384\n"
				  "x_seconds_count{name=\"d\"} 5\n# EOF\n"));
	free(text);
}

/* Of two formats a reader gets the one that it prefers. */
Test(metric, accept)
{
	static const struct { const char *accept; enum metric_format format; } cases[] = {
		{ NULL, METRIC_PROMETHEUS },
		{ "", METRIC_PROMETHEUS },
		{ "*/*", METRIC_PROMETHEUS },
		{ "text/html, */*;q=0.1", METRIC_PROMETHEUS },
		{ "application/openmetrics-text", METRIC_OPENMETRICS },
		{ "Application/OpenMetrics-Text; version=1.0.0", METRIC_OPENMETRICS },
		/* Prometheus 2.42 and 3.5 */
		{ "application/openmetrics-text;version=1.0.0,application/openmetrics-text;"
		  "version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		  METRIC_OPENMETRICS },
		{ "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
		  "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;"
		  "escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
		  METRIC_OPENMETRICS },
		{ "text/plain, application/openmetrics-text", METRIC_OPENMETRICS },
		{ "text/plain;q=0.9, application/openmetrics-text;q=0.8", METRIC_PROMETHEUS },
		{ "application/openmetrics-text;q=0.8,text/plain;q=0.801", METRIC_PROMETHEUS },
		{ "text/plain;q=0.5,application/openmetrics-text; version=1.0.0 ; q=0.6",
		  METRIC_OPENMETRICS },
		{ "application/openmetrics-text;q=0", METRIC_PROMETHEUS },
		{ "application/openmetrics-text;q=0.0,*/*", METRIC_PROMETHEUS },
		{ "text/plain;q=0, application/*", METRIC_OPENMETRICS },
		{ "text/*;q=0.3, application/*;q=0.4", METRIC_OPENMETRICS },
		{ "text/*, application/*", METRIC_PROMETHEUS },
		/* The exact range counts, in any order. */
		{ "*/*, application/openmetrics-text;q=0.1", METRIC_PROMETHEUS },
		{ "application/openmetrics-text;q=0.1, */*", METRIC_PROMETHEUS },
		{ "application/openmetrics-text-x, x/application/openmetrics-text",
		  METRIC_PROMETHEUS },
		/* types of the same length */
		{ "x-plication/openmetrics-text", METRIC_PROMETHEUS },
		{ "application/openmetrics-tex2", METRIC_PROMETHEUS },
		{ "application/openmetrics-text;q=nonsense", METRIC_PROMETHEUS },
		{ ",;,/;q,q=1;application/openmetrics-text,;q=,", METRIC_PROMETHEUS },
	};

	for_each_case(c, cases)
		cr_assert_eq(metric_accept(c->accept), c->format, "%s", c->accept);
}

#define OWN "gw1.example.com"
#define NAMES "store,disks.example.com"

Test(metric_host, ours)
{
	static const char *const ours[] = {
		"127.0.0.1", "127.0.0.1:9091", "192.0.2.7:80", "[::1]", "[::1]:9091",
		"[2001:db8::7]:9091", "localhost", "localhost:9091", "LocalHost:9091",
		"localhost.", "gw1.example.com", "GW1.example.com:9091", "gw1.example.com.:9091",
		"gw1", "gw1:9091", "store", "store:9091", "disks.example.com",
		"Disks.Example.com:1",
	};

	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		cr_assert(metric_host_is_ours(ours[i], OWN, NAMES), "%s", ours[i]);
	cr_assert(metric_host_is_ours(NULL, OWN, NAMES), "no browser");
	cr_assert(metric_host_is_ours("gw1", OWN, NULL));
}

Test(metric_host, strangers)
{
	static const char *const strangers[] = {
		"", ":9091", ".", "evil.example", "evil.example:9091", "gw1.evil.example",
		"localhost.evil.example", "evil.localhost", "gw1.example", "gw1.example.com.evil",
		"gw1.example.comm", "gw", "disks", "store,disks.example.com", ",", "example.com",
		"127.0.0.1.evil.example", "127.0.0.1x", "127.1", "0x7f000001", "[evil.example]",
		"[::1", "[]", "[", "[127.0.0.1]", "::1", "localhost,", "localhos",
		"0000000000000000000000000000000000000000000000000000000000000000",
	};

	for (size_t i = 0; i < sizeof(strangers) / sizeof(*strangers); i++)
		cr_assert(!metric_host_is_ours(strangers[i], OWN, NAMES), "%s", strangers[i]);
	cr_assert(!metric_host_is_ours("store", OWN, NULL));
	cr_assert(!metric_host_is_ours("", "", NULL), "a machine without a name");
	cr_assert(!metric_host_is_ours("evil.example", "", NULL));
}

Test(metric_host, form)
{
	static const char *const good[] = {
		"a", "a,b", "gw1.example.com,store_2", "xn--e-9ga.org",
	};
	static const char *const bad[] = {
		"", ",", "a,", ",a", "a,,b", "a b", "a:9091", "*", "a/b",
	};
	char why[128];

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		cr_assert_eq(metric_host_check(NULL, good[i], why, sizeof(why)), 0, "%s", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		cr_assert_eq(metric_host_check(NULL, bad[i], why, sizeof(why)), -EINVAL, "%s",
			     bad[i]);
		cr_assert_str_eq(why, "expected NAME[,NAME...], names of hosts without a port");
	}
}
