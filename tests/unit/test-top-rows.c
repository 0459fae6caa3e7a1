/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of "rtrsctl top": samples of a row over answers, order, sparklines. */
#include <jansson.h>

#include "text.h"
#include "top-rows.h"
#include "unit.h"

static struct top top;

static void fini(void)
{
	top_rows_fini(&top);
}

TestSuite(top_rows, .fini = fini);

/* An answer of a server at @s seconds: two exports that have done @a and @b reads of 4 KiB. */
static json_t *answer(unsigned s, unsigned a, unsigned b)
{
	json_t *json = json_pack(
		"{s:s,s:s,s:i,s:I,s:[{s:s,s:i,s:{s:{s:i,s:i}}},{s:s,s:i,s:{s:{s:i,s:i}}}],s:[]}",
		"program", "rtrs-server", "name", "one", "pid", 7,
		"now_ns", (json_int_t)s * 1000000000, "exports",
		"name", "aa", "users", 1, "stats", "read", "count", (int)a, "bytes", (int)a * 4096,
		"name", "bb\033", "users", 0, "stats", "read", "count", (int)b,
		"bytes", (int)b * 4096, "sessions");

	cr_assert_not_null(json);
	return json;
}

static void sample(json_t *before, json_t *after)
{
	top_rows_begin(&top);
	cr_assert(top_rows_add(&top, before, after));
	top_rows_end(&top);
}

static const struct top_row *row_of(const char *name)
{
	for (size_t i = 0; i < top.n; i++) {
		if (top.rows[i].kind == TOP_EXPORT && !strcmp(top.rows[i].name, name))
			return &top.rows[i];
	}
	return NULL;
}

Test(top_rows, samples)
{
	json_t *at[] = { answer(1, 0, 0), answer(3, 200, 0), answer(4, 250, 0) };
	const struct top_row *aa;

	sample(at[0], at[1]);
	sample(at[1], at[2]);
	aa = row_of("aa");
	cr_assert_not_null(aa);
	cr_assert_eq(aa->n, 2);
	cr_assert_float_eq(aa->iops[0], 100, 1e-6, "200 reads in 2 s");
	cr_assert_float_eq(aa->iops[1], 50, 1e-6);
	cr_assert_float_eq(aa->mbs, 50 * 4096 / 1e6, 1e-6);
	cr_assert_str_eq(aa->state, "1 user");
	cr_assert_null(row_of("bb\033"), "no control character comes to a terminal");
	cr_assert_eq(top.rows[0].kind, TOP_PROGRAM);
	cr_assert_float_eq(top_last(&top.rows[0], top.rows[0].iops), 50, 1e-6, "the sum");
	for (unsigned i = 0; i < ARRAY_SIZE(at); i++)
		json_decref(at[i]);
}

/* The oldest sample makes room, and the newest is the last. */
Test(top_rows, kept)
{
	const struct top_row *aa;

	for (unsigned i = 0; i < TOP_KEPT + 5; i++) {
		json_t *before = answer(1, 0, 0), *after = answer(2, i, 0);

		sample(before, after);
		json_decref(before);
		json_decref(after);
	}
	aa = row_of("aa");
	cr_assert_eq(aa->n, TOP_KEPT);
	for (unsigned i = 0; i < TOP_KEPT; i++)
		cr_assert_float_eq(aa->iops[i], 5 + i, 1e-6);
}

/* A program that ended is gone, with its rows, and begins again when it is back. */
Test(top_rows, gone)
{
	json_t *before = answer(1, 0, 0), *after = answer(2, 10, 0);

	sample(before, after);
	top_rows_begin(&top);
	top_rows_end(&top);
	cr_assert_eq(top.n, 0);
	cr_assert_eq(top.nprograms, 0);
	sample(before, after);
	cr_assert_eq(row_of("aa")->n, 1);
	json_decref(before);
	json_decref(after);
}

Test(top_rows, order)
{
	json_t *before = answer(1, 0, 0), *after = answer(2, 10, 20);
	static const struct {
		enum top_order order;
		bool reverse;
		char first;
	} cases[] = {
		{ TOP_BY_NAME, false, 'a' },
		{ TOP_BY_NAME, true, 'b' },
		{ TOP_BY_IOPS, false, 'b' },
		{ TOP_BY_IOPS, true, 'a' },
		{ TOP_BY_MBS, false, 'b' },
		{ TOP_BY_P99, false, 'a' },
	};

	top_rows_begin(&top);
	cr_assert(top_rows_add(&top, before, after));
	cr_assert(top_rows_add(&top, before, after));
	top_rows_end(&top);
	for_each_case(c, cases) {
		top_rows_sort(&top, c->order, c->reverse);
		cr_assert_eq(top.rows[1].name[0], c->first, "order %d", (int)c->order);
		for (size_t i = 0; i < top.n; i++)
			cr_assert_eq(top.rows[i].program, 1 + i / 3, "programs stay together");
	}
	json_decref(before);
	json_decref(after);
}

Test(top_rows, sparklines)
{
	static const double samples[] = { 9000, 0, 1, 4, 8 }, none[] = { 0, 0 };
	char line[64];

	top_rows_spark(samples + 1, 4, 6, false, line, sizeof(line));
	cr_assert_str_eq(line, "   .=@", "0, an eighth, a half, the most; nothing from before");
	top_rows_spark(samples, 5, 3, false, line, sizeof(line));
	cr_assert_str_eq(line, ".=@", "the last three: an older one has no say");
	top_rows_spark(samples + 1, 4, 4, true, line, sizeof(line));
	cr_assert_str_eq(line, " ▁▄█");
	top_rows_spark(none, 2, 2, true, line, sizeof(line));
	cr_assert_str_eq(line, "  ");
	top_rows_spark(samples, 5, 0, true, line, sizeof(line));
	cr_assert_str_eq(line, "");
}

