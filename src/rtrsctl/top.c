/* SPDX-License-Identifier: BSD-3-Clause */
/* "rtrsctl top": the screen that follows programs until the user leaves it.  Alone knows ncurses.
 *
 * Each interval a sample: find the programs, ask each for its counters, make the rows from this
 * answer and the one before (top-rows.h), sort and draw; then wait for keys until the next sample.
 * Programs come and go: one counts from its second answer on, and the first line names one that
 * does not answer.  A terminal that cannot be used is an error before the first sample. */
#include <config.h>

#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <curses.h>

#include "answer.h"
#include "clock.h"
#include "find.h"
#include "say.h"
#include "top-rows.h"
#include "util.h"
#include "views.h"

/* ---- the choice of the user ---- */

enum top_view { TOP_VIEW_ALL, TOP_VIEW_EXPORTS, TOP_VIEW_SESSIONS, TOP_VIEW_PATHS };

struct top_look {			/* all 0: the beginning */
	enum top_view view;
	enum top_order order;
	bool reverse;
	size_t first;			/* rows above the screen */
};

enum top_key { TOP_KEY_NONE, TOP_KEY_DRAW, TOP_KEY_QUIT };

/* ---- the terminal ----
 * The first line is about the programs, the second has the heads, the last the keys.  The name and
 * both sparklines share the room that the other columns leave. */

#define FIXED (1 + TOP_STATE + 1 + 8 + 1 + 8 + 1 + 8 + 1 + 1)	/* columns that have one width */
#define SPARK_MAX TOP_KEPT
#define NAME_MIN 27

enum { PAIR_GOOD = 1, PAIR_BAD };

static const enum top_kind kinds[] = {
	[TOP_VIEW_EXPORTS] = TOP_EXPORT,
	[TOP_VIEW_SESSIONS] = TOP_SESSION,
	[TOP_VIEW_PATHS] = TOP_PATH,
};

static bool utf8;

static void screen_end(void)
{
	if (!isendwin())
		endwin();
}

/* Take the terminal, until the process ends.  0, or -1 with the reason in @err: the terminal cannot
 * be used. */
static int screen_begin(char *err, size_t errlen)
{
	const char *term = getenv("TERM");

	setlocale(LC_CTYPE, "");
	utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	if (!newterm(NULL, stdout, stdin)) {
		snprintf(err, errlen, "TERM=%s: expected a terminal that terminfo knows; "
			 "\"rtrsctl --watch status\" needs none", term ? term : "");
		return -1;
	}
	atexit(screen_end);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	if (has_colors() && start_color() == OK) {
		short background = use_default_colors() == OK ? -1 : COLOR_BLACK;

		init_pair(PAIR_GOOD, COLOR_GREEN, background);
		init_pair(PAIR_BAD, COLOR_RED, background);
	}
	return 0;
}

/* ---- drawing ---- */

struct layout {
	int name, spark;		/* characters */
};

static struct layout layout_of(int cols)
{
	int room = cols - FIXED;
	int spark = (room - NAME_MIN) / 2;
	struct layout l;

	if (spark > (room - NAME_MIN) * 2 / 5 && room > 60)
		spark = (room - NAME_MIN) * 2 / 5;
	l.spark = spark < 0 ? 0 : MIN(spark, SPARK_MAX);
	l.name = room - 2 * l.spark;
	if (l.name < 1)
		l.name = 1;
	return l;
}

/* A single program has no row of its own. */
static bool is_seen(const struct top *top, const struct top_row *row, enum top_view view)
{
	if (row->kind == TOP_PROGRAM)
		return top->nprograms > 1;
	return view == TOP_VIEW_ALL || row->kind == kinds[view];
}

static attr_t look_of(enum health health)
{
	switch (health) {
	case HEALTH_UP:
		return COLOR_PAIR(PAIR_GOOD);
	case HEALTH_DEGRADED:
		return COLOR_PAIR(PAIR_BAD);
	case HEALTH_DOWN:
		break;
	}
	return COLOR_PAIR(PAIR_BAD) | A_BOLD;
}

static void draw_text(int y, int x, int width, const char *text)
{
	mvaddnstr(y, x, text, width);
}

static void draw_row(int y, const struct top_row *row, struct layout l)
{
	static const char *const indents[TOP_NKINDS] = { [TOP_PROGRAM] = "", [TOP_EXPORT] = " ",
							 [TOP_SESSION] = " ", [TOP_PATH] = "   " };
	char name[TEXT_CELL + 4], iops[16], mbs[16], p99[16], spark[4 * SPARK_MAX + 1];
	int x = l.name + 1;

	snprintf(name, sizeof(name), "%s%s", indents[row->kind], row->name);
	if (row->kind == TOP_PROGRAM)
		attron(A_BOLD);
	draw_text(y, 0, l.name, name);
	attroff(A_BOLD);
	attron(look_of(row->health));
	draw_text(y, x, TOP_STATE, row->state);
	attroff(look_of(row->health));
	snprintf(iops, sizeof(iops), "%.0f", top_last(row, row->iops));
	snprintf(mbs, sizeof(mbs), "%.1f", row->mbs);
	text_time((uint64_t)top_last(row, row->p99_ns), p99, sizeof(p99));
	x += TOP_STATE + 1;
	mvprintw(y, x, "%8.8s %8.8s %8.8s", iops, mbs, p99);
	x += 8 + 1 + 8 + 1 + 8 + 1;
	top_rows_spark(row->iops, row->n, (unsigned)l.spark, utf8, spark, sizeof(spark));
	mvaddstr(y, x, spark);
	top_rows_spark(row->p99_ns, row->n, (unsigned)l.spark, utf8, spark, sizeof(spark));
	mvaddstr(y, x + l.spark + 1, spark);
}

