/* SPDX-License-Identifier: BSD-3-Clause */
/* The screen of "rtrsctl top": rows on a terminal, and keys.  Alone knows ncurses.  Main thread. */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include "top-rows.h"

enum top_view { TOP_VIEW_ALL, TOP_VIEW_EXPORTS, TOP_VIEW_SESSIONS, TOP_VIEW_PATHS };

struct top_look {			/* what the user has chosen; all 0: the beginning */
	enum top_view view;
	enum top_order order;
	bool reverse;
	size_t first;			/* rows above the screen */
};

enum top_key { TOP_KEY_NONE, TOP_KEY_DRAW, TOP_KEY_QUIT };

/* Take the terminal.  0, or -1 with the reason in @err: the terminal cannot be used. */
int top_screen_begin(char *err, size_t errlen);
/* Give the terminal back as it was. */
void top_screen_end(void);
/* Draw @top, which is sorted, as @look says.  @line: about the programs, or what is wrong.  Makes
 * look->first fit. */
void top_screen_draw(const struct top *top, struct top_look *look, const char *line);
/* Wait for a key, or a new size of the terminal, for @ms milliseconds at most, and do to @look what
 * the key says. */
enum top_key top_screen_key(struct top_look *look, int ms);

#endif