/* An answer of a gateway at @s seconds, whose path has done @reads from the port @port. */
static json_t *gateway_answer(unsigned s, unsigned reads, const char *port)
{
	return json_pack(
		"{s:s,s:s,s:i,s:I,s:[],s:[{s:s,s:s,s:s,s:[{s:s,s:s,s:s,s:i,s:i}],s:[]}]}",
		"program", "rtrs-nbd", "name", "gw", "pid", 8,
		"now_ns", (json_int_t)s * 1000000000, "exports",
		"sessions", "name", "gw", "uuid", "u", "state", "up",
		"paths", "name", "192.0.2.1:1234", "state", "connected", "src_addr", port,
		"reads", (int)reads, "read_bytes", (int)reads * 4096, "devices");
}

/* A gateway counts for a path, whatever its port is at present. */
Test(top_rows, reconnected)
{
	json_t *before = gateway_answer(1, 1000, "192.0.2.9:1");
	json_t *after = gateway_answer(2, 1010, "192.0.2.9:2");

	sample(before, after);
	for (size_t i = 0; i < top.n; i++) {
		if (top.rows[i].kind == TOP_PATH || top.rows[i].kind == TOP_SESSION)
			cr_assert_float_eq(top.rows[i].iops[0], 10, 1e-6);
	}
	cr_assert_eq(top.n, 3);
	json_decref(before);
	json_decref(after);
}

/* A state is whole in its column, above all the numbers. */
Test(top_rows, long_states)
{
	static const struct {
		const char *state;
		json_int_t down_s;
		unsigned up, all;
		const char *shown;
	} cases[] = {
		{ "down", 12, 0, 1, "down 12 s" },
		{ "down", 15 * 60, 0, 1, "down 15 min" },
		{ "down", 3600, 0, 1, "down 1 h" },
		{ "up", 0, 1, 2, "degraded 1/2" },
		{ "up", 0, 9, 16, "9/16 up" },
	};

	for_each_case(c, cases) {
		json_t *paths = json_array(), *a;
		const char *seen = "";

		for (unsigned i = 0; i < c->all; i++)
			json_array_append_new(paths, json_pack("{s:s}", "state", i < c->up ?
							       "connected" : "back-off"));
		a = json_pack("{s:s,s:i,s:[],s:[{s:s,s:s,s:s,s:I,s:o,s:[]}]}", "program",
			      "rtrs-nbd", "pid", 8, "exports", "sessions", "name", "gw", "uuid",
			      "u", "state", c->state, "down_ns", c->down_s * 1000000000, "paths",
			      paths, "devices");
		sample(a, a);
		for (size_t i = 0; i < top.n; i++)
			seen = top.rows[i].kind == TOP_SESSION ? top.rows[i].state : seen;
		cr_assert_str_eq(seen, c->shown);
		cr_assert_leq(strlen(seen), TOP_STATE);
		json_decref(a);
	}
}

/* A name's columns on the terminal, by which the tables are aligned. */
Test(width, columns)
{
	static const struct {
		const char *text;
		int width;
	} cases[] = {
		{ "", 0 },
		{ "gw1", 3 },
		{ "b\xc3\xbcro", 4 },		/* two bytes */
		{ "bu\xcc\x88ro", 4 },		/* a mark on the character before */
		{ "\xe5\x90\x8d\xe5\x89\x8d", 4 },	/* two characters of two columns */
		{ "\xff\x80z", 2 },		/* no UTF-8 */
	};

	for_each_case(c, cases)
		cr_assert_eq(text_width(c->text), c->width, "'%s': %d", c->text,
			     text_width(c->text));
}

/* The state of an export follows the age of its oldest request, and the writes that fail. */
Test(top_rows, waiting_and_failing)
{
	static const struct {
		uint64_t oldest_ms;
		bool fails;
		const char *state;
		enum health health;
	} cases[] = {
		{ 999, false, "1 user", HEALTH_UP },
		{ 1000, false, "waits 1 s", HEALTH_UP },
		{ 4999, false, "waits 4 s", HEALTH_UP },
		{ 5000, false, "waits 5 s", HEALTH_DEGRADED },
		{ 30000, false, "waits 30 s", HEALTH_DOWN },
		{ 0, true, "writes fail", HEALTH_DOWN },
	};

	for_each_case(k, cases) {
		json_t *before = answer(1, 0, 0), *after = answer(2, 0, 0);
		json_t *aa = json_array_get(json_object_get(after, "exports"), 0);

		json_object_set_new(aa, "oldest_ns",
				    json_integer((json_int_t)k->oldest_ms * 1000000));
		if (k->fails)
			json_object_set_new(aa, "writes_failed", json_pack("{s:i}", "count", 1));
		sample(before, after);
		cr_assert_str_eq(row_of("aa")->state, k->state);
		cr_assert_eq(row_of("aa")->health, k->health, "%s", k->state);
		cr_assert_eq(top.rows[0].health, k->health, "the program: %s", k->state);
		json_decref(before);
		json_decref(after);
	}
}
