/* SPDX-License-Identifier: BSD-3-Clause */
/* Owns the terminal.  The first line is about the programs, the second has the heads, the last the
 * keys.  The name and both sparklines share the room that the other columns leave. */
#include <config.h>

#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curses.h>

#include "top-screen.h"
#include "util.h"

#define FIXED (1 + 12 + 1 + 8 + 1 + 8 + 1 + 8 + 1 + 1)	/* columns that have one width */
#define SPARK_MAX TOP_KEPT
#define NAME_MIN 27

enum { PAIR_GOOD = 1, PAIR_BAD };

static const enum top_kind kinds[] = {
	[TOP_VIEW_EXPORTS] = TOP_EXPORT,
	[TOP_VIEW_SESSIONS] = TOP_SESSION,
	[TOP_VIEW_PATHS] = TOP_PATH,
};

static bool utf8;

/* ---- the terminal ---- */

int top_screen_begin(char *err, size_t errlen)
{
	const char *term = getenv("TERM");

	setlocale(LC_CTYPE, "");
	utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	if (!newterm(NULL, stdout, stdin)) {
		snprintf(err, errlen, "TERM=%s: expected a terminal that terminfo knows; "
			 "\"rtrsctl --watch status\" needs none", term ? term : "");
		return -1;
	}
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

void top_screen_end(void)
{
	endwin();
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
	draw_text(y, x, 12, row->state);
	attroff(look_of(row->health));
	snprintf(iops, sizeof(iops), "%.0f", top_last(row, row->iops));
	snprintf(mbs, sizeof(mbs), "%.1f", row->mbs);
	text_time((uint64_t)top_last(row, row->p99_ns), p99, sizeof(p99));
	x += 13;
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
	mvprintw(1, x, "%-12s %8s %8s %8s", "STATE", "IOPS", "MB/s", "p99");
	x += 13 + 8 + 1 + 8 + 1 + 8 + 1;
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

void top_screen_draw(const struct top *top, struct top_look *look, const char *line)
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
	size_t up = (size_t)-rows;

	if (rows >= 0)
		look->first += (size_t)rows;
	else
		look->first -= MIN(look->first, up);
	return TOP_KEY_DRAW;
}

/* A terminal that is gone is ready to be read for ever, and has no key. */
static bool is_gone(void)
{
	struct pollfd pfd = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&pfd, 1, 0) > 0 && pfd.revents & (POLLHUP | POLLERR | POLLNVAL);
}

enum top_key top_screen_key(struct top_look *look, int ms)
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
