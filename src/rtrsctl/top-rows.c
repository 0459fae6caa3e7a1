/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the rows and their keys. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "number.h"
#include "top-rows.h"
#include "util.h"

struct sample {				/* what top_rows_add() has */
	struct top *top;
	struct answer_pair pair;
};

/* ---- rows ---- */

static void rows_free(struct top_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(rows[i].key);
	free(rows);
}

static char *new_key(const struct sample *s, enum top_kind kind, const char *session,
		     const char *name)
{
	return fmt_new("%lld %d %s %s", (long long)answer_number(s->pair.after, "pid"), (int)kind,
		       session, name);
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct top_row *)a)->key, ((const struct top_row *)b)->key);
}

/* Take the samples of the last time. */
static void row_take_old(const struct top *top, struct top_row *row)
{
	const struct top_row *old = top->nold ?
		bsearch(row, top->old, top->nold, sizeof(*old), by_key) : NULL;

	if (!old)
		return;
	row->n = old->n;
	memcpy(row->iops, old->iops, sizeof(row->iops));
	memcpy(row->p99_ns, old->p99_ns, sizeof(row->p99_ns));
}

static void keep(double samples[TOP_KEPT], unsigned n, double value)
{
	if (n == TOP_KEPT)
		memmove(samples, samples + 1, (TOP_KEPT - 1) * sizeof(*samples));
	samples[MIN(n, TOP_KEPT - 1u)] = value;
}

static void row_sample(struct top_row *row, const struct rate_sums *sums, uint64_t ns)
{
	row->mbs = ns ? (double)sums->bytes * 1e3 / (double)ns : 0;
	keep(row->iops, row->n, ns ? (double)sums->count * 1e9 / (double)ns : 0);
	keep(row->p99_ns, row->n, (double)hist_quantile(&sums->latency, 990));
	row->n = MIN(row->n + 1, (unsigned)TOP_KEPT);
}

/* Add a row.  NULL: no memory. */
static struct top_row *row_add(struct sample *s, enum top_kind kind, const char *session,
			       const char *name, const struct rate_sums *sums)
{
	struct top *top = s->top;
	struct top_row *rows = reallocarray(top->rows, top->n + 1, sizeof(*rows)), *row;

	if (!rows)
		return NULL;
	top->rows = rows;
	row = &rows[top->n];
	*row = (struct top_row){
		.kind = kind,
		.program = top->nprograms,
		.key = new_key(s, kind, session, name),
	};
	if (!row->key)
		return NULL;
	top->n++;
	text_safe(name, row->name, TEXT_CELL);
	row_take_old(top, row);
	row_sample(row, sums, s->pair.ns);
	return row;
}

/* ---- kinds ---- */

static void export_state(struct top_row *row, const json_t *answer, const json_t *ex)
{
	uint64_t users = answer_number(ex, "users");

	row->health = state_of_export(answer, ex, row->state, NULL);
	if (*row->state)
		return;
	if (users)
		snprintf(row->state, TEXT_CELL, "%llu user%s", (unsigned long long)users,
			 users == 1 ? "" : "s");
	else
		snprintf(row->state, TEXT_CELL, "unused");
}

static bool add_export(struct sample *s, const json_t *ex)
{
	struct rate_sums sums = answer_rate_export(&s->pair, ex);
	char key[ANSWER_KEY];
	struct top_row *row = row_add(s, TOP_EXPORT, answer_export_key(ex, key),
				      answer_string(ex, "name"), &sums);

	if (row)
		export_state(row, s->pair.after, ex);
	return row;
}

/* Add the program itself, with the sum of its exports. */
static bool add_program(struct sample *s)
{
	static const char *const states[] = { "up", "degraded", "down" };
	struct rate_sums sums = { 0 };
	struct top_row *row;
	char name[256];
	json_t *ex;
	size_t i;

	json_array_foreach(s->pair.exports, i, ex) {
		struct rate_sums one = answer_rate_export(&s->pair, ex);

		answer_rate_sum(&sums, &one);
	}
	row = row_add(s, TOP_PROGRAM, "", text_program(s->pair.after, name, sizeof(name)), &sums);
	if (row) {
		row->health = state_of_all(s->pair.after);
		snprintf(row->state, TEXT_CELL, "%s", states[row->health]);
	}
	return row;
}

/* Shorten @state, of state_of_session(), for its column: a number that is cut is another one. */
static void fit_state(char state[TEXT_CELL])
{
	static const char down[] = "down since ", degraded[] = "degraded ";
	char rest[TEXT_CELL];

	if (!strncmp(state, down, strlen(down))) {
		snprintf(rest, sizeof(rest), "%s", state + strlen(down));
		snprintf(state, TEXT_CELL, "down %.50s", rest);
	} else if (strlen(state) > TOP_STATE && !strncmp(state, degraded, strlen(degraded))) {
		snprintf(rest, sizeof(rest), "%s", state + strlen(degraded));
		snprintf(state, TEXT_CELL, "%.50s up", rest);
	}
}