static void draw_heads(const struct top_look *look, struct layout l)
{
	static const char *const heads[] = { " NAME", " EXPORT", " SESSION", "   PATH" };
	int x = l.name + 1;

	attron(A_REVERSE);
	mvhline(1, 0, ' ', COLS);
	draw_text(1, 0, l.name, heads[look->view]);
	mvprintw(1, x, "%-*s %8s %8s %8s", TOP_STATE, "STATE", "IOPS", "MB/s", "p99");
	x += TOP_STATE + 1 + 8 + 1 + 8 + 1 + 8 + 1;
	draw_text(1, x, l.spark, "IOPS");
	if (l.spark)
		draw_text(1, x + l.spark + 1, l.spark, "p99");
	attroff(A_REVERSE);
}

static void draw_keys(const struct top_look *look)
{
	static const char *const orders[] = { "name", "IOPS", "MB/s", "p99" };

	attron(A_REVERSE);
	mvhline(LINES - 1, 0, ' ', COLS);
	mvprintw(LINES - 1, 0, "q quit  a all  e exports  s sessions  p paths  n i m l sort: %s%s  "
		 "r reverse", orders[look->order], look->reverse ? ", reverse" : "");
	attroff(A_REVERSE);
}

/* Draw @top, which is sorted, as @look says.  @line: about the programs, or what is wrong.  Makes
 * look->first fit. */
static void screen_draw(const struct top *top, struct top_look *look, const char *line)
{
	struct layout l = layout_of(COLS);
	size_t seen = 0, room = LINES > 3 ? (size_t)LINES - 3 : 0, at = 0;

	for (size_t i = 0; i < top->n; i++)
		seen += is_seen(top, &top->rows[i], look->view);
	look->first = MIN(look->first, seen > room ? seen - room : 0);
	erase();
	draw_text(0, 0, COLS, line);
	draw_heads(look, l);
	for (size_t i = 0; i < top->n; i++) {
		if (!is_seen(top, &top->rows[i], look->view))
			continue;
		if (at >= look->first && at - look->first < room)
			draw_row((int)(2 + at - look->first), &top->rows[i], l);
		at++;
	}
	draw_keys(look);
	refresh();
}

/* ---- keys ---- */

static enum top_key choose_view(struct top_look *look, enum top_view view)
{
	look->view = view;
	look->first = 0;
	return TOP_KEY_DRAW;
}

static enum top_key choose_order(struct top_look *look, enum top_order order)
{
	look->order = order;
	return TOP_KEY_DRAW;
}

static enum top_key scroll_by(struct top_look *look, int rows)
{
	bool above = rows < 0 && look->first < (size_t)-rows;

	look->first = above ? 0 : look->first + (size_t)rows;
	return TOP_KEY_DRAW;
}

/* A terminal that is gone is ready to be read for ever, and has no key. */
static bool is_gone(void)
{
	struct pollfd pfd = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&pfd, 1, 0) > 0 && pfd.revents & (POLLHUP | POLLERR | POLLNVAL);
}

/* Wait for a key, or a new size of the terminal, for @ms milliseconds at most, and do to @look what
 * the key says. */
static enum top_key screen_key(struct top_look *look, int ms)
{
	timeout(ms);
	switch (getch()) {
	case ERR:
		return is_gone() ? TOP_KEY_QUIT : TOP_KEY_NONE;
	case 'q':
		return TOP_KEY_QUIT;
	case 'a':
		return choose_view(look, TOP_VIEW_ALL);
	case 'e':
		return choose_view(look, TOP_VIEW_EXPORTS);
	case 's':
		return choose_view(look, TOP_VIEW_SESSIONS);
	case 'p':
		return choose_view(look, TOP_VIEW_PATHS);
	case 'n':
		return choose_order(look, TOP_BY_NAME);
	case 'i':
		return choose_order(look, TOP_BY_IOPS);
	case 'm':
		return choose_order(look, TOP_BY_MBS);
	case 'l':
		return choose_order(look, TOP_BY_P99);
	case 'r':
		look->reverse = !look->reverse;
		return TOP_KEY_DRAW;
	case KEY_DOWN:
		return scroll_by(look, 1);
	case KEY_UP:
		return scroll_by(look, -1);
	case KEY_NPAGE:
		return scroll_by(look, LINES - 3);
	case KEY_PPAGE:
		return scroll_by(look, 3 - LINES);
	case KEY_RESIZE:
		return TOP_KEY_DRAW;
	default:
		return TOP_KEY_NONE;
	}
}

/* ---- samples ---- */

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
	char err[sizeof(w->line)];
	json_t *answer = call_program(program, "stats", err, sizeof(err)), *before;
	bool added = true;

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
	screen_draw(&w->top, &w->look, w->line);
}

/* Serve keys until @until_ms.  False: the user leaves. */
static bool watch_keys(struct watch *w, uint64_t until_ms)
{
	uint64_t now_ms;

	while ((now_ms = clock_now_ms()) < until_ms) {
		switch (screen_key(&w->look, (int)(until_ms - now_ms))) {
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
	if (screen_begin(err, sizeof(err)) < 0)
		return say_error(EXIT_USAGE, "%s", err);
	do {
		watch_sample(&w);
		watch_draw(&w);
		next_ms = clock_now_ms() + interval_ms;
	} while (watch_keys(&w, next_ms));
	screen_end();
	top_rows_fini(&w.top);
	json_decref(w.answers);
	return EXIT_DONE;
}
