/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the answers of the last sample.  Programs are looked for at each sample, so that one may
 * come and go; a program counts from its second answer on.  The first line tells of a program
 * without an answer. */
#include <config.h>

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "answer.h"
#include "call.h"
#include "clock.h"
#include "ctl-json.h"
#include "find.h"
#include "say.h"
#include "top-screen.h"
#include "top.h"

struct watch {
	const struct ctx *ctx;
	struct top top;
	struct top_look look;
	json_t *answers;		/* of the last sample, by the path of the socket */
	char line[256];			/* the first one of the screen */
};

/* Ask @program, and keep the answer in @answers.  False: no answer, and w->line says why. */
static bool watch_ask(struct watch *w, const struct found_program *program, json_t *answers)
{
	json_t *request = json_pack("{s:o}", "command", ctl_json_text("stats"));
	json_t *answer = NULL, *before;
	char err[sizeof(w->line)];
	bool added = true;

	if (program->silent)
		snprintf(err, sizeof(err), "%s: the program does not answer", program->path);
	else
		answer = call_ask(program->path, request, CALL_GREET_S, err, sizeof(err));
	json_decref(request);
	if (!answer) {
		text_safe(err, w->line, sizeof(w->line));
		return false;
	}
	before = json_object_get(w->answers, program->path);
	if (before && answer_number(before, "pid") == answer_number(answer, "pid"))
		added = top_rows_add(&w->top, before, answer);
	if (!added)
		snprintf(w->line, sizeof(w->line), "%s: out of memory: some lines are missing",
			 program->path);
	json_object_set_new(answers, program->path, answer);
	return true;
}

static void watch_title(struct watch *w, size_t answered)
{
	time_t now = time(NULL);
	struct tm tm;
	char clock[16] = "";

	if (localtime_r(&now, &tm))
		strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	snprintf(w->line, sizeof(w->line), "rtrsctl top, %s, %zu program%s", clock, answered,
		 answered == 1 ? "" : "s");
}

static void watch_sample(struct watch *w)
{
	json_t *answers = json_object();
	struct found found = { .n = 0 };
	size_t answered = 0;

	w->line[0] = '\0';
	top_rows_begin(&w->top);
	if (find_chosen(&found, w->ctx->socket, &w->ctx->wanted)) {
		for (size_t i = 0; i < found.n; i++)
			answered += watch_ask(w, &found.at[i], answers);
	}
	top_rows_end(&w->top);
	if (!w->line[0])
		watch_title(w, answered);
	find_free(&found);
	json_decref(w->answers);
	w->answers = answers;
}

static void watch_draw(struct watch *w)
{
	top_rows_sort(&w->top, w->look.order, w->look.reverse);
	top_screen_draw(&w->top, &w->look, w->line);
}

/* Serve keys until @until_ms.  False: the user leaves. */
static bool watch_keys(struct watch *w, uint64_t until_ms)
{
	uint64_t now_ms;

	while ((now_ms = clock_now_ms()) < until_ms) {
		switch (top_screen_key(&w->look, (int)(until_ms - now_ms))) {
		case TOP_KEY_QUIT:
			return false;
		case TOP_KEY_DRAW:
			watch_draw(w);
			break;
		case TOP_KEY_NONE:
			break;
		}
	}
	return true;
}

int top_run(const struct ctx *ctx)
{
	struct watch w = { .ctx = ctx };
	uint64_t interval_ms = 1000ull * (ctx->watch_s ? ctx->watch_s : 1), next_ms;
	char err[256];

	if (ctx->json)
		return say_error(EXIT_USAGE, "top draws a screen: \"rtrsctl --json --watch stats\" "
				 "prints the numbers");
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return say_error(EXIT_USAGE, "top draws a screen, and expected a terminal as "
				 "standard input and output: \"rtrsctl --watch status\" needs "
				 "none");
	if (top_screen_begin(err, sizeof(err)) < 0)
		return say_error(EXIT_USAGE, "%s", err);
	do {
		watch_sample(&w);
		watch_draw(&w);
		next_ms = clock_now_ms() + interval_ms;
	} while (watch_keys(&w, next_ms));
	top_screen_end();
	top_rows_fini(&w.top);
	json_decref(w.answers);
	return EXIT_DONE;
}