static bool add_session(struct sample *s, const json_t *sess)
{
	struct rate_sums sums = answer_rate_session(&s->pair, sess);
	struct top_row *row = row_add(s, TOP_SESSION, answer_string(sess, "uuid"),
				      answer_string(sess, "name"), &sums);
	const char *identity = json_string_value(json_object_get(sess, "identity"));
	char who[TEXT_CELL];

	if (row && identity && *identity)
		snprintf(row->name + strlen(row->name), TEXT_CELL - strlen(row->name), " (%s)",
			 text_safe(identity, who, sizeof(who)));
	if (row) {
		row->health = state_of_session(sess, row->state);
		fit_state(row->state);
	}
	return row;
}

/* The name of @path, at a server without the session's name in front. */
static const char *name_in_session(const json_t *sess, const json_t *path)
{
	const char *name = answer_string(path, "name"), *session = answer_string(sess, "name");
	size_t len = strlen(session);

	return strncmp(name, session, len) || name[len] != '/' ? name : name + len + 1;
}

static bool add_path(struct sample *s, const json_t *sess, const json_t *path)
{
	struct rate_sums sums = answer_rate_path(&s->pair, sess, path);
	const char *state = answer_string(path, "state");
	struct top_row *row = row_add(s, TOP_PATH, answer_string(sess, "uuid"),
				      name_in_session(sess, path), &sums);

	if (row) {
		text_safe(state, row->state, TEXT_CELL);
		row->health = state_path_works(path) ? HEALTH_UP : HEALTH_DOWN;
	}
	return row;
}

static bool add_sessions(struct sample *s)
{
	json_t *sess, *path;
	bool ok = true;
	size_t i, j;

	json_array_foreach(json_object_get(s->pair.after, "sessions"), i, sess) {
		if (!state_is_user(sess))
			continue;
		ok = add_session(s, sess) && ok;
		json_array_foreach(json_object_get(sess, "paths"), j, path) {
			if (state_is_path(path))
				ok = add_path(s, sess, path) && ok;
		}
	}
	return ok;
}

/* ---- the whole ---- */

void top_rows_begin(struct top *top)
{
	top->old = top->rows;
	top->nold = top->n;
	if (top->nold)
		qsort(top->old, top->nold, sizeof(*top->old), by_key);
	top->rows = NULL;
	top->n = 0;
	top->nprograms = 0;
}

bool top_rows_add(struct top *top, const json_t *before, const json_t *after)
{
	struct sample s = { .top = top };
	json_t *ex;
	size_t i;
	bool ok;

	answer_pair_init(&s.pair, before, after);
	top->nprograms++;
	ok = add_program(&s);
	json_array_foreach(s.pair.exports, i, ex)
		ok = add_export(&s, ex) && ok;
	ok = add_sessions(&s) && ok;
	answer_pair_fini(&s.pair);
	return ok;
}

void top_rows_end(struct top *top)
{
	rows_free(top->old, top->nold);
	top->old = NULL;
	top->nold = 0;
}

void top_rows_fini(struct top *top)
{
	top_rows_end(top);
	rows_free(top->rows, top->n);
	*top = (struct top){ 0 };
}

struct sort {
	enum top_order order;
	bool reverse;
};

static int compare_names(const struct top_row *a, const struct top_row *b)
{
	int by_name = strcmp(a->name, b->name);

	return by_name ? by_name : strcmp(a->key, b->key);
}

static int compare_values(double a, double b)
{
	return (a < b) - (a > b);
}

static int compare_rows(const void *one, const void *other, void *arg)
{
	const struct top_row *a = one, *b = other;
	const struct sort *sort = arg;
	int by = 0;

	if (a->program != b->program)
		return a->program < b->program ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (sort->order == TOP_BY_IOPS)
		by = compare_values(top_last(a, a->iops), top_last(b, b->iops));
	else if (sort->order == TOP_BY_MBS)
		by = compare_values(a->mbs, b->mbs);
	else if (sort->order == TOP_BY_P99)
		by = compare_values(top_last(a, a->p99_ns), top_last(b, b->p99_ns));
	if (!by)
		by = compare_names(a, b);
	return sort->reverse ? -by : by;
}

void top_rows_sort(struct top *top, enum top_order order, bool reverse)
{
	struct sort sort = { order, reverse };

	if (top->n)
		qsort_r(top->rows, top->n, sizeof(*top->rows), compare_rows, &sort);
}

void top_rows_spark(const double *samples, unsigned n, unsigned width, bool utf8, char *buf,
		    size_t len)
{
	static const char *const marks[][9] = {
		{ " ", ".", ":", "-", "=", "+", "*", "#", "@" },
		{ " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" },
	};
	unsigned shown = MIN(n, width);
	double most = 0;
	size_t at = 0;

	for (unsigned i = n - shown; i < n; i++)
		most = MAX(most, samples[i]);
	buf[0] = '\0';
	for (unsigned i = 0; i < width && at + 4 <= len; i++) {
		double value = i < width - shown ? 0 : samples[n - width + i];
		unsigned level = value > 0 ? 1 + (unsigned)(value * 7 / most) : 0;

		at += (size_t)snprintf(buf + at, len - at, "%s", marks[utf8][MIN(level, 8u)]);
	}
}
